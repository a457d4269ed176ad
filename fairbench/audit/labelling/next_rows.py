"""The rows to label next: a strategy chooses the group, a fixed random order the row in it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairbench.assessment.active.next_rows import next_arms
from fairbench.assessment.active.strategies import STRATEGIES
from fairbench.audit.labelling.questions import QUESTIONS
from fairbench.audit.labelling.session import Session
from fairbench.seeds import rng

DEFAULT_STRATEGY = "top_two"
# Multiple play is a strategy of studies, where several arms are labelled at once.
ONE_AT_A_TIME = tuple(name for name in STRATEGIES if name != "multiple_play")


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
    state = session.state
    waiting = session.waiting(part)
    generator = rng(state.options.seed, "next", len(state.answers), *part)
    arms = next_arms(
        session.accuracy(waiting),
        QUESTIONS[state.question].reward(session),
        state.strategy,
        generator,
        labels=labels,
    )
    codes = session.codes[waiting]
    # The k-th time that an arm is chosen, it gives the k-th of its rows.
    turn = [int((arms[:i] == arm).sum()) for i, arm in enumerate(arms)]
    rows = [waiting[np.flatnonzero(codes == arm)[k]] for arm, k in zip(arms, turn, strict=True)]
    return Suggested(np.array(rows, np.int64), arms)
