"""The data sets that there are, and their raw files: found, verified, downloaded.

A loader reads its files through an :class:`Archive`. Then come the list of all data sets
(:func:`entries`), and what is to be known of each.
"""

from __future__ import annotations

import gzip
import io
import os
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import IO, Any

import numpy as np
import pandas as pd

from fairbench.components import CHECKOUT, files_of, imported, options_in
from fairbench.core import files, memory
from fairbench.core.errors import DataError, UserError
from fairbench.core.processes import GivenUpError, Progress, in_time
from fairbench.core.text import fixed, said
from fairbench.data.dataset import Dataset, Datasheet, Source
from fairbench.data.features import Sequences, onehot_names


def _default_search_path() -> tuple[Path, ...]:
    """Return the folders looked in when the configuration names none."""
    environment = os.environ.get("FAIRBENCH_DATA")
    configured = (Path(environment),) if environment else ()
    return (*configured, Path("data"), CHECKOUT / "data", CHECKOUT.parent / "shared" / "data")


class MissingFileError(DataError):
    """A raw file is in none of the folders, and could not be downloaded.

    Attributes
    ----------
    path : the file, as its source names it.
    reason : why it was not downloaded.
    """

    def __init__(self, source: Source, folders: Iterable[Path], reason: str) -> None:
        looked_in = ", ".join(dict.fromkeys(map(str, folders)))
        told = {"path": source.path, "page": source.page, "looked_in": looked_in}
        super().__init__(said("data", "no_raw_file", reason=reason, **told))
        self.path, self.reason = source.path, reason


@dataclass(frozen=True)
class Archive:
    """Where raw files are looked for, and what may be done when they are not there.

    Attributes
    ----------
    search_path : folders, first match wins; files may be plain or gzip-compressed. By default they
        are the usual ones.
    verify : whether files are refused if their sha256 differs from the recorded one.
    download : whether a missing file is fetched from its mirrors into `store`.
    """

    search_path: str | Sequence[str | Path] | None = None
    store: str | Path = "data"
    verify: bool = True
    download: bool = True

    def read(self, source: Source) -> bytes:
        """Return the verified, uncompressed content of `source`.

        Raises
        ------
        DataError : the file is nowhere to be had, or its checksum is wrong.
        """
        path = self.locate(source)
        if path is None:
            path = self._download(source)
        content = _unpack(path, source.member, source.size if self.verify else 0)
        _refuse_web_page(content, str(path), source.page)
        advice = "the file was left in place and not used; replace it, or set data.verify=false to "
        self._check_sum(content, source, f"{path} has", f"{advice}use it as it is")
        return content

    def _check_sum(self, content: bytes, source: Source, start: str, advice: str) -> None:
        """Refuse a content whose checksum is not the recorded one, if that is asked for."""
        known = source.sha256 if self.verify else ""
        if known and (checksum := files.sha256(content)) != known:
            raise DataError(f"{start} sha256 {checksum}, expected {known}: {advice}")

    def locate(self, source: Source) -> Path | None:
        """Return the first existing file for `source`, plain or with ``.gz``, or None."""
        for folder in self.folders:
            for path in (folder / source.path, folder / f"{source.path}.gz"):
                if path.is_file():
                    return path
        return None

    def with_checksums(self, data: Dataset) -> Dataset:
        """Return a data set with the checksums of what was read of its sources, unless verified.

        Results depend on what was read.
        """
        unknown = [source for source in data.sources if not (self.verify and source.sha256)]
        read = {source: path for source in unknown if (path := self.locate(source))}
        sums = {source: files.sha256(_unpack(path, source.member)) for source, path in read.items()}
        if not sums:
            return data
        sources = [replace(one, sha256=sums.get(one, one.sha256)) for one in data.sources]
        return replace(data, sources=tuple(sources))

    @property
    def folders(self) -> tuple[Path, ...]:
        """The folders that files are looked for in."""
        named = [self.search_path] if isinstance(self.search_path, str) else self.search_path
        return (*(map(Path, named) if named else _default_search_path()), Path(self.store))

    def _download(self, source: Source) -> Path:
        """Download a file from the first of its addresses that works; return its path."""
        reasons = []
        for url in source.urls if self.download else ():
            try:
                content = _fetch(url, source, source.size if self.verify else 0)
                self._check_sum(content, source, "has", "data.verify=false takes it as it is")
            except (OSError, ValueError, DataError) as error:
                reasons.append(f"{url}: {_reason(error)}")
            else:
                path = Path(self.store, source.path)
                files.write_bytes(path, content)
                return path
        why = "; ".join(reasons) or "downloading is off (data.download=false)"
        if not source.urls:
            why = "no address to download it from is known"
        raise MissingFileError(source, self.folders, why)


def _unpack(path: Path, member: str = "", size: int = 0) -> bytes:
    """Return a file's content: out of gzip by its name, out of a zip archive by its first bytes.

    Parameters
    ----------
    member : the file inside a zip archive.
    size : the number of its bytes if it is known; no more are unpacked.

    Raises
    ------
    DataError : a damaged archive, or one without `member`.
    """
    memory.check_memory(path.stat().st_size, str(path))
    content = path.read_bytes()
    try:
        if path.suffix == ".gz":
            _refuse_web_page(content, str(path), "")
            return _within(gzip.GzipFile(fileobj=io.BytesIO(content)), path, size)
        if member and content.startswith(b"PK"):
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                return _within(archive.open(member), path, size)
    except (EOFError, gzip.BadGzipFile, zlib.error, zipfile.BadZipFile) as error:
        text = said("data", "damaged_archive", path=path, reason=_reason(error))
        raise DataError(text) from error
    except KeyError as error:
        raise DataError(f"{path}: no file {member} in this zip archive") from error
    return content


# Tables of numbers become ten or twenty times as small; what becomes smaller is no table.
_LEAST, _RATIO = 1 << 26, 100


def _within(packed: gzip.GzipFile | IO[bytes], path: Path, size: int) -> bytes:
    """Return the unpacked content of a file; refuse one that unfolds to too much."""
    most = size or min(_LEAST + _RATIO * path.stat().st_size, memory.most_memory())
    with packed:
        content = packed.read(most + 1)
    if len(content) <= most:
        return content
    why = f"{most / 1e6:,.0f} MB, over {_RATIO} times its size: no table does"
    if size:
        why = f"{size:,} bytes, which the recorded file has: it is another one"
    way_out = ", or set data.verify=false to use it as it is" if size else ""
    raise DataError(f"{path} unfolds to more than {why}. Delete it and get it again{way_out}")


def _refuse_web_page(content: bytes, file: str, page: str) -> None:
    """Refuse HTML that was saved under a data file's name, as a server's error page often is."""
    start = content[:512].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if start.startswith((b"<!doctype html", b"<html", b"<head", b"<?xml")):
        hint = f" from {page}" if page else ""
        raise DataError(said("data", "web_page", file=file, hint=hint))


def _fetch(url: str, source: Source, size: int) -> bytes:
    """Download `url` into a temporary folder and return the content of the file it leads to.

    Of a file whose size is known (0: it is not) no byte more is fetched.
    """
    import requests

    print(f"downloading {url}", file=sys.stderr)
    most = size if size and not source.member else _LARGEST
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        path = Path(folder) / "download"

        def load(progress: Progress) -> None:
            with requests.get(url, stream=True, timeout=_IDLE_S) as answer, path.open("wb") as file:
                answer.raise_for_status()
                announced = int(answer.headers.get("content-length", 0))
                for part in answer.iter_content(1024):
                    progress()
                    file.write(part)
                    if max(file.tell(), announced) > most:
                        raise DataError(f"larger than {most:,} bytes")

        try:
            in_time(load, idle_s=_IDLE_S, total_s=_TOTAL_S)
        except GivenUpError as error:
            raise DataError(f"given up: {error}") from error
        content = _unpack(path, source.member, size)
    _refuse_web_page(content, url, source.page)
    return content


_IDLE_S, _TOTAL_S = 30.0, 3600.0  # without a byte, and in all
_LARGEST = 4 << 30  # bytes; the largest file that is known here has 700 MB


def _reason(error: Exception) -> str:
    """Return the first line of an error, without the object addresses that libraries print."""
    cause = getattr(error, "args", [error])
    text = str(cause[0] if cause else error).splitlines()[0]
    if "Failed to resolve" in text or "Max retries" in text or "NameResolution" in text:
        return "no network"
    return text[:160]


@dataclass(frozen=True)
class DatasetEntry:
    """A data set as the command line knows it: its name, and how to load it."""

    name: str
    module: ModuleType
    function: Callable[..., Dataset]
    options: dict[str, Any]

    @property
    def datasheet(self) -> Datasheet:
        """Return the documentation that its loader's module has; its name alone without any."""
        sheet: Datasheet | None = getattr(self.module, "DATASHEET", None)
        return sheet or Datasheet(self.name, "", "", "", "")

    @property
    def title(self) -> str:
        """Return its own title from ``TITLES`` of the module, or else that of the datasheet."""
        titles: dict[str, str] = getattr(self.module, "TITLES", {})
        return titles.get(self.name, self.datasheet.title)

    def load(self, archive: Archive) -> Dataset:
        """Load it with the options in its configuration file."""
        return self.function(archive, **self.options)

    def facts(self, archive: Archive) -> list[tuple[str, str]]:
        """Return how many rows it has, its target and its sensitive attributes.

        They are read from the raw files; where one is missing, or the data set needs options, the
        reason is given in their place.
        """
        try:
            data = self.load(archive)
        except MissingFileError as error:
            why = said("data", "not_here", path=error.path)
        except UserError as error:
            why = f"not known before they are named: {error}"
        else:
            rates = self.rates_by_group(data)
            told = (f"{name} {label}: {rows} ({rate})" for _, name, label, rows, rate in rates)
            facts = {**self.summary(data), "groups: rows (rate)": "; ".join(told)}
            return list(facts.items())[2:]
        return [("rows, target and groups", why)]

    def rates_by_group(self, data: Dataset) -> Iterator[tuple[str, str, str, int, str]]:
        """Yield name, attribute, group, its rows and its rate; the reference group first."""
        for attribute in data.sensitive:
            groups = data.groups(str(attribute))
            for label in groups.cat.categories:
                members = data.target[(groups == label).to_numpy()]
                yield self.name, str(attribute), label, len(members), _rate(data, members)

    def summary(self, data: Dataset) -> dict[str, str]:
        """Return rows, columns, target, labels, rate and favourable label, as a table has them."""
        good = "" if data.favourable is None else str(data.favourable)
        if good and data.classes:
            good += f" ({data.classes[int(good)]})"
        label = data.positive_label or (" < " if data.ordered else ", ").join(data.classes)
        return {
            "dataset": f"`{self.name}`",
            "what it is": self.title,
            "rows": str(len(data)),
            "columns": _width(data),
            "target, and label 1": ": ".join(filter(None, (data.target_name, label))),
            "rate": _rate(data, data.target),
            "good label": good,
        }


def entries() -> list[DatasetEntry]:
    """Return every data set that has a configuration file, sorted by module and name."""
    dataset_entries = []
    for name in files_of("dataset"):
        options = options_in("dataset", name)
        module_name, _, function = options.pop("_target_").rpartition(".")
        module = imported(module_name)
        dataset_entries.append(DatasetEntry(name, module, getattr(module, function), options))
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


def _rate(data: Dataset, target: pd.Series) -> str:
    """Return the mean of labels or values, or the share of each of several classes."""
    if not len(target):
        return ""
    if not data.classes:
        return fixed(target.mean(), 4)
    counts = np.bincount(target.astype(int), minlength=len(data.classes))
    return " / ".join(f"{share:.3f}" for share in counts / len(target))


def _width(data: Dataset) -> str:
    """Return how many columns the features have, or how many channels a frame of each modality."""
    if isinstance(data.features, Sequences):
        return " + ".join(str(part.channels) for part in data.features.parts) + " per frame"
    return str(len(onehot_names(data.features)))
