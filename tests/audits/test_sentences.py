"""Findings in words: one place makes every sentence, and all of a page come from there."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import fairbench
from fairbench.audits.sentences import in_short, left_open, sentence_of, sentences_of, to_do
from fairbench.evaluation.findings import LARGE, NOT_MEASURED, OPEN, PAIR, RATIO, SMALL, Finding
from tests.audits.tables import gap, predictions
from tests.audits.test_every_kind import KINDS, TWO, asked, people

SMALL_GAP = gap(SMALL, lower=0.0, upper=0.03, value=0.01)
LARGE_GAP = gap(
    LARGE, ("men", "women"), measure="precision", value=0.2, lower=0.1, upper=0.3,
    values=(0.8, 0.6), unless="more than 2 % of the labels of men are wrong",
)  # fmt: skip
OPEN_GAP = gap(
    OPEN, measure="selection rate", value=0.06, lower=0.0, upper=0.1,
    needs="about 300 more labels would settle it with a probability of 80 % if all are alike",
)  # fmt: skip


def test_what_is_small_of_an_attribute_is_one_sentence():
    other = gap(SMALL, measure="base rate")
    assert sentences_of([SMALL_GAP, other]) == [
        "By sex, no two groups differ by more than 0.05 in accuracy, base rate."
    ]
    assert sentences_of([SMALL_GAP, other], brief=True) == [
        "By sex, no two groups differ by more than 5 percentage points in accuracy and base rate."
    ]


def test_a_large_gap_names_both_groups_and_what_would_undo_it():
    assert sentence_of(LARGE_GAP) == (
        "By sex, the precision of men is higher than that of women by more than 0.05 (difference "
        "0.200, 95 % interval 0.100 to 0.300). This holds unless more than 2 % of the labels of "
        "men are wrong."
    )
    assert sentences_of([LARGE_GAP], brief=True) == [
        "By sex, the precision is 80.0 % for men and 60.0 % for women: 20.0 percentage points "
        "apart, surely more than 5."
    ]
    ends = {"value": 0.919, "lower": 0.4, "upper": 0.99, "values": (0.916, 0.799)}
    of_others = gap(LARGE, ("a", "b"), measure="share approved", **ends)
    said = "(0.916 and 0.799; the largest difference of any two groups is 0.919"
    assert said in sentence_of(of_others)


def test_what_is_open_says_what_would_settle_it():
    assert sentence_of(OPEN_GAP) == (
        "By sex, it is open whether groups differ by more than 0.05 in selection rate (95 % "
        "interval 0.000 to 0.100; about 300 more labels would settle it with a probability of "
        "80 % if all are alike)."
    )
    nothing = gap(NOT_MEASURED, needs="there are no labels")
    said = "By sex, groups cannot be compared in accuracy: there are no labels."
    assert sentence_of(nothing) == said


def test_a_summary_is_a_selection_the_largest_first():
    wider = gap(LARGE, ("a", "b"), attribute="race", value=0.5)
    short = in_short([SMALL_GAP, LARGE_GAP, OPEN_GAP, wider])
    assert short[0].startswith("By race, the accuracy of a is higher")
    (is_open,) = left_open([SMALL_GAP, LARGE_GAP, OPEN_GAP, wider])
    assert is_open.endswith("in selection rate: these rows cannot tell.")
    assert not in_short([])
    # A combination is in it where no attribute shows it.
    crossed = gap(LARGE, ("f x b", "m x w"), attribute="sex x race", value=0.4, values=(0.8, 0.4))
    alone = replace(crossed, attribute="sex", groups=("f", "m"))
    assert len(in_short([crossed])) == 1 and in_short([crossed, alone]) == in_short([alone])


def test_a_summary_gives_the_rates_of_groups_that_differ_by_an_unknown_amount():
    rates = {"measure": "selection rate", "values": (0.4, 0.34)}
    pair = gap(LARGE, ("men", "women"), about=PAIR, **rates)
    third = replace(pair, groups=("men", "others"), values=(0.4, 0.3))
    assert in_short([OPEN_GAP, pair]) == [
        "By sex, the selection rate is 40.0 % for men and 34.0 % for women: surely higher for men, "
        "but by how much is open."
    ]
    assert in_short([OPEN_GAP, pair, third]) == [
        "By sex, groups differ in selection rate, but by how much is open: that of men (40.0 %) is "
        "higher than that of women (34.0 %) and others (30.0 %)."
    ]


def test_attributes_with_the_same_open_gaps_share_a_sentence():
    of_race = replace(OPEN_GAP, attribute="race")
    precision = replace(OPEN_GAP, measure="precision")
    assert left_open([OPEN_GAP, of_race]) == [
        "By sex and race, it is open whether groups differ by more than 5 percentage points in "
        "selection rate: these rows cannot tell."
    ]
    assert len(left_open([OPEN_GAP, precision, of_race])) == 2
    assert len(sentences_of([OPEN_GAP, of_race])) == 2


def test_four_fifths_are_reached_by_others_than_the_highest_and_said_where_no_gap_is_large():
    ratio = gap(SMALL, ("men",), about=RATIO, value=1.0, decided="selected")
    other = replace(ratio, groups=("women",), value=0.95)
    (sentence,) = sentences_of([ratio, other])
    assert sentence.startswith("By sex, women (ratio 0.95) is selected at least four fifths as oft")
    named = replace(other, groups=("women", "men"), value=1.2)  # reference=men
    assert "women (ratio 1.20)" in sentence_of(named)
    assert sentences_of([ratio]) == []
    assert "four fifths" in " ".join(in_short([other, SMALL_GAP]))
    assert "four fifths" not in " ".join(in_short([other, LARGE_GAP]))


def test_what_to_do_is_about_the_widest_gap_that_rests_on_no_assumption():
    (first,) = to_do([SMALL_GAP, LARGE_GAP])
    assert first.startswith("Find out why 'men' and 'women' differ in precision")
    assumed = gap(LARGE, ("a", "b"), value=0.5, given="if so")
    assert not list(to_do([assumed, SMALL_GAP]))


def test_only_a_finding_says_that_scores_are_off():
    off = gap(LARGE, ("men",), about="excess of scores", measure="scores", value=-0.1)
    assert "scores of men are too low on average" in sentence_of(off)
    assert not sentence_of(replace(off, verdict=OPEN))


@cache
def reports():
    """Return a report of every kind; without a word of what is good, no gap is looked at first."""
    frame = people(25).drop(columns="odd")
    two = {name: value for name, value in TWO.items() if name != "favourable"}
    parts = np.random.default_rng(3).integers(0, 7, (3, len(frame))).astype(str)
    many = frame.assign(**dict(zip("xyz", parts, strict=True)))
    proxy = frame.assign(women=np.where(frame["group"] == "a", 0.9, 0.1))
    return [
        *((kind, asked(kind, people(25), favourable="")) for kind in KINDS),
        ("many groups", fairbench.audit(many, **two, groups=["x", "y", "z"])),
        ("proxy", fairbench.audit(proxy, **two, proxy=["women"])),
    ]


@pytest.mark.thorough
def test_every_sentence_of_a_page_about_people_words_its_findings_which_are_plain_tables():
    """The page is asked, not the code: each sentence is one that the page's findings lead to."""
    names = set(Finding.__dataclass_fields__)
    for kind, report in reports():
        document, table = report.document, report.findings
        found = [
            Finding(**{name: value for name, value in row.items() if name in names})
            for row in document.data["findings"]
        ]
        assert len(found) == len(table), kind
        settled = [finding for finding in found if finding.is_settled]
        others = [finding for finding in found if not finding.is_settled]
        assert list(document.verdict.can) == sentences_of(settled), kind
        assert list(document.verdict.cannot) == sentences_of(others), kind
        assert list(document.summary.found) == in_short(found), kind
        assert list(document.summary.still_open) == left_open(found), kind
        assert set(to_do(found)) <= set(document.summary.todo), kind
        for frame in (table, report.table):
            assert len(frame), kind
            nested = frame.map(lambda cell: isinstance(cell, dict | list | tuple))
            assert not nested.any(axis=None), kind
        said = table[table["verdict"].isin([LARGE, SMALL]) & (table["about"] != PAIR)]
        assert (said["sentence"] != "").all(), kind


def gaps_in_both_directions():
    """Yield audits of two groups, either of which has the higher rates, raw and within strata."""
    for ahead in ("Male", "Female"):
        frame = predictions(1500)
        frame["hired"] = (frame["score"] + 0.3 * (frame["sex"] == ahead) > 0.5).astype(int)
        for more in ({"favourable": 1}, {"target": "label"}, {"target": "label", "within": "race"}):
            report = fairbench.audit(frame, prediction="hired", groups="sex", **more)
            yield f"{ahead}, {more}", report


@pytest.mark.thorough
def test_no_value_of_a_finding_lies_outside_its_interval():
    turned = 0
    for kind, report in [*reports(), *gaps_in_both_directions()]:
        found = report.findings
        measured = found[found["value"].notna() & found["lower"].notna()]
        assert (measured["lower"] <= measured["value"] + 1e-12).all(), kind
        assert (measured["value"] <= measured["upper"] + 1e-12).all(), kind
        of_two = measured[(measured["about"] == "gap") & measured["groups"].str.contains("; ")]
        assert (of_two["value"] > 0).all(), kind
        turned += (of_two["groups"] == "Male; Female").any()
        turned += (of_two["groups"] == "Female; Male").any()
    assert turned >= 6
