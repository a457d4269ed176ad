"""All that a file leaves open is asked at once, with the words that answer it."""

import shlex

import numpy as np
import pandas as pd
import pytest

import fairbench
from fairbench.cli.main import main
from fairbench.core.errors import OpenQuestions, UserError
from tests.audits.tables import written


@pytest.fixture
def loans():
    draw, rows = np.random.default_rng(3), 600
    chance = draw.uniform(0.05, 0.95, rows)
    return pd.DataFrame(
        {
            "sex": draw.choice(["female", "male"], rows),
            "age": draw.integers(18, 80, rows),
            "score": (100 * chance).round(1),
            "approved": np.where(chance > 0.6, "approved", "declined"),
            "outcome": np.where(draw.random(rows) < chance, "repaid", "defaulted"),
        }
    )


WORDS = ("target=outcome", "score=score")
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
    command = ["audit", str(written(loans, tmp_path)), *WORDS, *words, f"out={tmp_path / 'report'}"]
    assert main([*command, "group=sex,age"]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"error: {number} things are open:\n1. predictions.csv: column 'score'")
    assert [line[:2] for line in error.splitlines()[1:-1]] == [f"{i + 1}." for i in range(number)]
    likely, found = answers(error)
    assert found == choices
    assert [word for word in LIKELY if word not in words] == likely
    assert main([*command, *likely, *(choice[-1] for choice in choices)]) == 0


def test_python_is_asked_the_same_and_one_question_stands_alone(loans):
    with pytest.raises(OpenQuestions, match=r"(?s)^3 things.*give scale=percent positive=repaid"):
        fairbench.audit(loans, target="outcome", score="score", groups=["sex", "age"])
    with pytest.raises(UserError, match=r"^loans: column 'age' holds") as caught:
        fairbench.audit(
            loans.assign(score=loans["score"] / 100), target="outcome", score="score", name="loans",
            positive="repaid", favourable="repaid", groups=["sex", "age"],
        )  # fmt: skip
    assert len(str(caught.value).splitlines()) == 1


def test_other_kinds_and_a_watch_ask_at_once_too(loans, tmp_path, capsys):
    path = written(loans.assign(guess=loans["score"] + 1, income=loans["score"] * 317.13), tmp_path)
    numbers = ["target=score", "prediction=guess", "group=age,income"]
    assert main(["audit", str(path), *numbers, f"out={tmp_path / 'numbers'}"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: 2 things are open:\n1. predictions.csv: column 'age' holds")
    bands = ["group=age:quantiles(4),income:quantiles(4)"]
    assert answers(error) == (bands, [])
    assert main(["audit", str(path), *numbers[:2], *bands, f"out={tmp_path / 'numbers'}"]) == 0
    watched = ["watch", str(path), *WORDS, "group=sex", f"state={tmp_path / 'w.json'}"]
    assert main([*watched, "decision=approved/declined"]) == 2
    likely, choices = answers(capsys.readouterr().err)
    assert likely == ["scale=percent"] and len(choices) == 2
    chosen = [choice[-1] for choice in choices]
    command = [*watched, "decision=approved/declined", *likely, *chosen, f"results={tmp_path}"]
    assert main(command) in (0, 1)
