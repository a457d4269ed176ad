"""The made-up raw files of the folder raw, by task, and ways of spoiling them."""

import csv
import io
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
import yaml

from fairbench.components.datasets import dvlog
from fairbench.data.download import entries, sources_of

FOLDER = Path(__file__).with_name("raw")
ENTRIES = {entry.name: entry for entry in entries()}
# Never to be found in a Dataset: made up here, real in the archive's files.
SECRETS = ("jane roe", "roe", "1980-01-31", "13099999CF10A", "13088888CF10A")


@dataclass(frozen=True)
class Raw:
    """A task's raw file, and what the generic tests need to know of it, as in raw_files.yaml."""

    task: str
    path: str
    rows: int
    number: str | None = None
    target: str | None = None
    header: bool = True
    separator: str = ","
    skipped: int = 0
    wide: bool = True
    gaps: bool = False

    @cached_property
    def content(self):
        return (FOLDER / self.path).read_bytes()

    @cached_property
    def names(self):
        """The columns of the file: its own header, or what the loader calls them."""
        if not self.header:
            return ENTRIES[self.task].module._COLUMNS
        return self.split(self.lines()[1][0])

    def lines(self):
        """Return what comes before the table, and the table's lines."""
        lines = self.content.decode().replace("\r\n", "\n").rstrip("\n").split("\n")
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
        """Return path -> content, with other lines."""
        return {self.path: ("\n".join([*head, *lines]) + "\n").encode()}

    def with_cell(self, row, column, value):
        """Return path -> content, with one cell changed (row 1 is the first data row)."""
        head, lines = self.lines()
        place = row if self.header else row - 1
        cells = zip(self.names, self.split(lines[place]), strict=True)
        lines[place] = self.join(value if name == column else cell for name, cell in cells)
        return self.with_lines(head, lines)


_KNOWN = yaml.safe_load(FOLDER.with_name("raw_files.yaml").read_text(encoding="utf-8"))
RAW = {task: Raw(task, **known) for task, known in _KNOWN.items()}
# Tasks of files in Parquet, which the folder has as CSV.
PARQUET = {
    task: source.path
    for task, entry in ENTRIES.items()
    for source in sources_of(entry.module)
    if source.path.endswith(".parquet") and (FOLDER / source.path).with_suffix(".csv").exists()
}


def write_files(folder, files):
    """Write files, path -> content, into a folder, and return it."""
    for path, content in files.items():
        file = Path(folder, path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    return Path(folder)


def parquet(path):
    """Return the content of a file in Parquet."""
    file = io.BytesIO()
    text = (FOLDER / path).with_suffix(".csv")
    pd.read_csv(text, float_precision="round_trip").to_parquet(file, index=False)
    return file.getvalue()


# D-Vlog in its authors' layout: a folder of two arrays a video, and labels.
HEAD = "index,label,duration,gender,fold"


def npy(array, **options):
    file = io.BytesIO()
    np.save(file, array, **options)
    return file.getvalue()


def sequences(videos=10):
    """Return labels and arrays; one video's modalities differ by a frame, as some of theirs do."""
    draw, lines, made = np.random.default_rng(0), [HEAD], {}
    for video in range(videos):
        label, fold = ("depression", "normal")[video % 2], ("train", "train", "valid", "test")
        gender, seconds = "fm"[video % 3 == 0], 20 + 5 * video
        lines.append(f"{video},{label},{seconds}.31,{gender},{fold[video % 4]}")
        for name, width in dvlog.CHANNELS.items():
            frames = draw.normal(size=(seconds - (video == 4 and name == "visual"), width))
            made[f"dvlog/{video}/{video}_{name}.npy"] = npy(frames)
    return {"dvlog/labels.csv": ("\n".join(lines) + "\n").encode(), **made}


def everything_said(data):
    """Return every column name, label and value of a data set as one text."""
    pieces = []
    for value in (getattr(data, field.name) for field in fields(data)):
        if not isinstance(value, pd.Series | pd.DataFrame):
            pieces.append(repr(value))
            continue
        for name, column in pd.DataFrame(value).items():
            labels = column.cat.categories if column.dtype == "category" else []
            pieces += map(str, [name, *labels, *column.unique()])
    return "\n".join(pieces)
