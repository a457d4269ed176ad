"""Our numbers for the tables on German: areas of regions, and one cross-validation of many.

`area_numbers` answers Tables 1 and 12.1, `partition_numbers` the tables that rest on one
cross-validation. Both are computed from what is packed; the studies `areas` and `one_partition`
keep them in ``table12_1.csv`` and ``numbers.csv``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.cli.command import Results
from fairbench.comparison.runs import Settings
from fairbench.components.papers import PAPERS, print_table, run_main
from fairbench.components.papers.engine.matching import Effort, Numbers, number
from fairbench.components.papers.uncertainty_matters import ground_truth, readings
from fairbench.components.papers.uncertainty_matters.ground_truth import Counts
from fairbench.core.arrays import Floats, Rows, rng
from fairbench.core.files import write_text
from fairbench.inference.comparing import highest_density_region
from fairbench.inference.posterior import paired_draws, table_draws
from fairbench.inference.survey import mean_shrinkage, relative_rho

PUBLISHED = PAPERS / "uncertainty_matters" / "published.csv"
AREA, INSIDE = "hdr95_area", "percent_of_cv_results_inside_hdr95"
AREAS = PAPERS / "uncertainty_matters" / "table12_1.csv"
AREA_READINGS = (
    readings.TEXT,
    readings.ALONE,
    readings.POOLED,
    readings.ONE_MACHINE,
    readings.APART,
    readings.ONE_HOT,
)
POSTERIORS, AREA_DRAWS = 12, 5000


def table_12_1(
    measured: readings.Measured, published: pd.DataFrame, *, predictive: bool = False
) -> Numbers:
    """Yield area of the 95 % region and percent of the cross-validations inside, row by row.

    Parameters
    ----------
    published : rows of Table 1 or 12.1; those of algorithms that were not measured are left out.
    """
    found: dict[tuple[str, str], dict[str, list[float]]] = {}
    rows = published[published["method"].isin(list(measured.counts))]
    for place, row in zip(rows.index, rows.to_dict("records"), strict=True):
        key, theirs = (row["method"], row["setting"]), float(row["value"])
        if key not in found:
            truth = readings.values(measured.counts[row["method"]])
            each = readings.regions(measured.cloud(*key, predictive=predictive))
            inside = [100 * float(of.density.holds(truth).mean()) for of in each if of.density]
            found[key] = {AREA: [of.size for of in each], INSIDE: inside}
        values = found[key][row["metric"]]
        own = max(len(values), 1)
        sd = float(np.std(values, ddof=1)) if own > 1 else 0.0
        one_ratio = readings.RHOS[row["setting"]] in readings.RELATIVE
        error = sd * np.sqrt(1 / own + (1 if one_ratio else 0))
        if row["metric"] == INSIDE:  # of so many cross-validations of ours
            cvs = len(measured.counts[row["method"]])
            error = np.hypot(error, np.sqrt(theirs * (100 - theirs) / cvs))
        yield number(float(np.mean(values)), sd, own, row=place, error=float(error))


def read_published() -> pd.DataFrame:
    """Return the published numbers as text; the index is the place of each."""
    return pd.read_csv(PUBLISHED, dtype=str, keep_default_na=False)


def area_numbers(rows: pd.DataFrame, results: Path, effort: Effort) -> Numbers:
    """Yield our number for every published one, the text's first.

    Parameters
    ----------
    rows : published numbers; the index is the place of each.
    """
    for reading in AREA_READINGS:
        every = dict.fromkeys(rows["method"])  # a reading of some machines has these alone
        names = [name for name in every if not reading.choices or name in reading.choices]
        posteriors, draws = effort.choose((POSTERIORS, AREA_DRAWS), (2, 1000), (1, 100))
        if names:
            options: dict[str, Any] = {"cvs": effort.choose(None, None, 20), "draws": draws}
            measured = readings.measure(reading, names, posteriors=posteriors, **options)
            for found in table_12_1(measured, rows, predictive=reading.predictive):
                yield {**found, "label": reading.label, "cause": reading.cause}


def areas() -> None:
    """Our numbers for Tables 1 and 12.1 of Uncertainty Matters: areas, and what lies inside.

    The ground truth is as many ten-fold cross-validations of an algorithm as are packed. The paper
    averages over as many posteriors; ours are of the first twelve, so that an area is known to
    its sd over the root of their number. With a relative rho the paper has one ratio from five
    half-splits, and ours have others: there the printed number is judged as one of ours.

    ``python -m papers.uncertainty_matters.tables areas`` computes them from what is packed, and
    keeps them in table12_1.csv.
    """
    rows = read_published().query("table in ('1', '12.1')")
    columns = ["row", "mean", "sd", "repeats", "error", "label", "cause"]
    found = pd.DataFrame(area_numbers(rows, Path("results"), Effort.WHOLE), columns=columns)
    write_text(AREAS, found.to_csv(index=False, float_format="%.5g"))
    print(f"{len(rows)} numbers of ours are in {AREAS}")


TABLES = ("2", "3", "12.2", "12.3", "12.4", "12.5", "13.1", "15.1", "15.2")
ANSWERED = (*TABLES, "14.2.1", "14.2.2")
FURTHEST = ("3", "12.4", "12.5")
NUMBERS = ground_truth.FOLDER / "numbers.csv"
PARTITIONS = 6  # that the rule ranks first
WHOLE = 10000  # cross-validations behind a printed share
DRAWS = 3000
# What one cross-validation has of a single algorithm (section 14.2), in the order of objectives.
OF_ONE = {"accuracy": 0, "equal_opportunity_difference": 1}


@dataclass(frozen=True, eq=False)
class Pair:
    """Two algorithms as a reading compares them.

    Attributes
    ----------
    counts : (B, G, 4) of either; the same index is the same partition.
    """

    reading: readings.Reading
    names: readings.Names
    counts: tuple[NDArray[np.int64], Counts]
    regions: dict[tuple[Any, ...], Any] = field(default_factory=dict, init=False)

    @cached_property
    def delta(self) -> Floats:
        """The difference of both objectives in every cross-validation, (B, 2)."""
        return self.differences(2)

    def differences(self, objectives: int) -> Floats:
        """Return the differences of some objectives in every cross-validation, (B, m)."""
        kept = min(map(len, self.counts))
        first, second = (self.reading.values(each[:kept], objectives) for each in self.counts)
        return first - second

    @cached_property
    def nearest(self) -> Rows:
        """The places of cross-validations in the order of the rule of section 12.4.

        The nearest to the mean difference comes first.
        """
        return np.linalg.norm(self.delta - self.delta.mean(axis=0), axis=1).argsort()

    @cached_property
    def furthest(self) -> Rows:
        """The places of those of another conclusion than the mean's, the furthest from it first.

        Where there is none, that of the furthest of all.
        """
        (of_mean,) = self.reading.conclusions(self.delta.mean(axis=0)[None])
        far = self.nearest[::-1]
        other = (np.array(self.reading.conclusions(self.delta)) != of_mean)[far]
        return far[other] if other.any() else far[:1]

    def probabilities(
        self,
        setting: readings.Setting,
        *,
        furthest: bool = False,
        draws: int = DRAWS,
        place: int = 0,
    ) -> dict[str, float]:
        """Return the shares of the published events under a setting, by metric.

        Parameters
        ----------
        furthest : of a partition far from the mean, in place of a near one.
        place : the partition's place in the rule's order, and that of the five half-splits.
        """
        if setting.rho == readings.TRUTH:
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
        self, setting: readings.Setting, *, furthest: bool, draws: int = DRAWS, place: int = 0
    ) -> Floats:
        """Return draws (T, m) of the posterior of the difference A - B under a setting.

        Paired ones are of the joint table, the mean of several partitions.
        """
        if self.reading.paired:
            joint = readings.packed_joint(self.names)
            generator = rng(0, "uncertainty matters", *self.names)
            tables = paired_draws(joint.mean(axis=0), draws, generator, alpha=setting.alpha)
            return self._difference(tables, setting)
        ranked = self.furthest if furthest else self.nearest
        return self.drawn_at(int(ranked[min(place, len(ranked) - 1)]), setting, draws, place)

    def drawn_at(
        self, cv: int, setting: readings.Setting, draws: int = DRAWS, place: int = 0
    ) -> Floats:
        """Return draws (T, m) of A - B from two posteriors of one partition, the `cv`-th."""
        return self._difference(self.tables(setting, cv, draws, place), setting)

    def _difference(self, tables: tuple[Floats, Floats], setting: readings.Setting) -> Floats:
        first, second = (self.reading.values(each, setting.objectives) for each in tables)
        return first - second

    def tables(
        self, setting: readings.Setting, cv: int, draws: int, place: int = 0
    ) -> tuple[Floats, Floats]:
        """Draw both algorithms' tables on their own, from their counts on one partition."""
        settings, drawn = Settings(rho=readings.RHOS[setting.rho]), []
        for name, counts in zip(self.names, self.counts, strict=True):
            ratio = self.reading.variance_ratio(name, place) if settings.relative else None
            worth = settings.shrinkage(readings.FOLDS, ratio)
            generator = rng(place, "uncertainty matters", "one partition", name, setting.rho)
            of: dict[str, Any] = {"alpha": setting.alpha, "predictive": self.reading.predictive}
            drawn.append(table_draws(counts[cv] * worth, draws, generator, **of))
        return drawn[0], drawn[1]


def pairs(reading: readings.Reading, cvs: int | None = None) -> dict[str, Pair]:
    """Return all pairs under a reading, by the name of their rows, of at most `cvs` partitions."""
    found = {}
    for pair in readings.PAIRS[:3] if reading.paired else readings.PAIRS:
        first, second = (reading.counts(name)[:cvs] for name in pair)
        found[" vs ".join(pair)] = Pair(reading, reading.names(pair), (first, second))
    return found


def partition_numbers(rows: pd.DataFrame, results: Path, effort: Effort) -> Numbers:
    """Yield our numbers for every published one, those of the text's setting first.

    Parameters
    ----------
    rows : published numbers; the index is the place of each.
    effort : with fewer draws and partitions for a quick look and a first pass.
    """
    compared = [pairs(reading, effort.choose(None, None, 100)) for reading in readings.READINGS]
    places = effort.choose(PARTITIONS, 3, 2)
    draws = effort.choose(DRAWS, DRAWS // 5, 200)
    yield from partition_answers(compared, rows, places, draws=draws)


def partition_answers(
    compared: Iterable[dict[str, Pair]],
    rows: pd.DataFrame,
    places: int = PARTITIONS,
    *,
    draws: int = DRAWS,
) -> Numbers:
    """Yield what some readings say of published numbers."""
    for by_method in compared:
        reading = next(iter(by_method.values())).reading
        for key, mine in rows.groupby(["table", "method", "setting"], sort=False):
            table, method, text = map(str, key)
            found: Numbers = iter(())
            if " vs " not in method:
                found = _alone(by_method, method, mine)
            elif method in by_method:
                found = _of_pair(by_method[method], table, text, mine, places, draws)
            yield from ({**each, "label": reading.label, "cause": reading.cause} for each in found)


def _of_pair(
    pair: Pair, table: str, text: str, mine: pd.DataFrame, places: int, draws: int
) -> Numbers:
    setting, reading = readings.Setting.read(text), pair.reading
    truth = setting.rho == readings.TRUTH
    if truth and reading.paired:
        return
    whole = 1 if truth or reading.paired else places
    furthest = table in FURTHEST
    found = [
        pair.probabilities(setting, furthest=furthest, draws=draws, place=place)
        for place in range(whole)
    ]
    of = (len(pair.delta), WHOLE) if truth else (draws, draws)
    for row in mine.itertuples():
        shares = scattered([each[str(row.metric)] for each in found])
        noise = np.sqrt(shares["mean"] * (1 - shares["mean"]) * (1 / of[0] + 1 / of[1]))
        yield {"row": row.Index, **shares, "error": float(np.hypot(noise, shares["error"]))}


def _alone(by_method: dict[str, Pair], name: str, mine: pd.DataFrame) -> Numbers:
    """Yield accuracy and gap in size of one algorithm: of a cross-validation, as ours scatter."""
    found = [pair for method, pair in by_method.items() if name in method.split(" vs ")]
    if not found or found[0].reading.paired:
        return
    values = np.abs(found[0].reading.values(found[0].reading.counts(name)))
    for row in mine.itertuples():
        yield {"row": row.Index, **scattered(values[:, OF_ONE[str(row.metric)]])}


def scattered(found: Sequence[float] | Floats) -> dict[str, float]:
    """Return the mean and the scatter of some numbers, and what another one may be off by."""
    count = len(found)
    sd = float(np.std(found, ddof=1)) if count > 1 else 0.0
    error = sd * float(np.sqrt(1 + 1 / count))
    return {"mean": float(np.mean(found)), "sd": sd, "repeats": count, "error": error}


def shares(found: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    """Return by table, and of all, how many numbers agree, and lie within 0.05."""
    published = rows["value"].astype(float)
    mine = found.set_index("row")
    off = (mine["mean"] - published).abs().round(9)
    near = pd.DataFrame({"agrees": off <= 2 * mine["error"] + 0.005, "0.05": off <= 0.05})
    by_table = near.groupby(rows["table"], sort=False).mean()
    by_table.loc["all"] = near.mean()
    return by_table


def one_partition(options: Results) -> None:
    """Our numbers for the tables of Uncertainty Matters that rest on one cross-validation of many.

    Its section 12.4: Tables 2, 12.2, 12.3, 13.1, 15.1 and 15.2 have the posterior of the
    cross-validation whose difference of the two algorithms is nearest to the mean difference;
    Tables 3, 12.4 and 12.5 that of the one whose conclusion is not the mean's and which lies
    furthest from it.

    A printed number is one draw: of the partition that is nearest among 10,000, and of the
    half-splits that tell how much an algorithm varies. Ours are of the six partitions that the
    same rule ranks first, each with five half-splits of its own, so that their scatter is what
    one draw may be off by.

    ``python -m papers.uncertainty_matters.tables one_partition`` computes all of them anew from the
    packed cross-validations, keeps them in numbers.csv, and prints the shares that agree under each
    reading.
    """
    published = read_published()
    rows = published[published["table"].isin(ANSWERED)]
    found = pd.DataFrame(partition_numbers(rows, options.results, Effort.WHOLE))
    write_text(NUMBERS, found.to_csv(index=False, float_format="%.4f"))
    rows = rows[rows["table"].isin(TABLES)]
    cells = []
    for reading in readings.READINGS:
        mine = found[(found["label"] == reading.label) & (found["cause"] == reading.cause)]
        if not reading.paired:
            kept = shares(mine[mine["row"].isin(rows.index)], rows)
            of = (f"{100 * one:.0f} ({100 * other:.0f})" for one, other in kept.to_numpy())
            cells.append([reading.cause or "text", *of])
    print_table("percent that agree (within 0.05)", ("", *TABLES, "all"), cells, width=140)
    for pair in pairs(readings.READINGS[0]).values():
        print(f"{' against '.join(pair.names)}: {len(pair.delta)} cross-validations")


def ratio_readings(published: pd.DataFrame) -> pd.DataFrame:
    """Return, by algorithm, r, the published area at rho_rel up, and each reading's prediction."""
    rows = published[(published["table"] == "12.1") & (published["metric"] == AREA)]
    areas = rows.assign(value=rows["value"].astype(float))
    areas = areas.pivot_table(index="method", columns="setting", values="value", sort=False)
    r = areas["rho_rel"] / areas["rho=1/K"]
    inflation = (readings.FOLDS - 1) * relative_rho(r.to_numpy(), readings.FOLDS)
    up_to_rel = np.log1p(inflation) / inflation  # the mean of 1 / (1 + (K - 1) rho), rho to rho_rel
    averaged = areas["rho in [0,1/K]"]
    return pd.DataFrame(
        {
            "r": r,
            "published": areas["rho_rel_up"],
            "rho_0 in [0,1/K]": r * averaged,
            "rho in [0,rho_rel]": averaged * mean_shrinkage(readings.FOLDS) / up_to_rel,
        }
    )


def published_ratios() -> None:
    """Print what the published areas of Table 12.1 say about how its relative rhos were computed.

    ``python -m papers.uncertainty_matters.tables published_ratios``: an area is inversely
    proportional to what counts are worth, so the area at rho_rel over that at 1/K is the paper's
    own r. From it follows the area at rho_rel up, under two readings: rho averaged over what rho_0
    in [0, 1/K] gives (all areas scale by r), or over [0, rho_rel].
    """
    rows = ratio_readings(read_published())
    cells = [
        [readings.short(str(name)), f"{row['r']:.2f}", *(f"{area:.4f}" for area in row.iloc[1:])]
        for name, row in rows.iterrows()
    ]
    print_table("area at rho_rel up", ("algorithm", *rows.columns), cells)
    for reading in rows.columns[2:]:
        error = (rows[reading] / rows["published"] - 1).abs()
        print(f"{reading}: off by {error.mean():.1%} in the mean, {error.max():.1%} at most")


if __name__ == "__main__":
    run_main(areas, one_partition, published_ratios)
