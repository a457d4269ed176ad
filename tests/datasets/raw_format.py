"""A generated raw file, and ways of spoiling it."""

import csv
import io
from dataclasses import dataclass, field

from fairbench.components import imported
from fairbench.data.download import sources_of


@dataclass(frozen=True)
class Raw:
    """A task's raw files, and what the generic tests need to know of the first of them.

    `rows` are those a loader keeps; `number` and `target` are columns of the first file by name;
    `header` and `separator` say how it is written, `skipped` lines come before the table, and
    `wide` says that columns the archive's file does not have are refused, and `gaps` that an empty
    `number` is no fault.
    """

    loader: str
    files: dict[str, bytes]
    rows: int
    names: tuple[str, ...]
    number: str | None = None
    target: str | None = None
    header: bool = True
    separator: str = ","
    skipped: int = 0
    wide: bool = True
    gaps: bool = False
    options: dict[str, object] = field(default_factory=dict)

    @property
    def path(self):
        """Return the path of the first file."""
        return next(iter(self.files))

    def load(self, archive, **options):
        """Return the data set that the task's loader makes of an archive."""
        module, function = self.loader.split(".")
        loader = getattr(imported(f"datasets.{module}"), function)
        return loader(archive, **{**self.options, **options})

    def lines(self):
        """Return what comes before the table, and the table's lines."""
        lines = self.files[self.path].decode().replace("\r\n", "\n").split("\n")
        while lines and not lines[-1].strip():
            lines.pop()
        return lines[: self.skipped], lines[self.skipped :]

    def split(self, line):
        """Return the cells of a line."""
        return next(csv.reader([line], delimiter=self.separator))

    def join(self, cells):
        """Return the line of some cells, quoted where a cell holds the separator."""
        line = io.StringIO()
        csv.writer(line, delimiter=self.separator, lineterminator="").writerow(cells)
        return line.getvalue()

    def with_lines(self, head, lines):
        """Return the files with the first one's lines replaced."""
        return {**self.files, self.path: ("\n".join([*head, *lines]) + "\n").encode()}

    def with_cell(self, row, column, value):
        """Return the files with one cell of the first one changed (row 1 is the first data row)."""
        head, lines = self.lines()
        place = row if self.header else row - 1
        cells = self.split(lines[place])
        for at, name in enumerate(self.names):
            if name == column:
                cells[at] = value
        lines[place] = self.join(cells)
        return self.with_lines(head, lines)


def words(text):
    """Return the words of a text."""
    return tuple(text.split())


def cycle(values, n):
    return [values[i % len(values)] for i in range(n)]


def whole(draw, low, high, n):
    return [str(v) for v in draw.integers(low, high, size=n)]


def table(columns, separator=",", *, header=True, end="\n"):
    """Return columns of strings as delimited text."""
    lines = [separator.join(columns)] if header else []
    lines += [separator.join(row) for row in zip(*columns.values(), strict=True)]
    return end.join(lines) + end


def of_columns(loader, columns, path="", *, rows=None, end="\n", head="", **more):
    """Return a task of one file with these columns, of which it keeps all rows by default.

    Its path is by default that of the first file that the loader's module names; `head` are lines
    before the table.
    """
    path = path or sources_of(imported(f"datasets.{loader.partition('.')[0]}"))[0].path
    header, separator = more.get("header", True), more.get("separator", ",")
    content = head + table(columns, separator, header=header, end=end)
    names = tuple(name.strip('"') for name in columns)
    rows = len(next(iter(columns.values()))) if rows is None else rows
    return Raw(loader, {path: content.encode()}, rows, names, skipped=head.count("\n"), **more)
