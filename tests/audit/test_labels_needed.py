"""The simulated value of further labels, against labels that are then really drawn."""

from dataclasses import replace

import numpy as np
import pytest

from fairbench.audit import labels_needed as module
from fairbench.audit.completion import Calibrated, Complete, Stratified
from fairbench.audit.gaps import LARGE, OPEN, SMALL, Gap, settle
from fairbench.audit.labels_needed import Needed, is_settled, settled_share
from fairbench.inference.few_labels.calibration import BETA
from tests.audit.tables import parse
from tests.inference.few_labels.pools import labelled, pool

UNIONS = {"group": np.eye(2)}
OPTIONS = parse(["x.csv", "target=y", "score=s", "group=g", "epsilon=0.1"])


def gap(metric):
    return Gap("group", metric, [0, 1], [], assumed=False, verdict=OPEN)


GAPS = [gap("accuracy_gap"), gap("equal_opportunity")]


def calibrated_then_labelled(generator, seen, more):
    theta = BETA.from_normals(generator.standard_normal(BETA.normals(2)), 2)
    truth = labelled(pool(generator, rows=1500), theta, generator, BETA)
    rows = generator.permutation(1500)
    before, after = (Calibrated.of(truth.showing(rows[:n]), generator) for n in (seen, seen + more))
    return before, after


def stratified_then_labelled(generator, seen, more):
    shares = generator.beta(2, 2, (2, 2))
    size = np.array([[400, 200], [300, 100]])
    cell = np.repeat(np.arange(4), size.ravel())
    label = generator.random(len(cell)) < shares.ravel()[cell]
    order = generator.permutation(len(cell))

    def learned(n):
        rows = order[:n]
        counts = [np.bincount(cell[rows], (label[rows] == y), 4).reshape(2, 2) for y in (0, 1)]
        return Stratified.of(np.concatenate(counts, axis=1), size, generator)

    return learned(seen), learned(seen + more)


def complete_then_labelled(generator, seen, more):
    cells = generator.dirichlet(np.ones(4), 2)
    rows = generator.multinomial([seen, seen + more], [0.5, 0.5])
    counts = generator.multinomial(rows[0], cells).astype(float)
    return Complete(counts), Complete(counts + generator.multinomial(rows[1] - rows[0], cells))


@pytest.mark.parametrize(
    ("study", "seen", "more", "replications"),
    [
        pytest.param(calibrated_then_labelled, 30, 150, 60, marks=pytest.mark.thorough),
        pytest.param(stratified_then_labelled, 60, 400, 150, marks=pytest.mark.thorough),
        (complete_then_labelled, 150, 600, 150),
    ],
    ids=["calibrated", "stratified", "complete"],
)
def test_predicted_share_is_what_fresh_labels_give(study, seen, more, replications, monkeypatch):
    """Truths are drawn from the model's prior, so prediction and outcome agree on average."""
    monkeypatch.setattr(module, "WORLDS", 8)
    predicted, happened = [], []
    for seed in range(replications):
        generator = np.random.default_rng([seed, seen])
        before, after = study(generator, seen, more)
        options = replace(OPTIONS, seed=seed)
        predicted.append(settled_share(before, GAPS, UNIONS, more, options))
        happened.append(is_settled(after, GAPS, UNIONS, 0.1, generator))
    errors = np.array(predicted) - np.array(happened)
    standard_error = errors.std(axis=0) / np.sqrt(replications)
    assert (np.mean(happened, axis=0) > 0.1).all()
    assert (np.abs(errors.mean(axis=0)) < 3.5 * standard_error).all(), errors.mean(axis=0)


def test_more_labels_settle_more():
    state = Stratified.of(
        np.array([[20, 5, 4, 11], [18, 6, 5, 9]], float),
        np.array([[4000, 3000], [4000, 3000]]),
        np.random.default_rng(0),
    )
    few, many = (settled_share(state, GAPS, UNIONS, n, OPTIONS) for n in (20, 10_000))
    assert (many > few).all()
    assert (many > 0.5).all()


def test_all_other_labels_leave_counts_that_are_known():
    generator = np.random.default_rng(1)
    state = Stratified.of(np.full((2, 4), 5.0), np.full((2, 2), 60.0), generator)
    done = state.further(state.remaining, generator)
    assert done.remaining == 0
    np.testing.assert_array_equal(done.counts.std(axis=0), 0)


def test_enough_is_the_first_likely_number():
    needed = Needed(GAPS[0], [10, 20, 50], [0.1, 0.85, 0.9], 100)
    assert needed.enough == 20
    assert Needed(GAPS[0], [10], [0.5], 10).enough is None


def rates(*columns, draws=4000):
    generator = np.random.default_rng(0)
    return np.stack([generator.normal(mean, sd, draws) for mean, sd in columns], axis=1)


def test_verdicts():
    assert settle(rates((0.5, 0.01), (0.51, 0.01)), 0.05).verdict == SMALL
    ahead = settle(rates((0.7, 0.01), (0.5, 0.01)), 0.05)
    assert (ahead.verdict, ahead.low, ahead.high) == (LARGE, 1, 0)
    assert settle(rates((0.5, 0.1), (0.51, 0.1)), 0.05).verdict == OPEN


def test_many_unknown_groups_are_open_not_large():
    wide = settle(rates(*[(0.5, 0.2)] * 10), 0.05)
    assert wide.small < 0.01
    assert wide.verdict == OPEN
