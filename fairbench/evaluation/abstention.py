"""Evaluates abstention, at every rate, and thresholds for each group: error and fairness."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairbench.core.arrays import Floats, divide
from fairbench.evaluation import table as tables
from fairbench.evaluation.groups import CountIntervals
from fairbench.evaluation.predictions import Groups, Labelled
from fairbench.evaluation.table import NAN, MetricTable, Setting, Statuses
from fairbench.inference.rates import rate_limits
from fairbench.inference.scores import coverage_area_limits
from fairbench.metrics import registry
from fairbench.metrics import uncertainty as uncertainties
from fairbench.metrics.group import RocHull, expected_counts, least_error

CHOSEN_HERE = "no interval: the share was chosen on these very rows"
OBJECTIVES = ("error_rate", "statistical_parity", "equalized_odds")
ABSTENTION, ABSTAINED = "abstention", "abstained"  # at every rate, and at the one that was chosen
# What is never above 1, of both.
SHARES = frozenset(
    f"{prefix}_{name}"
    for prefix in (ABSTENTION, ABSTAINED)
    for name in ("rate", "error_rate", *(m.name for m in registry.declared() if m.is_gap))
)


def evaluate_abstention(
    table: MetricTable,
    test: Labelled,
    chooser: Labelled | None,
    rates: Sequence[float],
    candidates: Sequence[float],
    attribute: str,
    objectives: Sequence[str] = OBJECTIVES,
) -> None:
    """Add curves, area under the risk-coverage curve and, with a `chooser`, the best rate.

    Parameters
    ----------
    chooser : the rows that the rate is chosen on: validation rows, or, as the papers have it, the
        test rows themselves.
    rates : shares of rows abstained on, for the curves.
    candidates : shares among which the best is chosen (the papers: up to a quarter).
    attribute : the attribute whose groups are compared.
    objectives : what the best minimises the normalised sum of, among `OBJECTIVES`.
    """
    groups = test.coded[attribute]
    area, lower, upper = np.full((3, test.splits, 1), NAN)
    wrong, claimed = test.target != test.column("prediction"), test.column("uncertainty")
    for s, rows in enumerate(test.slices):
        loss, uncertainty = wrong[rows], claimed[rows]
        area[s] = uncertainties.area_under_risk_coverage(loss, uncertainty)
        if table.frequentist and np.isfinite(uncertainty).all():
            limits = coverage_area_limits(loss, uncertainty, level=table.level)
            lower[s, 0], upper[s, 0] = limits[1:]
    table.add("area_under_risk_coverage", area, test.sizes, interval=(lower, upper))
    settings = [Setting(rate=rate) for rate in rates]
    of_splits = np.repeat(np.array(rates)[:, None], test.splits, axis=1)
    counts = _kept_counts(test, groups, of_splits)
    _add_curves(table, groups, counts, ABSTENTION, settings)
    if chooser is not None:
        tried = np.repeat(np.array([0.0, *candidates])[:, None], chooser.splits, axis=1)
        counts = _kept_counts(chooser, chooser.coded[attribute], tried)
        units, *values = np.moveaxis(_values(counts, objectives), 0, -1)
        # The least sum of objectives, each over its value at rate 0. One that has ceased to exist
        # is infinite; one that does not exist for all rows either has no say.
        with np.errstate(invalid="ignore", divide="ignore"):
            ratios = np.where(units > 0, values / units, np.greater(values, 0))
        ratios = np.where(np.isnan(values), np.inf, ratios)
        sums = np.where(np.isnan(units), 0.0, ratios).sum(axis=-1)
        chosen = np.asarray(candidates, float)[sums.argmin(axis=0)]
        table.add(tables.CHOSEN_RATE, chosen[:, None], chooser.sizes, attribute)
        gaps = list(registry.metrics_of(registry.BINARY, "widest"))
        about: Any = {"gaps": gaps, "lacking": CHOSEN_HERE if chooser is test else ""}
        counts = _kept_counts(test, groups, chosen[None])
        _add_curves(table, groups, counts, ABSTAINED, [tables.NO_SETTING], **about)


def _add_curves(
    table: MetricTable,
    groups: Groups,
    counts: Floats,
    prefix: str,
    settings: Sequence[Setting],
    gaps: Sequence[str] = OBJECTIVES[1:],
    *,
    lacking: str = "",
) -> None:
    """Add the error and the gaps among the rows kept, of which there are counts (K, S, G, 4).

    Intervals take the rows kept as given, since their uncertainties alone decide that.

    Parameters
    ----------
    prefix : what the metrics' names start with, `ABSTENTION` or `ABSTAINED`.
    settings : (K,) the setting of the rows of each rate.
    gaps : the names of the gaps.
    lacking : why nothing has an interval; empty where there are intervals.
    """
    level, size = table.level, groups.size
    everyone, left = counts.sum(axis=-2), counts.sum(axis=-1)
    share = 1 - divide(left, size)

    def add(
        names: Sequence[str], value: Floats, n: NDArray[Any], ends: Any, why: Any, **options: Any
    ) -> None:
        """Add metrics at every rate, (M, K, S) or (K, S, G), undefined for a reason."""
        status = Statuses.ok(value.shape)
        status.flag(np.isnan(value), "undefined", why)
        table.add(
            [f"{prefix}_{name}" for name in names for _ in settings],
            value,
            np.broadcast_to(_whole_rows(n), value.shape),
            groups.attribute,
            setting=[*settings] * len(names),
            interval=(NAN, NAN) if lacking or not table.frequentist else ends,
            status=status,
            lacking=lacking,
            **options,
        )

    def of_group(why: Callable[[str], str]) -> Callable[..., str]:
        return lambda *at: why(groups.names[at[-1]])

    metrics = [registry.metrics_of(registry.BINARY, "widest")[name] for name in gaps]
    wrong = registry.error_rate.successes(everyone)
    of_errors = np.stack(rate_limits(wrong, everyone.sum(axis=-1), level=level)[1:])
    asked = list(dict.fromkeys(rate for metric in metrics for rate in metric.rates))
    intervals = CountIntervals(counts, level, asked=asked)
    of_gaps = np.stack(intervals.gaps(metrics, np.array(True))[:2])
    ends = np.concatenate([of_errors[:, None], of_gaps], axis=1)
    names, kept = ["error_rate", *gaps], counts.sum(axis=(-2, -1))
    # A gap of a group with few rows kept is flagged, as it is where nobody abstains.
    fewest = [np.min([rate.size(counts) for rate in metric.rates], axis=(0, -1))
              for metric in metrics]  # fmt: skip
    no_value = "a group of the rows kept lacks what it is a share of"
    least = _whole_rows(np.stack([kept, *fewest]))
    add(names, _values(counts, names), kept, ends, no_value, fewest=least)
    errors, nobody = registry.error_rate(counts), of_group("no rows kept in group '{}'".format)
    ends_of_errors = rate_limits(registry.error_rate.successes(counts), left, level=level)[1:]
    add(["error_rate"], errors, left, ends_of_errors, nobody, groups=groups.names)
    no_rows = of_group(lambda name: f"no rows{tables.in_group(name)}")
    ends_of_share = rate_limits(size - left, size, level=level)[1:]
    add(["rate"], share, size, ends_of_share, no_rows, groups=groups.names)


def _kept_counts(data: Labelled, groups: Groups, rates: Floats) -> Floats:
    """Return the counts (K, S, G, 4) of the rows kept at rates (K, S), fractional in ties.

    They are sums of :func:`fairbench.metrics.uncertainty.keep_weights`.
    """
    n_cells = 4 * len(groups)
    cell = groups.codes * 4 + (2 * data.target + data.column("prediction")).astype(np.intp)
    uncertainty = data.column("uncertainty")
    counts = np.empty((*rates.shape, n_cells))
    for s, rows in enumerate(data.slices):
        _, block, size = np.unique(
            uncertainty[rows], return_inverse=True, return_counts=True, equal_nan=False
        )
        # The last row that is kept is in a block of equal uncertainty, a share of which is kept.
        stop = np.cumsum(size)
        kept = uncertainties.rows_kept(len(block), rates[:, s])
        last = np.searchsorted(stop, kept)
        share = (kept - stop[last] + size[last]) / size[last]
        # Rows by cell, and in a cell by uncertainty.
        place = np.sort(cell[rows] % n_cells * len(size) + block)
        first = np.arange(n_cells) * len(size)
        start, before, after = (
            np.searchsorted(place, first + block) for block in (0, last[:, None], last[:, None] + 1)
        )
        counts[:, s] = before - start + share[:, None] * (after - before)
    return counts.reshape(*rates.shape, len(groups), 4)


def _values(counts: Floats, metrics: Sequence[str]) -> Floats:
    """Return overall error rates, or group metrics, of counts (..., G, 4), (metrics, ...)."""
    gaps = registry.metrics_of(registry.BINARY, "widest")
    values = [
        registry.error_rate(registry.total(counts))[..., 0]
        if name == "error_rate"
        else gaps[name](counts)
        for name in metrics
    ]
    return np.stack(values)


def _whole_rows(counts: Floats) -> NDArray[np.int64]:
    """Return fractional counts as the numbers of rows they take, blind to rounding errors."""
    return np.ceil(counts - 1e-9).astype(np.int64)


def evaluate_feature_shift(table: MetricTable, data: Labelled, rates: Sequence[float]) -> None:
    """Add the shift of every feature at each abstention rate, and their mean.

    `n` is the number of rows kept: of a random choice of few rows, too, features shift somewhat.
    """
    if data.features is None or "uncertainty" not in data.predictions or not rates:
        return
    names = [str(name) for name in data.features.columns]
    shape = len(rates), 1 + len(names), data.splits
    values = np.full(shape, NAN)
    rows = np.zeros(shape, np.int64)
    uncertainty = data.column("uncertainty")
    statuses = data.statuses(~np.isfinite(uncertainty), "uncertainty")[:, 0].copy(shape)
    for s, of_split in enumerate(data.slices):
        kept = uncertainties.keep_weights(uncertainty[of_split], rates)
        rows[..., s] = np.round(kept.sum(axis=1, keepdims=True)).astype(np.int64)
        if statuses.is_ok[0, 0, s]:
            shifts = uncertainties.feature_shift(data.features.iloc[of_split], kept)
            values[:, 1:, s] = shifts
            for k, shift in enumerate(shifts):
                defined = shift[~np.isnan(shift)]
                values[k, 0, s] = defined.mean() if len(defined) else NAN
    missing = np.isnan(values) & statuses.is_ok
    statuses.flag(missing, "undefined", "no value among the rows kept")
    settings = [Setting(rate=rate, feature=feature) for rate in rates for feature in (None, *names)]
    metrics = ["mean_feature_shift", *("feature_shift" for _ in names)] * len(rates)
    table.add(metrics, values, rows, setting=settings, status=statuses)


# Thresholds for each group: a score's error and gaps under them.

# The gaps that thresholds can close by a linear programme.
CONSTRAINTS = (
    "statistical_parity",
    "equal_opportunity",
    "false_positive_rate_gap",
    "equalized_odds",
)
_MEASURES = ("error_rate", "gap", "validation_error_rate")


def evaluate_group_thresholds(
    table: MetricTable,
    data: Labelled,
    validation: Labelled | None,
    relaxations: Sequence[float],
    attribute: str,
) -> None:
    """Add error and gap under every constraint at every relaxation of it.

    Thresholds are chosen on the validation rows. At a relaxation of 1 the score is unprocessed:
    its error alone counts. Values are expectations over the thresholds' draws.
    """
    missing = attribute not in data.groups or "score" not in data.predictions
    if validation is None or missing or not relaxations:
        return
    groups = data.coded[attribute]

    def read(part: Labelled) -> tuple[list[tuple[Floats, Floats]], registry.Counts]:
        """Return labels and scores of each cell, and rows (S, G, 4) by label, in TN and FN."""
        cells, nobody = part.coded[attribute], np.zeros(len(part))
        rows = zip(*map(cells.split, (part.target, part.column("score"))), strict=True)
        counts = registry.binary_confusion(part.target, nobody, cells.codes, n_groups=cells.cells)
        return list(rows), counts.reshape(part.splits, len(cells), 4)

    (tested_on, tested_labels), (chosen_on, chosen_labels) = map(read, (data, validation))
    label_counts = tested_labels, chosen_labels

    @cache
    def thresholds(split: int) -> tuple[list[RocHull], list[Floats]]:
        """Return the thresholds of each group that are worth mixing in a split.

        They are those of the validation rows, with the counts (V, 4) of the test rows at them.
        """
        cells = slice(split * len(groups), (split + 1) * len(groups))
        hulls = [RocHull.of(*of_group) for of_group in chosen_on[cells]]
        tested = zip(hulls, tested_on[cells], strict=True)
        return hulls, [hull.counts_of(*of_group) for hull, of_group in tested]

    constraints = [registry.metrics_of(registry.BINARY, "widest")[name] for name in CONSTRAINTS]
    shape = len(constraints), len(relaxations), len(_MEASURES), data.splits
    values = np.full(shape, NAN)
    statuses = Statuses.ok(shape)
    lacking = [_missing_labels(metric, label_counts, groups.names) for metric in constraints]
    flagged = np.array(lacking)[:, None, None] != ""
    statuses.flag(flagged, "undefined", lambda c, *at: lacking[c][at[-1]])
    for c, metric in enumerate(constraints):
        defined = [split for split, reason in enumerate(lacking[c]) if not reason]
        hulls_of_splits = [thresholds(split)[0] for split in defined]
        of_splits = least_error(hulls_of_splits, metric.rates, relaxations)
        for split, weights in zip(defined, of_splits, strict=True):
            hulls, test_counts = thresholds(split)
            tested = expected_counts(weights, test_counts)
            validated = expected_counts(weights, [hull.counts for hull in hulls])
            error, validation_error = (
                registry.error_rate(registry.total(counts))[:, 0] for counts in (tested, validated)
            )
            values[c, ..., split] = np.stack([error, metric(tested), validation_error], axis=-1)
    settings = [
        Setting(constraint=metric.name, relaxation=relaxation)
        for metric, relaxation, _ in product(constraints, relaxations, _MEASURES)
    ]
    # (constraints, measures, S), as `values` without the relaxations.
    of_groups = [
        np.min([rate.size(label_counts[0]) for rate in metric.rates], axis=(0, -1))
        for metric in constraints
    ]
    fewest = [[data.sizes[:, 0], rows, validation.sizes[:, 0]] for rows in of_groups]
    of_all = np.broadcast_to(np.expand_dims(fewest, 1), shape)
    names = [f"postprocessed_{measure}" for measure in _MEASURES] * (shape[0] * shape[1])
    about = values, data.sizes, attribute
    table.add(names, *about, setting=settings, status=statuses, fewest=of_all)


def _missing_labels(
    metric: registry.Metric, label_counts: Sequence[registry.Counts], names: Sequence[str]
) -> list[str]:
    """Return which label a group lacks that a metric's rates rest on, in each split, if any.

    Parameters
    ----------
    label_counts : counts (S, G, 4) of the test rows, and of the validation rows.
    """
    reasons = [""] * len(label_counts[0])
    # The first that is lacking is named: what is looked at later stands.
    for counts, whose in zip(label_counts[::-1], (" of the validation rows", ""), strict=True):
        for rate in metric.rates[::-1]:
            for split, sizes in enumerate(rate.size(counts)):
                if not sizes.all():
                    group = names[int(sizes.argmin())]
                    reasons[split] = f"{rate.empty} in group '{group}'{whose}"
    return reasons
