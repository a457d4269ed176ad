"""What the battery calls fairlearn's bootstrap, Wilson's interval and the posterior is that."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from benchmarks.coverage import counts as made
from fairbench import Evaluator, evaluate
from fairbench.evaluation.table import values_of

RESAMPLES, QUANTILES = 60, [0.025, 0.975]


def test_the_bootstrap_is_fairlearns_resample_by_resample():
    from fairlearn.metrics import MetricFrame, selection_rate

    group = np.repeat(np.arange(3), [60, 40, 25])
    draw = np.random.default_rng(1)
    chosen = (draw.random(len(group)) < np.array([0.3, 0.5, 0.4])[group]).astype(int)
    frame = MetricFrame(
        metrics=selection_rate,
        y_true=chosen,
        y_pred=chosen,
        sensitive_features=group,
        n_boot=RESAMPLES,
        ci_quantiles=QUANTILES,
        random_state=7,
    )
    # Its resamples' rows, by the seeds that it draws for them.
    seeds = np.random.default_rng(7).integers(
        0, np.iinfo(np.uint32).max, size=RESAMPLES, dtype=np.uint32
    )
    rows = pd.DataFrame({"group": group, "chosen": chosen})
    counts = []
    for seed in seeds:
        drawn = rows.sample(frac=1, replace=True, random_state=seed)
        cell = drawn["group"] + 3 * (1 - drawn["chosen"])
        counts.append(np.bincount(cell, minlength=6))
    resampled = np.stack(counts)[:, None]
    for statistic, theirs in (
        (made.gap_of, frame.difference_ci()),
        (made.smallest_of, frame.ratio_ci()),
    ):
        ends = [end.item() for end in made.bootstrap_quantiles(resampled, statistic)]
        assert ends == pytest.approx(theirs, abs=1e-12)
    ends = np.array(made.bootstrap_quantiles(resampled, made.rate_of))[:, 0]
    np.testing.assert_allclose(ends, np.stack(frame.by_group_ci), atol=1e-12)


def test_wilson_limits_are_scipys():
    counts = made.Counts(np.array([[0, 3, 20]]), np.array([20, 50, 20]))
    lower, upper = made.wilson_limits(counts)[1:]
    for i in range(3):
        known = stats.binomtest(int(counts.successes[0, i]), int(counts.size[i]))
        ends = known.proportion_ci(0.95, "wilson")
        assert (lower[0, i], upper[0, i]) == pytest.approx(tuple(ends), abs=1e-9)


def test_the_intervals_of_before_are_the_evaluations():
    draw = np.random.default_rng(3)
    group, hard = np.repeat(["a", "b"], [60, 30]), draw.integers(0, 2, 90)
    evaluator = Evaluator(draws=20_000, interval="dirichlet")
    table = evaluate(draw.integers(0, 2, 90), hard, sensitive_features=group, evaluator=evaluator)
    rows = values_of(table).set_index(["metric", "group"])
    chosen = [int(hard[group == name].sum()) for name in "ab"]
    counts = made.Counts(np.array([chosen]), np.array([60, 30]))
    lower, upper = made.rate_posterior(counts, draw)
    for g, name in enumerate("ab"):
        row = rows.loc[("selection_rate", name)]
        assert (lower[0, g], upper[0, g]) == pytest.approx((row.lower, row.upper), abs=0.01)
    for statistic, key in (
        (made.difference_of, ("statistical_parity_difference", "b")),
        (made.ratio_of, ("statistical_parity_ratio", "b")),
        (made.gap_of, ("statistical_parity", "")),
    ):
        ends = [end.item() for end in made.posterior(statistic)(counts, draw)]
        row = rows.loc[key]
        assert ends == pytest.approx((row.lower, row.upper), abs=0.06)
