"""Conditions of a gate, and what rows say of them: never a pass or a failure that is not sure."""

import numpy as np
import pandas as pd
import pytest

import fairbench
from fairbench.core.errors import UserError
from fairbench.evaluation.gate import (
    FAILS,
    OPEN,
    PASSES,
    RISK,
    ComparedGroups,
    Gate,
    by_attribute,
    conditions_of,
    judge,
    statement_of,
)
from fairbench.evaluation.groups import CountIntervals
from fairbench.inference.rates import rate_limits, ratio_limits
from fairbench.metrics.registry import accuracy, false_positive_rate

RATIO = "impact_ratio<0.8"


def counts_of(base, false_positive, true_positive):
    """Return the probabilities (G, 4) of the cells in which groups have these rates."""
    base, fpr, tpr = np.broadcast_arrays(base, false_positive, true_positive)
    negative = 1 - base
    return np.stack([negative * (1 - fpr), negative * fpr, base * (1 - tpr), base * tpr], axis=-1)


def gate_of(conditions, reference=None, **counts):
    """Return the gate of confusion counts (G, 4) by attribute.

    Parameters
    ----------
    reference : the position of the group that others are compared with; none by default.
    """
    compared = {}
    for attribute, table in counts.items():
        table = np.asarray(table)
        one = CountIntervals(table, np.empty((0, 0, 4)), 0.95)
        names = [f"g{place}" for place in range(len(table))]
        rows = table.sum(axis=1).astype(int)
        compared[attribute] = ComparedGroups(attribute, names, rows, one, one, one, reference)
    asked = by_attribute(conditions_of(conditions), list(compared), list(compared))
    return judge(asked, compared)


def expected(n, *probabilities):
    """Return counts as near to their expectation as whole numbers come."""
    return np.round(n * counts_of(*map(np.array, probabilities))).astype(int)


REFUSED = {
    "impact_ratio>0.8": "would fail good models.* write impact_ratio<0.8",
    "statistical_parity<0.1": "would fail good models.* write statistical_parity>0.1",
    "sex:accuracy>0.9": "write sex:accuracy<0.9",
    "impact_ratio<80%": "shares are from 0 to 1; write impact_ratio<0.8",
    "sex:impact_ratio<80": "write sex:impact_ratio<0.8",
    "statistical_parity>10%": "write statistical_parity>0.1",
    "impact_ratio<=0.8": "not <=; write impact_ratio<0.8",
    "selection_rate==0.3": "write selection_rate<0.3 or selection_rate>0.3",
    "impact_ratio<": "the number is missing",
    "impact_ratio<four": "'four' is no number",
    "impact_ratio<nan": "'nan' is no number",
    "impact_ratio<0": "decides nothing",
    "statistical_parity>1": "decides nothing",
    "statistical_parity>-0.1": "decides nothing",
    "impact_ratio": "is no condition",
    "": "is no condition",
    "impact_ratoi<0.8": "did you mean impact_ratio",
    "equal_oportunity>0.1": "did you mean equal_opportunity",
    "rmse>3": "unknown measure",
    "gap.selection_rate>0.1": "for the gap between groups write statistical_parity>0.1 or 'gap in "
    "selection rate>0.1'",
    "sex:gap(true_positive_rate)>0.2": "write sex:equal_opportunity>0.2 or 'sex:gap in true",
    "gap_in_false_negative_rate>0.1": "write equal_opportunity>0.1",
    "error_rate_gap>0.1": "write accuracy_gap>0.1 or 'gap in accuracy>0.1'",
    "gap.f1_score>0.1": "unknown gap of fail_if 'f1_score'; valid: accuracy_gap, equal_opportunity",
    "disparate_impact<0.8": "use impact_ratio",
    "equal_opportunity_difference>0.1": "use equal_opportunity",
    "demographic_parity_difference>0.1": "that is statistical_parity here",
}


@pytest.mark.parametrize("text", REFUSED)
def test_a_condition_that_cannot_be_is_refused_in_a_line_with_what_to_write(text):
    with pytest.raises(UserError, match=REFUSED[text]) as refusal:
        conditions_of([text])
    assert "\n" not in str(refusal.value) and len(str(refusal.value)) <= 330


def test_conditions_are_refused_where_they_stand_twice_or_are_of_no_attribute():
    with pytest.raises(UserError, match="names impact_ratio<0.8 twice"):
        conditions_of([RATIO, "impact_ratio < 0.80"])
    with pytest.raises(UserError, match="unknown attribute of fail_if 'sexx': did you mean sex"):
        by_attribute(conditions_of([f"sexx:{RATIO}"]), ["sex"], ["sex", "race"])
    with pytest.raises(UserError, match="a gate needs a condition"):
        by_attribute([], ["sex"], ["sex"])


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("gap in true positive rate > 0.1", "equal_opportunity>0.1"),
        ("true_positive_rate_gap>0.1", "equal_opportunity>0.1"),
        ("precision_gap>0.1", "predictive_parity>0.1"),
        ("Impact Ratio<0.8", RATIO),
        ("sex x race:impact_ratio<0.80", "sex x race:impact_ratio<0.8"),
        ("precision<0.5", "positive_predictive_value<0.5"),
    ],
)
def test_measures_go_by_the_names_that_tables_print(text, plain):
    assert [str(condition) for condition in conditions_of([text])] == [plain]


@pytest.mark.parametrize(
    ("ends", "verdict"),
    [
        ((0.7, 0.6, 0.79), FAILS),
        ((0.7, 0.6, 0.8), OPEN),
        ((0.9, 0.8, 1.0), PASSES),
        ((0.9, 0.799, 1.0), OPEN),
        ((float("nan"), 0.0, 1.0), OPEN),
        ((0.9, float("nan"), float("nan")), OPEN),
    ],
)
def test_a_verdict_is_given_where_the_interval_does_not_hold_the_bound(ends, verdict):
    (condition,) = conditions_of([f"sex:{RATIO}"])
    assert statement_of(condition, ends).outcome == verdict


def test_a_gate_passes_where_all_do_fails_where_one_does_and_is_open_otherwise():
    (condition,) = conditions_of([f"sex:{RATIO}"])
    clear, broken, unsure = (
        statement_of(condition, ends) for ends in ((0.9, 0.85, 1), (0.5, 0.4, 0.6), (0.8, 0.6, 1))
    )
    for several, outcome, status in (
        ([clear, clear], PASSES, 0),
        ([clear, unsure], OPEN, 3),
        ([clear, broken, unsure], FAILS, 1),
        ([], OPEN, 3),
    ):
        gate = Gate(tuple(several))
        assert (gate.outcome, gate.exit_status, bool(gate)) == (outcome, status, status == 0)
        assert "\n" not in gate.line
    assert Gate((clear, unsure), "pass").exit_status == 1
    assert not Gate((clear, unsure), "pass")


def test_ends_of_one_condition_are_those_of_the_table():
    """The gate is settled where the 95 % interval that everybody sees excludes the bound."""
    random = np.random.default_rng(5)
    rows = 900
    frame = pd.DataFrame({"sex": random.choice(list("abc"), rows)})
    label = (random.random(rows) < 0.5).astype(int)
    prediction = (random.random(rows) < 0.3 + 0.3 * label).astype(int)
    table = fairbench.evaluate(label, prediction, sensitive_features=frame)
    values = table[(table["statistic"] == "value") & (table["attribute"] == "sex")]
    for name, bound in (("equal_opportunity", 0.4), ("equalized_odds", 0.4), (RATIO[:12], 0.3)):
        sign = "<" if name == "impact_ratio" else ">"
        metric = "disparate_impact" if name == "impact_ratio" else name
        (row,) = values[values["metric"] == metric].to_dict("records")
        with pytest.raises(fairbench.GateError) as refused:
            fairbench.evaluate(
                label,
                prediction,
                sensitive_features=frame,
                fail_if=[f"{name}{sign}{bound}", "accuracy<0.999"],
            )
        statement = refused.value.gate.statements[0]
        assert statement.value == pytest.approx(row["value"])
        # What clears a condition is not corrected for others; what breaks it is.
        safe, other = ("lower", "upper") if sign == "<" else ("upper", "lower")
        assert getattr(statement, safe) == pytest.approx(row[safe])
        wider = getattr(statement, other) - row[other]
        assert wider >= 0 if other == "upper" else wider <= 0
        pd.testing.assert_frame_equal(refused.value.table, table)


def test_evaluate_returns_its_table_where_the_gate_passes():
    rows = np.arange(4000)
    arguments = (rows % 2, rows // 2 % 2)
    groups = {"sex": np.where(rows // 4 % 2, "a", "b")}
    plain = fairbench.evaluate(*arguments, sensitive_features=groups)
    table = fairbench.evaluate(*arguments, sensitive_features=groups, fail_if=RATIO)
    pd.testing.assert_frame_equal(table, plain)
    with pytest.raises(UserError, match="of two classes, not of regression"):
        fairbench.evaluate(*arguments, sensitive_features=groups, fail_if=RATIO, task="regression")
    with pytest.raises(UserError, match="hold in repeated samples"):
        fairbench.evaluate(
            *arguments,
            sensitive_features=groups,
            fail_if=RATIO,
            evaluator=fairbench.Evaluator(interval="dirichlet"),
        )


def test_a_named_group_is_what_impact_ratios_compare_with():
    """Against the middle group nobody is under four fifths; against the highest, somebody is."""
    rows = 3000
    sex = np.repeat(["high", "low", "middle"], rows)
    chosen = np.concatenate([np.arange(rows) < rows * share for share in (0.7, 0.5, 0.55)])
    label = np.tile([0, 1], len(sex) // 2)
    arguments = (label, chosen.astype(int))
    fairbench.evaluate(
        *arguments,
        sensitive_features={"sex": sex},
        privileged={"sex": "middle"},
        fail_if=RATIO,
    )
    with pytest.raises(fairbench.GateError, match="gate fails"):
        fairbench.evaluate(*arguments, sensitive_features={"sex": sex}, fail_if=RATIO)


def test_a_group_of_which_nothing_is_known_keeps_a_gate_open():
    label_1 = counts_of(np.array([0.5, 0.5]), np.array([0.3, 0.3]), np.array([0.8, 0.8]))
    table = np.round(50_000 * label_1).astype(int)
    assert gate_of(["equal_opportunity>0.1"], sex=table).outcome == PASSES
    none_positive = np.vstack([table, [[20, 5, 0, 0]]])
    gate = gate_of(["equal_opportunity>0.1"], sex=none_positive)
    assert (gate.outcome, gate.exit_status) == (OPEN, 3)
    nobody = np.array([[500, 0, 0, 0], [500, 0, 0, 0]])
    assert gate_of([RATIO], sex=nobody).outcome == OPEN
    everybody = nobody[:, ::-1]
    assert gate_of([RATIO], sex=everybody).outcome == PASSES
    tiny = np.vstack([table, [[1, 1, 0, 1]]])
    for condition in (RATIO, "equal_opportunity>0.1", "accuracy<0.5", "equalized_odds>0.1"):
        gate = gate_of([condition], sex=tiny)
        assert gate.outcome == OPEN and "under 10 rows in g2" in gate.line, condition
    assert gate_of([RATIO], sex=table[:1]).outcome == OPEN


def test_more_conditions_make_failures_harder_and_passes_no_harder():
    table = expected(1500, [0.5, 0.5], [0.42, 0.3], [0.42, 0.3])
    alone = gate_of([RATIO], sex=table)
    assert alone.outcome == FAILS
    others = [f"accuracy<0.{place}" for place in range(10, 30)]
    several = gate_of([RATIO, *others], sex=table)
    first = several.statements[0]
    assert first.upper > alone.statements[0].upper and first.lower == alone.statements[0].lower
    assert all(statement.outcome == PASSES for statement in several.statements[1:])


def test_an_open_line_plans_nothing_from_the_value_that_was_observed():
    gate = gate_of([RATIO], sex=expected(200, [0.5, 0.5], [0.4, 0.36], [0.4, 0.36]))
    assert gate.outcome == OPEN and gate.line.endswith("interval 0.699 to 1.000)")


# Populations exactly at the bound of a condition, where neither verdict may be given often.
AT_BOUND = {
    "ratio of two": (RATIO, counts_of(0.5, [0.5, 0.4], [0.5, 0.4])),
    "ratio of rare": (RATIO, counts_of(0.5, [0.1, 0.08], [0.1, 0.08])),
    "ratio of four": (RATIO, counts_of(0.5, [0.5, 0.4, 0.4, 0.4], [0.5, 0.4, 0.4, 0.4])),
    "gap": ("statistical_parity>0.1", counts_of(0.5, [0.4, 0.3], [0.4, 0.3])),
    "small gap": ("statistical_parity>0.02", counts_of(0.5, [0.4, 0.38], [0.4, 0.38])),
    "gap of eight": ("equal_opportunity>0.1", counts_of(0.5, 0.3, [0.8] * 4 + [0.7] * 4)),
    "odds": ("equalized_odds>0.1", counts_of(0.5, [0.3, 0.3, 0.4], [0.8, 0.7, 0.75])),
    "lowest rate": ("accuracy<0.8", counts_of(0.5, [0.2] * 4, 0.8)),
    "highest rate": ("false_positive_rate>0.05", counts_of(0.5, [0.05] * 4, 0.8)),
}


def outcomes(conditions, cells, rows, repeats, seed=0, reference=None):
    """Return the shares of gates that pass, fail and are open, of samples of a population."""
    random = np.random.default_rng(seed)
    seen = {PASSES: 0, FAILS: 0, OPEN: 0}
    for _ in range(repeats):
        sizes = np.maximum((rows * random.uniform(0.9, 1.1, len(cells))).astype(int), 1)
        drawn = [random.multinomial(size, group) for size, group in zip(sizes, cells, strict=True)]
        seen[gate_of(conditions, reference, sex=np.array(drawn)).outcome] += 1
    return {outcome: number / repeats for outcome, number in seen.items()}


def at_most(share, repeats):
    """Return a share that one of at most so much is under, in all but a thousandth of samples."""
    return share + 3.1 * np.sqrt(share * (1 - share) / repeats)


@pytest.mark.thorough
@pytest.mark.parametrize("name", AT_BOUND)
def test_at_the_bound_a_gate_is_wrong_in_one_sample_of_twenty(name):
    condition, cells = AT_BOUND[name]
    repeats = 150
    for rows in (60, 1500):
        seen = outcomes([condition], cells, rows, repeats)
        assert seen[PASSES] <= at_most(0.05, repeats), (rows, seen)
        assert seen[FAILS] <= at_most(0.05, repeats), (rows, seen)


@pytest.mark.slow
@pytest.mark.parametrize("name", AT_BOUND)
def test_at_the_bound_a_gate_is_wrong_in_one_sample_of_twenty_at_any_size(name):
    condition, cells = AT_BOUND[name]
    repeats = 300
    for rows in (30, 200, 2000):
        sizes = np.full(len(cells), rows)
        for number in (sizes, np.r_[sizes[:-1], max(10, rows // 10)]):
            seen = outcomes([condition], cells, number, repeats, seed=rows)
            assert seen[PASSES] <= at_most(0.05, repeats), (number, seen)
            assert seen[FAILS] <= at_most(0.05, repeats), (number, seen)


def test_ratios_to_a_named_group_share_the_risk_of_a_pass():
    """Each of them gets its part (Bonferroni): the worst of seven is the one that is looked at."""
    selected = np.array([0.5, 0.41, 0.42, 0.43, 0.44, 0.45, 0.46, 0.47])
    table = expected(400, np.full(8, 0.5), selected, selected)
    (statement,) = gate_of([RATIO], 0, sex=table).statements
    rows, hits = table.sum(axis=1), table[:, [1, 3]].sum(axis=1)
    single, of_seven = (
        ratio_limits(rates.take(slice(1, None)), rates.take([0]))
        for rates in (rate_limits(hits, rows, level=1 - 2 * risk) for risk in (RISK, RISK / 7))
    )
    assert statement.value == pytest.approx(single.value.min())
    assert statement.lower == pytest.approx(single.lower.min())
    assert statement.upper == pytest.approx(of_seven.upper.min())
    assert statement.groups == ("g1", "g0")


def test_at_the_bound_ratios_to_a_named_group_fail_in_one_sample_of_twenty():
    cells = counts_of(0.5, [0.5, *[0.4] * 7], [0.5, *[0.4] * 7])
    seen = outcomes([RATIO], cells, 1500, 150, reference=0)
    assert seen[PASSES] <= at_most(0.05, 150) and seen[FAILS] <= at_most(0.05, 150)


@pytest.mark.parametrize("condition", ["accuracy<0.8", "false_positive_rate>0.05"])
def test_the_most_extreme_rate_of_several_groups_shares_the_risk(condition):
    _, cells = AT_BOUND["lowest rate" if condition.startswith("accuracy") else "highest rate"]
    table = np.round(500 * cells).astype(int)
    (statement,) = gate_of([condition], sex=table).statements
    rate = accuracy if condition.startswith("accuracy") else false_positive_rate
    hits, rows = table @ np.array(rate.numerator), table @ np.array(rate.denominator)
    single = rate_limits(hits, rows, level=1 - 2 * RISK)
    of_several = rate_limits(hits, rows, level=1 - 2 * RISK / len(table))
    if rate is accuracy:
        assert statement.lower == pytest.approx(single.lower.min())
        assert statement.upper == pytest.approx(of_several.upper.min())
    else:
        assert statement.lower == pytest.approx(of_several.lower.max())
        assert statement.upper == pytest.approx(single.upper.max())


def test_a_group_of_few_rows_leaves_what_is_sure_as_it_is():
    """It is the reason of what is open, and undoes neither a pass nor a failure."""
    few = [2, 2, 2, 3]
    sure = {
        FAILS: ([0.5, 0.1], "false_positive_rate>0.2"),
        PASSES: ([0.5, 0.5], "accuracy<0.1"),
    }
    for verdict, (rates, condition) in sure.items():
        table = expected(3000, [0.5, 0.5], rates, rates)
        assert gate_of([condition], sex=table).outcome == verdict
        assert gate_of([condition], sex=np.vstack([table, few])).outcome == verdict
    gate = gate_of([RATIO], sex=np.vstack([expected(300, [0.5], [0.5], [0.5]), few]))
    assert gate.outcome == OPEN and "under 10 rows in g1" in gate.line


@pytest.mark.thorough
def test_several_conditions_at_their_bounds_share_one_error_rate():
    cells = counts_of(0.5, np.array([0.3, 0.2]), np.array([0.7, 0.6]))
    low = accuracy(1000 * cells).min()
    conditions = [RATIO, "equal_opportunity>0.1", f"accuracy<{low:g}", "statistical_parity>0.1"]
    seen = outcomes(conditions, cells, 1000, 150)
    assert seen[PASSES] <= at_most(0.05, 150) and seen[FAILS] <= at_most(0.05, 150)


def test_away_from_the_bound_a_gate_says_so():
    fair = counts_of(0.5, np.array([0.5, 0.48]), np.array([0.5, 0.48]))
    assert outcomes([RATIO], fair, 1500, 60)[PASSES] > 0.9
    unfair = counts_of(0.5, np.array([0.5, 0.3]), np.array([0.5, 0.3]))
    assert outcomes([RATIO], unfair, 800, 60)[FAILS] > 0.9
    worst = counts_of(0.5, np.array([0.05, 0.05, 0.2]), 0.8)
    assert false_positive_rate(worst)[2] == pytest.approx(0.2)
    assert outcomes(["false_positive_rate>0.05"], worst, 400, 60)[FAILS] > 0.9


def test_a_gap_of_many_groups_says_what_noise_alone_would_make():
    frame = pd.DataFrame(
        {
            "group": [f"g{place}" for place in range(1000 // 50) for _ in range(50)],
            "d": np.random.default_rng(0).integers(0, 2, 1000),
        }
    )
    gate = fairbench.gate(frame, prediction="d", groups="group", fail_if="statistical_parity>0.05")
    (statement,) = gate.statements
    assert statement.value > 0.2
    assert statement.noise == pytest.approx(3.735 * 0.5 / np.sqrt(50), rel=0.05)  # of 20 normals
    assert f"; {statement.noise:.3f} by noise alone)" in gate.line
    two = fairbench.gate(
        frame[frame["group"].isin(["g0", "g1"])],
        prediction="d", groups="group", fail_if="statistical_parity>0.05",
    )  # fmt: skip
    assert "by noise" not in two.line
