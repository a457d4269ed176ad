"""Family of two runs compared: two learners, fitted again in every one of the same hold-outs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from benchmarks.coverage.populations import thinned
from benchmarks.coverage.runs import (
    CHUNK,
    POSITIVE,
    SHARE,
    SPLITS,
    People,
    RunPopulation,
    fits,
    tested_counts,
    tested_rows,
)
from benchmarks.coverage.simulate import LEVEL, Construction, Family, Interval, Sample
from fairbench.core.arrays import Floats
from fairbench.inference.comparing.ranking import inflation
from fairbench.inference.posterior import independent_draws
from fairbench.inference.repeats import REPEATS, mean_table_draws, no_narrower
from fairbench.metrics.group import equal_opportunity
from fairbench.metrics.rates import accuracy, total

DRAWS = 500
NAMES = ("difference in accuracy", "difference in the gap in true positive rates")


@dataclass(frozen=True)
class TwoLearners:
    """Two learners on the same splits, each of half of the features.

    `noise` is the sd of what is added to the second one's features: the larger, the worse it is.
    """

    people: RunPopulation
    noise: float

    @property
    def name(self) -> str:
        """What tables call it."""
        worse = f"the second worse by noise {self.noise:g}" if self.noise else "equal learners"
        return f"{worse}, {self.people.name}"


def _learners(short: bool) -> Sequence[TwoLearners]:
    result = [
        TwoLearners(RunPopulation(rows, groups, 0.3, shift, REPEATS), noise)
        for rows, groups, shift, noise in product((500, 2000), (2, 4), (0.0, 0.3), (0.0, 0.5, 1.0))
    ]
    return thinned(result, 4) if short else result


def _draw_two(population: TwoLearners, replications: int, draw: np.random.Generator) -> Sample:
    """Draw the confusion counts (R, S, 2, G, 4) of both learners, and how they truly differ."""
    counts, shares = [], []
    for _ in range(0, replications, CHUNK):
        people = People.drawn(population.people, CHUNK, draw)
        tested = tested_rows(people.label.shape, REPEATS, draw)
        first, second = np.split(people.features, 2, axis=-1)
        second += population.noise * draw.standard_normal(second.shape, np.float32)
        both = [
            fits(replace(people, features=features), tested, population.people, noise)
            for features, noise in ((first, 0.0), (second, population.noise))
        ]
        groups = population.people.groups
        counts.append(
            np.stack([tested_counts(people, result, tested, groups) for result, _ in both], axis=2)
        )
        shares.append(np.stack([share.mean(axis=1) for _, share in both], axis=1))
    of_fits = np.concatenate(shares)[:replications]  # (R, 2, G, 2) selected by label
    wrong = of_fits.mean(axis=2) @ [1 - POSITIVE, -POSITIVE] + POSITIVE
    gap = np.ptp(of_fits[..., 1], axis=-1)
    truth = dict(zip(NAMES, (wrong[:, 1] - wrong[:, 0], gap[:, 1] - gap[:, 0]), strict=True))
    return Sample(np.concatenate(counts)[:replications], truth)


def _averaged(counts: Floats, draw: np.random.Generator) -> Mapping[str, Interval]:
    """Return the intervals of the default comparison."""
    return _two_intervals(lambda own: _mean_delta(own, draw), counts)


def _typical(counts: Floats, draw: np.random.Generator) -> Mapping[str, Interval]:
    """Return the medians over repeats of the intervals of their posteriors."""

    def ends(own: Floats) -> Floats:
        first, second = independent_draws(own[:, 0], own[:, 1], DRAWS, draw)
        return np.median(_quantiles(_delta(first, second)), axis=1)

    return _two_intervals(ends, counts)


def _two_intervals(ends: Callable[[Floats], Floats], counts: Floats) -> Mapping[str, Interval]:
    """Return the intervals of every run, of a function of its counts to (2, 2) ends."""
    result = np.array([ends(own) for own in counts])  # (R, 2 ends, 2 objectives)
    return {name: (result[:, 0, i], result[:, 1, i]) for i, name in enumerate(NAMES)}


def _mean_delta(own: Floats, draw: np.random.Generator) -> Floats:
    shares = own / own.sum(axis=(-1, -2), keepdims=True)
    tables = mean_table_draws(shares, SHARE, draws=DRAWS, generator=draw)
    counted = own.mean(axis=0) / inflation(SPLITS, SHARE)
    least = _delta(*independent_draws(counted[0], counted[1], DRAWS, draw))
    return _quantiles(no_narrower(_delta(tables[:, 0], tables[:, 1]), least))


def _delta(first: Floats, second: Floats) -> Floats:
    """Return differences of accuracy and of the gap of true positive rates, more being better."""
    values = [
        np.stack([accuracy(total(each))[..., 0], -equal_opportunity(each)], axis=-1)
        for each in (first, second)
    ]
    delta = values[0] - values[1]
    return np.asarray(delta[~np.isnan(delta).reshape(len(delta), -1).any(axis=1)])


def _quantiles(delta: Floats) -> Floats:
    return np.nanquantile(delta, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)


FAMILIES = (
    Family(
        "comparisons",
        "Two runs compared",
        f"Two learners are fitted on the same {SPLITS} hold-outs. The intervals are for the "
        "difference between their accuracies and between their gaps in the true positive rate. "
        "The true value is that of these fitted models on new people. *the second worse by noise "
        "0.5* means that noise with a standard deviation of 0.5 is added to the second learner's "
        "features. *medians* are the medians over the hold-outs of the intervals of each "
        "hold-out's posterior.",
        _learners,
        _draw_two,
        (Construction("ours", _averaged, 300), Construction("medians", _typical, 100)),
        300,
    ),
)
