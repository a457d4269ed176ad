import numpy as np
import pytest

from fairbench.components.papers.few_labels.labels_needed import (
    PUBLISHED,
    Population,
    by_normal,
    by_simulation,
    chance,
)
from fairbench.core.seeds import rng


def test_the_published_number_is_that_of_the_example():
    assert by_normal(Population()) == pytest.approx(PUBLISHED, rel=0.03)
    assert chance(Population(), PUBLISHED, rng(0, "test")) == pytest.approx(0.95, abs=0.01)


@pytest.mark.thorough
@pytest.mark.parametrize("margin", [0.02, 0.05])
def test_closed_form_and_simulation_agree(margin):
    population = Population(shares=(0.5, 0.5), base_rates=(0.3, 0.5), rates=(0.7, 0.6))
    expected = by_normal(population, margin)
    result = by_simulation(population, margin=margin, step=20)
    assert result == pytest.approx(expected, rel=0.05)
    assert chance(population, expected, rng(1, "test"), margin=margin) > 0.94


def test_a_group_of_a_quarter_of_the_size_takes_four_times_the_rows():
    even, uneven = (Population((1 - s, s), (1, 1), (1.0, 0.5)) for s in (0.4, 0.1))
    assert by_normal(uneven) == pytest.approx(4 * by_normal(even), abs=4)


def test_samples_without_positives_count_as_outside():
    lonely = Population(shares=(1.0, 0.0))
    assert chance(lonely, 100, np.random.default_rng(0)) == 0
