"""The numbers of chapter 2: Table 2.1, and those that its text prints.

``fairbench paper black_box table=text run=true`` sets ours beside each.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fairbench.components.papers.black_box.estimation import full_ece
from fairbench.components.papers.black_box.figures import NAMES, group_pairs, regions
from fairbench.components.papers.black_box.pools import pool
from fairbench.core.seeds import rng
from fairbench.data.class_scores import MulticlassScores
from fairbench.inference.beta import uniform
from fairbench.inference.reliability import accuracy_posterior, ranks
from fairbench.reporting.papers.running import Effort

MOST_ACCURATE = ("keyboard", "sunflower", "motorcycle")
CUT = "digits cut"
_DRAWS = 100_000
# (metric, setting) of a printed number -> ours, and the sd of one draw where draws are averaged.
Found = dict[tuple[str, str], tuple[float, float]]


def numbers(rows: pd.DataFrame, results: Path, effort: Effort) -> Iterator[dict[str, Any]]:
    """Yield our numbers for printed ones.

    Parameters
    ----------
    rows : the printed numbers; the index is the place of each.
    """
    draws = effort.choose(_DRAWS, 10_000, 200)
    for name, title in NAMES.items():
        printed = rows[rows["dataset"] == title]
        if printed.empty:
            continue
        scores = pool(name)
        found = sizes(scores)
        if name == "cifar100":
            found |= {**self_assessment(scores), **classes(scores, draws), **differences(scores)}
        for row in printed.itertuples():
            ours, sd = found[str(row.metric), str(row.setting)]
            yield {"row": row.Index, "mean": ours, "sd": sd, "repeats": draws}
            if row.metric == "ece":
                digits = 10 ** len(str(row.value).partition(".")[2])
                cut = np.floor(ours * digits) / digits
                yield {"row": row.Index, "mean": cut, "sd": sd, "repeats": draws, "cause": CUT}


def sizes(scores: MulticlassScores) -> Found:
    """Return how many rows and classes there are."""
    rows = float(len(scores))
    return {
        ("size_thousand", ""): (rows / 1000, 0.0),
        ("test_rows", ""): (rows, 0.0),
        ("classes", ""): (float(len(scores.classes)), 0.0),
    }


def self_assessment(scores: MulticlassScores) -> Found:
    """Return the accuracy, what the scores say of it, the ECE, and the share of high scores."""
    return {
        ("accuracy", ""): (float(scores.correct.mean()), 0.0),
        ("mean_score", ""): (float(scores.confidence.mean()), 0.0),
        ("ece", ""): (full_ece(scores), 0.0),
        ("percent_of_scores_above", "score=0.9"): (100 * (scores.confidence > 0.9).mean(), 0.0),
    }


def classes(scores: MulticlassScores, draws: int) -> Found:
    """Return what is known of the classes at both ends from all labels, under Beta(1, 1)."""
    n = len(scores.classes)
    accuracy = accuracy_posterior(scores.correct, scores.prediction, uniform(n))
    places = [scores.classes.index(name) for name in MOST_ACCURATE]
    lower, upper = (end[places] for end in accuracy.interval())
    drawn = accuracy.draws(draws, rng(0, "black box", "classes"))
    most = ranks(drawn, largest=True).first
    least = ranks(drawn, largest=False).first[scores.classes.index("lizard")]
    return {
        ("least_accuracy", "most accurate classes"): (float(lower.min()), 0.0),
        ("greatest_accuracy", "most accurate classes"): (float(upper.max()), 0.0),
        ("probability_least_accurate", "lizard"): _share(least),
        **{
            ("probability_most_accurate", name): _share(most[place])
            for name, place in zip(MOST_ACCURATE, places, strict=True)
        },
    }


def differences(scores: MulticlassScores) -> Found:
    """Return the posteriors of two pairs of groups, and P(the first is less accurate)."""
    found: Found = {}
    for (first, second), accuracy in group_pairs(scores).items():
        pair = f"{first} and {second}"
        right, wrong = accuracy.successes, accuracy.failures
        less, _, _ = regions(accuracy)
        found[("probability_less_accurate", pair)] = _share(less)
        share = (right - 1) / (right + wrong - 2)
        found[("percent_less_accurate", pair)] = (100 * float(share[1] - share[0]), 0.0)
        for name, won, lost in zip((first, second), right, wrong, strict=True):
            found[("posterior_alpha", name)] = (float(won), 0.0)
            found[("posterior_beta", name)] = (float(lost), 0.0)
            found[("labels", name)] = (float(won + lost - 2), 0.0)
    return found


def _share(probability: float | np.floating[Any]) -> tuple[float, float]:
    """Return a probability, and the sd of a draw that has it."""
    return float(probability), float(np.sqrt(probability * (1 - probability)))
