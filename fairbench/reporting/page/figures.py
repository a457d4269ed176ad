"""The figures of the page: methods beside one another, and error against gaps between groups."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.inference.error_and_gaps import point_table, points
from fairbench.inference.frontier import frontier
from fairbench.metrics.confusion import FN, FP
from fairbench.reporting.document.model import Figure
from fairbench.reporting.page.blocks import ARM, Block, named
from fairbench.results.labels import told_apart
from fairbench.results.runs import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

MOST = 9  # what the markers of a panel tell apart
POINTS = 16  # of a trade-off, that a key and a panel have room for
_FEWEST = 2
_RATES = ("false_positive_rate", "true_positive_rate")
_COLOURS = 128
_TITLES = {
    "consistency": "How far each individual's uncertainty moves across variants",
    "spread": "Residuals against predicted uncertainty",
    "abstention": "Abstaining on the most uncertain",
    "parity": "Uncertainty-aware parity",
    "tradeoff": "Error against fairness",
}


def figures_of(block: Block) -> Iterator[Figure]:
    """Yield the figures of a block that compare uncertainty methods, and its trade-off.

    Compared are the methods without intervention, with one learner; the trade-off has all.
    """
    from fairbench.reporting.across import DRAWN

    metrics = _with_labels(block)
    for figure in tradeoff(block, metrics):
        note = (
            "means over repeats; letters: not dominated; the posterior is of one repeat's counts"
            f"; the {POINTS} of least error at most"
        )
        yield _figure(_TITLES["tradeoff"], figure, note)
    plain = _plain(block)
    shown = metrics[metrics["run"].isin(plain[:MOST])]
    left = len(plain) - MOST
    note = f"{left} further methods are in the tables alone" if left > 0 else ""
    for name, draw in DRAWN.items():
        if _has(shown, name):
            for part, figure in draw(shown):
                title = ", ".join(filter(None, [_TITLES[name], part.replace("_", " ")]))
                yield _figure(title, figure, note)


def _figure(title: str, drawing: Drawing, note: str) -> Figure:
    """Return a drawing for a document, with what a reader has to know under it."""
    return Figure(title, png=_png(drawing), caption=f"{title}: {note}" if note else title)


def _png(figure: Drawing) -> bytes:
    """Return a drawing as a PNG of few colours."""
    from PIL import Image

    figure.canvas.draw()
    pixels = np.asarray(figure.canvas.buffer_rgba())  # type: ignore[attr-defined]
    buffer = io.BytesIO()
    image = Image.fromarray(pixels).convert("RGB").quantize(_COLOURS, dither=Image.Dither.NONE)
    image.save(buffer, "PNG")
    return buffer.getvalue()


def _with_labels(block: Block) -> pd.DataFrame:
    labels = dict(zip(block.runs, named(list(block.runs.values())), strict=True))
    metrics = block.metrics.assign(
        run=block.metrics["run"].astype(str), dataset=block.dataset
    ).astype(dict.fromkeys(("metric", "attribute", "group"), str))
    return metrics.assign(method=metrics["run"].map(labels))


def _plain(block: Block) -> list[str]:
    """Return the runs without intervention, of the learner of most; one of those named alike."""
    runs = [run for run in block.runs.values() if run.choices["intervention"] == "none"]
    learners = pd.Series([run.choices["learner"] for run in runs], dtype=object)
    most = learners.mode().iloc[0] if len(runs) else ""
    mine = [run for run in runs if run.choices["learner"] == most]
    return list({label: run.id for label, run in zip(named(mine), mine, strict=True)}.values())


def _has(metrics: pd.DataFrame, name: str) -> bool:
    """Say whether there is anything to draw."""
    needed = {
        "consistency": "consistency_sd",
        "spread": "spread_predicted",
        "abstention": "abstention_error_rate",
        "parity": "uncertainty_aware_statistical_parity",
    }[name]
    values = metrics.loc[metrics["metric"] == needed, "value"]
    return bool(values.notna().any())


def tradeoff(block: Block, metrics: pd.DataFrame) -> Iterator[Drawing]:
    """Draw what ``fairbench tradeoff`` draws, of the runs of a block; of many, the least errors.

    Parameters
    ----------
    metrics : the block's, with texts that are no categories.
    """
    arms = metrics[metrics["run"].isin(block.arms)]
    counts = dict(confusion_counts(arms, block.protect))
    if len(counts) < _FEWEST:
        return
    from fairbench.reporting.tradeoff_figure import tradeoff_figure

    errors = {id_: each[..., [FP, FN]].sum() / each.sum() for id_, each in counts.items()}
    ids = sorted(errors, key=lambda id_: float(errors[id_]))[:POINTS]
    found = [points(counts[id_], block.dataset) for id_ in ids]
    table = point_table(ids, _names([block.runs[id_] for id_ in ids]), found)
    curve, base = _frontier(block, metrics)
    yield tradeoff_figure(table, curve, f"{block.dataset} by {block.protect}", base)


def _names(runs: Sequence[Run]) -> list[Mapping[str, str]]:
    """Name the parts of every run, each by its choice and the options of it that differ."""
    named = {part: told_apart([run.choices[part] for run in runs], runs, [part]) for part in ARM}
    return [{part: named[part][i].replace("_", " ") for part in ARM} for i in range(len(runs))]


def _frontier(block: Block, metrics: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """Return the curve of thresholds per group, and what it was made of."""
    plain = [run for run in block.runs.values() if run.choices["intervention"] == "none"]
    rows = metrics[metrics["metric"].str.startswith("postprocessed_")]
    curve = frontier([rows[rows["run"] == run.id] for run in plain], block.protect)
    if curve.empty:
        return curve, ""
    base = plain[curve["base"].iloc[0]].choices
    return curve, f"{base['learner']}, {base['method']}".replace("_", " ")


def confusion_counts(
    metrics: pd.DataFrame, protect: str
) -> Iterator[tuple[str, NDArray[np.float64]]]:
    """Yield each run and its counts (R, K, G, 4) of R repeats, K folds and the groups of `protect`.

    A run without predictions in some split, or of a regression, is left out.

    Parameters
    ----------
    metrics : the long table of several runs, with the column ``run`` and texts that are no
        categories.
    """
    rows = metrics[metrics["metric"].isin(_RATES) & (metrics["attribute"] == protect)]
    rows = rows[rows["group"] != ""]
    if rows.empty:
        return
    table = rows.pivot(
        index=["run", "repeat", "fold"], columns=["metric", "group"], values=["value", "n"]
    ).sort_index()
    groups = list(dict.fromkeys(rows["group"]))
    of_rates = [
        np.stack([table[column][rate][groups].to_numpy(float) for column in ("value", "n")])
        for rate in _RATES
    ]
    counts = np.concatenate([_split(*each) for each in of_rates], axis=-1)
    repeats = table.index.get_level_values("repeat")
    places = table.groupby(level="run", observed=True).indices
    for run in rows["run"].unique():
        mine = counts[places[run]]
        if not np.isnan(mine).any():
            n_repeats = repeats[places[run]].nunique()
            yield str(run), mine.reshape(n_repeats, -1, *mine.shape[1:])


def _split(rate: NDArray[np.float64], rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how many of the rows were predicted 0 and 1, (..., 2); a group may have none."""
    rows = np.nan_to_num(rows)
    ones = np.where(rows == 0, 0, np.rint(rate * rows))
    return np.stack([rows - ones, ones], axis=-1)
