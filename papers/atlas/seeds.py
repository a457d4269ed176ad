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
from numpy.typing import NDArray
from scipy import special

from fairbench.components.papers.atlas.multilevel import fit
from fairbench.core.arrays import Floats, rng
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
        seed, and the chance of two so far apart if they measured the same: ``corrected`` for
        overlapping splits, by the ``splits`` alone, and of the second's distance from the ``band``
        that the model of all tasks has for this one.
    dealt : the shares that agree by the splits alone where each task's splits are dealt to two
        seeds by chance: what to expect where both divide the same rows, as approaches of a task
        have its splits in common.
    """

    first: int
    second: int
    repeats: tuple[int, int]
    reference: str
    table: pd.DataFrame
    dealt: Floats

    def share(self, column: str) -> float:
        """Return the share of differences that lie within their 95 % interval."""
        return float((self.table[column] > 1 - LEVEL).mean())

    @property
    def surely_apart(self) -> pd.DataFrame:
        """Return the differences that the seeds surely disagree on, all at once (Bonferroni)."""
        return self.table[self.table["corrected"] * len(self.table) <= 1 - LEVEL]


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
    rows, dealt, tasks = [], [], []
    for metric in metrics:
        losses = values.metric(metric)
        differences = losses - losses[values.names.index(reference)]
        one, other = (
            values.estimate_differences(differences[:, :, each]) for each in (of_first, of_second)
        )
        # What is 0 in every split of both tells nothing.
        moving = (one.variances > 0) | (other.variances > 0) | (one.means != other.means)
        both = np.asarray(one.known & other.known & moving)
        posterior = fit(one, generator=rng(0, "seeds", metric), draws=300)
        apart = one.means - other.means
        of_effects = (posterior.effect_errors**2, np.full(both.shape, np.inf))
        chances = {
            "corrected": chance_apart(apart, _errors(one), _errors(other)),
            "splits": chance_apart(apart, _of_splits(one), _of_splits(other)),
            "band": chance_apart(posterior.effects - other.means, of_effects, _errors(other)),
        }
        named = [f"{row['dataset']} by {row['protect']}" for row in values.about_tasks]
        columns = {
            "metric": metric,
            "task": [named[task] for task in np.nonzero(both)[1]],
            "approach": [values.names[approach] for approach in np.nonzero(both)[0]],
            "first": one.means[both],
            "second": other.means[both],
        }
        columns |= {name: chance[both] for name, chance in chances.items()}
        rows.append(pd.DataFrame(columns))
        dealt.append(differences[both])
        tasks.append(np.nonzero(both)[1])
    return _SeedComparison(
        first=own[0],
        second=own[1],
        repeats=(len(of_first), len(of_second)),
        reference=reference,
        table=pd.concat(rows, ignore_index=True),
        dealt=_dealt_shares(np.concatenate(dealt), np.concatenate(tasks), (of_first, of_second)),
    )


def _dealt_shares(
    differences: Floats, task: NDArray[np.intp], seeds: Sequence[NDArray[np.intp]], deals: int = 300
) -> Floats:
    """Return the shares that agree where splits are dealt to two seeds by chance, (deals,).

    Parameters
    ----------
    differences : (N, R) of every split; all of a task are dealt alike.
    task : (N,) of each.
    seeds : which of the R splits each seed has.
    """
    generator, agreeing = rng(0, "deals"), np.zeros(deals)
    for each in np.unique(task):
        mine = differences[task == each]
        own = [splits[np.isfinite(mine[:, splits]).any(axis=0)] for splits in seeds]
        order = generator.permuted(np.tile(np.concatenate(own), (deals, 1)), axis=1)
        dealt = np.split(mine[:, order], [len(own[0])], axis=2)
        (first, *errors_first), (second, *errors_second) = (_mean(part) for part in dealt)
        chance = chance_apart(first - second, errors_first, errors_second)
        agreeing += (~(chance <= 1 - LEVEL)).sum(axis=0)
    return agreeing / max(len(task), 1)


def _mean(values: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the mean over the last axis, its variance and degrees of freedom."""
    known = np.isfinite(values)
    count = known.sum(axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(known, values, 0).sum(axis=-1) / count
        off = np.where(known, values - mean[..., None], 0)
        variance = (off**2).sum(axis=-1) / (count - 1) / count
    return mean, variance, np.maximum(count - 1.0, 1)


def _plain(table: pd.DataFrame) -> ApproachValues:
    """Return the values of binary tasks, without settings."""
    return ApproachValues.of(table[table["error_rate"].notna() & (table["setting"] == "")])


def _errors(measured: MeasuredDifferences) -> tuple[Floats, Floats]:
    """Return the corrected variances of means, and their degrees of freedom, (P, T)."""
    return measured.variances * measured.inflation, np.maximum(measured.splits - 1, 1)


def _of_splits(measured: MeasuredDifferences) -> tuple[Floats, Floats]:
    """Return the same of splits that have nothing in common but the rows that they divide."""
    splits = np.maximum(measured.splits, 1)
    return measured.variances / splits, np.maximum(splits - 1, 1)


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
    share, alone = found.share("corrected"), found.share("splits")
    as_expected = "that is so" if share >= LEVEL else "that is not so"
    low, high = np.quantile(found.dealt, [0.025, 0.975])
    usual = "so is this" if low <= alone <= high else "this is not"
    apart = found.surely_apart
    named = "; ".join(
        f"{row.approach} on {row.task}, {label(str(row.metric))}: {row.first:.4f} and "
        f"{row.second:.4f}"
        for row in apart.itertuples()
    )
    shares = {"share": share, "alone": alone, "low": low, "high": high, "usual": usual}
    counts = {"count": len(found.table), "repeats": sum(found.repeats), "apart": len(apart)}
    told = {"band": found.share("band"), "named": f": {named}" * bool(named)}
    for name in ("agree", "stricter", "band", "apart"):
        yield _tell(name, found=found, as_expected=as_expected, **shares, **counts, **told)
