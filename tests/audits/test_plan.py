"""A plan before there are data, against audits that are really simulated."""

from __future__ import annotations

import numpy as np
import pytest

from fairbench.audits.findings import ERROR_RATE
from fairbench.audits.gaps import RATE_OF
from fairbench.audits.plan import AuditPlan
from fairbench.audits.question import PlanOptions
from fairbench.core.errors import UserError
from fairbench.inference.gaps import GroupLimits, largest_gap
from tests.audits.tables import audit

RISK = ERROR_RATE / len(RATE_OF)


def planned(**options):
    return AuditPlan(PlanOptions(**options))


def shown(labels, shares, rates, gap=None, *, equally=False, repeats=4000):
    """Return how often labels that are drawn one by one show a small gap, or that there is one."""
    generator = np.random.default_rng(1)
    sizes = generator.multinomial(labels, shares, repeats)
    if equally:
        sizes = np.full((repeats, len(shares)), labels // len(shares))
    result = generator.binomial(sizes, rates)
    if gap is not None:
        return (largest_gap(GroupLimits.of(result, sizes, level=1 - 2 * RISK)).upper < gap).mean()
    level = 1 - RISK / (2 if len(shares) > 2 else 1)  # pairs of several are named at half of it
    return (largest_gap(GroupLimits.of(result, sizes, level=level)).lower > 0).mean()


@pytest.mark.thorough
@pytest.mark.parametrize("equally", [False, True])
@pytest.mark.parametrize(("shares", "rate"), [((0.5, 0.5), 0.9), ((0.8, 0.15, 0.05), 0.3)])
def test_a_simulation_needs_as_many_labels_within_ten_percent(shares, rate, equally):
    plan = planned(groups=shares, rate=rate, gap=0.05)
    rates = np.full(len(shares), rate)
    other = np.where(np.arange(len(shares)) == plan.smallest, plan.other, rate)
    few, alike = plan.labels(no_difference=True, equally=equally)
    _, apart = plan.labels(no_difference=False, equally=equally)
    assert few < alike
    for needed, truth, gap in ((alike, rates, 0.05), (apart, other, None)):
        fewer, more = (
            shown(round(times * needed), shares, truth, gap, equally=equally)
            for times in (0.9, 1.1)
        )
        assert fewer < 0.8 < more


def test_of_a_rate_about_few_people_many_more_labels_are_needed():
    all_, some = (
        planned(groups=(0.5, 0.5), rate=0.7, gap=0.1, among=among).labels(
            no_difference=False, equally=False
        )
        for among in (1.0, 0.2)
    )
    assert some[1] == pytest.approx(5 * all_[1], rel=0.02)


def test_two_seeds_and_a_rate_near_zero_agree_with_what_can_be():
    enough = [
        planned(groups=(0.7, 0.3), rate=0.02, gap=0.05, seed=seed).labels(
            no_difference=False, equally=False
        )[1]
        for seed in (0, 1)
    ]
    assert enough[0] == pytest.approx(enough[1], rel=0.05)
    assert planned(groups=(0.7, 0.3), rate=0.02, gap=0.05).other == pytest.approx(0.07)


def test_the_risk_is_that_of_every_attribute_and_every_two():
    assert planned(attributes=1).risk == pytest.approx(RISK)
    assert planned(attributes=3).risk == pytest.approx(RISK / 6)


def test_what_takes_too_many_labels_has_no_number():
    plan = planned(groups=(0.999999, 0.000001), rate=0.5, gap=0.001)
    assert plan.labels(no_difference=True, equally=False)[1] is None


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"groups": (1.0,)}, "needs the shares of two groups or more"),
        ({"groups": (0.5, 0.6)}, "add up to 1, these to 1.1"),
        ({"groups": (1.0, 0.0)}, "shares are above 0"),
        ({"groups": (0.5, 0.5), "rate": 1.2}, "rate is 1.2; it must be between 0 and 1"),
        ({"groups": (0.5, 0.5), "gap": 0.0}, "gap is 0.0; it must be between 0 and 1"),
        ({"groups": (0.5, 0.5), "among": 0.0}, "among is 0.0"),
        ({"groups": (0.5, 0.5), "attributes": 0}, "attributes is 0"),
        ({"groups": (0.5, 0.5), "rate": 0.5, "gap": 0.6}, "no rate differs from 0.5 by 0.6"),
    ],
)
def test_what_cannot_be_is_refused(given, sentence):
    with pytest.raises(UserError, match=sentence):
        PlanOptions(**given)


def test_it_is_printed_and_a_file_of_that_name_is_audited_by_its_path(capsys, tmp_path):
    assert audit(["plan", "groups=[0.9,0.1]", "rate=0.8", "gap=0.1"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "groups of 90 % : 10 %, a rate of 0.8 and a gap of 0.1." in printed
    assert audit(["./plan"]) == 2
    assert "plan is not a file" in capsys.readouterr().err
