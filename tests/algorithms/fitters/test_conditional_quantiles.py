"""Thresholds for overlapping groups: against a plain linear programme, and by simulation."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog

from fairbench.components.algorithms.fitters.conditional_quantiles import covering_threshold
from fairbench.components.algorithms.overlapping_groups import OverlappingGroups

# Cells of two attributes with 2 and 3 groups; the groups, and one combination.
CELLS = [(a, b) for a in range(2) for b in range(3)]
MEMBERS = np.array(
    [[a == 0, a == 1, b == 0, b == 1, b == 2, (a, b) == (0, 0)] for a, b in CELLS], bool
)


def drawn(sizes, seed=0):
    draw = np.random.default_rng(seed)
    return [np.sort(draw.exponential(1 + c % 3, n)) for c, n in enumerate(sizes)]


def bisected(scores, members, own, level):
    """Impute scores of the new row until its dual weight reaches its bound, with all rows."""
    cell = np.repeat(np.arange(len(scores)), [len(score) for score in scores])
    known, phi = np.concatenate(scores), np.vstack([members[cell], own]).astype(float)

    def at_bound(score):
        solution = linprog(
            -np.append(known, score), A_eq=phi.T, b_eq=np.zeros(phi.shape[1]),
            bounds=(level - 1, level),
        )  # fmt: skip
        return solution.x[-1] > level - 1e-6

    low, high = -1.0, 100.0
    if not at_bound(high):
        return np.inf
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (low, middle) if at_bound(middle) else (middle, high)
    return high


@pytest.mark.parametrize("seed", range(6))
def test_thresholds_are_those_of_the_programme_with_an_imputed_score(seed):
    draw = np.random.default_rng(seed)
    scores = drawn(draw.integers(0, 50, len(CELLS)), seed)
    own, level = MEMBERS[draw.integers(len(CELLS))], draw.choice([0.5, 0.8, 0.9])
    result = covering_threshold(scores, MEMBERS, own, level)
    assert result == pytest.approx(bisected(scores, MEMBERS, own, level), abs=1e-6)


@pytest.mark.parametrize("level", [0.5, 0.9])
def test_groups_that_do_not_overlap_have_the_order_statistics_of_their_own(level):
    scores, apart = drawn([19, 120, 4]), np.eye(3, dtype=bool)
    for score, own in zip(scores, apart, strict=True):
        rank = int(np.ceil(round((len(score) + 1) * level, 9)))
        expected = score[rank - 1] if rank <= len(score) else np.inf
        assert covering_threshold(scores, apart, own, level) == pytest.approx(expected)


def test_a_group_without_calibration_rows_has_an_infinite_threshold():
    scores, stranger = drawn([50] * 6), np.zeros(6, bool)
    members = np.column_stack([MEMBERS, np.zeros(6, bool)])
    assert covering_threshold(scores, members, np.append(stranger, True), 0.5) == np.inf


def labels(counts):
    named = [label for label, count in counts.items() for _ in range(count)]
    return pd.Series(pd.Categorical(named), name="sex x race")


def test_combinations_are_groups_where_they_have_rows_enough():
    sensitive = labels({"f x a": 30, "f x b": 2, "m x a": 9, "m x b": 10})
    groups = OverlappingGroups.of(sensitive, smallest=10)
    assert groups.names() == ["f", "m", "a", "b", "f x a", "m x b"]
    members = groups.members(["f x a", "m x a", "f x new"]).astype(int).tolist()
    assert members == [[1, 0, 1, 0, 1, 0], [0, 1, 1, 0, 0, 0], [1, 0, 0, 0, 0, 0]]


def test_a_label_of_one_attribute_is_one_group_whatever_it_is_called():
    sensitive = labels({"f x a": 3, "m x b": 3}).rename("household")
    assert OverlappingGroups.of(sensitive, smallest=1).names() == ["f x a", "m x b"]


@pytest.mark.slow
def test_every_overlapping_group_is_covered_on_average():
    """400 calibration sets of 200 rows in six cells, whose scores differ in size."""
    draw = np.random.default_rng(0)
    share = np.array([0.3, 0.2, 0.1, 0.2, 0.15, 0.05])
    scale, level = np.array([1.0, 2.0, 4.0, 3.0, 1.0, 2.0]), 0.9
    covered = np.zeros((400, len(CELLS)))
    for row in covered:
        cell = draw.choice(len(CELLS), 200, p=share)
        score = draw.exponential(scale[cell])
        scores = [np.sort(score[cell == c]) for c in range(len(CELLS))]
        cuts = [covering_threshold(scores, MEMBERS, own, level) for own in MEMBERS]
        row[:] = 1 - np.exp(-np.array(cuts) / scale)
    weight = MEMBERS * share[:, None]
    of_group = covered @ weight / weight.sum(axis=0)
    error = of_group.std(axis=0) / np.sqrt(len(covered))
    assert (of_group.mean(axis=0) > level - 4 * error).all()
    assert (of_group.mean(axis=0) < level + 0.05).all()
