from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fairbench.cli.options import read
from fairbench.components.papers import CONF, PAPERS
from fairbench.components.papers.few_labels import datasets, errors, figures, tables
from fairbench.components.papers.few_labels.methods import (
    AS_PUBLISHED,
    POOL_NOISE,
    RATES,
    READINGS,
    Method,
    calibrated,
    intervals,
    rate_of,
)
from fairbench.components.papers.few_labels.pools import (
    everyone_else,
    label_orders,
    true_difference,
)
from fairbench.components.papers.few_labels.published_code import faulty_counts
from fairbench.components.papers.few_labels.tables import score
from fairbench.core.errors import UserError
from fairbench.core.seeds import rng
from fairbench.inference.few_labels.table import PartlyLabelled
from fairbench.metrics.rates import accuracy, false_positive_rate
from fairbench.reporting.papers.figures import draw_figure
from fairbench.reporting.papers.mapping import Paper
from fairbench.reporting.papers.running import Effort


@pytest.fixture(scope="module")
def table():
    generator = np.random.default_rng(0)
    score, label = generator.random(600), generator.random(600)
    group = generator.choice(["a", "b", "c"], 600, p=[0.7, 0.2, 0.1])
    return PartlyLabelled.of(score, group, (label < score).astype(float), reference="a")


def test_a_member_of_every_group_comes_first(table):
    for order in label_orders(table, 5):
        assert sorted(order) == list(range(600))
        assert sorted(table.group[order[:3]]) == [0, 1, 2]


def test_everyone_else_is_one_group(table):
    counts = everyone_else(table.counts())
    others = table.group > 0
    right = table.prediction == table.label
    assert counts[1].sum() == others.sum()
    expected = right[others].mean() - right[~others].mean()
    assert true_difference(table, accuracy) == pytest.approx(expected)


METHODS = ("frequentist", "beta_binomial", "beta_calibration", "prediction_powered")


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("rate", RATES.values(), ids=RATES)
def test_many_labels_find_the_truth(table, name, rate):
    orders = [order[:550] for order in label_orders(table, 3)]
    (values,) = intervals(table, orders, Method(name), [rate], rng(0, "test"))
    assert (values[:, 1] < values[:, 0]).all()
    assert (values[:, 0] < values[:, 2]).all()
    # TPRs of the others are averaged by size, as published, and not by positives.
    atol = 0.02 if rate is accuracy else 0.06
    np.testing.assert_allclose(values[:, 0], true_difference(table, rate), atol=atol)


def test_pool_noise_widens(table):
    orders = [order[:100] for order in label_orders(table, 3)]
    said = calibrated(
        table,
        orders,
        Method("beta_calibration"),
        list(RATES.values()),
        rng(0, "x"),
        (AS_PUBLISHED, POOL_NOISE),
    )
    narrow, wide = (values[..., 2] - values[..., 1] for values in said.values())
    assert (wide > narrow).all()
    np.testing.assert_allclose(said[POOL_NOISE][0, :, 0], said[AS_PUBLISHED][0, :, 0], atol=0.01)


def test_a_reading_alone_says_what_it_says_beside_others(table):
    orders = [order[:30] for order in label_orders(table, 2)]
    rates, method = [accuracy, false_positive_rate], Method("beta_calibration")
    alone = intervals(table, orders, method, rates, rng(0, "x"))
    beside = calibrated(table, orders, method, rates, rng(0, "x"), READINGS)
    np.testing.assert_array_equal(beside[AS_PUBLISHED], alone)


@pytest.mark.parametrize("metric", ["mae_delta_fpr", "coverage95_delta_fpr_percent"])
def test_a_metric_names_its_rate(metric):
    assert rate_of(metric) is false_positive_rate


def test_the_false_positive_rate_is_the_true_positive_rate_of_the_other_class():
    """Turned scores, decisions and labels swap the two rates, and the sign of nothing else."""
    generator = np.random.default_rng(1)
    score, label = generator.random(500), generator.random(500)
    group = generator.choice(["a", "b"], 500)
    label = (label < score).astype(float)
    table = PartlyLabelled.of(score, group, label, reference="a")
    turned = PartlyLabelled.of(1 - score, group, 1 - label, reference="a")
    orders = [order[:40] for order in label_orders(table, 4)]
    for method in (Method("frequentist"), Method("beta_calibration")):
        (fpr,) = intervals(table, orders, method, [RATES["fpr"]], rng(0, "x"))
        (tpr,) = intervals(turned, orders, method, [RATES["tpr"]], rng(0, "x"))
        atol = 1e-12 if method.name == "frequentist" else 0.01
        # A false positive of the one is a missed positive, 1 - TPR, of the other.
        np.testing.assert_allclose(fpr[:, 0], -tpr[:, 0], atol=atol)


def test_faults_of_the_published_code_by_hand():
    """One unlabelled row a cell: the map has c for b, and scores are not clipped."""
    table = PartlyLabelled.of([0.999, 0.3, 0.8, 0.2], list("aaab"), [1, 0, 1, 0], reference="a")
    a, b, c = 0.1, -0.5, 0.2
    theta = np.tile([a, b, c], (3, 2, 1))
    counts = faulty_counts(table, np.array([2]), theta)
    odds = c + np.exp(a) * np.log([0.999, 0.3, 0.2]) - np.exp(c) * np.log([0.001, 0.7, 0.8])
    sure, no, other = 1 / (1 + np.exp(-odds))
    # The labelled row is a true positive of the first group.
    np.testing.assert_allclose(counts[0, 0], [1 - no, 1 - sure, no, sure + 1])
    np.testing.assert_allclose(counts[0, 1], [1 - other, 0, other, 0])


def test_errors_and_coverages_by_hand():
    values = np.array([[0.1, 0.0, 0.2], [0.3, 0.25, 0.4], [np.nan] * 3])
    assert score(values, 0.15, "mae_delta_accuracy")[0] == pytest.approx(10)
    assert score(values, 0.15, "coverage95_delta_accuracy_percent")[0] == pytest.approx(100 / 3)


@pytest.fixture
def one_pool(table, monkeypatch):
    """The simulated people in place of every released pool."""
    caches = (tables.answers, tables._orders)
    for kept in caches:
        kept.cache_clear()
    for module in (tables, errors, figures):
        monkeypatch.setattr(module, "pool", lambda *key: table)
    yield table
    for kept in caches:
        kept.cache_clear()


def test_numbers_are_of_the_row_they_answer(one_pool):
    row = {"dataset": "any", "sensitive_attribute": "sex", "learner": "mlp", "setting": ""}
    given = [
        ("beta_binomial", "mae_delta_accuracy"),
        ("beta_calibration", "mae_delta_tpr"),
        ("beta_calibration", "coverage95_delta_accuracy_percent"),
    ]
    rows = pd.DataFrame(
        [{**row, "method": m, "metric": metric, "n_labelled": "100"} for m, metric in given],
        index=[7, 3, 5],
    )
    ours = pd.DataFrame(tables.numbers(rows, None, Effort.QUICK))
    assert ours["row"].tolist() == [7, 3, 3, 5, 5]
    assert ours["label"].fillna("").tolist() == [
        "",
        "",
        "with the published code's faults",
        "",
        "with the pool's own noise",
    ]
    assert (ours["repeats"] == 10).all()
    assert ours["mean"].iloc[:3].between(0, 25).all()


def test_the_coverages_are_of_a_thousand_runs(one_pool, monkeypatch):
    asked = []
    empty = np.zeros((3, 2, 3))
    monkeypatch.setattr(
        tables,
        "answers",
        lambda key, labels, runs, method, readings: (
            asked.append(runs) or dict.fromkeys(readings, empty)
        ),
    )
    rows = pd.concat([tables.published("4.2").head(1), tables.published("4.4").head(1)])
    repeats = [number["repeats"] for number in tables.numbers(rows, None, Effort.WHOLE)]
    assert asked == [100, 1000]
    assert repeats[:2] == [100, 1000]
    mapping = Paper.read("few_labels", PAPERS)
    assert mapping.table("4.4")["runs"] == 1000 != mapping.runs


def test_errors_by_number_of_labels(one_pool):
    frame = errors.errors([("adult", "sex", "mlp")], 3)
    assert set(frame["labels"]) == {10, 20, 40, 100, 200}
    assert set(frame["rate"]) == {"accuracy", "tpr", "fpr"}
    place = {"labels": 100, "rate": "fpr", "method": "labels alone"}
    row = frame[(frame[list(place)] == pd.Series(place)).all(axis=1)].iloc[0]
    orders = [order[:100] for order in label_orders(one_pool, 3)]
    said = []
    for rows in orders:  # the FPRs of the labelled rows, by hand
        negatives = rows[one_pool.label[rows] == 0]
        of_group = [one_pool.prediction[negatives[one_pool.group[negatives] == g]].mean()
                    for g in range(3)]  # fmt: skip
        sizes = np.bincount(one_pool.group)[1:]
        said.append(np.average(of_group[1:], weights=sizes) - of_group[0])
    truth = true_difference(one_pool, false_positive_rate)
    assert row["error"] == pytest.approx(100 * np.abs(np.array(said) - truth).mean())


def test_calibration_is_best_where_scores_are_calibrated(one_pool):
    frame = errors.errors([("adult", "sex", "mlp")], 10, most=20)
    table = errors.best(frame)
    assert table.loc[("accuracy", 10), "configurations"] == 1
    assert table.loc[("accuracy", 10), "calibration errs least"] == 1


def test_an_error_that_is_undefined_in_every_run_is_missing():
    place = {"dataset": "d", "sensitive_attribute": "s", "learner": "l", "labels": 10}
    frame = pd.DataFrame(
        {**place, "rate": "tpr", "method": method, "error": error, "coverage": 50.0}
        for method, error in zip(errors.METHODS, (np.nan, 2.0, 1.0), strict=True)
    )
    wide = errors.side_by_side(frame)
    assert len(wide) == 1
    assert np.isnan(wide["labels alone"][0])
    assert errors.best(frame).empty


@pytest.mark.thorough
def test_every_figure_is_drawn(one_pool, tmp_path, monkeypatch):
    monkeypatch.setattr(figures, "figure_pools", lambda: {"people": one_pool})
    paper = Paper.read("few_labels", PAPERS)
    for figure in paper.figures:
        paths = draw_figure(paper, figure, CONF, tmp_path, Effort.FIRST)
        assert paths
        assert all(path.stat().st_size > 5000 for path in paths)
    kept = tmp_path / "papers" / "few_labels" / "errors-first.csv"
    assert pd.read_csv(kept)["runs"].eq(2).all()


def test_words_are_options():
    options = read(errors.Options, ["runs=5", "csv=a=b"])
    assert (options.runs, options.csv) == (5, Path("a=b"))
    with pytest.raises(UserError, match="whole number"):
        read(errors.Options, ["runs=few"])
    with pytest.raises(UserError, match="did you mean runs"):
        read(errors.Options, ["run=5"])


def test_the_data_sets_of_table_4_1(one_pool, monkeypatch):
    monkeypatch.setattr(datasets, "pool", lambda *key: one_pool)
    row = datasets.described(("adult", "sex", "mlp"))
    assert (row["rows"], row["groups"], row["reference"]) == (600, 3, "a")
    assert row["reference, %"] == pytest.approx(100 * np.mean(one_pool.group == 0))
    assert row["accuracy, %"] == pytest.approx(100 * np.mean(one_pool.prediction == one_pool.label))
