"""The frozen commit, and a checkout of it for as long as it is asked."""

from __future__ import annotations

import contextlib
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

# The one place where the commit is written down that every later tree is compared with.
COMMIT = "e8ea803f023d805c82855343003c057ab6038a15"
ROOT = Path(__file__).resolve().parents[2]


class GoldenError(Exception):
    """A reason why nothing can be compared, in one line."""


@contextlib.contextmanager
def frozen_tree() -> Iterator[Path]:
    """Yield a folder with the files of the frozen commit; it is removed afterwards.

    Raises
    ------
    GoldenError : this folder is no clone of the repository, or one without that commit.
    """
    _check()
    with tempfile.TemporaryDirectory(prefix="fairbench-frozen-") as folder:
        tree = Path(folder) / COMMIT[:7]
        _git("worktree", "add", "--quiet", "--detach", str(tree), COMMIT)
        try:
            yield tree
        finally:
            _git("worktree", "remove", "--force", str(tree))


def _check() -> None:
    try:
        _git("cat-file", "-e", f"{COMMIT}^{{commit}}")
    except GoldenError as error:
        raise GoldenError(
            f"the frozen commit {COMMIT[:12]} is not in {ROOT}: golden needs a full clone, "
            "which `git fetch --unshallow` makes of a shallow one"
        ) from error


def _git(*words: str) -> None:
    """Run git in this checkout."""
    try:
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True)
    except OSError as error:
        raise GoldenError(f"git cannot be run: {error}") from error
    if done.returncode:
        said = " ".join(done.stderr.split())
        raise GoldenError(f"git {words[0]} {words[1]} failed: {said}")
