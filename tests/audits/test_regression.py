"""The audit of predicted numbers: what evaluate says, and verdicts that are true."""

import numpy as np
import pandas as pd
import pytest

import fairbench
from fairbench.audits.kinds import kind_of
from fairbench.audits.kinds.numbers import _evaluate_numbers, _read_numbers, audit_numbers
from fairbench.audits.question import NUMBERS
from fairbench.audits.report import document_of
from fairbench.audits.table import read_frame
from fairbench.core.errors import UserError
from tests.audits.tables import parse, predictions, written

WORDS = ("target=income", "prediction=predicted", "group=[sex,race]")


def incomes(rows=1500, *, bias=0.0, noise=0.0, seed=0):
    """Return incomes; women's are predicted too high by `bias`, Black people's more noisily."""
    generator = np.random.default_rng(seed)
    sex = generator.choice(["Male", "Female"], rows, p=[0.6, 0.4])
    race = generator.choice(["White", "Black"], rows, p=[0.7, 0.3])
    income = generator.gamma(4, 5000, rows)
    error = generator.normal(0, 3000, rows) * (1 + noise * (race == "Black"))
    predicted = income + error + bias * (sex == "Female")
    return pd.DataFrame(
        {"sex": sex, "race": race, "income": income, "predicted": predicted,
         "low": predicted - 5000, "high": predicted + 5000}
    )  # fmt: skip


def audited(frame, folder, *more):
    options = parse([str(written(frame, folder)), *WORDS, *more])
    return audit_numbers(options, read_frame(options))


def metrics_of(frame, folder, *more):
    options = parse([str(written(frame, folder)), *WORDS, *more])
    return _evaluate_numbers(_read_numbers(options, read_frame(options))[0], options)


def test_it_gives_what_evaluate_gives(tmp_path):
    frame = incomes(400)
    ours = metrics_of(frame, tmp_path)
    theirs = fairbench.evaluate(
        frame["income"],
        frame["predicted"],
        sensitive_features=frame[["sex", "race"]],
        privileged={"sex": "Male", "race": "White"},
        task="regression",
    )
    pd.testing.assert_frame_equal(ours, theirs)


def test_planted_differences_are_found_and_no_others(tmp_path):
    result = audited(incomes(6000, bias=2500, noise=0.6), tmp_path, "bounds=[low,high]")
    verdicts = {(gap.attribute, gap.measure): gap.verdict for gap in result.findings}
    assert verdicts["sex", "mean residual"] == "large"
    assert verdicts["race", "MAE"] == "large"
    assert verdicts["race", "coverage"] == "large"
    assert verdicts["race", "mean residual"] == "small"
    said = document_of(result).data["conclusions"]["can"]
    assert any(
        "By sex, the mean residual of Male is higher than that of Female" in sentence
        for sentence in said
    )
    women = next(residual for residual in result.data["residuals"] if residual["group"] == "Female")
    assert women["mean"][1] < -2500 < women["mean"][2]


def test_rows_without_a_target_are_left_out_and_counted(tmp_path):
    frame = incomes(300)
    frame["income"] = frame["income"].astype(object).where(frame.index % 3 > 0, "")
    result = audited(frame, tmp_path)
    assert result.rows == 200
    assert any("100 rows without one are left out" in sentence for sentence in result.basis)


def test_weights_and_clusters_widen(tmp_path):
    frame = incomes(600)
    twice = pd.concat([frame, frame]).assign(household=np.tile(np.arange(600), 2), weight=2)
    once = metrics_of(frame, tmp_path)
    both = metrics_of(twice, tmp_path, "cluster=household", "weight=weight")
    mae = [table[table["metric"] == "mae"].iloc[0] for table in (once, both)]
    assert mae[1]["value"] == pytest.approx(mae[0]["value"])
    assert mae[1]["upper"] == pytest.approx(mae[0]["upper"], rel=0.01)


@pytest.mark.parametrize(
    ("frame", "words", "regression"),
    [
        (incomes(100), WORDS, True),
        (incomes(100).round({"income": -5}), WORDS, False),  # a target of one value
        (
            predictions(100).assign(predicted=1),
            ("target=label", "prediction=predicted", "group=sex"),
            False,
        ),
        (predictions(100), ("target=label", "score=score", "group=sex"), False),
        (incomes(100).assign(predicted="high"), WORDS, False),
        (incomes(100).assign(predicted=lambda each: each["income"].to_numpy()[::-1]), WORDS, True),
        (incomes(100).assign(income=range(100), predicted=range(100)), WORDS, False),  # codes
        (incomes(100).assign(income=range(100), predicted=range(1, 101)), WORDS, True),
    ],
)
def test_what_is_read_as_numbers(frame, words, regression, tmp_path):
    options = parse([str(written(frame, tmp_path)), *words])
    assert (kind_of(options, read_frame(options)) == NUMBERS) is regression


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("bounds=[low]",), "bounds= names two columns"),
        (("bounds=[high,low]",), "is not at most 'low' of its row"),
        (("nominal=1.5",), "nominal"),
    ],
)
def test_what_is_of_labels_is_refused(words, complaint, tmp_path):
    with pytest.raises(UserError, match=complaint):
        audited(incomes(100), tmp_path, *words)
