"""What FairlyUncertain's printed numbers say of themselves, how its causes are judged, rankings."""

from math import log

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.integrate import quad
from scipy.stats import wasserstein_distance

from fairbench.cli.command import Results, read
from fairbench.components.algorithms.learners.xgboost import XGBoost
from fairbench.components.algorithms.losses import Binomial
from fairbench.components.papers import PAPERS
from fairbench.components.papers.engine.mapping import Paper
from fairbench.components.papers.engine.matching import Effort
from fairbench.components.papers.fairlyuncertain import claims, figures, tables
from fairbench.components.papers.fairlyuncertain.claims import paired, without
from fairbench.core.errors import UserError
from fairbench.data.dataset import Task
from fairbench.evaluation.predictions import Labelled
from fairbench.experiments import pipeline
from fairbench.metrics.probability import nll_of_sd


def test_best_rows_are_counted_by_metric():
    metrics = ["statistical_parity", "equalized_odds", "equal_opportunity", "disparate_impact"]
    metrics += ["predictive_parity", "false_positive_rate_gap"]
    rows = [(name, *each) for name in metrics for each in {"baseline": 0.5, "random": 0.4}.items()]
    rows = pd.DataFrame(rows, columns=["metric", "method", "value"])
    assert without(rows, "value") == 1  # a ratio of 0.5 is nearer to 1 than one of 0.4


def test_of_other_splits_a_printed_mean_of_ten_scatters_as_ours():
    values = pd.Series([0.0, 2.0] * 20)
    found = tables.our_number(0, values, tables.SPLITS)
    assert found["mean"] == 1
    assert found["error"] == pytest.approx(values.std() * (1 / 10 + 1 / 40) ** 0.5)
    assert np.isnan(tables.our_number(0, values, "")["error"])


def test_the_first_way_of_abstaining_is_the_texts():
    first, *others = tables.ways("ensemble", "german")
    assert (first.cause, first.objectives, first.words[1]) == ("", (), "method.reading=majority")
    causes = {way.cause for way in others}
    assert causes and causes <= set(Paper.read("fairlyuncertain", PAPERS).causes)


def test_a_paired_difference_has_nadeau_and_bengios_interval():
    first, second = np.random.default_rng(0).normal(size=(2, 10))
    difference = first - second
    scale = np.sqrt((1 / 10 + 0.2 / 0.8) * difference.var(ddof=1))
    ends = stats.t.interval(0.95, 9, difference.mean(), scale)
    np.testing.assert_allclose([*paired(first, second, 0.2)], [difference.mean(), *ends])


# FairlyUncertain's figures, of people and of two densities, and its commands without runs.


def measured(experiment, results, words=(), methods=()):
    """Return the metrics of the cells that a figure was drawn of, by method."""
    ((_, runs),) = figures.planned(experiment, results, Effort.FIRST, words, methods)
    return {run.choices["method"]: pipeline.evaluate_runs([run])[0][0] for run in runs}


def panels(drawn):
    ((_, figure),) = drawn
    return {axes.get_title().partition(":")[0].replace(" ", "_"): axes for axes in figure.axes}


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("figure", "experiment"),
    [(figures.figure_12, "figure2"), (figures.figure_12_regression, "figure10")],
)
def test_ranges_are_those_that_the_run_measures(tmp_path, figure, experiment):
    drawn = panels(figure(tmp_path, Effort.FIRST))
    metrics = measured(f"fairlyuncertain/{experiment}", tmp_path, ["consistency.values=[2,3]"])
    assert list(drawn) == list(metrics)
    for method, table in metrics.items():
        (lines,) = drawn[method].collections
        lengths = [end - start for (_, start), (_, end) in lines.get_segments()]
        assert len(lengths) == 24  # the fifth of 120 rows that is tested
        (expected,) = table.loc[table["metric"] == "consistency_mean_range", "value"]
        assert np.mean(lengths) == pytest.approx(expected, rel=1e-6)
        assert expected > 0


def test_of_many_people_equally_spaced_ranks_are_drawn():
    values = np.random.default_rng(0).random((5, 1000))
    values[2, 7] = np.nan
    (axes,) = figures.draw_ranges({"a_method": values}, "title").axes
    segments = axes.collections[0].get_segments()
    assert len(segments) == figures.PEOPLE
    others = np.delete(values, 7, axis=1)
    assert axes.get_title() == f"a method: {np.ptp(others, axis=0).mean():.3g}"
    first, last = sorted(others.T, key=np.std)[::998]
    for segment, own in ((segments[0], first), (segments[-1], last)):
        np.testing.assert_allclose(segment, [[own.std(), own.min()], [own.std(), own.max()]])


def test_the_two_densities_are_drawn_with_their_sds(tmp_path):
    ((_, figure),) = figures.figure_1(tmp_path, Effort.FIRST)
    sds = [float(each.get_title().rpartition(" ")[2]) for each in figure.axes]
    np.testing.assert_allclose(sds, [1.08, 1.21], atol=0.1)


@pytest.mark.thorough
def test_distances_of_features_are_those_that_the_run_measures(tmp_path):
    ((_, figure),) = figures.figure_17(tmp_path, Effort.FIRST)
    distances, *of_features = figure.axes
    names = [label.get_text() for label in distances.get_yticklabels()]
    assert [axes.get_title() for axes in of_features] == names
    metrics = measured("fairlyuncertain/figure5", tmp_path)
    for line, (method, table) in zip(distances.lines, metrics.items(), strict=True):
        shifts = table[(table["metric"] == "feature_shift") & (table["rate"] == figures.RATE)]
        expected = shifts.set_index("feature")["value"].loc[names]
        np.testing.assert_allclose(line.get_xdata(), expected, err_msg=method)


def test_distributions_are_those_of_the_rows_kept():
    draw = np.random.default_rng(1)
    number, kind = draw.normal(size=60), pd.Series(draw.choice(["x", "y"], 60))
    features, half = pd.DataFrame({"number": number, "kind": pd.Categorical(kind)}), number > 0
    figure = figures.draw_distributions(features, {"half": half.astype(float)}, "title")
    drawn = {axes.get_title(): axes for axes in figure.axes[1:]}
    one, other = drawn["number"].lines
    area = np.abs(one.get_ydata() - other.get_ydata())[:-1] @ np.diff(one.get_xdata())
    assert area == pytest.approx(wasserstein_distance(number, number[half]))
    heights = [bar.get_height() for bar in drawn["kind"].patches]
    most = kind.value_counts(normalize=True)
    kept = kind[half].value_counts(normalize=True)[most.index]
    np.testing.assert_allclose(heights, [*most, *kept])


@pytest.mark.thorough
def test_distances_of_distributions_are_the_parities(tmp_path):
    drawn = panels(figures.figure_6(tmp_path, Effort.FIRST))
    methods = ("baseline", "normal_nll_reference")
    metrics = measured("fairlyuncertain/table4", tmp_path, methods=methods)
    assert list(drawn) == ["labels", *methods]
    of = ("label_parity", "statistical_parity", "uncertainty_aware_statistical_parity")
    for axes, method, metric in zip(drawn.values(), (methods[0], *methods), of, strict=True):
        table = metrics[method].query(f"metric == '{metric}' and group == ''")
        ((_, low), (_, high)) = axes.collections[0].get_segments()[0]
        assert high - low == pytest.approx(table["value"].iloc[0], abs=2e-3), metric
        assert axes.get_title().endswith(f": {high - low:.3f}")


def test_rankings_say_which_runs_to_make(tmp_path):
    command = "make them with fairbench run -m experiment=fairlyuncertain/interventions$"
    with pytest.raises(UserError, match=command):
        claims.rankings(Results(tmp_path))


def integral(name, function, low=-figures.END, high=figures.END):
    kinks = [point for point in (-0.69, 0.69) if low < point < high]
    value, _ = quad(
        lambda x: function(x) * figures.DENSITIES[name](np.array(x)), low, high, points=kinks
    )
    return value


@pytest.mark.parametrize(("name", "sd"), [("A", 1.08), ("B", 1.21)])
def test_the_densities_have_the_printed_numbers(name, sd):
    mass = integral(name, lambda x: 1)
    assert integral(name, lambda x: x) / mass == pytest.approx(0, abs=1e-9)
    assert np.sqrt(integral(name, lambda x: x * x) / mass) == pytest.approx(sd, abs=0.005)
    assert integral(name, lambda x: 1, -2.0, 2.0) / mass == pytest.approx(0.9, abs=0.002)


@pytest.mark.parametrize("name", ["A", "B"])
def test_draws_are_of_the_density(name):
    mass, values = integral(name, lambda x: 1), figures.sample(name, 2000)
    below = [integral(name, lambda x: 1, high=v) / mass for v in np.sort(values)[::20]]
    assert stats.kstest(below, "uniform").pvalue > 0.01
    np.testing.assert_array_equal(values, figures.sample(name, 2000))


def test_a_summary_by_hand():
    result = figures.summary(np.array([-2.0, -0.1, 0.1, 2.0]))
    assert (result.mean, result.near) == (0, 0.5)
    assert result.sd == pytest.approx(np.sqrt(8.02 / 3))
    assert (result.lower, -result.upper) == pytest.approx((-2 + 0.15 * 1.9,) * 2)


def test_the_command_prints_both(capsys):
    figures.same_interval(read(figures.SameIntervalOptions, ["draws=50000"]))
    printed = capsys.readouterr().out
    assert "0, [-2.0, 2.0], 1.08" in printed
    a, b = (line.split() for line in printed.splitlines() if line.strip()[:2] in ("A ", "B "))
    assert a[4].startswith("1.0") and b[4].startswith("1.2")


def test_the_probability_of_an_sd_lies_on_its_predictions_side():
    """Appendix D: of 0.4, (1 -+ sqrt(1 - 4 * 0.16)) / 2 = (1 -+ 0.6) / 2."""
    found = tables.probability_of_sd([0, 1], [0.4, 0.4])
    np.testing.assert_allclose(found, [(1 - 0.6) / 2, (1 + 0.6) / 2])


def test_the_likelihood_of_an_sd_clips_nothing():
    """Appendix D.1: an sd of 0.4, wrong: -log 0.2. One of 0, wrong: without end; clipped 6.9."""
    assert tables.unclipped_nll([0], [1], [0.4]).item() == pytest.approx(-log(0.2))
    assert tables.unclipped_nll([0], [1], [0.0]).item() > 30
    assert nll_of_sd([0], [1], [0.0]).item() == pytest.approx(-log(0.001))


def test_the_calibration_error_is_of_right_labels():
    """Appendix D.1: bins of 0.2 (half right) and 0.9 (all right), two people each.

    (2 / 4) |0.5 - 0.2| + (2 / 4) |1 - 0.9|. No such error is above 1; Table 7 prints up to 1.79.
    """
    found = tables.error_of_labels([0, 1, 1, 1], [0, 0, 1, 1], [0.2, 0.2, 0.9, 0.9])
    assert found == pytest.approx(0.5 * abs(0.5 - 0.2) + 0.5 * abs(1 - 0.9))
    assert tables.error_of_labels([1, 1], [0, 0], [1.0, 1.0]) == 1


def tree(gamma):
    """Return the two leaves of a single tree: a start of 3/4, and one split between 0 and 1."""
    learner = XGBoost(rounds=1, max_depth=1, learning_rate=1.0, min_child_weight=0.0, gamma=gamma)
    X, y = np.array([[0.0], [0.0], [1.0], [1.0]]), np.array([0.0, 1.0, 1.0, 1.0])
    model = learner.estimator(Binomial(), 0).fit(X, y)
    p = model.predict_proba(np.array([[0.0], [1.0]]))[:, 1]
    return np.log(p / (1 - p)) - log(0.75 / 0.25)


def test_equation_1_a_leaf_is_minus_its_gradients_over_its_curvatures():
    """Equation 1 and the binomial derivatives p - y and p (1 - p), with p = 3/4 and lambda = 1.

    Left: -(0.75 - 0.25) / (2 * 0.1875 + 1); right: 2 * 0.25 / (2 * 0.1875 + 1).
    """
    raw = np.full((2, 1), log(3))
    np.testing.assert_allclose(Binomial().gradient(np.array([0.0, 1.0]), raw)[:, 0], [0.75, -0.25])
    np.testing.assert_allclose(Binomial().curvature(np.array([0.0, 1.0]), raw)[:, 0], [0.1875] * 2)
    np.testing.assert_allclose(tree(0.0), [-0.5 / 1.375, 0.5 / 1.375], rtol=1e-4)


def test_equation_2_xgboost_compares_gamma_with_twice_the_gain():
    """Equation 2: the gain is (0.5^2 / 1.375 + 0.5^2 / 1.375 - 0) / 2 = 0.18.

    The text's equation refuses this split from a gamma of 0.18 on, XGBoost from 0.36 on.
    """
    gain = 0.5 * (0.25 / 1.375 + 0.25 / 1.375 - 0)
    assert tree(1.9 * gain).any()
    assert not tree(2.1 * gain).round(6).any()


def test_the_share_left_out_has_the_least_normalised_sum():
    """Section 5: leaving out the one wrong person, an eighth, ends error and gaps: 0 of 3.

    Nobody left out: 1 + 1 + 1. From 13 % on the most uncertain of eight is left out.
    """
    groups = {"sex": pd.Series(pd.Categorical(["a", "b"] * 4))}
    said = {"prediction": [0, 0, 0, 1, 1, 1, 1, 1], "uncertainty": [0.1] * 3 + [0.5] + [0.1] * 4}
    wrong = Labelled(np.repeat([0.0, 1], 4), pd.DataFrame(said), groups, Task.BINARY)
    every = ("error_rate", "statistical_parity", "equalized_odds")
    found = tables.chosen_metrics(wrong, wrong, every, tables.together)
    assert found["error_rate"] == found["equalized_odds"] == 0
    assert found[tables.INCLUDED] == pytest.approx(100 * 7 / 8)


def test_people_of_one_uncertainty_are_kept_together():
    """Section 5, Figure 5's flat lines: of (0.1, 0.3, 0.3, 0.3) up to three quarters keep all."""
    assert (tables.together(np.array([0.1, 0.3, 0.3, 0.3]), tables.RATES).sum(axis=1) == 4).all()
