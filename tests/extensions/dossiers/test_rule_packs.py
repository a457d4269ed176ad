"""Rule packs are right, picked by their day, and say on the first page what is not sure."""

import json
import re
from dataclasses import fields
from datetime import date, timedelta
from html import unescape
from importlib.resources import files
from itertools import combinations

import pandas as pd
import pytest

from fairbench.cli.main import main
from fairbench.core.errors import UserError
from fairbench_dossiers import documents as rulebook
from fairbench_dossiers.documents import (
    DECISIONS,
    DOCUMENT,
    FACT,
    MEASURE,
    SCORES,
    pack_names,
    pack_of,
    read_pack,
)
from fairbench_dossiers.verb import dossiers

LONGEST_QUOTE = 40  # words
PACK = """
[pack]
name = "toy"
title = "A toy"
jurisdiction = "Nowhere"
version = 2020-01-01
checked = 2026-01-01
review_by = 2026-06-01
status = "in force"
about = "A sentence."
[sources.text]
title = "The text"
address = "https://example.org"
text_date = 2020-01-01
"""
RULE = """
[[rule]]
key = "rate"
asks = "measure"
what = "the rate"
citation = "1(a)"
quote = "Calculate the rate."
source = "text"
effective = 2020-01-01
"""
SECOND = RULE.replace("2020-01-01", "2027-01-01").replace("Calculate", "Compute")


def toy(rules=RULE, pack=PACK):
    return read_pack(pack + rules)


def is_typed(record):
    """Say whether each field is a text that is not empty or a date, as it is declared."""
    given = [
        (field, getattr(record, field.name))
        for field in fields(record)
        if field.name not in ("source", "rules") and getattr(record, field.name) != field.default
    ]
    return all(
        # A date with a time of day is a date for Python, and is none here.
        type(value) is (date if str(field.type).startswith("date") else str) and value != ""
        for field, value in given
    )


def hold_together(first, second):
    """Say whether both are the same question on some day."""
    alike = first.when == second.when or not (first.when and second.when)
    first, second = sorted((first, second), key=lambda rule: rule.effective)
    meet = first.ends is None or second.effective < first.ends
    return first.key == second.key and alike and meet


def check_pack(name, text):
    """Check the pack that is in the file of that name."""
    pack = read_pack(text)
    assert is_typed(pack), "a field of another type"
    assert pack.name == name, "another name than that of its file"
    assert pack.review_by >= pack.checked, "review_by is before checked"
    for rule in pack.rules:
        assert is_typed(rule), "a field of another type"
        assert rule.asks in (MEASURE, FACT, DOCUMENT), "asks for something else"
        assert rule.when in ("", SCORES, DECISIONS), "about something else"
        assert len(rule.quote.split()) <= LONGEST_QUOTE, "too long a quote"
        assert bool(rule.quote) == (rule.source is not None), "a quote needs its source"
        assert rule.ends is None or rule.ends > rule.effective, "ends before it is effective"
        if rule.source:
            kinds = {"title": str, "address": str, "text_date": date}
            assert {name: type(part) for name, part in rule.source.items()} == kinds
            assert all(rule.source.values()), "a field is empty"
            assert rule.source["text_date"] <= pack.checked, "later than the day it was read"
    for first, second in combinations(pack.rules, 2):
        assert not hold_together(first, second), "two rules hold on the same day"


@pytest.mark.parametrize("name", pack_names())
def test_a_quotation_is_short_and_has_a_source_with_its_date(name):
    for rule in pack_of(name).rules:
        assert len(rule.quote.split()) <= LONGEST_QUOTE
        assert bool(rule.quote) == (rule.source is not None)
        if rule.source:
            assert rule.source["title"] and rule.source["address"].startswith("http")
            assert rule.source["text_date"] <= pack_of(name).checked


@pytest.mark.parametrize("name", pack_names())
def test_every_pack_is_right(name):
    place = files(rulebook.__package__).joinpath("rules", f"{name}.toml")
    check_pack(name, place.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("rules", "pack", "fault"),
    [
        (RULE.replace('"Calculate the rate."', f'"{"word " * 41}"'), PACK, "too long a quote"),
        (RULE.replace('source = "text"', ""), PACK, "needs its source"),
        (RULE.replace('"text"', '"texts"'), PACK, "texts"),
        (RULE.replace("measure", "guess"), PACK, "asks for something else"),
        (RULE + 'when = "always"', PACK, "about something else"),
        (RULE.replace("= 2020-01-01", '= "2020-01-01"'), PACK, "of another type"),
        (RULE.replace("= 2020-01-01", "= 2020-01-01T00:00:00"), PACK, "of another type"),
        (RULE.replace('"1(a)"', '""'), PACK, "of another type"),
        (RULE + "ends = 2019-01-01", PACK, "before it is effective"),
        (RULE + "fine = 500", PACK, "fine"),
        (RULE.replace('citation = "1(a)"', ""), PACK, "citation"),
        (RULE + RULE, PACK, "two rules"),
        (RULE + SECOND, PACK, "two rules"),
        (RULE + SECOND + 'when = "scores"', PACK, "two rules"),
        (RULE, PACK.replace("2026-06-01", "2025-06-01"), "review_by is before checked"),
        (RULE, PACK.replace("text_date = 2020", "text_date = 2030"), "later than the day"),
        (RULE, PACK.replace('"toy"', '"toys"'), "that of its file"),
        (RULE, "[pack", "Expected"),
    ],
)
def test_the_check_of_packs_finds_each_fault(rules, pack, fault):
    check_pack("toy", PACK + RULE)
    with pytest.raises((AssertionError, TypeError, KeyError, ValueError), match=fault):
        check_pack("toy", pack + rules)


def test_the_version_of_a_rule_is_that_of_the_day():
    pack = toy(RULE + "ends = 2027-01-01\n" + SECOND)
    for day, words in [
        (date(2019, 1, 1), "Calculate"),  # the next that will be
        (date(2026, 12, 31), "Calculate"),
        (date(2027, 1, 1), "Compute"),
    ]:
        (rule,) = pack.on(day)
        assert rule.quote.startswith(words)


def test_what_does_not_apply_yet_is_not_said_to_be_in_force():
    assert toy().status_on(date(2019, 12, 31)) == "not yet in force"
    assert toy().status_on(date(2020, 1, 1)) == "in force"
    assert pack_of("colorado").status_on(date(2022, 1, 1)) == "repealed"


def test_rules_that_have_all_ended_are_refused():
    with pytest.raises(UserError, match="toy: A toy: in force"):
        toy(RULE + "ends = 2021-01-01").on(date(2022, 1, 1))


def test_what_is_not_sure_is_said():
    pack = toy(RULE.replace('quote = "Calculate the rate."\nsource = "text"\n', ""))
    (said,) = pack.unverified(date(2026, 6, 1))
    assert said.startswith("1 of 1 item could not be checked against a published text: ")
    assert said.endswith(" (1(a)).") and not toy().unverified(date(2026, 6, 1))
    assert "may no longer hold" in toy().warnings(date(2026, 6, 2))[0]
    assert not toy().warnings(date(2026, 6, 1))
    assert "Before 1 January 2020" in toy().warnings(date(2019, 1, 1))[-1]


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    place = tmp_path_factory.mktemp("packs")
    frame = pd.DataFrame(
        {
            "sex": ["m", "f"] * 60,
            "race": (["a"] * 3 + ["b"] * 2) * 24,
            "hired": [1, 0, 0, 1, 0, 1] * 20,
            "skilled": [1, 0] * 60,
        }
    )
    frame.to_csv(place / "people.csv", index=False)
    return place


WORDS = {
    "ll144": ["prediction=hired", "sex=sex", "race=race", "favourable=1"],
    "four-fifths": ["prediction=hired", "group=[sex,race]", "favourable=1"],
    "lending": ["prediction=hired", "group=[sex,race]", "favourable=1", "price=[skilled]"],
    "model-card": ["prediction=hired", "target=skilled", "group=[sex]", "favourable=1"],
    "ai-act": ["prediction=hired", "target=skilled", "group=[sex]", "favourable=1"],
}


def made(people, kind, *words):
    out = people / "out"
    asked = [str(people / "people.csv"), *WORDS[kind], *words, f"out={out}"]
    assert main(["dossier", kind, *asked, "formats=[json,html]"]) == 0
    return json.loads((out / f"{kind}.json").read_text()), (out / f"{kind}.html").read_text()


def first_page(html):
    return re.sub(r"<[^>]+>", "", html.partition('id="asked"')[0])


@pytest.mark.thorough
@pytest.mark.parametrize("kind", dossiers())
def test_a_pack_past_its_date_says_so_on_the_first_page(people, kind, monkeypatch, capsys):
    late = pack_of(kind).review_by + timedelta(days=1)
    for_one, page = made(people, kind, f"as_of={late.isoformat()}")
    assert any("may no longer hold" in warning for warning in for_one["rules"]["warnings"])
    assert "may no longer hold" in first_page(page)
    assert "may no longer hold" in " ".join(capsys.readouterr().out.split())
    monkeypatch.setattr(rulebook, "today", lambda: late)
    by_clock, page = made(people, kind)
    assert by_clock["rules"] == for_one["rules"] and "may no longer hold" in first_page(page)
    monkeypatch.undo()
    within, page = made(people, kind, f"as_of={pack_of(kind).checked.isoformat()}")
    assert "may no longer hold" not in json.dumps(within) + first_page(page)


@pytest.mark.parametrize("kind", dossiers())
def test_rules_that_are_not_verified_are_named_on_the_first_page(people, kind, capsys):
    result, page = made(people, kind)
    printed = " ".join(capsys.readouterr().out.split())
    unread = [question for question in result["asked"] if not question["quote"]]
    rules = pack_of(kind).on(rulebook.today())
    assert f"{sum(rule.verified for rule in rules)} of {len(rules)} items verified" in printed
    words = "could not be checked against a published text"
    assert bool(unread) == (words in first_page(page))
    for question in unread:
        assert f"{question['what']} ({question['citation']})" in unescape(first_page(page))


@pytest.mark.parametrize("kind", dossiers())
def test_every_measure_is_answered(people, kind):
    result, _ = made(people, kind)
    for question in result["asked"]:
        if question["asks"] == MEASURE:
            assert question["answer"], question["key"]
        assert question["what"] in json.dumps(result, ensure_ascii=False)


@pytest.mark.parametrize("text", ["23.11.2026", "2026-11", "20261123", "2026-02-30", "today"])
@pytest.mark.parametrize("words", [["list"], ["four-fifths", "nobody.csv"]])
def test_other_forms_of_a_day_are_refused_in_a_line(capsys, text, words):
    assert main(["dossier", *words, f"as_of={text}"]) == 2
    error = capsys.readouterr().err
    assert f"as_of={text}" in error and "2026-11-23" in error and error.count("\n") == 1


def test_the_list_names_every_pack_and_says_what_was_repealed(capsys):
    assert main(["dossier", "list", "as_of=2026-11-23"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    for name in pack_names():
        pack = pack_of(name)
        assert name in printed and pack.jurisdiction in printed
        assert pack.about in printed
    assert "SB 24-205 was repealed and replaced by SB 26-189" in printed
    assert "as of 23 November 2026" in printed


def test_a_repealed_law_is_said_to_be_one(capsys):
    assert main(["dossier", "colorado"]) == 2
    error = capsys.readouterr().err
    assert "SB 26-189" in error and "repealed" in error and error.count("\n") == 1
