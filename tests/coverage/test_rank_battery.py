"""The short version of ``python -m benchmarks.rank``: its claims are as often right as said."""

import numpy as np
import pytest

from benchmarks.rank import BINS, TARGET, Population, held_at_most, populations, run

HARD = (
    Population(8, 3, truth="alike", tails="t2"),
    Population(8, 3, splits=5, truth="tied", tails="t3"),
    Population(6, 7, truth="alike", tails="lognormal", holes="random"),
    Population(12, 24, splits=3, family=2, truth="tied", tails="t3", holes="half"),
    Population(5, 30, truth="alike", tails="one skewed"),
    Population(4, 1, questions=150, truth="alike"),
    Population(5, 1, questions=400, truth="tied", holes="random"),
)


def test_a_hundred_populations_are_of_all_kinds():
    drawn = populations()
    assert len(drawn) == len({population.name for population in drawn}) or len(drawn) == 100
    assert min(p.methods for p in drawn) == 2 and max(p.methods for p in drawn) == 200
    assert {p.tasks for p in drawn} >= {3, 300} and max(p.questions for p in drawn) == 20_000
    assert {p.truth for p in drawn} == {"alike", "tied", "near", "far"}
    assert {p.holes for p in drawn} == {"none", "random", "half"}


@pytest.mark.thorough
@pytest.mark.parametrize("population", HARD, ids=lambda population: population.name)
def test_ranks_the_best_and_intervals_hold_together(population):
    tally = run(population, 20.0, seed=1, most=150)
    for name in ("ranks", "best", "page"):
        held = getattr(tally, name)
        assert held_at_most(held, tally.runs) >= TARGET, f"{name}: {held} of {tally.runs}"


@pytest.mark.thorough
def test_probabilities_on_new_tasks_are_calibrated_over_many_populations():
    said, came, weight = (np.zeros(BINS) for _ in range(3))
    small = [p for p in populations(200, seed=5) if p.tasks > 1 and p.methods * p.tasks <= 400]
    for number, population in enumerate(small):
        tally = run(population, 0.0, seed=number)
        said, came, weight = said + tally.said, came + tally.came, weight + tally.weight
    off = (said - came) / np.maximum(weight, 1)
    assert (np.abs(off[weight >= 20]) <= 0.06).all(), off
