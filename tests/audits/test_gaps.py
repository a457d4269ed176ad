"""Gaps between groups: what they are, their intervals, and noise told from differences."""

import numpy as np
import pandas as pd
import pytest

from fairbench.audits.assessment import assess
from fairbench.audits.gaps import answer_draws, gaps_of
from fairbench.audits.kinds.binary import audit_of
from fairbench.audits.report import document_of
from fairbench.audits.table import read_audit_table
from fairbench.evaluation.group_intervals import PosteriorIntervals, group_intervals
from fairbench.evaluation.groups import GroupCounts
from fairbench.inference.posterior import posterior_draws
from fairbench.reporting.document.terminal import print_document
from tests.audits.tables import bounds_of, concluded, parse, written

GROUPS = 10
# The mean range of ten standard normal values (Tippett 1925).
MEAN_RANGE = 3.0775


def alike(rows, generator):
    """Return the counts of groups of which all have the same shares of TN, FP, FN, TP."""
    counts = generator.multinomial(rows, [0.4, 0.1, 0.2, 0.3], size=GROUPS)
    names = [f"g{i}" for i in range(GROUPS)]
    draws = posterior_draws(counts, 1000, generator)
    return GroupCounts("group", names, counts, PosteriorIntervals(counts, draws, 0.95))


def ten_groups(rows=1000, labels=100, seed=0):
    """Return predictions whose scores are true probabilities, whatever the group."""
    generator = np.random.default_rng(seed)
    score = generator.beta(1, 1.5, rows)
    label = (generator.random(rows) < score).astype(int)
    shown = np.isin(np.arange(rows), generator.permutation(rows)[:labels])
    group = [f"g{i % GROUPS}" for i in range(rows)]
    return pd.DataFrame({"group": group, "score": score, "label": label, "shown": shown})


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    path = written(ten_groups(), tmp_path_factory.mktemp("many"))
    options = parse([str(path), "target=label", "score=score", "group=group", "labelled=shown"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fairbench.audits.assessment.with_needed", lambda gaps, *_: gaps)
        return assess(read_audit_table(options), options)


@pytest.mark.thorough
def test_of_few_labels_a_gap_lies_in_its_interval(result):
    assert len(result.gaps) == 5
    assert all(gap.lower <= gap.value <= gap.upper for gap in result.gaps)


def test_what_groups_that_are_alike_would_show_is_the_range_of_their_noise():
    counted = alike(4000, np.random.default_rng(1))
    (gap,) = (
        g
        for g in gaps_of([counted], bounds_of(0.05, 1), assumed=False)
        if g.metric == "accuracy_gap"
    )
    share = counted.counts[:, [0, 3]].sum(axis=1) / 4000
    sd = np.sqrt(share * (1 - share) / 4000).mean()
    # The sd of a range of ten is 0.8 of theirs, and 1000 are averaged.
    assert gap.alike == pytest.approx(MEAN_RANGE * sd, abs=5 * 0.8 * sd / np.sqrt(1000))


def test_the_report_says_that_many_groups_are_far_apart_by_noise(result, capsys):
    conclusions = concluded(result)
    print_document(document_of(audit_of(result)))
    printed = capsys.readouterr().out
    gap = next(gap for gap in result.gaps if gap.metric == "accuracy_gap")
    assert f"{gap.value:.3f}" in printed
    (note,) = (note for note in conclusions.notes if "if every group had the same rate" in note)
    assert f"{gap.alike:.3f} in accuracy" in note


def test_the_gap_of_two_groups_is_signed_and_has_no_noise_to_tell_apart():
    counts = np.array([[80, 20, 10, 90], [60, 40, 10, 90]])
    draws = posterior_draws(counts, 4000, np.random.default_rng(2))
    gaps = gaps_of(
        [GroupCounts("group", ["a", "b"], counts, PosteriorIntervals(counts, draws, 0.95))],
        bounds_of(0.05, 1),
        assumed=False,
    )
    gap = next(gap for gap in gaps if gap.metric == "false_positive_rate_gap")
    # Of beta posteriors with one row more of either kind.
    assert gap.value == pytest.approx(41 / 102 - 21 / 102, abs=5 * 0.065 / np.sqrt(4000))
    assert np.isnan(gap.alike)


def test_of_complete_labels_the_interval_is_of_the_counts_and_pairs_are_named():
    counts = np.array([[400, 100, 50, 450], [420, 80, 50, 450], [250, 250, 50, 450]])
    draws = posterior_draws(counts, 1000, np.random.default_rng(3))
    intervals = group_intervals(counts, draws, 0.95)
    counted = GroupCounts("group", ["a", "b", "c"], counts, intervals)
    gaps = {gap.metric: gap for gap in gaps_of([counted], bounds_of(0.05, 10), assumed=False)}
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
        wrong += bool(answer_draws(draws, 0.05, 0.01).pairs)
    assert wrong <= 3
