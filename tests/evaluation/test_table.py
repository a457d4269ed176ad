"""The long table of metrics: rows, intervals of means, and what makes a row undefined."""

import numpy as np
import pytest
from scipy import stats

from fairbench.evaluation.table import (
    COLUMNS,
    EVERYONE,
    KEYS,
    NAN,
    MetricTable,
    Where,
    concatenate,
    invalidate,
)


def table_with(*rows, **options):
    table = MetricTable(**options)
    for metric, value, n in rows:
        table.add(metric, value, n)
    return table.frame()


def test_a_row_keeps_what_it_was_given():
    table = MetricTable()
    table.add("gap", 0.25, 7, Where("sex", "F"), setting="epsilon=0.1", interval=(0.1, 0.4))
    assert table.frame().to_dict("records") == [
        dict(zip(COLUMNS, ("gap", "sex", "F", "epsilon=0.1", 0.25, 0.1, 0.4, 7, "ok"), strict=True))
    ]


def test_a_nan_is_undefined_and_has_no_interval():
    table = MetricTable()
    table.add("gap", NAN, 7, interval=(0.1, 0.4))
    table.add("gap", NAN, 7, status="undefined: no positives")
    frame = table.frame()
    assert list(frame["status"]) == ["undefined", "undefined: no positives"]
    assert frame[["value", "lower", "upper"]].isna().all(axis=None)


@pytest.mark.parametrize("level", [0.95, 0.8])
def test_a_mean_has_the_normal_interval_of_its_level(level):
    losses = np.random.default_rng(0).exponential(size=50)
    table = MetricTable(level=level)
    table.add_mean("log_loss", losses, EVERYONE)
    (found,) = table.frame().to_dict("records")
    lower, upper = stats.norm.interval(level, losses.mean(), stats.sem(losses))
    assert (found["value"], found["n"]) == (pytest.approx(losses.mean()), 50)
    assert (found["lower"], found["upper"]) == (pytest.approx(lower), pytest.approx(upper))


@pytest.mark.parametrize(
    ("where", "status"),
    [(EVERYONE, "undefined: no rows"), (Where("sex", "F"), "undefined: no rows in group 'F'")],
)
def test_a_mean_of_nothing_says_so(where, status):
    table = MetricTable()
    table.add_mean("log_loss", np.empty(0), where)
    (found,) = table.frame().to_dict("records")
    assert (found["n"], found["status"]) == (0, status)
    assert np.isnan(found["value"])


def test_invalidate_keeps_the_rows_and_gives_the_reason():
    frame = table_with(("error_rate", 0.1, 9), ("accuracy", 0.9, 9))
    invalid = invalidate(frame, "only class 0 among 40 training rows")
    assert list(invalid["metric"]) == ["error_rate", "accuracy"]
    assert list(invalid["n"]) == [9, 9]
    assert set(invalid["status"]) == {"undefined: only class 0 among 40 training rows"}
    assert invalid[["value", "lower", "upper"]].isna().all(axis=None)
    assert list(frame["value"]) == [0.1, 0.9]


def test_concatenate_puts_the_keys_first_and_keeps_the_order():
    tables = [
        table_with(("accuracy", value, 5)).assign(repeat=repeat, fold=0, variant="")
        for repeat, value in ((1, 0.4), (0, 0.6))
    ]
    stacked = concatenate(tables)
    assert tuple(stacked.columns) == (*KEYS, *COLUMNS)
    assert list(stacked["repeat"]) == [1, 0]
    assert list(stacked.index) == [0, 1]
