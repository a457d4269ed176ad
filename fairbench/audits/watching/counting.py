"""What is watched, and its sums: of every group, row after row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from fairbench.audits.gaps import NEEDS_NO_LABELS, RATE_NAMES, RATE_OF
from fairbench.audits.watching.state import Milestone, WatchState
from fairbench.audits.watching.stream import UNKNOWN, New, WatchedRows
from fairbench.inference.sequential.gaps import Pair
from fairbench.inference.sequential.means import Sums

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

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
    groups: tuple[str, str]

    @property
    def name(self) -> str:
        """What it is called, in the state too."""
        first, second = self.groups
        return f"{self.attribute}: {second} less {first}, {RATE_NAMES[self.metric]}"

    def pair(self, counts: Floats, share: float | Floats) -> Pair:
        """Return the counts of both groups from sums (..., G, WIDTH)."""
        successes, size = weights(self.metric)
        first, second = counts[..., self.first, :], counts[..., self.second, :]
        return Pair(first @ successes, first @ size, second @ successes, second @ size, share)


@dataclass(frozen=True)
class ScoresOf:
    """A group's scores that are watched: of rows that are decided one way."""

    attribute: str
    group: int
    decision: int
    label: str

    @property
    def name(self) -> str:
        """What they are called, in the state too."""
        decided = "positive" if self.decision else "negative"
        return f"{self.attribute}: {self.label}, scores of {decided} decisions"

    def sums(self, counts: Floats) -> Sums:
        """Return how far labels are from scores, from sums (..., G, WIDTH)."""
        start = _RESIDUALS + 3 * self.decision
        found = counts[..., self.group, start : start + 3]
        return Sums(found[..., 0], found[..., 1], found[..., 2])


def weights(metric: str) -> tuple[Floats, Floats]:
    """Return which of a group's sums are the successes and the rows of a metric's rate."""
    successes, size = np.zeros(WIDTH), np.zeros(WIDTH)
    if metric == NEEDS_NO_LABELS:
        successes[_DECISIONS + 1] = 1
        size[_DECISIONS : _DECISIONS + 2] = 1
    else:
        successes[:4] = np.array(RATE_OF[metric].numerator) > 0
        size[:4] = np.array(RATE_OF[metric].denominator) > 0
    return successes, size


def gaps_watched(state: WatchState) -> list[GapOf]:
    """Return every gap of every metric between any two groups of an attribute."""
    return [
        GapOf(name, metric, i, j, (groups[i], groups[j]))
        for name, groups in state.groups.items()
        for metric in state.options.watched
        for i, j in combinations(range(len(groups)), 2)
    ]


def scores_watched(state: WatchState) -> list[ScoresOf]:
    """Return the scores of every group, by decision; none without scores and labels."""
    if not (state.options.score and state.options.target):
        return []
    return [
        ScoresOf(name, i, decision, groups[i])
        for name, groups in state.groups.items()
        for i in range(len(groups))
        for decision in (0, 1)
    ]


def groups_of_first_look(table: WatchedRows) -> Mapping[str, tuple[str, ...]]:
    """Return the groups that are watched from now on, the largest first."""
    found = {}
    for name, rows in table.groups.items():
        values, sizes = np.unique(rows, return_counts=True)
        found[name] = tuple(str(values[i]) for i in np.argsort(-sizes, kind="stable"))
    return found


@dataclass(frozen=True, eq=False)
class Events:
    """What is counted one after the other: labels that came late, then new rows.

    Attributes
    ----------
    codes : attribute -> (n,) position of the group, -1 of one that is not watched.
    sums : (n, WIDTH) what each adds to its group.
    row : (n,) the rows so far. labelled : (n,) the labels so far. period : (n,) of each.
    """

    codes: Mapping[str, Rows]
    sums: Floats
    row: Rows
    labelled: Rows
    period: NDArray[np.str_]

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.row)


def events_of(state: WatchState, table: WatchedRows, new: New) -> Events:
    """Return what a look adds, in its order."""
    at = np.concatenate([new.late, new.rows])
    fresh = np.arange(len(at)) >= len(new.late)
    row = state.rows + np.cumsum(fresh)
    label, decision = table.label[at], table.decision[at]
    known = label != UNKNOWN
    if new.counted is not None and new.labels is not None:
        known &= np.concatenate([np.ones(len(new.late), bool), new.labels])
        fresh &= np.concatenate([np.zeros(len(new.late), bool), new.counted])
        some = known | fresh
        at, fresh, row, known = at[some], fresh[some], row[some], known[some]
        label, decision = label[some], decision[some]
    sums, rows = np.zeros((len(at), WIDTH)), np.arange(len(at))
    sums[rows[known], 2 * label[known] + decision[known]] = 1
    sums[rows[fresh], _DECISIONS + decision[fresh]] = 1
    scored = known & ~np.isnan(table.score[at])
    residual = np.where(scored, label - table.score[at], 0.0)
    for power in range(3):
        column = _RESIDUALS + 3 * decision[scored] + power
        sums[rows[scored], column] = residual[scored] ** power
    before = state.marks[-1].labels if state.marks else 0
    return Events(
        {name: _codes(table.groups[name][at], groups) for name, groups in state.groups.items()},
        sums,
        row,
        before + np.cumsum(known),
        table.period[at],
    )


def _codes(names: NDArray[np.str_], groups: Sequence[str]) -> Rows:
    place = {name: i for i, name in enumerate(groups)}
    values, codes = np.unique(names, return_inverse=True)
    return np.array([place.get(str(each), -1) for each in values], np.int64)[codes]


def counts_now(state: WatchState) -> dict[str, Floats]:
    """Return the sums of every attribute's groups (G, WIDTH) so far."""
    if state.marks:
        return {name: np.array(each, float) for name, each in state.marks[-1].counts.items()}
    return {name: np.zeros((len(groups), WIDTH)) for name, groups in state.groups.items()}


def new_marks(state: WatchState, events: Events, look: str) -> list[Milestone]:
    """Return the sums at the end of every period and at least every so many rows."""
    return list(_marks(state, events, look))


def _marks(state: WatchState, events: Events, look: str) -> Iterator[Milestone]:
    counts, start = counts_now(state), 0
    for stop in _stops(events):
        for name, codes in events.codes.items():
            part = codes[start:stop]
            np.add.at(counts[name], part[part >= 0], events.sums[start:stop][part >= 0])
        last = stop - 1
        plain = {name: each.tolist() for name, each in counts.items()}
        yield Milestone(
            int(events.row[last]),
            int(events.labelled[last]),
            str(events.period[last]),
            look,
            plain,
        )
        start = stop


def _stops(events: Events) -> list[int]:
    ends = np.flatnonzero(events.period[1:] != events.period[:-1]) + 1
    pieces = np.split(np.arange(len(events)), ends)
    stops: list[int] = []
    for piece in pieces:
        if len(piece):
            begin, number = int(piece[0]), max(1, round(len(piece) / BLOCK))
            stops += [begin + len(piece) * (i + 1) // number for i in range(number)]
    return stops
