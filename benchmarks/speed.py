"""Speed, beside what it is measured against: ``python -m benchmarks [PART ...]``.

``sweep`` is one repeat of FairlyUncertain's Tables 1 and 2, beside that project's way to them and
beside the same fits alone; ``tiny`` is many small runs, and commands that read them; ``start`` is
one run in a process of its own. With ``repeats=3`` all sides of the first are measured three times,
in turn, and the median counts.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xgboost

from benchmarks import measure, reference
from benchmarks.reference import MEMBERS, ROUNDS, Instance
from fairbench.cli.verbs.run import run_words
from fairbench.components.algorithms.losses import NormalLoss
from fairbench.core.errors import DataError
from fairbench.data.dataset import Task
from fairbench.data.features import onehot
from fairbench.experiments.pipeline import PlannedRun, prepare

DEPTHS = range(5, 16)
METHODS = {Task.BINARY: reference.BINARY, Task.REGRESSION: reference.REGRESSION}
SWEPT = {
    "acs_employment_fu": "ACS employment",
    "german": "German",
    "ihdp": "IHDP",
    "insurance": "Insurance",
    "law_school": "Law School",
}
WARM_UP = {Task.BINARY: "simulated", Task.REGRESSION: "simulated_regression"}
TINY = ("dataset=simulated", "dataset.n_samples=100", "split.repeats=1", "figures=false")
RUNS = 1000  # tiny ones
RUN = [sys.executable, str(measure.ROOT / "run.py")]
FAIRBENCH = [sys.executable, "-m", "fairbench"]
OF_RUNS = ("cells", "runs", "splits")  # folders of results whose files are of single runs
READING = ("store ls", "table all out=runs.csv", "report")


class Figures(NamedTuple):
    """A table of medians: its name, its rows, the head first, and of how many measurements."""

    name: str
    rows: list[list[str]]
    repeats: int = 1


def judged(value: float, most: float) -> str:
    """Return a figure with two digits, marked where it is more than it may be."""
    return f"{value:.2f}{'' if value <= most else ': missed'}"


def sweep(repeats: int) -> Iterator[Figures]:
    """Yield what a repeat of Tables 1 and 2 costs in the reference's way, in ours, and its fits."""
    if not (names := _found(SWEPT)):
        return
    measured = list[Any]()  # CPU seconds, by data set and side
    for _ in range(repeats):
        measured.append([])
        for name in names:
            sides = [measure.fresh(side, name) for side in (_theirs, _ours, _fits)]
            measured[-1].append(sides)
            print(name, *(f"{seconds:.1f}" for seconds in sides), file=sys.stderr, flush=True)
    seconds = np.median(measured, axis=0)
    rows = [_compared(SWEPT[name], of, most=1.0) for name, of in zip(names, seconds, strict=True)]
    rows.append(_compared("all", seconds.sum(axis=0), most=0.4, most_of_fits=1.25))
    head = ["CPU seconds", "reference", "ours", "ratio", "the same fits alone", "ours / fits"]
    targets = ["target", "", "", "0.40, each 1.00", "", "1.25"]
    yield Figures("sweep", [head, *rows, targets], repeats)


def _compared(name: str, seconds: Any, *, most: float, most_of_fits: float = np.inf) -> list[str]:
    theirs, ours, fits = seconds
    ratios = judged(ours / theirs, most), judged(ours / fits, most_of_fits)
    return [name, f"{theirs:.1f}", f"{ours:.1f}", ratios[0], f"{fits:.1f}", ratios[1]]


def _found(names: Mapping[str, str]) -> list[str]:
    """Return the data sets whose files are here; says which are not."""
    there = []
    for name in names:
        try:
            _planned(name)
            there.append(name)
        except DataError:
            print(f"{name}: no data file, left out")
    return there


def _planned(name: str) -> PlannedRun:
    return prepare(measure.configuration(f"dataset={name}", "method=baseline"))


def _instance(name: str) -> tuple[Instance, Task]:
    """Return the first split of a data set, as numbers."""
    planned = _planned(name)
    data, fold = planned.dataset, planned.cells[0].fold
    X, y = onehot(data.features).astype(float), data.target.to_numpy(float)
    return Instance(X[fold.train], y[fold.train], X[fold.test], y[fold.test]), data.task


def _theirs(name: str) -> float:
    """Measure the reference's way; XGBoost takes the one thread that it is given."""
    split, task = _instance(name)
    small, _ = _instance(WARM_UP[task])
    with tempfile.TemporaryDirectory() as folder:
        reference.tables(small, [5], METHODS[task], Path(folder) / "warm.json")
        asked = split, DEPTHS, METHODS[task], Path(folder) / "consistency.json"
        return measure.cpu_of(lambda: reference.tables(*asked))


def _fits(name: str) -> float:
    """Measure the fits of ours alone, on one binned matrix."""
    split, task = _instance(name)
    small, _ = _instance(WARM_UP[task])
    _fit_all(small, task, [5])
    return measure.cpu_of(lambda: _fit_all(split, task, DEPTHS))


def _ours(name: str) -> float:
    """Measure the sweep, from the words of its command to its tables and MLflow."""
    task = _planned(name).dataset.task
    varied = (f"method={','.join(METHODS[task])}", "consistency.vary=learner.max_depth")
    with tempfile.TemporaryDirectory() as folder:
        places = f"results={folder}", f"tracking.uri=sqlite:///{folder}/mlflow.db"
        same = ("-m", *varied, "split.repeats=1", *places, "figures=false")
        _run([*same, f"dataset={WARM_UP[task]}", "consistency.values=[5,6]"])
        depths = f"consistency.values={[*DEPTHS]}"
        return measure.cpu_of(lambda: _run([*same, f"dataset={name}", depths]))


def _run(words: Sequence[str]) -> None:
    printed = StringIO()
    with redirect_stdout(printed):
        status = run_words([*words, "data.download=false"])
    if status:
        raise RuntimeError(f"{' '.join(words)} failed:\n{printed.getvalue()}")


def _fit_all(split: Instance, task: Task, depths: Sequence[int]) -> None:
    """Fit on one binned matrix; a bootstrap is a weight, drawn once for all methods and depths."""
    matrix, n = xgboost.QuantileDMatrix(split.X, split.y, nthread=1), len(split.y)
    draw = np.random.default_rng(0)
    weights = [np.bincount(draw.integers(n, size=n), minlength=n) for _ in range(MEMBERS)]
    if task is Task.BINARY:
        weights.append(np.ones(n, np.int64))
    objective = "binary:logistic" if task is Task.BINARY else "reg:squarederror"
    for depth in depths:
        parameters = {"objective": objective, "max_depth": depth, "nthread": 1}
        for weight in weights:
            matrix.set_weight(weight)
            xgboost.train(parameters, matrix, ROUNDS).inplace_predict(split.held_out)
        if task is Task.REGRESSION:
            matrix.set_weight(np.ones(n))
            for loss in (NormalLoss(), NormalLoss("beta_nll"), NormalLoss("faithful_nll")):
                _fit_two_outputs(matrix, split, loss, depth)


def _fit_two_outputs(matrix: Any, split: Instance, loss: NormalLoss, depth: int) -> None:
    def objective(raw: Any, _: Any) -> Any:
        scores = raw.reshape(-1, 2).astype(float)
        gradient, curvature = loss.gradient(split.y, scores), loss.curvature(split.y, scores)
        return gradient.astype(np.float32), curvature.astype(np.float32)

    parameters = {
        "num_target": 2,
        "base_score": loss.initial(split.y).tolist(),
        "multi_strategy": "one_output_per_tree",
        "max_depth": depth,
        "nthread": 1,
        "disable_default_eval_metric": True,
    }
    xgboost.train(parameters, matrix, ROUNDS, obj=objective).inplace_predict(split.held_out)


def tiny(_: int) -> Iterator[Figures]:
    """Yield what many small runs cost, on one process and on two, and what reads them."""
    words = [*TINY, f"seed=range(0,{RUNS})"]
    seconds, clock = list[float](), list[float]()
    with tempfile.TemporaryDirectory() as folder:
        for jobs in (1, 2):
            results = Path(folder) / str(jobs)
            places = f"results={results}", f"tracking.uri=sqlite:///{results}/mlflow.db"
            started = time.perf_counter()
            seconds.append(measure.cpu_of_process([*RUN, "-m", *words, *places, f"n_jobs={jobs}"]))
            clock.append(time.perf_counter() - started)
        found = [path for path in results.rglob("*") if path.name != "mlflow.db"]
        sizes = [path.stat().st_size for path in found if path.is_file()]
        of_runs = sum(len([*results.glob(f"{folder}/**/*.*")]) for folder in OF_RUNS)
        read = {
            verb: measure.cpu_of_process([*FAIRBENCH, *verb.split(), str(places[0])])
            for verb in READING
        }
    faster = clock[0] / clock[1]
    rows = [
        ["CPU milliseconds a run", judged(1000 * seconds[0] / RUNS, 45), "45"],
        ["files a run, beside those that all share", judged(of_runs / RUNS, 4), "4"],
        ["kB a run, without MLflow's database", f"{sum(sizes) / RUNS / 1000:.0f}", ""],
        ["how many times as fast `n_jobs=2` is by the clock", judged(-faster, -1.8)[1:], "1.8"],
    ]
    rows += [[f"CPU seconds of `fairbench {verb}`", f"{read[verb]:.1f}", ""] for verb in READING]
    yield Figures("tiny", [[f"{RUNS:,} runs of 100 rows", "measured", "target"], *rows])


def start(_: int) -> Iterator[Figures]:
    """Yield what one small run costs in a process of its own, and when there is nothing to fit."""
    with tempfile.TemporaryDirectory() as folder:
        words = [*RUN, *TINY, f"results={folder}", f"tracking.uri=sqlite:///{folder}/mlflow.db"]
        measure.cpu_of_process(words)  # sets up the database
        first, again = (measure.cpu_of_process([*words, "seed=1"]) for _ in range(2))
    rows = [
        ["one small run", judged(first, 2.2), "2.2"],
        ["the same again: nothing to fit", judged(again, 0.9), "0.9"],
    ]
    yield Figures("start", [["CPU seconds of a command", "measured", "target"], *rows])
