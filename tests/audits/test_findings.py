"""The rule by which findings are said, and the error rate that they share."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from fairbench.audits.gaps import ASSUMED, Gap, gaps_of
from fairbench.evaluation.findings import (
    GAP,
    LARGE,
    NOT_MEASURED,
    OPEN,
    SMALL,
    ErrorBudget,
    Finding,
    GapAnswer,
    answer_gap,
)
from fairbench.evaluation.groups import CountIntervals, GapInterval, GroupCounts, PosteriorIntervals
from fairbench.inference.gaps import GroupLimits, leads
from fairbench.inference.posterior import posterior_draws
from tests.audits.tables import bounds_of


def _answer(successes, size, *, bound=0.05, risk=0.01):
    counts = np.array(successes, float), np.full(len(successes), float(size))
    return answer_gap(
        lambda level: GapInterval.of(GroupLimits.of(*counts, level=level)), bound, risk
    )


def test_of_a_small_gap_nothing_more_is_said():
    small = _answer([50_000, 51_000], 100_000)
    assert (small.verdict, list(small.pairs)) == (SMALL, [])
    assert _answer([50_000, 51_000], 100_000, bound=0.005).pairs == [(1, 0)]


def test_of_two_groups_who_is_ahead_takes_the_whole_risk():
    """Of more groups, pairs are told apart at half of it, as they are said beside the gap."""
    for successes in ([400, 450, 470], [400, 480]):
        risk = 0.01 / (1 + (len(successes) > 2))
        limits = GroupLimits.of(np.array(successes), np.full(len(successes), 1000), level=1 - risk)
        answer = _answer(successes, 1000)
        assert set(answer.pairs) == {
            (int(high), int(low)) for high, low in np.argwhere(leads(limits) > 0)
        }


RISK = 0.01


def at_level(groups, apart_up_to=0.0, lower=0.0):
    """Return intervals whose upper end is their level, with a pair apart up to some level."""

    def interval(level):
        leads = np.full((groups, groups), -1.0)
        leads[1, 0] = apart_up_to - level
        return GapInterval(np.array(lower), np.array(level), leads)

    return interval


@pytest.mark.parametrize(("bound", "verdict"), [(1 - 1.9 * RISK, SMALL), (1 - 2.1 * RISK, OPEN)])
def test_a_gap_is_small_at_twice_the_risk_and_no_more(bound, verdict):
    """The upper end misses on one side alone, so that its interval may miss twice as often."""
    assert answer_gap(at_level(2), bound, RISK).verdict == verdict
    assert answer_gap(at_level(2), bound, RISK, may_be_small=False).verdict == OPEN


@pytest.mark.parametrize(
    ("groups", "apart_up_to", "is_said"),
    [(2, 1 - 0.9 * RISK, True), (2, 1 - 1.1 * RISK, False),
     (3, 1 - 0.4 * RISK, True), (3, 1 - 0.6 * RISK, False)],
)  # fmt: skip
def test_pairs_of_two_groups_take_the_whole_risk_and_of_more_half(groups, apart_up_to, is_said):
    answer = answer_gap(at_level(groups, apart_up_to), 0.5, RISK)
    assert (answer.verdict, list(answer.pairs)) == (OPEN, [(1, 0)] * is_said)
    large = answer_gap(at_level(groups, 1.0, lower=0.6), 0.5, RISK)
    assert (large.verdict, large.named, list(large.pairs)) == (LARGE, (1, 0), [(1, 0)])


@pytest.mark.parametrize(
    ("groups", "answer", "freed"),
    [
        (2, GapAnswer(SMALL), 1.0),
        (2, GapAnswer(LARGE, (0, 1), [(0, 1)]), 1.0),
        (3, GapAnswer(SMALL), 1.0),
        (3, GapAnswer(LARGE, (0, 1), [(0, 1)]), 0.5),  # two pairs may still be called apart wrongly
        (3, GapAnswer(LARGE, (0, 1), [(0, 1), (0, 2), (2, 1)]), 1.0),
        (3, GapAnswer(OPEN, pairs=[(0, 1)]), 0.0),
    ],
)
def test_what_can_still_be_wrong_keeps_its_share_of_the_error_rate(groups, answer, freed):
    asked = Finding(GAP, "sex", "accuracy", NOT_MEASURED)
    gap = Gap(asked, metric="accuracy_gap", compared=list(range(groups)), answer=answer)
    assert gap.freed == freed
    assert replace(gap, asked=replace(asked, given=ASSUMED)).freed == 0
    assert ErrorBudget(5).passed_on(freed, 2).risk == pytest.approx(0.05 / 5 * freed / 2)


@pytest.mark.parametrize("selected", range(100, 200, 4))
def test_without_labels_a_probability_is_no_surer_than_the_interval_beside_it(selected):
    counts = np.array([[250, 250, 0, 0], [500 - selected, selected, 0, 0]])
    draws = posterior_draws(counts, 1000, np.random.default_rng(selected))
    intervals = PosteriorIntervals(counts, draws, 0.95)
    counted = GroupCounts("sex", ["a", "b"], counts, intervals)
    (gap,) = gaps_of([counted], **bounds_of(0.1, 10), assumed=True, metrics=["statistical_parity"])
    least = max(0.0, gap.lower, -gap.upper)
    most = max(abs(gap.lower), abs(gap.upper))
    assert gap.small >= 0.05 or least > 0.1
    assert gap.small <= 0.95 or most < 0.1


def test_a_gap_that_is_called_small_is_probably_small():
    """With one question of a page, and three groups, a posterior may be less sure than that."""
    counts = np.array([[1000, 1000, 0, 0]] * 2 + [[1005, 995, 0, 0]])
    draws = posterior_draws(counts, 1000, np.random.default_rng(0))
    counted = GroupCounts("sex", ["a", "b", "c"], counts, CountIntervals(counts, draws, 0.95))
    for epsilon in np.linspace(0.02, 0.05, 16):
        bounds = {**bounds_of(float(epsilon), 10), "risk": ErrorBudget(1).risk}
        (gap,) = gaps_of([counted], **bounds, assumed=False, metrics=["statistical_parity"])
        assert gap.small >= 0.95 or gap.verdict == OPEN


@pytest.mark.parametrize("size", [100, 108])
def test_one_question_about_two_alike_groups_is_answered_wrongly_in_under_5_percent(size):
    """Every table of two groups is counted; at exactly 95 % it would be 6.2 % of samples."""
    counts = np.arange(size + 1)
    tables = np.stack(np.meshgrid(counts, counts, indexing="ij"), axis=-1)

    def wrong(level):
        limits = GroupLimits.of(tables, np.full(tables.shape, size), level=level)
        differ = GapInterval.of(limits).lower > 0
        rates = np.linspace(0.002, 0.5, 200)
        of_group = stats.binom.pmf(counts[:, None], size, rates)
        return np.einsum("ip,ij,jp->p", of_group, differ.astype(float), of_group).max()

    assert wrong(1 - ErrorBudget(1).risk) < 0.045
    assert wrong(0.95) > 0.06
