"""Rule packs: what a law or a format asks for, sentence by sentence, with sources and dates.

A pack is a file ``rules/NAME.toml``. Its table ``[pack]`` says whose rules these are, of which date
their text is, when it was read, and by when it has to be read again. ``[sources.NAME]`` names the
texts that were read. Each ``[[rule]]`` says what it asks, where, in which words, and from when to
when. A rule without a quotation is not verified: no text of it was found.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cache
from importlib.resources import files
from typing import Any

from fairbench.core.errors import DataError, UserError, check_choice

MEASURE, FACT, DOCUMENT = "measure", "fact", "document"
ASKS = (MEASURE, FACT, DOCUMENT)
SCORES, DECISIONS = "scores", "decisions"  # what a rule may be about, where not about both
IN_FORCE = "in force"
LONGEST_QUOTE = 40  # words
_DATE = re.compile(r"\d{4}-\d\d-\d\d")


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

    def overlaps(self, other: Rule) -> bool:
        """Whether both are the same question on some day."""
        alike = self.when == other.when or not (self.when and other.when)
        first, second = sorted((self, other), key=lambda rule: rule.effective)
        return (
            self.key == other.key
            and alike
            and (first.ends is None or second.effective < first.ends)
        )


@dataclass(frozen=True)
class RulePack:
    """The rules of one law or format.

    Attributes
    ----------
    version : the date of the text.
    checked : the day on which it was read.
    review_by : the day after which it has to be read again.
    status : whether the law applies, such as ``in force``.
    about : a sentence on the status.
    """

    name: str
    title: str
    jurisdiction: str
    version: date
    checked: date
    review_by: date
    status: str
    about: str
    rules: Sequence[Rule] = ()

    @property
    def verified(self) -> int:
        """How many of its rules were read in a text."""
        return sum(rule.verified for rule in self.rules)

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
        rules = self.on(day)
        verified = sum(rule.verified for rule in rules)
        return (
            f"{self.title} ({self.jurisdiction}); {self.status_on(day)}; text dated "
            f"{written_day(self.version)}, checked on {written_day(self.checked)}; {verified} of "
            f"{len(rules)} items verified; rules as of {written_day(day)}. {self.about}"
        )


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
    try:
        if not _DATE.fullmatch(text):
            raise ValueError
        return date.fromisoformat(text)
    except ValueError as error:
        raise UserError(
            f"as_of={text}: write a day as year-month-day, such as 2026-11-23"
        ) from error


def written_day(day: date) -> str:
    """Return a day in words, such as 6 May 2023."""
    return f"{day.day} {day:%B %Y}"


def pack_names() -> list[str]:
    """Return the names of all packs."""
    return sorted(
        entry.name.removesuffix(".toml")
        for entry in _folder().iterdir()
        if entry.name.endswith(".toml")
    )


@cache
def pack_of(name: str) -> RulePack:
    """Return a pack by its name.

    Raises
    ------
    UserError : there is none of that name, or its file is not right.
    """
    check_choice("rule pack", name, pack_names())
    return read_pack(name, _folder().joinpath(f"{name}.toml").read_text(encoding="utf-8"))


def _folder() -> Any:
    return files("fairbench.audits.dossiers").joinpath("rules")


def read_pack(name: str, text: str) -> RulePack:
    """Return the pack that a TOML text holds.

    Parameters
    ----------
    name : the name of the file, without its ending; the pack has the same name.
    text : the content of the file.

    Raises
    ------
    DataError : a field that is missing, unknown or of another type, a quotation that is too long or
        without a source, dates in another order, or two rules that are the same on some day.
    """
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise DataError(f"rules/{name}.toml is not TOML: {error}") from error
    fields = content.get("pack", {})
    _check_fields(f"rules/{name}.toml, [pack]", fields, _PACK)
    sources = {}
    for source, about in content.get("sources", {}).items():
        _check_fields(f"rules/{name}.toml, [sources.{source}]", about, _SOURCE)
        sources[source] = RuleSource(**about)
    rules = [
        _rule(f"rules/{name}.toml, rule {number}", about, sources)
        for number, about in enumerate(content.get("rule", []), start=1)
    ]
    pack = RulePack(**fields, rules=tuple(rules))
    _check_pack(f"rules/{name}.toml", name, pack, sources.values())
    return pack


_PACK: Mapping[str, type] = {
    **dict.fromkeys(("name", "title", "jurisdiction", "status", "about"), str),
    **dict.fromkeys(("version", "checked", "review_by"), date),
}
_SOURCE: Mapping[str, type] = {"title": str, "address": str, "text_date": date}
_RULE: Mapping[str, type] = {
    **dict.fromkeys(("key", "asks", "what", "citation"), str),
    "effective": date,
}
_OPTIONAL: Mapping[str, type] = {"ends": date, **dict.fromkeys(("quote", "source", "when"), str)}


def _check_fields(
    where: str,
    fields: Mapping[str, Any],
    needed: Mapping[str, type],
    some: Mapping[str, type] | None = None,
) -> None:
    """Refuse fields that are missing, unknown, empty or of another type."""
    valid = {**needed, **(some or {})}
    for field in needed:
        if field not in fields:
            raise DataError(f"{where}: '{field}' is missing")
    for field, value in fields.items():
        if field not in valid:
            raise DataError(f"{where}: unknown field '{field}'; valid: {', '.join(valid)}")
        # A date with a time of day is a date for Python, and is none here.
        if type(value) is not valid[field]:
            kind = "a date, such as 2026-11-23" if valid[field] is date else "a text in quotes"
            raise DataError(f"{where}: {field} = {value}: it has to be {kind}")
        if value == "":
            raise DataError(f"{where}: '{field}' is empty")


def _rule(where: str, fields: Mapping[str, Any], sources: Mapping[str, RuleSource]) -> Rule:
    """Return the rule that fields of a file describe, after checking them."""
    _check_fields(where, fields, _RULE, _OPTIONAL)
    where = f"{where} ({fields['key']})"
    quote = fields.get("quote")
    source = fields.get("source")
    if fields["asks"] not in ASKS:
        raise DataError(f"{where}: asks = {fields['asks']}; valid: {', '.join(ASKS)}")
    if fields.get("when", SCORES) not in (SCORES, DECISIONS):
        raise DataError(f"{where}: when = {fields['when']}; valid: {SCORES}, {DECISIONS}")
    if (quote is None) != (source is None):
        raise DataError(f"{where}: a quote needs its source, and a source its quote")
    if source is not None and source not in sources:
        raise DataError(f"{where}: there is no [sources.{source}]")
    if quote is not None and len(quote.split()) > LONGEST_QUOTE:
        words = len(quote.split())
        raise DataError(f"{where}: the quote has {words} words, and may have {LONGEST_QUOTE}")
    rule = Rule(**{**fields, "source": sources.get(str(source))})
    if rule.ends is not None and rule.ends <= rule.effective:
        raise DataError(f"{where}: it ends on {rule.ends}, before it is effective")
    return rule


def _check_pack(where: str, name: str, pack: RulePack, sources: Iterable[RuleSource]) -> None:
    """Refuse a pack of another name than its file, or whose dates contradict one another."""
    if pack.name != name:
        raise DataError(f"{where}: its name is {pack.name}, and that of its file {name}")
    if pack.review_by < pack.checked:
        raise DataError(f"{where}: review_by is before checked")
    if late := [source for source in sources if source.text_date > pack.checked]:
        raise DataError(f"{where}: the text '{late[0].title}' is later than the day it was read")
    for index, rule in enumerate(pack.rules):
        if any(rule.overlaps(other) for other in pack.rules[:index]):
            raise DataError(f"{where}: two rules '{rule.key}' hold on the same day")
