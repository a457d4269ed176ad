"""Evaluates how uncertain predictions are, by group, across variants and among similar people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fairbench.core.arrays import Floats
from fairbench.data.dataset import Task
from fairbench.evaluation import table as tables
from fairbench.evaluation.predictions import AllGroups, Groups, Labelled
from fairbench.evaluation.table import NAN, MetricTable, Setting, Statuses
from fairbench.inference import rates
from fairbench.inference.means import ROWS, Moments, around, loss_limits
from fairbench.metrics.uncertainty import GroupMeans, individual_fairness

FEWEST = 50  # rows of a mean: variances are as skewed as squares, though bounded


def _variances(data: Labelled) -> dict[str, Floats]:
    """Return the variances of the target that predictions claim, of a label over all classes.

    `aleatoric` and `epistemic` are those of methods with members. `predictive` is their sum, and
    2 p (1 - p), over several classes the sum of p (1 - p), or the square of the standard deviation
    of every other method: a single model's variance is known, but not how much of it is which.

    Of several classes, the same three of the entropy in nats follow, where predictions have it.
    """
    columns = data.predictions
    given = {name: data.column(name) for name in ("aleatoric", "epistemic") if name in columns}
    if len(given) == 2:
        given["predictive"] = given["aleatoric"] + given["epistemic"]
    elif data.task is Task.BINARY and "score" in columns:
        score = data.column("score")
        given["predictive"] = 2 * score * (1 - score)
    elif data.task is Task.MULTICLASS and "score_0" in columns:
        scores = [data.column(f"score_{k}") for k in range(len(data.classes))]
        if len(scores) == 2:  # the same number as for a label
            scores = [np.zeros(len(data)), *scores[1:], scores[1]]
        given["predictive"] = np.asarray(sum(p * (1 - p) for p in scores))
    elif data.task is Task.REGRESSION and "sd" in columns:
        sd = data.column("sd")
        given["predictive"] = np.where(sd > 0, sd, NAN) ** 2
    entropies = [name for name in ENTROPIES if name in columns]
    if entropies:
        given |= {name: data.column(name) for name in entropies}
        given["entropy_predictive"] = given["entropy_aleatoric"] + given["entropy_epistemic"]
    return given


ENTROPIES = ("entropy_aleatoric", "entropy_epistemic")


def evaluate_uncertainties(
    table: MetricTable, data: Labelled, ratio_band: float, negligible_sd: float
) -> None:
    """Add everyone's means, each group's, and their differences and ratios to the reference.

    `ratio_band` and `negligible_sd` are the Evaluator's.
    """
    given = _variances(data)
    if not given:
        return
    measures = [f"{name}_uncertainty" for name in given]
    values = np.stack(list(given.values()))
    # Measures that are not finite everywhere in a split are undefined there.
    reasons = Statuses.stacked(
        [data.statuses(~np.isfinite(column), name) for name, column in given.items()]
    )[..., 0]
    # The variance (S,) below which a group's mean variance is no denominator.
    if data.task is Task.REGRESSION:
        spread = np.array([data.target[rows].std() for rows in data.slices])
        floor = (negligible_sd * spread) ** 2
    else:
        floor = np.full(data.splits, 2 * negligible_sd**2)

    def add_groups(groups: Groups) -> None:
        """Add the measures of one attribute, and how its groups compare with the reference."""
        means = GroupMeans.of(values.T, groups.codes, groups.cells).shaped(groups.splits)
        level = table.level
        # Means (V, S, G), and their differences from the reference's and ratios to it; and the
        # probabilities that ratios are further from 1 than is fair.
        if table.frequentist:
            estimates = _skewed_means(values, groups, level, ratio_band)
        else:
            of_papers = [rates.Limits(means.mean, *means.interval(level))]
            of_papers += [rates.Limits(*means.difference(level)), rates.Limits(*means.ratio(level))]
            of_papers += [rates.Limits(*[means.ratio_outside(ratio_band)] * 3)]
            estimates = [one.apply(lambda array: np.moveaxis(array, -1, 0)) for one in of_papers]

        def add(form: str, limits: rates.Limits, reasons: Statuses, **options: Any) -> None:
            """Add the means of the measures (no form), or what compares them."""
            size, names = np.broadcast_to(groups.size, limits.value.shape), groups.names
            status, n = reasons[..., None].copy(size.shape), size
            nobody = status.is_ok & (size == 0)
            status.flag_few(size, table.minimum, names)
            status.flag(nobody, "undefined", lambda *at: f"no rows{tables.in_group(names[at[-1]])}")
            if form:  # what compares groups has nothing to add about the reference, the first
                status, n = status.of_pairs(size), np.minimum(size[..., :1], size[..., 1:])
                limits, names = limits.take(slice(1, None)), names[1:]
            value = np.where(status.has_value, limits.value, NAN)
            if table.frequentist:
                few = status.is_ok & (n < FEWEST)
                why = f"an interval needs {FEWEST}"
                status.flag(few, "insufficient", lambda *at: f"n={n[at]}, {why}")
            one = "the standard error of a mean needs 2 rows"
            without_value = np.isnan(value) & status.has_value
            status.flag(
                without_value, "undefined", lambda *at: one if n[at] == 1 else status.reason[at]
            )
            table.add(
                *([f"{measure}{form}" for measure in measures], value, n),
                groups.attribute,
                names,
                status=status,
                **{"interval": [np.where(n > 1, end, NAN) for end in limits[1:]], **options},
            )

        shown, differences, ratios, outside = estimates
        add("", shown, reasons)
        if len(groups) == 1:
            return
        add("_difference", differences, reasons)
        # What the paper calls F, and the probability that it is further from 1 than is fair.
        reference = shown.value[..., 0]
        ratio_reasons = reasons.copy(reference.shape)

        def near_zero(i: int, s: int) -> str:
            mean = f"{measures[i]} of group '{groups.names[0]}' is {reference[i, s]:.2g}"
            return f"{mean}, too near 0 to divide by"

        lowest = means.interval(level)[0][..., 0, :].T
        small = (lowest < floor) | (reference == 0)
        ratio_reasons.flag(small & ratio_reasons.is_ok, "undefined", near_zero)
        add("_ratio", ratios, ratio_reasons)
        # Where the ratio has no interval, nothing is known of how sure it is either.
        about = {"statistic": tables.OUTSIDE_BAND, "setting": Setting(band=ratio_band)}
        add("_ratio", outside, ratio_reasons, **about, interval=(NAN, NAN))

    for groups in (data.everyone, *data.coded.values()):
        add_groups(groups)


def _skewed_means(values: Floats, groups: Groups, level: float, band: float) -> list[rates.Limits]:
    """Return means of measures (V, n), with intervals that skewed measures leave whole.

    `GroupMeans` takes the logarithms of means to be normal: the intervals of 50 rows cover 85 to
    94 % where measures are as skewed as lognormal ones.

    Returns
    -------
    (V, S, G) each: the means, each less the reference's, and over the reference's; and the
    probability that this ratio is further than `band` from 1.
    """
    columns = np.nan_to_num(values, posinf=0, neginf=0)
    moments = Moments.of_groups(columns, groups.codes, groups.cells)
    limits = around(moments.mean, loss_limits(moments, level=level, least=0.0, rows=FEWEST))
    means = limits.apply(groups.shaped)
    reference = means.take(slice(0, 1))
    value, *ends = rates.ratio_limits(means, reference)
    no_ends = np.isnan(means.lower) | np.isnan(reference.lower)
    below_band, below_end = (
        rates.probability_ratio_below(means, reference, ratio, level=level)
        for ratio in (1 - band, 1 + band)
    )
    return [
        means,
        rates.difference_limits(means, reference),
        rates.Limits(value, *(np.where(no_ends, NAN, end) for end in ends)),
        rates.Limits(*[np.asarray(below_band + 1 - below_end)] * 3),
    ]


REPLICATE = "replicate="  # how the labels of variants begin that differ in their draws alone
_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def evaluate_consistency(
    table: MetricTable, uncertainty: Mapping[str, NDArray[np.float64]]
) -> None:
    """Add the spread of per-individual uncertainty over the variants of one fold.

    Per individual the population sd of the uncertainty across variants; reported are its maximum
    (FairlyUncertain, Tables 1 and 2), its mean and its quantiles. Replicates, which differ in
    their draws alone, get the same rows under ``noise_...``.

    Parameters
    ----------
    uncertainty : variant -> (n,) uncertainties of the same individuals.
    """
    for prefix, uncertainties in (
        ("consistency", [u for v, u in uncertainty.items() if not v.startswith(REPLICATE)]),
        ("noise", [u for v, u in uncertainty.items() if v.startswith(REPLICATE)]),
    ):
        if len(uncertainties) < 2:
            continue
        values = np.stack(uncertainties)
        n = values.shape[1]
        setting = Setting(variants=len(values))
        bad = np.asarray(~np.isfinite(values).all(axis=0))
        status = AllGroups.of(n, {}).statuses(bad, "uncertainty")
        if bad.any():
            values = np.full_like(values, NAN)
        sd = values.std(axis=0)
        whole = sd.max(), sd.mean(), np.ptp(values, axis=0).mean()
        names = ["max_sd", "mean_sd", "mean_range", *("sd" for _ in _QUANTILES)]
        table.add(
            [f"{prefix}_{name}" for name in names],
            np.reshape([*whole, *np.quantile(sd, _QUANTILES)], (-1, 1, 1)),
            n,
            setting=[*(setting,) * len(whole), *(setting._replace(quantile=q) for q in _QUANTILES)],
            status=status,
        )


OUTCOMES = ("TN", "FP", "FN", "TP")
_Parts: TypeAlias = tuple[Groups, Sequence[str]]  # groups, and the outcomes of each


def evaluate_individual(table: MetricTable, data: Labelled, k: int, attribute: str) -> None:
    """Add the mean individual fairness among 1, 2 ... `k` neighbours, also by group and outcome.

    It is computed for the score (or, without one, the label) and for each variance among the
    predictions; all lie in [0, 1]. Neighbours are evaluated rows, too: there are no rows for more
    of them than a split has others, and a single one says that it has none. Intervals treat rows as
    independent.
    """
    if not k or data.encoded is None or data.task is not Task.BINARY:
        return
    most = np.maximum(data.sizes - 1, 1)
    k = min(k, int(most.max()))
    score = "score" if "score" in data.predictions else "prediction"
    values = {"prediction": data.column(score), **_variances(data)}
    # Everyone, the groups, and each group's true negatives, false positives ...
    parts: list[_Parts] = [(data.everyone, ("",))]
    if attribute in data.groups:
        groups = data.coded[attribute]
        cell = (2 * data.target + data.column("prediction")).astype(np.intp)
        codes = len(OUTCOMES) * groups.codes + cell
        names = tuple(name for name in groups.names for _ in OUTCOMES)
        of_outcomes = Groups(attribute, names, codes, groups.splits)
        parts += [(groups, ("",)), (of_outcomes, OUTCOMES)]
    of_splits = [(rows, individual_fairness(data.encoded[rows], k)) for rows in data.slices]
    for name, column in values.items():
        fairness = np.concatenate([of_split(column[rows]) for rows, of_split in of_splits])
        for part in parts:
            _add_fairness(table, f"individual_fairness_{name}", fairness.T, part, most)


def _add_fairness(
    table: MetricTable, metric: str, fairness: Floats, parts: _Parts, most: NDArray[np.int64]
) -> None:
    """Add the mean fairness of each group's rows of each outcome, from that of rows (k, n).

    Each split has rows for as many neighbours as `most` (S, 1) says.
    """
    groups, outcomes = parts
    moments = Moments.of_groups(fairness, groups.codes, groups.cells)
    if table.frequentist:
        limits = loss_limits(moments, level=table.level, least=0.0, most=1.0)
    else:
        half = rates.quantile(table.level) * moments.sd / np.sqrt(np.maximum(moments.size, 1))
        limits = rates.Limits(moments.mean, moments.mean - half, moments.mean + half)
    names = groups.names[:: len(outcomes)]
    settings = [
        Setting(outcome=outcome or None, k=k)
        for outcome in outcomes
        for k in range(1, len(fairness) + 1)
    ]

    def by_outcome(values: NDArray[Any]) -> NDArray[Any]:
        """Return values (k, S G O) of cells as (O k, S, G)."""
        cells = np.broadcast_to(values, moments.mean.shape)
        shaped = cells.reshape(-1, groups.splits, len(names), len(outcomes))
        return np.moveaxis(shaped, -1, 0).reshape(len(settings), groups.splits, len(names))

    value, lower, upper, n = map(by_outcome, (moments.mean, *limits[1:], groups.size.ravel()))
    status = Statuses.ok(value.shape)
    if table.frequentist:
        status.flag(n < ROWS, "insufficient", lambda *at: f"n={n[at]}, an interval needs {ROWS}")

    def empty(m: int, _: int, g: int) -> str:
        outcome = settings[m].outcome
        return f"no {outcome or 'rows'}{tables.in_group(names[g])}"

    status.flag(
        np.isnan(value), "undefined", lambda m, *_: f"nobody has {settings[m].k} neighbours"
    )
    status.flag(n == 0, "undefined", empty)
    about, is_row = (n, groups.attribute, names), np.array([[[at.k]] for at in settings]) <= most
    told: dict[str, Any] = {"setting": settings, "interval": (lower, upper), "status": status}
    table.add([metric] * len(settings), value, *about, is_row=is_row, **told)
