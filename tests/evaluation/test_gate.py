"""Conditions of a gate, and what rows say of them: never a pass or a failure that is not sure."""

from functools import partial

import numpy as np
import pandas as pd
import pytest

import fairbench
from fairbench.core.errors import UserError
from fairbench.evaluation import gate as gates
from fairbench.evaluation.gate import FAILS, OPEN, PASSES, Gate, by_attribute, conditions_of
from fairbench.evaluation.groups import CountIntervals
from fairbench.inference.rates import rate_limits, ratio_limits
from fairbench.metrics.registry import accuracy
from fairbench.metrics.registry import false_positive_rate as FPR

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
        one = CountIntervals(table, 0.95)
        names = [f"g{place}" for place in range(len(table))]
        rows = table.sum(axis=1).astype(int)
        compared[attribute] = gates.ComparedGroups(names, rows, one, one, one, reference)
    asked = by_attribute(conditions_of(conditions), list(compared), list(compared))
    return gates.judge(asked, compared.__getitem__)


def expected(n, *probabilities):
    """Return counts as near to their expectation as whole numbers come."""
    return np.round(n * counts_of(*map(np.array, probabilities))).astype(int)


REFUSED = {
    "sex:impact_ratio>0.8": "good models, of which .* is larger; write sex:impact_ratio<0.8",
    "accuracy>0.8": "of which .* is larger; write accuracy<0.8",
    "statistical_parity<0.8": "is smaller; write statistical_parity>0.1, whose bound is a diff",
    "impact_ratio<80%": "decides nothing: write impact_ratio<BOUND",
    "sex:impact_ratio<=0.8": "write sex:impact_ratio<BOUND, and for BOUND a number between 0 and 1",
    "selection_rate==0.3": "write selection_rate<BOUND or selection_rate>BOUND",
    "impact_ratio<": "decides nothing",
    "impact_ratio<0": "decides nothing",
    "statistical_parity>1": "decides nothing",
    "impact_ratio": "is no condition",
    "rmse>3": "unknown measure of fail_if 'rmse'; valid: .*accuracy_gap",
    "equal_opportunity_difference>0.1": "did you mean equal_opportunity",
    "disparate_impact<0.8": "of ratios only impact_ratio is a condition",
    "sex:equal_opportunity_ratio<0.8": "takes no equal_opportunity_ratio: of ratios only impact_",
    "error_rate_gap>0.1": "valid: accuracy_gap, .*equal_opportunity",
    "gap.selection_rate>0.1": "valid: accuracy_gap, .*statistical_parity",
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


def test_measures_go_by_the_names_that_tables_print():
    for text, plain in (
        ("gap in true positive rate > 0.1", "equal_opportunity>0.1"),
        ("Impact Ratio<0.8", RATIO),
        ("sex x race:impact_ratio<0.80", "sex x race:impact_ratio<0.8"),
        ("precision<0.5", "positive_predictive_value<0.5"),
    ):
        assert [str(condition) for condition in conditions_of([text])] == [plain]


def test_a_verdict_is_given_where_the_interval_does_not_hold_the_bound():
    for ends, verdict in (
        ((0.7, 0.6, 0.79), FAILS),
        ((0.7, 0.6, 0.8), OPEN),
        ((0.9, 0.8, 1.0), PASSES),
        ((0.9, 0.799, 1.0), OPEN),
        ((float("nan"), 0.0, 1.0), OPEN),
    ):
        (condition,) = conditions_of([f"sex:{RATIO}"])
        assert condition.statement(ends).outcome == verdict


def test_a_gate_passes_where_all_do_fails_where_one_does_and_is_open_otherwise():
    (condition,) = conditions_of([f"sex:{RATIO}"])
    ends = (0.9, 0.85, 1), (0.5, 0.4, 0.6), (0.8, 0.6, 1)
    clear, broken, unsure = map(condition.statement, ends)
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


def test_more_conditions_make_failures_harder_and_passes_no_harder():
    table = expected(1500, [0.5, 0.5], [0.42, 0.3], [0.42, 0.3])
    alone = gate_of([RATIO], sex=table)
    assert alone.outcome == FAILS
    others = [f"accuracy<0.{place}" for place in range(10, 30)]
    several = gate_of([RATIO, *others], sex=table)
    first = several.statements[0]
    assert first.upper > alone.statements[0].upper and first.lower == alone.statements[0].lower
    assert all(statement.outcome == PASSES for statement in several.statements[1:])


def test_ratios_to_a_named_group_share_the_risk_of_a_pass():
    """Each of them gets its part (Bonferroni): the worst of seven is the one that is looked at."""
    selected = np.array([0.5, 0.41, 0.42, 0.43, 0.44, 0.45, 0.46, 0.47])
    table = expected(400, np.full(8, 0.5), selected, selected)
    (statement,) = gate_of([RATIO], 0, sex=table).statements
    rows, hits = table.sum(axis=1), table[:, [1, 3]].sum(axis=1)
    single, of_seven = (
        ratio_limits(rates.take(slice(1, None)), rates.take([0]))
        for risk in (gates.RISK, gates.RISK / 7)
        for rates in [rate_limits(hits, rows, level=1 - 2 * risk)]
    )
    assert statement.value == pytest.approx(single.value.min())
    assert statement.lower == pytest.approx(single.lower.min())
    assert statement.upper == pytest.approx(of_seven.upper.min())
    assert statement.groups == ("g1", "g0")


def test_a_group_of_few_rows_leaves_what_is_sure_as_it_is():
    """It is the reason of what is open, and undoes neither a pass nor a failure."""
    few = [2, 2, 2, 3]
    sure = {FAILS: ([0.5, 0.1], "false_positive_rate>0.2"), PASSES: ([0.5, 0.5], "accuracy<0.1")}
    for verdict, (rates, condition) in sure.items():
        table = expected(3000, [0.5, 0.5], rates, rates)
        assert gate_of([condition], sex=table).outcome == verdict
        assert gate_of([condition], sex=np.vstack([table, few])).outcome == verdict
    gate = gate_of([RATIO], sex=np.vstack([expected(300, [0.5], [0.5], [0.5]), few]))
    assert gate.outcome == OPEN and "under 10 rows in g1" in gate.line
    # Of enough rows, an open line plans nothing from the value that was observed.
    gate = gate_of([RATIO], sex=expected(200, [0.5, 0.5], [0.4, 0.36], [0.4, 0.36]))
    assert gate.outcome == OPEN and gate.line.endswith("interval 0.699 to 1.000)")


def test_a_gate_of_evaluate_says_of_its_table_what_it_can_be_sure_of():
    """The gate is settled where the 95 % interval that everybody sees excludes the bound."""
    random = np.random.default_rng(5)
    groups = {"sex": random.choice(list("abc"), 900)}
    label = (random.random(900) < 0.5).astype(int)
    prediction = (random.random(900) < 0.3 + 0.3 * label).astype(int)
    evaluated = partial(fairbench.evaluate, label, prediction, sensitive_features=groups)
    table = evaluated()
    pd.testing.assert_frame_equal(evaluated(fail_if="accuracy<0.1"), table)
    values = table[(table["statistic"] == "value") & (table["attribute"] == "sex")]
    for condition, metric in (
        ("equal_opportunity>0.4", "equal_opportunity"),
        ("equalized_odds>0.4", "equalized_odds"),
        ("impact_ratio<0.3", "disparate_impact"),
    ):
        (row,) = values[values["metric"] == metric].to_dict("records")
        with pytest.raises(fairbench.GateError) as refused:
            evaluated(fail_if=[condition, "accuracy<0.999"])
        statement = refused.value.gate.statements[0]
        assert statement.value == pytest.approx(row["value"])
        # What clears a condition is not corrected for others; what breaks it is.
        safe, other = ("lower", "upper") if "<" in condition else ("upper", "lower")
        assert getattr(statement, safe) == pytest.approx(row[safe])
        wider = getattr(statement, other) - row[other]
        assert wider >= 0 if other == "upper" else wider <= 0
        pd.testing.assert_frame_equal(refused.value.table, table)
    for options, why in (
        ({"task": "regression"}, "of two classes, not of regression"),
        ({"evaluator": fairbench.Evaluator(interval="dirichlet")}, "hold in repeated samples"),
    ):
        with pytest.raises(UserError, match=why):
            evaluated(fail_if=RATIO, **options)


def test_a_named_group_is_what_impact_ratios_compare_with():
    """Against the middle group nobody is under four fifths; against the highest, somebody is."""
    sex = np.repeat(["high", "low", "middle"], 3000)
    chosen = np.concatenate([np.arange(3000) < 3000 * share for share in (0.7, 0.5, 0.55)]) * 1
    arguments = (np.tile([0, 1], 4500), chosen)
    of = {"sensitive_features": {"sex": sex}, "fail_if": RATIO}
    fairbench.evaluate(*arguments, **of, privileged={"sex": "middle"})
    with pytest.raises(fairbench.GateError, match="gate fails"):
        fairbench.evaluate(*arguments, **of)


def test_a_group_of_which_nothing_is_known_keeps_a_gate_open():
    table = expected(50_000, [0.5, 0.5], [0.3, 0.3], [0.8, 0.8])
    nobody = np.array([[500, 0, 0, 0], [500, 0, 0, 0]])
    tiny = np.vstack([table, [[1, 1, 0, 1]]])
    for counts, condition, outcome in (
        (table, "equal_opportunity>0.1", PASSES),
        (np.vstack([table, [[20, 5, 0, 0]]]), "equal_opportunity>0.1", OPEN),
        (nobody, RATIO, OPEN),
        (nobody[:, ::-1], RATIO, PASSES),
        (table[:1], RATIO, OPEN),
    ):
        assert gate_of([condition], sex=counts).outcome == outcome
    for condition in (RATIO, "equal_opportunity>0.1", "accuracy<0.5", "equalized_odds>0.1"):
        gate = gate_of([condition], sex=tiny)
        assert gate.outcome == OPEN and "under 10 rows in g2" in gate.line, condition


@pytest.mark.parametrize(
    ("condition", "rate"), [("accuracy<0.8", accuracy), ("false_positive_rate>0.05", FPR)]
)
def test_the_most_extreme_rate_of_several_groups_shares_the_risk(condition, rate):
    table = np.round(500 * counts_of(0.5, [0.2 if rate is accuracy else 0.05] * 4, 0.8)).astype(int)
    (statement,) = gate_of([condition], sex=table).statements
    hits, rows = table @ np.array(rate.numerator), table @ np.array(rate.denominator)
    single, wide = (
        rate_limits(hits, rows, level=1 - 2 * gates.RISK / shared) for shared in (1, len(table))
    )
    ends = single.lower.min(), wide.upper.min()
    if rate is FPR:
        ends = wide.lower.max(), single.upper.max()
    assert (statement.lower, statement.upper) == pytest.approx(ends)


# Populations at the bound of conditions, where neither verdict may be given often; and away from it
LOW = counts_of(0.5, [0.3, 0.2], [0.7, 0.6])
AT_BOUND = {
    "ratio of two": ([RATIO], counts_of(0.5, [0.5, 0.4], [0.5, 0.4])),
    "ratio of rare": ([RATIO], counts_of(0.5, [0.1, 0.08], [0.1, 0.08])),
    "ratio of four": ([RATIO], counts_of(0.5, [0.5, 0.4, 0.4, 0.4], [0.5, 0.4, 0.4, 0.4])),
    "to a named group": ([RATIO], counts_of(0.5, [0.5, *[0.4] * 7], [0.5, *[0.4] * 7])),
    "gap": (["statistical_parity>0.1"], counts_of(0.5, [0.4, 0.3], [0.4, 0.3])),
    "small gap": (["statistical_parity>0.02"], counts_of(0.5, [0.4, 0.38], [0.4, 0.38])),
    "gap of eight": (["equal_opportunity>0.1"], counts_of(0.5, 0.3, [0.8] * 4 + [0.7] * 4)),
    "odds": (["equalized_odds>0.1"], counts_of(0.5, [0.3, 0.3, 0.4], [0.8, 0.7, 0.75])),
    "lowest rate": (["accuracy<0.8"], counts_of(0.5, [0.2] * 4, 0.8)),
    "highest rate": (["false_positive_rate>0.05"], counts_of(0.5, [0.05] * 4, 0.8)),
    "several": ([RATIO, "equal_opportunity>0.1", f"accuracy<{accuracy(1000 * LOW).min():g}",
                 "statistical_parity>0.1"], LOW),
}  # fmt: skip
AWAY = [
    ([RATIO], counts_of(0.5, [0.5, 0.48], [0.5, 0.48]), 1500, PASSES),
    ([RATIO], counts_of(0.5, [0.5, 0.3], [0.5, 0.3]), 800, FAILS),
    (["false_positive_rate>0.05"], counts_of(0.5, [0.05, 0.05, 0.2], 0.8), 400, FAILS),
]


def outcomes(conditions, cells, rows, repeats, reference=None):
    """Return the shares of gates that pass, fail and are open, of samples of a population."""
    random = np.random.default_rng(0)
    seen = {PASSES: 0, FAILS: 0, OPEN: 0}
    for _ in range(repeats):
        sizes = np.maximum((rows * random.uniform(0.9, 1.1, len(cells))).astype(int), 1)
        drawn = [random.multinomial(size, group) for size, group in zip(sizes, cells, strict=True)]
        seen[gate_of(conditions, reference, sex=np.array(drawn)).outcome] += 1
    return {outcome: number / repeats for outcome, number in seen.items()}


@pytest.mark.slow
@pytest.mark.parametrize("rows", [(30, 30), (200, 200), (1500, 1500), (2000, 200)], ids=str)
@pytest.mark.parametrize("name", AT_BOUND)
def test_at_the_bound_a_gate_is_wrong_in_one_sample_of_twenty(name, rows):
    """At most one in twenty, and what one of a thousand samples exceeds.

    Parameters
    ----------
    rows : of all groups but the last, and of the last.
    """
    reference = 0 if name == "to a named group" else None
    conditions, cells = AT_BOUND[name]
    sizes = np.array([*[rows[0]] * (len(cells) - 1), rows[1]])
    seen = outcomes(conditions, cells, sizes, 150, reference)
    assert max(seen[PASSES], seen[FAILS]) <= 0.05 + 3.1 * np.sqrt(0.05 * 0.95 / 150), seen


@pytest.mark.parametrize(("conditions", "cells", "rows", "outcome"), AWAY)
def test_away_from_the_bound_a_gate_says_so(conditions, cells, rows, outcome):
    assert outcomes(conditions, cells, rows, 60)[outcome] > 0.9


def test_a_gap_of_many_groups_says_what_noise_alone_would_make():
    groups = np.array([f"g{place}" for place in range(20)]).repeat(50)
    frame = pd.DataFrame({"group": groups, "d": np.random.default_rng(0).integers(0, 2, 1000)})
    asked = {"prediction": "d", "groups": "group", "fail_if": "statistical_parity>0.05"}
    gate = fairbench.gate(frame, **asked)
    (statement,) = gate.statements
    assert statement.value > 0.2
    assert statement.noise == pytest.approx(3.735 * 0.5 / np.sqrt(50), rel=0.05)  # of 20 normals
    assert f"; {statement.noise:.3f} by noise alone)" in gate.line
    assert "by noise" not in fairbench.gate(frame.head(100), **asked).line
