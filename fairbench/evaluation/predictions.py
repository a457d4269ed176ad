"""Checked predictions, with the labels and groups by which they are judged."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.core.errors import UserError
from fairbench.data.dataset import Task
from fairbench.evaluation.table import OK, Status, Where, no_rows, undefined
from fairbench.inference.survey import Design

Columns = Mapping[str, NDArray[Any]]
_Scalar = TypeVar("_Scalar", bound=np.generic)

_KNOWN = ("prediction", "score", "mean", "sd", "uncertainty", "aleatoric", "epistemic")
_NON_NEGATIVE = ("sd", "uncertainty", "aleatoric", "epistemic")
_INTERVAL = re.compile(r"(lower|upper)_\d+")
_SET = re.compile(r"set_[01]_\d+")
_CLASS = re.compile(r"score_.+")
_ROUNDING = 1e-5  # up to which the scores of the classes may miss a sum of 1


def read_predictions(
    columns: Columns, task: Task, method: str, *, keep_invalid: bool = False
) -> pd.DataFrame:
    """Check the columns that a method's reading returned, and make them a table of float64.

    Parameters
    ----------
    columns : name -> (n,) values; `prediction` is required (0 / 1 or the predicted mean), the
        others are present where they apply: `score` (probability of label 1), `mean`, `sd`
        (where a standard deviation is claimed), `uncertainty` (orders abstention, any unit),
        `aleatoric` and `epistemic` (variances), `lower_<level>` and `upper_<level>` (the ends of
        an interval that covers `level` percent, possibly infinite), `set_<class>_<level>` (1 where
        the class is in the set that does). Of more classes than two, `score_<class>` is the
        probability of each class, in the order of the codes 0 .. C - 1 that `prediction` holds.
    keep_invalid : keep values that cannot be, such as NaN or a standard deviation below 0, instead
        of refusing them.

    Raises
    ------
    UserError : an unknown or missing column, or values that cannot be; names the method, the
        column and the count.
    """
    unknown = [name for name in sorted(set(columns) - set(_KNOWN)) if not _is_level(name)]
    if unknown or "prediction" not in columns:
        raise UserError(
            f"method {method}: a reading returns 'prediction' and any of {', '.join(_KNOWN[1:])}; "
            f"this one returned {', '.join(columns)}"
        )
    table = pd.DataFrame({name: np.asarray(values, float) for name, values in columns.items()})
    classes = [name for name in columns if _CLASS.fullmatch(name)]
    if len(classes) == 1:
        raise UserError(f"method {method}: '{classes[0]}' is the score of a single class: name all")
    for name in () if keep_invalid else table.columns:
        _check(table[name].to_numpy(), name, task, method, classes=max(len(classes), 2))
    if classes and not keep_invalid:
        total = table[classes].to_numpy().sum(axis=1)
        _refuse(abs(total - 1) > _ROUNDING, "not 1 in sum", ", ".join(classes), method)
    return table


def _is_level(name: str) -> bool:
    return any(pattern.fullmatch(name) for pattern in (_INTERVAL, _SET, _CLASS))


def _check(
    values: NDArray[np.float64], name: str, task: Task, method: str, *, classes: int
) -> None:
    if _INTERVAL.fullmatch(name):
        _refuse(np.isnan(values), "NaN", name, method)
        return
    _refuse(~np.isfinite(values), "not finite", name, method)
    if name == "score" or _CLASS.fullmatch(name):
        _refuse((values < 0) | (values > 1), "outside [0, 1]", name, method)
    if name == "prediction" and classes > 2:
        _refuse(~np.isin(values, range(classes)), f"no class of 0 .. {classes - 1}", name, method)
    elif (name == "prediction" and task is Task.BINARY) or _SET.fullmatch(name):
        _refuse(~np.isin(values, (0, 1)), "neither 0 nor 1", name, method)
    if name in _NON_NEGATIVE:
        _refuse(values < 0, "negative", name, method)
    if name == "sd" and task is Task.REGRESSION:
        _refuse(values == 0, "exactly 0", name, method)


def _refuse(bad: NDArray[np.bool_], what: str, name: str, method: str) -> None:
    if bad.any():
        raise UserError(
            f"method {method}: column '{name}' is {what} in {int(bad.sum())} of {len(bad)} rows "
            f"(first: row {int(np.flatnonzero(bad)[0])})"
        )


@dataclass(frozen=True)
class Labelled:
    """One table of predictions, ready to evaluate.

    Attributes
    ----------
    target : (n,) labels or values.
    predictions : (n, ...) a table from :func:`fairbench.evaluation.predictions.read_predictions`.
    groups : attribute -> (n,) categorical labels, reference first.
    truth : (n, ...) ``probability``, or ``mean`` and ``sd``; simulated populations only.
    features : (n, d) what the rows were predicted from, where that is to be described.
    encoded : (n, e) the same as numbers, scaled as the training rows are, where rows that are
        alike are to be found.
    design : weights of the rows and which of them belong together, where they do not count alike.
    """

    target: NDArray[np.float64]
    predictions: pd.DataFrame
    groups: Mapping[str, pd.Series]
    task: Task
    truth: pd.DataFrame | None = None
    features: pd.DataFrame | None = None
    encoded: NDArray[np.float64] | None = None
    design: Design | None = None

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.target)

    def column(self, name: str) -> NDArray[np.float64]:
        """Return a column of the predictions as float64."""
        values: NDArray[np.float64] = self.predictions[name].to_numpy(np.float64)
        return values


@dataclass(frozen=True, eq=False)
class Groups:
    """The groups of an attribute, or everyone as one group of no attribute.

    Attributes
    ----------
    codes : (n,) which group each row is in.
    """

    attribute: str
    names: tuple[str, ...]
    codes: NDArray[np.intp]

    @classmethod
    def of(cls, attribute: str, labels: pd.Series) -> Groups:
        """Return the groups of an attribute's labels, the reference first."""
        return cls(
            attribute, tuple(map(str, labels.cat.categories)), labels.cat.codes.to_numpy(np.intp)
        )

    @classmethod
    def everyone(cls, rows: int) -> Groups:
        """Return all rows as one group."""
        return cls("", ("",), np.zeros(rows, np.intp))

    def __len__(self) -> int:
        """Return the number of groups."""
        return len(self.names)

    @cached_property
    def size(self) -> list[int]:
        """The rows of each group."""
        size: list[int] = np.bincount(self.codes, minlength=len(self)).tolist()
        return size

    @cached_property
    def _order(self) -> NDArray[np.intp]:
        return np.argsort(self.codes, kind="stable")

    def split(self, values: NDArray[_Scalar]) -> list[NDArray[_Scalar]]:
        """Return the values of each group, in the order of the rows."""
        return np.split(values[self._order], np.cumsum(self.size)[:-1])

    def where(self, g: int) -> Where:
        """Return whom a row of a group is about."""
        return Where(self.attribute, self.names[g])

    def in_words(self, g: int) -> str:
        """Return ``in group 'a'`` with a space before it, nothing of everyone."""
        return f" in group '{self.names[g]}'" if self.names[g] else ""

    def statuses(self, status: Sequence[Status] = ()) -> list[Status]:
        """Return the status of each group, undefined where it has no rows."""
        given = status or [OK] * len(self)
        return [
            each if n or each != OK else undefined(no_rows(name))
            for each, n, name in zip(given, self.size, self.names, strict=True)
        ]
