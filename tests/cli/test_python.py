"""Runs from Python: `fairbench.run`, and what a notebook shows of runs."""

import os

import pandas as pd
import pytest

import fairbench
from fairbench.core.errors import UserError
from fairbench.results import Catalogue

WORDS = ["dataset.n_samples=200", "split.repeats=1", "figures=false", "tracking=none"]


@pytest.fixture
def run(monkeypatch):
    """Return a function that leaves the process's variables as they were."""
    monkeypatch.setattr(os, "environ", os.environ.copy())
    return fairbench.run


def test_a_run_comes_back_finished_and_shows_itself(run, tmp_path):
    words = [*WORDS, "method=baseline", f"results={tmp_path}"]
    first = run(words)
    assert run(words).id == first.id
    assert (first.metrics["metric"] == "equalized_odds").any()
    assert first.choices["method"] == "baseline"
    assert "gap in equalized odds" in first._repr_html_()
    runs = Catalogue(tmp_path)
    shown = runs._repr_html_()
    assert "1 finished run in" in shown and first.id in shown and "baseline" in shown
    assert "0 finished runs" in runs.only([])._repr_html_()
    pd.testing.assert_frame_equal(first.metrics, runs.metrics)
    printed = str(runs).splitlines()
    assert printed[0] == f"1 finished run in {tmp_path}"
    assert len(printed) == 3 and first.id in printed[2] and "learner" in printed[1]
    assert str(list(runs)) == f"[<run {first.id}: {first.name}>]"


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["method=baseline,ensemble"], "names several values"),
        ("dataset=adult", "words is a text: give a list"),
        (["dataset=simulated", "plan=true"], "plan=true returns no run"),
    ],
)
def test_what_cannot_be_run_is_refused(run, words, message, tmp_path):
    given = words if isinstance(words, str) else [*words, f"results={tmp_path}"]
    with pytest.raises(UserError, match=message):
        run(given)
