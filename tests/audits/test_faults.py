"""Every fault of a user's file or command gets one sentence; all that is open is asked at once."""

import os
import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

import fairbench
from benchmarks.faults.kinds import WORDS, kinds, text
from fairbench.audits.table import read_audit_table
from fairbench.cli.main import main
from fairbench.core.errors import OpenQuestions, UserError
from tests.audits import test_kinds as people_of
from tests.audits.tables import parse, predictions, text_of, why_not, written
from tests.audits.test_assessment import surveyed
from tests.audits.test_groups import aged
from tests.audits.test_question import OF_PROXIES, OF_SELECTED, by_proxy, partly_selected

WORDED = {"target": "label", "score": "score", "group": "[sex,race]"}


def words(path, **options):
    given = WORDED | options
    return [str(path), *(f"{name}={value}" for name, value in given.items() if value)]


PEOPLE = predictions(60)
SCORE, LABEL, ROW = PEOPLE["score"], PEOPLE["label"], np.arange(60)
# What is wrong with each column, its name says.
WRONG = {
    "over": SCORE.where(ROW != 4, 1.2),
    "word": SCORE.astype(object).where(ROW != 4, "high"),
    "blank": SCORE.where(ROW > 2),
    "signs": [f"{100 * score:.1f} %" for score in SCORE],
    "some_signs": [f"{100 * score:.1f}" + " %" * (row % 2) for row, score in enumerate(SCORE)],
    "few_percents": SCORE.where(ROW > 3, 45),
    "half_percents": SCORE * np.where(ROW % 2, 1, 100),
    "deciles": ROW % 10 + 1,
    "leak": 0.9 - 0.4 * LABEL,
    "third": LABEL.where(ROW != 9, 2),
    "unsure": LABEL.astype(object).where(ROW > 0, "Unknown"),
    "repaid": ["?", "repaid", "default"] * 20,
    "three": ["yes", "no", "refer"] * 20,
    "bad_good": ["bad", "good"] * 30,
    "yes_no": ["yes", "no"] * 30,
    "zero_one": ROW % 2,
    "hole": LABEL.where(ROW != 2),
    "nothing": np.nan,
    "maybe": "maybe",
    "mark": PEOPLE["is_labelled"].astype(object).where(ROW != 3, "perhaps"),
    "age": 30,
    "ages": ROW % 57 + 18,
    "alike": "Male",
    "crossed": PEOPLE["sex"].replace({"Male": "Male x White"}),
}
FAULTS = yaml.safe_load(Path(__file__).with_name("refused.yaml").read_text())
FAULTS[f"group=[ages:quantiles({'9' * 4301})]"] = "name 2 to 1000 parts"


@pytest.mark.parametrize(("given", "sentence"), FAULTS.items())
def test_fault_is_one_sentence(given, sentence, tmp_path, capsys):
    path = written(PEOPLE.assign(**WRONG), tmp_path)
    options = dict(word.split("=", 1) for word in given.split())
    assert main(["audit", *words(path, **options), f"out={tmp_path / 'out'}"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("error: ")
    assert printed.err.count("\n") == 1 or "things are open" in printed.err
    assert re.search(sentence, printed.err), printed.err
    assert not (tmp_path / "out").exists()


def noted(frame, **options):
    """Return what the page of an audit says, on one line."""
    asked = {"target": "label", "score": "score", "groups": "sex"}
    return text_of(fairbench.audit(frame, **{**asked, **options}))


def test_what_contains_the_label_is_told_of():
    told = "'score' tells the two labels apart without one mistake in 60 labelled rows"
    assert told in noted(PEOPLE.assign(score=0.8 * LABEL + 0.1 * SCORE))
    decided = noted(PEOPLE.assign(decision=LABEL), prediction="decision")
    assert "'decision' equals the label in all 60 labelled rows" in decided
    few = predictions(40)  # so few may be right by chance
    assert "may have been made" not in noted(few.assign(score=few["label"]))


@pytest.mark.thorough
@pytest.mark.parametrize("labels", [60, 3])
@pytest.mark.parametrize(
    ("label", "missing"), [(1, "false positive rate"), (0, "true positive rate")]
)
def test_labels_of_one_class_are_told_of(label, missing, labels):
    said = noted(predictions(60, labels=labels).assign(label=label), labelled="is_labelled")
    assert f"All {labels} labels are '{label}': there are selection rates, accuracy" in said
    assert f"nothing is known of the {missing}" in said


@pytest.mark.parametrize("command", [
    ["audit", "loop.csv"], ["gate", "loop.csv", "fail_if=impact_ratio<0.8"],
    ["audit", "predictions.csv", "policy=loop.csv"], ["watch", "loop.csv", "state=s", "time=week"],
    ["watch", "predictions.csv", "state=loop.csv", "time=week"],
    ["label", "next", "loop.csv", "state=s"],
    ["label", "next", "predictions.csv", "state=loop.csv"],
])  # fmt: skip
def test_a_link_to_itself_is_no_file_and_stays(command, tmp_path, capsys, monkeypatch):
    written(predictions(60).assign(week=1), tmp_path)
    monkeypatch.chdir(tmp_path)
    os.symlink("loop.csv", "loop.csv")
    assert main([*command, "target=label", "score=score", "group=sex"]) == 2
    printed = capsys.readouterr().err.splitlines()
    assert "loop.csv" in printed[-1] and printed[-1].startswith("error: ")
    assert os.readlink("loop.csv") == "loop.csv"


@pytest.mark.thorough
def test_an_audit_stays_beside_its_file_and_never_over_another(tmp_path, said_by, capsys):
    path = written(predictions(200), tmp_path, "loans.csv")
    for place, more in (("", []), ("-2", ["threshold=0.4"]), ("", [])):
        page = tmp_path / f"loans-audit{place}" / "audit.html"
        assert f"written: {page}" in said_by("audit", *words(path, group="sex"), *more)
    assert {p.name for p in tmp_path.iterdir()} == {"loans.csv", "loans-audit", "loans-audit-2"}
    other = written(predictions(200, seed=1), tmp_path, "others.csv")
    out = f"out={tmp_path / 'loans-audit'}"
    assert main(["audit", *words(other, group="sex"), out]) == 2
    assert "holds the audit of" in capsys.readouterr().err


# All that a file leaves open is asked at once, with the words that answer it.


@pytest.fixture
def loans():
    draw, rows = np.random.default_rng(3), 600
    chance = draw.uniform(0.05, 0.95, rows)
    sex, age = draw.choice(["female", "male"], rows), draw.integers(18, 80, rows)
    return pd.DataFrame({"sex": sex, "age": age, "score": (100 * chance).round(1)}).assign(
        approved=np.where(chance > 0.6, "approved", "declined"),
        outcome=np.where(draw.random(rows) < chance, "repaid", "defaulted"),
    )


OF_LOANS = ("target=outcome", "score=score")
LIKELY = ("scale=percent", "positive=repaid", "group=sex,age:quantiles(4)")


def answers(error):
    """Return the words of the last line of a refusal, and those of which one is to be chosen."""
    last = error.splitlines()[-1]
    likely, *choices = last.removeprefix("If that is right, give ").split("; and one of ")
    return shlex.split(likely), [shlex.split(choice.replace(",", "")) for choice in choices]


@pytest.mark.parametrize(
    ("words", "number", "choices"),
    [
        ([], 3, []),
        (["purpose=lending"], 4, [["favourable=defaulted", "favourable=repaid"]]),
        (["prediction=approved"], 5, [
            ["decision=approved/declined", "decision=declined/approved"],
            ["favourable=defaulted", "favourable=repaid"],
        ]),
        (["positive=repaid", "favourable=repaid"], 2, []),
    ],
)  # fmt: skip
def test_what_is_asked_at_once_answers_all(loans, words, number, choices, tmp_path, capsys):
    out = f"out={tmp_path / 'report'}"
    command = ["audit", str(written(loans, tmp_path)), *OF_LOANS, *words, out]
    assert main([*command, "group=sex,age"]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"error: {number} things are open:\n1. predictions.csv: column 'score'")
    assert [line[:2] for line in error.splitlines()[1:-1]] == [f"{i + 1}." for i in range(number)]
    likely, found = answers(error)
    assert found == choices
    assert [word for word in LIKELY if word not in words] == likely
    assert main([*command, *likely, *(choice[-1] for choice in choices)]) == 0


def test_python_is_asked_the_same_and_one_question_stands_alone(loans):
    asked = {"target": "outcome", "score": "score", "groups": ["sex", "age"]}
    with pytest.raises(OpenQuestions, match=r"(?s)^3 things.*give scale=percent positive=repaid"):
        fairbench.audit(loans, **asked)
    clear = {"positive": "repaid", "favourable": "repaid", "scale": "percent", "name": "loans"}
    said = "loans: column 'age' holds 62 different numbers, which are no groups yet: "
    assert why_not(loans, **asked, **clear).startswith(said)


def test_other_kinds_and_a_watch_ask_at_once_too(loans, tmp_path, capsys):
    path = written(loans.assign(guess=loans["score"] + 1, income=loans["score"] * 317.13), tmp_path)
    numbers = ["target=score", "prediction=guess", "group=age,income"]
    assert main(["audit", str(path), *numbers, f"out={tmp_path / 'numbers'}"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: 2 things are open:\n1. predictions.csv: column 'age' holds")
    bands = ["group=age:quantiles(4),income:quantiles(4)"]
    assert answers(error) == (bands, [])
    assert main(["audit", str(path), *numbers[:2], *bands, f"out={tmp_path / 'numbers'}"]) == 0
    watched = ["watch", str(path), *OF_LOANS, "group=sex", f"state={tmp_path / 'w.json'}"]
    assert main([*watched, "decision=approved/declined"]) == 2
    likely, choices = answers(capsys.readouterr().err)
    assert likely == ["scale=percent"] and len(choices) == 2
    chosen = [choice[-1] for choice in choices]
    command = [*watched, "decision=approved/declined", *likely, *chosen, f"results={tmp_path}"]
    assert main(command) in (0, 1)


# Files of twenty kinds are read as their plain CSV is, or refused in one line.


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    path = tmp_path_factory.mktemp("plain") / "plain.csv"
    path.write_text(text())
    return read_audit_table(parse([str(path), *WORDS]))


@pytest.mark.parametrize("kind", kinds(), ids=lambda kind: f"{kind.kind}, {kind.name}")
def test_a_file_is_read_as_the_plain_one_or_refused(kind, plain, tmp_path, capsys):
    path = kind.write(tmp_path)
    options = parse([str(path), *WORDS, *kind.words])
    if kind.refused:
        with pytest.raises(UserError) as caught:
            read_audit_table(options)
        assert kind.refused in str(caught.value)
        lines = f"error: {caught.value}".splitlines()
        assert max(map(len, lines)) <= 300
        assert len(lines) == 1 or isinstance(caught.value, OpenQuestions)
        return
    table = read_audit_table(options)
    np.testing.assert_array_equal(table.label, plain.label)
    np.testing.assert_allclose(table.score, plain.score, rtol=0, atol=1e-12)
    for name, groups in plain.groups.items():
        assert table.groups[name].tolist() == groups.tolist()
    assert len(capsys.readouterr().err.splitlines()) <= 1


# What each kind of audit refuses: its people and options, and changes of their columns and options.
USUAL = {"target": "label", "score": "score", "groups": "sex"}
WEIGHT, CLUSTER = {"weight": "people"}, {"cluster": "home"}
SOME, POSTERIOR = {"labelled": "is_labelled"}, {"interval": "dirichlet"}
OF_STRATA = {"target": "label", "prediction": "decision", "groups": "sex", "within": ["department"]}
REFUSED = {
    "classes": (people_of.classified(60), people_of.OF_CLASSES, [
        ({"predicted": "dog"}, {"groups": "site"}, "a label has two val"),
        ({"score": 1.5}, {}, "column 'score', row 1: '1.5' is not a prob"),
        ({}, {"score": ""}, "score= is missing: name .* class$"),
        ({"label": [*range(12)] * 5, "predicted": [*range(6)] * 10}, {"score": ""},
         "score= is missing: .* predictions as they were before rounding, .* bounds="),
        ({"label": [0, 1] * 30, "score": np.arange(60) / 60}, {"prediction": "score", "score": ""},
         "'score' holds probabilities, not decisions: name it by score= instead"),
        ({}, {"target": "", "prediction": "", "score": ["score"] * 2}, "target= is missing"),
        ({}, {"prediction": "", "score": ["score", "site"]}, "column 'site', row 1: .* number"),
        ({}, {"cost": "none.csv"}, "cost=none.csv cannot be read"),
        ({}, {"prior": "flat"}, "unknown prior 'flat'"),
    ]),
    "numbers": (people_of.incomes(100), people_of.OF_NUMBERS, [
        ({}, {"bounds": ["low"]}, "bounds= names two columns"),
        ({}, {"bounds": ["high", "low"]}, "is not at most 'low' of its row"),
        ({}, {"nominal": 1.5}, "nominal"),
        ({"income": [f"{k}.5 EUR" for k in range(100)]}, {}, "'0.5 EUR' is no number: leave out"),
    ]),
    "ranking": (people_of.candidates(2), {"score": "rating", "groups": "sex"}, [
        ({}, {"top": 2.5}, "a whole number, or a share under 1"),
        ({}, {"lists": "vacancy"}, "say how many are the first by top="),
        ({"one": 1}, {"top": 5, "lists": "one"}, "has one mark in all rows"),
        ({"vacancy": [*range(39), ""]}, {"top": 5, "lists": "vacancy"},
         "column 'vacancy', row 40: '' is not a mark of rows that are ranked together"),
        ({}, {"score": ["rating", "vacancy"], "top": 3}, "name their column by score="),
    ]),
    "times": (people_of.patients(50), people_of.OF_TIMES, [
        ({}, {"horizon": 0.0}, "event= needs horizon="),
        ({}, {"horizon": 900.0}, "horizon=900: no row of .* is observed beyond"),
        ({"risk": 1.5}, {}, "column 'risk', row 1: '1.5' is not a probability"),
        ({"months": -1}, {}, "column 'months', row 1: '-1' is not a time of 0 or more"),
        ({}, {"threshold": 0.3}, "threshold= does not apply to an audit of times until an event"),
    ]),
    "pair": (people_of.pair(60), people_of.OF_TWO, [
        ({}, {"against": "othre"}, "no column 'othre'; did you mean 'other'"),
        ({}, {"prediction": "label"}, "give score= alone"),
        ({}, {"prediction": "label", "score": ""}, "give score= alone"),
        ({}, {"against": "score"}, "against= and score= both name 'score'"),
        ({}, {"weight": "score"}, r"weight= does not apply to a comparison .* \(against=\), but"),
    ]),
    "two classes": (people_of.pair(60), USUAL, [
        ({}, {"score": "", "prediction": "other", "threshold": 0.9}, "threshold= is of scores"),
        ({}, {"score": "", "prediction": "other", "scale": "percent"}, "scale= is of scores and"),
        ({}, {"nominal": 0.8}, "nominal= is of prediction intervals"),
        ({}, {"require": "pass"}, "require= is of a gate: give a condition"),
    ]),
    "weights and clusters": (surveyed(predictions(60, labels=40)), USUAL, [
        ({"people": -1}, WEIGHT, "column 'people', row 1: '-1.0' is not a weight of 0"),
        ({"people": "many"}, WEIGHT, "is no number"),
        ({"people": 0}, WEIGHT, "column 'people' is 0 in every row"),
        ({"home": "one"}, CLUSTER, "column 'home' has one mark in all rows: intervals n"),
        ({"home": None}, CLUSTER, "column 'home', row 1: '' is not a mark of rows"),
        ({}, WEIGHT | SOME, "weight= and cluster= need a label in"),
        ({}, CLUSTER | POSTERIOR, "interval=dirichlet takes neither weights"),
        ({}, SOME | POSTERIOR, "in every row, and 40 rows have one"),
    ]),
    "thresholds and references": (predictions(60), USUAL, [
        ({}, {"constraint": "ratio"}, "after the colon comes a number"),
        ({}, {"constraint": "rati:0.8"}, "unknown constraint 'rati': did you mean ratio"),
        ({}, {"constraint": "ratio:1.2"}, "after the colon comes a number from 0 to 1"),
        ({}, {"constraint": "ratio:0.8", "prediction": "label"}, "constraint= looks for a thre"),
        ({}, {"constraint": "true_positive_rate:0.1", "target": ""}, "needs a label in every row"),
        ({}, {"reference": "Mal"}, "unknown reference group 'Mal': did you mean Male"),
        ({}, {"reference": ["Male", "Female"]}, "reference= names two groups of sex"),
        ({"race": [*"ab"] * 30, "sex": [*"bc"] * 30}, {"reference": "b", "groups": ["sex", "race"]},
         "two columns have a group 'b': write reference=sex:b or reference=race:b"),
    ]),
    "strata": (aged(1200).assign(id=[f"c{i}" for i in range(1200)], p=np.arange(1200) % 50,
                                 q=np.arange(1200) // 24), OF_STRATA, [
        ({}, {"within": ["sex"]}, "within= names 'sex', which group= names"),
        ({}, {"within": ["id"]}, "'id' holds 1200 different values; a within column has 2 to 50"),
        ({}, {"within": ["age:40,30"]}, "within=age:40,30: the limits of bands rise"),
        ({}, {"within": ["age", "age"]}, r"within=\[age,age\] names a column twice"),
        ({}, {"weight": "age"}, "within= takes no weight=: leave one of them out"),
        ({}, {"cluster": "id"}, "within= takes no cluster=: leave one of them out"),
        ({}, POSTERIOR, "within= takes no interval=dirichlet"),
        ({"price": np.arange(1200) / 7, "guess": np.arange(1200) / 6},
         {"prediction": "guess", "target": "price"}, "within= does not apply to"),
        ({}, {"within": ["p", "q"]}, "'p x q' makes 1,200 strata of 1,200 rows; groups are compa"),
    ]),
    "the selected": (partly_selected(100)[0], OF_SELECTED, [
        ({}, {"odds": 0.5}, "odds is 0.5; it must be at least 1"),
        ({}, {"against": "race"}, "selected= does not apply to a comparison of two"),
        ({}, {"target": ""}, "selected= is given without target="),
        ({"hired": False}, {}, "column 'hired' is true in no row: nobody was sele"),
        ({"hired": "perhaps"}, {}, "'hired', row 1: 'perhaps' is not true or fal"),
    ]),
    "proxies": (by_proxy(100)[0], OF_PROXIES, [
        ({}, {"groups": "men"}, "proxy= stands for group=: leave one of them out"),
        ({}, {"selected": "men"}, "selected= does not apply to an audit of groups by"),
        ({}, {"proxy": ["men", "men"]}, r"proxy=\[men,men\] names a column twice"),
        ({"men": 1.5}, {}, "column 'men', row 1: '1.5' is not a probability"),
        ({"men": 0.5, "women": 0.1}, {}, "probabilities of the 2 groups sum to 0.6"),
        ({}, {"proxy": ["men", "label"]}, "proxy= names 'label', which is the column"),
    ]),
    "many groups": (people_of.crossed(300), people_of.OF_MANY, [
        ({"id": range(300)}, {"groups": "id"}, "'id' holds 300 .*; a group column has 2 to 150"),
        ({"half": np.arange(300) // 3}, {"groups": ["a", "b", "half"]},
         "combinations in 300 rows; up to 150 can be assessed"),
        ({"w": 2}, {"weight": "w"}, "weight= does not apply to an audit of many groups"),
    ]),
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "change", "more", "complaint"),
    [(kind, *case) for kind, (*_, cases) in REFUSED.items() for case in cases],
)
def test_what_no_kind_of_audit_takes_is_refused(kind, change, more, complaint):
    frame, options, _ = REFUSED[kind]
    assert re.search(complaint, why_not(frame.assign(**change), **{**options, **more}))
