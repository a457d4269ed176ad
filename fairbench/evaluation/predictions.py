"""Checked predictions of one or several splits, with the labels and groups they are judged by."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.core.arrays import Codes, Floats, divide
from fairbench.core.errors import UserError
from fairbench.data.dataset import Task
from fairbench.evaluation.table import Statuses, in_group
from fairbench.inference.means import MOST_HEAVY, Moments, by_group, tail_index
from fairbench.inference.rates import quantile
from fairbench.inference.survey import Design, Sampled, sums
from fairbench.metrics.regression import ERROR_ROWS

Columns = Mapping[str, NDArray[Any]]
_Scalar = TypeVar("_Scalar", bound=np.generic)
_T = TypeVar("_T")

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
    method : whose columns these are, as an error begins, such as ``method Ensemble``.
    classes : how many classes there are, of several.
    keep_invalid : keep values that cannot be, such as NaN or a standard deviation below 0, instead
        of refusing them.

    Raises
    ------
    UserError : an unknown or missing column, or values that cannot be; names `method`, the
        column and the count.
    """
    kinds = _INTERVAL, _SET, _CLASS
    others = sorted(set(columns) - set(_KNOWN))
    unknown = [name for name in others if not any(kind.fullmatch(name) for kind in kinds)]
    if unknown or "prediction" not in columns:
        raise UserError(
            f"{method}: a reading returns 'prediction' and any of {', '.join(_KNOWN[1:])}; "
            f"this one returned {', '.join(columns)}"
        )
    arrays = {name: np.asarray(values, float) for name, values in columns.items()}
    table = pd.DataFrame(arrays)
    scores = [name for name in columns if _CLASS.fullmatch(name)]
    if len(scores) == 1:
        raise UserError(f"{method}: '{scores[0]}' is the score of a single class: name all")
    if classes and len(scores) not in (0, classes):
        raise UserError(f"{method}: {len(scores)} scores of {classes} classes: name all")
    if keep_invalid:
        return table

    def refuse(bad: NDArray[np.bool_], what: str, name: str) -> None:
        if bad.any():
            raise UserError(
                f"{method}: column '{name}' is {what} in {int(bad.sum())} of {len(bad)} rows "
                f"(first: row {int(np.flatnonzero(bad)[0])})"
            )

    several = max(classes, len(scores))
    for name, values in arrays.items():
        if _INTERVAL.fullmatch(name):
            refuse(np.isnan(values), "NaN", name)
            continue
        refuse(~np.isfinite(values), "not finite", name)
        if name == "score" or _CLASS.fullmatch(name):
            refuse((values < 0) | (values > 1), "outside [0, 1]", name)
        if name == "prediction" and several > 2:
            refuse(~np.isin(values, range(several)), f"no class of 0 .. {several - 1}", name)
        elif (name == "prediction" and task is not Task.REGRESSION) or _SET.fullmatch(name):
            refuse(~np.isin(values, (0, 1)), "neither 0 nor 1", name)
        if name in _NON_NEGATIVE:
            refuse(values < 0, "negative", name)
        if name == "sd" and task is Task.REGRESSION:
            refuse(values == 0, "exactly 0", name)
    if scores:
        total = table[scores].to_numpy().sum(axis=1)
        refuse(abs(total - 1) > _ROUNDING, "not 1 in sum", ", ".join(scores))
    return table


Why = Callable[[int], str]
FEW_MAKE_THE_MEAN = "a few of n={} rows make the mean, no interval is known to hold"


@dataclass(frozen=True)
class Labelled:
    """One table of predictions, ready to evaluate: the rows of S splits, one after the other.

    Attributes
    ----------
    target : (n,) labels or values.
    predictions : (n, ...) a table from :func:`fairbench.evaluation.predictions.read_predictions`.
    groups : attribute -> (n,) categorical labels, reference first.
    truth : (n, ...) ``probability``, or ``mean`` and ``sd``; simulated populations only.
    features : (n, d) the features that rows were predicted from, if they are to be described.
    encoded : (n, e) the features as numbers, on the scale of the training rows, if similar rows are
        to be found.
    design : the weights and clusters of rows, if they have any; only with a single split.
    classes : the names of the classes in the order of their codes; empty for other tasks.
    rows : (S,) how many rows each split has; by default, all rows are one split.
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
    rows: tuple[int, ...] = ()

    @classmethod
    def joined(cls, several: Sequence[Labelled]) -> Labelled:
        """Return the rows of several tables, each of one split with the same columns, as one."""
        if len(several) == 1:
            return several[0]
        first, in_turn = several[0], partial(pd.concat, ignore_index=True)
        kinds = dict.fromkeys(("predictions", "truth", "features"), in_turn)
        joined: Any = {
            name: join([getattr(part, name) for part in several])
            for name, join in (kinds | dict.fromkeys(("target", "encoded"), np.concatenate)).items()
            if getattr(first, name) is not None
        }
        groups = {name: in_turn([part.groups[name] for part in several]) for name in first.groups}
        return replace(first, **joined, groups=groups, rows=tuple(map(len, several)))

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.target)

    @property
    def splits(self) -> int:
        """How many splits there are."""
        return max(len(self.rows), 1)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """The number of rows (S, 1) of each split."""
        return self.everyone.size

    @cached_property
    def slices(self) -> list[slice]:
        """Where the rows of every split lie."""
        stops = np.cumsum(self.sizes).tolist()
        return list(map(slice, [0, *stops[:-1]], stops))

    def with_weight(self) -> Labelled:
        """Return the rows with a weight above 0; all rows if there are no weights."""
        if self.design is None or self.design.weight.all():
            return self
        return self.take(np.flatnonzero(self.design.weight > 0))

    def take(self, rows: Codes) -> Labelled:
        """Return the rows at some positions: of several splits all of them, split by split."""
        tables: Any = {
            name: table.iloc[rows]
            for name in ("predictions", "truth", "features")
            if (table := getattr(self, name)) is not None
        }
        return replace(
            self,
            **tables,
            target=self.target[rows],
            groups={name: labels.iloc[rows] for name, labels in self.groups.items()},
            encoded=None if self.encoded is None else self.encoded[rows],
            design=None if self.design is None else self.design.take(rows),
            rows=self.rows if self.splits > 1 else (),
        )

    def statuses(self, bad: NDArray[np.bool_], what: str) -> Statuses:
        """Return the status (S, 1) of each split; invalid where rows (n,) are `bad`."""
        return AllGroups((self.everyone,)).statuses(bad, what)[:, None]

    @cached_property
    def everyone(self) -> Groups:
        """All rows of a split as one group."""
        return Groups.everyone(len(self), self.rows)

    @cached_property
    def coded(self) -> dict[str, Groups]:
        """The groups of each attribute, with the code of every row, computed once."""
        return {name: Groups.of(name, labels, self.rows) for name, labels in self.groups.items()}

    def column(self, name: str) -> NDArray[np.float64]:
        """Return a column of the predictions as float64."""
        return self.predictions[name].to_numpy(np.float64)


@dataclass(frozen=True, eq=False)
class Groups:
    """The groups of an attribute in S splits, or everyone as one group without an attribute.

    Each row is in one of S G cells: the first split's groups, then the second's, and so on.

    Attributes
    ----------
    names : (G,) the names of the groups.
    codes : (n,) the cell of each row.
    splits : the number of splits, S.
    """

    attribute: str
    names: tuple[str, ...]
    codes: Codes
    splits: int = 1

    @classmethod
    def of(cls, attribute: str, labels: pd.Series, rows: Sequence[int] = ()) -> Groups:
        """Return the groups of an attribute's labels, the reference first.

        Parameters
        ----------
        rows : (S,) how many rows each split has; by default, all rows are one split.
        """
        names = tuple(map(str, labels.cat.categories))
        codes = labels.cat.codes.to_numpy(np.intp)
        if len(rows) > 1:
            codes = codes + np.repeat(len(names) * np.arange(len(rows)), rows)
        return cls(attribute, names, codes, max(len(rows), 1))

    @classmethod
    def everyone(cls, count: int, rows: Sequence[int] = ()) -> Groups:
        """Return all `count` rows as one group in every split."""
        rows = rows or (count,)
        return cls("", ("",), np.repeat(np.arange(len(rows)), rows), len(rows))

    def __len__(self) -> int:
        """Return the number of groups, G."""
        return len(self.names)

    @property
    def cells(self) -> int:
        """The number of cells: groups times splits."""
        return self.splits * len(self)

    @cached_property
    def size(self) -> NDArray[np.int64]:
        """The rows (S, G) of each group."""
        return np.bincount(self.codes, minlength=self.cells).reshape(self.splits, len(self))

    @cached_property
    def order(self) -> Codes:
        """The row numbers ordered by cell, and in a cell as the rows come."""
        return by_group(self.codes, self.cells)

    def shaped(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return values (..., S G) of cells as (..., S, G)."""
        return values.reshape(*values.shape[:-1], self.splits, len(self))

    def split(self, values: NDArray[_Scalar]) -> list[NDArray[_Scalar]]:
        """Return the values of each cell, in the order of the rows."""
        return np.split(values[self.order], np.cumsum(self.size.ravel())[:-1])


@dataclass(frozen=True, eq=False)
class AllGroups:
    """Everyone and the groups of every attribute, one after the other: C cells of rows.

    Attributes
    ----------
    attributes : everyone as one group, then the groups of each attribute.
    design : how the n rows were sampled; those without weight are left out.
    """

    attributes: tuple[Groups, ...]
    design: Design | None = None

    @classmethod
    def of(
        cls,
        count: int,
        groups: Mapping[str, pd.Series],
        design: Design | None = None,
    ) -> AllGroups:
        """Return everyone of `count` rows, and the groups of each attribute's labels."""
        by_name = (Groups.of(name, labels) for name, labels in groups.items())
        return cls((Groups.everyone(count), *by_name), design)

    @classmethod
    def of_labelled(cls, data: Labelled) -> AllGroups:
        """Return everyone and all groups of a table of predictions."""
        return cls((data.everyone, *data.coded.values()), data.design)

    def __len__(self) -> int:
        """Return the number of cells."""
        return len(self.size)

    @cached_property
    def size(self) -> NDArray[np.int64]:
        """The rows (C,) of each cell."""
        return np.concatenate([groups.size.ravel() for groups in self.attributes])

    @cached_property
    def codes(self) -> Codes:
        """The cell of every row, for each attribute in turn."""
        starts = (cells.start for cells, _ in self.placed)
        return np.concatenate(
            [g.codes + start for g, start in zip(self.attributes, starts, strict=True)]
        )

    @cached_property
    def placed(self) -> list[tuple[slice, Groups]]:
        """The groups of each attribute, with the slice of cells that they are."""
        stops = np.cumsum([groups.cells for groups in self.attributes]).tolist()
        slices = map(slice, [0, *stops[:-1]], stops)
        return list(zip(slices, self.attributes, strict=True))

    @cached_property
    def order(self) -> Codes:
        """The indices of `codes` ordered by cell, and in a cell as the rows come."""
        return by_group(self.codes, len(self))

    @property
    def clustered(self) -> bool:
        """Whether rows belong together."""
        return self.design is not None and self.design.clustered

    @cached_property
    def repeated(self) -> Design | None:
        """How the rows of all attributes in turn were sampled."""
        return self.design.repeated(len(self.attributes)) if self.design else None

    @cached_property
    def sample(self) -> Sampled | None:
        """How the rows of every cell were sampled."""
        return Sampled.of(self.repeated, self.codes, len(self)) if self.repeated else None

    def rows(self, values: NDArray[np.floating]) -> Floats:
        """Return values (..., n) of rows, repeated for each attribute in turn: (..., A n)."""
        return np.concatenate([values] * len(self.attributes), axis=-1)

    def mean_of(self, values: Floats) -> Floats:
        """Return the means (..., C) of values of rows, or of values for each attribute in turn."""
        if self.sample is not None:
            return self.sample.means(self._in_turn(values))
        return divide(self.sums_of(values), self.size)

    def sums_of(self, values: Floats) -> Floats:
        """Return the sums (..., C) of values as `mean_of` takes them, whatever rows weigh."""
        return np.concatenate(self._by_attribute(sums, values), axis=-1)

    def _by_attribute(self, of: Callable[..., _T], values: Floats) -> list[_T]:
        """Return a function of values (..., n), or of their part of (..., A n), and cells.

        A part at a time fits into the memory that was used a moment ago: of a million rows, making
        room for all at once takes longer than computing with them.
        """
        n = len(self.attributes[0].codes)
        parts = [values] * len(self.attributes)
        if values.shape[-1] != n:
            parts = [values[..., i * n : (i + 1) * n] for i in range(len(self.attributes))]
        return [of(part, g.codes, g.cells) for part, g in zip(parts, self.attributes, strict=True)]

    def _in_turn(self, values: Floats) -> Floats:
        return self.rows(values) if values.shape[-1] < len(self.codes) else values

    def moments(self, values: Floats) -> tuple[Moments, Floats | None]:
        """Return the moments (..., C) of values of rows, and what clusters add to their means."""
        if self.sample is None:
            return self._moments(values), None
        mean, totals = self.sample.linearised(self._in_turn(values))
        return Moments.of_sampled(mean, totals, self.sample), totals

    def _moments(self, values: Floats) -> Moments:
        return Moments.joined(self._by_attribute(Moments.of_groups, values))

    def tail_index(self, values: Floats) -> Floats:
        """Return how heavy the upper tails (..., C) of values of rows are."""
        return np.concatenate(self._by_attribute(tail_index, values), axis=-1)

    def normal_limits(self, values: Floats, level: float) -> Floats:
        """Return both limits (2, ..., C) of normal intervals of the means of values of rows."""
        with np.errstate(invalid="ignore", divide="ignore"):
            moments = self._moments(values)
            half_width = quantile(level) * moments.sd / np.sqrt(moments.size)
            limits = np.stack([moments.mean - half_width, moments.mean + half_width])
        return np.asarray(np.where(np.isfinite(moments.mean), limits, np.nan))

    def statuses(self, bad: NDArray[np.bool_] | None = None, what: str = "") -> Statuses:
        """Return the status (C,) of each cell; invalid where rows (n,) are `bad`."""
        statuses = Statuses.ok((len(self),))
        statuses.flag(self.size == 0, "undefined", lambda c: f"no rows{in_group(self.names[c])}")
        if bad is not None and bad.any():
            wrong = np.bincount(self.codes, self.rows(bad.astype(float)), len(self)).astype(int)
            why = "{} invalid in {} of {} rows".format
            statuses.flag(wrong > 0, "invalid", lambda c: why(what, wrong[c], self.size[c]))
        return statuses

    @cached_property
    def names(self) -> list[str]:
        """The group of each cell by name, empty of everyone."""
        return [name for groups in self.attributes for name in groups.names * groups.splits]

    def too_few(
        self,
        rows: int,
        rare: Floats | None = None,
        least: int = 0,
        kind: str = "rows with the rarer label",
    ) -> Why:
        """Return a function that tells why a cell has too few rows, or too few of a kind.

        Parameters
        ----------
        rows : how many rows an interval needs.
        rare : (C,) how many rows of the kind there are, of which it needs `least`.
        """
        size = None if self.sample is None else self.sample.size

        def reason(c: int) -> str:
            if rare is not None and rare[c] < least:
                effective = "" if size is None else "effective "
                return f"{int(rare[c])} {effective}{kind}, an interval needs {least}"
            worth = "" if size is None else f" ({size[c]:.0f} effective)"
            return f"n={self.size[c]}{worth}, an interval needs {rows}"

        return reason

    def too_heavy(self, index: Floats) -> Why:
        """Return a function that tells why a mean has no interval, by its tail's index (C,)."""
        few = self.too_few(ERROR_ROWS)
        heavy = (self.size >= ERROR_ROWS) & (index >= MOST_HEAVY)
        return lambda c: FEW_MAKE_THE_MEAN.format(self.size[c]) if heavy[c] else few(c)
