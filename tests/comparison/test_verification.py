"""A changed bit is a difference, relative to the output; a stored configuration is only data."""

import re

import numpy as np
import pytest

from fairbench.core.errors import UserError
from fairbench.core.fingerprint import ROOT
from fairbench.experiments.pipeline import compare, recompose
from fairbench.results.catalogue import Catalogue
from tests.studies import sealed_record

STORED = {
    "row": np.arange(3, dtype=np.int32),
    "score": np.array([0.5, np.nan, -2.0], np.float32),
}


def changed(**columns):
    return compare("id", STORED, {**STORED, **columns})


def test_equal_bits_are_no_difference():
    assert changed() is None
    assert changed(score=STORED["score"].copy()) is None


def test_a_difference_is_relative_to_the_largest_value():
    result = changed(score=np.array([0.75, np.nan, -2.0], np.float32))
    assert result[2] == pytest.approx(0.25 / 2)
    assert "1 of 2 columns (score ...)" in result[1]


def test_the_last_bit_counts():
    score = STORED["score"].copy()
    score[0] = np.nextafter(score[0], np.float32(1))
    assert 0 < changed(score=score)[2] < 1e-6


@pytest.mark.parametrize(
    "columns",
    [
        {"score": np.array([0.5, 0.0, -2.0], np.float32)},
        {"score": STORED["score"].astype(np.float64)},
        {"score": STORED["score"][:2]},
        {"more": np.zeros(3)},
    ],
)
def test_another_shape_type_or_undefined_row_is_infinitely_different(columns):
    assert changed(**columns)[2] == np.inf


def test_columns_without_finite_values_may_differ_in_their_bits():
    stored = {"score": np.array([np.nan, np.nan], np.float32)}
    fresh = {"score": -stored["score"]}
    assert compare("id", stored, fresh)[2] == 0.0


def stored_run(results, changed):
    """Return a finished run as a folder of somebody else may have it."""
    return sealed_record(results, {"consistency": {"name": "default"}, **changed}, cells=["cell"])


def test_a_stored_configuration_names_components_and_their_options(tmp_path):
    cfg = recompose(stored_run(tmp_path, {"learner.max_depth": 6}), ROOT / "conf", {})
    assert cfg.learner.max_depth == 6
    assert cfg.learner._target_.startswith("algorithms.")


@pytest.mark.parametrize(
    "changed",
    [
        {"method._target_": "os.system"},
        {"method.deep": [{"_target_": "os.system"}]},
        {"method": "baseline seed=1"},
        {"method": "../../stranger"},
        {"method": "[baseline,ensemble]"},
        {"learner.max_depth": "${oc.env:HOME}"},
        {"dataset.${oc.env:HOME}": 1},
        {"protect": ["${oc.env:HOME}"]},
    ],
)
def test_a_stored_configuration_is_data(tmp_path, changed):
    run = stored_run(tmp_path, changed)
    assert not Catalogue(tmp_path).runs
    with pytest.raises(UserError, match=re.escape("is missing or damaged")):
        recompose(run, ROOT / "conf", {})


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"method": "stranger"}, "method=stranger is no component that is installed here"),
        ({"method.deep": 1}, "method=baseline has no option 'deep': other code made the run"),
        ({"dataset.n_samples": 10**9}, "dataset.n_samples is too large to be computed again"),
        ({"split.repeats": 10**9}, "split.repeats is too large to be computed again"),
        ({"split.repeats": 5000}, "has split.repeats=5000, and fewer cells stored: 1"),
        ({"dataset.path": "/etc/passwd", "dataset": "table"}, "add dataset.path=/etc/passwd"),
    ],
)
def test_a_stored_configuration_is_of_components_and_sizes_that_are_here(tmp_path, changed, said):
    with pytest.raises(UserError, match=re.escape(said)):
        recompose(stored_run(tmp_path, changed), ROOT / "conf", {})
