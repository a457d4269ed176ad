"""What is shown of a sweep while it runs."""

from types import SimpleNamespace

from fairbench.cli.jobs import Outcome, SweepProgress


def test_counts_of_a_sweep_under_way(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    with SweepProgress(jobs=6, shown=True) as progress:
        assert list(progress.show_composing(["a", "b"])) == ["a", "b"]
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
