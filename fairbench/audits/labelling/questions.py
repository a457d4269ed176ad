"""The questions that labels can answer, each with what a label teaches and sentences for people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fairbench.audits.labelling.measures import Measure, RateMeasure, measure
from fairbench.audits.labelling.session import Session
from fairbench.audits.labelling.state import ACCURACY
from fairbench.core.errors import UserError
from fairbench.core.formats import probability
from fairbench.core.seeds import rng
from fairbench.inference.active.rewards import (
    Estimation,
    Highest,
    LeastCalibrated,
    LeastKnown,
    Lowest,
    Reward,
    WidestGap,
)
from fairbench.inference.active.strategies import STRATEGIES, next_arm
from fairbench.inference.beta import Beta, Normal
from fairbench.inference.reliability import ranks

Floats = NDArray[np.float64]
DRAWS = 2000


@dataclass(frozen=True, eq=False)
class KnownFigures:
    """What is known of the groups' figures, which steers what is labelled next.

    Attributes
    ----------
    posterior : (A,).
    """

    session: Session
    posterior: Beta | Normal

    @staticmethod
    def of(session: Session) -> KnownFigures:
        """Return what a session knows."""
        left = session.left(session.waiting())
        found = measure(session).arms(left).posterior
        if isinstance(found, Beta):
            return KnownFigures(session, Beta(found.successes[0], found.failures[0]))
        return KnownFigures(session, Normal(found.mean[0], found.variance[0], found.strength[0]))

    @cached_property
    def draws(self) -> Floats:
        """Figures, (T, A)."""
        return self.posterior.quantile(self._uniform)

    def after(self, arm: int, *, right: bool) -> Floats:
        """Return figures after one label of an arm that raises its own, or that lowers it.

        They are drawn from the same uniforms: only that arm's change, and slightly.
        """
        drawn = self.draws.copy()
        drawn[:, arm] = self.one_more(arm, right=right).quantile(self._uniform[:, arm])
        return drawn

    def one_more(self, arm: int, *, right: bool) -> Beta | Normal:
        """Return the posterior of an arm after one label that raises it, or that lowers it."""
        if isinstance(self.posterior, Beta):
            won, lost = self.posterior.successes[arm], self.posterior.failures[arm]
            return Beta(won + right, lost + (not right))
        mean, strength = self.posterior.mean[arm], self.posterior.strength[arm]
        spread = self.posterior.variance[arm] * strength
        moved = np.sqrt(spread) / (strength + 1) * (1 if right else -1)
        return Normal.of(np.asarray(mean + moved), spread, np.asarray(strength + 1))

    @cached_property
    def _uniform(self) -> Floats:
        generator = rng(self.session.state.options.seed, "what a label would settle")
        return generator.random((DRAWS, len(self.session.names)))


DEFAULT_QUESTION = "worst"


class Question(Protocol):
    """A question, and how labels answer it."""

    def asks(self, about: Measure) -> str:
        """Return the question as a sentence."""

    def reward(self, session: Session) -> Reward:
        """Return the expected reward of a label in each group.

        Raises
        ------
        UserError : this cannot be asked of this table, or of this metric.
        """

    def now(self, known: KnownFigures) -> str:
        """Say what is known so far."""

    def why(self, known: KnownFigures, arm: int) -> str:
        """Say what a label of this group would do."""


def lowest_is_worst(about: Measure) -> bool:
    """Say whether the worst group is that of the lowest figure, rather than of the highest.

    Raises
    ------
    UserError : neither is worse.
    """
    if about.metric.better not in ("higher", "lower"):
        raise UserError(
            f"question=worst needs a metric of which more is better or worse, and "
            f"{about.metric.name} is neither: ask question=gap or question=each"
        )
    return about.metric.better == "higher"


@dataclass(frozen=True)
class Worst:
    """The question in which group a metric is worst."""

    def asks(self, about: Measure) -> str:
        """Return the question as a sentence."""
        if about.metric.name == ACCURACY:
            return "In which group are predictions least often right?"
        return f"In which group is the {about.metric.label} worst?"

    def reward(self, session: Session) -> Reward:
        """Return the figure, or its negative."""
        return Lowest() if lowest_is_worst(measure(session)) else Highest()

    def now(self, known: KnownFigures) -> str:
        """Name the group that most probably is."""
        return _most_probable(known, self._first(known, known.draws))

    def why(self, known: KnownFigures, arm: int) -> str:
        """Tell the probability that it is this one, now and after either answer."""
        after = (self._first(known, known.after(arm, right=right))[arm] for right in (True, False))
        return _turns(known, "P(worst)", self._first(known, known.draws)[arm], *after)

    def _first(self, known: KnownFigures, draws: Floats) -> Floats:
        return ranks(draws, largest=not lowest_is_worst(measure(known.session))).first


@dataclass(frozen=True)
class GapSize:
    """The question whether the two groups that are furthest apart really differ.

    As in the report, a gap is large where one group is surely ahead of another: that some two of
    many groups differ is likely of any that are little known.
    """

    def asks(self, about: Measure) -> str:
        """Return the question as a sentence."""
        return f"Does the {about.metric.label} of any two groups differ by more than epsilon?"

    def reward(self, session: Session) -> Reward:
        """Return the reward of comparing the two."""
        if isinstance(measure(session), RateMeasure):
            return WidestGap(session.state.options.epsilon)
        return LeastKnown(np.ones(len(session.names)), furthest=True)

    def now(self, known: KnownFigures) -> str:
        """Name the two, and the probabilities that they differ and that no two do."""
        epsilon, names = known.session.state.options.epsilon, known.session.names
        low, high = _furthest_apart(known.draws, epsilon)
        beyond = float((known.draws[:, high] - known.draws[:, low] > epsilon).mean())
        none = float((np.ptp(known.draws, axis=1) < epsilon).mean())
        return (
            f"{names[low]} is behind {names[high]} by more than {epsilon:g} with "
            f"probability {probability(beyond)}, and no two differ by that much with "
            f"{probability(none)}"
        )

    def why(self, known: KnownFigures, arm: int) -> str:
        """Tell the probability that the two differ, now and after either answer."""
        epsilon = known.session.state.options.epsilon
        low, high = _furthest_apart(known.draws, epsilon)
        now, right, wrong = (
            float((draws[:, high] - draws[:, low] > epsilon).mean())
            for draws in (known.draws, *(known.after(arm, right=right) for right in (True, False)))
        )
        return _turns(known, "P(gap)", now, right, wrong)


def _furthest_apart(rates: Floats, epsilon: float) -> tuple[int, int]:
    """Return the groups of which the second is most probably above by more than epsilon.

    Parameters
    ----------
    rates : (T, A) draws.
    """
    beyond = np.stack([(rates - rate[:, None] > epsilon).mean(axis=0) for rate in rates.T])
    # Where several pairs are as certain, the one furthest apart.
    mean = rates.mean(axis=0)
    certain = beyond + 1e-6 * (mean[None, :] - mean[:, None])
    low, high = (int(place) for place in np.unravel_index(int(certain.argmax()), certain.shape))
    return low, high


@dataclass(frozen=True)
class Each:
    """The question how large a metric is in every group."""

    def asks(self, about: Measure) -> str:
        """Return the question as a sentence."""
        if about.metric.name == ACCURACY:
            return "How often are predictions right in each group?"
        return f"What is the {about.metric.label} of each group?"

    def reward(self, session: Session) -> Reward:
        """Return the fall in variance, weighted by the group's share of rows."""
        share = session.sizes / session.sizes.sum()
        rate = isinstance(measure(session), RateMeasure)
        return Estimation(share) if rate else LeastKnown(share)

    def now(self, known: KnownFigures) -> str:
        """Name the group that is known least."""
        lower, upper = known.posterior.interval()
        widest = int((upper - lower).argmax())
        half = (upper - lower)[widest] / 2
        return f"known least of {known.session.names[widest]}, where the interval is ± {half:.3f}"

    def why(self, known: KnownFigures, arm: int) -> str:
        """Tell the width of the interval, now and after either answer."""
        lower, upper = known.posterior.interval()
        ends = (known.one_more(arm, right=right).interval() for right in (True, False))
        after = (float(high - low) / 2 for low, high in ends)
        return _turns(known, "±", float(upper[arm] - lower[arm]) / 2, *after)


@dataclass(frozen=True)
class CalibrationError:
    """The question in which group scores are furthest from the truth."""

    def asks(self, about: Measure) -> str:
        """Return the question as a sentence."""
        if about.metric.name == ACCURACY:
            return "In which group are scores furthest from how often predictions are right?"
        return f"In which group is the {about.metric.label} furthest from what scores foretell?"

    def reward(self, session: Session) -> Reward:
        """Return the distance of a rate and of what the scores say it is."""
        return LeastCalibrated(foretold(measure(session)))

    def now(self, known: KnownFigures) -> str:
        """Name the group that most probably is."""
        return _most_probable(known, self._furthest(known, known.draws))

    def why(self, known: KnownFigures, arm: int) -> str:
        """Tell the probability that it is this one, now and after either answer."""
        now, right, wrong = (
            self._furthest(known, draws)[arm]
            for draws in (known.draws, *(known.after(arm, right=right) for right in (True, False)))
        )
        return _turns(known, "P(furthest)", now, right, wrong)

    def _furthest(self, known: KnownFigures, draws: Floats) -> Floats:
        return ranks(np.abs(draws - foretold(measure(known.session)))).first


def foretold(about: Measure) -> Floats:
    """Return what scores say that a rate is in each group, (A,).

    Raises
    ------
    UserError : there are no scores, or the metric is no rate.
    """
    if not isinstance(about, RateMeasure):
        raise UserError(
            f"question=calibration compares a rate with the scores, and {about.metric.name} is "
            "none: ask about a rate, or question=worst, gap or each"
        )
    if about.session.table.score is None:
        raise UserError("question=calibration needs scores: name their column, score=...")
    return about.expected


QUESTIONS: Mapping[str, Question] = MappingProxyType(
    {"worst": Worst(), "gap": GapSize(), "each": Each(), "calibration": CalibrationError()}
)


def _most_probable(known: KnownFigures, chances: Floats) -> str:
    best = int(chances.argmax())
    return f"{known.session.names[best]}, with probability {probability(chances[best])}"


def _turns(known: KnownFigures, name: str, now: float, up: float, down: float) -> str:
    metric = known.session.state.metric
    ups, downs = ("right", "wrong") if metric == ACCURACY else ("up", "down")
    return f"{name} {now:.3f}; {up:.3f} if {ups}, {down:.3f} if {downs}"


DEFAULT_STRATEGY = "top_two"
# Multiple play is a strategy of studies, where several arms are labelled at once.
ONE_AT_A_TIME = tuple(name for name in STRATEGIES if name != "multiple_play")
# These do not look at labels.
_BLIND = ("random", "random_arm")
# Every group gets at least this much of an equal share of the labels. A strategy drops groups that
# looked well early on, by luck as it may be, and their luck is never corrected: with four groups
# and 1000 labels, 92 % of 95 % intervals held, and 84 % of everyone's. With this share 95 % do, and
# the least accurate group is found as often.
LEAST_SHARE = 0.5


@dataclass(frozen=True, eq=False)
class Suggested:
    """Rows to label, by position, and the group of each."""

    rows: NDArray[np.int64]
    arms: NDArray[np.int64]


def next_rows(session: Session, labels: int, part: tuple[int, int] = (1, 1)) -> Suggested:
    """Return up to so many rows; the same ones for the same state.

    Parameters
    ----------
    part : (k, m): rows of the k-th of m people who label at the same time.
    """
    waiting = session.waiting(part)
    arms = _next_arms(session, waiting, labels, part)
    codes = session.codes[waiting]
    # The k-th time that an arm is chosen, it gives the k-th of its rows.
    turn = [int((arms[:i] == arm).sum()) for i, arm in enumerate(arms)]
    rows = [waiting[np.flatnonzero(codes == arm)[k]] for arm, k in zip(arms, turn, strict=True)]
    return Suggested(np.array(rows, np.int64), arms)


def _next_arms(
    session: Session, waiting: NDArray[np.int64], labels: int, part: tuple[int, int]
) -> NDArray[np.int64]:
    """Choose groups one after the other, as if the labels before were not known yet."""
    state = session.state
    generator = rng(state.options.seed, "next", len(state.answers), *part)
    known = measure(session).arms(session.left(waiting))
    reward = QUESTIONS[state.question].reward(session)
    given = session.answered.copy()
    arms: list[int] = []
    for _ in range(min(labels, len(waiting))):
        behind = np.where(known.unlabelled[0] > 0, given, np.iinfo(np.int64).max)
        fewest = int(behind.argmin())
        if state.strategy not in _BLIND and behind[fewest] < LEAST_SHARE * given.mean():
            arm = fewest
        else:
            arm = next_arm(known, reward, state.strategy, generator)
        known.unlabelled[0, arm] -= 1
        given[arm] += 1
        arms.append(arm)
    return np.array(arms, np.int64)
