"""Rates of which something is not known: bounds are a linear programme's, and hold the truth."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy.optimize import linprog

from fairbench.audits.direction import RATE_OF
from fairbench.inference.partial import (
    NOTHING,
    ProxyRows,
    SelectedLabels,
    _cells_of_equal_probability,
    _correct_counts,
    _tipping_point,
)
from fairbench.inference.rates import rate_limits
from fairbench.metrics.registry import FN, FP, TN, TP, base_rate

RATES = {**RATE_OF, "base rate": base_rate}


def extremes(numerator, denominator, bounds, *, upper=None, equal=None):
    """Return the least and the largest ratio of two linear functions over a polytope.

    The ratio is made linear by Charnes and Cooper's (1962) change of variables.

    Parameters
    ----------
    numerator, denominator : (1 + V,) a constant and a coefficient for each variable.
    bounds : (V, 2) of the variables.
    upper, equal : matrices (rows, V) and right sides (rows,) of inequalities and equations.
    """
    low, high = np.asarray(bounds, float).T
    matrices = [np.c_[-high, np.eye(len(high))], np.c_[low, -np.eye(len(low))]]
    if upper is not None:
        matrices.append(np.c_[-np.asarray(upper[1]), upper[0]])
    equations = [np.asarray(denominator, float)]
    if equal is not None:
        equations += [*np.c_[-np.asarray(equal[1]), equal[0]]]
    inequalities, right = np.concatenate(matrices), [1.0, *[0.0] * (len(equations) - 1)]
    ends = []
    for sign in (1, -1):
        result = linprog(
            sign * np.asarray(numerator, float),
            *(inequalities, np.zeros(len(inequalities)), equations, right, (0, None)),
        )
        assert result.status == 0, result.message
        ends.append(sign * result.fun)
    return ends


# Wrong labels.

# What a label that is wrong takes from a cell, and gives to another.
MOVES = np.zeros((4, 4))
for place, (source, goal) in enumerate([(TP, FP), (FP, TP), (TN, FN), (FN, TN)]):
    MOVES[place, [source, goal]] = -1, 1
SOURCES = [TP, FP, TN, FN]


@pytest.mark.parametrize("name", RATES)
def test_bounds_of_wrong_labels_are_a_linear_programmes(name):
    generator, rate = np.random.default_rng(1), RATES[name]
    top, whole = np.array(rate.numerator), np.array(rate.denominator)
    for _ in range(12):
        counts = generator.dirichlet([0.7] * 4) * generator.choice([1, 50, 3000])
        wrong = generator.choice([0, 0.01, 0.2, 0.9]) * counts.sum()
        values = rate(_correct_counts(counts, wrong))
        expected = extremes(
            [top @ counts, *(MOVES @ top)],
            [whole @ counts, *(MOVES @ whole)],
            [(0, counts[cell]) for cell in SOURCES],
            upper=(np.ones((1, 4)), [wrong]),
        )
        np.testing.assert_allclose([np.nanmin(values), np.nanmax(values)], expected, atol=1e-6)


@pytest.mark.parametrize("power", [0.3, 1, 4])
def test_the_last_number_of_wrong_labels_is_found(power):
    def margin(wrong, last=37):
        return np.sign(last + 0.5 - wrong) * abs(last + 0.5 - wrong) ** power

    assert _tipping_point(margin, 100) == 37
    assert _tipping_point(lambda wrong: 1.0, 100) is None
    assert _tipping_point(lambda wrong: 0.0, 100) == -1
    many = _tipping_point(lambda wrong: margin(wrong, 370_000), 10**6)
    assert 370_000 * 0.98 <= many <= 370_000


# Groups known through probabilities.


def proxies(group, cell, generator):
    alike = _cells_of_equal_probability(group, most=50)
    return ProxyRows(group, cell, alike, generator.integers(0, 2, len(cell)))


def by_linear_programme(group, kinds, weight, g):
    """Return the least and largest rate of a group: how many (Z, G, 3) there are is unknown.

    Known is how many rows of each cell are in each group, and how many of each kind.
    """
    shape = (*group.shape, 3)
    every = np.eye(np.prod(shape)).reshape(*shape, -1)
    known = np.concatenate([every.sum(axis=2), every.sum(axis=1)], axis=1)
    right = weight[:, None] * np.concatenate([group, kinds], axis=1)
    equal = known.reshape(right.size, -1), right.ravel()
    top, whole = every[:, g, 0].sum(axis=0), every[:, g, :2].sum(axis=(0, 1))
    return extremes([0, *top], [0, *whole], [(0, 1)] * len(top), equal=equal)


@pytest.mark.parametrize(
    ("rate", "cells"), [("equal_opportunity", [3, 2, 0]), ("statistical_parity", [1, 0, 0])]
)
def test_of_many_rows_the_ends_are_the_bounds_of_a_linear_programme(rate, cells):
    generator, rows = np.random.default_rng(4), 100_000
    group, kinds = generator.dirichlet([0.6] * 3, 5), generator.dirichlet([1.0] * 3, 5)
    weight = generator.dirichlet([3.0] * 5)
    if rate == "statistical_parity":  # everybody is in the denominator
        kinds = np.stack([kinds[:, 0], 1 - kinds[:, 0], 0 * kinds[:, 0]], axis=1)
    z = generator.choice(5, rows, p=weight)
    kind = (generator.random((rows, 1)) > kinds.cumsum(axis=1)[z]).sum(axis=1)
    result = proxies(group[z], np.array(cells)[kind], generator)
    expected = [by_linear_programme(group, kinds, weight, g) for g in range(3)]
    np.testing.assert_allclose(
        np.transpose(result.bounds(RATE_OF[rate]).value), expected, atol=0.015
    )


def test_known_groups_leave_nothing_open():
    generator = np.random.default_rng(5)
    group, cell = generator.integers(0, 2, 3000), generator.integers(0, 4, 3000)
    rows = proxies(np.stack([1.0 - group, group], axis=1), cell, generator)
    counts = np.stack([np.bincount(cell[group == g], minlength=4) for g in (0, 1)])
    for rate in RATES.values():
        ends = rows.bounds(rate)
        np.testing.assert_allclose(ends.value, [rate(counts)] * 2, atol=1e-9)
        np.testing.assert_allclose(ends.rows[0], rate.size(counts), rtol=0.02)
        np.testing.assert_allclose(rows.weighted(rate), rate(counts))


# Labels of the selected alone.


def some_selected(generator, groups=3, bands=4, *, rows=60):
    selected, others = generator.integers(1, rows, (2, groups, 2, bands))
    labelled = generator.integers(0, selected + 1)
    positive = generator.binomial(labelled, generator.random(labelled.shape))
    return SelectedLabels(*np.array([others, selected, labelled, positive], float))


def bounds_of_selected(rate, rows, group, odds):
    """Return the bounds with one unknown a cell: how many of its rows have label 1 unseen."""
    # Of numerator and denominator: of labels and decisions.
    cells = np.array([rate.numerator, rate.denominator], float).reshape(2, 2, 2)
    ratio, bounds = np.zeros((2, 1)), []
    for decision, band in product((0, 1), range(rows.others.shape[-1])):
        others, selected, labelled, positive = (
            getattr(rows, name)[group, decision, band]
            for name in ("others", "selected", "labelled", "positive")
        )
        share = positive / labelled if labelled else 0
        unseen, seen = (others, selected) if labelled else (others + selected, 0)
        low, high = 0.0, 1.0
        if odds < np.inf and labelled:
            low, high = (share / (share + by * (1 - share)) for by in (odds, 1 / odds))
        bounds.append((low * unseen, high * unseen))
        zero, one = cells[:, :, decision].T
        ratio[:, 0] += seen * (one * share + zero * (1 - share)) + zero * unseen
        ratio = np.c_[ratio, one - zero]
    return extremes(*ratio, bounds)


@pytest.mark.thorough
@pytest.mark.parametrize("odds", [NOTHING, 1, 1.5, 20])
@pytest.mark.parametrize("name", RATES)
def test_bounds_of_labels_of_the_selected_are_a_linear_programmes(name, odds):
    generator, rate = np.random.default_rng(1), RATES[name]
    for _ in range(4):
        rows = some_selected(generator)
        expected = [bounds_of_selected(rate, rows, group, odds) for group in range(3)]
        found = np.transpose(rows.bounds(rate, odds=odds).value)
        np.testing.assert_allclose(found, expected, atol=1e-6)


def test_bounds_of_gaps_are_those_of_any_labels_there_could_be():
    """Groups share nothing, so a gap is widest where two rates are at opposite ends."""
    generator = np.random.default_rng(2)
    for groups in (2, 4):
        ends = some_selected(generator, groups).bounds(base_rate)
        result = ends.gap()
        part = generator.random((20_000, groups)) ** 0.3
        part = np.where(generator.random(part.shape) < 0.5, part, 1 - part)
        rates = ends.value[0] + part * (ends.value[1] - ends.value[0])
        gaps = rates[:, 1] - rates[:, 0] if groups == 2 else np.ptp(rates, axis=1)
        lower, upper = result["lower"], result["upper"]
        assert lower <= gaps.min() < lower + 0.05
        assert upper - 0.05 < gaps.max() <= upper
        assert result["interval"][0] <= lower <= upper <= result["interval"][1]


def test_of_complete_labels_of_the_selected_an_end_is_a_rate_of_so_many_rows():
    generator = np.random.default_rng(3)
    rows = some_selected(generator, 50, 1, rows=400)
    positive = generator.binomial(rows.selected.astype(int), 0.4).astype(float)
    ends = replace(rows, labelled=rows.selected, positive=positive).bounds(base_rate)
    hits, everyone = (each.sum(axis=(1, 2)) for each in (positive, rows.selected + rows.others))
    np.testing.assert_allclose(ends.value[0], hits / everyone)
    np.testing.assert_allclose(ends.rows[0], everyone, rtol=0.03)
    low, _ = ends.limits(0.95)
    np.testing.assert_allclose(low.lower, rate_limits(hits, everyone).lower, atol=0.002)


def test_nothing_known_is_everything_possible():
    nothing = np.zeros((1, 2, 1))
    ends = SelectedLabels(nothing + 5, nothing, nothing, nothing).bounds(base_rate)
    assert ends.value.tolist() == [[0], [1]]
    ends = SelectedLabels(nothing, nothing, nothing, nothing).bounds(base_rate)
    assert np.isnan(ends.value[0])
    assert ends.interval() == (0, 1)
