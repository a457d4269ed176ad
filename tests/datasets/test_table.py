"""Your own table: a CSV, Excel, Parquet or Arrow file with a target and sensitive columns."""

import gzip
from decimal import Decimal

import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from fairbench.audits.question import Options
from fairbench.audits.table import read_audit_table, read_frame
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
    data = table.load(archive, path=str(path), target="y", sensitive=["sex.1"])
    assert data.features.to_dict("list") == {"sex": ["a", "b"], "sex.1": ["c", "d"]}


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


def of_text(archive, tmp_path, text, **options):
    """Return the data set of a CSV file."""
    path = tmp_path / "mine.csv"
    path.write_text(text)
    return table.load(archive, path=str(path), **{"target": "y", "sensitive": ["sex"]} | options)


def with_column(values, name="x"):
    """Return a CSV file with a column of these values beside a sex and a target."""
    frame = pd.DataFrame({name: values})
    frame["sex"] = ["f", "m"] * (len(frame) // 2)
    return frame.assign(y=[0, 0, 1, 1] * (len(frame) // 4)).to_csv(index=False)


NUMBERS = [str(value) for value in range(100, 140)]


@pytest.mark.parametrize("word", ["", "NA", "N/A", "nan", "NULL", "None"])
def test_a_number_that_is_not_known_is_missing(archive, tmp_path, word, capsys):
    data = of_text(archive, tmp_path, with_column([*NUMBERS[:-1], word]))
    assert data.features["x"].tolist()[:-1] == list(range(100, 139))
    assert data.features["x"].isna().tolist() == [False] * 39 + [True]
    said = f"note: mine.csv: read as missing: x ({word})\n" if word else ""
    assert capsys.readouterr().err == said


@pytest.mark.parametrize(
    "text", ["?", "-", "$139", "13.5%", "\u2212139", "1 139", "1'139", "about"]
)
def test_a_text_among_numbers_is_refused_with_its_row(archive, tmp_path, text):
    with pytest.raises(DataError, match=r"mine.csv: column 'x', row 40: .* is no number") as caught:
        of_text(archive, tmp_path, with_column([*NUMBERS[:-1], text]))
    assert repr(text) in str(caught.value)
    assert "dataset.drop=[x]" in str(caught.value)
    for values in ([text] * 3 + NUMBERS[3:], NUMBERS[:19] + ["\u22121"] * 21):
        with pytest.raises(DataError, match="is no number"):
            of_text(archive, tmp_path, with_column(values))


@pytest.mark.parametrize("name", ["mine.csv", "mine.parquet"])
def test_a_number_that_is_infinite_is_refused_with_its_row(load, name):
    hours = [1.5, 2, float("inf"), 4, 5, 6]
    with pytest.raises(DataError, match="column 'hours', row 3: 'inf' is no number"):
        load(FRAME.assign(hours=hours), name=name)


def test_words_are_categories_even_if_some_are_numbers(archive, tmp_path):
    data = of_text(archive, tmp_path, with_column(["few", "many", "NA", "3"] * 10))
    assert list(data.features["x"].cat.categories) == ["3", "NA", "few", "many"]


@pytest.mark.parametrize("role", ["target", "weight", "feature"])
def test_a_comma_that_may_mark_thousands_is_refused(archive, tmp_path, role):
    text = with_column(["950", "1,234"] * 20)
    options = {"target": {"target": "x"}, "weight": {"weight": "x"}, "feature": {}}[role]
    with pytest.raises(DataError, match=r"mine.csv: column 'x', row 2: '1,234' has a comma that"):
        of_text(archive, tmp_path, text, **options)


def test_numbers_are_read_as_an_audit_reads_them(archive, tmp_path):
    texts = ["5,118E-01", "0,25", "1", ",5"] * 10
    data = of_text(archive, tmp_path, with_column(texts))
    assert data.features["x"].tolist() == [0.5118, 0.25, 1, 0.5] * 10
    options = Options(path=tmp_path / "mine.csv", target="y", score="x", group=("sex",))
    assert read_audit_table(options).score.tolist() == data.features["x"].tolist()


def test_row_numbers_without_a_name_are_no_feature(archive, tmp_path, capsys):
    frame = pd.DataFrame({"x": [3.5, 1, 2, 4], "sex": list("fmfm"), "y": [0, 0, 1, 1]})
    plain = of_text(archive, tmp_path, frame.to_csv(index=False))
    for first in (0, 1):
        numbered = frame.set_axis(range(first, first + 4))
        for text in (numbered.to_csv(), numbered.to_csv(index_label="Unnamed: 0")):
            data = of_text(archive, tmp_path, text)
            assert "left out: it has no name, and numbers the rows" in capsys.readouterr().err
            assert data.digest == plain.digest
    frame.set_axis([0, 1, 2, 4]).to_parquet(tmp_path / "mine.parquet")
    options = {"path": str(tmp_path / "mine.parquet"), "target": "y", "sensitive": ["sex"]}
    assert list(table.load(archive, **options).features) == ["x", "sex", "column 4"]
    assert "dataset.drop=[column 4] leaves it out" in capsys.readouterr().err
    for name in ("column 4", "__index_level_0__"):
        assert list(table.load(archive, **options, drop=[name]).features) == ["x", "sex"]
    text = frame.set_axis([0, 1, 2, 4]).to_csv()
    for name in ("column 1", ""):
        assert of_text(archive, tmp_path, text, drop=[name]).digest == plain.digest


RISK = "age,decile,decile,empty,sex,y\n67,9,1,,f,1\n28,3,2,,m,0\n43,2,3,,f,0\n62,3,4,,m,1\n"


@pytest.mark.parametrize(
    ("drop", "kept"),
    [
        ([], ["age", "decile", "decile.1", "sex"]),
        (["decile"], ["age", "sex"]),
        (["decile.1"], ["age", "decile", "sex"]),
    ],
)
def test_a_repeated_column_can_be_left_out_and_an_empty_one_is(
    archive, tmp_path, drop, kept, capsys
):
    data = of_text(archive, tmp_path, RISK, drop=drop)
    assert list(data.features) == kept
    assert capsys.readouterr().err == "note: mine.csv: 'empty' left out: every cell is empty\n"


def test_a_name_of_two_columns_is_no_name_of_one(archive, tmp_path):
    for options in ({"target": "decile"}, {"sensitive": ["decile"]}, {"weight": "decile"}):
        with pytest.raises(DataError, match=r"2 columns are named 'decile'.*drop=\[decile.1\]"):
            of_text(archive, tmp_path, RISK, **options)
    data = of_text(archive, tmp_path, RISK, target="decile", drop=["decile.1"])
    assert data.target.tolist() == [9, 3, 2, 3]
    data = of_text(archive, tmp_path, RISK, target="decile.1")
    assert data.target.tolist() == [1, 2, 3, 4]
    third = RISK.replace("decile,empty", "decile,decile.1")
    third = third.replace(",,", ",7,")  # has a name that the second would take
    assert of_text(archive, tmp_path, third, target="decile.1").target.tolist() == [7, 7, 7, 7]


@pytest.mark.parametrize(
    "values",
    [
        pd.date_range("2020-01-01", periods=400).strftime("%Y-%m-%d"),
        pd.date_range("2020-01-01", periods=40).repeat(10).strftime("%d.%m.%Y"),
        pd.date_range("2020-01-01", periods=40).repeat(10).strftime("%m/%d/%y 10:30"),
        [f"C-{i}" for i in range(400)],
        [f"street {i // 4}" for i in range(400)],
    ],
    ids=["days", "days of ten rows", "times", "identifiers", "streets of four rows"],
)
def test_dates_and_names_are_no_categories(archive, tmp_path, values):
    text = with_column(list(values), "when")
    with pytest.raises(DataError, match=r"mine.csv: 'when' would be .*dataset.drop=\[when\]"):
        of_text(archive, tmp_path, text)
    assert list(of_text(archive, tmp_path, text, drop=["when"]).features) == ["sex"]


def test_a_table_of_identifiers_alone_has_no_features(archive, tmp_path):
    with pytest.raises(DataError, match="no column is left as a feature"):
        of_text(archive, tmp_path, with_column([""] * 40), keep_sensitive=False)
    with pytest.raises(UserError, match="column 'y' is to be left out, and is asked for"):
        of_text(archive, tmp_path, RISK, drop=["y"])
