"""Results of a few runs, packs of them, and the commands that make and read these."""

from __future__ import annotations

import contextlib
import io
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from unittest.mock import patch

from benchmarks.faults.flips import RUN
from benchmarks.measure import configuration
from fairbench.cli.main import run_command
from fairbench.core.errors import UserError
from fairbench.core.files import half_of
from fairbench.experiments.execute import carry_out
from fairbench.results import pack_file
from fairbench.results.catalogue import Catalogue
from fairbench.results.cells import CorruptCellError, Store
from fairbench.results.packs import KINDS, Pack, open_pack
from fairbench.results.runs import Run

Item = tuple[str, str]  # what is read, and of which run or cell
PARTS = ("pack", "merge", "unpack")
READS: Mapping[str, Callable[[Run], Any]] = {
    "record": lambda run: {n: v for n, v in run.environment.items() if n != "files"},
    "cells.txt": lambda run: run.cells(),
    "metrics": lambda run: run.all_metrics().to_csv(),
    "summary": lambda run: run.summary().to_csv(),
    "predictions": lambda run: run.predictions().to_csv(),
    "people": lambda run: (run.people().about, run.people().sensitive.to_csv()),
}
_NEEDS = {"predictions": ("predictions", "splits"), "people": ("data",)}


@dataclass(frozen=True)
class Folders:
    """Two results folders that share a run, and what the commands make of them undisturbed."""

    root: Path

    def make(self) -> None:
        """Run and pack everything."""
        _run(self.root / "yours", 150)
        shutil.copytree(self.root / "yours", self.root / "mine")
        _run(self.root / "mine", 120, 130, 140)
        _run(self.root / "yours", 160)
        theirs = self.words("pack", "results=yours", "out=theirs")
        for words in (*self.commands("whole-").values(), theirs):
            said, status = quietly(words)
            if status:
                raise RuntimeError(said)

    def words(self, part: str, *words: str) -> list[str]:
        """Return a command; its folders lie here."""
        at = self.root
        named = [word.replace("=", f"={at}/") if "=" in word else f"{at / word}" for word in words]
        return ["store", part, *named, *["people=true"] * (part != "unpack")]

    def commands(self, name: str) -> Mapping[str, list[str]]:
        """Return a command of each part, which writes into a folder whose name begins so."""
        made = (
            self.words("pack", "results=mine", f"out={name}pack"),
            self.words("merge", "mine", "yours", f"out={name}merge"),
            self.words("unpack", "whole-pack", f"out={name}unpack"),
        )
        return dict(zip(PARTS, made, strict=True))

    @cached_property
    def expected(self) -> Mapping[str, Mapping[Item, Any]]:
        """What is read of the whole pack, of the merged one and of the folder it is unpacked to."""
        return {name: read(self.root / f"whole-{name}", self.cells) for name in PARTS}

    @cached_property
    def cells(self) -> list[str]:
        """The ids of all cells."""
        return list(open_pack(self.root / "whole-merge").ids("cells"))

    @cached_property
    def places(self) -> Mapping[Item, set[str]]:
        """Which of the pack's files each item is read from."""
        pack = open_pack(self.root / "whole-pack")
        result = {("cell", cell): _files(pack, ("cells", cell)) for cell in pack.ids("cells")}
        for run in Catalogue(pack.path):
            result |= {(what, run.id): _files(pack, *_tables(what, run)) for what in READS}
        return result


def _run(results: Path, *sizes: int) -> None:
    for size in sizes:
        words = [word for word in RUN if "n_samples" not in word]
        carry_out(configuration(*words, f"dataset.n_samples={size}", f"results={results}"))


def _tables(what: str, run: Run) -> list[Item]:
    """Return the tables, kind and id, that are read for an item of a run."""
    ids = {"splits": str(run.environment["rows"]), "data": str(run.environment["data"])}
    kinds = ("runs", *_NEEDS.get(what, (what,) if what in KINDS else ()))
    return [(kind, ids.get(kind, run.id)) for kind in kinds]


def _files(pack: Pack, *tables: Item) -> set[str]:
    return {file.path.name for table in tables if (file := pack.where(*table))}


def read(results: Path, cells: Sequence[str]) -> dict[Item, Any]:
    """Return all that can be read of a folder or pack; what is refused is not in it."""
    result: dict[Item, Any] = {}
    runs: list[Run] = []
    with contextlib.redirect_stderr(io.StringIO()):
        with contextlib.suppress(UserError):
            runs = list(Catalogue(results))
        for run in runs:
            for what, get in READS.items():
                with contextlib.suppress(UserError):
                    result[what, run.id] = get(run)
        for cell in cells:
            with contextlib.suppress(UserError, CorruptCellError):
                kept = Store(results).read(cell)
                columns = {name: values.tobytes() for name, values in kept.columns.items()}
                result["cell", cell] = columns, kept.notes
    return result


def quietly(words: Sequence[str]) -> tuple[str, int]:
    """Carry a command out, two tables to a file; return what it said, and its exit status."""
    with (
        patch.object(pack_file, "MOST_TABLES", 2),
        contextlib.redirect_stdout(io.StringIO()) as said,
        contextlib.redirect_stderr(said),
    ):
        try:
            status = run_command(list(words))
        except UserError as error:
            return f"{said.getvalue()}{error}", 2
    return said.getvalue(), status


def contents(folder: Path) -> dict[str, bytes]:
    """Return the files under a folder, but locks and half files of who was killed."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.suffix != ".lock" and not half_of(path.name)
    }
