"""The parts of ``fairbench store`` that make packs, join them and take them apart again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fairbench.cli.command import Command, Results, check_folder, check_keys
from fairbench.cli.output import print_line
from fairbench.core.errors import UserError, unknown_name
from fairbench.core.options import option

if TYPE_CHECKING:
    from fairbench.results.pack_sources import Contents
    from fairbench.results.packing import PackReport
    from fairbench.results.runs import Run


@dataclass(frozen=True)
class _Contents:
    """The parts of each run that are packed."""

    out: Path = option(Path, "The pack that is written: a folder that is not there.", shown="PACK")
    cells: bool = option(True, "Pack the cells: without them no run is computed again.")
    predictions: bool = option(True, "Pack the predictions: without them no runs are compared.")
    metrics: tuple[str, ...] = option(
        (),
        "Pack only these metrics, also where labels are withheld or thresholds relaxed; all by "
        "default.",
        shown="[METRIC,...]",
    )
    groups: bool = option(
        True, "Pack the metrics of single groups, beside those of everyone and the gaps."
    )
    people: bool = option(
        False, "Pack target and groups of all data, also of data that may not be given away."
    )

    def contents(self, *, first: bool = False) -> Contents:
        """Return which parts of the runs go into the pack.

        Raises
        ------
        UserError : no place, or an unknown metric.
        """
        from fairbench.evaluation.columns import COSTS
        from fairbench.metrics.registry import declared
        from fairbench.results.pack_sources import Contents

        if self.out == Path():
            raise UserError("nowhere to write to: name the pack, out=PACK")
        check_folder(self.out, new=True)
        available = {metric.name for metric in declared()} | set(COSTS)
        for name in self.metrics:
            if name not in available:
                raise unknown_name("metric", name, available)
        return Contents(self.cells, self.predictions, self.metrics, self.groups, self.people, first)


@dataclass(frozen=True)
class PackOptions(Results, _Contents):
    """Which runs are packed, and what of each."""

    ids: tuple[str, ...] = option((), "Runs whose ids begin so; all by default.", argument="RUN")
    keys: tuple[tuple[str, str], ...] = option(
        (), "Runs with these values, such as dataset=adult,german or learner.max_depth=6.",
        argument="KEY=VALUE", pairs=lambda name: True,
    )  # fmt: skip


@dataclass(frozen=True)
class MergeOptions(_Contents):
    """Which folders and packs are joined."""

    sources: tuple[Path, ...] = option(
        (), "Two or more packs or results folders.", argument="PACK|FOLDER"
    )
    differing: str = option(
        "refuse", "What becomes of a cell or run that differs: refused, or the first's kept.",
        choices=("refuse", "first"),
    )  # fmt: skip


@dataclass(frozen=True)
class UnpackOptions:
    """Which pack is made a results folder again."""

    pack: Path = option(Path, "The pack.", argument="PACK")
    out: Path = option(Path, "A results folder, which may be there.", shown="FOLDER")


def pack(options: PackOptions) -> None:
    """Write the runs that match as a pack."""
    from fairbench.results.catalogue import Catalogue
    from fairbench.results.packing import write_pack

    check_keys(options.keys, "cells", "predictions", "metrics", "groups", "people", "out")
    contents = options.contents()
    words = [*options.ids, *(f"{name}={text}" for name, text in options.keys)]
    whole = Catalogue(options.results)
    if not whole.runs:
        raise UserError(f"{options.results} has no finished run: there is nothing to pack")
    runs = list(whole.matching(words))
    if not runs:
        raise UserError(whole.why_none(words))
    _print(write_pack([runs], options.out, contents), contents)


def merge(options: MergeOptions) -> None:
    """Join packs and folders; what several have is compared, and kept once."""
    from fairbench.core.locks import using
    from fairbench.results.catalogue import Catalogue
    from fairbench.results.packing import write_pack
    from fairbench.results.packs import is_pack

    contents = options.contents(first=options.differing == "first")
    if len(options.sources) < 2:
        raise UserError(
            f"merge joins two packs or folders or more, and {len(options.sources) or 'none'} is "
            "named: fairbench store merge mine yours out=ours"
        )
    with ExitStack() as locks:
        for folder in options.sources:
            if not is_pack(folder):
                locks.enter_context(using(folder, make=False))
        sources = [list(Catalogue(folder)) for folder in options.sources]
        for folder, runs in zip(options.sources, sources, strict=True):
            if not runs:
                raise UserError(f"{folder} has no finished run, and is no pack: name another")
        report = write_pack(sources, options.out, contents)
    _print(report, contents)
    print(f"{report.shared} runs and cells were in several folders", end="")
    print(f", {len(report.differing)} of them differing: the first's was kept" if report.differing
          else ", and the same in all")  # fmt: skip
    for line in report.differing[:20]:
        print_line(f"differs: {line}")
    for folder, runs in zip(options.sources, sources, strict=True):
        print_line(f"{folder}: {len(runs)} runs, {_origin(runs)}")


def _origin(runs: Sequence[Run]) -> str:
    """Return the commits and versions that runs were made by."""
    commits = {str(run.environment.get("git_commit", "unknown"))[:10] for run in runs}
    versions: dict[str, set[str]] = {}
    for run in runs:
        for name, version in run.environment["versions"].items():
            versions.setdefault(name, set()).add(str(version))
    listed = (
        f"{name} {' and '.join(sorted(versions_of_package))}"
        for name, versions_of_package in sorted(versions.items())
    )
    return f"commit {' and '.join(sorted(commits))}; {', '.join(listed)}"


def unpack(options: UnpackOptions) -> int:
    """Write the runs, cells and data of a pack into a results folder; return 1 if some are lost."""
    from fairbench.core.locks import using
    from fairbench.results.packs import is_pack, open_pack
    from fairbench.results.unpacking import unpack as unpack_into

    if options.pack == Path() and not is_pack(options.pack):
        raise UserError("no pack is named: fairbench store unpack PACK out=FOLDER")
    opened_pack = open_pack(options.pack)
    if options.out == Path():
        raise UserError("nowhere to write to: name the results folder, out=FOLDER")
    check_folder(options.out)
    with using(options.out):
        runs, cells, damages = unpack_into(opened_pack, options.out)
    print_line(f"{runs} runs and {cells} cells of {options.pack} were written to {options.out}")
    if without_data := sorted(set(opened_pack.about["left_out"].values())):
        print_line(
            f"without target and groups of {', '.join(without_data)}: repeat the commands of their "
            "runs"
        )
    for line in damages[:20]:
        print_line(f"damaged: {line}")
    return 1 if damages else 0


def verify_pack(folder: Path) -> int:
    """Compare every byte of a pack with what was written; return 1 if something is lost."""
    from fairbench.results.packs import DamagedIndexError, damages, open_pack, without_index

    try:
        opened_pack = open_pack(folder)
    except DamagedIndexError as error:
        print_line("\n".join([f"damaged: {error}", *without_index(folder)]))
        return 1
    lost = list(damages(opened_pack))
    for line in lost:
        print_line(f"damaged: {line}")
    if lost:
        print("what is named is lost, and is not read; the rest is as it was written")
        return 1
    files = len(opened_pack.listed)
    counts = {kind: opened_pack.count(kind) for kind in ("runs", "cells")}
    print_line(
        f"{opened_pack.path}: {files} files with {_counted(counts)} are as they were written"
    )
    return 0


def _counted(counts: Mapping[str, int]) -> str:
    return f"{counts['runs']} runs and {counts['cells']} cells"


def _print(report: PackReport, contents: Contents) -> None:
    """Print what a pack holds, what it lacks, and what cannot be done without that."""
    print_line(f"{report.path}: {_counted(report.counts)}, {report.bytes / 1e6:.2f} MB")
    if report.missing:
        print_line(f"{report.missing} cells of these runs are not there, and not in the pack")
    if report.left_out:
        print_line(
            f"left out, since they may not be given away: target and groups of "
            f"{', '.join(report.left_out)}; without them their runs cannot be compared, traded off "
            "or audited, nor their metrics computed again from predictions (people=true packs them)"
        )
    if not contents.cells:
        print("left out: the cells; without them no run can be verified by computing it again")
    if not contents.predictions:
        print(
            "left out: the predictions; without them no runs can be compared, traded off or audited"
        )
    if contents.metrics:
        print_line(f"left out: all metrics but {', '.join(contents.metrics)}")
    if not contents.groups:
        print("left out: the metrics of single groups")


COMMANDS = {
    "pack": Command(
        PackOptions,
        pack,
        sentence="Write finished runs as a pack: a few files that hold everything, to be given on.",
        examples=("fairbench store pack out=mine dataset=adult",),
    ),
    "merge": Command(
        MergeOptions,
        merge,
        sentence="Join packs, or results folders, into one pack; nothing is fitted.",
        examples=("fairbench store merge mine yours out=ours",),
    ),
    "unpack": Command(
        UnpackOptions,
        unpack,
        sentence="Make a pack a results folder again, in which runs go on.",
        examples=("fairbench store unpack mine out=results",),
    ),
}
