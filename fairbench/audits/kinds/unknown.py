"""The audits of two classes where labels or groups are known in part, or groups are many and small.

Where the selected alone have labels, or nobody's group is recorded, the rows give bounds of every
rate; statements about a gap hold for all rates between these bounds. So many groups that each has
few rows are estimated together, and not compared pair by pair.
"""

from __future__ import annotations

import functools
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import compress
from math import floor
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.audits import question
from fairbench.audits.assessment import assess
from fairbench.audits.direction import NEEDS_NO_LABELS, RATE_OF, Direction
from fairbench.audits.gaps import TOO_FEW
from fairbench.audits.kinds.binary import audit_of
from fairbench.audits.question import Options
from fairbench.audits.report import Audit, counted_rows, on_labels
from fairbench.audits.table import AuditTable, read_audit_table
from fairbench.core.arrays import Floats, rng
from fairbench.core.text import count, csv_text
from fairbench.data.columns import ColumnRef, read_group_shares
from fairbench.data.groups import MOST_GROUPS, codes_of, groups_of
from fairbench.evaluation import findings, many_groups
from fairbench.evaluation.by_group import Row
from fairbench.evaluation.findings import Finding, Measure, risk_of
from fairbench.evaluation.groups import GapInterval
from fairbench.inference import partial
from fairbench.inference.gaps import GroupLimits, gap_of_noise, surest_gap
from fairbench.inference.partial import ProxyRows, RateBounds, SelectedLabels
from fairbench.inference.pooled import adjusted_p_values, differs_from_rest, pool_rates
from fairbench.inference.rates import Limits, rate_limits
from fairbench.metrics import registry
from fairbench.reporting.document import model as doc
from fairbench.reporting.group_tables import bars, named_table, sentence_of, sentences_of

CANNOT = "cannot be known"  # however many rows and labels there are
RATES: tuple[registry.Rate, ...] = (*RATE_OF.values(), registry.base_rate)
TITLE = "What cannot be known"
_said = functools.partial(sentence_of, "unknown")
EVERYONE = "of everyone, whatever the labels are that cannot be known"
WHOEVER = "whoever belongs to which group"
PROXY = "proxy"  # what groups known through probabilities are an attribute of
_LARGEST_FACTOR = 1e4  # by which odds of labels that are missing may differ
_STEPS = 2**20  # of factors up to it, equal in their logarithms
_NO_BOUNDS: Row = {"lower": np.nan, "upper": np.nan, "interval": (np.nan, np.nan)}


def _bounded_gap(
    template: Finding, names: Sequence[str], ends: RateBounds, risk: float
) -> tuple[Finding, Row]:
    """Return the finding on the gap between groups, and its figures in plain columns.

    The verdict of the columns may be `CANNOT`; the finding is then open.

    Parameters
    ----------
    template : the finding of a gap that is not measured, with the reason.
    names, ends : the names and the bounds of the groups. With one about whose rate nothing is known
        no gap is small.
    risk : the error rate of the answer.
    """
    compared = ends.bounded_groups
    few = [name for group, name in enumerate(names) if group not in compared]
    names, ends = [names[group] for group in compared], ends.take(compared)
    are_compared = len(names) > 1
    bounds = ends.gap() if are_compared else _NO_BOUNDS
    measure = Measure(
        template,
        names,
        (lambda level: GapInterval(*ends.gap_size(level))) if are_compared else None,
        estimate=(np.nan, *bounds["interval"]),
        few=few,
        may_be_small=not few,
    )
    finding = measure.answered(risk).conclude()[0]
    verdict = finding.verdict
    if verdict == findings.OPEN and not few:
        least, most = partial.size_bounds(bounds["lower"], bounds["upper"])
        needs = "more rows may settle it"
        if least <= template.bound <= most:
            verdict = CANNOT
            needs = _said("any_possible", ends=(least, most))
        finding = replace(finding, needs=needs)
    row = {"attribute": template.attribute, "measure": template.measure, **bounds}
    return finding, {**row, "verdict": verdict}


def _answered(
    table: AuditTable,
    options: Options,
    scope: str,
    bounded: Callable[[Finding, registry.Rate], tuple[Finding, Row]],
    attribute: str = "",
) -> tuple[list[Finding], list[Row]]:
    """Return the findings on all gaps, and the figures of those that are not the same by design.

    Parameters
    ----------
    bounded : a function of the finding that a gap is not measured, and why, and of the rate, that
        returns what is found of it, and its figures.
    """
    fixed = table.fixed
    asked = Finding(findings.GAP, attribute, bound=options.epsilon, scope=scope)
    found: list[Finding] = []
    gaps: list[Row] = []
    for metric, name in table.direction.rate_names.items():
        finding = replace(asked, measure=name, needs=fixed.get(metric, TOO_FEW))
        if metric not in fixed:
            finding, row = bounded(finding, RATE_OF[metric])
            gaps.append(row)
        found.append(finding)
    return found, gaps


def _verdict(verdict: str) -> doc.TableCell:
    """Return the cell of a verdict."""
    return doc.TableCell(verdict, mark=findings.OPEN if verdict == CANNOT else verdict)


def audit_selected(table: AuditTable, options: Options) -> Audit:
    """Audit those who were selected, and say what follows for everyone."""
    assessment = assess(table.of_selected(), options)
    found, gaps, rates = bound_everyone(table, options, assessment.risk)
    audit = audit_of(assessment)
    first, *others = audit.sections
    words: dict[str, Any] = {"chosen": table.chosen, "odds": options.odds}
    people = {"people": len(table), "rows": audit.rows}
    said = functools.partial(_said, **words, **people, options=options)
    on_selected = said("on_selected", title=TITLE)
    shown_gaps = [
        {
            **gap,
            "verdict": _verdict(gap["verdict"]),
            "assumed_verdict": _verdict(gap["assumed_verdict"]),
            "holds": _holds(gap["alike"], gap["factor"]),
        }
        for gap in gaps
    ]
    shown_rates = [{**row, "rate": table.direction.rate_name(row["rate"])} for row in rates]
    blocks: list[doc.Block] = [
        doc.Paragraph(said("not_selected", others=len(table) - audit.rows)),
        named_table("unknown", "gaps", shown_gaps, **words),
        doc.Details(
            "Rates of everyone, by group",
            [named_table("unknown", "rates", shown_rates, **words)],
        ),
    ]
    cannot = any(gap["verdict"] == CANNOT for gap in gaps)
    labelled = "all" if audit.labels == audit.rows else count(audit.labels)
    data = {"rows": len(table), "selected": audit.rows, "gaps": gaps, "rates": rates}
    return replace(
        audit,
        findings=[*audit.findings, *found],
        basis=[on_selected, *audit.basis],
        sections=[first, doc.Section(TITLE, blocks), *others],
        unseen=[on_selected, *audit.unseen],
        todo=[*audit.todo, *([said("label_others")] if cannot else [])],
        data={**audit.data, "of_everyone": data},
        counted=said("counted", labelled=labelled),
    )


def bound_everyone(
    table: AuditTable, options: Options, risk: float
) -> tuple[list[Finding], list[Row], list[Row]]:
    """Bound the rates and gaps of everyone, selected or not.

    Parameters
    ----------
    risk : the error rate of the statement about a gap.

    Returns
    -------
    findings : the findings, on no assumption.
    gaps : a row for each gap.
    rates : a row for each rate and group.
    """
    selected = np.ones(len(table), bool) if table.selected is None else table.selected
    found: list[Finding] = []
    gaps: list[Row] = []
    rates: list[Row] = []
    for attribute, groups in table.groups.items():
        names = list(map(str, groups.cat.categories))
        codes = groups.cat.codes.to_numpy(np.int64)
        labels = SelectedLabels.of(
            table.label, table.prediction, codes, len(names), selected=selected, score=table.score
        )
        bounded = functools.partial(_gap, names=names, labels=labels, options=options, risk=risk)
        answered = _answered(table, options, EVERYONE, bounded, attribute)
        found += answered[0]
        gaps += answered[1]
        size = np.bincount(codes, minlength=len(names))
        people = {"rows": size, "others": labels.others.sum(axis=(1, 2)).astype(int)}
        for rate in RATES:
            about = {"attribute": attribute, "group": names, "rate": rate.name, **people}
            ends = labels.bounds(rate, odds=options.odds).columns()
            assumed = {f"assumed_{end}": values for end, values in ends.items()}
            bounds = pd.DataFrame({**about, **labels.bounds(rate).columns(), **assumed})
            rates += bounds.to_dict("records")
    return found, gaps, rates


def _gap(
    template: Finding,
    rate: registry.Rate,
    names: Sequence[str],
    labels: SelectedLabels,
    options: Options,
    risk: float,
) -> tuple[Finding, Row]:
    """Return the finding on a gap among everyone, and its figures in plain columns.

    ``alike`` is the verdict if missing labels are like those of similar selected people, and
    ``factor`` how far their odds may differ for it to hold; None if there is no such verdict, or it
    holds whatever they are.
    """
    compared = labels.bounds(rate).bounded_groups

    def at_odds(odds: float) -> tuple[Finding, Row]:
        return _bounded_gap(template, names, labels.bounds(rate, odds=odds), risk)

    def verdict(odds: float) -> str:
        return str(at_odds(odds)[1]["verdict"])

    finding, row = at_odds(partial.NOTHING)
    _, assumed = at_odds(options.odds)
    alike = verdict(1.0)
    factor = None
    if alike in (findings.SMALL, findings.LARGE) and row["verdict"] != alike:
        size = float(np.log(_LARGEST_FACTOR)) / _STEPS
        steps = range(_STEPS)
        fails = bisect_left(steps, True, key=lambda step: verdict(np.exp(step * size)) != alike)
        factor = float(np.exp((fails - 1) * size))
    return finding, {
        **row,
        "groups": [names[group] for group in compared],
        "assumed": assumed["interval"],
        "assumed_verdict": assumed["verdict"],
        "alike": alike,
        "factor": factor,
    }


def _holds(verdict: str, factor: float | None) -> str:
    """Return a verdict on missing labels like others, and up to which factor it holds."""
    if verdict not in (findings.SMALL, findings.LARGE):
        return ""
    if factor is None:
        return f"{verdict}: any"
    # Never rounded up, as it would not hold there.
    return f"{verdict}: {floor(10 * factor) / 10 if factor < 10 else floor(factor):g}"


def _audit_proxy(options: Options, frame: pd.DataFrame) -> Audit:
    """Audit groups that are known through probabilities alone.

    Raises
    ------
    UserError : a probability that is none, or of a row that do not sum to 1.
    """
    table = read_audit_table(options, frame=frame)
    names, group = read_group_shares(frame, options.path.name, options.proxy)
    people = dict(zip(names, group.sum(axis=0).tolist(), strict=True))
    sizes = [f"{count(round(size))} of {name}" for name, size in people.items()]
    fold = rng(options.seed, PROXY).integers(0, 2, len(table))
    labels = np.nan_to_num(table.label).astype(np.int64)
    rates = []
    ends = {}
    for rate in RATES:
        rows = np.arange(len(table)) if rate is RATE_OF[NEEDS_NO_LABELS] else table.known
        counted = ProxyRows.of(group[rows], labels[rows], table.prediction[rows], fold[rows])
        ends[rate] = counted.bounds(rate)
        size = group[rows].sum(axis=0).round().astype(int)
        about = {"metric": rate.name, "attribute": PROXY, "group": names, "n": size}
        columns = {**ends[rate].columns(), **about, "weighted": counted.weighted(rate)}
        rates.append(pd.DataFrame(columns))
    risk = risk_of(len(RATE_OF))
    found, gaps = _answered(
        table, options, WHOEVER, lambda asked, rate: _bounded_gap(asked, names, ends[rate], risk)
    )
    every_rate = pd.concat(rates, ignore_index=True)
    named = every_rate["metric"].map(table.direction.rate_name)
    shown_rates = every_rate.assign(metric=named).dropna(subset="lowest")
    what = (
        f"{names[1]}'s rate minus that of {names[0]}"
        if len(names) == 2
        else "the largest difference between two groups"
    )
    shown_gaps = [{**gap, "verdict": _verdict(gap["verdict"])} for gap in gaps]
    tables = [
        named_table("unknown", "proxy_gaps", shown_gaps, size=what),
        named_table("unknown", "proxy_rates", shown_rates.to_dict("records")),
    ]
    return Audit.of(
        table,
        options,
        [
            _said("proxy", rows=len(table), labels=len(table.known), sizes=", ".join(sizes)),
            _said("proxy_bounds"),
        ],
        findings=found,
        sections=[doc.Section(TITLE, tables)],
        data={"groups": people, "gaps": gaps},
        label_names=(),
        todo=["Probabilities nearer to 0 and 1 would make bounds narrower."],
        figures=every_rate.to_dict("records"),
    )


# Many groups, estimated together.

FEWEST_ROWS = 10  # of a group that gaps are taken between
_MOST, _MOST_UNKNOWN = 40, 10
_TABLE = "groups.csv"
WITHIN, BEYOND, UNSURE = "within", "beyond", "open"  # epsilon of everyone
_CERTAIN = 0.95  # the probability with which that is said
_of_many = functools.partial(sentence_of, "many")


def _audit_many(options: Options, frame: pd.DataFrame) -> Audit:
    """Audit so many groups that they are estimated together; all of them are in a file."""
    table = read_audit_table(options, frame=frame, many=True)
    codes, groups = codes_of(table.cells)
    sizes = np.bincount(codes)
    rows = len(table)
    labels = len(table.known)
    singles = _few_groups(options, frame)
    risk = risk_of(3 if singles else 2)  # for what is unlike the rest, for gaps, and for columns
    estimates, rates, found = _estimate_groups(table, options, codes, groups, risk)
    return Audit.of(
        table,
        options,
        [
            counted_rows(rows, labels),
            _of_many(
                "together",
                groups=len(sizes),
                attribute=" x ".join(options.group),
                half=int(np.median(sizes)),
            ),
            *on_labels(rows, labels, _of_many("no_labels")),
        ],
        findings=[*_gaps_of_columns(table, singles, options.epsilon, risk), *found],
        sections=_sections(estimates, rates, table.direction, options.epsilon),
        data={"rates": rates},
        notes=[*table.notes, *_notes(estimates, sizes)],
        todo=["Name fewer columns, or coarser groups, to compare each two of them."],
        files={_TABLE: csv_text(estimates)},
        figures=estimates.to_dict("records"),
    )


def _few_groups(options: Options, frame: pd.DataFrame) -> dict[str, pd.Series]:
    """Return the columns, if there are several, whose groups can be compared two by two."""
    several = options.group if len(options.group) > 1 else ()
    columns = {
        name: groups_of(frame[name], ColumnRef(options.path.name, name), len(frame))
        for name in several
    }
    return {name: of for name, of in columns.items() if len(of.cat.categories) <= MOST_GROUPS}


def _gaps_of_columns(
    table: AuditTable, columns: Mapping[str, pd.Series], epsilon: float, risk: float
) -> Iterator[Finding]:
    """Yield the findings on the gap of each rate for each column, which share an error rate."""
    fixed = {RATE_OF[metric].name: why for metric, why in table.fixed.items()}
    for attribute, labels in columns.items():
        codes, names = codes_of(labels)
        rates, successes, sizes = _counts_of_rates(table, codes)
        for r, rate in enumerate(rates):
            measure, why = table.direction.rate_name(rate.name), fixed.get(rate.name, TOO_FEW)
            n, at = int(sizes[r].sum()), functools.partial(GroupLimits.of, successes[r], sizes[r])
            asked = Finding(findings.GAP, attribute, measure, bound=epsilon, n=n, needs=why)
            gap = Measure(asked) if rate.name in fixed else Measure.of_limits(asked, names, at)
            yield from gap.answered(risk_of(len(rates) * len(columns), risk)).conclude()


def _estimate_groups(
    table: AuditTable,
    options: Options,
    codes: NDArray[np.intp],
    groups: Sequence[str],
    risk: float,
) -> tuple[pd.DataFrame, list[Row], list[Finding]]:
    """Estimate the rates of groups together, and find those that stand out.

    Parameters
    ----------
    codes : (n,) the position of each row's group in `groups`.
    groups : the names of the groups.
    risk : the error rate of which groups are unlike everyone else, and that of the largest gaps.

    Returns
    -------
    groups : a row for each rate and group: counts, its raw rate, the pooled estimate, and what is
        sure.
    rates : a row for each rate: that of everyone, how many groups are flagged, which share of the
        groups is surely within epsilon of everyone, beyond it, or neither, and the largest gap.
    findings : which groups are unlike everyone else, and the largest gap of each rate.
    """
    attribute = " x ".join(options.group)
    rates, successes, sizes = _counts_of_rates(table, codes)
    posteriors = pool_rates(
        successes[:, None],
        sizes[:, None],
        [rng(options.seed, "posterior")],
        attributes=many_groups.parts_of(attribute, groups),
        draws=many_groups.DRAWS,
    )
    p_values = differs_from_rest(successes, sizes)
    adjusted = adjusted_p_values(p_values, overlapping=True)
    test_risk, gap_risk = (risk_of(n, risk) for n in (successes.size, len(rates)))
    fixed = {RATE_OF[metric].name: why for metric, why in table.fixed.items()}
    frames: list[pd.DataFrame] = []
    figures: list[Row] = []
    found: list[Finding] = []
    for r, rate in enumerate(rates):
        posterior, total = posteriors.take(r).take(0), sizes[r].sum()
        everyone = posterior.draws @ sizes[r] / total
        away = np.abs(posterior.draws - everyone[:, None])
        within = (away < options.epsilon).mean(axis=0)
        sure = within >= _CERTAIN, within <= 1 - _CERTAIN
        nearness = np.select(sure, [WITHIN, BEYOND], UNSURE)
        columns = {
            "rate": rate.name,
            "group": groups,
            "rows": sizes[r].astype(int),
            **many_groups.own_and_pooled(successes[r], sizes[r], posterior),
            "everyone": float(successes[r].sum() / total),
            "within_epsilon": within,
            "verdict": nearness,
            "p_value": p_values[r],
            "adjusted": adjusted[r],
            "unlike_everyone": adjusted[r] <= many_groups.FALSE_DISCOVERY_RATE,
            "exception": adjusted_p_values(posterior.surprise) < many_groups.EXCEPTIONAL,
        }
        frame = pd.DataFrame(columns)
        frames.append(frame)
        measure, n = table.direction.rate_name(rate.name), int(total)
        template = Finding(findings.GAP, attribute, measure, n=n)
        why, surest = fixed.get(rate.name, TOO_FEW), list[str]()
        gaps = [replace(template, bound=options.epsilon, needs=why)]
        if rate.name not in fixed:
            found += _unlike(frame, test_risk, template)
            surest, gaps = _surest_gap(successes[r], sizes[r], groups, gaps[0], gap_risk)
        figures.append(
            {
                "rate": rate.name,
                "everyone": tuple(map(float, rate_limits(successes[r].sum(), n))),
                "flagged": int(frame["unlike_everyone"].sum()),
                **{name: float((nearness == name).mean()) for name in (WITHIN, BEYOND, UNSURE)},
                "gap": gaps[0].value,
                "interval": gaps[0].interval,
                "surest_pair": surest,
            }
        )
        found += gaps
    return pd.concat(frames, ignore_index=True), figures, found


def _counts_of_rates(
    table: AuditTable, codes: NDArray[np.intp]
) -> tuple[list[registry.Rate], Floats, Floats]:
    """Return the rates with a non-empty denominator, and their counts by group (R, G).

    The selection rate counts all rows. Rates that need labels count the labelled rows.
    """
    known, n_rows, rates = table.known, np.bincount(codes), list(many_groups.SHOWN)
    of_known = table.label[known], table.prediction[known], codes[known]
    counts = registry.binary_confusion(*of_known, n_groups=len(n_rows))
    successes, sizes = registry.shares_of(rates, counts)
    selection = rates.index(registry.selection_rate)
    successes[selection], sizes[selection] = np.bincount(codes, table.prediction), n_rows
    has_rows = sizes.sum(axis=1) > 0
    return list(compress(rates, has_rows)), successes[has_rows], sizes[has_rows]


def _unlike(frame: pd.DataFrame, risk: float, template: Finding) -> Iterator[Finding]:
    """Yield which groups are unlike everyone else, the surest first."""
    template = replace(template, about=findings.UNLIKE, bound=float(frame["everyone"].iloc[0]))
    surely = frame[frame["p_value"] <= risk].sort_values("p_value", kind="stable")
    if surely.empty:
        yield replace(template, verdict=findings.OPEN)
    for row in surely.itertuples():
        unlike = replace(template, verdict=findings.LARGE, groups=(row.group,), n=row.rows)
        yield replace(unlike, value=row.pooled, lower=row.lower, upper=row.upper)


def _surest_gap(
    successes: Floats, sizes: Floats, groups: Sequence[str], template: Finding, risk: float
) -> tuple[list[str], list[Finding]]:
    """Return the finding on the two large enough groups that differ most surely."""
    large_enough = np.flatnonzero(sizes >= FEWEST_ROWS)
    if len(large_enough) < 2:
        return [], [template]

    @functools.cache
    def at_level(level: float) -> tuple[Limits, int, int]:
        return surest_gap(GroupLimits.of(successes[large_enough], sizes[large_enough], level=level))

    def of_surest(level: float) -> GapInterval:
        """Return the interval with the lead of these two only: all pairs would be too many."""
        gap = at_level(level)[0]
        return GapInterval(gap.lower, gap.upper, np.array([[0, gap.lower], [0, 0]]))

    low, high = large_enough[list(at_level(1 - risk)[1:])]
    names = [groups[high], groups[low]]
    few = list(compress(groups, sizes < FEWEST_ROWS))
    value, lower, upper = map(float, at_level(findings.LEVEL)[0])
    measure = Measure(
        template,
        names,
        of_surest,
        [successes[group] / sizes[group] for group in (high, low)],
        (value, lower, upper),
        few=few,
        may_be_small=not few,
        noise=gap_of_noise(rate_limits(successes[large_enough], sizes[large_enough])),
    )
    return names, measure.answered(risk).conclude()


def _notes(frame: pd.DataFrame, sizes: NDArray[np.int64]) -> list[str]:
    """Return how so many groups were compared, and which of them are to be read with care."""
    groups = len(sizes)
    pairs = groups * (groups - 1) // 2
    exceptions = int(frame["exception"].sum())
    small = int((sizes < FEWEST_ROWS).sum())
    return sentences_of(
        "many",
        {"pairs": True, "flagged": True, "exceptions": exceptions, "small": small},
        groups=groups,
        pairs=pairs,
        by_chance=round(0.05 * pairs),
        tests=len(frame),
        exceptions=exceptions,
        fewest=FEWEST_ROWS,
        small=small,
    )


def _sections(
    frame: pd.DataFrame, rates: Sequence[Row], direction: Direction, epsilon: float
) -> list[doc.Section]:
    """Return the sections on everyone, on groups that stand out, and on those least is known of."""
    from_everyone = frame[["lower", "pooled", "upper"]].sub(frame["everyone"], axis=0)
    differences = frame.assign(**from_everyone)
    flagged = differences[frame["unlike_everyone"]]
    flagged = flagged.iloc[np.lexsort([-flagged["pooled"].abs(), flagged["adjusted"]])]
    least_known = differences.iloc[np.argsort(frame["lower"] - frame["upper"], kind="stable")]
    title = f"{count(len(flagged))} rates of groups"
    if len(flagged) > _MOST:
        title += f"; the {count(_MOST)} surest are shown"
    stand_out: doc.Block = doc.Paragraph("No group is flagged as unlike everyone else in any rate.")
    if len(flagged):
        stand_out = _groups(flagged.head(_MOST), direction, epsilon, title)
    unknown = _groups(least_known.head(_MOST_UNKNOWN), direction, epsilon, "")
    rows = [{**row, "rate": direction.rate_name(row["rate"])} for row in rates]
    everyone = named_table("many", "everyone", rows, epsilon=epsilon, fewest=FEWEST_ROWS)
    note = doc.Paragraph(f"Every group and rate, {count(len(frame))} rows: {_TABLE}.", "note")
    return [
        doc.Section("Everyone, and how far groups are from it", [everyone]),
        doc.Section("Groups that stand out", [stand_out]),
        doc.Section("Groups of which least is known", [unknown]),
        doc.Section("", [note]),
    ]


def _groups(rows: pd.DataFrame, direction: Direction, epsilon: float, title: str) -> doc.Table:
    """Return the table of some groups, with their pooled intervals drawn on one scale."""
    intervals = list(zip(rows["lower"], rows["pooled"], rows["upper"], strict=True))
    shown = rows.assign(rate=rows["rate"].map(direction.rate_name), bar=bars(intervals, epsilon))
    return named_table("many", "groups", shown.to_dict("records"), shown=title, epsilon=epsilon)


AUDITS = {question.PROXY: _audit_proxy, question.MANY: _audit_many}
