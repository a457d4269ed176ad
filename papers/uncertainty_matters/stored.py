"""The finished runs of the presets, by Table 12.1's names."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fairbench.comparison.half_runs import HALF_SPLITS, HalfRuns, VarianceRatios
from fairbench.comparison.run_predictions import RunPredictions, load_predictions
from fairbench.comparison.runs import Labels
from fairbench.components.papers.uncertainty_matters.algorithms import ALGORITHMS
from fairbench.reporting.papers.matching import finished_runs
from fairbench.results.catalogue import Catalogue

EXPERIMENTS = tuple(
    f"uncertainty_matters/german_{name}"
    for name in ("lr", "svm", "linear_svm", "ferm", "linear_ferm")
)
# The rates behind accuracy and equal opportunity for label 0, the good loan.
_RESTS_ON = ("accuracy", "true_negative_rate")


def stored_runs(conf: Path, results: Path) -> dict[str, RunPredictions]:
    """Return the finished cross-validations of the presets, by algorithm."""
    names = {_parts(words): name for name, words in ALGORITHMS.items()}
    found = {}
    for experiment in EXPERIMENTS:
        for choice, run, _ in finished_runs(experiment, conf, results):
            if choice["split"] != HALF_SPLITS:
                name = names[
                    f"learner={choice['learner']}", f"intervention={choice['intervention']}"
                ]
                found[name] = load_predictions(run)
    return found


def _parts(words: tuple[str, ...]) -> tuple[str, str]:
    learner, *_, intervention = words
    return learner, intervention


def variance_ratios(
    runs: Mapping[str, RunPredictions], conf: Path, results: Path
) -> dict[str, float]:
    """Return the variance over the SVM's, by algorithm, in the mean of both rates and groups."""
    ratios = VarianceRatios(HalfRuns(conf, Catalogue(results)), _RESTS_ON)
    return {name: float(np.nanmean(ratios.ratios_of_rates(run))) for name, run in runs.items()}


def joint_counts(first: RunPredictions, second: RunPredictions) -> NDArray[np.int64]:
    """Return the joint counts (R, G, 8) of two runs' pooled folds, a row a cross-validation."""
    labels = Labels.of(first, ())
    pairs = zip(first.repeats.values(), second.repeats.values(), strict=True)
    return np.stack([labels.joint(*folds).sum(axis=0) for folds in pairs])
