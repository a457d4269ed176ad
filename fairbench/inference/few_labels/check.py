"""Whether scores are calibrated alike everywhere: labels that are foreseen, and those that come.

Labels of one group are foreseen from the calibration that all other groups' labels show. What comes
out is compared with what was foreseen, in the number of positives and in how they rise with the
score: a posterior-predictive check (Gelman, Meng & Stern 1996) of labels that were left out of the
posterior (Vehtari & Lampinen 2002). It finds scores that are wrong by much, such as inverted ones;
that it finds nothing is no proof that there is nothing.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from fairbench.core.arrays import Floats
from fairbench.inference.few_labels.calibration import BETA, sigmoid
from fairbench.inference.few_labels.importance import Proposal, kronecker
from fairbench.inference.few_labels.sampler import sample

Codes = NDArray[np.int64]

FEWEST_DRAWS = 2048
# What all groups have in common may be anything; what counts as alike differs by little between
# them (log slopes, intercept).
ALIKE = replace(BETA, mean_sd=(1.0, 1.0, 3.0), spread_sd=(0.05, 0.05, 0.25))
_OTHERS = 500  # labels of other groups, which show well enough how they are calibrated
_AT_ONCE = 1 << 14  # rows that are looked through for them
_GRID = 100  # scores are rounded to so many values
_ONE, _OTHER = 0, 1


def calibration_p_values(
    score: Floats, label: Codes, group: Codes, n_groups: int, generator: np.random.Generator
) -> Floats:
    """Return a p-value for every group: how often labels as strange as its own are predicted.

    Parameters
    ----------
    score, label, group : (L,) scores in [0, 1], labels 0 or 1, and groups 0 .. G - 1 of the
        labelled rows.
    n_groups : G, the number of groups.
    generator : draws.

    Returns
    -------
    (G,) p-values of each group by itself, of which the smallest of many is small by chance. NaN of
    groups without a label.
    """
    draws = max(FEWEST_DRAWS, 1 << int(np.ceil(np.log2(100 * n_groups))))
    proposal = Proposal.of(ALIKE, 2, draws, generator, kronecker)
    order = generator.permutation(len(score))
    values = np.full(n_groups, np.nan)
    cell = 2 * (group * (_GRID + 1) + np.round(score * _GRID).astype(np.intp)) + label
    counts = np.bincount(cell, minlength=2 * n_groups * (_GRID + 1)).reshape(n_groups, -1, 2)
    for g in np.flatnonzero(counts.any(axis=(1, 2))):
        other_rows = _first_of_others(order, group, int(g))
        coefficients = _predict_calibration(
            proposal, score[other_rows], label[other_rows].astype(np.float64), generator
        )
        values[g] = _p_value(counts[g], coefficients, generator)
    return values


def _first_of_others(order: Codes, group: Codes, group_code: int) -> Codes:
    """Return the first rows in an order that are in other groups, `_OTHERS` at most."""
    positions: list[Codes] = []
    for start in range(0, len(order), _AT_ONCE):
        some = order[start : start + _AT_ONCE]
        positions.append(some[group[some] != group_code])
        if sum(map(len, positions)) >= _OTHERS:
            break
    return np.concatenate([*positions, order[:0]])[:_OTHERS]


def _predict_calibration(
    proposal: Proposal, score: Floats, label: Floats, generator: np.random.Generator
) -> Floats:
    """Return draws (T, D) of the calibration of a group that none of these labels is in."""
    model = proposal.model
    design = model.design(score, np.full(len(score), _OTHER), 2)
    theta = sample(proposal, design, label, generator, chains=False).theta
    return model.coefficients(theta.reshape(len(theta), 2, -1))[:, _ONE]


def _p_value(counts: Codes, coefficients: Floats, generator: np.random.Generator) -> float:
    """Return the p-value of a group's labels 0 and 1 at each rounded score, (S, 2)."""
    n_labels = counts.sum(axis=1)
    present = np.flatnonzero(n_labels)
    score, sizes = present / _GRID, n_labels[present]
    features = ALIKE.features(score)
    probability = sigmoid(coefficients @ features)
    drawn = generator.binomial(sizes, probability) - probability.mean(axis=0) * sizes
    excess = counts[present, 1] - probability.mean(axis=0) * sizes
    # The positives, and how they rise with the score.
    directions = np.stack([np.ones_like(score), features[:-1].sum(axis=0)], axis=1)
    sums = np.vstack([excess, drawn]) @ directions
    inverse = np.linalg.pinv(np.cov(sums[1:].T))
    distance = np.einsum("ti,ij,tj->t", sums, inverse, sums)
    as_strange = distance[1:] >= distance[0] * (1 - 1e-9)
    return float((1 + as_strange.sum()) / (1 + len(as_strange)))
