"""fairbench within :func:`mlflow.models.evaluate`: ``evaluators="fairbench"``.

MLflow finds the evaluator by the entry point ``mlflow.model_evaluator`` of the installed package,
and imports this module whenever it evaluates a model: nothing heavy is imported before that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.core.errors import UserError, check_choice
from fairbench.core.text import csv_text, said
from fairbench.data.in_memory import as_array

if TYPE_CHECKING:
    from mlflow.data.evaluation_dataset import EvaluationDataset
    from mlflow.models import EvaluationResult

ARTIFACT = "fairbench.csv"
_TASKS = ("classifier", "regressor")  # MLflow's types of models
_OWN = ("sensitive_features", "score", "threshold", "classes", "positive")
# Options that `fairbench.evaluate` takes unchanged; columns may be given by name.
_COLUMNS = ("uncertainty", "sd", "sample_weight", "clusters")
_PASSED = ("privileged", "seed", "evaluator")


class FairnessEvaluator:
    """Logs metrics and gaps between groups, with 95 % intervals, to the run that MLflow evaluates.

    ``evaluator_config`` must name the groups, by ``sensitive_features``: the name of a column of
    the data, several names, or their values by name. It takes, too:

    ``score``
        the column of the probability of label 1, or of several classes one column each; values
        are taken as well.
    ``threshold``
        of a model that predicts probabilities: a higher one is a decision for label 1.
    ``classes``
        of a model that predicts the probabilities of several classes: their order.
    ``positive``, ``privileged``, ``sample_weight``, ``clusters``, ``uncertainty``, ``sd``, ``seed``
        as :func:`fairbench.evaluate` takes them; columns by name or value.

    A series belongs to the rows of the data by its index, an array or a list by its order.

    The whole table is the artifact ``fairbench.csv``.
    """

    @classmethod
    def can_evaluate(
        cls, *, model_type: str, evaluator_config: Mapping[str, Any] | None, **_: Any
    ) -> bool:
        """Return whether groups are named; without them, MLflow's other evaluators run alone."""
        return model_type in _TASKS and "sensitive_features" in (evaluator_config or {})

    def evaluate(
        self, *, run_id: str, model_id: str | None = None, **given: Any
    ) -> EvaluationResult:
        """Evaluate predictions, log what they give, and return it.

        Parameters
        ----------
        given : the type of the model, the data, the ``evaluator_config``, and the model or the
            column of its predictions, as MLflow calls them.

        Raises
        ------
        UserError : an option that there is not, a column that is not in the data, or what
            :func:`fairbench.evaluate` refuses.
        """
        import mlflow
        from mlflow.models.evaluation import artifacts

        from fairbench.tracking.entries import values_of_evaluation

        made_of: Any = artifacts.CsvEvaluationArtifact  # MLflow ships no types of these two
        result: Any = mlflow.models.EvaluationResult
        table = _evaluate(**given)
        metrics = values_of_evaluation(table)
        mlflow.log_metrics(metrics, run_id=run_id, model_id=model_id)
        mlflow.log_text(csv_text(table), ARTIFACT, run_id=run_id)
        artifact = made_of(uri=f"runs:/{run_id}/{ARTIFACT}", content=table)
        return result(metrics, {ARTIFACT: artifact}, run_id)


def _evaluate(
    model_type: str,
    dataset: EvaluationDataset,
    evaluator_config: Mapping[str, Any],
    model: Any = None,
    predictions: str | None = None,
    **_: Any,
) -> pd.DataFrame:
    """Return the rows of `fairbench.evaluate` of a model's predictions."""
    from fairbench.evaluation.arrays import evaluate

    config = evaluator_config
    valid = (*_OWN, *_COLUMNS, *_PASSED)
    for name in config:
        check_choice("option of evaluator_config for fairbench", str(name), valid)
    target = as_array(dataset.labels_data)
    data = dataset.features_data
    given = [name for name in ("score", *_COLUMNS) if config.get(name) is not None]
    columns = {name: _column(config[name], name, data) for name in given}
    predicted = _predict(dataset, model, predictions)
    classes = config.get("classes")
    task = "regression"
    if model_type == "classifier":
        names = list(classes) if classes is not None else _classes(target)
        predicted, scored = _classify(predicted, target, names, config.get("threshold"))
        if scored is not None:
            columns.setdefault("score", scored)
        task = "multiclass" if len(names) > 2 else "binary"
        if task == "multiclass":
            columns["classes"] = names
    # Series of the config are paired by the index of the data; all else by the order of its rows.
    return evaluate(
        pd.Series(target, data.index) if isinstance(data, pd.DataFrame) else target,
        predicted,
        sensitive_features=_groups(config["sensitive_features"], data),
        task=task,
        positive=config.get("positive"),
        **columns,
        **{name: config[name] for name in _PASSED if name in config},
    )


def _classes(target: NDArray[Any]) -> list[Any]:
    """Return the labels that there are, in their order."""
    try:
        return sorted({label for label in target.tolist() if not pd.isna(label)})
    except TypeError as error:
        raise UserError(said("tracking", "labels_of_types", error=error)) from error


def _predict(dataset: EvaluationDataset, model: Any, column: str | None) -> NDArray[Any]:
    """Return the model's predictions in the order of the data, (n,), or (n, C) probabilities."""
    if model is None:
        if not dataset.has_predictions:
            raise UserError("fairbench needs a model, or the column of its predictions=")
        return as_array(dataset.predictions_data)
    data = dataset.features_data
    output = model.predict(data)
    indexed = isinstance(output, pd.DataFrame | pd.Series) and isinstance(data, pd.DataFrame)
    # A range is the index of predictions that have none of their own.
    if indexed and not (isinstance(output.index, pd.RangeIndex) or output.index.equals(data.index)):
        raise UserError(said("tracking", "other_index"))
    if isinstance(output, pd.DataFrame):
        if column is not None:
            output = _column(column, "predictions", output)
        elif output.shape[1] == 1:
            output = output.iloc[:, 0]
    predicted = as_array(output)
    if predicted.dtype == object and predicted.ndim in (1, 2):  # as a list of numbers is
        columns = pd.DataFrame(predicted).infer_objects().to_numpy()
        predicted = np.asarray(columns[:, 0] if predicted.ndim == 1 else columns)
    return predicted


def _classify(
    predicted: NDArray[Any], target: NDArray[Any], names: Sequence[Any], threshold: float | None
) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Return the predicted labels (n,), and the scores where the model predicts these.

    Parameters
    ----------
    names : the names of the classes, in the order of the columns of probabilities.
    """
    if predicted.ndim == 2:
        if predicted.shape[1] != len(names):
            there = {"columns": predicted.shape[1], "classes": len(names)}
            raise UserError(said("tracking", "other_classes", **there))
        if threshold is not None and len(names) == 2:
            above = predicted[:, 1] > threshold
        else:
            above = predicted.argmax(axis=1)
        return np.asarray(names)[above.astype(int)], predicted
    are_labels = set(predicted.tolist()) <= {*names, *target.tolist()}
    numeric = predicted.dtype.kind == "f" and len(names) == 2
    if are_labels or not numeric:
        return predicted, None
    if threshold is None:
        raise UserError(said("tracking", "no_labels", label=names[1]))
    return np.asarray(names)[(predicted > threshold).astype(int)], predicted


def _groups(features: Any, data: Any) -> Any:
    """Return the groups of rows, by the name of their attribute."""
    names = [features] if isinstance(features, str) else features
    listed = isinstance(names, list | tuple) and all(isinstance(name, str) for name in names)
    named = listed and (len(names) != len(data) or {*names} <= {*_names(data)})
    if named or isinstance(features, str):
        return {name: _column(name, "sensitive_features", data) for name in names}
    return features


def _column(column: Any, option: str, data: Any) -> Any:
    """Return a column that is given by its name, or by value."""
    if not isinstance(column, str):
        return column
    names = _names(data)
    check_choice(f"column in {option}", column, names)
    if names.count(column) > 1:
        raise UserError(f"{option}: {names.count(column)} columns of the data are named '{column}'")
    return as_array(data.iloc[:, names.index(column)])


def _names(data: Any) -> list[str]:
    """Return the names of the columns of MLflow's data, which may be an array."""
    return [str(name) for name in data.columns] if isinstance(data, pd.DataFrame) else []
