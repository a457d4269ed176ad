"""How often what is said of a less discriminatory alternative covers the truth, which is known.

``python -m benchmarks.alternative populations=200`` draws populations of which the truth is known,
searches each as ``fairbench alternative`` does (draws, the choice on validation rows, the rule that
stops, one look at test rows), and prints how often the intervals of the chosen model's gap and
error, of both differences, and the bound on further gain hold. It takes about a minute.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.measure import command
from fairbench.core.arrays import Floats, rng
from fairbench_search.alternative import compare_models, gap_named
from fairbench_search.choice import SharedRows
from fairbench_search.gains import chance_of_better, further_gain, is_enough, least_gap

LEVEL, RISK = 0.95, 0.025
TRULY = 20_000  # people of whom the truth is taken
FRESH = 2_000  # further draws whose mean gain is the true one


@dataclass(frozen=True, eq=False)
class People:
    """People with what is known of them.

    Attributes
    ----------
    features : (n, 3). label, group : (n,) of 0 and 1.
    """

    features: Floats
    label: NDArray[np.int64]
    group: NDArray[np.int64]

    def decisions(self, models: Floats) -> NDArray[np.int64]:
        """Return what models (k, 4) of weights and a threshold decide, (n, k)."""
        return (self.features @ models[:, :3].T > models[:, 3]).astype(np.int64)

    def measured(self, models: Floats) -> tuple[Floats, Floats]:
        """Return the gap in selection rate and the error of models, (k,) each."""
        decided = self.decisions(models)
        rates = [decided[self.group == code].mean(axis=0) for code in (0, 1)]
        error = (decided != self.label[:, None]).mean(axis=0)
        return np.abs(rates[0] - rates[1]), np.asarray(error)


@dataclass(frozen=True, eq=False)
class Population:
    """A population, and the distribution that its candidates are drawn from."""

    seed: int

    @cached_property
    def _options(self) -> dict[str, Floats]:
        generator = rng(0, "population", self.seed)
        return {
            "apart": generator.normal(0, 0.4, 3),  # of the groups' features
            "weights": generator.normal(0, 1, 3),  # of what the label follows from
            "share": generator.uniform(0.2, 0.5, 1),  # of the second group
            "spread": generator.uniform(0.1, 0.8, 1),  # of the candidates' weights
        }

    def people(self, count: int, purpose: str) -> People:
        """Return people of this population."""
        made, generator = self._options, rng(self.seed, "people", purpose)
        group = (generator.random(count) < made["share"]).astype(np.int64)
        features = generator.standard_normal((count, 3)) + group[:, None] * made["apart"]
        noise = generator.standard_normal(count)
        label = (features @ made["weights"] + noise > 0).astype(np.int64)
        return People(features, label, group)

    def candidates(self, count: int, purpose: str) -> Floats:
        """Return models that are drawn, (k, 4)."""
        made, generator = self._options, rng(self.seed, "candidates", purpose)
        weights = made["weights"] + made["spread"] * generator.standard_normal((count, 3))
        return np.column_stack([weights, generator.normal(0, 0.4, count)])

    @property
    def in_use(self) -> Floats:
        """The model in use, (1, 4): the best that there is."""
        return np.append(self._options["weights"], 0.0)[None]


def search(
    population: Population, *, people: int, trials: int, within: float, worth: float
) -> pd.DataFrame:
    """Search once; return whether each statement is true, how wide it is, and what is true."""
    sizes = {"validation": people, "test": people, "truth": TRULY}
    validation, test, truth = (population.people(sizes[purpose], purpose) for purpose in sizes)
    models = np.vstack([population.in_use, population.candidates(trials, "tried")])
    gaps, errors = validation.measured(models)
    for tried in range(1, trials + 1):
        place = least_gap(gaps[: tried + 1], errors[: tried + 1], within=within)
        if is_enough(float(gaps[place]), tried, worth=worth, risk=RISK):
            break
    pair, nothing = models[[0, place]], np.zeros(people, np.int64)
    of_test = test.label, test.group, test.decisions(pair)
    rows = SharedRows(nothing, nothing, np.arange(people), *of_test, ("a", "b"))
    said = compare_models(rows, gap_named("statistical_parity"), level=LEVEL)
    upper, chance = said.gaps[1][2], float(chance_of_better(tried, risk=(1 - LEVEL) / 2))
    true_gaps, true_errors = truth.measured(pair)
    fresh = population.candidates(FRESH, "fresh")
    seen = validation.measured(fresh)
    better = (seen[0] < gaps[place]) & (seen[1] <= errors[0] + within)
    gain = np.zeros(FRESH)
    gain[better] = true_gaps[1] - truth.measured(fresh[better])[0]
    chosen = np.where(better, seen[0], np.inf).reshape(-1, 10).argmin(axis=1)
    of_ten = gain.reshape(-1, 10)[np.arange(len(chosen)), chosen]  # of none that is better, 0
    values = {  # what is true, and what was said: a value and both ends
        "gap": (true_gaps[1], said.gaps[1]),
        "error": (true_errors[1], said.errors[1]),
        "gap in use": (true_gaps[0], said.gaps[0]),
        "change of gap": (true_gaps[1] - true_gaps[0], said.gap_change),
        "change of error": (true_errors[1] - true_errors[0], said.error_change),
        "chance of better": (better.mean(), (0.0, 0.0, chance)),
        "further gain": (gain.mean(), (0.0, -np.inf, float(further_gain(upper, chance)))),
        "gain of ten": (of_ten.mean(), (0.0, -np.inf, float(further_gain(upper, chance, more=10)))),
    }
    told = {
        name: {
            "covered": lower <= true <= upper,
            "width": upper - (0.0 if np.isinf(lower) else lower),
            "true": true,
        }
        for name, (true, (_, lower, upper)) in values.items()
    }
    return pd.DataFrame(
        {**told, "drawn": {"true": tried}, "stopped by the rule": {"true": tried < trials}}
    ).T


def coverage(
    populations: Sequence[int], *, people: int = 400, trials: int = 100, within: float = 0.01,
    worth: float = 0.005,
) -> pd.DataFrame:  # fmt: skip
    """Return how often each statement holds, its mean width, and the mean truth."""
    how: dict[str, Any] = {"people": people, "trials": trials, "within": within, "worth": worth}
    searches = pd.concat(search(Population(seed), **how) for seed in populations)
    return searches.astype(float).groupby(level=0, sort=False).mean()


def main(populations: int = 200, people: int = 400) -> bool:
    """Search, and print how often what was said is true."""
    table = coverage(range(populations), people=people)
    print(table.round(4).to_string(na_rep=""))
    return True


if __name__ == "__main__":
    sys.exit(command(main, sys.argv[1:]))
