"""Ranks of approaches on many tasks, on generated tables whose truth is known."""

import numpy as np
import pandas as pd
import pytest

import fairbench
from fairbench.core.errors import UserError
from fairbench_rank.approaches import ApproachValues
from fairbench_rank.standings import RankedValues, findings_of, standings_of
from tests.extensions.rank import generated_atlas


@pytest.fixture(scope="module")
def findings():
    return findings_of(generated_atlas.table(), metrics=("error_rate",))


def test_the_better_learner_leads_and_its_bag_is_tied(findings):
    (ranked,) = findings.standings
    assert ranked.reference == "logistic_regression, baseline"
    assert {"logistic_regression, ensemble", ranked.reference} <= set(ranked.answer.best)
    assert not any(name.startswith("xgboost") for name in ranked.answer.best)
    by = {standing["method"]: standing for standing in ranked.rows}
    worse = by["xgboost, baseline"]
    assert worse["lower"] < 0.03 < worse["upper"]
    assert (worse["first_rank"], worse["may_be_best"]) != (1, True)
    assert worse["near_best_on_new"] < 0.5 < by[ranked.reference]["near_best_on_new"]
    assert sum(standing["best_on_new"] for standing in ranked.rows) == pytest.approx(1)
    assert all(standing["first_rank"] <= standing["last_rank"] for standing in ranked.rows)


def test_equal_approaches_stand_at_one_place_and_share_their_chance():
    """One that makes the same predictions as another, under another name, is a tie with it."""
    table = generated_atlas.table(families=(1, 1, 1, 2), repeats=3)
    for learner, method in (("logistic_regression", "ensemble"), ("xgboost", "baseline")):
        mine = (table["learner"] == learner) & (table["method"] == method)
        rows = pd.concat([table, table[mine].assign(method="twin")])
        values = ApproachValues.of(rows[rows["setting"] == ""])
        ranked = RankedValues.of(values, "error_rate", 0)
        result = standings_of(ranked)
        by = {standing["method"]: standing for standing in result.rows}
        one, other = by[f"{learner}, {method}"], by[f"{learner}, twin"]
        assert one | {"method": ""} == other | {"method": ""}
        assert one["last_rank"] > one["first_rank"]
        assert sum(standing["best_on_new"] for standing in result.rows) == pytest.approx(1)


def test_approaches_that_are_all_equal_share_everything():
    table = generated_atlas.table(families=(1, 1, 1, 2), repeats=3)
    base = table[(table["learner"] == "xgboost") & (table["method"] == "baseline")]
    base = base[(base["setting"] == "") & (base["intervention"] == "none")]
    rows = pd.concat([base.assign(method=name) for name in "abc"])
    values = RankedValues.of(ApproachValues.of(rows), "error_rate", 0)
    result = standings_of(values)
    assert [standing["best_on_new"] for standing in result.rows] == pytest.approx([1 / 3] * 3)
    assert {
        (standing["first_rank"], standing["last_rank"], standing["near_percent"])
        for standing in result.rows
    } == {(1, 3, "65 % or more")}


def test_approaches_on_few_families_are_not_ranked():
    table = generated_atlas.table(families=(1, 1, 1, 4), repeats=3)
    few = (table["learner"] == "xgboost") & ~table["family"].isin(["family 0", "family 3"])
    values = ApproachValues.of(table[(table["setting"] == "") & ~few])
    ranked = RankedValues.of(
        values, "error_rate", values.names.index("logistic_regression, baseline")
    )
    assert not any("xgboost" in name for name in ranked.names)
    standings = standings_of(ranked)
    assert len(standings.rows) == len(ranked.names)


def test_no_runs_are_refused():
    table = generated_atlas.table(families=(1, 1, 1), repeats=3)
    with pytest.raises(UserError, match="none of these has one"):
        findings_of(table.iloc[:0])


def test_the_ranks_are_those_of_rank(findings):
    """What the page says of error rates is what ``fairbench rank`` says of the same numbers."""
    table = generated_atlas.table()
    rows = table[table["setting"] == ""].reset_index(drop=True)
    names = ApproachValues.of(rows).names
    codes = rows.groupby(["learner", "intervention", "method", "options"], sort=True).ngroup()
    frame = rows.assign(approach=[names[code] for code in codes], split=rows["repeat"])
    report = fairbench.rank(
        frame, method="approach", task="dataset", split=["split"], family="family",
        score="error_rate", epsilon=0.01,
    )  # fmt: skip
    (ranked,) = findings.standings
    own = report.table.set_index("method")
    for standing in ranked.rows:
        row = own.loc[standing["method"]]
        assert (standing["first_rank"], standing["last_rank"], standing["may_be_best"]) == (
            row["first_rank"], row["last_rank"], row["may_be_best"],
        )  # fmt: skip
        assert standing["near_best_on_new"] == pytest.approx(row["near_best_on_new"])
        assert standing["mean"] == pytest.approx(row["mean"])
        if standing["method"] != ranked.reference:
            difference = report.difference(standing["method"], ranked.reference)
            assert [standing["difference"], standing["lower"], standing["upper"]] == pytest.approx(
                [difference.value, difference.lower, difference.upper]
            )


def test_metrics_share_one_error_rate():
    """Ranked beside others, a metric resolves less than by itself, as on the page of rank."""
    table = generated_atlas.table()
    values = RankedValues.of(ApproachValues.of(table[table["setting"] == ""]), "error_rate", 0)
    alone, beside = (standings_of(values, error_rate=wrong) for wrong in (0.05, 0.05 / 4))
    assert beside.answer.told_apart <= alone.answer.told_apart
    widths = [
        [
            standing["upper"] - standing["lower"]
            for standing in sorted(result.rows, key=lambda s: s["method"])
        ]
        for result in (alone, beside)
    ]
    assert np.all(np.less_equal(*widths)) and np.less(*widths).any()


def test_gaps_of_points_are_within_their_bands(findings):
    by = {point["setting"] or point["intervention"]: point for point in findings.mean_frontiers}
    noise = 0.01 * np.sqrt(2 / np.pi)  # the mean of what is shown of a gap of 0
    for limit, fall, shown in (
        ("statistical_parity<=0", 0.2, 0.2 - noise),
        ("equalized_odds<=0.1", 0.1, 0.1),
    ):
        assert by[limit]["gap"][1] < -shown < by[limit]["gap"][2]
        assert by[limit]["error"][1] < 0.1 * fall < by[limit]["error"][2]
    assert by["reweighing 1.0"]["gap"][0] == pytest.approx(-0.15, abs=0.01)
    for point in findings.mean_frontiers:
        for value, lower, upper in (point["error"], point["gap"]):
            assert lower <= value <= upper
