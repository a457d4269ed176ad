"""What a reader of the pages has: a clone of the repository, or the wheel and an empty folder."""

import shutil
import subprocess
import sys
from pathlib import Path

from fairbench.data.download import _default_search_path
from tests.harness import ROOT

# What git ignores: of any folder, and of some folders of the tree.
CACHES = (".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis", "*.egg-info")
OWN = (".git", ".venv", "build", "dist", "data", "outputs", "multirun", "mlruns", "mlflow.db*")
RESULTS = ("README.md",)  # what git has of results/


def clone(folder: Path) -> Path:
    """Copy the working tree, with its compiled modules, and return the copy."""

    def ignored(place: str, names: list[str]) -> set[str]:
        patterns = (*CACHES, *(OWN if Path(place) == ROOT else ()))
        more = {*names} - {*RESULTS} if Path(place) == ROOT / "results" else set()
        return more | shutil.ignore_patterns(*patterns)(place, names)

    shutil.copytree(ROOT, folder, symlinks=True, ignore=ignored)
    return folder


def wheel(folder: Path) -> Path:
    """Build the wheel of a copy of the tree, and return the folder that it is unpacked in."""
    source, ignore = folder / "source", shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "fairbench", source / "fairbench", ignore=ignore)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source / name)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input"]
    offline = ["--no-deps", "--no-build-isolation", "--quiet"]
    subprocess.run([*pip, "wheel", *offline, "-w", str(folder), str(source)], check=True)
    (built,) = folder.glob("fairbench_harness-*.whl")
    shutil.unpack_archive(built, folder / "site", "zip")
    return folder / "site"


def raw_files() -> str:
    """Return where this machine has raw files of data sets, for ``FAIRBENCH_DATA``."""
    there = [folder.resolve() for folder in _default_search_path() if folder.is_dir()]
    return str(there[-1]) if there else ""
