"""Aligns a user's arrays and makes them numbers: pandas, polars, NumPy or lists."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from fairbench.core.arrays import Floats, rng
from fairbench.core.errors import UserError, check_choice, check_minimum, unknown_name
from fairbench.core.text import MISSING, label_notes, missing_name, quoted
from fairbench.data import in_memory
from fairbench.data.columns import plain_pair, spelled, text_of
from fairbench.data.dataset import Task, check_combinable
from fairbench.data.groups import check_few_groups, group_columns
from fairbench.evaluation import gate as gates
from fairbench.evaluation.evaluator import Evaluator
from fairbench.evaluation.predictions import Labelled, read_predictions
from fairbench.evaluation.stratified import evaluate_within, strata_of
from fairbench.inference.posterior import FREQUENTIST
from fairbench.inference.survey import Design

SensitiveFeatures: TypeAlias = pd.Series | pd.DataFrame | Mapping[str, ArrayLike] | ArrayLike
_SLACK = 0.01  # by which two probabilities may miss a sum of 1


def _aligned(
    given: Mapping[str, Any], features: SensitiveFeatures, within: SensitiveFeatures | None = None
) -> tuple[dict[str, Any], dict[str, NDArray[Any]], dict[str, NDArray[Any]]]:
    """Return arrays, groups and strata by name, with pandas objects reordered to one index.

    Arrays that are None are left out. There are no strata where `within` is None.

    Parameters
    ----------
    given : name -> values, or None; ``target`` is there.

    Raises
    ------
    UserError : if an array has more rows than the target, or fewer; two have different rows, or an
        index that has duplicates; the target has no index, and two others have different orders;
        or two features have one name.
    """
    arrays = {name: _held(values) for name, values in given.items() if values is not None}
    attributes = _columns(features, "sensitive_features", "group")
    strata = {} if within is None else _columns(within, "within", "stratum")
    columns = [
        *arrays.items(),
        *attributes.items(),
        *((f"within {name}", values) for name, values in strata.items()),
    ]
    rows = len(_one_dimensional("target", arrays["target"]))
    for name, values in columns:
        if (name in arrays and name != "score") or not np.ndim(values):
            _one_dimensional(name, values)
        if len(values) != rows:
            raise UserError(f"{name} has {len(values)} rows, the target {rows}")
    indexed = [(name, values.index) for name, values in columns if _is_pandas(values)]
    order: Any = indexed[0][1] if indexed else None
    for name, index in indexed:
        first = indexed[0][0]
        if index.equals(order):
            continue
        if not (index.is_unique and order.is_unique and index.isin(order).all()):
            raise UserError(
                f"the rows of {name} and of {first} have different names (index): give both with "
                "one index, or as arrays (.to_numpy()) where their rows are in one order"
            )
        if len(indexed) < len(columns) and first != "target":
            raise UserError(
                f"the rows of {name} are in another order than those of {first}, and arrays "
                "without an index are given too: give all with an index, or none (.to_numpy())"
            )

    def in_order(columns: Mapping[str, Any]) -> dict[str, Any]:
        return {name: _reorder(values, order) for name, values in columns.items()}

    return in_order(arrays), in_order(attributes), in_order(strata)


def _columns(features: SensitiveFeatures, option: str, name: str) -> dict[str, Any]:
    """Return features by their names.

    Parameters
    ----------
    option : the option that they are given by.
    name : what a column without a name is called.
    """
    if in_memory.is_table(features) and not isinstance(features, pd.Series):
        columns = in_memory.columns_of_table(features, option)
    elif isinstance(features, Mapping):
        columns = in_memory.by_text(features.items(), option)
    else:
        columns = {str(getattr(features, "name", "") or name): features}
    if not columns:
        raise UserError(f"{option} names no groups: give a column, or several by name")
    return {title: _held(values) for title, values in columns.items()}


def _is_pandas(values: Any) -> bool:
    return isinstance(values, pd.Series | pd.DataFrame)


def _held(values: Any) -> Any:
    """Return a table, or a column of pandas, as it is, and all else as an array."""
    return (
        values if _is_pandas(values) or in_memory.is_table(values) else in_memory.as_array(values)
    )


def _reorder(values: Any, order: pd.Index | None) -> Any:
    """Return a table, or an array, in the order of an index if it has one."""
    if _is_pandas(values) and not values.index.equals(order):
        values = values.reindex(order)
    return in_memory.as_array(values) if isinstance(values, pd.Series) else values


def _columns_of(
    given: Mapping[str, Any], task: Task, positive: object, classes: Sequence[object] | None
) -> tuple[tuple[str, ...], Floats, dict[str, Floats]]:
    """Return the names of several classes, the target, and the other columns as numbers.

    Labels become 0 and 1, or the codes of several classes.

    Parameters
    ----------
    given : name -> values: ``target``, ``prediction``, ``score``, of several classes (n, C), and
        others.
    positive : which of two labels counts as 1; needed if the labels do not tell.
    classes : all classes in their order; by default those that occur, in the order of their
        numbers or of the alphabet.

    Raises
    ------
    UserError : if a value is not a number; there are more than two labels, or two labels that do
        not tell which of them counts as 1; there are fewer than two classes, or one is given twice;
        a label is none of them; or scores are not one for each.
    """
    given = {name: values for name, values in given.items() if name not in _NOT_NUMBERS}
    labels = ("target", "prediction")
    names: tuple[str, ...] | None = None
    if task is Task.MULTICLASS:
        names = _class_names([given[name] for name in labels], classes)
        listed = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
        otherwise = f"none of the classes {listed}"
    elif task is Task.BINARY and (names := _label_names(given, positive)):
        otherwise = f"not {quoted(names[0])} or {quoted(names[1])}"
    columns: dict[str, Floats] = {}
    for name, values in given.items():
        if names and name in labels:
            columns[name] = _codes(name, values, names, otherwise)
        elif name == "score" and names and task is Task.MULTICLASS:
            columns |= _class_scores(values, names)
        elif name == "score":
            sort = _in_order if _are_numbers(in_memory.as_array(given["target"])) else sorted
            columns[name] = _numbers(name, _positive_scores(values, names, sort))
        else:
            columns[name] = _numbers(name, values)
    of_classes = names if names and task is Task.MULTICLASS else ()
    return of_classes, columns.pop("target"), columns


def _class_names(labels: Sequence[Any], classes: Sequence[object] | None) -> tuple[str, ...]:
    """Return the names of several classes: those given, or those among the labels."""
    if classes is None:
        names = _in_order({text for values in labels for text in _spellings(values)[1]} - {""})
    else:
        names = tuple(map(_spelling, classes))
    if len(names) < 2 or len(set(names)) < len(names):
        listed = ", ".join(map(quoted, names))
        raise UserError(f"classes are {listed or 'none'}: several classes are two or more, once")
    return names


def _spellings(values: Any) -> tuple[NDArray[np.intp], list[str]]:
    """Return the codes (n,) of labels, and how each that is coded is spelt."""
    codes, distinct = pd.factorize(
        pd.Series(np.ravel(in_memory.as_array(values))), use_na_sentinel=False
    )
    return codes, [_spelling(label) for label in distinct]


def _in_order(names: set[str]) -> tuple[str, ...]:
    """Return names in the order of their numbers where all are numbers, or of the alphabet."""
    try:
        return tuple(sorted(names, key=lambda name: (float(name), name)))
    except ValueError:
        return tuple(sorted(names))


def _codes(name: str, values: Any, names: Sequence[str], otherwise: str) -> Floats:
    """Return labels as their positions among the names.

    Parameters
    ----------
    otherwise : what a label is that has no such name.
    """
    codes, texts = _spellings(values)
    position = {label: float(k) for k, label in enumerate(names)}
    coded: Floats = np.array([position.get(text, np.nan) for text in texts])[codes]
    if np.isnan(coded).any():
        row = int(np.flatnonzero(np.isnan(coded))[0])
        raise UserError(f"{name} is {quoted(texts[codes[row]])} in row {row}, {otherwise}")
    return coded


def _class_scores(score: Any, names: Sequence[str]) -> dict[str, Floats]:
    """Return one column for each class, in their order; a table's columns may be named by them."""
    titles, shares = _titled(score)
    if {*titles} == {*names}:
        shares = shares[:, [titles.index(name) for name in names]]
    array = _as_floats("score", shares)
    if array.ndim != 2 or array.shape[1] != len(names):
        raise UserError(
            f"score has shape {array.shape}: of {len(names)} classes ({', '.join(names)}) it has a "
            "column each"
        )
    return {f"score_{k}": array[:, k] for k in range(len(names))}


_NOT_NUMBERS = ("sample_weight", "clusters")


def _label_names(given: Mapping[str, Any], positive: object) -> tuple[str, str] | None:
    """Return the labels that are 0 and 1; None where they are numbers 0 and 1 as they are."""
    if positive is None and _are_numbers(in_memory.as_array(given["target"])):
        return None
    labels = sorted({*_spellings(given["target"])[1]} - {""})
    label_1 = _spelling(positive) if positive is not None else ""
    if not 0 < len(labels) <= 2:
        raise UserError(f"target holds {len(labels)} labels, and needs one of two in each row")
    if label_1 and label_1 not in labels:
        listed = " and ".join(map(quoted, labels))
        raise UserError(f"positive is {quoted(positive)}, and target holds {listed}")
    if label_1:
        return next((label for label in labels if label != label_1), f"not {label_1}"), label_1
    if pair := plain_pair(labels):
        return pair
    listed = " and ".join(map(quoted, labels))
    either = " or ".join(f"positive={name!r}" for name in labels)
    raise UserError(f"target holds {listed}: say which of them scores foretell: {either}")


def _are_numbers(labels: NDArray[Any]) -> bool:
    """Say whether labels are numbers or truths themselves, and not texts of them."""
    kinds = ("boolean", "integer", "floating", "mixed-integer-float", "empty")
    return pd.api.types.infer_dtype(labels.ravel(), skipna=True) in kinds


def _spelling(value: object) -> str:
    return spelled(str(value))


def _positive_scores(
    score: Any, names: Sequence[str] | None, sort: Callable[[set[str]], Sequence[str]]
) -> Any:
    """Return the probabilities of label 1, also where those of both labels are given.

    Parameters
    ----------
    sort : sorts the names of labels as scikit-learn sorts the labels.
    """
    titles, array = _titled(score)
    if array.ndim != 2 or array.shape[1] != 2:
        return array
    if names is None:  # numbers or truths
        by_name = {*titles} in ({"0", "1"}, {"false", "true"})
        column = titles.index(max(titles)) if by_name else 1
    else:
        column = [*(titles if names[1] in titles else sort({*names}))].index(names[1])
    if not np.allclose(_as_floats("score", array).sum(axis=1), 1, atol=_SLACK):
        raise UserError("score has two columns that do not add up to 1: give one of label 1")
    return array[:, column]


def _titled(score: Any) -> tuple[list[str], NDArray[Any]]:
    """Return the titles of a table of scores, none of an array, and its values."""
    if not in_memory.is_table(score):
        return [], in_memory.as_array(score)
    columns = in_memory.columns_of_table(score, "score")
    titles = [*in_memory.by_text(((_spelling(title), None) for title in columns), "score")]
    return titles, in_memory.as_array(in_memory.frame_of(score))


def _numbers(name: str, values: ArrayLike) -> Floats:
    return _one_dimensional(name, _as_floats(name, in_memory.as_array(values)))


def _as_floats(name: str, values: NDArray[Any]) -> Floats:
    try:
        return np.asarray(values, float)
    except (TypeError, ValueError) as error:
        raise UserError(f"{name} is not numeric: {error}") from error


def _one_dimensional(name: str, column: Any) -> Any:
    if np.ndim(column) != 1:
        raise UserError(f"{name} has shape {np.shape(column)}; it must have one dimension")
    if not len(column):
        raise UserError(f"{name} has no rows")
    return column


def _sensitive_frame(
    columns: Mapping[str, NDArray[Any]], *, what: str = "sensitive feature"
) -> pd.DataFrame:
    """Return groups as categorical columns, one per attribute.

    Parameters
    ----------
    what : what a column is called in errors.

    Raises
    ------
    UserError : more than one dimension, no rows, or floats that cannot tell labels apart.
    """
    arrays = {
        title: _one_dimensional(f"{what} {title}", column) for title, column in columns.items()
    }
    for title, column in arrays.items():
        in_memory.check_exact(column, f"{what} {title}")
    return pd.DataFrame({title: _as_groups(title, column) for title, column in arrays.items()})


def _as_groups(name: str, labels: NDArray[Any]) -> pd.Categorical:
    """Return labels as texts; those that are missing (code -1, the last name) are ``unknown``.

    Labels that look alike are different groups; a warning names them.
    """
    codes, distinct = pd.factorize(_texts(labels))
    written = [*distinct, *[""] * bool((codes < 0).any())]
    for sentence in label_notes(name, written):
        warnings.warn(sentence, stacklevel=5)  # of who calls `fairbench.evaluate`
    names = [text or missing_name(written) for text in written]
    used = sorted(set(names))
    code = {name: number for number, name in enumerate(used)}
    return pd.Categorical.from_codes(np.array([code[name] for name in names])[codes], used)


def _texts(labels: NDArray[Any]) -> NDArray[Any]:
    """Return labels as texts, as a file would have them; None where there is none."""
    if pd.api.types.infer_dtype(labels, skipna=True).startswith("mixed"):
        return np.array([text_of(label) or None for label in labels], object)
    # Of one type: equal ones are written alike.
    codes, distinct = pd.factorize(pd.Series(labels), use_na_sentinel=False)
    return np.array([text_of(label) or None for label in distinct], object)[codes]


# Evaluates arrays from Python code: ``fairbench.evaluate(...)``.


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
        classes. Columns of a table that are named by the labels are found by their names.
    uncertainty : (n,) the uncertainty of each prediction, by any measure.
    sd : (n,) the standard deviation that the model predicts for each row.
    aleatoric, epistemic : (n,) variances, such as
        :func:`fairbench.metrics.uncertainty.variance_decomposition` computes from an ensemble.
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
    A long table with the columns of :data:`fairbench.evaluation.table.COLUMNS`: the metric; the
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
        - `privileged` names an attribute that is not in `sensitive_features`, or a group in another
          spelling than its rows have;
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
    check_choice("task", str(task), Task)
    task = Task(task)
    check_minimum("seed", seed, 0)
    evaluator = evaluator or Evaluator()
    texts = [fail_if] if isinstance(fail_if, str) else list(fail_if)
    if texts and task is not Task.BINARY:
        raise UserError(f"fail_if is of two classes, not of {task}: leave it out")
    conditions = gates.conditions_of(texts, require, evaluator.interval) if texts else []
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
    if missing := [name for name in ("target", "prediction") if arrays[name] is None]:
        raise UserError(f"{missing[0]} is None: give an array")
    aligned, features, bands = _aligned(arrays, sensitive_features, within)
    if not isinstance(privileged, Mapping | None):
        raise UserError("privileged names a group of each attribute: give {'ATTRIBUTE': 'GROUP'}")
    given = in_memory.by_text((privileged or {}).items(), "privileged")
    privileged = {name: text_of(label) or MISSING for name, label in given.items()}
    sensitive = _sensitive_frame(features)
    about = task, positive, classes
    data = _labelled(aligned, sensitive, privileged, evaluator.intersections, about)
    table = evaluator.table(data, [rng(seed, "posterior")])
    if within is not None:
        strata = _strata(bands, data, evaluator)
        evaluate_within(table, evaluator, data, strata, [rng(seed, "strata")])
    frame = table.frame()
    if conditions:
        conditions = gates.by_attribute(conditions, list(map(str, sensitive)), list(data.groups))
        named, hard = privileged, data.column("prediction")

        def compared(name: str) -> gates.ComparedGroups:
            about: Any = {"target": data.target, "reference": named.get(name, "")}
            return gates.ComparedGroups.of(data.groups[name], hard, data.design, **about)

        gates.judge(conditions, compared, require).check(frame)
    return frame


def _labelled(
    arrays: Mapping[str, Any],
    sensitive: pd.DataFrame,
    privileged: Mapping[str, str],
    intersections: int,
    about: tuple[Task, object, Sequence[object] | None],
) -> Labelled:
    """Return checked predictions with their labels, and groups by their attributes (n, A).

    Parameters
    ----------
    about : the task, the label that counts as 1, and the classes, as `evaluate` takes them.
    """
    task = about[0]
    names, y, columns = _columns_of(arrays, *about)
    valid = np.isin(y, (0, 1)) if task is Task.BINARY else np.isfinite(y)
    if not valid.all():
        expected = "0 or 1" if task is Task.BINARY else "a number"
        row = int(np.flatnonzero(~valid)[0])
        raise UserError(f"target is {y[row]:g} in row {row}, not {expected}")
    predictions = read_predictions(columns, task, "evaluate", classes=len(names))
    # Each attribute's reference group: by default its first label in sorted order.
    references = {str(name): str(sensitive[name].cat.categories[0]) for name in sensitive}
    for name, label in privileged.items():
        check_choice("sensitive feature in privileged", name, references)
        groups_of = list(sensitive[name].cat.categories)
        # A part of the data may lack the group; another spelling of one that it has is a mistake.
        if label not in groups_of and any(any(label_notes(name, (label, g))) for g in groups_of):
            raise unknown_name(f"group of {name} in privileged", label, groups_of)
    references |= privileged
    if intersections > 1:
        check_combinable(sensitive, "sensitive_features")
    check_few_groups(sensitive, intersections, "sensitive_features")
    groups = group_columns(sensitive, references, intersections)
    design = Design.given(len(y), arrays.get("sample_weight"), arrays.get("clusters"))
    if design is not None and design.units < 2:
        raise UserError("clusters has one mark in all rows: intervals need at least two clusters")
    return Labelled(y, predictions, groups, task, design=design, classes=names)


def _strata(within: Mapping[str, NDArray[Any]], data: Labelled, evaluator: Evaluator) -> pd.Series:
    """Return the strata (n,); refuse data within whose strata groups cannot be compared."""
    if data.task is not Task.BINARY:
        raise UserError(f"within is of two classes, not of {data.task}: leave it out")
    if data.design is not None:
        raise UserError("within takes neither sample_weight nor clusters: leave one of them out")
    if evaluator.interval != FREQUENTIST:
        raise UserError("within has no interval=dirichlet: use interval=frequentist, the default")
    columns = _sensitive_frame(within, what="feature of within")
    for name in columns:
        if name in data.groups:
            raise UserError(
                f"within names '{name}', whose groups are compared: they are not within themselves"
            )
    return strata_of({str(name): columns[name] for name in columns}, "within")
