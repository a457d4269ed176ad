"""Files of a finished run that are missing or damaged are named, with what to do."""

import io
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from benchmarks.stored import configured, copied, laid_out, run_of
from fairbench.core.errors import UserError
from fairbench.core.files import sealed_json
from fairbench.core.text import csv_text, read_csv
from fairbench.results import runs
from fairbench.results.catalogue import Catalogue
from fairbench.results.tables import _rows, people_path, read_people, write_people
from tests.harness import quick
from tests.studies import RECORD

KNOWN = configured(RECORD, {"learner.rate": 1e-5})
CONFIG, RUN = KNOWN["config"], run_of(KNOWN)
METRICS = pd.DataFrame(
    {"variant": [""], "metric": ["error_rate"], "statistic": ["value"], "attribute": [""],
     "group": [""], "n": [10], "status": ["ok"], "reason": [""], "value": [0.5], "repeat": [0],
     "fold": [0], "mean": [0.5], "sd": [0.1], "lower": [0.4], "upper": [0.6], "binning": [""]}
)  # fmt: skip
PREDICTIONS = pd.DataFrame(
    {"repeat": 0, "fold": 0, "part": [1, 2, 2], "row": [4, 0, 2],
     "prediction": [0.0, 1.0, np.nan], "score": [0.1, 0.7, np.nan], "sd": [0.1, 0.7, np.nan],
     "uncertainty": np.float64(np.float32([0.25, 0.3, 0.1]))}
)  # fmt: skip
READ = {
    "config.yaml": lambda run: run.content("config.yaml"),
    "summary.csv": runs.Run.summary,
    "metrics.parquet": runs.Run.all_metrics,
    "cells.txt": runs.Run.cells,
    "predictions.parquet": runs.Run.predictions,
}


WRITTEN = {"metrics": METRICS, "summary": METRICS, "predictions": PREDICTIONS}


@pytest.fixture
def folder(tmp_path, make_dataset):
    path = tmp_path / "runs" / RUN
    runs.RunWriter(path).write(CONFIG, ["cell"], WRITTEN, make_dataset(), KNOWN)
    return runs.Run(path)


def test_what_was_written_is_read_bit_for_bit_and_rows_and_copies_stored_once(folder):
    assert folder.config == yaml.safe_load(folder.content("config.yaml")) == CONFIG
    pd.testing.assert_frame_equal(folder.all_metrics(), METRICS)
    pd.testing.assert_frame_equal(folder.predictions(), PREDICTIONS, check_dtype=False)
    some = folder.predictions(("prediction", "sd"))
    assert list(some) == ["repeat", "fold", "part", "row", "prediction", "sd"]
    names = folder.read_parquet("predictions").column_names
    assert names == ["prediction", "score", "uncertainty"]
    assert len(list((folder.results / "splits").iterdir())) == 1


def test_people_are_read_as_they_were_loaded_and_only_the_owner_may_read_them(folder, make_dataset):
    data, people = make_dataset(), folder.people()
    assert (people.name, people.task, len(people)) == (data.name, data.task, len(data))
    assert (people.target.to_numpy() == data.target.to_numpy()).all()
    for attributes in ("sex", ["sex", "race"]):
        assert people.groups(attributes).tolist() == data.groups(attributes).tolist()
    (path,) = (folder.results / "data").iterdir()
    assert path.stat().st_mode & 0o777 == 0o600
    assert not people.redistributable


@pytest.mark.parametrize("change", [None, lambda content: content[:-2] + b"x" + content[-1:]])
@pytest.mark.parametrize("name", READ)
def test_a_missing_or_damaged_file_is_named(folder, name, change):
    """Of a run that keeps each file by itself, as those of earlier versions do."""
    whole = read_all(folder)
    path = laid_out(folder.path) / name
    assert read_all(runs.Run(folder.path)) == whole
    content = path.read_bytes()
    path.unlink()
    if change:
        path.write_bytes(change(content))
    with pytest.raises(UserError, match=rf"{RUN}/{name} is missing or damaged: repeat"):
        READ[name](runs.Run(folder.path))


def read_all(run):
    return {name: run.content(name) for name in READ}


@pytest.mark.parametrize("step", quick([7, 41], [41]))
def test_of_tables_that_are_missing_or_damaged_no_more_is_read_than_was_written(folder, step):
    path, whole = folder.path / runs.TABLES, read_all(folder)
    content = path.read_bytes()
    found = 0
    for at in range(0, len(content), step):
        path.write_bytes(content[:at] + bytes([content[at] ^ 4]) + content[at + 1 :])
        for name in READ:
            try:
                assert runs.Run(folder.path).content(name) == whole[name]
            except UserError as error:
                assert f"{RUN}/{runs.TABLES} is missing or damaged: repeat" in str(error)
                found += 1
    assert found
    path.unlink()
    assert sorted(runs.Run(folder.path).damaged_files()) == sorted(READ)


def test_a_run_that_is_made_again_keeps_its_files_in_one(folder, make_dataset):
    laid_out(folder.path)
    runs.RunWriter(folder.path).write(CONFIG, ["cell"], WRITTEN, make_dataset(), KNOWN)
    assert {path.name for path in folder.path.iterdir()} == {runs.TABLES, "environment.json"}


def test_a_run_is_finished_while_all_its_files_are_whole(folder, capsys):
    writer = runs.RunWriter(folder.path)
    assert writer.is_finished("x")
    assert not writer.is_finished("other code")
    (folder.path / runs.TABLES).write_text("x")
    assert not writer.is_finished("x")
    assert f"{runs.TABLES} is not as it was written: set aside as" in capsys.readouterr().err
    assert not writer.is_finished("x")
    assert not capsys.readouterr().err  # it is missing now, and said once


def test_a_strangers_folder_names_no_other_path(folder):
    known = folder.environment
    (laid_out(folder.path) / "cells.txt").write_text("../../home")
    runs.seal_run(folder.path, known)
    with pytest.raises(UserError, match=r"cells\.txt is missing or damaged"):
        runs.Run(folder.path).cells()


@pytest.mark.parametrize("shared", ["data", "splits"])
def test_a_run_is_not_finished_without_what_runs_share(folder, shared):
    (path,) = (folder.results / shared).iterdir()
    path.write_bytes(path.read_bytes()[:-1])
    _rows.cache_clear()
    assert not runs.RunWriter(folder.path).is_finished("x")
    assert [file.name.startswith(f"{path.name}.damaged-") for file in path.parent.iterdir()]


def test_a_run_whose_record_is_damaged_is_left_out_and_named(folder, capsys):
    path = folder.path / "environment.json"
    path.write_text(path.read_text().replace('"fingerprint": "x"', '"fingerprint": "y"'))
    assert not Catalogue(folder.results).runs
    assert f"left out of {folder.results / 'runs'}: {RUN}" in capsys.readouterr().err
    assert not runs.RunWriter(folder.path).is_finished("y")


ODD = yaml.safe_load(Path(__file__).with_name("odd_records.yaml").read_text())


@pytest.mark.parametrize("changed", ODD["records"], ids=str)
def test_a_record_of_another_shape_is_that_of_no_finished_run(folder, changed):
    record = dict(folder.environment)
    for name, value in changed.items():
        group, _, option = name.partition(".")
        record[group] = {**record[group], option: value} if option else value
    (folder.path / "environment.json").write_text(sealed_json(record))
    assert runs.read_environment(folder.path) == {}


@pytest.mark.parametrize("changed", ODD["configurations"], ids=str)
def test_a_configuration_that_is_more_than_data_is_that_of_no_run(folder, changed):
    assert runs.read_environment(copied(folder.path, configured(folder.environment, changed))) == {}


def test_a_configuration_that_names_columns_is_read(folder):
    """As a survey calls them, such as the one on behavioural risk."""
    files = {"files": folder.environment["files"]}
    for columns in ({"_RACE": "a b"}, {"sex/age": 1.5, "": None}):
        record = configured(folder.environment, {"dataset.privileged": columns})
        assert runs.read_environment(copied(folder.path, record)) == record | files


def test_people_of_another_data_set_are_refused_under_its_name(folder, make_dataset):
    one, other = make_dataset(seed=1), make_dataset(seed=2)
    for data in (one, other):
        write_people(folder.results, data)
    people_path(folder.results, one.digest).replace(people_path(folder.results, other.digest))
    with pytest.raises(UserError, match="missing or damaged"):
        read_people(folder.results, other.digest)


def test_weights_are_stored_beside_the_people_whom_an_earlier_run_stored_without(
    make_dataset, tmp_path
):
    plain = make_dataset()
    weights = [pd.Series(np.full(len(plain), weight)) for weight in (2.0, 3.0)]
    first, second = (make_dataset(weight=weight) for weight in weights)
    assert plain.digest == first.digest
    for data, expected in ((plain, None), (first, 2.0), (plain, 2.0), (second, 3.0)):
        write_people(tmp_path, data)
        read_people.cache_clear()
        weight = read_people(tmp_path, data.digest).weight
        assert (weight is None) if expected is None else (weight == expected).all()


@pytest.mark.parametrize("first", ["", "\r"])
@pytest.mark.parametrize("rows", [6, 0])
def test_all_kinds_of_columns_are_written_as_csv_value_by_value(rows, first):
    labels = [first, "a,b", 'say "so"', "two\nlines", "NA", None]
    numbers = [0.1, -0.0, 5e-324, np.inf, 1e16, np.nan]
    whole = pd.DataFrame({"label": labels, "kind": pd.Categorical([*labels[:2], None] * 2)})
    table = whole.assign(
        **{"=number": numbers, "n": range(6), "bins": pd.array([15, None, 2] * 2, "Int64")},
        none=pd.Series([None] * 6, dtype=object), kindless=pd.Categorical([None] * 6, []),
    ).iloc[:rows]  # fmt: skip
    text = csv_text(table)
    again = read_csv(io.BytesIO(text.encode()), ["label"])
    assert list(again) == list(table)
    assert list(again["label"]) == list(table["label"].fillna(""))
    for name in list(table)[2:]:
        written = pd.to_numeric(table[name]).astype(float)
        np.testing.assert_array_equal(again[name].astype(float), written)
    quoted = "\r" in text.replace("\r\n", "")
    assert text.startswith('"label","kind","\'=number"' if quoted else "label,kind,'=number")


def test_every_number_is_written_with_all_its_digits():
    draw = np.random.default_rng(0)
    any_bits = draw.integers(0, 2**63, 20_000).view(np.float64)
    for values in (any_bits, draw.integers(0, 999, 9999) / 997, draw.random(9999).round(4)):
        lines = csv_text(pd.DataFrame({"number": values, "text": "a"})).splitlines()[1:]
        again = [float(line.partition(",")[0] or "nan") for line in lines]
        np.testing.assert_array_equal(again, values)
