"""What labels are to answer: the reward of a label, and what is known so far, as sentences."""

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
from fairbench.inference.active.rewards import Estimation, LeastCalibrated, Lowest, Reward
from fairbench.inference.active.widest_gap import WidestGap
from fairbench.inference.beta import Beta
from fairbench.inference.extremes import ranks

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
        """Return what a label of each group is worth."""

    def now(self, known: GroupAccuracies) -> str:
        """Say what is known so far."""

    def why(self, known: GroupAccuracies, arm: int) -> str:
        """Say what a label of this group would do."""


@dataclass(frozen=True)
class Worst:
    """Identification of the least accurate group."""

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
    """Comparison of the groups that are furthest apart.

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
    """Estimation of every group's accuracy."""

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
    """Identification of the group whose scores are furthest off."""

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
