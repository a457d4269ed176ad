"""All verdicts of one audit together: how often any is wrong, simulated."""

from __future__ import annotations

import pytest

from benchmarks.coverage.labels import audited
from benchmarks.verdicts import study


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("shares", "name", "labels", "active"),
    [
        ((0.6, 0.4), "slopes of 0.5", 100, True),
        ((0.6, 0.4), "one group shifted", 300, False),
        ((0.1,) * 10, "one group shifted", 300, True),
    ],
)
def test_few_audits_have_a_wrong_verdict(shares, name, labels, active):
    """One of twenty may: of 400 audits 35 wrong ones are more than 3 standard errors too many."""
    result = study(audited(shares, name, labels, active), 400, checked=1)
    assert 400 * result.wrong < 35


@pytest.mark.thorough
def test_verdicts_are_given_where_labels_alone_would_give_them():
    result = study(audited((0.6, 0.4), "slopes that differ", 300, False), 400, checked=1)
    assert result.alone > 0.4
    assert result.kept > 0.85
    assert result.given > result.alone
    assert result.wrong < 0.05


@pytest.mark.thorough
def test_the_check_names_an_inverted_group():
    result = study(audited((0.95, 0.05), "one group inverted", 1000, False), 40, checked=40)
    assert result.named > 0.9
