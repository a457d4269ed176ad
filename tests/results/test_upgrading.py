"""Tables of the last version, whose metrics are called after their statistic, read as today's."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from benchmarks.stored import configured, run_of
from fairbench import Evaluator, evaluate
from fairbench.evaluation.summary import summarise
from fairbench.evaluation.table import IN_STRATUM, STANDARDISED, STATISTICS
from fairbench.metrics.registry import declared
from fairbench.results import tables as tables_of_runs
from fairbench.results.catalogue import Catalogue
from fairbench.results.runs import RunWriter
from fairbench.results.tables import upgraded
from tests.results.test_run_folder import PREDICTIONS
from tests.studies import RECORD

ENDS = {
    "value": "", "debiased": "_debiased", "pooled": "_pooled", "below_epsilon": "_below",
    "pairs_that_differ": "_pairs", "worst": "_worst", "outside_band": "_outside_band",
}  # fmt: skip
WITHIN = {IN_STRATUM, STANDARDISED}  # which the last version had not
TEXTS = ["variant", "metric", "statistic", "attribute", "group", "status", "reason"]


@pytest.fixture(scope="module")
def metrics():
    """The metrics of a label and of three classes, in which every statistic occurs."""
    draw = np.random.default_rng(0)
    group, target = draw.choice(list("abc"), 500), draw.integers(2, size=500)
    score, one = draw.random(500), np.full(500, 0.01)
    fast = Evaluator(draws=100)
    label = evaluate(
        target, score > 0.5, score=score, aleatoric=one, epistemic=score / 9,
        sensitive_features=group, evaluator=fast,
    )  # fmt: skip
    shares = draw.dirichlet(np.ones(3), 500)
    classes = evaluate(
        draw.integers(3, size=500), shares.argmax(1), score=shares, sensitive_features=group,
        task="multiclass", evaluator=fast,
    )  # fmt: skip
    several = classes.assign(variant="several")
    table = pd.concat([label.assign(variant=""), several], ignore_index=True)
    assert set(table["statistic"]) == set(STATISTICS) - WITHIN
    keys = {"repeat": 0, "fold": 0, "variant": table.pop("variant")}
    kinds = pd.CategoricalDtype(list(STATISTICS))
    return pd.concat([pd.DataFrame(keys), table.astype({"statistic": kinds})], axis=1)


def earlier(table):
    """Return a table as the last version wrote it."""
    ends = table["statistic"].astype(str).map(ENDS)
    ends[table["metric"].str.endswith(("error_difference", "error_gap"))] = ""
    return table.assign(metric=table["metric"] + ends).drop(columns="statistic")


@pytest.mark.parametrize("coded", [[], ["metric"]], ids=["texts", "dictionaries"])
def test_an_earlier_table_upgraded_equals_the_new_one(metrics, coded):
    new, old = (
        pa.Table.from_pandas(table.astype(dict.fromkeys(coded, "category")), preserve_index=False)
        for table in (metrics, earlier(metrics))
    )
    result, new = upgraded(old).to_pandas(), new.to_pandas()
    assert list(result) == list(new)
    pd.testing.assert_frame_equal(result, new, check_categorical=not coded)


def test_a_table_of_today_and_one_of_no_metrics_are_left_as_they_are(metrics):
    for table in (pa.Table.from_pandas(metrics), pa.table({"name": ["equalized_odds_below"]})):
        assert upgraded(table) is table


def test_a_name_is_taken_apart_only_where_it_said_a_statistic(monkeypatch):
    names = ["agreeing_pairs", "equalized_odds_pairs", "idle_below", "accuracy_pooled", "accuracy"]
    table = pa.table({"metric": names})
    assert upgraded(table)["metric"].to_pylist() == [names[0], "equalized_odds", *names[2:]]
    known = {metric.name for metric in declared()}
    every = {"equalized_odds_pairs": SimpleNamespace(name="equalized_odds_pairs")}
    monkeypatch.setattr(
        tables_of_runs.registry, "find", lambda name: every.get(name) if name not in known else 1
    )
    tables_of_runs._earlier_names.cache_clear()
    try:  # a metric of one's own that is called so
        assert upgraded(table)["metric"].to_pylist() == names
    finally:
        tables_of_runs._earlier_names.cache_clear()


def test_runs_of_the_last_version_are_read_as_those_of_this_one(metrics, tmp_path, make_dataset):
    summary, result = summarise(metrics), []
    for name, as_written in (("old", earlier), ("new", lambda table: table)):
        tables = {
            "metrics": as_written(metrics),
            "summary": as_written(summary),
            "predictions": PREDICTIONS,
        }
        path = tmp_path / name / "runs" / run_of(RECORD)
        RunWriter(path).write(RECORD["config"], ["c0"], tables, make_dataset(), RECORD)
        result.append(Catalogue(tmp_path / name))
    old, new = result
    (one,), (other,) = old, new
    pd.testing.assert_frame_equal(one.all_metrics(), other.all_metrics())
    pd.testing.assert_frame_equal(one.summary(), other.summary())
    texts = dict.fromkeys(TEXTS, str)
    pd.testing.assert_frame_equal(old.metrics.astype(texts), new.metrics.astype(texts))
    assert set(new.metrics["statistic"]) == set(STATISTICS) - WITHIN


def test_runs_of_both_versions_are_read_together(metrics, tmp_path, make_dataset):
    for seed, table in enumerate((earlier(metrics), metrics)):
        record = configured(RECORD, {"seed": seed})
        tables = {
            "metrics": table,
            "summary": table.assign(mean=0.5, sd=0.1),
            "predictions": PREDICTIONS,
        }
        path = tmp_path / "mine" / "runs" / run_of(record)
        RunWriter(path).write(record["config"], ["c0"], tables, make_dataset(), record)
    result = Catalogue(tmp_path / "mine")
    one, other = result
    pd.testing.assert_frame_equal(one.all_metrics(), other.all_metrics())
    counts = result.metrics["statistic"].astype(str).value_counts()
    assert set(counts.index) == set(STATISTICS) - WITHIN and counts.min() >= 2
