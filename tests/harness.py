"""What several tests need: composing runs in process, and running run.py as a user does."""

import contextlib
import csv
import io
import os
import pty
import re
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from omegaconf import DictConfig

from fairbench.data.dataset import Source
from fairbench.data.download import Archive
from fairbench.evaluation.table import COSTS
from fairbench.results.runs import Run
from tests import warm

ROOT = Path(__file__).resolve().parents[1]
CONF = ROOT / "conf"
# The packages of the extensions, and the folders that Python finds them in.
EXTENSIONS = sorted(ROOT.glob("extensions/*/fairbench_*"))
THOROUGH = pytest.mark.thorough
TINY = ("dataset.n_samples=200", "split.repeats=1", "tracking=none")


class Lazily:
    """A module that is imported when it is first used, so that collecting tests is quick.

    pytest asks every name of a test's module whether it is a fixture.
    """

    def __init__(self, name):
        self.name = name

    def __getattr__(self, attribute):
        if attribute.startswith("_"):
            raise AttributeError(attribute)
        return getattr(import_module(self.name), attribute)


def quick(
    values: Iterable[Any], kept: Iterable[Any], *, several: bool = False, rest: Any = THOROUGH
) -> list[Any]:
    """Return values of a parameter, of which those not kept are for ``make test-all`` alone.

    Parameters
    ----------
    several : whether each is a tuple of the values of several parameters.
    rest : the mark of those not kept.
    """
    kept = list(kept)
    return [
        pytest.param(*(value if several else (value,)), marks=() if value in kept else rest)
        for value in values
    ]


def archive_with(source: Source) -> Archive:
    """Return the archive of this machine; skip the test if it does not have a raw file."""
    archive = Archive(download=False)
    if archive.locate(source) is None:
        places = ", ".join(map(str, archive.folders))
        pytest.skip(f"raw file {source.path} is not in {places}")
    return archive


def options(group: str) -> list[str]:
    """Return the names of every choice of a configuration group."""
    return sorted(path.stem for path in (CONF / group).glob("*.yaml"))


def listed(group: str) -> list[str]:
    """Return the choices of a group that a page of the repository lists, and so none of one's own.

    What a contributor adds has to work; how it is worded and imported is theirs until they hand it
    in, with the pages that a command writes.
    """
    page = ROOT / "docs" / f"{'datasets' if group == 'dataset' else 'choices'}.md"
    text = page.read_text(encoding="utf-8")
    return [name for name in options(group) if f"`{name}`" in text]


def ours(names: Iterable[str]) -> set[str]:
    """Return which names or labels are of metrics of the project, and so none of one's own."""
    with (ROOT / "fairbench" / "metrics" / "declared.csv").open(encoding="utf-8") as file:
        known = {row[column] for row in csv.DictReader(file) for column in ("name", "label")}
    return known & {*names}


def configuration(*overrides: str, results: Path | str = "results") -> DictConfig:
    """Compose a configuration as run.py would."""
    GlobalHydra.instance().clear()
    with initialize_config_dir(str(CONF), version_base="1.3"):
        words = [*overrides, f"results={results}"]
        return compose("config", words, return_hydra_config=True)


def run_py(
    *arguments: str, cwd: Path, timeout: float = 240, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run run.py in a folder and return what it printed and its exit status."""
    return warm.run(command(*arguments)[1:], cwd=cwd, timeout=timeout, environment=environment)


def ran(*arguments: str, cwd: Path, **more: Any) -> subprocess.CompletedProcess[str]:
    """Run run.py in a folder, as `run_py`; it has to succeed."""
    done = run_py(*arguments, cwd=cwd, **more)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def fairbench(
    *words: object, cwd: Path, status: int = 0, timeout: float = 240, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run the command ``fairbench`` of this checkout in a folder; check its exit status."""
    done = warm.run(verb(*words)[1:], cwd=cwd, timeout=timeout, environment=environment)
    assert done.returncode == status, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done


def python(
    *words: str, cwd: Path = ROOT, status: int = 0, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a Python of its own in a folder; check its exit status."""
    done = subprocess.run(
        [sys.executable, *words], cwd=cwd, env=os.environ | environment, timeout=240,
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == status, done.stdout + done.stderr
    return done


def verb(*words: object) -> list[str]:
    """Return the command line of ``fairbench``, which needs the checkout in ``PYTHONPATH``."""
    return [sys.executable, "-m", "fairbench", *map(str, words)]


def command(*arguments: str) -> list[str]:
    """Return the command line of run.py."""
    return [sys.executable, str(ROOT / "run.py"), *arguments]


def together(*commands: Iterable[str], cwd: Path) -> list[str]:
    """Give some commands of run.py at once; return what each printed."""
    started = [
        subprocess.Popen(command(*words), cwd=cwd, stdout=-1, stderr=-2, text=True)
        for words in commands
    ]
    printed = [process.communicate(timeout=240)[0] for process in started]
    assert not any(process.returncode for process in started), printed
    return printed


def printed(document: Any, width: int = 100) -> str:
    """Return what a terminal of so many columns shows of a document."""
    from rich.console import Console

    from fairbench.reporting.document.terminal import print_document

    console = Console(width=width, file=io.StringIO())
    print_document(document, console)
    return console.file.getvalue()


def within(seconds: float, holds: Callable[[], Any]) -> None:
    """Wait until something holds, for so many seconds at most."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, f"not within {seconds} s"
        time.sleep(0.05)


def run_folder(results: Path) -> Path:
    """Return the one run folder of a results folder."""
    (folder,) = (results / "runs").iterdir()
    return folder


def comparable(metrics: pd.DataFrame) -> pd.DataFrame:
    """Return metrics without the seconds, the one thing that may differ between equal runs."""
    return metrics[~metrics["metric"].isin(COSTS)].reset_index(drop=True)


class Terminal:
    """A command in a terminal of its own, which is typed to and read from."""

    def __init__(self, words: list[str], folder: Path, **environment: str) -> None:
        self.pid, self.end = pty.fork()
        if not self.pid:
            os.chdir(folder)
            os.execvpe(words[0], words, os.environ | environment)

    def type(self, text: str) -> None:
        """Type a text."""
        os.write(self.end, text.encode())

    def until(self, pattern: str, seconds: float = 60.0) -> re.Match[str]:
        """Read until what is shown has a pattern, and return where it was found."""
        shown, last = "", time.monotonic() + seconds
        while not (found := re.search(pattern, shown)):
            left = max(0.0, last - time.monotonic())
            assert select.select([self.end], [], [], left)[0], f"no {pattern} in {shown!r}"
            shown += os.read(self.end, 4096).decode()
            shown = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b.|[\r\b]", "", shown)
        return found

    def close(self) -> None:
        """End the command as a loss of power would."""
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.end)


def answers(port: int) -> bool:
    """Return whether somebody listens at a port of this machine."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextlib.contextmanager
def served(cwd: Path, **options: Any) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Start ``fairbench ui`` in a folder; yield its process and port once it answers."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with subprocess.Popen(
        verb("ui", f"port={port}"), cwd=cwd, text=True, start_new_session=True,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}, stderr=subprocess.DEVNULL,
        **{"stdout": subprocess.DEVNULL, **options},
    ) as process:  # fmt: skip
        try:
            within(90, lambda: answers(port))
            yield process, port
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)


def metrics_of(cwd: Path) -> dict[str, pd.DataFrame]:
    """Return run id -> comparable metrics of the results in a folder."""
    runs = (cwd / "results" / "runs").iterdir()
    return {run.name: comparable(Run(run).all_metrics()) for run in runs}


def cells_of(cwd: Path) -> dict[str, tuple[int, int]]:
    """Return name -> inode and time of writing of every stored cell."""
    stats = {path.name: path.stat() for path in cwd.glob("results/cells/*/*.parquet")}
    return {name: (stat.st_ino, stat.st_mtime_ns) for name, stat in stats.items()}


def session(number: int, word: str) -> list[str]:
    """Return the processes of a session that run and have a word in their command lines."""
    result = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, _, own = path.read_text().rpartition(")")[2].split()[:4]
            words = (path.parent / "cmdline").read_text(errors="replace")
            if own == str(number) and state != "Z" and word in words:
                result.append(path.parent.name)
    return result
