"""Two distributions of one mean and one interval: the densities have the printed numbers."""

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from fairbench.cli.options import read
from fairbench.components.papers.fairlyuncertain.same_interval import (
    DENSITIES,
    END,
    Options,
    main,
    sample,
    summary,
)
from fairbench.core.errors import UserError


def integral(name, function, low=-END, high=END):
    kinks = [point for point in (-0.69, 0.69) if low < point < high]
    value, _ = quad(lambda x: function(x) * DENSITIES[name](np.array(x)), low, high, points=kinks)
    return value


@pytest.mark.parametrize(("name", "sd"), [("A", 1.08), ("B", 1.21)])
def test_the_densities_have_the_printed_numbers(name, sd):
    mass = integral(name, lambda x: 1)
    assert integral(name, lambda x: x) / mass == pytest.approx(0, abs=1e-9)
    assert np.sqrt(integral(name, lambda x: x * x) / mass) == pytest.approx(sd, abs=0.005)
    assert integral(name, lambda x: 1, -2.0, 2.0) / mass == pytest.approx(0.9, abs=0.002)


@pytest.mark.parametrize("name", ["A", "B"])
def test_draws_are_of_the_density(name):
    mass = integral(name, lambda x: 1)
    values = sample(name, 2000)
    below = np.array([integral(name, lambda x: 1, -END, v) / mass for v in np.sort(values)[::20]])
    assert stats.kstest(below, "uniform").pvalue > 0.01
    np.testing.assert_array_equal(values, sample(name, 2000))


def test_a_summary_by_hand():
    result = summary(np.array([-2.0, -0.1, 0.1, 2.0]))
    assert result.mean == 0
    assert result.near == 0.5
    assert result.sd == pytest.approx(np.sqrt(8.02 / 3))
    assert (result.lower, -result.upper) == pytest.approx((-2 + 0.15 * 1.9,) * 2)


def test_the_command_prints_both(capsys):
    main(read(Options, ["draws=50000"]))
    printed = capsys.readouterr().out
    assert "0, [-2.0, 2.0], 1.08" in printed
    a, b = (line for line in printed.splitlines() if line.startswith(("│ A", "│ B")))
    assert "1.0" in a.split("│")[4] and "1.2" in b.split("│")[4]
    with pytest.raises(UserError, match="draws is 1; it must be at least 2"):
        read(Options, ["draws=1"])
