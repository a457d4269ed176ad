"""What the atlas says of claims, on generated tables whose truth is known."""

import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import special
from scipy.optimize import linprog

from fairbench.components.papers.atlas.claims import any_holds, larger, no_larger, sign_in_words
from fairbench.components.papers.atlas.multilevel import explanations
from fairbench.components.papers.atlas.page import docs_page, with_claims
from fairbench.components.papers.atlas.thresholds import (
    FAILS,
    HOLDS,
    OPEN,
    all_hold,
    compare_with_thresholds,
    margin_series,
    mixture_at_gap,
)
from fairbench_rank.approaches import NEEDS_GROUP, ApproachValues
from fairbench_rank.standings import RankedValues, findings_of
from tests.extensions.rank import generated_atlas


@pytest.fixture(scope="module")
def findings():
    return with_claims(findings_of(generated_atlas.table(), metrics=("error_rate",)), draws=60)


def verdict(findings, name):
    return {claim.name: claim.verdict for claim in findings.claims}[name]


def test_equal_approaches_are_explained_alike():
    table = generated_atlas.table(families=(1, 1, 1, 2), repeats=3)
    for learner, method in (("logistic_regression", "ensemble"), ("xgboost", "baseline")):
        mine = (table["learner"] == learner) & (table["method"] == method)
        rows = pd.concat([table, table[mine].assign(method="twin")])
        values = ApproachValues.of(rows[rows["setting"] == ""])
        result = explanations(RankedValues.of(values, "error_rate", 0), draws=60)
        told = [
            [row | {"approach": ""} for row in result if row["approach"] == name]
            for name in (f"{learner}, {method}", f"{learner}, twin")
        ]
        assert told[0] and told[0] == told[1]


def test_claims_get_the_verdict_that_the_table_was_made_for(findings):
    assert verdict(findings, "unprocessing_dominates") == HOLDS
    assert verdict(findings, "ensembles_are_uncalibrated") == FAILS
    assert verdict(findings, "binomial_nll_is_best") == HOLDS
    fresh = findings.standings[0].answer.fresh
    assert fresh["overall"] < 0.9 and fresh["within_task"] > 0.1


def test_a_claim_of_several_figures_cites_those_that_decide_it(findings):
    """A quarter of the strength lowers gaps by 0.0375 and surely raises the error by little."""
    by = {claim.name: claim for claim in findings.claims}
    for name in ("interventions_help_at_equal_error", "fairness_costs_accuracy"):
        cited = by[name].evidence
        start = r"On 10 tasks, reweighing 0.25 changes the gap in [a-z ]+ by -0.03\d "
        assert re.match(start, cited), cited
        assert "and the error rate by +0.00" in cited and "each interval by itself. So" in cited
    said = docs_page(findings)
    assert by["interventions_help_at_equal_error"].evidence in said
    assert not re.search(r"\b1 (are|hold|fail)\b", said)


def test_a_difference_is_called_by_its_size_and_not_by_what_the_claim_says(findings):
    """Some claims say that a difference is above 0, and others that it is not."""
    claims = {claim.name: claim for claim in findings.claims}
    for claim in claims.values():
        for part in claim.parts:
            assert (sign_in_words(part) == "open") == (part.verdict == OPEN)
            alone = sign_in_words(part, alone=True)
            assert (alone == "open") == (part.alone == OPEN)
            assert alone != "above 0" or part.lower > 0
            assert alone != "under 0.01" or part.upper < 0.01
    for name, word in (
        ("unprocessing_dominates", "under 0.01"),
        ("interventions_help_at_equal_error", "above 0"),
    ):
        holding = [part for part in claims[name].parts if part.verdict == HOLDS]
        assert holding and {sign_in_words(part) for part in holding} == {word}


def test_the_docs_have_every_claim_and_say_who_needs_the_group(findings):
    names = {row["name"]: f"hardt ({NEEDS_GROUP})" for row in findings.approaches[:1]}
    marked = [row | {"name": names.get(row["name"], row["name"])} for row in findings.approaches]
    text = docs_page(replace(findings, approaches=marked, standings=[], explanations=[]))
    for claim in findings.claims:
        row = next(line for line in text.splitlines() if line.startswith(f"| {claim.statement}"))
        assert f"| {claim.verdict} |" in row
        assert f"### {claim.statement}" in text and claim.criterion in text
    assert f"| hardt ({NEEDS_GROUP}) |" in text


@pytest.mark.thorough
def test_thresholds_lose_where_the_intervention_is_better():
    table = generated_atlas.table(worse=-0.03, noise=0.003)
    result = with_claims(findings_of(table, metrics=()), draws=60)
    assert verdict(result, "unprocessing_dominates") == FAILS
    assert {table_verdict["verdict"] for table_verdict in result.verdicts} == {FAILS}
    margins = [margin["margin"] for margin in result.margins]
    assert np.mean(margins) == pytest.approx(-0.03, abs=0.004)
    assert verdict(result, "fairness_costs_accuracy") == FAILS


def test_everything_goes_to_json_and_into_sentences(findings):
    text = json.dumps(findings.to_dict(), allow_nan=False)
    assert json.loads(text)["standings"][0]["metric"] == "error_rate"
    assert "nan" not in docs_page(findings)


def test_the_mixture_at_a_gap_solves_the_linear_programme():
    draw = np.random.default_rng(0)
    for _ in range(50):
        errors, gaps, gap = draw.random(5), draw.random(5), draw.random()
        weight, slope = mixture_at_gap(errors, gaps, gap)
        if gaps.min() > gap:
            assert weight[gaps.argmin()] == 1
            continue
        exact = linprog(errors, A_ub=[gaps], b_ub=[gap], A_eq=np.ones((1, 5)), b_eq=[1])
        assert weight @ errors == pytest.approx(exact.fun, abs=1e-9)
        assert weight @ gaps <= gap + 1e-9
        assert slope == pytest.approx(exact.ineqlin.marginals[0], abs=1e-6)


def test_a_frontier_that_cannot_reach_a_gap_is_judged_by_what_it_reaches():
    table = generated_atlas.table(noise=0.002)
    short = table[~table["setting"].str.endswith(("<=0", "<=0.05"))]
    values = ApproachValues.of(short)
    series = margin_series(values)
    strongest = [line for line in series if line.gap < 0.07]
    assert strongest
    assert all(effect.excess.mean() > 0.03 for effect in strongest)


def test_rules():
    assert larger(0.001, 0.02, 0.01) == HOLDS
    assert larger(-0.001, 0.02, 0.01) == OPEN
    assert larger(0.001, 0.005, 0.01) == FAILS
    assert no_larger(-0.001, 0.005, 0.01) == HOLDS
    assert no_larger(0.001, 0.02, 0.01) == FAILS
    both, fails, alone = (pair for pair in ((HOLDS,) * 2, (FAILS,) * 2, (OPEN, HOLDS)))
    assert (all_hold([both, alone]), all_hold([alone, fails]), all_hold([])) == (HOLDS, FAILS, OPEN)
    assert (any_holds([fails, alone]), any_holds([both, fails]), any_holds([fails])) == (
        OPEN,
        HOLDS,
        FAILS,
    )


@pytest.mark.thorough
@pytest.mark.parametrize("worse", [0.0, -0.02])
def test_margins_hold_although_the_setting_was_chosen(worse):
    """Ten overlapping splits of one task; the bound lies three standard errors below 93 %."""
    draw = np.random.default_rng(5)
    limits = np.array([0, 0.02, 0.05, 0.1, 0.2])
    errors = np.r_[0.21 + worse, 0.22 - 0.1 * limits]  # the first has a gap of 0.1
    gaps = np.r_[0.1, limits]

    def splits(size):
        own = np.sqrt(0.2) * draw.standard_normal((6, 1)) + np.sqrt(0.8) * draw.standard_normal(
            (6, 10)
        )
        shared = np.sqrt(0.2) * draw.standard_normal() + np.sqrt(0.8) * draw.standard_normal(10)
        return size * (shared + 0.3 * own)

    held = 0
    for _ in range(250):
        points = np.stack([errors[:, None] + splits(0.02), abs(gaps[:, None] + splits(0.03))])
        margins, _, _ = compare_with_thresholds(points)
        half = special.stdtrit(9, 0.975) * margins.std(ddof=1) * np.sqrt(0.1 + 0.25)
        held += abs(margins.mean() - worse) <= half
    assert held / 250 > 0.88
