"""What each dossier is asked for, and by which rule: the lists of ``facts.toml``, and answers."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any

from fairbench.core.errors import unknown_name
from fairbench.data.named_texts import read_named_texts

MEASURED, GIVEN, MISSING = "measured", "given", "missing"


@dataclass(frozen=True)
class Fact:
    """One thing that is asked for.

    Attributes
    ----------
    key : its name in the JSON, and in a file of facts. what : what is asked for. source : where.
    status : whether the predictions answer it, somebody has, or nobody. answer : in words.
    """

    key: str
    what: str
    source: str
    status: str = MISSING
    answer: str = ""

    def answered(self, answer: str) -> Fact:
        """Return the fact with its answer, or without one where people have not said it."""
        status = self.status if self.status == MEASURED else GIVEN if answer else MISSING
        return replace(self, status=status, answer=answer)


def facts_of(kind: str) -> list[Fact]:
    """Return what a dossier is asked for, in the order it is told, without answers."""
    return [Fact(key, *about) for key, about in _lists()[kind].items()]


def ll144_facts(rate: str, columns: Mapping[str, str]) -> list[Fact]:
    """Return what Local Law 144 asks for of the categories of columns.

    Parameters
    ----------
    rate : ``selection rate`` or ``scoring rate``. columns : ``sex``, ``race`` and ``both`` -> name.
    """
    names = {"rate": rate, **columns, **_lists()["paragraphs"][rate]}
    return [
        replace(fact, what=fact.what.format(**names), source=fact.source.format(**names))
        for fact in facts_of("ll144")
    ]


def _lists() -> dict[str, Any]:
    text = files("fairbench.audits.dossiers").joinpath("facts.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def names_told(facts: Sequence[Fact]) -> list[str]:
    """Return the names of the facts that only people can tell."""
    return [fact.key for fact in facts if fact.status != MEASURED]


def read_facts(path: str, facts: Sequence[Fact]) -> dict[str, str]:
    """Return what people say of a model, by the names of facts; nothing where there is no file.

    Parameters
    ----------
    facts : what is asked for; only what is not measured can be given.

    Raises
    ------
    UserError : a file that cannot be read, or a name that the dossier does not ask for.
    """
    told, valid = read_named_texts(path, "facts") if path else {}, names_told(facts)
    for name in told:
        if name not in valid:
            raise unknown_name("fact", name, valid)
    return told
