"""How many labels would have to be wrong for a verdict not to hold."""

import json

import numpy as np
import pytest

from fairbench.audits.findings import LARGE, OPEN, SMALL
from fairbench.audits.gaps import RATE_OF, gaps_of
from fairbench.audits.tipping import _percent, with_tipping
from fairbench.evaluation.group_intervals import CountIntervals
from fairbench.evaluation.groups import GroupCounts
from fairbench.evaluation.labelled_intervals import LabelledIntervals
from fairbench.inference.few_labels.assisted import LabelledRows
from fairbench.inference.gaps import GroupLimits, largest_gap
from fairbench.metrics.rates import binary_confusion
from tests.audits.tables import audit, bounds_of, predictions, written


def counted(counts):
    """Return counts of groups a, b, ... with complete labels."""
    table = np.array(counts)
    names = [chr(ord("a") + g) for g in range(len(table))]
    draws = np.random.default_rng(0).dirichlet([1.0] * 4, (50, len(table)))
    return GroupCounts("group", names, table, CountIntervals(table, draws, 0.95))


def gaps(each, epsilon):
    bounds = bounds_of(epsilon, 1)
    result = gaps_of([each], bounds, assumed=False)
    return {gap.metric: gap for gap in with_tipping(result, [each], bounds)}


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


def of_labels(labels):
    places = labels.rows
    counts = binary_confusion(
        labels.label, labels.decision[places], labels.group[places], n_groups=2
    )
    intervals = LabelledIntervals.of(labels, counts, 0.95, np.random.default_rng(0))
    return GroupCounts("group", ["a", "b"], counts, intervals)


def test_where_scores_help_no_wrong_labels_undo_a_verdict_before_its_tipping_point():
    """Which rows' labels are wrong is drawn at random, and from either end of the scores."""
    generator, tried = np.random.default_rng(5), 0
    for seed in range(3):
        labels = labelled(seed)
        result = gaps(of_labels(labels), 0.02)
        for gap in result.values():
            for name, share in gap.tipping.alone if gap.tipping else ():
                mine = np.flatnonzero(labels.group[labels.rows] == "ab".index(name))
                wrong = int(round(share * len(mine)))
                for _ in range(40):
                    label, hit = labels.label.copy(), generator.permutation(mine)
                    cell = 2 * label[hit] + labels.decision[labels.rows[hit]]
                    # Wrong labels do more where they are all of one kind.
                    hit = hit[np.argsort(cell != generator.integers(4), kind="stable")][:wrong]
                    label[hit] = 1 - label[hit]
                    changed = LabelledRows(
                        labels.score, labels.decision, labels.group, 2, labels.rows, label
                    )
                    known = changed.effective_counts([RATE_OF[gap.metric]])
                    # Wrong rows between the two ends that are searched do a little more.
                    assert verdicts_of(*known, 0.0199) == {gap.verdict}
                    tried += 1
    assert tried > 100


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


def test_the_report_says_which_labels_a_verdict_hangs_on(tmp_path, capsys):
    path = written(predictions(3000, bias=0.4), tmp_path)
    words = ["target=label", "score=score", "group=sex", f"out={tmp_path / 'out'}"]
    assert audit([path, *words]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "This holds unless more than " in printed
    assert "% of the labels of Female are wrong, or more than " in printed
    stored = json.loads((tmp_path / "out" / "audit.json").read_text())
    tipping = {gap["metric"]: gap["tipping"] for gap in stored["gaps"]}
    assert tipping["statistical_parity"] is None
    assert 0 < tipping["accuracy_gap"]["together"] < tipping["accuracy_gap"]["alone"][0][1] < 0.5
