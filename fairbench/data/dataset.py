"""The Dataset contract: what every loader returns and everything else reads."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.core.errors import DataError, UserError, unknown_name
from fairbench.core.text import said
from fairbench.data.features import Features, Sequences


@dataclass(frozen=True)
class Datasheet:
    """A data set's documentation, next to its loader; ``docs/datasets.md`` is made of these.

    Attributes
    ----------
    title : what the data set is, with its authors and year.
    source : where it comes from, with a citation or a link.
    licence : under which terms it may be used, or that none are stated.
    paper_differences : what the papers did with it, and where this loader differs.
    criticism : what is known to be wrong with it, or with how it is used.
    family : the data sets that share their people or their source, such as ``german`` for German
        and South German credit; empty: the name of the loader's module.
    """

    title: str
    source: str
    licence: str
    paper_differences: str
    criticism: str
    family: str = ""


class Task(StrEnum):
    """What is predicted."""

    BINARY = "binary"
    MULTICLASS = "multiclass"
    REGRESSION = "regression"


@dataclass(frozen=True)
class Source:
    """A raw file of a data set.

    Attributes
    ----------
    path : place under a search folder, such as ``adult/adult.data``.
    sha256 : checksum of the uncompressed content; empty where none is recorded.
    urls : where it can be downloaded, tried in order.
    page : the page a person would look at.
    member : the file inside the zip archive that `urls` lead to, where they lead to one.
    size : bytes of the uncompressed content; nothing larger is unpacked. 0 where none is recorded.
    """

    path: str
    sha256: str
    urls: tuple[str, ...] = ()
    page: str = ""
    member: str = ""
    size: int = 0


@dataclass(frozen=True, eq=False)
class Dataset:
    """One data set, ready to split; validated when it is made, compared by identity.

    Attributes
    ----------
    features : (n, d) numeric, boolean or pandas categorical columns, never object or string; or
        sequences of n rows.
    target : (n,) 0 / 1 for binary tasks, 0 .. C - 1 for several classes, float for regression.
    sensitive : (n, a) categorical columns of human-readable labels.
    privileged : attribute -> label of the reference group.
    favourable : the label that is good for the person, where there is one.
    classes : of several classes, their C >= 3 names in the order of the codes of `target`.
    ordered : whether that order means something, such as never, rarely, daily.
    partition : the archive's own ``train`` / ``test`` marks.
    clusters : rows with one value must stay on one side of a split.
    weight : how many people of the population a row stands for (survey weights); no feature and
        no part of a fit, so not of the digest either.
    truth : simulated populations only: column ``probability``, or ``mean`` and ``sd``.
    redistributable : whether target and groups may be passed on with results; a loader says so.
    """

    name: str
    task: Task
    features: Features
    target: pd.Series
    sensitive: pd.DataFrame
    privileged: Mapping[str, str]
    target_name: str
    positive_label: str = ""
    favourable: int | None = None
    partition: pd.Series | None = None
    clusters: pd.Series | None = None
    weight: pd.Series | None = None
    truth: pd.DataFrame | None = None
    sources: tuple[Source, ...] = field(default=())
    redistributable: bool = False
    classes: tuple[str, ...] = ()
    ordered: bool = False

    def __post_init__(self) -> None:
        """Refuse what no later stage could mend."""
        if fault := next(_faults(self), ""):
            raise DataError(f"{self.name}: {fault}")

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.target)

    @property
    def feature_count(self) -> int:
        """How many columns features have before encoding, or channels the frames of sequences."""
        if isinstance(self.features, Sequences):
            return sum(part.channels for part in self.features.parts)
        return len(self.features.columns)

    @cached_property
    def digest(self) -> str:
        """A hash of the content: what was loaded, not by whom or from where."""
        total = hashlib.sha256()
        facts: list[Any] = [self.name, str(self.task), dict(self.privileged), self.favourable]
        if self.task is Task.MULTICLASS:
            facts += [list(self.classes), self.ordered]
        total.update(json.dumps(facts, sort_keys=True).encode())
        for part in ("features", "target", "sensitive", "partition", "clusters", "truth"):
            values = getattr(self, part)
            if isinstance(values, Sequences):
                values.update(total)
                continue
            frame = pd.DataFrame({part: values}) if isinstance(values, pd.Series) else values
            for name in () if frame is None else frame.columns:
                total.update(f"|{part}|{name}|".encode())
                _update(total, frame[name])
        return total.hexdigest()[:20]

    @cached_property
    def weight_digest(self) -> str:
        """A hash of the weights, which what was fitted does not depend on, but metrics may."""
        total = hashlib.sha256()
        if self.weight is not None:
            _update(total, self.weight)
        return total.hexdigest()[:20]

    def take(self, rows: NDArray[np.intp]) -> Dataset:
        """Return the data set restricted to `rows` (positions, in that order)."""
        of_rows: dict[str, Any] = {
            name: None if (column := getattr(self, name)) is None else column.iloc[rows]
            for name in ("target", "sensitive", "partition", "clusters", "weight", "truth")
        }
        return replace(self, features=self.features.take(rows), **of_rows)

    def groups(self, attributes: str | Sequence[str]) -> pd.Series:
        """Return each row's group as a categorical whose first category is the reference.

        Parameters
        ----------
        attributes : one sensitive attribute, or several for their combinations
            (``"Female x Black"``).

        Raises
        ------
        UserError : an attribute that the data set does not have.
        """
        names = (attributes,) if isinstance(attributes, str) else tuple(attributes)
        if names not in self._groups:
            self._groups[names] = group_labels(self.name, self.sensitive, self.privileged, names)
        return self._groups[names]

    @cached_property
    def _groups(self) -> dict[tuple[str, ...], pd.Series]:
        """The groups that were asked for, which every run of a sweep asks for again."""
        return {}


def group_labels(
    dataset: str,
    sensitive: pd.DataFrame,
    privileged: Mapping[str, str],
    attributes: str | Sequence[str],
) -> pd.Series:
    """Return each row's group by one attribute or by several: see :meth:`Dataset.groups`."""
    names = [attributes] if isinstance(attributes, str) else list(attributes)
    for name in names:
        if name not in sensitive.columns:
            raise unknown_name(f"sensitive attribute of {dataset}", name, sensitive.columns)
    columns = [reference_first(sensitive[name], privileged[name]) for name in names]
    return combine(columns).rename(" x ".join(names))


def _update(total: Any, column: pd.Series) -> None:
    """Add a column to a hash: its type, its categories, its values."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        total.update(json.dumps([str(label) for label in column.cat.categories]).encode())
        values = column.cat.codes.to_numpy(np.int32)
    elif isinstance(column.dtype, np.dtype) and column.dtype.kind in "biuf":
        values = column.to_numpy()
    else:
        values = pd.util.hash_pandas_object(column, index=False).to_numpy()
    total.update(values.dtype.str.encode())
    total.update(np.ascontiguousarray(values).data)


def reference_first(labels: pd.Series, reference: str) -> pd.Series:
    """Return `labels` as a categorical whose category 0 is `reference`."""
    column = labels.astype("category")
    others = [label for label in column.cat.categories if label != reference]
    return column.cat.set_categories([reference, *others])


def combine(columns: Sequence[pd.Series]) -> pd.Series:
    """Return the combinations of categorical columns that occur, as one categorical column."""
    combined = columns[0]
    for column in columns[1:]:
        width = len(column.cat.categories)
        codes = combined.cat.codes.to_numpy(np.int64) * width + column.cat.codes.to_numpy(np.int64)
        labels = [f"{a} x {b}" for a in combined.cat.categories for b in column.cat.categories]
        present = np.bincount(codes, minlength=1) > 0
        present[0] = True  # the reference
        values = pd.Categorical.from_codes(
            (np.cumsum(present) - 1)[codes], [labels[code] for code in np.flatnonzero(present)]
        )
        combined = pd.Series(values, index=combined.index)
    return combined


def _faults(data: Dataset) -> Iterator[str]:
    """Yield what is wrong; what comes after a fault may rest on there being none."""
    for part in ("features", "sensitive", "partition", "clusters", "weight", "truth"):
        column = getattr(data, part)
        if column is not None and len(column) != len(data.target):
            yield f"{part} has {len(column)} rows, the target {len(data.target)}"
    if not isinstance(data.features, Sequences):  # which were checked when they were made
        for name, values in data.features.items():
            yield from _faults_of_feature(f"column '{name}'", values)
    yield from _faults_of_target(data, f"target '{data.target.name}'")
    for name in data.sensitive.columns:
        labels = data.sensitive[name]
        attribute = f"sensitive attribute '{name}'"
        if not isinstance(labels.dtype, pd.CategoricalDtype):
            yield f"{attribute} is not categorical"
        if labels.isna().any():
            yield f"{attribute} has missing labels; give them a label of their own"
        privileged = data.privileged.get(name)
        if privileged not in labels.cat.categories:
            listed = ", ".join(map(str, labels.cat.categories))
            yield f"privileged label {privileged!r} of '{name}' is not one of {listed}"
    if data.weight is not None:
        weight = f"weight '{data.weight.name}'"
        values = pd.to_numeric(data.weight, errors="coerce").to_numpy(float)
        for row in np.flatnonzero(~np.isfinite(values) | (values < 0)):
            value = data.weight.iloc[row]
            yield f"{weight} is {value} in row {row}; a weight is a number of 0 or more"
        if not values.any():
            yield f"{weight} is 0 in every row"


def _faults_of_feature(column: str, values: pd.Series) -> Iterator[str]:
    categorical = isinstance(values.dtype, pd.CategoricalDtype)
    if not (categorical or pd.api.types.is_numeric_dtype(values.dtype)):
        first = values.iloc[0] if len(values) else None
        yield said("data", "no_feature", column=column, dtype=values.dtype, first=first)
    if len(values) and values.isna().all():
        yield f"{column} has no value in any of {len(values)} rows"
    if pd.api.types.is_float_dtype(values.dtype):
        numbers = values.to_numpy(np.float64, na_value=np.nan)
        yield from _too_large(column, numbers, "leave the cell empty")


def _too_large(what: str, values: NDArray[np.float64], remedy: str) -> Iterator[str]:
    """Yield what single precision cannot hold, in which most learners compute."""
    for row in np.flatnonzero(np.abs(values) > np.finfo(np.float32).max):
        if np.isinf(values[row]):
            yield f"{what} is infinite in row {row}"
        yield said("data", "too_large", what=what, value=values[row], row=row, remedy=remedy)


def _faults_of_target(data: Dataset, target: str) -> Iterator[str]:
    """Yield what is wrong with the target, and names of classes that it has not."""
    values, names = data.target.to_numpy(), data.classes
    if values.dtype == object or not np.isfinite(values.astype(float)).all():
        yield f"{target} has missing or non-numeric values"
    values = values.astype(float)
    yield from _too_large(target, values, "leave the row out")
    if data.task is Task.BINARY:
        for row in np.flatnonzero(~np.isin(values, (0, 1))):
            yield f"{target} is {values[row]:g} in row {row}; a binary target is 0 or 1"
    if data.task is not Task.MULTICLASS:
        if names or data.ordered:
            yield f"classes are named, and the task is {data.task}"
        return
    if len(names) < 3 or len(set(names)) < len(names) or not all(names):
        yield said("data", "no_classes", names=", ".join(map(repr, names)) or "not named")
    for row in np.flatnonzero(~np.isin(values, range(len(names)))):
        codes = f"the codes of {len(names)} classes are 0 .. {len(names) - 1}"
        yield f"{target} is {values[row]:g} in row {row}; {codes}"
    if data.favourable is not None and data.favourable not in range(len(names)):
        yield f"favourable is {data.favourable}, the code of no class"


def check_combinable(sensitive: pd.DataFrame, source: str) -> None:
    """Refuse attributes and labels with an x of their own, as combinations are joined by one.

    ``a x b`` with ``c`` would be named as ``a`` with ``b x c``, and an attribute ``sex x race``
    that of the combination of ``sex`` and ``race``. A single attribute is combined with none.

    Parameters
    ----------
    sensitive : (n, a) categorical labels. source : where they are from, for the error.
    """
    if len(sensitive.columns) < 2:
        return
    for column, labels in sensitive.items():
        called = f"column '{column}'"
        of_column = [(f"label '{label}' of {called}", label) for label in labels.cat.categories]
        for what, name in ((called, column), *of_column):
            # At an end too: 'a x' with 'b' is 'a x x b', and so is 'a' with 'x b'. 'x' is not.
            if name != "x" and " x " in f" {name} ":
                joined = "names" if what == called else "labels"
                raise UserError(said("data", "x_in_name", source=source, what=what, joined=joined))
