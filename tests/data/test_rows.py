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
from tests.audits.tables import audit

ROWS = 200
NAMED = ["sex", "PD", "label"]


def people() -> pd.DataFrame:
    """Return applicants as a bank's sheet has them: an identifier first, an amount beside."""
    draw = np.random.default_rng(0)
    return pd.DataFrame({
        "customer": [f"C-{i}" for i in range(ROWS)],
        "sex": draw.choice(["f", "m"], ROWS),
        "PD": draw.uniform(size=ROWS).round(3),
        "amount": draw.integers(1000, 9000, ROWS),
        "label": draw.choice(["no", "yes"], ROWS),
    })  # fmt: skip


PEOPLE = people()
SUM, MEAN = int(PEOPLE["amount"].sum()), float(PEOPLE["PD"].mean())
TEXT, SEMICOLONS = PEOPLE.to_csv(index=False), PEOPLE.to_csv(index=False, sep=";")
ASKED = {"target": "label", "score": "PD", "groups": "sex", "favourable": "no"}


def read(tmp_path, text: str, rows: str = "") -> pd.DataFrame:
    path = tmp_path / "loans.csv"
    path.write_text(text)
    return read_any_table(path, NAMED, part=TablePart(rows))


BELOW = {
    "a total with a mean": (f"{TEXT}Total,,{MEAN:.3f},{SUM},\n", "row 201 has no value in 'sex'"),
    "a total of unlabelled rows, too": (
        PEOPLE.assign(label=PEOPLE["label"].where(PEOPLE.index % 9 > 1, "")).to_csv(index=False)
        + f"Total,,{MEAN:.3f},{SUM},\n",
        "row 201 has no value in 'sex' and 'label'",
    ),
    "a source": (f"{TEXT},,,,\nSource: core banking,,,,\n", "row 201 has no value in 'sex' and"),
    "a blank row": (f"{TEXT},,,,\n", "row 201 has no value in 'sex' and 'PD' and 'label'"),
    "lines of fewer fields": (
        f"{TEXT}\nTotal: 200\nSource: core banking, 2024\n", "row 201 has 1 fields"
    ),
    "German": (f"{SEMICOLONS}Summe;;0,43;{SUM};\n", "row 201 has no value in 'sex'"),
    "a word among numbers": (
        f"{TEXT}Total,f,total,{SUM},no\n", "column 'PD', row 201: 'total' is no number"
    ),
    "another table": (f"{TEXT}\nbranch,n\nNorth,5\n", "row 201 has 2 fields"),
    "the same table again": (
        f"{TEXT}{TEXT.splitlines()[0]}\n", "column 'PD', row 201: 'PD' is no number"
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "said"), BELOW.values(), ids=BELOW)
def test_what_stands_below_a_table_is_named_and_rows_leave_it_out(text, said, tmp_path):
    with pytest.raises(UserError) as refused:
        read(tmp_path, text)
    sentence = str(refused.value)
    assert sentence.startswith(f"loans.csv: {said}")
    assert "rows=1:200 " in sentence
    assert len(sentence) <= 300
    frame = read(tmp_path, text, "1:200")
    assert len(frame) == ROWS
    assert frame["PD"].str.replace(",", ".").astype(float).tolist() == PEOPLE["PD"].tolist()


def test_a_total_ends_an_audit_in_one_line_and_not_in_a_wrong_answer(tmp_path, capsys):
    path = tmp_path / "loans.csv"
    path.write_text(BELOW["a total with a mean"][0])
    words = [path, "target=label", "score=PD", "group=sex", "favourable=no"]
    assert audit(words) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: loans.csv: row 201 has no value in 'label' and 'sex'")
    assert "rows=1:200 leaves it out" in line
    report = fairbench.audit(path, rows="1:200", **ASKED)
    assert report.document.data["rows"] == ROWS
    with pytest.raises(UserError, match="rows= is of files"):
        fairbench.audit(pd.read_csv(path), rows="1:200", **ASKED)


def last_is(**cells: str) -> pd.DataFrame:
    frame = PEOPLE.astype(str)
    frame.loc[ROWS - 1, list(cells)] = list(cells.values())
    return frame


STAYS = {
    "a customer called Total": last_is(customer="Total"),
    "a group called Total, in the first column": last_is(sex="Total")[NAMED],
    **{
        f"unlabelled rows of groups called {name} and {other}, at the end": PEOPLE[NAMED]
        .replace({"sex": {"f": name, "m": other}})
        .assign(label=lambda table: table["label"].where(table.index < ROWS - 4, ""))
        for name, other in [
            ("minority", "majority"),
            ("maximum", "minimum"),
            ("Mittelschule", "Gesamtschule"),
            ("mean", "median"),
            ("Total", "Summe"),
            ("count", "std"),
            ("Max", "Min"),
        ]
    },
    "a person called Total above": PEOPLE.assign(
        customer=PEOPLE["customer"].where(PEOPLE.index != 150, "Total")
    ),
    "rows whose label is not known yet": PEOPLE.assign(
        label=PEOPLE["label"].where(PEOPLE.index < 100, "")
    ),
    "texts of several lines that look like a table": PEOPLE.assign(
        customer=[f"x\n\nbranch,n\nTotal {i}" for i in range(ROWS)]
    ),
    "an empty column in the middle": PEOPLE.assign(**{"": "", "branch": "North", "n": "5"}),
}


@pytest.mark.parametrize("frame", STAYS.values(), ids=STAYS)
def test_a_row_of_the_table_stays(frame, tmp_path, capsys):
    result = read(tmp_path, frame.to_csv(index=False))
    assert len(result) == ROWS
    assert not result.attrs
    assert not capsys.readouterr().err


def test_many_rows_with_gaps_are_rows(tmp_path):
    gaps = PEOPLE[NAMED].astype(str)
    gaps.loc[ROWS - 6 :, ["sex", "label"]] = ""
    assert len(read(tmp_path, gaps.to_csv(index=False))) == ROWS


def test_a_file_that_was_cut_off_is_refused_as_before(tmp_path):
    for end in ("C-200,f,0.3\n", "C-200\n", "12\n"):
        with pytest.raises(UserError, match="row 201 has [13] fields"):
            read(tmp_path, TEXT + end)


def test_rows_are_counted_as_the_file_counts_them(tmp_path):
    text = TEXT.splitlines(keepends=True)
    text.insert(3, "a,b\n")  # the third row
    frame = read(tmp_path, "".join(text), "5:7")
    assert frame.index.tolist() == [4, 5, 6]
    assert frame["PD"].astype(float).tolist() == PEOPLE["PD"].tolist()[3:6]
    assert len(read(tmp_path, TEXT, ":")) == len(read(tmp_path, TEXT, "1:")) == ROWS
    with pytest.raises(UserError, match=r"row 3 has 2 fields .*; rows=1:2 reads those above it"):
        read(tmp_path, "".join(text))


@pytest.mark.parametrize("rows", ["0:3", "3:2", "3", "a:b", "1:2:3"])
def test_rows_that_are_none_are_refused(rows, tmp_path):
    with pytest.raises(UserError, match=f"rows={rows}: name the first and the last row"):
        read(tmp_path, TEXT, rows)


def sheet(tmp_path, below, above=()):
    book = openpyxl.Workbook()
    plain = [list(PEOPLE), *PEOPLE.astype(object).to_numpy().tolist()]
    for row in (*above, *plain, *below):
        book.active.append(row)
    book.active.title = "people"
    other = book.create_sheet("more")
    for row in plain[:50]:
        other.append(row)
    path = tmp_path / "loans.xlsx"
    book.save(path)
    return path


def test_a_total_of_excel_is_named_and_a_sheet_chosen(tmp_path, capsys):
    path = sheet(tmp_path, [[], ["Total", None, None, SUM]], above=[["Report"], []])
    with pytest.raises(
        UserError, match=r"loans\.xlsx: row 201 has no value in 'label' and 'PD' and 'sex'"
    ):
        fairbench.audit(path, **ASKED)
    assert fairbench.audit(path, rows="1:200", **ASKED).document.data["rows"] == ROWS
    assert len(read_any_table(path, NAMED, part=TablePart(sheet="more"))) == 49
    with pytest.raises(UserError, match=r"unknown sheet of loans\.xlsx 'other'"):
        read_any_table(path, NAMED, part=TablePart(sheet="other"))
    with pytest.raises(UserError, match=r"sheet=people: loans\.csv is no Excel file"):
        (tmp_path / "loans.csv").write_text(TEXT)
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
