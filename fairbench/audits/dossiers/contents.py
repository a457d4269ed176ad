"""What dossiers have in common: a document that begins with what is asked for, and the answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace

from fairbench.audits.dossiers.facts import GIVEN, MEASURED, MISSING, Fact
from fairbench.audits.question import Options
from fairbench.core import VERSION
from fairbench.reporting.document.making import made_from
from fairbench.reporting.document.model import (
    Column,
    Document,
    ExecutiveSummary,
    Paragraph,
    Section,
    TableCell,
)
from fairbench.reporting.group_tables import table_of

NOTICE = (
    "These are measurements, and what people said. Whether a law or a rule is kept is for people "
    "to judge, who know more than is here."
)
_STYLES = {MEASURED: "small", GIVEN: "assumed", MISSING: "large"}


def dossier(
    kind: str,
    measured: Document,
    options: Options,
    facts: Sequence[Fact],
    answers: Mapping[str, str],
) -> Document:
    """Return a document of measurements, with what is asked for and the answers before them.

    Parameters
    ----------
    facts : what is asked for. answers : to them by name, of the predictions and of people.
    """
    asked = [fact.answered(answers.get(fact.key, "")) for fact in facts]
    missing = [fact for fact in asked if fact.status == MISSING]
    unseen, todo = [NOTICE], ["Make it again when the model changes, or who it is used on."]
    if missing:
        what, names = "; ".join(f.what for f in missing), ", ".join(f.key for f in missing)
        unseen.append(f"Missing, as only people can say it: {what}.")
        todo = [f"Answer what is missing in a file, and name it by facts=FILE: {names}."]
    table = table_of(
        asked,
        [
            ("what", Column("asked for")),
            ("source", Column("by")),
            (lambda fact: TableCell(fact.status, mark=_STYLES[fact.status]), Column("status")),
            ("answer", Column("answer")),
        ],
        by="",
    )
    summary = measured.summary or ExecutiveSummary([])
    return replace(
        measured,
        sections=[Section("What is asked for", [table], name="asked"), *measured.sections],
        lead=[Paragraph(f"Of the predictions in {options.path.name}.", "note"), *measured.lead],
        origin=measured.origin or f"fairbench {VERSION}; seed {options.seed}.",
        made=measured.made or made_from(options.path, options.seed),
        summary=replace(summary, unseen=[*unseen, *summary.unseen], todo=[*todo, *summary.todo]),
        data={
            "dossier": kind,
            "version": VERSION,
            "file": options.path.name,
            "asked": [asdict(fact) for fact in asked],
            **measured.data,
        },
    )
