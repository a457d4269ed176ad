"""The short version of ``python -m benchmarks.rank``: its claims are as often right as said."""

import numpy as np
import pytest

from benchmarks.rank import EPSILON, TARGET, Population, calibration, held_at_most, populations, run
from fairbench_rank.new_tasks import times_as_many, units_needed, usual_spread, variance_parts
from fairbench_rank.sign_flips import paired_units, simultaneous

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
    several = populations()
    assert len(several) == 100
    assert min(p.methods for p in several) == 2 and max(p.methods for p in several) == 200
    assert {p.tasks for p in several} >= {3, 300} and max(p.questions for p in several) == 20_000
    assert {p.truth for p in several} == {"alike", "tied", "near", "far"}
    assert {p.holes for p in several} == {"none", "random", "half"}


@pytest.mark.slow
@pytest.mark.parametrize("population", HARD, ids=lambda population: population.name)
def test_ranks_the_best_and_intervals_hold_together(population):
    tally = run(population, 20.0, seed=1, most=150)
    for name in ("ranks", "best", "page"):
        held = getattr(tally, name)
        assert held_at_most(held, tally.runs) >= TARGET, f"{name}: {held} of {tally.runs}"


@pytest.mark.slow
def test_probabilities_on_new_tasks_are_calibrated_over_many_populations():
    tallies = []
    small = [p for p in populations(200, seed=5) if p.tasks > 1 and p.methods * p.tasks <= 400]
    for number, population in enumerate(small):
        tallies.append(run(population, 0.0, seed=number))
    weight = np.sum([tenth for tally in tallies for tenth in tally.tenths], axis=0)[2]
    off = calibration(tallies)[0]
    assert (np.abs(off[weight >= 20]) <= 0.06).all(), off


def drawn(tasks, splits, random, *, effect, noise, methods=3, ahead=EPSILON):
    """Return a paired benchmark whose first method is ahead of all others by so much."""
    effects = effect * random.standard_normal((methods, tasks)) / 2**0.5
    effects[0] += ahead
    own = noise * random.standard_normal((methods, tasks, splits)) / 2**0.5
    values = (effects[:, :, None] + own).reshape(methods, -1)
    group, unit = np.repeat(np.arange(tasks), splits), np.arange(tasks)
    paired = paired_units(values, group, unit, generator=random)
    held = simultaneous(paired, generator=random, flips=299)
    return values[0] - values[1], group, unit, paired, held


@pytest.mark.thorough
def test_plans_of_tasks_and_of_splits_are_kept_to():
    """Four of five benchmarks of the planned size tell the two apart, to the chance of 200."""
    random = np.random.default_rng(0)
    tasks, times = [], []
    for _ in range(60):
        difference, group, unit, paired, held = drawn(40, 2, random, effect=0.005, noise=0.04)
        spread = usual_spread(paired.errors[:1], paired.sizes[:1])
        tasks.append(units_needed(spread, EPSILON, held.critical)[0])
        parts = variance_parts(difference, group, unit)
        times.append(times_as_many(parts, EPSILON, 40, held.critical))
    sizes = [(int(np.median(tasks)), 2), (40, int(np.ceil(2 * np.median(times))))]
    for planned, splits in sizes:
        told = [
            drawn(planned, splits, random, effect=0.005, noise=0.04)[-1].limits.lower[0] > 0
            for _ in range(200)
        ]
        assert np.mean(told) == pytest.approx(0.8, abs=0.1), (planned, splits)
