"""The report of an audit: its folder, and what it measured and found as one document.

The folder is next to the audited file, or as asked for, and never that of another audit. The first
page has sentences, key figures and one chart; which sections follow, and in which order, is up to
the kind of audit.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import count as numbered
from math import ceil, isclose, isfinite
from pathlib import Path
from typing import Any

from fairbench.audits import sentences
from fairbench.audits.question import Options
from fairbench.audits.table import AuditTable
from fairbench.core import VERSION
from fairbench.core.errors import UserError
from fairbench.core.files import make_folder, read_bytes, write_text
from fairbench.core.text import count, listed, shortened
from fairbench.data.groups import CROSSED
from fairbench.evaluation.by_group import COMPARED_WITH
from fairbench.evaluation.findings import (
    COMPARISON,
    CONSTRAINT,
    GAP,
    LARGE,
    OPEN,
    PAIR,
    RATIO,
    SHARE,
    SMALL,
    Finding,
)
from fairbench.inference.posterior import FREQUENTIST
from fairbench.reporting import group_tables
from fairbench.reporting.charts import Estimate, forest
from fairbench.reporting.document import model as doc

_ASKED = "asked.txt"  # the file that says what the audit in a folder was asked for
_PACKED = (".gz", ".bz2", ".xz", ".zst")


def own_folder(options: Options, results: Path) -> Path:
    """Return a folder that no other audit uses; it is created if it does not exist.

    Without ``out=`` it is next to the file: ``loans-audit`` for ``loans.csv``. If that has an
    audit of the same file with other options, this one gets a number: ``loans-audit-2``. An audit
    with the same options is replaced. The audit of a run goes into `results`.

    Raises
    ------
    UserError : ``out=`` holds the audit of another file.
    OSError : it cannot be made.
    """
    path = options.path
    default = results / "report" / f"audit-{path.name}"
    if path.is_file():
        name = path.stem if path.suffix.lower() in _PACKED else path.name
        default = path.parent / f"{Path(name).stem}-audit"
    set_options = {name: value for name, value in asdict(options).items()
                   if name not in ("path", "out") and (value or value == 0)}  # fmt: skip
    request = {"file": str(path.resolve() if path.is_file() else path), "options": set_options}
    text = json.dumps(request, indent=1) + "\n"
    folder = Path(options.out) if options.out else default
    if options.out:
        audited_file = _read_request(folder).get("file", request["file"])
        if audited_file != request["file"]:
            raise UserError(f"out={folder} holds the audit of {audited_file}: name another folder")
    numbers = numbered(2)
    while not options.out and folder.exists() and _read_request(folder) != json.loads(text):
        folder = default.with_name(f"{default.name}-{next(numbers)}")
    make_folder(folder, 0o700)
    write_text(folder / _ASKED, text, mode=0o600, lasting=False)
    return folder


def _read_request(folder: Path) -> dict[str, Any]:
    """Return the file and the options of the audit in a folder; empty if there is none."""
    try:
        request = json.loads(read_bytes(folder / _ASKED))
    except (OSError, ValueError):
        return {}
    return request if isinstance(request, dict) else {}


# The report of an audit: what every kind of audit measured and found, as one document.

_said = partial(group_tables.sentence_of, "audit")


@dataclass(frozen=True, eq=False)
class Audit:
    """What an audit of any kind measured and found.

    Attributes
    ----------
    rows, labels : how many rows there are, and how many of them have a label.
    findings : all statements about the population that the rows are a sample of.
    basis : sentences on what the findings rest on.
    warning : what a reader has to know before everything else; may be empty.
    notes : descriptions of these rows, and what a reader has to know about them.
    sections : the sections of tables.
    pictures : the sections of figures.
    data : the figures of the sections as plain values, for the JSON.
    sure : sentences on how sure the findings are.
    unseen : sentences on what was not looked at.
    todo : sentences on what to do next.
    todo_if_open : what to do next where a question is open.
    headlines : the measures that are looked at first; the first page shows the gap in the first of
        them, or else the widest.
    title : what it is called; after the file without one.
    label_names : what label 0 and label 1 are called, where there are two.
    files : name -> text of further files in the folder of the page.
    figures : every figure in plain columns, one per row, where `data` has no ``metrics``.
    audited : how the rows were read: which way is good, and what a decision means.
    rates : what the rates are that groups are compared by.
    counted : what was counted, where it is not rows with and without a label.
    """

    options: Options
    rows: int
    labels: int
    findings: Sequence[Finding]
    basis: Sequence[str]
    sections: Iterable[doc.Section]
    data: Mapping[str, Any]
    warning: str = ""
    notes: Sequence[str] = ()
    pictures: Sequence[doc.Section] = ()
    sure: Sequence[str] = ()
    unseen: Sequence[str] = ()
    todo: Sequence[str] = ()
    todo_if_open: str = ""
    headlines: Sequence[str] = ()
    title: str = ""
    label_names: Sequence[str] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    figures: Sequence[Mapping[str, Any]] = ()
    audited: Sequence[str] = ()
    rates: str = ""
    counted: str = ""

    @classmethod
    def of(cls, table: AuditTable, options: Options, basis: Iterable[str], **more: Any) -> Audit:
        """Return the audit of a table of two classes; how it was read stands first."""
        about = {
            "warning": " ".join(table.warnings),
            "notes": table.notes,
            "audited": table.read_as,
            "label_names": table.labels,
        }
        basis = [*table.read_as, *basis]
        rows, labels = len(table), table.labels_known
        return cls(options=options, rows=rows, labels=labels, basis=basis, **{**about, **more})


def document_of(audit: Audit) -> doc.Document:
    """Return the document of an audit: its summary, what can and cannot be concluded, sections."""
    can, cannot = sentences.concluded(audit.findings)
    # Intervals and pairs have tables; how the rows were read stands on the first page, too.
    short = doc.Verdict(
        *sentences.concluded(audit.findings, brief=True),
        basis=[sentence for sentence in audit.basis if sentence not in audit.audited],
        warning=audit.warning,
    )
    names = audit.label_names
    labels = f"label 1 is '{names[1]}', label 0 '{names[0]}'; " if names else ""
    data = {
        "version": VERSION,
        "options": {**asdict(audit.options), "path": str(audit.options.path)},
        "rows": audit.rows,
        "labels": audit.labels,
        "conclusions": {
            "warning": audit.warning,
            "basis": list(audit.basis),
            "can": can,
            "cannot": cannot,
            "notes": list(audit.notes),
        },
        "findings": [
            {**asdict(finding), "sentence": sentences.sentence_of(finding)}
            for finding in audit.findings
        ],
        **audit.data,
        **({"figures": list(audit.figures)} if audit.figures else {}),
    }
    return doc.Document(
        audit.title or f"Audit of {audit.options.path.name}",
        list(audit.sections),
        doc.Verdict(can, cannot, basis=audit.basis, warning=audit.warning),
        notes=list(audit.notes),
        lead=audit.pictures,
        summary=_summary(audit),
        origin=f"fairbench {VERSION}; {labels}seed {audit.options.seed}.",
        data=data,
        files=audit.files,
        made=doc.made_from(audit.options.path, audit.options.seed),
        in_short=short,
    )


def _summary(audit: Audit) -> doc.ExecutiveSummary:
    """Return the first page of an audit."""
    findings = audit.findings
    attributes = audit.options.group
    headline = next(iter(audit.headlines), "")
    of_intervals = _said("intervals")
    if audit.options.interval != FREQUENTIST:
        # Gaps between several classes rest on the labels alone.
        of = "rates, and of gaps between them," if audit.label_names else "rates in tables"
        of_intervals = _said("intervals_of_posterior", of=of)
    sure = [*audit.sure, *([_said("promise"), of_intervals] if findings else [])]
    unseen = list(audit.unseen)
    todo = [*sentences.to_do(findings, audit.headlines), *audit.todo]
    if any(finding.verdict == OPEN for finding in findings):
        sure.append(_said("open"))
        todo += filter(None, [audit.todo_if_open])
    if groups := listed(list(attributes or audit.options.proxy)):
        # Columns of many groups are compared together alone.
        by = {finding.attribute for finding in findings}
        not_alone = [name for name in attributes if name not in by]
        kind = "compared_together" if not_alone and CROSSED.join(attributes) in by else "compared"
        ways = " or ".join(f"group={name}" for name in not_alone)
        unseen.insert(0, _said(kind, groups=groups, together=listed(not_alone), ways=ways))
    return doc.ExecutiveSummary(
        sentences.in_short(findings, audit.headlines),
        sure,
        unseen,
        todo,
        still_open=sentences.left_open(findings, audit.headlines),
        audited=list(_audited(audit)),
        key_figures=_key_figures(findings, attributes, headline),
        chart=_gap_chart(findings, attributes, headline),
    )


def _audited(audit: Audit) -> Iterator[tuple[str, str]]:
    """Yield how many rows there are, and how they were read."""
    labelled = f"{count(audit.labels)} of them" if audit.labels else "none of them"
    if audit.labels == audit.rows:
        labelled = "all of them"
    yield "Rows", audit.counted or f"{count(audit.rows)}, {labelled} with a label"
    if audit.audited:
        yield "Read as", " ".join(audit.audited)
    if audit.rates:
        yield "Rates", audit.rates


OF_POPULATION = "Intervals allow for these rows being a sample of a larger population."


def counted_by(options: Options) -> Iterator[str]:
    """Yield how rows count, where they are weighted or in clusters."""
    if options.weight:
        yield f"Rows count by '{options.weight}': figures are of the people that they stand for."
    if options.cluster:
        yield f"Rows with the same '{options.cluster}' belong together, and intervals know it."


def counted_rows(rows: int, labels: int, of: str = "") -> str:
    """Return how many rows there are, of a file if it is named, and how many have a label."""
    return _said("counted", rows=rows, labels=labels, share=labels / rows, of=of)


def on_labels(rows: int, labels: int, without: str) -> list[str]:
    """Return what figures that need labels assume, where not all rows have one.

    Parameters
    ----------
    without : the sentence where no row has a label.
    """
    return [_said("labels_at_random") if labels else without] if labels < rows else []


def more_for_open(rows: int, labels: int) -> str:
    """Return what to do where a question is open: label rows, or find more where all have one."""
    return _said("label_more" if labels < rows else "more_rows")


# The key figures of the first page, and its chart.

_MOST_FIGURES = 9  # rows of the key figures
_MOST_DRAWN = 10  # attributes of the chart
_LETTERS = 36  # of a name
_BEYOND = "†"  # of a row that is open although its interval lies beyond its limit
_VERDICTS = {  # in other words than large, small and open
    RATIO: {LARGE: "under four fifths", SMALL: "four fifths or more"},
    CONSTRAINT: {LARGE: "does not hold", SMALL: "holds"},
    SHARE: {LARGE: "not its share"},
}
DIFFER = "differ; size open"  # some groups surely differ, and it is open whether by more


def _key_figures(
    findings: Sequence[Finding], single: Sequence[str], measure: str
) -> doc.Table | None:
    """Return each attribute's smallest impact ratio, and the gaps that a page concludes about.

    Parameters
    ----------
    findings : all findings of the audit.
    single : the attributes that were asked for; their combinations are left to the appendix.
    measure : the measure whose gap matters; if empty, the widest gap is shown.

    Returns
    -------
    The table; None without any ratio or gap.
    """
    found = list(_key_findings(findings, single, measure))
    places = sorted(range(len(found)), key=lambda place: found[place][0])[:_MOST_FIGURES]
    shown = [found[place][1] for place in sorted(places)]
    pairs = {finding.question for finding in findings if finding.about == PAIR}

    def verdict(finding: Finding) -> doc.TableCell:
        text = _VERDICTS.get(finding.about, {}).get(finding.verdict, finding.verdict)
        if finding.verdict == OPEN and finding.about == GAP and finding.question in pairs:
            text = DIFFER
        after = f" {_BEYOND}" if _is_open_beyond(finding) else ""
        return doc.TableCell(text, mark=finding.verdict, after=after)

    if not shown:
        return None
    is_noisy = any(isfinite(finding.noise) for finding in shown)
    rows = [
        {
            **vars(finding),
            "measured": _measured(finding),
            "noise": finding.noise if isfinite(finding.noise) else None,
            "limit": finding.bound or None,
            "verdict": verdict(finding),
        }
        for finding in shown
    ]
    without, caption = [] if is_noisy else ["noise"], " ".join(_explained(shown))
    return group_tables.named_table("audit", "key_figures", rows, without=without, caption=caption)


def _explained(shown: Sequence[Finding]) -> Iterator[str]:
    """Yield what key figures are, what their limits are, and why some are open beyond these."""
    holds = {
        "key_gap": any(finding.about == GAP and finding.bound for finding in shown),
        "key_noise": any(isfinite(finding.noise) for finding in shown),
        "key_beyond": any(map(_is_open_beyond, shown)),
        "key_share": any(finding.about == SHARE for finding in shown),
    }
    values = {"mark": _BEYOND, "stricter": _said("stricter")}
    yield from group_tables.sentences_of("audit", holds, **values)
    ratios = [finding for finding in shown if finding.about == RATIO]
    if not ratios:
        return
    of_large = any(ratio.scope for ratio in ratios)
    highest = f"the group {ratios[0].decided} most often"
    highest += " of those that are large enough" * of_large
    others = compared_with(highest, {len(ratio.groups) > 1 for ratio in ratios})
    yield _said("key_ratio", word=ratios[0].decided, others=others)
    if of_large:
        yield COMPARED_WITH


def compared_with(highest: str, are_given: Collection[bool]) -> str:
    """Return whom the groups of impact ratios are compared with.

    Parameters
    ----------
    highest : the group of the highest share, with which one compares unless another is named.
    are_given : whether one is named, for each ratio or each kind of them.
    """
    named = "the group named by reference="
    if not all(are_given) and any(are_given):
        return f"{named}, or else of {highest}"
    return named if any(are_given) else highest


def _key_findings(
    findings: Sequence[Finding], single: Sequence[str], measure: str
) -> Iterator[tuple[int, Finding]]:
    """Yield, for each attribute, its smallest ratio and its gap, or else its smallest share.

    These have rank 0; what else is sure of the attribute has rank 1, and what is open in part 2.
    """
    for of_attribute in _by_attribute(findings, single):
        ratios = [finding for finding in of_attribute if finding.about == RATIO]
        if ratios:
            yield 0, min(ratios, key=lambda ratio: ratio.value)
        if gap := _key_gap(of_attribute, measure):
            yield 0, gap
            for also in _also_concluded(of_attribute, gap):
                yield 1 if also.verdict == LARGE else 2, also
        others = [finding for finding in of_attribute if finding.about in (SHARE, CONSTRAINT)]
        if others and not ratios:
            smallest = min(others, key=lambda finding: finding.value)
            yield 0, smallest
            sure = [other for other in others if other.verdict == LARGE and other is not smallest]
            for other in sorted(sure, key=lambda other: -abs(other.value - other.bound)):
                yield 1, other


def _by_attribute(findings: Sequence[Finding], single: Sequence[str]) -> Iterator[list[Finding]]:
    """Yield what was measured of the attributes that were asked for, or of all without any."""
    measured = [finding for finding in findings if isfinite(finding.value) and not finding.given]
    attributes = dict.fromkeys(finding.attribute for finding in measured)
    for attribute in [name for name in attributes if name in single] or attributes:
        yield [finding for finding in measured if finding.attribute == attribute]


def _key_gap(findings: Sequence[Finding], measure: str = "") -> Finding | None:
    """Return the gap of an attribute that a page shows: that of `measure`, or the widest.

    Gaps that are surely large go first. The interval is that of the gap without its sign.
    """
    gaps = [finding for finding in findings if finding.about in (GAP, COMPARISON)]
    gaps = [gap for gap in gaps if gap.measure == measure] or gaps
    if not gaps:
        return None
    return _unsigned(max(gaps, key=lambda gap: (gap.verdict == LARGE, abs(gap.value))))


def _also_concluded(findings: Sequence[Finding], shown: Finding) -> Iterator[Finding]:
    """Yield the other gaps of an attribute that are large, or of which some groups differ."""
    pairs = {finding.question for finding in findings if finding.about == PAIR}
    gaps = [gap for gap in findings if gap.about == GAP and gap.question != shown.question]
    concluded = [gap for gap in gaps if gap.verdict == LARGE or gap.question in pairs]
    concluded.sort(key=lambda gap: (gap.verdict != LARGE, -abs(gap.value)))
    yield from map(_unsigned, concluded)


def _is_open_beyond(finding: Finding) -> bool:
    """Say whether a row is open although its interval lies on one side of the limit."""
    size = _unsigned(finding)
    is_beyond = size.lower > finding.bound or size.upper < finding.bound
    return finding.verdict == OPEN and is_beyond


def _unsigned(gap: Finding) -> Finding:
    """Return a gap of two groups with its size, and the interval of its size."""
    lower, upper = sorted(map(abs, gap.interval))
    if gap.lower < 0 < gap.upper:
        lower = 0.0
    return replace(gap, value=abs(gap.value), lower=lower, upper=upper)


def _measured(finding: Finding) -> str:
    """Return what a row of the key figures is about, with the groups in question."""
    names = [shortened(name, _LETTERS) for name in finding.groups]
    if finding.about == GAP and len(finding.values) == 2:
        # The size is that of the two groups furthest apart; the groups that surely differ may be
        # others.
        difference = abs(finding.values[0] - finding.values[1])
        names = names if isclose(difference, abs(finding.value), abs_tol=1e-9) else []
    joined = {GAP: " and ", RATIO: " over "}.get(finding.about, ", ").join(names)
    kind = {GAP: "gap in ", SHARE: "share of "}.get(finding.about, "")
    if finding.about == COMPARISON and finding.attribute:
        kind = "difference of gaps in "
    return f"{kind}{_measure(finding)}{f': {joined}' if joined else ''}"


def _measure(finding: Finding) -> str:
    """Return what is measured, and of whom if that is not everyone in the file."""
    scope = finding.scope if finding.about == GAP else ""
    return ", ".join(filter(None, [finding.measure, scope]))


def _gap_chart(
    findings: Sequence[Finding], single: Sequence[str], measure: str
) -> doc.Figure | None:
    """Draw the gap of every attribute and their common tolerance; None if there are no gaps.

    Gaps with another tolerance than the first have another scale, and are left to the appendix.
    """
    gaps = [gap for found in _by_attribute(findings, single) if (gap := _key_gap(found, measure))]
    gaps = [gap for gap in gaps if gap.bound == gaps[0].bound and isfinite(gap.upper)]
    if not gaps:
        return None
    gaps = sorted(gaps, key=lambda gap: -gap.value)[:_MOST_DRAWN]
    bound = gaps[0].bound
    measures = set(map(_measure, gaps))
    in_one = f" in {min(measures)}" if len(measures) == 1 else ""
    rows: list[Estimate] = []
    for gap in gaps:
        name = gap.attribute if in_one else f"{gap.attribute}: {_measure(gap)}"
        rows.append((name, gap.value, gap.lower, gap.upper))
    top = max(2 * bound, *(gap.upper for gap in gaps))
    top = ceil(10 * top) / 10 if gaps[0].is_share else top
    title = "The gap of every attribute, and the tolerance"
    svg = forest("", [rows], span=(0.0, top), band=(0.0, bound))
    caption = _said("chart", in_one=in_one, bound=bound)
    return doc.Figure(title, [svg], caption=caption, name="gaps")
