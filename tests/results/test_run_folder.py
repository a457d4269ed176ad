"""Files of a finished run that are missing or damaged are named, with what to do."""

import pandas as pd
import pytest

from fairbench.core.errors import UserError
from fairbench.results.collection import read_collection
from fairbench.results.runs import RunFolder

CONFIG = "learner:\n  rate: 1.0e-05\nseed: 0\nprotect: null\n"
METRICS = pd.DataFrame(
    {"variant": [""], "metric": ["error_rate"], "attribute": [""], "group": [""], 
     "status": ["ok"], "value": [0.5], "repeat": [0], "fold": [0]}
)  # fmt: skip
READ = {
    "config.yaml": RunFolder.config,
    "metrics.parquet": RunFolder.metrics,
    "cells.txt": RunFolder.cells,
}


@pytest.fixture
def folder(tmp_path):
    run = RunFolder(tmp_path / "runs" / "0123456789ab")
    run.write(CONFIG, ["cell"], METRICS, METRICS, {"fingerprint": "x", "choices": {}})
    return run


def test_what_was_written_is_read(folder):
    assert folder.config() == {"learner": {"rate": 1e-5}, "seed": 0, "protect": None}
    assert folder.cells() == ["cell"]
    pd.testing.assert_frame_equal(folder.metrics(), METRICS)
    assert list(read_collection(folder.path.parents[1]).runs) == ["0123456789ab"]


@pytest.mark.parametrize("name", READ)
def test_a_missing_file_is_named(folder, name):
    (folder.path / name).unlink()
    with pytest.raises(UserError, match=rf"0123456789ab/{name} is missing or damaged: remove"):
        READ[name](folder)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("config.yaml", ": [x"),
        ("config.yaml", "words"),
        ("config.yaml", ""),
        ("metrics.parquet", "x"),
    ],
)
def test_a_damaged_file_is_named(folder, name, content):
    (folder.path / name).write_text(content)
    for read in (READ[name], lambda run: read_collection(run.path.parents[1])):
        with pytest.raises(UserError, match=rf"0123456789ab/{name} is missing or damaged: remove"):
            read(folder)
