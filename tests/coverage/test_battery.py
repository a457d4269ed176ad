"""The short coverage battery: no interval of ours holds the truth less than 93 % of the time."""

import numpy as np
import pytest

from benchmarks.coverage.counts import GROUPS, all_populations
from benchmarks.coverage.families import FAMILIES
from benchmarks.coverage.page import failures
from benchmarks.coverage.simulate import Cell, count, simulate

MUST_PRINT = ("rates", "differences", "ratios", "gaps", "smallest_ratios")


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_no_cell_of_ours_fails(family):
    cells = list(simulate(family, short=True, construction="ours"))
    assert cells
    assert failures(cells) == []
    if family.name in MUST_PRINT:
        assert all(cell.printed == cell.trials for cell in cells)


def test_the_populations_are_some_1600_and_all_different():
    populations = all_populations()
    assert 1500 < len(populations) < 1700
    assert len({population.name for population in populations}) == len(populations)
    draw = np.random.default_rng(0)
    for population in populations:
        rates = population.rates(20, draw)
        assert rates.shape == (20, population.groups) == (20, len(population.rows))
        assert ((rates > 0) & (rates < 1)).all()
        np.testing.assert_allclose(np.ptp(rates, axis=1), population.gap, atol=1e-12)
    assert {population.groups for population in populations} == set(GROUPS)


def test_a_cell_counts_sides_and_fails_where_it_is_surely_too_low():
    truth = np.zeros(1000)
    lower, upper = np.full(1000, -1.0), np.full(1000, 1.0)
    lower[:60], upper[60:80] = 0.5, -0.5
    upper[990:] = np.nan
    cell = count(("f", "m", "ours", "p"), truth, (lower, upper))
    assert (cell.trials, cell.printed, cell.below, cell.above) == (1000, 990, 60, 20)
    assert cell.coverage == pytest.approx(910 / 990)
    assert not cell.failed  # 91.9 % may be 93 % by chance, 80 % may not
    assert Cell("f", "m", "ours", "p", 1000, 1000, 200, 0, 1.0).failed
    assert not Cell("f", "m", "ours", "p", 1000, 0, 0, 0, 1.0).failed


def test_a_cell_is_the_same_every_time():
    rates = FAMILIES[0]
    first, second = (list(simulate(rates, short=True, construction="Wald")) for _ in range(2))
    assert first == second
