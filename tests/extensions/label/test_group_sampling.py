"""Labels of rows that were chosen by group: the pool's figures, whatever the labels' shares."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from fairbench.audits.assessment import assess, calibrations
from fairbench.audits.table import read_audit_table
from fairbench.evaluation.evaluator import Evaluator
from fairbench.evaluation.table import setting_text, values_of
from fairbench_label.estimates import ChosenRows, GroupSampling
from tests.audits.tables import concluded, parse, predictions, written

SCORES = ("log_loss", "brier_score", "roc_auc", "expected_calibration_error")


def chosen_table(frame, folder, by, *more):
    words = [str(written(frame, folder)), "target=label", "score=score", "group=[sex,race]"]
    options = parse([*words, "labelled=is_labelled", *more])
    table = read_audit_table(options)
    return replace(table, sampling=GroupSampling(by, table.groups[by])), options


def unequal(rows, seed, women=0.04, men=0.4):
    """Show each sex's labels at its own rate; women's scores are wrong by a quarter."""
    frame = predictions(rows, bias=0.25, seed=seed)
    rate = np.where(frame["sex"] == "Female", women, men)
    return frame.assign(is_labelled=np.random.default_rng(seed + 1).random(rows) < rate)


def weighted(label, score, strata, groups, evaluator):
    """Return the rows of scores of which labels were chosen by stratum."""
    cells = pd.Series(pd.Categorical.from_codes(strata, [*map(str, range(strata.max() + 1))]))
    decisions = (score > 0.5).astype(int)
    rows = ChosenRows(score, decisions, label, groups, cells, strata=strata)
    table, _ = rows.evaluate(evaluator, 0)
    return table[table["metric"].isin(SCORES)]


@pytest.fixture(autouse=True)
def without_simulation(monkeypatch):
    monkeypatch.setattr("fairbench.audits.assessment.with_needed", lambda gaps, *_: gaps)


def test_equal_shares_give_what_a_random_sample_gives(tmp_path):
    """An oracle for the weights: where all labels weigh the same, they change nothing."""
    frame = predictions(400, labels=400)
    table, options = chosen_table(frame, tmp_path, "sex")
    weighed = assess(table, options).metrics
    plain = assess(replace(table, sampling=None), options).metrics
    keys = ["metric", "attribute", "group", "setting"]
    tables = (values_of(frame) for frame in (weighed, plain))
    weighed, plain = (table.assign(setting=setting_text(table)) for table in tables)
    both = weighed.merge(plain, on=keys, suffixes=("", "_plain")).query("metric in @SCORES")
    assert len(both) >= 5 * 12
    np.testing.assert_allclose(both["value"], both["value_plain"], atol=1e-12)
    everyone = both.query("attribute == '' and metric == 'log_loss'")
    width = everyone["upper"] - everyone["lower"]
    plain_width = everyone["upper_plain"] - everyone["lower_plain"]
    np.testing.assert_allclose(width, plain_width, rtol=1e-6)


@pytest.mark.slow
def test_weighted_figures_are_unbiased_and_plain_ones_are_not(tmp_path):
    pool = predictions(100_000, bias=0.25)
    known, sexes = pool["label"].to_numpy(float), pool["sex"].astype("category")
    score, codes = pool["score"].to_numpy(), sexes.cat.codes.to_numpy(np.int64)
    truth = ((known - score) ** 2).mean()
    held, plain = 0, []
    for seed in range(200):
        generator = np.random.default_rng(seed)
        shown = generator.random(len(pool)) < np.where(codes == 0, 0.004, 0.002)
        frame = weighted(np.where(shown, known, np.nan), score, codes, {}, Evaluator())
        (row,) = frame.query("metric == 'brier_score'").itertuples()  # once, and no more
        held += int(row.lower <= truth <= row.upper)
        plain.append(((known - score) ** 2)[shown].mean() - truth)
    # At least 186 expected, with a standard deviation of 3.6.
    assert held >= 173
    assert abs(np.mean(plain)) > 5 * np.std(plain) / np.sqrt(200)


def test_the_papers_evaluation_has_normal_intervals_of_means_and_no_others():
    pool = predictions(500, bias=0.25)
    codes = pool["sex"].astype("category").cat.codes.to_numpy(np.int64)
    label, score = pool["label"].to_numpy(float), pool["score"].to_numpy()
    groups = {"sex": pool["sex"].astype("category")}
    rows = weighted(label, score, codes, groups, Evaluator(interval="dirichlet"))
    assert not rows.duplicated(["metric", "attribute", "group", "binning"]).any()
    has_interval = rows["lower"].notna()
    assert set(rows.loc[has_interval, "metric"]) == {"log_loss", "brier_score"}
    assert has_interval.sum() == 2 * 3


@pytest.mark.thorough
def test_excess_of_scores_is_that_of_the_pool(tmp_path):
    """Races are mixtures of the sexes; the intervals of their excess hold the pool's."""
    held = total = 0
    for seed in range(30):
        frame = unequal(4000, seed)
        table, _ = chosen_table(frame, tmp_path, "sex")
        excess = pd.Series(frame["score"] - frame["label"])
        truth = excess.groupby(table.groups["race"].to_numpy()).mean()
        for calibration in calibrations(table):
            if calibration["attribute"] == "race" and calibration["labels"] >= 20:
                mean = truth[calibration["group"]]
                held += int(calibration["lower"] <= mean <= calibration["upper"])
                total += 1
    assert total > 80
    # One in twenty may miss, and the pool is finite: 4 standard errors.
    assert held / total >= 0.95 - 4 * np.sqrt(0.05 * 0.95 / total)


def test_it_says_how_rows_were_chosen(tmp_path):
    frame = unequal(600, 0).assign(is_labelled=lambda f: f["is_labelled"] & (f["sex"] == "Male"))
    table, options = chosen_table(frame, tmp_path, "sex")
    conclusions = concluded(assess(table, options))
    basis = " ".join(conclusions.basis)
    assert "How many rows of each group of sex were labelled was decided while labelling" in basis
    assert "assumes" not in basis
    assert "No row of Female has a label yet" in " ".join(conclusions.notes)
