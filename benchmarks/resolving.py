"""How often rounds of further splits drop the best method: simulated benchmarks of known means.

``python -m benchmarks.resolving [replications=300]``: methods that are nearly alike, families whose
differences scatter, tasks of unequal noise and cost, and rounds as ``fairbench resolve`` makes
them. Beside it stands what the same rounds do if each is taken for the only one.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.measure import command, show
from fairbench.core.arrays import rng
from fairbench_rank.ranking import WRONG, answers
from fairbench_rank.resolve import noise_of_tasks, splits_of_round, wrong_of_round
from fairbench_rank.scores import RankOptions, read_scores

OPTIONS = RankOptions(
    path=Path("simulated"), score=("score",), method="method", task="task", split=("split",),
    family="family", cost="seconds", better=("higher",),
)  # fmt: skip


@dataclass(frozen=True)
class SimulatedRace:
    """Methods and tasks whose truth is known.

    Attributes
    ----------
    gap : by how much the best method's mean is above that of each other.
    between : sd of a family's own differences. noise : sd of a split's score; it varies by task.
    skewed : whether a split's errors are exponential rather than normal.
    """

    name: str
    methods: int = 6
    families: int = 20
    gap: float = 0.0
    between: float = 0.01
    noise: float = 0.04
    splits: int = 3
    rounds: int = 8
    skewed: bool = False

    def dropped(self, generator: np.random.Generator, *, shared: bool = True) -> tuple[bool, int]:
        """Return whether the best was dropped in any round, and how many were left in the end.

        Parameters
        ----------
        shared : whether rounds share the error rate; otherwise each is taken for the only one.
        """
        race = _Scores(self, generator)
        table = read_scores(OPTIONS, race.frame(dict.fromkeys(race.seconds, self.splits)))
        tasks = noise_of_tasks(table, OPTIONS)
        left = set(race.names)
        for number in range(1, self.rounds + 1):
            splits = splits_of_round(tasks, number)
            table = read_scores(OPTIONS, race.frame(splits, left))
            wrong = wrong_of_round(number) if shared else WRONG
            (answer,) = answers(table, OPTIONS, error_rate=wrong, most_planned=0)
            left = left & set(answer.best) or left
            if len(left) < 2:
                break
        return race.names[0] not in left, len(left)


@dataclass
class _Scores:
    """Scores of one simulated race, drawn as they are asked for; a split once drawn stays."""

    race: SimulatedRace
    generator: np.random.Generator
    drawn: dict[str, NDArray[np.float64]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Draw the families' true means."""
        race, draw = self.race, self.generator
        self.names = [f"m{number}" for number in range(race.methods)]
        means = 50 + np.r_[race.gap, np.zeros(race.methods - 1)]  # of no scale that could be mixed
        self.truth = means + race.between * draw.standard_normal((race.families, race.methods))
        self.scale = race.noise * np.exp(draw.normal(0, 0.7, race.families))
        costs = np.exp(draw.normal(0, 1, race.families)).tolist()
        self.seconds = {f"t{number}": cost for number, cost in enumerate(costs)}
        self.have = {name: dict.fromkeys(self.seconds, 0) for name in self.names}

    def frame(self, splits: dict[str, int], methods: Sequence[str] | set[str] = ()) -> pd.DataFrame:
        """Return all scores so far, once these methods (all by default) have so many splits."""
        for name in methods or self.names:
            for task, number in splits.items():
                self.have[name][task] = max(self.have[name][task], number)
        parts = []
        for number, task in enumerate(self.seconds):
            most = max(self.have[name][task] for name in self.names)
            values = self._values(number, task, most)
            for place, name in enumerate(self.names):
                own = self.have[name][task]
                columns = {"split": np.arange(own), "score": values[:own, place]}
                about = {"method": name, "task": task, "family": task}
                about["seconds"] = self.seconds[task]
                parts.append(pd.DataFrame(columns).assign(**about))
        return pd.concat(parts, ignore_index=True)

    def _values(self, number: int, task: str, most: int) -> NDArray[np.float64]:
        """Return the scores (most, M) of a task."""
        there = self.drawn.get(task, np.zeros((0, len(self.names))))
        if len(there) < most:
            shape = (most - len(there), len(self.names))
            noise = self.generator.standard_normal(shape)
            if self.race.skewed:
                noise = self.generator.exponential(1, shape) - 1
            new = self.truth[number] + self.scale[number] * noise
            there = self.drawn[task] = np.concatenate([there, new])
        return there[:most]


RACES = (
    SimulatedRace("6 alike, 20 families"),
    SimulatedRace("20 alike, 20 families", methods=20, rounds=6),
    SimulatedRace("3 alike, 6 families", methods=3, families=6),
    SimulatedRace("6 alike, skewed splits", skewed=True),
    SimulatedRace("6 alike, splits alone", between=0.0),
    SimulatedRace("6, the best by 0.01", gap=0.01),
)


def measured(race: SimulatedRace, replications: int) -> tuple[float, float, float]:
    """Return how often the best was dropped, the same of rounds alone, and how many are left."""
    outcomes = []
    for number in range(replications):
        keys = ("resolving", race.name, number)
        alone, _ = race.dropped(rng(0, *keys), shared=False)
        outcomes.append((*race.dropped(rng(0, *keys)), alone))
    dropped, left, alone = np.mean(outcomes, axis=0)
    return float(dropped), float(alone), float(left)


def main(replications: int = 300) -> bool:
    """Print how often the best of each race was dropped."""
    rows = [(race.name, *measured(race, replications)) for race in RACES]
    header = ("race", "best dropped", "if each round were the only one", "left in the end")
    show(f"Rounds of further splits, {replications} races each", header, rows)
    return True


if __name__ == "__main__":
    sys.exit(command(main, sys.argv[1:]))
