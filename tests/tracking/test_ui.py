"""Links of the UI; ports that cannot be served at."""

import socket

import pytest

from fairbench.tracking.importer import comparison, ui


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
