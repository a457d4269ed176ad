"""The audit of predicted numbers: who is predicted too little, and whose errors are larger."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import cache, partial

import numpy as np
import pandas as pd

from fairbench.audits.labels import check_labels_at_random
from fairbench.audits.question import Options
from fairbench.audits.report import OF_POPULATION, Audit, counted_by
from fairbench.audits.table import design_of_options
from fairbench.core.errors import UserError
from fairbench.core.text import count, number
from fairbench.data.columns import ColumnRef, is_given, marks_of, numbers_of
from fairbench.data.dataset import Task
from fairbench.data.groups import codes_of, cross_columns, notes_on_groups, read_groups
from fairbench.evaluation.by_group import GroupScores, group_means, score_distributions
from fairbench.evaluation.findings import (
    GAP,
    LEVEL,
    NOT_MEASURED,
    OPEN,
    ErrorBudget,
    Finding,
    Measure,
)
from fairbench.evaluation.intervals import GapInterval
from fairbench.evaluation.predictions import Labelled
from fairbench.evaluation.regression import evaluate_regression
from fairbench.evaluation.table import MetricTable, records, values_of
from fairbench.inference.gaps import gap_of_noise
from fairbench.inference.rates import Limits
from fairbench.metrics.registry import label
from fairbench.reporting.charts import Panel, chart
from fairbench.reporting.document.model import Column, Figure, Section, Table, TableCell
from fairbench.reporting.group_tables import (
    MOST_LINES,
    MOST_ROWS,
    OF_GROUP,
    all_metrics,
    density_panel,
    group_line,
    score_table,
    table_of,
)

_MINIMUM = 10  # rows of a group
_BINS = 10
COVERAGE = "coverage"
# What groups are compared in: all but coverage in the target's units.
COMPARED = ("mean_prediction", "mean_residual", "mae", COVERAGE)


def read_numbers(options: Options, frame: pd.DataFrame) -> tuple[Labelled, list[str]]:
    """Return the predictions that `options` describe, of rows whose target is known, with notes.

    Raises
    ------
    UserError : a value that is no number, ends of intervals that are the wrong way round, or
        targets that are surely not those of rows chosen at random within groups.
    """
    file = options.path.name
    percent = f"{100 * options.nominal:g}"
    known = is_given(frame[options.target])
    if options.labelled:
        known &= marks_of(frame[options.labelled], ColumnRef(file, options.labelled))
    if not known.any():
        raise UserError(f"{file}: no row has a value of '{options.target}'")
    rows = frame[known]
    target = numbers_of(rows, ColumnRef(file, options.target))
    prediction = numbers_of(frame, ColumnRef(file, options.prediction))
    columns = {"prediction": prediction[known]}
    if options.bounds:
        lower, upper = (numbers_of(rows, ColumnRef(file, name)) for name in options.bounds)
        first, second = options.bounds
        ColumnRef(file, first).refuse(rows[first], lower > upper, f"at most '{second}' of its row")
        columns |= {f"lower_{percent}": lower, f"upper_{percent}": upper}
    rows = rows.reset_index(drop=True)
    groups = read_groups(rows, file, options.group, options.reference)[0]
    if not options.weight:  # weights can correct for how rows were chosen
        check_labels_at_random(
            file,
            known,
            cross_columns(frame, options.group).astype("category"),
            advice=(
                "If rows were drawn by their prediction, weight those with a value of "
                f"'{options.target}' with weight=COLUMN"
            ),
            values={f"'{options.prediction}'": prediction},
            clusters=frame[options.cluster] if options.cluster else None,
        )
    design = design_of_options(rows, options)
    data = Labelled(target, pd.DataFrame(columns), groups, Task.REGRESSION, design=design)
    return data, notes_on_groups(rows, options.group)


def evaluate_numbers(data: Labelled, options: Options, level: float = LEVEL) -> pd.DataFrame:
    """Return all metrics, in the columns that `fairbench.evaluate` returns."""
    table = MetricTable(level, minimum=_MINIMUM)
    evaluate_regression(table, data, ([options.nominal] if options.bounds else []))
    return table.frame()


def unit_of(data: Labelled) -> float:
    """Return the standard deviation of the target, of which epsilon is a share."""
    return float(np.std(data.target)) or 1.0


def gap_findings(data: Labelled, options: Options) -> list[Finding]:
    """Return the findings on the gaps, which share the error rate."""
    metrics = [name for name in COMPARED if name != COVERAGE or options.bounds]
    risk = ErrorBudget(len(metrics) * len(data.groups)).risk

    @cache
    def at_level(level: float) -> pd.DataFrame:
        values = values_of(evaluate_numbers(data, options, level))
        return values.set_index(["attribute", "group", "metric"])

    def interval(key: tuple[str, str, str], level: float) -> GapInterval:
        return GapInterval(*at_level(level).loc[key, ["lower", "upper"]])

    def of_groups(attribute: str, metric: str) -> pd.DataFrame:
        """Return the metric of each group, the highest first, with its limits."""
        groups = at_level(LEVEL).loc[attribute].xs(metric, level="metric")
        groups = groups[["value", "lower", "upper"]].astype(float).drop("", errors="ignore")
        return groups.dropna(subset="value").sort_values("value", ascending=False)

    findings = []
    for attribute, metric in itertools.product(data.groups, metrics):
        key = (attribute, "", f"{metric}_gap")
        is_share = metric == COVERAGE
        gap = at_level(LEVEL).loc[key]
        bound = options.epsilon * (1 if is_share else unit_of(data))
        about = {"bound": bound, "is_share": is_share, "n": len(data), "needs": gap["reason"]}
        groups = of_groups(attribute, metric)
        measure = Measure(
            Finding(GAP, attribute, label(metric), NOT_MEASURED, **about),
            groups.index.tolist(),
            None if np.isnan(gap["value"]) else partial(interval, key),
            groups["value"].tolist(),
            tuple(gap[["value", "lower", "upper"]].astype(float)),
            may_be_small=gap["status"] == "ok",
            noise=gap_of_noise(Limits(*groups.to_numpy().T)),
        )
        findings += measure.answered(risk).conclude(needs=gap["reason"])
    return findings


def audit_numbers(options: Options, frame: pd.DataFrame) -> Audit:
    """Audit predictions of numbers."""
    data, notes = read_numbers(options, frame)
    metrics = evaluate_numbers(data, options)
    findings = gap_findings(data, options)
    singles = {name: data.groups[name] for name in options.group}
    prediction = data.column("prediction")
    distributions = {
        what: score_distributions(values, singles, data.design)
        for what, values in (("residual", data.target - prediction), ("prediction", prediction))
    }
    needs = dict.fromkeys(finding.needs for finding in findings if finding.verdict != NOT_MEASURED)
    notes += [f"Some gaps are {need}." for need in needs if need.startswith("without")]
    errors = ["mae", COVERAGE] if options.bounds else ["mae"]
    is_open = any(finding.verdict == OPEN for finding in findings)
    return Audit(
        options,
        len(data),
        len(data),
        findings,
        list(_basis(options, data, len(frame) - len(data))),
        [
            Section("Gaps between groups", [_gaps(findings)]),
            Section("Errors by group", [_errors(metrics, name, options) for name in errors]),
            *(
                Section(f"{what.capitalize()}s by group", [score_table(scores, what)])
                for what, scores in distributions.items()
            ),
            Section("", [all_metrics(metrics)]),
        ],
        {
            **{f"{what}s": list(map(asdict, scores)) for what, scores in distributions.items()},
            "metrics": records(metrics),
        },
        notes=notes,
        audited=[_difference_that_matters(options, data)],
        rates=(
            "mean prediction, mean residual (the mean of what the prediction lacks to the true "
            "number: above 0, too little is predicted), MAE (the mean of the residuals' sizes)"
        ),
        pictures=[
            Section("Residuals by group", [_figure(name, data, distributions)]) for name in singles
        ],
        unseen=["Whether the true numbers are right was not looked at. Nor was why groups differ."],
        todo=["Read what stays open, and collect more rows for what matters most."]
        if is_open
        else [],
    )


def _basis(options: Options, data: Labelled, unknown: int) -> Iterator[str]:
    """Yield what the figures rest on: the rows, and which difference matters."""
    yield f"{count(len(data))} rows with a value of '{options.target}', read as numbers."
    if unknown:
        yield (
            f"{count(unknown)} rows without one are left out; this assumes that which rows have "
            "one is a matter of chance."
        )
    yield _difference_that_matters(options, data)
    yield from counted_by(options)
    yield OF_POPULATION


def _difference_that_matters(options: Options, data: Labelled) -> str:
    """Return up to which difference groups are taken as alike, in the target's units."""
    return (
        f"A difference under {number(options.epsilon * unit_of(data))} makes no practical "
        f"difference: epsilon={options.epsilon:g} of the standard deviation of '{options.target}'."
    )


def _gaps(findings: Sequence[Finding]) -> Table:
    """Return the table of gaps in each mean."""
    return table_of(
        findings,
        [
            ("attribute", Column("groups")),
            ("measure", Column("gap in")),
            ("value", Column("size", "number")),
            ("interval", Column("95 % interval", "interval")),
            ("bound", Column("matters from", "number", left_out=1)),
            (lambda gap: TableCell(gap.verdict, mark=gap.verdict), Column("verdict")),
        ],
        caption=(
            "size: the largest difference between two groups; residual: by how much a target "
            "exceeds its prediction, so that above 0 too little is predicted; MAE: the mean of the "
            "residuals' sizes"
        ),
    )


def _errors(metrics: pd.DataFrame, metric: str, options: Options) -> Table:
    """Return a mean error of every group and its difference from the reference's."""
    group_values = values_of(metrics).query("group != ''")
    error, less = (
        group_values.query("metric == @name") for name in (metric, f"{metric}_difference")
    )
    rows = error.merge(less, "left", ["attribute", "group"], suffixes=("", "_less"))
    promised = f": its intervals promise {options.nominal:g}" if metric == COVERAGE else ""
    return table_of(
        rows.to_dict("records"),
        [
            *OF_GROUP,
            ("n", Column("rows", "count", left_out=2)),
            ("value", Column(label(metric), "number")),
            (("lower", "upper"), Column("95 % interval", "interval")),
            (("lower_less", "upper_less"), Column("less reference's", "interval")),
        ],
        title=f"{label(metric)}{promised}",
        most=MOST_ROWS,
    )


def _figure(
    attribute: str, data: Labelled, distributions: Mapping[str, Sequence[GroupScores]]
) -> Figure:
    """Draw mean residuals in bins of predictions, a tenth of all rows each, and distributions."""
    data = data.with_weight()
    prediction = data.column("prediction")
    codes, names = codes_of(data.groups[attribute])
    bin_limits = np.unique(np.quantile(prediction, np.arange(1, _BINS) / _BINS))
    bins = np.searchsorted(bin_limits, prediction, side="left")
    cells = pd.Series(pd.Categorical(codes * _BINS + bins))
    across, up = (
        group_means(values, cells, data.design)[0]
        for values in (prediction, data.target - prediction)
    )
    group = cells.cat.categories.to_numpy() // _BINS
    lines = [
        group_line(name, index, across.value[group == index], up.take(group == index), marked=True)
        for index, name in enumerate(names[:MOST_LINES])
    ]
    panels = [Panel(lines, "prediction", "mean residual", from_zero="")]
    for what, scores in distributions.items():
        panels.append(
            density_panel(
                [of_group for of_group in scores if of_group.attribute == attribute], what
            )
        )
    first, *more = chart(panels, key=lines)
    return Figure(
        f"residuals by {attribute}",
        svg=first,
        more=more,
        caption=f"{attribute}: the mean residual among those of similar predictions, with "
        "95 % intervals (shaded; 0 is right on average), and how residuals and predictions are "
        "distributed",
    )
