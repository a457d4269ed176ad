"""List the data sets; find, download and verify their raw files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fairbench.cli.command import Results, command, table
from fairbench.core.errors import DataError, unknown_name
from fairbench.core.options import option
from fairbench.data import download as raw
from fairbench.data.dataset import Source
from fairbench.data.download import Archive, MissingFileError
from fairbench.reporting.document.model import Column, Document, Section, Table
from fairbench.reporting.document.terminal import print_document, progress


@dataclass(frozen=True)
class _DataOptions(Results):
    """Where raw files are looked for.

    Attributes
    ----------
    search_path : The folders that are searched; $FAIRBENCH_DATA, data and ../shared/data by
        default.
    download : Fetch what is missing; false never touches the network.
    """

    search_path: tuple[Path, ...] = option((), shown="[FOLDER,...]")
    download: bool = option(True)

    def archive(self, *, download: bool) -> Archive:
        """Return the raw files."""
        return Archive(self.search_path, download=download)


@dataclass(frozen=True)
class _DatasheetOptions(_DataOptions):
    """Which data set is shown.

    Attributes
    ----------
    name : A data set, whose datasheet is printed; all by default.
    """

    name: str = option("", argument="NAME")


def _list_data_sets(options: _DatasheetOptions) -> None:
    """List every data set and say whether its raw files are here; or print one's datasheet.

    Raises
    ------
    UserError : there is none of this name.

    Examples
    --------
    fairbench data
    fairbench data german
    """
    archive = options.archive(download=False)
    data_sets = {entry.name: entry for entry in raw.entries()}
    if not options.name:
        titles = {n: f"{_missing(entry, archive)}{entry.title}" for n, entry in data_sets.items()}
        print(table(sorted(titles.items())))
        print("fairbench data NAME prints the datasheet of one")
        print("fairbench data check finds, downloads and verifies the files")
        return
    if options.name not in data_sets:
        raise unknown_name("data set", options.name, [*data_sets, *filter(None, COMMANDS)])
    entry = data_sets[options.name]
    sheet = entry.datasheet
    rows = [
        ("data set", f"{_missing(entry, archive)}{entry.title}"),
        *entry.facts(archive),
        ("source", sheet.source),
        ("licence", sheet.licence),
        ("in the papers, and here", sheet.paper_differences),
        ("known problems", sheet.criticism),
        ("to use it", f"fairbench run dataset={entry.name}"),
    ]
    print(table([(name, text) for name, text in rows if text]))


def _missing(entry: raw.DatasetEntry, archive: Archive) -> str:
    """Return how many of a data set's raw files are not here; empty if all are."""
    sources = raw.sources_of(entry.module)
    missing = sum(archive.locate(source) is None for source in sources)
    return f"{missing} of {len(sources)} files missing; " if missing else ""


def _check_files(options: _DataOptions) -> int:
    """Find, download and verify the raw files of every data set.

    The exit status is 1 if a file is wrong.

    Examples
    --------
    fairbench data check download=false
    """
    modules = dict.fromkeys(entry.module for entry in raw.entries())
    sources = dict.fromkeys(source for module in modules for source in raw.sources_of(module))
    archive = options.archive(download=options.download)
    steps = progress(list(sources), "raw files")
    checks = [[source.path, *_check_file(archive, source)] for source in steps]
    columns = [Column("file"), Column("state"), Column("where")]
    states = [state for _, state, _ in checks]
    counts = ", ".join(f"{states.count(state)} {state}" for state in ("there", "missing", "wrong"))
    print_document(Document("", [Section("", [Table(columns, checks, caption=counts)])]))
    return int("wrong" in states)


def _check_file(archive: Archive, source: Source) -> tuple[str, str]:
    """Find or download a raw file, and verify it.

    Returns
    -------
    Its state, ``there``, ``missing`` or ``wrong``, and a note that explains it.
    """
    before = archive.locate(source)
    try:
        archive.read(source)
    except DataError as error:
        if before is not None:
            return "wrong", str(error)
        reason = error.reason if isinstance(error, MissingFileError) else error
        return "missing", f"{reason}; see {source.page}"
    note = f"{before}" if before else f"downloaded to {archive.locate(source)}"
    return "there", note if source.sha256 else f"{note} (no checksum is recorded)"


COMMANDS = {"": command(_list_data_sets), "check": command(_check_files)}
