"""The one cross-validation that a table rests on, and the settings that its columns name."""

import numpy as np
import pandas as pd
import pytest

from papers.uncertainty_matters.measured import Measured
from papers.uncertainty_matters.one_partition import Setting, answers, partition, probabilities
from papers.uncertainty_matters.tables import read_published

PAIR = ("Linear SVM + Hardt", "FERM")
TABLES = ("12.3", "12.5", "13.1", "15.2")


@pytest.fixture(scope="module")
def measured():
    """Three partitions: B is more accurate by 2 points, by 3, and in the last one less by 5."""
    second = np.array([[[600, 100, 50, 60], [120, 20, 20, 30]]] * 3)
    first = second.copy()
    for cv, moved in enumerate((-20, -30, 50)):
        first[cv, 0, 0] += moved
        first[cv, 0, 1] -= moved
    return Measured(dict(zip(PAIR, (first, second), strict=True)), draws=4000)


def test_settings_are_read_as_printed():
    assert Setting.read("ground truth; no rope") == Setting("ground truth", rope=0.0)
    text = "rho_rel_up, 95 % hdr; rope=0.02; prior Dir(1/2)"
    assert Setting.read(text) == Setting("rho_rel_up", 0.95, 0.02, 0.5)
    three = Setting.read(
        "rho in [0,1/K]; objectives accuracy, equal opportunity, demographic parity"
    )
    assert (three.rho, len(three.objectives)) == ("rho in [0,1/K]", 3)


def test_the_partition_is_near_the_mean_or_far_with_another_conclusion(measured):
    assert partition(measured, PAIR, furthest=False) == 0
    assert partition(measured, PAIR, furthest=True) == 2


def test_events_sum_to_one_inside_a_region_too(measured):
    shares = {
        level: probabilities(measured, PAIR, Setting("rho=1/K", level), furthest=True)
        for level in (0.0, 0.8)
    }
    for each in shares.values():
        assert sum(each.values()) == pytest.approx(1)
    # The region has four in five of the draws: none of its events can be had more often.
    assert all(0.8 * share <= shares[0.0][event] + 0.01 for event, share in shares[0.8].items())
    assert shares[0.8] != shares[0.0]
    assert probabilities(measured, PAIR, Setting("rho_rel_up"), furthest=False) is None


def test_every_published_number_of_the_pair_has_an_answer(measured):
    ratios = dict.fromkeys(PAIR, 1.0)
    known = Measured(measured.counts, ratios=ratios, draws=500)
    published = read_published()
    rows = published[published["table"].isin(TABLES) & (published["method"] == " vs ".join(PAIR))]
    found = pd.DataFrame(answers(known, rows))
    assert sorted(found["row"]) == sorted(rows.index)
    assert found["mean"].between(0, 1).all()
