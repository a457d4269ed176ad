"""Rows: those that are none of the table, such as a total, and those that are counted once."""

import json
import re

import numpy as np
import openpyxl
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

import fairbench
from fairbench.cli.main import main
from fairbench.core.errors import UserError
from fairbench.data import tables as distinct
from fairbench.data.columns import tally, times_of
from fairbench.data.tables import TablePart, _distinct_rows, read_any_table
from tests.audits.tables import why_not

ROWS = 200
NAMED = ["sex", "PD", "label"]
DRAW = np.random.default_rng(0)
# Applicants as a bank's sheet has them: an identifier first, an amount beside.
PEOPLE = pd.DataFrame({
    "customer": [f"C-{i}" for i in range(ROWS)],
    "sex": DRAW.choice(["f", "m"], ROWS),
    "PD": DRAW.uniform(size=ROWS).round(3),
    "amount": DRAW.integers(1000, 9000, ROWS),
    "label": DRAW.choice(["no", "yes"], ROWS),
})  # fmt: skip
TEXT, SEMICOLONS = PEOPLE.to_csv(index=False), PEOPLE.to_csv(index=False, sep=";")
HEADER, *LINES = TEXT.splitlines(keepends=True)
ASKED = {"target": "label", "score": "PD", "groups": "sex", "favourable": "no"}


def labels_left_out(which):
    return PEOPLE.assign(label=PEOPLE["label"].mask(which, ""))


def read(tmp_path, text: str, rows: str = "") -> pd.DataFrame:
    path = tmp_path / "loans.csv"
    path.write_text(text)
    return read_any_table(path, NAMED, part=TablePart(rows))


BELOW = {
    "a total with a mean": (f"{TEXT}Total,,0.493,1012345,\n", "row 201 has no value in 'sex'"),
    "a total of unlabelled rows, too": (
        labels_left_out(PEOPLE.index % 9 < 2).to_csv(index=False) + "Total,,0.493,1012345,\n",
        "row 201 has no value in 'sex' and 'label'",
    ),
    "a source": (f"{TEXT},,,,\nSource: core banking,,,,\n", "row 201 has no value in 'sex' and"),
    "lines of fewer fields": (f"{TEXT}\nTotal: 200\nSource: banks, 2024\n", "row 201 has 1 fields"),
    "German": (f"{SEMICOLONS}Summe;;0,43;1012345;\n", "row 201 has no value in 'sex'"),
    "a word among numbers": (
        f"{TEXT}Total,f,total,1012345,no\n", "column 'PD', row 201: 'total' is no number"
    ),
    "another table": (f"{TEXT}\nbranch,n\nNorth,5\n", "row 201 has 2 fields"),
    "the same table again": (f"{TEXT}{HEADER}", "column 'PD', row 201: 'PD' is no number"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "said"), BELOW.values(), ids=BELOW)
def test_what_stands_below_a_table_is_named_and_rows_leave_it_out(text, said, tmp_path):
    with pytest.raises(UserError, match=rf"^loans.csv: {said}.*rows=1:200 ") as refused:
        read(tmp_path, text)
    assert len(str(refused.value)) <= 300
    frame = read(tmp_path, text, "1:200")
    assert frame["PD"].str.replace(",", ".").astype(float).tolist() == PEOPLE["PD"].tolist()


def last_is(**cells: str) -> pd.DataFrame:
    frame = PEOPLE.astype(str)
    frame.loc[ROWS - 1, list(cells)] = list(cells.values())
    return frame


WHICH = PEOPLE["sex"]
LINES_OF = [f"x\n\nbranch,n\nTotal {i}" for i in range(ROWS)]
STAYS = {
    "a customer called Total": last_is(customer="Total"),
    "a group of two called Total, at the end": last_is(sex="Total").replace({"f": "Total"}),
    "unlabelled rows of groups called Total and count, at the end": labels_left_out(
        PEOPLE.index >= ROWS - 4
    ).assign(sex=WHICH.map({"f": "Total", "m": "count"})),
    "a person called Total above, and rows whose label is not known yet": labels_left_out(
        PEOPLE.index >= 100
    ).replace({"customer": {"C-150": "Total"}}),
    "texts of several lines that look like a table, beside an empty column": PEOPLE.assign(
        customer=LINES_OF, **{"": "", "branch": "North", "n": "5"}
    ),
    "many rows with gaps": labels_left_out(PEOPLE.index >= ROWS - 6)[NAMED].assign(
        sex=WHICH.mask(PEOPLE.index >= ROWS - 6, "")
    ),
}


@pytest.mark.parametrize("frame", STAYS.values(), ids=STAYS)
def test_a_row_of_the_table_stays(frame, tmp_path, capsys):
    result = read(tmp_path, frame.to_csv(index=False))
    assert len(result) == ROWS
    assert not result.attrs
    assert not capsys.readouterr().err


@pytest.mark.parametrize("label", ["Total", "Grand average:", "m Summe"])
def test_a_last_row_that_its_label_calls_a_total_is_asked(label, tmp_path):
    text = f"{TEXT},f Mean,0.4,,no\nC-201,{label},0.5,1,no\n"
    with pytest.raises(UserError, match=r"'sex', row 201: 'f Mean' is .* rows=1:200 leaves it out"):
        read(tmp_path, text)
    assert read(tmp_path, text, ":")["sex"].iloc[-1] == label
    between = "".join([HEADER, *LINES[:9], ",f Mean,0.4,,no\n", *LINES[9:], f",{label},1,,no\n"])
    with pytest.raises(UserError, match=r"'sex', row 10: .*: delete rows 10 and 202, if they are"):
        read(tmp_path, between)


@pytest.mark.parametrize("title", ["Report of loans\n\n", "# exported; 2024\n", "a,b,c,d,e\r\n"])
@pytest.mark.parametrize("text", [TEXT, SEMICOLONS], ids=[",", ";"])
def test_lines_above_the_header_are_left_out_and_said(title, text, tmp_path, capsys):
    frame = read(tmp_path, title + text)
    assert frame["PD"].tolist() == read(tmp_path, text)["PD"].tolist()
    assert f"header in line {1 + title.count(chr(10))}" in capsys.readouterr().err
    with pytest.raises(UserError, match="has no column 'no'"):  # which rows below hold
        read_any_table(tmp_path / "loans.csv", ["no"])


def test_a_column_is_found_whose_accents_stand_apart_in_the_file(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("Gruppe,Ausfa\u0308llig\nA\u0308,1\n", encoding="utf-8")
    frame = read_any_table(path, ["Gruppe", "Ausf\u00e4llig"], exact=["Gruppe"])
    assert frame.to_numpy().tolist() == [["A\u0308", "1"]]


def test_rows_are_counted_as_the_file_counts_them(tmp_path):
    text = "".join([HEADER, *LINES[:2], "a,b\n", *LINES[2:]])
    frame = read(tmp_path, text, "5:7")
    assert frame.index.tolist() == [4, 5, 6]
    assert frame["PD"].astype(float).tolist() == PEOPLE["PD"].tolist()[3:6]
    assert len(read(tmp_path, TEXT, ":")) == len(read(tmp_path, TEXT, "1:")) == ROWS
    with pytest.raises(UserError, match=r"row 3 has 2 fields .*; rows=1:2 reads those above it"):
        read(tmp_path, text)


@pytest.mark.parametrize("rows", ["0:3", "3:2", "3", "a:b", "1:2:3"])
def test_rows_that_are_none_are_refused(rows, tmp_path):
    with pytest.raises(UserError, match=f"rows={rows}: name the first and the last row"):
        read(tmp_path, TEXT, rows)


def test_a_total_of_excel_is_named_and_a_sheet_chosen(tmp_path, capsys):
    book, path = openpyxl.Workbook(), tmp_path / "loans.xlsx"
    plain = [list(PEOPLE), *PEOPLE.astype(object).to_numpy().tolist()]
    sheets = {"people": [["Report"], [], *plain, [], ["Total", "", "", 9]], "more": plain[:50]}
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    book.save(path)
    with pytest.raises(UserError, match=r"^loans.xlsx: row 201 has no value in 'label' and 'PD' a"):
        fairbench.audit(path, **ASKED)
    assert fairbench.audit(path, rows="1:200", **ASKED).document.data["rows"] == ROWS
    assert "rows= is of files" in why_not(PEOPLE, rows="1:200", **ASKED)
    assert len(read_any_table(path, NAMED, part=TablePart(sheet="more"))) == 49
    with pytest.raises(UserError, match=r"unknown sheet of loans\.xlsx 'other'"):
        read_any_table(path, NAMED, part=TablePart(sheet="other"))
    assert main(["audit", str(path), "sheet=more"]) == 2
    assert "loans.xlsx has the columns 'customer', 'sex', 'PD'" in capsys.readouterr().err
    read(tmp_path, TEXT)
    with pytest.raises(UserError, match=r"sheet=people: loans\.csv is no Excel file"):
        read_any_table(tmp_path / "loans.csv", NAMED, part=TablePart(sheet="people"))


# The distinct rows of a Parquet file with their numbers say what all of its rows say.


def people(n):
    """Return rows of groups of several sizes, with decisions that depend on group and label."""
    draw, regions = np.random.default_rng(0), ["north", "south", "east", " east", None]
    sex = draw.choice(["women", "men"], n, p=[0.4, 0.6])
    region = draw.choice(regions, n, p=[0.5, 0.3, 0.15, 0.04, 0.01])
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
        ([], (GRANTED, "group=[sex,region]", "reference=women", "epsilon=0.1")),
        ([], (LABEL, GRANTED, SEX, "decision=yes/no")),
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
