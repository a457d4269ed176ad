"""Impact ratios of an audit: who is compared with whom, and what is said of it."""

import json

import numpy as np
import pandas as pd
import pytest

from fairbench.audits.impact import attributes_with_small_groups, impact_findings, impact_ratios
from fairbench.audits.sentences import sentences_of
from fairbench.audits.table import read_audit_table
from fairbench.core.errors import UserError
from fairbench.evaluation.impact_ratios import impact_ratios_of
from tests.audits.tables import audit, parse, written


def people(men=(500, 200), women=(400, 100), others=()):
    """Return people of whom (rows, selected) of each sex are selected."""
    parts = {"Male": men, "Female": women, **({"Other": others} if others else {})}
    rows = [
        {"sex": sex, "race": "Black" if i % 3 else "White", "decision": int(i < selected)}
        for sex, (n, selected) in parts.items()
        for i in range(n)
    ]
    return pd.DataFrame(rows).assign(label=lambda frame: frame["decision"])


def ratios(frame, folder, *more):
    words = [str(written(frame, folder)), "prediction=decision", "target=label", *more]
    options = parse(words)
    return impact_ratios(read_audit_table(options))


def test_the_default_is_the_four_fifths_rules_group(tmp_path):
    male, female = ratios(people(), tmp_path, "group=sex")
    assert (male.group, male.reference, male.given, male.ratio) == ("Male", "Male", False, 1)
    assert female.ratio == pytest.approx(0.25 / 0.4)
    assert female.lower < female.ratio < female.upper < 0.8
    assert female.below > 0.99
    said = sentences_of(impact_findings([male, female], [male, female], "selected"))
    assert said == [
        "By sex, Female (ratio 0.62) is selected less than four fifths as often as the group "
        "selected most often.",
    ]


def test_a_reference_may_be_named_and_is_that_of_all_comparisons(tmp_path):
    words = ("group=[sex,race]", "reference=[Female,race:White]")
    result = ratios(people(), tmp_path, *words)
    assert {ratio.attribute: ratio.reference for ratio in result} == {
        "sex": "Female",
        "race": "White",
        "sex x race": "Female x White",
    }
    male = next(ratio for ratio in result if ratio.group == "Male")
    assert male.ratio == pytest.approx(0.4 / 0.25)
    assert male.below < 0.01
    table = read_audit_table(parse([str(tmp_path / "predictions.csv"), "prediction=decision",
                                    "target=label", *words]))  # fmt: skip
    assert table.groups["sex"].cat.categories[0] == "Female"


def test_the_favourable_decision_may_be_that_of_label_0(tmp_path):
    _, female = ratios(people(), tmp_path, "group=sex", "favourable=0", "reference=Male")
    assert female.rate == 0.75
    assert female.ratio == pytest.approx(0.75 / 0.6)


def test_nobody_is_compared_with_a_very_small_group(tmp_path):
    result = ratios(people(others=(12, 12)), tmp_path, "group=sex")
    assert {ratio.reference for ratio in result} == {"Male"}
    other = next(ratio for ratio in result if ratio.group == "Other")
    assert other.ratio == pytest.approx(2.5)
    female = [ratio for ratio in result if ratio.group == "Female"]
    assert sentences_of(
        impact_findings(female, female, "selected", attributes_with_small_groups(result))
    ) == [
        "By sex, Female (ratio 0.62) is selected less than four fifths as often as the group "
        "selected most often, of the groups of at least 10 rows and 2 % of all."
    ]


def test_of_two_groups_a_very_small_one_is_compared_with(tmp_path):
    result = ratios(people(men=(500, 200), women=(8, 8)), tmp_path, "group=sex")
    assert {ratio.reference for ratio in result} == {"Female"}
    assert attributes_with_small_groups(result) == set()


def test_who_is_selected_needs_no_label(tmp_path):
    known = ratios(people(), tmp_path, "group=sex")
    frame = people().assign(score=lambda each: 0.1 + 0.8 * each["decision"]).drop(columns="label")
    options = parse([str(written(frame, tmp_path)), "score=score", "group=sex"])
    assert impact_ratios(read_audit_table(options)) == known


def test_weights_count(tmp_path):
    frame = people().assign(weight=lambda each: np.where(each["decision"], 2.0, 1.0))
    male, female = ratios(frame, tmp_path, "group=sex", "weight=weight")
    assert male.rate == pytest.approx(400 / 700)
    assert female.rate == pytest.approx(200 / 500)
    assert female.lower < female.ratio < female.upper


@pytest.mark.parametrize(
    ("reference", "complaint"),
    [
        ("Mal", "unknown reference group 'Mal': did you mean Male"),
        ("[Male,Female]", "reference= names two groups of sex"),
        ("x", "two columns have a group 'x': write reference=one:x or reference=two:x"),
    ],
)
def test_a_reference_that_is_none_is_refused(reference, complaint, tmp_path):
    groups = "group=[sex,race]"
    frame = people()
    if reference == "x":
        frame = frame.assign(one=np.where(frame["label"], "x", "y"), two=frame["sex"].str[:1])
        frame["two"] = frame["two"].replace({"M": "x"})
        groups = "group=[one,two]"
    with pytest.raises(UserError, match=complaint):
        ratios(frame, tmp_path, groups, f"reference={reference}")


def test_one_group_has_no_ratio():
    groups = pd.Series(pd.Categorical(["a"] * 5, ["a", "b"]))
    assert impact_ratios_of("g", groups, np.ones(5, bool)) == []


def test_the_report_shows_them(tmp_path, capsys):
    file = written(people(), tmp_path)
    words = [file, "prediction=decision", "target=label", "group=sex", f"out={tmp_path}"]
    assert audit(words) == 0
    printed = capsys.readouterr().out
    assert "Impact ratios" in printed
    assert "P(<0.8)" in printed
    content = json.loads((tmp_path / "audit.json").read_text())
    assert [ratio["group"] for ratio in content["impact"]] == ["Male", "Female"]
    assert "Impact ratios" in (tmp_path / "audit.html").read_text()
