"""Sessions about several classes and about numbers: choice, checks, answers and report."""

import json
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest

from fairbench.cli.main import main
from fairbench.core.errors import UserError
from fairbench.evaluation.findings import LEVEL
from fairbench_label.questions import (
    QUESTIONS,
    _askable,
    _estimate_for_everyone,
    _group_figures,
    measure,
    next_rows,
    question_of,
)
from fairbench_label.session import PREDICTED, Answer, State, open_session
from tests.audits.tables import parse, written
from tests.extensions.label.sessions import said

CLASSES = ("cat", "dog", "emu")


def classified(rows=900, *, seed=0):
    """Return predictions of three classes, wrong more often in the north, and their labels."""
    draw = np.random.default_rng(seed)
    place = draw.choice(["north", "south", "west"], rows)
    confidence = draw.uniform(0.5, 1, rows).round(3)
    right = draw.random(rows) < np.where(place == "north", 0.35, confidence)
    predicted = draw.integers(0, 3, rows)
    true = np.where(right, predicted, (predicted + draw.integers(1, 3, rows)) % 3)
    names = np.array(CLASSES)
    frame = {"predicted": names[predicted], "confidence": confidence, "place": place}
    return pd.DataFrame(frame), names[true]


def numeric(rows=900, *, seed=0):
    """Return predicted numbers, less exact and too small in the north, and the true ones."""
    draw = np.random.default_rng(seed)
    place = draw.choice(["north", "south", "west"], rows)
    predicted = draw.normal(10, 2, rows).round(3)
    spread = np.where(place == "north", 2.0, 1.0)
    true = predicted + (place == "north") + spread * draw.normal(size=rows)
    return pd.DataFrame({"predicted": predicted, "place": place}), true.round(3)


def begun(options, frame, *, by, metric, answers=()):
    state = State(options, "", len(frame), by, "worst", "top_two", tuple(answers), metric)
    return open_session(state, frame.astype(str))


def labelled(options, frame, true, number, *, by="place", metric="accuracy", step=20):
    session = begun(options, frame, by=by, metric=metric)
    given = []
    for _ in range(0, number, step):
        rows = next_rows(session, step)
        given += [Answer(int(row) + 1, str(true[row]), "") for row in rows]
        session = begun(options, frame, by=by, metric=metric, answers=given)
    return session


def of_classes(*more):
    return parse(["x.csv", "prediction=predicted", "score=confidence", "group=place", *more])


def of_numbers():
    return parse(["x.csv", "prediction=predicted", "group=place"])


def test_the_worst_group_of_several_classes_is_found():
    frame, true = classified()
    session = labelled(of_classes(), frame, true, 300)
    verdict = said(session)
    assert (verdict.found, verdict.settled) == (["north"], False)
    result = said(replace(session, state=replace(session.state, stop=300)))
    assert (result.possible, result.settled) == (["north"], True)
    assert set(_askable(session)) == {"accuracy", "error_rate", "brier_score"}
    (worst,) = result.groups.query("group == 'north'").itertuples()
    assert worst.labels > 110
    assert worst.lower < 0.35 < worst.upper


def test_regression_is_asked_about_its_errors():
    frame, true = numeric()
    session = labelled(of_numbers(), frame, true, 300, metric="mae")
    assert set(_askable(session)) == {"mae", "mean_residual", "rmse", "r2"}
    result = said(session)
    assert result.found == ["north"]
    residual = measure(session, "mean_residual")
    groups = _group_figures(session, residual, partial(residual.limits, LEVEL))
    (north,) = groups.query("group == 'north'").itertuples()
    assert north.lower < 1 < north.upper
    assert _estimate_for_everyone(session, measure(session, "rmse")) is None
    value, lower, upper = _estimate_for_everyone(session, residual)
    assert lower < value < upper


def test_without_groups_rows_are_chosen_among_predicted_classes():
    options = parse(["x.csv", "prediction=predicted", "score=confidence"])
    session = labelled(options, *classified(), 60, by=PREDICTED)
    assert session.names == list(CLASSES)
    for question in QUESTIONS:
        assert question_of(replace(session, state=replace(session.state, question=question)))


@pytest.mark.parametrize("question", ["gap", "each"])
@pytest.mark.parametrize("metric", ["mae", "rmse", "r2"])
def test_every_question_of_a_regression_names_rows_that_wait(question, metric):
    session = labelled(of_numbers(), *numeric(300), 40, metric="mae")
    state = replace(session.state, question=question, strategy="thompson", metric=metric)
    asked = replace(session, state=state)
    rows = next_rows(asked, 5)
    assert len(set(rows)) == 5 and np.isnan(asked.table.label[rows]).all()
    assert said(asked).sentences


def test_a_mean_residual_is_neither_better_nor_worse():
    frame, _ = numeric(100)
    session = begun(of_numbers(), frame, by="place", metric="mean_residual")
    with pytest.raises(UserError, match="neither: ask question=gap or question=each"):
        question_of(session).reward()


def test_a_person_s_labels_go_before_the_marks_of_the_file():
    frame, true = classified(100)
    frame = frame.assign(true=true, shown=np.where(np.arange(100) < 50, "true", "false"))
    given = [Answer(1, "", ""), Answer(60, "okapi", "")]
    options = of_classes("target=true", "labelled=shown")
    session = begun(options, frame, by="place", metric="accuracy", answers=given)
    assert session.table.known.tolist() == [*range(1, 50), 59]
    assert session.label_texts[59] == "okapi"
    with pytest.raises(UserError, match="row 5: '' is not a class, though 'shown' is true there"):
        bare = frame.assign(true=np.where(np.arange(100) == 4, "", true))
        begun(options, bare, by="place", metric="accuracy")


def run(capsys, *words, status=0):
    assert main(["label", *map(str, words)]) == status
    printed = capsys.readouterr()
    return printed.err if status else printed.out


def test_several_classes_on_the_command_line(tmp_path, capsys):
    frame, true = classified(200)
    path, state = written(frame, tmp_path), f"state={tmp_path / 's.json'}"
    words = ["prediction=predicted", "score=confidence", "group=place", "n=2", "stop=4"]
    out = run(capsys, "next", path, state, *words)
    assert "In which group are predictions least often right?" in out
    assert "4 stored" in run(capsys, "ask", state, *(f"{row + 1}={true[row]}" for row in range(4)))
    assert "did you mean emu" in run(capsys, "ask", state, "9=emo", status=2)
    assert "1 stored" in run(capsys, "ask", state, "9=okapi")
    run(capsys, "report", state, f"out={tmp_path}")
    labelling = json.loads((tmp_path / "audit.json").read_text())["labelling"]
    assert (labelling["metric"], labelling["whenever"]) == ("accuracy", True)
    assert sum(group["labels"] for group in labelling["groups"]) == 5
    sentence = run(capsys, "next", state, "metric=true_positive_rate", status=2)
    assert "valid: accuracy, brier_score, error_rate" in sentence


def test_numbers_on_the_command_line(tmp_path, capsys):
    frame, true = numeric(200)
    path, state = written(frame, tmp_path), f"state={tmp_path / 's.json'}"
    out = run(capsys, "next", path, state, "prediction=predicted", "group=place", "n=2")
    assert "In which group is the MAE worst?" in out
    given = [f"{row + 1}={true[row]}" for row in range(60)]
    assert "61 stored: 60 of 200" in run(capsys, "ask", state, *given, "70=?")
    assert "In which group is the MAE worst?" in run(capsys, "report", state, f"out={tmp_path}")
    assert "RMSE of each group" in (tmp_path / "audit.html").read_text()
    for words, sentence in (
        (["ask", "80=much"], "is no number"),
        (["next", "metric=accuracy"], "valid: mae, mean_residual, r2, rmse"),
        (["next", "question=calibration"], "calibration compares a rate"),
    ):
        assert sentence in run(capsys, *words, state, status=2)
