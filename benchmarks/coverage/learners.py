"""Learners for whole runs, from those that hardly depend on their rows to those that hang on each.

Every function fits one learner to all splits of one data set at once where that is faster.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray
from scipy import special
from scipy.spatial import cKDTree

from fairbench.core.arrays import Floats, Mask

Labels = NDArray[np.int64]
# Of features (N, D), labels (N,), rows trained on (S, N) and new people (M, D): scores (S, M).
Learner = Callable[[Floats, Labels, Mask, Floats, np.random.Generator], Floats]
_UNITS, _EPOCHS, _RATE = 8, 15, 2.0  # of the network
_STEPS = 6  # of Newton's method


def constant(
    features: Floats, label: Labels, trained: Mask, people: Floats, _: np.random.Generator
) -> Floats:
    """Score everybody by the share of positive labels."""
    share = trained @ label / trained.sum(axis=1)
    return np.repeat(share[:, None], len(people), axis=1)


def ridge(
    features: Floats, label: Labels, trained: Mask, people: Floats, _: np.random.Generator
) -> Floats:
    """Score by least squares with a small penalty."""
    rows, weight = _with_one(features), trained.astype(float)
    gram = np.einsum("sn,ni,nj->sij", weight, rows, rows, optimize=True) + np.eye(rows.shape[1])
    slope = np.linalg.solve(gram, ((weight * label) @ rows)[..., None])[..., 0]
    return np.asarray(slope @ _with_one(people).T)


def logistic(
    features: Floats, label: Labels, trained: Mask, people: Floats, _: np.random.Generator
) -> Floats:
    """Score by logistic regression with a small penalty."""
    rows, weight = _with_one(features), trained.astype(float)
    slope, penalty = np.zeros((len(trained), rows.shape[1])), 0.1
    for _step in range(_STEPS):
        chance = special.expit(slope @ rows.T)
        curvature = weight * chance * (1 - chance)
        hessian = np.einsum("sn,ni,nj->sij", curvature, rows, rows, optimize=True)
        gradient = (weight * (label - chance)) @ rows - penalty * slope
        hessian += penalty * np.eye(rows.shape[1])
        slope = slope + np.linalg.solve(hessian, gradient[..., None])[..., 0]
    return np.asarray(special.expit(slope @ _with_one(people).T))


def deep_tree(
    features: Floats, label: Labels, trained: Mask, people: Floats, draw: np.random.Generator
) -> Floats:
    """Score by a tree that errs on none of its training rows."""
    from sklearn.tree import DecisionTreeClassifier

    seeds = draw.integers(0, 2**31, len(trained))
    trees = [
        DecisionTreeClassifier(random_state=int(seed)).fit(features[rows], label[rows])
        for seed, rows in zip(seeds, trained, strict=True)
    ]
    return np.array([tree.predict(people) for tree in trees], float)


def nearest_neighbour(
    features: Floats, label: Labels, trained: Mask, people: Floats, _: np.random.Generator
) -> Floats:
    """Score by the label of the nearest training row."""
    trees = [(cKDTree(features[rows]), label[rows]) for rows in trained]
    return np.array([own[tree.query(people)[1]] for tree, own in trees], float)


def network(
    features: Floats, label: Labels, trained: Mask, people: Floats, draw: np.random.Generator
) -> Floats:
    """Score by a network of eight units after a few epochs from random weights."""
    weight = trained / trained.sum(axis=1, keepdims=True)
    shape = len(trained), features.shape[1], _UNITS
    into, shift = draw.standard_normal(shape), draw.standard_normal((shape[0], 1, _UNITS))
    out, bias = draw.standard_normal((shape[0], _UNITS, 1)) / 2, np.zeros((shape[0], 1, 1))
    for _epoch in range(_EPOCHS):
        hidden = np.tanh(features @ into + shift)
        error = (special.expit(hidden @ out + bias) - label[:, None]) * weight[..., None]
        back = (error @ out.transpose(0, 2, 1)) * (1 - hidden**2)
        out -= _RATE * hidden.transpose(0, 2, 1) @ error
        bias -= _RATE * error.sum(axis=1, keepdims=True)
        into -= _RATE * features.T @ back
        shift -= _RATE * back.sum(axis=1, keepdims=True)
    score = special.expit(np.tanh(people @ into + shift) @ out + bias)
    return np.asarray(score[..., 0])


def _with_one(features: Floats) -> Floats:
    return np.concatenate([features, np.ones((len(features), 1))], axis=1)


LEARNERS: Mapping[str, Learner] = MappingProxyType(
    {
        "constant": constant,
        "ridge": ridge,
        "logistic regression": logistic,
        "deep tree": deep_tree,
        "nearest neighbour": nearest_neighbour,
        "short network": network,
    }
)
