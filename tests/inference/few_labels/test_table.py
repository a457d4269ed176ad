"""Partly labelled tables: defaults, coding of groups, and what is refused."""

import numpy as np
import pytest

from fairbench.core.errors import UserError
from fairbench.inference.few_labels.table import PartlyLabelled

SCORE, GROUP = [0.2, 0.7, 0.6, 0.5], ["a", "b", "b", "c"]


def test_defaults():
    table = PartlyLabelled.of(SCORE, GROUP, [1, None, 0, np.nan])
    assert table.groups == ("b", "a", "c")
    np.testing.assert_array_equal(table.group, [1, 0, 0, 2])
    np.testing.assert_array_equal(table.prediction, [0, 1, 1, 0])
    np.testing.assert_array_equal(table.labelled, [0, 2])
    np.testing.assert_array_equal(table.counts(), [[0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]])
    np.testing.assert_array_equal(table.sizes(), [[0, 2], [1, 0], [1, 0]])


def test_labels_can_be_hidden_and_left_out():
    table = PartlyLabelled.of(SCORE, GROUP, [1, 0, 0, 1], reference="c")
    assert table.groups == ("c", "a", "b")
    np.testing.assert_array_equal(table.showing(np.array([3])).labelled, [3])
    np.testing.assert_array_equal(table.showing(np.array([3])).counts(), table.counts([3]))
    assert not PartlyLabelled.of(SCORE, GROUP).labelled.size


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"score": [0.2, 1.7, 0.6, 0.5]}, r"'score' is 1.7 in row 2"),
        ({"score": [0.2, np.nan, 0.6, 0.5]}, r"'score' is nan in row 2"),
        ({"score": ["x", 0.1, 0.1, 0.1]}, "give numbers"),
        ({"label": [1, 0, 2, None]}, r"'label' is 2.0 in row 3"),
        ({"prediction": [1, 0, 0.5, 1]}, r"'prediction' is 0.5 in row 3"),
        ({"group": ["a", None, "b", "b"]}, r"'group' is nan in row 2"),
        ({"group": ["a"]}, "unequal lengths"),
        ({"score": [], "group": []}, "no rows"),
        ({"reference": "z"}, "unknown reference group 'z'"),
    ],
)
def test_bad_columns_are_refused_by_name_and_row(columns, words):
    columns = {"score": SCORE, "group": GROUP, **columns}
    with pytest.raises(UserError, match=words):
        PartlyLabelled.of(columns.pop("score"), columns.pop("group"), **columns)
