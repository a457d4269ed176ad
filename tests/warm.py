"""Commands run in forks of a process that has imported what they need, which takes longest.

What a command prints and leaves is what it prints and leaves when started afresh. With
``make test-all FAIRBENCH_FRESH=1`` every command is started afresh, which takes half as long again.
"""

import atexit
import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
# What most commands import. A command may still be the first to import anything else.
IMPORTED = (
    "hydra.main",
    "matplotlib.pyplot",
    "mlflow.store.tracking.sqlalchemy_store",
    "pyarrow.parquet",
    "scipy.stats",
    "sklearn.linear_model",
    "sklearn.neighbors",
    "xgboost",
    "fairbench.cli.verbs.run",
    "fairbench.cli.verbs.audit",
    "fairbench.cli.verbs.compare",
    "fairbench.experiments.pipeline",
    "fairbench.reporting.document.writing",
    "fairbench.reporting.panels",
    "fairbench.reporting.page",
    "fairbench.tracking.importer",
    "fairbench.components.algorithms.learners.xgboost",
    "fairbench.components.datasets.simulated",
)
# Variables that nothing reads while it is imported.
READ_WHEN_USED = {
    *("PATH", "COLUMNS", "FAIRBENCH_CACHE", "FAIRBENCH_DATA", "MLFLOW_TRACKING_URI"),
    *("HTTPS_PROXY", "https_proxy"),
}
UNBUFFERED = {"PYTHONUNBUFFERED": "1"}
PATIENCE = 20.0  # seconds that a command is given to end once it is told to


def run(
    words: list[str],
    *,
    cwd: Path,
    timeout: float,
    environment: dict[str, str],
    tree: Path = ROOT,
    until: Callable[[Path, int], bool] | None = None,
    how: signal.Signals = signal.SIGTERM,
    fresh: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Run ``python WORDS`` in a folder and return what it printed and its exit status.

    Parameters
    ----------
    tree : the folder that has ``fairbench``: a checkout, or what a wheel was unpacked into.
    until : a function of the file that its output is written to and of its process's number; once
        it is true, the command is told to end, and all that it started.
    how : the signal that tells it.
    fresh : whether Python is started anew.
    """
    # Other variables may be read when something is imported, which the forks are not to repeat.
    fresh |= bool(environment.keys() - READ_WHEN_USED or os.environ.get("FAIRBENCH_FRESH"))
    with TemporaryDirectory() as folder:
        printed = [Path(folder) / name for name in ("stdout", "stderr")]
        for path in printed:
            path.touch()  # there before a slow start makes it
        variables = _inherited() | {"PYTHONPATH": _path(tree)} | environment
        if fresh:
            pid, status_of = _start(words, cwd, variables, printed)
        else:
            request = [words, str(cwd), variables, timeout + PATIENCE, *map(str, printed)]
            pid, status_of = _fork(_server(tree), request)
        end = time.monotonic() + timeout
        while (status := status_of(0.05 if until else timeout)) is None:
            if time.monotonic() > end:
                _end(pid, signal.SIGKILL)
                status_of(PATIENCE)
                raise subprocess.TimeoutExpired(words, timeout, *(p.read_text() for p in printed))
            if until and until(printed[0], pid):
                _end(pid, how)
                if (status := status_of(PATIENCE)) is None:
                    _end(pid, signal.SIGKILL)
                    status = status_of(PATIENCE)
                break
        return subprocess.CompletedProcess(words, status, *(p.read_text() for p in printed))


def _path(tree: Path) -> str:
    """Return where Python finds ``fairbench`` and the extensions of a tree."""
    return os.pathsep.join(map(str, [tree, *sorted(tree.glob("extensions/*"))]))


def _inherited() -> dict[str, str]:
    """Return the variables of this process, less the folder of a command that was given in it."""
    return {name: value for name, value in os.environ.items() if name != "FAIRBENCH_FOLDER"}


Ending = Callable[[float], int | None]  # the exit status, if it ends within so many seconds


def _end(pid: int, how: signal.Signals) -> None:
    """Send a signal to a command and to all that it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, how)


def cpu_seconds(group: int) -> float:
    """Return the CPU time of a command's processes of Linux, and of those that they saw end."""
    total = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended
            fields = path.read_text().rpartition(")")[2].split()
            total += sum(map(int, fields[11:15])) * (int(fields[2]) == group)
    return total / os.sysconf("SC_CLK_TCK")


def _start(
    words: list[str], cwd: Path, variables: dict[str, str], printed: list[Path]
) -> tuple[int, Ending]:
    """Start Python anew."""
    with printed[0].open("w") as stdout, printed[1].open("w") as stderr:
        process = subprocess.Popen(
            [sys.executable, *words], cwd=cwd, stdin=subprocess.DEVNULL, stdout=stdout,
            stderr=stderr, start_new_session=True, env=UNBUFFERED | variables,
        )  # fmt: skip

    def status_of(seconds: float) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(seconds)
        return None

    return process.pid, status_of


def _fork(server: subprocess.Popen[bytes], request: list[Any]) -> tuple[int, Ending]:
    """Have the process that has imported what most commands need be forked."""
    server.stdin.write(json.dumps(request).encode() + b"\n")

    def status_of(seconds: float) -> int | None:
        ready, _, _ = select.select([server.stdout], [], [], seconds)
        return int(server.stdout.readline()) if ready else None

    return int(server.stdout.readline()), status_of


@cache
def _server(tree: Path) -> subprocess.Popen[bytes]:
    """Start the process that is forked; it ends when its standard input does."""
    server = subprocess.Popen(
        [sys.executable, "-P", __file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
        env=os.environ | {"PYTHONPATH": _path(tree), "MPLBACKEND": "agg"},
    )
    atexit.register(server.communicate)
    return server


def serve() -> None:
    """Fork for every request, and answer with the process's number, then with its exit status."""
    import gc
    import importlib

    for name in IMPORTED:
        importlib.import_module(name)
    gc.freeze()  # so that collecting garbage does not copy what the forks share
    answers = os.fdopen(os.dup(1), "w")
    for line in sys.stdin:
        words, cwd, environment, timeout, *printed = json.loads(line)
        child = os.fork()
        if child == 0:
            answers.close()
            _become(words, cwd, environment, timeout, printed)
            return
        print(child, file=answers, flush=True)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), file=answers, flush=True)


def _become(words, cwd, environment, timeout, printed) -> None:
    """Be ``python WORDS``."""
    import runpy

    os.setsid()
    for descriptor, path in zip((0, 1, 2), (os.devnull, *printed), strict=True):
        flags = os.O_RDONLY if descriptor == 0 else os.O_WRONLY | os.O_CREAT
        os.dup2(os.open(path, flags), descriptor)
    sys.stdout.reconfigure(line_buffering=True)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(cwd)
    signal.alarm(int(timeout))  # where nobody is left who waits for it
    if words[0] == "-m":
        sys.argv = words[1:]
        sys.path.insert(0, cwd)
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = list(words)
        sys.path.insert(0, str(Path(words[0]).parent))
        runpy.run_path(words[0], run_name="__main__")


if __name__ == "__main__":
    serve()
