"""How often rounds of further splits drop the best method: simulated benchmarks of known means.

``python -m benchmarks.resolving [replications=300]``: methods that are nearly alike, families whose
differences scatter, tasks of unequal noise and cost, and rounds as ``fairbench resolve`` makes
them. Beside it stands what the same rounds do if each is taken for the only one.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.measure import command, show
from fairbench.core.arrays import rng
from fairbench_rank.ranking import WRONG, answers
from fairbench_rank.resolve import noise_of_tasks, splits_of_round, wrong_of_round
from fairbench_rank.scores import RankOptions, ScoreTable, read_scores

_MOST = 1000  # splits of a task that are drawn

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
        means = 50 + np.r_[self.gap, np.zeros(self.methods - 1)]  # of no scale that could be mixed
        truth = means + self.between * generator.standard_normal((self.families, self.methods))
        scale = self.noise * np.exp(generator.normal(0, 0.7, self.families))
        seconds = np.exp(generator.normal(0, 1, self.families))
        shape = (self.families, _MOST, self.methods)
        noise = generator.standard_normal(shape)
        if self.skewed:
            noise = generator.exponential(1, shape) - 1
        scores = truth[:, None] + scale[:, None, None] * noise
        made = np.full((self.methods, self.families), self.splits)

        def scores_so_far() -> ScoreTable:
            method, task, split = np.nonzero(np.arange(_MOST) < made[:, :, None])
            columns = {"method": method, "task": task, "family": task, "split": split}
            columns |= {"score": scores[task, split, method], "seconds": seconds[task]}
            return read_scores(OPTIONS, pd.DataFrame(columns))

        tasks = noise_of_tasks(scores_so_far(), OPTIONS)
        left = {str(method) for method in range(self.methods)}
        for number in range(1, self.rounds + 1):
            splits = [*splits_of_round(tasks, number).values()]
            for method in map(int, left):
                made[method] = np.maximum(made[method], splits)
            wrong = wrong_of_round(number) if shared else WRONG
            (answer,) = answers(scores_so_far(), OPTIONS, error_rate=wrong, most_planned=0)
            left = left & set(answer.best) or left
            if len(left) < 2:
                break
        return "0" not in left, len(left)


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
