"""Sweeps under kill -9: ``python -m benchmarks.kills joblib|slurm [sweeps] [rounds] [kills]``.

Each sweep has 200 cells and is hit five times (`kills`) at random moments: joblib's in a worker or
in the parent, Slurm's in a step of a task or in the parent. Until it ends with nothing failed the
same command is given again. The final metrics must equal an undisturbed sweep's bit for bit, and no
finished cell may be written again. It takes an hour, so `make bench` leaves it out; Slurm's needs
what tests/slurm needs. Linux only.
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
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.measure import ROOT

CELLS, JOBS, KILLS = 200, 5, 5
SWEEPS = {"joblib": 20, "slurm": 4}
LAUNCHERS = {
    "joblib": ("hydra/launcher=joblib", "hydra.launcher.n_jobs=2"),
    "slurm": ("hydra/launcher=submitit_slurm", "hydra.launcher.mem_gb=null"),
}
WORKERS = {"joblib": "multiprocessing.spawn", "slurm": "submitit.core._submit"}
ROUNDS = 70  # of boosting, in each of a cell's ten fits: 0.3 s of CPU a cell
SLURM = ROOT / "tests" / "slurm"


def main(kind: str, sweeps: int, rounds: int, kills: int) -> bool:
    """Run the study, print its figures, and return whether everything held."""
    total: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name, cluster(kind, Path(name)) as environment:
        words = command(rounds)
        expected = run(words, Path(name) / "undisturbed")
        for number in range(sweeps):
            folder = Path(name) / str(number)
            folder.mkdir()
            attack = Attack(kind, [*words, *LAUNCHERS[kind]], folder, environment, number, kills)
            attack.run()
            total += attack.counts + Counter(
                {"sweeps": 1, "sweeps that differ": not equal(metrics(folder), expected)}
            )
            print(dict(total), flush=True)
    return not total["sweeps that differ"] and not total["finished cells written again"]


def command(rounds: int) -> list[str]:
    """Return the sweep: five seeds of an ensemble on a small simulated population."""
    seeds = ",".join(map(str, range(JOBS)))
    options = (f"seed={seeds}", f"split.repeats={CELLS // JOBS}", f"learner.rounds={rounds}")
    fixed = ("dataset.n_samples=2000", "method=ensemble", "figures=false", "tracking=none")
    return [sys.executable, str(ROOT / "run.py"), "-m", *options, *fixed]


def run(words: list[str], folder: Path) -> dict[str, pd.DataFrame]:
    """Run the sweep undisturbed, print how long its cells were, and return its metrics."""
    folder.mkdir()
    subprocess.run(words, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    tables = [pd.read_parquet(path) for path in folder.glob("results/runs/*/metrics.parquet")]
    seconds = pd.concat(tables).query("metric == 'fit_seconds'")["value"].median()
    print(f"a cell fits for {seconds:.2f} s (median, undisturbed)", flush=True)
    return metrics(folder)


def metrics(folder: Path) -> dict[str, pd.DataFrame]:
    """Return run id -> metrics, without the seconds."""
    tables = {}
    for path in folder.glob("results/runs/*/metrics.parquet"):
        table = pd.read_parquet(path)
        tables[path.parent.name] = table[~table["metric"].str.endswith("_seconds")]
    return tables


def equal(found: dict[str, pd.DataFrame], expected: dict[str, pd.DataFrame]) -> bool:
    """Say whether the same runs have the same metrics to the last bit."""
    return found.keys() == expected.keys() and all(
        table.equals(expected[run]) for run, table in found.items()
    )


@dataclass
class Attack:
    """One sweep, its kills, and what was seen of its cells."""

    kind: str
    words: list[str]
    folder: Path
    environment: dict[str, str]
    seed: int
    kills: int
    counts: Counter[str] = field(default_factory=Counter)
    cells: dict[str, tuple[int, int]] = field(default_factory=dict)

    def run(self) -> None:
        """Give the command until it ends well, killing at random numbers of finished cells."""
        draw = np.random.default_rng(self.seed)
        moments = sorted(draw.integers(0, CELLS - JOBS, self.kills).tolist())
        for _ in range(4 * self.kills):
            self.counts["commands"] += 1
            with open(self.folder / "log", "a") as log:
                process = subprocess.Popen(
                    self.words, cwd=self.folder, env=self.environment, stdout=log, stderr=log
                )
            while process.poll() is None:
                if moments and self.look() >= moments[0] and self.kill(process, draw):
                    moments.pop(0)
                time.sleep(0.05)
            if process.returncode == 0:
                break
        if self.kind == "slurm":  # jobs of launchers that were killed
            subprocess.run(["scancel", "--me"], env=self.environment, check=True)
        self.look()
        self.counts["sweeps that never ended well"] += process.returncode != 0

    def look(self) -> int:
        """Return how many cells are finished, counting those that were written a second time."""
        files = list(self.folder.glob("results/cells/*/*.parquet"))
        for path in files:
            status = path.stat()
            stamp = (status.st_ino, status.st_mtime_ns)
            self.counts["finished cells written again"] += (
                self.cells.setdefault(path.name, stamp) != stamp
            )
        return len(files)

    def kill(self, process: subprocess.Popen[bytes], draw: np.random.Generator) -> bool:
        """Kill a worker or the parent, somewhere within a second; say whether one was hit."""
        time.sleep(draw.random())
        workers = self.workers(process.pid)
        if not workers or process.poll() is not None:
            return False
        inside = {pid for pid in workers if in_a_cell(pid)}
        if draw.random() < 0.5:
            process.kill()
            self.counts["kills of the parent"] += 1
            self.counts["kills within a cell"] += bool(inside)
        else:
            victim = int(draw.choice(workers))
            self.counts["kills of a worker"] += 1
            self.counts["kills within a cell"] += victim in inside
            self.kill_worker(victim)
        return True

    def kill_worker(self, pid: int) -> None:
        """Kill a worker process: Slurm's as Slurm does it."""
        if self.kind == "joblib":
            os.kill(pid, signal.SIGKILL)
            return
        variables = Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0")
        job = dict(each.partition("=")[::2] for each in variables)["SLURM_JOB_ID"]
        step = ["scancel", "--signal=KILL", f"{job}.0"]
        subprocess.run(step, env=self.environment, check=True)

    def workers(self, parent: int) -> list[int]:
        """Return the processes that compute this sweep's cells."""
        found = []
        for path in Path("/proc").glob("[0-9]*"):
            try:
                words = (path / "cmdline").read_bytes().decode()
                ours = (
                    str(self.folder) in words
                    or f"PPid:\t{parent}\n" in (path / "status").read_text()
                )
            except OSError:  # it has ended
                continue
            if words.startswith(sys.executable) and WORKERS[self.kind] in words and ours:
                found.append(int(path.name))
        return sorted(found)


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
        yield dict(os.environ)
        return
    script, base = str(SLURM / "one_node.sh"), str(folder / "slurm")
    subprocess.run([script, "up", base, "2"], check=True)
    path = os.pathsep.join([str(SLURM / "shim"), os.environ["PATH"]])
    try:
        yield {**os.environ, "SLURM_CONF": f"{base}/slurm.conf", "PATH": path}
    finally:
        subprocess.run([script, "down", base], check=True)


if __name__ == "__main__":
    kind = sys.argv[1] if len(sys.argv) > 1 else ""
    if kind not in SWEEPS:
        sys.exit(f"error: unknown launcher '{kind}': valid: {', '.join(SWEEPS)}")
    numbers = [int(word) for word in sys.argv[2:]]
    defaults = (SWEEPS[kind], ROUNDS, KILLS)
    sys.exit(not main(kind, *(*numbers, *defaults[len(numbers) :])))
