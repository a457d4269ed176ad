"""Our numbers for the tables of Uncertainty Matters that rest on one cross-validation of many.

Its section 12.4: Tables 2, 12.2, 12.3, 13.1, 15.1 and 15.2 have the posterior of the
cross-validation whose difference of the two algorithms is nearest to the mean difference; Tables 3,
12.4 and 12.5 that of the one whose conclusion is not the mean's and which lies furthest from it.

``python -m papers.uncertainty_matters.one_partition`` computes all of them anew from the packed
cross-validations, keeps them in numbers.csv, and prints the shares that agree under each reading
and under others that were tried.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from rich import box
from rich.console import Console
from rich.table import Table

from fairbench.cli.command import Results
from fairbench.comparison.settings import Settings
from fairbench.components.papers import run_main
from fairbench.components.papers.uncertainty_matters import ground_truth, packed
from fairbench.components.papers.uncertainty_matters.measured import RHOS
from fairbench.components.papers.uncertainty_matters.posteriors import FOLDS
from fairbench.components.papers.uncertainty_matters.readings import (
    CHOSEN,
    PRESET,
    READINGS,
    TRUTH,
    Names,
    Reading,
    Setting,
)
from fairbench.components.papers.uncertainty_matters.tables import read_published
from fairbench.core.arrays import Floats
from fairbench.core.errors import UserError
from fairbench.core.files import atomic
from fairbench.core.seeds import rng
from fairbench.inference.posterior import paired_draws, table_draws
from fairbench.reporting.papers.running import Effort

PAIRS: tuple[Names, ...] = (
    ("Disparate impact remover + SVM", "FERM"),
    ("Linear SVM + Hardt", "FERM"),
    ("SVM + Hardt", "Linear SVM + Hardt"),  # of section 14.2.1
)
ALL = tuple(dict.fromkeys(name for each in READINGS for pair in PAIRS for name in each.names(pair)))
TABLES = ("2", "3", "12.2", "12.3", "12.4", "12.5", "13.1", "15.1", "15.2")
ANSWERED = (*TABLES, "14.2.1")
FURTHEST = ("3", "12.4", "12.5")
NUMBERS = ground_truth.FOLDER / "numbers.csv"
DRAWS = 10000
WITHIN = (0.05, 0.1)


@dataclass(frozen=True, eq=False)
class Pair:
    """Two algorithms as a reading compares them.

    Attributes
    ----------
    counts : (B, G, 4) of either; the same index is the same partition.
    """

    reading: Reading
    names: Names
    counts: tuple[NDArray[np.int64], NDArray[np.int64]]

    @cached_property
    def delta(self) -> Floats:
        """The difference of both objectives in every cross-validation, (B, 2)."""
        return self.differences(2)

    def differences(self, objectives: int) -> Floats:
        """Return the differences of some objectives in every cross-validation, (B, m)."""
        kept = min(map(len, self.counts))
        first, second = (self.reading.values(each[:kept], objectives) for each in self.counts)
        difference: Floats = first - second
        return difference

    @cached_property
    def nearest(self) -> int:
        """The place of the cross-validation nearest to the mean difference."""
        return int(self._distance.argmin())

    @cached_property
    def furthest(self) -> int:
        """The place of the one furthest from the mean among those of another conclusion."""
        (of_mean,) = self.reading.conclusions(self.delta.mean(axis=0)[None])
        other = np.array(self.reading.conclusions(self.delta)) != of_mean
        return int(np.where(other, self._distance, -1.0).argmax())

    @cached_property
    def _distance(self) -> Floats:
        distance: Floats = np.linalg.norm(self.delta - self.delta.mean(axis=0), axis=1)
        return distance

    def probabilities(
        self, setting: Setting, *, furthest: bool, draws: int = DRAWS
    ) -> dict[str, float]:
        """Return the shares of the published events under a setting, by metric.

        Parameters
        ----------
        furthest : of the partition furthest from the mean, in place of the nearest.
        """
        if setting.rho == TRUTH:
            return self.reading.events(self.differences(setting.objectives), setting)
        draws_of_difference = self.difference_draws(setting, furthest=furthest, draws=draws)
        return self.reading.events(draws_of_difference, setting)

    def difference_draws(self, setting: Setting, *, furthest: bool, draws: int = DRAWS) -> Floats:
        """Return draws (T, m) of the posterior of the difference A - B under a setting."""
        if self.reading.paired:
            return self._difference(self._joint(setting, draws), setting)
        return self.drawn_at(self.furthest if furthest else self.nearest, setting, draws)

    def drawn_at(self, place: int, setting: Setting, draws: int = DRAWS) -> Floats:
        """Return draws (T, m) of A - B from two posteriors of one partition, the `place`-th."""
        return self._difference(self._apart(setting, place, draws), setting)

    def _difference(self, tables: tuple[Floats, Floats], setting: Setting) -> Floats:
        first, second = (self.reading.values(each, setting.objectives) for each in tables)
        difference: Floats = first - second
        return difference

    def _apart(self, setting: Setting, place: int, draws: int) -> tuple[Floats, Floats]:
        """Draw both algorithms' tables on their own, from their counts on one partition."""
        first, second = (
            table_draws(
                counts[place] * self._effective_fraction(name, setting.rho),
                draws,
                rng(0, "uncertainty matters", "one partition", name, setting.rho),
                alpha=setting.alpha,
            )
            for name, counts in zip(self.names, self.counts, strict=True)
        )
        return first, second

    def _joint(self, setting: Setting, draws: int) -> tuple[Floats, Floats]:
        """Draw both algorithms' tables from their joint table, the mean of several partitions."""
        joint = packed.joint(self.names)
        if joint is None:
            raise UserError(f"no joint counts of {' and '.join(self.names)} are packed")
        generator = rng(0, "uncertainty matters", *self.names)
        return paired_draws(joint.mean(axis=0), draws, generator, alpha=setting.alpha)

    def _effective_fraction(self, name: str, rho: str) -> float:
        """Return what a count of an algorithm is worth."""
        ratio = 1.0
        if self.reading.halves:
            ratio = packed.variance_ratio_of(name)
        settings = Settings(rho=RHOS[rho])
        return self.reading.factor * float(settings.shrinkage(FOLDS, ratio))


def pairs(reading: Reading, results: Path | None = None, cvs: int | None = None) -> dict[str, Pair]:
    """Return all pairs under a reading, by the name of their rows, of at most `cvs` partitions."""
    found = {}
    for pair in PAIRS:
        names = reading.names(pair)
        first, second = (packed.most_counts(name, results)[:cvs] for name in names)
        found[" vs ".join(pair)] = Pair(reading, names, (first, second))
    return found


def numbers(rows: pd.DataFrame, results: Path, effort: Effort) -> Iterator[dict[str, Any]]:
    """Yield our numbers for every published one, those of the reading that reproduces first.

    Parameters
    ----------
    rows : published numbers; the index is the place of each.
    effort : with fewer draws for a quick look, and for a first pass a hundred partitions.
    """
    cvs = effort.choose(None, None, 100)
    compared = [pairs(reading, results, cvs) for reading in READINGS]
    yield from answers(compared, rows, draws=effort.choose(DRAWS, DRAWS // 5, 200))


def answers(
    compared: Iterable[dict[str, Pair]], rows: pd.DataFrame, *, draws: int = DRAWS
) -> Iterator[dict[str, Any]]:
    """Yield what some readings say of published numbers."""
    for by_method in compared:
        for key, mine in rows.groupby(["table", "method", "setting"], sort=False):
            table, method, text = map(str, key)
            pair, setting = by_method[method], Setting.read(text)
            truth = setting.rho == TRUTH
            if truth and pair.reading.paired:
                continue
            found = pair.probabilities(setting, furthest=table in FURTHEST, draws=draws)
            # Two posteriors, theirs and ours, are of as many draws.
            shares_of = len(pair.delta) if truth else draws / 2
            for row in mine.itertuples():
                share = found[str(row.metric)]
                error = np.sqrt(share * (1 - share) / shares_of)
                yield {
                    "row": row.Index,
                    "mean": share,
                    "sd": np.nan,
                    "repeats": 1,
                    "label": pair.reading.label,
                    "error": error,
                }


# What was tried, beside the readings that are printed.
TRIED = {
    "chosen by looking": CHOSEN,
    "signed gaps": replace(CHOSEN, signed=True),
    "C = 1 for FERM too": replace(CHOSEN, stands_for={}),
    "nine conclusions": replace(CHOSEN, nine=True),
    "no half-splits, rho_rel is 1/K": replace(CHOSEN, halves=False),
    "every count worth three": replace(CHOSEN, factor=3.0),
    "not chosen by looking": PRESET,
    "the same, gaps in size": replace(PRESET, signed=False),
}


def shares(found: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    """Return by table, and of all, how many numbers lie within 0.05 and 0.10 of the published."""
    published = rows["value"].astype(float)
    off = (found.set_index("row")["mean"] - published).abs().round(9)
    near = pd.DataFrame({f"{limit:.2f}": off <= limit for limit in WITHIN})
    by_table = near.groupby(rows["table"], sort=False).mean()
    by_table.loc["all"] = near.mean()
    return by_table


def main(options: Results) -> None:
    """Compute all numbers, keep them, and print the shares that agree."""
    published = read_published()
    answered = published[published["table"].isin(ANSWERED)]
    rows = answered[answered["table"].isin(TABLES)]
    found = pd.DataFrame(numbers(answered, options.results, Effort.WHOLE))
    with atomic(NUMBERS) as file:
        found.drop(columns="sd").to_csv(file, index=False, float_format="%.4f")
    table = Table(title="within 0.05 (0.10) of the published", box=box.SIMPLE_HEAD)
    for i, heading in enumerate(("", *TABLES, "all")):
        table.add_column(heading, justify="right" if i else "left")
    for label, reading in TRIED.items():
        tried = pd.DataFrame(answers([pairs(reading)], rows))
        found_shares = shares(tried, rows)
        cells = (f"{100 * near:.0f} ({100 * wide:.0f})" for near, wide in found_shares.to_numpy())
        table.add_row(label, *cells)
    Console(width=140).print(table)
    for pair in pairs(CHOSEN).values():
        print(f"{' against '.join(pair.names)}: {len(pair.delta)} cross-validations")


if __name__ == "__main__":
    run_main(main, Results)
