"""The list of rule packs: whose rules they are, of which date, and how far they were read."""

from __future__ import annotations

from datetime import date

from fairbench.audits.dossiers.rulebook import RulePack, pack_names, pack_of, written_day
from fairbench.reporting.document.model import Column, Document, Items, Section
from fairbench.reporting.group_tables import table_of


def list_of_packs(day: date) -> Document:
    """Return a table of all packs as they are on a day, with a sentence on each."""
    packs = [pack_of(name) for name in pack_names()]
    table = table_of(
        packs,
        [
            ("name", Column("dossier")),
            ("jurisdiction", Column("jurisdiction")),
            (lambda pack: pack.status_on(day), Column("status")),
            (lambda pack: pack.version.isoformat(), Column("text dated")),
            (lambda pack: pack.checked.isoformat(), Column("checked on", left_out=1)),
            (lambda pack: pack.review_by.isoformat(), Column("check again by")),
            (lambda pack: _verified(pack, day), Column("verified")),
        ],
        by="",
        caption=(
            "text dated: the date of the rules' text; verified: how many of the rules that hold on "
            "that day were checked against a published text"
        ),
    )
    sentences = [sentence for pack in packs for sentence in _description(pack, day)]
    title = f"Rules of dossiers, as of {written_day(day)}"
    return Document(title, [Section("", [table]), Section("", [Items(sentences)])])


def _verified(pack: RulePack, day: date) -> str:
    if not pack.rules:
        return "no rules"
    rules = pack.on(day)
    return f"{sum(rule.verified for rule in rules)} of {len(rules)}"


def _description(pack: RulePack, day: date) -> list[str]:
    said = [*pack.warnings(day), *pack.unverified(day)] if pack.rules else []
    return [f"{pack.name}: {pack.title}. {pack.about}", *(f"{pack.name}: {text}" for text in said)]
