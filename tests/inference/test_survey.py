"""Weighted and clustered estimates: against samplics and statsmodels, closed forms, simulation."""

import re

import numpy as np
import pytest
from scipy import special
from sklearn.metrics import roc_auc_score

from benchmarks.coverage.surveys import ratios, t_limits
from fairbench.core.errors import UserError
from fairbench.inference import survey
from fairbench.inference.gaps import GroupLimits, largest_gap
from fairbench.inference.means import Moments, around, sampled_outcome_limits
from fairbench.inference.rates import difference_limits, rate_limits
from fairbench.inference.scores import Areas
from fairbench.metrics.probability import log_loss_rows
from fairbench.metrics.registry import accuracy, f1_score, selection_rate, true_positive_rate

# Sixty rows by formula, of 13 clusters and 3 groups.
I = np.arange(60)  # noqa: E741
WEIGHT, CLUSTER, GROUP = 1 + (7 * I % 11) / 3, 5 * I % 12 + (I > 30), I % 3
LABEL, SIZE, VALUE = ((I * I % 7) < 3) * 1.0, 1 + (I * 3 % 5) / 2, np.sin(I) + I / 30
GROUPS = np.stack([g == GROUP for g in range(3)]) * 1.0
# samplics 0.6.0, TaylorEstimator (PopParam.mean and .ratio, psu=CLUSTER and none, domain=GROUP).
SAMPLICS = {
    "label": (0.7338877338877338, 0.04962203404052098, 0.06100373276843377),
    "value": (1.039026182536817, 0.19008429810928118, 0.12796250846003482),
    "ratio": (0.3624229979466119, 0.023881319160601454, 0.03514062675613109),
    "group 0": (0.7425149700598802, 0.08104120814823898, 0.10092549867122433),
    "group 1": (0.7450980392156862, 0.09093753169203443, 0.10680447806301412),
    "group 2": (0.7142857142857142, 0.08811975106382273, 0.10915086177519394),
}
# statsmodels 0.15.0: WLS on the groups' indicators, cov_type="cluster", times C / (C - 1).
DIFFERENCE = (0.0025830691558056396, 0.12837476419302477, 0.1469460881287697)
# Bertrand and Mullainathan (2004): advertisements by how many résumés of either race answered
# them, and how many of these were called back: (ads, white, called, black, called).
RESUMES = (
    *((921, 2, 0, 2, 0), (182, 1, 0, 1, 0), (62, 2, 1, 2, 0), (33, 2, 1, 2, 1), (29, 2, 0, 2, 1)),
    *((19, 2, 2, 2, 0), (18, 2, 2, 2, 1), (17, 2, 2, 2, 2), (13, 1, 1, 1, 1), (12, 1, 1, 1, 0)),
    *((7, 2, 1, 2, 2), (6, 2, 0, 2, 2), (4, 1, 0, 1, 1)),
)


def errors(totals):
    """Return standard errors (K,) from the sums of scores by cluster (K, C)."""
    count = totals.shape[-1]
    return np.sqrt((totals**2).sum(axis=-1) * count / (count - 1))


def test_equal_to_samplics_and_statsmodels():
    """Means, of groups that share clusters, too: what they share enters their difference."""
    for place, clusters, units in ((1, CLUSTER, 13), (2, None, 60)):
        design = survey.Design.of(60, weight=WEIGHT, clusters=clusters)
        assert design.units == units
        for names, codes, values in (
            (["label"], 0 * I, LABEL),
            (["value"], 0 * I, VALUE),
            (["group 0", "group 1", "group 2"], GROUP, LABEL),
        ):
            sample = survey.Sampled.of(design, codes, len(names))
            mean, totals = sample.linearised(values)
            error = np.sqrt(np.bincount(sample.group, totals**2) * units / (units - 1))
            for at, result in ((0, mean), (place, error)):
                expected = [SAMPLICS[name][at] for name in names]
                np.testing.assert_allclose(result, expected, rtol=0, atol=1e-12)
        shared = sample.correlation(totals)[1, 0]
        difference = np.sqrt(error[0] ** 2 + error[1] ** 2 - 2 * shared * error[0] * error[1])
        both = mean[1] - mean[0], difference
        np.testing.assert_allclose(both, [DIFFERENCE[0], DIFFERENCE[place]], rtol=0, atol=1e-12)
    design = survey.Design.of(60, weight=WEIGHT, clusters=CLUSTER)
    ends = t_limits(*ratios(np.stack([LABEL, LABEL]), np.stack([SIZE, 0 * I + 1]), design))
    np.testing.assert_allclose(
        [end[1] for end in ends[1:]], [0.6257706094860627, 0.8420048582894049]
    )
    assert ends.value[0] == pytest.approx(SAMPLICS["ratio"][0], abs=1e-12)


def test_resumes_of_one_advertisement():
    """Two résumés of either race answer one advertisement: what they share cancels."""
    each = np.repeat([sizes for _, *sizes in RESUMES], [ads for ads, *_ in RESUMES], axis=0)
    people = [(ad, race, place < called) for ad, both in enumerate(each.reshape(-1, 2, 2))
              for race, (size, called) in enumerate(both) for place in range(size)]  # fmt: skip
    ads, black, called = np.array(people, int).T
    groups = np.stack([black == 0, black == 1]) * 1.0
    value, shared = ratios(called * groups, groups, survey.Design.of(4870, clusters=ads))
    _, naive = ratios(called * groups, groups, survey.Design.of(4870))
    np.testing.assert_allclose(value, (0.0965, 0.0645), atol=5e-5)
    for error, known in (
        (errors(shared[0] - shared[1]), 0.0062), (errors(naive[0] - naive[1]), 0.0078),
        (np.hypot(*errors(shared)), 0.0092),
    ):  # fmt: skip
        np.testing.assert_allclose(error, known, atol=5e-5)
    counts = survey.SurveyCounts.of(called, black, survey.Design.of(4870, clusters=ads), groups=2)
    limits, correlation = counts.limits(selection_rate), counts.correlation(selection_rate)
    gap = difference_limits(limits.take(0), limits.take(1), correlation[0, 1])
    assert np.isclose(gap.upper - gap.lower, 2 * 1.96 * 0.0062, rtol=0.02)
    assert gap.lower > 0.019
    folded = largest_gap(GroupLimits(limits, limits, correlation))
    assert np.allclose((folded.lower, folded.upper), (gap.lower, gap.upper))


def cells(seed, rows, groups):
    generator = np.random.default_rng(seed)
    return generator.integers(0, 4, rows), generator.integers(0, groups, rows)


def test_equal_weights_change_nothing():
    """Of rows of equal weight without clusters, the intervals are those of the counts."""
    cell, group = cells(0, 200, 3)
    counts = np.stack([np.bincount(cell[group == g], minlength=4) for g in range(3)])
    for weight in (None, np.full(200, 3.7)):
        counted = survey.SurveyCounts.of(
            cell, group, survey.Design.of(200, weight=weight), groups=3
        )
        for rate in (accuracy, true_positive_rate, selection_rate, f1_score):
            plain = rate_limits(rate.successes(counts), rate.size(counts))
            assert np.allclose(counted.limits(rate), plain, atol=1e-12), rate.name
        assert np.allclose(counted.counts(), counts)
        assert not counted.correlation(accuracy).any()


def test_rows_of_no_weight_are_no_rows():
    """A weight of 0 leaves a row out, and a group of such rows is empty."""
    cell, group = cells(3, 90, 3)
    weight = np.where((np.arange(90) < 50) & (group != 2), 1.0, 0.0)
    kept = weight > 0
    counted = survey.SurveyCounts.of(cell, group, survey.Design.of(90, weight=weight), groups=3)
    alone = survey.SurveyCounts.of(
        cell[kept], group[kept], survey.Design.of(int(kept.sum())), groups=3
    )
    limits = counted.limits(accuracy)
    assert np.allclose(limits, alone.limits(accuracy), equal_nan=True)
    assert np.isnan(limits.value[2])
    assert np.array_equal(counted.rows, alone.rows)


def test_size_where_nothing_happened_rests_on_the_clusters():
    """No event in 50 clusters of 20 is no event in 50 of what might move together."""
    none = survey.effective_size(0.0, 0.0, rows=1000, kish=1000, share=1 / 50, units=50)
    assert 45 < none < 50
    assert rate_limits(0, none).lower == 0


def test_weighted_area_is_that_of_repeated_rows():
    """Whole weights are repetitions; the error of equal weights is DeLong's."""
    y, s, one, weight = LABEL, np.round(VALUE, 1), np.zeros(60, np.intp), 1 + I % 3
    whole = Areas.of(y, s, one, 1, design=survey.Design.of(60, weight=weight)).area
    assert np.isclose(whole, roc_auc_score(y, s, sample_weight=weight), atol=1e-12)
    plain, alone = Areas.of(y, s, one, 1), Areas.of(y, s, one, 1, design=survey.Design.of(60))
    for name in ("area", "variance", "positives", "negatives"):
        np.testing.assert_allclose(getattr(alone, name), getattr(plain, name), rtol=1e-13)
    assert np.isnan(Areas.of(np.ones(60), s, one, 1, design=survey.Design.of(60)).area)


@pytest.mark.parametrize("clusters", [None, CLUSTER])
def test_rows_taken_in_another_order_keep_their_own_weights_and_groups(clusters):
    """Weighted shares and means by group do not hang on the order in which rows are taken."""
    order = np.random.default_rng(3).permutation(60)[:45]
    design = survey.Design.of(60, weight=WEIGHT, clusters=clusters).take(order)
    label, group = LABEL[order].astype(np.intp), GROUP[order]
    counted = survey.SurveyCounts.of(3 * label, group, design, groups=3)
    sample, limits = survey.Sampled.of(design, group, 3), counted.limits(selection_rate)
    _, totals = sample.linearised(LABEL[order])
    for g in range(3):
        rows = group == g
        expected = np.average(label[rows], weights=WEIGHT[order][rows])
        assert np.isclose(counted.weighted[g].sum(), design.weight[rows].sum())
        assert np.isclose(limits.value[g], expected)
        assert np.isclose(sample.means(LABEL[order])[g], expected)
        marks = order[rows] if clusters is None else CLUSTER[order][rows]
        away = design.weight[rows] * (label[rows] - expected) / design.weight[rows].sum()
        by_hand = [away[marks == cluster].sum() for cluster in np.unique(marks)]
        assert np.allclose(np.sort(totals[sample.group == g]), np.sort(by_hand))


def test_pseudo_values_of_equal_rows_are_the_rows():
    """So that intervals of their means are those of rows that all count alike."""
    sample = survey.Sampled.of(survey.Design.of(60), GROUP, 3)
    mean = sample.means(VALUE)
    totals = sample.totals(sample.share * (VALUE - mean[GROUP]))
    assert np.allclose(sample.pseudo_values(mean, totals), VALUE)
    plain, sampled = Moments.of_groups(VALUE, GROUP, 3), Moments.of_sampled(mean, totals, sample)
    for field in ("size", "mean", "sd", "skewness", "lowest", "highest"):
        assert np.allclose(getattr(plain, field), getattr(sampled, field), atol=1e-12), field


@pytest.mark.parametrize(
    ("weight", "clusters", "what"),
    [
        ([1, -1, 1], None, "sample_weight is -1 in row 1; it must be 0 or more"),
        ([1, 1, np.nan], None, "sample_weight is nan in row 2; it must be 0 or more"),
        ([0, 0, 0], None, "sample_weight is 0 in every row: nobody is left to speak of"),
        ([1, 2], None, "sample_weight has shape (2,); it must be one number a row"),
        (["a", "b", "c"], None, "sample_weight is not numeric: could not convert string"),
        (None, [1, 1], "clusters has shape (2,); it must be one mark a row"),
        (None, [1, np.nan, 2], "clusters is missing in row 1"),
    ],
)
def test_refused(weight, clusters, what):
    """Weights and clusters that mean nothing are refused in one line."""
    with pytest.raises(UserError, match=rf"^{re.escape(what)}.*\Z"):
        survey.Design.of(3, weight=weight, clusters=clusters)


def scored(draw, rows, spread):
    """Return losses, labels, scores and weights (R, n); the weights grow with the loss."""
    score = special.expit(special.logit(0.3) + 1.2 * draw.standard_normal(rows))
    label = (draw.random(rows) < score) * 1.0
    losses = log_loss_rows(label, score)
    return losses, label, score, np.exp(spread * draw.standard_normal(rows) + 0.4 * (losses - 0.5))


@pytest.mark.slow
@pytest.mark.parametrize("rows", [200, 500])
@pytest.mark.parametrize("spread", [0.5, 0.8, 1.2])
def test_coverage_of_weighted_losses_and_areas(rows, spread):
    """Weights that vary with the loss: mean log losses and areas of groups, and differences."""
    draw, count = np.random.default_rng([rows, int(10 * spread)]), 1500
    losses, label, score, weight = map(np.ravel, scored(draw, (2000, 2000), spread))
    truth = np.average(losses, weights=weight), roc_auc_score(label, score, sample_weight=weight)
    result = [[], []]
    for _ in range(2):
        losses, label, score, weight = map(np.ravel, scored(draw, (count, rows), spread))
        codes, design = np.arange(count).repeat(rows), survey.Design.of(count * rows, weight=weight)
        sample = survey.Sampled.of(design, codes, count)
        others = log_loss_rows(1 - label, score)
        limits, _ = sampled_outcome_limits(losses, others, label, sample, design)
        result[0].append(around(sample.means(losses), limits(0.95), 0.0))
        result[1].append(Areas.of(label, score, codes, count, design=design).limits())
    for true, (first, second) in zip(truth, result, strict=True):
        for limits, value in ((first, true), (difference_limits(first, second), 0.0)):
            printed = ~np.isnan(limits.lower)
            assert printed.mean() > 0.85
            held = ((limits.lower <= value) & (value <= limits.upper))[printed].mean()
            assert held > 0.93 - 2 * np.sqrt(0.93 * 0.07 / count)


# Effective counts: the variance of Definition 2.2, and the relations between the rhos.

FOLDS = 10


@pytest.mark.parametrize("rho", [0.0, 0.1, 0.5])
def test_mean_of_correlated_folds_has_the_variance_of_the_effective_counts(rho):
    """Row i of every fold copies a common draw with probability sqrt(rho): correlation rho."""
    draw, size, p, replications = np.random.default_rng(0), 30, 0.3, 4000
    common, hits = draw.random((replications, size)) < p, 0
    for _ in range(FOLDS):
        copies = draw.random((replications, size)) < np.sqrt(rho)
        fresh = draw.random((replications, size)) < p
        hits += np.where(copies, common, fresh).sum(axis=1)
    effective = survey.effective_counts(np.full((FOLDS, 1), size), survey.shrinkage(rho, FOLDS))
    expected = p * (1 - p) / effective[0]
    tolerance = 5 * np.sqrt(2 / replications)
    np.testing.assert_allclose((hits / (FOLDS * size)).var(), expected, rtol=tolerance)


def test_shrinkages_are_the_published_ones():
    assert survey.shrinkage(1 / FOLDS, FOLDS) == pytest.approx(0.526, abs=5e-4)
    assert survey.mean_shrinkage(FOLDS) == pytest.approx(np.log(1.9) / 0.9)
    assert survey.shrinkage(0, FOLDS) == 1


def test_relative_rho_makes_the_variance_ratio():
    ratios = np.array([0.6, 1.0, 1.8])
    rho = survey.relative_rho(ratios, FOLDS)
    inflation = survey.shrinkage(1 / FOLDS, FOLDS) / survey.shrinkage(rho, FOLDS)
    np.testing.assert_allclose(inflation, ratios)
    assert survey.relative_rho(1.0, FOLDS) == pytest.approx(1 / FOLDS)


def test_rhos_that_no_variance_allows_are_clipped():
    clipped = survey._clip_correlation(np.array([-3, 0.2, np.inf]), FOLDS)
    np.testing.assert_allclose(clipped, [-0.1, 0.2, 1])
    assert (survey.shrinkage(np.array([-10.0, -1 / 9, 50]), FOLDS) > 0).all()
    assert survey.relative_rho(0.0, FOLDS) == -1 / FOLDS
    # rho in [0, 1]
    assert survey.mean_relative_shrinkage(1e9, FOLDS) == pytest.approx(np.log(10) / 9)


def test_mean_relative_shrinkage_averages_up_to_rho_rel():
    assert survey.mean_relative_shrinkage(1.0, FOLDS) == pytest.approx(survey.mean_shrinkage(FOLDS))
    ratios = np.array([0.4, 0.8, 1.25])
    for ratio, shrunk in zip(ratios, survey.mean_relative_shrinkage(ratios, FOLDS), strict=True):
        grid = np.linspace(0, survey.relative_rho(ratio, FOLDS), 2001)
        average = np.trapezoid(survey.shrinkage(grid, FOLDS), grid) / grid[-1]
        assert shrunk == pytest.approx(average, rel=1e-6)
    assert survey.mean_relative_shrinkage(1 / 1.9, FOLDS) == pytest.approx(1)  # rho_rel is 0


def test_each_group_has_its_variance_ratio_and_the_mean_of_all_leaves_out_the_undefined():
    halves = np.array([[[0.1, 0.4, 0.0], [0.3, 0.2, 0.0]]])
    reference = np.array([[[0.1, 0.2, 0.5], [0.2, 0.1, 0.5]]])
    np.testing.assert_allclose(survey.overestimated_variance(halves), [0.02, 0.02, 0])
    np.testing.assert_allclose(survey.variance_ratio(halves, reference), [4, 4, np.nan])
    assert survey.variance_ratio(halves, reference, pooled=True) == pytest.approx(4)


def test_half_splits_are_disjoint_halves():
    for first, second in survey.half_splits(101, 5, np.random.default_rng(0)):
        assert len(first) == len(second) == 50
        assert not set(first) & set(second)
