"""Summaries over repeats: means, medians of intervals, and statuses."""

import numpy as np
import pandas as pd
import pytest

from fairbench.evaluation.columns import COLUMNS, KEYS, SETTINGS
from fairbench.evaluation.table import summarise

NAN = float("nan")
PLACE = {"variant": "", "attribute": "sex", "group": "F"}


def metrics(*rows, **place):
    """Return a table of one metric: value, lower, upper, n and status of every repeat."""
    frame = pd.DataFrame(rows, columns=["value", "lower", "upper", "n", "status"])
    parts = frame["status"].str.partition(": ")
    frame = frame.assign(status=parts[0], reason=parts[2], **dict.fromkeys(SETTINGS, NAN))
    frame = frame.assign(metric="error_rate", fold=0, repeat=np.arange(len(rows)))
    frame = frame.assign(**{**PLACE, **place})
    return frame[[*KEYS, *COLUMNS]]


def test_mean_sd_and_median_interval_over_repeats():
    (found,) = summarise(
        metrics(
            (0.1, 0.0, 0.2, 10, "ok"),
            (0.2, 0.1, 0.5, 20, "ok"),
            (0.6, 0.2, 0.9, 90, "ok"),
        )
    ).to_dict("records")
    assert {name: value for name, value in found.items() if name not in SETTINGS} == {
        **PLACE,
        "metric": "error_rate",
        "mean": pytest.approx(0.3),
        "sd": pytest.approx(np.std([0.1, 0.2, 0.6], ddof=1)),
        "lower": 0.1,
        "upper": 0.5,
        "n": 20,
        "repeats": 3,
        "status": "ok",
        "reason": "",
    }


def test_undefined_repeats_are_left_out_of_the_means_and_counted_in_the_status():
    reason = "undefined: no positives in group 'F'"
    (found,) = summarise(
        metrics((0.1, 0.0, 0.2, 12, "ok"), (NAN, NAN, NAN, 0, reason), (0.3, 0.2, 0.4, 14, "ok"))
    ).to_dict("records")
    assert (found["mean"], found["repeats"]) == (pytest.approx(0.2), 2)
    assert (found["lower"], found["upper"]) == (pytest.approx(0.1), pytest.approx(0.3))
    assert f"{found['status']}: {found['reason']}" == f"{reason} (1 of 3)"


def test_the_most_frequent_reason_stands_for_all():
    (found,) = summarise(
        metrics(
            (0.1, 0, 1, 5, "insufficient: n=5"),
            (0.1, 0, 1, 12, "ok"),
            (0.1, 0, 1, 7, "insufficient: n=7"),
            (0.1, 0, 1, 7, "insufficient: n=7"),
        )
    ).to_dict("records")
    assert (found["status"], found["reason"]) == ("insufficient", "n=7 (3 of 4)")
    assert (found["n"], found["repeats"]) == (7, 4)


def test_a_metric_never_defined_has_no_mean():
    (found,) = summarise(metrics((NAN, NAN, NAN, 0, "undefined: no rows"))).to_dict("records")
    assert np.isnan([found["mean"], found["sd"], found["lower"]]).all()
    assert (found["repeats"], found["reason"]) == (0, "no rows (1 of 1)")


def test_one_repeat_has_no_sd():
    (found,) = summarise(metrics((0.5, 0.4, 0.6, 30, "ok"))).to_dict("records")
    assert np.isnan(found["sd"])
    assert found["mean"] == 0.5


@pytest.mark.parametrize("key", ["variant", "attribute", "group", "feature"])
def test_rows_of_another_place_are_summarised_apart_in_the_order_of_the_table(key):
    flagged = metrics((0.9, 0.8, 1, 3, "insufficient: n=3"), **{key: "zz"})
    plain = metrics((0.1, 0, 0.2, 50, "ok"), (0.3, 0, 0.2, 50, "ok"), **{key: "a"})
    summary = summarise(pd.concat([flagged, plain], ignore_index=True))
    assert list(summary[key]) == ["zz", "a"]
    np.testing.assert_allclose(summary["mean"], [0.9, 0.2])
    assert list(summary["status"]) == ["insufficient", "ok"]


def test_folds_count_as_repeats():
    table = metrics((0.2, 0, 1, 9, "ok"), (0.4, 0, 1, 9, "ok")).assign(repeat=0, fold=[0, 1])
    (found,) = summarise(table).to_dict("records")
    assert (found["mean"], found["repeats"]) == (pytest.approx(0.3), 2)
