"""Our numbers for Tables 1 and 12.1 of Uncertainty Matters: areas, and what lies inside.

The ground truth is as many ten-fold cross-validations of an algorithm as are packed. The paper
averages over as many posteriors; ours are of the first twelve, so that an area is known to its sd
over the root of their number. With a relative rho the paper has one ratio from five half-splits,
and ours have others: there the printed number is judged as one of ours.

``python -m papers.uncertainty_matters.tables`` computes them from what is packed, and keeps them in
table12_1.csv.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fairbench.components.papers import PAPERS, run_main
from fairbench.components.papers.uncertainty_matters.measured import Measured, measure
from fairbench.components.papers.uncertainty_matters.posteriors import values
from fairbench.components.papers.uncertainty_matters.readings import (
    ALONE,
    APART,
    ONE_HOT,
    ONE_MACHINE,
    POOLED,
    RELATIVE,
    RHOS,
    TEXT,
    Reading,
)
from fairbench.core.files import atomic
from fairbench.reporting.papers.running import Effort

PUBLISHED = PAPERS / "uncertainty_matters" / "published.csv"
AREA, INSIDE = "hdr95_area", "percent_of_cv_results_inside_hdr95"
KEPT = PAPERS / "uncertainty_matters" / "table12_1.csv"
READINGS = (TEXT, ALONE, POOLED, ONE_MACHINE, APART, ONE_HOT)
POSTERIORS, DRAWS = 12, 5000


def table_12_1(
    measured: Measured, published: pd.DataFrame, *, predictive: bool = False
) -> pd.DataFrame:
    """Return area of the 95 % region and percent of the cross-validations inside, row by row.

    Parameters
    ----------
    published : rows of Table 1 or 12.1; those of algorithms that were not measured are left out.

    Returns
    -------
    A row each: ``row``, ``method``, ``setting``, ``metric``, ``published``, ``mean``, ``sd``,
    ``repeats``, ``error``.
    """
    rows = published[published["method"].isin(list(measured.counts))]
    found: dict[tuple[str, str], dict[str, list[float]]] = {}
    for name, rho in dict.fromkeys(zip(rows["method"], rows["setting"], strict=True)):
        found[name, rho] = _areas(measured, name, rho, predictive=predictive)
    summaries = []
    for place, row in zip(rows.index, rows.to_dict("records"), strict=True):
        values_of_row = found[row["method"], row["setting"]][row["metric"]]
        summary = _summary(values_of_row, row, measured.cvs(row["method"]))
        names = ("method", "setting", "metric")
        front = {"row": place, **{name: row[name] for name in names}}
        summaries.append({**front, "published": float(row["value"]), **summary})
    return pd.DataFrame(summaries)


def _areas(measured: Measured, name: str, rho: str, *, predictive: bool) -> dict[str, list[float]]:
    truth = values(measured.counts[name])
    regions = measured.cloud(name, rho, predictive=predictive).regions()
    held = [region.density.holds(truth).mean() for region in regions if region.density]
    return {AREA: [region.size for region in regions], INSIDE: [100 * float(h) for h in held]}


def _summary(found: list[float], row: Mapping[str, Any], cvs: int) -> dict[str, float]:
    """Return the mean, its scatter, and what the printed number may be off by."""
    own = max(len(found), 1)
    sd = float(np.std(found, ddof=1)) if own > 1 else 0.0
    one_ratio = RHOS[row["setting"]] in RELATIVE
    error = sd * np.sqrt(1 / own + (1 if one_ratio else 0))
    if row["metric"] == INSIDE:  # of so many cross-validations of ours
        share = float(row["value"])
        error = np.hypot(error, np.sqrt(share * (100 - share) / cvs))
    return {"mean": float(np.mean(found)), "sd": sd, "repeats": own, "error": float(error)}


def read_published() -> pd.DataFrame:
    """Return the published numbers as text; the index is the place of each."""
    return pd.read_csv(PUBLISHED, dtype=str, keep_default_na=False)


def numbers(rows: pd.DataFrame, results: Path, effort: Effort) -> Iterator[dict[str, Any]]:
    """Yield our number for every published one, the text's first.

    Parameters
    ----------
    rows : published numbers; the index is the place of each.
    """
    for reading in READINGS:
        names = [name for name in dict.fromkeys(rows["method"]) if _differs(reading, name)]
        options: dict[str, Any] = {
            "posteriors": effort.choose(POSTERIORS, 2, 1),
            "draws": effort.choose(DRAWS, 1000, 100),
            "cvs": effort.choose(None, None, 20),
        }
        if names:
            found = table_12_1(
                measure(reading, names, **options), rows, predictive=reading.predictive
            )
            kept = found[["row", "mean", "sd", "repeats", "error"]]
            for record in kept.to_dict("records"):
                yield {**record, "label": reading.label, "cause": reading.cause}


def _differs(reading: Reading, name: str) -> bool:
    """Say whether a reading has an algorithm of its own, or changes how all are drawn."""
    return not reading.choices or name in reading.choices


def main() -> None:
    """Compute both tables from what is packed, and keep them."""
    rows = read_published().query("table in ('1', '12.1')")
    found = pd.DataFrame(numbers(rows, Path("results"), Effort.WHOLE))
    with atomic(KEPT) as file:
        found.to_csv(file, index=False, float_format="%.5g")
    print(f"{len(rows)} numbers of ours are in {KEPT}")


if __name__ == "__main__":
    run_main(main)
