"""Your own table: a CSV, Excel, Parquet or Arrow file with a target and sensitive columns."""

import gzip
from decimal import Decimal

import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from fairbench.audits.columns import read_frame
from fairbench.audits.question import Options
from fairbench.components.datasets import table
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


def test_one_sensitive_column_needs_no_brackets(load):
    assert list(load(sensitive="sex").sensitive) == ["sex"]


def test_sensitive_columns_can_be_left_out(load):
    assert "sex" not in load(keep_sensitive=False).features


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"path": None}, "dataset=table needs dataset.path=FILE"),
        ({"path": "nowhere.csv"}, "dataset.path: no file nowhere.csv"),
        ({"target": "pased"}, "has no column 'pased'; did you mean 'passed'"),
        ({"sensitive": ["race"]}, "has no column 'race'"),
        ({"positive": None}, "dataset.positive must say which of no, yes in 'passed' is label 1"),
        ({"positive": "maybe"}, "unknown label of target 'passed' 'maybe'"),
        ({"target": "grade", "task": "binary"}, r"target 'grade' is missing in row 1 \('NA'\)"),
        ({"target": "sex", "drop": []}, "target 'sex' is missing in row 4"),
        ({"target": "passed", "task": "regression"}, r"'yes' in row 1; a regression needs numbers"),
        ({"task": "ranking"}, "dataset.task is 'ranking'; valid: binary, multiclass, regression"),
        ({"privileged": {"sx": "f"}}, "unknown sensitive column in dataset.privileged 'sx': did y"),
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


def test_several_classes_are_numbered_in_their_order(load):
    frame = FRAME.assign(passed=["high", "low", "low", "mid", "high", "low"])
    options = {"task": "multiclass", "positive": None}
    data = load(frame, **options)
    assert (data.classes, data.ordered) == (("high", "low", "mid"), False)
    data = load(frame, **options, classes=["low", "mid", "high"])
    assert (data.classes, data.ordered) == (("low", "mid", "high"), True)
    assert data.target.tolist() == [2, 0, 0, 1, 2, 0]
    numbered = load(FRAME.assign(passed=[10, 2, 2, 1, 10, 2]), **options)
    assert (numbered.classes, numbered.target.tolist()) == (("1", "2", "10"), [2, 1, 1, 0, 2, 1])
    with pytest.raises(DataError, match="'mid' in row 4, which dataset.classes does not name"):
        load(frame, **options, classes=["low", "medium", "high"])
    with pytest.raises(UserError, match=r"dataset.classes is of dataset.task=multiclass"):
        load(classes=["low", "high"])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no header line: is the file empty?"),
        (b"passed,sex\n", "no rows"),
        (b"passed,sex\nyes,m\nno,f,3\n", "row 2 has 3 fields separated by ',', expected 2"),
        (b"passed,sex\nyes,m,3\nno,f,3\n", "row 1 has 3 fields separated by ',', expected 2"),
        (b"passed,sex\nyes,m\nno\n", "row 2 has 1 fields separated by ',', expected 2"),
        (b"passed,sex\nyes,\x81\n", r"not UTF-8 text \(line 2, byte 15\)"),
        (b"passed,sex\nyes,m\0\nno,m\n", "line 2 holds a byte of value 0"),
        (b"\x1f\x8b\x08", "the gzip file is damaged or not whole"),
        (b"PAR1\x15\x04", "not a table in Parquet that can be read"),
        (b"passed,sex,sex\nyes,m,f\nno,f,m\n", "2 columns are named 'sex'"),
        (b"<!doctype html><title>403</title>", "not a table but a web page"),
    ],
)
def test_bad_files(archive, tmp_path, content, message):
    path = tmp_path / "mine.csv"
    path.write_bytes(content)
    with pytest.raises(DataError, match=message) as caught:
        table.load(archive, path=str(path), target="passed", sensitive=["sex"])
    assert path.name in str(caught.value)


@pytest.mark.parametrize(
    ("content", "positive"),
    [
        ("passed,sex,x\n1,m,0.5\n0,f,1.5\n".encode("utf-16"), 1),
        (b"passed;sex;x\nyes;m;0,5\nno;f;1,5\n", "yes"),
        (gzip.compress(b"passed\tsex\tx\nTrue\tm\t0.5\nFalse\tf\t1.5\n", mtime=0), True),
    ],
)
def test_files_of_many_kinds(archive, tmp_path, content, positive, capsys):
    path = tmp_path / "mine.csv"
    path.write_bytes(content)
    data = table.load(
        archive, path=str(path), target="passed", sensitive=["sex"], positive=positive
    )
    assert data.target.tolist() == [1, 0]
    assert data.features["x"].tolist() == [0.5, 1.5]
    assert capsys.readouterr().err.startswith("note: mine.csv was read as: ")


@pytest.mark.parametrize(
    ("content", "labels"),
    [
        (b"sex,y\n01,0\n1,1\n1.0,0\n,1\n", ["01", "1", "1.0", "unknown"]),
        (b"sex,y\nTrue,0\ntrue,1\nnan,0\nNA,1\n", ["True", "true", "nan", "NA"]),
        (b"sex,y\na,0\na ,1\n a,0\nA,1\n", ["a", "a ", " a", "A"]),
        (b'sex,y\r"a\nb",0\r"a, b",1\r', ["a\nb", "a, b"]),
        (b'\xef\xbb\xbf\r\n sex ,y,"a\nb"\r\na,0,2\r\nb,1,3\r\n', ["a", "b"]),
    ],
)
def test_labels_are_the_texts_of_the_file(archive, tmp_path, content, labels):
    path = tmp_path / "mine.csv"
    path.write_bytes(content)
    data = table.load(archive, path=str(path), target="y", sensitive=["sex"])
    assert data.sensitive["sex"].tolist() == labels
    assert data.target.tolist() == [0, 1, 0, 1][: len(labels)]
    audited = read_frame(Options(path=path, prediction="y", group=("sex",)))
    assert audited["sex"].replace("", "unknown").tolist() == labels


_NESTED = pa.array([["a"], ["b"]])


@pytest.mark.parametrize(
    ("column", "labels"),
    [
        (pa.array([1.0, None]), ["1", "unknown"]),
        (pa.array([True, None]), ["True", "unknown"]),
        (pa.array([Decimal("1.0"), Decimal("2.5")]), ["1.0", "2.5"]),
        (pa.array(["", "b"]).dictionary_encode(), ["unknown", "b"]),
        (_NESTED, "column 'sex' is of type list<element: string>, not a value in each row"),
        (pa.array([b"a", b"\xff"]), "column 'sex' is of type .* and has no text in each row"),
    ],
)
def test_labels_of_parquet(archive, tmp_path, column, labels):
    path = tmp_path / "mine.parquet"
    parquet.write_table(pa.table({"sex": column, "y": [0, 1]}), path)
    options = {"path": str(path), "target": "y", "sensitive": ["sex"]}
    if isinstance(labels, list):
        assert table.load(archive, **options).sensitive["sex"].tolist() == labels
        return
    with pytest.raises(DataError, match=labels):
        table.load(archive, **options)


def test_two_parquet_columns_of_one_name(archive, tmp_path):
    path = tmp_path / "mine.parquet"
    arrays = [pa.array(["a", "b"]), pa.array(["c", "d"]), pa.array([0, 1])]
    parquet.write_table(pa.Table.from_arrays(arrays, ["sex", "sex", "y"]), path)
    with pytest.raises(DataError, match="2 columns are named 'sex'"):
        table.load(archive, path=str(path), target="y", sensitive=["sex"])


def test_weights_and_clusters_are_columns_that_are_no_features(load):
    frame = FRAME.assign(people=[3, 1, 0, 2.5, 1, 1], home=["x", "x", "y", "y", "z", "z"])
    data = load(frame, weight="people", clusters="home")
    assert data.weight.tolist() == frame["people"].tolist()
    assert data.clusters.tolist() == frame["home"].tolist()
    assert list(data.features) == ["hours", "grade", "sex", "points"]
    with pytest.raises(UserError, match="has no column 'peopel'"):
        load(frame, weight="peopel")
    with pytest.raises(DataError, match="column 'people', row 1: '-1' is not a weight"):
        load(frame.assign(people=-1), weight="people")
    with pytest.raises(DataError, match="column 'home', row 2: '' is not a mark"):
        load(frame.assign(home=["x", None, *"yyzz"]), clusters="home")
