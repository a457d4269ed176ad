"""The store and the tracking at size: what cells, runs and a sweep's jobs cost when there are many.

``docs/scale.md`` says what follows for 10,000,000 cells.
"""

from __future__ import annotations

from benchmarks import scale_cells, scale_runs
from benchmarks.measure import show

HEADER = ("", "measured", "target")


def main() -> None:
    cells, seconds = scale_cells.many()
    show(f"{scale_cells.CELLS:,} cells of {scale_cells.ROWS} rows in one store", HEADER, cells)
    factor = scale_cells.MANY / scale_cells.CELLS
    hours = [(name, value * factor / 3600) for name, value in seconds.items()]
    show(f"the same for {scale_cells.MANY:,} cells, by one process", ("", "CPU hours"), hours)
    show("a bag's cell of Adult, stored, read", HEADER, list(scale_cells.of_adult()))
    show("runs", HEADER, list(scale_runs.costs()))
