"""Missing labels, filled in by many random draws so that intervals show how little is known."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.core.seeds import rng
from fairbench.inference.few_labels.bayesian_calibration import (
    CalibrationPosterior,
    PosteriorFamily,
)
from fairbench.inference.few_labels.calibration import BETA, Calibration
from fairbench.inference.few_labels.pool import plug_in_draws
from fairbench.inference.few_labels.table import PartlyLabelled
from fairbench.inference.posterior import posterior_draws

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

DRAWS = 2048
# The cost of calibration grows with labels x groups; with more labels, those of the same group and
# decision say nearly as much.
MOST_CALIBRATED, MOST_BY_GROUP = 1000, 10_000
_LARGE_POOL = 50_000


class Completion(Protocol):
    """What is known about all rows.

    Attributes
    ----------
    counts : (T, G, 4) draws of TN, FP, FN, TP of all rows; T is 1 where they are known.
    """

    @property
    def counts(self) -> Floats: ...  # noqa: D102


@dataclass(frozen=True, eq=False)
class Complete:
    """All rows have labels."""

    known: Floats

    @property
    def counts(self) -> Floats:
        """Return the counts (1, G, 4)."""
        return self.known[None]


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
    def of(
        cls, table: PartlyLabelled, generator: np.random.Generator, model: Calibration = BETA
    ) -> Calibrated:
        """Compute the posterior of the labels there are, none included."""
        if len(table.score) > _LARGE_POOL:
            # Of a pool's scores a quadrature is made; it is a hundred times faster over fewer.
            table = replace(table, score=np.round(table.score, 4))
        family, rows = (
            PosteriorFamily.of(table, generator, model=model, draws=DRAWS),
            table.labelled,
        )
        return cls(family, rows, family.posterior(rows, generator))

    @property
    def counts(self) -> Floats:
        """Return the posterior draws."""
        return self.posterior.counts

    def with_slopes(self, factors: Floats, seed: int) -> Floats:
        """Return the draws if every group's slopes were so many times (G,) what they seem."""
        model, theta = self.family.proposal.model, self.posterior.theta
        coefficients = model.coefficients(theta)
        coefficients[..., :-1] *= factors[:, None]
        flat = coefficients.reshape(len(theta), -1)
        return self.family.counts(self.rows, flat, rng(seed, "other slopes"))


@dataclass(frozen=True, eq=False)
class PlugIn:
    """No labels: scores are taken for true probabilities."""

    counts: Floats

    @classmethod
    def of(cls, table: PartlyLabelled, generator: np.random.Generator) -> PlugIn:
        """Draw labels from the scores."""
        return cls(plug_in_draws(table, generator, draws=DRAWS))


def complete(
    table: PartlyLabelled,
    generator: np.random.Generator,
    *,
    has_score: bool,
    model: Calibration = BETA,
) -> Completion:
    """Return what is known of all rows, by the way that suits the number of labels.

    Parameters
    ----------
    model : of calibration, where there are few labels; the papers' by default.
    """
    labels, known = len(table.labelled), table.counts().astype(np.float64)
    if labels == len(table.score):
        return Complete(known)
    if labels == 0:
        return PlugIn.of(table, generator)
    few = labels <= MOST_CALIBRATED and labels * table.n_groups <= MOST_BY_GROUP
    if has_score and few:
        return Calibrated.of(table, generator, model)
    return Stratified.of(known, table.sizes().astype(np.float64), generator)


def _unknown(known: Floats, size: Floats) -> Rows:
    """Return how many rows of each group and decision have no label, (G, 2)."""
    return np.rint(size - known[:, :2] - known[:, 2:]).astype(np.int64)


def _share(known: Floats, generator: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """Draw the shares of label 1 by group and decision, (..., G, 2)."""
    negative, positive = known[:, :2] + 0.5, known[:, 2:] + 0.5
    centre = positive.sum(axis=0) / (positive + negative).sum(axis=0)
    return generator.beta(known[:, 2:] + 2 * centre, known[:, :2] + 2 * (1 - centre), shape)


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
