"""What is shown of a sweep while it runs, and of jobs that fail."""

from types import SimpleNamespace

import pytest

from fairbench.cli import jobs
from fairbench.cli.jobs import Outcome, SweepProgress
from fairbench.cli.main import main


def test_counts_of_a_sweep_under_way(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    with SweepProgress(jobs=6, shown=True) as progress:
        progress.outcome(Outcome("skipped", "odd", message="it does not fit"))
        progress.add_planned(SimpleNamespace(cells=20, stored={"x", "y"}))
        for fresh in (True, True, None, False):
            progress.cell(fresh)
        progress.outcome(Outcome("finished", "good"))
        progress.outcome(Outcome("failed", "bad", message="boom"))
        assert progress.line == "2 fitted, 3 cached, 1 failed; jobs: 1 of 6, 1 skipped, 1 failed"
    assert "skipped: odd: it does not fit" in capsys.readouterr().err


def test_without_a_terminal_each_end_is_a_line(capsys):
    with SweepProgress(jobs=1) as progress:
        progress.cell(True)
        progress.outcome(Outcome("failed", "bad", message="boom"))
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("  failed: bad: boom\n", "")


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
