"""Whether FairlyUncertain's NLLs on Communities are the broadcast of an (n, 1) target.

Its loader returns the target as a column, so that its row-wise NLL of (n,) means becomes an (n, n)
matrix, of which it prints the mean. Here both are computed from the same predictions, made as the
published code makes them: ten 80/20 splits, 10 rounds, depth 6.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

from fairbench.components.papers import PAPERS, run_main
from fairbench.components.papers.fairlyuncertain.abstention import our_number
from fairbench.components.papers.fairlyuncertain.people import evaluation, job, repeats_of
from fairbench.components.papers.options import Splits
from fairbench.experiments.compute import raw_outputs
from fairbench.metrics.regression import normal_nll_rows
from fairbench.reporting.papers.mapping import Paper
from fairbench.reporting.papers.running import Effort
from fairbench.results.predictions import TEST

BROADCAST = "broadcast"
METHODS = {
    "ensemble": "ensemble",
    "normal_nll": "normal_nll_reference",
    "beta_nll": "beta_nll_reference",
    "faithful_nll": "faithful_nll_reference",
}


def numbers(rows: pd.DataFrame, results: Path, effort: Effort) -> pd.DataFrame:
    """Return each method's NLL row by row, as the text has it, and what the code computes."""
    repeats, found = repeats_of(effort), []
    for row, method in rows["method"].items():
        reference = METHODS[str(method)]
        by_row, _ = nlls(str(method), results, repeats)
        _, broadcast = nlls(reference, results, repeats)
        for cause, values in (("", by_row), (BROADCAST, broadcast)):
            found.append({"row": row, **our_number(pd.Series(values), cause), "label": cause})
    return pd.DataFrame(found)


def nlls(method: str, results: Path, repeats: int) -> tuple[list[float], list[float]]:
    """Return the NLL of every repeat, row by row and broadcast; rows without an sd are left out."""
    words = ["dataset=communities", f"method={method}"]
    run = job("fairlyuncertain/table4", results, words, repeats)
    evaluation(run)
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
        values = nlls(method, chosen.results, chosen.repeats)
        row = published[published["method"] == name].iloc[0]
        cells = [f"{np.median(v):.3f} ({np.mean(v):.3f}, {np.std(v):.3f})" for v in values]
        table.add_row(name, f"{row['value']} ({row['sd']})", *cells)
    Console(width=100).print(table)


if __name__ == "__main__":
    run_main(main, Splits)
