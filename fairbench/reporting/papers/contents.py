"""The contents of a work row by row, and our answer to each: ``contents.yaml`` of its folder.

A row is a table, figure, definition, algorithm, data set, setting or claim, with its place in the
text. It says what the text has, what we run, and where the two differ. One of `ANSWERS` says what
answers it: a table or a figure of the mapping, a command that prints a study, the code that
implements it, a data set of ``conf``, ``words``, or ``absent``, why it cannot be had. The verdict
of a table is counted from its numbers; that of other rows is written in the file.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, fields
from pathlib import Path

import yaml

from fairbench.core.errors import UserError, unknown_name
from fairbench.reporting.papers.mapping import Paper

ANSWERS = ("table", "figure", "command", "code", "dataset", "words", "absent")
CANNOT = "cannot be had"
# Verdict -> its meaning, in the order in which a page lists claims.
VERDICTS = {
    "does not hold": "Our runs contradict the claim.",
    "holds in part": "Our runs support one part of the claim, and not another.",
    "not resolved": "There are too few rows or labels to decide the claim.",
    "holds": "Our runs support the claim.",
    "agrees": "Ours shows what the paper's shows.",
    "agrees in part": "Ours shows what the paper's shows in some respects, and not in others.",
    "differs": "Ours does not show what the paper's shows.",
    "drawn": "We drew the figure; its points are printed nowhere, so that none is compared.",
    "not comparable": "We computed it, but the paper prints no number to compare it with.",
    "implemented": "The code has this definition, algorithm or data set.",
    "substitute": "The data set has other people than the paper's.",
    "loader only": "The data set can be read, but we do not have its files.",
}


@dataclass(frozen=True)
class Row:
    """A row of a work, and what answers it.

    Attributes
    ----------
    item : its name in the work, such as ``Table 3.2``.
    place : its section, equation, table or figure in the text.
    what : what the text has, in words.
    ours : what we run or have.
    differs : where the two differ, and what that changes; empty where they do not.
    words : the answer, where it is one in words.
    verdict : one of `VERDICTS`; empty for tables and what is absent.
    note : the observation.
    other_data : why the numbers of a table are of other people than the paper's, so that none is
        expected to agree.
    test : the test that shows it.
    quick : words that turn the command into a quick look; None if it has none.
    """

    item: str
    what: str
    place: str
    ours: str = ""
    differs: str = ""
    table: str = ""
    figure: str = ""
    command: str = ""
    code: str = ""
    dataset: str = ""
    words: str = ""
    absent: str = ""
    verdict: str = ""
    note: str = ""
    other_data: str = ""
    test: str = ""
    quick: str | None = ""

    @property
    def kind(self) -> str:
        """Which of `ANSWERS` it has."""
        (kind,) = (name for name in ANSWERS if getattr(self, name))
        return kind

    @property
    def is_claim(self) -> bool:
        """Whether it is a claim, which has a verdict of its own also where a table shows it."""
        return self.item.startswith("Claim")

    @property
    def is_counted(self) -> bool:
        """Whether its verdict is counted from the numbers of a table."""
        return self.kind == "table" and not self.is_claim

    def command_of(self, paper: str) -> str:
        """Return the command line that answers the row, or nothing."""
        if self.kind in ("table", "figure"):
            name = getattr(self, self.kind)
            return f"fairbench paper {paper} {self.kind}={name} run=true"
        return self.command

    def arguments(self, *, quick: bool) -> list[str] | None:
        """Return the words after ``python`` in its command; None if a quick look leaves it out."""
        if quick and self.quick is None:
            return None
        _, *words = shlex.split(self.command)
        return [*words, *(shlex.split(self.quick or "") if quick else [])]


_NAMES = {field.name for field in fields(Row)}


def contents(paper: Paper) -> list[Row]:
    """Read the rows of a paper, in the order of the work.

    Raises
    ------
    UserError : a row that is not as it must be; names file and row.
    """
    path = paper.folder / "contents.yaml"
    if not path.is_file():
        raise UserError(f"{paper.name} has no contents.yaml, which lists its tables and figures")
    rows = [_row(entry, path) for entry in yaml.safe_load(path.read_text(encoding="utf-8"))]
    names = [row.item for row in rows]
    tables = [row.table for row in rows if row.is_counted]
    if twice := {table for table in tables if tables.count(table) > 1}:
        raise UserError(f"{path}: table {min(twice)} stands there twice")
    if twice := {name for name in names if names.count(name) > 1}:
        raise UserError(f"{path}: '{min(twice)}' stands there twice")
    for kind, mapped in (("table", paper.tables), ("figure", paper.figures)):
        listed = {getattr(row, kind) for row in rows} - {""}
        if different := listed ^ set(mapped):
            raise UserError(
                f"{path}: {kind} {min(different)} must stand both there and in mapping.yaml"
            )
    return rows


def _row(entry: dict[str, object], path: Path) -> Row:
    """Return a row of ``contents.yaml``, checked."""
    if unknown := set(entry) - _NAMES:
        raise unknown_name(f"entry of {path}", min(unknown), _NAMES)
    quick = None if entry.get("quick") is False else str(entry.get("quick", ""))
    texts = {name: " ".join(str(text).split()) for name, text in entry.items() if name != "quick"}
    row = Row(**{"item": "", "what": "", "place": "", **texts}, quick=quick)
    answers = [name for name in ANSWERS if getattr(row, name)]
    where = f"{path}: '{row.item or entry}'"
    if not (row.item and row.what and row.place and len(answers) == 1):
        raise UserError(f"{where} needs item, what, place, and one of {', '.join(ANSWERS)}")
    if not row.ours and row.kind not in ("words", "absent"):
        raise UserError(f"{where} needs ours: what we run or have")
    judged = row.kind != "absent" and not row.is_counted
    if judged and row.verdict not in VERDICTS:
        raise UserError(f"{where} needs a verdict: {', '.join(VERDICTS)}")
    if not judged and row.verdict:
        raise UserError(f"{where} takes no verdict: that of a table is counted, and absent is one")
    if row.other_data and row.kind != "table":
        raise UserError(f"{where}: other_data goes with a table")
    if row.quick != "" and row.kind != "command":
        raise UserError(f"{where}: quick goes with a command")
    return row
