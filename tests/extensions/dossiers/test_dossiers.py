"""Dossiers hold every field that is asked for, measured rightly, and claim nothing of the law."""

import io
import json
import re
from contextlib import redirect_stdout
from dataclasses import replace
from datetime import date, timedelta
from html import unescape
from itertools import combinations, product
from pathlib import Path

import docx
import jsonschema
import numpy as np
import pandas as pd
import pytest
import yaml
from scipy import stats

from fairbench.audits.question import Options
from fairbench.cli.main import main
from fairbench.core.errors import UserError
from fairbench.metrics.registry import declared
from fairbench.reporting.document.forms import to_json
from fairbench.reporting.document.writing import FORMS
from fairbench_dossiers import documents
from fairbench_dossiers.selection import is_under, ll144, selections_that_turn, unknown_of
from fairbench_dossiers.verb import dossiers as functions
from tests.harness import ROOT, ours, printed, quick

SCHEMA = ROOT / "extensions" / "dossiers" / "fairbench_dossiers" / "schema.json"
TEXTS = [form for form in FORMS if form != "pdf"]
PAGE = ("json", "html")
DAY = date(2026, 11, 26)
KINDS = ("ll144", "four-fifths", "model-card", "ai-act", "lending")
# Words of somebody who says that a law is kept, or is not.
CLAIMS = re.compile(
    r"\b(compl(y|ies|ied|iant|iance|ying)|conform\w*|lawful\w*|unlawful\w*|legal\w*|illegal\w*"
    r"|certif\w*|satisf\w*|fulfil\w*|violat\w*|discriminates|pass(es|ed)?|fail(s|ed)?)\b",
    re.IGNORECASE,
)


def candidates():
    """Return people of known counts: unknown labels, and a median all tell apart."""
    sizes = {
        ("Male", "White"): (400, 200), ("Female", "White"): (300, 120),
        ("Male", "Black"): (150, 45), ("Female", "Black"): (130, 26),
        ("Male", "Native"): (10, 5), ("Female", "Native"): (8, 2),
        ("", "White"): (12, 6), ("Male", "Prefer not to say"): (15, 5),
    }  # fmt: skip
    rows = [(*group, int(i < hired)) for group, (n, hired) in sizes.items() for i in range(n)]
    frame = pd.DataFrame(rows, columns=["sex", "race", "hired"])
    generator = np.random.default_rng(3)
    score = np.clip(0.3 + 0.3 * frame["hired"] + generator.normal(0, 0.15, len(frame)), 0.01, 0.99)
    skilled = (generator.random(len(frame)) < score).astype(int)
    return frame.assign(score=score.round(4), skilled=skilled)


WRONG_FACTS = {"a.txt": "contakt: x", "b.txt": "no colon"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place, frame = tmp_path_factory.mktemp("dossiers"), candidates()
    frame.to_csv(place / "candidates.csv", index=False)
    frame.assign(score=frame["score"].where(frame.index != 4)).to_csv(place / "blank.csv")
    for name, text in WRONG_FACTS.items():
        (place / name).write_text(text)
    return place


HIRED = ["prediction=hired", "positive=1"]
SKILLED = ["target=skilled", "score=score", "group=[sex]"]
WORDS = {
    "ll144": [*HIRED, "sex=sex", "race=race"],
    "four-fifths": [*HIRED, "group=[sex,race]"],
    "lending": [*HIRED, "favourable=1", "group=[sex,race]", "price=[score]"],
    "model-card": SKILLED,
    "ai-act": SKILLED,
}


def made(folder, kind, *words, formats=("json",)):
    """Write a dossier and return its JSON, and the words of its first page if there is one."""
    asked = [f"{folder / 'candidates.csv'}", *WORDS[kind], *words]
    out = folder / f"{kind}{'-'.join(words)}".replace("/", "")
    assert main(["dossier", kind, *asked, f"out={out}", f"formats=[{','.join(formats)}]"]) == 0
    result = json.loads((out / f"{kind}.json").read_text())
    if "html" not in formats:
        return result
    html = (out / f"{kind}.html").read_text()
    return result, re.sub(r"<[^>]+>", "", html.partition('id="asked"')[0])


@pytest.fixture(scope="module")
def pages(folder):
    """Return the JSON of every kind, the words of its first page, and what is printed."""
    result = {}
    for kind in KINDS:
        with redirect_stdout(io.StringIO()) as output:
            result[kind] = (*made(folder, kind, formats=TEXTS), output.getvalue())
    return result


def comparable(answers):
    """Return answers; where there are metrics of one's own, without how many gaps there are."""
    names = {metric.name for metric in declared()}
    counted = "" if ours(names) == names else r"\d+ (?=gaps|large|small|open)"
    return re.sub(counted, "", json.dumps(answers))


@pytest.mark.thorough
@pytest.mark.parametrize("kind", KINDS)
def test_every_field_that_is_asked_for_is_there_as_the_schema_says(pages, kind):
    """Fields, sources and answers are those of the file; a field that goes missing shows here."""
    dossier, asked = pages[kind][0], pages[kind][0]["asked"]
    jsonschema.validate(dossier, json.loads(SCHEMA.read_text()))
    expected = json.loads(Path(__file__).with_name("expected.json").read_text())[kind]
    names = ("key", "citation", "status", "answer")
    found = [[question[name] for name in names] for question in asked]
    assert comparable(found) == comparable(expected)
    missing = {question["key"] for question in asked if question["status"] == "missing"}
    told = documents.names_told(documents.pack_of(kind).rules)
    assert missing == {*told} & {question["key"] for question in asked}
    assert all(question["answer"] for question in asked if question["asks"] == documents.MEASURE)


@pytest.mark.thorough
@pytest.mark.parametrize("kind", KINDS)
def test_no_sentence_claims_that_a_law_is_kept(folder, pages, kind):
    for form in TEXTS:
        content = (folder / kind / f"{kind}.{FORMS[form][0]}").read_bytes()
        if form == "word":
            file = docx.Document(io.BytesIO(content))
            cells = [c.text for t in file.tables for r in t.rows for c in r.cells]
            text = " ".join([*(p.text for p in file.paragraphs), *cells])
        else:
            text = re.sub(r"<style>.*?</style>", "", content.decode(), flags=re.DOTALL)
        assert not CLAIMS.search(text), CLAIMS.search(text)


@pytest.mark.thorough
def test_differences_are_those_of_fishers_test(pages):
    (black,) = (row for row in pages["four-fifths"][0]["differences"] if row["group"] == "Black")
    assert (black["attribute"], black["reference"], black["under"]) == ("race", "White", True)
    table = [[71, 280 - 71], [326, 712 - 326]]
    assert black["chance"] == pytest.approx(stats.fisher_exact(table).pvalue, rel=1e-8)
    assert black["deviations"] < -3
    # One more of the 71 of 280, and one less of the 326 of 712, until the ratio is 0.8, or over 1.
    for name, ratio in (("turned_by", 0.8), ("reversed_by", 1)):
        persons = (ratio * 326 / 712 - 71 / 280) / (1 / 280 + ratio / 712)
        assert black[name] == int(np.ceil(persons))


OF_GROUPS = (
    *("selection_rate", "false_positive_rate", "false_negative_rate", "accuracy"),
    *("positive_predictive_value", "negative_predictive_value"),
)


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["model-card", "ai-act"])
def test_a_card_shows_what_an_audit_does_and_every_figure_has_an_interval(folder, pages, kind):
    result = pages[kind][0]
    metrics = pd.DataFrame(result["metrics"]).query("statistic == 'value'")
    of_group = metrics["group"] != ""
    shown = np.where(of_group, metrics["metric"].isin(OF_GROUPS),
                     metrics["metric"].isin(documents._OF_EVERYONE))  # fmt: skip
    measured = metrics[shown & (of_group | (metrics["attribute"] == ""))]
    assert {*measured.groupby(["attribute", "group"])["metric"].nunique()[1:]} == {len(OF_GROUPS)}
    assert {*measured["metric"]} >= {*documents._OF_EVERYONE} and (measured["n"] > 0).all()
    known = measured.dropna(subset="value")
    assert (known["lower"] <= known["value"]).all() and (known["value"] <= known["upper"]).all()
    for gap in result["gaps"]:
        assert gap["verdict"] and gap["lower"] <= gap["value"] <= gap["upper"]
    text = (folder / kind / f"{kind}.md").read_text()
    titles = {"Everyone", "Gaps between groups", "Rates by group", "Can be concluded"}
    assert titles <= {*re.findall("# (.*)", text)}
    assert all(sentence in text for sentence in result["conclusions"]["notes"])


def test_facts_fill_what_is_missing(folder):
    facts = folder / "facts.txt"
    facts.write_text("# ours\ncontact: us@example.org\nintended_use: credit: small loans\n")
    asked = made(folder, "model-card", f"facts={facts}")["asked"]
    answers = {question["key"]: (question["status"], question["answer"]) for question in asked}
    assert answers["contact"] == ("given", "us@example.org")
    assert answers["intended_use"] == ("given", "credit: small loans")
    assert answers["licence"] == ("missing", "")


REFUSED = yaml.safe_load(Path(__file__).with_name("refused.yaml").read_text())


@pytest.mark.parametrize(("words", "said"), REFUSED["dossiers"].items())
def test_what_cannot_be_is_refused_in_a_line(folder, refused, words, said, monkeypatch):
    monkeypatch.chdir(folder)
    assert len(refused("dossier", *words.split(), message=said)) <= 301


@pytest.mark.thorough
def test_the_ai_act_says_that_one_file_was_measured_and_from_when_it_holds(pages):
    first, rules = (pages["ai-act"][0][part] for part in ("summary", "rules"))
    assert "Only the rows of this file were measured" in first["unseen"][0]
    assert any("Before 2 December 2027" in warning for warning in rules["warnings"])
    assert "2 August 2028" in first["audited"]["Rules"]


@pytest.mark.thorough
@pytest.mark.parametrize("width", [80, 100])
@pytest.mark.parametrize("kind", ["ai-act", "model-card"])
def test_a_terminal_drops_no_name_of_a_group_and_cuts_no_count(width, kind):
    """Long names at 80 columns: a count of 1,008 was once printed as 1,0."""
    names = ["Female applicants", "White or Black applicants (not Latino)", "Non-binary applicants"]
    score, repaid = np.tile([0.2, 0.4, 0.7, 0.9], 450), np.tile([0, 1, 1, 0, 1], 360)
    people = {"group": np.repeat(names, [720, 1008, 72]), "score": score, "repaid": repaid}
    asked = {"group": ("group",), "target": "repaid", "score": "score", "favourable": "1"}
    frame, options = pd.DataFrame(people).astype(str), Options(path=Path("long.csv"), **asked)
    document = functions()[kind](options, frame, {}, DAY)
    # All of its tables, as a terminal would show them where there is no summary.
    text = printed(replace(document, summary=None), width)
    assert all(len(line) <= width for line in text.splitlines())
    table = text[text.index("Rates by group") : text.index("Errors by group")].split()
    assert {"1,008", *" ".join(names).split()} <= {*table}


RULE = documents.Rule(
    "rate", documents.MEASURE, "the rate", "1(a)", date(2020, 1, 1), quote="Calculate it."
)


def toy(rule=RULE, *more):
    """Return a pack of other rules and dates."""
    days = {"version": date(2020, 1, 1), "review_by": date(2026, 6, 1)}
    return replace(documents.pack_of("ll144"), status="in force", rules=(rule, *more), **days)


def hold_together(first, second):
    """Say whether both are the same question on some day."""
    alike = first.when == second.when or not (first.when and second.when)
    first, second = sorted((first, second), key=lambda rule: rule.effective)
    meet = first.ends is None or second.effective < first.ends
    return first.key == second.key and alike and meet


@pytest.mark.parametrize("name", documents.pack_names())
def test_every_pack_is_right(name):
    pack = documents.pack_of(name)
    assert pack.name == name and pack.review_by >= pack.checked
    for rule in pack.rules:
        assert all((rule.key, rule.what, rule.citation)) and type(rule.effective) is date
        assert rule.asks in (documents.MEASURE, documents.FACT, documents.DOCUMENT)
        assert rule.when in ("", documents.SCORES, documents.DECISIONS)
        assert len(rule.quote.split()) <= 40
        assert bool(rule.quote) == (rule.source is not None), "a quote needs its source"
        assert rule.ends is None or rule.ends > rule.effective
        if rule.source:
            kinds = {"title": str, "address": str, "text_date": date}
            assert {part: type(value) for part, value in rule.source.items()} == kinds
            assert rule.source["title"] and rule.source["address"].startswith("http")
            assert rule.source["text_date"] <= pack.checked, "later than the day it was read"
    for first, second in combinations(pack.rules, 2):
        assert not hold_together(first, second), "two rules hold on the same day"


def test_the_version_of_a_rule_is_that_of_the_day():
    start = date(2027, 1, 1)
    pack = toy(replace(RULE, ends=start), replace(RULE, effective=start, quote="Compute it."))
    days = date(2019, 1, 1), date(2026, 12, 31), date(2027, 1, 1)  # of the first, what will be
    said = [rule.quote.split()[0] for day in days for rule in pack.on(day)]
    assert said == ["Calculate", "Calculate", "Compute"]


def test_what_does_not_apply_yet_or_any_more_is_not_said_to_be_in_force():
    assert toy().status_on(date(2019, 12, 31)) == "not yet in force"
    assert toy().status_on(date(2020, 1, 1)) == "in force"
    assert documents.pack_of("colorado").status_on(date(2022, 1, 1)) == "repealed"
    with pytest.raises(UserError, match="ll144: .*: in force"):
        toy(replace(RULE, ends=date(2021, 1, 1))).on(date(2022, 1, 1))


def test_what_is_not_sure_is_said():
    (said,) = toy(replace(RULE, quote="")).unverified(date(2026, 6, 1))
    assert said.startswith("1 of 1 item could not be checked against a published text: ")
    assert said.endswith(" (1(a)).") and not toy().unverified(date(2026, 6, 1))
    assert "may no longer hold" in toy().warnings(date(2026, 6, 2))[0]
    assert not toy().warnings(date(2026, 6, 1))
    assert "Before 1 January 2020" in toy().warnings(date(2019, 1, 1))[-1]


@pytest.mark.thorough
@pytest.mark.parametrize("kind", KINDS)
def test_a_pack_past_its_date_says_so_on_the_first_page(folder, kind, monkeypatch, capsys):
    said, pack = "may no longer hold", documents.pack_of(kind)
    monkeypatch.setattr(documents, "today", lambda: pack.review_by + timedelta(days=1))
    late, page = made(folder, kind, formats=PAGE)
    assert any(said in warning for warning in late["rules"]["warnings"])
    assert said in page and said in " ".join(capsys.readouterr().out.split())
    within, page = made(folder, kind, f"as_of={pack.checked.isoformat()}", formats=PAGE)
    assert said not in json.dumps(within) + page


@pytest.mark.thorough
@pytest.mark.parametrize("kind", KINDS)
def test_rules_that_are_not_verified_are_named_on_the_first_page(pages, kind):
    result, page, shown = pages[kind]
    rules = documents.pack_of(kind).on(documents.today())
    verified = f"{sum(rule.verified for rule in rules)} of {len(rules)} items verified"
    assert verified in " ".join(shown.split())
    unread = [question for question in result["asked"] if not question["quote"]]
    assert bool(unread) == ("could not be checked against a published text" in page)
    for question in unread:
        assert f"{question['what']} ({question['citation']})" in unescape(page)


def test_the_list_names_every_pack_and_says_what_was_repealed(said_by):
    shown = said_by("dossier", "list", "as_of=2026-11-23")
    for pack in map(documents.pack_of, documents.pack_names()):
        assert all(said in shown for said in (pack.name, pack.jurisdiction, pack.about))
    assert "SB 24-205 was repealed and replaced by SB 26-189" in shown
    assert "as of 23 November 2026" in shown


# Every number of a dossier of Local Law 144 is that of the rule, computed here from its text.
#
# 6 RCNY 5-300: the impact ratio is the selection rate of a category over that of the most selected
# category, or its scoring rate over that of the highest scoring one; a scoring rate is the rate of
# scores above the median of the sample. 5-301: of sex, of race, and of both; people of an unknown
# category are counted and in no calculation; the auditor may exclude categories of under 2 % of the
# data from the calculation of impact ratios.

UNKNOWN = ["", "N/A", "Decline To Self Identify", "I do not wish to answer", "Prefer not to answer"]
BOTH = "sex x race"
SEXES = ["Male", "Female", "Non-binary"]
RACES = ["White", "Black", "Asian", "Hispanic", "Native", "Two or more races"]


def document(frame, *, of="prediction", **how):
    """Return the dossier of a table of strings: of who was hired, or of scores."""
    column = {"prediction": "hired", "score": "score"}[of]
    options = Options(Path("people.csv"), group=("sex", "race"), favourable="1", **{of: column})
    return ll144(options, frame.astype(str), {}, DAY, **how)


def dossier_of(frame, **how):
    """Return the JSON of a dossier."""
    return json.loads(to_json(document(frame, **how)))


def of_race(page):
    """Return the categories of race of a dossier by their names."""
    return {row["group"]: row for row in page["categories"] if row["attribute"] == "race"}


def random_people(seed):
    """Return people of two to six races, of which some are few, tied, unknown or never selected."""
    generator = np.random.default_rng(seed)
    people = int(generator.integers(30, 400))
    people = people if seed % 3 else 50 * (1 + people // 50)  # of which 2 % is a whole number
    races = RACES[: int(generator.integers(2, 7))]
    shares = generator.dirichlet(np.full(len(races), 0.5))
    sex = generator.choice(SEXES, people, p=[0.5, 0.48, 0.02])
    race = generator.choice(races, people, p=shares)
    for column in (sex, race):
        silent = generator.random(people) < generator.choice([0, 0.05, 0.3])
        column[silent] = generator.choice([u for u in UNKNOWN if len(u) <= 12], silent.sum())
    sex, race = sex.astype(object), race.astype(object)
    race[generator.random(people) < 0.02] = "Decline To Self Identify"
    sex[:2], race[:2] = SEXES[:2], races[:2]
    chance = generator.choice([0, 0.02, 0.3, 0.5, 1])
    score = generator.integers(0, int(generator.choice([1, 2, 5, 1000])), people)
    hired = (generator.random(people) < chance).astype(int)
    return pd.DataFrame({"sex": sex, "race": race, "hired": hired, "score": score})


def people_of(counts):
    """Return people by how many of each race there are, and how many of them were hired."""
    rows = [(race, int(i < hired)) for race, (n, hired, *_) in counts.items() for i in range(n)]
    frame = pd.DataFrame(rows, columns=["race", "hired"])
    return frame.assign(sex=np.where(frame.index % 3, "Female", "Male"))


def of_the_rule(frame, selected, keep_small):
    """Return the rule's counts, rates and ratios by attribute and category, and the unknown."""
    table = frame.assign(**{BOTH: frame["sex"] + " x " + frame["race"]}, selected=selected)
    silent = frame[["sex", "race"]].isin(UNKNOWN).assign(**{BOTH: lambda each: each.any(axis=1)})
    rule = {}
    for name in silent:
        of_one = table[~silent[name]].groupby(name)["selected"].agg(["size", "sum", "mean"])
        kept = of_one["size"] >= (0 if keep_small else 0.02 * len(frame))
        ratio = of_one["mean"] / of_one["mean"][kept].max()
        rule[name] = of_one.assign(ratio=ratio, kept=kept)
    return pd.concat(rule), silent.sum().to_dict()


@pytest.mark.thorough
@pytest.mark.parametrize("part", quick(range(4), [0], rest=pytest.mark.slow))
def test_every_number_is_that_of_the_rule(part):
    """On some 200 tables, half of tools that select and half of tools that score."""
    compared = excluded = undefined = below_ours = 0
    for seed in range(1000 * part, 1000 * part + 60):
        frame, scoring, keep_small = random_people(seed), seed % 2 == 1, seed % 4 < 2
        selected = frame["score"] > frame["score"].median() if scoring else frame["hired"] == 1
        rule, unknown = of_the_rule(frame, selected, keep_small)
        if rule["kept"].groupby(level=0).sum().min() < 2:
            continue  # nothing is left to compare, which is refused
        of = "score" if scoring else "prediction"
        page = dossier_of(frame, of=of, keep_small=keep_small)
        assert page["people"] == len(frame) and page["unknown"] == unknown
        assert page["rate"] == ("scoring rate" if scoring else "selection rate")
        assert page["median"] == (frame["score"].median() if scoring else None)
        for name in ("sex", "race"):
            silent = frame[name][frame[name].isin(UNKNOWN)].replace("", "unknown")
            assert page["unknown_answers"][name] == silent.value_counts().to_dict()
        kept, small = rule[rule["kept"]].astype(float), rule[~rule["kept"]].astype(float)
        shown = pd.DataFrame(page["categories"]).set_index(["attribute", "group"])
        numbers = shown[["rows", "selected", "rate", "ratio"]].astype(float).sort_index()
        np.testing.assert_allclose(numbers, kept[["size", "sum", "mean", "ratio"]].sort_index())
        assert {*shown.index} == {*kept.index}
        counts = {(row["attribute"], row["group"]): row for row in page["left_out"]}
        assert counts.keys() == {*small.index}
        for key, row in counts.items():
            told = row["rows"], row["selected"], row["rate"]
            assert told == pytest.approx(tuple(small.loc[key][["size", "sum", "mean"]]))
        for key, row in shown.iterrows():
            assert row["share"] == pytest.approx(row["rows"] / len(frame))
            is_undefined = np.isnan(kept["ratio"][key])
            assert ("0 over 0" in row["reason"]) == bool(row["reason"]) == is_undefined
            assert is_undefined or (key[1] in row["most_selected"]) == (kept["ratio"][key] == 1)
            below_ours += not is_undefined and (row["ours"]["ratio"] or 0) > 1
        excluded, compared = excluded + len(small), compared + len(shown)
        undefined += kept["ratio"].isna().sum()
    assert compared > 200 and excluded and undefined and below_ours


def test_the_rules_own_example_comes_out():
    """6 RCNY 5-301(b): the tables of its example, whose ratios it prints with two decimals."""
    example = {
        "Hispanic or Latino": (408, 204, 0.97), "White": (797, 412, 1.00),
        "Black": (390, 170, 0.84), "Native Hawaiian": (119, 52, 0.85), "Asian": (616, 302, 0.95),
        "Native American": (41, 18, 0.85), "Two or more": (213, 96, 0.87),
    }  # fmt: skip
    ours = of_race(dossier_of(people_of(example)))
    for race, (people, selected, ratio) in example.items():
        assert (ours[race]["rows"], ours[race]["selected"]) == (people, selected)
        assert ours[race]["ratio"] == pytest.approx(ratio, abs=0.0051)


def people_of_three():
    """Return the people of whom a ratio of 2.22 was once printed."""
    return people_of({"White": (160, 72), "Asian": (8, 8), "Black": (32, 12), "N/A": (9, 9)})


def test_no_ratio_is_above_one_ours_stands_beside_it_and_no_threshold_is_part_of_the_law():
    page = document(people_of_three())
    asian = of_race(json.loads(to_json(page)))["Asian"]
    assert asian["ratio"] == 1 and asian["ours"]["reference"] == "White"
    assert asian["ours"]["ratio"] == pytest.approx(1 / 0.45)
    (sentence,) = [each for each in page.summary.found if each.startswith("By race")]
    assert "0.38: Black (12 of 32) over Asian (8 of 8)" in sentence and "ours" in sentence
    titles = [column.title for table in page.tables for column in table.columns]
    assert not [title for title in titles if "0.8" in title]
    assert not any("stroke-dasharray" in figure.drawings[0] for figure in page.figures)
    assert "sets no smallest impact ratio" in " ".join(page.summary.unseen)


def test_small_categories_are_kept_unless_an_auditor_excludes_them():
    frame = people_of_three()
    frame = pd.concat([frame, frame.assign(race="White")], ignore_index=True)  # Asian: 8 of 418
    pages = [dossier_of(frame, keep_small=keep) for keep in (True, False)]
    kept, left_out = ({field["key"]: field["answer"] for field in page["asked"]} for page in pages)
    assert "of the 418 people of the file" in kept["small"]
    assert "exclusion_reason" in left_out.keys() - kept.keys()
    assert of_race(pages[1])["White"]["ratio"] == 1.0


def test_more_answers_can_mean_unknown():
    page = dossier_of(people_of_three(), unknown=["black"])
    assert page["unknown"]["race"] == 9 + 32
    for unknown, said in (
        (["Blak"], "unknown= 'Blak': did you mean Black"),
        (["black", "asian"], "race: fewer than two categories"),
    ):
        with pytest.raises(UserError, match=said):
            dossier_of(people_of_three(), unknown=unknown)


def turned(selected, rows, persons):
    """Return whether a ratio is under four fifths once so many persons are other ones."""
    (first, second), (one, other) = selected, rows
    return 5 * (first + persons) * other < 4 * (second - persons) * one


def test_how_many_persons_turn_a_ratio_is_what_trying_them_all_says():
    """Of every table of up to 12 people each: none fewer does, and one different person each."""
    some = set()
    for one, other in [(1, 1), (3, 12), (7, 5), (12, 12), (12, 3)]:
        for first, second in product(range(one + 1), range(other + 1)):
            selected, rows = (first, second), (one, other)
            under = turned(selected, rows, 0)
            assert is_under(selected, rows) == under
            step, ones, others = 1 if under else -1, range(one + 1), range(other + 1)
            tried = [k for k in range(1, 13)
                     if first + step * k in ones and second - step * k in others]  # fmt: skip
            turns = [k for k in tried if turned(selected, rows, step * k) != under]
            reverses = [k for k in tried if under and (first + k) * other > (second - k) * one]
            expected = tuple(min(numbers, default=None) for numbers in (turns, reverses))
            assert selections_that_turn(selected, rows) == expected
            some.add(tuple(number is None for number in expected))
    assert len(some) >= 3


def test_what_was_taken_for_unknown_is_said_with_its_number(capsys):
    race = pd.Series(["White", "N/A", "Other", "Declined", "N/A", "X"], dtype="category")
    result = unknown_of({"race": race}, ["other"])
    assert result.known["race"].tolist() == [True, False, False, False, False, True]
    assert result.answers == {"race": {"N/A": 2, "Other": 1, "Declined": 1}}
    (sentence,) = result.sentences
    assert "'N/A' (2), 'Other' (1), 'Declined' (1)" in sentence
    assert sentence in " ".join(capsys.readouterr().err.split())
    blank = pd.Series(["White", "unknown", "Black"], dtype="category")
    assert unknown_of({"race": blank}, []).answers["race"] and not capsys.readouterr().err
