"""Dossiers hold every field that is asked for, measured rightly, and claim nothing of the law."""

import io
import json
import re
from collections import defaultdict
from dataclasses import replace
from datetime import date
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
from fairbench.reporting.document.terminal import print_document
from fairbench.reporting.document.writing import FORMS
from fairbench_dossiers.documents import names_told, pack_of
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
    out = folder / f"{kind}{'-'.join(words)}".replace("/", "")
    asked = [f"{folder / 'candidates.csv'}", *WORDS[kind], *words]
    assert main(["dossier", kind, *asked, f"out={out}", f"formats={formats}"]) == 0
    return json.loads((out / f"{kind}.json").read_text())


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
        assert missing == set(names_told(pack_of(kind).rules)) & asked


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


def rows_of(dossier, attribute):
    return {
        category["group"]: category
        for category in dossier["categories"]
        if category["attribute"] == attribute
    }


def test_rates_and_ratios_of_ll144_are_those_of_the_counts(dossiers):
    result = dossiers["ll144"]
    sex = rows_of(result, "sex")
    men, women = (200 + 45 + 5 + 5) / 575, (120 + 26 + 2) / 438
    assert sex["Male"]["rows"] == 575 and sex["Female"]["rows"] == 438
    assert sex["Male"]["rate"] == pytest.approx(men)
    assert sex["Female"]["ratio"] == pytest.approx(women / men)
    assert sex["Female"]["ours"]["lower"] < women / men < sex["Female"]["ours"]["upper"]
    both = rows_of(result, "sex x race")
    assert both["Female x Black"]["ratio"] == pytest.approx((26 / 130) / (200 / 400))
    assert result["unknown"] == {"sex": 12, "race": 15, "sex x race": 27}


def test_categories_of_under_two_percent_are_kept_or_left_out_and_named(folder, dossiers):
    assert not dossiers["ll144"]["left_out"]
    assert rows_of(dossiers["ll144"], "race")["Native"]["ratio"] == pytest.approx(
        7 / 18 / (326 / 712)
    )
    out = made(folder, "ll144", "keep_small=false")
    assert "exclusion_reason" in {question["key"] for question in out["asked"]}
    left = {(e["attribute"], e["category"]): e for e in out["left_out"]}
    assert set(left) == {("race", "Native"), *(("sex x race", f"{s} x Native") for s in
                         ("Male", "Female"))}  # fmt: skip
    assert left["race", "Native"]["people"] == 18
    assert left["race", "Native"]["rate"] == pytest.approx(7 / 18)


def test_a_tool_that_scores_is_measured_above_the_median(folder):
    words = ["score=score", "sex=sex", "race=race"]
    out = folder / "scoring"
    path = folder / "candidates.csv"
    assert main(["dossier", "ll144", str(path), *words, f"out={out}"]) == 0
    result, frame = json.loads((out / "ll144.json").read_text()), candidates()
    assert result["rate"] == "scoring rate"
    assert result["median"] == frame["score"].median()
    above = frame["score"] > frame["score"].median()
    men = above[frame["sex"] == "Male"].mean()
    assert rows_of(result, "sex")["Male"]["rate"] == pytest.approx(men)


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
