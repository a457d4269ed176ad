"""The simulated value of further labels, against labels that are then really drawn."""

import numpy as np
import pytest

from fairbench.audits.assessment import assess
from fairbench.audits.findings import LARGE, OPEN, SMALL
from fairbench.audits.gaps import answer_draws
from fairbench.audits.labels_needed import numbers
from fairbench.audits.table import read_audit_table
from fairbench.core.formats import two_digits
from fairbench.inference.further_labels import FurtherLabels, KnownRates
from fairbench.inference.gaps import GroupLimits, largest_gap
from tests.audits.tables import parse, predictions, written


def assessed(folder, labels, *words, rows=6000, bias=0.2, seed=0):
    """Return an audit of decisions alone: no posterior stands beside it, which takes its time."""
    frame = predictions(rows, labels=labels, bias=bias, seed=seed)
    frame = frame.assign(decision=(frame["score"] > 0.5).astype(int))
    about = ["target=label", "prediction=decision", "labelled=is_labelled", *words]
    options = parse([str(written(frame, folder)), *about])
    return assess(read_audit_table(options), options)


def needed(result):
    return {(gap.attribute, gap.metric): gap.needed for gap in result.gaps if gap.needed.labels}


@pytest.mark.thorough
def test_the_number_that_is_said_to_be_enough_often_is(tmp_path):
    """Labels are really bought: 0.8 was promised, 0.55 is 3 standard errors of 24 under it."""
    settled, asked = 0, 0
    for seed in range(24):
        result = needed(assessed(tmp_path, 150, "group=[sex]", bias=0.3, seed=seed))
        said = result.get(("sex", "false_positive_rate_gap"))
        if said is None or said.enough is None:
            continue
        after = assessed(tmp_path, 150 + said.enough, "group=[sex]", bias=0.3, seed=seed)
        gap = next(gap for gap in after.gaps if gap.metric == "false_positive_rate_gap")
        asked, settled = asked + 1, settled + (gap.verdict != OPEN)
    assert asked >= 10
    assert settled >= 0.55 * asked


@pytest.mark.thorough
def test_two_seeds_agree_and_other_groups_change_nothing(tmp_path):
    few = (60,)
    first = needed(assessed(tmp_path, *few, "group=[sex]"))
    both = needed(assessed(tmp_path, *few, "group=[sex,race]"))
    other = needed(assessed(tmp_path, *few, "group=[sex]", "seed=9"))
    compared = [name for name, curve in first.items() if curve.enough and other[name].enough]
    assert compared
    for name, curve in first.items():
        assert list(curve.settled) == list(both[name].settled)
    for name in compared:
        assert other[name].enough == pytest.approx(first[name].enough, rel=0.2)


@pytest.mark.thorough
def test_two_seeds_agree_in_nine_files_of_ten(tmp_path):
    """Also on whether even all labels are enough."""
    agree = 0
    for file in range(10):
        words = ([20, 60, 150][file % 3], "group=[sex]")
        one, other = (
            needed(assessed(tmp_path, *words, f"seed={seed}", seed=file)) for seed in (0, 9)
        )
        agree += all(
            (one[name].enough is None) == (other[name].enough is None)
            and (one[name].enough or 1) == pytest.approx(other[name].enough or 1, rel=0.2)
            for name in one
        )
    assert agree >= 9


def test_more_labels_settle_more(tmp_path):
    result = needed(assessed(tmp_path, 100, "group=[sex]"))
    assert result
    for curve in result.values():
        assert list(curve.labels) == sorted(curve.labels)
        assert curve.settled[-1] >= curve.settled[0]


def test_without_labels_scores_say_how_many_are_needed(tmp_path):
    words = [str(written(predictions(2000), tmp_path)), "score=score", "group=[sex]"]
    options = parse(words)
    result = needed(assess(read_audit_table(options), options))
    assert ("sex", "statistical_parity") not in result
    assert result["sex", "accuracy_gap"].labels


def test_enough_lies_between_the_numbers_that_were_tried():
    result = FurtherLabels([10, 20, 50], [0.1, 0.7, 0.9], 100)
    assert 20 < result.enough < 50
    assert 10 < result.few < 20
    assert FurtherLabels([10], [0.5], 10).enough is None
    assert FurtherLabels([10], [0.85], 10).enough == 10
    assert [two_digits(labels) for labels in (7, 84, 1234, 98_765)] == [
        "7",
        "84",
        "1,200",
        "99,000",
    ]


def test_numbers_end_with_all_that_can_be_had():
    assert numbers(0, 35) == [10, 20, 35]
    assert numbers(1000, 250) == [100, 200, 250]
    assert numbers(0, None)[-1] == 5_000_000


def rates(*columns, draws=4000):
    generator = np.random.default_rng(0)
    return np.stack([generator.normal(mean, sd, draws) for mean, sd in columns], axis=1)


def test_verdicts():
    assert answer_draws(rates((0.5, 0.01), (0.51, 0.01)), 0.05, 0.05).verdict == SMALL
    ahead = answer_draws(rates((0.7, 0.01), (0.5, 0.01)), 0.05, 0.05)
    assert (ahead.verdict, ahead.named) == (LARGE, (0, 1))
    assert ahead.pairs == [(0, 1)]
    assert answer_draws(rates((0.5, 0.1), (0.51, 0.1)), 0.05, 0.05).verdict == OPEN


def test_many_unknown_groups_are_open_not_large():
    wide = answer_draws(rates(*[(0.5, 0.2)] * 10), 0.05, 0.05)
    assert wide.verdict == OPEN
    assert not wide.pairs


@pytest.mark.parametrize("size", [15, 40, 300, 20_000])
def test_the_fast_limits_settle_what_the_exact_ones_settle(size):
    random = np.random.default_rng(0)
    rates = random.uniform(0.02, 0.4, (500, 1)) + random.uniform(0, 0.12, (500, 4))
    nothing, luck = np.zeros(4), np.zeros((500, 4))
    known = KnownRates(nothing, nothing, rates, np.full(4, 0.25), luck)
    for epsilon, risk in ((0.05, 0.01), (0.1, 0.002)):
        counts, rows = size * rates, np.full(4, float(size))
        at_most = largest_gap(GroupLimits.of(counts, rows, level=1 - 2 * risk)).upper
        at_least = largest_gap(GroupLimits.of(counts, rows, level=1 - risk)).lower
        exact = ((at_most < epsilon) | (at_least > epsilon)).mean()
        assert known.settled_share(4 * size, epsilon, risk) == pytest.approx(exact, abs=0.005)
