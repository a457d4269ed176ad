"""Uncertainty Matters' Tables 12.1, 2 and 3 on German: ours beside the published numbers.

``python -m papers.uncertainty_matters.tables [CVS] [--posteriors 20] [--tables 12.1 2 ...]``; two
further tables are ``width``, sds, and ``pairs``, the events of every two algorithms. The ground
truth is up to as many ten-fold cross-validations as asked for (200), of every algorithm those that
were computed; a posterior is that of one of them, so each number of ours is a mean (sd) over
several. Relative rhos and paired comparisons come from the finished runs of
``experiment=uncertainty_matters/german_*``.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.core.files import write_text
from fairbench.reporting.published import AGREES, DIFFERS, MISSING, scoreboard
from papers import PAPERS
from papers.uncertainty_matters.every_pair import every_pair, print_pairs
from papers.uncertainty_matters.measured import RHOS, Measured, measure
from papers.uncertainty_matters.posteriors import Cloud, events, values
from papers.uncertainty_matters.printing import print_table

PUBLISHED = PAPERS / "uncertainty_matters" / "published.csv"
REPORT = Path("results") / "report" / "uncertainty_matters"
TRUTH = "ground truth"
AREA, INSIDE = "hdr95_area", "percent_of_cv_results_inside_hdr95"
EVENTS = {
    "p_a_outperforms_b": "A >> B",
    "p_b_outperforms_a": "B >> A",
    "p_equivalent": "A ~ B",
    "p_a_accuracy_b_fairness": "A accuracy, B equal_opportunity_difference",
    "p_b_accuracy_a_fairness": "B accuracy, A equal_opportunity_difference",
}
# Printed, as far as it is known what they show, by other commands; their numbers are not at hand.
ABSENT = "1, 12.2, 12.3, 12.4, 12.5, 13.1, 15.1, 15.2"
# Half a unit of the last digit: the CSV has lost trailing zeros.
_HALF = {AREA: 0.00005, INSIDE: 0.005, **dict.fromkeys(EVENTS, 0.005)}


# Kind of draws -> metric -> its value by each cross-validation.
Kinds = Mapping[str, Mapping[str, list[float]]]


def table_12_1(measured: Measured, published: pd.DataFrame) -> pd.DataFrame:
    """Return area of the 95 % region and percent of the cross-validations inside, row by row."""
    found: dict[tuple[str, str], Kinds] = {}
    for name, counts in measured.counts.items():
        for rho in RHOS:
            found[name, rho] = {
                kind: _areas(measured.cloud(name, rho, predictive=kind == "predictive"), counts)
                for kind in ("posterior", "predictive")
            }
    rows = published[published["table"] == "12.1"]
    return _table(rows, found, measured)


def _areas(cloud: Cloud | None, counts: NDArray[np.int64]) -> dict[str, list[float]]:
    if cloud is None:
        return {}
    truth = values(counts)
    regions = cloud.regions()
    held = [region.density.holds(truth).mean() for region in regions if region.density]
    return {AREA: [region.size for region in regions], INSIDE: [100 * float(h) for h in held]}


def events_table(measured: Measured, published: pd.DataFrame, table: str) -> pd.DataFrame:
    """Return the event probabilities of Table 2 or 3, and of the ground truth, row by row."""
    rows = published[published["table"] == table]
    found: dict[tuple[str, str], Kinds] = {}
    for (method, rho), _ in rows.groupby(["method", "setting"], sort=False):
        names = _names(str(method))
        if not set(names) <= measured.counts.keys():
            continue
        found[str(method), str(rho)] = (
            _truth(measured, names) if rho == TRUTH else _kinds(measured, names, str(rho))
        )
    return _table(rows, found, measured)


def _table(
    rows: pd.DataFrame, found: Mapping[tuple[str, str], Kinds], measured: Measured
) -> pd.DataFrame:
    keyed = [
        (found.get((row["method"], row["setting"]), {}), row) for row in rows.to_dict("records")
    ]
    return pd.DataFrame(
        [_row(row, kinds, measured.cvs(*row["method"].split(" vs "))) for kinds, row in keyed]
    )


def _names(method: str) -> tuple[str, str]:
    first, _, second = method.partition(" vs ")
    return first, second


def _truth(measured: Measured, names: tuple[str, str]) -> dict[str, dict[str, list[float]]]:
    """Return, by event, whether each cross-validation shows it; the mean is the ground truth."""
    first, second = (values(measured.counts[name][: measured.cvs(*names)]) for name in names)
    delta = first - second
    shown = [events(each[None]) for each in delta]
    return {"posterior": {name: [each[event] for each in shown] for name, event in EVENTS.items()}}


def _kinds(
    measured: Measured, names: tuple[str, str], rho: str
) -> dict[str, dict[str, list[float]]]:
    clouds: dict[str, Sequence[Cloud | None]] = {
        kind: [measured.cloud(name, rho, predictive=kind == "predictive") for name in names]
        for kind in ("posterior", "predictive")
    }
    clouds["paired"] = measured.pair(names, rho) or (None, None)
    return {kind: _events(*pair) for kind, pair in clouds.items()}


def _events(first: Cloud | None, second: Cloud | None) -> dict[str, list[float]]:
    if first is None or second is None:
        return {}
    found = first.events(second)
    return {name: [each[event] for each in found] for name, event in EVENTS.items()}


def _row(row: Mapping[str, str], found: Kinds, cvs: int) -> dict[str, Any]:
    """Return a published number with ours: means and sds over cross-validations.

    The paper's number is of one cross-validation: it agrees where it is within two of our sds over
    them, plus half a digit. What is a share of the `cvs` cross-validations has the standard error
    of one besides.
    """
    metric, published = row["metric"], float(row["value"])
    columns = {name: row[name] for name in ("table", "method", "setting", "metric")}
    measured = {kind: each.get(metric, []) for kind, each in found.items()}
    summary: dict[str, Any] = {**columns, "published": published}
    for kind in ("posterior", "predictive", "paired"):
        each = np.array(measured.get(kind, []))
        summary[kind] = float(each.mean()) if each.size else np.nan
        summary[f"{kind} sd"] = float(each.std(ddof=1)) if each.size > 1 else np.nan
    own = max(len(measured.get("posterior", [])), 1)
    truth = row["setting"] == TRUTH
    if truth:
        summary["posterior sd"] /= np.sqrt(own)
    spread = np.nan_to_num(summary["posterior sd"]) * np.sqrt(1 if truth else 1 + 1 / own)
    noise = _noise(published, 100) if metric == INSIDE else _noise(published, 1) if truth else 0
    bound = 2 * np.hypot(spread, noise / np.sqrt(max(cvs, 1))) + _HALF[metric]
    return {**summary, **_verdict(summary["posterior"] - published, bound)}


def _noise(share: float, whole: float) -> float:
    return float(np.sqrt(share * (whole - share)))


def _verdict(difference: float, bound: float) -> dict[str, Any]:
    close = AGREES if abs(difference) <= bound else DIFFERS
    verdict = MISSING if np.isnan(difference) else close
    return {"difference": difference, "verdict": verdict, "reproduces": True}


def width_table(measured: Measured) -> Iterator[dict[str, Any]]:
    """Yield, by algorithm, the sds of both objectives over cross-validations and in posteriors."""
    for name, counts in measured.counts.items():
        truth = values(counts)
        row: dict[str, Any] = {"method": name, "CVs": len(truth)}
        for i, short in enumerate(("accuracy", "EO")):
            row[f"{short} mean"] = truth[:, i].mean()
            row[f"{short} sd"] = truth[:, i].std(ddof=1)
            for kind in ("posterior", "predictive"):
                cloud = measured.cloud(name, "rho=1/K", predictive=kind == "predictive")
                assert cloud is not None
                row[f"{short} {kind}"] = cloud.draws[..., i].std(axis=1).mean()
        yield {**row, "r": measured.ratios.get(name, np.nan)}


def read_published() -> pd.DataFrame:
    """Return the published numbers as text."""
    return pd.read_csv(PUBLISHED, dtype=str, keep_default_na=False)


def pairs(published: pd.DataFrame) -> list[tuple[str, str]]:
    """Return the pairs of algorithms that Tables 2 and 3 compare."""
    return [_names(method) for method in published["method"].unique() if " vs " in method]


def _rows(table: str, measured: Measured, published: pd.DataFrame) -> pd.DataFrame:
    if table == "width":
        return pd.DataFrame(width_table(measured))
    if table == "12.1":
        return table_12_1(measured, published)
    return events_table(measured, published, table)


def main() -> None:
    """Print the tables, write them, and say how many numbers agree."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cvs", nargs="?", type=int, default=200, help="CVs of the ground truth")
    parser.add_argument("--posteriors", type=int, default=20, help="CVs with a posterior each")
    parser.add_argument("--draws", type=int, default=10000)
    parser.add_argument("--tables", nargs="+", default=["12.1", "2", "3", "width", "pairs"])
    parser.add_argument("--results", default=Path("results"), type=Path)
    options = parser.parse_args()
    published = read_published()
    measured = measure(options.cvs, pairs(published), options.results)
    measured = replace(measured, posteriors=options.posteriors, draws=options.draws)
    for table in options.tables:
        if table == "pairs":
            rows = every_pair(measured)
            print_pairs(rows)
        else:
            rows = _rows(table, measured, published)
            print_table(table, rows)
        write_text(REPORT / f"table{table}.csv", rows.to_csv(index=False))
        if "verdict" in rows:
            print(f"table {table}: {scoreboard(rows)}\n")
    print(f"tables {ABSENT}: no published numbers at hand, see docs/deviations.md")


if __name__ == "__main__":
    main()
