"""What is watched, and its sums: of every group, row after row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.audits.gaps import NEEDS_NO_LABELS, RATE_NAMES, RATE_OF
from fairbench.audits.watching.state import Milestone, WatchState
from fairbench.audits.watching.stream import WatchedRows
from fairbench.inference.sequential.gaps import Pair
from fairbench.inference.sequential.means import Sums

Floats = NDArray[np.float64]

# A group's sums: labelled rows as TN, FP, FN, TP; all rows by decision; of labels less scores, by
# decision, how many, their sum and that of their squares.
WIDTH = 12
_DECISIONS, _RESIDUALS = 4, 6
BLOCK = 500  # rows after which at the latest counting begins anew, too


@dataclass(frozen=True)
class GapOf:
    """A gap that is watched: the rate of the second group less that of the first."""

    attribute: str
    metric: str
    first: int
    second: int
    name: str  # in the state too

    def pair(self, counts: Floats, share: float | Floats) -> Pair:
        """Return the counts of both groups from sums (..., G, WIDTH)."""
        both = counts[..., [self.first, self.second], :] @ weights(self.metric)
        (first, first_size), (second, second_size) = np.moveaxis(both, (-2, -1), (0, 1))
        return Pair(first, first_size, second, second_size, np.broadcast_to(share, first.shape))

    def share(self, counts: Floats) -> Floats:
        """Return the share that the first group has of both groups' rows, about 1/2 of none."""
        pair = self.pair(counts, 0.5)
        first, second = np.asarray(pair.first_size), np.asarray(pair.second_size)
        share: Floats = (first + 1) / (first + second + 2)
        return share

    def since(self, before: Floats, added: Floats) -> Pair:
        """Return the counts of both groups in sums that were added to others."""
        return self.pair(added, self.share(before))


@dataclass(frozen=True)
class ScoresOf:
    """A group's scores that are watched: of rows that are decided one way."""

    attribute: str
    group: int
    decision: int
    name: str  # in the state too

    def sums(self, counts: Floats) -> Sums:
        """Return how far labels are from scores, from sums (..., G, WIDTH)."""
        start = _RESIDUALS + 3 * self.decision
        return Sums(*np.moveaxis(counts[..., self.group, start : start + 3], -1, 0))

    def since(self, before: Floats, added: Floats) -> Sums:
        """Return the same of sums that were added to others."""
        return self.sums(added)


def weights(metric: str) -> Floats:
    """Return which of a group's sums are the successes and the rows of a rate, (WIDTH, 2)."""
    weights = np.zeros((WIDTH, 2))
    if metric == NEEDS_NO_LABELS:
        weights[_DECISIONS : _DECISIONS + 2] = [[0, 1], [1, 1]]
    else:
        rate = RATE_OF[metric]
        weights[:_DECISIONS] = np.transpose([rate.numerator, rate.denominator]) > 0
    return weights


def gaps_watched(state: WatchState) -> list[GapOf]:
    """Return every gap of every metric between any two groups of an attribute."""
    return [
        GapOf(attribute, metric, first, second,
              f"{attribute}: {groups[second]} less {groups[first]}, {RATE_NAMES[metric]}")
        for attribute, groups in state.groups.items()
        for metric in state.options.watched
        for first, second in combinations(range(len(groups)), 2)
    ]  # fmt: skip


def scores_watched(state: WatchState) -> list[ScoresOf]:
    """Return the scores of every group, by decision; none without scores and labels."""
    if not (state.options.score and state.options.target):
        return []
    return [
        ScoresOf(attribute, place, decision, f"{attribute}: {group}, scores of {decided} decisions")
        for attribute, groups in state.groups.items()
        for place, group in enumerate(groups)
        for decision, decided in enumerate(("negative", "positive"))
    ]


@dataclass(frozen=True, eq=False)
class NewCounts:
    """What is new, ready to be added up: (n,) of each, if nothing else is said."""

    codes: Mapping[str, NDArray[np.intp]]  # attribute -> position of the group, -1 if not watched
    sums: Floats  # (n, WIDTH), what each adds to its group
    row: NDArray[np.int64]  # the rows so far
    labels: NDArray[np.int64]  # the labels so far
    period: NDArray[np.str_]


def counted(state: WatchState, table: WatchedRows, events: pd.DataFrame) -> NewCounts:
    """Return what events add to the sums of groups, in their order."""
    label, decision, score = (events[name].to_numpy() for name in ("label", "decision", "score"))
    labelled, rows = events["labelled"].to_numpy(bool), np.arange(len(events))
    scored = labelled & ~np.isnan(score)
    residual = np.where(scored, label - score, 0.0)
    sums = np.zeros((len(events), WIDTH))
    sums[rows[labelled], (2 * label + decision)[labelled]] = 1
    sums[rows, _DECISIONS + decision] = events["counted"]
    for power in range(3):
        sums[rows, _RESIDUALS + 3 * decision + power] = scored * residual**power
    groups = table.groups.loc[events.index]
    return NewCounts(
        {
            name: pd.Index(watched).get_indexer(groups[name])
            for name, watched in state.groups.items()
        },
        sums,
        events["row"].to_numpy(),
        (state.marks[-1].labels if state.marks else 0) + np.cumsum(labelled),
        events["period"].to_numpy(str),
    )


def counts_now(state: WatchState) -> dict[str, Floats]:
    """Return the sums of every attribute's groups (G, WIDTH) so far."""
    if state.marks:
        return {name: np.array(sums, float) for name, sums in state.marks[-1].counts.items()}
    return {name: np.zeros((len(groups), WIDTH)) for name, groups in state.groups.items()}


def new_marks(state: WatchState, new: NewCounts, look: str) -> list[Milestone]:
    """Return the sums at the end of every period and at least every so many rows."""
    counts, marks, start = counts_now(state), [], 0
    for stop in _stops(new.period):
        # Row after row, so that sums do not depend on when is looked.
        for name, codes in new.codes.items():
            watched = start + np.flatnonzero(codes[start:stop] >= 0)
            np.add.at(counts[name], codes[watched], new.sums[watched])
        plain = {name: sums.tolist() for name, sums in counts.items()}
        row, labels, period = (part[stop - 1] for part in (new.row, new.labels, new.period))
        marks.append(Milestone(int(row), int(labels), str(period), look, plain))
        start = stop
    return marks


def _stops(period: NDArray[np.str_]) -> Iterator[int]:
    """Yield where periods end, and where in between, in even steps of about a block."""
    ends = [*(np.flatnonzero(period[1:] != period[:-1]) + 1).tolist(), len(period)]
    for begin, end in zip([0, *ends], ends, strict=False):
        number = max(1, round((end - begin) / BLOCK))
        yield from (begin + (end - begin) * (i + 1) // number for i in range(number))
