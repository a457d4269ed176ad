"""How far cross-validations of German scatter, and how wide the posteriors of one are.

``python -m papers.uncertainty_matters.spreads [cvs=200]`` prints, by algorithm, the sds of accuracy
and of the equal opportunity difference over repeated cross-validations (partition noise alone),
beside those of the posterior and of predictive draws at rho = 1/K.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from fairbench.components.papers import run_main
from fairbench.components.papers.options import CrossValidations
from fairbench.components.papers.uncertainty_matters.measured import Measured, measure
from fairbench.components.papers.uncertainty_matters.posteriors import short, values

_SHORT = {"accuracy": "acc.", "EO": "EO"}


def spreads(measured: Measured) -> Iterator[dict[str, Any]]:
    """Yield, by algorithm, the sds of both objectives over cross-validations and in posteriors."""
    for name, counts in measured.counts.items():
        truth = values(counts)
        row: dict[str, Any] = {"method": name, "CVs": len(truth)}
        for i, objective in enumerate(("accuracy", "EO")):
            row[f"{objective} mean"] = truth[:, i].mean()
            row[f"{objective} sd"] = truth[:, i].std(ddof=1)
            for kind in ("posterior", "predictive"):
                cloud = measured.cloud(name, "rho=1/K", predictive=kind == "predictive")
                row[f"{objective} {kind}"] = cloud.draws[..., i].std(axis=1).mean()
        yield {**row, "r": float(np.mean(measured.ratios.get(name, np.nan)))}


def table(rows: Iterable[dict[str, Any]]) -> Table:
    """Return a row of sds for each algorithm."""
    shown = Table(
        title="sds over cross-validations (partition noise), and of the posterior at rho=1/K",
        title_justify="left",
        box=box.SIMPLE_HEAD,
        collapse_padding=True,
    )
    shown.add_column("algorithm", no_wrap=True)
    headers = {"mean": "mean", "sd": "CVs", "posterior": "post.", "predictive": "pred."}
    for objective in ("accuracy", "EO"):
        for header in headers.values():
            shown.add_column(f"{_SHORT[objective]}\n{header}", justify="right")
    shown.add_column("r", justify="right")
    for row in rows:
        cells = [
            f"{row[f'{objective} {name}']:.4f}"
            for objective in ("accuracy", "EO")
            for name in headers
        ]
        shown.add_row(short(row["method"]), *cells, f"{row['r']:.2f}")
    return shown


def main(options: CrossValidations) -> None:
    """Print the sds."""
    Console(width=100).print(table(spreads(measure(cvs=options.cvs))))


if __name__ == "__main__":
    run_main(main, CrossValidations)
