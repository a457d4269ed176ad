"""Evaluating stored cells: impossible outputs are kept for the methods that declare them."""

import numpy as np
import pytest

from fairbench.core.errors import UserError
from fairbench.data.encoding import Encoder, Encoding
from fairbench.experiments import pipeline
from fairbench.experiments.execute import carry_out
from fairbench.experiments.run_evaluation import RunEvaluation
from tests.harness import TINY, configuration


def run_with_impossible_sds(method, results):
    """Return a run whose one cell's first sds are negative and NaN."""
    cfg = configuration(
        "dataset=simulated_regression", f"method={method}", "learner.rounds=2", *TINY,
        results=results,
    )  # fmt: skip
    run = carry_out(cfg).prepared
    (cell,) = run.cells
    stored = run.store.read(cell.id)
    sd = stored.columns["sd"].copy()
    sd[:2] = -1, np.nan
    run.store.write(cell.id, {**stored.columns, "sd": sd}, stored.notes)
    return run


def test_a_method_that_declares_them_has_undefined_rows_with_a_count(tmp_path):
    metrics, _ = pipeline.evaluate_run(run_with_impossible_sds("normal_nll_reference", tmp_path))
    everyone = metrics[metrics["attribute"] == ""]
    for metric, what in (
        ("nll", "sd"), ("crps", "sd"), ("truth_rmse_sd", "sd"), ("coverage", "interval"),
        ("truth_rank_correlation", "uncertainty"), ("spread_error", "uncertainty"),
    ):  # fmt: skip
        rows = everyone[everyone["metric"] == metric]
        assert set(rows["status"]) == {"invalid"}, metric
        assert set(rows["reason"]) == {f"{what} invalid in 2 of 40 rows"}, metric
        assert rows["value"].isna().all()
    assert set(everyone[everyone["metric"] == "rmse"]["value"].isna()) == {False}


def test_of_any_other_method_they_are_refused(tmp_path):
    run = run_with_impossible_sds("normal_nll", tmp_path)
    with pytest.raises(UserError, match="^method NormalNLL: column 'sd' is not finite in 1 of 40"):
        pipeline.evaluate_run(run)


def test_neighbours_are_found_on_the_scale_of_the_training_rows(tmp_path):
    overrides = ("learner.rounds=2", "evaluator.neighbours=3", *TINY)
    run = carry_out(configuration(*overrides, results=tmp_path)).prepared
    (cell,) = run.cells
    parts = run.dataset, run.methods, run.evaluator, run.study.protect, run.store, run.study.seed
    encoded = RunEvaluation(*parts).read(cell, {}).test.encoded
    features = run.dataset.features
    scaler = Encoder(Encoding.STANDARD).fit(features.iloc[cell.fold.train])
    np.testing.assert_array_equal(encoded, scaler.transform(features.iloc[cell.fold.test]))
    metrics, _ = pipeline.evaluate_run(run)
    assert (metrics["metric"] == "individual_fairness_prediction").sum() == (1 + 2 * 5) * 3
