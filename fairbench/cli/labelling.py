"""``python audit.py next``, ``label`` and ``report``: labels where they help most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from fairbench.audit.labelling.answering import checked, pairs_in, pairs_of, store
from fairbench.audit.labelling.beginning import begin, go_on, resume, with_epsilon
from fairbench.audit.labelling.next_rows import next_rows
from fairbench.audit.labelling.session import open_session
from fairbench.audit.labelling.show import print_next, progress
from fairbench.audit.labelling.sitting import sit
from fairbench.audit.labelling.words import Words, split
from fairbench.audit.options import Options
from fairbench.audit.reading import AuditTable
from fairbench.core.checks import check_choice
from fairbench.core.errors import UserError


def labelling_command(command: str, words: Sequence[str]) -> tuple[Options, AuditTable] | None:
    """Do what a command says; return what a report is to be made of, if it is that.

    Raises
    ------
    UserError : anything about the words, the state or the predictions that the user can mend.
    """
    given = split(command, words)
    if command == "report":
        session = resume(given)
        return with_epsilon(session.state.options, given), session.audited()
    if command == "next":
        _next(given)
    else:
        _label(given)
    return None


def _next(words: Words) -> None:
    number, part = words.number, words.part
    session = go_on(words) if words.file.exists() else begin(words)
    print_next(session, next_rows(session, number, part), words.file.path)


def _label(words: Words) -> None:
    given, file = words.given, words.file
    overwrite = given.get("overwrite", "false")
    check_choice("overwrite", overwrite, ("true", "false"))
    part, session = words.part, resume(words)
    pairs = _pairs(words, session.state.options)
    if not pairs and "labels" not in given:
        sit(file, session, part)
        return
    new = store(file, session, checked(session, pairs), overwrite=overwrite == "true")
    session = open_session(replace(file.read(), options=session.state.options))
    again = f", {len(pairs) - len(new)} were there already" if len(new) < len(pairs) else ""
    print(f"{len(new)} stored{again}: {progress(session)}.")


def _pairs(words: Words, options: Options) -> dict[int, str]:
    """Return the labels on the command line and in the file that it names."""
    others = ("state", "labels", "overwrite", "part")
    pairs = pairs_of([pair for pair in words.pairs if pair[0] not in others])
    if "labels" in words.given:
        for row, label in pairs_in(Path(words.given["labels"]), options.target).items():
            if pairs.setdefault(row, label) != label:
                raise UserError(f"row {row} is given two labels")
    return pairs
