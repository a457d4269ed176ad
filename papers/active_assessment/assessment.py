"""Choosing which row to label next: pools, the tables' methods, and how far an assessment has come.

Arms count labels, and `assess` labels their rows in turn. A pool has rows in arms (`ArmPool` and
the like), a `Method` is a prior and how the next row is chosen, and `curves` is a learning curve
over replications. Begin with `curves`.
"""

from __future__ import annotations

import re
from abc import ABC
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from fairbench.components.papers.black_box import estimation
from fairbench.core.arrays import Codes, Floats, rng
from fairbench.core.files import atomic
from fairbench.data.columns import MulticlassScores
from fairbench.inference.posterior import (
    Beta,
    ReliabilityDiagram,
    centred,
    reliability_diagram,
    uniform,
)
from fairbench_label.active import BetaArms, ComparisonReward, Lowest, choose

# Arms of several outcomes or bins, rates of arms, and queues whose rows are labelled in turn.
#
# What a person's audit asks is in `fairbench_label.active`; here is what studies of it need
# beside that, batched over R replications in the same way.


@dataclass(frozen=True, eq=False)
class DirichletArms:
    """Arms whose rows have one of C outcomes (the true class, say): Dirichlet posteriors.

    Attributes
    ----------
    alpha : (R, A, C) prior pseudo-counts plus the outcomes seen.
    unlabelled : (R, A) rows whose outcome is not known.
    """

    alpha: Floats
    unlabelled: Codes

    @classmethod
    def of(cls, prior: Any, sizes: Any, *, replications: int = 1) -> Self:
        """Return unlabelled arms, from (A, C) positive pseudo-counts and (A,) sizes."""
        rows = np.tile(np.asarray(sizes, np.int64), (replications, 1))
        return cls(np.tile(np.asarray(prior, float), (replications, 1, 1)), rows)

    def record(self, rows: Codes, arms: Codes, outcome: Codes) -> None:
        """Count, in place, one label for each (replication, arm); no pair may come twice."""
        self.alpha[rows, arms, outcome] += 1
        self.unlabelled[rows, arms] -= 1

    def draw(self, generator: np.random.Generator) -> Floats:
        """Draw every arm's outcome probabilities once, (R, A, C)."""
        gammas = generator.standard_gamma(self.alpha)
        return gammas / gammas.sum(axis=-1, keepdims=True)


class BinnedArms(DirichletArms):
    """Arms whose rows lie in B bins of the score, of which a label shows the bin's accuracy.

    An arm is chosen, not a bin: which bin its next row lies in is up to the row. Outcomes are twice
    the bin, and 1 more for a right prediction.
    """

    @property
    def posterior(self) -> Beta:
        """Return the posteriors of the bins' accuracies, (R, A, B)."""
        return Beta(self.alpha[..., 1::2], self.alpha[..., ::2])

    def draw(self, generator: np.random.Generator) -> Floats:
        """Draw every bin's accuracy once, (R, A, B)."""
        return self.posterior.draws(1, generator)[0]


Rate = Callable[[Floats, Floats, Floats], Floats]


def accuracy(share: Floats, negative: Floats, positive: Floats) -> Floats:
    """Return the accuracy, from pi, p0 and p1."""
    return share * positive + (1 - share) * (1 - negative)


def true_positive_rate(share: Floats, negative: Floats, positive: Floats) -> Floats:
    """Return the true positive rate, from pi, p0 and p1; 0 where there is no positive."""
    found, missed = share * positive, (1 - share) * negative
    return found / np.maximum(found + missed, np.finfo(float).tiny)


@dataclass(frozen=True, eq=False)
class Queues:
    """The rows of each arm in the order in which they would be labelled, for R replications.

    Attributes
    ----------
    outcome : (R, A, N) what each label turns out to be; anything after an arm's last row.
    sizes : (A,) or (R, A) rows of each arm.
    """

    outcome: NDArray[np.uint8]
    sizes: Codes

    @staticmethod
    def of(
        outcome: NDArray[Any],
        arm: Codes,
        generator: np.random.Generator,
        *,
        replications: int,
        arms: int = 0,
    ) -> Queues:
        """Shuffle a pool: (n,) outcomes, codes from 0, of rows in (n,) arms 0 .. A - 1.

        Of `arms` arms, where the last of them may have no rows.
        """
        sizes = np.bincount(arm, minlength=arms)
        queues = np.zeros((replications, len(sizes), sizes.max(initial=0)), np.uint8)
        for g, size in enumerate(sizes):
            members = np.asarray(outcome, np.uint8)[arm == g]
            tiled = np.broadcast_to(members, (replications, size))
            queues[:, g, :size] = generator.permuted(tiled, axis=1)
        return Queues(queues, sizes)

    def label(self, arms: Any, chosen: Codes) -> None:
        """Give each replication's (R, m) chosen arms, all different, one label; skip -1."""
        replications, columns = np.nonzero(chosen >= 0)
        arm = chosen[replications, columns]
        sizes = np.broadcast_to(self.sizes, arms.unlabelled.shape)
        next_row = sizes[replications, arm] - arms.unlabelled[replications, arm]
        outcome = self.outcome[replications, arm, next_row]
        arms.record(replications, arm, outcome.astype(np.int64))


def assess(
    queues: Queues,
    arms: Any,
    choose: Callable[[Any], Codes],
    *,
    observe: Callable[[Any], Any],
    rounds: int,
    every: int = 1,
) -> list[Any]:
    """Label the chosen arms' next rows, round by round, and return what was observed.

    Parameters
    ----------
    queues : the rows of each arm, in the order in which they are labelled.
    arms : the arms, which are changed in place.
    choose : returns the (R, m) arms to label next.
    observe : called before the first label, after every `every`-th round, and after the last.
    rounds : the number of rounds.
    every : how many rounds there are between two observations.

    Returns
    -------
    What `observe` returned, 1 + ceil(rounds / every) times.
    """
    seen = [observe(arms)]
    for i in range(rounds):
        queues.label(arms, choose(arms))
        if (i + 1) % every == 0 or i + 1 == rounds:
            seen.append(observe(arms))
    return seen


# Pools as a strategy sees them: rows in arms, what a label shows of each, and the arms' priors.

BINS = 10
_NO_PRIOR = 1e-6


@dataclass(frozen=True, eq=False)
class Pool(ABC):
    """(n,) rows: the arm each is in, and the code of what its label shows."""

    name: str
    arm: Codes
    outcome: Codes

    @cached_property
    def sizes(self) -> Codes:
        """Return the rows of each arm, (A,)."""
        return np.bincount(self.arm)

    @cached_property
    def share(self) -> Floats:
        """Return the share of the rows in each arm, (A,)."""
        return self.sizes / len(self.arm)

    def queues(self, replications: int) -> Queues:
        """Return the orders of labelling, the same for every strategy."""
        generator = rng(0, "active", self.name)
        return Queues.of(self.outcome, self.arm, generator, replications=replications)

    def arms(self, prior: str, strength: float, replications: int) -> Any:
        """Return the arms before any label, under a prior worth `strength` labels."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class ArmPool(Pool):
    """Rows whose label shows whether the prediction is right; (n,) scores."""

    score: Floats

    @cached_property
    def accuracy(self) -> Floats:
        """Return each arm's accuracy on the whole pool, (A,)."""
        return np.bincount(self.arm, weights=self.outcome) / self.sizes

    @cached_property
    def confidence(self) -> Floats:
        """Return each arm's mean score, (A,)."""
        return np.bincount(self.arm, weights=self.score) / self.sizes

    def prior(self, prior: str, strength: float) -> Beta:
        """Return the prior of each arm: "none", "uniform" or "scores".

        "none" has the weight of a millionth label, which is what the paper's code gives its
        "uniform prior" unless it compares two groups.
        """
        if prior == "scores":
            return centred(self.confidence, strength)
        return uniform(len(self.sizes), _NO_PRIOR if prior == "none" else strength)

    def arms(self, prior: str, strength: float, replications: int) -> BetaArms:
        """Return the arms before any label."""
        return BetaArms.of(self.prior(prior, strength), self.sizes, replications=replications)


@dataclass(frozen=True, eq=False)
class BinnedPool(Pool):
    """Rows in ten bins of the score, whose label shows whether the prediction is right."""

    score: Floats

    def diagram(self, strength: float, *, midpoints: bool, labelled: bool) -> ReliabilityDiagram:
        """Return every arm's reliability diagram, of all labels or of none."""
        correct: Floats = np.where(labelled, self.outcome % 2, np.nan)
        rows = self.score, correct, self.arm
        return reliability_diagram(
            *rows, n_groups=len(self.sizes), strength=strength, midpoints=midpoints
        )

    @cached_property
    def bins(self) -> ReliabilityDiagram:
        """Return the shares of the bins in each arm, (A, B), and their mean scores."""
        return self.diagram(2.0, midpoints=False, labelled=False)

    def arms(self, prior: str, strength: float, replications: int) -> BinnedArms:
        """Return the arms before any label: prior means at "scores" or at bins' "midpoints"."""
        means = self.diagram(strength, midpoints=prior == "midpoints", labelled=False).accuracy
        pairs = np.stack([means.failures, means.successes], axis=-1)
        alpha = pairs.reshape(len(pairs), -1)
        return BinnedArms.of(alpha, self.sizes, replications=replications)


@dataclass(frozen=True, eq=False)
class OutcomePool(Pool):
    """Rows whose label shows one of C outcomes.

    Attributes
    ----------
    priors : name -> (A, C) probabilities of the outcomes.
    """

    priors: Mapping[str, Floats] = field(default_factory=dict)

    def arms(self, prior: str, strength: float, replications: int) -> DirichletArms:
        """Return the arms before any label."""
        alpha = strength * self.priors[prior]
        return DirichletArms.of(alpha, self.sizes, replications=replications)


def by_class(dataset: str) -> ArmPool:
    """Return a pool whose arms are the predicted classes."""
    return _pool(dataset, "class", estimation.released_pool(dataset).prediction)


def by_score(dataset: str) -> ArmPool:
    """Return a pool whose arms are ten bins of the score, of equal size."""
    order = np.argsort(estimation.released_pool(dataset).confidence, kind="stable")
    rank = np.argsort(order, kind="stable")
    return _pool(dataset, "score", rank * BINS // len(rank))


def by_superclass(dataset: str) -> ArmPool:
    """Return CIFAR-100's pool by superclass of the predicted class; others by class."""
    if dataset != "cifar100":
        return by_class(dataset)
    scores = estimation.released_pool(dataset)
    return _pool(dataset, "superclass", estimation.superclasses(scores.classes)[scores.prediction])


def _pool(dataset: str, by: str, arm: Codes) -> ArmPool:
    scores = estimation.released_pool(dataset)
    right = scores.correct.astype(np.int64)
    return ArmPool(f"{dataset} by {by}", arm, right, scores.confidence)


def mean_scores(scores: MulticlassScores) -> Floats:
    """Return the mean probability of every class among the rows of each predicted class, (C, C)."""
    classes = len(scores.classes)
    total = np.zeros((classes, classes))
    np.add.at(total, scores.prediction, scores.distribution())
    return total / np.bincount(scores.prediction, minlength=classes)[:, None]


# The tables' methods: a prior, and how the next row is chosen.

STRENGTH = 2.0
CODE = "released code"  # a cause of mapping.yaml, which says what the code does differently
_LEVEL = 0.025  # of an accuracy, whose negative is the reward
_ONE_AT_A_TIME = ("random", "top_two")


@dataclass(frozen=True)
class Method:
    """A prior of the pool, how many labels it is worth, and a strategy."""

    prior: str
    strategy: str
    strength: float = STRENGTH

    @property
    def name(self) -> str:
        """Return what a table calls it."""
        worth = "" if self.strength == STRENGTH else f" worth {self.strength:g}"
        return f"{self.strategy}, prior: {self.prior}{worth}"


# The methods of the tables, as the text defines them, and their published names.
TEXT = {
    Method("uniform", "random"): "uniform_prior",
    Method("scores", "random"): "informative_prior",
    Method("scores", "thompson"): "informative_prior_thompson",
}
NO_PRIOR = Method("none", "random")  # what the released code runs as the uniform prior


def as_coded(method: Method) -> Method:
    """Return what the released code runs in a method's place, outside comparisons."""
    return NO_PRIOR if method.prior == "uniform" else method


def lowest_quantiles(
    arms: BetaArms, generator: np.random.Generator, *, plays: int
) -> Callable[[BetaArms], Codes]:
    """Return Bayesian UCB for the least accurate arms: those of the lowest 2.5 % quantiles.

    It is the 97.5 % quantile of the reward, in closed form; computed anew where a label came.
    """
    quantile, counted = arms.posterior.quantile(_LEVEL), arms.posterior.strength.copy()

    def chosen(held: BetaArms) -> Codes:
        strength = held.posterior.strength
        seen = np.nonzero(strength != counted)
        quantile[seen], counted[seen] = held.posterior.take(seen).quantile(_LEVEL), strength[seen]
        values = quantile + 1e-12 * generator.random(quantile.shape)  # ties at random
        values[held.unlabelled == 0] = np.inf
        few = min(plays, values.shape[1])
        arm: Codes = np.argsort(values, axis=1)[:, :few]
        return np.where(np.isfinite(np.take_along_axis(values, arm, axis=1)), arm, -1)

    return chosen


# How far an assessment has come: one number for each replication.

# From a pool and its arms, one number for each replication.
Measure = Callable[[Any, Any], Floats]
_PAPERS_BINS = 20


def accuracy_error(pool: ArmPool, arms: BetaArms) -> Floats:
    """Return the root mean squared error of the arms' accuracies, weighted by rows, in points."""
    square = (arms.posterior.mean - pool.accuracy) ** 2
    return 100 * np.sqrt(square @ pool.share)


def published_ece_error(pool: ArmPool, arms: BetaArms) -> Floats:
    """Return the paper's error of the ECE in percent of it.

    The distance of the posterior means in ten bins of equal size, against the ECE of the whole
    pool in twenty bins of equal width.
    """
    estimate = np.abs(arms.posterior.mean - pool.confidence) @ pool.share
    cell = np.digitize(pool.score, np.linspace(0, 1, _PAPERS_BINS + 1)[1:-1])
    gap = np.bincount(cell, weights=pool.outcome - pool.score, minlength=_PAPERS_BINS)
    return _percent(estimate, float(np.abs(gap).sum() / len(cell)))


def ece_error(pool: ArmPool, arms: BetaArms) -> Floats:
    """Return the text's error of the ECE in percent of it: all labels are in the same ten bins."""
    estimate = np.abs(arms.posterior.mean - pool.confidence) @ pool.share
    return _percent(estimate, float(np.abs(pool.accuracy - pool.confidence) @ pool.share))


def mean_reciprocal_rank(seen: Floats, truth: Floats, m: int) -> Floats:
    """Return the mean reciprocal rank, (R,), of the m arms of the largest (A,) truth.

    It is 1 where they seem to be the highest. An arm's rank is 1 plus the number of other arms, not
    among these m, that seem higher; arms that seem as high count a half.

    Parameters
    ----------
    seen : (R, A) what the arms seem to be.
    """
    extreme = np.argsort(-truth, kind="stable")[:m]
    own, others = seen[:, extreme, None], np.delete(seen, extreme, axis=1)[:, None]
    ranks = 1 + (others > own).sum(axis=-1) + (others == own).sum(axis=-1) / 2
    return (1 / ranks).mean(axis=1)


def _percent(estimate: Floats, truth: float) -> Floats:
    return 100 * np.abs(estimate - truth) / truth


# Learning curves over replications, computed once and kept in results/report/active/curves.

BATCHES, EVERY = 10, 10
GOAL = 0.99
_RESAMPLED = 400


@dataclass(frozen=True)
class Question:
    """What is asked of a pool: a reward for choosing, measures for judging.

    Attributes
    ----------
    reward : from the pool and the arms as they are.
    labels : how many are bought, at most the whole pool.
    plays : how many arms a round labels, for the strategies that can.
    every : after how many labels the measures are taken.
    """

    name: str
    reward: Callable[[Any, Any], Any]
    measures: Mapping[str, Measure]
    labels: int = 10**9
    plays: int = 1
    every: int = EVERY

    def first(self, labels: int = 60) -> Question:
        """Return the question of its first labels alone."""
        few = min(self.labels, labels)
        return replace(self, name=f"{self.name}, first {labels}", labels=few)


@dataclass(frozen=True, eq=False)
class Curves:
    """Means of each measure over batches of replications.

    Attributes
    ----------
    labels : (T,) labels bought.
    batches : measure -> (T, B).
    sd : measure -> (T,) standard deviation over replications.
    """

    labels: Floats
    batches: Mapping[str, Floats]
    sd: Mapping[str, Floats] = field(default_factory=dict)

    def mean(self, measure: str) -> Floats:
        """Return the mean over replications, (T,)."""
        return self.batches[measure].mean(axis=1)

    def at(self, measure: str, labels: float) -> tuple[float, float]:
        """Return mean and sd after that many labels, or the next number that was looked at.

        Of curves that end before, the last.
        """
        place = min(int(np.searchsorted(self.labels, labels)), len(self.labels) - 1)
        return float(self.mean(measure)[place]), float(self.sd[measure][place])

    def reached(self, measure: str, *, skipped: int = 0) -> tuple[float, float]:
        """Return the first number of labels at which the mean passes the goal, and its error.

        The goal is 0.99, or 99 % of the highest mean where that is less. The error is that of the
        whole mean's passage, with batches drawn anew: a batch's own passes earlier, and scatters
        more than by the root of their number.

        Parameters
        ----------
        skipped : places of the curve that are not looked at.
        """
        batches = self.batches[measure]
        whole = self._first(batches.mean(axis=1), skipped)
        generator, count = rng(0, "active", "first passage"), batches.shape[1]
        resampled = [
            self._first(batches[:, generator.integers(count, size=count)].mean(axis=1), skipped)
            for _ in range(_RESAMPLED)
        ]
        return whole, float(np.std(resampled))

    def reached_by_batch(self, measure: str) -> Floats:
        """Return the first number of labels at which each batch's own mean passes the goal, (B,).

        A mean of few runs is noisier, and its first passage earlier: that of a batch is what a
        study of a tenth of the runs would have printed.
        """
        return np.array([self._first(batch, 0) for batch in self.batches[measure].T])

    def _first(self, curve: Floats, skipped: int) -> float:
        skipped = min(skipped, len(curve) - 1)
        passed = curve[skipped:] > min(GOAL, GOAL * curve.max())
        return float(self.labels[skipped:][np.argmax(passed)])


def _kept(folder: Path, parts: Sequence[str], compute: Callable[[], Any]) -> dict[str, Any]:
    """Return arrays from their file, which is computed where it is not there."""
    path = folder / "curves" / (re.sub(r"[^\w.]+", "_", "-".join(parts)) + ".npz")
    if not path.exists():
        arrays = compute()
        with atomic(path) as file:
            np.savez(file, **arrays)
    with np.load(path, allow_pickle=False) as stored:
        return dict(stored)


def curves(
    pool: Pool, question: Question, method: Method, folder: Path, *, replications: int
) -> Curves:
    """Return the curves of a method, from their file where it is there."""
    parts = pool.name, question.name, method.name, str(replications)
    stored = _kept(folder, parts, lambda: _computed_curves(pool, question, method, replications))
    batches = {name: stored[name] for name in question.measures}
    return Curves(stored["labels"], batches, {name: stored[f"sd of {name}"] for name in batches})


def _computed_curves(
    pool: Pool, question: Question, method: Method, replications: int
) -> dict[str, Any]:
    """Label all replications at once, and look every so many labels, or every round of more."""
    generator, strategy = rng(0, "active", pool.name, question.name, method.name), method.strategy
    plays = 1 if strategy in _ONE_AT_A_TIME else question.plays
    arms = pool.arms(method.prior, method.strength, replications)
    first, is_random = question.reward(pool, arms), strategy.startswith("random")

    def chosen(held: Any) -> Codes:
        reward = first if is_random else question.reward(pool, held)
        return choose(strategy, held, reward, generator, plays=plays)

    chooser: Callable[[Any], Codes] = chosen
    if isinstance(first, Lowest) and strategy == "bayesian_ucb_quantile":
        chooser = lowest_quantiles(arms, generator, plays=plays)
    rows = len(pool.arm)
    labels = min(question.labels, rows)

    def observe(held: Any) -> tuple[float, list[Floats], list[float]]:
        values = [measure(pool, held) for measure in question.measures.values()]
        bought = rows - held.unlabelled.sum(axis=1).mean()
        means = [v.reshape(min(BATCHES, replications), -1).mean(axis=1) for v in values]
        return bought, means, [v.std(ddof=1) for v in values]

    rounds, every = -(-labels // plays), max(question.every // plays, 1)
    if plays > 1 and labels == rows:
        rounds = int(rounds + pool.sizes.max())  # the last rounds find fewer arms with rows
    queues = pool.queues(replications)
    seen = assess(queues, arms, chooser, observe=observe, rounds=rounds, every=every)
    bought, values, sd = (np.array(each) for each in zip(*seen, strict=True))
    arrays = {"labels": bought}
    for i, name in enumerate(question.measures):
        arrays |= {name: values[:, i], f"sd of {name}": sd[:, i]}
    return arrays


# Which of two arms is the more accurate: labels until the answer is as sure as all labels make it.
#
# Table 3.7: every pair of arms. As the text has it, the most probable region and its mass are
# looked at after every ten labels, and are to be those of all labels, the mass within 5 %. As the
# released code has it, they are looked at after every label, and the region is that of the
# accuracies' own difference.

MARGIN, TOLERANCE = 0.05, 0.05


def labels_to_compare(
    pool: ArmPool, method: Method, folder: Path, *, passes: int, coded: bool = False
) -> Codes:
    """Return the labels of every pair, (passes, pairs), from their file where it is there.

    Parameters
    ----------
    coded : as the released code has it, in place of the text.
    """
    parts = pool.name, "every pair", "code" if coded else "text", method.name, str(passes)
    stored = _kept(folder, parts, lambda: _computed_pairs(pool, method, passes, coded=coded))
    return np.asarray(stored["labels"])


def _computed_pairs(pool: ArmPool, method: Method, passes: int, *, coded: bool) -> dict[str, Codes]:
    comparison, name = ComparisonReward(MARGIN), "code" if coded else "text"
    pairs = np.tile(np.array(list(combinations(range(len(pool.sizes)), 2))), (passes, 1))
    generator = rng(0, "active", pool.name, "every pair", name, method.name)
    outcome = np.take_along_axis(pool.queues(len(pairs)).outcome, pairs[:, :, None], axis=1)
    sizes, prior = pool.sizes[pairs], pool.prior(method.prior, method.strength)
    queues = Queues(outcome, sizes)
    arms = BetaArms.of(prior.take(pairs), sizes, replications=len(pairs))
    # The true region of each pair, and its mass given every label.
    accuracy = pool.accuracy[pairs]
    known = Beta(sizes * (accuracy + 1e-6), sizes * (1 - accuracy + 1e-6))
    masses = comparison.regions(BetaArms(known, np.zeros_like(sizes)))
    region = masses.argmax(axis=1)
    if coded:
        gap = accuracy[:, 0] - accuracy[:, 1]
        region = np.where(gap > comparison.margin, 0, np.where(gap < -comparison.margin, 2, 1))
    goal = masses[np.arange(len(pairs)), region]
    needed = np.full(len(pairs), -1)
    live = np.arange(len(pairs))
    for labels in range(1, int(arms.unlabelled.sum(axis=1).max()) + 1):
        queues.label(arms, choose(method.strategy, arms, comparison, generator))
        # The prior may keep a pair from the goal; it has then cost all its labels.
        done = arms.unlabelled.sum(axis=1) == 0
        if coded or labels % EVERY == 0:
            masses = comparison.regions(arms)
            mass = masses[np.arange(len(live)), region[live]]
            answered = np.abs(mass - goal[live]) < TOLERANCE * goal[live]
            if not coded:
                answered &= masses.argmax(axis=1) == region[live]
            done |= answered
        needed[live[done]] = labels
        live, arms = live[~done], arms.take(np.flatnonzero(~done))
        queues = replace(queues, outcome=queues.outcome[~done], sizes=queues.sizes[~done])
        if len(live) == 0:
            break
    return {"labels": needed.reshape(passes, -1)}


# What a label teaches, as the thesis asks beside what the library's audits do.


@dataclass(frozen=True, eq=False)
class MostCostly:
    """Identification of the arms whose rows cost most.

    Attributes
    ----------
    price : (C,) cost of each outcome.
    """

    price: Floats

    def expected(self, arms: DirichletArms, theta: Floats) -> Floats:
        """Return the expected cost under (R, A, C) outcome probabilities."""
        return (self.price * theta).sum(axis=-1)


@dataclass(frozen=True, eq=False)
class OutcomeEstimation:
    """Estimation of every arm's outcome probabilities: the fall in their summed variance.

    With arms for predicted classes and true classes for outcomes, it estimates a confusion matrix.

    Attributes
    ----------
    share : (A,) share of the pool's rows in each arm, the weight of its squared error.
    """

    share: Floats

    def expected(self, arms: DirichletArms, theta: Floats) -> Floats:
        """Return p (V - sum_j theta_j V(outcome j)) under (R, A, C) outcome probabilities."""
        strength, square = arms.alpha.sum(axis=-1), (arms.alpha**2).sum(axis=-1)
        seen = (theta * arms.alpha).sum(axis=-1)  # the pseudo-count of the next outcome
        now = (1 - square / strength**2) / (strength + 1)
        after = (1 - (square + 2 * seen + 1) / (strength + 1) ** 2) / (strength + 2)
        return self.share * (now - after)


@dataclass(frozen=True, eq=False)
class LowestRate:
    """Identification of the group with the lowest rate.

    Arm 2 g are the rows of group g that are predicted 0, arm 2 g + 1 those that are predicted 1.

    Attributes
    ----------
    share : (G,) share of positive predictions among each group's rows.
    rate : accuracy or true_positive_rate.
    """

    share: Floats
    rate: Rate

    def rates(self, theta: Floats) -> Floats:
        """Return the groups' rates (R, G) under (R, 2 G) shares of label 1 in the arms."""
        return self.rate(self.share, theta[:, 0::2], theta[:, 1::2])

    def expected(self, arms: BetaArms, theta: Floats) -> Floats:
        """Return the negative rate of each arm's group, at the arm that says more about it."""
        return self._at_arms(arms, -self.rates(theta))

    def moments(self, arms: BetaArms) -> tuple[Floats, Floats]:
        """Return the rate at the posterior means, and its standard deviation by the delta method.

        The less telling arm of a group has a mean of minus infinity, which no strategy chooses.
        """
        mean = -self.rates(arms.posterior.mean)
        variance = self._slopes(arms) ** 2 * arms.posterior.variance
        sd = np.sqrt(variance[:, 0::2] + variance[:, 1::2])
        return self._at_arms(arms, mean), np.repeat(sd, 2, axis=1)

    def _at_arms(self, arms: BetaArms, values: Floats) -> Floats:
        """Return the values of groups at the arm of each whose label reduces the variance most."""
        fall = self._slopes(arms) ** 2 * arms.posterior.variance / (arms.posterior.strength + 1)
        fall = np.where(arms.unlabelled > 0, fall, -1.0)
        pairs = fall.reshape(len(fall), -1, 2)
        chosen = pairs.argmax(axis=-1)[..., None] == np.arange(2)
        return np.where(chosen.reshape(fall.shape), np.repeat(values, 2, axis=1), -np.inf)

    def _slopes(self, arms: BetaArms) -> Floats:
        """Return the derivative of each group's rate by its two arms, by central differences."""
        mean, step = arms.posterior.mean, 1e-6
        slopes = np.empty_like(mean)
        for which in (0, 1):
            shift = step * (np.arange(mean.shape[1]) % 2 == which)
            change = self.rates(mean + shift) - self.rates(mean - shift)
            slopes[:, which::2] = change / (2 * step)
        return slopes
