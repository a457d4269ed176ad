"""Summaries over repeats: means, their intervals, and statuses."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from fairbench import evaluate
from fairbench.evaluation import table as tables
from fairbench.evaluation.summary import summarise
from fairbench.inference.rates import difference_limits, rate_limits
from fairbench.inference.repeats import FOLDS, REPEATS, Splits

NAN = float("nan")
PLACE = {"variant": "", "statistic": "value", "attribute": "sex", "group": "F"}


def metrics(*rows, **place):
    """Return a table of one metric: value, lower, upper, n and status of every repeat."""
    frame = pd.DataFrame(rows, columns=["value", "lower", "upper", "n", "status"])
    parts = frame["status"].str.partition(": ")
    frame = frame.assign(status=parts[0], reason=parts[2], **dict.fromkeys(tables.SETTINGS, NAN))
    frame = frame.assign(metric="error_rate", fold=0, repeat=np.arange(len(rows)))
    frame = frame.assign(**{**PLACE, **place})
    return frame[[*tables.KEYS, *tables.COLUMNS]]


def test_mean_sd_and_corrected_interval_over_repeats():
    rows = [(0.1, 0.0, 0.2, 10, "ok"), (0.2, 0.1, 0.5, 20, "ok"), (0.6, 0.2, 0.9, 90, "ok")]
    (result,) = summarise(metrics(*rows, metric="log_loss")).to_dict("records")
    # How many rows were trained on is not known: as many as were tested, to be careful.
    sd = np.std([0.1, 0.2, 0.6], ddof=1)
    half = stats.t.ppf(0.975, 2) * np.sqrt(1 / 3 + 1) * sd
    assert {name: value for name, value in result.items() if name not in tables.SETTINGS} == {
        **PLACE,
        "metric": "log_loss",
        "mean": pytest.approx(0.3),
        "sd": pytest.approx(sd),
        "lower": 0.0,
        "upper": pytest.approx(0.3 + half),
        "estimand": "the fits of these repeats",
        **{"n": 20, "repeats": 3, "status": "ok", "reason": ""},
    }


NO_POSITIVES = "undefined: no positives in group 'F'"
FLAGGED = [
    # The values of repeats; mean, sd, repeats, n, status.
    ([(0.1, 0.0, 0.2, 12, "ok"), (NAN, NAN, NAN, 0, NO_POSITIVES), (0.3, 0.2, 0.4, 14, "ok")],
     (0.2, 0.02**0.5, 2, 12, f"{NO_POSITIVES} (1 of 3)")),
    # The most frequent reason stands for all.
    ([(0.1, 0, 1, 5, "insufficient: n=5"), (0.1, 0, 1, 12, "ok"),
      *[(0.1, 0, 1, 7, "insufficient: n=7")] * 2],
     (0.1, 0, 4, 7, "insufficient: n=7 (3 of 4)")),
    ([(NAN, NAN, NAN, 0, "undefined: no rows")], (NAN, NAN, 0, 0, "undefined: no rows (1 of 1)")),
    ([(0.5, 0.4, 0.6, 30, "ok")], (0.5, NAN, 1, 30, "ok: ")),
]  # fmt: skip


@pytest.mark.parametrize(("rows", "expected"), FLAGGED)
def test_undefined_repeats_are_left_out_of_the_means_and_counted_in_the_status(rows, expected):
    (result,) = summarise(metrics(*rows)).to_dict("records")
    numbers = [result[name] for name in ("mean", "sd", "repeats", "n")]
    assert numbers == pytest.approx(list(expected[:-1]), nan_ok=True)
    assert f"{result['status']}: {result['reason']}" == expected[-1]
    assert np.isnan(result["lower"]) == np.isnan(result["mean"])
    if len(rows) == 1 and result["repeats"]:
        assert (result["lower"], result["upper"], result["estimand"]) == (0.4, 0.6, "this fit")


@pytest.mark.parametrize("key", ["variant", "group", "feature"])
def test_rows_of_another_place_are_summarised_apart_in_the_order_of_the_table(key):
    flagged = metrics((0.9, 0.8, 1, 3, "insufficient: n=3"), **{key: "zz"})
    plain = metrics((0.1, 0, 0.2, 50, "ok"), (0.3, 0, 0.2, 50, "ok"), **{key: "a"})
    summary = summarise(pd.concat([flagged, plain], ignore_index=True))
    assert list(summary[key]) == ["zz", "a"]
    np.testing.assert_allclose(summary["mean"], [0.9, 0.2])
    assert list(summary["status"]) == ["insufficient", "ok"]


def splits_of(groups, kind="repeat", trained=400):
    """Return the table of a rate of two groups in several splits, and of the gap between them.

    Parameters
    ----------
    groups : (S, 2) rates of A and of B, of 50 rows each.
    """
    rows = []
    for i, (a, b) in enumerate(groups):
        for metric, attribute, group, value, n in (
            ("error_rate", "", "", (a + b) / 2, 100),
            ("fit_seconds", "", "", 1.0, trained),
            ("selection_rate", "sex", "A", a, 50),
            ("selection_rate", "sex", "B", b, 50),
            ("base_rate", "sex", "A", 0.5 + i / 100, 50),
            ("base_rate", "sex", "B", 0.5 + i / 100, 50),
            ("statistical_parity_difference", "sex", "B", b - a, 50),
            ("statistical_parity_ratio", "sex", "B", b / a, 50),
            ("statistical_parity", "sex", "", abs(b - a), 50),
        ):
            place = {"attribute": attribute, "group": group, "metric": metric}
            ends = (NAN, NAN) if metric == "fit_seconds" else (value - 0.1, value + 0.1)
            rows.append(metrics((value, *ends, n, "ok"), **place).assign(**{kind: i}))
    return pd.concat(rows, ignore_index=True)


RATES = np.array([[0.3, 0.5], [0.44, 0.4], [0.38, 0.44], [0.42, 0.34], [0.3, 0.42]])


def by_metric(table, **options):
    summary = summarise(table, **options)
    return summary[summary["group"] != "A"].set_index("metric")


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("kind", "splits"), [("repeat", Splits(REPEATS, 5, 0.2)), ("fold", Splits(FOLDS, 1, 0.2))]
)
def test_a_gap_has_the_interval_of_the_mean_signed_differences(kind, splits):
    result = by_metric(splits_of(RATES, kind))
    # Of as many rows as the splits are worth.
    size = 50 / splits.variance(np.array(5.0))
    first, second = (rate_limits(mean * size, size) for mean in RATES.mean(axis=0))
    expected = difference_limits(second, first)
    signed, gap = result.loc["statistical_parity_difference"], result.loc["statistical_parity"]
    ends = float(expected.lower), float(expected.upper)
    assert (signed["lower"], signed["upper"]) == pytest.approx(ends)
    estimand = f"the fits of these {kind}s"
    assert (signed["estimand"], signed["repeats"]) == (estimand, 5)
    assert gap["mean"] == pytest.approx(np.abs(RATES[:, 1] - RATES[:, 0]).mean())
    assert (gap["lower"], gap["upper"]) == (0, pytest.approx(signed["upper"]))
    assert gap["estimand"] == f"{estimand}: their mean rates"
    ratio = result.loc["statistical_parity_ratio"]
    assert ratio["lower"] < RATES[:, 1].mean() / RATES[:, 0].mean() < ratio["upper"]
    assert np.isnan(result.loc["fit_seconds", "lower"])


def test_repeats_that_test_the_same_people_say_nothing_of_other_people():
    table = splits_of(RATES)
    table.loc[table["metric"] == "base_rate", "value"] = 0.5
    result = by_metric(table)
    assert result.loc["selection_rate", "estimand"] == "the fits of these repeats"
    one = rate_limits(RATES[:, 1].mean() * 50, 50)
    assert result.loc["selection_rate", "upper"] == pytest.approx(float(one.upper))


@pytest.mark.thorough
def test_runs_are_summarised_apart_and_intervals_may_be_left_out():
    tables = [splits_of(RATES), splits_of(RATES[:1])]
    table = pd.concat([table.assign(run=i) for i, table in enumerate(tables)], ignore_index=True)
    summary = summarise(table, per=["run"])
    for i, run_table in enumerate(tables):
        own = summary[summary["run"] == i].drop(columns="run").reset_index(drop=True)
        pd.testing.assert_frame_equal(own, summarise(run_table), check_dtype=False)
    without = summarise(table, per=["run"], intervals=False)
    assert without["lower"].isna().all()
    np.testing.assert_array_equal(without["mean"], summary["mean"])


@pytest.mark.parametrize("metric", ["true_positive_rate", "expected_calibration_error"])
@pytest.mark.parametrize("statistic", [tables.VALUE, "pooled", "debiased"])
def test_no_limit_of_a_share_is_above_1_whichever_statistic_of_it(metric, statistic):
    rows = [(0.2, 0.1, 0.5, 20, "ok"), (0.9, 0.6, 1.0, 20, "ok")]
    (result,) = summarise(metrics(*rows, metric=metric, statistic=statistic)).to_dict("records")
    assert result["lower"] < result["mean"] < result["upper"] <= 1


@pytest.mark.parametrize("repeats", [2, 10])
def test_where_every_split_has_too_few_rows_for_an_interval_the_mean_has_none(repeats):
    draw, splits = np.random.default_rng(0), []
    for repeat in range(repeats):
        number, rare, score = draw.normal(size=80), np.arange(80) < 5, draw.random(80)
        groups = {"sensitive_features": draw.choice(["a", "b"], 80)}
        for table in (
            evaluate(number, score, task="regression", **groups),
            evaluate(rare, score > 0.5, score=score, **groups),
        ):
            splits.append(table.assign(repeat=repeat, fold=0, variant=""))
    means = summarise(pd.concat(splits)).query("statistic == 'value' and attribute == ''")
    few = means[means["metric"].isin(["rmse", "r2", "roc_auc"])]
    assert len(few) == 3 and (few["status"] == "insufficient").all()
    assert few[["lower", "upper"]].isna().all(axis=None)


def test_a_mean_outside_its_interval_says_so():
    """The mean gap of many small groups is far above the gap of the means."""
    rates = np.random.default_rng(0).binomial(10, 0.5, (10, 30)) / 10
    values = {("selection_rate", str(g)): rates[:, g] for g in range(30)}
    values["statistical_parity", ""] = np.ptp(rates, axis=1)
    values |= {("base_rate", str(g)): np.arange(10) / 10 for g in range(30)}
    rows = [
        metrics(*((x, 0, 1, 10, "ok") for x in value), metric=metric, attribute="sex", group=group)
        for (metric, group), value in values.items()
    ]
    trained = metrics((1.0, NAN, NAN, 2700, "ok"), metric="fit_seconds", attribute="", group="")
    tested = metrics((0.5, 0, 1, 300, "ok"), metric="error_rate", attribute="", group="")
    result = by_metric(pd.concat([*rows, trained, tested], ignore_index=True))
    gap = result.loc["statistical_parity"]
    assert gap["lower"] == 0
    assert gap["mean"] > gap["upper"] > 0.3
    assert gap["status"] == "insufficient"
    assert "mean rates" in gap["reason"]


def test_the_probability_of_a_small_gap_agrees_with_the_interval_of_the_runs_gap():
    """Splits of a few hundred rows leave open what their mean shows; the papers' stay."""
    parts = [
        metrics(*[(value, lower, upper, 300, "ok")] * 10, metric=metric, group=group).assign(
            epsilon=epsilon, statistic=statistic
        )
        for metric, group, statistic, value, lower, upper, epsilon in (
            ("selection_rate", "F", tables.VALUE, 0.2, 0.15, 0.25, NAN),
            ("selection_rate", "M", tables.VALUE, 0.5, 0.45, 0.55, NAN),
            ("statistical_parity", "", tables.VALUE, 0.3, 0.2, 0.4, NAN),
            ("statistical_parity", "", tables.BELOW_EPSILON, 0.3, NAN, NAN, 0.05),
            ("statistical_parity", "", tables.PAIRS_THAT_DIFFER, 1.0, NAN, NAN, NAN),
        )
    ]
    for kept, below in ((parts, 0.05), (parts[:-1], 0.3)):
        result = summarise(pd.concat(kept, ignore_index=True)).set_index(["group", "statistic"])
        gap = result.loc[""]
        assert gap["lower"][tables.VALUE] > 0.05
        assert gap["mean"][tables.BELOW_EPSILON] == pytest.approx(below)
