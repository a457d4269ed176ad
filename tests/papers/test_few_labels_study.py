"""The study of few labels: rates and summaries by hand, its numbers, and the labels it takes."""

from math import exp, log

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.naive_bayes import GaussianNB

from fairbench.components.datasets import adult as adult_file
from fairbench.components.datasets import bank as bank_file
from fairbench.components.papers import PAPERS
from fairbench.components.papers.engine.mapping import Paper
from fairbench.components.papers.engine.matching import Effort
from fairbench.components.papers.few_labels import figures, methods, tables
from fairbench.components.papers.released_scores import partly_labelled
from fairbench.core.arrays import rng
from fairbench.data.dataset import Source
from fairbench.inference.few_labels import BETA, LLO
from fairbench.metrics import registry
from fairbench.metrics.registry import accuracy, true_positive_rate
from tests.harness import archive_with

pytestmark = pytest.mark.thorough  # studies of works, which take minutes together


@pytest.fixture(scope="module")
def table():
    generator = np.random.default_rng(0)
    score, label = generator.random(600), generator.random(600)
    group = generator.choice(["a", "b", "c"], 600, p=[0.7, 0.2, 0.1])
    return partly_labelled(score, group, (label < score).astype(float), reference="a")


def test_a_member_of_every_group_comes_first(table):
    for order in methods.label_orders(table, 5):
        assert sorted(order) == list(range(600))
        assert sorted(table.group[order[:3]]) == [0, 1, 2]


def test_everyone_else_is_one_group(table):
    others, right = table.group > 0, table.prediction == table.label
    assert methods.everyone_else(table.counts())[1].sum() == others.sum()
    expected = right[others].mean() - right[~others].mean()
    assert methods.true_difference(table, accuracy) == pytest.approx(expected)


@pytest.mark.parametrize(
    "name", ["frequentist", "beta_binomial", "beta_calibration", "helped_by_scores"]
)
@pytest.mark.parametrize("rate", methods.RATES.values(), ids=methods.RATES)
def test_many_labels_find_the_truth(table, name, rate):
    orders = [order[:550] for order in methods.label_orders(table, 3)]
    (values,) = methods.intervals(table, orders, methods.Method(name), [rate], rng(0, "test"))
    assert (np.diff(values[:, [1, 0, 2]]) > 0).all()
    # TPRs of the others are averaged by size, as published, and not by positives.
    atol = 0.02 if rate is accuracy else 0.06
    np.testing.assert_allclose(values[:, 0], methods.true_difference(table, rate), atol=atol)


def test_pool_noise_widens(table):
    orders = [order[:100] for order in methods.label_orders(table, 3)]
    methods_read = (
        methods.Method("beta_calibration", reading=reading)
        for reading in (methods.AS_PUBLISHED, methods.POOL_NOISE)
    )
    rates = list(methods.RATES.values())
    published, noisy = (
        methods.intervals(table, orders, method, rates, rng(0, "x")) for method in methods_read
    )
    assert (np.diff(noisy[..., 1:]) > np.diff(published[..., 1:])).all()
    np.testing.assert_allclose(noisy[0, :, 0], published[0, :, 0], atol=0.01)


def test_faults_of_the_published_code_by_hand():
    """One unlabelled row a cell: the map has c for b, and scores are not clipped."""
    table = partly_labelled([0.999, 0.3, 0.8, 0.2], list("aaab"), [1, 0, 1, 0], reference="a")
    a, b, c = 0.1, -0.5, 0.2
    counts = methods.faulty_counts(table, np.array([2]), np.tile([a, b, c], (3, 2, 1)))
    odds = c + np.exp(a) * np.log([0.999, 0.3, 0.2]) - np.exp(c) * np.log([0.001, 0.7, 0.8])
    sure, no, other = 1 / (1 + np.exp(-odds))
    # The labelled row is a true positive of the first group.
    np.testing.assert_allclose(counts[0, 0], [1 - no, 1 - sure, no, sure + 1])
    np.testing.assert_allclose(counts[0, 1], [1 - other, 0, other, 0])


KEY = ("german", "sex", "mlp")
KEY_COLUMNS = dict(zip(("dataset", "sensitive_attribute", "learner"), KEY, strict=True))


@pytest.fixture
def one_pool(table, monkeypatch):
    """The simulated people in place of every third and every released file; what was asked."""
    asked = []

    def third_of(dataset, attribute, learner, third, results, *, flip=False):
        asked.append((attribute, flip))
        return table

    for module in (methods, figures):
        monkeypatch.setattr(module, "third_of", third_of)
    monkeypatch.setattr(methods, "released_pool", lambda key, *, as_released: table)
    return asked


def test_numbers_are_of_the_row_they_answer_and_the_first_is_the_texts(one_pool, tmp_path):
    code = ["", "released code", "released scores", "released scores and code"]
    asked = {
        7: ("beta_binomial", "mae_delta_accuracy", code),
        3: (
            *("beta_calibration_nonhierarchical", "mae_delta_accuracy"),
            [*code[:2], "groups apart around 0", *code[2:]],
        ),
        5: ("beta_calibration", "mae_delta_tpr", code),
        9: ("frequentist", "coverage95_delta_fpr_percent", [code[0], code[2]]),
    }
    rows = pd.DataFrame.from_dict(asked, "index", columns=["method", "metric", "causes"])
    rows = rows.assign(table="B.2", n_labelled="40", setting="", **KEY_COLUMNS)
    ours = pd.DataFrame(tables.numbers(rows, tmp_path, Effort.FIRST))
    causes = ours.groupby("row")["cause"].agg(list)
    assert causes.to_dict() == rows["causes"].to_dict()
    assert ours["mean"].between(0, 100).all()
    assert (ours["error"] > 0).all()
    declared = Paper.read("few_labels", PAPERS).causes
    assert {"", *declared} == {setting.cause for setting in methods.SETTINGS}


def test_a_study_goes_on_where_it_was_stopped(one_pool, tmp_path):
    def study(*labels):
        asked = [("frequentist", 1.0, number, "accuracy") for number in labels]
        return methods.study(methods.TEXT, KEY, asked, tmp_path, Effort.FIRST)

    first = study(40)
    one_pool.clear()
    pd.testing.assert_frame_equal(first, study(40))
    assert not one_pool
    assert len(study(40, 100)) == 2 * len(first)


def test_settings_change_what_they_say(one_pool, tmp_path):
    assert methods.SETTINGS[0] == methods.TEXT == methods.Setting()
    cut, code = methods.Setting("cut", cut=True), methods.Setting("code", code=True)
    cut.pools(("bank", "age", "mlp"), 1, tmp_path)
    code.pools(KEY, 1, tmp_path)
    methods.TEXT.pools(KEY, 1, tmp_path)
    assert one_pool == [("released age", False), ("sex", True), ("sex", False)]
    of = "beta_binomial", 1.0, "tpr"
    priors = [setting.method(*of).prior for setting in (methods.TEXT, code)]
    assert priors == [1.0, 0.5]
    assert code.concerns("adult", ("beta_calibration", 1.0, 10, "tpr"))
    assert not code.concerns("adult", ("beta_calibration", 1.0, 10, "accuracy"))
    assert not code.concerns("german", ("frequentist", 1.0, 10, "tpr"))
    wide = ("beta_calibration", 10.0, 10, "accuracy")
    assert methods.TEXT.concerns("adult", wide)
    assert not code.concerns("adult", wide)


def test_the_codes_faults_are_in_its_rates_alone(one_pool, tmp_path):
    asked = [("beta_calibration", 1.0, 100, rate) for rate in ("accuracy", "tpr")]
    plain, code = (
        methods.study(setting, KEY, asked, tmp_path, Effort.FIRST).set_index(["rate", "third"])
        for setting in (methods.TEXT, methods.Setting("code", code=True))
    )
    same = np.isclose(plain["error"], code["error"], rtol=1e-9)
    same = pd.Series(same, plain.index)
    assert same["accuracy"].all() and not same["tpr"].any()


def test_a_coverage_that_never_varies_has_the_error_of_its_orders():
    rows = pd.DataFrame({"coverage": [100.0, 100.0], "orders": [5, 5]})
    found = methods.number(rows, coverage=True, runs=1000)
    share = 6.5 / 8
    assert found.mean == 100
    assert found.error == pytest.approx((1e4 * share * (1 - share) * (1 / 1000 + 1 / 10)) ** 0.5)


def test_errors_by_number_of_labels(one_pool, table, tmp_path):
    frame = tables.third_errors([KEY], tmp_path, Effort.FIRST)
    row = frame.query("rate == 'fpr' and method == 'labels alone'").iloc[0]
    said, sizes = [], np.bincount(table.group)[1:]
    for order in methods.label_orders(table, 2):  # the FPRs of the labelled rows, by hand
        negatives = order[: row["labels"]][table.label[order[: row["labels"]]] == 0]
        decisions, group = table.prediction[negatives], table.group[negatives]
        first, *others = (decisions[group == g].mean() for g in range(3))
        said.append(np.average(others, weights=sizes) - first)
    truth = methods.true_difference(table, registry.false_positive_rate)
    assert row["error"] == pytest.approx(100 * np.nanmean(np.abs(np.array(said) - truth)))


def test_calibration_is_best_where_scores_are_calibrated(one_pool, tmp_path):
    table = tables.best(tables.third_errors([KEY], tmp_path, Effort.QUICK))
    assert table.loc[("accuracy", 10), "configurations"] == 1
    assert table.loc[("accuracy", 10), "calibration errs least"] == 1


def test_an_error_that_is_undefined_in_every_run_is_missing():
    frame = pd.DataFrame({"method": tables.METHODS.values(), "error": [np.nan, 2.0, 1.0]})
    frame = frame.assign(**KEY_COLUMNS, labels=10, rate="tpr", coverage=50.0)
    wide = tables.side_by_side(frame)
    assert len(wide) == 1
    assert np.isnan(wide["labels alone"][0])
    assert tables.best(frame).empty


def test_a_report_by_hand(one_pool, tmp_path):
    assert figures.probabilities(np.array([-0.05, -0.01, 0.01, 0.03])) == (0.5, 0.5)
    assert figures.posterior_reports(1, 2, tmp_path)["pair"].tolist() == ["adult sex", "bank age"]


def test_a_third_is_held_out_and_scored_by_what_knows_the_rest(monkeypatch, tmp_path):
    """Simulated people whose first feature tells their label."""
    generator = np.random.default_rng(0)
    label = generator.integers(0, 2, 90)
    features = np.stack([label, np.zeros(90)], 1) + generator.normal(0, [0.3, 1], (90, 2))
    group = np.where(np.arange(90) % 2, "a", "b").astype(object)
    whole = methods.People(features, label, {"g": group}, {"g": "b"})
    monkeypatch.setattr(methods, "people", lambda dataset: whole)
    methods.third_of.cache_clear()
    for third in (0, 1):
        train, test = whole.held_out(third)
        assert len(test) == 30
        assert sorted([*train, *test]) == list(range(90))
        asked = "any", "g", "gaussian_nb", third, tmp_path
        as_is, turned = (methods.third_of(*asked, flip=flip) for flip in (False, True))
        np.testing.assert_array_equal(as_is.label, label[test])
        np.testing.assert_allclose(turned.score, 1 - as_is.score)
        assert (as_is.prediction == as_is.label).mean() > 0.8
        assert as_is.groups == ("b", "a")
    methods.third_of.cache_clear()


def test_categories_become_columns_and_numbers_stay():
    frame = pd.DataFrame({"n": [1.5, 2.0], "yes": [True, False], "kind": ["x", "y"]})
    np.testing.assert_array_equal(methods.encoded(frame), [[1.5, 1, 1, 0], [2.0, 0, 0, 1]])


# Table 4.1 as printed: shares of the privileged by sex and by the other attribute, and of label 1.
PRINTED = {  # and of which data set a row really is
    "german": (0.37, 0.79, 0.17, "compas_vr"),
    "compas_r": (0.7, 0.85, 0.69, "german"),
    "compas_vr": (0.8, 0.34, 0.47, "compas_r"),
}


@pytest.mark.data
def test_rows_of_table_4_1_stand_in_each_others_places():
    """Of printed rows none is of its data set, and each is of another one."""
    archive_with(adult_file.TRAIN)

    def off(printed, dataset):
        second = "age" if dataset == "german" else "race"
        of_rows = ("sex", "share_privileged"), (second, "share_privileged"), ("", "share_positive")
        values = np.array([tables.described(dataset, *row, 100) for row in of_rows])
        return (np.abs(printed - values.mean(axis=1)) / values.std(axis=1)).max()

    for named, (first, second, positive, really) in PRINTED.items():
        # In German's printed row the age comes first.
        pair = (second, first) if named == "german" else (first, second)
        assert off((*pair, positive), named) > 8
        assert off((*pair, positive), really) < 3.5
    # A third of 334 loans with 17 % good ones out of 700 good and 300 bad is out of the question.
    assert methods.people("german").label.sum() == 700


def test_table_4_7_contradicts_tables_4_5_and_4_6():
    """Adult by race at alpha = 1: equal numbers of labels alone, unequal ones of calibration."""
    rows = tables.published().query("dataset == 'adult' and sensitive_attribute == 'race'")
    places = rows.set_index(["table", "method", "setting", "learner", "n_labelled"])
    value = places["value"].astype(float).sort_index()
    alone = value["4.7", "beta_binomial", ""] - value["4.6", "beta_binomial", ""]
    assert alone.dropna().abs().max() < 0.16
    for table in ("4.5", "4.6", "B.1"):
        ours = value["4.7", "beta_calibration", "alpha=1.0"]
        off = value[table, "beta_calibration", ""] - ours
        assert off["mlp"][["10", "100"]].min() > 0.8
        assert off["gaussian_nb"]["1000"] == pytest.approx(-0.28)


@pytest.mark.data
def test_bank_is_cut_at_forty():
    archive_with(bank_file.BANK)
    whole = methods.people("bank")
    senior = whole.groups["age"] == whole.privileged["age"]
    released = whole.groups["released age"] == whole.privileged["released age"]
    assert len(senior) == 41188
    assert (round(senior.mean(), 2), round(1 - released.mean(), 3)) == (0.45, 0.026)


# The attribute that a released file is named after, and the name of its label.
FILES = {
    "adult": ("adult_race", "income-per-year"),
    "bank": ("bank_age", "y"),
    "german": ("german_age", "credit"),
    "compas_r": ("propublica-recidivism_race", "two_year_recid"),
    "compas_vr": ("propublica-violent-recidivism_race", "two_year_recid"),
}


@pytest.mark.data
@pytest.mark.parametrize("dataset", FILES)
def test_people_have_the_released_rows_and_naive_bayes_the_released_scores(dataset):
    name, target = FILES[dataset]
    source = Source(f"predictions/bayesian_fairness/{name}_scores.csv", "")
    frame = pd.read_csv(archive_with(source).locate(source), index_col=0)
    rows, whole = frame.index.to_numpy(), methods.people(dataset)
    np.testing.assert_array_equal(whole.label[rows], frame[target])
    train = np.setdiff1d(np.arange(len(whole.label)), rows)
    model = GaussianNB().fit(whole.features[train], whole.label[train])
    theirs = frame["score_GaussianNB"].to_numpy()
    theirs = 1 - theirs if dataset == "german" else theirs
    np.testing.assert_allclose(model.predict_proba(whole.features[rows])[:, 1], theirs, atol=1e-6)


def test_the_published_number_is_that_of_the_example():
    assert figures.by_normal(*figures.EXAMPLE) == pytest.approx(figures.PUBLISHED, rel=0.03)
    chance = figures.chance(*figures.EXAMPLE, figures.PUBLISHED)
    assert chance == pytest.approx(0.95, abs=0.01)


@pytest.mark.parametrize("margin", [0.02, 0.05])
def test_closed_form_and_simulation_agree(margin):
    population = (0.15, 0.25), (0.7, 0.6)
    expected = figures.by_normal(*population, margin)
    result = figures.by_simulation(*population, margin, step=expected // 20)
    assert result == pytest.approx(expected, rel=0.05)


def test_samples_without_positives_count_as_outside():
    assert figures.chance((0.2, 0.0), (0.95, 0.9), 100) == 0


COUNTS = np.array([[30, 12, 9, 21], [4, 0, 0, 0]])


def test_frequentist_is_a_proportion_with_its_binomial_error():
    expected = [0.7, np.nan], [np.sqrt(0.7 * 0.3 / 30), np.nan]
    np.testing.assert_allclose(methods.frequentist(COUNTS, true_positive_rate), expected)


@pytest.mark.parametrize("prior", [1.0, 0.5])
def test_beta_binomial_has_beta_quantiles(prior):
    draw, count = np.random.default_rng(0), 20_000
    draws = methods.beta_binomial(COUNTS, accuracy, draw, prior=prior, draws=count)
    of = stats.beta([prior + 51, prior + 4], [prior + 21, prior])
    for level in (0.025, 0.5, 0.9):
        assert (abs((draws < of.ppf(level)).mean(axis=0) - level) < 5 * np.sqrt(0.25 / count)).all()


def mapped(model, score, parameters):
    """Return the calibrated score of parameters log a, log b and c."""
    coefficients = model.coefficients(np.array([parameters], dtype=float))
    return float(1 / (1 + np.exp(-coefficients @ model.features(np.array([score]))))[0, 0])


def test_the_beta_prior_of_a_tpr_sees_positives_alone():
    """Section 4.3: theta_g = P(decision 1 | y = 1, g)."""
    counts = np.array([[5, 4, 1, 2]])  # 2 of 3 positives found
    found = methods.beta_parameters(counts, true_positive_rate, 1.0)
    assert [float(part[0]) for part in found] == [1 + 2, 1 + 1]


def test_beta_calibration_of_a_score():
    """Equation 4.4: 1 / (1 + exp(-c - a log s + b log(1 - s))), a = 2, b = 1/2, c = 0.3.

    a = b = 1 and c = 0 is the identity; a = b is linear in the log odds.
    """
    expected = 1 / (1 + exp(-0.3 - 2 * log(0.8) + 0.5 * log(1 - 0.8)))
    assert mapped(BETA, 0.8, [log(2), log(0.5), 0.3]) == pytest.approx(expected)
    assert mapped(BETA, 0.8, [0, 0, 0]) == pytest.approx(0.8)
    expected = 1 / (1 + exp(-0.3 - 2 * log(0.8 / 0.2)))
    assert mapped(BETA, 0.8, [log(2), log(2), 0.3]) == pytest.approx(expected)
    assert mapped(LLO, 0.8, [log(2), 0.3]) == pytest.approx(expected)


# Means, spreads and two groups as standard normals: mu_a, mu_b, mu_c; sigma; then each group.
NORMALS = np.array([1.0, -2.0, 0.5, 1.0, 2.0, -1.0, 1.0, 0.0, -1.0, -2.0, 1.0, 2.0])


def test_a_groups_parameter_is_a_shared_mean_and_a_share_of_the_spread():
    """Equations 4.6 to 4.11: N(mu, sigma), mu of sd 0.4, 0.4, 2, sigma half-normal of .15, .75.

    Section 4.9.4: alpha = 3 gives N(0, 3 x 0.4) and a half-normal of 3 x 0.15.
    """
    expected = [  # 4.6 and 4.9: log a; 4.7 and 4.10: log b; 4.8 and 4.11: c
        [0.4 + 0.15 * 1, 0.4 * -2 + 0.30 * 0, 2 * 0.5 + 0.75 * -1],
        [0.4 + 0.15 * -2, 0.4 * -2 + 0.30 * 1, 2 * 0.5 + 0.75 * 2],
    ]
    np.testing.assert_allclose(BETA.from_normals(NORMALS, 2), expected)
    scaled = BETA.scaled(3).from_normals(NORMALS, 2)[0, 0]
    assert scaled == pytest.approx(3 * 0.4 + 3 * 0.15 * 1)


def test_an_error_is_the_mean_distance_and_a_coverage_the_share_of_intervals():
    """Sections 4.8.1 and 4.9.1, in points and percent: the truth is 0.10."""
    said = methods.measures(np.array([[0.12, 0.05, 0.2], [0.06, 0.0, 0.09], [np.nan] * 3]), 0.10)
    assert said["error"] == pytest.approx(100 * (0.02 + 0.04) / 2)
    # An order without an estimate counts for no error, and is not covered.
    assert (said["defined"], said["coverage"]) == (2, pytest.approx(100 * 1 / 3))


def test_a_printed_number_scatters_by_its_third_and_its_label_orders():
    """Section 4.6 holds one third out: ours, of two, each with 4 orders of variance 8."""
    # The variance over 4 orders is 6, of which the unbiased one is 6 x 4 / 3 = 8.
    rows = pd.DataFrame({"error": [3.0, 9.0], "sd": [6**0.5] * 2, "defined": [4, 4]})
    found = methods.number(rows, coverage=False, runs=100)
    split = 18 - 8 / 4  # the variance of 3 and 9 is 18, of which 2 are the orders'
    assert found.mean == 6
    assert found.sd == pytest.approx((split + 8 / 100) ** 0.5)
    assert found.error == pytest.approx((split + 8 / 100 + 18 / 2) ** 0.5)
