"""The audit of predicted numbers: who is predicted too little, and whose errors are larger."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.audits.columns import Place, codes_of, each_value, marks_of
from fairbench.audits.conclusions import Conclusions
from fairbench.audits.gaps import CERTAIN, LARGE, OPEN, SMALL, UNKNOWN
from fairbench.audits.question import Options
from fairbench.audits.score_distributions import GroupScores, score_distributions
from fairbench.audits.table import design_of_options, notes_on_groups, read_groups
from fairbench.core.errors import UserError
from fairbench.core.formats import count, interval, number
from fairbench.data.dataset import Task
from fairbench.data.tabular import numbers, spelled, to_numbers
from fairbench.evaluation.predictions import Labelled
from fairbench.evaluation.regression import evaluate_regression
from fairbench.evaluation.table import MetricTable
from fairbench.inference.means import Moments, around, loss_limits
from fairbench.inference.rates import Limits
from fairbench.inference.survey import Design, Sampled
from fairbench.metrics.registry import label

Floats = NDArray[np.float64]
_FEWEST_VALUES = 20  # of a target of numbers, which is not one of classes
_MINIMUM = 10  # rows of a group
_BINS = 10
COVERAGE = "coverage"
# What groups are compared in, and whether it is in the target's units.
COMPARED: Mapping[str, bool] = {
    "mean_prediction": True,
    "mean_residual": True,
    "mae": True,
    COVERAGE: False,
}


def is_regression(options: Options, frame: pd.DataFrame) -> bool:
    """Say whether a table is of numbers rather than of labels or classes.

    It is where targets and predictions are numbers, of which there are many, and not all of them
    are whole numbers that a target has, as the codes of classes are.
    """
    if not (options.target and options.prediction) or options.scores:
        return False
    target, prediction = frame[options.target], frame[options.prediction]
    if target.nunique() <= _FEWEST_VALUES:
        return False
    values, predicted = to_numbers(target), to_numbers(prediction)
    known = _known(target)
    if not np.isfinite(values[known]).all() or not np.isfinite(predicted).all():
        return False
    whole = (predicted == np.round(predicted)).all()
    return not (whole and np.isin(predicted, values).all())


def _known(text: pd.Series) -> NDArray[np.bool_]:
    codes, values = each_value(text, spelled)
    known: NDArray[np.bool_] = np.array([value != "" for value in values])[codes]
    return known


@dataclass(frozen=True, eq=False)
class RegressionTable:
    """Predictions of numbers with groups, of the rows whose target is known.

    Attributes
    ----------
    target, prediction : (n,). bounds : both ends of prediction intervals, (n,) each, or None.
    groups : attribute, or combination of two -> (n,) categorical labels, the reference first.
    design : weights of the rows and which of them belong together, where either is known.
    unknown : how many rows had no target.
    """

    target: Floats
    prediction: Floats
    bounds: tuple[Floats, Floats] | None
    groups: Mapping[str, pd.Series]
    design: Design | None
    unknown: int
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class RegressionGap:
    """The largest difference of two groups of an attribute in a metric.

    Attributes
    ----------
    value, lower, upper : with its interval. bound : under which it makes no practical difference.
    verdict : all of an audit together are wrong in at most one audit of twenty.
    reason : why there is no verdict, or which groups were left out.
    """

    attribute: str
    metric: str
    value: float
    lower: float
    upper: float
    bound: float
    verdict: str
    reason: str = ""


@dataclass(frozen=True, eq=False)
class ResidualCurve:
    """Mean residuals (G, B) of an attribute's groups among those of similar predictions.

    Attributes
    ----------
    prediction : (G, B) mean predictions. residuals : with intervals, NaN of too few rows.
    """

    attribute: str
    groups: Sequence[str]
    prediction: Floats
    residuals: Limits


@dataclass(frozen=True, eq=False)
class RegressionAssessment:
    """The result of an audit of numbers.

    Attributes
    ----------
    metrics : in the columns that `fairbench.evaluate` returns.
    unit : the standard deviation of the target, of which epsilon is a share.
    predictions, residuals : how those of each group are distributed.
    """

    options: Options
    table: RegressionTable
    metrics: pd.DataFrame
    unit: float
    gaps: Sequence[RegressionGap]
    curves: Sequence[ResidualCurve]
    predictions: Sequence[GroupScores]
    residuals: Sequence[GroupScores]


def read_regression_table(options: Options, frame: pd.DataFrame) -> RegressionTable:
    """Return the table that `options` describe.

    Raises
    ------
    UserError : a value that is no number, ends of intervals that are the wrong way round, or an
        option that is of labels alone.
    """
    for name in ("against", "selected", "proxy", "cost", "favourable", "positive", "constraint"):
        if getattr(options, name):
            raise UserError(f"{name}= is of labels, and '{options.target}' holds numbers")
    places = {name: Place(options.path.name, name) for name in options.columns}
    known = _known(frame[options.target])
    if options.labelled:
        known &= marks_of(frame[options.labelled], places[options.labelled])
    if not known.any():
        raise UserError(f"{options.path.name}: no row has a value of '{options.target}'")
    rows = frame[known].reset_index(drop=True)
    file = options.path.name
    target, prediction = (
        numbers(rows, name, file).to_numpy() for name in (options.target, options.prediction)
    )
    bounds = None
    if options.bounds:
        lower, upper = (numbers(rows, name, file).to_numpy() for name in options.bounds)
        crossed, place = lower > upper, places[options.bounds[0]]
        place.refuse(rows[place.column], crossed, f"at most '{options.bounds[1]}' of its row")
        bounds = (lower, upper)
    groups = read_groups(rows, places, options)[0]
    design = design_of_options(rows, places, options)
    notes = notes_on_groups(rows, options)
    return RegressionTable(target, prediction, bounds, groups, design, int((~known).sum()), notes)


def assess_regression(table: RegressionTable, options: Options) -> RegressionAssessment:
    """Assess predictions of numbers."""
    unit = float(np.std(table.target)) or 1.0
    singles = {name: table.groups[name] for name in options.group}
    residual = table.target - table.prediction
    return RegressionAssessment(
        options,
        table,
        _metrics(table, options, 0.95),
        unit,
        _gaps(table, options, unit),
        [_curve(table, name, each) for name, each in singles.items()],
        score_distributions(table.prediction, singles, table.design),
        score_distributions(residual, singles, table.design),
    )


def _metrics(table: RegressionTable, options: Options, level: float) -> pd.DataFrame:
    columns, levels = {"prediction": table.prediction}, []
    if table.bounds is not None:
        percent, levels = f"{100 * options.nominal:g}", [options.nominal]
        columns |= {f"lower_{percent}": table.bounds[0], f"upper_{percent}": table.bounds[1]}
    data = Labelled(
        table.target, pd.DataFrame(columns), table.groups, Task.REGRESSION, design=table.design
    )
    rows = MetricTable(level, minimum=_MINIMUM)
    evaluate_regression(rows, data, levels)
    return rows.frame()


def _gaps(table: RegressionTable, options: Options, unit: float) -> list[RegressionGap]:
    """Return the gaps with verdicts, which share the risk of being wrong."""
    compared = [name for name in COMPARED if name != COVERAGE or table.bounds is not None]
    risk = (1 - CERTAIN) / (len(compared) * len(table.groups))
    shown, at_most, at_least = (
        _by_gap(_metrics(table, options, level)) for level in (0.95, 1 - 2 * risk, 1 - risk)
    )
    gaps = []
    for attribute in table.groups:
        for metric in compared:
            bound = options.epsilon * (unit if COMPARED[metric] else 1)
            row, key = shown[attribute, metric], (attribute, metric)
            verdict = OPEN
            if np.isnan(row.lower):
                verdict = UNKNOWN
            elif at_most[key].upper < bound and row.status == "ok":
                verdict = SMALL
            elif at_least[key].lower > bound:
                verdict = LARGE
            gaps.append(
                RegressionGap(
                    attribute, metric, row.value, row.lower, row.upper, bound, verdict, row.reason
                )
            )
    return gaps


@dataclass(frozen=True)
class _GapRow:
    value: float
    lower: float
    upper: float
    status: str
    reason: str


def _by_gap(metrics: pd.DataFrame) -> dict[tuple[str, str], _GapRow]:
    names = {f"{name}_gap": name for name in COMPARED}
    return {
        (str(row.attribute), names[str(row.metric)]): _GapRow(
            float(row.value), float(row.lower), float(row.upper), str(row.status), str(row.reason)
        )
        for row in metrics[metrics["metric"].isin(names)].itertuples()
    }


def _curve(table: RegressionTable, attribute: str, groups: pd.Series) -> ResidualCurve:
    """Return mean residuals in bins of predictions, a tenth of all rows each."""
    codes, names = codes_of(groups)
    ends = np.unique(np.quantile(table.prediction, np.arange(1, _BINS) / _BINS))
    cells = codes * _BINS + np.searchsorted(ends, table.prediction, side="left")
    values = np.stack([table.target - table.prediction, table.prediction])
    size = len(names) * _BINS
    if table.design is None:
        moments = Moments.of_groups(values, cells, size)
        mean = moments.mean
    else:
        kept = np.flatnonzero(table.design.weight > 0)
        sample = Sampled.of(table.design.take(kept), cells[kept], size)
        mean, totals = sample.linearised(values[:, kept])
        moments = Moments.of_sampled(mean, totals, sample)
    limits = around(mean, loss_limits(moments))
    shaped = [each.reshape(2, len(names), _BINS) for each in limits]
    return ResidualCurve(attribute, names, shaped[0][1], Limits(*(each[0] for each in shaped)))


def conclude_regression(assessment: RegressionAssessment) -> Conclusions:
    """Return what follows, and what does not, in sentences."""
    options, table = assessment.options, assessment.table
    basis = [
        f"{count(len(table.target))} rows with a value of '{options.target}', which is read as "
        "numbers.",
        f"A difference under {number(options.epsilon * assessment.unit)} makes no practical "
        f"difference: epsilon={options.epsilon:g} of the standard deviation of '{options.target}'.",
        "Intervals say how far off the population may be that these rows are a sample of.",
    ]
    if table.unknown:
        basis.insert(
            1,
            f"{count(table.unknown)} rows without one are left out; this assumes that which rows "
            "have one is a matter of chance.",
        )
    if options.weight:
        basis.append(f"Rows count by '{options.weight}'.")
    if options.cluster:
        basis.append(f"Rows with the same '{options.cluster}' belong together.")
    can = [_sentence(gap) for gap in assessment.gaps if gap.verdict in (SMALL, LARGE)]
    cannot = [_sentence(gap) for gap in assessment.gaps if gap.verdict not in (SMALL, LARGE)]
    return Conclusions("", basis, can, cannot, list(_notes(assessment)))


def _sentence(gap: RegressionGap) -> str:
    name = label(gap.metric)
    if gap.verdict == UNKNOWN:
        return f"{gap.attribute}: groups cannot be compared in {name} ({gap.reason})."
    size = f"largest difference {number(gap.value)}, {interval(gap.lower, gap.upper)}"
    told = {
        SMALL: f"no two groups differ by {number(gap.bound)} or more in {name}",
        LARGE: f"groups differ by more than {number(gap.bound)} in {name}",
        OPEN: f"open whether groups differ by {number(gap.bound)} or more in {name}",
    }
    return f"{gap.attribute}: {told[gap.verdict]} ({size})."


def _notes(assessment: RegressionAssessment) -> Iterator[str]:
    yield from assessment.table.notes
    left = dict.fromkeys(gap.reason for gap in assessment.gaps if gap.reason.startswith("without"))
    yield from (f"Some gaps are {reason}." for reason in left)
    yield (
        f"{len(assessment.gaps)} gaps were examined. Verdicts are given so rarely that in at most "
        "one audit of twenty any of them is wrong."
    )
