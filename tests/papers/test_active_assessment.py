"""Ji's thesis, chapters 2 and 3, against closed forms, on simulated predictions."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from fairbench.components.papers import PAPERS
from fairbench.components.papers.active_assessment import assessment, figures, tables
from fairbench.components.papers.black_box import estimation
from fairbench.components.papers.engine.mapping import Paper
from fairbench.components.papers.engine.matching import Effort
from fairbench.data.columns import MulticlassScores
from fairbench.inference import posterior
from fairbench.inference.posterior import Beta, centred
from fairbench.metrics.probability import reliability
from fairbench_label.active import BetaArms, Lowest, bayesian_ucb_quantile
from tests.harness import quick

CLASSES = tuple(" ".join(estimation.SUPERCLASSES).split())


def simulated(classes, rows, seed=0):
    """Return predictions that are right as often as their scores say, with all probabilities."""
    generator = np.random.default_rng(seed)
    n, names = len(classes), tuple(classes)
    prediction = np.arange(rows) % n
    score = generator.beta(6, 1.5 + prediction % 3, rows)
    target = np.where(generator.random(rows) < score, prediction, generator.integers(n, size=rows))
    rest = np.repeat(((1 - score) / (n - 1))[:, None], n, axis=1)
    rest[np.arange(rows), prediction] = score
    return MulticlassScores(target, prediction, score, names, rest)


@pytest.fixture
def released(monkeypatch):
    """Simulated predictions in place of the released ones."""
    files = {
        "cifar100": simulated(sorted(CLASSES), 2000),
        "svhn": simulated("0123456789", 600),
    }
    monkeypatch.setattr(estimation, "released_pool", files.__getitem__)
    return files


def test_ranks_are_counted_without_the_other_extreme_arms():
    seen = np.array([[0.1, 0.2, 0.3, 0.4], [0.3, 0.1, 0.2, 0.05], [0.2, 0.2, 0.9, 0.8]])
    rank = assessment.mean_reciprocal_rank(-seen, np.array([2.0, 0.0, 1.0, 0.0]), 2)
    # Against the arms 1 and 3 alone: ranks 1 and 2; 3 and 3; a tie with one, and after both.
    np.testing.assert_allclose(rank, [(1 + 1 / 2) / 2, 1 / 3, (1 / 1.5 + 1 / 3) / 2])


def test_the_published_update_counts_what_was_predicted(released):
    matrices = tables.Matrices(released["svhn"])
    scores, share = matrices.scores, matrices.share
    unit = matrices.squared_distance(matrices.true, matrices.published)
    method, options = assessment.Method("uniform", "random"), {"replications": 4000}
    error = tables.errors(matrices, "svhn", method, published=True, **options)[0]
    # A class with a label is known, whatever it was; of the others the estimate is uniform.
    unseen = stats.hypergeom.pmf(0, len(scores), np.bincount(scores.prediction), 20)
    away = ((np.full((10, 10), 0.1) - matrices.published) ** 2).sum(axis=1)
    assert error.mean() == pytest.approx((unseen * away) @ share / unit, rel=0.03)


def test_counting_true_labels_leads_to_the_true_matrix(released):
    matrices = tables.Matrices(released["svhn"])
    counts = np.zeros((10, 10))
    np.add.at(counts, (matrices.scores.prediction, matrices.scores.target), 1)
    np.testing.assert_allclose(matrices.true, counts / counts.sum(axis=1, keepdims=True), atol=1e-9)
    assert matrices.error(matrices.true[None])[0] == 0
    methods = (assessment.Method(prior, "random") for prior in ("scores", "uniform"))
    asked = matrices, "svhn"
    informed, uniform = (
        np.mean(tables.errors(*asked, method, published=False, replications=200), axis=1)
        for method in methods
    )
    assert (np.diff([informed, uniform]) < 0).all()
    # Right scores are worth most where labels are few.
    assert (uniform > informed).all() and (uniform - informed).argmax() == 0


def test_the_published_reward_takes_draws_for_counts():
    alpha = np.array([[2.0, 1, 0.5], [4, 1, 6]])
    theta = np.array([[0.2, 0.5, 0.3], [0.6, 0.1, 0.3]])
    share = np.array([0.3, 0.7])
    (reward,) = tables.published_fall(
        assessment.DirichletArms.of(alpha, [9, 9]), theta[None], share
    )
    for arm, own in enumerate(theta):
        after = [stats.dirichlet(own + unit).var().sum() for unit in np.eye(3)]
        fall = stats.dirichlet(alpha[arm]).var().sum() - own @ after
        assert reward[arm] == pytest.approx(share[arm] * fall)


def test_errors_of_the_classes_are_sums_over_bins(released):
    scores = released["svhn"]
    errors = tables.class_errors(tables.calibrated_pool("svhn"))
    for k in range(10):
        rows = scores.prediction == k
        curve = reliability(scores.correct[rows], scores.confidence[rows], bins=10)
        assert errors[k] == pytest.approx(curve.expected_calibration_error())
    assert len(tables.calibrated_pool("svhn", 0).arm) == 540


def test_given_all_labels_the_least_calibrated_class_is_named(released):
    pool = tables.calibrated_pool("svhn")
    arms = pool.arms("scores", 1.0, 1)
    seen = np.bincount(20 * pool.arm + pool.outcome, minlength=200).reshape(10, 20)
    arms.alpha[0] += 1e5 * seen  # so often that nothing is uncertain
    reward = tables.calibrated_question(1).reward(pool, arms)
    np.testing.assert_allclose(reward.moments(arms)[0][0], tables.class_errors(pool), atol=1e-3)


def test_classes_cost_what_their_rows_cost(released):
    scores = released["cifar100"]
    pool, mean = tables.cost_pool(scores, "human"), assessment.mean_scores(scores)
    # A person is wrongly predicted for 99 classes at a price of 1; a rose for 5 people at 10.
    places = [*map(scores.classes.index, ("girl", "rose"))]
    expected = [[0.01, 0.99, 0], [0.01, 0.94, 0.05]]
    np.testing.assert_allclose(pool.priors["uniform"][places], expected)
    both = tables.every_price(scores)
    for kind, of in tables.READINGS.items():
        paid = of(scores.classes, 7.0)[scores.target, scores.prediction]
        price = tables.prices(kind, 7.0)
        expected = [paid[scores.prediction == k].mean() for k in range(100)]
        np.testing.assert_allclose(tables.class_costs(both, price), expected)
        prior = tables.cost_pool(scores, kind, 7.0).priors["scores"] @ [0, 1, 7]
        np.testing.assert_allclose(both.priors["scores"] @ price, prior)
    expected = (mean * estimation.human_costs(scores.classes).T).sum(axis=1)
    reward = tables.cost_question("human", 1).reward(pool, None)
    np.testing.assert_allclose(reward.expected(None, pool.priors["scores"]), expected)


def test_a_goal_is_reached_where_the_mean_first_passes_it():
    def curve(batches):
        return assessment.Curves(np.array([0.0, 100, 200, 300]), {"mrr": np.array(batches)})

    batches = np.array([[0.2, 0.4], [0.995, 0.999], [0.5, 0.5], [1, 1]])
    assert curve(batches).reached("mrr")[0] == 100
    assert curve(batches).reached("mrr", skipped=2)[0] == 300
    assert curve(batches / 2).reached("mrr")[0] == 100  # 99 % of its highest mean
    # A batch alone, as a study of fewer runs, passes where its own mean does.
    one_by_one = curve([[0.2, 0.995], [0.995, 0.5], [1, 1], [1, 1]])
    assert one_by_one.reached_by_batch("mrr").tolist() == [100, 0]


def test_a_posterior_mean_beats_the_share_where_its_prior_is_near_enough():
    """A prior worth m labels, off by d, has the smaller mean squared error after n labels if and
    only if d^2 < theta (1 - theta) (2 / m + 1 / n)."""
    parts = np.array([-2, -1.01, -0.99, -0.5, 0.5, 0.99, 1.01, 2])
    for n, strength, theta in product((1, 3, 20), (0.5, 2.0, 10.0), (0.1, 0.5, 0.9)):
        right = np.arange(n + 1)
        chance = stats.binom.pmf(right, n, theta)
        centres = theta + parts * np.sqrt(theta * (1 - theta) * (2 / strength + 1 / n))
        possible = (centres > 0.001) & (centres < 0.999)
        posterior = centred(centres[possible, None], strength).after(right, n - right)
        errors = (posterior.mean - theta) ** 2 @ chance
        near = np.abs(parts[possible]) < 1
        np.testing.assert_array_equal(errors < chance @ (right / n - theta) ** 2, near)


def test_regions_of_two_groups_are_those_of_draws():
    accuracy = Beta(np.array([61.0, 53]), np.array([50.0, 27]))
    drawn = accuracy.draws(400_000, np.random.default_rng(0))
    gap = drawn[:, 0] - drawn[:, 1]
    margin = estimation.MARGIN
    shares = [(gap < -margin).mean(), (np.abs(gap) <= margin).mean(), (gap > margin).mean()]
    np.testing.assert_allclose(estimation.regions(accuracy), shares, atol=0.003)


def test_groups_are_those_of_the_predicted_class(released):
    scores = released["cifar100"]
    named = np.array(scores.classes)[scores.prediction]
    people = np.isin(named, ["baby", "boy", "girl", "man", "woman"])
    pair = estimation.group_pairs(scores)["people", "trees"]
    assert pair.successes[0] == 1 + scores.correct[people].sum()
    assert pair.strength[0] == 2 + people.sum()


def test_the_demonstration_shows_what_was_known_after_each_number_of_labels(tmp_path):
    ((_, figure),) = figures.figure_3_2(tmp_path, Effort.FIRST)
    legends = (axes.get_legend().get_texts() for axes in figure.axes)
    counted = [[int(text.get_text().split()[-2]) for text in legend] for legend in legends]
    assert [sum(labels) for labels in counted] == [0, 10, 100]
    assert counted[-1][0] > 3 * counted[-1][1]  # the better arm is labelled more often


def test_the_quantile_in_closed_form_chooses_as_that_of_draws():
    generator = np.random.default_rng(0)
    posterior = Beta(np.array([[9.0, 30, 2, 5]]), np.array([[3.0, 8, 1, 9]]))
    arms = BetaArms(posterior, np.array([[1, 1, 1, 0]]))
    choose = assessment.lowest_quantiles(arms, generator, plays=2)
    drawn = bayesian_ucb_quantile(arms, Lowest(), generator, draws=20_000, plays=2)
    assert choose(arms).tolist() == drawn.tolist() == [[2, 0]]
    arms.record(np.array([0]), np.array([2]), np.array([1]))  # which leaves it without a row
    assert choose(arms).tolist() == [[0, 1]]
    for _ in range(20):
        arms.record(np.array([0]), np.array([1]), np.array([0]))
    arms.unlabelled[0, 1] = 1
    assert choose(arms).tolist() == [[1, 0]]


def test_the_better_arm_is_chosen_more_and_more_often():
    share, error = figures.chosen_share(2000)
    assert share[0] == pytest.approx(0.5, abs=3 * error[0])
    assert share[10] > 0.7
    assert share[-10:].mean() > 0.95


def test_the_text_and_the_code_differ_in_the_uniform_prior(released):
    text, *others = assessment.TEXT
    pool = assessment.by_class("svhn")
    coded = assessment.as_coded(text)
    assert [assessment.as_coded(method) for method in others] == others
    assert pool.prior(text.prior, text.strength).successes.tolist() == [1] * 10
    assert pool.prior(coded.prior, coded.strength).strength.max() < 1e-5


def test_with_equal_costs_both_matrices_are_the_same():
    equal = estimation.human_costs(CLASSES, 1.0)
    np.testing.assert_array_equal(equal, estimation.superclass_costs(CLASSES, 1.0))
    np.testing.assert_array_equal(equal, 1 - np.eye(100))
    # The printed labels of that one question are more than a thousand apart.
    printed = Paper.read("active_assessment", PAPERS).published("3.8")
    chosen = printed.query("method == 'informative_prior_thompson'").set_index("setting")["value"]
    cost = "cost_type={}; relative_cost=1; top_m={}".format
    for m in (1, 10):
        assert float(chosen[cost("human", m)]) - float(chosen[cost("superclass", m)]) > 1000


def test_what_the_text_counts_in_its_own_tables():
    paper = Paper.read("active_assessment", PAPERS)

    def by_method(table):
        rows = paper.published(table).astype({"value": float})
        return rows.pivot(index=["dataset", "setting"], columns="method", values="value")

    def better_equal_and_worse(gain):
        return [(gain > 0).sum(), (gain == 0).sum(), (gain < 0).sum()]

    accuracy, ece, cost = map(by_method, ("3.2", "3.4", "3.8"))
    gain = accuracy["informative_prior"] - accuracy["informative_prior_thompson"]
    assert better_equal_and_worse(gain) == [10, 1, 4]
    worse = ece["informative_prior_thompson"] > ece["uniform_prior"]
    assert [name for name, _ in ece.index[worse]] == ["20 Newsgroups"] * 2
    assert (cost.idxmin(axis=1) == "informative_prior_thompson").all()
    assert better_equal_and_worse(cost["uniform_prior"] - cost["informative_prior"]) == [3, 6, 7]


CHAPTERS = [*(f"3.{table}" for table in range(2, 9)), "of chapter 2"]


@pytest.mark.parametrize("table", quick(CHAPTERS, CHAPTERS[-1:]))
def test_every_table_is_computed_from_few_of_its_rows(released, table, tmp_path):
    of = estimation if table == "of chapter 2" else tables
    if of is estimation:
        rows = Paper.read("black_box", PAPERS).rows.query("dataset in ['CIFAR-100', 'SVHN']")
    else:
        rows = Paper.read("active_assessment", PAPERS).published(table)
        rows = rows[rows["dataset"].str.startswith(("CIFAR", "SVHN"))].iloc[[0, -1]]
    found = pd.DataFrame(of.numbers(rows, tmp_path, Effort.FIRST)).set_index("row")["mean"]
    assert set(found.index) == set(rows.index)
    assert np.isfinite(found).all()
    if of is estimation:
        accuracy = rows.index[rows["metric"] == "accuracy"][0]
        assert found[accuracy] == released["cifar100"].correct.mean()


def test_accuracies_scores_and_errors_of_two_groups_by_hand():
    """Of four rows of a group three are right, and the one of another is wrong."""
    arm, right, score = [0, 0, 0, 0, 1], [1, 1, 1, 0, 0], [0.9, 0.8, 0.6, 0.7, 0.5]
    pool = assessment.ArmPool("pool", *map(np.array, (arm, right, score)))
    # (2.2): the share among the region's S rows; (2.3): their mean score.
    assert pool.accuracy == pytest.approx([3 / 4, 0 / 1])
    assert pool.confidence == pytest.approx([(0.9 + 0.8 + 0.6 + 0.7) / 4, 0.5])
    arms = BetaArms(Beta(np.array([[1.0, 1]]), np.array([[1.0, 3]])), np.array([[9, 9]]))
    # 3.5.2: (sum over g of p_g (estimate - truth)^2)^(1/2), in points; estimates are 1/2 and 1/4.
    expected = 100 * (4 / 5 * (1 / 2 - 3 / 4) ** 2 + 1 / 5 * (1 / 4 - 0) ** 2) ** 0.5
    assert assessment.accuracy_error(pool, arms)[0] == pytest.approx(expected)
    # 3.5.2: 100 |estimated ECE - ECE| / ECE, with posterior means of the bins' accuracies.
    truth = 4 / 5 * abs(3 / 4 - 0.75) + 1 / 5 * abs(0 - 0.5)
    estimate = 4 / 5 * abs(1 / 2 - 0.75) + 1 / 5 * abs(1 / 4 - 0.5)
    expected = 100 * abs(estimate - truth) / truth
    assert assessment.ece_error(pool, arms)[0] == pytest.approx(expected)


def test_priors_of_classes_and_the_labels_that_are_added_to_them():
    """(2.14), (2.15), with alpha_jk = N_0 / K of 2.4.1: here N_0 = 1 and K = 2; (2.17)."""
    scores = MulticlassScores(
        np.array([0, 1, 1]), np.array([0, 0, 1]), np.array([0.9, 0.7, 0.6]), ("a", "b"),
        np.array([[0.9, 0.1], [0.7, 0.3], [0.4, 0.6]]),
    )  # fmt: skip
    expected = [[(0.9 + 0.7) / 2, (0.1 + 0.3) / 2], [0.4, 0.6]]
    assert assessment.mean_scores(scores) == pytest.approx(np.array(expected))
    prior = posterior.uninformative_prior(2, strength=1.0)
    counted = posterior.confusion_posterior(scores, prior)
    assert counted == pytest.approx(np.array([[0.5 + 1, 0.5 + 1], [0.5, 0.5 + 1]]))


def test_superclasses_are_twenty_of_five_and_mistakes_across_them_are_dear():
    assert len(set(CLASSES)) == 100
    costs = estimation.superclass_costs(CLASSES)
    assert ((costs == 1).sum(axis=0) == 4).all()
    assert ((costs == 10).sum(axis=0) == 95).all()
    shark, ray, rose = map(CLASSES.index, ("shark", "ray", "rose"))
    assert (costs[shark, ray], costs[shark, rose], costs[shark, shark]) == (1, 10, 0)
    # Taking a person for a thing is dear, but not the other way round.
    costs = estimation.human_costs(CLASSES)
    girl, boy = map(CLASSES.index, ("girl", "boy"))
    assert (costs[girl, rose], costs[rose, girl], costs[girl, boy]) == (10, 1, 1)
    assert np.trace(costs) == 0


def test_with_all_labels_the_frequentist_estimate_is_exact():
    generator = np.random.default_rng(0)
    score = generator.beta(4, 1.5, 2000)
    prediction = generator.integers(3, size=2000)
    wrong = generator.random(2000) > 0.8 * score
    pool = MulticlassScores((prediction + wrong) % 3, prediction, score, ("a", "b", "c"))
    (_, few, bias), (_, every, _) = estimation.ece_errors(pool, "simulated", (50, 2000), 20)
    assert every[2] < 1e-12
    assert every[:2].max() < 0.03 * estimation.full_ece(pool)
    # The absolute value of noise is positive: the plain error of few labels is too large.
    assert bias[2] > 0.02
    assert few[0] < few[2]
