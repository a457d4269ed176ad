"""Error against gap across data sets: what interventions and thresholds of each group change.

Every strength of an intervention, and every limit of thresholds for each group, is compared with
the same learner and method without it, task by task and split by split; the mean over families of
the two differences comes from :mod:`fairbench.inference.multilevel`. The bands of all points of a
picture hold at once, at 95 % (Bonferroni), so that a point may be picked because it looks good.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from fairbench.comparison.atlas_values import AtlasValues, Contrast, contrasts
from fairbench.inference.multilevel import fit

ERROR = "error_rate"
THRESHOLDS = "a threshold for each group"
_WRONG = 0.05  # the chance that any band of a picture is wrong


@dataclass(frozen=True)
class AcrossPoint:
    """What a strength of an intervention changes, across data sets.

    Attributes
    ----------
    intervention : its name, or `THRESHOLDS`. strength : its options, or the limit of the gap.
    error, gap : the differences from no intervention, means over families, with their bands.
    tasks, families : on how many both were measured.
    """

    intervention: str
    strength: str
    gap_metric: str
    error: float
    error_lower: float
    error_upper: float
    gap: float
    gap_lower: float
    gap_upper: float
    tasks: int
    families: int


def across_data_sets(
    table: pd.DataFrame, gaps: Sequence[str], *, generator: np.random.Generator, draws: int = 300
) -> tuple[AcrossPoint, ...]:
    """Return the points of one picture for each gap, of those that rest on enough families.

    Parameters
    ----------
    table : of :func:`fairbench.comparison.atlas.approach_table`.
    """
    plain, limited = table["setting"] == "", table["setting"].str.partition("<=")[0].isin(gaps)
    values = AtlasValues.of(table[plain | (limited & (table["intervention"] == "none"))])
    pictured = [(gap, each) for gap in gaps for each in _contrasts(values, gap)]
    if not pictured:
        return ()
    metrics = {name: values.metric(name) for name in (ERROR, *gaps)}
    error = np.stack([each.of(metrics[ERROR]) for _, each in pictured])
    change = np.stack([each.of(metrics[gap]) for gap, each in pictured])
    both = np.isfinite(error) & np.isfinite(change)
    measured = values.measured(np.concatenate([np.where(both, e, np.nan) for e in (error, change)]))
    posterior = fit(measured, generator=generator, draws=draws)
    points = Counter(gap for gap, _ in pictured)
    # Each point has two ends in each of two directions.
    tail = np.array([_WRONG / 4 / points[gap] for gap, _ in pictured] * 2)
    ends = np.stack([posterior.estimate(), *posterior.interval(tail)]).reshape(3, 2, -1)
    tasks = (both.sum(axis=2) > 1).sum(axis=1)
    return tuple(
        AcrossPoint(
            *_named(contrast.label), gap, *ends[:, 0, place].tolist(), *ends[:, 1, place].tolist(),
            int(tasks[place]), int(posterior.families[place]),
        )
        for place, (gap, contrast) in enumerate(pictured)
        if np.isfinite(ends[:, :, place]).all()
    )  # fmt: skip


def _contrasts(values: AtlasValues, gap: str) -> Iterator[Contrast]:
    """Yield every intervention against none, and every limit of this gap against no limit."""
    yield from contrasts(values, "intervention", "none")
    for each in contrasts(values, "setting", ""):
        if each.label.startswith(f"{gap}<="):
            yield each


def _named(label: str) -> tuple[str, str]:
    """Return intervention and strength of a contrast's label."""
    name, limited, limit = label.partition("<=")
    if limited:
        return THRESHOLDS, f"gap at most {limit}"
    name, _, strength = label.partition(" ")
    return name, strength
