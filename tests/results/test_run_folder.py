"""Files of a finished run that are missing or damaged are named, with what to do."""

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from fairbench.core.errors import UserError
from fairbench.results.catalogue import Catalogue
from fairbench.results.people import read_people, write_people
from fairbench.results.run_writer import RunTables, RunWriter
from fairbench.results.runs import Run

CONFIG = "learner:\n  rate: 1.0e-05\nseed: 0\nprotect: null\n"
METRICS = pd.DataFrame(
    {"variant": [""], "metric": ["error_rate"], "attribute": [""], "group": [""], 
     "status": ["ok"], "value": [0.5], "repeat": [0], "fold": [0]}
)  # fmt: skip
PREDICTIONS = pd.DataFrame(
    {"repeat": 0, "fold": 0, "part": [1, 2, 2], "row": [4, 0, 2],
     "prediction": [0.0, 1.0, np.nan], "score": [0.1, 0.7, np.nan], "sd": [0.1, 0.7, np.nan],
     "uncertainty": np.float64(np.float32([0.25, 0.3, 0.1]))}
)  # fmt: skip
READ = {
    "config.yaml": lambda run: run.config,
    "metrics.parquet": Run.metrics,
    "cells.txt": Run.cells,
    "predictions.parquet": Run.predictions,
}


@pytest.fixture
def folder(tmp_path, make_dataset):
    path = tmp_path / "runs" / "0123456789ab"
    tables = RunTables(METRICS, METRICS, PREDICTIONS)
    RunWriter(path).write(
        CONFIG, ["cell"], tables, make_dataset(), {"fingerprint": "x", "choices": {}}
    )
    return Run(path)


def test_what_was_written_is_read(folder, make_dataset):
    assert folder.config == {"learner": {"rate": 1e-5}, "seed": 0, "protect": None}
    assert folder.cells() == ["cell"]
    pd.testing.assert_frame_equal(folder.metrics(), METRICS)
    assert list(Catalogue(folder.results).runs) == ["0123456789ab"]


def test_predictions_are_read_bit_for_bit_and_rows_and_copies_stored_once(folder):
    pd.testing.assert_frame_equal(folder.predictions(), PREDICTIONS, check_dtype=False)
    some = folder.predictions(("prediction", "sd"))
    assert list(some) == ["repeat", "fold", "part", "row", "prediction", "sd"]
    names = pq.read_schema(folder.path / "predictions.parquet").names
    assert names == ["prediction", "score", "uncertainty"]
    assert len(list((folder.results / "splits").iterdir())) == 1


def test_people_are_read_as_they_were_loaded_and_only_the_owner_may_read_them(folder, make_dataset):
    data, people = make_dataset(), folder.people()
    assert (people.name, people.task, len(people)) == (data.name, data.task, len(data))
    assert (people.target.to_numpy() == data.target.to_numpy()).all()
    for attributes in ("sex", ["sex", "race"]):
        pd.testing.assert_series_equal(
            people.groups(attributes), data.groups(attributes), check_index=False
        )
    (path,) = (folder.results / "data").iterdir()
    assert path.stat().st_mode & 0o777 == 0o600
    assert not people.about.redistributable


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
        ("predictions.parquet", "x"),
    ],
)
def test_a_damaged_file_is_named(folder, name, content):
    (folder.path / name).write_text(content)
    with pytest.raises(UserError, match=rf"0123456789ab/{name} is missing or damaged: remove"):
        READ[name](Run(folder.path))


def test_weights_are_stored_beside_the_people_whom_an_earlier_run_stored_without(
    make_dataset, tmp_path
):
    plain = make_dataset()
    weights = [pd.Series(np.full(len(plain), each)) for each in (2.0, 3.0)]
    first, second = (make_dataset(weight=each) for each in weights)
    assert plain.digest == first.digest
    for data, expected in ((plain, None), (first, 2.0), (plain, 2.0), (second, 3.0)):
        write_people(tmp_path, data)
        read_people.cache_clear()
        weight = read_people(tmp_path, data.digest).weight
        assert (weight is None) if expected is None else (weight == expected).all()
