"""The study of black boxes: its cost matrices, and its estimates of the calibration error."""

import numpy as np

from fairbench.components.papers.black_box.estimation import (
    SUPERCLASSES,
    ece_errors,
    full_ece,
    human_costs,
    superclass_costs,
)
from fairbench.data.columns import MulticlassScores

CLASSES = tuple(SUPERCLASSES.split())


def test_superclasses_are_twenty_of_five_and_mistakes_across_them_are_dear():
    assert len(set(CLASSES)) == 100
    costs = superclass_costs(CLASSES)
    assert ((costs == 1).sum(axis=0) == 4).all()
    assert ((costs == 10).sum(axis=0) == 95).all()
    shark, ray, rose = map(CLASSES.index, ("shark", "ray", "rose"))
    assert (costs[shark, ray], costs[shark, rose], costs[shark, shark]) == (1, 10, 0)


def test_taking_a_person_for_a_thing_is_dear_but_not_the_other_way_round():
    costs = human_costs(CLASSES)
    girl, boy, rose = map(CLASSES.index, ("girl", "boy", "rose"))
    assert (costs[girl, rose], costs[rose, girl], costs[girl, boy]) == (10, 1, 1)
    assert np.trace(costs) == 0


def test_with_all_labels_the_frequentist_estimate_is_exact():
    generator = np.random.default_rng(0)
    score = generator.beta(4, 1.5, 2000)
    prediction = generator.integers(3, size=2000)
    wrong = generator.random(2000) > 0.8 * score
    pool = MulticlassScores((prediction + wrong) % 3, prediction, score, ("a", "b", "c"))
    few, every = ece_errors(pool, "simulated", (50, 2000), 20)
    assert every.error[2] < 1e-12
    assert every.error[:2].max() < 0.03 * full_ece(pool)
    # The absolute value of noise is positive: the plain error of few labels is too large.
    assert few.bias[2] > 0.02
    assert few.error[0] < few.error[2]
