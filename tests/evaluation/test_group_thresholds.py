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
    rows = rows_of(test, PERFECT)
    for constraint in CONSTRAINTS:
        setting = f"constraint={constraint} relaxation=1"
        values = {
            name: rows[f"postprocessed_{name}", "", setting].value
            for name in ("error_rate", "gap", "validation_error_rate")
        }
        gap = (
            0.5 if constraint == "statistical_parity" else float(constraint != "equal_opportunity")
        )
        assert values == {
            "error_rate": pytest.approx(0.25),
            "gap": pytest.approx(gap),
            "validation_error_rate": pytest.approx(0),
        }


def test_a_group_without_positives_leaves_only_selection_to_be_equalised():
    missing = labelled([0, 1, 0, 0], "aabb", prediction=[0] * 4, score=[0.1, 0.9, 0.6, 0.8])
    for test, validation, of in (
        (PERFECT, missing, " of the validation rows"),
        (missing, PERFECT, ""),
    ):
        statuses = {
            constraint: result.status
            for constraint in CONSTRAINTS
            for result in [
                rows_of(test, validation)[
                    "postprocessed_error_rate", "", f"constraint={constraint} relaxation=0"
                ]
            ]
        }
        reason = f"undefined: no positives in group 'b'{of}"
        assert statuses == {
            "statistical_parity": "ok",
            "equal_opportunity": reason,
            "false_positive_rate_gap": "ok",
            "equalized_odds": reason,
        }


def test_without_scores_validation_rows_or_relaxations_there_are_no_rows():
    labels = labelled([0, 1, 0, 1], "aabb", prediction=[0, 1, 0, 1])
    assert not rows_of(labels, labels)
    assert not rows_of(PERFECT, None)
    assert not rows_of(PERFECT, PERFECT, relaxations=())
    assert not rows_of(PERFECT, PERFECT, attribute="other")
