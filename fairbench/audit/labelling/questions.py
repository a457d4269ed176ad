"""The questions that labels can answer, each with what a label teaches and sentences for people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fairbench.audit.gaps import settle
from fairbench.audit.labelling.session import Session
from fairbench.core.errors import UserError
from fairbench.core.formats import probability
from fairbench.core.seeds import rng
from fairbench.inference.active.rewards import (
    Estimation,
    LeastCalibrated,
    Lowest,
    Reward,
    WidestGap,
)
from fairbench.inference.active.strategies import STRATEGIES, next_arm
from fairbench.inference.beta import Beta
from fairbench.inference.reliability import ranks

Floats = NDArray[np.float64]
DRAWS = 2000


@dataclass(frozen=True, eq=False)
class GroupAccuracies:
    """The posterior of the groups' accuracies.

    Attributes
    ----------
    accuracy : (A,).
    """

    session: Session
    accuracy: Beta

    @staticmethod
    def of(session: Session) -> GroupAccuracies:
        """Return what a session knows."""
        posterior = session.accuracy(session.waiting()).posterior
        return GroupAccuracies(session, Beta(posterior.successes[0], posterior.failures[0]))

    @cached_property
    def draws(self) -> Floats:
        """Accuracies, (T, A)."""
        return self.accuracy.quantile(self._uniform)

    def after(self, arm: int, *, right: bool) -> Floats:
        """Return accuracies after one label of an arm that shows its prediction right, or wrong.

        They are drawn from the same uniforms: only that arm's change, and slightly.
        """
        beta = self.one_more(arm, right=right)
        drawn = self.draws.copy()
        drawn[:, arm] = beta.quantile(self._uniform[:, arm])
        return drawn

    def one_more(self, arm: int, *, right: bool) -> Beta:
        """Return the posterior of an arm after one label."""
        won, lost = self.accuracy.successes[arm], self.accuracy.failures[arm]
        return Beta(won + right, lost + (not right))

    @cached_property
    def _uniform(self) -> Floats:
        generator = rng(self.session.state.options.seed, "what a label would settle")
        return generator.random((DRAWS, len(self.session.names)))


DEFAULT_QUESTION = "worst"


class Question(Protocol):
    """A question, and how labels answer it."""

    @property
    def sentence(self) -> str:
        """The question."""

    def reward(self, session: Session) -> Reward:
        """Return the expected reward of a label in each group."""

    def now(self, known: GroupAccuracies) -> str:
        """Say what is known so far."""

    def why(self, known: GroupAccuracies, arm: int) -> str:
        """Say what a label of this group would do."""


@dataclass(frozen=True)
class Worst:
    """The question which group is least accurate."""

    sentence = "In which group are predictions least often right?"

    def reward(self, session: Session) -> Reward:
        """Return the negative of a group's accuracy."""
        return Lowest()

    def now(self, known: GroupAccuracies) -> str:
        """Name the group that most probably is."""
        return _most_probable(known, _least(known.draws))

    def why(self, known: GroupAccuracies, arm: int) -> str:
        """Tell the probability that it is this one, now and after either answer."""
        after = (_least(known.after(arm, right=right))[arm] for right in (True, False))
        return _turns("P(worst)", _least(known.draws)[arm], *after)


@dataclass(frozen=True)
class GapSize:
    """The question whether the two groups that are furthest apart really differ.

    As in the report, a gap is large where one group is surely ahead of another: that some two of
    many groups differ is likely of any that are little known.
    """

    sentence = "Does the accuracy of any two groups differ by more than epsilon?"

    def reward(self, session: Session) -> Reward:
        """Return the reward of comparing the two."""
        return WidestGap(session.state.options.epsilon)

    def now(self, known: GroupAccuracies) -> str:
        """Name the two, and the probabilities that they differ and that no two do."""
        epsilon, names = known.session.state.options.epsilon, known.session.names
        found = settle(known.draws, epsilon)
        return (
            f"{names[found.low]} is behind {names[found.high]} by more than {epsilon:g} with "
            f"probability {probability(found.beyond)}, and no two differ by that much with "
            f"{probability(found.small)}"
        )

    def why(self, known: GroupAccuracies, arm: int) -> str:
        """Tell the probability that the two differ, now and after either answer."""
        epsilon = known.session.state.options.epsilon
        pair = settle(known.draws, epsilon)
        now, right, wrong = (
            float((draws[:, pair.high] - draws[:, pair.low] > epsilon).mean())
            for draws in (known.draws, *(known.after(arm, right=right) for right in (True, False)))
        )
        return _turns("P(gap)", now, right, wrong)


@dataclass(frozen=True)
class Accuracy:
    """The question how accurate predictions are in every group."""

    sentence = "How often are predictions right in each group?"

    def reward(self, session: Session) -> Reward:
        """Return the fall in variance, weighted by the group's share of rows."""
        return Estimation(session.sizes / session.sizes.sum())

    def now(self, known: GroupAccuracies) -> str:
        """Name the group that is known least."""
        lower, upper = known.accuracy.interval()
        widest = int((upper - lower).argmax())
        half = (upper - lower)[widest] / 2
        return f"known least of {known.session.names[widest]}, where the interval is ± {half:.3f}"

    def why(self, known: GroupAccuracies, arm: int) -> str:
        """Tell the width of the interval, now and after either answer."""
        lower, upper = known.accuracy.interval()
        ends = (known.one_more(arm, right=right).interval() for right in (True, False))
        after = (float(high - low) / 2 for low, high in ends)
        return _turns("±", float(upper[arm] - lower[arm]) / 2, *after)


@dataclass(frozen=True)
class CalibrationError:
    """The question in which group scores are furthest from the truth."""

    sentence = "In which group are scores furthest from how often predictions are right?"

    def reward(self, session: Session) -> Reward:
        """Return the distance of mean score and accuracy.

        Raises
        ------
        UserError : there are no scores.
        """
        if session.table.score is None:
            raise UserError("question=calibration needs scores: name their column, score=...")
        return LeastCalibrated(session.confidence)

    def now(self, known: GroupAccuracies) -> str:
        """Name the group that most probably is."""
        return _most_probable(known, self._furthest(known, known.draws))

    def why(self, known: GroupAccuracies, arm: int) -> str:
        """Tell the probability that it is this one, now and after either answer."""
        now, right, wrong = (
            self._furthest(known, draws)[arm]
            for draws in (known.draws, *(known.after(arm, right=right) for right in (True, False)))
        )
        return _turns("P(furthest)", now, right, wrong)

    def _furthest(self, known: GroupAccuracies, accuracy: Floats) -> Floats:
        return ranks(np.abs(accuracy - known.session.confidence)).first


QUESTIONS: Mapping[str, Question] = MappingProxyType(
    {"worst": Worst(), "gap": GapSize(), "accuracy": Accuracy(), "calibration": CalibrationError()}
)


def _least(accuracy: Floats) -> Floats:
    return ranks(accuracy, largest=False).first


def _most_probable(known: GroupAccuracies, chances: Floats) -> str:
    best = int(chances.argmax())
    return f"{known.session.names[best]}, with probability {probability(chances[best])}"


def _turns(name: str, now: float, right: float, wrong: float) -> str:
    return f"{name} {now:.3f}; {right:.3f} if right, {wrong:.3f} if wrong"


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
    known, reward = session.accuracy(waiting), QUESTIONS[state.question].reward(session)
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
