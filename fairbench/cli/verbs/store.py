"""Look after results: list, show, export, clean up and verify finished runs."""

from __future__ import annotations

import shlex
import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairbench.cli import command as cli
from fairbench.cli.command import Asked, command
from fairbench.cli.output import print_line
from fairbench.core.errors import UserError
from fairbench.core.options import option
from fairbench.core.processes import alone
from fairbench.core.text import counted, said, visible
from fairbench.reporting.document.model import Column, Document, Section, Table
from fairbench.reporting.document.terminal import print_document
from fairbench.results import upkeep
from fairbench.results.catalogue import Catalogue, differing_options
from fairbench.results.record import GROUPS, refuse_pack
from fairbench.results.runs import Store

if TYPE_CHECKING:
    from fairbench.experiments.pipeline import Difference

_WIDTH = 100


_RUN: Any = option("", "The beginning of the run's id.", argument="RUN")


@dataclass(frozen=True)
class _Cleaning:
    """How files are removed.

    Attributes
    ----------
    dry_run : Only say what would go.
    wait : How many seconds to wait for commands that use the folder.
    """

    dry_run: bool = option(False)
    wait: float = option(10.0)


@dataclass(frozen=True)
class _GarbageOptions(_Cleaning, cli.Results):
    """Which files are kept although no run refers to them.

    Attributes
    ----------
    hours : Spare what was written in the last so many hours.
    """

    hours: float = option(24.0)


@dataclass(frozen=True)
class _PackOptions(cli.Selection):
    """Which runs are packed, and what of each.

    Attributes
    ----------
    results : The results folder.
    out : The pack that is written; by default FOLDER.zip.
    cells : Pack the cells: without them no run is computed again.
    people : Pack target and groups of all data, also of data that may not be passed on.
    """

    ids: tuple[str, ...] = ()  # the word that has no name is the folder

    results: Path = option(cli.default_results, argument="FOLDER")
    out: Path = option(Path(), shown="FILE")
    cells: bool = option(True)
    people: bool = option(False)


def _ls(options: cli.Selection) -> None:
    """List the finished runs that match.

    Examples
    --------
    fairbench store ls dataset=adult,german method=ensemble
    """
    words = [*options.ids, *options.key_words]
    catalogue = Catalogue(options.results)
    runs = catalogue.matching(words)
    if runs.runs:
        print("\n".join(map(visible, _runs_lines(runs))))
    reason = f": {catalogue.why_none(words)}" if catalogue.runs and not runs.runs else ""
    print_line(f"{counted(len(runs), 'finished run')} of {options.results}{reason}")


_SHOWN = ("dataset", "split", "learner", "intervention", "method", "protect", "seed")


def _runs_lines(catalogue: Catalogue) -> list[str]:
    """Return lines: the options that all runs share, then one line of at most 100 letters per run.

    Plain text: a rich table of 10,000 rows takes longer to lay out than the runs to find.
    """
    runs = sorted(catalogue, key=lambda run: (run.finished, run.id))
    choices = [run.choices | {"protect": run.protect, "seed": str(run.seed)} for run in runs]
    columns = {key: [chosen[key] for chosen in choices] for key in _SHOWN}
    shared = [f"{key}={values[0]}" for key, values in columns.items() if len({*values}) == 1]
    varied = {key: values for key, values in columns.items() if len({*values}) > 1}
    names = [", ".join(chosen[key] for key in varied) for chosen in choices]
    options = [", ".join(differing) for differing in differing_options(names, runs, GROUPS)]
    table = {"run": [run.id for run in runs], **varied}
    table |= {"options": options} if any(options) else {}
    table["finished"] = [f"{run.finished:%Y-%m-%d %H:%M}" for run in runs]
    rows = [tuple(table), *zip(*table.values(), strict=True)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    while sum(widths) + 2 * (len(widths) - 1) > _WIDTH:  # the largest is reduced until a line fits
        widths[widths.index(max(widths))] -= 1
    return [*textwrap.wrap("  ".join(shared), _WIDTH), *(_line(row, widths) for row in rows)]


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    cells = zip(row, widths, strict=True)
    padded = ((cell if len(cell) <= n else f"{cell[: n - 1]}…").ljust(n) for cell, n in cells)
    return "  ".join(padded).rstrip()


def _show(results: Path = cli.RESULTS, run: str = _RUN) -> None:
    """Show a run: its configuration, where it was computed, and its table.

    Examples
    --------
    fairbench store show 3f2a
    """
    from fairbench.reporting.runs import document_of, where_from  # slow: listing does without

    folder = Catalogue(results).one(run)
    print_line(folder.content("config.yaml").decode(errors="replace"))
    print_document(where_from(folder))
    print_document(document_of(folder))


def _export_run(
    results: Path = cli.RESULTS,
    run: str = _RUN,
    file: Path = option(Path, argument="FILE"),
    repeat: int = option(0),
    people: bool = option(False),
) -> None:
    """Write a run's predictions as a table.

    Write one repeat's test rows, and print how they are audited.

    Parameters
    ----------
    file : A .csv or .parquet file, such as audit reads.
    repeat : Which repeat of the split.
    people : Write target and groups, also of data that may not be passed on.

    Examples
    --------
    fairbench store export 3f2a run.csv repeat=1
    """
    from fairbench.comparison.runs import NUMBERS, audit_options, export, load_predictions

    stored = Catalogue(results).one(run)
    loaded = load_predictions(stored, participle="exported", tasks=NUMBERS)
    frame = export(loaded, file, repeat, people=people)
    written = f"{len(frame)} rows written to {file}"
    if "target" not in frame:
        print_line(f"{written}, without target and groups: the data")
        print_line(said("cli", "not_passed_on", name=loaded.people.name))
        return
    print_line(f"{written}; audit them with")
    options = audit_options(loaded, frame)
    options["group"] = f"[{','.join(options['group'])}]"
    words = (f"{name}={value}" for name, value in options.items())
    print_line(shlex.join(["fairbench", "audit", str(file), *words]))


def _gc(options: _GarbageOptions) -> None:
    """Remove what no run refers to.

    Examples
    --------
    fairbench store gc dry_run=true
    """
    store = Store(options.results)
    with alone(options.results, options.wait):
        files = upkeep.garbage(store, options.hours)
        if not options.dry_run:
            upkeep.remove(files)
    _print_garbage(files)
    size = sum(file.bytes for file in files)
    print_line(f"{'would free' if options.dry_run else 'freed'} {size / 1e6:.2f} MB")
    for file in files:
        if file.kind in upkeep.STRAY:
            print_line(f"{file.kind}: {file.path}")


def _print_garbage(items: Sequence[upkeep.Garbage]) -> None:
    """Print the number and the size of files of each kind."""
    rows = [
        [kind, number, sum(item.bytes for item in items if item.kind == kind) / 1e6]
        for kind, number in Counter(item.kind for item in items).items()
    ]
    columns = [Column("what"), Column("number", "count"), Column("MB", "number", decimals=2)]
    if rows:
        print_document(Document("", [Section("", [Table(columns, rows)])]))


def _rm(options: Asked) -> None:
    """Remove runs, with the cells that no other run shares.

    Examples
    --------
    fairbench store rm 3f2a dry_run=true
    fairbench store rm purpose=demo
    """
    if not options.ids and not options.keys:
        raise UserError("nothing is named: fairbench store rm RUN, or purpose=demo")
    store = Store(options.results)
    with alone(options.results, options.wait):
        runs = options.taken_as(cli.Selection).selected()
        removed, cells = upkeep.garbage_of_runs(store, list(runs))
        lines = _runs_lines(runs)
        if not options.dry_run:
            upkeep.remove(removed)
    for line in lines:
        print_line(line)
    _print_garbage(removed)
    if stay := cells - sum(item.kind == upkeep.OWN_CELL for item in removed):
        print_line(f"{stay} of {cells} cells stay, as other runs share them")
    size = sum(item.bytes for item in removed)
    verb, freed = ("would remove", "free") if options.dry_run else ("removed", "freed")
    runs_text = f"{len(runs)} run{'s' if len(runs) > 1 else ''}"
    print_line(f"{verb} {runs_text} and {freed} {size / 1e6:.2f} MB ({size:,} bytes)")


def _evaluate(options: cli.Selection) -> int:
    """Evaluate runs again with the code as it is, such as a new metric; fit nothing.

    The exit status is 1 if some cannot be.

    Examples
    --------
    fairbench store evaluate dataset=german
    fairbench store evaluate
    """
    from fairbench.experiments.pipeline import evaluate_again
    from fairbench.reporting.panels import draw_figures

    runs = list(options.selected())
    evaluated = failed = 0
    for run in runs:
        try:
            evaluated += evaluate_again(run, dict(options.keys), draw_figures)
        except UserError as error:
            failed += 1
            print_line(f"left as it is: {error}")
    unchanged = len(runs) - evaluated - failed
    said = f"{evaluated} evaluated again from their cells, {unchanged} as they would be"
    print_line(f"{said}; nothing was fitted")
    return int(failed > 0)


def _verify(
    results: Path = cli.RESULTS,
    run: str = _RUN,
    cells: int = option(3, least=0),
    seed: int = option(0, least=0),
    keys: tuple[tuple[str, str], ...] = option(
        (), argument="dataset.path=FILE", pairs=lambda name: "." in name
    ),
) -> int:
    """Check every file of a run, compute some of its cells again and compare them.

    They are compared bit for bit.

    Parameters
    ----------
    cells : How many cells to compute again.
    seed : The seed with which they are drawn.
    keys : The file that the run was made with, such as dataset.path=FILE.

    Examples
    --------
    fairbench store verify 3f2a cells=10
    """
    from fairbench.experiments import pipeline
    from fairbench.reporting.panels import draw_figures

    if not run:
        raise UserError("nothing is named: fairbench store verify RUN")
    if (path := Path(run)).exists():
        refuse_pack(path)
        raise UserError(said("cli", "path_is_no_run", path=path))
    store = Store(results)
    folder = Catalogue(results).one(run)
    has_list = "cells.txt" not in folder.damaged_files()
    if has_list and (damaged := pipeline.damaged_cells(folder, store)):
        for line in damaged:
            print_line(f"corrupt: {line}")
        print("run it again: corrupt cells are computed anew")
        return 1
    typed = dict(keys)
    if mended := pipeline.mend(folder, typed, draw_figures):
        for file in mended:
            print_line(f"corrupt: {file}: it was made again from the cells")
        return 1
    drawn = pipeline.sample(folder, typed, cells=cells, seed=seed) if cells else []
    found = (pipeline.difference(folder, cell, store) for cell in drawn)
    differing = list(filter(None, found))
    total = len(folder.cells())
    print_line(f"{total} of {total} cells are as they were written")
    same = len(drawn) - len(differing)
    print_line(f"{same} of {len(drawn)} computed again are the same, bit for bit")
    return _verdict(differing, pipeline.changes_since(folder, drawn[0])) if differing else 0


def _verdict(differences: Sequence[Difference], changes: Mapping[str, str]) -> int:
    """Print the differences and what may explain them; return 0 where a CPU type does, else 1."""
    from fairbench.experiments.pipeline import TOLERANCE

    for cell, what, by in differences:
        print_line(f"differs: cell {cell}: {what}, by {by:.2g} of the largest value")
    for name, change in changes.items():
        print_line(f"{name}: {change}")
    tolerated = max(by for *_, by in differences) <= TOLERANCE
    if tolerated and set(changes) <= {"CPU", "commit"} and "CPU" in changes:
        print_line(f"within the tolerance of {TOLERANCE:g} between CPU types")
        return 0
    return 1


def _pack(options: _PackOptions) -> None:
    """Write finished runs, and what they need, as one sealed zip file to pass on.

    Examples
    --------
    fairbench store pack
    fairbench store pack results dataset=adult out=adult.zip
    """
    runs = list(options.selected())
    folder = options.results.resolve()
    out = options.out if options.out != Path() else folder.with_name(f"{folder.name}.zip")
    cli.check_folder(out, new=True)
    if out.exists():
        raise UserError(f"out={out} is there already: name another place, or remove it first")
    cells, missing, left_out = upkeep.pack(runs, out, cells=options.cells, people=options.people)
    size = out.stat().st_size / 1e6
    print_line(f"{out}: {len(runs)} runs and {cells} cells, {size:.2f} MB")
    if missing:
        print_line(f"{missing} cells of these runs are not there, and not in the pack")
    if left_out:
        print_line(said("cli", "left_out_of_pack", names=", ".join(sorted(left_out))))


_UNPACKED = "name the pack and the folder: fairbench store unpack FILE out=FOLDER"


def _unpack(
    file: Path = option(Path(), argument="FILE", needed=_UNPACKED),
    out: Path = option(Path(), shown="FOLDER", needed=_UNPACKED),
) -> None:
    """Check a pack, and write its runs into a results folder, where they are read.

    Parameters
    ----------
    file : The pack.
    out : A results folder, which may be there.

    Examples
    --------
    fairbench store unpack mine.zip out=mine
    """
    cli.check_folder(out)
    runs, cells = upkeep.unpack(file, out)
    print_line(f"{runs} runs and {cells} cells of {file} were written to {out}")


COMMANDS = {
    "ls": command(_ls),
    "show": command(_show),
    "export": command(_export_run),
    "gc": command(_gc, holds=False),
    "evaluate": command(_evaluate),
    "rm": command(_rm, cli.Selection, _Cleaning, holds=False),
    "verify": command(_verify),
    "pack": command(_pack),
    "unpack": command(_unpack),
}
