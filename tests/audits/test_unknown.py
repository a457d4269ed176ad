"""Labels of the selected alone, groups known through a proxy: what an audit says of everyone."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from fairbench.audits.direction import RATE_NAMES, RATE_OF
from fairbench.audits.kinds.counts import says_nothing
from fairbench.audits.kinds.unknown import CANNOT, RATES, _bounded_gap, bound_everyone
from fairbench.audits.table import read_audit_table, read_frame
from fairbench.evaluation.findings import (
    GAP,
    LARGE,
    NOT_MEASURED,
    OPEN,
    SMALL,
    ErrorBudget,
    Finding,
)
from fairbench.inference.partial import RateBounds
from fairbench.metrics.registry import binary_confusion
from tests.audits.tables import audit, parse, predictions, refusal, shown_by, written

WORDS = ["target=label", "score=score", "group=sex", "selected=hired"]


def partly_selected(rows=3000, *, bias=0.3, keep=False, seed=0):
    """Return predictions of which those with low scores were often not selected, and the truth."""
    frame = predictions(rows, bias=bias, seed=seed)
    generator = np.random.default_rng(seed + 1)
    hired = generator.random(rows) < np.clip(frame["score"] + 0.5, 0, 0.98)
    truth = frame["label"].to_numpy()
    shown = frame["label"].astype(object) if keep else frame["label"].where(hired)
    return frame.assign(hired=hired, label=shown), truth


def bounded(frame, folder, *words):
    options = parse([str(written(frame, folder)), *WORDS, *words])
    table = read_audit_table(options, frame=read_frame(options))
    budget = ErrorBudget(len(table.groups) * len(RATE_OF))
    _, gaps, rates = bound_everyone(table, options, budget.risk)
    metrics = {name: metric for metric, name in table.direction.rate_names.items()}
    return {metrics[gap["measure"]]: gap for gap in gaps}, rates


def test_bounds_hold_the_rates_of_everyone(tmp_path):
    frame, truth = partly_selected()
    gaps, rates_of_everyone = bounded(frame, tmp_path)
    group = (frame["sex"] == "Female").to_numpy().astype(int)
    decision = (frame["score"] > 0.5).to_numpy().astype(int)
    counts = binary_confusion(truth, decision, group, n_groups=2)
    rates = {rate.name: rate for rate in RATE_OF.values()}
    for row in rates_of_everyone:
        if row["rate"] in rates:
            value = rates[row["rate"]](counts)[["Male", "Female"].index(row["group"])]
            assert row["lowest"] - 1e-9 <= value <= row["highest"] + 1e-9
            # Labels that are missing depend on the score alone here.
            assert row["assumed_lower"] <= value <= row["assumed_upper"]
    for metric, gap in gaps.items():
        values = RATE_OF[metric](counts)
        assert gap["lower"] <= values[1] - values[0] <= gap["upper"]


def test_what_no_label_settles_is_said_to_be_so(tmp_path):
    gaps, _ = bounded(partly_selected()[0], tmp_path)
    assert gaps["accuracy_gap"]["verdict"] == CANNOT
    precision = gaps["predictive_parity"]
    assert precision["verdict"] == precision["alike"] == LARGE
    assert precision["factor"] is None
    wrongly_positive = gaps["false_positive_rate_gap"]
    assert wrongly_positive["alike"] == LARGE
    factor = wrongly_positive["factor"]
    for odds, expected in ((0.98 * factor, LARGE), (1.02 * factor, OPEN)):
        gaps, _ = bounded(partly_selected()[0], tmp_path, f"odds={odds}")
        assert gaps["false_positive_rate_gap"]["assumed_verdict"] in (
            expected,
            CANNOT if expected == OPEN else expected,
        )


@pytest.mark.parametrize(
    ("lower", "upper", "rows", "expected"),
    [
        ((0.50, 0.51), (0.51, 0.52), 1e6, SMALL),
        ((0.30, 0.40), (0.32, 0.48), 1e6, LARGE),
        ((0.50, 0.51), (0.51, 0.52), 100, OPEN),
        ((0.30, 0.40), (0.32, 0.48), 100, OPEN),
        ((0.30, 0.40), (0.41, 0.48), 1e6, CANNOT),
        ((0.30, 0.40), (0.41, 0.48), 100, CANNOT),
    ],
)
def test_bounds_are_told_from_noise(lower, upper, rows, expected):
    ends = RateBounds(np.array([lower, upper]), np.full((2, 2), rows))
    template = Finding(GAP, "sex", "rate", NOT_MEASURED, bound=0.05)
    finding, gap = _bounded_gap(template, ["one", "other"], ends, 0.05)
    assert gap["verdict"] == expected
    assert finding.verdict == (OPEN if expected == CANNOT else expected)
    assert finding.groups == (("other", "one") if expected == LARGE else ())


def test_a_large_gap_names_two_groups_that_are_surely_so_far_apart():
    """The groups with the largest lower and the smallest upper end may be too small for that."""
    value = np.array([0.1, 0.15, 0.8, 0.85])
    ends = RateBounds(*(np.array([row, row]) for row in (value, [20.0, 2000, 2000, 20])))
    template = Finding(GAP, "race", "rate", NOT_MEASURED, bound=0.6)
    finding, _ = _bounded_gap(template, ["a", "b", "c", "d"], ends, 0.05)
    assert finding.groups == ("c", "b")


def test_the_report_is_of_the_selected_and_says_what_follows_for_everyone(tmp_path, capsys):
    path = written(partly_selected()[0], tmp_path)
    printed = shown_by([path, *WORDS, f"out={tmp_path / 'out'}"], capsys)
    assert "Of 3,000 people, 2," in printed
    assert "What cannot be known" in printed
    larger = "By sex, the precision of Female is higher than that of Male by more than 0.05, of"
    assert f"{larger} everyone, whatever the labels are that cannot be known" in printed
    assert "no number of rows settles it: anything in" in printed
    stored = json.loads((tmp_path / "out" / "audit.json").read_text())
    assert stored["rows"] == stored["of_everyone"]["selected"] < stored["of_everyone"]["rows"]
    assert "What cannot be known" in (tmp_path / "out" / "audit.html").read_text()


@pytest.mark.thorough
def test_labels_of_those_who_were_not_selected_do_not_count(tmp_path, capsys):
    shown, hidden = (partly_selected(600, keep=keep)[0] for keep in (True, False))
    printed = []
    for frame in (shown, hidden):
        path = written(frame, tmp_path)
        assert audit([path, *WORDS, f"out={tmp_path / 'out'}"]) == 0
        lines = capsys.readouterr().out.splitlines()
        printed.append([line for line in lines if not line.startswith(("File: ", "Made: "))])
    assert printed[0] == printed[1]


def test_a_group_of_which_nobody_was_selected_is_all_unknown(tmp_path, capsys):
    frame, _ = partly_selected(600)
    frame["hired"] &= frame["race"] != "Black"
    path = written(frame, tmp_path)
    words = ["target=label", "score=score", "group=race", "selected=hired"]
    assert audit([path, *words, f"out={tmp_path / 'out'}"]) == 0
    rates = json.loads((tmp_path / "out" / "audit.json").read_text())["of_everyone"]["rates"]
    (black,) = (e for e in rates if (e["group"], e["rate"]) == ("Black", "base_rate"))
    assert (black["lowest"], black["highest"]) == (0, 1)
    assert black["rows"] == black["others"]


def by_proxy(rows=3000, *, seed=0, spread=0.3, gap=0.0):
    """Return predictions of people whose group is known through a probability, and the groups."""
    generator = np.random.default_rng(seed)
    women = generator.beta(spread, spread, rows).round(2)
    member = generator.random(rows) < women
    score = np.clip(generator.beta(2, 2, rows) + gap * member, 0, 1)
    label = (generator.random(rows) < score).astype(int)
    columns = {"women": women, "men": (1 - women).round(2), "score": score, "label": label}
    return pd.DataFrame(columns), member


def reported(frame, folder, *words):
    given = ["target=label", "score=score", f"out={folder / 'out'}"]
    assert audit([written(frame, folder), *given, *words]) == 0
    return json.loads((folder / "out" / "audit.json").read_text())


def test_bounds_hold_whoever_belongs_to_which_group(tmp_path, capsys):
    frame, member = by_proxy(gap=0.2)
    result = reported(frame, tmp_path, "proxy=[men,women]")
    decision = (frame["score"] > 0.5).astype(int)
    counts = binary_confusion(frame["label"], decision, member, n_groups=2)
    for figure in result["figures"]:
        rate = {rate.name: rate for rate in RATES}[figure["metric"]]
        value = rate(counts)[["men", "women"].index(figure["group"])]
        assert figure["lower"] <= value <= figure["upper"]
        assert figure["lowest"] - 1e-9 <= figure["weighted"] <= figure["highest"] + 1e-9
    metrics = {name: metric for metric, name in RATE_NAMES.items()}
    for gap in result["gaps"]:
        men, women = RATE_OF[metrics[gap["measure"]]](counts)
        assert gap["interval"][0] <= women - men <= gap["interval"][1]
    printed = " ".join(capsys.readouterr().out.split())
    assert "no number of rows settles it: anything in" in printed


def test_sure_proxies_settle_what_groups_would(tmp_path, capsys):
    frame, _ = by_proxy(6000, spread=0.001, gap=0.3)
    result = reported(frame, tmp_path, "proxy=[men,women]", "epsilon=0.08")
    verdicts = {gap["measure"]: gap["verdict"] for gap in result["gaps"]}
    assert verdicts["selection rate"] == LARGE
    printed = " ".join(capsys.readouterr().out.split())
    assert "The selection rate of women is higher than that of men by more than 0.08" in printed


def test_one_column_is_of_a_group_and_everybody_else(tmp_path):
    frame, _ = by_proxy(500)
    result = reported(frame.drop(columns="men"), tmp_path, "proxy=women")
    assert list(result["groups"]) == ["not women", "women"]
    assert sum(result["groups"].values()) == pytest.approx(500)


def test_without_labels_there_are_selection_rates_alone(tmp_path):
    result = reported(by_proxy(500)[0].assign(label=""), tmp_path, "proxy=[men,women]")
    known = {gap["measure"] for gap in result["gaps"] if gap["lower"] is not None}
    assert known == {"selection rate"}


SELECTED = {"target": "label", "score": "score", "group": "sex", "selected": "hired"}
PROXY = {"target": "label", "score": "score", "proxy": "[men,women]"}


@pytest.mark.parametrize(
    ("given", "word", "change", "sentence"),
    [
        (SELECTED, "odds=0.5", {}, "odds is 0.5; it must be at least 1"),
        (SELECTED, "against=race", {}, "selected= does not apply to a comparison of two scores"),
        (SELECTED, "weight=score", {}, "weight= does not apply to an audit of labels of the sel"),
        (SELECTED, "target=", {}, "selected= is given without target="),
        (SELECTED, "seed=0", {"hired": False}, "column 'hired' is true in no row: nobody was sele"),
        (SELECTED, "seed=0", {"hired": "perhaps"}, "'hired', row 1: 'perhaps' is not true or fal"),
        (SELECTED, "selected=label", {}, "selected= names 'label', which is the column of labels"),
        (PROXY, "group=men", {}, "proxy= stands for group=: leave one of them out"),
        (PROXY, "selected=men", {}, "selected= does not apply to an audit of groups by their"),
        (PROXY, "proxy=[men,men]", {}, "proxy=[men,men] names a column twice"),
        (PROXY, "proxy=[men,woman]", {}, "did you mean 'women'"),
        (PROXY, "seed=0", {"men": 1.5}, "column 'men', row 1: '1.5' is not a probability"),
        (PROXY, "seed=0", {"men": "a"}, "column 'men', row 1: 'a' is no number"),
        (PROXY, "seed=0", {"men": 0.5, "women": 0.1}, "probabilities of the 2 groups sum to 0.6"),
        (PROXY, "proxy=[men,label]", {}, "proxy= names 'label', which is the column of labels"),
    ],
)
def test_faults_are_one_sentence(given, word, change, sentence, tmp_path, capsys):
    people = partly_selected(100)[0] if given is SELECTED else by_proxy(100)[0]
    path = written(people.assign(**change), tmp_path)
    options = given | dict([word.split("=", 1)])
    said = refusal([path, *(f"{name}={value}" for name, value in options.items())], capsys)
    assert sentence in said


# Answers that say that a category is not known are told from categories, in any spelling.

SAY_NOTHING = """
Decline To Self Identify|Decline to Self-Identify|I do not wish to answer|I don't wish to answer
I don’t wish to answer|I DO NOT WANT TO ANSWER|Prefer not to answer|prefer not to say
I prefer not to disclose my race|I'd rather not say|Rather not say|N/A|n/a|NA|Not Applicable|nan
Choose not to disclose|I choose not to self-identify|Choose Not To Identify|Unspecified|Unknown
Not specified|Race not specified|Ethnicity unknown|Decline to state|Declined to specify|Declined
Not Disclosed|Undisclosed|Not provided|Not reported|Did not answer|No response|Refused|NULL|-|?
Do not wish to disclose|I do not wish to provide this information|Prefer not to self-identify
Decline to answer (race/ethnicity)|Prefer Not To Say / Unknown|unknown/not reported|Unavailable
I don't know|Prefer not to respond|Decline to Self-ID|Candidate declined|  prefer NOT to  say
"""
SAY_SOMETHING = """
White|Black or African American|Two or more races|Other|Prefer to self-describe|None of the above
Not Hispanic or Latino|Native American|Male|X|Nonbinary|Non-binary|Not listed|Some other race
Asian|A gender not listed here|Wanted|na x White|Race|Sex|I identify as White
"""


def answers(text):
    return [answer for line in text.strip().splitlines() for answer in line.split("|")]


@pytest.mark.parametrize("answer", ["", *answers(SAY_NOTHING)])
def test_an_answer_that_says_nothing(answer):
    assert says_nothing(answer) and says_nothing(answer.upper())


@pytest.mark.parametrize("answer", answers(SAY_SOMETHING))
def test_a_category(answer):
    assert not says_nothing(answer)


@pytest.mark.parametrize("end", ["", " x"])
def test_a_long_answer_is_read_at_once(end):
    assert says_nothing("decline race " * 10_000 + end) == (not end)
