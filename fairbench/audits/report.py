"""The report of an audit: its folder, and what it measured and found as one document.

The folder is next to the audited file, or as asked for, and never that of another audit.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import count as numbered
from pathlib import Path
from typing import Any

from fairbench.audits.pages.first_page import gap_chart, key_figures
from fairbench.audits.question import Options
from fairbench.audits.sentences import (
    can_be_concluded,
    cannot_be_concluded,
    in_short,
    left_open,
    sentence_of,
    to_do,
)
from fairbench.core import VERSION
from fairbench.core.errors import UserError
from fairbench.core.files import make_folder, read_bytes, write_text
from fairbench.core.text import count, listed
from fairbench.evaluation.findings import OPEN, Finding
from fairbench.reporting.document.model import (
    Document,
    ExecutiveSummary,
    Section,
    Verdict,
    made_from,
)

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

PROMISE = (
    "Pages like this are made so that the chance of any wrong finding on a page is at most 5 %: "
    "all findings of a page share one error rate."
)
ON_OPEN = "“Open” means that these rows cannot tell, not that groups are alike."
INTERVALS = (
    "Ranges and lines are 95 % intervals, each for one figure alone: if many samples of the same "
    "people were audited in this way, 19 of 20 such intervals would contain the true value."
)


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
    sections: Iterable[Section]
    data: Mapping[str, Any]
    warning: str = ""
    notes: Sequence[str] = ()
    pictures: Sequence[Section] = ()
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


def document_of(audit: Audit) -> Document:
    """Return the document of an audit: its summary, what can and cannot be concluded, sections."""
    can = can_be_concluded(audit.findings)
    cannot = cannot_be_concluded(audit.findings)
    notes = list(audit.notes)
    conclusions = {
        "warning": audit.warning,
        "basis": list(audit.basis),
        "can": can,
        "cannot": cannot,
        "notes": notes,
    }
    return Document(
        audit.title or f"Audit of {audit.options.path.name}",
        list(audit.sections),
        Verdict(can, cannot, basis=audit.basis, warning=audit.warning),
        notes=notes,
        lead=audit.pictures,
        summary=_summary(audit),
        origin=_origin(audit),
        data={
            "version": VERSION,
            "options": {**asdict(audit.options), "path": str(audit.options.path)},
            "rows": audit.rows,
            "labels": audit.labels,
            "conclusions": conclusions,
            "findings": [
                {**asdict(finding), "sentence": sentence_of(finding)} for finding in audit.findings
            ],
            **audit.data,
            **({"figures": list(audit.figures)} if audit.figures else {}),
        },
        files=audit.files,
        made=made_from(audit.options.path, audit.options.seed),
    )


def _summary(audit: Audit) -> ExecutiveSummary:
    """Return the first page of an audit."""
    attributes = audit.options.group
    headline = next(iter(audit.headlines), "")
    sure = list(audit.sure)
    unseen = list(audit.unseen)
    todo = [*to_do(audit.findings, audit.headlines), *audit.todo]
    if audit.findings:
        sure += [PROMISE, INTERVALS]
    if any(finding.verdict == OPEN for finding in audit.findings):
        sure.append(ON_OPEN)
        todo += filter(None, [audit.todo_if_open])
    if groups := listed(list(attributes or audit.options.proxy)):
        compared = (
            f"Only groups by {groups} were compared; who else may be treated differently was not "
            "looked at."
        )
        unseen = [compared, *unseen]
    return ExecutiveSummary(
        in_short(audit.findings, audit.headlines),
        sure,
        unseen,
        todo,
        still_open=left_open(audit.findings, audit.headlines),
        audited=list(_audited(audit)),
        key_figures=key_figures(audit.findings, attributes, headline),
        chart=gap_chart(audit.findings, attributes, headline),
    )


def _audited(audit: Audit) -> Iterator[tuple[str, str]]:
    """Yield how many rows there are, and how they were read."""
    options = audit.options
    names = audit.label_names
    labelled = f"{count(audit.labels)} of them" if audit.labels else "none of them"
    if audit.labels == audit.rows:
        labelled = "all of them"
    yield "Rows", audit.counted or f"{count(audit.rows)}, {labelled} with a label"
    labels = [f"Label 1 is '{names[1]}', label 0 '{names[0]}'."] if names else []
    if sentences := [*(audit.audited or labels)]:
        yield "Read as", " ".join(sentences)
    if audit.rates:
        yield "Rates", audit.rates
    if names and options.score and not options.prediction and not audit.audited:
        yield "Threshold", f"'{options.score}' above {options.threshold:g} is a positive decision"


def _origin(audit: Audit) -> str:
    """Return the version and the options that an audit was made with, as a sentence."""
    names = audit.label_names
    labels = f"label 1 is '{names[1]}', label 0 '{names[0]}'; " if names else ""
    return f"fairbench {VERSION}; {labels}seed {audit.options.seed}."


OF_POPULATION = "Intervals allow for these rows being a sample of a larger population."


def counted_by(options: Options) -> Iterator[str]:
    """Yield how rows count, where they are weighted or in clusters."""
    if options.weight:
        yield f"Rows count by '{options.weight}': figures are of the people that they stand for."
    if options.cluster:
        yield f"Rows with the same '{options.cluster}' belong together, and intervals know it."


def on_labels(rows: int, labels: int, without: str) -> list[str]:
    """Return what figures that need labels assume, where not all rows have one.

    Parameters
    ----------
    without : the sentence where no row has a label.
    """
    assumption = (
        "What needs labels is of the rows that have one. This assumes that rows were chosen for "
        "labelling at random."
    )
    return [assumption if labels else without] if labels < rows else []
