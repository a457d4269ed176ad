"""What dossiers have in common: what is asked for, what answers it, and what is missing."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fairbench.audits.question import Options
from fairbench.core import VERSION
from fairbench.core.errors import UserError, refused, unknown_name
from fairbench.reporting.document.model import (
    Column,
    Document,
    ExecutiveSummary,
    Paragraph,
    Section,
    Table,
    TableCell,
)

MEASURED, GIVEN, MISSING = "measured", "given", "missing"
NOTICE = (
    "These are measurements, and what people said. Whether a law or a rule is kept is for people "
    "to judge, who know more than is here."
)


@dataclass(frozen=True)
class Asked:
    """One thing that is asked for.

    Attributes
    ----------
    key : its name in the JSON, and in a file of facts. what : what is asked for. source : where.
    status : whether the predictions answer it, somebody has, or nobody. answer : in words.
    """

    key: str
    what: str
    source: str
    status: str
    answer: str


def measured(key: str, what: str, source: str, answer: str) -> Asked:
    """Return what the predictions answer."""
    return Asked(key, what, source, MEASURED, answer)


def told(key: str, what: str, source: str, facts: Mapping[str, str]) -> Asked:
    """Return what only people can answer: given in the facts, or missing."""
    answer = facts.get(key, "")
    return Asked(key, what, source, GIVEN if answer else MISSING, answer)


def read_facts(path: str, known: Sequence[str]) -> dict[str, str]:
    """Return what people say of a model, of a file of ``name: text`` lines or of JSON.

    Parameters
    ----------
    known : the names that there can be.

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
    facts = _json(text, path) if Path(path).suffix == ".json" else _lines(text, path)
    for name in facts:
        if name not in known:
            raise unknown_name("fact", name, list(known))
    return facts


def _json(text: str, path: str) -> dict[str, str]:
    try:
        facts = json.loads(text)
    except json.JSONDecodeError as error:
        raise UserError(f"facts={path} is not JSON: {error}") from error
    if not isinstance(facts, dict) or not all(isinstance(each, str) for each in facts.values()):
        raise UserError(f'facts={path}: what is needed is one object of texts, {{"name": "text"}}')
    return facts


def _lines(text: str, path: str) -> dict[str, str]:
    facts = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        name, colon, value = line.partition(":")
        if not colon:
            raise UserError(f"facts={path}, line {number}: what is needed is 'name: text'")
        facts[name.strip()] = value.strip()
    return facts


def dossier(
    kind: str,
    title: str,
    options: Options,
    asked: Sequence[Asked],
    found: Sequence[str],
    sections: Sequence[Section],
    *,
    warnings: Sequence[str] = (),
    **data: Any,
) -> Document:
    """Return a dossier: its summary, what is asked for with the answers, and the measurements.

    Parameters
    ----------
    found : sentences that say what was measured. warnings : what limits how sure that is.
    data : the same as plain values.
    """
    missing = [each for each in asked if each.status == MISSING]
    names = ", ".join(each.key for each in missing)
    todo = [f"Answer what is missing in a file, and name it by facts=FILE: {names}."]
    sure = [
        *warnings,
        "Every rate has its 95 % interval and the number of people that it rests on: made in the "
        "same way from other samples of the same people, 19 of 20 such intervals hold the true "
        "value.",
    ]
    summary = ExecutiveSummary(
        list(found),
        sure,
        [NOTICE, *_missing(missing)],
        todo if missing else ["Make it again when the model changes, or who it is used on."],
    )
    return Document(
        title,
        [Section("What is asked for", [_table(asked)], name="asked"), *sections],
        lead=[Paragraph(f"Of the predictions in {options.path.name}.", "note")],
        origin=f"fairbench {VERSION}; seed {options.seed}.",
        summary=summary,
        data={
            "dossier": kind,
            "version": VERSION,
            "file": options.path.name,
            "asked": [asdict(each) for each in asked],
            **data,
        },
    )


def _missing(missing: Sequence[Asked]) -> list[str]:
    """Return what nobody has answered, in one sentence."""
    if not missing:
        return []
    return [f"Missing, as only people can say it: {'; '.join(each.what for each in missing)}."]


_STYLES = {MEASURED: "small", GIVEN: "assumed", MISSING: "large"}


def _table(asked: Sequence[Asked]) -> Table:
    columns = [Column("asked for"), Column("by"), Column("status"), Column("answer")]
    rows = [
        [each.what, each.source, TableCell(each.status, mark=_STYLES[each.status]), each.answer]
        for each in asked
    ]
    return Table(columns, rows)
