"""Our numbers for the tables of Uncertainty Matters that rest on one cross-validation of many.

Its section 12.4: Tables 12.2, 12.3, 13.1, 15.1 and 15.2 have the posterior of the cross-validation
whose difference of the two algorithms is nearest to the mean difference; Tables 12.4 and 12.5 that
of the one whose conclusion is not the mean's and which lies furthest from it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.core.seeds import rng
from fairbench.inference.objectives import objective
from fairbench.inference.posterior import table_draws
from fairbench.inference.practical_difference import Comparison, highest_density_region
from papers.uncertainty_matters.measured import Measured
from papers.uncertainty_matters.posteriors import OBJECTIVES, ROPE, favourable
from papers.uncertainty_matters.tables import EVENTS, counted

Array = NDArray[np.float64]
FURTHEST = ("12.4", "12.5")
PARITY = "statistical_parity_difference"
_PRIORS = {"prior Dir(0)": 0.0, "prior Dir(1/2)": 0.5, "prior Dir(1)": 1.0}


@dataclass(frozen=True)
class Setting:
    """What a column of these tables is computed with.

    Attributes
    ----------
    rho : the choice of rho, or ``ground truth``.
    level : of the highest-density region that events are restricted to; 0 for none.
    """

    rho: str
    level: float = 0.0
    rope: float = ROPE[0]
    alpha: float = 1.0
    objectives: tuple[str, ...] = OBJECTIVES

    @classmethod
    def read(cls, text: str) -> Setting:
        """Read ``rho_rel_up, 95 % hdr; rope=0.01; prior Dir(1)`` and its like."""
        first, *others = text.split("; ")
        rho, _, region = first.partition(", ") if "hdr" in first else (first, "", "no hdr")
        options: dict[str, Any] = {}
        if region != "no hdr":
            options["level"] = float(region.split()[0]) / 100
        for each in others:
            if each in _PRIORS:
                options["alpha"] = _PRIORS[each]
            elif each.startswith("objectives"):
                options["objectives"] = (*OBJECTIVES, PARITY)
            else:
                options["rope"] = float(each.removeprefix("rope=")) if "=" in each else 0.0
        return cls(rho, **options)

    def values(self, counts: NDArray[Any]) -> Array:
        """Return the objectives of every table, (..., G, 4) -> (..., m)."""
        turned = favourable(counts)
        return np.stack([objective(name)(turned) for name in self.objectives], axis=-1)

    def events(self, delta: Array) -> dict[str, float]:
        """Return the shares of the events among differences (N, m), inside the region if any."""
        known = delta[~np.isnan(delta).any(axis=1)]
        rope = np.full(len(self.objectives), self.rope)
        inside = highest_density_region(known, self.level).inside if self.level else None
        return Comparison(self.objectives, known, rope).events(inside)


def partition(measured: Measured, names: tuple[str, str], *, furthest: bool) -> int:
    """Return the place of the cross-validation that a table rests on.

    Parameters
    ----------
    furthest : the one furthest from the mean difference among those of another conclusion, in
        place of the nearest.
    """
    setting = Setting("ground truth")
    delta = _differences(measured, names, setting)
    mean = delta.mean(axis=0)
    distance = np.linalg.norm(delta - mean, axis=1)
    if not furthest:
        return int(distance.argmin())
    codes = Comparison(setting.objectives, np.vstack([mean, delta]), np.array(ROPE)).codes
    other = codes[1:] != codes[0]
    return int(np.where(other, distance, -1.0).argmax())


def _differences(measured: Measured, names: tuple[str, str], setting: Setting) -> Array:
    kept = measured.cvs(*names)
    first, second = (setting.values(measured.counts[name][:kept]) for name in names)
    difference: Array = first - second
    return difference


def probabilities(
    measured: Measured, names: tuple[str, str], setting: Setting, *, furthest: bool
) -> dict[str, float] | None:
    """Return the events of a setting; None where an algorithm or its half-splits are missing."""
    if not set(names) <= measured.counts.keys():
        return None
    if setting.rho == "ground truth":
        return setting.events(_differences(measured, names, setting))
    worths = [measured.effective_fraction(name, setting.rho) for name in names]
    place = partition(measured, names, furthest=furthest)
    draws = []
    for name, worth in zip(names, worths, strict=True):
        if worth is None:
            return None
        generator = rng(0, "uncertainty matters", "one partition", name, setting.rho)
        counts = measured.counts[name][place] * worth
        tables = table_draws(counts, measured.draws, generator, alpha=setting.alpha)
        draws.append(setting.values(tables))
    return setting.events(draws[0] - draws[1])


def numbers(rows: pd.DataFrame, results: Path, *, quick: bool = False) -> Iterator[dict[str, Any]]:
    """Yield our number for every published one.

    Parameters
    ----------
    rows : published numbers; the index is the place of each.
    quick : of what was computed before.
    """
    yield from answers(counted((), results, quick=quick), rows)


def answers(measured: Measured, rows: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield what the counts that were measured say of published numbers."""
    for (table, method, text), mine in rows.groupby(["table", "method", "setting"], sort=False):
        first, _, second = str(method).partition(" vs ")
        setting = Setting.read(str(text))
        found = probabilities(measured, (first, second), setting, furthest=table in FURTHEST)
        if found is None:
            continue
        # Two posteriors, theirs and ours, are of as many draws.
        shares_of = measured.draws / 2
        if setting.rho == "ground truth":
            shares_of = measured.cvs(first, second)
        for row in mine.itertuples():
            share = found[EVENTS[str(row.metric)]]
            error = np.sqrt(share * (1 - share) / shares_of)
            yield {"row": row.Index, "mean": share, "sd": np.nan, "repeats": 1, "error": error}
