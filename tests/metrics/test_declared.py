"""Every row of the table of metrics, against another library or its definition in numpy."""

from functools import cache, partial
from itertools import combinations

import numpy as np
import pytest
from fairlearn import metrics as fl
from scipy import integrate, stats
from sklearn import metrics as sk
from sklearn.preprocessing import label_binarize

from fairbench import Evaluator, evaluate
from fairbench.metrics import registry
from fairbench.metrics.probability import FEWEST
from fairbench.metrics.registry import BINARY, MULTICLASS, REGRESSION
from fairbench.metrics.regression import ERROR_ROWS
from tests.harness import quick

GROUPS, CLASSES, ROWS = 3, 4, 600
LIMIT = 6  # frames that are read


class Data:
    """Columns of rows in groups, drawn so that rates and errors differ between groups."""

    def __init__(self, task, seed, groups=GROUPS):
        draw = np.random.default_rng([seed, groups])
        self.groups = groups
        self.group = draw.choice(groups, ROWS, p=draw.dirichlet(np.full(groups, 10.0)))
        self.uncertainty = draw.uniform(0.02, 0.6, ROWS).round(2)
        self.sd = self.sd_or_uncertainty = draw.uniform(0.1, 2, ROWS)
        self.frames = draw.integers(1, 12, (ROWS, 1))
        self.frames_read = np.array([LIMIT])
        if task == REGRESSION:
            self.target = draw.normal(size=ROWS)
            self.prediction = self.target / 2 + draw.normal(size=ROWS) + self.group / 3
        elif task == MULTICLASS:
            self.target = draw.choice(CLASSES, ROWS, p=[0.4, 0.3, 0.2, 0.1])
            wrong = draw.random(ROWS) < 0.1 + 0.2 * self.group / groups
            self.prediction = np.where(wrong, draw.integers(CLASSES, size=ROWS), self.target)
            self.scores = draw.dirichlet(np.ones(CLASSES), ROWS)
        else:
            self.target = (draw.random(ROWS) < 0.25 + 0.4 * draw.random(groups)[self.group]) * 1
            flip = draw.random(ROWS) < 0.1 + 0.3 * draw.random(groups)[self.group]
            self.prediction = np.where(flip, 1 - self.target, self.target)
            self.score = np.clip(0.3 * self.target + draw.random(ROWS) * 0.7, 0.01, 0.99)

    def split(self, column):
        """Return a column's values in each group."""
        return [getattr(self, column)[self.group == g] for g in range(self.groups)]

    def by_group(self, function):
        """Return a function of target and prediction in every group, by fairlearn."""
        rows = {"y_true": self.target, "y_pred": self.prediction}
        frame = fl.MetricFrame(metrics=function, sensitive_features=self.group, **rows)
        return frame.by_group.to_numpy().astype(float)


@cache
def evaluated(task, seed, groups):
    """Return the values of `Data` in an evaluation, by metric, attribute and group."""
    data = Data(task, seed, groups)
    named = {BINARY: "score", MULTICLASS: "scores", REGRESSION: "sd"}[task]
    table = evaluate(
        *(data.target, data.prediction),
        sensitive_features=data.group,
        task=task,
        uncertainty=data.uncertainty,
        evaluator=Evaluator(spread_residual="label", draws=100),
        **{named.removesuffix("s"): getattr(data, named)},
    )
    table = table[(table["statistic"] == "value") & table["outcome"].isna()]
    rows = table[~table["binning"].isin(["mass"])].itertuples()
    return {(row.metric, row.attribute, row.group): row.value for row in rows}


def ours(metric, seed, groups):
    """Return the metric of `Data` as evaluations compute it; of losses their mean."""
    data = Data(metric.task, seed, groups)
    columns = [name for name in metric.needs if name != "groups"]
    if metric.rates:
        labels = data.target, data.prediction, data.group
        counts = registry.binary_confusion(*labels, n_groups=groups)
        return metric(counts if "groups" in metric.needs else counts.sum(axis=0))
    if metric.interval in ("mean", "heavy_mean"):
        return np.mean(metric(data.target, *(getattr(data, name) for name in columns)))
    values = evaluated(metric.task, seed, groups)
    compared = "groups" in metric.needs and metric.name != "multicalibration_error"
    return values[metric.name, "group" if compared else "", ""]


def of_everyone(function):
    return lambda data: function(data.target, data.prediction)


def widest(*functions):
    return lambda data: max(np.ptp(data.by_group(function)) for function in functions)


def impact(data):
    rates = data.by_group(fl.selection_rate)
    return rates[1] / rates[0] if data.groups == 2 else rates.min() / rates.max()


def less_first(function):
    return lambda data: data.by_group(function)[1:] - data.by_group(function)[0]


def over_first(function):
    return lambda data: data.by_group(function)[1:] / data.by_group(function)[0]


def calibration_error(target, score, strategy="uniform", bins=15):
    """Return the definition's sum over bins, of equal width or of equal numbers of rows."""
    index = np.searchsorted(np.linspace(0, 1, bins + 1)[1:-1], score)
    if strategy == "quantile":
        index = (stats.rankdata(score, method="min") - 1).astype(int) * bins // len(score)
    return np.abs(np.bincount(index, target - score)).sum() / len(score)


def label_nll(data):
    """The log loss of the probability whose Bernoulli has the sd, on the decision's side."""
    root = np.sqrt(0.25 - np.minimum(data.uncertainty, 0.5) ** 2)
    score = np.clip(0.5 + np.where(data.prediction > 0.5, root, -root), 0.001, 0.999)
    return sk.log_loss(data.target, score)


def crps(data):
    """The integral of the squared distance of the distribution functions, by quadrature."""
    points = np.linspace(-30, 30, 120_001)
    rows = zip(data.target[:40], data.prediction[:40], data.sd[:40], strict=True)
    distances = ((stats.norm.cdf(points, m, s) - (points >= y)) ** 2 for y, m, s in rows)
    return np.mean([integrate.trapezoid(distance, points) for distance in distances])


def spread(data):
    """The definition by pandas-like blocks: rows of equal uncertainty count with their moments."""
    residual, u = data.target - data.prediction, data.uncertainty
    order = np.argsort(u, kind="stable")
    of_equal = [residual[u == value] for value in u[order]]
    first, second = (np.array([(rows**power).mean() for rows in of_equal]) for power in (1, 2))
    errors = []
    for part in np.array_split(np.arange(len(u)), 10):
        sd = np.sqrt(second[part].mean() - first[part].mean() ** 2)
        errors.append(len(part) * abs(sd - u[order][part].mean()))
    return sum(errors) / len(u)


def risk_coverage(data):
    """The mean risk over coverages, in which tied rows count with their mean."""
    wrong = (data.target != data.prediction) * 1.0
    order = np.argsort(data.uncertainty, kind="stable")
    mean = np.array([wrong[data.uncertainty == u].mean() for u in data.uncertainty[order]])
    return np.mean([mean[:kept].mean() for kept in range(1, len(mean) + 1)])


def farthest(column):
    return lambda data: max(
        stats.ks_2samp(a, b, method="asymp").statistic
        for a, b in combinations(data.split(column), 2)
    )


def farthest_mixtures(data):
    """The largest distance of the mixtures' distribution functions, on a fine grid."""
    points = np.linspace(-9, 9, 20_001)[:, None]
    means, sds = data.split("prediction"), data.split("sd")
    cdfs = [stats.norm.cdf(points, m, s).mean(axis=1) for m, s in zip(means, sds, strict=True)]
    return np.ptp(cdfs, axis=0).max()


def class_gaps(data, average):
    """Return the widest gap of each class, by scikit-learn on each class against the rest."""
    rows = zip(data.split("target"), data.split("prediction"), strict=True)
    if average == "recall":
        return np.ptp([sk.recall_score(*both, average=None) for both in rows], axis=0)
    return np.ptp([label_binarize(p, classes=range(CLASSES)).mean(axis=0) for _, p in rows], axis=0)


def combined(average, form):
    def expected(data):
        gaps = class_gaps(data, average)
        shares = np.bincount(data.target) / ROWS
        return {"class_mean": gaps.mean(), "largest": gaps.max(), "weighted": shares @ gaps}[form]

    return expected


def group_weighted(data):
    sums = [
        (np.bincount(y, minlength=CLASSES) @ np.bincount(p, minlength=CLASSES)) / len(y) ** 2
        for y, p in zip(data.split("target"), data.split("prediction"), strict=True)
    ]
    return np.ptp(sums)


PPV, NPV = sk.precision_score, partial(sk.precision_score, pos_label=0)
RATES = {
    "selection_rate": fl.selection_rate,
    "base_rate": lambda y, p: np.mean(y),
    "accuracy": sk.accuracy_score,
    "error_rate": sk.zero_one_loss,
    "true_positive_rate": sk.recall_score,
    "false_negative_rate": fl.false_negative_rate,
    "false_positive_rate": fl.false_positive_rate,
    "true_negative_rate": partial(sk.recall_score, pos_label=0),
    "positive_predictive_value": PPV,
    "negative_predictive_value": NPV,
    "f1_score": sk.f1_score,
    "balanced_accuracy": sk.balanced_accuracy_score,
}
COMPARED = {
    "statistical_parity": fl.selection_rate,
    "equal_opportunity": fl.true_positive_rate,
    "false_positive_rate": fl.false_positive_rate,
    "predictive_parity": PPV,
    "accuracy": sk.accuracy_score,
}
ORACLES = {
    **{(BINARY, name): of_everyone(function) for name, function in RATES.items()},
    **{(BINARY, f"{name}_difference"): less_first(rate) for name, rate in COMPARED.items()},
    **{(BINARY, f"{name}_ratio"): over_first(rate) for name, rate in COMPARED.items()},
    (BINARY, "statistical_parity"): widest(fl.selection_rate),
    (BINARY, "disparate_impact"): impact,
    (BINARY, "equal_opportunity"): widest(fl.true_positive_rate),
    (BINARY, "false_positive_rate_gap"): widest(fl.false_positive_rate),
    (BINARY, "equalized_odds"): widest(fl.true_positive_rate, fl.false_positive_rate),
    (BINARY, "predictive_parity"): widest(PPV),
    (BINARY, "accuracy_gap"): widest(sk.accuracy_score),
    (BINARY, "nll"): label_nll,
    (BINARY, "log_loss"): lambda d: sk.log_loss(d.target, d.score),
    (BINARY, "brier_score"): lambda d: sk.brier_score_loss(d.target, d.score),
    (BINARY, "expected_calibration_error"): lambda d: calibration_error(d.target, d.score),
    (BINARY, "multicalibration_error"): lambda d: max(
        calibration_error(y, p, "quantile")
        for y, p in zip(d.split("target"), d.split("score"), strict=True)
        if len(y) >= FEWEST
    ),
    (BINARY, "roc_auc"): lambda d: sk.roc_auc_score(d.target, d.score),
    (BINARY, "truncated_rows"): lambda d: np.mean(d.frames > LIMIT),
    (BINARY, "truncated_frames"): lambda d: np.mean(np.maximum(d.frames - LIMIT, 0) / d.frames),
    (BINARY, "padded_frames"): lambda d: np.mean(np.maximum(LIMIT - d.frames, 0)) / LIMIT,
    (BINARY, "spread_error"): spread,
    (BINARY, "area_under_risk_coverage"): risk_coverage,
    (MULTICLASS, "error_rate"): of_everyone(sk.zero_one_loss),
    (MULTICLASS, "log_loss"): lambda d: sk.log_loss(d.target, d.scores),
    (MULTICLASS, "brier_score"): lambda d: sk.brier_score_loss(d.target, d.scores) / 2,
    (MULTICLASS, "classwise_calibration_error"): lambda d: np.mean(
        [calibration_error((d.target == k) * 1, d.scores[:, k]) for k in range(CLASSES)]
    ),
    **{
        (MULTICLASS, f"{name}_{form}"): combined(average, form)
        for name, average in (("statistical_parity", "share"), ("equal_opportunity", "recall"))
        for form in ("class_mean", "weighted", "largest")
    },
    (MULTICLASS, "statistical_parity_group_weighted"): group_weighted,
    (MULTICLASS, "equal_opportunity_micro"): widest(
        lambda y, p: sk.recall_score(y, p, average="micro")
    ),
    (REGRESSION, "mae"): of_everyone(sk.mean_absolute_error),
    (REGRESSION, "mean_prediction"): lambda d: sum(d.prediction) / ROWS,
    (REGRESSION, "mean_residual"): lambda d: sum(d.target) / ROWS - sum(d.prediction) / ROWS,
    (REGRESSION, "rmse"): of_everyone(sk.root_mean_squared_error),
    (REGRESSION, "r2"): of_everyone(sk.r2_score),
    (REGRESSION, "nll"): lambda d: -stats.norm.logpdf(d.target, d.prediction, d.sd).mean(),
    (REGRESSION, "crps"): crps,
    (REGRESSION, "statistical_parity"): farthest("prediction"),
    (REGRESSION, "label_parity"): farthest("target"),
    (REGRESSION, "uncertainty_aware_statistical_parity"): farthest_mixtures,
    (REGRESSION, "spread_error"): spread,
}
# Of what is integrated on a grid, or computed to a tolerance.
NEAR = {"crps": 1e-4, "uncertainty_aware_statistical_parity": 1.1e-3}


# What other modules declare comes after them.
IN_TABLE = registry.declared()[: len(registry.table_rows())]
SEEDS = quick(range(4), [0], rest=pytest.mark.slow)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("groups", [2, 5])
@pytest.mark.parametrize("metric", IN_TABLE, ids=lambda metric: f"{metric.task}-{metric.name}")
def test_a_metric_of_the_table_is_that_of_another_library(metric, groups, seed):
    """Fails of a row without an oracle, too: every metric is held against something else."""
    data = Data(metric.task, seed, groups)
    expected = ORACLES[metric.task, metric.name](data)
    if metric.name == "crps":
        value = metric(data.target[:40], data.prediction[:40], data.sd[:40]).mean()
    else:
        value = ours(metric, seed, groups)
    tolerance = NEAR.get(metric.name, 0)
    np.testing.assert_allclose(value, expected, rtol=1e-10, atol=max(tolerance, 1e-14))
    assert np.isfinite(value).all()
    assert metric.is_gap == (metric.interval == "widest" and metric.name != "disparate_impact")


def test_every_oracle_is_of_a_metric():
    assert set(ORACLES) <= {(metric.task, metric.name) for metric in IN_TABLE}


def test_the_table_says_what_modules_say():
    """Numbers that a module needs, too, and that a row repeats."""
    assert {metric.fewest for metric in IN_TABLE} == {0, ERROR_ROWS}
    (multicalibration,) = (m for m in IN_TABLE if m.name == "multicalibration_error")
    assert f" {FEWEST} people" in multicalibration.sentence
