"""Which runs of a block are compared in pairs: those of the best means by two objectives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from fairbench.inference.all_pairs import outperforms
from fairbench.inference.ranking import ranking
from fairbench.reporting.page.blocks import Block
from fairbench.reporting.page.goodness import ROPE

MOST = 8  # runs whose pairs a reader can take in
GAPS = ("equal_opportunity", "statistical_parity")
_FEWEST = 2


@dataclass(frozen=True, eq=False)
class Contenders:
    """Runs to compare by accuracy and a gap between groups.

    Attributes
    ----------
    accuracy, gap_mean : run -> mean over splits; those that fewest outperform by them come first,
        of these the more accurate.
    gap : equal opportunity, or statistical parity where that is undefined.
    available : how many runs could be compared, of which these are at most `MOST`.
    """

    accuracy: Mapping[str, float]
    gap_mean: Mapping[str, float]
    gap: str
    available: int


def contenders(block: Block) -> Contenders | None:
    """Return the runs of a block that are worth comparing; None where fewer than two can be."""
    errors = _means(block, "error_rate", "")
    if len(errors) < _FEWEST:
        return None
    gaps = {name: _means(block, name, block.protect).reindex(errors.index) for name in GAPS}
    gap = next((name for name in GAPS if gaps[name].notna().all()), "")
    if not gap:
        return None
    accuracy, gap_mean = 1 - errors, gaps[gap]
    values = np.stack([accuracy, -gap_mean], axis=1)
    ranks = ranking(outperforms(values, np.array([ROPE, ROPE])).astype(float))
    order = np.lexsort((errors, ranks))[:MOST]
    chosen = errors.index[order]
    return Contenders(dict(accuracy[chosen]), dict(gap_mean[chosen]), gap, len(errors))


def _means(block: Block, metric: str, attribute: str) -> pd.Series:
    """Return a metric's mean for every arm that has it in all splits."""
    metrics = block.metrics
    rows = metrics[(metrics["metric"] == metric) & (metrics["attribute"] == attribute)]
    rows = rows[(rows["group"] == "") & rows["run"].isin(block.arms)]
    values = rows.groupby(rows["run"].astype(str), sort=False)["value"]
    means: pd.Series = values.mean()[values.count() == values.size()]
    return means
