"""Answers that people give to the rules of a pack, where a measurement cannot."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from typing import Any

from fairbench.audits.dossiers.rulebook import MEASURE, Rule
from fairbench.core.errors import unknown_name
from fairbench.data.named_texts import read_named_texts

MEASURED, GIVEN, MISSING = "measured", "given", "missing"


@dataclass(frozen=True)
class AnsweredRule:
    """A rule, what it asks for in words, and the answer; empty where nobody gave it."""

    rule: Rule
    what: str
    text: str = ""

    @property
    def status(self) -> str:
        """Whether the predictions answer it, somebody has, or nobody."""
        return MEASURED if self.rule.asks == MEASURE else GIVEN if self.text else MISSING

    def applies(self, day: date) -> bool:
        """Whether the rule applies on a day already."""
        return self.rule.effective <= day

    def plain(self, day: date) -> dict[str, Any]:
        """Return the rule and its answer in plain values, for the JSON."""
        rule = self.rule
        source = rule.source
        return {
            "key": rule.key,
            "asks": rule.asks,
            "what": self.what,
            "citation": rule.citation,
            "quote": rule.quote,
            "source": source
            and {
                "title": source.title,
                "address": source.address,
                "text_date": source.text_date.isoformat(),
            },
            "effective": rule.effective.isoformat(),
            "ends": rule.ends and rule.ends.isoformat(),
            "applies": self.applies(day),
            "status": self.status,
            "answer": self.text,
        }


def names_told(rules: Iterable[Rule]) -> list[str]:
    """Return the names of what only people can tell."""
    return [rule.key for rule in rules if rule.asks != MEASURE]


def read_facts(path: str, rules: Iterable[Rule]) -> dict[str, str]:
    """Return what people say of a model, by the names of rules; nothing where there is no file.

    Parameters
    ----------
    rules : what is asked for; only what is not measured can be given.

    Raises
    ------
    UserError : if the file cannot be read, or has a name that the dossier does not ask for.
    """
    human_answers = read_named_texts(path, "facts") if path else {}
    valid = names_told(rules)
    for name in human_answers:
        if name not in valid:
            raise unknown_name("fact", name, valid)
    return human_answers
