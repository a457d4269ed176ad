"""The long table of metrics: rows, intervals of means, and what makes a row undefined."""

from dataclasses import replace

import numpy as np
import pytest

from fairbench.evaluation import table as tables
from fairbench.evaluation.metric_batches import RowLabel, add_estimates, mean_batch
from fairbench.evaluation.predictions import AllGroups
from fairbench.inference.means import Moments, loss_limits
from tests.evaluation.labelled import added


def test_columns_have_their_types_whatever_is_in_them():
    assert tuple(tables.Setting._fields) == (*tables.SETTINGS, *tables.STRATA)
    plain, with_settings = tables.MetricTable(), tables.MetricTable()
    plain.add("accuracy", 0.5, 9)
    with_settings.add("coverage", 0.5, 7, setting=tables.Setting(level=0.9))
    for table in (tables.MetricTable(), plain, with_settings):
        types = {name: str(dtype) for name, dtype in table.frame().dtypes.items()}
        assert {name: types[name] for name in tables.SETTINGS} == dict(tables.SETTINGS)
        assert (types["value"], types["n"], types["status"]) == ("float64", "int64", "category")
        for name, texts in (("status", tables.STATUSES), ("statistic", tables.STATISTICS)):
            assert tuple(table.frame()[name].cat.categories) == texts


def test_a_mean_has_an_interval_that_knows_skewness_from_20_rows_on():
    losses, rows = np.random.default_rng(0).exponential(size=50), []
    for n in (50, 19):
        everyone = AllGroups.of(n, {})
        batch = mean_batch(losses[None, :n], [RowLabel("log_loss")], everyone)
        rows.append(added(add_estimates, everyone, [batch], level=0.8)["log_loss", "", ""])
    known, unknown = rows
    expected = loss_limits(Moments.of(losses), level=0.8)
    assert [known.lower, known.upper] == pytest.approx([*map(float, expected[1:])])
    assert known.status == "ok"
    assert unknown.status == "insufficient: n=19, an interval needs 20"
    assert np.isnan(unknown.lower)
    assert unknown.value == pytest.approx(losses[:19].mean())


def test_an_invalidated_table_keeps_its_rows_and_gives_the_reason():
    table = tables.MetricTable()
    table.add(("error_rate", "accuracy"), [[[0.1]], [[0.9]]], 9)
    invalid = table.without_values("only class 0 among 40 training rows").frame()
    assert list(invalid["metric"]) == ["error_rate", "accuracy"]
    assert list(invalid["n"]) == [9, 9]
    assert set(invalid["status"]) == {"undefined"}
    assert set(invalid["reason"]) == {"only class 0 among 40 training rows"}
    assert invalid[["value", "lower", "upper"]].isna().all(axis=None)
    assert list(table.frame()["value"]) == [0.1, 0.9]


def test_rows_of_several_splits_come_split_by_split_behind_their_keys():
    several = tables.MetricTable(splits=(2, 0))
    several.add("accuracy", [[0.6], [0.4]], 5)
    several.add(("low", "high"), [[[0.1], [0.2]], [[0.8], [0.9]]], [[5], [6]])
    several.add("points", [[1.0], [2.0]], 3, is_row=np.array([[True], [False]]))
    replace(several, splits=(0,)).add("accuracy", 0.5, 5)
    stacked = tables.concatenate([several], [(0, 1, 0, ""), (0, 9, 9, "none"), (1, 0, 3, "deep")])
    assert tuple(stacked.columns) == ("run", *tables.KEYS, *tables.COLUMNS)
    assert list(stacked["repeat"]) == [1, 1, 1, 1, 0, 0, 0, 0]
    assert list(stacked["variant"]) == [*[""] * 4, *["deep"] * 4]
    assert list(stacked["metric"]) == ["accuracy", "low", "high", "accuracy"] + [
        "accuracy", "low", "high", "points"
    ]  # fmt: skip
    assert list(stacked["value"]) == [0.4, 0.2, 0.9, 0.5, 0.6, 0.1, 0.8, 1.0]
    assert list(stacked["n"]) == [5, 6, 6, 5, 5, 5, 5, 3]
    first, second = tables.by_run(stacked)
    assert list(first["metric"]) == ["accuracy", "low", "high", "accuracy"]
    assert tuple(second.columns) == (*tables.KEYS, *tables.COLUMNS)
    assert list(second["value"]) == [0.6, 0.1, 0.8, 1.0]
    for part in (stacked, first, second):
        assert list(part.index) == list(range(len(part)))


def test_a_gap_of_a_group_of_few_rows_is_flagged_and_keeps_the_rows_of_all():
    table = tables.MetricTable(minimum=10)
    table.add("error_rate_gap", 0.2, 300, interval=(0.0, 0.9), fewest=4)
    row = table.frame().iloc[0][["n", "status", "reason"]]
    assert [*row] == [300, "insufficient", "n=4 in the smallest group"]
