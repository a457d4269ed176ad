"""Studies of cross-validations, and what their pictures show."""

import numpy as np
import pytest
from scipy import stats
from sklearn.linear_model import LogisticRegression

from fairbench.components.papers import PAPERS
from fairbench.components.papers.engine.mapping import Paper
from fairbench.components.papers.engine.matching import Effort
from fairbench.components.papers.engine.running import function_of
from fairbench.components.papers.uncertainty_matters import figures, grid, simulated, studies
from fairbench.components.papers.uncertainty_matters.ground_truth import ALGORITHMS
from fairbench.components.papers.uncertainty_matters.readings import ALONE, RHOS, Measured
from fairbench.components.papers.uncertainty_matters.tables import Pair
from fairbench.metrics.registry import selection_rate, true_positive_rate

pytestmark = pytest.mark.thorough  # studies of works, which take minutes together

NAMES = ("Linear SVM + Hardt", "FERM")


def moved_by(found, rows):
    """Return cross-validations (B, G, 4) that find so many more good loans of the first group."""
    tables = np.tile(rows, (len(found), 1, 1))
    tables[:, 0, 0] += found
    tables[:, 0, 1] -= found
    return tables


def pair_of(found, scale=1):
    """Return a pair, of which the first alone finds so many more."""
    second = np.array([[600, 100, 50, 60], [120, 20, 10, 40]]) * scale
    first = moved_by(np.array(found) * scale, second)
    # The other group alike, so that the gap in the rates of good loans stays as it is.
    first[:, 1] = moved_by(np.array(found) * scale // 5, second[1:])[:, 0]
    return Pair(ALONE, NAMES, (first, np.tile(second, (len(found), 1, 1))))


def test_a_share_of_the_estimates_turns():
    result = studies.Conclusions(["A >> B"] * 3 + ["A ~ B"], ["A >> B"] * 4, "A >> B")
    assert result.turned(result.estimates) == pytest.approx(0.25)
    assert result.turned(result.posteriors) == 0


def test_with_many_rows_posteriors_conclude_what_estimates_do():
    result = studies.conclusions_of(pair_of([60, 60, -60, 0], scale=200), cvs=9, draws=300)
    conclusions = ["A >> B", "A >> B", "B >> A", "A ~ B"]
    assert [*result.estimates] == [*result.posteriors] == conclusions
    assert result.mean == "A >> B"
    assert len(studies.conclusions_of(pair_of([60, 60, -60]), cvs=2, draws=100).estimates) == 2


# True negatives (good loans given), false positives, false negatives, true positives, by group.
EVEN = [[50000, 10000, 10000, 30000], [5000, 1000, 1000, 3000]]
# As accurate and less fair, and more accurate and less fair, than EVEN.
UNFAIR = [[50000, 10000, 10000, 30000], [4500, 1500, 500, 3500]]
ACCURATE = [[60000, 0, 5000, 35000], [5500, 500, 500, 3500]]


def pairs_of(tables, draws):
    """Return what is said of pairs of tables of counts, all folds of which are independent."""
    counts = {name: np.array([table] * 2) for name, table in tables.items()}
    ratios = dict.fromkeys(counts, np.ones((2, 2, 1)))
    return studies.pair_rows(Measured(counts, ratios, posteriors=2, draws=draws))


def test_the_fairer_of_two_as_accurate_is_better():
    tables = {"LR": EVEN, "SVM": UNFAIR, "FERM": ACCURATE}
    rows = pairs_of(tables, 2000).query("rho == 'rho=1/K'")
    better = studies.matrix(rows, list(tables), studies.A_BETTER)
    accurate = studies.matrix(rows, list(tables), studies.A_ACCURATE)
    assert [better[0, 1], better[1, 0], accurate[2, 0]] == pytest.approx([1, 0, 1], abs=0.01)
    assert np.isnan(np.diag(better)).all()


def test_all_13_print_in_a_hundred_columns(capsys):
    studies.print_pairs(pairs_of(dict.fromkeys(ALGORITHMS, np.array(EVEN) // 100), 200))
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 100
    assert not any("…" in line for line in lines)
    headings = [line.split()[-1] for line in lines if "row is" in line]
    ranks = [line.split()[2] for line in lines if line.split()[:2] == ["9", "FERM"]]
    assert (headings, ranks) == (["13"] * len(RHOS), ["1"] * len(RHOS))


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """A coarser grid and fewer draws than the public code has."""
    for name, value in {"CODE_DRAWS": 3000, "KERNELS": 2000, "GRID": 60}.items():
        monkeypatch.setattr(studies, name, value)


def test_a_fixed_bandwidth_makes_a_circle_of_a_narrow_cloud():
    """Density of sds (0.01, 0.05) under a kernel of 0.15: an ellipse of axes 0.150 and 0.158."""
    draws = np.random.default_rng(0).normal(0, [0.01, 0.05], size=(6000, 2))
    points = np.array([[0.0, 0.0], [0.09, 0.0], [0.0, 0.2]])
    area, inside = studies.fixed_bandwidth_region(draws, points)
    smooth = np.hypot([0.01, 0.05], studies.BANDWIDTH)
    scaled = np.quantile(((draws / smooth) ** 2).sum(axis=1), 0.95)
    assert area == pytest.approx(np.pi * scaled * smooth.prod(), rel=0.08)
    assert inside == pytest.approx(2 / 3)  # 0.09 is nine sds of the first objective away
    fitted, held = studies.fitted_region(draws, points)
    assert fitted == pytest.approx(np.pi * stats.chi2.ppf(0.95, 2) * 0.01 * 0.05, rel=0.1)
    assert held == pytest.approx(1 / 3)


def test_fractions_of_rows_are_cut_off():
    counts = np.array([[10.4, 0.3, 2.2, 4.9], [1.3, 1.3, 1.3, 1.3]])
    tables = studies.truncated_draws(counts, 500, np.random.default_rng(1))
    np.testing.assert_array_equal(tables.sum(axis=-1), np.tile([17, 5], (500, 1)))


def test_each_step_widens_the_draws(counts, monkeypatch):
    monkeypatch.setattr(studies, "KERNELS", 500)
    areas = {name: area for name, area, _, _ in studies.steps(counts[[0] * 5], "1/K")}
    assert len(areas) == 6
    ratio = areas["predictive, fitted bandwidth"] / areas["posterior, fitted bandwidth"]
    assert ratio == pytest.approx(2, rel=0.1)
    assert areas["posterior, bandwidth 0.15"] > 1.5 * areas["posterior, fitted bandwidth"]


def test_mean_ratio_of_many_halvings_has_the_mean_of_its_f_distribution():
    """Four independent F(J, J) ratios: their mean is J / (J - 2), their variance a fourth."""
    ratios = studies.equal_ratios(20, 0.0, np.random.default_rng(0))
    law = stats.f(20, 20)
    assert law.mean() == pytest.approx(20 / 18)
    assert abs(ratios.mean() - law.mean()) < 5 * law.std() / np.sqrt(4 * studies.SAMPLES)


def test_correlated_estimates_have_less_noise_and_the_same_ones_none():
    spread = [studies.equal_ratios(5, c, np.random.default_rng(1)).std() for c in (0.0, 0.8, 1.0)]
    assert spread[0] > 1.5 * spread[1]
    assert spread[2] < 1e-12


def test_batched_fits_are_scikit_learns():
    data = simulated.Sample.draw(300, np.random.default_rng(0))
    used = np.random.default_rng(1).random((3, 300)) < 0.6
    model = LogisticRegression(fit_intercept=False, tol=1e-10, max_iter=500)
    for mine, rows in zip(simulated.fit(data.X, data.target, used), used, strict=True):
        expected = model.fit(data.X[rows], data.target[rows]).coef_[0]
        np.testing.assert_allclose(mine, expected, atol=1e-5)


def test_every_row_is_predicted_by_a_model_that_did_not_see_it():
    data = simulated.Sample.draw(200, np.random.default_rng(2))
    part = np.arange(0, 200, 2)
    ((predicted, fold),) = simulated.cross_validated(
        data, [part], slice(None), np.random.default_rng(3)
    )
    assert np.bincount(fold).tolist() == [10] * simulated.FOLDS
    for k in (0, simulated.FOLDS - 1):
        used = np.zeros((1, 200), bool)
        used[0, part[fold != k]] = True
        beta = simulated.fit(data.X, data.target, used)[0]
        np.testing.assert_array_equal(predicted[fold == k], data.X[part[fold == k]] @ beta > 0)


def test_bayle_interval_covers_a_mean_of_independent_values():
    draw, covered = np.random.default_rng(4), 0
    fold = np.arange(200) % simulated.FOLDS
    for _ in range(500):
        low, high = simulated.bayle_interval(draw.normal(1, 2, size=200), fold)
        covered += low <= 1 <= high
    assert abs(covered / 500 - 0.95) < 5 * np.sqrt(0.95 * 0.05 / 500)


def test_replications_count_every_row_and_are_reproducible():
    (joint, ratio, bayle), again = (simulated.replicate(100, 3) for _ in range(2))
    assert joint.sum() == 100
    assert ratio > 0
    np.testing.assert_array_equal(joint, again[0])
    assert bayle == again[2]


def test_intervals_hold_the_truth_until_rows_are_copied():
    as_it_is, copied = (simulated.coverage(factor, 600) for factor in (1, 4))
    # Five standard errors of a share of 600 are 0.045 at 95 %.
    assert as_it_is[0] > 0.90
    assert copied[0] < 0.80
    assert copied[1] < 0.7 * as_it_is[1]


def test_copies_keep_the_share_in_the_mean():
    result, draw = np.full(4000, 15), np.random.default_rng(0)
    copied = simulated.upsampled(result, 20, 5, draw)
    assert abs(copied.mean() / 100 - 0.75) < 0.005
    assert copied.min() >= 15 and copied.max() <= 15 + 80
    np.testing.assert_array_equal(simulated.upsampled(result, 20, 1, draw), result)


def test_the_figure_shows_both():
    left, right = simulated.figure({1: (0.95, 0.3), 4: (0.7, 0.2)}).axes
    assert [text.get_text() for text in left.get_legend().get_texts()][-1] == "true gap"
    assert right.get_ylim()[1] == 100


PAPER = Paper.read("uncertainty_matters", PAPERS)
NEEDS_ADULT = ("14.1", "15.2")


@pytest.fixture(scope="module")
def counts():
    return moved_by(5 * np.arange(7), [[400, 60, 80, 60], [80, 20, 20, 30]])


def areas(axes):
    """Return the area within each region's outline, in the order drawn: shoelace formula."""
    found = []
    for curve in (each for each in axes.collections if not each.get_fill()):
        x, y = max((path.vertices for path in curve.get_paths()), key=len).T
        found.append(abs(np.sum(x * np.roll(y, 1) - y * np.roll(x, 1))) / 2)
    return found


def test_a_point_a_cross_validation(counts):
    rates = {"equal opportunity": true_positive_rate, "demographic parity": selection_rate}
    figure = figures.instability_figure({"SVM": counts, "FERM": counts}, rates)
    opportunity, parity = (axes.lines for axes in figure.axes)
    assert [len(line.get_xdata()) for line in opportunity] == [7, 7]
    assert opportunity[0].get_xdata()[0] == pytest.approx((400 + 60 + 80 + 30) / 750)
    assert opportunity[0].get_ydata()[0] == pytest.approx(abs(400 / 460 - 80 / 100))
    assert parity[0].get_ydata()[0] == pytest.approx(abs(480 / 600 - 100 / 150))


def test_the_quoted_difference_is_that_of_the_text(counts):
    pair = Pair(ALONE, NAMES, (counts, counts[::-1]))
    figure = figures.quoted_figure(dict.fromkeys(figures.QUOTED, pair))
    marked = [line for axes in figure.axes for line in axes.lines if line.get_marker() == "D"]
    found = [[line.get_xdata()[0], line.get_ydata()[0]] for line in marked]
    np.testing.assert_allclose(found, [[0.10, 0.04], [-0.08, -0.10]])


def test_a_ratio_of_one_algorithm_stands_at_its_variance():
    reference = np.random.default_rng(0).normal(0.7, 0.01, size=(12, 2, 2, 2))
    (axes,) = figures.ratio_figure(0.7 + 2 * (reference - 0.7), reference).axes
    drawn = [line.get_ydata() for line in axes.lines if len(line.get_xdata()) == 12]
    np.testing.assert_allclose(drawn, np.full((4, 12), 4))  # twice the spread


def test_the_smaller_group_has_the_wider_region():
    names = ("age > 25", "age <= 25")
    tables = {name: grid.counts(name)[0] * 0.7 for name in ALGORITHMS}
    figure = figures.groups_figure(tables, names, 2000)
    for axes in figure.axes[: len(tables)]:
        larger, smaller = areas(axes)
        assert smaller > larger, axes.get_title()
    legend = figure.axes[0].get_legend().get_texts()
    assert tuple(text.get_text() for text in legend) == names


@pytest.mark.parametrize("figure", [name for name in PAPER.figures if name not in NEEDS_ADULT])
def test_every_declared_figure_is_drawn_from_what_is_packed(figure, tmp_path):
    drawn = list(function_of(PAPER.figures[figure]["function"])(tmp_path, Effort.FIRST))
    assert drawn and len({end for end, _ in drawn}) == len(drawn)
    assert all(picture.axes for _, picture in drawn)
