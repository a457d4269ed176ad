"""What dossiers have in common: facts that people give, their answers, and the document."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fairbench.audits.dossiers.facts import GIVEN, MEASURED, MISSING, Fact
from fairbench.audits.question import Options
from fairbench.core import VERSION
from fairbench.core.errors import UserError, refused, unknown_name
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


def read_facts(path: str, facts: Sequence[Fact]) -> dict[str, str]:
    """Return what people say of a model, of a file of ``name: text`` lines or of JSON.

    Parameters
    ----------
    facts : what is asked for; only what is not measured can be given.

    Raises
    ------
    UserError : no such file, a line without a name, or a name that no dossier asks for.
    """
    if not path:
        return {}
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = refused(error) if isinstance(error, OSError) else "it is no text in UTF-8"
        raise UserError(f"facts={path} cannot be read: {reason}") from error
    told = _of_json(text, path) if Path(path).suffix == ".json" else dict(_of_lines(text, path))
    valid = names_told(facts)
    for name in told:
        if name not in valid:
            raise unknown_name("fact", name, valid)
    return told


def names_told(facts: Sequence[Fact]) -> list[str]:
    """Return the names of the facts that only people can tell."""
    return [fact.key for fact in facts if fact.status != MEASURED]


def _of_json(text: str, path: str) -> dict[str, str]:
    try:
        told = json.loads(text)
    except json.JSONDecodeError as error:
        raise UserError(f"facts={path} is not JSON: {error}") from error
    if not isinstance(told, dict) or not all(isinstance(value, str) for value in told.values()):
        raise UserError(f'facts={path}: what is needed is one object of texts, {{"name": "text"}}')
    return told


def _of_lines(text: str, path: str) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(text.splitlines(), start=1):
        name, colon, value = line.partition(":")
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if not colon:
            raise UserError(f"facts={path}, line {number}: what is needed is 'name: text'")
        yield name.strip(), value.strip()


def dossier(
    kind: str,
    title: str,
    options: Options,
    facts: Sequence[Fact],
    answers: Mapping[str, str],
    *,
    found: Sequence[str],
    sections: Sequence[Section],
    warnings: Sequence[str] = (),
    **data: Any,
) -> Document:
    """Return a dossier: its summary, what is asked for with the answers, and the measurements.

    Parameters
    ----------
    facts : what is asked for. answers : to them by name, of the predictions and of people.
    found : sentences that say what was measured. warnings : what limits how sure that is.
    data : the same as plain values.
    """
    asked = [fact.answered(answers.get(fact.key, "")) for fact in facts]
    missing = [fact for fact in asked if fact.status == MISSING]
    unseen, todo = [NOTICE], ["Make it again when the model changes, or who it is used on."]
    if missing:
        what, names = "; ".join(f.what for f in missing), ", ".join(f.key for f in missing)
        unseen.append(f"Missing, as only people can say it: {what}.")
        todo = [f"Answer what is missing in a file, and name it by facts=FILE: {names}."]
    sure = (
        "Every rate has its 95 % interval and the number of people that it rests on: made in the "
        "same way from other samples of the same people, 19 of 20 such intervals hold the true "
        "value."
    )
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
    return Document(
        title,
        [Section("What is asked for", [table], name="asked"), *sections],
        lead=[Paragraph(f"Of the predictions in {options.path.name}.", "note")],
        origin=f"fairbench {VERSION}; seed {options.seed}.",
        summary=ExecutiveSummary(found, [*warnings, sure], unseen, todo),
        data={
            "dossier": kind,
            "version": VERSION,
            "file": options.path.name,
            "asked": [asdict(fact) for fact in asked],
            **data,
        },
    )
