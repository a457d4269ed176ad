"""A pack as a results folder again, in which sweeps go on without a fit."""

from __future__ import annotations

import os
from pathlib import Path

from fairbench.core.errors import UserError
from fairbench.core.files import sha256, write_bytes, write_table
from fairbench.core.formats import csv_text
from fairbench.results.cells import Store, plain_id
from fairbench.results.pack_tables import unpacked
from fairbench.results.packs import Pack, refuse_pack
from fairbench.results.people import people_path
from fairbench.results.predictions import parquet_bytes, rows_path
from fairbench.results.run_writer import seal_run
from fairbench.results.runs import FILES, LAST, Run, config_text, read_environment


def unpack(pack: Pack, results: Path) -> tuple[int, int]:
    """Write what a pack holds into a folder; what is there is left. Return how many runs, cells.

    A run is written last, when all that it needs is there.

    Raises
    ------
    UserError : the pack has not all of its runs' metrics and predictions.
    """
    options = pack.about["options"]
    some = options["metrics"] or not options["groups"]
    if some or not options["predictions"]:
        what = "some of the metrics" if some else "no predictions"
        raise UserError(
            f"{pack.path} has {what}: its runs would not be whole; it is read as it is, and joined "
            "with others by `fairbench store merge`"
        )
    refuse_pack(results)
    cells = _write_cells(pack, Store(results))
    for split in pack.ids("splits"):
        if not (path := rows_path(results, split)).is_file():
            write_bytes(path, parquet_bytes(unpacked(pack.table("splits", split))))
    for digest in pack.ids("data"):
        if not (path := people_path(results, digest)).is_file():
            path.parent.mkdir(parents=True, exist_ok=True)
            os.chmod(path.parent, 0o700)
            write_table(path, unpacked(pack.table("data", digest)), mode=0o600)
    runs = [Run(pack.path / "runs" / plain_id(run), None, pack) for run in pack.records]
    written = [_write_run(run, results / "runs" / run.id) for run in runs]
    return sum(written), cells


def _write_cells(pack: Pack, store: Store) -> int:
    mine, written = Store(pack.path), 0
    for cell in pack.ids("cells"):
        if not store.has(cell):
            found = mine.read(cell)
            store.write(cell, found.columns, found.notes)
            written += 1
    return written


def _write_run(run: Run, path: Path) -> bool:
    """Write the folder of a run unless it is there; its time is that at which it was finished."""
    if read_environment(path):
        return False
    known = dict(run.environment)
    contents = {
        "config.yaml": config_text(known["config"]).encode(),
        "cells.txt": run.content("cells.txt"),
        "summary.csv": csv_text(run.table("summary").to_pandas()).encode(),
        "metrics.parquet": parquet_bytes(run.table("metrics")),
        "predictions.parquet": parquet_bytes(run.table("predictions")),
    }
    for name in FILES:
        write_bytes(path / name, contents[name])
    known.pop("files")
    seal_run(path, known, {name: sha256(contents[name]) for name in FILES})
    nanoseconds = round(run.written * 1e9)
    os.utime(path / LAST, ns=(nanoseconds, nanoseconds))
    return True
