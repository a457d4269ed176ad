"""What the atlas costs beside its fits: runs of XGBoost as it makes them, and their bare fits.

``python -m benchmarks atlas_cost`` carries out two of the atlas's sweeps on three data sets in this
process, and fits every cell again in plain XGBoost: binned, grown and predicted.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import xgboost

from benchmarks import measure
from benchmarks.grid import STAGES as STAGES_OF_GRID
from benchmarks.measure import cpu_of, show
from benchmarks.stages import stages
from fairbench.data.encoding import sparse_onehot
from fairbench.evaluation import evaluator
from fairbench.experiments import compute, execute, pipeline
from fairbench.experiments.configuration import choice
from fairbench.experiments.execute import Execution, InProcessExecutor
from fairbench.experiments.pipeline import PlannedRun

PARAMETERS = {"objective": "binary:logistic", "max_depth": 6, "tree_method": "hist", "nthread": 1}
ROUNDS, REPEATS = 10, 10
DATA_SETS = ("german", "compas", "adult")
# Files of conf/experiment/atlas; the first adds thresholds for each group.
SWEEPS = {"none, thresholds": "1_unconstrained", "reweighing": "4_reweighing"}
STAGES = {
    **{
        name: STAGES_OF_GRID[name]
        for name in STAGES_OF_GRID
        if name not in ("composing", "tracking")
    },
    "groups": (compute, "_groups"),
    "thresholds": (evaluator, "evaluate_group_thresholds"),
    "means": (pipeline, "summarise"),
}
PARTS = tuple(dict.fromkeys(name.partition("#")[0] for name in STAGES))
FITS = ("binning", "fitting", "predicting")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        _carried_out(_composed("1_unconstrained", ["german"], folder, repeats=1))
        rows = [row for title in SWEEPS for row in _rows(title, folder)]
    for some in (FITS, [part for part in PARTS if part not in FITS] + ["composing", "other"]):
        lines = [(row["name"], *(row[part] for part in some)) for row in rows]
        show("CPU ms a cell (a fit and its evaluation)", ("", *some), lines)
    header = ("", "ours", "bare fit", "ratio", "beside fits", "rows of metrics", "us a row")
    title = "CPU ms a cell, beside its bare fit here (target of the ratio: <= 1.15)"
    show(title, header, [_compared(row) for row in rows])


def _composed(sweep: str, names: Sequence[str], folder: str, *, repeats: int) -> list[Any]:
    words = [f"dataset={','.join(names)}", "learner=xgboost", f"split.repeats={repeats}"]
    return measure.configurations(f"experiment=atlas/{sweep}", *words, f"results={folder}")


def _carried_out(configs: Sequence[Any]) -> list[PlannedRun]:
    plans = [execute.plan_run(config) for config in configs]
    return [end.checked().prepared for end in Execution(plans, InProcessExecutor()).carry_out()]


def _rows(title: str, folder: str) -> Iterator[dict[str, Any]]:
    """Yield the CPU milliseconds a cell of each data set's runs, by stage, and of the bare fits."""
    configs: list[Any] = []
    sweep, result = SWEEPS[title], str(Path(folder) / title.partition(",")[0])
    composing = cpu_of(lambda: configs.extend(_composed(sweep, DATA_SETS, result, repeats=REPEATS)))
    for name in DATA_SETS:
        mine = [config for config in configs if choice(config, "dataset") == name]
        row = _measured(mine) | {"composing": 1e3 * composing / len(configs) / REPEATS}
        yield row | {"name": f"{name}: {title}", "ours": row["ours"] + row["composing"]}


def _measured(configs: Sequence[Any]) -> dict[str, Any]:
    runs: list[PlannedRun] = []
    with stages(STAGES) as seconds:
        whole = cpu_of(lambda: runs.extend(_carried_out(configs)))
    cells = sum(len(run.cells) for run in runs)
    spent = {part: 1e3 * seconds[part] / cells for part in PARTS}
    ours = 1e3 * whole / cells
    return {
        **spent,
        "other": ours - sum(spent.values()),
        "ours": ours,
        "bare": 1e3 * sum(cpu_of(partial(_bare, run)) for run in runs) / cells,
        "lines": sum(len(run.folder.all_metrics()) for run in runs) / cells,
    }


def _bare(run: PlannedRun) -> None:
    """Fit every cell of a run in plain XGBoost."""
    X, y = sparse_onehot(run.dataset.features), run.dataset.target.to_numpy(float)
    for fold in (cell.fold for cell in run.cells):
        matrix = xgboost.QuantileDMatrix(X[fold.train], y[fold.train], nthread=1)
        booster = xgboost.train(PARAMETERS, matrix, ROUNDS)
        booster.inplace_predict(X[np.concatenate([fold.validation, fold.test])])


def _compared(row: dict[str, Any]) -> tuple[Any, ...]:
    ours, bare, lines = row["ours"], row["bare"], row["lines"]
    beside = ours - sum(row[part] for part in FITS)
    return row["name"], ours, bare, ours / bare, beside, lines, 1e3 * beside / lines
