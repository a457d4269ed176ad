"""Speed, side by side with what takes the most of it: a run, a sweep, a listing.

``python -m benchmarks`` measures all, ``python -m benchmarks sweep`` one of them: ``run`` beside
the bags of plain XGBoost, ``sweep`` (a repeat of FairlyUncertain's Tables 1 and 2) beside its bare
fits, ``listing`` (``store ls``) beside what it may take.
"""

from __future__ import annotations

import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import xgboost

from benchmarks.measure import (
    ROOT,
    adult,
    configuration,
    configurations,
    cpu_of,
    cpu_of_process,
    show,
)
from benchmarks.stored import configured, run_of
from fairbench.components.algorithms.losses import NormalLoss
from fairbench.core.errors import DataError
from fairbench.core.files import sealed_json
from fairbench.data.dataset import Task
from fairbench.data.features import onehot
from fairbench.experiments.execute import Execution, carry_out, in_process, plan_run
from fairbench.experiments.pipeline import PlannedRun
from fairbench.results.runs import LAST
from fairbench.tracking.importer import Tracking

ROUNDS, MEMBERS, DEPTHS = 10, 10, range(5, 16)
REPEATS = (10, 40)
METHODS = {
    Task.BINARY: "ensemble,selective_ensemble,self_consistency,binomial_nll",
    Task.REGRESSION: "ensemble,normal_nll,beta_nll,faithful_nll",
}
SWEPT = {
    "acs_employment_fu": Task.BINARY,
    "german": Task.BINARY,
    "ihdp": Task.REGRESSION,
    "insurance": Task.REGRESSION,
    "law_school": Task.REGRESSION,
}
LISTED = {10_000: 1.0, 100_000: 10.0}  # runs, and the seconds that listing them may take
LEARNERS = ("xgboost", "mlp", "random_forest", "lightgbm")


def run() -> None:
    """Print what a run of Adult costs beside its bags, a fixed part and a share of every repeat."""
    data, name = adult()
    command = [sys.executable, str(ROOT / "run.py"), *name.split(), "method=ensemble"]
    few, many = (cpu_of_process([*command, f"split.repeats={n}"]) for n in REPEATS)
    X, y = onehot(data.features), data.target.to_numpy(float)
    repeat = (many - few) / (REPEATS[1] - REPEATS[0])
    bare = median(cpu_of(partial(_bag, X, y, seed)) for seed in range(5))
    rows = [
        ("a repeat (target: <= 1.15 x bare)", repeat, bare, repeat / bare),
        ("fixed (target: <= 5 s)", few - REPEATS[0] * repeat, "", ""),
    ]
    show(f"a run in a fresh process, CPU seconds ({name})", ("", "run.py", "bare", "ratio"), rows)


def _bag(X: Any, y: Any, seed: int) -> None:
    """Fit a bag by integer weights on one binned matrix of a split and predict its test rows."""
    order = np.random.default_rng(seed).permutation(len(y))
    train, test = np.split(order, [round(0.8 * len(y))])
    _fits(X[np.sort(train)], y[np.sort(train)], X[np.sort(test)], Task.BINARY, [6], members=True)


def sweep() -> None:
    """Print what a repeat of Tables 1 and 2 costs as sweeps, tracked, beside its bare fits."""
    sums = np.zeros(2)
    rows: list[tuple[object, ...]] = []
    with tempfile.TemporaryDirectory() as folder:
        # One results folder and one tracking database, as a sweep has them.
        results = Path(folder)
        imports = cpu_of(lambda: _grid("simulated", Task.BINARY, results))
        print(f"a first, small grid, imports and tracking database included: {imports:.1f} s CPU")
        for name, task in SWEPT.items():
            runs: list[PlannedRun] = []
            try:
                ours = cpu_of(lambda: runs.extend(_grid(name, task, results)))  # noqa: B023
            except DataError:
                print(f"{name}: no data file, left out")
                continue
            fold, data = runs[0].cells[0].fold, runs[0].dataset
            X, y = onehot(data.features), data.target.to_numpy(float)
            fits = partial(_fits, X[fold.train], y[fold.train], X[fold.test], task, DEPTHS)
            bare = cpu_of(fits)
            rows.append((name, ours, bare, ours / bare))
            sums += ours, bare
    rows.append(("all", *map(float, sums), float(sums[0] / sums[1])))
    title = "one repeat of Tables 1 and 2 (methods x depths 5-15), CPU seconds"
    show(title, ("", "ours", "bare fits", "ratio (target: <= 1.35)"), rows)


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
    plans = [plan_run(config) for config in configurations(*words)]
    runs = [end.checked().prepared for end in Execution(plans, in_process).carry_out()]
    Tracking(uri=f"sqlite:///{results}/mlflow.db").sync([run.folder for run in runs])
    return runs


def _fits(X: Any, y: Any, held_out: Any, task: Task, depths: Any, *, members: bool = False) -> None:
    """Fit on one binned matrix; a bootstrap is a weight, drawn once for all methods and depths.

    Parameters
    ----------
    members : whether only the members of bags are fitted, nothing on all rows.
    """
    matrix = xgboost.QuantileDMatrix(X, y, nthread=1)
    draw, n = np.random.default_rng(0), len(y)
    weights = [np.bincount(draw.integers(n, size=n), minlength=n) for _ in range(MEMBERS)]
    if task is Task.BINARY and not members:
        weights.append(np.ones(n, np.int64))
    objective = "binary:logistic" if task is Task.BINARY else "reg:squarederror"
    for depth in depths:
        parameters = {"objective": objective, "max_depth": depth, "nthread": 1}
        for weight in weights:
            matrix.set_weight(weight)
            xgboost.train(parameters, matrix, ROUNDS).inplace_predict(held_out)
        if task is Task.REGRESSION:
            matrix.set_weight(np.ones(n))
            for loss in (NormalLoss(), NormalLoss("beta_nll"), NormalLoss("faithful_nll")):
                _fit_two_outputs(matrix, held_out, y, loss, depth)


def _fit_two_outputs(matrix: Any, held_out: Any, y: Any, loss: NormalLoss, depth: int) -> None:
    def objective(raw: Any, _: Any) -> Any:
        scores = raw.reshape(-1, 2).astype(float)
        gradient, curvature = loss.gradient(y, scores), loss.curvature(y, scores)
        return gradient.astype(np.float32), curvature.astype(np.float32)

    parameters = {
        "num_target": 2,
        "base_score": loss.initial(y).tolist(),
        "multi_strategy": "multi_output_tree" if loss.vector_leaves else "one_output_per_tree",
        "max_depth": depth,
        "nthread": 1,
        "disable_default_eval_metric": True,
    }
    xgboost.train(parameters, matrix, ROUNDS, obj=objective).inplace_predict(held_out)


def listing() -> None:
    """Print what listing 10,000 and 100,000 runs takes, at first, again, and by an option."""
    rows: list[tuple[object, ...]] = []
    with tempfile.TemporaryDirectory() as folder:
        small = ("dataset=simulated", "dataset.n_samples=300", "split.repeats=2")
        known = carry_out(configuration(*small, f"results={folder}")).prepared.folder.environment
        command = [sys.executable, "-m", "fairbench", "store", "ls", f"results={folder}"]
        made = 0
        for number, target in LISTED.items():
            for seed in range(made, number):
                options = {"learner": LEARNERS[seed % 4], "learner.max_depth": seed % 7}
                record = configured(known, {**options, "seed": seed})
                path = Path(folder) / "runs" / run_of(record)
                path.mkdir()
                (path / LAST).write_text(sealed_json(record, indent=1))
            made = number
            for words, what in (((), "at first"), ((), ""), (["learner.max_depth=3"], "by option")):
                started = time.perf_counter()
                cpu = cpu_of_process([*command, *words])
                wall = time.perf_counter() - started
                limit = target if what != "at first" else ""
                rows.append((f"{number:,} runs {what}", cpu, wall, limit))
    show("fairbench store ls, a whole command", ("", "CPU s", "wall s", "target s"), rows)
