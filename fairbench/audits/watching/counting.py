"""What is watched, and its sums: of every group, row after row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from fairbench.audits.gaps import NEEDS_NO_LABELS, RATE_OF
from fairbench.audits.watching.state import Milestone, WatchState
from fairbench.audits.watching.stream import WatchedRows
from fairbench.core.arrays import Floats
from fairbench.data.periods import steps
from fairbench.inference.sequential.gaps import Pair
from fairbench.inference.sequential.means import Sums

FALSE_ALARMS = 0.05  # the share of watches that may ever give a false alarm
OF_SCORES = 0.2  # the part of it that is left to scores, where they are watched

# A group's sums: labelled rows as TN, FP, FN, TP; all rows by decision; of labels less scores, by
# decision, how many, their sum and that of their squares.
WIDTH = 12
_DECISIONS = 4  # position of the first sum of decisions
_RESIDUALS = 6  # position of the first sum of residuals
_RESIDUAL_PARTS = {"negative": np.eye(WIDTH)[:, 6:9], "positive": np.eye(WIDTH)[:, 9:]}
BLOCK = 500  # rows after which at the latest counting begins anew, too


@dataclass(frozen=True, eq=False)
class Quantity:
    """What is watched: a gap between the rates of two groups, or how far a group's scores are off.

    Attributes
    ----------
    name : what it is called, in the state too.
    groups : the position of one group; for a gap, those of two, of which the gap is the second's
        rate less the first's.
    parts : (WIDTH, K) the matrix that takes a group's sums to the K numbers that are needed: the
        rows and the successes of a rate, or how many residuals there are, their sum and that of
        their squares.
    risk : the probability with which any alarm about it may ever be false.
    metric : the metric of a gap; empty for scores.
    """

    name: str
    attribute: str
    groups: Sequence[int]
    parts: Floats
    risk: float
    metric: str = ""

    def of(self, sums: Floats) -> Floats:
        """Return the K numbers (groups, K, ...) that it needs of sums (..., G, WIDTH)."""
        numbers: Floats = np.moveaxis(sums[..., self.groups, :] @ self.parts, (-2, -1), (0, 1))
        return numbers

    def share(self, sums: Floats) -> Floats:
        """Return the first group's share of the groups' rows; about even where there are none."""
        sizes = self.of(sums)[:, 0]
        share: Floats = (sizes[0] + 1) / (sizes.sum(axis=0) + len(sizes))
        return share

    def pair(self, sums: Floats, share: ArrayLike) -> Pair:
        """Return the counts of both groups of a gap, and the share that the first is to have."""
        (size, successes), (other_size, other_successes) = self.of(sums)
        return Pair(
            successes, size, other_successes, other_size, np.broadcast_to(share, size.shape)
        )

    def since(self, before: Floats, after: Floats) -> Pair | Sums:
        """Return its counts, or sums, of the rows that came between two marks.

        Parameters
        ----------
        before, after : (..., G, WIDTH) the sums at the earlier and at the later mark.
        """
        added = after - before
        return self.pair(added, self.share(before)) if self.metric else Sums(*self.of(added)[0])


def rate_parts(metric: str) -> Floats:
    """Return the matrix (WIDTH, 2) that takes sums of a group to rows and successes of a rate."""
    parts = np.zeros((WIDTH, 2))
    if metric == NEEDS_NO_LABELS:
        parts[_DECISIONS : _DECISIONS + 2] = [[1, 0], [1, 1]]
    else:
        rate = RATE_OF[metric]
        parts[:_DECISIONS] = np.transpose([rate.denominator, rate.numerator]) > 0
    return parts


def risks(gaps: int, scores: int) -> tuple[float, float]:
    """Return the probability of a false alarm allowed to each gap, and to each group's scores.

    Parameters
    ----------
    gaps, scores : how many gaps, and how many groups' scores, are watched.
    """
    gaps_share = 1 - OF_SCORES if scores else 1
    return FALSE_ALARMS * gaps_share / max(gaps, 1), FALSE_ALARMS * OF_SCORES / max(scores, 1)


def quantities(state: WatchState) -> tuple[list[Quantity], list[Quantity]]:
    """Return every gap of every metric between two groups, and the scores of every group.

    Scores are watched by decision, where there are scores and labels.
    """
    groups = state.groups
    metrics = state.options.watched
    rate_names = state.options.rate_names
    residuals = _RESIDUAL_PARTS if state.options.score and state.options.target else {}
    pairs = sum(comb(len(names), 2) for names in groups.values())
    score_count = len(residuals) * sum(map(len, groups.values()))
    gap_risk, score_risk = risks(len(metrics) * pairs, score_count)
    gaps = [
        Quantity(
            f"{attribute}: {names[second]} less {names[first]}, {rate_names[metric]}",
            attribute, (first, second), rate_parts(metric), gap_risk, metric,
        )
        for attribute, names in groups.items()
        for metric in metrics
        for first, second in combinations(range(len(names)), 2)
    ]  # fmt: skip
    scores = [
        Quantity(
            f"{attribute}: {name}, scores of {decided} decisions",
            attribute, (group,), parts, score_risk,
        )
        for attribute, names in groups.items()
        for group, name in enumerate(names)
        for decided, parts in residuals.items()
    ]  # fmt: skip
    return gaps, scores


@dataclass(frozen=True, eq=False)
class NewCounts:
    """What is new, ready to be added up, of n events.

    Attributes
    ----------
    events : the events, with the number of labels so far as ``labels``.
    codes : attribute -> (n,) position of the group, -1 if it is not watched.
    sums : (n, WIDTH) the increments of each event to the sums of its group.
    """

    events: pd.DataFrame
    codes: Mapping[str, NDArray[np.intp]]
    sums: Floats


def count_events(state: WatchState, table: WatchedRows, events: pd.DataFrame) -> NewCounts:
    """Return each event's increments to the sums of its groups, in the order of the events."""
    decision = events["decision"].to_numpy()
    labelled = events["labelled"].to_numpy(bool)
    label = events["label"].to_numpy(float)
    residual = np.where(labelled, label - events["score"].to_numpy(float), np.nan)
    scored = ~np.isnan(residual)
    index = np.arange(len(events))
    sums = np.zeros((len(events), WIDTH))
    sums[index[labelled], (2 * label + decision)[labelled].astype(int)] = 1
    sums[index, _DECISIONS + decision] = events["counted"]
    for power in range(3):
        sums[index, _RESIDUALS + 3 * decision + power] = np.where(scored, residual**power, 0)
    groups = table.groups.loc[events.index]
    codes = {
        name: pd.Index(watched).get_indexer(groups[name]) for name, watched in state.groups.items()
    }
    return NewCounts(events.assign(labels=state.labels + np.cumsum(labelled)), codes, sums)


def sums_now(state: WatchState) -> dict[str, Floats]:
    """Return the sums of every attribute's groups (G, WIDTH) so far."""
    if state.marks:
        return sums_at(state.marks[-1])
    return {name: np.zeros((len(groups), WIDTH)) for name, groups in state.groups.items()}


def sums_at(mark: Milestone) -> dict[str, Floats]:
    """Return the sums of every attribute's groups (G, WIDTH) at a mark."""
    return {name: np.array(sums, float) for name, sums in mark.counts.items()}


def new_marks(state: WatchState, new: NewCounts, look: str) -> list[Milestone]:
    """Return the sums at the end of every period and at least every so many rows."""
    sums = sums_now(state)
    marks = []
    start = 0
    for stop in steps(new.events["period"].to_numpy(str), BLOCK):
        # Row after row, so that sums do not depend on when is looked.
        for name, codes in new.codes.items():
            watched = start + np.flatnonzero(codes[start:stop] >= 0)
            np.add.at(sums[name], codes[watched], new.sums[watched])
        last = new.events.iloc[stop - 1]
        plain = {name: of_groups.tolist() for name, of_groups in sums.items()}
        marks.append(
            Milestone(int(last["row"]), int(last["labels"]), str(last["period"]), look, plain)
        )
        start = stop
    return marks
