"""A sweep to attack: its command, its results, and what must not be left of it."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pandas as pd

from benchmarks.measure import ROOT
from fairbench.evaluation.columns import COSTS
from fairbench.results.cells import CorruptCellError, Store
from fairbench.results.labels_and_groups import stored_people
from fairbench.results.predictions import rows_stored
from fairbench.results.runs import Run, damaged_figures, damaged_files

CELLS, JOBS = 60, 3
MARK = "FAIRBENCH_TRIAL"  # in the environment of a command and of all that it starts
# What is whole has another name; `begun` notes the cells of sweeps that have not ended.
TEMPORARY = (".*.tmp", ".figures.*", "*.lock", "*.damaged-*", "begun/*", "*.db-journal")


def sweep(rounds: int, *more: str, cells: int = CELLS, jobs: int = JOBS) -> list[str]:
    """Return the command of a sweep: some seeds of an ensemble on a small simulated population."""
    seeds = ",".join(map(str, range(jobs)))
    options = (f"seed={seeds}", f"split.repeats={cells // jobs}", f"learner.rounds={rounds}")
    fixed = ("dataset.n_samples=500", "method=ensemble", "tracking=none")
    return [sys.executable, str(ROOT / "run.py"), "-m", *options, *fixed, *more]


def verb(*words: str) -> list[str]:
    """Return a command of fairbench."""
    return [sys.executable, "-m", "fairbench", *words]


def surroundings(mark: str = "") -> dict[str, str]:
    """Return the environment of a command."""
    left = {name: value for name, value in os.environ.items() if name != "MLFLOW_TRACKING_URI"}
    return {**left, "PYTHONPATH": str(ROOT), MARK: mark}


def in_peace(words: list[str], folder: Path) -> None:
    """Carry a sweep out while nothing else happens."""
    subprocess.run(words, cwd=folder, check=True, stdout=subprocess.DEVNULL, env=surroundings())


def undisturbed(sweeps: Sequence[list[str]], folder: Path) -> dict[str, pd.DataFrame]:
    """Carry sweeps out in peace, print how long their cells were, and return their metrics."""
    folder.mkdir()
    for words in sweeps:
        in_peace(words, folder)
    tables = [pd.read_parquet(path) for path in folder.glob("results/runs/*/metrics.parquet")]
    seconds = pd.concat(tables).query("metric == 'fit_seconds'")["value"].median()
    print(f"a cell fits for {seconds:.2f} s (median, undisturbed)", flush=True)
    return metrics(folder)


def metrics(folder: Path) -> dict[str, pd.DataFrame]:
    """Return run id -> metrics, without the seconds."""
    tables = {}
    for path in folder.glob("results/runs/*/metrics.parquet"):
        table = pd.read_parquet(path)
        tables[path.parent.name] = table[~table["metric"].isin(COSTS)]
    return tables


def equal(found: dict[str, pd.DataFrame], expected: dict[str, pd.DataFrame]) -> bool:
    """Say whether the same runs have the same metrics to the last bit."""
    return found.keys() == expected.keys() and all(
        table.equals(expected[run]) for run, table in found.items()
    )


def marked(mark: str) -> list[int]:
    """Return the living processes of a command, on this machine and not started by Slurm."""
    wanted = f"{MARK}={mark}".encode()
    return [pid for pid, known in _environments() if wanted in known and not _of_slurm(known)]


def _environments() -> Iterator[tuple[int, list[bytes]]]:
    for path in Path("/proc").glob("[0-9]*"):
        try:
            yield int(path.name), (path / "environ").read_bytes().split(b"\0")
        except OSError:  # it has ended
            continue


def _of_slurm(known: list[bytes]) -> bool:
    return any(each.startswith(b"SLURM_JOB_ID=") for each in known)


def words_of(pid: int) -> str:
    """Return the command line of a process, nothing if it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").replace("\0", " ")
    except OSError:
        return ""


def state_of(pid: int) -> str:
    """Return what a process is doing and how many seconds it has computed, if it lives."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return "ended by now"
    return f"{fields[0]}, {sum(map(int, fields[11:13])) / os.sysconf('SC_CLK_TCK'):.1f} s"


def left_over(folder: Path) -> list[Path]:
    """Return the temporary files, locks and damaged files under a folder."""
    result = [path for pattern in TEMPORARY for path in folder.rglob(pattern)]
    return [path for path in result if "slurm" not in path.parts]


def missing(folder: Path) -> list[str]:
    """Return what the finished runs of a folder need and do not have as it was written."""
    results, lacks = folder / "results", []
    for path in sorted(results.glob("runs/*")):
        run = Run(path)
        if not run.environment:
            lacks.append(f"{path.name}: not finished")
            continue
        lacks += [f"{path.name}: {name}" for name in [*damaged_files(run), *damaged_figures(run)]]
        if not rows_stored(results, run.environment["rows"]):
            lacks.append(f"{path.name}: rows")
        if stored_people(results, run.environment["data"]) is None:
            lacks.append(f"{path.name}: people")
        lacks += _cells_missing(Store(results), run)
    return lacks


def _cells_missing(store: Store, run: Run) -> Iterator[str]:
    for cell in run.cells():
        try:
            store.read(cell)
        except CorruptCellError as error:
            yield f"{run.id}: {error}"


def entries(folder: Path) -> Counter[str]:
    """Return how often each run is in the MLflow database of a folder."""
    if not (folder / "mlflow.db").is_file():
        return Counter()
    asked = (
        "SELECT tags.value FROM tags JOIN runs ON runs.run_uuid = tags.run_uuid "
        "WHERE tags.key = 'fairbench.run_id' AND runs.lifecycle_stage = 'active'"
    )
    with closing(sqlite3.connect(folder / "mlflow.db")) as database:
        return Counter(value for (value,) in database.execute(asked))
