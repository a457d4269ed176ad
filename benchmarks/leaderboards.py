"""Two public leaderboards, read again: what they rank, and which differences they establish.

``python -m benchmarks.leaderboards tabarena RESULTS_PER_SPLIT.csv LITE.csv`` and
``python -m benchmarks.leaderboards tabzilla TUNED_AGGREGATED_RESULTS.csv``; docs/findings.md says
which files of which repositories these are.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd

import fairbench
from fairbench.reporting.rank import RankReport

_EXAMPLE = "[Rerun]"  # methods that TabArena's example adds, imputed but for one data set


def tabarena(results: str | Path, board: str | Path) -> dict[str, RankReport]:
    """Rank TabArena's methods by what its Elo ranks, and by AUC; print what both resolve.

    Parameters
    ----------
    results : its scores: columns dataset, method, metric_error, problem_type and imputed.
    board : its leaderboard: columns method, elo, elo+ and elo-.
    """
    scores, rated = pd.read_csv(results), pd.read_csv(board).set_index("method")
    scores = scores[~scores["method"].str.contains(_EXAMPLE, regex=False)]
    rated = rated.loc[scores["method"].unique()]
    of_task = scores.groupby("dataset")["metric_error"]
    beaten = of_task.rank(ascending=False) - 1
    scores = scores.assign(
        beaten=beaten / (of_task.transform("size") - 1), auc=1 - scores["metric_error"]
    )
    binary = scores[(scores["problem_type"] == "binary") & ~scores["imputed"]]
    by_elo = fairbench.rank(
        scores[["method", "dataset", "beaten"]],
        score="beaten",
        better="higher",
        within=0.05,
        name="TabArena",
    )
    by_auc = fairbench.rank(
        binary[["method", "dataset", "auc"]], score="auc", name="TabArena's AUC"
    )
    say(by_elo)
    lower, upper = rated["elo"] - rated["elo-"], rated["elo"] + rated["elo+"]
    above = lower.to_numpy()[:, None] > upper.to_numpy()
    first = rated["elo"].to_numpy().argmax()
    pairs = by_elo.findings.set_index(["first", "second"])["verdict"] != "open"
    apart = [
        bool(pairs.get((one, other), pairs.get((other, one))))
        for one, other in ((rated.index[row], rated.index[column])
                           for row, column in np.argwhere(above))
    ]  # fmt: skip
    print(
        f"Elo's intervals do not overlap in {above.sum()} pairs, of which {sum(apart)} surely "
        f"differ by rank; {(~above[first]).sum()} overlap with the first's, its own among them\n"
    )
    say(by_auc)
    return {"beaten": by_elo, "auc": by_auc}


def tabzilla(results: str | Path) -> RankReport:
    """Rank TabZilla's tuned algorithms by accuracy, and print what is resolved.

    Parameters
    ----------
    results : columns alg_name, dataset_name, such as ``openml__colic__25``, and
        Accuracy__test_mean. Versions of one data set are a family.
    """
    scores = pd.read_csv(results)
    report = fairbench.rank(
        pd.DataFrame(
            {
                "method": scores["alg_name"],
                "dataset": scores["dataset_name"],
                "source": scores["dataset_name"].str.split("__").str[1],
                "accuracy": scores["Accuracy__test_mean"],
            }
        ),
        score="accuracy",
        family="source",
        name="TabZilla",
    )
    say(report)
    return report


def say(report: RankReport) -> None:
    """Print what a report found, what is open, and the table of ranks."""
    document = report.document
    if document.summary is not None:
        for line in (*document.summary.found, *document.summary.still_open):
            print("-", line)
    print(report.table.head(12).round(4).to_string(index=False))
    print(report.plans.round(4).to_string(index=False))


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["tabarena", results_file, board_file]:
            tabarena(results_file, board_file)
        case ["tabzilla", results_file]:
            tabzilla(results_file)
        case _:
            print(__doc__, file=sys.stderr)
            sys.exit(2)
