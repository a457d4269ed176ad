"""The drawings of the page: methods beside one another, and error against gaps between groups."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

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
    plain_metrics = metrics[metrics["run"].isin(plain[:MOST])]
    undrawn = len(plain) - MOST
    note = f"{undrawn} further methods are in the tables alone" if undrawn > 0 else ""
    for name, draw in (("spread", _spread_charts), ("abstention", _abstention_charts)):
        if _has_values_for(plain_metrics, name):
            yield _figure(_TITLES[name], note, draw(plain_metrics))
    for title, figure in _drawings(plain_metrics):
        yield _figure(title, note, png=_png(figure))


def _figure(title: str, note: str, drawings: Sequence[str] = ("",), png: bytes = b"") -> Figure:
    """Return drawings for a document, with their caption."""
    svg, *more = drawings
    return Figure(title, svg, png, f"{title}: {note}" if note else title, more=more)


def _drawings(metrics: pd.DataFrame) -> Iterator[tuple[str, Drawing]]:
    """Yield the figures that matplotlib draws: consistency boxes, parity, and feature shifts."""
    names = [name for name in ("consistency", "parity") if _has_values_for(metrics, name)]
    shifts = metrics[metrics["metric"] == "feature_shift"]
    if not names and shifts.empty:
        return
    from fairbench.reporting.figures import DRAWN

    metrics, shifts = _texts(metrics), _texts(shifts)
    for name in names:
        yield from ((_TITLES[name], figure) for _, figure in DRAWN[name](metrics))
    for part, figure in DRAWN["abstention"](shifts):
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


def _texts(metrics: pd.DataFrame) -> pd.DataFrame:
    """Return metrics with texts in place of categories."""
    return metrics.astype(dict.fromkeys(("run", "metric", "attribute", "group", "method"), str))


def _plain(block: RunBlock) -> list[str]:
    """Return the ids of plain runs with the most frequent learner, one for each label."""
    runs = [run for run in block.runs.values() if run.choices["intervention"] == "none"]
    learners = pd.Series([run.choices["learner"] for run in runs], dtype=object)
    most = learners.mode().iloc[0] if len(runs) else ""
    runs_of_learner = [run for run in runs if run.choices["learner"] == most]
    return list(
        {
            label: run.id
            for label, run in zip(name_runs(runs_of_learner), runs_of_learner, strict=True)
        }.values()
    )


def _has_values_for(metrics: pd.DataFrame, name: str) -> bool:
    """Return whether anything can be drawn."""
    needed = {
        "consistency": "consistency_sd",
        "spread": "spread_predicted",
        "abstention": "abstention_error_rate",
        "parity": "uncertainty_aware_statistical_parity",
    }[name]
    values = metrics.loc[metrics["metric"] == needed, "value"]
    return bool(values.notna().any())


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
    errors = {
        id_: run_counts[..., [FP, FN]].sum() / run_counts.sum()
        for id_, run_counts in counts.items()
    }
    ids = sorted(errors, key=lambda id_: float(errors[id_]))[:POINTS]
    share = test_share(block.metrics)
    run_points = [
        points(counts[id_], block.dataset, test_share=share if _differ(counts[id_]) else np.nan)
        for id_ in ids
    ]
    table = point_table(ids, _names([block.runs[id_] for id_ in ids]), run_points)
    curve, base = _frontier(block, metrics)
    table = table[table["gap"].notna()]
    return tradeoff_chart(table, curve, base) if len(table) else []


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


def confusion_counts(
    metrics: pd.DataFrame, protect: str
) -> Iterator[tuple[str, NDArray[np.float64]]]:
    """Yield each run and its counts (R, K, G, 4) of R repeats, K folds and the groups of `protect`.

    A run without predictions in some split, or of a regression, is left out.

    Parameters
    ----------
    metrics : the long table of several runs, with the column ``run``.
    """
    rows = metrics[metrics["metric"].isin(_RATES) & (metrics["attribute"] == protect)]
    rows = rows[rows["group"] != ""]
    if rows.empty:
        return
    # Where each row belongs: its run, its split, its group.
    run, runs = pd.factorize(rows["run"])
    split = rows.groupby(["repeat", "fold"]).ngroup().to_numpy()
    group, groups = pd.factorize(rows["group"])
    repeat_of_split = rows["repeat"].groupby(split).first().to_numpy()
    shape = len(runs), len(repeat_of_split), len(groups)
    counts_by_rate = []
    for rate in _RATES:
        is_rate = (rows["metric"] == rate).to_numpy(bool)
        table = np.full((2, *shape), np.nan)
        for column, name in zip(table, ("value", "n"), strict=True):
            column[run[is_rate], split[is_rate], group[is_rate]] = rows[name].to_numpy()[is_rate]
        counts_by_rate.append(_split(*table))
    counts = np.concatenate(counts_by_rate, axis=-1)
    is_tested = np.zeros(shape[:2], bool)
    is_tested[run, split] = True
    for name, run_counts, tested in zip(runs, counts, is_tested, strict=True):
        if not np.isnan(run_counts[tested]).any():
            repeats = len(np.unique(repeat_of_split[tested]))
            yield str(name), run_counts[tested].reshape(repeats, -1, *run_counts.shape[1:])


def _differ(counts: NDArray[np.float64]) -> bool:
    """Return whether the repeats (R, 1, G, 4) of a run test other people, and no folds of all."""
    labels = counts.reshape(*counts.shape[:-1], 2, 2).sum(axis=-1)
    return counts.shape[1] == 1 and bool((labels != labels[0]).any())


def _split(rate: NDArray[np.float64], rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how many of the rows were predicted 0 and 1, (..., 2); a group may have none."""
    rows = np.nan_to_num(rows)
    ones = np.where(rows == 0, 0, np.rint(rate * rows))
    return np.stack([rows - ones, ones], axis=-1)
