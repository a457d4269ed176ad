"""The distinct rows of a Parquet file with their numbers say what all of its rows say."""

import json
import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from fairbench.cli.main import main
from fairbench.data import tables as distinct
from fairbench.data.columns import tally, times_of
from fairbench.data.tables import distinct_rows, read_any_table


def people(n, seed=0):
    """Return rows of groups of several sizes, with decisions that depend on group and label."""
    draw = np.random.default_rng(seed)
    sex = draw.choice(["women", "men"], n, p=[0.4, 0.6])
    region = draw.choice(
        ["north", "south", "east", " east", None], n, p=[0.5, 0.3, 0.15, 0.04, 0.01]
    )
    repaid = draw.random(n) < np.where(sex == "women", 0.6, 0.5)
    decided = draw.random(n) < np.where(sex == "women", 0.35, 0.45) + 0.3 * repaid
    return pd.DataFrame({"sex": sex, "region": region, "repaid": repaid, "granted": decided})


def written(frame, path, **options):
    parquet.write_table(pa.Table.from_pandas(frame, preserve_index=False), path, **options)
    return path


@pytest.fixture
def few_are_many(monkeypatch):
    """Have tables of a few rows read as those of millions, in small batches."""
    monkeypatch.setattr(distinct, "MANY_ROWS", 1)
    monkeypatch.setattr(distinct, "_BATCH", 97)


COLUMNS = {
    "texts": ["b", "a", "b", None, "a", ""],
    "whole": [3, 1, 3, None, 1, 2],
    "truths": [True, False, None, True, True, False],
    "numbers": [0.5, 1.0, float("nan"), 0.5, None, 1.0],
    "categories": pd.Categorical(["x", "y", "x", None, "y", "x"]),
}


def test_they_are_the_rows_of_the_table_in_the_order_of_their_first(tmp_path, few_are_many):
    table = pd.DataFrame(COLUMNS).sample(1000, replace=True, random_state=3)
    path = written(table, tmp_path / "t.parquet", row_group_size=61)
    whole, few = read_any_table(path, list(table)), distinct_rows(path, list(table))
    groups = whole.groupby(list(table), sort=False)
    expected = whole.drop_duplicates()
    pd.testing.assert_frame_equal(few, expected)
    assert times_of(few).tolist() == groups.size().tolist()
    assert times_of(whole) is None


def test_too_many_distinct_rows_are_not_counted(tmp_path, monkeypatch, few_are_many):
    monkeypatch.setattr(distinct, "_BATCH", 1000)
    monkeypatch.setattr(distinct, "MOST_DISTINCT", 50)
    path = written(pd.DataFrame({"a": range(60), "b": 0}), tmp_path / "t.parquet")
    assert distinct_rows(path, ["a"]) is None
    assert distinct_rows(path, ["a", "b"]) is None
    assert len(distinct_rows(path, ["b"])) == 1
    grid = pd.DataFrame({"a": np.arange(100) % 10, "b": np.arange(100) // 10})
    assert distinct_rows(written(grid, path), ["a", "b"]) is None


def test_a_tally_is_exact():
    codes, times = np.array([0, 2, 2]), np.array([2**52, 2**51, 1])
    assert tally(codes, times).tolist() == [2**52, 0, 2**51 + 1]
    assert tally(codes, least=4).tolist() == [1, 0, 2, 0]


def audited(path, out, capsys, *words):
    status = main(["audit", f"path={path}", *words, f"out={out}"])
    printed = capsys.readouterr()
    pages = {page.suffix: page for page in out.glob("*")} if status == 0 else {}
    data = json.loads(pages[".json"].read_text()) if pages else {"options": {"out": ""}}
    del data["options"]["out"]
    data.pop("made", None)
    # Two audits may be made in two minutes.
    said = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d", "NOW", printed.out.replace(str(out), "OUT"))
    return status, said, printed.err, data


@pytest.mark.thorough
@pytest.mark.parametrize(
    "words",
    [
        ("target=repaid", "prediction=granted", "group=[sex,region]", "favourable=1"),
        ("prediction=granted", "group=[sex,region]"),
        ("target=repaid", "prediction=granted", "group=[sex]", "reference=women", "epsilon=0.1"),
        ("target=repaid", "prediction=granted", "group=[sex]", "decision=yes/no"),
        ("target=sex", "prediction=granted", "group=[region]"),
        ("target=region", "prediction=granted", "group=[sex]"),
        ("target=repaid", "prediction=granted", "group=[sex]", "purpose=lending"),
    ],
    ids=" ".join,
)
def test_an_audit_is_the_same_to_the_last_sign(words, tmp_path, capsys, monkeypatch, request):
    path = written(people(3000), tmp_path / "people.parquet", row_group_size=700)
    whole = audited(path, tmp_path / "whole", capsys, *words)
    request.getfixturevalue("few_are_many")
    counted = []
    read = distinct.distinct_rows
    monkeypatch.setattr(distinct, "distinct_rows", lambda *of: counted.append(of) or read(*of))
    assert audited(path, tmp_path / "counted", capsys, *words) == whole
    assert counted


@pytest.mark.parametrize(
    "change", [{"repaid": [None] * 50}, {"granted": ["perhaps"]}, {"repaid": ["unknown", "x"]}]
)
def test_missing_labels_and_faults_are_told_alike(change, tmp_path, capsys, monkeypatch):
    frame = people(2000).astype({"repaid": object, "granted": object})
    for name, values in change.items():
        frame[name] = frame[name].map(str)
        frame.loc[700 : 700 + len(values) - 1, name] = values
    path = written(frame, tmp_path / "people.parquet")
    words = ("target=repaid", "prediction=granted", "group=[sex]", "favourable=True")
    whole = audited(path, tmp_path / "whole", capsys, *words)
    monkeypatch.setattr(distinct, "MANY_ROWS", 1)
    assert audited(path, tmp_path / "counted", capsys, *words) == whole


def test_what_needs_rows_is_read_row_by_row(tmp_path, capsys, few_are_many, monkeypatch):
    def unasked(*of):
        raise AssertionError("rows were counted")

    monkeypatch.setattr(distinct, "distinct_rows", unasked)
    frame = people(500).assign(score=np.linspace(0, 1, 500), person=range(500))
    path = written(frame, tmp_path / "people.parquet")
    for more in ("score=score", "id=person", "cluster=person", "within=region"):
        words = ("target=repaid", "prediction=granted", "group=[sex]", "favourable=1", more)
        assert audited(path, tmp_path / "out", capsys, *words)[0] in (0, 2), more
