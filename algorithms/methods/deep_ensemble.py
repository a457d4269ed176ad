"""Averages several models' distributions: variance is theirs, plus that between their means."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairbench.components.algorithms.fitters import bag
from fairbench.components.algorithms.fitters.drawn_members import DrawnMembers
from fairbench.components.algorithms.methods.baseline import class_predictions, label_sd
from fairbench.components.algorithms.methods.ensemble import decomposed
from fairbench.core.errors import check_choice, check_minimum
from fairbench.data.dataset import Task
from fairbench.experiments.contracts import ANY_TASK, Capabilities, Method, RawOutputs

# What draws networks from a fitted one -> what a learner then needs, and where none has it.
_SOURCES = {
    "posterior": ("a posterior over weights", ""),
    "dropout": ("dropout", "use learner=mlp learner.dropout=0.1"),
    "ensemble": ("members of its own", "use learner=tabm"),
}


@dataclass(frozen=True)
class DeepEnsemble(Method):
    """Models that differ by seed, each giving a distribution (Lakshminarayanan et al. 2017)."""

    members: int = 5

    capabilities = Capabilities(tasks=ANY_TASK, reads_score=True)

    def __post_init__(self) -> None:
        """Refuse an ensemble without disagreement."""
        check_minimum("method.members", self.members, 2)

    @property
    def fitter(self) -> bag.DeepEnsemble:
        """Members that differ by seed, or by bootstrap where the seed changes nothing."""
        return bag.DeepEnsemble(self.members)

    def read(self, raw: RawOutputs, task: Task, rng: np.random.Generator) -> RawOutputs:
        """Return the mean distribution, its two variances and its standard deviation."""
        return total_variance(raw, task)


@dataclass(frozen=True)
class DrawnNetworks(Method):
    """Networks drawn from one fitted network: by its posterior over weights, or by dropout.

    The first is Bayes by Backprop (Blundell et al. 2015, Kuzucu et al. 2024), the second leaves
    dropout on when predicting (Gal & Ghahramani 2016). A network that is an ensemble by itself
    (TabM, Gorishniy et al. 2025) has members to draw from: `members` of them, or all it has.
    """

    members: int = 10
    drawn_by: str = "posterior"

    def __post_init__(self) -> None:
        """Refuse an unknown source, and members without disagreement."""
        check_choice("method.drawn_by", self.drawn_by, _SOURCES)
        check_minimum("method.members", self.members, 2)

    @property
    def capabilities(self) -> Capabilities:
        """Learners whose estimators have what networks are drawn by."""
        needs, advice = _SOURCES[self.drawn_by]
        return Capabilities(tasks=ANY_TASK, reads_score=True, needs=needs, advice=advice)

    @property
    def fitter(self) -> DrawnMembers:
        """One fit, and the networks drawn from it."""
        return DrawnMembers(self.members)

    def read(self, raw: RawOutputs, task: Task, rng: np.random.Generator) -> RawOutputs:
        """Return the mean distribution, its two variances and its standard deviation."""
        return total_variance(raw, task)


def total_variance(raw: RawOutputs, task: Task) -> RawOutputs:
    """Return the mean of the members' distributions, its variance by the law of total variance.

    Aleatoric is the mean of the members' variances, epistemic the variance of their means, of
    labels summed over the classes. The uncertainty is the standard deviation of the target, of
    three or more classes what `label_sd` has in its place.
    """
    if task is Task.MULTICLASS:
        score = raw["score"].mean(axis=1)
        return {**class_predictions(score), "uncertainty": label_sd(score), **decomposed(raw)}
    if task is Task.BINARY:
        mean = raw["score"].mean(axis=1)
        sd, variances = np.sqrt(mean * (1 - mean)), decomposed(raw)
        labels = {"prediction": mean > 0.5, "score": mean}
        return {**labels, "sd": sd, "uncertainty": sd, **variances}
    mean, epistemic = raw["mean"].mean(axis=1), raw["mean"].var(axis=1)
    aleatoric = (raw["sd"] ** 2).mean(axis=1)
    sd = np.sqrt(aleatoric + epistemic)
    spread = {"sd": sd, "uncertainty": sd, "aleatoric": aleatoric, "epistemic": epistemic}
    return {"prediction": mean, "mean": mean, **spread}
