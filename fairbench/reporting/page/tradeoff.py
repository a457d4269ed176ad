"""The picture of error against gaps between groups, from metrics alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import pandas as pd

from fairbench.inference.error_and_gaps import point_table, points
from fairbench.inference.frontier import frontier
from fairbench.metrics.confusion import FN, FP
from fairbench.reporting.page.blocks import ARM, Block, told_apart
from fairbench.reporting.page.counts import confusion_counts
from fairbench.results.collection import FinishedRun

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST = 16  # points that a key and a panel have room for
_FEWEST = 2


def tradeoff(block: Block, metrics: pd.DataFrame) -> Iterator[Figure]:
    """Draw what ``fairbench tradeoff`` draws, of the runs of a block; of many, the least errors.

    Parameters
    ----------
    metrics : the block's, with texts that are no categories.
    """
    arms = metrics[metrics["run"].isin(block.arms)]
    counts = dict(confusion_counts(arms, block.protect))
    if len(counts) < _FEWEST:
        return
    from fairbench.reporting.tradeoff_figure import tradeoff_figure

    errors = {id_: each[..., [FP, FN]].sum() / each.sum() for id_, each in counts.items()}
    ids = sorted(errors, key=lambda id_: float(errors[id_]))[:MOST]
    found = [points(counts[id_], block.dataset) for id_ in ids]
    table = point_table(ids, _names([block.runs[id_] for id_ in ids]), found)
    curve, base = _frontier(block, metrics)
    yield tradeoff_figure(table, curve, f"{block.dataset} by {block.protect}", base)


def _names(runs: Sequence[FinishedRun]) -> list[Mapping[str, str]]:
    """Name the parts of every run, each by its choice and the options of it that differ."""
    named = {part: told_apart([run.choices[part] for run in runs], runs, [part]) for part in ARM}
    return [{part: named[part][i].replace("_", " ") for part in ARM} for i in range(len(runs))]


def _frontier(block: Block, metrics: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """Return the curve of thresholds per group, and what it was made of."""
    plain = [run for run in block.runs.values() if run.choices["intervention"] == "none"]
    rows = metrics[metrics["metric"].str.startswith("postprocessed_")]
    curve = frontier([rows[rows["run"] == run.id] for run in plain], block.protect)
    if curve.empty:
        return curve, ""
    base = plain[curve["base"].iloc[0]].choices
    return curve, f"{base['learner']}, {base['method']}".replace("_", " ")
