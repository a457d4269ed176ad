"""Your own table: a CSV or Parquet file with a target and sensitive columns."""

import pandas as pd
import pytest

from datasets import table
from fairbench.core.errors import DataError, UserError
from fairbench.data.dataset import Task

FRAME = pd.DataFrame(
    {
        "hours": [1.0, 2.0, None, 4.0, 5.0, 6.0],
        "grade": ["NA", "b", "b", None, "c", "c"],
        "sex": ["f", "m", "m", None, "f", "m"],
        "passed": ["yes", "no", "no", "yes", "yes", "no"],
        "points": [1.5, 2.0, 3.5, 1.0, 0.0, 9.0],
        "id": range(6),
    }
)


@pytest.fixture
def load(archive, tmp_path):
    """Return a function that writes a frame and loads it."""

    def of(frame=FRAME, name="mine.csv", **options):
        path = tmp_path / name
        if name.endswith(".parquet"):
            frame.to_parquet(path)
        else:
            frame.to_csv(path, index=False)
        defaults = {"target": "passed", "sensitive": ["sex"], "positive": "yes", "drop": ["id"]}
        return table.load(archive, **{"path": str(path), **defaults, **options})

    return of


@pytest.mark.parametrize("name", ["mine.csv", "mine.parquet"])
def test_a_table_is_read(load, name):
    data = load(name=name)
    assert (data.name, data.task, data.positive_label) == ("mine", Task.BINARY, "yes")
    assert data.target.tolist() == [1, 0, 0, 1, 1, 0]
    assert data.sensitive["sex"].tolist() == ["f", "m", "m", "unknown", "f", "m"]
    assert data.privileged == {"sex": "m"}
    assert list(data.features) == ["hours", "grade", "sex", "points"]
    assert data.features["grade"].isna().tolist() == [False] * 3 + [True] + [False] * 2
    assert "NA" in data.features["grade"].cat.categories


def test_the_checksum_of_the_file_is_kept(load):
    first = load().sources[0].sha256
    assert load().sources[0].sha256 == first
    assert load(FRAME.iloc[:4]).sources[0].sha256 != first


def test_a_regression(load):
    data = load(target="points", positive=None)
    assert data.task is Task.REGRESSION
    assert data.target.tolist() == FRAME["points"].tolist()


def test_sensitive_columns_can_be_left_out(load):
    assert "sex" not in load(keep_sensitive=False).features


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"path": None}, "dataset=table needs dataset.path=FILE"),
        ({"path": "nowhere.csv"}, "dataset.path: no file nowhere.csv"),
        ({"target": "pased"}, "unknown column of .*'pased': did you mean passed"),
        ({"sensitive": ["race"]}, "unknown column of .*'race'"),
        ({"positive": None}, "dataset.positive must say which of no, yes in 'passed' is label 1"),
        ({"positive": "maybe"}, "unknown label of target 'passed' 'maybe'"),
        ({"target": "grade", "task": "binary"}, "target 'grade' is missing in row 4"),
        ({"target": "sex", "drop": []}, "target 'sex' is missing in row 4"),
        ({"target": "passed", "task": "regression"}, r"'yes' in row 1; a regression needs numbers"),
        ({"task": "ranking"}, "dataset.task is 'ranking': valid: binary, regression"),
        ({"privileged": {"sex": "x"}}, "privileged label 'x' of 'sex' is not one of f, m, unknown"),
    ],
)
def test_what_is_refused(load, options, message):
    with pytest.raises(UserError, match=message):
        load(**options)


def test_a_third_target_value(load):
    frame = FRAME.assign(passed=["yes", "no", "no", "perhaps", "yes", "no"])
    with pytest.raises(DataError, match=r"has 3 values \(no, perhaps, yes\).*\(see row 4\)"):
        load(frame, task="binary")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "cannot be read: No columns to parse"),
        (b"passed,sex\n", "no rows"),
        (b"passed,sex\nyes,m\nno,f,3\n", "cannot be read: .*Expected 2 fields in line 3, saw 3"),
        (b"passed,sex\nyes,m,3\nno,f,3\n", "cannot be read: .*does not match length of data"),
        (b"passed,sex\nyes,\xe9\n", "cannot be read: .*codec can't decode"),
        (b"<!doctype html><title>403</title>", "is a web page titled '403', not the data"),
    ],
)
def test_bad_files(archive, tmp_path, content, message):
    path = tmp_path / "mine.csv"
    path.write_bytes(content)
    with pytest.raises(DataError, match=message) as caught:
        table.load(archive, path=str(path), target="passed", sensitive=["sex"])
    assert str(path) in str(caught.value)


def test_weights_and_clusters_are_columns_that_are_no_features(load):
    frame = FRAME.assign(people=[3, 1, 0, 2.5, 1, 1], home=["x", "x", "y", "y", "z", "z"])
    data = load(frame, weight="people", clusters="home")
    assert data.weight.tolist() == frame["people"].tolist()
    assert data.clusters.tolist() == frame["home"].tolist()
    assert list(data.features) == ["hours", "grade", "sex", "points"]
    with pytest.raises(UserError, match="unknown column of .* 'peopel'"):
        load(frame, weight="peopel")
    with pytest.raises(DataError, match="weight 'people' is -1"):
        load(frame.assign(people=-1), weight="people")
    with pytest.raises(DataError, match="clusters 'home' is missing in row 2"):
        load(frame.assign(home=["x", None, *"yyzz"]), clusters="home")
