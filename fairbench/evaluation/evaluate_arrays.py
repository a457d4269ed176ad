"""Evaluates arrays from Python code: ``fairbench.evaluate(...)``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from fairbench.core.errors import UserError, unknown_name
from fairbench.core.seeds import rng
from fairbench.data.dataset import Task, check_combinable
from fairbench.data.groups import group_columns
from fairbench.evaluation.align_arrays import (
    Aligned,
    SensitiveFeatures,
    align,
    check_lengths,
    classes_and_columns,
    labels_and_columns,
    sensitive_frame,
)
from fairbench.evaluation.conditions import Condition, check_gate, conditions_of
from fairbench.evaluation.evaluator import Evaluator
from fairbench.evaluation.gate import gate_of_labelled
from fairbench.evaluation.predictions import Labelled, read_predictions
from fairbench.evaluation.stratified import evaluate_within, strata_of
from fairbench.inference.posterior import FREQUENTIST
from fairbench.inference.survey import design_of


def evaluate(
    target: ArrayLike,
    prediction: ArrayLike,
    *,
    sensitive_features: SensitiveFeatures,
    score: ArrayLike | None = None,
    uncertainty: ArrayLike | None = None,
    sd: ArrayLike | None = None,
    aleatoric: ArrayLike | None = None,
    epistemic: ArrayLike | None = None,
    task: Task | str = Task.BINARY,
    positive: object = None,
    classes: Sequence[object] | None = None,
    privileged: Mapping[str, str] | None = None,
    sample_weight: ArrayLike | None = None,
    clusters: ArrayLike | None = None,
    within: SensitiveFeatures | None = None,
    evaluator: Evaluator | None = None,
    seed: int = 0,
    fail_if: str | Sequence[str] = (),
    require: str = "verdict",
) -> pd.DataFrame:
    """Evaluate one model's predictions, with uncertainty, from arrays.

    Arrays, lists, and series and data frames of pandas or polars are taken. Those of pandas are
    brought into the order of the target's index (where it has none, of the first that has one);
    others are taken by position.

    Parameters
    ----------
    target, prediction : (n,) labels 0 / 1, two other labels, any number of labels, for
        ``task="multiclass"``, or values, for ``task="regression"``.
    sensitive_features : one attribute's labels, or several as a data frame or a mapping; missing
        or empty labels are a group ``unknown``. Labels that look alike, such as ``a`` and ``A``,
        are different groups, and a warning names them.
    score : (n,) probabilities of label 1, or (n, 2) of both labels in the order that scikit-learn
        has them; (n, C) of several classes, in their order.
    uncertainty : (n,) a method's uncertainty.
    sd : (n,) a standard deviation that a method claims.
    aleatoric, epistemic : (n,) variances, such as
        :func:`fairbench.metrics.group_means.variance_decomposition` makes of members.
    positive : which label is 1, where that is not plain, as it is of ``no`` and ``yes``.
    classes : all classes in their order, of several; by default those that occur, sorted.
    privileged : attribute -> reference group; without it the first label in sorted order.
    sample_weight : (n,) how many people each row stands for (survey weights): rates, what compares
        them, areas and means of losses are weighted; what cannot be has a status that says so.
    clusters : (n,) marks; rows of one mark belong together, such as the people of a household or
        the applications for one job, and tell less than as many others. Groups may share clusters.
    within : labels of what groups are also compared within, such as bands of age, as a series, a
        data frame or a mapping (fairlearn's control features); the levels of several columns make
        strata together. Of two classes. Rows of ``in_stratum`` are of one stratum, those of
        ``standardised`` of all: the mean over strata, each weighted with its share of the people
        that a rate is of, and the same for all groups.
    evaluator : which metrics, and how finely.
    seed : the seed of the posterior draws.
    fail_if : conditions of two classes that must not hold, such as ``"impact_ratio<0.8"`` (of the
        share predicted 1) or ``["sex:equal_opportunity>0.1"]``. Unless surely none does, a
        :class:`fairbench.GateError` is raised, whose ``gate`` says which, and has the ``table``.
    require : ``verdict``; or ``pass``, and a gate that is open has the exit status of a failure.

    Returns
    -------
    Rows with the columns of :data:`fairbench.evaluation.columns.COLUMNS`: the metric, what the row
    says of it (statistic: ``value``, and of some also ``debiased``, ``pooled``, ``below_epsilon``,
    ``pairs_that_differ``, ``worst``, ``outside_band``, ``in_stratum`` or ``standardised``), whom it
    is about (attribute, group), value, lower, upper, n, status (ok, insufficient, undefined or
    invalid) with its reason, and what it was taken at (rate, bins, level ...; with `within` also
    the columns within and stratum).

    Raises
    ------
    UserError : no rows, unequal lengths, series of different rows, arrays that are not
        one-dimensional or not numeric, labels of more than two kinds, a label that is none of the
        classes, scores outside [0, 1] or of other classes, an unknown task, a reference group of
        an attribute that is not given, names that combinations could not be told apart by, weights
        that are negative, missing or all 0, a missing or a single cluster, or too many strata, or
        strata of what they cannot be of.
    GateError : a condition of `fail_if` holds, or these rows cannot tell.

    Examples
    --------
    >>> import fairbench
    >>> table = fairbench.evaluate([0, 1, 1, 0], [0, 1, 0, 0], sensitive_features=list("aabb"))
    >>> values = table.query("statistic == 'value'")
    >>> float(values.query("metric == 'error_rate' and group == ''").value.iloc[0])
    0.25
    """
    if task not in list(Task):
        raise unknown_name("task", str(task), Task)
    task = Task(task)
    evaluator = evaluator or Evaluator()
    conditions = _conditions(fail_if, require, task, evaluator)
    arrays = {
        "target": target,
        "prediction": prediction,
        "score": score,
        "uncertainty": uncertainty,
        "sd": sd,
        "aleatoric": aleatoric,
        "epistemic": epistemic,
        "sample_weight": sample_weight,
        "clusters": clusters,
    }
    aligned = align(arrays, sensitive_features, within)
    privileged = {name: str(label) for name, label in (privileged or {}).items()}
    data, sensitive = _read_arrays(aligned, privileged, task, positive, classes, evaluator)
    table = evaluator.table(data, [rng(seed, "posterior")])
    if aligned.within is not None:
        strata = _strata(aligned.within, data, evaluator)
        group_evaluation = evaluator.group_evaluation(table)
        evaluate_within(table, group_evaluation, data, strata, [rng(seed, "strata")])
    frame = table.frame()
    if conditions:
        with_reference = [
            name for name, label in privileged.items() if label in set(sensitive[name])
        ]
        singles = [str(name) for name in sensitive]
        gate_of_labelled(data, conditions, singles, with_reference, require).check(frame)
    return frame


def _references(sensitive: pd.DataFrame, privileged: Mapping[str, str]) -> dict[str, str]:
    """Return each attribute's reference group: the one named, otherwise the first in order."""
    references = {str(name): str(sensitive[name].cat.categories[0]) for name in sensitive}
    for name, label in privileged.items():
        if name not in references:
            raise unknown_name("sensitive feature in privileged", name, references)
        references[name] = label
    return references


def _read_arrays(
    aligned: Aligned,
    privileged: Mapping[str, str],
    task: Task,
    positive: object,
    classes: Sequence[object] | None,
    evaluator: Evaluator,
) -> tuple[Labelled, pd.DataFrame]:
    """Return checked predictions with their labels and groups, and the attributes (n, A)."""
    arrays = aligned.arrays
    names: tuple[str, ...] = ()
    if task is Task.MULTICLASS:
        names, y, columns = classes_and_columns(arrays, classes)
    else:
        y, columns = labels_and_columns(arrays, task, positive)
    sensitive = sensitive_frame(aligned.features)
    check_lengths(y, {**columns, **{str(name): sensitive[name] for name in sensitive}})
    wrong = np.flatnonzero(~np.isin(y, (0, 1)) if task is Task.BINARY else ~np.isfinite(y))
    if wrong.size:
        expected = "0 or 1" if task is Task.BINARY else "a number"
        raise UserError(f"target is {y[wrong[0]]:g} in row {wrong[0]}, not {expected}")
    predictions = read_predictions(columns, task, "evaluate", classes=len(names))
    references = _references(sensitive, privileged)
    if evaluator.intersections > 1:
        check_combinable(sensitive, "sensitive_features")
    groups = group_columns(sensitive, references, evaluator.intersections)
    design = design_of(len(y), arrays.get("sample_weight"), arrays.get("clusters"))
    if design is not None and design.units < 2:
        raise UserError("clusters has one mark in all rows: intervals need at least two clusters")
    return Labelled(y, predictions, groups, task, design=design, classes=names), sensitive


def _conditions(
    fail_if: str | Sequence[str], require: str, task: Task, evaluator: Evaluator
) -> list[Condition]:
    """Return the conditions of a gate, once it is sure that they can be judged."""
    texts = [fail_if] if isinstance(fail_if, str) else list(fail_if)
    if not texts:
        return []
    check_gate(require, evaluator.interval)
    if task is not Task.BINARY:
        raise UserError(f"fail_if is of two classes, not of {task}: leave it out")
    return conditions_of(texts)


def _strata(within: SensitiveFeatures, data: Labelled, evaluator: Evaluator) -> pd.Series:
    """Return the strata of rows (n,), once it is sure that groups can be compared within them."""
    if data.task is not Task.BINARY:
        raise UserError(f"within is of two classes, not of {data.task}: leave it out")
    if data.design is not None:
        raise UserError("within takes neither sample_weight nor clusters: leave one of them out")
    if evaluator.interval != FREQUENTIST:
        raise UserError("within has no interval=dirichlet: use interval=frequentist, the default")
    columns = sensitive_frame(within, what="feature of within", name="stratum")
    for name in columns:
        if name in data.groups:
            raise UserError(
                f"within names '{name}', whose groups are compared: they are not within themselves"
            )
    check_lengths(data.target, {f"within {name}": columns[name] for name in columns})
    return strata_of({str(name): columns[name] for name in columns}, "within")
