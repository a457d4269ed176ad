"""Events of every two algorithms, on counts that say which one is better."""

import numpy as np
import pytest

from fairbench.components.papers.uncertainty_matters.algorithms import ALGORITHMS
from fairbench.components.papers.uncertainty_matters.every_pair import (
    A_ACCURATE,
    A_BETTER,
    B_ACCURATE,
    every_pair,
    matrix,
    print_pairs,
)
from fairbench.components.papers.uncertainty_matters.measured import Measured
from fairbench.components.papers.uncertainty_matters.readings import RHOS

# True negatives (good loans given), false positives, false negatives, true positives, by group.
EVEN = [[50000, 10000, 10000, 30000], [5000, 1000, 1000, 3000]]
# As accurate and less fair, and more accurate and less fair, than EVEN.
UNFAIR = [[50000, 10000, 10000, 30000], [4500, 1500, 500, 3500]]
ACCURATE = [[60000, 0, 5000, 35000], [5500, 500, 500, 3500]]


@pytest.fixture(scope="module")
def rows():
    tables = {"LR": EVEN, "SVM": UNFAIR, "FERM": ACCURATE}
    counts = {name: np.array([table] * 2) for name, table in tables.items()}
    ratios = dict.fromkeys(counts, np.ones((2, 2, 1)))
    return every_pair(Measured(counts, ratios, posteriors=2, draws=2000))


def test_events_of_a_pair_sum_to_1_and_turn_with_it(rows):
    shares = rows.drop(columns=["rho", "A", "B"])
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    turned = rows.rename(
        columns={"A": "B", "B": "A", A_ACCURATE: B_ACCURATE, B_ACCURATE: A_ACCURATE}
    )
    both = rows.merge(turned, on=["rho", "A", "B"], validate="one_to_one")
    assert len(both) == len(rows)
    np.testing.assert_array_equal(both[f"{A_ACCURATE}_x"], both[f"{A_ACCURATE}_y"])
    np.testing.assert_array_equal(both["A ~ B_x"], both["A ~ B_y"])


def test_the_fairer_of_two_as_accurate_is_better(rows):
    names = ["LR", "SVM", "FERM"]
    mine = rows[rows["rho"] == "rho=1/K"]
    better, accurate = (matrix(mine, names, event) for event in (A_BETTER, A_ACCURATE))
    assert better[0, 1] == pytest.approx(1, abs=0.01)
    assert better[1, 0] == pytest.approx(0, abs=0.01)
    assert accurate[2, 0] == pytest.approx(1, abs=0.01)
    assert np.isnan(np.diag(better)).all()


def test_every_rho_has_all_algorithms(rows):
    names = {rho: set(mine["A"]) for rho, mine in rows.groupby("rho")}
    assert set(names) == set(RHOS)
    assert all(each == {"LR", "SVM", "FERM"} for each in names.values())


def test_all_13_print_in_a_hundred_columns(capsys):
    counts = {name: np.array([EVEN]) // 100 for name in ALGORITHMS}
    ratios = dict.fromkeys(counts, np.ones((1, 2, 1)))
    print_pairs(every_pair(Measured(counts, ratios=ratios, posteriors=1, draws=200)))
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 100
    assert not any("…" in line for line in lines)
    headings = [line.split() for line in lines if "row is" in line]
    assert [heading[-1] for heading in headings] == ["13"] * len(RHOS)
    ranks = [line.split()[2] for line in lines if line.split()[:2] == ["9", "FERM"]]
    assert ranks == ["1"] * len(RHOS)
