"""Our numbers for the tables of Uncertainty Matters that rest on one cross-validation of many.

Its section 12.4: Tables 2, 12.2, 12.3, 13.1, 15.1 and 15.2 have the posterior of the
cross-validation whose difference of the two algorithms is nearest to the mean difference; Tables 3,
12.4 and 12.5 that of the one whose conclusion is not the mean's and which lies furthest from it.

A printed number is one draw: of the partition that is nearest among 10,000, and of the half-splits
that tell how much an algorithm varies. Ours are of the six partitions that the same rule ranks
first, each with five half-splits of its own, so that their scatter is what one draw may be off by.

``python -m papers.uncertainty_matters.one_partition`` computes all of them anew from the packed
cross-validations, keeps them in numbers.csv, and prints the shares that agree under each reading.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
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
from fairbench.components.papers.uncertainty_matters.posteriors import FOLDS
from fairbench.components.papers.uncertainty_matters.readings import (
    READINGS,
    RHOS,
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
from fairbench.inference.comparing.practical_difference import highest_density_region
from fairbench.inference.posterior import paired_draws, table_draws
from fairbench.reporting.papers.running import Effort

PAIRS: tuple[Names, ...] = (
    ("Disparate impact remover + SVM", "FERM"),
    ("Linear SVM + Hardt", "FERM"),
    ("SVM + Hardt", "Linear SVM + Hardt"),  # of section 14.2, case 1
    ("Linear SVM + Hardt", "Linear FERM"),  # of section 14.2, case 2
)
# Of one-hot columns.
ALL = tuple(
    dict.fromkeys(
        name
        for each in READINGS
        for pair in PAIRS[:3]
        if each.stands_for is not None
        for name in each.names(pair)
    )
)
TABLES = ("2", "3", "12.2", "12.3", "12.4", "12.5", "13.1", "15.1", "15.2")
ANSWERED = (*TABLES, "14.2.1", "14.2.2")
FURTHEST = ("3", "12.4", "12.5")
NUMBERS = ground_truth.FOLDER / "numbers.csv"
PARTITIONS = 6  # that the rule ranks first
WHOLE = 10000  # cross-validations behind a printed share
DRAWS = 3000
WITHIN = (0.05, 0.1)
# What one cross-validation has of a single algorithm (section 14.2), in the order of objectives.
_ALONE = {"accuracy": 0, "equal_opportunity_difference": 1}


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
    regions: dict[tuple[Any, ...], Any] = field(default_factory=dict, init=False)

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

    @property
    def nearest(self) -> int:
        """The place of the cross-validation nearest to the mean difference."""
        return int(self.ranked(furthest=False)[0])

    @property
    def furthest(self) -> int:
        """The place of the one furthest from the mean among those of another conclusion."""
        return int(self.ranked(furthest=True)[0])

    def ranked(self, *, furthest: bool) -> NDArray[np.intp]:
        """Return the places of cross-validations in the order of the rule of section 12.4.

        The furthest ones are those of another conclusion than the mean's; where none is, the
        furthest of all.
        """
        near: NDArray[np.intp] = self._distance.argsort()
        if not furthest:
            return near
        other = self._concludes_otherwise[near[::-1]]
        return near[::-1][other] if other.any() else near[::-1][:1]

    @cached_property
    def _concludes_otherwise(self) -> NDArray[np.bool_]:
        (of_mean,) = self.reading.conclusions(self.delta.mean(axis=0)[None])
        return np.asarray(np.array(self.reading.conclusions(self.delta)) != of_mean, bool)

    @cached_property
    def _distance(self) -> Floats:
        distance: Floats = np.linalg.norm(self.delta - self.delta.mean(axis=0), axis=1)
        return distance

    def probabilities(
        self, setting: Setting, *, furthest: bool = False, draws: int = DRAWS, place: int = 0
    ) -> dict[str, float]:
        """Return the shares of the published events under a setting, by metric.

        Parameters
        ----------
        furthest : of a partition far from the mean, in place of a near one.
        place : the partition's place in the rule's order, and that of the five half-splits.
        """
        if setting.rho == TRUTH:
            return self.reading.events(self.differences(setting.objectives), setting)
        drawn = setting.rho, setting.alpha, setting.objectives, furthest, draws, place
        if drawn not in self.regions:
            delta = self.difference_draws(setting, furthest=furthest, draws=draws, place=place)
            self.regions[drawn] = delta[~np.isnan(delta).any(axis=1)]
        region = (*drawn, setting.level)
        if setting.level and region not in self.regions:
            found = highest_density_region(self.regions[drawn], setting.level)
            self.regions[region] = found.inside
        return self.reading.events(self.regions[drawn], setting, self.regions.get(region))

    def difference_draws(
        self, setting: Setting, *, furthest: bool, draws: int = DRAWS, place: int = 0
    ) -> Floats:
        """Return draws (T, m) of the posterior of the difference A - B under a setting."""
        if self.reading.paired:
            return self._difference(self._joint(setting, draws), setting)
        ranked = self.ranked(furthest=furthest)
        return self.drawn_at(int(ranked[min(place, len(ranked) - 1)]), setting, draws, place)

    def drawn_at(self, cv: int, setting: Setting, draws: int = DRAWS, place: int = 0) -> Floats:
        """Return draws (T, m) of A - B from two posteriors of one partition, the `cv`-th."""
        return self._difference(self.tables(setting, cv, draws, place), setting)

    def _difference(self, tables: tuple[Floats, Floats], setting: Setting) -> Floats:
        first, second = (self.reading.values(each, setting.objectives) for each in tables)
        difference: Floats = first - second
        return difference

    def tables(
        self, setting: Setting, cv: int, draws: int, place: int = 0
    ) -> tuple[Floats, Floats]:
        """Draw both algorithms' tables on their own, from their counts on one partition."""
        settings = Settings(rho=RHOS[setting.rho])
        first, second = (
            table_draws(
                counts[cv] * settings.shrinkage(FOLDS, self._ratio(settings, name, place)),
                draws,
                rng(place, "uncertainty matters", "one partition", name, setting.rho),
                alpha=setting.alpha,
                predictive=self.reading.predictive,
            )
            for name, counts in zip(self.names, self.counts, strict=True)
        )
        return first, second

    def _ratio(self, settings: Settings, name: str, place: int) -> Floats | None:
        return self.reading.variance_ratio(name, place) if settings.relative else None

    def _joint(self, setting: Setting, draws: int) -> tuple[Floats, Floats]:
        """Draw both algorithms' tables from their joint table, the mean of several partitions."""
        joint = packed.joint(self.names)
        if joint is None:
            raise UserError(f"no joint counts of {' and '.join(self.names)} are packed")
        generator = rng(0, "uncertainty matters", *self.names)
        return paired_draws(joint.mean(axis=0), draws, generator, alpha=setting.alpha)


def pairs(reading: Reading, cvs: int | None = None) -> dict[str, Pair]:
    """Return all pairs under a reading, by the name of their rows, of at most `cvs` partitions."""
    found = {}
    for pair in PAIRS[:3] if reading.paired else PAIRS:
        first, second = (reading.counts(name)[:cvs] for name in pair)
        found[" vs ".join(pair)] = Pair(reading, reading.names(pair), (first, second))
    return found


def numbers(rows: pd.DataFrame, results: Path, effort: Effort) -> Iterator[dict[str, Any]]:
    """Yield our numbers for every published one, those of the text's setting first.

    Parameters
    ----------
    rows : published numbers; the index is the place of each.
    effort : with fewer draws and partitions for a quick look and a first pass.
    """
    compared = [pairs(reading, effort.choose(None, None, 100)) for reading in READINGS]
    places = effort.choose(PARTITIONS, 3, 2)
    yield from answers(compared, rows, places, draws=effort.choose(DRAWS, DRAWS // 5, 200))


def answers(
    compared: Iterable[dict[str, Pair]],
    rows: pd.DataFrame,
    places: int = PARTITIONS,
    *,
    draws: int = DRAWS,
) -> Iterator[dict[str, Any]]:
    """Yield what some readings say of published numbers."""
    for by_method in compared:
        for key, mine in rows.groupby(["table", "method", "setting"], sort=False):
            table, method, text = map(str, key)
            if " vs " not in method:
                yield from _alone(by_method, method, mine)
            elif method in by_method:
                yield from _of_pair(by_method[method], table, text, mine, places, draws)


def _of_pair(
    pair: Pair, table: str, text: str, mine: pd.DataFrame, places: int, draws: int
) -> Iterator[dict[str, Any]]:
    setting, reading = Setting.read(text), pair.reading
    truth = setting.rho == TRUTH
    if truth and reading.paired:
        return
    whole = 1 if truth or reading.paired else places
    furthest = table in FURTHEST
    found = [
        pair.probabilities(setting, furthest=furthest, draws=draws, place=place)
        for place in range(whole)
    ]
    for row in mine.itertuples():
        shares = np.array([each[str(row.metric)] for each in found])
        share = float(shares.mean())
        of = (len(pair.delta), WHOLE) if truth else (draws, draws)
        noise = np.sqrt(share * (1 - share) * (1 / of[0] + 1 / of[1]))
        spread = float(shares.std(ddof=1)) if whole > 1 else 0.0
        yield {
            **_front(reading, row.Index),
            "mean": share,
            "sd": spread,
            "repeats": whole,
            "error": float(np.hypot(noise, spread * np.sqrt(1 + 1 / whole))),
        }


def _alone(by_method: dict[str, Pair], name: str, mine: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield accuracy and gap in size of one algorithm: of a cross-validation, as ours scatter."""
    found = [pair for method, pair in by_method.items() if name in method.split(" vs ")]
    if not found or found[0].reading.paired:
        return
    pair = found[0]
    counts = pair.reading.counts(name)
    values = np.abs(pair.reading.values(counts))
    for row in mine.itertuples():
        own = values[:, _ALONE[str(row.metric)]]
        spread = float(own.std(ddof=1))
        yield {
            **_front(pair.reading, row.Index),
            "mean": float(own.mean()),
            "sd": spread,
            "repeats": len(own),
            "error": spread * float(np.sqrt(1 + 1 / len(own))),
        }


def _front(reading: Reading, row: Any) -> dict[str, Any]:
    return {"row": row, "label": reading.label, "cause": reading.cause}


def shares(found: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    """Return by table, and of all, how many numbers agree, and lie within 0.05 and 0.10."""
    published = rows["value"].astype(float)
    mine = found.set_index("row")
    off = (mine["mean"] - published).abs().round(9)
    near = pd.DataFrame({f"{limit:.2f}": off <= limit for limit in WITHIN})
    near.insert(0, "agrees", off <= 2 * mine["error"] + 0.005)
    by_table = near.groupby(rows["table"], sort=False).mean()
    by_table.loc["all"] = near.mean()
    return by_table


def main(options: Results) -> None:
    """Compute all numbers, keep them, and print the shares that agree."""
    published = read_published()
    rows = published[published["table"].isin(ANSWERED)]
    found = pd.DataFrame(numbers(rows, options.results, Effort.WHOLE))
    with atomic(NUMBERS) as file:
        found.to_csv(file, index=False, float_format="%.4f")
    rows = rows[rows["table"].isin(TABLES)]
    table = Table(title="percent that agree (within 0.05)", box=box.SIMPLE_HEAD)
    for i, heading in enumerate(("", *TABLES, "all")):
        table.add_column(heading, justify="right" if i else "left")
    for reading in READINGS:
        mine = found[(found["label"] == reading.label) & (found["cause"] == reading.cause)]
        if not reading.paired:
            kept = shares(mine[mine["row"].isin(rows.index)], rows)[["agrees", "0.05"]]
            cells = (f"{100 * one:.0f} ({100 * other:.0f})" for one, other in kept.to_numpy())
            table.add_row(reading.cause or "text", *cells)
    Console(width=140).print(table)
    for pair in pairs(READINGS[0]).values():
        print(f"{' against '.join(pair.names)}: {len(pair.delta)} cross-validations")


if __name__ == "__main__":
    run_main(main, Results)
