"""Run the measurements of speed, or those named: ``python -m benchmarks sweep repeats=3``."""

from __future__ import annotations

import os
import sys
from datetime import date
from pathlib import Path

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[_variable] = "1"

import xgboost  # noqa: E402

from benchmarks import speed  # noqa: E402
from benchmarks.measure import command, fill, markdown, show  # noqa: E402
from fairbench.core import VERSION  # noqa: E402
from fairbench.core.errors import unknown_name  # noqa: E402
from fairbench.results.runs import machine  # noqa: E402

PARTS = {part.__name__: part for part in (speed.sweep, speed.tiny, speed.start)}


def main(parts: tuple[str, ...] = (), repeats: int = 3, write: Path | None = None) -> bool:
    """Measure the named parts in turn, all without names."""
    for name in parts:
        if name not in PARTS:
            raise unknown_name("part", name, PARTS)
    for name in parts or PARTS:
        for figures in PARTS[name](repeats):
            when = _when(figures.repeats)
            show(figures.name, figures.rows[0], figures.rows[1:])
            if write:
                fill(write, {f"speed: {figures.name}": f"{markdown(figures.rows)}\n\n{when}"})
            print(when)
    return True


def _when(repeats: int) -> str:
    """Say when this is measured, of what, with what and beside what, in a sentence."""
    here = machine()
    changed = " and changes" if here.get("git_dirty") else ""
    times = f"medians of {repeats}" if repeats > 1 else "once"
    commit = here.get("git_commit", "no checkout")[:8]
    return (
        f"Measured on {date.today()} at version {VERSION} ({commit}{changed}), {times}; XGBoost "
        f"{xgboost.__version__}, Python {here['python']}, one thread, {os.cpu_count()} cores of "
        f"{here['cpu']}, on which {os.getloadavg()[2]:.1f} other processes ran."
    )


if __name__ == "__main__":
    sys.exit(command(main, sys.argv[1:]))
