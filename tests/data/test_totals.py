"""Totals and notes below a table are left out and said, or refused; another table is refused."""

import numpy as np
import openpyxl
import pandas as pd
import pytest

import fairbench
from fairbench.audits.columns import read_frame
from fairbench.audits.question import Options
from fairbench.audits.table import read_audit_table
from fairbench.core.errors import UserError
from fairbench.data.any_table import read_any_table

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

BELOW = {
    "a total with a mean": (f"{TEXT}Total,,{MEAN:.3f},{SUM},\n", ["'Total 0."]),
    "blank rows, a total and a note": (
        f"{TEXT},,,,\nGrand total,,,{SUM},\n,,,,\nSource: core banking,,,,\n",
        ["row 202 'Grand total", "row 204 'Source: core banking'", "2 blank rows"],
    ),
    "lines of fewer fields": (
        f"{TEXT}\nTotal: 200\nSource: core banking, 2024\n",
        ["'Total: 200'", "'Source: core banking 2024'"],
    ),
    "German": (
        f"{SEMICOLONS};;;;\nSumme;;;{SUM};\nDurchschnitt;;0,43;;\nQuelle: Kernbank;;;;\n",
        ["'Summe", "'Durchschnitt 0,43'", "'Quelle: Kernbank'"],
    ),
    "blank rows alone": (f"{TEXT},,,,\n,,,,\n", ["2 blank rows"]),
}


def read(tmp_path, text: str) -> pd.DataFrame:
    path = tmp_path / "loans.csv"
    path.write_text(text)
    return read_any_table(path, NAMED)


@pytest.mark.parametrize(("text", "said"), BELOW.values(), ids=BELOW)
def test_what_stands_below_a_table_is_left_out_and_said(text, said, tmp_path, capsys):
    frame = read(tmp_path, text)
    (note,), printed = frame.attrs["notes"], capsys.readouterr().err
    assert frame["label"].tolist() == PEOPLE["label"].tolist()
    for part in said:
        assert part in note
        assert part in printed


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


DOUBTFUL = {
    "sums without a word": f"{TEXT},,{MEAN!r},{SUM},\n",
    "means with a word": f"{TEXT}Average,,0.5,{SUM},\n",
    "a total of a year": f"{TEXT}Total 2024,,0.5,{SUM},\n",
    "a total without gaps": PEOPLE[["sex", "PD"]].assign(label=1).to_csv(index=False) + "Total,9,9",
    "an unlabelled row of a group called Total": last_is(sex="Total")[NAMED]
    .assign(label=lambda table: table["label"].where(table.index % 9 > 1, ""))
    .to_csv(index=False),
}


@pytest.mark.parametrize("text", DOUBTFUL.values(), ids=DOUBTFUL)
def test_what_may_be_a_total_or_a_row_is_refused_with_its_row(text, tmp_path):
    with pytest.raises(UserError, match=r"row 20[01], .*may be a total and no row of the table"):
        read(tmp_path, text)


def test_many_rows_with_gaps_are_rows(tmp_path):
    gaps = PEOPLE[NAMED].astype(str)
    gaps.loc[ROWS - 6 :, ["sex", "label"]] = ""
    assert len(read(tmp_path, gaps.to_csv(index=False))) == ROWS


def test_a_file_that_was_cut_off_is_refused_as_before(tmp_path):
    for end in ("C-200,f,0.3\n", "C-200\n", "12\n"):
        with pytest.raises(UserError, match="row 201 has [13] fields"):
            read(tmp_path, TEXT + end)


BESIDE = [",,branch,n", ",,North,5", ",,South,7", *[",,,"] * (ROWS - 2)]
TWO = {
    "behind a blank line": (f"{TEXT}\nbranch,n\nNorth,5\n", r"line 203 \('branch', 'n'\)"),
    "behind a blank row and a title": (
        f"{TEXT},,,,\nBy branch,,,,\nbranch,n,,,\nNorth,5,,,\n", "line 204"
    ),
    "the same header again": (f"{TEXT},,,,\n{TEXT}", r"line 203 \('customer', 'sex', 'PD', ...\)"),
    "beside": (
        "\n".join(row + more for row, more in zip(TEXT.splitlines(), BESIDE, strict=True)),
        r"column 7 \('branch', 'n'\)",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "where"), TWO.values(), ids=TWO)
def test_a_second_table_is_refused_with_its_place(text, where, tmp_path):
    with pytest.raises(UserError, match=f"another table begins in {where}.*: keep one table"):
        read(tmp_path, text)


def sheet(tmp_path, below, above=()):
    book = openpyxl.Workbook()
    plain = [list(PEOPLE), *PEOPLE.astype(object).to_numpy().tolist()]
    for row in (*above, *plain, *below):
        book.active.append(row)
    path = tmp_path / "loans.xlsx"
    book.save(path)
    return path


def test_a_total_of_excel_is_no_person_and_the_page_says_so(tmp_path):
    path = sheet(tmp_path, [[], ["Total", None, None, SUM], [], ["Source: core banking"]])
    asked = {"target": "label", "score": "PD", "groups": "sex", "favourable": "no"}
    report = fairbench.audit(path, **asked)
    assert report.document.data["rows"] == ROWS
    (note,) = [note for note in report.document.notes if "below the table" in note]
    assert "row 202 'Total" in note
    assert "row 204 'Source: core banking'" in note
    # Nothing stands below a table in memory.
    with pytest.raises(UserError, match="row 201: '' is no number"):
        fairbench.audit(pd.read_excel(path), **asked)


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


def test_a_second_table_of_a_sheet_is_named_by_the_row_of_the_sheet(tmp_path):
    path = sheet(tmp_path, [[], ["branch", "n"], ["North", 5]], above=[["Report"], []])
    with pytest.raises(UserError, match=f"row {ROWS + 5} of the sheet"):
        read_any_table(path, NAMED)
