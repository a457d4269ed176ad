"""What an audit of two classes measures and finds: calibration, adverse impact, gaps.

Begin with :func:`assess`, which computes all of it from a table of predictions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress, groupby

import numpy as np
import pandas as pd

from fairbench.audits import question
from fairbench.audits.direction import NEEDS_NO_LABELS, RATE_OF
from fairbench.audits.gaps import Gap, gaps_of, standardised_gaps
from fairbench.audits.labels_needed import with_needed
from fairbench.audits.question import CONSTRAINED, GatedOptions, Options
from fairbench.audits.table import AuditTable
from fairbench.core.arrays import Codes, Floats, Mask, Rows, rng
from fairbench.core.errors import UserError
from fairbench.core.text import is_missing_name
from fairbench.data.columns import tally
from fairbench.data.dataset import Task
from fairbench.data.groups import codes_of
from fairbench.evaluation import by_group, findings
from fairbench.evaluation.by_group import Row
from fairbench.evaluation.evaluator import Evaluator
from fairbench.evaluation.findings import Finding, risk_of
from fairbench.evaluation.groups import GroupCounts
from fairbench.evaluation.predictions import Labelled
from fairbench.evaluation.some_labels import SomeLabels
from fairbench.evaluation.stratified import evaluate_within
from fairbench.evaluation.table import MetricTable
from fairbench.inference import few_labels
from fairbench.inference.gaps import FOUR_FIFTHS, GroupLimits, largest_gap, smallest_ratio
from fairbench.inference.posterior import DIRICHLET
from fairbench.inference.rates import Limits
from fairbench.inference.survey import SurveyCounts
from fairbench.metrics import registry
from fairbench.metrics.group import counts_at
from fairbench.reporting.group_tables import sentence_of


def calibrations(table: AuditTable, asked: Sequence[str] = (), *, seed: int = 0) -> Iterator[Row]:
    """Yield the calibration of every group of every attribute.

    Nothing without scores or labels, or of rows that are weighted or in clusters.

    Parameters
    ----------
    asked : the attributes whose groups' labels are compared with those of other groups.
    """
    known = table.known
    if table.score is None or not len(known) or table.design:
        return
    measure = by_group.group_calibrations if table.sampling is None else table.sampling.calibrations
    score = table.score[known]
    label = table.label[known].astype(np.int64)
    for attribute, groups in table.groups.items():
        of_groups = measure(attribute, groups, table.score, table.label)
        if attribute in asked:
            codes = groups.cat.codes.to_numpy(np.int64)[known]
            n_groups = len(groups.cat.categories)
            fits = few_labels.calibration_p_values(
                score, label, codes, n_groups, rng(seed, "calibrated alike", attribute)
            )
            of_groups = map(lambda row, fit: {**row, "fit": float(fit)}, of_groups, fits)
        yield from of_groups


# Adverse impact in an audit: the ratios of its groups, and what is found of them.


def impact_ratios(table: AuditTable, *, level: float = 0.95) -> list[Row]:
    """Return the impact ratios of every group of every attribute; decisions need no labels.

    Of a table of the selected they are of everyone, of whom these were selected.
    """
    table = table.whole
    return [
        ratio
        for name, groups in table.groups.items()
        for ratio in by_group.impact_ratios_of(
            name,
            groups,
            table.favoured,
            reference=table.references.get(name, ""),
            design=table.design,
            times=table.times,
            level=level,
        )
    ]


def small_groups(ratios: Sequence[Row]) -> Iterator[Row]:
    """Yield the impact ratios of the groups that are too small to be compared with.

    Parameters
    ----------
    ratios : those of all groups, attribute by attribute.
    """
    for _, of_attribute in groupby(ratios, lambda ratio: ratio["attribute"]):
        groups = list(of_attribute)
        is_large = by_group.may_be_compared_with(np.array([ratio["rows"] for ratio in groups]))
        yield from compress(groups, ~is_large)


def impact_findings(
    ratios: Sequence[Row],
    wider: Sequence[Row],
    granted: str,
    with_small_groups: Collection[str] = (),
) -> Iterator[Finding]:
    """Yield whether each group is granted something at least four fifths as often as another.

    Parameters
    ----------
    ratios : the impact ratios with 95 % intervals.
    wider : the ratios of the same groups with intervals at the level of verdicts.
    granted : what somebody is who is counted, such as ``approved``.
    with_small_groups : the attributes of which only groups that are large enough are compared with.
    """
    for ratio, judged in zip(ratios, wider, strict=True):
        if by_group.is_given_reference(ratio):
            continue
        verdict = findings.side_of(judged["lower"], judged["upper"], FOUR_FIFTHS, low_is_bad=True)
        if verdict == findings.OPEN and np.isnan(ratio["ratio"]):
            verdict = findings.NOT_MEASURED
        of_large = ratio["attribute"] in with_small_groups and not ratio["given"]
        yield Finding(
            findings.RATIO,
            ratio["attribute"],
            "impact ratio",
            verdict,
            (ratio["group"], ratio["reference"]) if ratio["given"] else (ratio["group"],),
            value=ratio["ratio"],
            lower=ratio["lower"],
            upper=ratio["upper"],
            bound=FOUR_FIFTHS,
            n=ratio["rows"],
            scope=f"of the groups {by_group.LARGE_ENOUGH}" if of_large else "",
            decided=granted,
            needs=f"nobody was {granted}" if verdict == findings.NOT_MEASURED else "",
        )


def _with_supposed(gaps: Sequence[Gap], supposed: Sequence[GroupCounts]) -> list[Gap]:
    """Return gaps with their values under equal calibration of all groups.

    Parameters
    ----------
    supposed : the counts of each attribute, as if all groups' scores were calibrated equally.
    """
    drawn = {of_groups.attribute: of_groups.intervals.draws for of_groups in supposed}
    return [
        replace(gap, supposed=gap.interval(gap.rate(drawn[gap.attribute][:, gap.compared])))
        if len(gap.compared) > 1
        else gap
        for gap in gaps
    ]


# What other thresholds would decide: who is selected, who errs, and where a constraint holds.

_STEPS = 9  # thresholds that select 90, 80 ... 10 % of everyone
_FINE = 100  # thresholds of a curve, which are the candidates for a constraint, too
_SURVEYED = 20  # thresholds for weighted or clustered rows, which take longer to count
CURVES = (registry.selection_rate, registry.false_positive_rate, registry.false_negative_rate)
_UNKNOWN: tuple[float, float, float] = (findings.NAN, findings.NAN, findings.NAN)


def _rates_at(
    table: AuditTable, rows: Mask, codes: Codes, thresholds: Floats
) -> Callable[..., GroupLimits]:
    """Return the function of a rate, and a level, that says it of groups at thresholds, (K, G).

    Parameters
    ----------
    rows : (n,) which rows of the table are counted; their labels are, if all rows have one.
    codes : (m,) the groups of these, each of which has rows.
    thresholds : (K,) above which a score is a decision for label 1. Where low scores are good, the
        selection rate is that of the others.
    """
    assert table.score is not None
    score, counts = table.score[rows], None
    label = table.label[rows] if len(table.known) == len(table) else None
    if table.design is None:
        counts = counts_at(thresholds, label, score, codes)

    def limits_of(rate: registry.Rate, level: float = 0.95) -> GroupLimits:
        flipped = table.direction.good == 0 and rate is registry.selection_rate
        if counts is not None:
            exchanged = [registry.FP, registry.TN, registry.TP, registry.FN]
            of_rate = counts[..., exchanged] if flipped else counts
            return GroupLimits.of(rate.successes(of_rate), rate.size(of_rate), level)
        assert table.design is not None
        design, twice = table.design.take(rows), 0.0 if label is None else 2 * label
        surveys = []
        for threshold in thresholds:
            cell = (twice + ((score > threshold) != flipped)).astype(np.intp)
            surveys.append(SurveyCounts.of(cell, codes, design, groups=codes.max() + 1))

        def limits(level: float) -> Limits:
            of_surveys = (survey.limits(rate, level=level) for survey in surveys)
            return Limits(*map(np.stack, zip(*of_surveys, strict=True)))

        shared = np.stack([survey.correlation(rate) for survey in surveys])
        return GroupLimits.at(limits, level, shared)

    return limits_of


# The curves of each attribute, a table of a few thresholds, and the one that a constraint asks for.
_Thresholds = tuple[Sequence[Row], pd.DataFrame, Row | None]


def _other_thresholds(
    table: AuditTable, options: Options, risk: float, *, only_findings: bool = False
) -> _Thresholds:
    """Return what other thresholds would decide; nothing without scores.

    Parameters
    ----------
    risk : the error rate of the statement that a constraint holds, or does not hold.
    only_findings : whether a constraint alone is asked for.

    Returns
    -------
    curves : of each attribute, its ``groups``, (K,) ``thresholds``, ascending, and the ``rates``:
        name -> (K, G) values, with the interval of each by itself.
    table : a row for each attribute and threshold, with the columns ``selected``, the share of
        everyone; ``ratio``, the smallest selection rate of a group over the largest; ``gap``, the
        largest difference of two selection rates; both with ``_lower`` and ``_upper``; and
        ``current``, whether decisions are made by this threshold today.
    constrained : the threshold that a constraint asks for, see :func:`_constrained_threshold`; None
        without one.

    Raises
    ------
    UserError : a constraint that needs what the table does not have.
    """
    if table.score is None or (only_findings and not options.constraint):
        return [], pd.DataFrame(), None
    n_fine = _FINE if table.design is None else _SURVEYED
    fine = np.unique(np.quantile(table.score, np.linspace(0, 1, n_fine + 1), method="nearest"))
    deciles = np.arange(1, _STEPS + 1) / 10
    steps = np.unique(np.quantile(table.score, deciles, method="nearest"))
    current = np.array([] if options.prediction else [options.threshold])
    steps = np.union1d(steps, current)
    thresholds = np.union1d(fine, steps)
    groups = {name: table.groups[name] for name in options.group}
    curves: list[Row] = []
    tables = [pd.DataFrame()]
    for attribute, labels in groups.items():
        codes, names = codes_of(labels)
        limits_of = _rates_at(table, np.ones(len(codes), bool), codes, thresholds)
        shown = CURVES if len(table.known) == len(table) else CURVES[:1]
        rates = {rate.name: limits_of(rate) for rate in shown}
        about = {"attribute": attribute, "groups": names, "thresholds": thresholds}
        curves.append({**about, "rates": {name: of.pointwise for name, of in rates.items()}})
        if len(names) > 1:
            selected = rates[registry.selection_rate.name]
            size = np.bincount(codes, None if table.design is None else table.design.weight)
            large = by_group.may_be_compared_with(np.bincount(codes))
            columns = {
                "attribute": attribute,
                "threshold": thresholds,
                "selected": selected.pointwise.value @ (size / size.sum()),
                **_columns("ratio", _stated_ratio(selected, names, large)),
                **_columns("gap", largest_gap(selected.take(large))),
                "current": np.isin(thresholds, current),
            }
            tables.append(pd.DataFrame(columns)[np.isin(thresholds, steps)])
    constrained = None
    if options.constraint:
        constrained = _constrained_threshold(table, groups, fine, options, risk)
    return curves, pd.concat(tables, ignore_index=True), constrained


def _columns(name: str, limits: Limits) -> dict[str, Floats]:
    """Return an estimate and both its limits as columns."""
    return {name: limits.value, f"{name}_lower": limits.lower, f"{name}_upper": limits.upper}


def _constrained_threshold(
    table: AuditTable, groups: Mapping[str, pd.Series], fine: Floats, options: Options, risk: float
) -> Row:
    """Choose the threshold nearest to today's on half of the rows, and judge it on the others.

    Returns
    -------
    constraint and bound : what is asked for.
    rows : how many rows the threshold is chosen on, and how many others it is judged on.
    threshold : the one nearest to today's that meets the constraint among the groups of every
        attribute, on the rows it is chosen on; NaN if none does.
    changed : the share of the other rows whose decision differs from today's.
    accuracy, accuracy_before : the accuracy on the other rows at this threshold and at today's,
        with intervals; NaN without labels.
    judged : for each attribute, its value chosen by, and that on the other rows with its 95 %
        interval: value, lower and upper; before, the value there at today's threshold; and holds:
        whether the other rows settle that the constraint holds, at the error rate `risk`, or that
        it does not, otherwise None.
    """
    name, bound = options.bound()
    is_ratio, rate, today = name == question.RATIO, CONSTRAINED[name], options.threshold
    for attribute, labels in groups.items() if is_ratio else ():
        stated = [group for group in codes_of(labels)[1] if not is_missing_name(group)]
        if len(stated) < 2:
            raise UserError(f"constraint={options.constraint}: {attribute} has one group alone")
    score, has_labels = np.asarray(table.score), len(table.known) == len(table)
    if rate is not registry.selection_rate and not has_labels:
        raise UserError(f"constraint={options.constraint} needs a label in every row")
    unit, units = np.arange(len(score)), len(score)
    if table.design is not None:  # rows of one cluster stay together
        unit, units = table.design.unit, table.design.units
    half = (rng(options.seed, "constraint").permutation(units) < units / 2)[unit]
    others = score[~half]

    def measured(
        rows: Mask, labels: pd.Series, thresholds: Floats, level: float = findings.LEVEL
    ) -> Limits:
        """Return the ratio or gap of some rows' groups at thresholds (K,), with its limits."""
        codes, names = codes_of(labels[rows])
        limits = _rates_at(table, rows, codes, thresholds)(rate, level)
        counted = np.ones(len(names), bool)
        if rows is half:  # groups of few rows say too little to choose by
            counted = by_group.may_be_compared_with(np.bincount(codes))
        if is_ratio:
            return _stated_ratio(limits, names, counted)
        return largest_gap(limits.take(counted))

    candidates = np.union1d(fine, [today])
    values = {
        attribute: measured(half, labels, candidates).value for attribute, labels in groups.items()
    }
    # NaN meets no constraint.
    each = (of >= bound if is_ratio else of <= bound for of in values.values())
    meets = np.all([*each], axis=0)
    nearest = int(np.where(meets, np.abs(candidates - today), np.inf).argmin())
    threshold = float(candidates[nearest]) if meets.any() else findings.NAN
    changed, accuracies, judged = findings.NAN, (_UNKNOWN, _UNKNOWN), []
    if meets.any():
        thresholds = np.array([threshold, today])
        changed = float(((others > threshold) != (others > today)).mean())
        for attribute, labels in groups.items():
            limits, wider = (
                measured(~half, labels, thresholds, level) for level in (findings.LEVEL, 1 - risk)
            )
            side = findings.side_of(*wider.at(0)[1:], bound, low_is_bad=is_ratio)
            holds = {findings.SMALL: True, findings.LARGE: False}.get(side)
            if holds and len(codes_of(labels[~half])[1]) < len(labels.cat.categories):
                holds = None  # people of a group of whom these rows have none may differ
            chosen, before = float(values[attribute][nearest]), float(limits.value[1])
            value = dict(zip(("value", "lower", "upper"), limits.at(0), strict=True))
            about = {"attribute": attribute, "chosen": chosen, **value}
            judged.append({**about, "before": before, "holds": holds})
        if has_labels:
            everyone = np.zeros(len(others), np.intp)
            limits = _rates_at(table, ~half, everyone, thresholds)(registry.accuracy).pointwise
            accuracies = limits.take(0).at(0), limits.take(0).at(1)
    return {
        "constraint": name,
        "bound": bound,
        "rows": (int(half.sum()), int((~half).sum())),
        "threshold": threshold,
        "changed": changed,
        **dict(zip(("accuracy", "accuracy_before"), accuracies, strict=True)),
        "judged": judged,
    }


def _stated_ratio(limits: GroupLimits, names: Sequence[str], counted: Mask) -> Limits:
    """Return the smallest ratio of rates (K, G) of two groups, neither that of rows without one.

    Parameters
    ----------
    counted : (G,) the groups that are large enough; NaN where fewer than two of them are left.
    """
    stated = counted & np.array([not is_missing_name(name) for name in names])
    if stated.sum() < 2:
        return Limits(*np.full((3, len(limits.pointwise.value)), findings.NAN))
    return smallest_ratio(limits.take(stated))


# Everything an audit computes from a table of predictions.


@dataclass(frozen=True, eq=False)
class Assessment:
    """The result of an audit: everything computed from predictions and the labels there are.

    Attributes
    ----------
    risk : the error rate of one verdict on a gap or a constraint.
    sizes : how many ``rows`` and ``labels`` each ``group`` of an ``attribute`` has.
    metrics : all metrics, in the columns that `fairbench.evaluate` returns; from labels alone, if
        there are any.
    assumed : the metrics of counts if all groups' scores are calibrated equally; None where labels
        are complete or too many for that to say more, or there are no scores.
    impact : how often each group is selected, and the ratio to the group it is compared with.
    thresholds : what other thresholds would decide, see :func:`_other_thresholds`.
    scores : how the scores of each group are distributed.
    within : the gaps over one mix of strata, if within= is given.
    """

    options: Options
    table: AuditTable
    risk: float
    sizes: Sequence[Row]
    metrics: pd.DataFrame
    assumed: pd.DataFrame | None
    gaps: Sequence[Gap]
    calibrations: Sequence[Row]
    impact: Sequence[Row]
    thresholds: _Thresholds
    scores: Sequence[Row]
    within: Sequence[Gap] = ()

    @property
    def labels(self) -> int:
        """The number of rows with a label."""
        return self.table.labels_known


def assess(table: AuditTable, options: Options, *, only_findings: bool = False) -> Assessment:
    """Assess a table of predictions.

    Parameters
    ----------
    table, options : the predictions, and what is asked about them.
    only_findings : whether to skip all that findings do not need, which takes nearly all of the
        time: metrics, gaps under equal calibration, how many labels are needed, and how many wrong
        labels would undo a verdict. Findings then lack the last two.

    Raises
    ------
    UserError : if the column of labels has none, and there are no scores; or if not every row has
        a label, which intervals of a posterior need.
    """
    if table.of_decisions and options.target:
        raise UserError(sentence_of("options", "no_labels", file=options.path.name))
    table.check_design()
    is_posterior = options.interval == DIRICHLET
    if is_posterior and not (table.complete or table.of_decisions):
        raise UserError(sentence_of("options", "posterior", labels=table.labels_known))
    evaluator = Evaluator(epsilon=options.epsilon, interval=options.interval)
    rows = table.as_chosen
    seed = options.seed
    metrics, counts, decided = _evaluate(table, rows, evaluator, seed, counts_alone=only_findings)
    gap_metrics = [NEEDS_NO_LABELS] if table.of_decisions else list(RATE_OF)
    fixed = table.fixed
    metrics_within = [
        name
        for name in (() if table.strata is None else gap_metrics)
        if name not in fixed and (len(table.known) or name == NEEDS_NO_LABELS)
    ]
    questions = len(counts) * len(gap_metrics) + len(options.group) * len(metrics_within)
    if table.everyone is not None:  # whose gaps are asked about, too
        questions += len(table.groups) * len(RATE_OF)
    if options.constraint:
        questions += len(options.group)
    # An audit that also asks how rows are to be labelled, or whether conditions hold, leaves a part
    # of the error rate to that question.
    has_question = table.sampling is not None or isinstance(options, GatedOptions)
    rate = findings.ERROR_RATE - findings.QUESTION_RATE * has_question
    risk, minimum = risk_of(questions, rate), evaluator.minimum_group_size
    gaps = gaps_of(
        counts,
        options.epsilon,
        risk,
        minimum=minimum,
        decided=decided,
        assumed=table.of_scores,
        metrics=gap_metrics,
        names=table.direction.rate_names,
    )
    gaps = [
        Gap(replace(gap.asked, n=0, needs=why, given=""), metric=gap.metric, fixed=why)
        if (why := fixed.get(gap.metric, ""))
        else gap
        for gap in gaps
    ]
    metrics_if_alike = completed = None
    scores: Sequence[Row] = []
    if not only_findings:
        # What would change verdicts, and how many labels would settle what is open.
        if 0 < table.labels_known < len(table):
            completed = rows.completion(seed)
        if completed is not None:
            metrics_if_alike, if_alike = rows.evaluate(evaluator, seed, completed)
            gaps = _with_supposed(gaps, if_alike)
        by_name = {of_groups.attribute: of_groups for of_groups in counts}
        gaps = [gap.tipped(by_name[gap.attribute], risk) for gap in gaps]
        if not (table.of_decisions or table.design or table.sampling or is_posterior):
            gaps = with_needed(gaps, rows, counts, risk, seed)
        if metrics_within:
            within = _within_metrics(table, options, evaluator)
            metrics = pd.concat([metrics, within], ignore_index=True)
        if table.score is not None:
            groups = {name: table.groups[name] for name in options.group}
            scores = by_group.score_distributions(table.score, groups, table.design)
    compared_attributes = () if only_findings else options.group
    return Assessment(
        options=options,
        table=table,
        risk=risk,
        sizes=_sizes(table),
        metrics=metrics,
        assumed=metrics_if_alike,
        gaps=gaps,
        calibrations=list(calibrations(table, compared_attributes, seed=seed)),
        impact=impact_ratios(table),
        thresholds=_other_thresholds(table, options, risk, only_findings=only_findings),
        scores=scores,
        within=standardised_gaps(table, options, metrics_within, minimum=minimum, risk=risk),
    )


def _evaluate(
    table: AuditTable, rows: SomeLabels, evaluator: Evaluator, seed: int, *, counts_alone: bool
) -> tuple[pd.DataFrame, list[GroupCounts], list[GroupCounts]]:
    """Return the metrics of rows, and the counts of each attribute's groups, and of decisions.

    Labels are completed from the scores where there are none at all. What needs no label is counted
    then as if all decisions were right.
    """
    completed = rows.completion(seed) if table.of_scores else None
    if not table.of_decisions:
        metrics, counts = rows.evaluate(evaluator, seed, completed, counts_alone=counts_alone)
        if not table.of_scores:
            return metrics, counts, counts
    as_if_right = replace(rows, label=rows.prediction.astype(float))
    counted, decided = as_if_right.evaluate(evaluator, seed, counts_alone=counts_alone)
    if table.of_decisions:
        return _joined(counted, counted[:0]), decided, decided
    return _joined(counted, metrics), counts, decided


def _joined(of_decisions: pd.DataFrame, of_labels: pd.DataFrame) -> pd.DataFrame:
    """Return the metrics that need no label from one table, and the others from another."""
    metrics = registry.metrics_of(registry.BINARY, "rate", "difference", "ratio", "widest").values()
    names = [one.name for one in metrics if all(rate.needs_no_label for rate in one.rates)]
    decided, labelled = (part["metric"].isin(names) for part in (of_decisions, of_labels))
    return pd.concat([of_decisions[decided], of_labels[~labelled]], ignore_index=True)


def _within_metrics(table: AuditTable, options: Options, evaluator: Evaluator) -> pd.DataFrame:
    """Return the metrics within strata of single attributes, as :func:`fairbench.evaluate` does.

    A metric that needs labels counts only rows that have one; decisions are known of all rows.
    """

    def of_rows(rows: Rows) -> pd.DataFrame:
        """Return the metrics of some rows, by position."""
        assert table.strata is not None
        metrics = MetricTable(evaluator.level, minimum=evaluator.minimum_group_size)
        data = Labelled(
            np.nan_to_num(table.label[rows]),
            pd.DataFrame({"prediction": table.prediction[rows].astype(float)}),
            {name: table.groups[name].iloc[rows] for name in options.group},
            Task.BINARY,
        )
        generators = [rng(options.seed, "strata")]
        evaluate_within(metrics, evaluator, data, table.strata.iloc[rows], generators)
        return metrics.frame()

    everyone = of_rows(np.arange(len(table)))
    if len(table.known) == len(table):
        return everyone
    return _joined(everyone, of_rows(table.known) if len(table.known) else everyone[:0])


def _sizes(table: AuditTable) -> list[Row]:
    """Return how many rows and labels each group has."""
    sizes: list[Row] = []
    for attribute, groups in table.groups.items():
        codes = groups.cat.codes.to_numpy(np.intp)
        names = groups.cat.categories
        times_known = None if table.times is None else table.times[table.known]
        n_rows = tally(codes, table.times, least=len(names)).tolist()
        n_labels = tally(codes[table.known], times_known, least=len(names)).tolist()
        sizes += [
            {"attribute": attribute, "group": str(name), "rows": rows, "labels": labels}
            for name, rows, labels in zip(names, n_rows, n_labels, strict=True)
        ]
    return sizes
