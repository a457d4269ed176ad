"""Active assessment: Thompson sampling plain and by thresholds, top-ten play, rewards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.measure import cpu_of, show
from fairbench.core.seeds import rng
from fairbench.inference.active.arms import BetaArms, Integers
from fairbench.inference.active.rewards import ComparisonReward, Estimation, Lowest
from fairbench.inference.active.strategies import Queues, assess, multiple_play, thompson
from fairbench.inference.active.threshold_arms import ThresholdArms
from fairbench.inference.beta import Beta, centred

ROWS, ARMS, RUNS, PLAYS = 10_000, 100, 200, 10


def main() -> None:
    queues, prior = _pool()
    generator = rng(0, "benchmark", "active")
    arms = BetaArms.of(prior, queues.sizes, replications=RUNS)
    estimation = Estimation(np.full(ARMS, 1 / ARMS))
    cases: list[tuple[str, Any, Callable[[Any], Integers], int, float]] = [
        ("Thompson", _copy(arms), lambda a: thompson(a, Lowest(), generator), 1, 60.0),
        ("by thresholds", ThresholdArms.of(_copy(arms)), lambda a: a.lowest(generator), 1, 30.0),
        (
            "the ten lowest",
            _copy(arms),
            lambda a: multiple_play(a, Lowest(), generator, plays=PLAYS),
            PLAYS,
            15.0,
        ),
        ("estimation", _copy(arms), lambda a: thompson(a, estimation, generator), 1, 147.0),
    ]
    rows = [
        (name, _milliseconds(queues, start, choose, ROWS // plays), target)
        for name, start, choose, plays, target in cases
    ]
    title = f"a run of {ROWS} labels, {ARMS} arms, from {RUNS} at once (1000 runs: as many s)"
    show(
        title,
        ("", "CPU ms", "target"),
        [*rows, ("comparison reward, microseconds", _reward(), 17.0)],
    )


def _pool() -> tuple[Queues, Beta]:
    draw = rng(0, "benchmark", "active pool")
    arm = np.repeat(np.arange(ARMS), ROWS // ARMS)
    accuracy = draw.beta(8, 3, ARMS)
    correct = (draw.random(ROWS) < accuracy[arm]).astype(int)
    return Queues.of(correct, arm, draw, replications=RUNS), centred(accuracy)


def _copy(arms: BetaArms) -> BetaArms:
    return arms.take(np.arange(RUNS))


def _milliseconds(
    queues: Queues, arms: Any, choose: Callable[[Any], Integers], rounds: int
) -> float:
    seconds = cpu_of(lambda: assess(queues, arms, choose, observe=lambda a: None, rounds=rounds))
    return seconds / RUNS * 1e3


def _reward() -> float:
    """Return microseconds of one reward of two arms' next labels."""
    draw = rng(0, "benchmark", "comparison")
    counts = draw.uniform(1, 200, (2, RUNS, 2)) + 0.5
    arms = BetaArms(Beta(*counts), np.ones((RUNS, 2), np.int64))
    comparison = ComparisonReward()
    seconds = cpu_of(lambda: [comparison.moments(arms) for _ in range(20)])
    return seconds / 20 / RUNS * 1e6
