"""Rows of thresholds per group: what they are chosen on and judged by, and when there are none."""

import pytest

from fairbench.evaluation.abstention import CONSTRAINTS, evaluate_group_thresholds
from tests.evaluation.labelled import added, labelled

PERFECT = labelled([0, 1, 0, 1], "aabb", prediction=[0, 1, 0, 1], score=[0.1, 0.9, 0.6, 0.8])


def rows_of(data, validation, relaxations=(0.0, 1.0), attribute="g"):
    return added(evaluate_group_thresholds, data, validation, relaxations, attribute)


def test_thresholds_of_the_validation_rows_are_judged_on_the_test_rows():
    """Group a is parted at 0.5, b at 0.7: on the test rows that is wrong once in a."""
    test = labelled([0, 1, 0, 1], "aabb", prediction=[0] * 4, score=[0.6, 0.9, 0.6, 0.75])
    rows, gaps = rows_of(test, PERFECT), {"statistical_parity": 0.5, "equal_opportunity": 0}
    for constraint in CONSTRAINTS:
        expected = {"error_rate": 0.25, "gap": gaps.get(constraint, 1), "validation_error_rate": 0}
        for name, value in expected.items():
            place = f"postprocessed_{name}", "", f"constraint={constraint} relaxation=1"
            assert rows[place].value == pytest.approx(value)


def test_a_group_without_positives_leaves_only_selection_to_be_equalised():
    missing = labelled([0, 1, 0, 0], "aabb", prediction=[0] * 4, score=[0.1, 0.9, 0.6, 0.8])
    of_validation, of_test = rows_of(PERFECT, missing), rows_of(missing, PERFECT)
    for constraint in CONSTRAINTS:
        place = "postprocessed_error_rate", "", f"constraint={constraint} relaxation=0"
        reason = "undefined: no positives in group 'b'"
        if constraint in ("statistical_parity", "false_positive_rate_gap"):
            assert of_validation[place].status == of_test[place].status == "ok"
        else:
            assert of_test[place].status == reason
            assert of_validation[place].status == f"{reason} of the validation rows"


def test_without_scores_validation_rows_or_relaxations_there_are_no_rows():
    labels = labelled([0, 1, 0, 1], "aabb", prediction=[0, 1, 0, 1])
    assert not rows_of(labels, labels)
    assert not rows_of(PERFECT, None)
    assert not rows_of(PERFECT, PERFECT, relaxations=())
    assert not rows_of(PERFECT, PERFECT, attribute="other")
