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
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray

from fairbench.cli.command import Results
from fairbench.comparison.runs import load_predictions
from fairbench.components.papers import run_main
from fairbench.components.papers.active_assessment import assessment
from fairbench.components.papers.active_assessment.assessment import (
    CODE,
    STRENGTH,
    TEXT,
    ArmPool,
    BinnedArms,
    BinnedPool,
    Curves,
    DirichletArms,
    LowestRate,
    Method,
    MostCostly,
    OutcomeEstimation,
    OutcomePool,
    Question,
    Queues,
    Rate,
    accuracy,
    accuracy_error,
    as_coded,
    assess,
    binned_by_class,
    by_class,
    by_score,
    by_superclass,
    curves,
    ece_error,
    estimation,
    lowest,
    mean_reciprocal_rank,
    mean_scores,
    published_ece_error,
    reciprocal_rank,
    released,
    true_positive_rate,
)
from fairbench.components.papers.black_box.estimation import (
    DEAR,
    human_costs,
    person_costs,
    superclass_costs,
)
from fairbench.components.papers.engine.matching import Effort, Numbers, number
from fairbench.core.arrays import Codes, Floats, Mask, Rows, rng
from fairbench.core.errors import UserError
from fairbench.data.columns import MulticlassScores
from fairbench.inference.posterior import confusion_posterior, uniform, uninformative_prior
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
        counts = confusion_posterior(self.scores, nothing)
        return np.asarray(counts / counts.sum(axis=1, keepdims=True))

    @cached_property
    def published(self) -> Floats:
        """Return the code's matrix of all labels: nearly the identity."""
        counts = np.diag(self.share * len(self.scores))
        alpha = counts + uninformative_prior(self.classes, strength=CONFUSION_STRENGTH)
        return np.asarray(alpha / alpha.sum(axis=1, keepdims=True))

    def squared_distance(self, first: Floats, second: Floats) -> Floats:
        """Return the squared distance of matrices, classes weighted by their rows, (...)."""
        return np.asarray(((first - second) ** 2).sum(axis=-1) @ self.share)

    def published_error(self, estimate: Floats) -> Floats:
        """Return the code's error of (R, C, C) estimates, in the unit that is printed."""
        unit = self.squared_distance(self.true, self.published)
        return np.asarray(self.squared_distance(estimate, self.published) / unit)

    def error(self, estimate: Floats) -> Floats:
        """Return the text's error of (R, C, C) estimates: in RMSEs of the scores' matrix."""
        distance = self.squared_distance(estimate, self.true)
        return np.asarray(np.sqrt(distance / self.squared_distance(self.by_scores, self.true)))

    @cached_property
    def by_scores(self) -> Floats:
        """Return the matrix that the scores alone give, without any label."""
        return mean_scores(self.scores)

    def pool(self, name: str, *, published: bool) -> OutcomePool:
        """Return the rows by predicted class; a label shows the true class, or that class again."""
        shown = self.scores.prediction if published else self.scores.target
        return OutcomePool(name, self.scores.prediction, shown, _shares(self.scores))


def _shares(scores: MulticlassScores) -> dict[str, Floats]:
    """Return what each prior takes for the shares of the true classes, (predicted, true)."""
    classes = len(scores.classes)
    return {
        "uniform": np.full((classes, classes), 1 / classes),
        "scores": mean_scores(scores),
    }


def published_fall(arms: DirichletArms, theta: Floats, share: Floats) -> Floats:
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
    arms = pool.arms(prior, strength, replications)
    reward = OutcomeEstimation(matrices.share)

    def choose(held: DirichletArms) -> Codes:
        if strategy == "random":
            return active.random_row(held, reward, generator)
        if not published:
            return active.thompson(held, reward, generator)
        fall = published_fall(held, held.draw(generator), matrices.share)
        return np.where(held.unlabelled > 0, fall, -np.inf).argmax(axis=1)[:, None]

    def observe(held: DirichletArms) -> Floats:
        estimate = held.alpha / held.alpha.sum(axis=-1, keepdims=True)
        return matrices.published_error(estimate) if published else matrices.error(estimate)

    seen = assess(
        pool.queues(replications),
        arms,
        choose,
        observe=observe,
        rounds=max(PER_CLASS) * matrices.classes,
        every=matrices.classes,
    )
    return [seen[each] for each in PER_CLASS]


def _confusion_numbers(dataset: str, wanted: frozenset[str], effort: Effort) -> Numbers:
    """Yield the errors of true labels, as the text has them, and those of the released code.

    Parameters
    ----------
    wanted : published names of the methods.
    """
    replications = effort.choose(_RUNS[dataset], 50, 2)
    matrices = Matrices(released(dataset))
    for method, printed in TEXT.items():
        if printed not in wanted:
            continue
        for published in (False, True):
            runs = replications * (_MORE if published and method.prior == "uniform" else 1)
            found = errors(matrices, dataset, method, published=published, replications=runs)
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
_ALL = 10**9
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


def calibrated_pool(dataset: str) -> BinnedPool:
    """Return all rows by predicted class."""
    return binned_by_class(released(dataset), f"{dataset} by class in bins")


def published_pool(dataset: str, split: int = 0) -> BinnedPool:
    """Return nine tenths of the rows by predicted class."""
    name = f"{dataset} less a tenth" + f" {split}" * (split > 0)
    return binned_by_class(released(dataset), name, held_out=HELD_OUT)


def calibrated_question(m: int) -> Question:
    """Return the question of the m least calibrated classes, as the text defines them."""
    return Question(
        f"least calibrated {m}", _defined, {"mrr": _calibrated_rank(m)}, _ALL, m, CALIBRATED_EVERY
    )


def _published_question(m: int, strength: float = STRENGTH) -> Question:
    """Return the question as the published code asks it, with a prior of that many labels."""

    def reward(pool: BinnedPool, arms: BinnedArms) -> active.LeastCalibrated:
        return active.LeastCalibrated(pool.bins.score, _seen_share(arms, strength))

    def rank(pool: BinnedPool, arms: BinnedArms) -> Floats:
        whole = pool.diagram(strength, midpoints=True, labelled=True)
        truth = np.abs(whole.accuracy.mean - whole.score)
        error = np.abs(arms.posterior.mean - pool.bins.score)
        seen = (_seen_share(arms, strength) * error).sum(axis=-1)
        return mean_reciprocal_rank(-seen, _largest((whole.weight * truth).sum(axis=-1), m))

    return Question(f"published calibration {m}", reward, {"mrr": rank}, _ALL, m, CALIBRATED_EVERY)


def _defined(pool: BinnedPool, arms: BinnedArms) -> active.LeastCalibrated:
    return active.LeastCalibrated(pool.bins.score, pool.bins.weight)


def _calibrated_rank(m: int) -> Any:
    def measure(pool: BinnedPool, arms: BinnedArms) -> Floats:
        worst = _largest(class_errors(pool), m)
        return mean_reciprocal_rank(-_defined(pool, arms).moments(arms)[0], worst)

    return measure


def class_errors(pool: BinnedPool) -> Floats:
    """Return every class's ECE of all labels, (A,)."""
    arms, bins = len(pool.sizes), pool.bins
    cell = pool.outcome // 2 + pool.arm * bins.weight.shape[1]
    right = np.bincount(cell, weights=pool.correct, minlength=bins.weight.size)
    rows = np.maximum(np.bincount(cell, minlength=bins.weight.size), 1)
    gap: Floats = np.abs((right / rows).reshape(arms, -1) - bins.score)
    return np.asarray((bins.weight * gap).sum(axis=-1))


def _seen_share(arms: BinnedArms, strength: float) -> Floats:
    """Return the share of the labels so far in each bin of each class, (R, A, B)."""
    seen = arms.posterior.strength - strength + 2 * _BLANK
    return seen / seen.sum(axis=-1, keepdims=True)


def _largest(values: Floats, m: int) -> Rows:
    return np.argsort(-values, kind="stable")[:m]


def _calibration_numbers(dataset: str, m: int, folder: Path, effort: Effort) -> Numbers:
    """Yield the percent of the labels from which on the m classes are identified.

    The code holds out one tenth of the rows, drawn once: its numbers are means over such draws.
    """
    replications = effort.choose(100, 2, 2)
    percent = 100 / len(released(dataset))
    for method, printed in DEFINED.items():
        asked = calibrated_question(m).within(effort)
        curve = curves(calibrated_pool(dataset), asked, method, folder, replications=replications)
        labels, error = curve.reached("mrr")
        sd = percent * error * np.sqrt(replications)
        yield number(percent * labels, sd, replications, method=printed)
    for method, printed in PUBLISHED.items():
        found, several = [], method.strategy != "thompson"
        splits = effort.choose(SPLITS[dataset] if several else 1, 1, 1)
        for split in range(splits):
            rows, asked = published_pool(dataset, split), _published_question(m).within(effort)
            curve = curves(rows, asked, method, folder, replications=replications)
            labels, error = curve.reached("mrr", skipped=_SKIPPED)
            found.append(percent * min(labels + CALIBRATED_EVERY, len(rows.arm)))
        spread = float(np.std(found, ddof=1)) if splits > 1 else percent * error
        error = spread * np.sqrt(1 + 1 / splits)  # the printed number is of one split
        mean = float(np.mean(found))
        yield number(mean, spread, splits, method=printed, cause=CODE, error=error)


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
COSTS = {"human": human_costs, "superclass": superclass_costs}
# The other reading of "misclassifying a person": another person is a mistake as dear as a thing.
READINGS = {**COSTS, "person": person_costs}
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


def cost_pool(scores: MulticlassScores, kind: str, dear: float = DEAR) -> OutcomePool:
    """Return the rows by predicted class; a label shows which of the prices it costs."""
    costs = READINGS[kind](scores.classes, dear)
    prices, place = np.unique(costs, return_inverse=True)
    return _pool(scores, f"{kind} costs {dear:g}", place.reshape(costs.shape), len(prices))


def every_price(scores: MulticlassScores) -> OutcomePool:
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


def _pool(scores: MulticlassScores, name: str, place: Codes, codes: int) -> OutcomePool:
    """Return the pool whose labels show the (true, predicted) class's code."""
    costing = place.T[:, None] == np.arange(codes)[:, None]  # (predicted, code, true)
    priors = {
        prior: (costing * shares[:, None]).sum(axis=-1) for prior, shares in _shares(scores).items()
    }
    outcome = place[scores.target, scores.prediction]
    return OutcomePool(f"{COST_DATASET} {name}", scores.prediction, outcome, priors)


def cost_question(kind: str, m: int, dear: float = DEAR) -> Question:
    """Return the question of the m most costly predicted classes."""
    price = np.unique(READINGS[kind](released(COST_DATASET).classes, dear))
    return Question(
        f"most costly {m}", _reward(price), {"mrr": _cost_rank(price, m)}, 10**9, m, COST_EVERY
    )


def _random_question(*tops: int, plays: int = 1) -> Question:
    """Return the questions of all costs at once, whose answers do not decide what is labelled."""
    measures = {
        f"{kind} {dear:g} {m}": _cost_rank(prices(kind, dear), m)
        for kind in READINGS
        for dear in DEARS
        for m in tops
    }
    name = f"every cost {' and '.join(map(str, tops))}"
    return Question(name, _reward(prices("human", DEAR)), measures, 10**9, plays, COST_EVERY)


def _reward(price: Floats) -> Callable[[OutcomePool, DirichletArms], MostCostly]:
    return lambda pool, arms: MostCostly(np.broadcast_to(price, (len(pool.sizes), len(price))))


def _cost_rank(price: Floats, m: int) -> Callable[[OutcomePool, DirichletArms], Floats]:
    def measure(pool: OutcomePool, arms: DirichletArms) -> Floats:
        costly = np.argsort(-class_costs(pool, price), kind="stable")[:m]
        return mean_reciprocal_rank(-(arms.alpha @ price) / arms.alpha.sum(axis=-1), costly)

    return measure


def class_costs(pool: OutcomePool, price: Floats) -> Floats:
    """Return the mean cost of the rows of each predicted class, (A,)."""
    return np.bincount(pool.arm, weights=price[pool.outcome]) / pool.sizes


def _cost_numbers(settings: frozenset[str], folder: Path, effort: Effort) -> Numbers:
    """Yield the labels from which on the most costly classes are identified.

    Parameters
    ----------
    settings : as printed, such as ``cost_type=human; relative_cost=10; top_m=1``.
    """
    runs, scores = effort.choose(COST_RUNS, 2, 2), released(COST_DATASET)
    rows = every_price(scores)

    def number(curve: Curves, measure: str, method: str, setting: str, cause: str) -> Any:
        labels, error = curve.reached(measure)
        # Where every mistake costs the same, the predicted class's probability is the whole prior.
        unknown = method != PRIORS["uniform"] and "relative_cost=1;" not in setting
        reason = NEEDED if unknown else ""
        of = {"method": method, "setting": setting, "cause": cause, "reason": reason}
        return {**of, "mean": labels, "sd": error * np.sqrt(runs), "repeats": runs}

    quick = [setting for setting in settings if "relative_cost=10;" in setting]
    for setting in sorted(effort.choose(settings, quick, settings)):
        printed, cost, top = (part.partition("=")[2] for part in setting.split("; "))
        dear, m = float(cost), int(top)
        for kind, cause in _readings(printed, dear):
            asked = cost_question(kind, m, dear).within(effort)
            curve = curves(
                cost_pool(scores, kind, dear), asked, THOMPSON, folder, replications=runs
            )
            yield number(curve, "mrr", f"{PRIORS['scores']}_thompson", setting, cause)
            for prior, name in PRIORS.items():
                for strategy, coded, whole in (
                    ("random", "", _random_question(*COST_TOP)),
                    ("random_arm", CODE, _random_question(m, plays=m)),
                ):
                    method = Method(prior, strategy, COST_STRENGTH)
                    curve = curves(rows, whole.within(effort), method, folder, replications=runs)
                    if not (cause and coded):  # one setting is changed at a time
                        measure = f"{kind} {dear:g} {m}"
                        yield number(curve, measure, name, setting, cause or coded)


def _readings(printed: str, dear: float) -> Iterator[tuple[str, str]]:
    """Yield the matrices that a printed type may mean, the text's first."""
    yield printed, ""
    if printed == "human" and dear > 1:
        yield "person", ANY_PERSON


# The numbers of all tables.

DATASETS = {"cifar100": "CIFAR-100", "svhn": "SVHN"}
TOP = {"cifar100": 10, "svhn": 3}
FEWER = "100 runs"  # a cause, as is CODE
# The released code's curves are read one place late: "20 labels" is after 30.
_LATE = 10
# Of these a quick look leaves SVHN out, whose 26,032 rows are labelled one after another.
_LONG = ("3.5", "3.6", "3.7")
# How often every pair of groups is compared; the printed numbers are of one such pass.
_PASSES = {"cifar100": 3, "svhn": 10}


def worst_question(m: int) -> Question:
    """Return Table 3.5's: find the m least accurate classes."""
    measures = {"mrr": reciprocal_rank(m)}
    return Question(f"worst {m}", lowest, measures, 10**9, plays=m)


@dataclass(frozen=True)
class _Request:
    """What of a table is asked for: a data set's numbers by some methods, in some settings."""

    dataset: str
    methods: frozenset[str]
    settings: frozenset[str]
    folder: Path
    effort: Effort

    @property
    def replications(self) -> int:
        """Return over how many replications a number is a mean."""
        return self.effort.choose(1000, 10, 2)

    def curves(self, pool: ArmPool, question: Question, method: Method) -> Curves:
        """Return a method's learning curves."""
        asked = question.within(self.effort)
        return curves(pool, asked, method, self.folder, replications=self.replications)


def numbers(rows: pd.DataFrame, results: Path, effort: Effort) -> Numbers:
    """Yield our numbers for published ones, the text's before those of a cause.

    Parameters
    ----------
    rows : published numbers; the index is the place of each.
    """
    folder = results / "report" / "active"
    for table in rows["table"].unique():
        for dataset, title in DATASETS.items():
            published = rows[(rows["table"] == table) & rows["dataset"].str.startswith(title)]
            left_out = effort is Effort.QUICK and dataset == "svhn" and table in _LONG
            if published.empty or left_out:
                continue
            places = {(row.method, row.setting): row.Index for row in published.itertuples()}
            methods, settings = frozenset(published["method"]), frozenset(published["setting"])
            for ours in _MAKERS[table](_Request(dataset, methods, settings, folder, effort)):
                place = places.get((ours.pop("method"), ours.pop("setting")))
                if place is not None:
                    yield {"row": place, **ours}


def _accuracy(asked: _Request) -> Numbers:
    """Estimate the accuracy of every class."""
    pool = by_class(asked.dataset)
    labels = 10 * len(pool.sizes) + _LATE
    question = Question("accuracy", estimation, {"rmse": accuracy_error}, labels)
    return _few_labels(asked, pool, question, {"": "rmse", CODE: "rmse"}, len(pool.sizes))


def _ece(asked: _Request) -> Numbers:
    """Estimate the ECE of ten bins."""
    errors = {"published": published_ece_error, "ece": ece_error}
    question = Question("ece", estimation, errors, 110)
    measures = {"": "ece", CODE: "published"}
    return _few_labels(asked, by_score(asked.dataset), question, measures, 10)


def _few_labels(
    asked: _Request, pool: ArmPool, question: Question, measures: dict[str, str], arms: int
) -> Numbers:
    """Yield a measure at the stated numbers of labels, and the code's, which is read late."""
    for method, name in TEXT.items():
        if name not in asked.methods:
            continue
        for cause, measure in measures.items():
            curve = asked.curves(pool, question, as_coded(method) if cause else method)
            for each in (2, 5, 10):
                mean, sd = curve.at(measure, each * arms + (_LATE if cause else 0))
                of = {"method": name, "setting": f"labels_per_group={each}", "cause": cause}
                yield number(mean, sd, asked.replications, **of)


def _worst(asked: _Request) -> Numbers:
    pool = by_class(asked.dataset)
    for m in (1, TOP[asked.dataset]):
        if f"top_m={m}" in asked.settings:
            for method, name in TEXT.items():
                if name in asked.methods:
                    found = _passages(asked, pool, worst_question(m), method)
                    yield from ({"method": name, "setting": f"top_m={m}", **each} for each in found)


def _passages(asked: _Request, pool: ArmPool, question: Question, method: Method) -> Numbers:
    """Yield the percent of the labels at which the mean passes its goal."""
    share, runs = 100 / len(pool.arm), asked.replications
    coded = {} if as_coded(method) == method else {CODE: as_coded(method)}
    for cause, run in {"": method, **coded}.items():
        labels, error = asked.curves(pool, question, run).reached("mrr")
        spread = share * error * np.sqrt(runs)
        yield number(share * labels, spread, runs, cause=cause)
    each = share * asked.curves(pool, question, as_coded(method)).reached_by_batch("mrr")
    sd = float(each.std(ddof=1))
    # The printed number is that of one batch of runs.
    error = sd * np.sqrt(1 + 1 / len(each))
    yield number(each.mean(), sd, len(each), cause=FEWER, error=error)


def _least_calibrated(asked: _Request) -> Numbers:
    tops = {"top_1": 1, "top_m": TOP[asked.dataset]}
    for setting in sorted(asked.settings):
        found = _calibration_numbers(asked.dataset, tops[setting], asked.folder, asked.effort)
        yield from ({"setting": setting, **each} for each in found)


def _pairs(asked: _Request) -> Numbers:
    """Yield the mean over all pairs, over passes through them: the printed number is of one."""
    pool, passes = by_superclass(asked.dataset), asked.effort.choose(_PASSES[asked.dataset], 1, 2)
    for method, name in TEXT.items():
        for reading, cause in ((assessment.TEXT_READING, ""), (assessment.CODED, CODE)):
            if name in asked.methods:
                needed = assessment.labels_to_compare(
                    pool, method, asked.folder, passes=passes, reading=reading
                ).mean(axis=1)
                sd = needed.std(ddof=1) if passes > 1 else float("nan")
                of = {"method": name, "setting": "", "cause": cause}
                yield number(needed.mean(), sd, passes, **of)


_MAKERS: dict[str, Callable[[_Request], Numbers]] = {
    "3.2": _accuracy,
    "3.3": lambda asked: _confusion_numbers(asked.dataset, asked.methods, asked.effort),
    "3.4": _ece,
    "3.5": _worst,
    "3.6": _least_calibrated,
    "3.7": _pairs,
    "3.8": lambda asked: _cost_numbers(asked.settings, asked.folder, asked.effort),
}


RUNS = ("adult", "compas", "bank", "acs_income_sample")
RATES: dict[str, Rate] = {"accuracy": accuracy, "true positive rate": true_positive_rate}
STRATEGIES = ("random", "random_arm", "thompson", "top_two", "epsilon_greedy", "bayesian_ucb")
REPLICATIONS, MOST, EVERY = 200, 2000, 10
SMALLEST, FEWEST_POSITIVES, LARGE = 30, 10, 100
SURE, HALF, MARGIN = 0.95, 0.5, 0.05


@dataclass(frozen=True, eq=False)
class _GroupPool:
    """(n,) rows of a test fold: group, prediction, label, and the protected attribute's value."""

    name: str
    groups: tuple[str, ...]
    group: Codes
    protected: NDArray[np.object_]
    prediction: Codes
    label: Codes

    @property
    def share(self) -> Floats:
        """Return each group's share of positive predictions, (G,)."""
        return np.bincount(self.group, weights=self.prediction) / np.bincount(self.group)

    def rates(self, rate: Rate) -> Floats:
        """Return the true rates of the groups, (G,)."""
        arm = 2 * self.group + self.prediction
        size = np.bincount(arm, minlength=2 * len(self.groups))
        theta = np.bincount(arm, weights=self.label, minlength=len(size)) / np.maximum(size, 1)
        return LowestRate(self.share, rate).rates(theta[None])[0]


def pool(dataset: str, results: Path) -> _GroupPool:
    """Return the first test fold of the data set's finished baseline run.

    Raises
    ------
    UserError : there is no such run.
    """
    name = f"{dataset}, xgboost, baseline"
    finished = Catalogue(results)
    folder = next((each for each in finished if each.environment["name"] == name), None)
    if folder is None:
        raise UserError(f"no finished run '{name}': make it with fairbench run dataset={dataset}")
    run = load_predictions(folder)
    fold = run.repeats[0][0]
    sensitive = run.people.sensitive.iloc[fold["rows"]].astype(str)
    label = run.people.target.to_numpy()[fold["rows"]].astype(np.int64)
    names = sensitive.agg(" x ".join, axis=1).to_numpy()
    kept = pd.Series(label).groupby(names).agg(["size", "sum"])
    kept = kept[(kept["size"] >= SMALLEST) & (kept["sum"] >= FEWEST_POSITIVES)]
    inside = np.isin(names, kept.index)
    codes = np.searchsorted(kept.index.to_numpy(), names[inside])
    protected = sensitive[run.protect[0]].to_numpy(dtype=object)[inside]
    return _GroupPool(
        dataset, tuple(kept.index), codes, protected, fold["prediction"][inside], label[inside]
    )


def worst_found(pool: _GroupPool, rate: Rate, strategy: str) -> tuple[Floats, Floats]:
    """Return numbers of labels, and the share of replications that name the worst group."""
    arm = 2 * pool.group + pool.prediction
    queues = Queues.of(pool.label, arm, rng(0, "fairness", pool.name), replications=REPLICATIONS)
    sizes = np.bincount(arm, minlength=2 * len(pool.groups))
    missing = len(sizes) - queues.outcome.shape[1]
    queues = Queues(np.pad(queues.outcome, ((0, 0), (0, missing), (0, 0))), sizes)
    reward = LowestRate(pool.share, rate)
    worst = int(pool.rates(rate).argmin())
    return _share_answering(
        queues,
        reward,
        strategy,
        rng(0, "fairness", pool.name, strategy),
        lambda held: reward.rates(held.posterior.mean).argmin(axis=1) == worst,
    )


def _share_answering(
    queues: Queues,
    reward: active.Reward,
    strategy: str,
    generator: np.random.Generator,
    answered: Callable[[active.BetaArms], Mask],
) -> tuple[Floats, Floats]:
    """Return numbers of labels, and the share of replications that answer after each."""
    arms = active.BetaArms.of(uniform(len(queues.sizes)), queues.sizes, replications=REPLICATIONS)
    rows = min(MOST, int(queues.sizes.sum()))
    seen = assess(
        queues,
        arms,
        lambda held: active.choose(strategy, held, reward, generator),
        observe=lambda held: answered(held).mean(),
        rounds=rows,
        every=EVERY,
    )
    return np.minimum(np.arange(len(seen)) * EVERY, rows).astype(float), np.array(seen)


def _gap_answered(pool: _GroupPool, strategy: str) -> tuple[Floats, Floats]:
    """Return numbers of labels, and the share of replications that answer the gap, and rightly.

    The two groups of the protected attribute are given; any row of one answers. A replication
    answers once the true one of the three regions has a mass of 95 %.
    """
    worst, best, gap = extremes(pool)
    inside = np.isin(pool.protected, [worst, best])
    arm = (pool.protected[inside] == best).astype(np.int64)
    correct = (pool.label == pool.prediction)[inside].astype(np.int64)
    region = 2 if gap > MARGIN else 1
    queues = Queues.of(correct, arm, rng(0, "fairness gap", pool.name), replications=REPLICATIONS)
    comparison = active.ComparisonReward(MARGIN)
    return _share_answering(
        queues,
        comparison,
        strategy,
        rng(0, "fairness gap", pool.name, strategy),
        lambda held: comparison.regions(held)[:, region] >= SURE,
    )


def extremes(pool: _GroupPool) -> tuple[str, str, float]:
    """Return the protected groups of least and most accuracy, and by how much they differ."""
    right = pd.Series(pool.label == pool.prediction).groupby(pool.protected)
    accuracies = right.mean()[right.size() >= LARGE]
    gap = float(accuracies.max() - accuracies.min())
    return str(accuracies.idxmin()), str(accuracies.idxmax()), gap


def reached(labels: Floats, share: Floats, goal: float) -> float:
    """Return the labels from which on the share stays at the goal or above, or NaN."""
    below = np.flatnonzero(share < goal)
    after = 0 if len(below) == 0 else int(below[-1]) + 1
    return float(labels[after]) if after < len(labels) else float("nan")


def rows(pools: list[_GroupPool], folder: Path) -> Iterator[dict[str, object]]:
    """Yield, for each data set, question and strategy, the labels that the answer takes.

    A worst group counts as found when 95 % of the replications name it, a gap as answered when
    half of them do.
    """
    for each in pools:
        for name, rate in RATES.items():
            worst = each.groups[int(each.rates(rate).argmin())]
            found = {strategy: worst_found(each, rate, strategy) for strategy in STRATEGIES}
            figure = _figure(found, f"{each.name}: lowest {name} ({worst})", "name it")
            figure.savefig(folder / f"{each.name}_{name.replace(' ', '_')}.png")
            needed = {strategy: reached(*curve, SURE) for strategy, curve in found.items()}
            yield {"dataset": each.name, "question": f"lowest {name}", "group": worst, **needed}
        found = {strategy: _gap_answered(each, strategy) for strategy in STRATEGIES}
        figure = _figure(found, f"{each.name}: is the gap over {MARGIN}?", "are sure, and right")
        figure.savefig(folder / f"{each.name}_gap.png")
        needed = {strategy: reached(*curve, HALF) for strategy, curve in found.items()}
        worst, best, gap = extremes(each)
        pair = f"{worst} and {best}, {gap:.3f}"
        yield {"dataset": each.name, "question": f"gap over {MARGIN}", "group": pair, **needed}


def _figure(found: dict[str, tuple[Floats, Floats]], title: str, what: str) -> Figure:
    figure = Figure(figsize=(6.4, 4), dpi=110, layout="constrained")
    axes = figure.add_subplot()
    for (strategy, (labels, share)), colour in zip(found.items(), COLOURS, strict=False):
        style = "--" if strategy.startswith("random") else "-"
        axes.plot(labels, share, style, color=colour, lw=1.4, label=strategy)
    axes.axhline(SURE, color="black", lw=0.6)
    axes.set(xlabel="labels", ylabel=f"share of replications that {what}", ylim=(0, 1), title=title)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8)
    return figure


def worst_group(options: Results) -> None:
    """How many labels say which group a model treats worst: strategies against random labelling.

    ``python -m papers.active_assessment.tables worst_group`` reads finished runs (``python run.py
    dataset=adult`` and so on), whose first test fold is the pool. Groups are combinations of
    all sensitive attributes with at least 30 rows and 10 positives. Asked are: which group has
    the lowest accuracy, and the lowest true positive rate; and, of the attribute that the run
    protects, do the accuracies of the worst and the best treated group differ by more than
    0.05. For the first two, every label updates the same posteriors, of each group's two kinds
    of prediction, whichever way rows are chosen (papers/active_assessment/assessment.py).
    """
    folder = options.results / "report" / "active"
    folder.mkdir(parents=True, exist_ok=True)
    pools = [pool(dataset, options.results) for dataset in RUNS]
    for each in pools:
        sizes = np.bincount(each.group)
        print(f"\n{each.name}: {len(each.group):,} rows")
        shown = {name: each.rates(rate).round(3) for name, rate in RATES.items()}
        print(pd.DataFrame({"rows": sizes, **shown}, index=list(each.groups)).to_string())
    table = pd.DataFrame(rows(pools, folder))
    table.to_csv(folder / "fairness.csv", index=False)
    print(f"\n{table.round(0).to_string(index=False)}")


if __name__ == "__main__":
    run_main(worst_group)
