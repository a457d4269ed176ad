"""Readings of distributions: one model's, an ensemble's, and conformal intervals and sets."""

import numpy as np
import pytest

from fairbench.components.algorithms.methods.conformal import Conformal
from fairbench.components.algorithms.methods.constant_sd import ConstantSD
from fairbench.components.algorithms.methods.deep_ensemble import DeepEnsemble
from fairbench.components.algorithms.methods.marginal import Marginal
from fairbench.components.algorithms.methods.normal_nll import NormalNLL
from fairbench.core.errors import UserError
from fairbench.data.dataset import Task
from fairbench.evaluation.predictions import read_predictions

BINARY, REGRESSION = Task.BINARY, Task.REGRESSION
OURS = [NormalNLL(), NormalNLL("beta_nll"), NormalNLL("faithful_nll"), ConstantSD()]
REFERENCES = [
    NormalNLL("normal_nll_reference"),
    NormalNLL("beta_nll_reference"),
    NormalNLL("faithful_nll_reference"),
]


def read(method, raw, task=REGRESSION):
    raw = {name: np.asarray(values, float) for name, values in raw.items()}
    columns = method.read(raw, task, np.random.default_rng(0))
    keep = method.capabilities.keep_invalid
    return read_predictions(columns, task, type(method).__name__, keep_invalid=keep)


@pytest.mark.parametrize("method", [*OURS, *REFERENCES, Marginal()], ids=str)
def test_a_distribution_is_read_as_its_mean_and_sd(method):
    table = read(method, {"mean": [1, 2], "sd": [0.5, 3]})
    assert table.to_dict("list") == {
        "prediction": [1, 2],
        "mean": [1, 2],
        "sd": [0.5, 3],
        "uncertainty": [0.5, 3],
    }


def test_only_the_references_keep_standard_deviations_that_cannot_be():
    raw = {"mean": [1, 2], "sd": [-0.5, 0]}
    for method in REFERENCES:
        assert read(method, raw)["sd"].tolist() == [-0.5, 0]
    for method in OURS:
        with pytest.raises(UserError, match="column 'sd' is negative in 1 of 2 rows"):
            read(method, raw)


@pytest.mark.parametrize("method", [*OURS, *REFERENCES], ids=str)
def test_methods_of_distributions_are_for_numeric_targets(method):
    assert method.capabilities.tasks == {REGRESSION}


def test_losses_of_the_fitters_are_those_of_the_names():
    names = [method.fitter.loss(REGRESSION).name for method in [*OURS, *REFERENCES]]
    assert names == [
        "normal_nll",
        "beta_nll",
        "faithful_nll",
        "squared_error",
        "normal_nll_reference",
        "beta_nll_reference",
        "faithful_nll_reference",
    ]
    assert NormalNLL("beta_nll", 0.25).fitter.loss(REGRESSION).beta == 0.25


def test_the_marginal_of_labels_is_their_base_rate():
    table = read(Marginal(), {"score": [0.2, 0.2]}, BINARY)
    assert table["prediction"].tolist() == [0, 0]
    np.testing.assert_allclose(table["sd"], 0.4)


def test_an_ensembles_variance_is_the_sum_of_its_parts_and_that_of_the_mixture():
    draw = np.random.default_rng(0)
    means, sds = draw.normal(size=(3, 5)), draw.uniform(0.5, 2, (3, 5))
    table = read(DeepEnsemble(), {"mean": means, "sd": sds})
    np.testing.assert_allclose(table["mean"], means.mean(axis=1))
    np.testing.assert_allclose(table["sd"] ** 2, table["aleatoric"] + table["epistemic"])
    members = draw.integers(5, size=400_000)
    for row in range(3):
        sample = draw.normal(means[row, members], sds[row, members])
        assert table["sd"][row] == pytest.approx(sample.std(), rel=0.01)


def test_the_variance_of_a_label_is_that_of_the_mean_probability():
    p = np.random.default_rng(0).random((50, 5))
    table = read(DeepEnsemble(), {"score": p}, BINARY)
    mean = p.mean(axis=1)
    np.testing.assert_allclose(table["score"], mean)
    np.testing.assert_allclose(table["sd"] ** 2, mean * (1 - mean))
    np.testing.assert_allclose(table["aleatoric"], 2 * (p * (1 - p)).mean(axis=1))
    np.testing.assert_allclose(table["epistemic"], 2 * p.var(axis=1))


def test_members_that_agree_have_no_epistemic_variance():
    table = read(DeepEnsemble(), {"mean": np.ones((2, 4)), "sd": np.full((2, 4), 0.3)})
    np.testing.assert_allclose(table["epistemic"], 0)
    np.testing.assert_allclose(table["sd"], 0.3)


RADII = {
    "radius": [[1.0, np.inf]],
    "group_radius": [[2.0, 3.0]],
    "overlapping_radius": [[1.5, 4.0]],
}


def test_intervals_reach_a_radius_to_both_sides():
    table = read(Conformal(levels=(0.5, 0.9)), {"mean": [10], **RADII})
    assert table.iloc[0].to_dict() == {
        "prediction": 10,
        "mean": 10,
        "lower_50": 9,
        "upper_50": 11,
        "lower_90": -np.inf,
        "upper_90": np.inf,
    }
    own = read(Conformal(levels=(0.5, 0.9), guarantee="group"), {"mean": [10], **RADII})
    assert own[["lower_90", "upper_90"]].iloc[0].tolist() == [7, 13]
    both = read(Conformal(levels=(0.5, 0.9), guarantee="overlapping"), {"mean": [10], **RADII})
    assert both[["lower_90", "upper_90"]].iloc[0].tolist() == [6, 14]


def test_scaled_intervals_are_multiples_of_the_sd():
    method = Conformal(levels=(0.5, 0.9), guarantee="group", scaled=True)
    table = read(method, {"mean": [10], "sd": [0.5], **RADII})
    assert table[["lower_50", "upper_50", "uncertainty"]].iloc[0].tolist() == [9, 11, 0.5]
    assert method.fitter.loss(REGRESSION).name == "normal_nll"
    assert method.fitter.loss(BINARY).name == "binomial"


def test_a_set_holds_the_labels_that_are_not_too_improbable():
    raw = {"score": [0.1, 0.5], "radius": [[0.2], [0.6]], "group_radius": [[0.05], [0.4]]}
    table = read(Conformal(levels=(0.9,)), raw, BINARY)
    assert table[["set_0_90", "set_1_90"]].to_numpy().tolist() == [[1, 0], [1, 1]]
    own = read(Conformal(levels=(0.9,), guarantee="group"), raw, BINARY)
    assert own[["set_0_90", "set_1_90"]].to_numpy().tolist() == [[0, 0], [0, 0]]


def test_a_set_of_several_classes_holds_those_that_are_not_too_improbable():
    raw = {"score": [[0.7, 0.2, 0.1], [0.3, 0.3, 0.4]], "radius": [[0.7], [0.5]]}
    table = read(Conformal(levels=(0.9,)), raw, Task.MULTICLASS)
    assert table[[f"set_{k}_90" for k in range(3)]].to_numpy().tolist() == [[1, 0, 0], [0, 0, 0]]
    assert table["prediction"].tolist() == [0, 2]


def test_all_conformal_guarantees_share_their_cells_and_levels_are_percents():
    for guarantee in ("group", "overlapping"):
        assert Conformal().fitter == Conformal(guarantee=guarantee).fitter
    with pytest.raises(UserError, match=r"^unknown method\.guarantee"):
        Conformal(guarantee="everyone")
    for level in (0.905, 1.0, 0.0):
        with pytest.raises(UserError, match=r"^method\.levels "):
            Conformal(levels=(level,))
