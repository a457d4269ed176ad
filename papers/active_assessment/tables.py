"""Our numbers for Tables 3.2 to 3.8 of Ji's thesis, on CIFAR-100 and SVHN, and for worst groups.

First come three questions that need more than rates of arms: the confusion matrix, the least
calibrated and the most costly class (Tables 3.3, 3.6 and 3.8), each as the text defines it and as
its code computes it. The first answer to each printed number is what the text defines; the
released code's, or that of fewer runs, is given under the name of its cause in ``mapping.yaml``.
The study `worst_group` asks the same of finished runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from fairbench.cli.command import Results
from fairbench.comparison.runs import load_predictions
from fairbench.components.papers import run_main
from fairbench.components.papers.active_assessment import assessment
from fairbench.components.papers.active_assessment.assessment import CODE, TEXT, Method
from fairbench.components.papers.black_box import estimation
from fairbench.components.papers.engine.matching import Effort, Numbers, number
from fairbench.core.arrays import Codes, Floats, Mask, rng
from fairbench.core.errors import UserError
from fairbench.data.columns import MulticlassScores
from fairbench.inference.posterior import confusion_posterior, uniform, uninformative_prior
from fairbench.metrics.probability import bins_of_width
from fairbench.reporting.charts import COLOURS
from fairbench.results.catalogue import Catalogue
from fairbench_label import active

# The confusion matrix from few labels: Table 3.3, as the text defines it and as its code counts.
#
# The text's error is the RMSE of the posterior mean over that of the scores' matrix, without
# labels. The code's update counts the predicted class in the place of the true one, and the matrix
# that its estimates are compared with was made in the same way, so that both tend to the identity.
# The printed error is the squared distance of the two over that of the true confusion matrix from
# the identity.

PER_CLASS = (2, 5, 10)
CONFUSION_STRENGTH = 1.0
_NO_PRIOR = 1e-6
_ORDERS = 100
_RUNS = {"cifar100": 1000, "svhn": 10_000}
# The code's error without a prior hangs on the one run in two hundred that misses a class of SVHN.
_MORE = 4
_RESAMPLED = 10_000


@dataclass(frozen=True, eq=False)
class Matrices:
    """What a data set's confusion matrix is, and what it is under the code's update.

    Rows are predicted classes; each holds the probabilities of the true classes.
    """

    scores: MulticlassScores

    @cached_property
    def share(self) -> Floats:
        """Return the share of the rows in each predicted class, (C,)."""
        return np.bincount(self.scores.prediction, minlength=self.classes) / len(self.scores)

    @property
    def classes(self) -> int:
        """Return the number of classes."""
        return len(self.scores.classes)

    @cached_property
    def true(self) -> Floats:
        """Return the matrix of all labels."""
        nothing = np.full((self.classes, self.classes), 1e-12)
        return _mean(confusion_posterior(self.scores, nothing))

    @cached_property
    def published(self) -> Floats:
        """Return the code's matrix of all labels: nearly the identity."""
        counts = np.diag(self.share * len(self.scores))
        return _mean(counts + uninformative_prior(self.classes, strength=CONFUSION_STRENGTH))

    def squared_distance(self, first: Floats, second: Floats) -> Floats:
        """Return the squared distance of matrices, classes weighted by their rows, (...)."""
        return np.asarray(((first - second) ** 2).sum(axis=-1) @ self.share)

    def published_error(self, estimate: Floats) -> Floats:
        """Return the code's error of (R, C, C) estimates, in the unit that is printed."""
        unit = self.squared_distance(self.true, self.published)
        return np.asarray(self.squared_distance(estimate, self.published) / unit)

    def error(self, estimate: Floats) -> Floats:
        """Return the text's error of (R, C, C) estimates: in RMSEs of the scores' matrix."""
        by_scores = assessment.mean_scores(self.scores)
        unit = self.squared_distance(by_scores, self.true)
        return np.asarray(np.sqrt(self.squared_distance(estimate, self.true) / unit))

    def pool(self, name: str, *, published: bool) -> assessment.OutcomePool:
        """Return the rows by predicted class; a label shows the true class, or that class again."""
        shown = self.scores.prediction if published else self.scores.target
        return assessment.OutcomePool(name, self.scores.prediction, shown, _shares(self.scores))


def _mean(alpha: Floats) -> Floats:
    """Return the mean of Dirichlet distributions, (..., C)."""
    return np.asarray(alpha / alpha.sum(axis=-1, keepdims=True))


def _shares(scores: MulticlassScores) -> dict[str, Floats]:
    """Return what each prior takes for the shares of the true classes, (predicted, true)."""
    classes = len(scores.classes)
    uniform = np.full((classes, classes), 1 / classes)
    return {"uniform": uniform, "scores": assessment.mean_scores(scores)}


def published_fall(arms: assessment.DirichletArms, theta: Floats, share: Floats) -> Floats:
    """Return the code's reward, (R, A), which takes the drawn probabilities for pseudo-counts.

    The variance after a label is that of a Dirichlet distribution with the parameters theta and one
    more, in the place of the posterior's and one more; its expectation is (1 - sum theta^2) / 4.
    """
    strength = arms.alpha.sum(axis=-1)
    now = (1 - (arms.alpha**2).sum(axis=-1) / strength**2) / (strength + 1)
    return np.asarray(share * (now - (1 - (theta**2).sum(axis=-1)) / 4))


def errors(
    matrices: Matrices, name: str, method: Method, *, published: bool, replications: int
) -> list[Floats]:
    """Return the errors, (R,) each, after 2, 5 and 10 labels a class.

    Parameters
    ----------
    method : prior and strategy.
    published : whether as the code has it; then "uniform" is no prior at all.
    """
    prior, strategy = method.prior, method.strategy
    pool = matrices.pool(name, published=published)
    generator = rng(0, "active", name, "confusion", prior, strategy, published)
    strength = _NO_PRIOR if published and prior == "uniform" else CONFUSION_STRENGTH
    reward: Any = assessment.OutcomeEstimation(matrices.share)  # Thompson's asks no moments
    error = matrices.published_error if published else matrices.error

    def choose(held: assessment.DirichletArms) -> Codes:
        if published and strategy == "thompson":
            fall = published_fall(held, held.draw(generator), matrices.share)
            return np.where(held.unlabelled > 0, fall, -np.inf).argmax(axis=1)[:, None]
        return active.choose(strategy, held, reward, generator)

    seen = assessment.assess(
        pool.queues(replications),
        pool.arms(prior, strength, replications),
        choose,
        observe=lambda held: error(_mean(held.alpha)),
        rounds=max(PER_CLASS) * matrices.classes,
        every=matrices.classes,
    )
    return [seen[each] for each in PER_CLASS]


def _confusion(asked: _Request) -> Numbers:
    """Yield the errors of true labels, as the text has them, and those of the released code."""
    replications = asked.effort.choose(_RUNS[asked.dataset], 50, 2)
    matrices = Matrices(estimation.released_pool(asked.dataset))
    for (method, printed), published in product(TEXT.items(), (False, True)):
        runs = replications * (_MORE if published and method.prior == "uniform" else 1)
        found = errors(matrices, asked.dataset, method, published=published, replications=runs)
        for each, error in zip(PER_CLASS, found, strict=True):
            coded = {"cause": CODE, "error": _error_of_orders(error)} if published else {}
            of = {"method": printed, "setting": f"labels_per_group={each}"}
            yield number(error.mean(), error.std(ddof=1), runs, **of, **coded)


def _error_of_orders(error: Floats) -> float:
    """Return half the distance from the mean of all runs to the 97.5 % quantile of printed means.

    The code's thousand runs are ten processes of one seed: a hundred orders of the classes. As few
    of them miss a class, means of a hundred are skewed.
    """
    generator = rng(0, "active", "orders")
    means = [error[generator.integers(len(error), size=_ORDERS)].mean() for _ in range(_RESAMPLED)]
    return float(np.quantile(means, 0.975) - error.mean()) / 2


# Which predicted class is calibrated worst: Table 3.6, the ECE of a class summed over its bins.
#
# Two readings. As the text has it: the sum over ten bins of the share of the class's rows times
# |accuracy - confidence|, over the whole pool, its posterior mean E|theta - s|. As the published
# code has it: a tenth of the rows is held out; prior means in the middle of the bins; a bin's share
# is that of the labels so far; the estimate is the distance of the posterior mean; rows at random
# are of a class at random; numbers are read a hundred labels late.

CALIBRATED_EVERY = 100
HELD_OUT = 0.1
SPLITS = {"cifar100": 1, "svhn": 2}  # draws of the tenth that the code holds out
_BLANK = 1e-4  # what the code counts of a bin before any label, as right and as wrong
_SKIPPED = 5
PUBLISHED = {
    Method("midpoints", "random_arm"): "informative_prior",
    Method("midpoints", "thompson"): "informative_prior_thompson",
}
DEFINED = {
    Method("scores", "random"): "informative_prior",
    Method("scores", "thompson"): "informative_prior_thompson",
}


def calibrated_pool(dataset: str, split: int | None = None) -> assessment.BinnedPool:
    """Return rows by predicted class: all, or the nine tenths of one of the code's splits."""
    scores, name = estimation.released_pool(dataset), f"{dataset} by class in bins"
    rows = np.arange(len(scores))
    if split is not None:
        name = f"{dataset} less a tenth" + f" {split}" * (split > 0)
        kept = rng(0, "active held out", name).permutation(len(scores))
        rows = np.sort(kept[int(HELD_OUT * len(scores)) :])
    score, correct = scores.confidence[rows], scores.correct[rows]
    outcome = 2 * bins_of_width(score, assessment.BINS) + correct.astype(np.int64)
    return assessment.BinnedPool(name, scores.prediction[rows], outcome, score)


def calibrated_question(m: int, *, published: bool = False) -> assessment.Question:
    """Return the question of the m least calibrated classes, as defined or as the code asks it."""

    def weight(pool: assessment.BinnedPool, arms: assessment.BinnedArms) -> Floats:
        """Return the share of the rows, or of the labels so far, in each bin of each class."""
        seen = arms.posterior.strength - assessment.STRENGTH + 2 * _BLANK
        return seen / seen.sum(axis=-1, keepdims=True) if published else pool.bins.weight

    def reward(pool: assessment.BinnedPool, arms: assessment.BinnedArms) -> active.LeastCalibrated:
        return active.LeastCalibrated(pool.bins.score, weight(pool, arms))

    def rank(pool: assessment.BinnedPool, arms: assessment.BinnedArms) -> Floats:
        if not published:
            return assessment.mean_reciprocal_rank(
                reward(pool, arms).moments(arms)[0], class_errors(pool), m
            )
        truth = class_errors(pool, assessment.STRENGTH, midpoints=True)
        seen = weight(pool, arms) * np.abs(arms.posterior.mean - pool.bins.score)
        return assessment.mean_reciprocal_rank(seen.sum(axis=-1), truth, m)

    name = "published calibration" if published else "least calibrated"
    return assessment.Question(
        f"{name} {m}", reward, {"mrr": rank}, plays=m, every=CALIBRATED_EVERY
    )


def class_errors(
    pool: assessment.BinnedPool, strength: float = 1e-12, *, midpoints: bool = False
) -> Floats:
    """Return every class's ECE of all labels, (A,), under a prior: by default next to none."""
    whole = pool.diagram(strength, midpoints=midpoints, labelled=True)
    return (whole.weight * np.abs(whole.accuracy.mean - whole.score)).sum(axis=-1)


def _least_calibrated(asked: _Request) -> Numbers:
    """Yield the percent of the labels from which on the m classes are identified.

    The code holds out one tenth of the rows, drawn once: its numbers are means over such draws.
    """
    runs, percent = (
        asked.effort.choose(100, 2, 2),
        100 / len(estimation.released_pool(asked.dataset)),
    )
    for setting, m in (("top_1", 1), ("top_m", estimation.TOP[asked.dataset])):
        for method, printed in DEFINED.items():
            pool, question = calibrated_pool(asked.dataset), calibrated_question(m)
            labels, error = asked.curves(pool, question, method, runs).reached("mrr")
            of = {"method": printed, "setting": setting}
            yield number(percent * labels, percent * error * np.sqrt(runs), runs, **of)
        for method, printed in PUBLISHED.items():
            several = SPLITS[asked.dataset] if method.strategy != "thompson" else 1
            splits, found = asked.effort.choose(several, 1, 1), []
            for split in range(splits):
                pool = calibrated_pool(asked.dataset, split)
                curve = asked.curves(pool, calibrated_question(m, published=True), method, runs)
                labels, error = curve.reached("mrr", skipped=_SKIPPED)
                found.append(percent * min(labels + CALIBRATED_EVERY, len(pool.arm)))
            spread = float(np.std(found, ddof=1)) if splits > 1 else percent * error
            error = spread * np.sqrt(1 + 1 / splits)  # the printed number is of one split
            of = {"method": printed, "setting": setting, "cause": CODE}
            yield number(float(np.mean(found)), spread, splits, error=error, **of)


# Which predicted classes of CIFAR-100 cost most, under two cost matrices: Table 3.8, Figure 3.6.
#
# A row costs 0, 1 or what an expensive mistake costs by its true class, and true classes of one
# cost merge, as a Dirichlet distribution lets them. CIFAR-100's file has the probability of the
# predicted class alone: the scores' prior shares the rest equally among the other classes.
#
# Without choosing, the text labels random rows; the released code labels a row of a random class,
# or one of each of m random classes.

COST_RUNS = 100
COST_DATASET = "cifar100"
COSTS = {"human": estimation.human_costs, "superclass": estimation.superclass_costs}
# The other reading of "misclassifying a person": another person is a mistake as dear as a thing.
READINGS = {**COSTS, "person": estimation.person_costs}
ANY_PERSON = "any mistake about a person"  # a cause
NEEDED = (
    "the scores' prior needs the probabilities of all hundred classes; ours shares them equally"
)
COST_TOP = (1, 10)
DEARS = (1.0, 2.0, 5.0, 10.0)  # what an expensive mistake costs
COST_STRENGTH = 1.0
COST_EVERY = 50
PRIORS = {"uniform": "uniform_prior", "scores": "informative_prior"}
THOMPSON = Method("scores", "thompson", COST_STRENGTH)
COST_METHODS = (*(Method(prior, "random", COST_STRENGTH) for prior in PRIORS), THOMPSON)


def cost_pool(
    scores: MulticlassScores, kind: str, dear: float = estimation.DEAR
) -> assessment.OutcomePool:
    """Return the rows by predicted class; a label shows which of the prices it costs."""
    costs = READINGS[kind](scores.classes, dear)
    prices, place = np.unique(costs, return_inverse=True)
    return _pool(scores, f"{kind} costs {dear:g}", place.reshape(costs.shape), len(prices))


def every_price(scores: MulticlassScores) -> assessment.OutcomePool:
    """Return the rows by predicted class; a label shows what it costs under every matrix.

    The codes are those of `prices`: each is a set of matrices under which a mistake is dear.
    """
    dear = [costs(scores.classes, 2.0) == 2 for costs in READINGS.values()]
    place = 1 + sum(2**i * matrix.astype(np.int64) for i, matrix in enumerate(dear))
    np.fill_diagonal(place, 0)
    return _pool(scores, "every cost", place, 1 + 2 ** len(dear))


def prices(kind: str, dear: float) -> Floats:
    """Return the price of each code of `every_price`, (9,)."""
    sets = np.arange(2 ** len(READINGS))
    is_dear = sets >> list(READINGS).index(kind) & 1
    return np.concatenate([[0.0], np.where(is_dear, dear, 1.0)])


def _pool(scores: MulticlassScores, name: str, place: Codes, codes: int) -> assessment.OutcomePool:
    """Return the pool whose labels show the (true, predicted) class's code."""
    costing = place.T[:, None] == np.arange(codes)[:, None]  # (predicted, code, true)
    shares = _shares(scores).items()
    priors = {prior: (costing * share[:, None]).sum(axis=-1) for prior, share in shares}
    outcome = place[scores.target, scores.prediction]
    return assessment.OutcomePool(f"{COST_DATASET} {name}", scores.prediction, outcome, priors)


def cost_question(kind: str, m: int, dear: float = estimation.DEAR) -> assessment.Question:
    """Return the question of the m most costly predicted classes."""
    price = np.unique(READINGS[kind](estimation.released_pool(COST_DATASET).classes, dear))
    return _cost_question(f"most costly {m}", price, {"mrr": _cost_rank(price, m)}, m)


def _random_question(*tops: int, plays: int = 1) -> assessment.Question:
    """Return the questions of all costs at once, whose answers do not decide what is labelled."""
    measures = {
        f"{kind} {dear:g} {m}": _cost_rank(prices(kind, dear), m)
        for kind, dear, m in product(READINGS, DEARS, tops)
    }
    name = f"every cost {' and '.join(map(str, tops))}"
    return _cost_question(name, prices("human", estimation.DEAR), measures, plays)


def _cost_question(
    name: str, price: Floats, measures: dict[str, assessment.Measure], plays: int
) -> assessment.Question:
    reward = assessment.MostCostly(price)
    return assessment.Question(name, lambda *_: reward, measures, plays=plays, every=COST_EVERY)


def _cost_rank(price: Floats, m: int) -> assessment.Measure:
    def measure(pool: assessment.OutcomePool, arms: assessment.DirichletArms) -> Floats:
        seen = arms.alpha @ price / arms.alpha.sum(axis=-1)
        return assessment.mean_reciprocal_rank(seen, class_costs(pool, price), m)

    return measure


def class_costs(pool: assessment.OutcomePool, price: Floats) -> Floats:
    """Return the mean cost of the rows of each predicted class, (A,)."""
    return np.bincount(pool.arm, weights=price[pool.outcome]) / pool.sizes


def _costs(asked: _Request) -> Numbers:
    """Yield the labels from which on the most costly classes are identified.

    Settings are as printed, such as ``cost_type=human; relative_cost=10; top_m=1``.
    """
    runs, scores = asked.effort.choose(COST_RUNS, 2, 2), estimation.released_pool(COST_DATASET)
    rows, thompson = every_price(scores), f"{PRIORS['scores']}_thompson"
    quick = {setting for setting in asked.settings if "relative_cost=10;" in setting}
    for setting in sorted(asked.effort.choose(asked.settings, quick, asked.settings)):
        printed, cost, top = (part.partition("=")[2] for part in setting.split("; "))
        dear, m = float(cost), int(top)
        for kind, cause in _readings(printed, dear):
            pool, measure = cost_pool(scores, kind, dear), f"{kind} {dear:g} {m}"
            curve = asked.curves(pool, cost_question(kind, m, dear), THOMPSON, runs)
            found = [(thompson, cause, curve.reached("mrr"))]
            for prior, name in PRIORS.items():
                for strategy, coded, whole in (
                    ("random", "", _random_question(*COST_TOP)),
                    ("random_arm", CODE, _random_question(m, plays=m)),
                ):
                    if not (cause and coded):  # one setting is changed at a time
                        method = Method(prior, strategy, COST_STRENGTH)
                        curve = asked.curves(rows, whole, method, runs)
                        found.append((name, cause or coded, curve.reached(measure)))
            for name, why, (labels, error) in found:
                # Where all mistakes cost the same, the predicted class's probability is the prior.
                unknown = name != PRIORS["uniform"] and "relative_cost=1;" not in setting
                of = {"method": name, "setting": setting, "cause": why}
                reason = NEEDED if unknown else ""
                yield number(labels, error * np.sqrt(runs), runs, reason=reason, **of)


def _readings(printed: str, dear: float) -> Iterator[tuple[str, str]]:
    """Yield the matrices that a printed type may mean, the text's first."""
    yield printed, ""
    if printed == "human" and dear > 1:
        yield "person", ANY_PERSON


# The numbers of all tables.

FEWER = "100 runs"  # a cause, as is CODE
# The released code's curves are read one place late: "20 labels" is after 30.
_LATE = 10
# Of these a quick look leaves SVHN out, whose 26,032 rows are labelled one after another.
_LONG = ("3.5", "3.6", "3.7")
# How often every pair of groups is compared; the printed numbers are of one such pass.
_PASSES = {"cifar100": 3, "svhn": 10}


def worst_question(m: int) -> assessment.Question:
    """Return Table 3.5's: find the m least accurate classes."""

    def rank(pool: assessment.ArmPool, arms: active.BetaArms) -> Floats:
        return assessment.mean_reciprocal_rank(-arms.posterior.mean, -pool.accuracy, m)

    return assessment.Question(f"worst {m}", lambda *_: active.Lowest(), {"mrr": rank}, plays=m)


@dataclass(frozen=True)
class _Request:
    """What of a table is asked for: a data set's numbers in some settings."""

    dataset: str
    settings: set[str]
    folder: Path
    effort: Effort

    @property
    def replications(self) -> int:
        """Return over how many replications a number is a mean."""
        return self.effort.choose(1000, 10, 2)

    def curves(
        self, pool: assessment.Pool, question: assessment.Question, method: Method, runs: int = 0
    ) -> assessment.Curves:
        """Return a method's learning curves."""
        asked = self.effort.choose(question, question, question.first())
        runs = runs or self.replications
        return assessment.curves(pool, asked, method, self.folder, replications=runs)


def numbers(rows: pd.DataFrame, results: Path, effort: Effort) -> Numbers:
    """Yield our numbers for published ones, the text's before those of a cause.

    Parameters
    ----------
    rows : published numbers; the index is the place of each.
    """
    for table, (dataset, title) in product(rows["table"].unique(), estimation.NAMES.items()):
        published = rows[(rows["table"] == table) & rows["dataset"].str.startswith(title)]
        left_out = effort is Effort.QUICK and dataset == "svhn" and table in _LONG
        if published.empty or left_out:
            continue
        places = {(row.method, row.setting): row.Index for row in published.itertuples()}
        asked = _Request(dataset, {*published["setting"]}, results / "report" / "active", effort)
        for ours in _MAKERS[table](asked):
            place = places.get((ours.pop("method"), ours.pop("setting")))
            if place is not None:
                yield {"row": place, **ours}


def _estimation(pool: assessment.ArmPool, arms: active.BetaArms) -> active.Reward:
    return active.Estimation(pool.share)


def _accuracy(asked: _Request) -> Numbers:
    """Estimate the accuracy of every class."""
    pool = assessment.by_class(asked.dataset)
    arms, errors = len(pool.sizes), {"rmse": assessment.accuracy_error}
    question = assessment.Question("accuracy", _estimation, errors, 10 * arms + _LATE)
    return _few_labels(asked, pool, question, {"": "rmse", CODE: "rmse"})


def _ece(asked: _Request) -> Numbers:
    """Estimate the ECE of ten bins."""
    errors = {"published": assessment.published_ece_error, "ece": assessment.ece_error}
    question = assessment.Question("ece", _estimation, errors, 110)
    pool = assessment.by_score(asked.dataset)
    return _few_labels(asked, pool, question, {"": "ece", CODE: "published"})


def _few_labels(
    asked: _Request,
    pool: assessment.ArmPool,
    question: assessment.Question,
    measures: dict[str, str],
) -> Numbers:
    """Yield a measure at the stated numbers of labels, and the code's, which is read late."""
    for (method, name), (cause, measure) in product(TEXT.items(), measures.items()):
        curve = asked.curves(pool, question, assessment.as_coded(method) if cause else method)
        for each in PER_CLASS:
            mean, sd = curve.at(measure, each * len(pool.sizes) + (_LATE if cause else 0))
            of = {"method": name, "setting": f"labels_per_group={each}", "cause": cause}
            yield number(mean, sd, asked.replications, **of)


def _worst(asked: _Request) -> Numbers:
    """Yield the percent of the labels at which the mean passes its goal."""
    pool, runs = assessment.by_class(asked.dataset), asked.replications
    share = 100 / len(pool.arm)
    for m, (method, name) in product((1, estimation.TOP[asked.dataset]), TEXT.items()):
        coded, of = assessment.as_coded(method), {"method": name, "setting": f"top_m={m}"}
        for cause, run in {"": method, **({} if coded == method else {CODE: coded})}.items():
            curve = asked.curves(pool, worst_question(m), run)
            labels, error = curve.reached("mrr")
            yield number(share * labels, share * error * np.sqrt(runs), runs, cause=cause, **of)
        each = share * curve.reached_by_batch("mrr")
        sd = float(each.std(ddof=1))
        error = sd * np.sqrt(1 + 1 / len(each))  # the printed number is that of one batch of runs
        yield number(each.mean(), sd, len(each), cause=FEWER, error=error, **of)


def _pairs(asked: _Request) -> Numbers:
    """Yield the mean over all pairs, over passes through them: the printed number is of one."""
    pool = assessment.by_superclass(asked.dataset)
    passes = asked.effort.choose(_PASSES[asked.dataset], 1, 2)
    for (method, name), cause in product(TEXT.items(), ("", CODE)):
        labels = assessment.labels_to_compare(
            pool, method, asked.folder, passes=passes, coded=bool(cause)
        )
        needed = labels.mean(axis=1)
        sd = needed.std(ddof=1) if passes > 1 else float("nan")
        yield number(needed.mean(), sd, passes, method=name, setting="", cause=cause)


_MAKERS: dict[str, Callable[[_Request], Numbers]] = {
    "3.2": _accuracy,
    "3.3": _confusion,
    "3.4": _ece,
    "3.5": _worst,
    "3.6": _least_calibrated,
    "3.7": _pairs,
    "3.8": _costs,
}


# Which group of people a model treats worst, in the first test fold of finished runs.

RUNS = ("adult", "compas", "bank", "acs_income_sample")
RATES: dict[str, assessment.Rate] = {
    "accuracy": assessment.accuracy,
    "true positive rate": assessment.true_positive_rate,
}
STRATEGIES = ("random", "random_arm", "thompson", "top_two", "epsilon_greedy", "bayesian_ucb")
REPLICATIONS, MOST, EVERY = 200, 2000, 10
SMALLEST, FEWEST_POSITIVES, LARGE = 30, 10, 100
SURE, HALF, MARGIN = 0.95, 0.5, 0.05


def fold_of(dataset: str, results: Path) -> pd.DataFrame:
    """Return the rows of the first test fold of the data set's finished baseline run.

    Columns are the group, the value of the protected attribute, the prediction and the label.

    Raises
    ------
    UserError : there is no such run.
    """
    name = f"{dataset}, xgboost, baseline"
    finished = Catalogue(results)
    folder = next((each for each in finished if each.environment["name"] == name), None)
    if folder is None:
        words = f"fairbench run dataset={dataset} method=baseline"
        raise UserError(f"no finished run '{name}': make it with {words}")
    run = load_predictions(folder)
    fold = run.repeats[0][0]
    sensitive = run.people.sensitive.iloc[fold["rows"]].astype(str).reset_index(drop=True)
    rows = (
        sensitive[[run.protect[0]]]
        .set_axis(["protected"], axis=1)
        .assign(
            group=sensitive.agg(" x ".join, axis=1),
            prediction=fold["prediction"],
            label=run.people.target.to_numpy(np.int64)[fold["rows"]],
        )
    )
    labels = rows.groupby("group")["label"]
    large = labels.transform("size").ge(SMALLEST) & labels.transform("sum").ge(FEWEST_POSITIVES)
    return rows[large]


def rates_of(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the true `RATES` of the groups, with how many rows each has."""
    right = rows["prediction"].eq(rows["label"]).groupby(rows["group"])
    found = rows[rows["label"] == 1].groupby("group")["prediction"].mean()
    return pd.DataFrame({"rows": right.size(), "accuracy": right.mean(), [*RATES][1]: found})


# A question: its name, its answer, the share of replications that is to answer, and what returns
# numbers of labels and that share for a strategy.
_Question = tuple[str, str, float, Callable[[str], tuple[Floats, Floats]]]


def _lowest(dataset: str, rows: pd.DataFrame, name: str) -> _Question:
    """Return the question which group has the lowest rate."""
    group, true = rows["group"].astype("category").cat, rates_of(rows)[name]
    share = rows.groupby("group")["prediction"].mean().to_numpy()
    reward, worst = assessment.LowestRate(share, RATES[name]), int(true.argmin())

    def answered(held: active.BetaArms) -> Mask:
        return reward.rates(held.posterior.mean).argmin(axis=1) == worst

    arm = 2 * group.codes.to_numpy(np.int64) + rows["prediction"].to_numpy()
    outcomes = rows["label"].to_numpy(), arm, 2 * len(share)
    found = partial(_share_answering, outcomes, reward, ("fairness", dataset), answered)
    return f"lowest {name}", true.index[worst], SURE, found


def _gap(dataset: str, rows: pd.DataFrame) -> _Question:
    """Return the question whether two groups of the protected attribute differ by the margin.

    The two are given; any row of one answers. A replication answers once the true one of the three
    regions has a mass of 95 %.
    """
    worst, best, gap = extremes(rows)
    both = rows[rows["protected"].isin([worst, best])]
    region, comparison = 2 if gap > MARGIN else 1, active.ComparisonReward(MARGIN)

    def answered(held: active.BetaArms) -> Mask:
        return comparison.regions(held)[:, region] >= SURE

    correct, arm = both["label"].eq(both["prediction"]), both["protected"].eq(best)
    outcomes = correct.to_numpy(np.int64), arm.to_numpy(np.int64), 2
    found = partial(_share_answering, outcomes, comparison, ("fairness gap", dataset), answered)
    return f"gap over {MARGIN}", f"{worst} and {best}, {gap:.3f}", HALF, found


def _share_answering(
    outcomes: tuple[Codes, Codes, int],
    reward: active.Reward,
    seed: tuple[str, str],
    answered: Callable[[active.BetaArms], Mask],
    strategy: str,
) -> tuple[Floats, Floats]:
    """Return numbers of labels, and the share of replications that answer after each.

    Parameters
    ----------
    outcomes : (n,) of rows, the arm of each, (n,), and the number of arms.
    """
    outcome, arm, count = outcomes
    generator, rows = rng(0, *seed, strategy), min(MOST, len(arm))
    queues = assessment.Queues.of(
        outcome, arm, rng(0, *seed), replications=REPLICATIONS, arms=count
    )
    seen = assessment.assess(
        queues,
        active.BetaArms.of(uniform(count), queues.sizes, replications=REPLICATIONS),
        lambda held: active.choose(strategy, held, reward, generator),
        observe=lambda held: answered(held).mean(),
        rounds=rows,
        every=EVERY,
    )
    return np.minimum(np.arange(len(seen)) * EVERY, rows).astype(float), np.array(seen)


def extremes(rows: pd.DataFrame) -> tuple[str, str, float]:
    """Return the protected groups of least and most accuracy, and by how much they differ."""
    right = rows["label"].eq(rows["prediction"]).groupby(rows["protected"])
    accuracies = right.mean()[right.size() >= LARGE]
    gap = float(accuracies.max() - accuracies.min())
    return str(accuracies.idxmin()), str(accuracies.idxmax()), gap


def reached(labels: Floats, share: Floats, goal: float) -> float:
    """Return the labels from which on the share stays at the goal or above, or NaN."""
    after = 1 + np.flatnonzero(share < goal).max(initial=-1)
    return float(labels[after]) if after < len(labels) else float("nan")


def _figure(found: dict[str, tuple[Floats, Floats]], title: str) -> Figure:
    figure = Figure(figsize=(6.4, 4), dpi=110, layout="constrained")
    axes = figure.add_subplot()
    for (strategy, (labels, share)), colour in zip(found.items(), COLOURS, strict=False):
        style = "--" if strategy.startswith("random") else "-"
        axes.plot(labels, share, style, color=colour, lw=1.4, label=strategy)
    axes.axhline(SURE, color="black", lw=0.6)
    what = "share of replications that are right, and sure of a gap"
    axes.set(xlabel="labels", ylabel=what, ylim=(0, 1), title=title)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8)
    return figure


def worst_group(options: Results) -> None:
    """How many labels say which group a model treats worst: strategies against random labelling.

    ``python -m papers.active_assessment.tables worst_group`` reads finished runs (``python run.py
    dataset=adult method=baseline`` and so on), whose first test fold is the pool. Groups are
    combinations of all sensitive attributes with at least 30 rows and 10 positives. Asked are:
    which group has the lowest accuracy, and the lowest true positive rate; and, of the attribute
    that the run protects, do the accuracies of the worst and the best treated group differ by over
    0.05. A worst group counts as found when 95 % of the replications name it, a gap as answered
    when half of them do. For the first two, every label updates the same posteriors, of each
    group's two kinds of prediction, whichever way rows are chosen
    (papers/active_assessment/assessment.py).
    """
    folder, needed = options.results / "report" / "active", []
    folder.mkdir(parents=True, exist_ok=True)
    for dataset in RUNS:
        rows = fold_of(dataset, options.results)
        print(f"\n{dataset}: {len(rows):,} rows\n{rates_of(rows).round(3).to_string()}")
        lowest = (_lowest(dataset, rows, name) for name in RATES)
        for question, answer, goal, share in (*lowest, _gap(dataset, rows)):
            found = {strategy: share(strategy) for strategy in STRATEGIES}
            figure = _figure(found, f"{dataset}: {question} ({answer})")
            figure.savefig(folder / f"{dataset}_{question.replace(' ', '_')}.png")
            place = {"dataset": dataset, "question": question, "group": answer}
            labels = {strategy: reached(*curve, goal) for strategy, curve in found.items()}
            needed.append({**place, **labels})
    table = pd.DataFrame(needed)
    table.to_csv(folder / "fairness.csv", index=False)
    print(f"\n{table.round(0).to_string(index=False)}")


if __name__ == "__main__":
    run_main(worst_group)
