"""What the figures of runs and of methods show: series, labels and axes, made of metrics alone.

First those of several methods on one data set, then those of one run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from fairbench.core.arrays import Floats, Mask
from fairbench.core.text import fixed
from fairbench.evaluation.many_groups import CLASS, with_class
from fairbench.evaluation.table import values_of, without_classes
from fairbench.metrics.registry import label as metric_label
from fairbench.reporting.charts import BLUE, COLOURS, GREY, ORANGE, Drawing, Panel, Series, drawn

Named: TypeAlias = tuple[str, Panel]
# How each method looks in every panel.
Styles: TypeAlias = Mapping[str, Mapping[str, Any]]


def method_styles(methods: Iterable[str]) -> Styles:
    """Return how each method looks in every panel."""
    return {
        name: {"colour": COLOURS[i % len(COLOURS)], "shape": i, "dashed": i}
        for i, name in enumerate(dict.fromkeys(methods))
    }


def _curves(
    rows: pd.DataFrame, along: str, names: str, styles: Styles, **more: Any
) -> list[Series]:
    """Return means over repeats with a band of one sd either way; where undefined, no point.

    Parameters
    ----------
    names : the column of what has a curve of its own, in the order of the styles of each.
    """
    name_of = rows[names].to_numpy(object)
    place, value = (rows[column].to_numpy(float, na_value=np.nan) for column in (along, "value"))
    curves = []
    for name, style in styles.items():
        places, mean, sd = _at_places(place, value, (name_of == name) & ~np.isnan(value))
        if len(places):
            curves.append(Series(name, places, mean, **style, band=sd, **more))
    return curves


def _at_places(place: Floats, value: Floats, chosen: Mask) -> tuple[Floats, Floats, Floats]:
    """Return the distinct places of some values, with mean and sd at each; of one the sd is 0."""
    places, code = np.unique(place[chosen], return_inverse=True)
    n, value = np.bincount(code), value[chosen]
    mean = np.bincount(code, value) / n
    squares = np.bincount(code, (value - mean[code]) ** 2)
    return places, mean, np.sqrt(squares / np.maximum(n - 1, 1))


_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
_CROSS = 6  # the shape of a cross


def _consistency_boxes(metrics: pd.DataFrame, styles: Styles) -> Iterator[Named]:
    """Yield how far individuals' uncertainties move across variants, a box for each method.

    Boxes run from the 25th to the 75th percentile of individuals, lines from the 5th to the 95th,
    crosses mark the maximum; grey are the same for fits that differ in their draws alone. All are
    means over repeats.
    """
    metrics = metrics[metrics["value"].notna()]
    varied = set(metrics.loc[metrics["metric"] == "consistency_sd", "method"])
    shown = {method: style["colour"] for method, style in styles.items() if method in varied}
    series: list[Series] = []
    for kind, shift, half in (("noise", 0.3, 0.08), ("consistency", 0.0, 0.2)):
        for place, (method, colour) in enumerate(shown.items()):
            own = metrics[metrics["method"] == method]
            sds = own[own["metric"] == f"{kind}_sd"].groupby("quantile")["value"].mean()
            if len(sds):
                top = own.loc[own["metric"] == f"{kind}_max_sd", "value"].mean()
                of_kind = GREY if kind == "noise" else colour
                series += _box(place + shift, half, sds.reindex(_QUANTILES), top, of_kind)
    if series:
        draws = " (grey: draws alone)" if "noise_sd" in set(metrics["metric"]) else ""
        label = f"sd of an individual's uncertainty across variants{draws}"
        names = [name.replace("_", " ") for name in shown]
        yield "", Panel(series, label, "", from_zero="x", names=names)


def _box(y: float, half: float, sds: Iterable[float], top: float, colour: str) -> Iterator[Series]:
    """Yield a box of half this height with its whiskers, its median, and a cross at the maximum."""
    low, first, middle, third, high = sds
    corners = [(first, y - half), (third, y - half), (third, y + half), (first, y + half)]
    yield Series("", [low, high], [y, y], colour, marked=False)
    yield Series("", [middle], [y], colour, filled=True, lined=False, outline=np.array(corners))
    yield Series("", [top], [y], colour, shape=_CROSS, lined=False)


_SPREAD = ("spread_predicted", "spread_empirical")
_MOST_LINED = 30  # points that a line connects


def _spread_diagrams(metrics: pd.DataFrame, styles: Styles) -> Iterator[Named]:
    """Yield the sd of residuals against mean uncertainty, a panel for each number of groups."""
    points = metrics[metrics["metric"].isin(_SPREAD)]
    metric, method_of = (points[name].to_numpy(object) for name in ("metric", "method"))
    bins_of, place, value = (points[name].to_numpy(float) for name in ("bins", "bin", "value"))
    for bins in np.unique(bins_of):
        series = []
        for method, style in styles.items():
            own = (bins_of == bins) & (method_of == method) & ~np.isnan(value)
            x, y = (_at_places(place, value, own & (metric == side)) for side in _SPREAD)
            if len(both := np.intersect1d(x[0], y[0])):
                across, up = (mean[np.isin(places, both)] for places, mean, _ in (x, y))
                lined = bool(bins <= _MOST_LINED)
                series.append(Series(method, across, up, **style, lined=lined))
        label = f"mean predicted uncertainty, of {bins:.0f} groups of like uncertainty"
        top = max((float(np.max([of.x, of.y])) for of in series), default=0.0)
        yield f"groups{bins:.0f}", _diagonal(series, label, _RESIDUALS, top)


_RESIDUALS = "sd of target - prediction"


def _diagonal(series: list[Series], x_label: str, y_label: str, top: float) -> Panel:
    """Return a panel with a dashed line where both sides are equal."""
    calibrated = Series("calibrated", [0, top], [0, top], GREY, dashed=1, marked=False)
    return Panel([*series, calibrated], x_label, y_label)


SHIFT_LABEL = "shift of the rows kept, in sd (numbers) or share (categories)"
TOP_FEATURES = 10
_OBJECTIVES = ("error_rate", "statistical_parity", "equalized_odds")
_ABSTAINED = "share abstained on"


def _abstention_curves(metrics: pd.DataFrame, styles: Styles) -> Iterator[Named]:
    """Yield error and fairness of the rows kept, and the shift of their features, against rates."""
    curves = metrics[metrics["rate"].notna() & metrics["feature"].isna() & (metrics["group"] == "")]
    for metric in (*(f"abstention_{name}" for name in _OBJECTIVES), "mean_feature_shift"):
        rows, name = curves[curves["metric"] == metric], metric.removeprefix("abstention_")
        if series := _curves(rows, "rate", "method", styles):
            yield name, Panel(series, _ABSTAINED, f"{metric_label(name)}, rows kept")
    yield from _feature_shifts(metrics, styles)


def _feature_shifts(metrics: pd.DataFrame, styles: Styles) -> Iterator[Named]:
    """Yield the features that abstention moves most, at each rate; of one method, with one sd."""
    shifts = metrics[metrics["metric"] == "feature_shift"]
    for rate, rows in shifts.assign(feature=shifts["feature"].astype(str)).groupby("rate"):
        values = rows.groupby(["feature", "method"], sort=False)["value"]
        means, sds = values.mean().unstack(), values.std().fillna(0).unstack()
        order = means.max(axis=1).nlargest(TOP_FEATURES).index
        series = []
        for method, style in styles.items():
            if method in means:
                mean, sd = means.loc[order, method], sds.loc[order, method]
                ends = np.stack([mean - sd, mean + sd], axis=1) if len(styles) == 1 else None
                places = np.arange(len(order))
                series.append(Series(method, mean, places, **style, lined=False, ends=ends))
        label = f"{SHIFT_LABEL}, abstaining on {rate:.0%}"
        yield f"feature_shift_rate{rate:g}", Panel(series, label, "", from_zero="x", names=order)


def _by_group(metrics: pd.DataFrame, styles: Styles, metric: str, label: str) -> Iterator[Named]:
    """Yield a metric of groups at every rate of abstention: dashes a group, a colour a method."""
    rows = metrics[(metrics["metric"] == metric) & metrics["rate"].notna()]
    rows = rows[rows["group"] != ""]
    groups = {str(group): g for g, group in enumerate(dict.fromkeys(rows["group"]))}
    series = []
    for group, dashed in groups.items():
        of_group = rows[rows["group"] == group]
        for method, style in styles.items():
            means = of_group[of_group["method"] == method].groupby("rate")["value"].mean()
            looks = {**style, "dashed": dashed}
            series.append(Series(method, means.index, means, **looks))
    key = [Series(name, [], [], "black", dashed=g, marked=False) for name, g in groups.items()]
    if series:
        yield "", Panel([*series, *key], "share abstained on, of everyone", label)


UA_SP = "uncertainty_aware_statistical_parity"
_LEVEL = 0.9


def _parities(metrics: pd.DataFrame, styles: Styles) -> Iterator[Named]:
    """Yield each method's parity as normals and as points, with that of the labels as a line.

    Large sds lower the first without making anything fairer: before the name of a method are the
    share of targets that its 90 % intervals cover and its continuous ranked probability score.
    Means over repeats, lines and box one sd either way; groups are those of the first attribute.
    """
    if UA_SP not in set(metrics["metric"]):
        return
    attribute = str(metrics.loc[metrics["metric"] == "label_parity", "attribute"].iloc[0])
    overall = metrics[(metrics["attribute"] == attribute) & (metrics["group"] == "")]
    labels = overall.loc[overall["metric"] == "label_parity", "value"]
    low, high = labels.mean() + np.array([-1, 1]) * labels.std(ddof=0)
    top, bottom = -0.5, len(styles) - 0.5
    corners = np.array([(low, top), (high, top), (high, bottom), (low, bottom)])
    line = Series("labels", [labels.mean()] * 2, [top, bottom], ORANGE, marked=False)
    series = [line, Series("", [], [], ORANGE, marked=False, outline=corners)]
    for metric, name, shift, looks in (
        ("statistical_parity", "predictions as points", 0.13, {"colour": GREY}),
        (UA_SP, "predictions as normals (UA-SP)", -0.13,
         {"colour": BLUE, "shape": 3, "filled": True}),
    ):  # fmt: skip
        values = overall[overall["metric"] == metric].groupby("method")["value"]
        mean, sd = (of.reindex(list(styles)) for of in (values.mean(), values.std().fillna(0)))
        ends = np.stack([mean - sd, mean + sd], axis=1)
        places = np.arange(len(styles)) + shift
        series.append(Series(name, mean, places, **looks, lined=False, ends=ends))
    everyone = metrics[(metrics["attribute"] == "") & metrics["level"].isin([np.nan, _LEVEL])]
    scores = everyone.groupby(["metric", "method"])["value"].mean()

    def score(metric: str, method: str) -> str:
        value = scores.get((metric, method), np.nan)
        return "-" if np.isnan(value) else fixed(value, 2)

    names = [
        f"{score('coverage', method)}, {score('crps', method)}: {method.replace('_', ' ')}"
        for method in styles
    ]
    label = "largest Kolmogorov-Smirnov distance between groups"
    shown = "share in 90 % intervals, CRPS: method"
    yield "", Panel(series, label, shown, f"by {attribute}", from_zero="x", names=names)


# The figures of several methods: what yields the named panels of one data set.
OF_METHODS: Mapping[str, Callable[[pd.DataFrame, Styles], Iterator[Named]]] = {
    "consistency": _consistency_boxes,
    "spread": _spread_diagrams,
    "abstention": _abstention_curves,
    "group_errors": partial(
        _by_group, metric="abstention_error_rate", label="error rate, rows kept"
    ),
    "group_abstention": partial(
        _by_group, metric="abstention_rate", label="share of the group abstained on"
    ),
    "parity": _parities,
}


# The figures of one run.


def _binned(metrics: pd.DataFrame, x: str, y: str, x_label: str, y_label: str) -> Panel:
    """Return a metric of bins of rows, y, against another, x: each repeat's, and their means."""
    keys = ["repeat", "fold", "variant", "bins", "bin"]
    sides = [metrics[metrics["metric"] == name].set_index(keys)["value"] for name in (x, y)]
    points = pd.DataFrame({"x": sides[0], "y": sides[1]}).reset_index()
    points = points[points["bins"] == points["bins"].iloc[0]]
    mean = points.groupby("bin", sort=False)[["x", "y"]].mean().sort_values("x")
    series = [
        Series("one repeat", points["x"], points["y"], BLUE, lined=False),
        Series("mean of repeats", mean["x"], mean["y"], ORANGE, filled=True),
    ]
    return _diagonal(series, x_label, y_label, float(np.nanmax(points[["x", "y"]].to_numpy())))


def _reliability(metrics: pd.DataFrame, protect: str) -> Iterator[Panel]:
    """Yield the observed share of positives against the mean predicted probability, per bin."""
    sides = ("reliability_mean_score", "reliability_base_rate")
    yield _binned(metrics, *sides, "mean predicted probability", "share of positives")


def _spread(metrics: pd.DataFrame, protect: str) -> Iterator[Panel]:
    """Yield the sd of the residuals against mean predicted uncertainty, per group of rows."""
    yield _binned(metrics, *_SPREAD, "mean predicted uncertainty", _RESIDUALS)


MOST_GROUPS = 60  # in one figure
_FOUND = "true_positive_rate"
_RATES = ("selection_rate", _FOUND, "false_positive_rate", "error_rate")
_OF_REPEATS = "with interval of one repeat (medians over repeats)"


def _largest(rows: pd.DataFrame) -> tuple[list[str], str]:
    """Return the largest groups, as many as fit, and a title that tells so."""
    sizes = rows.groupby("group", sort=False, observed=True)["n"].max()
    if len(sizes) <= MOST_GROUPS:
        return list(sizes.index), ""
    largest = sizes.index.isin(sizes.nlargest(MOST_GROUPS).index)
    return list(sizes.index[largest]), f"the {MOST_GROUPS} largest of {len(sizes)} groups"


def _middles(rows: pd.DataFrame, g: int, name: str, places: ArrayLike, names: list[str]) -> Series:
    """Return medians over repeats of the g-th group with their intervals, a row for each name."""
    of = rows.groupby("metric")[["value", "lower", "upper"]].median().reindex(names)
    ends, colour = of[["lower", "upper"]].to_numpy(), COLOURS[g % len(COLOURS)]
    return Series(name, of["value"], places, colour, g, filled=True, lined=False, ends=ends)


def _group_rates(metrics: pd.DataFrame, protect: str) -> Iterator[Panel]:
    """Yield the rates of each group of `protect` with their intervals.

    Of several classes it is the error rate and the true positive rate of each class.
    """
    rates = metrics[(metrics["attribute"] == protect) & (metrics["group"] != "")]
    rates = rates.assign(metric=with_class(rates).astype(str))
    class_rates = [name for name in rates["metric"].unique() if name.startswith(f"{_FOUND}{CLASS}")]
    shown = ["error_rate", *class_rates] if class_rates else list(_RATES)
    groups, title = _largest(rates)
    step = 0.8 / len(groups)
    series = []
    for g, group in enumerate(groups):
        places = np.arange(len(shown)) + (g - (len(groups) - 1) / 2) * step
        series.append(_middles(rates[rates["group"] == group], g, str(group), places, shown))
    names = [name.replace("_", " ") for name in shown]
    yield Panel(series, f"rate, {_OF_REPEATS}", "", title, spans={"x": (0, 1)}, names=names)


def _abstention(metrics: pd.DataFrame, protect: str) -> Iterator[Panel]:
    """Yield error and fairness of the rows kept, and each group's abstention, against the rate."""
    curves = metrics[(metrics["attribute"] == protect) & metrics["rate"].notna()]
    overall = curves[curves["group"] == ""]
    of_groups = curves[(curves["group"] != "") & (curves["metric"] == "abstention_rate")]
    parts = overall.assign(of=overall["metric"].astype(str).str.removeprefix("abstention_"))
    for label, rows, names, shown in (
        ("of the rows kept (mean, sd over repeats)", parts, "of", _OBJECTIVES),
        (f"{_ABSTAINED}, by {protect}", of_groups, "group", of_groups["group"]),
    ):
        lines = _curves(rows, "rate", names, method_styles(shown))
        yield Panel(lines, _ABSTAINED, label)


_RUN = "this run"


def _of_one(metrics: pd.DataFrame, protect: str, kind: str) -> Iterator[Panel]:
    """Yield the last panel of a kind of figures of methods, of the run as the only method."""
    *_, (_, panel) = OF_METHODS[kind](metrics.assign(method=_RUN), method_styles([_RUN]))
    yield panel


PARTS = ("aleatoric", "epistemic", "predictive")


def _uncertainties(metrics: pd.DataFrame, protect: str) -> Iterator[Panel]:
    """Yield the mean uncertainties of each group of `protect`, with the intervals of one repeat."""
    of_attribute = metrics[(metrics["attribute"] == protect) & (metrics["group"] != "")]
    groups, title = _largest(of_attribute)
    for part in PARTS:
        name = f"{part}_uncertainty"
        if name in set(of_attribute["metric"]):
            series = []
            for g, group in enumerate(groups):
                rows = of_attribute[of_attribute["group"] == group]
                series.append(_middles(rows, g, "", [g], [name]))
            label = f"{part} variance, {_OF_REPEATS}"
            yield Panel(series, label, "", title, from_zero="x", names=groups)


FEWEST = 10  # means of fewer rows are not drawn
OUTCOMES = {
    "TP": "true positives",
    "FP": "false positives",
    "TN": "true negatives",
    "FN": "false negatives",
}


def individual_fairness(metrics: pd.DataFrame, protect: str) -> Iterator[Panel]:
    """Yield individual fairness against the number of neighbours, by group and outcome.

    Four panels, one for each outcome, for everything that is compared; means over repeats, with a
    band of one sd. An outcome that fewer than `FEWEST` rows of a group have is left out.
    """
    rows = metrics[(metrics["attribute"] == protect) & metrics["outcome"].notna()]
    rows = rows[rows["n"] >= FEWEST]
    styles = method_styles(rows["group"])
    for name in [f"individual_fairness_{part}" for part in ("prediction", *PARTS)]:
        of_name = rows[rows["metric"] == name]
        for outcome, words in OUTCOMES.items() if len(of_name) else ():
            chosen = of_name[of_name["outcome"] == outcome]
            lines = _curves(chosen, "k", "group", styles, marked=False)
            label = "neighbours (mean, sd over repeats)"
            measure = name.removeprefix("individual_fairness_")
            yield Panel(lines, label, measure, words, from_zero="")


# The figures of a run: name -> the metric that it needs, and what yields its panels.
OF_A_RUN: Mapping[str, tuple[str, Callable[[pd.DataFrame, str], Iterator[Panel]]]] = {
    "reliability": ("reliability_mean_score", _reliability),
    "spread": ("spread_predicted", _spread),
    "group_rates": ("selection_rate", _group_rates),
    "abstention": ("abstention_error_rate", _abstention),
    "feature_shift": ("feature_shift", partial(_of_one, kind="abstention")),
    "consistency": ("consistency_sd", partial(_of_one, kind="consistency")),
    "uncertainties": ("predictive_uncertainty", _uncertainties),
    "individual_fairness": ("individual_fairness_prediction", individual_fairness),
}


def _figures(metrics: pd.DataFrame, title: str, protect: str) -> Iterator[tuple[str, Drawing]]:
    """Yield (name, figure) for every figure that the metrics of the run's own variant allow."""
    every = values_of(metrics[metrics["variant"] == ""])
    metrics = without_classes(every)
    for name, (needed, panels_of) in OF_A_RUN.items():
        rows = every if panels_of is _group_rates else metrics
        if needed in set(rows["metric"]):
            yield name, drawn([*panels_of(rows, protect)], title)


def draw_figures(metrics: pd.DataFrame, title: str, protect: str, folder: Path) -> None:
    """Draw every figure of a run into a folder, as PNG files."""
    for name, figure in _figures(metrics, title, protect):
        figure.savefig(folder / f"{name}.png")


def figures_of_methods(metrics: pd.DataFrame, kind: str) -> Iterator[tuple[str, Drawing]]:
    """Yield (name, figure) of several methods, with a panel for each data set."""
    styles = method_styles(metrics["method"])
    panels: dict[str, list[Panel]] = {}
    for dataset, rows in metrics.groupby("dataset", sort=False, observed=True):
        for name, panel in OF_METHODS[kind](rows, styles):
            title = ", ".join(filter(None, (str(dataset), panel.title)))
            panels.setdefault(name, []).append(replace(panel, title=title))
    for name, of_name in panels.items():
        yield name, drawn(of_name)
