"""Jobs of a sweep that fail: a mistake is told once, and a fault of the code with its traceback."""

import pytest

from fairbench.cli import jobs
from fairbench.cli.main import main

SWEEP = ["run", "-m", "dataset.n_samples=200", "method=baseline,binomial_nll", "tracking=none"]


@pytest.mark.thorough
def test_a_fault_of_the_code_that_every_job_meets_is_shown_with_its_traceback(
    tmp_path, monkeypatch, capsys
):
    def broken(config):
        raise ZeroDivisionError("nobody foresaw this")

    monkeypatch.setattr(jobs.execute, "plan_run", broken)
    assert main([*SWEEP, f"results={tmp_path}"]) == 1
    printed = capsys.readouterr()
    text = printed.out + printed.err
    assert "0 runs finished, 0 skipped, 2 failed" in text
    assert "ZeroDivisionError" in text and "Traceback (most recent call last)" in text
    assert "jobs of this sweep" not in text
