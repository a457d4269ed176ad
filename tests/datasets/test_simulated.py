"""Simulated populations, tables and sequences: what each parameter does, against the truth."""

import hashlib

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from sklearn.metrics import roc_auc_score

from fairbench.components.datasets import kuzucu, simulated, simulated_sequences
from fairbench.data.features import Encoder, SequenceEncoding

MANY = 40_000


def draw(**options):
    return simulated.load(None, **options)


def test_the_default_population_never_changes():
    for options, expected in (
        ({"task": "binary"}, "01b2820a88a1ae42"),
        ({"task": "regression"}, "230bac8abab45994"),
        ({"n_samples": 300, "n_features": 4, "minority_share": 0.4, "seed": 3}, "93f3a1597d6906b3"),
    ):
        data = draw(**options)
        # Rounded: the last bits of exponentials differ between types of CPU.
        table = pd.concat([data.features, data.target, data.truth], axis=1).round(9)
        hashes = pd.util.hash_pandas_object(table).to_numpy()
        assert hashlib.sha256(hashes.tobytes()).hexdigest()[:16] == expected


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


def test_more_groups_step_from_the_majority_to_the_last_minority():
    data = draw(task="regression", n_samples=MANY, n_groups=4, minority_share=0.6)
    groups = data.sensitive["group"]
    assert list(groups.cat.categories) == ["majority", "minority 1", "minority 2", "minority 3"]
    assert groups.value_counts(normalize=True)[
        ["majority", "minority 1", "minority 2", "minority 3"]
    ].tolist() == pytest.approx([0.4, 0.2, 0.2, 0.2], abs=0.01)
    scale = (data.truth["sd"] / np.exp(0.5 * data.features["x2"]) / 0.2).groupby(groups).mean()
    assert scale.tolist() == pytest.approx([1, 4 / 3, 5 / 3, 2])
    two = draw(task="regression", noise=0.5, minority_noise=3)
    sd = two.truth["sd"] / np.exp(0.5 * two.features["x2"])
    assert sd.groupby(two.sensitive["group"]).agg(np.ptp).max() < 1e-12
    assert sd.groupby(two.sensitive["group"]).mean().tolist() == pytest.approx([0.1, 0.6])
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
    likely = data.truth["probability"][test].mean()
    assert data.target[test].mean() == pytest.approx(likely, abs=0.02)
    assert draw().partition is None


def test_nobody_may_be_of_a_minority():
    assert set(draw(minority_share=0.0).sensitive["group"]) == {"majority"}


sequences = simulated_sequences.load


def test_the_default_sequences_never_change():
    data = sequences(None)
    total = hashlib.sha256()
    for part in data.features.parts:
        total.update(part.joined().round(4).tobytes())
    total.update(data.target.to_numpy(np.int64).tobytes())
    assert total.hexdigest()[:12] == "2961cffa57b4"


@pytest.fixture(scope="module")
def many():
    return sequences(None, n_samples=10_000, longer=3.0)


def events(part):
    """Return the mean of what the second channel says where the first marks an event."""
    frames, _ = part.padded()
    marked = frames[..., 0] == 1
    return (frames[..., 1] * marked).sum(axis=1) / np.maximum(marked.sum(axis=1), 1), marked


def test_the_truth_is_a_function_of_the_events_and_labels_follow_it(many):
    truth = many.truth["probability"].to_numpy()
    said = [events(part)[0] for part in many.features.parts]
    odds = 4 * (said[0] + said[1]) / np.sqrt(2 * (1 + 0.25 / 4))
    np.testing.assert_allclose(np.log(truth / (1 - truth)), odds, atol=1e-4)
    for low in np.arange(0, 1, 0.1):
        rows = (truth >= low) & (truth < low + 0.1)
        share = pytest.approx(truth[rows].mean(), abs=5 * 0.5 / np.sqrt(rows.sum()))
        assert many.target[rows].mean() == share
    assert roc_auc_score(many.target, truth) == pytest.approx(0.947, abs=0.01)
    assert roc_auc_score(many.target, said[0]) == pytest.approx(0.815, abs=0.025)


def test_group_b_is_longer_and_loses_events_where_it_is_cut(many):
    in_b = (many.sensitive["group"] == "B").to_numpy()
    lengths = many.features.lengths[:, 0]
    assert lengths[in_b].mean() / lengths[~in_b].mean() == pytest.approx(3, abs=0.06)
    assert lengths[~in_b].max() <= 36 < lengths[in_b].max() <= 108
    assert all((events(part)[1].sum(axis=1) == 4).all() for part in many.features.parts)
    lost = ~events(many.features.parts[0].cut(36, end=True))[1].any(axis=1)
    assert not lost[~in_b].any()
    assert 0.4 < lost[in_b].mean() < 0.6
    encoded = Encoder(SequenceEncoding(length=36)).fit(many.features).transform(many.features)
    assert encoded.lengths.max() == 36


def test_groups_are_alike_but_for_their_lengths(many):
    by_group = many.truth["probability"].groupby(many.sensitive["group"], observed=True)
    assert by_group.mean().tolist() == pytest.approx([0.5, 0.5], abs=0.03)
    assert by_group.std().diff().iloc[1] == pytest.approx(0, abs=0.01)


@pytest.mark.parametrize("which", ["sd1", "sd2", "sd3"])
@pytest.mark.parametrize("n", [400, 320])
def test_four_equal_cells_and_the_group_can_be_a_feature(which, n):
    data = kuzucu.load(None, which=which, n_samples=n)
    cells = data.target.groupby(data.sensitive["group"], observed=True).value_counts()
    assert cells.tolist() == [n // 4] * 4
    assert list(data.features) == ["x0", "x1"]
    with_it = kuzucu.load(None, which=which, n_samples=n, keep_sensitive=True)
    assert (with_it.features["group_1"] == (data.sensitive["group"] == "1")).all()


@pytest.mark.parametrize("which", ["sd1", "sd2", "sd3"])
def test_truth_is_calibrated(which):
    data = kuzucu.load(None, which=which, n_samples=40_000)
    p = data.truth["probability"].to_numpy()
    np.testing.assert_allclose(data.target.mean(), p.mean(), atol=0.01)
    middle = (p > 0.3) & (p < 0.7)
    if middle.sum() > 300:
        assert data.target[middle].mean() == pytest.approx(p[middle].mean(), abs=0.05)
    # The best rule's accuracy, in closed form for a normal with equal covariances.
    for group, kind in zip("01", kuzucu.GROUPS[which], strict=True):
        rows = data.sensitive["group"] == group
        accuracy = ((p[rows] > 0.5) == data.target[rows]).mean()
        bayes = 1.0
        if kind is not None:
            bayes = norm.cdf(2 * kind.mean / np.sqrt(2 * (kind.variance + kind.covariance)))
        assert accuracy == pytest.approx(bayes, abs=0.012)


def test_both_readings_of_sd1():
    rising = kuzucu.load(None, which="sd1")
    falling = kuzucu.load(None, which="sd1", sd1_group0="falling")
    group0 = (rising.sensitive["group"] == "0").to_numpy()
    for data, sign in ((rising, 1), (falling, -1)):
        above = data.features.sum(axis=1)[group0] * sign > 0
        assert (above == (data.target[group0] == 1)).all()
        assert (data.truth["probability"][group0] == data.target[group0]).all()


def test_draws_are_repeatable_and_differ_by_seed():
    one, same, other = (kuzucu.load(None, which="sd3", seed=seed) for seed in (0, 0, 1))
    assert one.features.equals(same.features)
    assert not one.features.equals(other.features)
