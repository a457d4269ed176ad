"""Labels of the selected alone: bounds are a linear programme's, and hold the truth."""

import numpy as np
import pytest

from fairbench.audits.direction import RATE_OF
from fairbench.inference.partial import NOTHING, SelectedLabels
from fairbench.inference.rates import rate_limits
from fairbench.metrics.registry import base_rate
from tests.inference.partial.linear import extremes

RATES = {**RATE_OF, "base rate": base_rate}


def some(generator, groups=3, bands=4, *, rows=60):
    selected, others = generator.integers(1, rows, (2, groups, 2, bands))
    labelled = generator.integers(0, selected + 1)
    positive = generator.binomial(labelled, generator.random(labelled.shape))
    return SelectedLabels(
        *(counts.astype(float) for counts in (others, selected, labelled, positive))
    )


def by_linear_programme(rate, rows, group, odds):
    """Return the bounds with one unknown a cell: how many of its rows have label 1 unseen."""
    top, whole = (
        np.array(cells, float).reshape(2, 2) for cells in (rate.numerator, rate.denominator)
    )
    ratio, bounds = [[0.0], [0.0]], []
    for decision in (0, 1):
        for band in range(rows.others.shape[-1]):
            others, selected, labelled, positive = (
                counts[group, decision, band]
                for counts in (rows.others, rows.selected, rows.labelled, rows.positive)
            )
            share = positive / labelled if labelled else 0
            unseen, seen = (others, selected) if labelled else (others + selected, 0)
            low, high = 0.0, 1.0
            if odds < np.inf and labelled:
                low = share / (share + odds * (1 - share))
                high = odds * share / (odds * share + 1 - share)
            bounds.append((low * unseen, high * unseen))
            for sums, cells in zip(ratio, (top, whole), strict=True):
                zero, one = cells[:, decision]
                sums[0] += seen * (one * share + zero * (1 - share)) + zero * unseen
                sums.append(one - zero)
    return extremes(*ratio, bounds)


@pytest.mark.thorough
@pytest.mark.parametrize("odds", [NOTHING, 1, 1.5, 20])
@pytest.mark.parametrize("name", RATES)
def test_bounds_are_a_linear_programmes(name, odds):
    generator = np.random.default_rng(1)
    for _ in range(4):
        rows = some(generator)
        ends = rows.bounds(RATES[name], odds=odds)
        for group in range(3):
            result = ends.value[0][group], ends.value[1][group]
            expected = by_linear_programme(RATES[name], rows, group, odds)
            np.testing.assert_allclose(result, expected, atol=1e-6)


def test_bounds_of_gaps_are_those_of_any_labels_there_could_be():
    """Groups share nothing, so a gap is widest where two rates are at opposite ends."""
    generator = np.random.default_rng(2)
    for groups in (2, 4):
        ends = some(generator, groups).bounds(base_rate)
        result = ends.gap()
        rates = generator.random((20_000, groups)) ** 0.3
        rates = np.where(generator.random(rates.shape) < 0.5, rates, 1 - rates)
        rates = ends.value[0] + rates * (ends.value[1] - ends.value[0])
        gaps = rates[:, 1] - rates[:, 0] if groups == 2 else np.ptp(rates, axis=1)
        assert result["lower"] <= gaps.min() < result["lower"] + 0.05
        assert result["upper"] - 0.05 < gaps.max() <= result["upper"]
        assert result["interval"][0] <= result["lower"]
        assert result["interval"][1] >= result["upper"]


def test_of_complete_labels_of_the_selected_an_end_is_a_rate_of_so_many_rows():
    generator = np.random.default_rng(3)
    rows = some(generator, 50, 1, rows=400)
    positive = generator.binomial(rows.selected.astype(int), 0.4).astype(float)
    rows = SelectedLabels(rows.others, rows.selected, rows.selected, positive)
    ends = rows.bounds(base_rate)
    everyone = (rows.selected + rows.others).sum(axis=(1, 2))
    np.testing.assert_allclose(ends.value[0], positive.sum(axis=(1, 2)) / everyone)
    np.testing.assert_allclose(ends.rows[0], everyone, rtol=0.03)
    low, _ = ends.limits(0.95)
    exact = rate_limits(positive.sum(axis=(1, 2)), everyone)
    np.testing.assert_allclose(low.lower, exact.lower, atol=0.002)


def test_nothing_known_is_everything_possible():
    nothing = np.zeros((1, 2, 1))
    ends = SelectedLabels(nothing + 5, nothing, nothing, nothing).bounds(base_rate)
    assert ends.value.tolist() == [[0], [1]]
    ends = SelectedLabels(nothing, nothing, nothing, nothing).bounds(base_rate)
    assert np.isnan(ends.value[0])
    assert ends.interval() == (0, 1)
