"""How far estimates of the ECE are off by the number of labels, over choices of the labels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairbench.inference.confusion_matrix import MulticlassScores
from fairbench.inference.reliability import reliability_diagram
from fairbench.metrics.probability import reliability
from papers.black_box.pools import replications

BINS = 10
ESTIMATES = ("posterior mean of the ECE", "ECE of the posterior mean", "frequentist")


@dataclass(frozen=True, eq=False)
class EceErrors:
    """Mean absolute error of each of `ESTIMATES` at a number of labels, over the runs."""

    labels: int
    error: NDArray[np.float64]
    bias: NDArray[np.float64]


def full_ece(scores: MulticlassScores) -> float:
    """Return the ECE of all labels."""
    return reliability(scores.correct, scores.confidence, bins=BINS).expected_calibration_error()


def ece_errors(
    scores: MulticlassScores, name: str, numbers: tuple[int, ...], runs: int
) -> Iterator[EceErrors]:
    """Yield the errors at each number of labels."""
    truth = full_ece(scores)
    for labels in numbers:
        estimates = [_estimates(each) for each in replications(scores, name, labels, runs)]
        off = np.array(estimates) - truth
        yield EceErrors(labels, np.abs(off).mean(axis=0), off.mean(axis=0))


def _estimates(scores: MulticlassScores) -> tuple[float, ...]:
    diagram = reliability_diagram(scores.confidence, scores.correct, bins=BINS)
    naive = (diagram.weight * np.abs(diagram.accuracy.mean - diagram.score)).sum()
    rows = scores.labelled
    plain = reliability(scores.correct[rows], scores.confidence[rows], bins=BINS)
    mean = diagram.expected_calibration_error()[0]
    return float(mean), float(naive), plain.expected_calibration_error()
