"""The tables of Uncertainty Matters, on a ground truth small enough to check by hand."""

import numpy as np
import pandas as pd
import pytest

from fairbench.components.papers.uncertainty_matters.measured import Measured
from fairbench.components.papers.uncertainty_matters.posteriors import (
    Cloud,
    events,
    favourable,
    values,
)
from fairbench.components.papers.uncertainty_matters.tables import (
    EVENTS,
    answers,
    events_table,
    read_published,
    table_12_1,
)

PAIR = ("Linear SVM + Hardt", "FERM")


def counts_of(accuracy, generator, cvs=40, rows=(810, 190)):
    """Return (B, G, 4) counts whose groups have this accuracy, give or take partition noise."""
    shares = np.array([0.7 * accuracy, 0.7 * (1 - accuracy), 0.3 * (1 - accuracy), 0.3 * accuracy])
    tables = np.array([np.round(shares * n) for n in rows]).astype(np.int64)
    moved = generator.integers(-3, 4, size=(cvs, len(rows)))
    counts = np.repeat(tables[None], cvs, axis=0)
    counts[..., 0] += moved
    counts[..., 1] -= moved
    return counts


@pytest.fixture(scope="module")
def measured():
    draw = np.random.default_rng(0)
    counts = {
        "SVM": counts_of(0.75, draw),
        PAIR[0]: counts_of(0.70, draw),
        PAIR[1]: counts_of(0.76, draw),
    }
    joint = np.zeros((3, 2, 8), np.int64)
    joint[:] = [[500, 30, 40, 20, 20, 30, 40, 130], [90, 10, 10, 5, 5, 10, 10, 50]]
    return Measured(counts, {PAIR: joint}, {"SVM": 1.0, PAIR[1]: 1.0}, posteriors=4, draws=2000)


def test_values_are_those_of_the_good_loan():
    counts = np.array([[60, 20, 5, 15], [30, 30, 10, 30]])  # label 1 is the bad one
    accuracy, difference = values(counts)
    assert accuracy == pytest.approx(135 / 200)
    assert difference == pytest.approx(30 / 60 - 60 / 80)
    np.testing.assert_array_equal(favourable(counts)[0], [15, 5, 20, 60])


def test_posterior_is_narrower_than_the_predictive_and_widens_with_rho():
    counts = counts_of(0.75, np.random.default_rng(1), cvs=3)
    sds = {}
    for worth, predictive in ((1.0, False), (0.5, False), (0.5, True)):
        draws = Cloud.of(
            counts, worth, np.random.default_rng(2), draws=20000, predictive=predictive
        )
        sds[worth, predictive] = draws.draws.std(axis=1)
    np.testing.assert_allclose(sds[0.5, False] / sds[1.0, False], np.sqrt(2), rtol=0.05)
    np.testing.assert_allclose(sds[0.5, True] / sds[0.5, False], np.sqrt(2), rtol=0.05)


def test_events_count_practical_differences():
    delta = np.array([[0.02, 0.02], [0.02, 0.0], [-0.02, 0.005], [0.0, 0.0], [0.02, -0.02]])
    shares = events(np.vstack([delta, [np.nan, 0.0]]))
    assert shares[EVENTS["p_a_outperforms_b"]] == pytest.approx(0.4)
    assert shares[EVENTS["p_b_outperforms_a"]] == pytest.approx(0.2)
    assert shares[EVENTS["p_equivalent"]] == pytest.approx(0.2)
    assert shares[EVENTS["p_a_accuracy_b_fairness"]] == pytest.approx(0.2)
    assert sum(shares.values()) == pytest.approx(1)


def test_regions_hold_the_partition_noise_and_shrink_with_rho(measured):
    rows = table_12_1(measured, read_published()).set_index(["method", "setting", "metric"])
    area = rows.xs("hdr95_area", level="metric")["posterior"]
    assert area["SVM", "rho=1/K"] / area["SVM", "rho in [0,1/K]"] == pytest.approx(
        1.9 * np.log(1.9) / 0.9, rel=0.05
    )
    inside = rows.xs("percent_of_cv_results_inside_hdr95", level="metric")["posterior"]
    assert inside["SVM", "rho=1/K"] == 100
    assert rows.loc[("SVM", "rho_rel", "hdr95_area"), "posterior"] == pytest.approx(
        area["SVM", "rho=1/K"], rel=0.05
    )


def test_what_was_not_run_or_has_no_half_splits_is_absent(measured):
    rows = table_12_1(measured, read_published())
    assert len(rows) == 104
    absent = rows[rows["posterior"].isna()]
    assert (absent["method"] == "LR").sum() == 8
    half = absent.loc[absent["method"] == PAIR[0], "setting"]
    assert set(half) == {"rho_rel", "rho_rel_up"}
    assert "SVM" not in set(absent["method"])


@pytest.mark.parametrize("table", ["2", "3"])
def test_events_of_the_tables_sum_to_one(measured, table):
    rows = events_table(measured, read_published(), table)
    mine = rows[rows["method"] == " vs ".join(PAIR)].set_index("setting")
    for kind in ("posterior", "predictive", "paired"):
        totals = mine.groupby("setting")[kind].sum(min_count=5)
        known = totals.drop(["ground truth"], errors="ignore")
        assert known["rho=1/K"] == pytest.approx(1)
        assert np.isnan(known["rho_rel"])  # one of the two has no half-splits
    assert rows.loc[rows["method"].str.startswith("Disparate"), "posterior"].isna().all()


def test_ground_truth_is_the_share_of_cross_validations(measured):
    rows = events_table(measured, read_published(), "2")
    truth = rows[(rows["method"] == " vs ".join(PAIR)) & (rows["setting"] == "ground truth")]
    assert truth["posterior"].sum() == pytest.approx(1)
    first, second = (values(measured.counts[name]) for name in PAIR)
    better = ((second - first > 0.01).any(axis=1) & (second - first >= -0.01).all(axis=1)).mean()
    shown = truth.set_index("metric").loc["p_b_outperforms_a", "posterior"]
    assert shown == pytest.approx(better)


def test_every_kind_of_draw_is_an_answer_to_its_published_number(measured):
    published = read_published()
    result = pd.DataFrame(answers(measured, published[published["table"].isin(["12.1", "2"])]))
    first = result[result["label"].isna()].set_index("row")
    assert list(first.index) == list(published.index[published["table"].isin(["12.1", "2"])])
    assert set(result["label"].dropna()) == {"predictive draws", "paired draws"}
    known = first.dropna(subset="mean")
    assert (known["error"] >= known["sd"]).all() | (known["repeats"] == 40).any()
