"""Missing labels, filled in by many random draws so that intervals show how little is known."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.inference.few_labels.bayesian_calibration import (
    CalibrationPosterior,
    PosteriorFamily,
)
from fairbench.inference.few_labels.calibration import BETA, sigmoid
from fairbench.inference.few_labels.importance import Proposal
from fairbench.inference.few_labels.pool import plug_in_draws
from fairbench.inference.few_labels.table import PartlyLabelled
from fairbench.inference.posterior import posterior_draws

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

DRAWS, FURTHER_DRAWS = 2048, 512
# The cost of calibration grows with labels x groups; with more labels, those of the same group and
# decision say nearly as much. Simulations, of which there are hundreds, change over sooner.
MOST_CALIBRATED, MOST_BY_GROUP, MOST_SIMULATED = 1000, 10_000, 2000
_LARGE_POOL = 50_000


class Completion(Protocol):
    """What is known about all rows, and how further labels may change it.

    Attributes
    ----------
    counts : (T, G, 4) draws of TN, FP, FN, TP of all rows; T is 1 where they are known.
    labels : how many rows have a label.
    remaining : how many have none; None where all have one, and more means more rows.
    """

    @property
    def counts(self) -> Floats: ...  # noqa: D102

    @property
    def labels(self) -> int: ...  # noqa: D102

    @property
    def remaining(self) -> int | None: ...  # noqa: D102

    def further(self, labels: int, generator: np.random.Generator) -> Completion:
        """Draw the labels of `labels` more rows, chosen at random, and learn them."""


@dataclass(frozen=True, eq=False)
class Complete:
    """All rows have labels; more of them means more rows of the same population."""

    known: Floats

    @property
    def counts(self) -> Floats:
        """Return the counts (1, G, 4)."""
        return self.known[None]

    @property
    def labels(self) -> int:
        """Return the number of rows."""
        return int(self.known.sum())

    @property
    def remaining(self) -> None:
        """Return that there are no others."""
        return None

    def further(self, labels: int, generator: np.random.Generator) -> Complete:
        """Draw rows from a population that the known ones may come from."""
        size = self.known.sum(axis=-1)
        rows = generator.multinomial(labels, size / size.sum())
        cells = posterior_draws(self.known, 1, generator)[0]
        return Complete(self.known + generator.multinomial(rows, cells))


@dataclass(frozen=True, eq=False)
class Stratified:
    """Many labels: the share of label 1 in every group and decision has a Beta posterior.

    Its prior weighs two labels, divided as those of everyone with that decision: many groups of
    few labels would else look further apart than they are.

    Attributes
    ----------
    known : (G, 4) counts of labelled rows. size : (G, 2) all rows by group and decision.
    """

    known: Floats
    size: Floats
    counts: Floats

    @classmethod
    def of(
        cls, known: Floats, size: Floats, generator: np.random.Generator, draws: int = DRAWS
    ) -> Stratified:
        """Draw the shares, and the labels of the rows that have none."""
        share = _share(known, generator, (draws, *size.shape))
        unknown = _unknown(known, size)
        positives = generator.binomial(unknown, share)
        counts = np.concatenate([unknown - positives, positives], axis=-1) + known
        return cls(known, size, counts)

    @property
    def labels(self) -> int:
        """Return the number of labelled rows."""
        return int(self.known.sum())

    @property
    def remaining(self) -> int:
        """Return the number of the others."""
        return int(self.size.sum()) - self.labels

    def further(self, labels: int, generator: np.random.Generator) -> Stratified:
        """Draw which groups and decisions the rows fall in, and their labels."""
        unknown = _unknown(self.known, self.size)
        share = _share(self.known, generator, self.size.shape)
        return _learn(self.known, self.size, generator.binomial(unknown, share), labels, generator)


@dataclass(frozen=True, eq=False)
class Calibrated:
    """Few labels: hierarchical calibration of the scores, with the pool's own noise.

    Attributes
    ----------
    rows : those with a label.
    """

    family: PosteriorFamily
    rows: Rows
    posterior: CalibrationPosterior

    @classmethod
    def of(cls, table: PartlyLabelled, generator: np.random.Generator) -> Calibrated:
        """Compute the posterior of the labels there are, none included."""
        if len(table.score) > _LARGE_POOL:
            # Of a pool's scores a quadrature is made; it is a hundred times faster over fewer.
            table = replace(table, score=np.round(table.score, 4))
        family, rows = PosteriorFamily.of(table, generator, draws=DRAWS), table.labelled
        return cls(family, rows, family.posterior(rows, generator))

    @property
    def counts(self) -> Floats:
        """Return the posterior draws."""
        return self.posterior.counts

    @property
    def labels(self) -> int:
        """Return the number of labelled rows."""
        return len(self.rows)

    @property
    def remaining(self) -> int:
        """Return the number of the others."""
        return len(self.family.table.score) - len(self.rows)

    @cached_property
    def _unlabelled(self) -> Rows:
        return np.flatnonzero(np.isnan(self.family.table.label))

    @cached_property
    def _proposal(self) -> Proposal:
        generator = np.random.default_rng(0)
        return Proposal.of(BETA, self.family.table.n_groups, FURTHER_DRAWS, generator)

    def further(self, labels: int, generator: np.random.Generator) -> Completion:
        """Draw a calibration map, then the labels that it gives the rows."""
        draw = int(generator.integers(len(self.counts)))
        groups = self.family.table.n_groups
        if (self.labels + labels) * groups <= MOST_SIMULATED:
            return self._calibrated(draw, labels, generator)
        known = self.family.table.counts(self.rows).astype(np.float64)
        size = self.family.table.sizes().astype(np.float64)
        positives = np.rint(self.counts[draw, :, 2:] - known[:, 2:]).astype(np.int64)
        return _learn(known, size, positives, labels, generator)

    def _calibrated(self, draw: int, labels: int, generator: np.random.Generator) -> Calibrated:
        rows = generator.choice(self._unlabelled, labels, replace=False, shuffle=False)
        coefficients = BETA.flat_coefficients(self.posterior.parameters.theta[draw])
        label = self.family.table.label.copy()
        label[rows] = generator.random(labels) < sigmoid(coefficients @ self.family.design(rows))
        table, known = replace(self.family.table, label=label), np.append(self.rows, rows)
        family = replace(self.family, table=table, proposal=self._proposal)
        return Calibrated(family, known, family.posterior(known, generator, chains=False))


@dataclass(frozen=True, eq=False)
class PlugIn:
    """No labels: scores are taken for true probabilities, and calibrated once there are labels."""

    counts: Floats
    calibrated: Calibrated

    @classmethod
    def of(cls, table: PartlyLabelled, generator: np.random.Generator) -> PlugIn:
        """Draw labels from the scores."""
        draws = plug_in_draws(table, generator, draws=DRAWS)
        return cls(draws, Calibrated.of(table, generator))

    @property
    def labels(self) -> int:
        """Return that there are none."""
        return 0

    @property
    def remaining(self) -> int:
        """Return the number of rows."""
        return self.calibrated.remaining

    def further(self, labels: int, generator: np.random.Generator) -> Completion:
        """Draw labels from the prior of calibration maps, not from the scores."""
        return self.calibrated.further(labels, generator)


def complete(
    table: PartlyLabelled, generator: np.random.Generator, *, has_score: bool
) -> Completion:
    """Return what is known of all rows, by the way that suits the number of labels."""
    labels, known = len(table.labelled), table.counts().astype(np.float64)
    if labels == len(table.score):
        return Complete(known)
    if labels == 0:
        return PlugIn.of(table, generator)
    few = labels <= MOST_CALIBRATED and labels * table.n_groups <= MOST_BY_GROUP
    if has_score and few:
        return Calibrated.of(table, generator)
    return Stratified.of(known, table.sizes().astype(np.float64), generator)


def _unknown(known: Floats, size: Floats) -> Rows:
    """Return how many rows of each group and decision have no label, (G, 2)."""
    return np.rint(size - known[:, :2] - known[:, 2:]).astype(np.int64)


def _share(known: Floats, generator: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """Draw the shares of label 1 by group and decision, (..., G, 2)."""
    negative, positive = known[:, :2] + 0.5, known[:, 2:] + 0.5
    centre = positive.sum(axis=0) / (positive + negative).sum(axis=0)
    return generator.beta(known[:, 2:] + 2 * centre, known[:, :2] + 2 * (1 - centre), shape)


def _learn(
    known: Floats, size: Floats, positives: Rows, labels: int, generator: np.random.Generator
) -> Stratified:
    """Learn `labels` more labels of a pool whose unlabelled rows have `positives`, (G, 2)."""
    unknown = _unknown(known, size)
    rows = generator.multivariate_hypergeometric(unknown.ravel(), labels, method="marginals")
    rows = rows.reshape(unknown.shape)
    found = generator.hypergeometric(positives, unknown - positives, rows)
    known = known + np.concatenate([rows - found, found], axis=-1)
    return Stratified.of(known, size, generator, FURTHER_DRAWS)


def union(cells: pd.Series, labels: pd.Series) -> Floats:
    """Return which cells make up which group, (A, G) of 0 and 1."""
    shape = (len(labels.cat.categories), len(cells.cat.categories))
    pairs = labels.cat.codes.to_numpy(np.int64) * shape[1] + cells.cat.codes.to_numpy(np.int64)
    present = np.bincount(pairs, minlength=shape[0] * shape[1]).reshape(shape)
    return (present > 0).astype(np.float64)


def population_draws(
    counts: Floats, union: Floats, draws: int, generator: np.random.Generator
) -> Floats:
    """Draw cell probabilities (T, A, 4) of the population that rows with these counts come from.

    Parameters
    ----------
    counts : (T, G, 4) draws of counts, each followed by one draw of its own posterior; or
        (1, G, 4) known ones, followed by `draws`.
    """
    merged = np.einsum("ag,tgc->tac", union, counts)
    if len(merged) == 1:
        return posterior_draws(merged[0], draws, generator)
    drawn: Floats = posterior_draws(merged, 1, generator)[0]
    return drawn
