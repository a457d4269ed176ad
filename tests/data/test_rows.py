"""A row that is no row of the table, such as a total, is named, and rows= and sheet= choose."""

import numpy as np
import openpyxl
import pandas as pd
import pytest

import fairbench
from fairbench.audits.question import Options
from fairbench.audits.table import read_audit_table, read_frame
from fairbench.core.errors import UserError
from fairbench.data.tables import TablePart, read_any_table
from tests.audits.tables import audit, why_not

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


def test_a_total_ends_an_audit_in_one_line_and_not_in_a_wrong_answer(tmp_path):
    path = tmp_path / "loans.csv"
    path.write_text(BELOW["a total with a mean"][0])
    line = why_not(path, **ASKED)
    assert line.startswith("loans.csv: row 201 has no value in 'label' and 'sex'")
    assert "rows=1:200 leaves it out" in line
    assert fairbench.audit(path, rows="1:200", **ASKED).document.data["rows"] == ROWS
    assert "rows= is of files" in why_not(pd.read_csv(path), rows="1:200", **ASKED)


def last_is(**cells: str) -> pd.DataFrame:
    frame = PEOPLE.astype(str)
    frame.loc[ROWS - 1, list(cells)] = list(cells.values())
    return frame


SEX = PEOPLE["sex"]
LINES_OF = [f"x\n\nbranch,n\nTotal {i}" for i in range(ROWS)]
STAYS = {
    "a customer called Total": last_is(customer="Total"),
    "a group of two called Total, at the end": last_is(sex="Total").replace({"f": "Total"}),
    "unlabelled rows of groups called Total and count, at the end": labels_left_out(
        PEOPLE.index >= ROWS - 4
    ).assign(sex=SEX.map({"f": "Total", "m": "count"})),
    "a person called Total above": PEOPLE.replace({"customer": {"C-150": "Total"}}),
    "rows whose label is not known yet": labels_left_out(PEOPLE.index >= 100),
    "texts of several lines that look like a table": PEOPLE.assign(customer=LINES_OF),
    "an empty column in the middle": PEOPLE.assign(**{"": "", "branch": "North", "n": "5"}),
    "many rows with gaps": labels_left_out(PEOPLE.index >= ROWS - 6)[NAMED].assign(
        sex=SEX.mask(PEOPLE.index >= ROWS - 6, "")
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


@pytest.mark.parametrize("end", ["C-200,f,0.3\n", "C-200\n", "12\n"])
def test_a_file_that_was_cut_off_is_refused_as_before(end, tmp_path):
    with pytest.raises(UserError, match="row 201 has [13] fields"):
        read(tmp_path, TEXT + end)


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
    assert len(read_any_table(path, NAMED, part=TablePart(sheet="more"))) == 49
    with pytest.raises(UserError, match=r"unknown sheet of loans\.xlsx 'other'"):
        read_any_table(path, NAMED, part=TablePart(sheet="other"))
    assert audit([path, "sheet=more"]) == 2
    assert "loans.xlsx has the columns 'customer', 'sex', 'PD'" in capsys.readouterr().err
    read(tmp_path, TEXT)
    with pytest.raises(UserError, match=r"sheet=people: loans\.csv is no Excel file"):
        read_any_table(tmp_path / "loans.csv", NAMED, part=TablePart(sheet="people"))


@pytest.mark.parametrize("in_memory", [False, True])
def test_a_group_called_as_a_statistic_keeps_its_unlabelled_rows(in_memory, tmp_path):
    frame = pd.DataFrame({
        "status": ["majority"] * 6 + ["minority"] * 4,
        "score": [0.2, 0.9, 0.4, 0.7, 0.3, 0.8, 0.2, 0.9, 0.6, 0.8],
        "label": ["0", "1"] * 4 + ["", ""],
    })  # fmt: skip
    path = tmp_path / "people.csv"
    frame.to_csv(path, index=False)
    options = Options(path=path, target="label", score="score", group=("status",))
    table = read_audit_table(options, read_frame(options, source=frame if in_memory else None))
    assert len(table) == 10
    assert table.prediction[table.groups["status"] == "minority"].mean() == 0.75
