"""Impact ratios: intervals that hold, and a probability that is as sure as it says."""

import numpy as np
import pytest

from fairbench.inference.gaps import ratios_to_group, ratios_to_highest, wider_level
from fairbench.inference.rates import probability_ratio_below, rate_limits, ratio_limits
from fairbench.inference.survey import Design, SurveyCounts
from fairbench.metrics.registry import selection_rate

REPLICATIONS = 4000


def to_highest(selected, sizes, highest=None):
    highest = np.ones(len(sizes), bool) if highest is None else highest
    wider = rate_limits(selected, sizes, level=wider_level(0.95, highest))
    return ratios_to_highest(rate_limits(selected, sizes), wider, highest)


@pytest.mark.parametrize(
    ("n", "m", "rate"), [(50, 50, 0.3), (200, 50, 0.5), (1000, 300, 0.05), (5000, 5000, 0.3)]
)
def test_at_four_fifths_it_is_sure_of_either_side_in_one_case_of_twenty(n, m, rate):
    """The probability is uniform where the ratio is the bound, as a p-value's complement is."""
    generator = np.random.default_rng(n + m)
    x, y = generator.binomial(n, 0.8 * rate, 20_000), generator.binomial(m, rate, 20_000)
    below = probability_ratio_below(rate_limits(x, n), rate_limits(y, m), 0.8)
    for tail in (0.05, 0.1, 0.25):
        assert (below >= 1 - tail).mean() == pytest.approx(tail, abs=0.02)
        assert (below <= tail).mean() == pytest.approx(tail, abs=0.02)


def test_a_ratio_to_a_named_group_is_the_ratio_of_two_rates():
    rates = rate_limits([20, 30, 9], [100, 80, 60])
    ratios, below = ratios_to_group(rates, 1)
    expected = ratio_limits(rates.take(0), rates.take(1))
    assert [float(ratio[0]) for ratio in ratios] == pytest.approx([float(e) for e in expected])
    assert below[0] == pytest.approx(
        float(probability_ratio_below(rates.take(0), rates.take(1), 0.8))
    )
    assert ratios.value[1] == ratios.lower[1] == ratios.upper[1] == 1
    assert below[1] == 0


def test_of_two_groups_the_lower_is_compared_as_if_the_higher_had_been_named():
    rates = rate_limits([20, 40], [100, 100])
    ratios, below, reference = to_highest([20, 40], [100, 100])
    named, below_named = ratios_to_group(rates, 1)
    assert reference == 1
    assert ratios.lower[0] == named.lower[0]
    assert ratios.upper[0] == named.upper[0]
    assert below[0] == pytest.approx(below_named[0])
    assert ratios.value[1] == ratios.upper[1] == 1
    assert ratios.lower[1] > 0.9  # surely the higher


@pytest.mark.parametrize(
    ("sizes", "rates"),
    [
        ((200, 200), (0.4, 0.5)),
        ((100,) * 4, (0.4, 0.5, 0.5, 0.5)),
        ((100,) * 10, (0.5,) * 10),
        ((1000, 50, 50, 300), (0.4, 0.5, 0.3, 0.45)),
        ((500,) * 6, (0.3, *[0.24] * 5)),
    ],
)
def test_ratios_to_the_highest_rate_hold_whichever_is_the_highest(sizes, rates):
    generator, truth = np.random.default_rng(len(sizes)), np.array(rates) / max(rates)
    ratios, below, reference = to_highest(
        generator.binomial(sizes, rates, (REPLICATIONS, len(sizes))), sizes
    )
    value, lower, upper = ratios
    assert ((lower <= value) & (value <= upper)).all()
    # What the probability says, the interval says.
    assert ((upper < 0.8) == (below > 0.975)).all()
    assert ((lower > 0.8) == (below < 0.025)).all()
    assert ((lower <= truth) & (truth <= upper)).mean(axis=0).min() > 0.935
    called, cleared = (below >= 0.95).mean(axis=0), (below <= 0.05).mean(axis=0)
    assert called[truth >= 0.8].max() < 0.065
    assert cleared[truth < 0.8].max(initial=0) < 0.065


def test_nobody_is_compared_with_a_group_left_out():
    highest = np.array([True, True, False])
    ratios, below, reference = to_highest([40, 50, 9], np.array([100, 100, 10]), highest)
    assert reference == 1
    assert ratios.value[2] == pytest.approx(0.9 / 0.5)
    assert ratios.upper[2] > 1.8
    assert ratios.upper[:2].max() == 1


def test_where_nobody_is_selected_the_ratio_is_not_known():
    ratios, below, reference = to_highest([0, 0], np.array([50, 60]))
    assert np.isnan(ratios.value).all()
    assert ratios.lower.tolist() == [0, 0]
    assert ratios.upper.tolist() == [1, 1]
    assert below == pytest.approx(0.5)


def test_groups_that_share_clusters_are_compared_more_closely():
    generator = np.random.default_rng(0)
    luck = np.repeat(generator.random(300), 2)  # of a pair, one of each group
    selected = (luck < np.tile([0.4, 0.5], 300)).astype(np.intp)
    design = Design.of(600, clusters=np.repeat(np.arange(300), 2))
    survey = SurveyCounts.of(selected, np.tile([0, 1], 300), design, groups=2)
    rates, shared = survey.limits(selection_rate), survey.correlation(selection_rate)
    apart, together = ratios_to_group(rates, 1), ratios_to_group(rates, 1, correlation=shared)
    width = [float(impact.upper[0] - impact.lower[0]) for impact, _ in (apart, together)]
    assert width[1] < 0.6 * width[0]
