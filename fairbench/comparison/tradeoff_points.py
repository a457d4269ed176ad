"""Error against fairness: each run's point and posterior, which are dominated and how surely."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.comparison.run_predictions import RunPredictions
from fairbench.comparison.runs import Labels, outperformance
from fairbench.comparison.settings import Settings
from fairbench.inference.error_and_gaps import DRAWS, METRICS, Point, point_table, points
from fairbench.inference.frontier import at_equal_fairness

Array = NDArray[np.float64]


def run_points(run: RunPredictions, protect: tuple[str, ...]) -> dict[str, Point]:
    """Return a run's point for every metric of `METRICS`."""
    labels = Labels.of(run, protect)
    counts = [[labels.counts(fold) for fold in folds] for folds in run.repeats.values()]
    return points(np.array(counts), run.people.name)


def tradeoff(
    runs: Sequence[RunPredictions],
    names: Sequence[Mapping[str, str]],
    curve: pd.DataFrame,
    protect: tuple[str, ...],
) -> pd.DataFrame:
    """Return a row for every metric and run.

    Returns
    -------
    The columns of `error_and_gaps.point_table`, ``certainty`` (the largest
    posterior probability that one other run is better in both, paired on the same rows) and
    ``postprocessed_error`` (of the frontier at a gap no larger).
    """
    table = point_table([run.id for run in runs], names, [run_points(r, protect) for r in runs])
    table["certainty"] = np.concatenate([_certainty(runs, name, protect) for name in METRICS])
    postprocessed = [
        at_equal_fairness(curve, metric, gap)
        for metric, gap in zip(table["metric"], table["gap"], strict=True)
    ]
    return table.assign(postprocessed_error=postprocessed)


def _certainty(runs: Sequence[RunPredictions], metric: str, protect: tuple[str, ...]) -> Array:
    """Return the largest probability, over the other runs, of outperforming each run."""
    settings = Settings(("error_rate", metric), (0.0, 0.0), draws=DRAWS, protect=protect)
    matrix = outperformance(runs, settings)
    np.fill_diagonal(matrix, 0)
    largest: Array = matrix.max(axis=0)
    return largest
