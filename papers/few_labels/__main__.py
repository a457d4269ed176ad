"""Print the tables beside the published ones, or draw the figures.

``python -m papers.few_labels [--tables 4.2 4.3] [--runs 100] [--csv FILE]``, or
``python -m papers.few_labels --figures [--run ID]``. Tables have the numbers of Ji's thesis; 4.2
and 4.3 are Tables 2 and 3 of the paper. What is theirs is kept: scores, label orders, groups.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd

from fairbench.metrics.rates import accuracy
from papers import ROOT
from papers.few_labels.curves import curves
from papers.few_labels.pools import released_pools, run_pools
from papers.few_labels.tables import TABLES, compare, published, scoreboard


def main() -> None:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=TABLES)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--csv", type=Path)
    parser.add_argument("--figures", action="store_true")
    parser.add_argument("--run", help="the beginning of a run's id, in place of released scores")
    parser.add_argument("--group", help="the run's sensitive column; what it protects by default")
    options = parser.parse_args()
    if options.figures:
        _figures(options.run, options.group, options.runs)
    else:
        _tables(options.tables, options.runs, options.csv)


def _figures(run: str | None, group: str | None, runs: int) -> None:
    from papers.few_labels.figures import curve_figures, posterior_figures

    pools = released_pools() if run is None else run_pools(run, group)
    folder = ROOT / "results" / "report" / "few_labels"
    folder = folder / run if run else folder
    folder.mkdir(parents=True, exist_ok=True)
    posterior_figures(pools, accuracy, folder)
    results = [curves(name, table, accuracy, runs) for name, table in pools.items()]
    curve_figures(results, folder)
    frame = pd.concat([result.frame() for result in results])
    frame.to_csv(folder / "curves.csv", index=False)
    for name in ("error", "coverage"):
        print(f"\n{name}")
        table = frame.pivot_table(name, ["pool", "method"], "labels", sort=False)
        print(table.round(1).to_string())
    print(f"\nwritten to {folder}")


def _tables(names: list[str], runs: int, csv: Path | None) -> None:
    parts = []
    for name in names:
        part = pd.DataFrame(compare(published(name), runs)).dropna(axis="columns", how="all")
        print(f"\nTable {name}: {runs} runs, percent")
        print(part.drop(columns="table").round(1).to_string(index=False), flush=True)
        parts.append(part)
    ours = pd.concat(parts)
    print(f"\n{scoreboard(ours).to_string()}")
    if csv:
        ours.to_csv(csv, index=False)


if __name__ == "__main__":
    main()
