"""The list of all data sets, the page that documents them, and a check of every raw file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.components import imported
from fairbench.core.errors import DataError, UserError
from fairbench.core.text import count, fixed
from fairbench.data.dataset import Dataset, Datasheet, Source, Task
from fairbench.data.download import Archive, MissingFileError
from fairbench.data.features import Sequences, onehot_names

_HEAD = """# Data sets

`fairbench data write` writes this page from the loaders, so do not edit it. Each name is a choice
for `dataset=`, and `fairbench run --cfg job dataset=NAME` shows its options.

How to read the tables:

- **columns**: how many columns the features have after one-hot encoding.
- **meaning of label 1**: what label 1 stands for. For several classes, the names of all classes;
  `<` between them means that their order matters. Blank for a regression.
- **rate**: the share of the rows that have label 1. For several classes, the share of each class;
  for a regression, the mean of the target.
- **label that is good for the person**: the label that counts as the favourable outcome. Classes
  are numbered from 0.
- **group**: the first group of each attribute is the reference group.

"In the papers, and here" compares the loader with the [works that fairbench
reproduces](papers.md), which are called "the papers", and with other works that used the data.

Where a raw file was missing when this page was written, the page says so and has no figures for
the data set. To add them, get the file and run `fairbench data write` again.
`fairbench data check` downloads the files listed under "Files" where that is possible, and
verifies them.
"""


_COLUMNS = (
    *("dataset", "rows", "columns", "target", "meaning of label 1", "rate"),
    "label that is good for the person (blank: neither)",
)


@dataclass(frozen=True)
class DatasetEntry:
    """A data set as the command line knows it: its name, and how to load it."""

    name: str
    module: ModuleType
    function: Callable[..., Dataset]
    options: dict[str, Any]

    @property
    def datasheet(self) -> Datasheet:
        """Return the documentation that its loader's module has."""
        datasheet: Datasheet = self.module.DATASHEET
        return datasheet

    @property
    def title(self) -> str:
        """Return its own title from ``TITLES`` of the module, or else that of the datasheet."""
        titles: dict[str, str] = getattr(self.module, "TITLES", {})
        return titles.get(self.name, self.datasheet.title)

    def load(self, archive: Archive) -> Dataset:
        """Load it with the options in its configuration file."""
        return self.function(archive, **self.options)


def entries(conf: Path) -> list[DatasetEntry]:
    """Return every data set that has a configuration file, sorted by module and name.

    Parameters
    ----------
    conf : the folder of configurations. The files in its folder ``dataset`` name the loaders.
    """
    import yaml

    dataset_entries = []
    for path in sorted((conf / "dataset").glob("*.yaml")):
        options = yaml.safe_load(path.read_text(encoding="utf-8"))
        module_name, _, function = options.pop("_target_").rpartition(".")
        module = imported(module_name)
        dataset_entries.append(DatasetEntry(path.stem, module, getattr(module, function), options))
    return sorted(dataset_entries, key=lambda entry: (entry.module.__name__, entry.name))


def sources_of(module: ModuleType) -> list[Source]:
    """Return the raw files that the module of a loader names."""
    named = (value for name, value in vars(module).items() if not name.startswith("__"))
    return list(dict.fromkeys(_sources(named)))


def _sources(values: Iterable[Any]) -> Iterator[Source]:
    for value in values:
        if isinstance(value, Source):
            yield value
        elif isinstance(value, dict):
            yield from _sources([*value, *value.values()])


def page(archive: Archive, tasks: Sequence[DatasetEntry]) -> str:
    """Return the page that documents the data sets `tasks`, in Markdown."""
    modules = dict.fromkeys(entry.module for entry in tasks)
    by_module = [[entry for entry in tasks if entry.module is module] for module in modules]
    return "\n".join([_HEAD, *(_section(archive, of_module) for of_module in by_module)])


def _section(archive: Archive, tasks: Sequence[DatasetEntry]) -> str:
    """Return the section on one loader's data sets: their figures, groups and documentation."""
    datasheet = tasks[0].datasheet
    rows, groups, notes = [], [], []
    for entry in tasks:
        try:
            data = entry.load(archive)
        except UserError as error:
            notes.append(f"There are no figures for `{entry.name}`: {_why(error)}.")
            continue
        rows.append(_summary(entry.name, data))
        groups += _groups(entry.name, data)
    lines = [f"## {datasheet.title}", ""]
    if len(tasks) > 1:
        lines += [*(f"- `{entry.name}`: {entry.title}" for entry in tasks), ""]
    if rows:
        lines += [*_table(_COLUMNS, rows), ""]
        lines += [*_table(["dataset", "attribute", "group", "rows", "rate"], groups), ""]
    lines += [note + "\n" for note in notes]
    said = {
        "Source": datasheet.source,
        "Licence": datasheet.licence,
        "In the papers, and here": datasheet.paper_differences,
        "Known problems": datasheet.criticism,
    }
    files = [
        f"- `{file.path}`, sha256 `{file.sha256 or 'not recorded'}`"
        for file in sources_of(tasks[0].module)
    ]
    lines.append("\n\n".join(f"**{title}.** {text}" for title, text in said.items()))
    lines += ["", "**Files.**", "", *files] if files else []
    return "\n".join(lines) + "\n"


def _why(error: UserError) -> str:
    """Return the reason without the folders that were searched: they differ between machines."""
    if isinstance(error, MissingFileError):
        return f"the file {error.path} was missing when this page was written"
    return str(error)


def _summary(name: str, data: Dataset) -> list[str]:
    """Return a table row: rows, columns, target, labels, rate and favourable label."""
    good = "" if data.favourable is None else str(data.favourable)
    if good and data.classes:
        good += f" ({data.classes[int(good)]})"
    label = data.positive_label or (" < " if data.ordered else ", ").join(data.classes)
    facts = [str(len(data)), _columns(data), data.target_name, label]
    return [f"`{name}`", *facts, _rate(data, data.target), good]


def _rate(data: Dataset, target: pd.Series) -> str:
    """Return the mean of labels or values, or the share of each of several classes."""
    if not len(target):
        return ""
    if not data.classes:
        return fixed(target.mean(), 4)
    return " / ".join(f"{share:.3f}" for share in _shares(data, target))


def _shares(data: Dataset, target: pd.Series) -> NDArray[np.float64]:
    """Return the share of each of several classes (C,)."""
    counts = np.bincount(target.astype(int), minlength=len(data.classes))
    return counts / len(target)


def _columns(data: Dataset) -> str:
    """Return how many columns the features have, or how many channels a frame of each modality."""
    if isinstance(data.features, Sequences):
        return " + ".join(str(part.channels) for part in data.features.parts) + " per frame"
    return str(len(onehot_names(data.features)))


def _groups(name: str, data: Dataset) -> list[list[str]]:
    """Return a table row for each group: data set, attribute, group, number of rows, rate."""
    rows = []
    for attribute in data.sensitive:
        groups = data.groups(str(attribute))
        for label in groups.cat.categories:
            members = data.target[(groups == label).to_numpy()]
            rate = _rate(data, members)
            rows.append([f"`{name}`", str(attribute), str(label), str(len(members)), rate])
    return rows


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    rule = ["---"] * len(head)
    return ["| " + " | ".join(cells) + " |" for cells in (head, rule, *rows)]


def facts_of(entry: DatasetEntry, archive: Archive) -> list[tuple[str, str]]:
    """Return how many rows a data set has, its target and its sensitive attributes.

    They are read from the raw files; where one is missing, or the data set needs options, the
    reason is given in their place.
    """
    try:
        data = entry.load(archive)
    except MissingFileError as error:
        reason = f"not known, as {error.path} is not here; fairbench data check fetches what it can"
        return [("rows, target and groups", reason)]
    except UserError as error:
        return [("rows, target and groups", f"not known before they are named: {error}")]
    return [
        ("rows", count(len(data))),
        ("target", _target(data)),
        ("sensitive attributes", "; ".join(_attributes(data))),
    ]


def _target(data: Dataset) -> str:
    """Return what is predicted, what its values mean and how often they occur, in words."""
    if data.classes:
        order = "in this order" if data.ordered else "without an order"
        shares = zip(data.classes, _shares(data, data.target), strict=True)
        names = [f"{name} {100 * share:.1f} %" for name, share in shares]
        return f"{data.target_name}; classes, {order}: {', '.join(names)}"
    if data.task is Task.REGRESSION:
        low, high = data.target.min(), data.target.max()
        return f"{data.target_name}; a number from {low:.4g} to {high:.4g}"
    label = f"label 1: {data.positive_label}, {100 * data.target.mean():.1f} % of the rows"
    good = "" if data.favourable is None else f"; label {data.favourable} is good for the person"
    return f"{data.target_name}; {label}{good}"


def _attributes(data: Dataset) -> Iterator[str]:
    """Yield each sensitive attribute with its groups and their sizes, the reference group first."""
    for attribute in map(str, data.sensitive):
        sizes = data.groups(attribute).value_counts(sort=False)
        groups = [f"{label}: {count(size)}" for label, size in sizes.items()]
        more = f", and {len(groups) - _MOST_GROUPS} more" if len(groups) > _MOST_GROUPS else ""
        yield f"{attribute} ({', '.join(groups[:_MOST_GROUPS])}{more})"


_MOST_GROUPS = 8  # of an attribute, that are named


def check_file(archive: Archive, source: Source) -> tuple[str, str]:
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


def check(archive: Archive, sources: Sequence[Source]) -> list[str]:
    """Check every raw file, print which are there, missing or wrong, and return these states."""
    from rich.console import Console
    from rich.progress import track
    from rich.table import Column, Table

    from fairbench.core.text import terminal

    console = Console()
    steps = track(sources, "Raw files", console=console, transient=True)
    checks = [(source, *check_file(archive, source)) for source in steps]
    table = Table(Column("file", overflow="fold"), "state", Column("where", overflow="fold"))
    colours = {"there": "green", "missing": "yellow", "wrong": "red"}
    for source, state, note in checks:
        table.add_row(terminal(source.path), terminal(state, colours[state]), terminal(note))
    console.print(table)
    states = [state for _, state, _ in checks]
    console.print(", ".join(f"{states.count(state)} {state}" for state in colours))
    return states
