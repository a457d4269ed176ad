"""Your own table: a CSV, Excel, Parquet or Arrow file with a target and sensitive columns."""

import gzip
import hashlib
import re
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from fairbench.audits.question import Options
from fairbench.audits.table import read_audit_table, read_frame
from fairbench.components.datasets import table
from fairbench.core.errors import DataError, UserError
from fairbench.data.dataset import Task
from tests.datasets.raw_files import FOLDER

FRAME = pd.read_csv(FOLDER / "table" / "mine.csv", na_values=[""], keep_default_na=False)


@pytest.fixture
def load(archive, tmp_path):
    """Return a function that writes a frame, or a file's content, and loads it."""

    def of(content=FRAME, name="mine.csv", **options):
        path = tmp_path / name
        defaults = {"target": "y", "sensitive": ["sex"]}
        if isinstance(content, pd.DataFrame):
            defaults = {"target": "passed", "positive": "yes", "sensitive": ["sex"], "drop": ["id"]}
            content.to_csv(path, index=False) if name.endswith("csv") else content.to_parquet(path)
        elif isinstance(content, pa.Table):
            parquet.write_table(content, path)
        else:
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        return table.load(archive, **{"path": str(path), **defaults, **options})

    return of


@pytest.mark.parametrize("name", ["mine.csv", "mine.parquet"])
def test_a_table_is_read(load, name):
    data = load(name=name, sensitive="sex")
    assert (data.name, data.task, data.positive_label) == ("mine", Task.BINARY, "yes")
    assert data.target.tolist() == [1, 0, 0, 1, 1, 0]
    assert data.sensitive["sex"].tolist() == ["f", "m", "m", "unknown", "f", "m"]
    assert data.privileged == {"sex": "m"}
    assert list(data.features) == ["hours", "grade", "sex", "points"]
    assert data.features["grade"].isna().tolist() == [False] * 3 + [True] + [False] * 2
    assert "NA" in data.features["grade"].cat.categories


def test_the_checksum_of_the_file_is_kept(load, tmp_path):
    (source,) = load().sources
    assert source.sha256 == hashlib.sha256((tmp_path / "mine.csv").read_bytes()).hexdigest()


def test_a_regression_without_the_sensitive_columns(load):
    data = load(target="points", positive=None, keep_sensitive=False)
    assert data.task is Task.REGRESSION
    assert data.target.tolist() == FRAME["points"].tolist()
    assert list(data.features) == ["hours", "grade", "passed"]


@pytest.mark.parametrize("name", ["mine.csv", "mine.parquet"])
@pytest.mark.parametrize(
    ("column", "values", "options", "message"),
    [
        (
            "passed",
            ["yes", "no", "no", "perhaps", "yes", "no"],
            {"task": "binary"},
            r"has 3 values \(no, perhaps, yes\).*\(see row 4\)",
        ),
        (
            "passed",
            ["high", "low", "low", "mid", "high", "low"],
            {"task": "multiclass", "positive": None, "classes": ["low", "medium", "high"]},
            "'mid' in row 4, which dataset.classes does not name",
        ),
        ("hours", [1.5, 2, np.inf, 4, 5, 6], {}, "column 'hours', row 3: 'inf' is no number"),
        ("people", -1, {"weight": "people"}, "column 'people', row 1: '-1' is not a weight"),
        ("home", ["x", None, *"yyzz"], {"clusters": "home"}, "'home', row 2: '' is not a mark"),
    ],
)
def test_values_that_are_refused(load, name, column, values, options, message):
    with pytest.raises(UserError, match=message):
        load(FRAME.assign(**{column: values}), name, **options)


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


def test_bad_files(load):
    for content, message in (
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
    ):
        with pytest.raises(DataError, match=f"mine.csv.*{message}"):
            load(content, target="passed")


def test_files_of_many_kinds(load, capsys):
    for content, positive in (
        ("passed,sex,x\n1,m,0.5\n0,f,1.5\n".encode("utf-16"), 1),
        (b"passed;sex;x\nyes;m;0,5\nno;f;1,5\n", "yes"),
        (gzip.compress(b"passed\tsex\tx\nTrue\tm\t0.5\nFalse\tf\t1.5\n", mtime=0), True),
    ):
        data = load(content, target="passed", positive=positive)
        assert data.target.tolist() == [1, 0]
        assert data.features["x"].tolist() == [0.5, 1.5]
        assert capsys.readouterr().err.startswith("note: mine.csv was read as: ")


def test_decimal_commas_are_numbers_and_points_beside_them_are_asked(load):
    lines = ["x;sex;y", "0,5;f;0", ";m;1", "-1234,25;f;0", "2;m;1"]
    read = load("\n".join(lines)).features["x"]
    np.testing.assert_array_equal(read, [0.5, np.nan, -1234.25, 2])
    ends = (";z", ";1.000", ";1.001", ";2.500", ";1.003")
    with pytest.raises(DataError, match="column 'z', row 1: '1.000' has a point that may be a"):
        load("\n".join(map("".join, zip(lines, ends, strict=True))))


LABELS = [
    (b"sex,y\n01,0\n1,1\n1.0,0\n,1\n", ["01", "1", "1.0", "unknown"]),
    (b"sex,y\nTrue,0\ntrue,1\nnan,0\nNA,1\n", ["True", "true", "nan", "NA"]),
    (b"sex,y\na,0\na ,1\n a,0\nA,1\n", ["a", "a ", " a", "A"]),
    (b'sex,y\r"a\nb",0\r"a, b",1\r', ["a\nb", "a, b"]),
    (b'\xef\xbb\xbf\r\n sex ,y,"a\nb"\r\na,0,2\r\nb,1,3\r\n', ["a", "b"]),
    (pa.array([1.0, None]), ["1", "unknown"]),
    (pa.array([1.0, float("nan")]), ["1", "unknown"]),
    (pa.array([2, None]).dictionary_encode(), ["2", "unknown"]),
    (pa.array([2**53 + 1, None]), ["9007199254740993", "unknown"]),
    (pa.array([True, None]), ["True", "unknown"]),
    (pa.array([Decimal("1.0"), Decimal("2.5")]), ["1.0", "2.5"]),
    (pa.array(["", "b"]).dictionary_encode(), ["unknown", "b"]),
]


@pytest.mark.parametrize(("content", "labels"), LABELS)
def test_labels_are_the_texts_of_the_file(load, tmp_path, content, labels):
    name = "mine.csv" if isinstance(content, bytes) else "mine.parquet"
    data = load(content if name == "mine.csv" else pa.table({"sex": content, "y": [0, 1]}), name)
    assert data.sensitive["sex"].tolist() == labels
    assert data.target.tolist() == [0, 1, 0, 1][: len(labels)]
    audited = read_frame(Options(path=tmp_path / name, prediction="y", group=("sex",)))
    assert audited["sex"].replace("", "unknown").tolist() == labels


def test_columns_of_parquet_that_are_no_labels(load):
    for columns, names, sentence in (
        ([[["a"], ["b"]]], ["sex"], "is of type list<element: string>, not a value in each row"),
        ([[b"a", b"\xff"]], ["sex"], "column 'sex' is of type .* and has no text in each row"),
        ([["a", "b"], ["c", "d"]], ["sex", "sex"], "2 columns are named 'sex'"),
    ):
        content = pa.Table.from_arrays([*map(pa.array, columns), pa.array([0, 1])], [*names, "y"])
        with pytest.raises(DataError, match=sentence):
            load(content, "mine.parquet")
        if len(names) == 2:
            features = load(content, "mine.parquet", sensitive=["sex.1"]).features
            assert features.to_dict("list") == {"sex": ["a", "b"], "sex.1": ["c", "d"]}


def test_weights_and_clusters_are_columns_that_are_no_features(load):
    frame = FRAME.assign(people=[3, 1, 0, 2.5, 1, 1], home=["x", "x", "y", "y", "z", "z"])
    data = load(frame, weight="people", clusters="home")
    assert data.weight.tolist() == frame["people"].tolist()
    assert data.clusters.tolist() == frame["home"].tolist()
    assert list(data.features) == ["hours", "grade", "sex", "points"]


def with_column(values, name="x"):
    """Return a CSV file with a column of these values beside a sex and a target."""
    frame = pd.DataFrame({name: values})
    frame["sex"] = ["f", "m"] * (len(frame) // 2)
    return frame.assign(y=[0, 0, 1, 1] * (len(frame) // 4)).to_csv(index=False)


NUMBERS = [str(value) for value in range(100, 140)]


@pytest.mark.parametrize("word", ["", "NA", "N/A", "nan", "NULL", "None"])
def test_a_number_that_is_not_known_is_missing(load, word, capsys):
    data = load(with_column([*NUMBERS[:-1], word]))
    np.testing.assert_array_equal(data.features["x"], [*range(100, 139), np.nan])
    said = f"note: mine.csv: read as missing: x ({word})\n" if word else ""
    assert capsys.readouterr().err == said


@pytest.mark.parametrize(
    "text",
    ["?", "-", "$139", "13.5%", "\u2212139", "about"]
    + [f"1{sign}139" for sign in (" ", "'", "\u2019", "\u202f", "\u00a0")],
)
def test_a_text_among_numbers_is_refused_with_its_row(load, text, tmp_path):
    said = rf"mine.csv: column 'x', row 40: {re.escape(repr(text))} is no number.*drop=\[x\]"
    with pytest.raises(DataError, match=said):
        load(with_column([*NUMBERS[:-1], text]))
    with pytest.raises(UserError, match="column 'x', row 40: "):
        read_audit_table(scored(tmp_path))
    for values in ([text] * 3 + NUMBERS[3:], NUMBERS[:19] + ["\u22121"] * 21):
        with pytest.raises(DataError, match="is no number"):
            load(with_column(values))


def scored(folder):
    """Return what an audit of such a table is asked."""
    return Options(path=folder / "mine.csv", target="y", score="x", group=("sex",))


def test_words_are_categories_even_if_some_are_numbers(load):
    data = load(with_column(["few", "many", "NA", "3"] * 10))
    assert list(data.features["x"].cat.categories) == ["3", "NA", "few", "many"]


def test_row_numbers_without_a_name_are_no_feature(load, capsys):
    frame = pd.DataFrame({"x": [3.5, 1, 2, 4], "sex": list("fmfm"), "y": [0, 0, 1, 1]})
    plain = load(frame.to_csv(index=False))
    for first in (0, 1):
        numbered = frame.set_axis(range(first, first + 4))
        for text in (numbered.to_csv(), numbered.to_csv(index_label="Unnamed: 0")):
            data = load(text)
            assert "left out: it has no name, and numbers the rows" in capsys.readouterr().err
            assert data.digest == plain.digest
    other = frame.set_axis([0, 1, 2, 4])
    of_parquet = {"name": "mine.parquet", "target": "y", "positive": None}
    assert list(load(other, **of_parquet, drop=[]).features) == ["x", "sex", "column 4"]
    assert "dataset.drop=[column 4] leaves it out" in capsys.readouterr().err
    for name in ("column 4", "__index_level_0__"):
        assert list(load(other, **of_parquet, drop=[name]).features) == ["x", "sex"]
    for name in ("column 1", ""):
        assert load(other.to_csv(), drop=[name]).digest == plain.digest


RISK = "age,decile,decile,empty,sex,y\n67,9,1,,f,1\n28,3,2,,m,0\n43,2,3,,f,0\n62,3,4,,m,1\n"


def test_a_name_of_two_columns_is_no_name_of_one(load, tmp_path):
    for options in ({"target": "decile"}, {"sensitive": ["decile"]}, {"weight": "decile"}):
        with pytest.raises(DataError, match=r"2 columns are named 'decile'.*drop=\[decile.1\]"):
            load(RISK, **options)
    data = load(RISK, target="decile", drop=["decile.1"])
    assert data.target.tolist() == [9, 3, 2, 3]
    data = load(RISK, target="decile.1")
    assert data.target.tolist() == [1, 2, 3, 4]
    columns = pd.DataFrame({"sex": [*"fmfm"], "x": [3, 1, 2, 5], "y": [0, 1, 1, 0]})
    twice = pd.concat([columns, columns[["x"]]], axis=1)
    load(twice.to_csv(index=False))
    for source in (None, twice):  # equal ones are one
        read = read_frame(scored(tmp_path), source=source)
        assert read["x"].astype(float).tolist() == [3, 1, 2, 5]
    third = RISK.replace("decile,empty", "decile,decile.1")
    third = third.replace(",,", ",7,")  # has a name that the second would take
    assert load(third, target="decile.1").target.tolist() == [7, 7, 7, 7]


DAYS = pd.date_range("2020-01-01", periods=400)
TENS = DAYS[:40].repeat(10)


@pytest.mark.parametrize(
    "values",
    [
        DAYS.strftime("%Y-%m-%d"),
        TENS.strftime("%d.%m.%Y"),
        TENS.strftime("%m/%d/%y 10:30"),
        [f"C-{i}" for i in range(400)],
        [f"street {i // 4}" for i in range(400)],
    ],
    ids=["days", "days of ten rows", "times", "identifiers", "streets of four rows"],
)
def test_dates_and_names_are_no_categories(load, values):
    text = with_column(list(values), "when")
    with pytest.raises(DataError, match=r"mine.csv: 'when' would be .*dataset.drop=\[when\]"):
        load(text)
    assert list(load(text, drop=["when"]).features) == ["sex"]


def test_a_table_of_identifiers_alone_has_no_features(load):
    with pytest.raises(DataError, match="no column is left as a feature"):
        load(with_column([""] * 40), keep_sensitive=False)
    with pytest.raises(UserError, match="column 'y' is to be left out, and is asked for"):
        load(RISK, drop=["y"])
