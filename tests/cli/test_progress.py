"""What is shown of a sweep while it runs, from the files its jobs leave."""

import pytest

from fairbench.cli.outcome import Outcome
from fairbench.cli.progress import PROGRESS, JobProgress, SweepWatch, watched


@pytest.fixture
def sweep(tmp_path):
    """Return the folders of six jobs: two finished, one skipped, failed, running, waiting each."""
    folders = [tmp_path / str(number) for number in range(6)]
    ten = {str(cell): True for cell in range(10)}
    for folder, computed in zip(folders, (10, 4), strict=False):
        JobProgress(folder).prepared(10)
        Outcome("finished", "done", computed=computed, cells=ten).write(folder)
    JobProgress(folders[2])
    Outcome("skipped", "odd", message="it does not fit").write(folders[2])
    for folder in folders[3:5]:
        progress = JobProgress(folder)
        progress.prepared(20)
        for fresh in (True, False, True):
            progress.cell(fresh)
        progress._write()
    return folders


def test_counts_of_a_sweep_under_way(sweep):
    watch = SweepWatch(sweep)
    watch.look()
    Outcome("failed", "bad", message="boom").write(sweep[3])
    assert [outcome.line for outcome in watch.look()] == ["failed: bad: boom"]
    # Fitted: 10 + 4 + 2 + 2; in the store: 6 + 1 + 1; the failed job did 3 of its 20.
    assert watch.line() == "18 fitted, 8 cached, 17 failed; jobs: 2 of 6, 1 skipped, 1 failed"
    # The waiting job is taken to have as many cells as the mean of those that said.
    assert watch.cells() == (26, 10 + 10 + 20 + 20 + 15)


def test_half_written_state_is_looked_at_again(sweep):
    watch = SweepWatch(sweep)
    watch.look()
    before = watch.cells()
    (sweep[4] / PROGRESS).write_text('{"total": 2')
    assert watch.look() == []
    assert watch.cells() == before


def test_nothing_known_is_nothing_done(tmp_path):
    watch = SweepWatch([tmp_path / "0"])
    assert watch.look() == []
    assert watch.cells() == (0, 0)


def test_shown_on_a_terminal_only(sweep, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    with watched(sweep):
        pass
    assert capsys.readouterr().err == ""
    with watched(sweep, shown=True):
        pass
    assert "skipped: odd: it does not fit" in capsys.readouterr().err
