"""Gaps between groups: what they are, their intervals, and noise told from differences."""

from __future__ import annotations

import numpy as np
import pytest

from fairbench.audits.direction import RATE_OF
from fairbench.audits.gaps import _draws_at, gaps_of, with_tipping
from fairbench.audits.kinds.binary import _percent
from fairbench.evaluation.findings import LARGE, OPEN, SMALL, answer_gap
from fairbench.evaluation.groups import (
    CountIntervals,
    GroupCounts,
    LabelledIntervals,
    PosteriorIntervals,
)
from fairbench.inference.gaps import GroupLimits, largest_gap
from fairbench.inference.posterior import posterior_draws
from fairbench.inference.survey import LabelledRows
from tests.audits.tables import bounds_of

GROUPS = 10
# The mean range of ten standard normal values (Tippett 1925).
MEAN_RANGE = 3.0775


def alike(rows, generator):
    """Return the counts of groups of which all have the same shares of TN, FP, FN, TP."""
    counts = generator.multinomial(rows, [0.4, 0.1, 0.2, 0.3], size=GROUPS)
    names = [f"g{i}" for i in range(GROUPS)]
    draws = posterior_draws(counts, 1000, generator)
    return GroupCounts("group", names, counts, PosteriorIntervals(counts, draws, 0.95))


def test_what_groups_that_are_alike_would_show_is_the_range_of_their_noise():
    counted = alike(4000, np.random.default_rng(1))
    (gap,) = (
        g
        for g in gaps_of([counted], **bounds_of(0.05, 1), assumed=False)
        if g.metric == "accuracy_gap"
    )
    share = counted.counts[:, [0, 3]].sum(axis=1) / 4000
    sd = np.sqrt(share * (1 - share) / 4000).mean()
    # The sd of a range of ten is 0.8 of theirs, and 1000 are averaged.
    assert gap.noise == pytest.approx(MEAN_RANGE * sd, abs=5 * 0.8 * sd / np.sqrt(1000))


def test_the_gap_of_two_groups_is_signed_and_has_no_noise_to_tell_apart():
    counts = np.array([[80, 20, 10, 90], [60, 40, 10, 90]])
    draws = posterior_draws(counts, 4000, np.random.default_rng(2))
    gaps = gaps_of(
        [GroupCounts("group", ["a", "b"], counts, PosteriorIntervals(counts, draws, 0.95))],
        **bounds_of(0.05, 1),
        assumed=False,
    )
    gap = next(gap for gap in gaps if gap.metric == "false_positive_rate_gap")
    # Of beta posteriors with one row more of either kind.
    assert gap.value == pytest.approx(41 / 102 - 21 / 102, abs=5 * 0.065 / np.sqrt(4000))
    assert np.isnan(gap.noise)


def test_of_complete_labels_the_interval_is_of_the_counts_and_pairs_are_named():
    counts = np.array([[400, 100, 50, 450], [420, 80, 50, 450], [250, 250, 50, 450]])
    draws = posterior_draws(counts, 1000, np.random.default_rng(3))
    intervals = CountIntervals(counts, draws, 0.95)
    counted = GroupCounts("group", ["a", "b", "c"], counts, intervals)
    gaps = {gap.metric: gap for gap in gaps_of([counted], **bounds_of(0.05, 10), assumed=False)}
    odds = gaps["false_positive_rate_gap"]
    assert odds.value == pytest.approx(0.5 - 0.16)
    assert odds.lower < odds.value < odds.upper
    assert set(odds.pairs) == {("c", "a"), ("c", "b")}
    same = gaps["equal_opportunity"]
    assert same.lower == same.value == 0
    assert not same.pairs


def test_no_pair_of_many_is_surely_apart_because_no_draw_says_otherwise():
    """A thousand of a thousand draws are less than thirty alike groups, 435 pairs, need."""
    random = np.random.default_rng(5)
    wrong = 0
    for _ in range(60):
        selected = random.binomial(150, 0.5, 30)
        draws = random.beta(selected + 1, 151 - selected, (1000, 30))
        wrong += bool(answer_gap(_draws_at(draws), 0.05, 0.01).pairs)
    assert wrong <= 3


# How many labels would have to be wrong for a verdict not to hold.


def counted(counts):
    """Return counts of groups a, b, ... with complete labels."""
    table = np.array(counts)
    names = [chr(ord("a") + g) for g in range(len(table))]
    draws = np.random.default_rng(0).dirichlet([1.0] * 4, (50, len(table)))
    return GroupCounts("group", names, table, CountIntervals(table, draws, 0.95))


def gaps(each, epsilon):
    bounds = bounds_of(epsilon, 1)
    result = gaps_of([each], **bounds, assumed=False)
    return {gap.metric: gap for gap in with_tipping(result, [each], bounds["risk"])}


def verdicts_with(counts, group, wrong, metric, epsilon):
    """Return all verdicts that there are with so many wrong labels of a group, by trying all."""
    tables = []
    for positive in range(-wrong, wrong + 1):
        most = wrong - abs(positive)
        for negative in range(-most, most + 1):
            table = np.array(counts)
            table[group] += [-negative, -positive, negative, positive]
            tables += [table] * int(table.min() >= 0)
    rate = RATE_OF[metric]
    return verdicts_of(rate.successes(np.array(tables)), rate.size(np.array(tables)), epsilon)


def verdicts_of(successes, sizes, epsilon):
    known, risk = (successes, sizes), 0.05 / len(RATE_OF)
    at_most = largest_gap(GroupLimits.of(*known, level=1 - 2 * risk)).upper
    at_least = largest_gap(GroupLimits.of(*known, level=1 - risk)).lower
    verdicts = np.where(at_most < epsilon, SMALL, np.where(at_least > epsilon, LARGE, OPEN))
    return set(verdicts.tolist())


@pytest.mark.parametrize(
    ("counts", "metric", "epsilon"),
    [
        ([[30, 5, 20, 5], [20, 5, 3, 40]], "equal_opportunity", 0.1),
        ([[30, 5, 20, 5], [20, 5, 3, 40]], "accuracy_gap", 0.01),
        ([[40, 2, 20, 5], [12, 25, 3, 20]], "false_positive_rate_gap", 0.2),
        ([[30, 2, 10, 30], [34, 2, 9, 33]], "equal_opportunity", 0.4),
        ([[30, 2, 10, 30], [34, 2, 9, 33]], "predictive_parity", 0.35),
    ],
)
def test_a_verdict_holds_with_so_many_wrong_labels_and_not_with_one_more(counts, metric, epsilon):
    gap = gaps(counted(counts), epsilon)[metric]
    assert gap.verdict in (LARGE, SMALL)
    for name, share in gap.tipping.alone:
        group = "ab".index(name)
        wrong = round(share * sum(counts[group]))
        assert wrong > 0
        assert verdicts_with(counts, group, wrong, metric, epsilon) == {gap.verdict}
        assert verdicts_with(counts, group, wrong + 1, metric, epsilon) != {gap.verdict}
    assert gap.tipping.together < min(share for _, share in gap.tipping.alone)


def test_only_verdicts_that_rest_on_labels_have_a_tipping_point():
    result = gaps(counted([[300, 50, 200, 50], [20, 500, 30, 400]]), 0.05)
    assert result["statistical_parity"].verdict == LARGE
    assert result["statistical_parity"].tipping is None
    assert result["equal_opportunity"].tipping.groups == ["a", "b"]


def labelled(seed, rows=3000, labels=300):
    generator = np.random.default_rng(seed)
    score, group = generator.random(rows), generator.integers(0, 2, rows)
    decision = (score > 0.5).astype(np.int64)
    label = (generator.random(rows) < np.clip(score + 0.35 * group, 0, 1)).astype(np.int64)
    known = np.sort(generator.permutation(rows)[:labels])
    return LabelledRows(score, decision, group, 2, known, label[known])


def test_rows_of_one_group_are_worth_the_same_by_themselves():
    labels = labelled(3)
    rates = [LabelledIntervals.of(labels, np.zeros((2, 4)), 0.95, None).asked][0]
    whole = labels.effective_counts(rates)
    for g in (0, 1):
        alone = labels.of_group(g).effective_counts(rates)
        for of_all, mine in zip(whole, alone, strict=True):
            np.testing.assert_allclose(of_all[:, g], mine[:, 0], rtol=1e-9)


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.1299, "12 %"), (0.0199, "1.9 %"), (0.00256, "0.25 %"), (1.0, "100 %"), (0.1, "10 %")],
)
def test_shares_are_never_rounded_up(share, text):
    assert _percent(share) == text
