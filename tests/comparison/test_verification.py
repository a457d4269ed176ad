"""A changed bit is a difference, relative to the output; a stored configuration is only data."""

import re

import numpy as np
import pytest

from fairbench.core.errors import UserError
from fairbench.core.fingerprint import ROOT
from fairbench.experiments.pipeline import _recomposed, compare
from tests.studies import sealed_record

STORED = {
    "row": np.arange(3, dtype=np.int32),
    "score": np.array([0.5, np.nan, -2.0], np.float32),
}


SCORE = STORED["score"]
LAST_BIT = SCORE.copy()
LAST_BIT[0] = np.nextafter(SCORE[0], np.float32(1))


@pytest.mark.parametrize(
    ("columns", "difference"),
    [
        ({}, None),
        ({"score": SCORE.copy()}, None),
        ({"score": np.array([0.75, np.nan, -2.0], np.float32)}, 0.25 / 2),  # of the largest value
        ({"score": LAST_BIT}, 2**-24 / 2),
        ({"score": np.array([0.5, 0.0, -2.0], np.float32)}, np.inf),
        ({"score": SCORE.astype(np.float64)}, np.inf),
        ({"score": SCORE[:2]}, np.inf),
        ({"more": np.zeros(3)}, np.inf),
    ],
)
def test_a_changed_bit_is_a_difference_relative_to_the_largest_value(columns, difference):
    result = compare("id", STORED, {**STORED, **columns})
    assert (result and result[2]) == (difference and pytest.approx(difference))
    if difference and np.isfinite(difference):
        assert "1 of 2 columns (score ...)" in result[1]


def test_columns_without_finite_values_may_differ_in_their_bits():
    stored = {"score": np.array([np.nan, np.nan], np.float32)}
    fresh = {"score": -stored["score"]}
    assert compare("id", stored, fresh)[2] == 0.0


def stored_run(results, changed):
    """Return a finished run as a folder of somebody else may have it."""
    return sealed_record(results, {"consistency": {"name": "default"}, **changed}, cells=["cell"])


def test_a_stored_configuration_names_components_and_their_options(tmp_path):
    cfg = _recomposed(stored_run(tmp_path, {"learner.max_depth": 6}), ROOT / "conf", {})
    assert cfg.learner.max_depth == 6
    assert cfg.learner._target_.startswith("algorithms.")


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
        _recomposed(stored_run(tmp_path, changed), ROOT / "conf", {})
