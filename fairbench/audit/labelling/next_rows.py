"""The rows to label next: a strategy chooses the group, a fixed random order the row in it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairbench.audit.labelling.questions import QUESTIONS
from fairbench.audit.labelling.session import Session
from fairbench.core.seeds import rng
from fairbench.inference.active.next_rows import next_arm
from fairbench.inference.active.strategies import STRATEGIES

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
