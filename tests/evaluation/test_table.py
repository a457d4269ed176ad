"""The long table of metrics: rows, intervals of means, and what makes a row undefined."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from fairbench.evaluation.columns import COLUMNS, KEYS, SETTINGS, STATUSES, setting_text
from fairbench.evaluation.table import (
    EVERYONE,
    NAN,
    MetricTable,
    Setting,
    Where,
    concatenate,
    undefined,
)
from fairbench.inference.means import Moments, loss_limits


def table_with(*rows, **options):
    table = MetricTable(**options)
    for metric, value, n in rows:
        table.add(metric, value, n)
    return table


def test_a_row_keeps_what_it_was_given():
    table = MetricTable()
    at = Setting(epsilon=0.1, bins=5, feature="age")
    table.add("gap", 0.25, 7, Where("sex", "F"), setting=at, interval=(0.1, 0.4))
    (found,) = table.frame().to_dict("records")
    assert tuple(found) == COLUMNS
    assert {name: value for name, value in found.items() if not pd.isna(value)} == {
        "metric": "gap", "attribute": "sex", "group": "F", "value": 0.25, "lower": 0.1,
        "upper": 0.4, "n": 7, "status": "ok", "reason": "", "epsilon": 0.1, "bins": 5,
        "feature": "age",
    }  # fmt: skip


def test_columns_have_their_types_whatever_is_in_them():
    assert tuple(Setting._fields) == tuple(SETTINGS)
    with_settings = MetricTable()
    with_settings.add("coverage", 0.5, 7, setting=Setting(level=0.9))
    for table in (MetricTable(), table_with(("accuracy", 0.5, 9)), with_settings):
        types = {name: str(dtype) for name, dtype in table.frame().dtypes.items()}
        assert {name: types[name] for name in SETTINGS} == dict(SETTINGS)
        assert (types["value"], types["n"], types["status"]) == ("float64", "int64", "category")
        assert tuple(table.frame()["status"].cat.categories) == STATUSES


def test_a_setting_is_read_in_words():
    table = MetricTable()
    for setting in (Setting(), Setting(rate=0.1, feature="age"), Setting(bins=15, binning="mass")):
        table.add("shift", 0.25, 7, setting=setting)
    texts = ["", "rate=0.1 feature=age", "bins=15 binning=mass"]
    assert list(setting_text(table.frame())) == texts
    assert list(setting_text(table.frame().iloc[::-1])) == texts[::-1]


def test_a_nan_is_undefined_and_has_no_interval():
    table = MetricTable()
    table.add("gap", NAN, 7, interval=(0.1, 0.4))
    table.add("gap", NAN, 7, status=undefined("no positives"))
    frame = table.frame()
    assert list(frame["status"]) == ["undefined"] * 2
    assert list(frame["reason"]) == ["the value is not a number", "no positives"]
    assert frame[["value", "lower", "upper"]].isna().all(axis=None)


@pytest.mark.parametrize("level", [0.95, 0.8])
def test_a_mean_has_the_papers_normal_interval_of_its_level(level):
    losses = np.random.default_rng(0).exponential(size=50)
    table = MetricTable(level=level, frequentist=False)
    table.add_mean("log_loss", losses, EVERYONE)
    (found,) = table.frame().to_dict("records")
    lower, upper = stats.norm.interval(level, losses.mean(), stats.sem(losses))
    assert (found["value"], found["n"]) == (pytest.approx(losses.mean()), 50)
    assert (found["lower"], found["upper"]) == (pytest.approx(lower), pytest.approx(upper))


@pytest.mark.parametrize("level", [0.95, 0.8])
def test_a_mean_has_an_interval_that_knows_skewness_from_20_rows_on(level):
    losses = np.random.default_rng(0).exponential(size=50)
    table = MetricTable(level=level)
    for rows in (50, 19):
        table.add_mean("log_loss", losses[:rows], EVERYONE)
    known, unknown = table.frame().to_dict("records")
    expected = loss_limits(Moments.of(losses), level=level)
    assert (known["lower"], known["upper"], known["status"]) == (*expected[1:], "ok")
    assert (unknown["status"], unknown["reason"]) == ("insufficient", "n=19, an interval needs 20")
    assert np.isnan(unknown["lower"])
    assert unknown["value"] == pytest.approx(losses[:19].mean())


@pytest.mark.parametrize(
    ("where", "reason"),
    [(EVERYONE, "no rows"), (Where("sex", "F"), "no rows in group 'F'")],
)
def test_a_mean_of_nothing_says_so(where, reason):
    table = MetricTable()
    table.add_mean("log_loss", np.empty(0), where)
    (found,) = table.frame().to_dict("records")
    assert (found["n"], found["status"], found["reason"]) == (0, "undefined", reason)
    assert np.isnan(found["value"])


def test_an_invalidated_table_keeps_its_rows_and_gives_the_reason():
    table = table_with(("error_rate", 0.1, 9), ("accuracy", 0.9, 9))
    invalid = table.invalidated("only class 0 among 40 training rows").frame()
    assert list(invalid["metric"]) == ["error_rate", "accuracy"]
    assert list(invalid["n"]) == [9, 9]
    assert set(invalid["status"]) == {"undefined"}
    assert set(invalid["reason"]) == {"only class 0 among 40 training rows"}
    assert invalid[["value", "lower", "upper"]].isna().all(axis=None)
    assert list(table.frame()["value"]) == [0.1, 0.9]


def test_concatenate_puts_the_keys_first_and_keeps_the_order():
    tables = [
        ((repeat, 0, variant), table_with(*(("accuracy", value, 5) for value in values)))
        for repeat, variant, values in ((1, "", (0.4, 0.5)), (0, "deep", (0.6,)), (2, "", ()))
    ]
    stacked = concatenate(tables)
    assert tuple(stacked.columns) == (*KEYS, *COLUMNS)
    assert list(stacked["repeat"]) == [1, 1, 0]
    assert list(stacked["variant"]) == ["", "", "deep"]
    assert list(stacked["value"]) == [0.4, 0.5, 0.6]
    assert list(stacked.index) == [0, 1, 2]
