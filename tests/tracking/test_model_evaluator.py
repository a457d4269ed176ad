"""`mlflow.models.evaluate(..., evaluators="fairbench")`, found by its entry point."""

import tomllib
from importlib.metadata import EntryPoint

import mlflow
import numpy as np
import pandas as pd
import pytest

import fairbench
from fairbench.core.errors import UserError
from tests.harness import ROOT

# Importing what MLflow evaluates with gives a dozen warnings, none of which is about this project.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True, scope="module")
def installed(tmp_path_factory):
    """Have MLflow know what pyproject.toml names for it, and log into a database of its own."""
    from mlflow.models.evaluation.evaluator_registry import _model_evaluation_registry

    points = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    ((name, place),) = points["mlflow.model_evaluator"].items()
    _model_evaluation_registry.register(name, EntryPoint(name, place, "").load())
    folder, before = tmp_path_factory.mktemp("mlflow"), mlflow.get_tracking_uri()
    with pytest.MonkeyPatch.context() as monkeypatch:
        uri = f"sqlite:///{folder}/mlflow.db"
        monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)  # MLflow sets it: no test after is to see it
        mlflow.set_tracking_uri(uri)
        mlflow.set_experiment(experiment_id=mlflow.create_experiment("e", f"file://{folder}/files"))
        yield
        mlflow.set_experiment("Default")  # which is of the same number in any database
        mlflow.set_tracking_uri(before)


def _people(rows=400):
    draw = np.random.default_rng(0)
    score = draw.random(rows)
    groups = {"sex": draw.choice(["f", "m"], rows), "age": draw.choice(["young", "old"], rows)}
    label = (draw.random(rows) < score).astype(int)
    decided = {"label": label, "decision": (score > 0.5).astype(int), "score": score}
    return pd.DataFrame({"x": score, **groups, **decided})


def _given(config, data=None, **other):
    options = {"targets": "label", "predictions": "decision", "model_type": "classifier"} | other
    with mlflow.start_run():
        return mlflow.models.evaluate(
            data=_people() if data is None else data,
            evaluators="fairbench", evaluator_config=config, **options,
        )  # fmt: skip


@pytest.mark.thorough
def test_gaps_are_logged_with_intervals_as_evaluate_has_them():
    people = _people()
    result = _given({"sensitive_features": ["sex", "age"], "score": "score"})
    expected = fairbench.evaluate(
        people.label, people.decision, score=people.score,
        sensitive_features=people[["sex", "age"]],
    )  # fmt: skip
    gaps = expected.query("statistic == 'value' and metric == 'equalized_odds'")
    assert set(gaps.attribute) == {"sex", "age", "sex x age"}
    for row in gaps.itertuples():
        name = f"{row.attribute}/equalized_odds"
        logged = [result.metrics[f"{name}{end}"] for end in ("", " lower", " upper")]
        assert logged == pytest.approx([row.value, row.lower, row.upper])
    run = mlflow.last_active_run()
    assert run.data.metrics == pytest.approx(result.metrics)
    assert "roc_auc" in result.metrics
    assert result.metrics["parity/equalized_odds"] == result.metrics["sex/equalized_odds"]
    where = {"run_id": run.info.run_id, "artifact_path": "fairbench.csv"}
    assert len(pd.read_csv(mlflow.artifacts.download_artifacts(**where))) == len(expected)


def test_a_model_is_asked_and_its_probabilities_are_scores():
    people = _people()[["x", "sex", "label"]]
    asked = {"evaluators": "fairbench", "evaluator_config": {"sensitive_features": "sex"}}
    with mlflow.start_run():
        result = mlflow.models.evaluate(
            lambda features: np.column_stack([1 - features.x, features.x]),
            people, targets="label", model_type="classifier", **asked,
        )  # fmt: skip
    decided = _given({"sensitive_features": "sex", "score": "score"}).metrics
    assert result.metrics == pytest.approx(decided)


def test_probabilities_of_one_column_need_a_threshold():
    config = {"sensitive_features": "sex"}
    with pytest.raises(UserError, match=r"threshold= in evaluator_config"):
        _given(config, predictions="score")
    result = _given({**config, "threshold": 0.5}, predictions="score")
    assert result.metrics == pytest.approx(_given({**config, "score": "score"}).metrics)


def test_numbers_and_several_classes_are_evaluated():
    people = _people().assign(number=lambda frame: frame.x + 0.1)
    numbers = _given({"sensitive_features": "sex"}, people, targets="x", predictions="number",
                     model_type="regressor")  # fmt: skip
    assert numbers.metrics["mae"] == pytest.approx(0.1)
    people["label"] = np.random.default_rng(1).choice(["a", "b", "c"], len(people))
    people["decision"] = people["label"].replace({"c": "a"})
    classes = _given({"sensitive_features": "sex"}, people)
    assert classes.metrics["accuracy"] == pytest.approx((people.label != "c").mean())


def test_without_groups_other_evaluators_are_left_alone():
    people = _people()[["x", "label", "decision"]]
    asked = {"targets": "label", "predictions": "decision", "model_type": "classifier"}
    with mlflow.start_run():
        result = mlflow.models.evaluate(data=people, **asked)
    assert "accuracy_score" in result.metrics
    assert not any(name.startswith("parity/") for name in result.metrics)


def test_what_cannot_be_is_said():
    for config, other, said in (
        ({"sensitive_features": "sx"}, {}, "unknown column in sensitive_features 'sx'"),
        ({"sensitive_features": "sex", "scores": "score"}, {}, "'scores'"),
        ({"sensitive_features": "sex"}, {"predictions": None}, "predictions="),
        ({"sensitive_features": "sex", "score": "x" * 9}, {}, "column in score"),
    ):
        with pytest.raises(Exception, match=said):
            _given(config, **other)
