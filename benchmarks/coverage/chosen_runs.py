"""The family of the fairest of many runs: whole pipelines, fitted again in every hold-out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from benchmarks.coverage.runs import (
    POSITIVE,
    SHARE,
    SPLITS,
    People,
    RunPopulation,
    fits,
    moved,
    tested_rows,
)
from benchmarks.coverage.simulate import Construction, Family, Interval, Sample
from fairbench.comparison.choice import Choice, Judged, choose_among
from fairbench.comparison.run_predictions import Shared, SharedRows
from fairbench.comparison.settings import Bound, minimised_metric
from fairbench.core.arrays import Floats, Mask
from fairbench.core.errors import UserError
from fairbench.inference.repeats import REPEATS

METRIC, NAMES = (
    minimised_metric("statistical_parity"),
    ("gap of the chosen run", "error rate of the chosen run"),
)


@dataclass(frozen=True)
class ManyRuns:
    """Runs of a learner on the same hold-out repeats, each with features of its own.

    Attributes
    ----------
    correlation : of the noise in the features of any two runs.
    bounded : whether runs are chosen among those whose error is at most what it truly is.
    """

    people: RunPopulation
    count: int
    correlation: float
    bounded: bool

    @property
    def name(self) -> str:
        """What tables call it."""
        limit = ", among the accurate" if self.bounded else ""
        features = f"features of correlation {self.correlation:g}"
        return f"{self.count} runs, {features}, {self.people.name}{limit}"

    @property
    def slow(self) -> bool:
        """Whether fewer replications are enough."""
        return self.count > 10

    def drawn(self, draw: np.random.Generator) -> tuple[SharedRows, Floats]:
        """Draw one data set: what all runs predict, and what they select of new people, (k, 2, 2).

        The last axes of the second are groups and labels.
        """
        people = People.drawn(self.people, 1, draw)
        tested = tested_rows(people.label.shape, REPEATS, draw)
        signal = moved(people.label, people.group, self.people.shift)[..., None]
        shared = np.sqrt(self.correlation) * (people.features - signal) + signal
        result = []
        for _ in range(self.count):
            own = draw.standard_normal(shared.shape, np.float32)
            features = (shared + np.sqrt(1 - self.correlation) * own).astype(np.float32)
            result.append(fits(replace(people, features=features), tested, self.people))
        predictions = np.stack([each for each, _ in result], axis=-1)[0]
        shares = np.stack([each.mean(axis=1)[0] for _, each in result])
        return _rows(people, tested[0], predictions), shares


def _rows(people: People, tested: Mask, predictions: Mask) -> SharedRows:
    """Return the rows that are tested, of predictions (S, N, k)."""
    repeat, row = np.nonzero(tested)
    return SharedRows(
        repeat,
        np.zeros_like(repeat),
        row,
        people.label[0, row],
        people.group[0, row],
        predictions[repeat, row].astype(np.int64),
        ("a", "b"),
        SHARE,
    )


def _populations(short: bool) -> Sequence[ManyRuns]:
    if short:
        return [ManyRuns(RunPopulation(1000, 2, 0.3, 0.3, REPEATS), 10, 0.99, bounded=True)]
    return [
        ManyRuns(RunPopulation(1000, 2, 0.3, shift, REPEATS), count, correlation, bounded)
        for count, correlation, shift, bounded in product(
            (10, 50), (0.0, 0.99), (0.0, 0.3), (False, True)
        )
    ]


def _draw(population: ManyRuns, replications: int, draw: np.random.Generator) -> Sample:
    """Draw data sets, choose on each, and say what is true of the chosen run's fits."""
    data, shares = zip(*(population.drawn(draw) for _ in range(replications)), strict=True)
    selected = np.array(shares)  # (R, k, groups, labels)
    errors = (selected @ [1 - POSITIVE, -POSITIVE] + POSITIVE).mean(axis=-1)
    gaps, error = np.ptp(selected @ [1 - POSITIVE, POSITIVE], axis=-1), float(errors.mean())
    bounds = (Bound.read(f"error_rate<={error:.9f}"),) if population.bounded else ()
    choices = [_chosen(rows, bounds) for rows in data]
    truth = {
        name: np.array(
            [
                own[choice.chosen_index] if choice else np.nan
                for own, choice in zip(of, choices, strict=True)
            ]
        )
        for name, of in zip(NAMES, (gaps, errors), strict=True)
    }
    return Sample(choices, truth)


def _chosen(rows: SharedRows, bounds: tuple[Bound, ...]) -> Choice | None:
    """Return the choice, none where no run is within the bounds."""
    try:
        return choose_among(Shared((), rows, None, []), METRIC, bounds)
    except UserError:
        return None


def _intervals(choices: Sequence[Choice | None], side: str) -> Mapping[str, Interval]:
    def ends(judged: Judged) -> tuple[float, float]:
        result: tuple[float, float] = getattr(judged, side)
        return result

    nothing = [(np.nan, np.nan)] * len(NAMES)
    result = np.array(
        [[ends(e) for e in choice.judged] if choice else nothing for choice in choices]
    )
    return {name: (result[:, i, 0], result[:, i, 1]) for i, name in enumerate(NAMES)}


def _ours(choices: Sequence[Choice | None], _: np.random.Generator) -> Mapping[str, Interval]:
    return _intervals(choices, "corrected")


def _naive(choices: Sequence[Choice | None], _: np.random.Generator) -> Mapping[str, Interval]:
    return _intervals(choices, "naive")


FAMILIES = (
    Family(
        "chosen_runs",
        "The fairest of many runs",
        f"Each run fits a learner again in each of {SPLITS} hold-outs, on features that differ "
        "from run to run. Of these runs, the one with the smallest mean gap in the selection rate "
        "is chosen, among all or (*among the accurate*) among those whose error rate is at most "
        "the true average. The true value is the performance on new people of the models that the "
        "chosen run fitted. *as if not chosen* ignores the choice.",
        _populations,
        _draw,
        (Construction("ours", _ours), Construction("as if not chosen", _naive)),
        replications=200,
    ),
)
