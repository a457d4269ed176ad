"""Uncertainty fairness: ratios of groups, verdicts, directions, capacity, sequences, ACS income."""

import math

import numpy as np
import pandas as pd
import pytest
import torch

from fairbench.components.datasets import kuzucu, simulated_sequences
from fairbench.components.papers import PAPERS
from fairbench.components.papers.engine.matching import Effort
from fairbench.components.papers.uncertainty_fairness import figures, studies, tables
from fairbench.components.papers.uncertainty_fairness.studies import ACS_SIZES, TEST, folds

pytestmark = pytest.mark.thorough  # studies of works, which take minutes together

PUBLISHED = PAPERS / "uncertainty_fairness" / "published.csv"
COLUMNS = ["dataset", "run", "repeat", "metric", "attribute", "group", "value"]


def three_runs(dataset, groups=(("group", "0", "1"),), **given):
    """Return runs whose second groups have 0.1 of all, and the first ones given ratios to it."""
    rows = [
        (dataset, str(run), 0, metric, attribute, group, 0.1 * value)
        for metric in sorted(set(tables.METRICS.values()))
        for run, ratio in enumerate(np.broadcast_to(given.get(metric, 1.0), 3))
        for attribute, *pair in groups
        for group, value in zip(pair, (ratio, 1.0), strict=True)
    ]
    return pd.DataFrame(rows, columns=COLUMNS)


@pytest.fixture
def answered(monkeypatch):
    """Return a function of runs and printed numbers: what the runs answer to these."""

    def answer(ours, rows):
        monkeypatch.setattr(tables, "trained_values", lambda dataset, cause, effort: ours)
        return pd.DataFrame(tables.numbers(rows, None, Effort.FIRST))

    return answer


def test_a_ratio_is_of_the_same_run_and_undefined_over_next_to_nothing():
    asked = "sd1", "group", "epistemic_uncertainty"
    ours = three_runs("sd1", epistemic_uncertainty=[1.0, 2.0, 3.0])
    np.testing.assert_allclose(tables.ratios(ours, *asked), [1, 2, 3])
    tiny = ours["metric"].eq("epistemic_uncertainty") & ours["run"].eq("1")
    ours.loc[tiny, "value"] = 1e-8
    np.testing.assert_allclose(tables.ratios(ours, *asked).to_numpy(), [1, np.nan, 3])


def test_a_direction_counts_runs_that_show_both_of_its_parts():
    ours = [
        three_runs("sd1", aleatoric_uncertainty=[2.0, 1.0, 2.0], accuracy=[1.0, 1.0, 0.5]),
        three_runs("sd2", epistemic_uncertainty=[1.3, 0.7, 1.1]),
        three_runs("sd3", selection_rate=0.5, predictive_uncertainty=[1.0, 1.0, np.nan]),
    ]
    seen = tables.directions_seen(pd.concat(ours))[["fair part", "unfair part", "both"]]
    expected = [(2, 2, 1), (3, 2, 2), (2, 3, 2)]
    assert seen.to_numpy().tolist() == [[f"{runs} of 3" for runs in each] for each in expected]


def test_published_ratios_over_next_to_nothing_are_not_compared(answered):
    compared = published("table == '5' and sensitive_attribute == 'sex'")
    compared = compared[compared["metric"].isin(tables.METRICS)]
    result = answered(three_runs("adult", [("sex", "Female", "Male")]), compared)
    rows = compared.drop(columns="sd").join(result[result["label"] == "text"].set_index("row"))
    rows = rows.set_index("metric")
    assert rows.loc["ratio_epistemic", "reason"] == "the printed ratio is over next to nothing"
    assert rows.loc["ratio_aleatoric", "mean"] == pytest.approx(1)
    assert (rows.loc["accuracy", "repeats"] == 3).all()
    # A rule without a network has rates and no uncertainties.
    of_rule = result.loc[result["cause"] == "capital gain or loss", "row"]
    rates = {name for name in tables.METRICS if tables.METRICS[name] not in tables.VARIANCES}
    assert set(compared.loc[of_rule, "metric"]) == rates


def published(asked="table != ''"):
    """Return printed numbers, as text."""
    return pd.read_csv(PUBLISHED, dtype=str, keep_default_na=False).query(asked)


def printed(asked):
    """Return printed numbers, by metric and setting."""
    rows = published(asked).drop_duplicates(["metric", "setting"])
    return rows.set_index(["metric", "setting"])["value"].astype(float)


@pytest.mark.parametrize(
    ("metric", "cause", "means"),
    [
        ("equal_opportunity", "true positive rates", [4, 2, 2, 2, 2]),
        ("equalized_odds", "equation (25) at y = 1", [1, 2, 1, 1, 1]),
    ],
)
def test_the_texts_formulas_come_first_and_what_the_tables_print_after(
    answered, metric, cause, means
):
    ours = three_runs("sd1", true_positive_rate=2.0, false_negative_rate=[3.0, 4.0, 5.0])
    result = answered(ours, published(f"metric == 'ratio_{metric}' and dataset == 'sd1'"))
    starts = ["starts near 0", "prior of sds", "softmax twice"]
    assert result["cause"].tolist() == ["", cause, *starts]
    np.testing.assert_allclose(result["mean"], means)


def printed_ratios(metric):
    """Return where each printed ratio of a metric is, and both groups' rates beside it."""
    rows = published("table != '2'").query(f"metric == 'ratio_{metric}'")
    for row in rows.itertuples():
        of_all = row.setting.removeprefix("G0/G1")  # ", both" of D-Vlog's modalities
        value = printed(
            f"dataset == '{row.dataset}' and sensitive_attribute == '{row.sensitive_attribute}'"
        )
        groups = [
            {rate: value[rate, f"group={g}{of_all}"] for rate in ("fnr", "fpr", "ppv")}
            for g in NAMES[row.sensitive_attribute]
        ]
        yield (row.dataset, row.sensitive_attribute + of_all), float(row.value), *groups


NAMES = {
    "group": "01",
    "race": ("black", "white"),
    "age": ("<25", ">45"),
    "sex": ("female", "male"),
}


def reaches(ratio, top, bottom):
    """Say whether two numbers that round to these have a ratio that rounds to this."""
    least, most = (top - 0.005) / (bottom + 0.005), (top + 0.005) / (bottom - 0.005)
    return least - 0.005 <= ratio <= most + 0.005


def test_the_printed_equal_opportunity_is_of_true_positive_rates_and_not_equation_24():
    result = [(r, one["fnr"], two["fnr"]) for _, r, one, two in printed_ratios("equal_opportunity")]
    assert len(result) == 11
    assert all(reaches(ratio, 1 - one, 1 - two) for ratio, one, two in result)
    # Where the groups' rates are nearly the same, no two digits tell.
    assert sum(reaches(*each) for each in result) <= 5


def test_the_printed_ppv_is_not_of_the_formula_that_is_printed():
    """It is printed as TP / (TP + FN), which is 1 - FNR; numbers that round to two digits."""
    groups = [group for *_, one, two in printed_ratios("equal_opportunity") for group in (one, two)]
    off = np.array([group["ppv"] - (1 - group["fnr"]) for group in groups])
    assert (abs(off) > 0.0101).mean() > 0.8


def test_no_label_gives_these_printed_ratios_of_equalized_odds():
    """Neither at y = 0 nor at y = 1 do the table's own rates, as rounded, have such a ratio."""
    off = {
        place
        for place, ratio, one, two in printed_ratios("equalized_odds")
        if not reaches(ratio, one["fpr"], two["fpr"])
        and not reaches(ratio, 1 - one["fnr"], 1 - two["fnr"])
    }
    compas = {("compas", attribute) for attribute in ("race", "age", "sex")}
    assert off == {("sd3", "group"), *compas, ("dvlog", "sex, both"), ("dvlog", "sex, acoustic")}


def test_the_ppv_of_sd1_contradicts_the_other_rates():
    """FPR and FNR are 0.05 in group 1; a PPV of 0.90 and an NPV of 0.95 need other base rates."""
    false, right = 0.055, 0.945
    most = 0.905 * false / (0.905 * false + (1 - 0.905) * right)
    least = right * (1 - 0.955) / (right * (1 - 0.955) + 0.955 * false)
    assert most < 0.36 < 0.44 < least
    rates = printed("dataset == 'sd1'").xs("group=1", level="setting")
    assert rates[["fpr", "fnr", "ppv", "npv"]].tolist() == [0.05, 0.05, 0.9, 0.95]


def test_adults_aleatoric_uncertainty_is_more_than_the_printed_sum():
    for attribute in ("race", "sex"):
        value = printed(f"table == '5' and sensitive_attribute == '{attribute}'")
        groups = [f"group={group}" for group in NAMES[attribute]]
        epistemic, aleatoric, total = (
            value[metric][groups].to_numpy() for metric in ("epistemic", "aleatoric", "predictive")
        )
        assert (aleatoric - 0.005 > total + 0.00005).all()
        # What is left of the sum has a ratio of 1.1 at least, not of 1.00.
        first, second = total - epistemic
        assert (first - 0.0001) / (second + 0.00005) > 1.1


def test_adults_epistemic_ratio_by_sex_is_not_of_the_printed_means():
    assert (0.0001 - 0.00005) / (6e-8 + 0.5e-8) > 521 + 0.5
    value = printed("table == '5' and sensitive_attribute == 'sex'")
    means = [value["epistemic", f"group={g}"] for g in NAMES["sex"]]
    assert means == [0.0001, 6e-8] and value["ratio_epistemic", "G0/G1"] == 521


def test_the_printed_counts_add_up_but_for_two_slips():
    """Table 5's women are Table 4's with two digits swapped; Table 6 has a digit too many."""
    rows = published("metric == ['count', 'sample_size']").astype({"value": int})
    rows["group"] = rows["setting"].str.split(", ").str[0]
    by = rows.groupby(["metric", "dataset", "sensitive_attribute", "group"])["value"]
    both = pd.DataFrame({"added": by.sum()["count"], "printed": by.first()["sample_size"]}).dropna()
    assert len(both) == 10
    assert both.query("added != printed").astype(int).to_dict("index") == {
        ("adult", "sex", "group=female"): {"added": 9782, "printed": 9872},
        ("dvlog", "sex", "group=female"): {"added": 3039, "printed": 639},
    }


class Data:
    """Ten people of a data set with its own test part."""

    sensitive = pd.DataFrame({"race": ["Black"] * 6 + ["White"] * 4, "sex": "Male"})
    target = pd.Series([1, 1, 0, 0, 0, 1, 1, 0, 0, 0])
    partition = pd.Series(["train"] * 5 + ["test"] + ["train"] * 4)


def test_people_are_counted_by_group_and_label_in_the_training_part(monkeypatch):
    monkeypatch.setitem(tables.LOADED, "adult", lambda archive: Data)
    asked = [
        ("adult", "race", "count", "group=black, y=1"),
        ("adult", "race", "percent", "group=black, y=0"),
        ("adult", "race", "sample_size", "group=white"),
        ("adult", "sex", "sample_size", "group=male"),
    ]
    rows = pd.DataFrame(asked, columns=["dataset", "sensitive_attribute", "metric", "setting"])
    assert pd.DataFrame(tables.counts(rows, None, Effort.FIRST))["mean"].tolist() == [2, 60, 4, 9]


GROUPS = (("race", "African-American", "Caucasian"), ("sex", "Female", "Male"))


SIZES = {
    units: three_runs("compas", GROUPS, **dict.fromkeys(tables.CAPACITY_METRICS, ratios))
    for units, ratios in ((25, 1.0), (400, [1.0, 2.0, 3.0]))
}


def test_a_size_has_the_means_and_sds_of_its_splits():
    series = tables.series_of(SIZES, "sex", "epistemic_uncertainty")
    np.testing.assert_allclose(series, [[1, 0], [2, 1]], atol=1e-12)
    of_black = tables.series_of(SIZES, "race", "epistemic_uncertainty", "black")
    np.testing.assert_allclose(of_black, 0.1 * series, atol=1e-12)


def test_confidence_is_of_the_label_that_is_predicted():
    score = np.array([0.05, 0.95, 0.55, 0.45, 1.0, 0.52])
    (axes,) = figures.reliability_figure(score, np.array([0, 0, 1, 1, 1, 0])).axes
    bars = [[bar.get_x() + bar.get_width() / 2, bar.get_height()] for bar in axes.patches[:2]]
    np.testing.assert_allclose(bars, [[0.55, 1 / 3], [0.95, 2 / 3]])
    assert [text.get_text() for text in axes.texts] == ["50%", "50%"]


OPTIONS = {"event": 4, "noise": 0.5, "strength": 4.0}


@pytest.fixture(scope="module")
def data():
    return simulated_sequences.load(None, n_samples=8_000, longer=3.0)


def test_whole_sequences_say_all_that_the_truth_says(data):
    p = studies.known(data, OPTIONS, [], None)
    np.testing.assert_allclose(p, data.truth["probability"], atol=1e-5)


@pytest.mark.parametrize(("modalities", "length"), [([], 36), ([], 20), (["visual"], None)])
def test_what_is_known_of_less_is_calibrated(data, modalities, length):
    """Of the people for whom it is p, a share p has label 1; no more is known than of it all."""
    p, target = studies.known(data, OPTIONS, modalities, length), data.target.to_numpy()
    for low in np.arange(0, 1, 0.1):
        rows = (p >= low) & (p < low + 0.1)
        assert target[rows].mean() == pytest.approx(p[rows].mean(), abs=5 * 0.5 / rows.sum() ** 0.5)
    truth = data.truth["probability"].to_numpy()
    assert (p * (1 - p)).mean() > (truth * (1 - truth)).mean() + 0.02


def test_truncation_is_compared_within_populations():
    draw = np.random.default_rng(0)
    rows = [
        ("both", length, seed, metric, *(draw.uniform(0.098, 0.102, 2) * [1, factor]))
        for metric in (*studies.METRICS, "ideal")
        for length, factor in ((0, 1.0), (18, 2.0))
        for seed in range(4)
    ]
    found = pd.DataFrame(rows, columns=["modalities", "length", "seed", "metric", "A", "B"])
    assert studies.readings_of_groups(found)["read"].tolist() == ["both, whole", "both, 18 frames"]
    whole = studies.effects(found).iloc[0]
    assert whole["populations"] == "4"
    assert float(whole["aleatoric"].split()[0]) == pytest.approx(2, abs=0.1)
    assert studies.effects(found.query("seed + length != 18"))["populations"].tolist() == ["3"]


RACE = pd.Series(["White"] * 9000 + ["Black"] * 8000)


def test_test_rows_stay_and_training_rows_are_nested():
    result = folds(RACE, seeds=2)
    assert len(result) == 2 * len(ACS_SIZES)
    assert RACE[result[0].test].value_counts().eq(TEST).all()
    for fold, larger in zip(result, [*result[1:], result[0]], strict=True):
        np.testing.assert_array_equal(fold.test, result[0].test)
        assert not np.isin(fold.train, fold.test).any()
        assert tuple(RACE[fold.train].value_counts()[["White", "Black"]]) == ACS_SIZES[fold.fold]
        nested = fold.fold + 1 < len(ACS_SIZES)
        assert np.isin(fold.train, larger.train).all() == nested
    assert not np.isin(result[0].train, result[len(ACS_SIZES)].train).all()


def test_uncertainty_fairness_is_the_ratio_of_the_groups_means():
    """Equations (8) and (27): U(D, f, G=0) / U(D, f, G=1), each a mean over the group's rows."""
    members = np.array([[0.5, 0.9, 0.8, 1.0]])
    people = pd.DataFrame({"group": pd.Categorical(["0", "0", "1", "1"])})
    frame = pd.DataFrame(tables.of_groups(members, np.ones(4), people, dataset="sd1", run="0"))
    found = tables.ratios(frame, "sd1", "group", "aleatoric_uncertainty")
    of_groups = (members * (1 - members)).reshape(2, 2).sum(axis=1)
    assert found.to_numpy() == pytest.approx([of_groups[0] / of_groups[1]])


@pytest.mark.parametrize(
    ("name", "group", "mean", "variance", "covariance"),
    [("sd1", 1, 7, 15, 10), ("sd2", 0, 10, 100, 30), ("sd2", 1, 7, 5, 1), ("sd3", 0, 2, 7, 3)],
)
def test_the_synthetic_groups_are_normals_around_minus_and_plus_a_mean(
    name, group, mean, variance, covariance
):
    """Equations (12) to (19), by their moments; (16) prints [5, 1; 5, 1], read as [5, 1; 1, 5]."""
    normal = kuzucu.GROUPS[name][group]
    assert (normal.mean, normal.variance, normal.covariance) == (mean, variance, covariance)
    # On the line x1 = x2 = z, log P(1 | x) / P(0 | x) is 4 mean z / (variance + covariance).
    odds = 4 * mean * 0.1 / (variance + covariance)
    expected = 1 / (1 + math.exp(-odds))
    assert normal.probability(np.array([[0.1, 0.1]])) == pytest.approx(expected)


def test_the_square_of_group_0_of_sd1_lies_between_0_and_1_of_one_label():
    """Equations (10) and (11): Beta(1/2, 1/2) has mean 1/2 and variance 1/8."""
    points = kuzucu.BetaSquare(rising=True).draw(40_000, 1, np.random.default_rng(0))
    assert points.mean() == pytest.approx(0.5 / (0.5 + 0.5), abs=0.01)
    assert points.var() == pytest.approx(0.5 * 0.5 / ((0.5 + 0.5) ** 2 * (0.5 + 0.5 + 1)), abs=0.01)
    assert points.min() >= 0 and points.max() <= 1


def test_the_likelihood_is_the_mean_over_draws_of_minus_the_log_of_the_softmax():
    """Equation (22), L_NLL, and the softmax twice of the cause: e^p over e^p and e^(1 - p)."""
    scores = torch.tensor([[[0.0, math.log(3)]], [[0.0, 0.0]]])
    twice = math.exp(0.75) / (math.exp(0.75) + math.exp(0.25))
    for options, first in (({}, 3 / 4), ({"twice": True}, twice)):
        expected = 0.5 * -math.log(first) + 0.5 * -math.log(1 / 2)
        found = tables.negative_log_likelihood(scores, torch.tensor([1]), **options).item()
        assert found == pytest.approx(expected, rel=1e-6)
