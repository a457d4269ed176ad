"""Every number of a dossier of Local Law 144 is that of the rule, computed here from its text.

6 RCNY 5-300: the impact ratio is the selection rate of a category over that of the most selected
category, or its scoring rate over that of the highest scoring one; a scoring rate is the rate of
scores above the median of the sample. 5-301: of sex, of race, and of both; people of an unknown
category are counted and in no calculation; the auditor may exclude categories of under 2 % of the
data from the calculation of impact ratios.
"""

import json
from collections import Counter
from datetime import date
from itertools import count
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fairbench.audits.question import Options
from fairbench.core.errors import UserError
from fairbench.reporting.document.forms import to_json
from fairbench_dossiers.selection import is_under, ll144, selections_that_turn, unknown_of
from tests.harness import quick

DAY = date(2026, 11, 26)
UNKNOWN = ["", "N/A", "Decline To Self Identify", "I do not wish to answer", "Prefer not to answer"]
SEXES = ["Male", "Female", "Non-binary"]
RACES = ["White", "Black", "Asian", "Hispanic", "Native", "Two or more races"]
OPTIONS = {"group": ("sex", "race"), "favourable": "1"}


def dossier(frame, options, **how):
    """Return the JSON of a dossier of a table of strings."""
    return json.loads(to_json(document(frame, options, **how)))


def document(frame, options, **how):
    asked = Options(path=Path("people.csv"), **OPTIONS, **options)
    return ll144(asked, frame.astype(str), {}, DAY, **how)


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
    """Return the rule's counts, rates and ratios by (attribute, category), plainly."""
    table, rule, unknown = frame.assign(selected=selected), {}, {}
    silent = {name: frame[name].isin(UNKNOWN) for name in ("sex", "race")}
    silent["sex x race"] = silent["sex"] | silent["race"]
    table["sex x race"] = frame["sex"] + " x " + frame["race"]
    for attribute, nobody in silent.items():
        unknown[attribute] = int(nobody.sum())
        of_one = table[~nobody].groupby(attribute)["selected"].agg(["size", "sum", "mean"])
        in_ratio = of_one[keep_small | (of_one["size"] >= 0.02 * len(frame))]
        highest = in_ratio["mean"].max()
        for category, size, number, rate in of_one.itertuples():
            ratio = rate / highest if highest > 0 else np.nan
            known = ratio if category in in_ratio.index else None
            rule[attribute, category] = (int(size), int(number), rate, known)
    return rule, unknown


@pytest.mark.thorough
@pytest.mark.parametrize("part", quick(range(4), [0], rest=pytest.mark.slow))
def test_every_number_is_that_of_the_rule(part):
    """On 200 tables, half of tools that select and half of tools that score."""
    tables = compared = excluded = undefined = below_ours = 0
    for seed in count(1000 * part):
        if tables == 50:
            break
        frame, scoring, keep_small = random_people(seed), seed % 2 == 1, seed % 4 < 2
        selected = frame["score"] > frame["score"].median() if scoring else frame["hired"] == 1
        rule, unknown = of_the_rule(frame, selected, keep_small)
        left = Counter(attribute for (attribute, _), row in rule.items() if row[3] is not None)
        if min(left[attribute] for attribute in unknown) < 2:
            continue  # nothing is left to compare, which is refused
        tables += 1
        options = {"score": "score"} if scoring else {"prediction": "hired"}
        page = dossier(frame, options, keep_small=keep_small)
        assert page["people"] == len(frame) and page["unknown"] == unknown
        assert page["rate"] == ("scoring rate" if scoring else "selection rate")
        assert page["median"] == (frame["score"].median() if scoring else None)
        for name in ("sex", "race"):
            silent = frame[name][frame[name].isin(UNKNOWN)].replace("", "unknown")
            assert page["unknown_answers"][name] == silent.value_counts().to_dict()
        shown = {(row["attribute"], row["group"]): row for row in page["categories"]}
        left_out = {(row["attribute"], row["category"]): row for row in page["left_out"]}
        assert set(shown) | set(left_out) == set(rule) and not set(shown) & set(left_out)
        for key, (rows, number, rate, ratio) in rule.items():
            row = shown.get(key) or left_out[key]
            assert (row["selected"], row["rate"]) == (number, pytest.approx(rate))
            assert row["people" if ratio is None else "rows"] == rows
            assert (key in left_out) == (ratio is None)
            excluded, compared = excluded + (ratio is None), compared + (ratio is not None)
            if ratio is None:
                continue
            assert row["share"] == pytest.approx(rows / len(frame))
            if np.isnan(ratio):
                assert row["ratio"] is None and "0 over 0" in row["reason"]
                undefined += 1
            else:
                assert row["ratio"] == pytest.approx(ratio) and row["ratio"] <= 1
                assert not row["reason"]
                assert (row["group"] in row["most_selected"]) == (ratio == 1)
                below_ours += row["ours"]["ratio"] is not None and row["ours"]["ratio"] > 1
    assert compared > 200 and excluded and undefined and below_ours


def test_the_rules_own_example_comes_out():
    """6 RCNY 5-301(b): the tables of its example, whose ratios it prints with two decimals."""
    example = {
        "Hispanic or Latino": (408, 204, 0.97), "White": (797, 412, 1.00),
        "Black": (390, 170, 0.84), "Native Hawaiian": (119, 52, 0.85), "Asian": (616, 302, 0.95),
        "Native American": (41, 18, 0.85), "Two or more": (213, 96, 0.87),
    }  # fmt: skip
    ours = of_race(dossier(people_of(example), {"prediction": "hired"}))
    for race, (people, selected, ratio) in example.items():
        assert (ours[race]["rows"], ours[race]["selected"]) == (people, selected)
        assert ours[race]["ratio"] == pytest.approx(ratio, abs=0.0051)


def toy():
    """Return the people of whom a ratio of 2.22 was once printed."""
    return people_of({"White": (160, 72), "Asian": (8, 8), "Black": (32, 12), "N/A": (9, 9)})


def test_no_ratio_is_above_one_and_ours_stands_beside_it():
    page = dossier(toy(), {"prediction": "hired"})
    ours = of_race(page)
    assert ours["Asian"]["ratio"] == 1 and ours["Asian"]["ours"]["reference"] == "White"
    assert ours["Asian"]["ours"]["ratio"] == pytest.approx(1 / 0.45)
    (sentence,) = [each for each in page["summary"]["found"] if each.startswith("By race")]
    assert "0.38: Black (12 of 32) over Asian (8 of 8)" in sentence and "ours" in sentence


def test_no_threshold_is_shown_as_part_of_the_law():
    page = document(toy(), {"prediction": "hired"})
    titles = [column.title for table in page.tables for column in table.columns]
    assert not [title for title in titles if "0.8" in title]
    assert not any("stroke-dasharray" in figure.drawings[0] for figure in page.figures)
    assert "sets no smallest impact ratio" in " ".join(page.summary.unseen)


def test_small_categories_are_kept_unless_an_auditor_excludes_them():
    frame = pd.concat([toy(), toy().assign(race="White")], ignore_index=True)  # Asian: 8 of 418
    for keep_small, said, left_out in ((True, "small", False), (False, "exclusion_reason", True)):
        page = dossier(frame, {"prediction": "hired"}, keep_small=keep_small)
        answers = {question["key"]: question["answer"] for question in page["asked"]}
        assert said in answers and ("exclusion_reason" in answers) == left_out
        small = {(row["attribute"], row["category"]) for row in page["left_out"]}
        assert (("race", "Asian") in small) == left_out == bool(small)
        assert left_out or "of the 418 people of the file" in answers["small"]
    assert of_race(page)["White"]["ratio"] == 1.0


def test_more_answers_can_mean_unknown():
    frame = toy()
    page = dossier(frame, {"prediction": "hired"}, unknown=["black"])
    assert page["unknown"]["race"] == 9 + 32
    assert page["unknown_answers"]["race"] == {"Black": 32, "N/A": 9}
    with pytest.raises(UserError, match=r"unknown= 'Blak': did you mean Black"):
        dossier(frame, {"prediction": "hired"}, unknown=["Blak"])


def test_one_category_alone_is_refused():
    with pytest.raises(UserError, match="race: fewer than two categories"):
        alone = toy().replace({"race": {"Asian": "N/A", "Black": "N/A"}})
        dossier(alone, {"prediction": "hired"})


def turned(selected, rows, persons):
    """Return whether a ratio is under four fifths once so many persons are other ones."""
    (first, second), (one, other) = selected, rows
    return 5 * (first + persons) * other < 4 * (second - persons) * one


def test_how_many_persons_turn_a_ratio_is_what_trying_them_all_says():
    """Of every table of up to 12 people each: none fewer does, and one different person each."""
    some = set()
    for one, other in [(1, 1), (3, 12), (7, 5), (12, 12), (12, 3)]:
        for first in range(one + 1):
            for second in range(other + 1):
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


def test_what_was_taken_for_unknown_is_said_with_its_number():
    race = pd.Series(["White", "N/A", "Other", "Declined", "N/A", "X"], dtype="category")
    result = unknown_of({"race": race}, ["other"])
    assert result.known["race"].tolist() == [True, False, False, False, False, True]
    assert result.answers == {"race": {"N/A": 2, "Other": 1, "Declined": 1}}
    (sentence,) = result.sentences
    assert "'N/A' (2), 'Other' (1), 'Declined' (1)" in sentence and result.surprising
    blank = pd.Series(["White", "unknown", "Black"], dtype="category")
    assert not unknown_of({"race": blank}, []).surprising
