"""Simulated populations: what each parameter does, against the truth."""

import hashlib

import numpy as np
import pandas as pd
import pytest

from fairbench.components.datasets import simulated
from fairbench.core.errors import UserError

MANY = 40_000


def draw(**options):
    return simulated.load(None, **options)


def fingerprint(data):
    # Rounded: the last bits of exponentials differ between types of CPU.
    table = pd.concat([data.features, data.target, data.truth], axis=1).round(9)
    return hashlib.sha256(pd.util.hash_pandas_object(table).to_numpy().tobytes()).hexdigest()[:16]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"task": "binary"}, "01b2820a88a1ae42"),
        ({"task": "regression"}, "230bac8abab45994"),
        (
            {"task": "binary", "n_samples": 300, "n_features": 4, "minority_share": 0.4, "seed": 3},
            "93f3a1597d6906b3",
        ),
    ],
)
def test_the_default_population_never_changes(options, expected):
    assert fingerprint(draw(**options)) == expected


@pytest.mark.parametrize("fault", [{"label_bias": 0.3}, {"missing": 0.3}])
def test_a_fault_leaves_everything_else_as_it_was(fault):
    plain, faulty = draw(), draw(**fault)
    assert plain.sensitive.equals(faulty.sensitive)
    assert plain.truth["probability"].equals(faulty.truth["probability"])
    changed = {"label_bias": "target", "missing": "features"}[next(iter(fault))]
    for part in ("features", "target"):
        assert getattr(plain, part).equals(getattr(faulty, part)) == (part != changed)


def test_labels_follow_the_probability():
    data = draw(n_samples=MANY)
    for _, rows in data.truth.groupby(pd.qcut(data.truth["probability"], 10)):
        assert data.target[rows.index].mean() == pytest.approx(rows["probability"].mean(), abs=0.02)


def test_outcomes_have_the_mean_and_sd_of_the_truth():
    data = draw(task="regression", n_samples=MANY)
    z = (data.target - data.truth["mean"]) / data.truth["sd"]
    for group in data.sensitive["group"].cat.categories:
        of = z[data.sensitive["group"] == group]
        assert of.mean() == pytest.approx(0, abs=0.03)
        assert of.std() == pytest.approx(1, abs=0.03)


def test_noise_belongs_to_the_group():
    data = draw(task="regression", n_samples=MANY, noise=0.5, minority_noise=3)
    sd = data.truth["sd"] / np.exp(0.5 * data.features["x2"])
    by_group = sd.groupby(data.sensitive["group"], observed=True)
    assert by_group.mean().tolist() == pytest.approx([0.1, 0.6])
    assert by_group.std().max() < 1e-12


def test_more_groups_step_from_the_majority_to_the_last_minority():
    data = draw(task="regression", n_samples=MANY, n_groups=4, minority_share=0.6)
    groups = data.sensitive["group"]
    assert list(groups.cat.categories) == ["majority", "minority 1", "minority 2", "minority 3"]
    shares = groups.value_counts(normalize=True)
    assert shares[["majority", "minority 1", "minority 2", "minority 3"]].tolist() == pytest.approx(
        [0.4, 0.2, 0.2, 0.2], abs=0.01
    )
    scale = (data.truth["sd"] / np.exp(0.5 * data.features["x2"]) / 0.2).groupby(groups).mean()
    assert scale.tolist() == pytest.approx([1, 4 / 3, 5 / 3, 2])
    x = data.features
    offset = data.truth["mean"] - (x["x0"] - x["x1"] + x["x0"] * x["x1"])
    assert offset.groupby(groups).mean().tolist() == pytest.approx([0.4, 0.4 / 3, -0.4 / 3, -0.4])


def test_label_bias_lowers_what_is_recorded_of_minorities():
    data = draw(n_samples=MANY, label_bias=0.4)
    plain = draw(n_samples=MANY)
    minority = data.sensitive["group"] == "minority"
    assert data.target[~minority].equals(plain.target[~minority])
    kept = data.target[minority].sum() / plain.target[minority].sum()
    assert kept == pytest.approx(0.6, abs=0.02)
    observed = data.truth["observed"]
    assert observed[minority].equals(data.truth["probability"][minority] * 0.6)
    assert data.target[minority].mean() == pytest.approx(observed[minority].mean(), abs=0.02)


def test_label_bias_of_a_regression_is_taken_off():
    data, plain = (draw(task="regression", label_bias=bias) for bias in (0.7, 0))
    minority = data.sensitive["group"] == "minority"
    np.testing.assert_allclose((plain.target - data.target)[minority], 0.7)
    np.testing.assert_allclose((data.truth["mean"] - data.truth["observed"])[minority], 0.7)
    assert plain.target[~minority].equals(data.target[~minority])


def test_missing_values_are_the_minoritys():
    data = draw(n_samples=MANY, missing=0.3)
    minority = data.sensitive["group"] == "minority"
    gaps = data.features.isna()
    assert not gaps[~minority].any(axis=None)
    assert gaps[minority].mean()[["x0", "x1"]].tolist() == pytest.approx([0.3, 0.3], abs=0.02)
    assert not gaps[["x2", "x3", "x4", "x5"]].any(axis=None)


def test_a_shift_moves_the_test_part_and_not_the_labels_law():
    data = draw(n_samples=MANY, shift=1.5)
    test = data.partition == "test"
    assert test.mean() == pytest.approx(0.2)
    moved = data.features["x0"][test].mean() - data.features["x0"][~test].mean()
    assert moved == pytest.approx(1.5, abs=0.05)
    assert data.target[test].mean() == pytest.approx(
        data.truth["probability"][test].mean(), abs=0.02
    )
    assert draw().partition is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_groups": 1}, "dataset.n_groups is 1"),
        ({"label_bias": 1.0}, "dataset.label_bias is 1.0"),
        ({"label_bias": -0.1}, "dataset.label_bias is -0.1"),
        ({"missing": 1.0}, "dataset.missing is 1.0"),
        ({"minority_share": 1.2}, "dataset.minority_share is 1.2"),
        ({"noise": 0.0}, "must be positive"),
        ({"n_samples": 10}, "needs n_samples >= 20"),
        ({"task": "ranking"}, "dataset.task is 'ranking'"),
    ],
)
def test_what_is_refused(options, message):
    with pytest.raises(UserError, match=message):
        draw(**options)


def test_nobody_may_be_of_a_minority():
    assert set(draw(minority_share=0.0).sensitive["group"]) == {"majority"}
