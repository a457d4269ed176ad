"""A bag of models, read by their mean and disagreement or by their votes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr

from fairbench.components.algorithms.fitters.bag import Bag
from fairbench.components.algorithms.methods.baseline import class_predictions
from fairbench.core.errors import check_choice, check_minimum
from fairbench.data.dataset import Task
from fairbench.experiments.contracts import (
    ANY_TASK,
    BINARY,
    MULTICLASS,
    Capabilities,
    Method,
    RawOutputs,
)
from fairbench.metrics.uncertainty import entropy_decomposition, variance_decomposition

_READINGS = ("mean", "majority", "sign_test", "disagreement")


@dataclass(frozen=True)
class Ensemble(Method):
    """A bag of `members` models; all readings of one size share its fits.

    ``mean``: the mean of the members, and their population standard deviation as uncertainty.
    ``majority``: the majority's label, with that same standard deviation.
    ``sign_test``: the majority's label, and the two-sided binomial p-value of the votes at 1/2
    (Black, Leino, Fredrikson 2022). ``disagreement``: the majority's label, and the share of pairs
    of members that disagree (Cooper et al. 2024).

    Of several classes, the standard deviation is the root of half the sum of the classes'
    variances, the majority the class of most votes, and the sign test that of the two classes with
    most votes, as its authors have it. Of two classes all are what they are of labels.
    """

    members: int = 10
    reading: str = "mean"

    def __post_init__(self) -> None:
        """Refuse an unknown reading, an empty bag, and a bag without pairs."""
        check_choice("method.reading", self.reading, _READINGS)
        check_minimum("method.members", self.members, 2 if self.reading == "disagreement" else 1)

    @property
    def capabilities(self) -> Capabilities:
        """Only labels are voted on."""
        return Capabilities(tasks=ANY_TASK if self.reading == "mean" else BINARY | MULTICLASS)

    @property
    def fitter(self) -> Bag:
        """One bag serves all readings."""
        return Bag(self.members)

    def read(self, raw: RawOutputs, task: Task, rng: np.random.Generator) -> RawOutputs:
        """Return label or mean with the uncertainty of the reading."""
        if task is Task.MULTICLASS:
            return self._read_classes(raw)
        if self.reading == "mean":
            return _mean(raw)
        members = raw["score"] if "score" in raw else raw["prediction"]
        ones, k = (members > 0.5).sum(axis=1), members.shape[1]
        if self.reading == "majority":
            uncertainty = members.std(axis=1)
        elif self.reading == "sign_test":
            uncertainty = _p_values(k)[ones]
        else:
            uncertainty = _disagreement(ones, k)
        # A tie is 0, as a mode's smallest value is.
        return {"prediction": 2 * ones > k, "uncertainty": uncertainty, **decomposed(raw)}

    def _read_classes(self, raw: RawOutputs) -> RawOutputs:
        """Return class and uncertainty, from the members' probabilities (n, M, C)."""
        members = raw["score"]
        spread = np.sqrt(members.var(axis=1).sum(axis=1) / 2)
        if self.reading == "mean":
            score = members.mean(axis=1)
            return {**class_predictions(score), "uncertainty": spread, **decomposed(raw)}
        votes = class_votes(members)
        k, most = members.shape[1], np.sort(votes, axis=1)[:, -2:]
        if self.reading == "majority":
            uncertainty = spread
        elif self.reading == "sign_test":
            uncertainty = np.minimum(1, 2 * bdtr(most[:, 0], most.sum(axis=1), 0.5))
        else:
            uncertainty = (k * k - (votes**2).sum(axis=1)) / (k * (k - 1))
        # Of a tie the first class, as a mode's smallest value is.
        return {"prediction": votes.argmax(axis=1), "uncertainty": uncertainty, **decomposed(raw)}


def class_votes(members: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return how many of the members (n, M, C) find each class likeliest, (n, C)."""
    winner, classes = members.argmax(axis=2), members.shape[2]
    return np.stack([(winner == k).sum(axis=1) for k in range(classes)], axis=1)


def _mean(raw: RawOutputs) -> RawOutputs:
    """Return mean and disagreement of the members; of their labels where they have no score."""
    name = next(each for each in ("score", "prediction", "mean") if each in raw)
    mean, disagreement = raw[name].mean(axis=1), raw[name].std(axis=1)
    if name == "prediction":
        return {"prediction": mean > 0.5, "uncertainty": disagreement}
    if name == "score":
        spread = {"uncertainty": disagreement, **decomposed(raw)}
        return {"prediction": mean > 0.5, "score": mean, **spread}
    spread = {"uncertainty": disagreement, "epistemic": disagreement**2}
    return {"prediction": mean, "mean": mean, **spread}


def _p_values(k: int) -> NDArray[np.float64]:
    """Return the p-value of each number of votes among k members, of which there are k + 1."""
    fewer = np.minimum(np.arange(k + 1), k - np.arange(k + 1))
    p_values: NDArray[np.float64] = np.minimum(1, 2 * bdtr(fewer, k, 0.5))
    return p_values


def _disagreement(ones: NDArray[np.int64], k: int) -> NDArray[np.float64]:
    """Return 2 k0 k1 / (k (k - 1))."""
    disagreement: NDArray[np.float64] = 2 * ones * (k - ones) / (k * (k - 1))
    return disagreement


def decomposed(raw: RawOutputs) -> RawOutputs:
    """Return aleatoric and epistemic variance of the members' probabilities, if there are any.

    Labels claim no probability, so their disagreement cannot be told from noise in the label.
    """
    if "score" not in raw:
        return {}
    members = np.moveaxis(raw["score"], 0, 1)
    found = variance_decomposition(members)._asdict()
    if members.ndim > 2:  # of several classes the entropy's parts, too
        parts = entropy_decomposition(members)._asdict()
        found |= {f"entropy_{name}": values for name, values in parts.items()}
    return found
