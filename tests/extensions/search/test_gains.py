"""What tuning gains: limits against closed forms, and simulated searches with known truth."""

import numpy as np
import pytest
from scipy import stats

from fairbench_search.gains import (
    GoalEstimate,
    JudgingRows,
    chosen_tails,
    gain_limits,
    value_limits,
)

PLAIN = 0.025, 0.025
ONE = np.ones((1, 1))
FOLDED = np.array([[1.0, -1.0], [-1.0, 1.0]])


def rate(wrong, sides=ONE):
    """Return the error rate of rows, (n,) of 0 and 1."""
    value = wrong.mean()
    return GoalEstimate(
        np.array([value]), (wrong - value)[:, None] / len(wrong), np.zeros(1), sides, 1.0
    )


def gap(selected, group):
    """Return the difference of selection rates of two groups, of either sign."""
    parts, influence = [], []
    for g in (0, 1):
        mask = group == g
        parts.append(selected[mask].mean())
        influence.append(np.where(mask, selected - parts[-1], 0) / mask.sum())
    least = np.array([1 / (group == g).sum() ** 2 for g in (0, 1)])
    return GoalEstimate(np.array(parts), np.stack(influence, axis=1), least, FOLDED, 1.0)


def judging_rows(rows, fresh=np.inf):
    return JudgingRows(np.arange(rows), np.zeros(rows, np.int64), fresh)


def test_the_interval_of_a_gain_is_that_of_the_paired_difference():
    rng = np.random.default_rng(0)
    one, two = (rng.random((2, 400)) < [[0.3], [0.25]]).astype(float)
    result = gain_limits(rate(one), rate(two), judging_rows(400), PLAIN)
    difference = one - two
    expected = stats.norm.interval(0.95, difference.mean(), difference.std() / 20)
    assert result == pytest.approx(expected)
    fresh = gain_limits(rate(one), rate(two), judging_rows(400, 100), PLAIN, fresh=True)
    expected = stats.norm.interval(0.95, difference.mean(), difference.std() * np.sqrt(5) / 20)
    assert fresh == pytest.approx(expected)


def test_rows_of_one_person_count_as_one():
    wrong = np.repeat(np.random.default_rng(0).random(100) < 0.3, 4).astype(float)
    unit = np.repeat(np.arange(100), 4)
    below, above = value_limits(rate(wrong), JudgingRows(unit, np.zeros(400, np.int64)), PLAIN)
    error = wrong.std() / np.sqrt(100)
    assert (above - below) == pytest.approx(2 * 1.96 * error, rel=1e-3)


@pytest.mark.parametrize("fresh", [False, True])
@pytest.mark.parametrize(("before", "after"), [(0.0, 0.0), (0.2, 0.02)])
def test_the_gain_in_a_gap_is_covered_where_its_sign_is_not_known(before, after, fresh):
    """Selections of two models that agree in most rows; the gap's sign may be either."""
    rng, rows, covered = np.random.default_rng(1), 400, []
    group = np.arange(rows) % 2

    def gaps_of_drawn():
        score, other = rng.random((2, rows))
        other = np.where(rng.random(rows) < 0.1, other, score)
        pairs = (score, before), (other, after)
        return (gap((draws < 0.4 + size * group).astype(float), group) for draws, size in pairs)

    for _ in range(150):
        one, two = gaps_of_drawn()
        low, high = gain_limits(one, two, judging_rows(rows, rows), PLAIN, fresh=fresh)
        truth = before - after
        if fresh:
            first, second = gaps_of_drawn()
            truth = first.value - second.value
        covered.append(low <= truth <= high)
    assert np.mean(covered) > 0.9


def searched(rng, means, trials):
    """Return trials that were proposed one after the other, each near the best before."""
    tried, count = [], len(means)
    for number in range(trials):
        best = min(tried, key=lambda at: means[at], default=0)
        near = int(np.clip(best + rng.integers(-3, 4), 1, count - 1))
        tried.append(int(rng.integers(1, count)) if number < trials // 2 else near)
    return sorted(set(tried))


def judged(losses, kept, fresh):
    noise = (losses - losses.mean(axis=0)).T / len(losses)
    variance = ((noise[kept] - noise[0]) ** 2).sum(axis=1) * len(losses) / fresh
    means = losses.mean(axis=0)
    return chosen_tails(
        values=means[kept][:, None],
        default=means[:1],
        noise=noise[kept][:, None],
        default_noise=noise[:1],
        unseen=np.full((len(kept), 1), 1 / len(losses) ** 2),
        fresh=variance[:, None],
        weights=np.ones(1),
    )


def coverage(seed, replications, *, spread, trials=12, rows=200, fresh=150):
    """Return how often the intervals of the expected gain and that on fresh rows cover.

    Losses of 40 settings on a line are 0 and 1, neighbours agreeing in most rows: a setting is
    wrong where a slowly varying score of the row is beyond a threshold.
    """
    rng, settings = np.random.default_rng(seed), 40
    truth = 0.25 + spread * np.linspace(-1, 1, settings) ** 2
    smooth = np.exp(-((np.arange(settings)[:, None] - np.arange(settings)) ** 2) / 50.0)
    root = np.linalg.cholesky(smooth + 1e-6 * np.eye(settings)).T
    limit = stats.norm.isf(truth)
    result = []
    for _ in range(replications):
        losses = (rng.standard_normal((rows, settings)) @ root > limit).astype(float)
        test = (rng.standard_normal((fresh, settings)) @ root > limit).astype(float).mean(axis=0)
        kept = searched(rng, losses.mean(axis=0), trials)
        ((gain, of_fresh, _),) = judged(losses, kept, fresh)
        best = kept[int(losses.mean(axis=0)[kept].argmin())]
        one, two = rate(losses[:, 0]), rate(losses[:, best])
        row = []
        for chosen, expected in ((gain, True), (of_fresh, False), (PLAIN, True)):
            low, high = gain_limits(one, two, judging_rows(rows, fresh), chosen, fresh=not expected)
            shown = (truth if expected else test)[[0, best]]
            row.append(low <= shown[0] - shown[1] <= high)
        result.append(row)
    return np.mean(result, axis=0)


@pytest.mark.parametrize(
    ("replications", "spread", "least"),
    [pytest.param(60, spread, 0.85, marks=pytest.mark.thorough) for spread in (0.0, 0.05)]
    + [pytest.param(1000, spread, 0.93, marks=pytest.mark.slow) for spread in (0.0, 0.05, 0.2)],
)
def test_the_promised_gain_of_an_adaptive_search_is_covered(replications, spread, least):
    expected, fresh, naive = coverage(replications // 1000, replications, spread=spread)
    assert min(expected, fresh) > least
    assert replications == 1000 or expected >= naive
