"""Commands run in forks of a process that has imported what they need, which takes longest.

What a command prints and leaves is what it prints and leaves when started afresh. With
``make test-all FAIRBENCH_FRESH=1`` every command is started afresh, which takes half as long again.
"""

import atexit
import json
import os
import signal
import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[1]
# What most commands import. A command may still be the first to import anything else.
IMPORTED = (
    "hydra.main",
    "matplotlib.pyplot",
    "mlflow",
    "mlflow.store.tracking.sqlalchemy_store",
    "pandas",
    "pyarrow.parquet",
    "scipy.stats",
    "sklearn.linear_model",
    "sklearn.neighbors",
    "xgboost",
    "fairbench",
    "fairbench.cli.main",
    "fairbench.cli.run",
    "fairbench.cli.verbs.audit",
    "fairbench.cli.verbs.compare",
    "fairbench.experiments.pipeline",
    "fairbench.reporting.document.writing",
    "fairbench.reporting.figures",
    "fairbench.reporting.page.write",
    "fairbench.tracking.importer",
    "fairbench.components.algorithms.learners.xgboost",
    "fairbench.components.datasets.simulated",
)
# Variables that nothing reads while it is imported.
READ_WHEN_USED = {"PATH", "COLUMNS", "MLFLOW_TRACKING_URI", "HTTPS_PROXY", "https_proxy"}


def run(
    words: list[str], *, cwd: Path, timeout: float, environment: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run ``python WORDS`` in a folder and return what it printed and its exit status."""
    # Other variables may be read when something is imported, which the forks are not to repeat.
    if environment.keys() - READ_WHEN_USED or os.environ.get("FAIRBENCH_FRESH"):
        return subprocess.run(
            [sys.executable, *words],
            cwd=cwd,
            env=os.environ | {"PYTHONPATH": str(ROOT)} | environment,
            capture_output=True,
            text=True,
            timeout=timeout,
        )
    with TemporaryDirectory() as folder:
        printed = [Path(folder) / name for name in ("stdout", "stderr")]
        request = [words, str(cwd), dict(os.environ) | environment, timeout, *map(str, printed)]
        server = _server()
        server.stdin.write(json.dumps(request) + "\n")
        server.stdin.flush()
        status = int(server.stdout.readline())
        if status == -signal.SIGALRM:
            raise subprocess.TimeoutExpired(words, timeout)
        return subprocess.CompletedProcess(words, status, *(p.read_text() for p in printed))


@cache
def _server() -> subprocess.Popen[str]:
    """Start the process that is forked; it ends when its standard input does."""
    server = subprocess.Popen(
        [sys.executable, "-P", __file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT), "MPLBACKEND": "agg"},
    )
    atexit.register(server.communicate)
    return server


def serve() -> None:
    """Fork for every request, and answer with the exit status."""
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
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), file=answers, flush=True)


def _become(words, cwd, environment, timeout, printed) -> None:
    """Be ``python WORDS``."""
    import runpy

    for descriptor, path in zip((0, 1, 2), (os.devnull, *printed), strict=True):
        flags = os.O_RDONLY if descriptor == 0 else os.O_WRONLY | os.O_CREAT
        os.dup2(os.open(path, flags), descriptor)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(cwd)
    signal.alarm(int(timeout))
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
