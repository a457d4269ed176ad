"""The audit of predicted numbers: who is predicted too little, and whose errors are larger."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.audits.columns import Place, codes_of, each_value, marks_of
from fairbench.audits.findings import (
    GAP,
    LARGE,
    NOT_MEASURED,
    OPEN,
    SMALL,
    ErrorBudget,
    Finding,
)
from fairbench.audits.pages.decisions import density_panel, group_line, score_table
from fairbench.audits.pages.parts import MOST_LINES, MOST_ROWS, all_metrics, estimates, starts
from fairbench.audits.question import Options
from fairbench.audits.report import Audit
from fairbench.audits.score_distributions import GroupScores, score_distributions
from fairbench.audits.table import design_of_options, notes_on_groups, read_groups
from fairbench.core.errors import UserError
from fairbench.core.formats import count, number
from fairbench.data.dataset import Task
from fairbench.data.tabular import numbers, spelled, to_numbers
from fairbench.evaluation.columns import records
from fairbench.evaluation.predictions import Labelled
from fairbench.evaluation.regression import evaluate_regression
from fairbench.evaluation.table import MetricTable
from fairbench.inference.means import Moments, around, loss_limits
from fairbench.inference.rates import Limits
from fairbench.inference.survey import Design, Sampled
from fairbench.metrics.registry import label
from fairbench.reporting.charts import Panel, chart
from fairbench.reporting.document.model import Column, Figure, Section, Table, TableCell

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
    findings: Sequence[Finding]
    curves: Sequence[ResidualCurve]
    predictions: Sequence[GroupScores]
    residuals: Sequence[GroupScores]


def read_regression_table(options: Options, frame: pd.DataFrame) -> RegressionTable:
    """Return the table that `options` describe.

    Raises
    ------
    UserError : a value that is no number, or ends of intervals that are the wrong way round.
    """
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
        gap_findings(table, options, unit),
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


def gap_findings(table: RegressionTable, options: Options, unit: float) -> list[Finding]:
    """Return what is said of the gaps, which share the error rate.

    Parameters
    ----------
    unit : the standard deviation of the target, of which epsilon is a share.
    """
    compared = [name for name in COMPARED if name != COVERAGE or table.bounds is not None]
    risk = ErrorBudget(len(compared) * len(table.groups)).risk
    shown, at_most, at_least = (
        _by_gap(_metrics(table, options, level)) for level in (0.95, 1 - 2 * risk, 1 - risk)
    )
    findings = []
    for key in itertools.product(table.groups, compared):
        attribute, metric = key
        bound = options.epsilon * (unit if COMPARED[metric] else 1)
        row = shown[key]
        verdict = OPEN
        if np.isnan(row.lower):
            verdict = NOT_MEASURED
        elif at_most[key].upper < bound and row.status == "ok":
            verdict = SMALL
        elif at_least[key].lower > bound:
            verdict = LARGE
        findings.append(
            Finding(
                GAP,
                attribute,
                label(metric),
                verdict,
                value=row.value,
                lower=row.lower,
                upper=row.upper,
                bound=bound,
                is_share=not COMPARED[metric],
                n=len(table.target),
                needs=row.reason,
            )
        )
    return findings


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


def audit_numbers(options: Options, frame: pd.DataFrame) -> Audit:
    """Audit predictions of numbers."""
    assessment = assess_regression(read_regression_table(options, frame), options)
    return audit_of(assessment)


def audit_of(assessment: RegressionAssessment) -> Audit:
    """Return the audit that an assessment is of."""
    rows = len(assessment.table.target)
    return Audit(
        assessment.options,
        rows,
        rows,
        assessment.findings,
        list(_basis(assessment)),
        list(_sections(assessment)),
        _data(assessment),
        notes=list(_notes(assessment)),
        pictures=[
            Section("Residuals by group", [_figure(curve, assessment)])
            for curve in assessment.curves
        ],
        unseen=["Whether the true numbers are right was not looked at. Nor was why groups differ."],
        todo=_todo(assessment),
    )


def _basis(assessment: RegressionAssessment) -> Iterator[str]:
    options, table = assessment.options, assessment.table
    yield f"{count(len(table.target))} rows with a value of '{options.target}', read as numbers."
    if table.unknown:
        yield (
            f"{count(table.unknown)} rows without one are left out; this assumes that which rows "
            "have one is a matter of chance."
        )
    yield (
        f"A difference under {number(options.epsilon * assessment.unit)} makes no practical "
        f"difference: epsilon={options.epsilon:g} of the standard deviation of '{options.target}'."
    )
    yield "Intervals say how far off the population may be that these rows are a sample of."
    if options.weight:
        yield f"Rows count by '{options.weight}'."
    if options.cluster:
        yield f"Rows with the same '{options.cluster}' belong together."


def _notes(assessment: RegressionAssessment) -> Iterator[str]:
    yield from assessment.table.notes
    reasons = (each.needs for each in assessment.findings if each.verdict != NOT_MEASURED)
    for reason in dict.fromkeys(reason for reason in reasons if reason.startswith("without")):
        yield f"Some gaps are {reason}."


def _todo(assessment: RegressionAssessment) -> list[str]:
    if any(finding.verdict == OPEN for finding in assessment.findings):
        return ["Read what stays open, and collect more rows for what matters most."]
    return []


def _sections(assessment: RegressionAssessment) -> Iterator[Section]:
    yield Section("Gaps between groups", [_gaps(assessment)])
    yield Section("Errors by group", list(_errors(assessment)))
    yield Section("Residuals by group", [score_table(assessment.residuals, "residual")])
    yield Section("Predictions by group", [score_table(assessment.predictions, "prediction")])
    yield Section("", [all_metrics(assessment.metrics)])


def _gaps(assessment: RegressionAssessment) -> Table:
    columns = [
        Column("groups"),
        Column("gap in"),
        Column("size", "number"),
        Column("95 % interval", "interval"),
        Column("matters from", "number", left_out=1),
        Column("verdict"),
    ]
    rows = [
        [
            gap.attribute,
            gap.measure,
            gap.value,
            (gap.lower, gap.upper),
            gap.bound,
            TableCell(gap.verdict, mark=gap.verdict),
        ]
        for gap in assessment.findings
    ]
    return Table(
        columns,
        rows,
        caption=(
            "size: the largest difference between two groups; residual: by how much a target "
            "exceeds its prediction, so that above 0 too little is predicted; MAE: the mean of the "
            "residuals' sizes"
        ),
        rules=starts([gap.attribute for gap in assessment.findings]),
    )


def _errors(assessment: RegressionAssessment) -> Iterator[Table]:
    """Yield the errors of every group and their differences from the reference's."""
    shown = ["mae", *[COVERAGE] * (assessment.table.bounds is not None)]
    names = [f"{metric}{ending}" for metric in shown for ending in ("", "_difference")]
    values = estimates(assessment.metrics, names)
    for metric in shown:
        rows = []
        for attribute, groups in assessment.table.groups.items():
            sizes = groups.value_counts()
            for group in groups.cat.categories:
                value, *ends = values[attribute, str(group), metric]
                other = values.get((attribute, str(group), f"{metric}_difference"))
                more = None if other is None else other[1:]
                rows.append([attribute, str(group), int(sizes[group]), value, tuple(ends), more])
        promised = f": its intervals promise {assessment.options.nominal:g}"
        yield Table(
            [
                Column("of", left_out=1),
                Column("group"),
                Column("rows", "count", left_out=2),
                Column(label(metric), "number"),
                Column("95 % interval", "interval"),
                Column("less reference's", "interval"),
            ],
            rows,
            title=f"{label(metric)}{promised * (metric == COVERAGE)}",
            rules=starts([str(row[0]) for row in rows]),
            most=MOST_ROWS,
        )


def _figure(curve: ResidualCurve, assessment: RegressionAssessment) -> Figure:
    lines = [
        group_line(
            name,
            g,
            curve.prediction[g],
            Limits(*(end[g] for end in curve.residuals)),
            marked=True,
        )
        for g, name in enumerate(curve.groups[:MOST_LINES])
    ]
    panels = [Panel(lines, "prediction", "mean residual", from_zero="")]
    for what, scores in (
        ("residual", assessment.residuals),
        ("prediction", assessment.predictions),
    ):
        panels.append(density_panel(_of(scores, curve.attribute), what))
    first, *more = chart(panels, key=lines)
    return Figure(
        f"residuals by {curve.attribute}",
        svg=first,
        more=more,
        caption=f"{curve.attribute}: the mean residual among those of similar predictions, with "
        "95 % intervals (shaded; 0 is right on average), and how residuals and predictions are "
        "distributed",
    )


def _of(scores: Sequence[GroupScores], attribute: str) -> list[GroupScores]:
    return [each for each in scores if each.attribute == attribute]


def _data(assessment: RegressionAssessment) -> Mapping[str, Any]:
    return {
        "predictions": [asdict(each) for each in assessment.predictions],
        "residuals": [asdict(each) for each in assessment.residuals],
        "metrics": records(assessment.metrics),
    }
