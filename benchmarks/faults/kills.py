"""Kills in the middle of sweeps: ``python -m benchmarks.faults kills n_jobs``, or another executor.

A sweep is killed again and again, with other commands beside it, until it ends well; then nothing
may be missing, left over, or other than in a sweep that nobody disturbed.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.measure import ROOT
from fairbench.evaluation.table import COSTS
from fairbench.results.catalogue import Catalogue
from fairbench.results.runs import CorruptCellError, Run, Store
from fairbench.results.tables import rows_stored, stored_people

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


def surroundings(mark: str = "") -> dict[str, str]:
    """Return the environment of a command."""
    left = {name: value for name, value in os.environ.items() if name != "MLFLOW_TRACKING_URI"}
    return {**left, "PYTHONPATH": str(ROOT), MARK: mark}


def in_peace(words: list[str], folder: Path) -> None:
    """Carry a sweep out while nothing else happens."""
    subprocess.run(words, cwd=folder, check=True, stdout=subprocess.DEVNULL, env=surroundings())


def undisturbed(sweeps: Sequence[list[str]], folder: Path) -> dict[str, pd.DataFrame]:
    """Carry sweeps out in peace, and return their metrics."""
    folder.mkdir()
    for words in sweeps:
        in_peace(words, folder)
    return metrics(folder)


def metrics(folder: Path) -> dict[str, pd.DataFrame]:
    """Return run id -> metrics, without the seconds."""
    tables = {run.id: run.all_metrics() for run in Catalogue(folder / "results")}
    return {run: table[~table["metric"].isin(COSTS)] for run, table in tables.items()}


def equal(found: dict[str, pd.DataFrame], expected: dict[str, pd.DataFrame]) -> bool:
    """Say whether the same runs have the same metrics to the last bit."""
    same = found.keys() == expected.keys()
    return same and all(table.equals(expected[run]) for run, table in found.items())


def marked(mark: str) -> list[int]:
    """Return the living processes of a command, on this machine and not started by Slurm."""
    wanted, pids = f"{MARK}={mark}".encode(), []
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended
            known = (path / "environ").read_bytes().split(b"\0")
            if wanted in known and not any(each.startswith(b"SLURM_JOB_ID=") for each in known):
                pids.append(int(path.name))
    return pids


def words_of(pid: int) -> str:
    """Return the command line of a process, nothing if it has ended."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").replace("\0", " ")
    return ""


def left_over(folder: Path) -> list[Path]:
    """Return the temporary files, locks and damaged files under a folder."""
    result = [path for pattern in TEMPORARY for path in folder.rglob(pattern)]
    return [path for path in result if "slurm" not in path.parts]


def missing(folder: Path) -> Iterator[str]:
    """Yield what the finished runs of a folder need and do not have as it was written."""
    results = folder / "results"
    for path in sorted(results.glob("runs/*")):
        run = Run(path)
        if not run.environment:
            yield f"{path.name}: not finished"
            continue
        yield from (f"{run.id}: {name}" for name in run.damaged_files())
        if not rows_stored(results, run.environment["rows"]):
            yield f"{run.id}: rows"
        if stored_people(results, run.environment["data"]) is None:
            yield f"{run.id}: people"
        for cell in run.cells():
            try:
                Store(results).read(cell)
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


# Commands that are given in loops beside a sweep, on its results folder.

COLLECT = ("store", "gc", "hours=0", "wait=20")
PACK = ("store", "pack", "out=packs/pack.zip")
_LONGEST = 300.0  # seconds that one of these commands may take


class Beside:
    """Garbage collection in one loop, and in another what reads, logs and packs, by turns.

    These are `store verify`, `sync`, `report`, and `store pack`, whose pack is then unpacked.

    Attributes
    ----------
    counts : how often each was given and how it ended.
    complaints : what was said by those that should not have failed.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.seed = folder, seed
        self.counts: Counter[str] = Counter()
        self.complaints: list[str] = []
        self.over = threading.Event()
        self.packs = folder / "packs"
        self.threads = [threading.Thread(target=loop) for loop in (self._collect, self._read)]

    def __enter__(self) -> Beside:
        """Begin."""
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Let those under way end."""
        self.over.set()
        for thread in self.threads:
            thread.join()

    def _collect(self) -> None:
        draw = np.random.default_rng([self.seed, 1])
        while not self.over.wait(draw.random()):
            if (self.folder / "results").is_dir():
                self.give(*COLLECT)

    def _read(self) -> None:
        draw = np.random.default_rng([self.seed, 2])
        while not self.over.wait(2 * draw.random()):
            done = sorted(self.folder.glob("results/runs/*/environment.json"))
            if done:
                run = done[draw.integers(len(done))].parent.name
                verbs = (("store", "verify", run, "cells=1"), ("sync",), ("report",), PACK)
                words = verbs[draw.integers(len(verbs))]
                self.give(*words)
                if words == PACK:
                    self._try_pack()

    def _try_pack(self) -> None:
        """Unpack the pack that was made, and compare what its runs say."""
        if not (self.packs / "pack.zip").is_file():  # it was complained of
            return
        self.give("store", "unpack", "packs/pack.zip", "out=packs/results")
        here, there = metrics(self.folder), metrics(self.packs)
        if not there or not equal(there, {run: here[run] for run in there.keys() & here}):
            self.complaints.append(f"the pack's runs are others: {sorted(there)}")
        shutil.rmtree(self.packs)

    def give(self, *words: str) -> None:
        """Give a command, and note how it ended."""
        name = " ".join(words[:2] if words[0] == "store" else words[:1])
        line = ["nice", "-n3", sys.executable, "-m", "fairbench", *words]
        try:
            done = subprocess.run(
                line, cwd=self.folder, env=surroundings(), timeout=_LONGEST,
                capture_output=True, text=True,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            self.complaints.append(f"{name}: not done after {_LONGEST:.0f} s")
            return
        said = done.stdout + done.stderr
        if words == COLLECT and done.returncode == 2 and "is in use by" in said:
            self.counts[f"{name}: others at work"] += 1
        elif done.returncode or any(sign in said for sign in ("Traceback", "damaged", "corrupt")):
            self.complaints.append(f"{' '.join(words)}: {done.returncode}: {said[-1500:]}")
        else:
            self.counts[name] += 1


# Sweeps under kill -9: ``python -m benchmarks.faults kills KIND [sweeps] [rounds] [kills]``.
#
# KIND is serial, n_jobs, joblib, local or slurm. Each sweep has three runs of 20 cells, with
# figures, and is hit twenty times (`kills`) at random moments, in the parent or a worker. Until
# it ends with nothing failed the same command is given again. Meanwhile `gc hours=0`, `verify`,
# `sync`, `report` and `pack` are given in loops, and packs are unpacked. Slurm's needs what
# tests/slurm does; Linux only.
#
# Workers of Slurm are killed as a machine without memory does it: told to kill a step that is
# about to start, Slurm may lose it until its UnkillableStepTimeout.

SWEEPS, ROUNDS, KILLS = 5, 10, 20
KINDS = {
    "serial": (),
    "n_jobs": ("n_jobs=2",),
    "joblib": ("hydra/launcher=joblib", "hydra.launcher.n_jobs=2"),
    "local": ("hydra/launcher=submitit_local",),
    "slurm": (
        "hydra/launcher=submitit_slurm", "hydra.launcher.mem_gb=null",
        "hydra.launcher.cells_per_task=10",
    ),
}  # fmt: skip
WORKER = re.compile(r"multiprocessing\.spawn|submitit\.core\._submit")
ALONE_S = 5.0  # seconds that a process may live on after the command that started it
SLURM = ROOT / "tests" / "slurm"
# Whatever is counted under other names must not have happened.
FINE = {"sweeps", "commands", "kills of the parent", "kills of a worker", "kills within a cell"}


def main(kind: str = "", sweeps: int = SWEEPS, rounds: int = ROUNDS, kills: int = KILLS) -> bool:
    """Run the study, print its figures, and return whether everything held."""
    if kind not in KINDS:
        sys.exit(f"error: unknown executor '{kind}': valid: {', '.join(KINDS)}")
    total: Counter[str] = Counter()
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as name, cluster(kind, Path(name)) as environment:
        # The first run is there from the start, to be verified, reported and logged.
        first, words = sweep(rounds, cells=2, jobs=1), sweep(rounds)
        expected = undisturbed([first, words], Path(name) / "undisturbed")
        for number in range(sweeps):
            folder = Path(name) / str(number)
            folder.mkdir()
            in_peace(first, folder)
            attack = Attack(kind, [*words, *KINDS[kind]], folder, environment, number, kills)
            attack.carry_out()
            attack.counts["sweeps that differ"] += not equal(metrics(attack.folder), expected)
            total += attack.counts + Counter(sweeps=1)
            print(f"{time.monotonic() - started:.0f} s: {dict(total)}", flush=True)
    return not bad(total)


def bad(counts: Mapping[str, int], fine: Set[str] = frozenset(FINE)) -> dict[str, int]:
    """Return what must not have happened, and did."""
    return {
        name: n for name, n in counts.items()
        if n and name not in fine and not name.startswith("beside")
    }  # fmt: skip


@dataclass
class Attack:
    """One sweep, its kills, and what was seen of its cells and processes."""

    kind: str
    words: list[str]
    folder: Path
    environment: dict[str, str]
    seed: int
    kills: int
    counts: Counter[str] = field(default_factory=Counter)
    cells: dict[str, tuple[int, int]] = field(default_factory=dict)
    ended: dict[str, float] = field(default_factory=dict)  # mark of a command -> when it ended

    def carry_out(self) -> None:
        """Give the command until it ends well, with the other commands beside it, and look."""
        with Beside(self.folder, self.seed) as beside:
            self._until_it_ends_well(np.random.default_rng(self.seed))
            self._end_jobs()
            while self.ended:
                self._look_for_orphans()
                time.sleep(0.2)
        beside.give("sync")
        beside.give(*COLLECT)
        self.look()
        self.counts += Counter({f"beside: {name}": n for name, n in beside.counts.items()})
        once = Counter(path.name for path in self.folder.glob("results/runs/*"))
        self._complain("commands that failed beside", beside.complaints)
        self._complain("files that are needed and missing", missing(self.folder))
        self._complain("temporary files left", left_over(self.folder))
        self.counts["sweeps that MLflow does not have once"] += entries(self.folder) != once

    def _complain(self, what: str, which: Iterable[object]) -> None:
        for each in which:
            self.counts[what] += 1
            print(f"{what}: {each}", flush=True)

    def _until_it_ends_well(self, draw: np.random.Generator) -> None:
        moments = sorted(draw.integers(0, CELLS - JOBS, self.kills).tolist())
        for number in range(4 * self.kills):
            self.counts["commands"] += 1
            mark, hit = f"{self.folder}/{number}", False
            with open(self.folder / "log", "a") as log:
                process = subprocess.Popen(
                    self.words, cwd=self.folder, env={**surroundings(mark), **self.environment},
                    stdout=log, stderr=log,
                )  # fmt: skip
            while process.poll() is None:
                if moments and self.look() >= moments[0] and self.kill(process, mark, draw):
                    moments.pop(0)
                    hit = True
                self._look_for_orphans()
                time.sleep(0.05)
            self.ended[mark] = time.monotonic()
            if process.returncode == 0:
                return
            self.counts["commands that failed by themselves"] += not hit
            self._wait(2.5 * draw.random())  # in which garbage may be collected
        self.counts["sweeps that never ended well"] += 1

    def _wait(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.look()
            time.sleep(0.05)

    def look(self) -> int:
        """Return how many cells are finished, counting what happened to those there were."""
        before, result = self.cells, {}
        for path in self.folder.glob("results/cells/*/*.parquet"):
            with suppress(FileNotFoundError):
                status = path.stat()
                result[path.name] = (status.st_ino, status.st_mtime_ns)
        again = [name for name in before.keys() & result if result[name] != before[name]]
        self.counts["finished cells written again"] += len(again)
        self.counts["finished cells deleted"] += len(before.keys() - result)
        self.cells = result
        return len(result)

    def kill(self, process: subprocess.Popen[bytes], mark: str, draw: np.random.Generator) -> bool:
        """Kill a worker or the parent, somewhere within a second; say whether one was hit."""
        time.sleep(draw.random())
        workers = self.workers(mark)
        if process.poll() is not None or not (workers or self.kind == "serial"):
            return False
        inside = {pid for pid in [process.pid, *workers] if in_a_cell(pid)}
        if of_parent := self.kind == "serial" or draw.random() < 0.5:
            process.kill()
            process.wait()
        elif ended(victim := int(draw.choice(workers))):
            inside &= {victim}
        else:
            return False
        self.counts["kills of the parent" if of_parent else "kills of a worker"] += 1
        self.counts["kills within a cell"] += bool(inside)
        return True

    def workers(self, mark: str) -> list[int]:
        """Return the processes that compute this sweep's cells, for this command or before."""
        if self.kind == "slurm":
            pids = [int(path.name) for path in Path("/proc").glob("[0-9]*")]
            ours = [pid for pid in pids if str(self.folder) in words_of(pid)]
        else:
            ours = marked(mark)
        return sorted(pid for pid in ours if WORKER.search(words_of(pid)))

    def _look_for_orphans(self) -> None:
        """Count, and end, processes that live on after the command that started them."""
        now = time.monotonic()
        for mark in [mark for mark, end in self.ended.items() if now > end + ALONE_S]:
            del self.ended[mark]
            for pid in marked(mark):
                self._complain("processes that live on", [words_of(pid)])
                ended(pid)

    def _end_jobs(self) -> None:
        """Cancel Slurm's jobs of launchers that were killed: they are no processes of theirs."""
        if self.kind == "slurm":
            around = {**os.environ, **self.environment}
            subprocess.run(["scancel", "--me"], env=around, check=True)
            asked = ["squeue", "--noheader", "--states=PENDING,RUNNING"]
            while subprocess.check_output(asked, env=around):
                time.sleep(0.5)


def ended(pid: int) -> bool:
    """End a process at once; say whether it was still there."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
        return True
    return False


def in_a_cell(pid: int) -> bool:
    """Say whether a process holds a cell's lock."""
    with suppress(OSError):
        files = [os.readlink(path) for path in Path(f"/proc/{pid}/fd").iterdir()]
        return any(re.search(r"/locks/[0-9a-f]+\.lock", file) for file in files)
    return False


@contextmanager
def cluster(kind: str, folder: Path) -> Iterator[dict[str, str]]:
    """Yield the environment to run in: with a Slurm of one node, where it takes one."""
    if kind != "slurm":
        yield {}
        return
    script, base = str(SLURM / "one_node.sh"), str(folder / "slurm")
    subprocess.run([script, "up", base, "2"], check=True)
    path = os.pathsep.join([str(SLURM / "shim"), os.environ["PATH"]])
    try:
        yield {"SLURM_CONF": f"{base}/slurm.conf", "PATH": path}
    finally:
        subprocess.run([script, "down", base], check=True)
