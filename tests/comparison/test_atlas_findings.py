"""What an atlas says, on generated tables whose truth is known."""

import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import special
from scipy.optimize import linprog

import fairbench
from benchmarks.atlas_findings import page
from fairbench.comparison.atlas.frontiers import (
    compare_with_thresholds,
    margin_series,
    mixture_at_gap,
)
from fairbench.comparison.atlas.ranks import (
    RankedValues,
    metric_standings,
)
from fairbench.comparison.atlas.report import atlas_findings, sentences
from fairbench.comparison.atlas.values import NEEDS_GROUP, AtlasValues
from fairbench.comparison.atlas.verdicts import (
    FAILS,
    HOLDS,
    OPEN,
    TwoVerdicts,
    all_hold,
    any_holds,
    larger,
    no_larger,
    sign_in_words,
)
from fairbench.core.errors import UserError
from tests.comparison import generated_atlas


@pytest.fixture(scope="module")
def findings():
    return atlas_findings(generated_atlas.table(), metrics=("error_rate",), draws=60)


def verdict(findings, name):
    return {claim.name: claim.verdict for claim in findings.claims}[name]


def test_the_better_learner_leads_and_its_bag_is_tied(findings):
    (ranked,) = findings.standings
    assert ranked.reference == "logistic_regression, baseline"
    assert {"logistic_regression, ensemble", ranked.reference} <= set(ranked.may_be_best)
    assert not any(name.startswith("xgboost") for name in ranked.may_be_best)
    by = {standing.approach: standing for standing in ranked.standings}
    worse = by["xgboost, baseline"]
    assert worse.lower < 0.03 < worse.upper
    assert (worse.first_rank, worse.may_be_best) != (1, True)
    assert worse.near_new < 0.5 < by[ranked.reference].near_new
    assert sum(standing.best_new for standing in ranked.standings) == pytest.approx(1)
    assert all(standing.first_rank <= standing.last_rank for standing in ranked.standings)


def test_equal_approaches_stand_at_one_place_and_share_their_chance():
    """One that makes the same predictions as another, under another name, is a tie with it."""
    table = generated_atlas.table(families=(1, 1, 1, 2), repeats=3)
    for learner, method in (("logistic_regression", "ensemble"), ("xgboost", "baseline")):
        mine = (table["learner"] == learner) & (table["method"] == method)
        rows = pd.concat([table, table[mine].assign(method="twin")])
        values = AtlasValues.of(rows[rows["setting"] == ""])
        ranked = RankedValues.of(values, "error_rate", 0)
        result = metric_standings(ranked, generator=np.random.default_rng(0), draws=60)
        by = {standing.approach: standing for standing in result.standings}
        one, other = by[f"{learner}, {method}"], by[f"{learner}, twin"]
        assert replace(one, approach="") == replace(other, approach="")
        assert one.last_rank > one.first_rank
        assert sum(standing.best_new for standing in result.standings) == pytest.approx(1)
        told = [
            [
                replace(explanation, approach="")
                for explanation in result.explanations
                if explanation.approach == name
            ]
            for name in (one.approach, other.approach)
        ]
        assert told[0] and told[0] == told[1]


def test_approaches_that_are_all_equal_share_everything():
    table = generated_atlas.table(families=(1, 1, 1, 2), repeats=3)
    base = table[(table["learner"] == "xgboost") & (table["method"] == "baseline")]
    base = base[(base["setting"] == "") & (base["intervention"] == "none")]
    rows = pd.concat([base.assign(method=name) for name in "abc"])
    values = RankedValues.of(AtlasValues.of(rows), "error_rate", 0)
    result = metric_standings(values, generator=np.random.default_rng(0), draws=60)
    assert [standing.best_new for standing in result.standings] == pytest.approx([1 / 3] * 3)
    assert {
        (standing.first_rank, standing.last_rank, standing.near_percent)
        for standing in result.standings
    } == {(1, 3, "65 % or more")}


def test_claims_get_the_verdict_that_the_table_was_made_for(findings):
    assert verdict(findings, "unprocessing_dominates") == HOLDS
    assert verdict(findings, "ensembles_are_uncalibrated") == FAILS
    assert verdict(findings, "binomial_nll_is_best") == HOLDS
    fresh = findings.standings[0].fresh
    assert fresh.overall < 0.9 and fresh.within_task > 0.1


def test_a_claim_of_several_figures_cites_those_that_decide_it(findings):
    """A quarter of the strength lowers gaps by 0.0375 and surely raises the error by little."""
    by = {claim.name: claim for claim in findings.claims}
    for name in ("interventions_help_at_equal_error", "fairness_costs_accuracy"):
        cited = by[name].evidence
        start = r"On 10 tasks, reweighing 0.25 changes the gap in [a-z ]+ by -0.03\d "
        assert re.match(start, cited), cited
        assert "and the error rate by +0.00" in cited and "each interval by itself. So" in cited
    said = " ".join(dict(sentences(findings))["Claims of the literature"])
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


def test_the_docs_open_with_every_claim_and_mark_who_needs_the_group(findings):
    (first, *others) = findings.approaches
    marked = replace(first, name=f"hardt ({NEEDS_GROUP})")
    text = "\n".join(page(replace(findings, approaches=(marked, *others))))
    brief, _, rest = text.partition("## What was run")
    for claim in findings.claims:
        row = next(line for line in brief.splitlines() if line.startswith(f"| {claim.statement}"))
        assert f"| **{claim.verdict}** |" in row
        assert f"### {claim.statement}" in rest and claim.criterion in rest
    assert NEEDS_GROUP not in rest and "| hardt † |" in rest


@pytest.mark.thorough
def test_thresholds_lose_where_the_intervention_is_better():
    table = generated_atlas.table(worse=-0.03, noise=0.003)
    result = atlas_findings(table, metrics=(), draws=60)
    assert verdict(result, "unprocessing_dominates") == FAILS
    assert {table_verdict.verdict for table_verdict in result.verdicts} == {FAILS}
    margins = [margin.margin for margin in result.margins]
    assert np.mean(margins) == pytest.approx(-0.03, abs=0.004)
    assert verdict(result, "fairness_costs_accuracy") == FAILS


def test_everything_goes_to_json_and_into_sentences(findings):
    text = json.dumps(findings.to_dict(), allow_nan=False)
    assert json.loads(text)["standings"][0]["metric"] == "error_rate"
    words = sentences(findings)
    assert all(
        sentence.endswith(".") and "nan" not in sentence for _, own in words for sentence in own
    )


def test_gaps_of_points_are_within_their_bands(findings):
    assert findings.frontiers
    by = {
        mean_frontier.setting or mean_frontier.intervention: mean_frontier
        for mean_frontier in findings.mean_frontiers
    }
    noise = 0.01 * np.sqrt(2 / np.pi)  # the mean of what is shown of a gap of 0
    for limit, fall, shown in (
        ("statistical_parity<=0", 0.2, 0.2 - noise),
        ("equalized_odds<=0.1", 0.1, 0.1),
    ):
        assert by[limit].gap_lower < -shown < by[limit].gap_upper
        assert by[limit].error_lower < 0.1 * fall < by[limit].error_upper
    assert by["reweighing 1.0"].gap == pytest.approx(-0.15, abs=0.01)
    for point in findings.frontiers:
        assert point.error_lower <= point.error <= point.error_upper
        assert point.gap_lower <= point.gap <= point.gap_upper


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
    values = AtlasValues.of(short)
    series = margin_series(values)
    strongest = [line for line in series if line.gap < 0.07]
    assert strongest
    assert all(effect.excess.mean() > 0.03 for effect in strongest)


def test_approaches_on_few_families_are_not_ranked():
    table = generated_atlas.table(families=(1, 1, 1, 4), repeats=3)
    few = (table["learner"] == "xgboost") & ~table["family"].isin(["family 0", "family 3"])
    values = AtlasValues.of(table[(table["setting"] == "") & ~few])
    ranked = RankedValues.of(
        values, "error_rate", values.names.index("logistic_regression, baseline")
    )
    assert not any("xgboost" in name for name in ranked.names)
    standings = metric_standings(ranked, generator=np.random.default_rng(0), draws=20)
    assert len(standings.standings) == len(ranked.names)


def test_an_unknown_reference_and_no_runs_are_refused():
    table = generated_atlas.table(families=(1, 1, 1), repeats=3)
    with pytest.raises(UserError, match="no approach is called 'nobody'"):
        atlas_findings(table, reference="nobody")
    with pytest.raises(UserError, match="none of these has one"):
        atlas_findings(table.iloc[:0])


def test_rules():
    assert larger(0.001, 0.02, 0.01) == HOLDS
    assert larger(-0.001, 0.02, 0.01) == OPEN
    assert larger(0.001, 0.005, 0.01) == FAILS
    assert no_larger(-0.001, 0.005, 0.01) == HOLDS
    assert no_larger(0.001, 0.02, 0.01) == FAILS
    both, fails, alone = (
        TwoVerdicts(*pair) for pair in ((HOLDS,) * 2, (FAILS,) * 2, (OPEN, HOLDS))
    )
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


def test_the_ranks_are_those_of_rank(findings):
    """What the page says of error rates is what ``fairbench rank`` says of the same numbers."""
    table = generated_atlas.table()
    rows = table[table["setting"] == ""].reset_index(drop=True)
    names = AtlasValues.of(rows).names
    codes = rows.groupby(["learner", "intervention", "method", "options"], sort=True).ngroup()
    frame = rows.assign(approach=[names[code] for code in codes], split=rows["repeat"])
    report = fairbench.rank(
        frame, method="approach", task="dataset", split=["split"], family="family",
        score="error_rate", within=0.01,
    )  # fmt: skip
    (ranked,) = findings.standings
    own = report.table.set_index("method")
    for standing in ranked.standings:
        row = own.loc[standing.approach]
        assert (standing.first_rank, standing.last_rank, standing.may_be_best) == (
            row["first_rank"], row["last_rank"], row["may_be_best"],
        )  # fmt: skip
        assert standing.near_new == pytest.approx(row["near_best_on_new"])
        assert standing.mean == pytest.approx(row["mean"])
        if standing.approach != ranked.reference:
            difference = report.difference(standing.approach, ranked.reference)
            assert [standing.difference, standing.lower, standing.upper] == pytest.approx(
                [difference.value, difference.lower, difference.upper]
            )


def test_metrics_share_one_error_rate():
    """Ranked beside others, a metric resolves less than by itself, as on the page of rank."""
    table = generated_atlas.table()
    values = RankedValues.of(AtlasValues.of(table[table["setting"] == ""]), "error_rate", 0)
    alone, beside = (
        metric_standings(values, generator=np.random.default_rng(0), draws=20, error_rate=wrong)
        for wrong in (0.05, 0.05 / 4)
    )
    assert beside.told_apart <= alone.told_apart
    widths = [
        [
            standing.upper - standing.lower
            for standing in sorted(result.standings, key=lambda s: s.approach)
        ]
        for result in (alone, beside)
    ]
    assert np.all(np.less_equal(*widths)) and np.less(*widths).any()
