"""Columns that are made as a table is read: bands, periods, shares of percents, pooled groups."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest

from fairbench.audits.question import Options
from fairbench.audits.table import read_audit_table, read_frame
from fairbench.core.errors import UserError
from fairbench.data.groups import _are_quantities, bands_apart, in_order
from fairbench_watch.alarms import periods_of
from fairbench_watch.page import skipped
from fairbench_watch.state import spelling
from tests.audits.tables import predictions

AGES = [17, 25, 39.5, 40, 62, 90, None]


def read(frame, **options):
    asked = Options(**{"target": "label", "score": "score", "group": ("sex",), **options})
    table = read_frame(asked, source=frame)
    return table, read_audit_table(asked, frame=table)


def test_a_limit_is_in_the_band_above_it():
    frame = predictions(7).assign(age=AGES)
    table, _ = read(frame, group=("age:25,40,62",))
    expected = ["under 25", "25 to under 40", "25 to under 40", "40 to under 62", "62 and over"]
    assert table["age"].tolist() == [*expected, "62 and over", ""]


def test_bands_are_listed_from_the_lowest():
    frame = predictions(60).assign(age=np.arange(60) % 40 + 5)
    _, table = read(frame, group=("age:9,15,40",))
    largest, *others = table.groups["age"].cat.categories
    assert largest == "15 to under 40"
    assert others == ["under 9", "9 to under 15", "40 and over"]
    assert in_order(["white", "under sea", "7 and over"]) == ["7 and over", "under sea", "white"]


def test_quantiles_are_of_one_size():
    frame = predictions(400).assign(age=np.arange(400) % 100)
    table, _ = read(frame, group=("age:quantiles(4)",))
    assert set(Counter(table["age"]).values()) <= {96, 100, 104}


def test_bands_are_told_from_names_with_a_colon():
    assert bands_apart(["age:25,40,62"]) == (("age",), ("age:25,40,62",))
    assert bands_apart(["a:b", "40"]) == (("a:b", "40"), ())


def test_rare_groups_are_pooled_or_left_out_and_named():
    race = ["a"] * 200 + ["b"] * 190 + ["c"] * 6 + ["d"] * 4
    frame = predictions(400).assign(race=race)
    pooled, said = read(frame, group=("race",), rare=30)
    assert Counter(pooled["race"]) == {"a": 200, "b": 190, "other groups": 10}
    assert "race: 'c' and 'd' have fewer than 30 rows, and are 'other groups' here" in said.notes
    left, said = read(frame, group=("race",), leave_out=("race=c", "race=d"))
    assert Counter(left["race"]) == {"a": 200, "b": 190}
    assert "race: the 4 rows of 'd' are left out, as asked" in said.notes
    _, said = read(frame, group=("race",))
    assert any("2 groups, such as 'c', have fewer than 10 rows" in note for note in said.notes)


PERIODS = {
    "day": ["2024-02-29", "2024-12-31"],
    "week": ["2024-W09", "2025-W01"],
    "month": ["2024-02", "2024-12"],
    "quarter": ["2024-Q1", "2024-Q4"],
    "year": ["2024", "2024"],
}
FORMS = (
    ["2024-02-29", "2024-12-31T23:59"],
    ["29.02.2024", "31.12.2024"],
    ["29/02/2024", "31/12/2024"],
    ["02/29/2024", "12/31/2024"],
)


@pytest.mark.parametrize("unit", PERIODS)
@pytest.mark.parametrize("dates", FORMS, ids=lambda dates: dates[0])
def test_dates_become_periods(dates, unit):
    assert periods_of(pd.Series(dates, name="day"), unit, "f").tolist() == PERIODS[unit]


@pytest.mark.parametrize(
    ("dates", "sentence"),
    [
        (["01/02/2024"], r"row 1: '01/02/2024' may have the day or the month first"),
        (["2024-02-29", "soon"], r"column 'day', row 2: 'soon' is no date: write dates as"),
        (["2023-02-29"], "is no date"),
    ],
)
def test_what_is_no_date_is_refused(dates, sentence):
    with pytest.raises(UserError, match=sentence):
        periods_of(pd.Series(dates, name="day"), "month", "f")


SKIPPED = {
    "numbers": (["week 9", "week 10", "week 12"], [("week 10", "week 12", 1)]),
    "weeks of a year with 53": (["2020-W52", "2020-W53", "2021-W01"], []),
    "weeks": (["2023-W51", "2024-W02"], [("2023-W51", "2024-W02", 2)]),
    "months": (["2023-11", "2023-12", "2024-02"], [("2023-12", "2024-02", 1)]),
    "quarters": (["2023-Q4", "2024-Q1", "2024-Q4"], [("2024-Q1", "2024-Q4", 2)]),
    "years": (["2019", "2021"], [("2019", "2021", 1)]),
    "days": (["2024-02-28", "2024-02-29", "2024-03-01"], []),
    "week ends": (
        ["2024-03-01", "2024-03-04", "2024-03-05", "2024-03-08", "2024-03-18"],
        [("2024-03-01", "2024-03-04", 2), ("2024-03-08", "2024-03-18", 9)],
    ),
    "no day": (["2024-02-30", "2024-02-31"], []),
    "other weeks": (["2024-52", "2025-01"], []),
    "names": (["before", "after"], []),
    "many digits": (
        [f"{'9' * 5000}2", f"{'9' * 5000}5"],
        [(f"{'9' * 5000}2", f"{'9' * 5000}5", 2)],
    ),
    "one": ([""], []),
}


@pytest.mark.parametrize(("names", "gaps"), SKIPPED.values(), ids=SKIPPED)
def test_periods_that_are_missing_are_found(names, gaps):
    assert skipped(names) == gaps


def test_spellings_of_one_period_are_alike():
    assert len({*map(spelling, ("week 7", "Week  07", " WEEK 7 "))}) == 1
    assert len({*map(spelling, ("week 7", "week 70", "2024-W07", "2024-07"))}) == 4


def test_ages_are_told_from_codes():
    assert _are_quantities([str(age) for age in range(18, 80)])
    assert _are_quantities([f"{number / 7:.3f}" for number in range(40)])
    assert not _are_quantities([str(number) for number in range(1, 57)])
    assert not _are_quantities(
        ["10115", "10117", "10119", *(str(code) for code in range(20000, 20040))]
    )
