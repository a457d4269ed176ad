"""What is concluded: gaps, findings and their risk, and how often they are wrong."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from benchmarks.statements.kinds import populations
from benchmarks.statements.simulate import Truth, is_wrong, of_findings, of_page, simulate
from fairbench.audits.direction import RATE_OF
from fairbench.audits.gaps import ASSUMED, Gap, _draws_at, gaps_of
from fairbench.audits.kinds import document_of
from fairbench.audits.kinds.binary import _percent
from fairbench.audits.table import read_frame
from fairbench.evaluation import findings
from fairbench.evaluation.findings import GAP, LARGE, OPEN, SMALL, Finding, _GapAnswer, risk_of
from fairbench.evaluation.findings import _answer_gap as answer_gap
from fairbench.evaluation.groups import (
    CountIntervals,
    GapInterval,
    GroupCounts,
    LabelledIntervals,
    PosteriorIntervals,
)
from fairbench.inference.gaps import GroupLimits, largest_gap
from fairbench.inference.posterior import posterior_draws
from fairbench.inference.survey import LabelledRows
from tests.audits.tables import bounds_of, gap
from tests.harness import quick

# The mean range of ten standard normal values (Tippett 1925).
MEAN_RANGE = 3.0775


def counted(counts, kind=CountIntervals):
    """Return counts of groups a, b, ... with complete labels, or another kind of intervals."""
    table = np.array(counts)
    names = [chr(ord("a") + g) for g in range(len(table))]
    draws = posterior_draws(table, 1000, np.random.default_rng(0))
    return GroupCounts("group", names, table, kind(table, 0.95, draws))


def gaps(each, epsilon):
    bounds = bounds_of(epsilon, 1)
    result = gaps_of([each], **bounds, assumed=False)
    return {gap.metric: gap.tipped(each, bounds["risk"]) for gap in result}


def test_what_groups_that_are_alike_would_show_is_the_range_of_their_noise():
    shares = np.random.default_rng(1).multinomial(4000, [0.4, 0.1, 0.2, 0.3], size=10)
    groups = counted(shares, PosteriorIntervals)
    (gap,) = gaps_of([groups], **bounds_of(0.05, 1), assumed=False, metrics=["accuracy_gap"])
    share = groups.counts[:, [0, 3]].sum(axis=1) / 4000
    sd = np.sqrt(share * (1 - share) / 4000).mean()
    # The sd of a range of ten is 0.8 of theirs, and 1000 are averaged.
    assert gap.noise == pytest.approx(MEAN_RANGE * sd, abs=5 * 0.8 * sd / np.sqrt(1000))


def test_the_gap_of_two_groups_is_signed_and_has_no_noise_to_tell_apart():
    groups = counted([[80, 20, 10, 90], [60, 40, 10, 90]], PosteriorIntervals)
    gap = gaps(groups, 0.05)["false_positive_rate_gap"]
    # Of beta posteriors with one row more of either kind.
    assert gap.value == pytest.approx(41 / 102 - 21 / 102, abs=5 * 0.065 / np.sqrt(1000))
    assert np.isnan(gap.noise)


def test_of_complete_labels_the_interval_is_of_the_counts_and_pairs_are_named():
    counts = [[400, 100, 50, 450], [420, 80, 50, 450], [250, 250, 50, 450]]
    result = gaps(counted(counts), 0.05)
    odds = result["false_positive_rate_gap"]
    assert odds.value == pytest.approx(0.5 - 0.16)
    assert odds.lower < odds.value < odds.upper
    assert set(odds.pairs) == {("c", "a"), ("c", "b")}
    same = result["equal_opportunity"]
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
    known = rate.successes(np.array(tables)), rate.size(np.array(tables))
    risk = 0.05 / len(RATE_OF)
    at_most = largest_gap(GroupLimits.of(*known, level=1 - 2 * risk)).upper
    at_least = largest_gap(GroupLimits.of(*known, level=1 - risk)).lower
    verdicts = np.where(at_most < epsilon, SMALL, np.where(at_least > epsilon, LARGE, OPEN))
    return set(verdicts.tolist())


DECIDED = [
    ([[30, 5, 20, 5], [20, 5, 3, 40]], "equal_opportunity", 0.1),
    ([[30, 5, 20, 5], [20, 5, 3, 40]], "accuracy_gap", 0.01),
    ([[40, 2, 20, 5], [12, 25, 3, 20]], "false_positive_rate_gap", 0.2),
    ([[30, 2, 10, 30], [34, 2, 9, 33]], "equal_opportunity", 0.4),
    ([[30, 2, 10, 30], [34, 2, 9, 33]], "predictive_parity", 0.35),
]


@pytest.mark.parametrize(("counts", "metric", "epsilon"), DECIDED)
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


def test_rows_of_one_group_are_worth_the_same_by_themselves():
    generator = np.random.default_rng(3)
    score, group = generator.random(3000), generator.integers(0, 2, 3000)
    decision = (score > 0.5).astype(np.int64)
    label = (generator.random(300) < np.clip(score + 0.35 * group, 0, 1)[:300]).astype(np.int64)
    labels = LabelledRows(score, decision, group, 2, np.arange(300), label)
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


RISK = 0.01


def at_level(groups, apart_up_to=0.0, lower=0.0):
    """Return intervals whose upper end is their level, with a pair apart up to some level."""

    def interval(level):
        leads = np.full((groups, groups), -1.0)
        leads[1, 0] = apart_up_to - level
        return GapInterval(np.array(lower), np.array(level), leads)

    return interval


@pytest.mark.parametrize(("bound", "verdict"), [(1 - 1.9 * RISK, SMALL), (1 - 2.1 * RISK, OPEN)])
def test_a_gap_is_small_at_twice_the_risk_and_no_more_is_said_of_it(bound, verdict):
    """The upper end misses on one side alone, so that its interval may miss twice as often."""
    answer = answer_gap(at_level(2, apart_up_to=1.0), bound, RISK)
    assert (answer.verdict, list(answer.pairs)) == (verdict, [(1, 0)] * (verdict == OPEN))
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


FREED = [
    (2, _GapAnswer(LARGE, (0, 1), [(0, 1)]), 1.0),
    (3, _GapAnswer(SMALL), 1.0),
    (3, _GapAnswer(LARGE, (0, 1), [(0, 1)]), 0.5),  # two pairs may still be called apart wrongly
    (3, _GapAnswer(LARGE, (0, 1), [(0, 1), (0, 2), (2, 1)]), 1.0),
    (3, _GapAnswer(OPEN, pairs=[(0, 1)]), 0.0),
]


@pytest.mark.parametrize(("groups", "answer", "freed"), FREED)
def test_what_can_still_be_wrong_keeps_its_share_of_the_error_rate(groups, answer, freed):
    asked = Finding(GAP, "sex", "accuracy", findings.NOT_MEASURED)
    gap = Gap(asked, metric="accuracy_gap", compared=list(range(groups)), answer=answer)
    assert gap.freed == freed
    assert replace(gap, asked=replace(asked, given=ASSUMED)).freed == 0


@pytest.mark.parametrize("selected", range(100, 200, 4))
def test_without_labels_a_probability_is_no_surer_than_the_interval_beside_it(selected):
    groups = counted([[250, 250, 0, 0], [500 - selected, selected, 0, 0]], PosteriorIntervals)
    (gap,) = gaps_of([groups], **bounds_of(0.1, 10), assumed=True, metrics=["statistical_parity"])
    least = max(0.0, gap.lower, -gap.upper)
    most = max(abs(gap.lower), abs(gap.upper))
    assert gap.small >= 0.05 or least > 0.1
    assert gap.small <= 0.95 or most < 0.1


def test_a_gap_that_is_called_small_is_probably_small():
    """With one question of a page, and three groups, a posterior may be less sure than that."""
    groups = counted([[1000, 1000, 0, 0]] * 2 + [[1005, 995, 0, 0]])
    for epsilon in np.linspace(0.02, 0.05, 16):
        bounds = {**bounds_of(float(epsilon), 10), "risk": risk_of(1)}
        (gap,) = gaps_of([groups], **bounds, assumed=False, metrics=["statistical_parity"])
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

    assert wrong(1 - risk_of(1)) < 0.045
    assert wrong(0.95) > 0.06


SHORT = {(each.kind, each.name): each for each in populations() if each.short}
FIRST = {kind: key for key in reversed(SHORT) for kind in key[:1]}  # of each kind


@pytest.mark.slow
@pytest.mark.parametrize("key", quick(SHORT, FIRST.values(), rest=pytest.mark.slow), ids=": ".join)
def test_at_most_one_page_of_twenty_is_wrong(key):
    result = simulate(SHORT[key], short=True, pages=1)
    assert not result.failed, result
    assert not result.amiss


RATES = {"G0": 0.5, "G1": 0.45, "G2": 0.3}
RIGHT = [
    gap(LARGE, ("G0", "G2")), gap(OPEN), gap(SMALL, given="if the scores are right"),
    gap(LARGE, ("G2",), about=findings.LOWEST),
]  # fmt: skip
WRONG = [
    gap(LARGE, ("G2", "G0")),  # the other way round
    gap(LARGE, ("G0", "G1")),  # not by more than the bound
    gap(LARGE, bound=0.2), gap(SMALL), gap(LARGE, ("G2", "G1"), about=findings.PAIR),
]  # fmt: skip


def test_a_simulation_sees_what_the_truth_or_the_page_contradicts():
    truth = Truth({(GAP, "sex", "accuracy", ""): RATES})
    assert [is_wrong(finding, truth) for finding in RIGHT + WRONG] == [False] * 4 + [True] * 5
    for name, value in (("RATIO", 0.8), ("EXCESS", 0.0), ("SHARE", 0.95), ("UNLIKE", 0.0)):
        finding = gap(LARGE, ("G1",), about=getattr(findings, name), value=1.1)
        assert is_wrong(finding, Truth({(finding.about, "sex", "accuracy", ""): {"G1": value}}))
    assert list(of_findings([gap(LARGE, lower=0.01, upper=0.04)]))
    assert list(of_findings([gap(SMALL, lower=-0.09, upper=-0.06)]))
    assert not list(of_findings([gap(SMALL, lower=-0.03, upper=0.02)]))
    sample = SHORT["binary", "2 apart, 1,000 rows"].draw(np.random.default_rng(0))
    document = document_of(sample.options, read_frame(sample.options, source=sample.frame()))
    assert not list(of_page(document))
    summary = replace(document.summary, found=["Groups differ.", *document.summary.found])
    assert list(of_page(replace(document, summary=summary)))
