"""Checked predictions, with the labels and groups by which they are judged."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.core.errors import UserError
from fairbench.data.dataset import Task
from fairbench.evaluation.table import OK, Status, Where, no_rows, undefined
from fairbench.inference.means import Moments
from fairbench.inference.rates import quantile
from fairbench.inference.survey import Design, Sampled, sums

Columns = Mapping[str, NDArray[Any]]
_Scalar = TypeVar("_Scalar", bound=np.generic)

_VARIANCES = ("aleatoric", "epistemic")
_ENTROPIES = ("entropy_aleatoric", "entropy_epistemic")
_KNOWN = ("prediction", "score", "mean", "sd", "uncertainty", *_VARIANCES, *_ENTROPIES)
_NON_NEGATIVE = ("sd", "uncertainty", *_VARIANCES, *_ENTROPIES)
_INTERVAL = re.compile(r"(lower|upper)_\d+")
_SET = re.compile(r"set_\d+_\d+")
_CLASS = re.compile(r"score_.+")
_ROUNDING = 1e-5  # up to which the scores of the classes may miss a sum of 1


def read_predictions(
    columns: Columns,
    task: Task,
    method: str,
    *,
    keep_invalid: bool = False,
    classes: int = 0,
) -> pd.DataFrame:
    """Check the columns that a method's reading returned, and make them a table of float64.

    Parameters
    ----------
    columns : name -> (n,) values; `prediction` is required (label, class or predicted mean), the
        others are present where they apply: `score` (probability of label 1), `mean`, `sd`
        (where a standard deviation is claimed), `uncertainty` (orders abstention, any unit),
        `aleatoric` and `epistemic` (variances; of several classes also `entropy_aleatoric` and
        `entropy_epistemic`, in nats), `lower_<level>` and `upper_<level>` (the ends of an interval
        that covers `level` percent, possibly infinite), `set_<class>_<level>` (1 where the class
        is in the set that does). Of more classes than two, `score_<class>` is the probability of
        each class, in the order of the codes 0 .. C - 1 that `prediction` holds.
    classes : how many classes there are, of several.
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
    arrays = {name: np.asarray(values, float) for name, values in columns.items()}
    table = pd.DataFrame(arrays)
    scores = [name for name in columns if _CLASS.fullmatch(name)]
    if len(scores) == 1:
        raise UserError(f"method {method}: '{scores[0]}' is the score of a single class: name all")
    if classes and len(scores) not in (0, classes):
        raise UserError(f"method {method}: {len(scores)} scores of {classes} classes: name all")
    for name, values in () if keep_invalid else arrays.items():
        _check(values, name, task, method, classes=max(classes, len(scores), 2))
    if scores and not keep_invalid:
        total = table[scores].to_numpy().sum(axis=1)
        _refuse(abs(total - 1) > _ROUNDING, "not 1 in sum", ", ".join(scores), method)
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
    elif (name == "prediction" and task is not Task.REGRESSION) or _SET.fullmatch(name):
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
    classes : the names of several classes, in the order of their codes.
    """

    target: NDArray[np.float64]
    predictions: pd.DataFrame
    groups: Mapping[str, pd.Series]
    task: Task
    truth: pd.DataFrame | None = None
    features: pd.DataFrame | None = None
    encoded: NDArray[np.float64] | None = None
    design: Design | None = None
    classes: tuple[str, ...] = ()

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.target)

    def with_weight(self) -> Labelled:
        """Return the rows that have a weight; all where rows count alike."""
        if self.design is None or self.design.weight.all():
            return self
        kept = np.flatnonzero(self.design.weight > 0)
        groups = {name: labels.iloc[kept] for name, labels in self.groups.items()}
        predictions, design = self.predictions.iloc[kept], self.design.take(kept)
        arrays = self.target[kept], predictions, groups
        return Labelled(*arrays, self.task, design=design, classes=self.classes)

    @cached_property
    def coded(self) -> dict[str, Groups]:
        """The groups of each attribute, with the code of every row, which is looked up once."""
        return {name: Groups.of(name, labels) for name, labels in self.groups.items()}

    def column(self, name: str) -> NDArray[np.float64]:
        """Return a column of the predictions as float64."""
        values: NDArray[np.float64] = self.predictions[name].to_numpy(np.float64)
        return values


Array = NDArray[np.float64]


def by_group(codes: NDArray[np.intp], groups: int) -> NDArray[np.intp]:
    """Return the places of rows by group, those of a group as they come."""
    if groups == 1:
        return np.arange(len(codes))
    small = codes.astype(np.int16) if groups < 2**15 else codes  # of short numbers it is linear
    return np.argsort(small, kind="stable")


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
    def order(self) -> NDArray[np.intp]:
        """The places of rows by group, those of a group as they come."""
        return by_group(self.codes, len(self))

    def take(self, rows: NDArray[np.intp]) -> Groups:
        """Return the groups of some rows, in that order."""
        return Groups(self.attribute, self.names, self.codes[rows])

    def split(self, values: NDArray[_Scalar]) -> list[NDArray[_Scalar]]:
        """Return the values of each group, in the order of the rows."""
        return np.split(values[self.order], np.cumsum(self.size)[:-1])

    def where(self, g: int) -> Where:
        """Return whom a row of a group is about."""
        return Where(self.attribute, self.names[g])

    def statuses(self, status: Sequence[Status] = ()) -> list[Status]:
        """Return the status of each group, undefined where it has no rows."""
        given = status or [OK] * len(self)
        return [
            each if n or each != OK else undefined(no_rows(name))
            for each, n, name in zip(given, self.size, self.names, strict=True)
        ]


@dataclass(frozen=True, eq=False)
class Parts:
    """Everyone and the groups of every attribute, one after the other: G groups of rows.

    Attributes
    ----------
    attributes : everyone as one group, then the groups of each attribute.
    design : how the n rows were sampled; those without weight are left out.
    """

    attributes: tuple[Groups, ...]
    design: Design | None = None

    @classmethod
    def of(cls, rows: int, groups: Mapping[str, pd.Series], design: Design | None = None) -> Parts:
        """Return everyone of `rows` rows, and the groups of each attribute's labels."""
        named = (Groups.of(name, labels) for name, labels in groups.items())
        return cls((Groups.everyone(rows), *named), design)

    def take(self, rows: NDArray[np.intp], design: Design | None) -> Parts:
        """Return the groups of some rows, in that order, which were sampled by a design."""
        return Parts(tuple(groups.take(rows) for groups in self.attributes), design)

    def __len__(self) -> int:
        """Return the number of groups."""
        return len(self.size)

    @cached_property
    def size(self) -> list[int]:
        """The rows of each group."""
        return [n for groups in self.attributes for n in groups.size]

    @cached_property
    def codes(self) -> NDArray[np.intp]:
        """The group of every row, for each attribute in turn."""
        codes = [g.codes + first for g, first in zip(self.attributes, self.first, strict=True)]
        return np.concatenate(codes)

    @cached_property
    def first(self) -> list[int]:
        """The place of each attribute's first group."""
        first: list[int] = np.cumsum([0, *map(len, self.attributes[:-1])]).tolist()
        return first

    @property
    def placed(self) -> Iterator[tuple[int, Groups]]:
        """The groups of each attribute, with the place of the first."""
        return zip(self.first, self.attributes, strict=True)

    @cached_property
    def order(self) -> NDArray[np.intp]:
        """The places of `codes` by group, rows of a group as they come."""
        return by_group(self.codes, len(self))

    @cached_property
    def repeated(self) -> Design | None:
        """How the rows of all attributes in turn were sampled."""
        return self.design.repeated(len(self.attributes)) if self.design else None

    @cached_property
    def sample(self) -> Sampled | None:
        """How the rows of every group were sampled."""
        return Sampled.of(self.repeated, self.codes, len(self)) if self.repeated else None

    def rows(self, values: NDArray[np.floating]) -> Array:
        """Return values (..., n) of rows, for each attribute in turn."""
        return np.concatenate([values] * len(self.attributes), axis=-1)

    def mean_of(self, values: Array) -> Array:
        """Return the means (..., G) of values of rows, or of values for each attribute in turn."""
        if self.sample is not None:
            return self.sample.means(self._in_turn(values))
        parts = [sums(mine, g.codes, len(g)) for g, mine in self.by_attribute(values)]
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(np.concatenate(parts, axis=-1) / np.array(self.size))

    def by_attribute(self, values: NDArray[Any]) -> Iterator[tuple[Groups, NDArray[Any]]]:
        """Yield the groups of each attribute with values (..., n), their part of (..., A n) ones.

        A part at a time fits into the memory that was used a moment ago: of a million rows, making
        room for all at once takes longer than computing with them.
        """
        n = len(self.attributes[0].codes)
        same = values.shape[-1] == n
        for i, groups in enumerate(self.attributes):
            yield groups, values if same else values[..., i * n : (i + 1) * n]

    def _in_turn(self, values: Array) -> Array:
        return self.rows(values) if values.shape[-1] < len(self.codes) else values

    def moments(self, values: Array) -> tuple[Moments, Array | None]:
        """Return the moments (..., G) of such values, and what clusters add to their means."""
        if self.sample is None:
            return self._moments(values), None
        mean, totals = self.sample.linearised(self._in_turn(values))
        return Moments.of_sampled(mean, totals, self.sample), totals

    def _moments(self, values: Array) -> Moments:
        found = [Moments.of_groups(mine, g.codes, len(g)) for g, mine in self.by_attribute(values)]
        return Moments.joined(found)

    def normal_ends(self, values: Array, level: float) -> Array:
        """Return both ends (2, ..., G) of normal intervals of the means of such values."""
        with np.errstate(invalid="ignore", divide="ignore"):
            found = self._moments(values)
            half = quantile(level) * found.sd / np.sqrt(found.size)
            both = np.stack([found.mean - half, found.mean + half])
        return np.asarray(np.where(np.isfinite(found.mean), both, np.nan))

    def statuses(self, bad: NDArray[np.bool_] | None = None, what: str = "") -> list[Status]:
        """Return the status of each group; invalid where rows (n,) are `bad`."""
        found = [status for groups in self.attributes for status in groups.statuses()]
        if bad is None or not bad.any():
            return found
        count = np.bincount(self.codes, self.rows(bad.astype(float)), len(self)).astype(int)
        for g, wrong in enumerate(count.tolist()):
            if wrong:
                found[g] = Status("invalid", f"{what} invalid in {wrong} of {self.size[g]} rows")
        return found

    @cached_property
    def names(self) -> list[str]:
        """The name of each group, empty of everyone."""
        return [name for groups in self.attributes for name in groups.names]

    def in_words(self, g: int) -> str:
        """Return ``in group 'a'`` with a space before it, nothing of everyone."""
        return f" in group '{self.names[g]}'" if self.names[g] else ""

    def too_few(self, least: int) -> Callable[[int], str]:
        """Return what says why a group has no interval."""
        if self.sample is None:
            return lambda g: f"n={self.size[g]}, an interval needs {least}"
        like = self.sample.size
        return lambda g: f"n={self.size[g]}, like {like[g]:.0f} of equal weight, needs {least}"

    def too_rare(self, least: int, rare: Array, rows: int) -> Callable[[int], str]:
        """Return the same of rows of the rarer label."""
        few, equal = self.too_few(rows), "" if self.sample is None else "equally weighted "

        def reason(g: int) -> str:
            if rare[g] < least:
                label = f"{equal}rows with the rarer label"
                return f"{int(rare[g])} {label}, an interval needs {least}"
            return few(g)

        return reason
