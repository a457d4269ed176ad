"""Computes missing cells, each once, even where several processes ask for the same one."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from fairbench.experiments.compute import compute
from fairbench.experiments.study import Cell
from fairbench.results.cells import BusyCellError, Store


def ensure(cell: Cell, store: Store, *, recompute: bool = False, wait: bool = True) -> bool:
    """Compute and store a cell unless it is there and whole; return whether it was computed.

    Raises
    ------
    BusyCellError : another process is computing it, and `wait` is false.
    """
    with store.lock(cell.id, wait=wait):
        if not recompute and store.intact(cell.id):
            return False
        columns, notes = compute(cell.study, cell.fold)
        store.write(cell.id, columns, notes)
        return True


def ensure_all(
    cells: Sequence[Cell],
    store: Store,
    *,
    recompute: bool = False,
    done: Callable[[bool], None] = lambda computed: None,
) -> int:
    """Ensure every cell, call `done` after each, and return how many were computed.

    Cells that other processes are computing come last, so that processes share the work.
    """
    waiting = deque(cells)
    computed = busy = 0
    while waiting:
        cell = waiting.popleft()
        try:
            fresh = ensure(cell, store, recompute=recompute, wait=busy >= len(waiting) + 1)
        except BusyCellError:
            waiting.append(cell)
            busy += 1
            continue
        busy = 0
        computed += fresh
        done(fresh)
    return computed
