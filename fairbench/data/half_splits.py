"""Halving the rows several times over, for how much an algorithm's estimates vary with its data."""

from __future__ import annotations

from dataclasses import dataclass

from fairbench.core.checks import check_minimum
from fairbench.data.dataset import Dataset
from fairbench.data.splits import Fold, KFold


@dataclass(frozen=True)
class HalfSplits:
    """`repeats` random halvings; each half is fitted and tested on the other.

    The two folds of repeat j give theta_j and theta_j^c of Barrainkua et al. (AISTATS 2024), from
    which ``fairbench compare runs=[A,B] rho=relative`` takes an algorithm's correlation of folds.
    """

    repeats: int = 5
    stratified: bool = True

    def __post_init__(self) -> None:
        """Refuse a number of halvings under one."""
        check_minimum("split.repeats", self.repeats, 1)

    def folds(self, dataset: Dataset, seed: int) -> list[Fold]:
        """Return two folds a halving; rows that share a cluster stay on one side."""
        return KFold(2, self.repeats, stratified=self.stratified).folds(dataset, seed)
