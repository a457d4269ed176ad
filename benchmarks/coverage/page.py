"""The figures of the battery: a CSV row for each interval and construction, and their page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.coverage.families import FAMILIES
from benchmarks.coverage.simulate import OURS, REQUIRED, Cell
from benchmarks.measure import ROOT, fill, markdown, read_rows, replaced
from benchmarks.statements import page as statements

PAGE = ROOT / "docs" / "coverage.md"
ENOUGH = 80  # printed intervals from which on a cell's coverage is shown
NAMES = ("family", "interval", "made_by")
TEXTS = (*NAMES, "lowest_in", "next_lowest")
COLUMNS = (
    *(*NAMES, "settings", "trials", "printed", "failed", "mean", "lowest", "lowest_in"),
    *("next_lowest", "truth_below", "truth_above", "width", "relative_width"),
)
ORDER = [family.name for family in FAMILIES]


def failures(cells: Iterable[Cell]) -> list[Cell]:
    """Return the cells of our own intervals that failed."""
    return [cell for cell in cells if cell.construction == OURS and cell.failed]


def rows_of(cells: Iterable[Cell]) -> pd.DataFrame:
    """Return a row for each interval of each family and construction.

    Coverage is in percent, over the settings in which any interval is printed; it is lowest among
    those with `ENOUGH` printed intervals. Widths relative to ours are over settings of both.
    """
    by_name: dict[tuple[str, ...], list[Cell]] = {}
    for cell in cells:
        by_name.setdefault((cell.family, cell.metric, cell.construction), []).append(cell)
    rows = []
    for (family, interval, made_by), of in by_name.items():
        ours = {cell.population: cell for cell in by_name.get((family, interval, OURS), ())}
        rows.append({"family": family, "interval": interval, "made_by": made_by, **_row(of, ours)})
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _row(cells: Sequence[Cell], ours: Mapping[str, Cell]) -> dict[str, Any]:
    trials, printed = (sum(getattr(c, name) for c in cells) for name in ("trials", "printed"))
    row = {"settings": len(cells), "trials": trials, "printed": round(100 * printed / trials, 1)}
    there = [cell for cell in cells if cell.printed]
    if not there:
        return row
    known = [cell for cell in there if cell.printed >= ENOUGH] or there
    lowest, *others = sorted(known, key=lambda cell: (cell.coverage, cell.population))[:3]
    both = [(c.width, our.width) for c in there if (our := ours.get(c.population)) and our.printed]
    relative = float(np.divide(*np.mean(both, axis=0))) if both else np.nan
    return {
        **row,
        "failed": round(100 * sum(cell.failed for cell in there) / len(there), 1),
        "mean": round(100 * float(np.mean([cell.coverage for cell in there])), 1),
        "lowest": round(100 * lowest.coverage, 1),
        "lowest_in": lowest.population,
        "next_lowest": "; ".join(f"{100 * c.coverage:.1f} % with {c.population}" for c in others),
        "truth_below": round(100 * sum(cell.below for cell in there) / printed, 1),
        "truth_above": round(100 * sum(cell.above for cell in there) / printed, 1),
        "width": float(f"{np.mean([cell.width for cell in there]):.4g}"),
        "relative_width": round(relative, 2),
    }


def write(page: Path, rows: pd.DataFrame) -> None:
    """Put rows of whole families into the CSV file beside a page, and make its tables of all."""
    path = page.with_suffix(".csv")
    every = replaced(read_rows(path, TEXTS), rows, "family", ORDER)
    every.to_csv(path, index=False)
    fill(page, parts(every, page.with_name(statements.PAGE.name)), words=PAGE)


def parts(rows: pd.DataFrame, beside: Path) -> dict[str, str]:
    """Return the tables of the page.

    Parameters
    ----------
    beside : the page of statements, which the first table has a row of.
    """
    return {
        "promises": markdown([PROMISED, *_promises(rows, beside)], ["---"] * len(PROMISED)),
        "families": markdown([OVERVIEW, *_families(rows)], _RULE),
        "lowest": _lowest(rows[rows["made_by"] == OURS]),
    }


PROMISED = (
    *("intervals or claims", "simulated in", "promised", "measured", "lowest", "where"),
    "families",
)
OVERVIEW = (
    *("family", "settings", "failed", "mean", "lowest"),
    *("others that failed", "others that never failed (width relative to ours)"),
)
_RULE = ("---", *["--:"] * 4, *["---"] * 2)
LOWEST = ("family", "interval", "coverage", "setting")
SHOWN = 10  # of the intervals that cover least


# Intervals that are promised alike, by the names of their families.
PROMISES = {
    "A rate; the difference, ratio or odds ratio of two groups": (
        "rates", "differences", "ratios", "fixed_rates", "odds_ratios", "pooled",
    ),
    "The largest gap, the smallest ratio and equalized odds, over all groups": (
        "gaps", "gaps_with_tiny_groups", "smallest_ratios", "equalized_odds", "gaps_of_means",
        "small_gaps", "best_by_score",
    ),
    "Losses, AUC, calibration, errors of numbers, standardised means; their differences": (
        "scores", "areas_of_clusters", "reaching_scores", "regression", "mean_differences",
    ),
    "Rates and means with weights, clusters or strata": (
        "weights_and_clusters", "standardised",
    ),
    "Rates and gaps where only few labels, or no groups, are known": (
        "few_labels", "active_labels", "stopped_labels", "along_the_run", "selected", "proxies",
    ),
    "Gaps and errors over splits: of one run, of the fairest of many, of two runs compared": (
        "chosen", "chosen_runs", "chosen_in_splits", "runs", "learners", "comparisons",
        "stored_comparisons",
    ),
    "Every row of the table of `fairbench.evaluate`": ("evaluate",),
}  # fmt: skip


def _promises(rows: pd.DataFrame, beside: Path) -> Iterator[Sequence[str]]:
    ours = rows[(rows["made_by"] == OURS) & rows["mean"].notna()]
    for what, families in PROMISES.items():
        of = ours[ours["family"].isin(families)]
        if len(of):
            mean, failed, least = _together(of)
            where = (least["interval"], least["lowest_in"])
            unit = "row" if families == ("evaluate",) else "setting"
            some = f"{failed or 'no'} {unit}{'s' * (failed > 1)} failed"
            yield (
                what,
                f"{of['settings'].sum():,} {unit}s",
                "95 % each",
                f"{mean:.1f} % on average; {some}",
                f"{least['lowest']:.1f} %",
                ", ".join(each for each in where if isinstance(each, str)),
                ", ".join(f"`{name}`" for name in of["family"].unique()),
            )
    yield from statements.promise(beside)


def _together(rows: pd.DataFrame) -> tuple[float, int, Mapping[str, Any]]:
    """Return the mean over settings, how many settings failed, and the row of the lowest."""
    mean = float(np.average(rows["mean"], weights=rows["settings"]))
    failed = round(float((rows["failed"] * rows["settings"]).sum() / 100))
    return mean, failed, rows.loc[rows["lowest"].idxmin()].to_dict()


def _families(rows: pd.DataFrame) -> Iterator[Sequence[str]]:
    for name, of_family in rows[rows["mean"].notna()].groupby("family", sort=False):
        ours = of_family[of_family["made_by"] == OURS]
        mean, failed, least = _together(ours)
        yield (
            f"`{name}`",
            f"{ours['settings'].max()}",
            f"{failed}",
            f"{mean:.1f} %",
            f"{least['lowest']:.1f} %",
            *_others(of_family[of_family["made_by"] != OURS]),
        )


def _others(rows: pd.DataFrame) -> tuple[str, str]:
    """Return which other constructions failed, in which share of settings, and which never did."""
    failed, never = [], []
    for name, of in rows.groupby("made_by", sort=False):
        if of["failed"].any():
            share = np.average(of["failed"], weights=of["settings"])
            failed.append(f"{name} in {share:.1f} %")
        else:
            width = of["relative_width"].mean()
            never.append(f"{name} ({width:.2f})" if np.isfinite(width) else f"{name}")
    return ", ".join(failed) or "-", ", ".join(never) or "-"


def _lowest(ours: pd.DataFrame) -> str:
    """Return how many settings failed, and the intervals that cover least in any."""
    failed = _together(ours[ours["mean"].notna()])[1]
    rows: list[Sequence[str]] = [LOWEST]
    under = ours[ours["lowest"] < 100 * REQUIRED].sort_values("lowest", kind="stable")
    for row in under.fillna({"lowest_in": ""}).head(SHOWN).to_dict("records"):
        mark = " (failed)" if row["failed"] else ""
        share = f"{row['lowest']:.1f} %{mark}"
        rows.append((f"`{row['family']}`", row["interval"], share, row["lowest_in"]))
    first = f"{failed or 'No'} setting{'s' * (failed > 1)} of our intervals failed."
    first += f" {len(under)} covered the truth in under {REQUIRED:.0%} of the samples of a setting."
    first = first.replace("%", " %")
    return f"{first}\n\n{markdown(rows, ('---', '---', '--:', '---'))}"
