"""How far estimates of the ECE are off by the number of labels, over choices of the labels.

``python -m papers.black_box.estimation [cifar100 svhn] [runs=200]`` prints the errors.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairbench.components.papers import run_main
from fairbench.components.papers.black_box.pools import pool, replications
from fairbench.components.papers.options import number_of_runs
from fairbench.core.options import option
from fairbench.data.class_scores import MulticlassScores
from fairbench.inference.reliability import reliability_diagram
from fairbench.metrics.probability import reliability

BINS = 10
NUMBERS = (20, 50, 100, 200, 500, 1000, 2000, 5000)
ESTIMATES = ("posterior mean of the ECE", "ECE of the posterior mean", "frequentist")


@dataclass(frozen=True)
class Options:
    """Which scores, and over how many choices of the labels."""

    scores: tuple[str, ...] = option(
        ("cifar100", "svhn"), "Scores of several classes, files in conf/scores.", argument="NAME"
    )
    runs: int = number_of_runs(200)


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


def print_errors(name: str, runs: int) -> None:
    """Print the errors in percent of the ECE of all labels, and the biases."""
    scores = pool(name)
    truth = full_ece(scores)
    print(f"{name}: {len(scores):,} rows, accuracy {scores.correct.mean():.4f}, ECE {truth:.4f}")
    print("mean absolute error of the ECE in percent of it (bias), by number of labels")
    print("labels  " + "  ".join(f"{estimate:>25}" for estimate in ESTIMATES))
    for errors in ece_errors(scores, name, NUMBERS, runs):
        cells = (
            f"{100 * error / truth:15.1f} ({100 * bias / truth:+7.1f})"
            for error, bias in zip(errors.error, errors.bias, strict=True)
        )
        print(f"{errors.labels:6d}  " + "  ".join(cells))


def main(options: Options) -> None:
    """Print the errors of the scores that are named."""
    for name in options.scores:
        print_errors(name, options.runs)


if __name__ == "__main__":
    run_main(main, Options)
