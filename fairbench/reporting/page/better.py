"""Which run of a block is better: a ranking with ties, and the events of every pair."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fairbench.core.formats import percent
from fairbench.inference.all_pairs import BETTER, EQUIVALENT, OPEN, TRADED, WORSE, Pairs
from fairbench.inference.ranking import ranking
from fairbench.reporting.page.blocks import Block
from fairbench.reporting.page.contenders import Contenders, contenders
from fairbench.reporting.page.goodness import ROPE
from fairbench.reporting.page.metric_table import CERTAIN

DRAWS = 1000  # of every repeat; the page shows medians over repeats
SIGNS: Mapping[str, str] = {BETTER: "≫", WORSE: "≪", EQUIVALENT: "≈", TRADED: "⇄", OPEN: ""}


@dataclass(frozen=True, eq=False)
class Compared:
    """Runs whose stored predictions were compared, by id, and why others could not be."""

    ids: Sequence[str]
    pairs: Pairs
    left_out: Sequence[str]


@dataclass(frozen=True)
class Question:
    """What is asked of runs: by which objectives, up to which differences, in how many draws."""

    ids: tuple[str, ...]
    objectives: tuple[str, str]
    rope: tuple[float, float] = (ROPE, ROPE)
    draws: int = DRAWS

    @property
    def command(self) -> str:
        """The command line that gives the same answer."""
        lists = [",".join(map(str, each)) for each in (self.ids, self.objectives, self.rope)]
        ids, objectives, rope = (f"[{each}]" for each in lists)
        words = f"runs={ids} objectives={objectives} rope={rope} draws={self.draws}"
        return f"fairbench compare {words}"


# The comparison reads predictions, which the page does not.
Compare = Callable[[Question], Compared]


@dataclass(frozen=True)
class Cell:
    """A pair: P(row >> column), the verdict, and all events in words."""

    outperforms: float
    verdict: str
    words: str

    @property
    def percent(self) -> str:
        """P(row >> column) for people."""
        return percent(self.outperforms)

    @property
    def sign(self) -> str:
        """The verdict as a sign; none while it is undecided."""
        return SIGNS[self.verdict]


@dataclass(frozen=True)
class Ranked:
    """A run, its rank (``2=`` if tied), its means, and its cells (None beside itself)."""

    id: str
    label: str
    rank: str
    accuracy: float
    gap: float
    cells: Sequence[Cell | None]


@dataclass(frozen=True, eq=False)
class Better:
    """The runs of a block, first the ones that fewest outperform."""

    question: Question
    rows: Sequence[Ranked]
    available: int

    @property
    def gap(self) -> str:
        """The objective beside accuracy."""
        return self.question.objectives[1]


def better(block: Block, compare: Compare) -> tuple[Better | None, Sequence[str]]:
    """Return the comparison of a block's runs, or None, and which runs were left out and why."""
    found = contenders(block)
    if found is None:
        return None, []
    objectives = "accuracy", found.gap
    compared = compare(Question(tuple(found.accuracy), objectives))
    if len(compared.ids) < 2:
        return None, compared.left_out
    question = Question(tuple(compared.ids), objectives)
    rows = list(_rows(compared, found, block.arms))
    return Better(question, rows, found.available), compared.left_out


def _rows(compared: Compared, found: Contenders, labels: Mapping[str, str]) -> Iterator[Ranked]:
    pairs = compared.pairs
    ranks, verdicts = ranking(pairs.outperforms, CERTAIN), pairs.verdicts(CERTAIN)
    order = np.argsort(ranks, kind="stable")
    for i in order:
        id_, tied = compared.ids[i], (ranks == ranks[i]).sum() > 1
        cells = [None if i == j else _cell(pairs, i, j, str(verdicts[i, j])) for j in order]
        rank = f"{ranks[i]}{'=' * bool(tied)}"
        yield Ranked(id_, labels[id_], rank, found.accuracy[id_], found.gap_mean[id_], cells)


def _cell(pairs: Pairs, i: int, j: int, verdict: str) -> Cell:
    words = (
        f"{verdict}: better {percent(pairs.outperforms[i, j])} %, "
        f"worse {percent(pairs.outperforms[j, i])} %, "
        f"equivalent {percent(pairs.equivalent[i, j])} %, "
        f"each better in one {percent(pairs.traded[i, j])} %"
    )
    return Cell(float(pairs.outperforms[i, j]), verdict, words)
