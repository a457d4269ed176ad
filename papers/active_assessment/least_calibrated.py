"""Which predicted class is calibrated worst: Table 3.6, the ECE of a class summed over its bins.

Two readings. As the text has it: the sum over ten bins of the share of the class's rows times
|accuracy - confidence|, over the whole pool, its posterior mean E|theta - s|. As the published code
has it: a tenth of the rows is held out; prior means in the middle of the bins; a bin's share is
that of the labels so far; the estimate is the distance of the posterior mean; rows at random are of
a class at random; numbers are read a hundred labels late.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairbench.components.papers.active_assessment.curves import Question, curves
from fairbench.components.papers.active_assessment.measures import mean_reciprocal_rank
from fairbench.components.papers.active_assessment.methods import CODE, STRENGTH, Method
from fairbench.components.papers.active_assessment.pools import (
    BinnedPool,
    binned_by_class,
    released,
)
from fairbench.core.arrays import Floats
from fairbench.inference.active.arms import BinnedArms
from fairbench.inference.active.rewards import LeastCalibrated
from fairbench.reporting.papers.running import Effort

EVERY = 100
HELD_OUT = 0.1
SPLITS = {"cifar100": 1, "svhn": 2}  # draws of the tenth that the code holds out
_ALL = 10**9
_BLANK = 1e-4  # what the code counts of a bin before any label, as right and as wrong
_SKIPPED = 5
PUBLISHED = {
    Method("midpoints", "random_arm"): "informative_prior",
    Method("midpoints", "thompson"): "informative_prior_thompson",
}
DEFINED = {
    Method("scores", "random"): "informative_prior",
    Method("scores", "thompson"): "informative_prior_thompson",
}


def pool(dataset: str) -> BinnedPool:
    """Return all rows by predicted class."""
    return binned_by_class(released(dataset), f"{dataset} by class in bins")


def published_pool(dataset: str, split: int = 0) -> BinnedPool:
    """Return nine tenths of the rows by predicted class."""
    name = f"{dataset} less a tenth" + f" {split}" * (split > 0)
    return binned_by_class(released(dataset), name, held_out=HELD_OUT)


def question(m: int) -> Question:
    """Return the question of the m least calibrated classes, as the text defines them."""
    return Question(f"least calibrated {m}", _defined, {"mrr": _rank(m)}, _ALL, m, EVERY)


def published_question(m: int, strength: float = STRENGTH) -> Question:
    """Return the question as the published code asks it, with a prior of that many labels."""

    def reward(pool: BinnedPool, arms: BinnedArms) -> LeastCalibrated:
        return LeastCalibrated(pool.bins.score, _seen_share(arms, strength))

    def rank(pool: BinnedPool, arms: BinnedArms) -> Floats:
        whole = pool.diagram(strength, midpoints=True, labelled=True)
        truth = np.abs(whole.accuracy.mean - whole.score)
        error = np.abs(arms.posterior.mean - pool.bins.score)
        seen = (_seen_share(arms, strength) * error).sum(axis=-1)
        return mean_reciprocal_rank(-seen, _largest((whole.weight * truth).sum(axis=-1), m))

    return Question(f"published calibration {m}", reward, {"mrr": rank}, _ALL, m, EVERY)


def _defined(pool: BinnedPool, arms: BinnedArms) -> LeastCalibrated:
    return LeastCalibrated(pool.bins.score, pool.bins.weight)


def _rank(m: int) -> Any:
    def measure(pool: BinnedPool, arms: BinnedArms) -> Floats:
        worst = _largest(class_errors(pool), m)
        return mean_reciprocal_rank(-_defined(pool, arms).moments(arms)[0], worst)

    return measure


def class_errors(pool: BinnedPool) -> Floats:
    """Return every class's ECE of all labels, (A,)."""
    arms, bins = len(pool.sizes), pool.bins
    cell = pool.outcome // 2 + pool.arm * bins.weight.shape[1]
    right = np.bincount(cell, weights=pool.correct, minlength=bins.weight.size)
    rows = np.maximum(np.bincount(cell, minlength=bins.weight.size), 1)
    gap: Floats = np.abs((right / rows).reshape(arms, -1) - bins.score)
    return np.asarray((bins.weight * gap).sum(axis=-1))


def _seen_share(arms: BinnedArms, strength: float) -> Floats:
    """Return the share of the labels so far in each bin of each class, (R, A, B)."""
    seen = arms.posterior.strength - strength + 2 * _BLANK
    share: Floats = seen / seen.sum(axis=-1, keepdims=True)
    return share


def _largest(values: Floats, m: int) -> NDArray[np.int64]:
    return np.argsort(-values, kind="stable")[:m]


def numbers(dataset: str, m: int, folder: Path, effort: Effort) -> Iterator[dict[str, Any]]:
    """Yield the percent of the labels from which on the m classes are identified.

    The code holds out one tenth of the rows, drawn once: its numbers are means over such draws.
    """
    replications = effort.choose(100, 2, 2)
    percent = 100 / len(released(dataset))
    for method, printed in DEFINED.items():
        asked = question(m).within(effort)
        curve = curves(pool(dataset), asked, method, folder, replications=replications)
        labels, error = curve.reached("mrr")
        yield {
            "method": printed,
            "mean": percent * labels,
            "sd": percent * error * np.sqrt(replications),
            "repeats": replications,
        }
    for method, printed in PUBLISHED.items():
        found, several = [], method.strategy != "thompson"
        splits = effort.choose(SPLITS[dataset] if several else 1, 1, 1)
        for split in range(splits):
            rows, asked = published_pool(dataset, split), published_question(m).within(effort)
            curve = curves(rows, asked, method, folder, replications=replications)
            labels, error = curve.reached("mrr", skipped=_SKIPPED)
            found.append(percent * min(labels + EVERY, len(rows.arm)))
        spread = float(np.std(found, ddof=1)) if splits > 1 else percent * error
        yield {
            "method": printed,
            "cause": CODE,
            "mean": float(np.mean(found)),
            "sd": spread,
            "repeats": splits,
            "error": spread * np.sqrt(1 + 1 / splits),  # the printed number is of one split
        }
