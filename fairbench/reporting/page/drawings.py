"""The drawings of the page: methods beside one another, and error against gaps between groups."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from fairbench.core.arrays import Floats
from fairbench.evaluation.table import without_classes
from fairbench.inference.comparing import frontier, point_table, points
from fairbench.metrics.registry import FN, FP
from fairbench.metrics.registry import label as metric_label
from fairbench.reporting.charts import COLOURS, GREY, Panel, Series, chart, tradeoff_chart
from fairbench.reporting.document.model import Figure
from fairbench.reporting.group_tables import sentence_of
from fairbench.reporting.page.tables import ARM, RunBlock, name_runs, test_share
from fairbench.results.catalogue import add_differing_options
from fairbench.results.runs import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing


MOST = 9  # methods in a figure: as many as there are different markers
POINTS = 16  # runs in a trade-off: as many as fit into its key and its panel
_FEWEST = 2
_RATES = ("false_positive_rate", "true_positive_rate")
_SPREAD = ("spread_predicted", "spread_empirical")
_COLOURS = 128  # of a PNG: a palette keeps the page small
_KEPT = (
    "abstention_error_rate",
    "abstention_statistical_parity",
    "abstention_equalized_odds",
    "mean_feature_shift",
)
_NEEDED = {  # the metric without which there is nothing to draw
    "consistency": "consistency_sd",
    "spread": "spread_predicted",
    "abstention": "abstention_error_rate",
    "parity": "uncertainty_aware_statistical_parity",
}
_TITLES = {
    "consistency": "How far each individual's uncertainty moves across variants",
    "spread": "Residuals against predicted uncertainty",
    "abstention": "Abstaining on the most uncertain",
    "parity": "Uncertainty-aware parity",
    "tradeoff": "Error against fairness",
}


def figures_of(block: RunBlock) -> Iterator[Figure]:
    """Yield the figures of a block that compare uncertainty methods, and its trade-off.

    Compared are the methods without intervention, with one learner; the trade-off has all.
    """
    metrics = _with_labels(block)
    if drawings := tradeoff(block, metrics):
        note = sentence_of("runs", "tradeoff", points=POINTS)
        title = f"{_TITLES['tradeoff']}, {block.dataset} by {block.protect}"
        yield _figure(title, note, drawings)
    plain = _plain(block)
    metrics = metrics[metrics["run"].isin(plain[:MOST])]
    undrawn = len(plain) - MOST
    note = f"{undrawn} further methods are in the tables alone" if undrawn > 0 else ""
    defined = set(metrics["metric"][metrics["value"].notna()])
    for name, draw in (("spread", _spread_charts), ("abstention", _abstention_charts)):
        if _NEEDED[name] in defined:
            yield _figure(_TITLES[name], note, draw(metrics))
    for title, figure in _drawings(metrics, defined):
        yield _figure(title, note, png=_png(figure))


def _figure(title: str, note: str, drawings: Sequence[str] = ("",), png: bytes = b"") -> Figure:
    """Return drawings for a document, with their caption."""
    svg, *more = drawings
    return Figure(title, svg, png, f"{title}: {note}" if note else title, more=more)


def _drawings(metrics: pd.DataFrame, defined: set[str]) -> Iterator[tuple[str, Drawing]]:
    """Yield the figures that matplotlib draws: consistency boxes, parity, and feature shifts."""
    names = [name for name in ("consistency", "parity") if _NEEDED[name] in defined]
    shifts = metrics[metrics["metric"] == "feature_shift"]
    if not names and shifts.empty:
        return
    from fairbench.reporting.figures import DRAWN

    texts = dict.fromkeys(("run", "metric", "attribute", "group", "method"), str)
    for name in names:
        yield from ((_TITLES[name], figure) for _, figure in DRAWN[name](metrics.astype(texts)))
    for part, figure in DRAWN["abstention"](shifts.astype(texts)):
        yield f"{_TITLES['abstention']}, {part.replace('_', ' ')}", figure


def _method_styles(methods: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return how each method looks in every chart."""
    return {
        name: {"colour": COLOURS[i % 8], "shape": i, "dashed": i} for i, name in enumerate(methods)
    }


def _spread_charts(metrics: pd.DataFrame) -> list[str]:
    """Return the sd of residuals against mean uncertainty, for each number of groups of rows."""
    points = metrics[metrics["metric"].isin(_SPREAD)]
    styles = _method_styles(list(dict.fromkeys(points["method"])))
    keys = ["bins", "method", "bin", "metric"]
    means = points.groupby(keys, observed=True)["value"].mean().unstack()[list(_SPREAD)]
    panels = []
    for bins, of_bins in means.groupby(level="bins"):
        methods = of_bins.index.get_level_values("method")
        series = []
        for method, style in styles.items():
            x, y = of_bins[methods == method].to_numpy().T
            series.append(Series(method, x, y, **style, lined=bins <= 30))
        top = float(np.nanmax(of_bins.to_numpy()))
        series.append(Series("calibrated", [0, top], [0, top], GREY, dashed=True, marked=False))
        label = f"mean predicted uncertainty, {bins:.0f} groups of like uncertainty"
        panels.append(Panel(series, label, "sd of target - prediction"))
    return chart(panels, key=panels[0].series)


def _abstention_charts(metrics: pd.DataFrame) -> list[str]:
    """Return error and fairness of the rows kept, and the shift of their features, by rates."""
    curves = metrics[metrics["rate"].notna() & metrics["feature"].isna() & (metrics["group"] == "")]
    styles = _method_styles(list(dict.fromkeys(curves["method"])))
    selected = curves[curves["metric"].isin(_KEPT)]
    summary = selected.groupby(["metric", "method", "rate"], observed=True)["value"].agg(
        ["mean", "std"]
    )
    summary = summary.fillna(0).reset_index()
    panels = []
    for name in _KEPT:
        rows = summary[summary["metric"] == name]
        curves_of = {method: rows[rows["method"] == method] for method in styles}
        series = [
            Series(method, curve["rate"], curve["mean"], **styles[method], band=curve["std"])
            for method, curve in curves_of.items()
            if len(curve)
        ]
        if series:
            label = f"{metric_label(name.removeprefix('abstention_'))}, rows kept"
            panels.append(Panel(series, "share abstained on", label))
    return chart(panels, key=panels[0].series)


def _png(figure: Drawing) -> bytes:
    """Return a drawing as a PNG of few colours."""
    from PIL import Image

    figure.canvas.draw()
    pixels = np.asarray(figure.canvas.buffer_rgba())  # type: ignore[attr-defined]
    buffer = io.BytesIO()
    image = Image.fromarray(pixels).convert("RGB").quantize(_COLOURS, dither=Image.Dither.NONE)
    image.save(buffer, "PNG")
    return buffer.getvalue()


def _with_labels(block: RunBlock) -> pd.DataFrame:
    """Return the metrics of a block, with its name and the names of its runs as categories."""
    labels = block.names
    names = list(dict.fromkeys(labels.values()))
    run = block.metrics["run"].cat
    code = np.array([names.index(labels[id_]) if id_ in labels else -1 for id_ in run.categories])
    method = pd.Categorical.from_codes(code[run.codes], names)
    return without_classes(block.metrics.assign(dataset=block.dataset, method=method))


def _plain(block: RunBlock) -> list[str]:
    """Return the ids of plain runs with the most frequent learner, one for each label."""
    runs = [run for run in block.runs.values() if run.choices["intervention"] == "none"]
    learners = pd.Series([run.choices["learner"] for run in runs], dtype=object)
    most = learners.mode().iloc[0] if len(runs) else ""
    chosen = [run for run in runs if run.choices["learner"] == most]
    run_of_label = dict(zip(name_runs(chosen), chosen, strict=True))
    return [run.id for run in run_of_label.values()]


def tradeoff(block: RunBlock, metrics: pd.DataFrame) -> list[str]:
    """Return the chart of ``fairbench tradeoff`` for a block's runs: at most those of least error.

    Parameters
    ----------
    metrics : the block's.
    """
    arms = metrics[metrics["run"].isin(block.arms)]
    counts = dict(confusion_counts(arms, block.protect))
    if len(counts) < _FEWEST:
        return []
    errors = {id_: float(of[..., [FP, FN]].sum() / of.sum()) for id_, of in counts.items()}
    ids = sorted(errors, key=errors.__getitem__)[:POINTS]
    share = test_share(block.metrics)
    run_points = [
        points(counts[id_], block.dataset, test_share=share if _differ(counts[id_]) else np.nan)
        for id_ in ids
    ]
    table = point_table(ids, _names([block.runs[id_] for id_ in ids]), run_points)
    table = table[table["gap"].notna()]
    return tradeoff_chart(table, *_frontier(block, metrics)) if len(table) else []


def _names(runs: Sequence[Run]) -> list[Mapping[str, str]]:
    """Name the parts of every run, each by its choice and the options of it that differ."""
    name_of = {
        part: add_differing_options([run.choices[part] for run in runs], runs, [part])
        for part in ARM
    }
    return [{part: name_of[part][i].replace("_", " ") for part in ARM} for i in range(len(runs))]


def _frontier(block: RunBlock, metrics: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """Return the curve of thresholds per group, and the name of the run it was made from."""
    plain = [run for run in block.runs.values() if run.choices["intervention"] == "none"]
    rows = metrics[metrics["metric"].str.startswith("postprocessed_")]
    if rows.empty:
        return rows, ""
    curve = frontier([rows[rows["run"] == run.id] for run in plain], block.protect)
    if curve.empty:
        return curve, ""
    base = plain[curve["base"].iloc[0]].choices
    return curve, f"{base['learner']}, {base['method']}".replace("_", " ")


def confusion_counts(metrics: pd.DataFrame, protect: str) -> Iterator[tuple[str, Floats]]:
    """Yield each run and its counts (R, K, G, 4) of R repeats, K folds and the groups of `protect`.

    A run without predictions in some split, or of a regression, is left out.

    Parameters
    ----------
    metrics : the long table of several runs, with the column ``run``.
    """
    rows = metrics[metrics["metric"].isin(_RATES) & (metrics["attribute"] == protect)]
    rows = rows[rows["group"] != ""].astype(dict.fromkeys(("run", "group", "metric"), str))
    if rows.empty:
        return
    # How many of the rows were predicted 0 and 1; a group may have none.
    n = np.nan_to_num(rows["n"].to_numpy(float))
    ones = np.where(n == 0, 0, np.rint(rows["value"].to_numpy(float) * n))
    keys = ["run", "repeat", "fold", "group", "metric"]
    counts = rows[keys].assign(zeros=n - ones, ones=ones).set_index(keys)
    groups, predicted = rows["group"].unique(), ("zeros", "ones")
    table = counts.unstack(["group", "metric"], fill_value=0).reindex(
        columns=list(product(predicted, groups, _RATES)), fill_value=0
    )
    for run in rows["run"].unique():
        of_run = table.loc[run]
        if not of_run.isna().any(axis=None):
            repeats = of_run.index.get_level_values("repeat").nunique()
            shape = repeats, -1, len(predicted), len(groups), len(_RATES)
            cells = np.moveaxis(of_run.to_numpy(float).reshape(shape), 2, -1)
            yield run, cells.reshape(*cells.shape[:3], -1)


def _differ(counts: Floats) -> bool:
    """Return whether the repeats (R, 1, G, 4) of a run test other people, and no folds of all."""
    labels = counts.reshape(*counts.shape[:-1], 2, 2).sum(axis=-1)
    return counts.shape[1] == 1 and bool((labels != labels[0]).any())
