"""Evaluates arrays from Python code: ``fairbench.evaluate(...)``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from fairbench.core.errors import UserError, check_minimum, unknown_name
from fairbench.core.formats import MISSING
from fairbench.core.seeds import rng
from fairbench.data.dataset import Task, check_combinable
from fairbench.data.groups import check_few_groups, group_columns
from fairbench.data.in_memory import by_text, text_of
from fairbench.evaluation.align_arrays import (
    Aligned,
    SensitiveFeatures,
    align,
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

    Inputs may be arrays, lists, and series or data frames of pandas, polars or Arrow. Those of
    pandas are aligned to the index of `target`, or, if it has none, to the first index among the
    inputs. All others are matched by position. What NumPy masks is missing.

    Parameters
    ----------
    target, prediction : (n,) labels: 0 and 1, or any two labels. With ``task="multiclass"`` there
        may be more labels; with ``task="regression"`` they are numbers.
    sensitive_features : the labels of one attribute, or of several as a data frame or a mapping.
        Missing or empty labels form the group ``unknown``. Labels that look alike, such as ``a``
        and ``A``, are different groups, and a warning names them. An attribute, or a combination,
        has up to 500 groups; of more, :func:`fairbench.pooled` estimates the rates.
    score : (n,) probabilities of label 1, or (n, 2) probabilities of both labels, in
        scikit-learn's order. With ``task="multiclass"``, (n, C) probabilities in the order of the
        classes.
    uncertainty : (n,) the uncertainty of each prediction, by any measure.
    sd : (n,) the standard deviation that the model predicts for each row.
    aleatoric, epistemic : (n,) variances, such as
        :func:`fairbench.metrics.group_means.variance_decomposition` computes from an ensemble.
    positive : which label counts as 1. Needed only if the labels do not tell, as ``no`` and
        ``yes`` do.
    classes : all classes in their order, for ``task="multiclass"``; by default the sorted labels
        that occur.
    privileged : attribute -> reference group; by default an attribute's first label in sorted
        order. If no row has that label, as may happen in one part of the data, comparisons with it
        have no value, and their status says why.
    sample_weight : (n,) how many people each row stands for (survey weights). Rates, comparisons
        of rates, areas under curves and means of losses are weighted. Metrics that cannot be
        weighted have a status that says so.
    clusters : (n,) cluster labels, such as the household of a person or the job of an application.
        Rows of one cluster may be correlated, which the intervals allow for. Groups may share
        clusters.
    within : strata within which groups are compared, too, such as bands of age (fairlearn's
        control features): a series, a data frame or a mapping. With several columns, each
        combination of levels is a stratum. For two classes only. Rows with the statistic
        ``in_stratum`` are about one stratum. Those with ``standardised`` are the mean over all
        strata, weighted by each stratum's share of the rate's denominator; all groups have the
        same weights.
    evaluator : the metrics and their settings.
    seed : the seed of the posterior draws.
    fail_if : conditions that must not hold, for two classes only, such as ``"impact_ratio<0.8"``
        (the ratio of selection rates) or ``["sex:equal_opportunity>0.1"]``. A
        :class:`fairbench.GateError` is raised if a condition surely holds, and also if the rows
        cannot tell whether it does. Its ``gate`` has the verdict on each condition, its ``table``
        the table that would have been returned.
    require : ``verdict`` or ``pass``. With ``pass``, the error for conditions that the rows cannot
        decide has the exit status of a failure.

    Returns
    -------
    A long table with the columns of :data:`fairbench.evaluation.columns.COLUMNS`: the metric; the
    statistic (``value``, and for some metrics also ``debiased``, ``pooled``, ``below_epsilon``,
    ``pairs_that_differ``, ``worst``, ``outside_band``, ``in_stratum`` or ``standardised``); the
    attribute and group; value, lower, upper and n; the status (ok, insufficient, undefined or
    invalid) and its reason; and the settings (rate, bins, level ...; with `within` also within and
    stratum).

    Raises
    ------
    UserError : if

        - there are no rows, the lengths differ, or series have different rows;
        - a value is missing that is no group's label, two features have one name, or there are too
          many groups;
        - an array is not one-dimensional or not numeric;
        - the task is unknown, there are more labels than it allows, or a label is not in `classes`;
        - scores lie outside [0, 1] or do not match the classes;
        - `privileged` names an attribute that is not in `sensitive_features`;
        - names of attributes or groups would make combinations of attributes ambiguous;
        - weights are negative, missing or all 0, a cluster is missing, or there is only one;
        - `within` has too many strata, names a compared attribute, or is given together with an
          option that it does not support.
    GateError : if a condition of `fail_if` surely holds, or the rows cannot tell.

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
    check_minimum("seed", seed, 0)
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
    given = by_text((privileged or {}).items(), "privileged")
    privileged = {name: text_of(label) or MISSING for name, label in given.items()}
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
    """Return each attribute's reference group: by default its first label in sorted order."""
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
    valid = np.isin(y, (0, 1)) if task is Task.BINARY else np.isfinite(y)
    if not valid.all():
        expected = "0 or 1" if task is Task.BINARY else "a number"
        row = int(np.flatnonzero(~valid)[0])
        raise UserError(f"target is {y[row]:g} in row {row}, not {expected}")
    predictions = read_predictions(columns, task, "evaluate", classes=len(names))
    references = _references(sensitive, privileged)
    if evaluator.intersections > 1:
        check_combinable(sensitive, "sensitive_features")
    check_few_groups(sensitive, evaluator.intersections, "sensitive_features")
    groups = group_columns(sensitive, references, evaluator.intersections)
    design = design_of(len(y), arrays.get("sample_weight"), arrays.get("clusters"))
    if design is not None and design.units < 2:
        raise UserError("clusters has one mark in all rows: intervals need at least two clusters")
    return Labelled(y, predictions, groups, task, design=design, classes=names), sensitive


def _conditions(
    fail_if: str | Sequence[str], require: str, task: Task, evaluator: Evaluator
) -> list[Condition]:
    """Return the conditions of a gate; refuse those that this task or evaluator cannot judge."""
    texts = [fail_if] if isinstance(fail_if, str) else list(fail_if)
    if not texts:
        return []
    check_gate(require, evaluator.interval)
    if task is not Task.BINARY:
        raise UserError(f"fail_if is of two classes, not of {task}: leave it out")
    return conditions_of(texts)


def _strata(within: Mapping[str, NDArray[Any]], data: Labelled, evaluator: Evaluator) -> pd.Series:
    """Return the strata (n,); refuse data within whose strata groups cannot be compared."""
    if data.task is not Task.BINARY:
        raise UserError(f"within is of two classes, not of {data.task}: leave it out")
    if data.design is not None:
        raise UserError("within takes neither sample_weight nor clusters: leave one of them out")
    if evaluator.interval != FREQUENTIST:
        raise UserError("within has no interval=dirichlet: use interval=frequentist, the default")
    columns = sensitive_frame(within, what="feature of within")
    for name in columns:
        if name in data.groups:
            raise UserError(
                f"within names '{name}', whose groups are compared: they are not within themselves"
            )
    return strata_of({str(name): columns[name] for name in columns}, "within")
