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
from fairbench.data.tables import _distinct_rows, read_any_table


def people(n):
    """Return rows of groups of several sizes, with decisions that depend on group and label."""
    draw = np.random.default_rng(0)
    sex = draw.choice(["women", "men"], n, p=[0.4, 0.6])
    region = draw.choice(
        ["north", "south", "east", " east", None], n, p=[0.5, 0.3, 0.15, 0.04, 0.01]
    )
    repaid = draw.random(n) < np.where(sex == "women", 0.6, 0.5)
    decided = draw.random(n) < np.where(sex == "women", 0.35, 0.45) + 0.3 * repaid
    return pd.DataFrame({"sex": sex, "region": region, "repaid": repaid, "granted": decided})


@pytest.fixture
def written(tmp_path):
    """Return a function that writes a table as a Parquet file and returns its path."""

    def write(frame, row_group_size=None):
        table = pa.Table.from_pandas(frame, preserve_index=False)
        parquet.write_table(table, tmp_path / "t.parquet", row_group_size=row_group_size)
        return tmp_path / "t.parquet"

    return write


@pytest.fixture
def few_are_many(monkeypatch):
    """Have tables of a few rows read as those of millions, in small batches."""
    monkeypatch.setattr(distinct, "MANY_ROWS", 1)
    monkeypatch.setattr(distinct, "_BATCH", 97)


def test_they_are_the_rows_of_the_table_in_the_order_of_their_first(written, few_are_many):
    columns = {
        "texts": ["b", "a", "b", None, "a", ""],
        "whole": [3, 1, 3, None, 1, 2],
        "truths": [True, False, None, True, True, False],
        "numbers": [0.5, 1.0, float("nan"), 0.5, None, 1.0],
        "categories": pd.Categorical(["x", "y", "x", None, "y", "x"]),
    }
    path = written(pd.DataFrame(columns).sample(1000, replace=True, random_state=3), 61)
    whole, few = read_any_table(path, list(columns)), _distinct_rows(path, list(columns))
    pd.testing.assert_frame_equal(few, whole.drop_duplicates())
    assert times_of(few).tolist() == whole.groupby(list(columns), sort=False).size().tolist()
    assert times_of(whole) is None


def test_too_many_distinct_rows_are_not_counted(written, monkeypatch, few_are_many):
    monkeypatch.setattr(distinct, "_BATCH", 1000)
    monkeypatch.setattr(distinct, "MOST_DISTINCT", 50)
    grid = {"a": np.arange(60), "b": 0, "tens": np.arange(60) // 10, "ones": np.arange(60) % 10}
    path = written(pd.DataFrame(grid))
    assert _distinct_rows(path, ["a"]) is _distinct_rows(path, ["tens", "ones"]) is None
    assert len(_distinct_rows(path, ["b"])) == 1


def test_a_tally_is_exact():
    codes, times = np.array([0, 2, 2]), np.array([2**52, 2**51, 1])
    assert tally(codes, times).tolist() == [2**52, 0, 2**51 + 1]
    assert tally(codes, least=4).tolist() == [1, 0, 2, 0]


@pytest.fixture
def audited(tmp_path, capsys):
    """Return a function that audits a file and returns all that is said but for the time."""

    def of(path, *words):
        out = tmp_path / "out"
        status = main(["audit", f"path={path}", *words, f"out={out}"])
        printed = capsys.readouterr()
        pages = [json.loads(page.read_text()) for page in out.glob("*.json") if status == 0]
        for page in pages:
            page.pop("made", None)
        # Two audits may be made in two minutes.
        return status, re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d", "NOW", printed.out), printed.err, pages

    return of


def unknown(frame, name, *values):
    """Return a table with other values of a column in some of its rows."""
    texts = frame[name].map(str).to_numpy(object)
    texts[700 : 700 + len(values)] = values
    return frame.assign(**{name: texts})


LABEL, GRANTED, SEX = "target=repaid", "prediction=granted", "group=[sex]"


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ([], (LABEL, GRANTED, "group=[sex,region]", "favourable=1")),
        ([], (GRANTED, "group=[sex,region]")),
        ([], (LABEL, GRANTED, SEX, "reference=women", "epsilon=0.1")),
        ([], (LABEL, GRANTED, SEX, "decision=yes/no")),
        ([], ("target=region", GRANTED, SEX)),
        ([], (LABEL, GRANTED, SEX, "purpose=lending")),
        (["repaid", *[None] * 50], (LABEL, GRANTED, SEX, "favourable=True")),
        (["granted", "perhaps"], (LABEL, GRANTED, SEX, "favourable=True")),
        (["repaid", "unknown", "x"], (LABEL, GRANTED, SEX, "favourable=True")),
    ],
)
def test_an_audit_and_its_refusals_are_the_same_to_the_last_sign(
    change, words, written, audited, monkeypatch, request
):
    frame = people(3000)
    path = written(unknown(frame, *change) if change else frame, 700)
    whole = audited(path, *words)
    request.getfixturevalue("few_are_many")
    counted = []
    read = distinct._distinct_rows
    monkeypatch.setattr(distinct, "_distinct_rows", lambda *of: counted.append(of) or read(*of))
    assert audited(path, *words) == whole
    assert counted


def test_what_needs_rows_is_read_row_by_row(written, audited, few_are_many, monkeypatch):
    def unasked(*of):
        raise AssertionError("rows were counted")

    monkeypatch.setattr(distinct, "_distinct_rows", unasked)
    path = written(people(500).assign(score=np.linspace(0, 1, 500), person=range(500)))
    for more in ("score=score", "id=person", "cluster=person", "within=region"):
        status, *_ = audited(path, LABEL, GRANTED, SEX, "favourable=1", more)
        assert status in (0, 2), more
