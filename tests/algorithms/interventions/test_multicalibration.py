"""Multicalibration: patches by hand, what they mend of a simulated truth, and bad input."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairbench.components.algorithms.interventions.mcgrad import MCGrad
from fairbench.components.algorithms.interventions.multicalibration import (
    Multicalibration,
    Patch,
    patches,
)
from fairbench.components.algorithms.interventions.recalibrated import HeldOut
from fairbench.core.errors import UserError


def held_out(score, label, weight=None):
    score = np.asarray(score, float)
    groups = pd.Series(["a"] * len(score), name="g")
    weight = np.ones(len(score)) if weight is None else np.asarray(weight, float)
    return HeldOut(score, np.asarray(label, float), weight, groups)


def test_a_cell_that_is_off_gets_the_mean_of_what_is_left():
    rows = held_out([0.3] * 20, [1] * 14 + [0] * 6)
    result = patches(rows, np.ones((20, 1), bool), bins=2, tolerance=0.1, smallest=10)
    assert result == [Patch(0, 0, pytest.approx(0.4))]


def test_the_patch_that_lowers_the_squared_error_most_comes_first():
    label = np.r_[np.ones(40), np.zeros(40)]
    options = {"bins": 1, "tolerance": 0.01, "smallest": 5}
    members = np.column_stack([np.ones(80, bool), np.arange(80) < 40])  # everyone, and a half
    first, *others = patches(held_out([0.5] * 80, label), members, **options)
    assert first == Patch(1, 0, pytest.approx(0.498, abs=0.01))
    # Of everyone the scores are now too high, so all are lowered, and so forth.
    assert others[0].group == 0
    assert others[0].shift < 0


def test_cells_of_few_rows_and_what_chance_explains_are_left_alone():
    for rows, smallest in ((held_out([0.3] * 20, [1] * 14 + [0] * 6), 21),
                           (held_out([0.5] * 20, [1] * 14 + [0] * 6), 5)):  # fmt: skip
        result = patches(rows, np.ones((20, 1), bool), bins=2, tolerance=0.1, smallest=smallest)
        assert result == []


def test_weights_count_copies_of_rows():
    row = held_out([0.3, 0.3], [1, 0], [30, 10])
    copies = held_out([0.3] * 40, [1] * 30 + [0] * 10)
    options = {"bins": 5, "tolerance": 0.01, "smallest": 10}
    (result,) = patches(row, np.ones((2, 1), bool), **options)
    (expected,) = patches(copies, np.ones((40, 1), bool), **options)
    assert result == pytest.approx(expected)


@settings(deadline=None, derandomize=True, max_examples=30)
@given(st.integers(0, 1000))
def test_patching_ends_and_each_patch_lowers_the_squared_error(seed):
    draw = np.random.default_rng(seed)
    score, members = draw.random(300), draw.random((300, 4)) < 0.5
    label = (draw.random(300) < score**2).astype(float)
    result = patches(held_out(score, label), members, bins=5, tolerance=0.02, smallest=10)
    error, changed = ((label - score) ** 2).sum(), score
    for patch in result:
        inside = members[:, patch.group] & (np.minimum((changed * 5).astype(int), 4) == patch.bin)
        changed = np.where(inside, np.clip(changed + patch.shift, 0.002, 0.998), changed)
        error, before = ((label - changed) ** 2).sum(), error
        assert error < before + 1e-9


class Biased:
    """Gives the first column as the probability, whatever the group."""

    def fit(self, X, y, sample_weight=None):
        self.weight = sample_weight
        return self

    def predict_proba(self, X):
        return np.column_stack([1 - X[:, 0], X[:, 0]])


def population(n, seed):
    """Men's labels are likelier than their scores say, young women's less likely."""
    draw = np.random.default_rng(seed)
    score = draw.uniform(0.2, 0.8, n)
    man, young = draw.random(n) < 0.5, draw.random(n) < 0.5
    true = score + 0.15 * man - 0.15 * (~man & young)
    names = np.char.add(np.where(man, "m", "f"), np.where(young, " x young", " x old"))
    groups = pd.Series(pd.Categorical(names), name="sex x age")
    return score[:, None], (draw.random(n) < true).astype(float), groups, true


def fitted(intervention, n=20_000, **options):
    X, y, groups, _ = population(n, 0)
    model = intervention(**options).wrap(Biased(), 3)
    return model.fit(X, y, sensitive_features=groups), X, groups


def error_of(model):
    X, _, groups, true = population(20_000, 1)
    score = model.outputs(X, sensitive_features=groups, random_state=0)["score"]
    return np.abs(score - true).mean()


def test_patches_come_nearer_to_the_truth_of_every_group_and_a_plain_calibration_does_not():
    model, *_ = fitted(Multicalibration)
    plain, *_ = fitted(Multicalibration, among="everyone")
    X, *_, true = population(20_000, 1)
    untouched = np.abs(X[:, 0] - true).mean()
    assert error_of(model) < 0.5 * untouched
    assert error_of(plain) > 0.8 * untouched
    assert model.diagnostics["patches"] > 4


def test_rows_held_out_are_not_fitted():
    model, *_ = fitted(Multicalibration, n=400)
    assert (model.estimator.weight == 0).sum() == pytest.approx(100, abs=1)
    all_rows, *_ = fitted(Multicalibration, n=400, held_out=0)
    assert all_rows.estimator.weight is None


def test_groups_that_were_never_seen_get_what_everyone_gets():
    model, X, _ = fitted(Multicalibration)
    strangers = pd.Series(["n x new"] * 10, name="sex x age")
    score = model.outputs(X[:10], sensitive_features=strangers, random_state=0)["score"]
    assert ((score >= 0) & (score <= 1)).all()


def test_too_few_rows_to_hold_any_out_are_refused():
    X, groups = np.full((3, 1), 0.5), pd.Series(["a"] * 3, name="g")
    model = Multicalibration().wrap(Biased(), 0)
    with pytest.raises(UserError, match=r"^intervention=multicalibration holds rows of either"):
        model.fit(X, np.array([0.0, 0.0, 1.0]), sensitive_features=groups)


def test_mcgrad_finds_the_truth_of_every_group():
    pytest.importorskip("mcgrad")
    X, *_, true = population(20_000, 1)
    assert error_of(fitted(MCGrad, n=8000)[0]) < 0.5 * np.abs(X[:, 0] - true).mean()
