"""Intervals of rates of some labels hold, and are no wider than those of the labels alone."""

import numpy as np
import pytest

from fairbench.evaluation.group_intervals import CountIntervals
from fairbench.evaluation.labelled_intervals import LabelledIntervals
from fairbench.inference.few_labels.assisted import LabelledRows
from fairbench.metrics.rates import (
    ACCURACY,
    BALANCED_ACCURACY,
    F1_SCORE,
    POSITIVE_PREDICTIVE_VALUE,
    TRUE_POSITIVE_RATE,
    binary_confusion,
)

METRICS = [ACCURACY, BALANCED_ACCURACY, F1_SCORE, POSITIVE_PREDICTIVE_VALUE, TRUE_POSITIVE_RATE]
REPLICATIONS, ROWS = 2500, 1000


def pools(shape, labels, *, cut=0.5, wrong=0.0, inverted=False):
    """Return the intervals of as many groups as replications, helped and not, and the truth."""
    draw = np.random.default_rng(11)
    score = draw.beta(*shape, REPLICATIONS * ROWS)
    chance = wrong + (1 - 2 * wrong) * (1 - score if inverted else score)
    decision = (score > cut).astype(np.int64)
    label = (draw.random(len(score)) < chance).astype(np.int64)
    group = np.repeat(np.arange(REPLICATIONS), ROWS)
    rows = (np.arange(REPLICATIONS)[:, None] * ROWS + np.arange(labels)).ravel()
    known = LabelledRows(score, decision, group, REPLICATIONS, rows, label[rows])
    counts = binary_confusion(label[rows], decision[rows], group[rows], n_groups=REPLICATIONS)
    truth = np.bincount(2 * label + decision, minlength=4)
    helped = LabelledIntervals.of(known, counts, 0.95, draw)
    return helped, CountIntervals(counts, np.empty((0, *counts.shape)), 0.95), truth


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("shape", "labels", "options"),
    [
        ((3, 3), 100, {}),
        ((1, 1), 300, {"wrong": 0.1}),
        ((1, 1.5), 100, {"wrong": 0.1}),
        ((6, 2), 100, {"wrong": 0.1}),
        ((1, 9), 50, {"cut": 0.2, "inverted": True}),
    ],
)
def test_intervals_hold_and_are_no_wider(shape, labels, options):
    """Fewer than 91.5 % would be 3 standard errors under the 93 % that is promised."""
    helped, alone, truth = pools(shape, labels, **options)
    ends = [np.array(of.rates(METRICS)) for of in (helped, alone)]
    true = np.array([metric(truth) for metric in METRICS])[:, None]
    printed = ~np.isnan(ends[0]).any(axis=0)
    held = (ends[0][0] <= true) & (true <= ends[0][1])
    for m, metric in enumerate(METRICS):
        assert held[m][printed[m]].mean() > 0.915, metric.name
        ours, theirs = ((end[1] - end[0])[m][printed[m]].mean() for end in ends)
        assert ours < 1.005 * theirs, metric.name


@pytest.mark.thorough
def test_a_balanced_accuracy_lies_in_its_interval():
    helped, _, _ = pools((1, 1), 60)
    lower, upper = helped.rates([BALANCED_ACCURACY])
    value = BALANCED_ACCURACY(helped.counts_of(BALANCED_ACCURACY))
    assert ((lower[0] <= value) & (value <= upper[0])).all()
