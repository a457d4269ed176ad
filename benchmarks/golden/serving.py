"""Running a tree's commands, a process each, without importing the same packages every time.

It reads questions from standard input, a line of JSON each: the words after
``python``, and the folder to run in. Each is answered in a copy of this process that has loaded
other people's packages, and none of any tree's code: that halves what a command costs.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import runpy
import sys
import tempfile
import traceback
from collections.abc import Sequence
from typing import IO, Any

PACKAGES = (
    "hydra.main", "hydra.utils", "matplotlib.figure", "omegaconf", "pandas", "pyarrow.parquet",
    "rich.console", "rich.table", "scipy.optimize", "scipy.special", "scipy.stats",
    "sklearn.calibration", "sklearn.ensemble", "sklearn.linear_model", "sklearn.naive_bayes",
    "sklearn.svm", "xgboost",
)  # fmt: skip


def main() -> None:
    """Answer every question until there are no more."""
    for package in PACKAGES:
        importlib.import_module(package)
    gc.freeze()
    for line in sys.stdin:
        question = json.loads(line)
        print(json.dumps(_answered(question["line"], question["folder"])), flush=True)


def _answered(line: Sequence[str], folder: str) -> dict[str, Any]:
    with tempfile.TemporaryFile("w+") as printed, tempfile.TemporaryFile("w+") as errors:
        child = os.fork()
        if not child:
            _be(line, folder, printed, errors)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        texts = [_content(each) for each in (printed, errors)]
    return {"status": status, "printed": texts[0], "errors": texts[1]}


def _content(file: IO[str]) -> str:
    file.seek(0)
    return file.read()


def _be(line: Sequence[str], folder: str, printed: IO[str], errors: IO[str]) -> None:
    """Be the process of a command, and end as it does."""
    status = 1
    try:
        nothing = os.open(os.devnull, os.O_RDONLY)
        for place, number in enumerate((nothing, printed.fileno(), errors.fileno())):
            os.dup2(number, place)
        os.chdir(folder)
        status = _run(line)
    except BaseException:  # whatever it is, Python would print it and end
        traceback.print_exc()
    finally:
        with contextlib.suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)


def _run(line: Sequence[str]) -> int:
    """Run a script or, after ``-m``, a module; return the exit status."""
    module = line[0] == "-m"
    sys.argv = list(line[1:] if module else line)
    sys.path.insert(0, os.getcwd() if module else os.path.dirname(line[0]))
    try:
        if module:
            runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(sys.argv[0], run_name="__main__")
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        print(end.code, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    main()
