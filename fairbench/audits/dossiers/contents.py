"""What dossiers have in common: a document that begins with what is asked for, and the answers."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import Any

from fairbench.audits.dossiers.facts import GIVEN, MEASURED, MISSING, AnsweredRule
from fairbench.audits.dossiers.rulebook import RulePack, written_day
from fairbench.audits.question import Options
from fairbench.core import VERSION
from fairbench.reporting.document.making import made_from
from fairbench.reporting.document.model import (
    Column,
    Details,
    Document,
    ExecutiveSummary,
    Paragraph,
    Section,
    Table,
    TableCell,
    Verdict,
)
from fairbench.reporting.group_tables import table_of

NOTICE = (
    "These are measurements, and what people said. Whether a law or a rule is kept is for "
    "people to judge, who know more than is here."
)
NOT_VERIFIED = "not verified: no published text was found"
_STYLES = {MEASURED: "small", GIVEN: "assumed", MISSING: "large"}


def dossier(
    pack: RulePack,
    measured: Document,
    options: Options,
    answers: Mapping[str, str],
    day: date,
    *,
    about: str = "",
    names: Mapping[str, str] | None = None,
    without: Collection[str] = (),
) -> Document:
    """Return a document of measurements, with what is asked for and the answers before them.

    Parameters
    ----------
    pack : the rules.
    measured : the document of what was measured.
    answers : the answers to the rules by their keys, those of the predictions and of people.
    day : the day as of which the rules are taken.
    about : ``scores`` or ``decisions``, which leaves out rules that are about the other.
    names : what replaces the names in braces in the rules.
    without : keys of rules that do not apply here.
    """
    answered_rules = [
        AnsweredRule(rule, rule.what.format(**(names or {})), answers.get(rule.key, ""))
        for rule in pack.on(day)
        if rule.key not in without and rule.when in ("", about)
    ]
    unseen, todo = _on_missing(answered_rules)
    summary = measured.summary or ExecutiveSummary([])
    verdict = measured.verdict or Verdict((), ())
    warnings = list(pack.warnings(day))
    if verdict.warning:
        warnings.append(verdict.warning)
    return replace(
        measured,
        verdict=replace(verdict, warning=" ".join(warnings)),
        sections=[
            Section("What is asked for", [_questions_table(answered_rules, day)], name="asked"),
            *measured.sections,
            Section(
                "The rules in their own words",
                [Details(_READ, [_quotations(answered_rules)], is_open=True)],
                name="rules",
            ),
        ],
        lead=[Paragraph(f"Of the predictions in {options.path.name}.", "note"), *measured.lead],
        origin=measured.origin or f"fairbench {VERSION}; seed {options.seed}.",
        made=measured.made or made_from(options.path, options.seed),
        summary=replace(
            summary,
            sure=[*pack.unverified(day), *summary.sure],
            unseen=[*unseen, *summary.unseen],
            todo=[*todo, *summary.todo],
            audited=[("Rules", pack.standing(day)), *summary.audited],
        ),
        data={
            "dossier": pack.name,
            "version": VERSION,
            "file": options.path.name,
            "rules": _plain_pack(pack, day, answered_rules),
            "asked": [answer.plain(day) for answer in answered_rules],
            **measured.data,
        },
    )


def _on_missing(asked: Sequence[AnsweredRule]) -> tuple[list[str], list[str]]:
    """Return what is not seen here, and what to do: above all, answers that only people have."""
    missing = [answer for answer in asked if answer.status == MISSING]
    if not missing:
        return [NOTICE], [_AGAIN]
    keys = ", ".join(answer.rule.key for answer in missing)
    unseen = (
        f"Missing, as only people can say it: {len(missing)} of {len(asked)} answers, which are "
        "listed under what to do next."
    )
    todo = (
        "Answer the questions of the section 'What is asked for' in a text file, one per line, "
        f"such as '{missing[0].rule.key}: ...', and run this again with facts=FILE. Missing: "
        f"{keys}."
    )
    return [NOTICE, unseen], [todo, _AGAIN]


def _plain_pack(pack: RulePack, day: date, asked: Sequence[AnsweredRule]) -> dict[str, Any]:
    """Return a pack of rules in plain values, for the JSON."""
    return {
        "title": pack.title,
        "jurisdiction": pack.jurisdiction,
        "version": pack.version.isoformat(),
        "checked": pack.checked.isoformat(),
        "review_by": pack.review_by.isoformat(),
        "status": pack.status_on(day),
        "about": pack.about,
        "as_of": day.isoformat(),
        "verified": sum(answer.rule.verified for answer in asked),
        "asked": len(asked),
        "warnings": [*pack.warnings(day), *pack.unverified(day)],
    }


_READ = "Each rule's words, the text that they are from, its date, and when the rule applies"
_AGAIN = "Repeat this when the model changes, or the people it is used on."


def _questions_table(asked: Sequence[AnsweredRule], day: date) -> Table:
    """Return the table of what is asked for, by which rule, and the answers."""

    def cited(answer: AnsweredRule) -> TableCell:
        since = f"from {written_day(answer.rule.effective)}"
        return TableCell(answer.rule.citation, note="" if answer.applies(day) else since)

    return table_of(
        asked,
        [
            ("what", Column("asked for")),
            (cited, Column("asked by")),
            (
                lambda answer: TableCell(answer.status, mark=_STYLES[answer.status]),
                Column("status"),
            ),
            ("text", Column("answer")),
        ],
        by="",
    )


def _quotations(asked: Sequence[AnsweredRule]) -> Table:
    """Return the sentences that are quoted, each with its text and the date of that."""
    places: dict[tuple[str, str], AnsweredRule] = {}
    for answer in asked:
        places.setdefault((answer.rule.citation, answer.rule.quote), answer)
    titles = dict.fromkeys(answer.rule.source for answer in places.values() if answer.rule.source)
    numbers = {source: place for place, source in enumerate(titles, start=1)}
    texts = "; ".join(
        f"[{place}] {source.title}, {source.address}" for source, place in numbers.items()
    )

    def text_date(answer: AnsweredRule) -> str:
        return answer.rule.source.text_date.isoformat() if answer.rule.source else ""

    def quotation(answer: AnsweredRule) -> str:
        rule = answer.rule
        return f"“{rule.quote}” [{numbers[rule.source]}]" if rule.source else NOT_VERIFIED

    return table_of(
        list(places.values()),
        [
            (lambda answer: answer.rule.citation, Column("asked by")),
            (quotation, Column("words")),
            (text_date, Column("text dated")),
            (lambda answer: answer.rule.effective.isoformat(), Column("applies from")),
        ],
        by="",
        caption=f"quoted texts: {texts or 'none'}",
    )
