"""Pairwise comparisons of the runs of a block that have the best means."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import fsum

import numpy as np
import pandas as pd

from fairbench.comparison.runs import RunPredictions, Settings, every_pair, load_predictions
from fairbench.core.errors import UserError
from fairbench.core.text import percent
from fairbench.inference.comparing import objective
from fairbench.inference.selection import (
    BETTER,
    EQUIVALENT,
    OPEN,
    TRADED,
    WORSE,
    Pairs,
    in_order,
    outperforms,
    ranking,
)
from fairbench.metrics.registry import label as metric_label
from fairbench.reporting.comparisons import rank_of
from fairbench.reporting.document.model import (
    Block,
    Column,
    Commands,
    Details,
    Mark,
    Paragraph,
    Section,
    Table,
    TableCell,
)
from fairbench.reporting.page.tables import CERTAIN, MeasuredBlock
from fairbench.results.runs import Run

MOST = 8  # runs in the table of pairs: more would be hard to read
DRAWS = 1000  # of the posterior, for each pair
GAPS = ("equal_opportunity", "statistical_parity")
_FEWEST = 2
# The sign of a verdict in a square, and what it says.
_SIGNS = {
    BETTER: ("≫", "outperforms"),
    WORSE: ("≪", "is outperformed"),
    EQUIVALENT: ("≈", "practically equivalent"),
    TRADED: ("⇄", "each better in one"),
    OPEN: ("", "undecided"),
}


@dataclass(frozen=True, eq=False)
class Contenders:
    """Runs to compare by accuracy and a gap between groups.

    Attributes
    ----------
    accuracy, gap_mean : run -> mean over splits; those that fewest outperform by them come first,
        of these the more accurate.
    gap : equal opportunity, or statistical parity if that is undefined.
    available : the number of runs that could be compared; at most `MOST` of them are here.
    """

    accuracy: Mapping[str, float]
    gap_mean: Mapping[str, float]
    gap: str
    available: int


@dataclass(frozen=True, eq=False)
class ComparedRuns:
    """Runs of a block whose predictions were compared, pair by pair.

    Attributes
    ----------
    ids : the ids of the runs, in the order of `pairs`.
    """

    contenders: Contenders
    ids: Sequence[str]
    pairs: Pairs

    @property
    def command(self) -> str:
        """The command line that gives the same answer."""
        objectives = f"[accuracy,{self.contenders.gap}]"
        rope = ",".join(map(str, _epsilons(self.contenders.gap)))
        words = f"objectives={objectives} rope=[{rope}] draws={DRAWS}"
        return f"fairbench compare runs=[{','.join(self.ids)}] {words}"


def _epsilons(gap: str) -> tuple[float, ...]:
    """Return the differences of accuracy and of a gap that make no difference in practice."""
    return tuple(objective(name).epsilon for name in ("accuracy", gap))


def contenders(block: MeasuredBlock) -> Contenders | None:
    """Return the runs of a block to compare; None if fewer than two can be compared."""
    metrics = block.metrics[block.metrics["metric"].isin(["error_rate", *GAPS])]
    errors = _means(block, metrics, "error_rate", "")
    if len(errors) < _FEWEST:
        return None
    gaps = {name: _means(block, metrics, name, block.protect) for name in GAPS}
    gap = next((name for name in GAPS if errors.keys() <= gaps[name].keys()), "")
    if not gap:
        return None
    ids = list(errors)
    error, gap_mean = (np.array([of[id_] for id_ in ids]) for of in (errors, gaps[gap]))
    values = np.stack([1 - error, -gap_mean], axis=1)
    ranks = ranking(outperforms(values, np.array(_epsilons(gap))).astype(float))
    order = np.lexsort((error, ranks))[:MOST]
    accuracy, gap_of = ({ids[i]: of[i] for i in order} for of in (1 - error, gap_mean))
    return Contenders(accuracy, gap_of, gap, len(errors))


def _means(
    block: MeasuredBlock, metrics: pd.DataFrame, metric: str, attribute: str
) -> dict[str, float]:
    """Return a metric's mean for every arm that has it in all splits."""
    rows = metrics[(metrics["metric"] == metric) & (metrics["attribute"] == attribute)]
    rows = rows[rows["group"] == ""]
    values: dict[str, list[float]] = {}
    for id_, value in zip(rows["run"].tolist(), rows["value"].tolist(), strict=True):
        values.setdefault(id_, []).append(value)
    means = {
        id_: fsum(run_values) / len(run_values)
        for id_, run_values in values.items()
        if id_ in block.arms
    }
    return {id_: mean for id_, mean in means.items() if mean == mean}


def compare_block(block: MeasuredBlock) -> tuple[ComparedRuns | None, Sequence[str]]:
    """Compare a block's best runs; return also why some could not be read.

    The probabilities are those of ``fairbench compare``, computed by the same function.
    """
    best = contenders(block)
    if best is None:
        return None, []
    runs, left_out = load_all([block.runs[id_] for id_ in best.accuracy])
    if len(runs) < _FEWEST:
        return None, left_out
    settings = Settings(("accuracy", best.gap), _epsilons(best.gap), draws=DRAWS)
    try:
        pairs = every_pair(runs, settings)
    except UserError as error:
        return None, [*left_out, str(error)]
    return ComparedRuns(best, [run.id for run in runs], pairs), left_out


def load_all(runs: Sequence[Run]) -> tuple[list[RunPredictions], list[str]]:
    """Return the predictions that can be read, and why the others cannot."""
    loaded, left_out = [], []
    for run in runs:
        try:
            loaded.append(load_predictions(run))
        except UserError as error:
            left_out.append(str(error))
    return loaded, left_out


def pairs_section(compared: ComparedRuns, labels: Mapping[str, str]) -> Section:
    """Return the ranking with ties, and the probability of every pair.

    Parameters
    ----------
    labels : run -> its name.
    """
    return Section("Which one is better?", list(_blocks(compared, labels)))


def _blocks(compared: ComparedRuns, labels: Mapping[str, str]) -> Iterator[Block]:
    """Yield the comparison of pairs: how it is read, its table, and the command that prints it."""
    shown_count = len(compared.ids)
    best = compared.contenders
    share = f"{100 * CERTAIN:.0f} %"
    gap = metric_label(best.gap)
    selection = ""
    if best.available > shown_count:
        selection = (
            f" Shown are the {shown_count} of {best.available} runs that fewest others outperform "
            "by their means; ranks are among those shown."
        )
    yield Paragraph(
        f"By accuracy and {gap} together. A run outperforms another if it is better in one of the "
        f"two and worse in neither; differences up to {_epsilons(best.gap)[1]} do not matter. "
        f"Ranks count from 1 by how many outperform a run with a probability of at least {share}; "
        f"= marks ties.{selection}"
    )
    yield Paragraph(
        "In the squares: the probability, in percent, that the row's run outperforms the column's. "
        "Hold the pointer over one for all outcomes.",
        "note",
    )
    yield _table(compared, labels)
    marks = [Mark(" ".join(told).strip(), f"pair {kind}") for kind, told in _SIGNS.items()]
    yield Paragraph((f"With a probability of at least {share}:", *marks), "note key")
    yield Paragraph(
        "Posterior of the differences on the same test rows, averaged over all repeats, whose "
        f"overlap is accounted for; {DRAWS} draws a pair.",
        "note",
    )
    summary = "the command that prints these numbers"
    yield Details(summary, [Commands([compared.command])], style="from")


def _table(compared: ComparedRuns, labels: Mapping[str, str]) -> Table:
    """Return the table of runs by rank, with a square for each pair."""
    pairs, best = compared.pairs, compared.contenders
    ranks = ranking(pairs.outperforms, CERTAIN)
    verdicts = pairs.verdicts(CERTAIN)
    order = in_order(ranks, pairs.outperforms)
    columns = [
        Column("rank", right=True),
        Column("", "count", heads=True),
        Column("run"),
        Column("accuracy", "number"),
        Column(metric_label(best.gap), "number"),
        *(Column(str(position), "percent") for position in range(1, len(order) + 1)),
    ]
    rows = []
    for position, i in enumerate(order, start=1):
        id_ = compared.ids[i]
        cells = [_cell(pairs, i, j, str(verdicts[i, j])) for j in order]
        run = TableCell(labels[id_], link=f"#run-{id_}")
        means = [best.accuracy[id_], best.gap_mean[id_]]
        rows.append([rank_of(ranks, i), position, run, *means, *cells])
    return Table(columns, rows, style="pairs")


def _cell(pairs: Pairs, i: int, j: int, verdict: str) -> TableCell:
    """Return the cell of a pair of runs, with its verdict and probabilities."""
    if i == j:
        return TableCell(None, style="pair same")
    better = float(pairs.outperforms[i, j])
    hint = (
        f"{verdict}: better {percent(better)} %, "
        f"worse {percent(pairs.outperforms[j, i])} %, "
        f"equivalent {percent(pairs.equivalent[i, j])} %, "
        f"each better in one {percent(pairs.traded[i, j])} %"
    )
    shade = better if verdict == OPEN else None
    sign = f"{_SIGNS[verdict][0]} "
    return TableCell(better, before=sign, style=f"pair {verdict}", shade=shade, hint=hint)
