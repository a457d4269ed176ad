"""Explain a term of the commands, tables and pages, or a choice of a run, in a sentence.

Terms are those of the glossary: names of metrics, statuses, verdicts, and words that have a meaning
of their own here. Choices are those of a run, such as ensemble; learner, intervention or method
lists all of them. Without a term, the glossary's terms are listed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fairbench.cli import choices
from fairbench.cli.command import Command, table
from fairbench.components import HOME
from fairbench.core.errors import UserError, nearest
from fairbench.core.formats import shortened
from fairbench.core.options import option

SECTION = "Results, MLflow and terms"

_GLOSSARY_PATHS = (HOME / "docs" / "glossary.md", Path(__file__).parents[1] / "glossary.md")


@dataclass(frozen=True)
class ExplainOptions:
    """Which term is explained."""

    term: tuple[str, ...] = option((), "What is to be explained, such as calibration or ensemble.",
                                   argument="TERM")  # fmt: skip


def glossary() -> dict[str, str]:
    """Return every term with its sentence."""
    path = next(candidate for candidate in _GLOSSARY_PATHS if candidate.is_file())
    rows = (line.strip("| ").split(" | ") for line in path.read_text(encoding="utf-8").splitlines()
            if line.startswith("| "))  # fmt: skip
    terms = {row[0]: row[1] for row in rows if len(row) == 2}
    return {term: terms[term] for term in list(terms)[2:]}  # without the header of the table


def _aliases(terms: Mapping[str, str]) -> dict[str, str]:
    """Return other names of terms, as ``(also: recall, TPR)`` gives them, with the terms."""
    return {
        alias.lower(): term
        for term, text in terms.items()
        for names in re.findall(r"\(also: ([^)]*)\)", text)
        for alias in names.split(", ")
    }


def _choices(name: str) -> list[tuple[str, str]]:
    """Return the choices of a run that have a name, such as ``method=ensemble``, with sentences."""
    name = name.replace(" ", "_")
    return [
        (f"{group}={name}", f"{dict(choices.sentences(group))[name].removesuffix('.')}. Options: "
         f"fairbench run {group}={name} --help")
        for group in choices.groups_with(name)
    ]  # fmt: skip


def explain(options: ExplainOptions) -> None:
    """Print a term, a choice of a run, or those whose names have it, or all.

    Raises
    ------
    UserError : there is none; names the nearest.
    """
    terms, term_text = glossary(), " ".join(options.term).replace("_", " ").replace("-", " ")
    if not term_text:
        print("fairbench explain TERM says what one of these terms means:")
        print("\n".join(terms))
        return
    wanted = term_text.lower()
    term = _aliases(terms).get(wanted, wanted)
    rows = [
        row for row in terms.items() if row[0].lower().replace("-", " ") == term.replace("-", " ")
    ]
    rows += _choices(wanted)
    if wanted in choices.GROUPS:
        rows += choices.sentences(wanted)
    rows = rows or [row for row in terms.items() if wanted in row[0].lower().replace("-", " ")]
    if not rows:
        names = [name.partition(" (")[0] for name in terms] + list(_aliases(terms))
        names += [name for group in choices.GROUPS for name in choices.names(group)]
        similar = nearest(wanted, names)
        hint = f"did you mean {' or '.join(similar)}? " if similar else ""
        raise UserError(f"unknown term '{shortened(term_text)}': {hint}fairbench explain lists all")
    print(table(rows))


COMMAND = Command(
    ExplainOptions,
    explain,
    examples=(
        "fairbench explain",
        "fairbench explain calibration",
        "fairbench explain cannot be known",
        "fairbench explain method",
    ),
)
