"""Whether another seed's splits say what the atlas says.

Two seeds draw other splits of the same data sets. An approach's difference from the reference on a
task is then measured twice, and both have an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd
from scipy import special

from fairbench.core.arrays import Floats
from fairbench.metrics.registry import label
from fairbench.reporting.group_tables import sentence_of
from fairbench_rank.approaches import ApproachValues, MeasuredDifferences
from fairbench_rank.standings import METRICS, pluralise, reference_index

LEVEL = 0.95
_tell = partial(sentence_of, "fairbench.components.papers.atlas:seeds")


@dataclass(frozen=True, eq=False)
class _SeedComparison:
    """What two seeds say of the same differences from a reference.

    Attributes
    ----------
    repeats : how many splits a task has of each.
    table : a row per metric, task and approach: the difference by the ``first`` and the ``second``
        seed, and the ``chance`` of two so far apart if they measured the same, corrected for
        overlapping splits.
    """

    first: int
    second: int
    repeats: tuple[int, int]
    reference: str
    table: pd.DataFrame

    @property
    def share(self) -> float:
        """Return the share of differences that lie within their 95 % interval."""
        return float((self.table["chance"] > 1 - LEVEL).mean())

    @property
    def surely_apart(self) -> pd.DataFrame:
        """Return the differences that the seeds surely disagree on, all at once (Bonferroni)."""
        return self.table[self.table["chance"] * len(self.table) <= 1 - LEVEL]


def compared_seeds(
    first: pd.DataFrame, second: pd.DataFrame, metrics: Sequence[str] = METRICS
) -> _SeedComparison:
    """Return what the tables of approaches of two seeds say of what both have."""
    place = reference_index(_plain(first))
    reference = _plain(first).names[place]
    values = _plain(pd.concat([first, second]))
    seed = values.table.groupby(values.cell_index[:, 2])["seed"].first().to_numpy()
    own = [int(table["seed"].iloc[0]) for table in (first, second)]
    of_first, of_second = (np.flatnonzero(seed == each) for each in own)
    rows = []
    for metric in metrics:
        losses = values.metric(metric)
        differences = losses - losses[values.names.index(reference)]
        one, other = (
            values.estimate_differences(differences[:, :, each]) for each in (of_first, of_second)
        )
        # What is 0 in every split of both tells nothing.
        moving = (one.variances > 0) | (other.variances > 0) | (one.means != other.means)
        both = np.asarray(one.known & other.known & moving)
        chance = chance_apart(one.means - other.means, _errors(one), _errors(other))
        named = [f"{row['dataset']} by {row['protect']}" for row in values.about_tasks]
        columns = {
            "metric": metric,
            "task": [named[task] for task in np.nonzero(both)[1]],
            "approach": [values.names[approach] for approach in np.nonzero(both)[0]],
            "first": one.means[both],
            "second": other.means[both],
            "chance": chance[both],
        }
        rows.append(pd.DataFrame(columns))
    return _SeedComparison(
        first=own[0],
        second=own[1],
        repeats=(len(of_first), len(of_second)),
        reference=reference,
        table=pd.concat(rows, ignore_index=True),
    )


def _plain(table: pd.DataFrame) -> ApproachValues:
    """Return the values of binary tasks, without settings."""
    return ApproachValues.of(table[table["error_rate"].notna() & (table["setting"] == "")])


def _errors(measured: MeasuredDifferences) -> tuple[Floats, Floats]:
    """Return the corrected variances of means, and their degrees of freedom, (P, T)."""
    return measured.variances * measured.inflation, np.maximum(measured.splits - 1, 1)


def chance_apart(apart: Floats, first: Sequence[Floats], second: Sequence[Floats]) -> Floats:
    """Return the chance of two estimates at least so far apart if they are of the same value.

    Parameters
    ----------
    apart : how far they are apart.
    first, second : the variances of each, and their degrees of freedom: those of the difference are
        Welch's and Satterthwaite's.
    """
    variance = first[0] + second[0]
    with np.errstate(invalid="ignore", divide="ignore"):
        freedom = variance**2 / (first[0] ** 2 / first[1] + second[0] ** 2 / second[1])
        far = np.abs(apart) / np.sqrt(variance)
    chance = 2 * special.stdtr(np.nan_to_num(freedom, nan=1.0), -np.nan_to_num(far, nan=0.0))
    exact = np.where(np.isnan(apart), np.nan, np.where(apart == 0, 1.0, 0.0))
    return np.where(variance > 0, chance, exact)


def lines_of(found: _SeedComparison) -> Iterator[str]:
    """Yield what a comparison says, in sentences."""
    table = found.table
    if table.empty:
        yield _tell("nothing", found=found)
        return
    tasks = pluralise(table["task"].nunique(), "task", "tasks")
    approaches = pluralise(table["approach"].nunique(), "approach", "approaches")
    yield _tell("drawn", found=found, tasks=tasks, approaches=approaches)
    as_expected = "that is so" if found.share >= LEVEL else "that is not so"
    apart = found.surely_apart
    named = "; ".join(
        f"{row.approach} on {row.task}, {label(str(row.metric))}: {row.first:.4f} and "
        f"{row.second:.4f}"
        for row in apart.itertuples()
    )
    yield _tell("agree", found=found, count=len(table), as_expected=as_expected)
    yield _tell("apart", apart=len(apart), named=f": {named}" * bool(named))
