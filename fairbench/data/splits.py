"""Splits: random training, validation and test rows, the same for every method."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fairbench.core.arrays import Rows, rng
from fairbench.core.errors import UserError, check_minimum, check_share
from fairbench.core.text import said
from fairbench.data.dataset import Dataset, Task


@dataclass(frozen=True, eq=False)
class Fold:
    """One split of the rows (positions in the data set, sorted); compared by identity."""

    repeat: int
    fold: int
    train: Rows
    validation: Rows
    test: Rows

    @property
    def rows(self) -> int:
        """The number of rows of all parts together."""
        return len(self.train) + len(self.validation) + len(self.test)


_Parts = tuple[Rows, Rows]  # the training rows and the test rows of a fold


class Split:
    """A way to draw folds, which holds out `validation` of the training rows; hashable."""

    repeats: int
    validation: float

    def __post_init__(self) -> None:
        """Refuse a number of repeats under one, and a share that leaves no training rows."""
        check_minimum("split.repeats", self.repeats, 1)
        check_share("split.validation", self.validation, zero=True)

    def folds(self, dataset: Dataset, seed: int) -> list[Fold]:
        """Return the folds of all repeats; rows that share a cluster stay on one side."""
        repeats = (self._folds_of(dataset, seed, repeat) for repeat in range(self.repeats))
        return [fold for folds in repeats for fold in folds]

    def _folds_of(self, dataset: Dataset, seed: int, repeat: int) -> Iterator[Fold]:
        """Yield the folds of a repeat, some of whose training rows are held out for validation."""
        generator = rng(seed, "split", dataset.name, repeat)
        for number, (train, test) in enumerate(self._parts(dataset, generator)):
            units = _units(dataset)[train]
            order = generator.permutation(np.unique(units))
            held_out = np.isin(units, order[: round(self.validation * len(order))])
            fold = Fold(repeat, number, train[~held_out], train[held_out], test)
            if not (len(fold.train) and len(fold.test)):
                sizes = {"train": len(fold.train), "test": len(fold.test), "rows": len(dataset)}
                raise UserError(said("data", "empty_part", dataset=dataset, fold=fold, **sizes))
            yield fold

    def _parts(self, dataset: Dataset, generator: np.random.Generator) -> Iterator[_Parts]:
        """Yield the training rows and the test rows of each fold of a repeat."""
        raise NotImplementedError


@dataclass(frozen=True)
class RepeatedHoldout(Split):
    """`repeats` independent random splits, `train` of the rows in the training part."""

    repeats: int = 10
    train: float = 0.8
    validation: float = 0.0

    def __post_init__(self) -> None:
        """Refuse shares that leave a part empty."""
        check_share("split.train", self.train)
        super().__post_init__()
        tuning, test = self.validation * self.train, 1 - self.train
        most = np.floor(100 * test / self.train + 1e-7) / 100
        if tuning > test + 1e-9:
            shares = {"tuning": tuning, "test": test, "most": most}
            raise UserError(said("data", "too_much_validation", split=self, **shares))

    def _parts(self, dataset: Dataset, generator: np.random.Generator) -> Iterator[_Parts]:
        units = _units(dataset)
        order = generator.permutation(units.max() + 1)
        test = np.isin(units, order[round(self.train * len(order)) :])
        yield np.flatnonzero(~test), np.flatnonzero(test)


@dataclass(frozen=True)
class SampledHoldout(RepeatedHoldout):
    """Random splits of a sample of at most `rows` rows, for what would cost too much on all.

    The sample depends on the data set and the seed alone, and is the same for every repeat.
    """

    rows: int = 10_000

    def __post_init__(self) -> None:
        """Refuse a sample that cannot be divided, and shares that leave a part empty."""
        super().__post_init__()
        check_minimum("split.rows", self.rows, 2)

    def folds(self, dataset: Dataset, seed: int) -> list[Fold]:
        """Return `repeats` folds of the sample; where all rows are in it, those of all rows."""
        if len(dataset) <= self.rows:
            return super().folds(dataset, seed)
        generator = rng(seed, "sample", dataset.name)
        chosen = np.sort(generator.choice(len(dataset), self.rows, replace=False))
        return [
            Fold(of.repeat, of.fold, chosen[of.train], chosen[of.validation], chosen[of.test])
            for of in super().folds(dataset.take(chosen), seed)
        ]


@dataclass(frozen=True)
class KFold(Split):
    """`repeats` times a partition of the rows into `n_folds` test parts."""

    n_folds: int = 10
    repeats: int = 1
    stratified: bool = True
    validation: float = 0.0

    def __post_init__(self) -> None:
        """Refuse fewer than two folds."""
        check_minimum("split.n_folds", self.n_folds, 2)
        super().__post_init__()

    def _parts(self, dataset: Dataset, generator: np.random.Generator) -> Iterator[_Parts]:
        if len(dataset) < self.n_folds:
            raise UserError(said("data", "fewer_rows", split=self, data=dataset, rows=len(dataset)))
        units = _units(dataset)
        labels = dataset.task is not Task.REGRESSION
        order = generator.permutation(units.max() + 1)
        if self.stratified and labels and dataset.clusters is None:
            # A stable sort of a random order by label deals every label out evenly.
            order = order[np.argsort(dataset.target.to_numpy()[order], kind="stable")]
        fold_of_unit = np.empty(len(order), np.intp)
        fold_of_unit[order] = np.arange(len(order)) % self.n_folds
        for fold in range(self.n_folds):
            test = fold_of_unit[units] == fold
            yield np.flatnonzero(~test), np.flatnonzero(test)


@dataclass(frozen=True)
class Predefined(Split):
    """The archive's own training and test rows; repeats differ in the fits' seeds alone."""

    repeats: int = 1
    validation: float = 0.0

    def _parts(self, dataset: Dataset, generator: np.random.Generator) -> Iterator[_Parts]:
        if dataset.partition is None:
            raise UserError(said("data", "no_test_part", dataset=dataset))
        marks = dataset.partition.to_numpy()
        train, test = np.flatnonzero(marks == "train"), np.flatnonzero(marks == "test")
        if dataset.clusters is not None:
            units = _units(dataset)
            crossing = np.intersect1d(units[train], units[test])
            if len(crossing):
                mark = dataset.clusters.iloc[int(np.flatnonzero(units == crossing[0])[0])]
                about = {"count": len(crossing), "mark": mark}
                raise UserError(said("data", "crossing", dataset=dataset, **about))
        yield train, test


@dataclass(frozen=True)
class SameTest(RepeatedHoldout):
    """One test part, and `repeats` draws of validation rows from the others, for tuning.

    No row is tested in one repeat and used to choose in another, as it is with repeated hold-outs.
    The first repeat is that of :class:`RepeatedHoldout`. The validation parts of all repeats are
    apart from each other as far as there are rows.
    """

    repeats: int = 5
    validation: float = 0.2

    def folds(self, dataset: Dataset, seed: int) -> list[Fold]:
        """Return `repeats` folds with the same test rows."""
        (first,) = self._folds_of(dataset, seed, 0)
        units = _units(dataset)
        not_tested = np.sort(np.concatenate([first.train, first.validation]))
        held_out = np.unique(units[first.validation])
        trained_on = np.setdiff1d(units[not_tested], held_out)
        order = np.concatenate([held_out, rng(seed, "tune", dataset.name).permutation(trained_on)])
        size = len(held_out)
        folds = [first]
        for repeat in range(1, self.repeats):
            validates = np.isin(
                units[not_tested], np.take(order, np.arange(size) + repeat * size, mode="wrap")
            )
            folds.append(Fold(repeat, 0, not_tested[~validates], not_tested[validates], first.test))
        return folds


def _units(dataset: Dataset) -> Rows:
    """Return, per row, the number of the unit that must not be divided."""
    if dataset.clusters is None:
        return np.arange(len(dataset))
    return np.unique(dataset.clusters.to_numpy(), return_inverse=True)[1].astype(np.intp)


def half_splits(repeats: int = 5, stratified: bool = True) -> KFold:
    """Return `repeats` random halvings; each half is fitted and tested on the other.

    The two folds of repeat j give theta_j and theta_j^c of Barrainkua et al. (AISTATS 2024), from
    which ``fairbench compare runs=[A,B] rho=relative`` takes an algorithm's correlation of folds.
    """
    return KFold(2, repeats, stratified)
