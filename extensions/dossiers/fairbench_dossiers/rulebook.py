"""Rule packs: what a law or a format asks for, sentence by sentence, with sources and dates.

A pack is a file ``rules/NAME.toml``. Its table ``[pack]`` says whose rules these are, of which date
their text is, when it was read, and by when it has to be read again. ``[sources.NAME]`` names the
texts that were read. Each ``[[rule]]`` says what it asks, where, in which words, and from when to
when. A rule without a quotation is not verified: no text of it was found. What only people can tell
of a model is in a file of facts (:func:`read_facts`).
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cache
from importlib.resources import files
from pathlib import Path

from fairbench.core.errors import UserError, check_choice, refused, unknown_name

MEASURE, FACT, DOCUMENT = "measure", "fact", "document"
SCORES, DECISIONS = "scores", "decisions"  # what a rule may be about, where not about both
_FOLDER = files("fairbench_dossiers").joinpath("rules")


@dataclass(frozen=True)
class RuleSource:
    """A text that was read: its title, its address, and the date of the text."""

    title: str
    address: str
    text_date: date


@dataclass(frozen=True)
class Rule:
    """One thing that a pack asks for.

    Attributes
    ----------
    key : its name in the JSON, and in a file of facts.
    asks : a measure, which the predictions answer; a fact or a document, which people answer.
    what : what is asked for; a dossier fills in the names in braces.
    citation : the article or section that asks for it.
    quote : its words, verbatim; empty where no text was found.
    source : the text that was read; None where none was found.
    effective : the first day on which it applies.
    ends : the first day on which it no longer applies.
    when : ``scores`` or ``decisions``, where a rule is about one of them alone.
    """

    key: str
    asks: str
    what: str
    citation: str
    effective: date
    ends: date | None = None
    quote: str = ""
    source: RuleSource | None = None
    when: str = ""

    @property
    def verified(self) -> bool:
        """Whether its words were read."""
        return bool(self.quote)


@dataclass(frozen=True)
class RulePack:
    """The rules of one law or format.

    Attributes
    ----------
    status : whether the law applies, such as ``in force``.
    about : a sentence on the status.
    version : the date of the text.
    checked : the day on which it was read.
    review_by : the day after which it has to be read again.
    """

    name: str
    title: str
    jurisdiction: str
    status: str
    about: str
    version: date
    checked: date
    review_by: date
    rules: Sequence[Rule] = ()

    def on(self, day: date) -> list[Rule]:
        """Return each rule in the version of a day: the one in force, or else the next to come.

        Raises
        ------
        UserError : nothing of it is in force on that day, nor will be.
        """
        kept: dict[tuple[str, str], Rule] = {}
        for rule in self.rules:
            if rule.ends is not None and rule.ends <= day:
                continue
            before = kept.setdefault((rule.key, rule.when), rule)
            if before.effective > rule.effective:
                kept[rule.key, rule.when] = rule
        if not kept:
            raise UserError(f"{self.name}: {self.title}: {self.status}. {self.about}")
        return list(kept.values())

    def warnings(self, day: date) -> list[str]:
        """Return what a reader has to know before relying on the pack on a day.

        That it is past its date, that the day is before its text, and that some of it does not
        apply yet.
        """
        rules = self.on(day)
        warnings = []
        if day > self.review_by:
            warnings.append(
                f"These rules were checked on {written_day(self.checked)} and were to be checked "
                f"again by {written_day(self.review_by)}: on {written_day(day)} they may no longer "
                "hold."
            )
        if day < self.version:
            warnings.append(
                f"These rules are dated {written_day(self.version)}: those that held on "
                f"{written_day(day)} may differ."
            )
        if later := sorted({rule.effective for rule in rules if rule.effective > day}):
            waiting = sum(rule.effective > day for rule in rules)
            days = " and ".join(written_day(start) for start in later)
            warnings.append(f"Before {days}, {waiting} of {len(rules)} rules do not apply.")
        return warnings

    def unverified(self, day: date) -> list[str]:
        """Return a sentence that names the rules whose words were not read; none if all were."""
        rules = self.on(day)
        unread = [rule for rule in rules if not rule.verified]
        if not unread:
            return []
        named = "; ".join(f"{rule.what} ({rule.citation})" for rule in unread)
        items = "item" if len(rules) == 1 else "items"
        return [
            f"{len(unread)} of {len(rules)} {items} could not be checked against a published text: "
            f"{named}."
        ]

    def status_on(self, day: date) -> str:
        """Return its status, unless nothing of it applies yet on a day."""
        waits = self.rules and all(rule.effective > day for rule in self.rules)
        return "not yet in force" if waits else self.status

    def standing(self, day: date) -> str:
        """Return whose rules these are, whether they are in force, and how many are verified."""
        return (
            f"{self.title} ({self.jurisdiction}); {self.status_on(day)}; text dated "
            f"{written_day(self.version)}, checked on {written_day(self.checked)}; "
            f"{self.verified(day)} items verified; rules as of {written_day(day)}. {self.about}"
        )

    def verified(self, day: date) -> str:
        """Return how many of its rules were read in a text, such as "7 of 8"."""
        rules = self.on(day)
        return f"{sum(rule.verified for rule in rules)} of {len(rules)}"


def today() -> date:
    """Return the day that it is."""
    return datetime.now(UTC).date()


def day_of(text: str) -> date:
    """Return the day that ``as_of=`` names; today, where it names none.

    Raises
    ------
    UserError : it is no day in the form 2026-11-23.
    """
    if not text:
        return today()
    with suppress(ValueError):
        if (day := date.fromisoformat(text)).isoformat() == text:
            return day
    raise UserError(f"as_of={text}: write a day as year-month-day, such as 2026-11-23")


def written_day(day: date) -> str:
    """Return a day in words, such as 6 May 2023."""
    return f"{day.day} {day:%B %Y}"


def pack_names() -> list[str]:
    """Return the names of all packs."""
    return sorted(entry.name.removesuffix(".toml") for entry in _FOLDER.iterdir())


@cache
def pack_of(name: str) -> RulePack:
    """Return a pack by its name.

    Raises
    ------
    UserError : there is none of that name.
    """
    check_choice("rule pack", name, pack_names())
    return read_pack(_FOLDER.joinpath(f"{name}.toml").read_text(encoding="utf-8"))


def read_pack(text: str) -> RulePack:
    """Return the pack that a TOML text of this project holds."""
    content = tomllib.loads(text)
    sources = {name: RuleSource(**about) for name, about in content.get("sources", {}).items()}
    rules = [
        Rule(**{**about, "source": sources[about["source"]] if "source" in about else None})
        for about in content.get("rule", [])
    ]
    return RulePack(**content["pack"], rules=tuple(rules))


def names_told(rules: Iterable[Rule]) -> list[str]:
    """Return the names of what only people can tell."""
    return [rule.key for rule in rules if rule.asks != MEASURE]


def read_facts(path: str, rules: Iterable[Rule]) -> dict[str, str]:
    """Return what people say of a model, by the names of rules; nothing where there is no file.

    Parameters
    ----------
    path : a file with ``name: text`` on each line, of which blank ones and those that begin with
        ``#`` are left out; or one object of texts in JSON.
    rules : what is asked for; only what is not measured can be given.

    Raises
    ------
    UserError : no such file, a line without a name, JSON that is not one object of texts, or a name
        that the rules do not ask for.
    """
    if not path:
        return {}
    where = f"facts={path}"
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = refused(error) if isinstance(error, OSError) else "it is no text in UTF-8"
        raise UserError(f"{where} cannot be read: {reason}") from error
    texts = (_of_json if Path(path).suffix == ".json" else _of_lines)(text, where)
    valid = names_told(rules)
    if others := [name for name in texts if name not in valid]:
        raise unknown_name("fact", others[0], valid)
    return texts


def _of_json(text: str, where: str) -> dict[str, str]:
    """Return the texts of a JSON object; `where` names the file in messages."""
    try:
        texts = json.loads(text)
    except json.JSONDecodeError as error:
        raise UserError(f"{where} is not JSON: {error}") from error
    if not isinstance(texts, dict) or not all(isinstance(value, str) for value in texts.values()):
        raise UserError(f'{where}: what is needed is one object of texts, {{"name": "text"}}')
    return texts


def _of_lines(text: str, where: str) -> dict[str, str]:
    """Return the texts of lines ``name: text``; `where` names the file in messages."""
    texts = {}
    for number, line in enumerate(text.splitlines(), start=1):
        name, colon, value = line.partition(":")
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if not colon:
            raise UserError(f"{where}, line {number}: what is needed is 'name: text'")
        texts[name.strip()] = value.strip()
    return texts
