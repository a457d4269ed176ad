"""Whether FairlyUncertain's NLLs on Communities are the broadcast of an (n, 1) target.

Its loader returns the target as a column, so that its row-wise NLL of (n,) means becomes an (n, n)
matrix, of which it prints the mean. Here both are computed from the same predictions, made as the
published code makes them: ten 80/20 splits, 10 rounds, depth 6.
"""

from __future__ import annotations

import numpy as np
from hydra import compose, initialize_config_dir
from rich.console import Console
from rich.table import Table

from fairbench.components.papers import CONF, PAPERS, run_main
from fairbench.components.papers.options import Splits
from fairbench.experiments.compute import raw_outputs
from fairbench.experiments.execute import carry_out
from fairbench.metrics.regression import normal_nll_rows
from fairbench.reporting.papers.mapping import Paper
from fairbench.results.predictions import TEST

METHODS = {
    "ensemble": "ensemble",
    "normal_nll": "normal_nll_reference",
    "beta_nll": "beta_nll_reference",
    "faithful_nll": "faithful_nll_reference",
}


def nlls(method: str, chosen: Splits) -> tuple[list[float], list[float]]:
    """Return the NLL of every repeat, row by row and broadcast; rows without an sd are left out."""
    with initialize_config_dir(str(CONF), version_base="1.3"):
        words = ["dataset=communities", f"method={method}", *chosen.overrides]
        cfg = compose("config", words, return_hydra_config=True)
    run = carry_out(cfg).prepared
    by_row, broadcast = [], []
    for cell in run.cells:
        stored = run.store.read(cell.id)
        test = stored.columns["part"] == TEST
        raw = raw_outputs({name: values[test] for name, values in stored.columns.items()})
        bag = method == "ensemble"
        mean = raw["mean"].mean(axis=1) if bag else raw["mean"]
        sd = raw["mean"].std(axis=1) if bag else raw["sd"]
        kept = np.isfinite(sd) & np.isfinite(mean) & (sd > 0)
        y = run.dataset.target.to_numpy()[stored.columns["row"][test]]
        by_row.append(float(normal_nll_rows(y[kept], mean[kept], sd[kept]).mean()))
        matrix = normal_nll_rows(y[:, None], mean[None, kept], sd[None, kept])
        broadcast.append(float(matrix.mean()))
    return by_row, broadcast


def main(chosen: Splits) -> None:
    """Print published, row-wise and broadcast NLLs."""
    published = Paper.read("fairlyuncertain", PAPERS).rows
    published = published.query("table == '2' and dataset == 'communities' and metric == 'nll'")
    title = f"Communities, NLL: median over {chosen.repeats} splits (mean, sd)"
    table = Table(title=title, title_justify="left")
    for name in ("method", "published", "row by row", "broadcast"):
        table.add_column(name, justify="left" if name == "method" else "right")
    for name, method in METHODS.items():
        row = published[published["method"] == name].iloc[0]
        cells = [
            f"{np.median(v):.3f} ({np.mean(v):.3f}, {np.std(v):.3f})" for v in nlls(method, chosen)
        ]
        table.add_row(name, f"{row['value']} ({row['sd']})", *cells)
    Console(width=100).print(table)


if __name__ == "__main__":
    run_main(main, Splits)
