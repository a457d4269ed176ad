"""What the published areas of Table 12.1 say about how its relative rhos were computed.

``python -m papers.uncertainty_matters.published_ratios``: an area is inversely proportional to
what counts are worth, so the area at rho_rel over that at 1/K is the paper's own r. From it follows
the area at rho_rel up, under two readings: rho averaged over what rho_0 in [0, 1/K] gives (all
areas scale by r), or over [0, rho_rel].
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from rich import box
from rich.console import Console
from rich.table import Table

from fairbench.components.papers import run_main
from fairbench.components.papers.uncertainty_matters.posteriors import FOLDS, short
from fairbench.components.papers.uncertainty_matters.tables import AREA, read_published
from fairbench.inference.effective_counts import mean_shrinkage, relative_rho


def readings(published: pd.DataFrame) -> pd.DataFrame:
    """Return, by algorithm, r, the published area at rho_rel up, and each reading's prediction."""
    rows = published[(published["table"] == "12.1") & (published["metric"] == AREA)]
    areas = rows.assign(value=rows["value"].astype(float))
    areas = areas.pivot_table(index="method", columns="setting", values="value", sort=False)
    r = areas["rho_rel"] / areas["rho=1/K"]
    inflation = (FOLDS - 1) * relative_rho(r.to_numpy(), FOLDS)
    up_to_rel = np.log1p(inflation) / inflation  # the mean of 1 / (1 + (K - 1) rho), rho to rho_rel
    averaged = areas["rho in [0,1/K]"]
    return pd.DataFrame(
        {
            "r": r,
            "published": areas["rho_rel_up"],
            "rho_0 in [0,1/K]": r * averaged,
            "rho in [0,rho_rel]": averaged * mean_shrinkage(FOLDS) / up_to_rel,
        }
    )


def main() -> None:
    """Print both readings with the published areas."""
    rows = readings(read_published())
    table = Table(title="area at rho_rel up", title_justify="left", box=box.SIMPLE_HEAD)
    for header in ("algorithm", *rows.columns):
        table.add_column(header, justify="left" if header == "algorithm" else "right")
    for name, row in rows.iterrows():
        areas = [f"{value:.4f}" for value in row.iloc[1:]]
        table.add_row(short(str(name)), f"{row['r']:.2f}", *areas)
    Console(width=100).print(table)
    for reading in rows.columns[2:]:
        error = (rows[reading] / rows["published"] - 1).abs()
        print(f"{reading}: off by {error.mean():.1%} in the mean, {error.max():.1%} at most")


if __name__ == "__main__":
    run_main(main)
