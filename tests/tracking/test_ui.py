"""Links of the UI, to the latest sweep that finished anything; ports that cannot be served at."""

import socket

import pytest

from fairbench.results.upkeep import keep_sweep
from fairbench.tracking.importer import comparison, latest_sweep, ui


def sweep(results, name, *outcomes):
    rows = [{"status": status, "run": run_id} for status, run_id in outcomes]
    keep_sweep(results / "sweeps" / name, "seed=0", rows)


def test_the_latest_sweep_with_finished_runs_is_found(tmp_path):
    assert latest_sweep(tmp_path).runs == ()
    sweep(tmp_path, "2026-01-01_09-00-00_1", ("finished", "old"))
    many = [("finished", f"run{number}") for number in range(12)]
    sweep(tmp_path, "2026-01-02_09-00-00_1", *many, ("failed", ""), ("finished", "run0"))
    sweep(tmp_path, "2026-01-03_09-00-00_1", ("failed", ""), ("skipped", ""))
    (tmp_path / "sweeps" / "2026-01-04_09-00-00_1" / "0").mkdir(parents=True)
    assert latest_sweep(tmp_path).runs == tuple(f"run{number}" for number in range(12))


def test_a_comparison_is_an_address_that_a_browser_takes():
    address = comparison("http://127.0.0.1:5000", ["a", "b"], "1")
    expected = "runs=%5B%22a%22%2C%22b%22%5D&experiments=%5B%221%22%5D"
    assert address == f"http://127.0.0.1:5000/#/compare-runs?{expected}"


def test_a_port_in_use_is_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert ui(port) == 2
    assert f"error: port {port} is in use" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("port", ["", "http", "99999999"])
def test_a_port_that_is_none_is_refused(port, capsys):
    assert ui(port) == 2
    assert f"error: '{port}' is no port" in capsys.readouterr().err
