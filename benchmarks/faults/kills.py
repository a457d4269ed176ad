"""Sweeps under kill -9: ``python -m benchmarks.faults kills KIND [sweeps] [rounds] [kills]``.

KIND is serial, n_jobs, joblib, local or slurm. Each sweep has three runs of 20 cells, with figures,
and is hit twenty times (`kills`) at random moments, in the parent or a worker. Until it ends with
nothing failed the same command is given again. Meanwhile `gc hours=0`, `verify`, `sync`, `report`
and `pack` are given in loops, and packs are verified or unpacked. Slurm's needs what tests/slurm
does; Linux only.

Workers of Slurm are killed as a machine without memory does it: told to kill a step that is about
to start, Slurm may lose it until its UnkillableStepTimeout.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmarks.faults.beside import COLLECT, Beside
from benchmarks.faults.sweeps import (
    CELLS,
    JOBS,
    entries,
    equal,
    in_peace,
    left_over,
    marked,
    metrics,
    missing,
    state_of,
    surroundings,
    sweep,
    undisturbed,
    words_of,
)
from benchmarks.measure import ROOT

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


def bad(counts: Mapping[str, int]) -> dict[str, int]:
    """Return what must not have happened, and did."""
    fine = {name for name in counts if name in FINE or name.startswith("beside")}
    return {name: n for name, n in counts.items() if n and name not in fine}


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

    def _complain(self, what: str, which: list[str] | list[Path]) -> None:
        self.counts[what] += len(which)
        for each in which:
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

    @property
    def _around(self) -> dict[str, str]:
        return {**os.environ, **self.environment}

    def _wait(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.look()
            time.sleep(0.05)

    def look(self) -> int:
        """Return how many cells are finished, counting what happened to those there were."""
        result = {}
        for path in self.folder.glob("results/cells/*/*.parquet"):
            try:
                status = path.stat()
            except FileNotFoundError:
                continue
            result[path.name] = (status.st_ino, status.st_mtime_ns)
        before = self.cells
        again = [name for name in before if result.get(name, before[name]) != before[name]]
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
        if self.kind == "serial" or draw.random() < 0.5:
            process.kill()
            process.wait()
            self.counts["kills of the parent"] += 1
            self.counts["kills within a cell"] += bool(inside)
        else:
            victim = int(draw.choice(workers))
            if not ended(victim):
                return False
            self.counts["kills of a worker"] += 1
            self.counts["kills within a cell"] += victim in inside
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
            orphans = {pid: f"{state_of(pid)} {words_of(pid)}" for pid in marked(mark)}
            self._complain("processes that live on", list(orphans.values()))
            for pid in orphans:
                ended(pid)

    def _end_jobs(self) -> None:
        """Cancel Slurm's jobs of launchers that were killed: they are no processes of theirs."""
        if self.kind == "slurm":
            subprocess.run(["scancel", "--me"], env=self._around, check=True)
            asked = ["squeue", "--noheader", "--states=PENDING,RUNNING"]
            while subprocess.check_output(asked, env=self._around):
                time.sleep(0.5)


def ended(pid: int) -> bool:
    """End a process at once; say whether it was still there."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def in_a_cell(pid: int) -> bool:
    """Say whether a process holds a cell's lock."""
    try:
        files = [os.readlink(path) for path in Path(f"/proc/{pid}/fd").iterdir()]
    except OSError:
        return False
    return any(re.search(r"/locks/[0-9a-f]+\.lock", file) for file in files)


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
