"""Explain a term of the commands, tables and pages in a sentence.

Terms are those of the glossary: names of metrics, statuses, verdicts, and words that have a meaning
of their own here. Without a term, all of them are listed.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fairbench.cli.command import Command, table
from fairbench.components import HOME
from fairbench.core.errors import UserError, nearest
from fairbench.core.formats import shortened
from fairbench.core.options import option

SECTION = "Results, MLflow and terms"

_PLACES = (HOME / "docs" / "glossary.md", Path(__file__).parents[1] / "glossary.md")


@dataclass(frozen=True)
class ExplainOptions:
    """Which term is explained."""

    term: tuple[str, ...] = option((), "What is to be explained, such as calibration.",
                                   argument="TERM")  # fmt: skip


def glossary() -> dict[str, str]:
    """Return every term with its sentence."""
    path = next(place for place in _PLACES if place.is_file())
    rows = (line.strip("| ").split(" | ") for line in path.read_text(encoding="utf-8").splitlines()
            if line.startswith("| "))  # fmt: skip
    terms = {row[0]: row[1] for row in rows if len(row) == 2}
    return {term: terms[term] for term in list(terms)[2:]}  # without the header of the table


def explain(options: ExplainOptions) -> None:
    """Print a term, or those whose names have it, or all.

    Raises
    ------
    UserError : there is none; names the nearest.
    """
    terms = glossary()
    term_text = " ".join(options.term).replace("_", " ").lower()
    matching = {term: text for term, text in terms.items() if term.lower() == term_text}
    matching = matching or {term: text for term, text in terms.items() if term_text in term.lower()}
    if not matching:
        similar = nearest(term_text, [term.partition(" (")[0] for term in terms])
        hint = f"did you mean {' or '.join(similar)}? " if similar else ""
        raise UserError(f"unknown term '{shortened(term_text)}': {hint}fairbench explain lists all")
    print(table(list(matching.items())) if term_text else "\n".join(matching))


COMMAND = Command(
    ExplainOptions,
    explain,
    examples=(
        "fairbench explain",
        "fairbench explain calibration",
        "fairbench explain cannot be known",
    ),
)
