"""Tables 1 and 7: the likelihoods of the methods for labels, and Table 7's calibration error.

The text's likelihood (appendix D.1) clips nothing, and its ensembles predict what most of their
members predict. Its calibration error is that of a prediction being right, in bins of the predicted
probability. What Table 7 prints under that name is Table 1's likelihood.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from fairbench.components.papers.fairlyuncertain.abstention import EXPERIMENT, MEAN, our_number
from fairbench.components.papers.fairlyuncertain.people import job, repeats_of, tests
from fairbench.core.arrays import Floats
from fairbench.evaluation.predictions import Labelled
from fairbench.metrics.probability import log_loss_rows, nll_of_sd
from fairbench.reporting.papers.running import Effort

BINS = 10  # of the calibration error, of which the text says no number
CLIPPED, LIKELIHOOD = "clipped", "the likelihood"
OWN = {"acs_employment": "acs_employment_fu"}
_MAJORITY = "method.reading=majority"


def numbers(rows: pd.DataFrame, results: Path, effort: Effort) -> pd.DataFrame:
    """Return the text's numbers for published rows of likelihood, and those under a cause."""
    repeats = repeats_of(effort)
    found: list[dict[str, Any]] = []
    for (dataset, method), part in rows.groupby(["dataset", "method"], sort=False):
        own = [f"dataset={OWN.get(str(dataset), str(dataset))}"]
        words = [*own, f"method={method}", *([_MAJORITY] if method == "ensemble" else [])]
        read = list(tests(job(EXPERIMENT, results, words, repeats)))
        scored = read
        if method != "binomial_nll":  # of a bag's votes the probability is the members' mean
            scored = list(tests(job(EXPERIMENT, results, [*own, "method=ensemble"], repeats)))
        for row, metric in part["metric"].items():
            answers = dict(_answers(str(metric), read, scored))
            if method == "ensemble" and metric == "nll":  # beside the majority's label
                answers[MEAN] = [float(unclipped_nll(*_outputs(test)).mean()) for test in scored]
            for cause, values in answers.items():
                found.append({"row": row, **our_number(pd.Series(values), cause), "label": cause})
    return pd.DataFrame(found)


def _answers(
    metric: str, read: list[Labelled], scored: list[Labelled]
) -> Iterator[tuple[str, list[float]]]:
    """Yield each cause, none for the text's own way, with the value of every split."""
    clipped = [float(nll_of_sd(*_outputs(test)).mean()) for test in read]
    if metric == "nll":
        yield "", [float(unclipped_nll(*_outputs(test)).mean()) for test in read]
        yield CLIPPED, clipped
        return
    pairs = zip(read, scored, strict=True)
    yield "", [error_of_labels(*_outputs(a)[:2], b.column("score")) for a, b in pairs]
    yield LIKELIHOOD, clipped


def _outputs(test: Labelled) -> tuple[Floats, Floats, Floats]:
    return test.target, test.column("prediction"), test.column("uncertainty")


def probability_of_sd(prediction: ArrayLike, sd: ArrayLike) -> Floats:
    """Return the probability that has an sd, on its prediction's side of 1/2 (appendix D)."""
    root = np.sqrt(1 - 4 * np.clip(np.asarray(sd, float), 0, 0.5) ** 2)
    side = np.where(np.asarray(prediction, float) > 0.5, 1.0, -1.0)
    probability: Floats = (1 + side * root) / 2
    return probability


def unclipped_nll(target: ArrayLike, prediction: ArrayLike, sd: ArrayLike) -> Floats:
    """Return each row's likelihood as the text has it; of an sd of 0 as finite as doubles allow."""
    return log_loss_rows(target, probability_of_sd(prediction, sd))


def error_of_labels(
    target: ArrayLike, prediction: ArrayLike, score: ArrayLike, bins: int = BINS
) -> float:
    """Return the text's expected calibration error (D.1): how far `score` is from accuracy.

    Of each of some bins of equal width of the score it is the distance of the share of right
    labels from the mean score, on average over people.
    """
    right = np.asarray(target) == np.asarray(prediction)
    p = np.asarray(score, float)
    place = np.minimum((p * bins).astype(np.intp), bins - 1)
    off = np.bincount(place, right, bins) - np.bincount(place, p, bins)
    return float(np.abs(off).sum() / len(p))
