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
    said = "loans: column 'age' holds 62 different values; a group column has 2 to 50: "
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


@pytest.mark.parametrize("kind", [*kinds()], ids=lambda kind: kind.name)
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


# What each kind of audit refuses, of the people and options here, in one line.
USUAL = {"target": "label", "score": "score", "groups": "sex"}
OF_STRATA = {"target": "label", "prediction": "decision", "groups": "sex", "within": ["department"]}
MANY = np.arange(1200)
KINDS = {
    "classes": (people_of.classified(60).assign(
        twelve=MANY[:60] % 12, six=MANY[:60] % 6, binary=MANY[:60] % 2, share=MANY[:60] / 60,
    ), people_of.OF_CLASSES),
    "numbers": (people_of.incomes(100).assign(euros=[f"{k}.5 EUR" for k in range(100)]),
                people_of.OF_NUMBERS),
    "ranking": (people_of.candidates(2).assign(gap=[*range(39), ""]),
                {"score": "rating", "groups": "sex"}),
    "times": (people_of.patients(50), people_of.OF_TIMES),
    "pair": (people_of.pair(60), people_of.OF_TWO),
    "two classes": (people_of.pair(60), USUAL),
    "weights and clusters": (surveyed(predictions(60, labels=40)), USUAL),
    "thresholds and references": (PEOPLE.assign(one=[*"ab"] * 30, two=[*"bc"] * 30), USUAL),
    "strata": (aged(1200).assign(
        id=[f"c{i}" for i in MANY], p=MANY % 50, q=MANY // 24, price=MANY / 7, guess=MANY / 6,
    ), OF_STRATA),
    "the selected": (partly_selected(100)[0], OF_SELECTED),
    "proxies": (by_proxy(100)[0], OF_PROXIES),
    "many groups": (people_of.crossed(300).assign(id=range(300), half=MANY[:300] // 3),
                    people_of.OF_MANY),
}  # fmt: skip
BY_KIND = yaml.safe_load(Path(__file__).with_name("refused_by_kind.yaml").read_text())


@pytest.mark.parametrize(("kind", "row"), [(kind, row) for kind in KINDS for row in BY_KIND[kind]])
def test_what_no_kind_of_audit_takes_is_refused(kind, row):
    frame, options = KINDS[kind]
    said = why_not(frame.assign(**row.get("columns", {})), **options | row.get("options", {}))
    assert re.search(row["says"], said)
