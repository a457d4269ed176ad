"""Dossiers hold every field that is asked for, measured rightly, and claim nothing of the law."""

import io
import json
import re
from collections import defaultdict
from dataclasses import fields, replace
from datetime import date, timedelta
from html import unescape
from importlib.resources import files
from itertools import combinations
from pathlib import Path

import docx
import jsonschema
import numpy as np
import pandas as pd
import pytest
from rich.console import Console
from scipy import stats

from fairbench.audits.question import Options
from fairbench.cli.main import main
from fairbench.core.errors import UserError
from fairbench.reporting.document.terminal import print_document
from fairbench.reporting.document.writing import FORMS
from fairbench_dossiers import documents
from fairbench_dossiers import documents as rulebook
from fairbench_dossiers.verb import dossiers as functions
from tests.harness import ROOT

EXPECTED = Path(__file__).parent / "expected.json"
SCHEMA = ROOT / "extensions" / "dossiers" / "fairbench_dossiers" / "schema.json"
TEXTS = [form for form in FORMS if form != "pdf"]
KINDS = ("ll144", "four-fifths", "model-card", "ai-act", "lending")
# Words of somebody who says that a law is kept, or is not.
CLAIMS = re.compile(
    r"\b(compl(y|ies|ied|iant|iance|ying)|conform\w*|lawful\w*|unlawful\w*|legal\w*|illegal\w*"
    r"|certif\w*|satisf\w*|fulfil\w*|violat\w*|discriminates|pass(es|ed)?|fail(s|ed)?)\b",
    re.IGNORECASE,
)


def candidates():
    """Return people of known counts: 2 % rules, unknown labels, and a median all tell apart."""
    sizes = {
        ("Male", "White"): (400, 200),
        ("Female", "White"): (300, 120),
        ("Male", "Black"): (150, 45),
        ("Female", "Black"): (130, 26),
        ("Male", "Native"): (10, 5),
        ("Female", "Native"): (8, 2),
        ("", "White"): (12, 6),
        ("Male", "Prefer not to say"): (15, 5),
    }
    rows = []
    for (sex, race), (people, hired) in sizes.items():
        chosen = np.arange(people) < hired
        rows += [(sex, race, bool(selected)) for selected in chosen]
    frame = pd.DataFrame(rows, columns=["sex", "race", "hired"])
    generator = np.random.default_rng(3)
    score = np.clip(0.3 + 0.3 * frame["hired"] + generator.normal(0, 0.15, len(frame)), 0.01, 0.99)
    skilled = (generator.random(len(frame)) < score).astype(int)
    hired = np.where(frame["hired"], 1, 0)
    return frame.assign(hired=hired, score=score.round(4), skilled=skilled)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("dossiers")
    candidates().to_csv(place / "candidates.csv", index=False)
    return place


WORDS = {
    "ll144": ["prediction=hired", "positive=1", "sex=sex", "race=race"],
    "four-fifths": ["prediction=hired", "positive=1", "group=[sex,race]"],
    "lending": [
        "prediction=hired",
        "positive=1",
        "favourable=1",
        "group=[sex,race]",
        "price=[score]",
    ],
    "model-card": ["target=skilled", "score=score", "group=[sex]"],
    "ai-act": ["target=skilled", "score=score", "group=[sex]"],
}


def made(folder, kind, *words, formats="[json]"):
    """Write a dossier and return its JSON."""
    asked = [f"{folder / 'candidates.csv'}", *WORDS[kind], *words]
    out = folder / f"{kind}{'-'.join(words)}".replace("/", "")
    assert main(["dossier", kind, *asked, f"out={out}", f"formats={formats}"]) == 0
    return json.loads((out / f"{kind}.json").read_text())


def shown(folder, kind, *words):
    """Write a dossier and return its JSON and the words of its first page."""
    result = made(folder, kind, *words, formats="[json,html]")
    html = (folder / f"{kind}{'-'.join(words)}" / f"{kind}.html").read_text()
    return result, re.sub(r"<[^>]+>", "", html.partition('id="asked"')[0])


@pytest.fixture(scope="module")
def dossiers(folder):
    return {kind: made(folder, kind, formats=f"[{','.join(TEXTS)}]") for kind in KINDS}


@pytest.mark.thorough
@pytest.mark.parametrize("kind", KINDS)
def test_every_field_that_is_asked_for_is_there(dossiers, kind):
    """Fields, sources and answers are those of the file; a field that goes missing shows here."""
    expected = json.loads(EXPECTED.read_text())
    result = [[question[name] for name in ("key", "citation", "status", "answer")]
             for question in dossiers[kind]["asked"]]  # fmt: skip
    assert result == expected[kind]


@pytest.mark.parametrize("kind", KINDS)
def test_json_follows_the_schema(dossiers, kind):
    jsonschema.validate(dossiers[kind], json.loads(SCHEMA.read_text()))


def test_facts_are_all_asked_for(dossiers):
    for kind, dossier in dossiers.items():
        missing = {
            question["key"] for question in dossier["asked"] if question["status"] == "missing"
        }
        asked = {question["key"] for question in dossier["asked"]}
        assert missing == set(documents.names_told(documents.pack_of(kind).rules)) & asked


@pytest.mark.parametrize("kind", KINDS)
def test_no_sentence_claims_that_a_law_is_kept(folder, dossiers, kind):
    for form in TEXTS:
        content = (folder / kind / f"{kind}.{FORMS[form][0]}").read_bytes()
        if form == "word":
            file = docx.Document(io.BytesIO(content))
            cells = [c.text for t in file.tables for r in t.rows for c in r.cells]
            text = " ".join([*(p.text for p in file.paragraphs), *cells])
        else:
            text = re.sub(r"<style>.*?</style>", "", content.decode(), flags=re.DOTALL)
        assert not CLAIMS.search(text), CLAIMS.search(text)


def test_the_search_for_claims_finds_them():
    for claim in ("This model is compliant.", "It satisfies the rule.", "The tool conforms to it."):
        assert CLAIMS.search(claim)


def test_categories_of_under_two_percent_are_kept_or_left_out_and_named(folder, dossiers):
    assert not dossiers["ll144"]["left_out"]
    left = made(folder, "ll144", "keep_small=false")["left_out"]
    assert [(entry["attribute"], entry["category"]) for entry in left] == [
        ("race", "Native"), ("sex x race", "Male x Native"), ("sex x race", "Female x Native"),
    ]  # fmt: skip


def test_scores_of_any_scale_will_do(folder):
    frame = candidates().assign(score=lambda f: 100 * f["score"])
    frame.to_csv(folder / "points.csv", index=False)
    words = ["score=score", "sex=sex", "race=race", f"out={folder / 'points'}"]
    assert main(["dossier", "ll144", str(folder / "points.csv"), *words]) == 0


def test_a_blank_score_is_refused(folder, capsys):
    frame = candidates()
    frame.loc[4, "score"] = np.nan
    frame.to_csv(folder / "blank.csv", index=False)
    words = ["score=score", "sex=sex", "race=race", f"out={folder / 'blank'}"]
    assert main(["dossier", "ll144", str(folder / "blank.csv"), *words]) == 2
    assert "row 5" in capsys.readouterr().err


def test_differences_are_those_of_fishers_test(dossiers):
    result = {(e["attribute"], e["group"]): e for e in dossiers["four-fifths"]["differences"]}
    black = result["race", "Black"]
    assert black["reference"] == "White"
    table = [[71, 280 - 71], [326, 712 - 326]]
    assert black["chance"] == pytest.approx(stats.fisher_exact(table).pvalue, rel=1e-8)
    assert black["deviations"] < -3
    assert black["under"]
    # One more of the 71 of 280, and one less of the 326 of 712, until the ratio is 0.8, or over 1.
    for name, ratio in (("turned_by", 0.8), ("reversed_by", 1)):
        persons = (ratio * 326 / 712 - 71 / 280) / (1 / 280 + ratio / 712)
        assert black[name] == int(np.ceil(persons))


OF_GROUPS = {
    *("selection_rate", "false_positive_rate", "false_negative_rate", "accuracy"),
    *("positive_predictive_value", "negative_predictive_value"),
}
OF_EVERYONE = {
    *("accuracy", "error_rate", "true_positive_rate", "false_positive_rate", "roc_auc"),
    *("positive_predictive_value", "negative_predictive_value", "log_loss", "brier_score"),
    "expected_calibration_error",
}


@pytest.mark.parametrize("kind", ["model-card", "ai-act"])
def test_every_figure_of_a_card_has_an_interval_and_a_number(dossiers, kind):
    result, measured = dossiers[kind], defaultdict(set)
    for metric in result["metrics"]:
        shown = OF_GROUPS if metric["attribute"] else OF_EVERYONE
        if metric["statistic"] == "value" and metric["metric"] in shown:
            assert metric["n"] > 0
            assert metric["value"] is None or metric["lower"] <= metric["value"] <= metric["upper"]
            measured[metric["attribute"], metric["group"]].add(metric["metric"])
    assert measured["", ""] >= OF_EVERYONE
    for size in result["sizes"]:
        assert measured[size["attribute"], size["group"]] >= OF_GROUPS
    for gap in result["gaps"]:
        assert gap["verdict"] and gap["lower"] <= gap["value"] <= gap["upper"]


@pytest.mark.parametrize("kind", ["model-card", "ai-act"])
def test_a_card_shows_what_an_audit_does_and_the_metrics_of_everyone(folder, dossiers, kind):
    text = (folder / kind / f"{kind}.md").read_text()
    for title in ("Everyone", "Gaps between groups", "Rates by group", "Can be concluded", "Notes"):
        assert f"# {title}" in text, title
    for sentence in dossiers[kind]["conclusions"]["notes"]:
        assert sentence in text


def test_facts_fill_what_is_missing(folder):
    facts = folder / "facts.txt"
    facts.write_text("# ours\ncontact: us@example.org\nintended_use: credit: small loans\n")
    result = made(folder, "model-card", f"facts={facts}")
    answers = {
        question["key"]: (question["status"], question["answer"]) for question in result["asked"]
    }
    assert answers["contact"] == ("given", "us@example.org")
    assert answers["intended_use"] == ("given", "credit: small loans")
    assert answers["licence"] == ("missing", "")


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.txt", "contakt: x", "contact"),
        ("b.txt", "no colon", "line 1"),
        ("c.json", "[1]", "one object"),
        ("d.json", "{", "not JSON"),
    ],
)
def test_wrong_facts_are_refused_in_a_line(folder, capsys, name, text, said):
    path = folder / name
    path.write_text(text)
    words = [str(folder / "candidates.csv"), *WORDS["model-card"], f"facts={path}"]
    assert main(["dossier", "model-card", *words]) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1 and len(error) <= 301


def test_sex_and_race_have_to_be_named(folder, capsys):
    assert main(["dossier", "ll144", str(folder / "candidates.csv"), "score=score"]) == 2
    assert "sex= and race=" in capsys.readouterr().err


def test_open_gaps_are_counted_beside_large_and_small_ones(dossiers):
    result = dossiers["ai-act"]
    verdicts = [gap["verdict"] for gap in result["gaps"]]
    (biases,) = [question["answer"] for question in result["asked"] if question["key"] == "biases"]
    large, small = verdicts.count("large"), verdicts.count("small")
    said = f"{len(verdicts)} gaps were examined: {large} large, {small} small, "
    assert biases.startswith(f"{said}{len(verdicts) - large - small} open")


def test_the_ai_act_says_that_one_file_was_measured_and_from_when_it_applies(dossiers):
    first = dossiers["ai-act"]["summary"]
    assert "Only the rows of this file were measured" in first["unseen"][0]
    warnings = dossiers["ai-act"]["rules"]["warnings"]
    assert any("Before 2 December 2027" in warning for warning in warnings)
    assert "2 August 2028" in first["audited"]["Rules"]


@pytest.mark.thorough
@pytest.mark.parametrize("width", [80, 100])
@pytest.mark.parametrize("kind", ["ai-act", "model-card"])
def test_a_terminal_drops_no_name_of_a_group_and_cuts_no_count(folder, capsys, width, kind):
    """Long names at 80 columns: a count of 1,008 was once printed as 1,0."""
    generator = np.random.default_rng(4)
    names = ["Female applicants", "Male applicants", "Non-binary applicants"]
    races = ["Black or African American", "White (not Hispanic or Latino)", "Two or more races"]
    frame = pd.DataFrame(
        {
            "gender": generator.choice(names, 1800, p=[0.4, 0.56, 0.04]),
            "ethnicity": generator.choice(races, 1800, p=[0.2, 0.7, 0.1]),
            "score": generator.uniform(0.01, 0.99, 1800).round(3),
        }
    )
    frame["repaid"] = (generator.random(1800) < frame["score"]).astype(int)
    place = folder / "long.csv"
    frame.to_csv(place, index=False)
    options = Options(
        path=place, group=("gender", "ethnicity"), target="repaid", score="score", favourable="1"
    )
    document = functions()[kind](options, frame.astype(str), {}, date(2026, 11, 26))
    # All of its tables, as a terminal would show them where there is no summary.
    print_document(replace(document, summary=None), Console(width=width, highlight=False))
    printed = capsys.readouterr().out
    lines = printed.splitlines()
    assert all(len(line) <= width for line in lines)
    table = printed[printed.index("Rates by group") : printed.index("Errors by group")]
    men = f"{(frame['gender'] == 'Male applicants').sum():,}"
    assert len(men) == 5 and men in table.split()
    for word in " ".join([*names, *races]).split():
        assert word in table.split()


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
    return documents.read_pack(pack + rules)


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
    pack = documents.read_pack(text)
    assert is_typed(pack), "a field of another type"
    assert pack.name == name, "another name than that of its file"
    assert pack.review_by >= pack.checked, "review_by is before checked"
    for rule in pack.rules:
        assert is_typed(rule), "a field of another type"
        assert rule.asks in (documents.MEASURE, documents.FACT, documents.DOCUMENT), (
            "asks for something else"
        )
        assert rule.when in ("", documents.SCORES, documents.DECISIONS), "about something else"
        assert len(rule.quote.split()) <= LONGEST_QUOTE, "too long a quote"
        assert bool(rule.quote) == (rule.source is not None), "a quote needs its source"
        assert rule.ends is None or rule.ends > rule.effective, "ends before it is effective"
        if rule.source:
            kinds = {"title": str, "address": str, "text_date": date}
            assert {name: type(part) for name, part in rule.source.items()} == kinds
            assert all(rule.source.values()), "a field is empty"
            assert rule.source["address"].startswith("http"), "no address"
            assert rule.source["text_date"] <= pack.checked, "later than the day it was read"
    for first, second in combinations(pack.rules, 2):
        assert not hold_together(first, second), "two rules hold on the same day"


@pytest.mark.parametrize("name", documents.pack_names())
def test_every_pack_is_right(name):
    place = files(rulebook.__package__).joinpath("rules", f"{name}.toml")
    check_pack(name, place.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (PACK + RULE.replace('"text"', '"texts"'), "texts"),
        (PACK + RULE + "fine = 500", "fine"),
        (PACK + RULE.replace('citation = "1(a)"', ""), "citation"),
        ("[pack" + RULE, "Expected"),
    ],
)
def test_a_pack_that_says_what_none_can_say_is_refused(text, fault):
    with pytest.raises((TypeError, KeyError, ValueError), match=fault):
        documents.read_pack(text)


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
    assert documents.pack_of("colorado").status_on(date(2022, 1, 1)) == "repealed"


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


@pytest.mark.thorough
@pytest.mark.parametrize("kind", KINDS)
def test_a_pack_past_its_date_says_so_on_the_first_page(folder, kind, monkeypatch, capsys):
    late = documents.pack_of(kind).review_by + timedelta(days=1)
    for_one, page = shown(folder, kind, f"as_of={late.isoformat()}")
    assert any("may no longer hold" in warning for warning in for_one["rules"]["warnings"])
    assert "may no longer hold" in page
    assert "may no longer hold" in " ".join(capsys.readouterr().out.split())
    monkeypatch.setattr(rulebook, "today", lambda: late)
    by_clock, page = shown(folder, kind)
    assert by_clock["rules"] == for_one["rules"] and "may no longer hold" in page
    monkeypatch.undo()
    within, page = shown(folder, kind, f"as_of={documents.pack_of(kind).checked.isoformat()}")
    assert "may no longer hold" not in json.dumps(within) + page


@pytest.mark.parametrize("kind", KINDS)
def test_rules_that_are_not_verified_are_named_on_the_first_page(folder, kind, capsys):
    result, page = shown(folder, kind)
    printed = " ".join(capsys.readouterr().out.split())
    unread = [question for question in result["asked"] if not question["quote"]]
    rules = documents.pack_of(kind).on(rulebook.today())
    assert f"{sum(rule.verified for rule in rules)} of {len(rules)} items verified" in printed
    words = "could not be checked against a published text"
    assert bool(unread) == (words in page)
    for question in unread:
        assert f"{question['what']} ({question['citation']})" in unescape(page)


@pytest.mark.parametrize("kind", KINDS)
def test_every_measure_is_answered(folder, kind):
    result = made(folder, kind)
    for question in result["asked"]:
        if question["asks"] == documents.MEASURE:
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
    for name in documents.pack_names():
        pack = documents.pack_of(name)
        assert name in printed and pack.jurisdiction in printed
        assert pack.about in printed
    assert "SB 24-205 was repealed and replaced by SB 26-189" in printed
    assert "as of 23 November 2026" in printed


def test_a_repealed_law_is_said_to_be_one(capsys):
    assert main(["dossier", "colorado"]) == 2
    error = capsys.readouterr().err
    assert "SB 26-189" in error and "repealed" in error and error.count("\n") == 1
