"""Run one configuration, or with -m a sweep of them: fit, evaluate, store and log."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Sequence

from fairbench.cli.results_folder import checkout


def main(words: Sequence[str]) -> int:
    """Run what the words configure; Hydra reads them."""
    root = checkout("run")
    sys.argv = [str(root / "run.py"), *words]
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0
    return 0
