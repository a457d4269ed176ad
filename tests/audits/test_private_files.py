"""What is said of people is for who asked: files and folders that nobody else may enter."""

import os

import numpy as np
import pandas as pd
import pytest

from fairbench.cli.main import main

ASKED = ("target=label", "score=score", "group=sex")
STATE = "own/state.json"


@pytest.fixture
def loans(tmp_path, monkeypatch):
    draw = np.random.default_rng(0)
    score = draw.random(200).round(3)
    columns = {"sex": draw.choice(["women", "men"], 200), "score": score}
    label = (draw.random(200) < score).astype(int)
    pd.DataFrame({**columns, "label": label}).to_csv(tmp_path / "loans.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.thorough
@pytest.mark.parametrize("umask", [0o000, 0o027], ids=["an open umask", "a usual one"])
@pytest.mark.parametrize(
    "words",
    [
        ("audit", "loans.csv", *ASKED),
        ("audit", "loans.csv", *ASKED, "out=mine"),
        ("dossier", "model-card", "loans.csv", *ASKED, "out=mine"),
        ("label", "next", "loans.csv", *ASKED, f"state={STATE}"),
        ("watch", "loans.csv", *ASKED, f"state={STATE}", "out=mine"),
    ],
    ids=["audit", "out=", "dossier", "label", "watch"],
)
def test_others_may_read_nothing_that_is_said_of_people(words, umask, loans):
    (loans / "own").mkdir(mode=0o700)
    before = os.umask(umask)
    try:
        assert main(words) in (0, 3)
    finally:
        os.umask(before)
    written = [path for path in loans.rglob("*") if path.name not in ("loans.csv", "own")]
    assert any(path.is_file() for path in written)
    assert not [path for path in written if path.stat().st_mode & 0o077]
