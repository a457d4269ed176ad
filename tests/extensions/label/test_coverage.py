"""Intervals of the report hold the truth although labels decided which groups to label."""

from dataclasses import replace

import numpy as np
import pytest

from fairbench.audits.assessment import assess
from tests.extensions.label.sessions import label_actively, pool, session

# Simulations of many replications: make test-slow runs them.
pytestmark = pytest.mark.slow

STUDIES = 60


@pytest.fixture(autouse=True)
def without_simulation(monkeypatch):
    for name in ("with_needed", "_with_supposed"):
        monkeypatch.setattr(f"fairbench.audits.assessment.{name}", lambda gaps, *_: gaps)


@pytest.fixture(scope="module")
def population():
    table, label = pool(400_000, bias=0.15, seed=10_000)
    right = table.prediction == label
    return {
        (by, group): right[groups == group].mean()
        for by, groups in table.groups.items()
        for group in groups.cat.categories
    } | {("", ""): right.mean()}, ((table.score - label) ** 2).mean()


def studied(labels, step, *, scores, **options):
    """Yield the metrics of labelled pools, each with its own seed."""
    for seed in range(STUDIES):
        table, label = pool(2500, bias=0.15, seed=seed)
        begun = session(table, seed=seed, **options)
        # Their number is said before, so that intervals are the narrower ones.
        begun = replace(begun, state=replace(begun.state, stop=labels))
        begun = label_actively(begun, label, labels, step=step)
        audited = begun.audited()
        audited = audited if scores else replace(audited, score=None)
        yield assess(audited, begun.state.options).metrics


@pytest.mark.parametrize(
    ("labels", "scores"), [(120, True), (500, False)], ids=["calibrated", "stratified"]
)
def test_group_intervals_hold_the_population(labels, scores, population):
    """Thompson's choice of the worst group is the most one-sided; Brier scores are means."""
    accuracy, brier = population
    held, briers = [], []
    for metrics in studied(labels, 4, scores=scores, strategy="thompson"):
        held.append(
            [row.lower <= accuracy[row.attribute, row.group] <= row.upper
             for row in metrics.query("metric == 'accuracy'").itertuples()]
        )  # fmt: skip
        if scores:
            row = metrics.query("metric == 'brier_score' and attribute == ''").iloc[0]
            briers.append(row["lower"] <= brier <= row["upper"])
    # Of 60 intervals at 95 %, 57 hold with a standard deviation of 1.7: 4.5 of them below.
    assert (np.sum(held, axis=0) >= 49).all(), np.sum(held, axis=0)
    # All nine together; their number varies less than were they one.
    assert np.mean(held) > 0.95 - 3 * np.sqrt(0.95 * 0.05 / STUDIES / 3)
    assert not briers or np.sum(briers) >= 49
