"""Having cells computed: each once, whoever asks, on any number of processes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence

from fairbench.core.errors import UserError
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
    n_jobs: int = 1,
    recompute: bool = False,
    done: Callable[[bool], None] = lambda computed: None,
) -> int:
    """Ensure every cell, on `n_jobs` processes; call `done` after each; return how many were fits.

    Raises
    ------
    UserError : a worker process died (killed, or out of memory).
    """
    computed = 0
    for fresh in _outcomes(cells, store, n_jobs, recompute):
        computed += fresh
        done(fresh)
    return computed


def _outcomes(cells: Sequence[Cell], store: Store, n_jobs: int, recompute: bool) -> Iterator[bool]:
    if n_jobs == 1 or len(cells) == 1:
        yield from _one_by_one(cells, store, recompute)
        return
    import joblib
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    tasks = (joblib.delayed(ensure)(cell, store, recompute=recompute) for cell in cells)
    try:
        yield from joblib.Parallel(n_jobs, return_as="generator_unordered")(tasks)
    except TerminatedWorkerError as error:
        raise UserError(
            "a worker process was killed (out of memory?): finished cells are kept; run the same "
            "command again, with a smaller n_jobs if memory is short"
        ) from error


def _one_by_one(cells: Sequence[Cell], store: Store, recompute: bool) -> Iterator[bool]:
    """Ensure cells in turn; those that others are computing come last, so that jobs share them."""
    waiting = deque(cells)
    busy = 0
    while waiting:
        cell = waiting.popleft()
        try:
            fresh = ensure(cell, store, recompute=recompute, wait=busy >= len(waiting) + 1)
        except BusyCellError:
            waiting.append(cell)
            busy += 1
            continue
        busy = 0
        yield fresh
