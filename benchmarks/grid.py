"""One repeat of FairlyUncertain's Tables 1 and 2 (methods x depths 5 to 15): CPU of every stage.

``python -m benchmarks grid`` runs each data set through the harness, evaluation, store and tracking
included, beside the bare fits and the fits as the reference implementation makes them.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_dir
from joblib import Parallel, delayed
from omegaconf import DictConfig

import algorithms.estimators.xgboost as estimator
from benchmarks import grid_floor
from benchmarks.measure import ROOT, cpu_of, show
from benchmarks.stages import stages
from fairbench.core.errors import DataError
from fairbench.data.dataset import Task
from fairbench.data.encoding import onehot
from fairbench.evaluation import evaluator
from fairbench.experiments import build, compute, pipeline, run_evaluation
from fairbench.experiments.pipeline import PlannedRun
from fairbench.results.cells import Store
from fairbench.tracking.importer import Tracking

TITLE = "Tables 1 and 2 (methods x depths 5-15)"
DEPTHS = range(5, 16)
METHODS = {
    Task.BINARY: ("ensemble", "selective_ensemble", "self_consistency", "binomial_nll"),
    Task.REGRESSION: ("ensemble", "normal_nll", "beta_nll", "faithful_nll"),
}
# CPU seconds of the reference implementation, on one thread of a machine like this.
REFERENCE = {
    "acs_employment_fu": 20.5,
    "german": 4.1,
    "ihdp": 3.1,
    "insurance": 2.2,
    "law_school": 7.1,
}
TOTALS = {
    "binary": ["acs_employment_fu", "german"],
    "regression": ["ihdp", "insurance", "law_school"],
    "all": list(REFERENCE),
}
STAGES = {
    "encoding": (compute, "_encoded"),
    "binning": (estimator, "binned"),
    "fitting": (estimator.XGBoostEstimator, "fit"),
    "predicting": (estimator.XGBoostEstimator, "_inplace"),
    "storing": (Store, "write"),
    "storing#2": (Store, "read"),
    "storing#3": (pipeline, "_write"),
    "evaluating": (evaluator.Evaluator, "evaluate"),
    "evaluating#2": (run_evaluation.RunEvaluation, "metrics"),
    "tracking": (Tracking, "sync"),
}
PARTS = tuple(stage for stage in STAGES if "#" not in stage)


def main() -> None:
    names = [name for name in REFERENCE if _there(name)]
    with tempfile.TemporaryDirectory() as folder:
        # One results folder and one tracking database, as a sweep has them.
        results = Path(folder)
        imports = cpu_of(lambda: _grid("simulated", results))
        print(f"a first, small grid, imports and tracking database included: {imports:.1f} s CPU")
        measured = [_measure(name, results) for name in names]
    header = ("CPU s", *PARTS, "other", "all", "bare fits")
    show(f"one repeat of {TITLE}, by stage", header, [row[:-1] for row in measured])
    rows = [_compare(row) for row in [*measured, *_totals(measured)]]
    header = ("CPU s", "ours", "reference", "ratio", "its fits here", "ratio")
    show(f"one repeat of {TITLE}, beside the reference", header, rows)
    reference, wall = sum(REFERENCE[name] for name in names), _wall(names)
    print(f"all of it on two cores: {wall:.1f} s wall, {wall / reference:.2f} of the reference's")


def _there(name: str) -> bool:
    try:
        build.load_dataset(_configuration(name, "ensemble", Path("unused")))
    except DataError:
        print(f"{name}: no data file, left out")
        return False
    return True


def _grid(name: str, results: Path) -> list[PlannedRun]:
    """Run every method of a data set's table, and log the runs."""
    runs = [_job(name, "ensemble", results)]
    runs += [_job(name, method, results) for method in METHODS[runs[0].dataset.task][1:]]
    _log(runs, results)
    return runs


def _job(name: str, method: str, results: Path) -> PlannedRun:
    run = pipeline.prepare(_configuration(name, method, results))
    pipeline.execute(run)
    return run


def _log(runs: list[PlannedRun], results: Path) -> None:
    Tracking(uri=f"sqlite:///{results}/mlflow.db").sync([run.folder for run in runs])


def _measure(name: str, results: Path) -> list[Any]:
    """Return name, stages, other, all, bare fits and the reference's fits."""
    runs: list[PlannedRun] = []
    with stages(STAGES) as seconds:
        whole = cpu_of(lambda: runs.extend(_grid(name, results)))
    arrays, task = _arrays(runs[0]), runs[0].dataset.task
    bare = cpu_of(lambda: grid_floor.shared(arrays, task, DEPTHS))
    published = cpu_of(lambda: grid_floor.as_published(arrays, task, DEPTHS))
    parts = [seconds[stage] for stage in PARTS]
    return [name, *parts, whole - sum(parts), whole, bare, published]


def _wall(names: list[str]) -> float:
    """Return the wall seconds of all jobs on two processes that have their imports behind them."""
    tasks = {
        name: METHODS[Task.BINARY if name in TOTALS["binary"] else Task.REGRESSION]
        for name in names
    }
    # Methods in the outer loop: two readings of one bag at a time would wait for each other.
    jobs = [(name, methods[i]) for i in range(4) for name, methods in tasks.items()]
    with tempfile.TemporaryDirectory() as folder, Parallel(2) as parallel:
        results = Path(folder)
        parallel(delayed(_job)("simulated", m, results) for m in METHODS[Task.BINARY])
        _grid("simulated", results)
        started = time.perf_counter()
        runs = parallel(delayed(_job)(name, method, results) for name, method in jobs)
        _log(runs, results)
        return time.perf_counter() - started


def _compare(row: list[Any]) -> tuple[Any, ...]:
    name, (ours, _, published) = row[0], row[-3:]
    reference = sum(REFERENCE[each] for each in TOTALS.get(name, [name]))
    return name, ours, reference, ours / reference, published, ours / published


def _totals(rows: list[list[Any]]) -> Iterator[list[Any]]:
    """Yield the sums over the binary sets, the regression sets and all of them."""
    for kind, names in TOTALS.items():
        mine = [row[1:] for row in rows if row[0] in names]
        if len(mine) == len(names):
            yield [kind, *(sum(column) for column in zip(*mine, strict=True))]


def _arrays(run: PlannedRun) -> grid_floor.Arrays:
    fold, data = run.cells[0].fold, run.dataset
    X, y = onehot(data.features), data.target.to_numpy(float)
    return X[fold.train], y[fold.train], X[fold.test], y[fold.test]


def _configuration(name: str, method: str, results: Path) -> DictConfig:
    overrides = [
        f"dataset={name}",
        f"method={method}",
        "split.repeats=1",
        "consistency.vary=learner.max_depth",
        f"consistency.values={list(DEPTHS)}",
        f"results={results}",
        "data.download=false",
    ]
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        return compose("config", overrides)
