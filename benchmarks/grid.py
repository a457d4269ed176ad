"""One repeat of FairlyUncertain's Tables 1 and 2 (methods x depths 5 to 15): CPU of every stage.

``python -m benchmarks grid`` runs each data set as a sweep does, composition, evaluation, store and
tracking included, beside the bare fits and the fits as the reference implementation makes them, in
the same process.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fairbench.components.algorithms.estimators.xgboost as estimator
from benchmarks import grid_floor, measure
from benchmarks.measure import configuration, cpu_of, show
from benchmarks.stages import stages
from fairbench.core.errors import DataError
from fairbench.data.dataset import Task
from fairbench.data.encoding import onehot
from fairbench.evaluation import evaluator
from fairbench.experiments import build, compute, execute, pipeline, run_evaluation
from fairbench.experiments.configuration import plain
from fairbench.experiments.execute import Execution, InProcessExecutor
from fairbench.experiments.pipeline import PlannedRun
from fairbench.results.cells import Store
from fairbench.tracking.importer import Tracking

TITLE = "Tables 1 and 2 (methods x depths 5-15)"
DEPTHS = range(5, 16)
METHODS = {
    Task.BINARY: "ensemble,selective_ensemble,self_consistency,binomial_nll",
    Task.REGRESSION: "ensemble,normal_nll,beta_nll,faithful_nll",
}
TOTALS = {
    "binary": ["acs_employment_fu", "german"],
    "regression": ["ihdp", "insurance", "law_school"],
}
TOTALS["all"] = [name for names in TOTALS.values() for name in names]
STAGES = {
    "composing": (measure, "configurations"),
    "planning": (execute, "plan_run"),
    "encoding": (compute, "_encoded"),
    "binning": (estimator, "binned"),
    "fitting": (estimator.XGBoostEstimator, "fit"),
    "predicting": (estimator.XGBoostEstimator, "linked"),
    "storing": (Store, "write"),
    "storing#2": (Store, "read"),
    "storing#3": (pipeline, "_write"),
    "evaluating": (evaluator.Evaluator, "table"),
    "evaluating#2": (run_evaluation.RunEvaluation, "evaluate"),
    "tracking": (Tracking, "sync"),
}
PARTS = tuple(stage for stage in STAGES if "#" not in stage)


def main() -> None:
    names = [name for name in TOTALS["all"] if _there(name)]
    with tempfile.TemporaryDirectory() as folder:
        # One results folder and one tracking database, as a sweep has them.
        results = Path(folder)
        imports = cpu_of(lambda: _grid("simulated", Task.BINARY, results))
        print(f"a first, small grid, imports and tracking database included: {imports:.1f} s CPU")
        measured = [_measure(name, results) for name in names]
    measured = [*measured, *_totals(measured)]
    for title, parts in (("fits", PARTS[2:6]), ("the rest", (*PARTS[:2], *PARTS[6:], "other"))):
        rows = [(row["name"], *(row[part] for part in parts)) for row in measured]
        show(f"one repeat of {TITLE}, CPU s of {title}", ("", *parts), rows)
    header = ("CPU s", "ours", "bare fits", "ratio (target: <= 1.35)", "reference's way", "ratio")
    show(f"one repeat of {TITLE}, beside its fits here", header, [_compare(r) for r in measured])


def _there(name: str) -> bool:
    try:
        build.load_dataset(plain(configuration(f"dataset={name}")))
    except DataError:
        print(f"{name}: no data file, left out")
        return False
    return True


def _grid(name: str, task: Task, results: Path) -> list[PlannedRun]:
    """Run every method of a data set's table as one sweep, and log the runs."""
    words = [
        f"dataset={name}",
        f"method={METHODS[task]}",
        "split.repeats=1",
        "consistency.vary=learner.max_depth",
        f"consistency.values={list(DEPTHS)}",
        f"results={results}",
    ]
    plans = [execute.plan_run(config) for config in measure.configurations(*words)]
    runs = [end.checked().prepared for end in Execution(plans, InProcessExecutor()).carry_out()]
    Tracking(uri=f"sqlite:///{results}/mlflow.db").sync([run.folder for run in runs])
    return runs


def _measure(name: str, results: Path) -> dict[str, Any]:
    """Return the CPU seconds of a grid, by stage, and of the same fits bare and as published."""
    task = Task.BINARY if name in TOTALS["binary"] else Task.REGRESSION
    runs: list[PlannedRun] = []
    with stages(STAGES) as seconds:
        whole = cpu_of(lambda: runs.extend(_grid(name, task, results)))
    arrays = _arrays(runs[0])
    parts = {stage: seconds[stage] for stage in PARTS}
    return {
        "name": name,
        **parts,
        "other": whole - sum(parts.values()),
        "ours": whole,
        "bare": cpu_of(lambda: grid_floor.shared(arrays, task, DEPTHS)),
        "published": cpu_of(lambda: grid_floor.as_published(arrays, task, DEPTHS)),
    }


def _compare(row: dict[str, Any]) -> tuple[Any, ...]:
    ours, bare, published = row["ours"], row["bare"], row["published"]
    return row["name"], ours, bare, ours / bare, published, ours / published


def _totals(rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the sums over the binary sets, the regression sets and all of them."""
    for kind, names in TOTALS.items():
        mine = [row for row in rows if row["name"] in names]
        if len(mine) == len(names):
            sums = {key: sum(row[key] for row in mine) for key in mine[0] if key != "name"}
            yield {"name": kind, **sums}


def _arrays(run: PlannedRun) -> grid_floor.Arrays:
    fold, data = run.cells[0].fold, run.dataset
    X, y = onehot(data.features), data.target.to_numpy(float)
    return X[fold.train], y[fold.train], X[fold.test], y[fold.test]
