"""Run folders: what a finished run leaves behind, and how to tell that it is finished."""

from __future__ import annotations

import contextlib
import json
import platform
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairbench.core.errors import UserError
from fairbench.core.files import atomic, write_text

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class RunFolder:
    """The folder ``results/runs/<run id>``; ``environment.json`` is written last."""

    path: Path

    @property
    def figures(self) -> Path:
        """Where the run's figures are drawn; written whole or not at all."""
        return self.path / "figures"

    @contextlib.contextmanager
    def drawing(self) -> Iterator[Path]:
        """Yield a folder that becomes `figures` when the block succeeds, unless one is there."""
        self.path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".figures.", dir=self.path) as temporary:
            folder = Path(temporary) / "figures"
            folder.mkdir()
            yield folder
            with contextlib.suppress(OSError):  # another process has drawn the same ones
                folder.replace(self.figures)

    def finished(self, fingerprint: str) -> bool:
        """Say whether the run is there, made from these very cells and this very code."""
        return self.environment().get("fingerprint") == fingerprint

    def environment(self) -> dict[str, Any]:
        """Return what is known of a finished run, nothing of an unfinished one."""
        try:
            known: dict[str, Any] = json.loads((self.path / "environment.json").read_text())
        except (OSError, ValueError):
            return {}
        return known

    def config(self) -> dict[str, Any]:
        """Return the run's configuration as it was composed: what the run is."""
        import yaml

        # libyaml's loader where it was built: ten times as fast, over thousands of runs.
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        path = self.path / "config.yaml"
        with reading(path, yaml.YAMLError):
            return dict(yaml.load(path.read_text(encoding="utf-8"), loader))

    def metrics(self) -> pd.DataFrame:
        """Return the run's long table of metrics."""
        import pandas as pd  # half a second, which listing runs does without

        path = self.path / "metrics.parquet"
        with reading(path):
            return pd.read_parquet(path)

    def cells(self) -> list[str]:
        """Return the ids of the run's cells."""
        path = self.path / "cells.txt"
        with reading(path):
            return path.read_text().split()

    def write(
        self,
        config: str,
        cells: Sequence[str],
        metrics: pd.DataFrame,
        summary: pd.DataFrame,
        environment: dict[str, Any],
    ) -> None:
        """Write every file atomically, the one that marks the run as finished last."""
        write_text(self.path / "config.yaml", config)
        write_text(self.path / "cells.txt", "\n".join(cells) + "\n")
        write_text(self.path / "summary.csv", summary.to_csv(index=False))
        with atomic(self.path / "metrics.parquet") as temporary:
            metrics.to_parquet(temporary, index=False)
        write_text(self.path / "environment.json", json.dumps(environment, indent=2))


@contextlib.contextmanager
def reading(path: Path, *errors: type[Exception]) -> Iterator[None]:
    """Read a file of a finished run.

    Raises
    ------
    UserError : it is missing or damaged; `errors` are what reading such a file raises, beside
        OSError and ValueError (of which pyarrow's are).
    """
    expected: tuple[type[Exception], ...] = (OSError, ValueError, TypeError, *errors)
    try:
        yield
    except expected as error:
        raise UserError(
            f"{path} is missing or damaged: remove the folder of that run and repeat its command, "
            "which fits nothing that is in the store"
        ) from error


@lru_cache(maxsize=1)
def machine() -> dict[str, Any]:
    """Return what of this machine and checkout can bear on a result."""
    return {"python": platform.python_version(), "cpu": _cpu_model(), **_git()}


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _git() -> dict[str, Any]:
    """Return commit and dirtiness of the checkout; empty outside one."""

    def ask(*words: str) -> str:
        result = subprocess.run(
            ["git", *words], cwd=Path(__file__).parent, capture_output=True, text=True, check=True
        )
        return result.stdout.strip()

    try:
        dirty = bool(ask("status", "--porcelain", "--untracked-files=no"))
        return {"git_commit": ask("rev-parse", "HEAD"), "git_dirty": dirty}
    except (OSError, subprocess.CalledProcessError):
        return {}
