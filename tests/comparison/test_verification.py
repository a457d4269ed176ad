"""A changed bit is a difference, relative to the output; a stored configuration is only data."""

import re

import numpy as np
import pytest

from fairbench.core.errors import UserError
from fairbench.core.fingerprint import ROOT
from fairbench.experiments.verification import compare, recompose
from fairbench.results.run_writer import seal_run
from fairbench.results.runs import Run
from tests.studies import RECORD

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
    assert result.largest == pytest.approx(0.25 / 2)
    assert "1 of 2 columns (score ...)" in result.what


def test_the_last_bit_counts():
    score = STORED["score"].copy()
    score[0] = np.nextafter(score[0], np.float32(1))
    assert 0 < changed(score=score).largest < 1e-6


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
    assert changed(**columns).largest == np.inf


def test_columns_without_finite_values_may_differ_in_their_bits():
    stored = {"score": np.array([np.nan, np.nan], np.float32)}
    fresh = {"score": -stored["score"]}
    assert compare("id", stored, fresh).largest == 0.0


def stored_run(path, **changed):
    """Return a finished run as a folder of somebody else may have it."""
    config = {group: {"name": "default"} for group in ("evaluator", "consistency")}
    config |= {"dataset": {"name": "simulated"}, "split": {"name": "holdout"}}
    config |= {"learner": {"name": "xgboost"}, "intervention": {"name": "none"}}
    config |= {"method": {"name": "baseline"}, "seed": 0, "protect": None}
    for dotted, value in changed.items():
        group, _, option = dotted.partition("__")
        config[group] = {**config[group], option: value} if option else value
    folder = path / "runs" / "0123456789ab"
    folder.mkdir(parents=True)
    seal_run(folder, RECORD | {"config": config})
    return Run(folder)


def test_a_stored_configuration_names_components_and_their_options(tmp_path):
    cfg = recompose(stored_run(tmp_path, learner__max_depth=6), ROOT / "conf")
    assert cfg.learner.max_depth == 6
    assert cfg.learner._target_.startswith("algorithms.")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"method": {"name": "baseline", "_target_": "os.system"}}, "option '_target_'"),
        ({"method": {"name": "baseline", "deep": [{"_target_": "os.system"}]}}, "'_target_'"),
        ({"method": "os.system"}, "is missing or damaged"),
        ({"method": {"name": "baseline seed=1"}}, "unknown method in"),
        ({"method": {"name": "../../stranger"}}, "unknown method in"),
        ({"method": {"name": "[baseline,ensemble]"}}, "unknown method in"),
        ({"learner__max_depth": "${oc.env:HOME}"}, "refers to nothing else"),
        ({"dataset__${oc.env:HOME}": 1}, "which no component has"),
        ({"protect": ["${oc.env:HOME}"]}, "refers to nothing else"),
    ],
)
def test_a_stored_configuration_is_data(tmp_path, changed, said):
    with pytest.raises(UserError, match=re.escape(said)):
        recompose(stored_run(tmp_path, **changed), ROOT / "conf")
