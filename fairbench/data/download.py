"""The raw files of data sets: found, verified and, if they are missing, downloaded; and a cache.

A loader reads its files through an :class:`Archive`. What it returns is kept in a sealed file
(:func:`load`), which is used while the raw files stay the same.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import json
import os
import re
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import IO, Any

import pandas as pd
import pyarrow as pa

from fairbench.core import files
from fairbench.core.errors import DataError, UserError
from fairbench.core.fingerprint import code_digest, versions
from fairbench.core.processes import GivenUpError, Progress, in_time
from fairbench.core.text import digest
from fairbench.data.dataset import Dataset, Source, Task
from fairbench.data.features import Sequences

CHECKOUT = Path(__file__).resolve().parents[2]


def default_search_path() -> tuple[Path, ...]:
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

    def __init__(self, message: str, path: str, reason: str) -> None:
        super().__init__(message)
        self.path = path
        self.reason = reason


@dataclass(frozen=True)
class Archive:
    """Where raw files are looked for, and what may be done when they are not there.

    Attributes
    ----------
    search_path : folders, first match wins; files may be plain or gzip-compressed.
    verify : whether files are refused if their sha256 differs from the recorded one.
    download : whether a missing file is fetched from its mirrors into `store`.
    """

    search_path: tuple[Path, ...]
    store: Path = Path("data")
    verify: bool = True
    download: bool = True

    @classmethod
    def of(
        cls,
        search_path: str | Sequence[str] | None = None,
        store: str = "data",
        verify: bool = True,
        download: bool = True,
    ) -> Archive:
        """Build an archive from configuration values; ``None`` searches the default folders."""
        named = [search_path] if isinstance(search_path, str) else search_path
        folders = tuple(map(Path, named)) if named else default_search_path()
        return cls(folders, Path(store), verify, download)

    def read(self, source: Source) -> bytes:
        """Return the verified, uncompressed content of `source`.

        Raises
        ------
        DataError : the file is nowhere to be had, or its checksum is wrong.
        """
        path = self.locate(source)
        if path is None:
            path = self._download(source)
        content = unpack(path, source.member, source.size if self.verify else 0)
        refuse_web_page(content, str(path), source.page)
        advice = "the file was left in place and not used; replace it, or set data.verify=false to "
        self._check_sum(content, source, f"{path} has", f"{advice}use it as it is")
        return content

    def _check_sum(self, content: bytes, source: Source, start: str, advice: str) -> None:
        """Refuse a content whose checksum is not the recorded one, if that is asked for."""
        known = source.sha256 if self.verify else ""
        if known and (checksum := hashlib.sha256(content).hexdigest()) != known:
            raise DataError(f"{start} sha256 {checksum}, expected {known}: {advice}")

    def locate(self, source: Source) -> Path | None:
        """Return the first existing file for `source`, plain or with ``.gz``, or None."""
        for folder in (*self.search_path, self.store):
            for path in (folder / source.path, folder / f"{source.path}.gz"):
                if path.is_file():
                    return path
        return None

    def _download(self, source: Source) -> Path:
        """Download a file from the first of its addresses that works; return its path."""
        if not source.urls:
            raise self._missing(source, "no address to download it from is known")
        if not self.download:
            raise self._missing(source, "downloading is off (data.download=false)")
        reasons = []
        for url in source.urls:
            try:
                content = _fetch(url, source, source.size if self.verify else 0)
                self._check_sum(content, source, "has", "data.verify=false takes it as it is")
            except (OSError, ValueError, DataError) as error:
                reasons.append(f"{url}: {_reason(error)}")
            else:
                files.write_bytes(self.store / source.path, content)
                return self.store / source.path
        raise self._missing(source, "; ".join(reasons))

    def _missing(self, source: Source, reason: str) -> MissingFileError:
        """Return the error of a file that is neither in the folders nor was downloaded."""
        looked_in = (*self.search_path, self.store)
        folders = ", ".join(dict.fromkeys(map(str, looked_in)))
        return MissingFileError(
            f"the raw file {source.path} is missing. It is in none of these folders: {folders}. "
            f"It was not downloaded: {reason}. Get it from {source.page}, save it as "
            f"FOLDER/{source.path}, and name that folder by data.search_path=[FOLDER] or by the "
            "environment variable FAIRBENCH_DATA",
            source.path,
            reason,
        )


def unpack(path: Path, member: str = "", size: int = 0) -> bytes:
    """Return a file's content: out of gzip by its name, out of a zip archive by its first bytes.

    Parameters
    ----------
    member : the file inside a zip archive.
    size : the number of its bytes if it is known; no more are unpacked.

    Raises
    ------
    DataError : a damaged archive, or one without `member`.
    """
    files.check_memory(path.stat().st_size, str(path))
    content = path.read_bytes()
    try:
        if path.suffix == ".gz":
            refuse_web_page(content, str(path), "")
            return _within(gzip.GzipFile(fileobj=io.BytesIO(content)), path, size)
        if member and content.startswith(b"PK"):
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                return _within(archive.open(member), path, size)
    except (EOFError, gzip.BadGzipFile, zlib.error, zipfile.BadZipFile) as error:
        raise DataError(
            f"{path}: a damaged archive ({_reason(error)}): is it truncated? Delete it and get it "
            "again"
        ) from error
    except KeyError as error:
        raise DataError(f"{path}: no file {member} in this zip archive") from error
    return content


# Tables of numbers become ten or twenty times as small; what becomes smaller is no table.
_LEAST, _RATIO = 1 << 26, 100


def _within(packed: gzip.GzipFile | IO[bytes], path: Path, size: int) -> bytes:
    """Return the unpacked content of a file; refuse one that unfolds to too much."""
    most = size or min(_LEAST + _RATIO * path.stat().st_size, files.most_memory())
    with packed:
        content = packed.read(most + 1)
    if len(content) <= most:
        return content
    why = f"{most / 1e6:,.0f} MB, over {_RATIO} times its size: no table does"
    if size:
        why = f"{size:,} bytes, which the recorded file has: it is another one"
    way_out = ", or set data.verify=false to use it as it is" if size else ""
    raise DataError(f"{path} unfolds to more than {why}. Delete it and get it again{way_out}")


def refuse_web_page(content: bytes, file: str, page: str) -> None:
    """Refuse HTML that was saved under a data file's name, as a server's error page often is."""
    start = content[:512].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if start.startswith((b"<!doctype html", b"<html", b"<head", b"<?xml")):
        title = re.search(rb"<title>([^<]+)", content[:4096], re.IGNORECASE)
        name = f" titled '{title[1].decode('utf-8', 'replace').strip()}'" if title else ""
        hint = f" from {page}" if page else ""
        raise DataError(
            f"{file} is a web page{name}, not the data: a server's error message saved under the "
            f"file's name? Delete it and get the file{hint}"
        )


def _fetch(url: str, source: Source, size: int) -> bytes:
    """Download `url` into a temporary folder and return the content of the file it leads to.

    Of a file whose size is known (0: it is not) no byte more is fetched.
    """
    import pooch

    print(f"downloading {url}", file=sys.stderr)
    pooch.get_logger().setLevel("WARNING")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        name = "download.zip" if source.member else "download"
        most = size if size and not source.member else _LARGEST

        def load(progress: Progress) -> None:
            downloader = pooch.HTTPDownloader(timeout=_IDLE_S, progressbar=_Meter(progress, most))
            pooch.retrieve(url, known_hash=None, fname=name, path=folder, downloader=downloader)

        try:
            in_time(load, idle_s=_IDLE_S, total_s=_TOTAL_S)
        except GivenUpError as error:
            raise DataError(f"given up: {error}") from error
        content = unpack(Path(folder) / name, source.member, size)
    refuse_web_page(content, url, source.page)
    return content


_IDLE_S, _TOTAL_S = 30.0, 3600.0  # without a byte, and in all
_LARGEST = 4 << 30  # bytes; the largest file that is known here has 700 MB


class _Meter:
    """Counts the bytes of a download; pooch takes it for a progress bar, and sets `total`."""

    def __init__(self, progress: Progress, most: int) -> None:
        self.progress = progress
        self.most = most
        self.total = 0
        self.bytes = 0

    def update(self, count: int) -> None:
        """Note that so many bytes more have come.

        Raises
        ------
        DataError : there are more, or are to be more, than the file has.
        """
        self.progress()
        self.bytes += count
        if max(self.bytes, int(self.total or 0)) > self.most:
            raise DataError(f"larger than {self.most:,} bytes")

    def reset(self) -> None:
        """Restart the progress display; pooch does so when it is done, to show the total."""
        self.bytes = 0

    def close(self) -> None:
        """Do nothing."""


def _reason(error: Exception) -> str:
    """Return the first line of an error, without the object addresses that libraries print."""
    cause = getattr(error, "args", [error])
    text = str(cause[0] if cause else error).splitlines()[0]
    if "Failed to resolve" in text or "Max retries" in text or "NameResolution" in text:
        return "no network"
    return text[:160]


_META = b"fairbench"
_FRAMES = ("features", "sensitive", "truth")
_SERIES = ("target", "partition", "clusters", "weight")
_PLAIN = [
    part.name
    for part in fields(Dataset)
    if part.name not in (*_FRAMES, *_SERIES, "task", "sources")
]


def load(
    archive: Archive, options: Mapping[str, Any], loader: Callable[[Archive], Dataset]
) -> Dataset:
    """Return the result of `loader` for the archive, from the cache if nothing has changed.

    A cached data set is found by its options, the code of its loader and the versions of the
    packages behind it, and used only if every raw file it was made of is found and still has the
    sha256 it had. Nothing is cached of a data set without raw files or of a table of the user's,
    and with ``data.verify=false`` the cache is neither read nor written. A cache file that is
    damaged is set aside and written again.

    Parameters
    ----------
    options : the configuration of the data set, ``_target_`` included.
    """
    if options.get("path"):
        return loader(archive)
    path = cache_path(archive, options)
    if archive.verify and (cached := _read(path, archive)) is not None:
        return cached
    data = _add_checksums(loader(archive), archive)
    if archive.verify and _cacheable(data, archive):
        _write(path, data)
    return data


def cache_path(archive: Archive, options: Mapping[str, Any]) -> Path:
    """Return the cache file: under ``$FAIRBENCH_CACHE``, or ``.cache`` in the archive's store."""
    folder = os.environ.get("FAIRBENCH_CACHE") or archive.store / ".cache"
    module = str(options["_target_"]).rpartition(".")[0]
    code = code_digest([module, __name__])
    key = digest([dict(options), code, versions(("numpy", "pandas", "pyarrow"))])
    return Path(folder) / f"{module.rpartition('.')[2]}-{key}.parquet"


def _add_checksums(data: Dataset, archive: Archive) -> Dataset:
    """Give sources that were not verified the checksum of what was read: results depend on it."""
    sources = [
        replace(source, sha256=_sha256(source, archive) or source.sha256)
        if not (archive.verify and source.sha256)
        else source
        for source in data.sources
    ]
    return replace(data, sources=tuple(sources))


def _sha256(source: Source, archive: Archive) -> str | None:
    path = archive.locate(source)
    return None if path is None else hashlib.sha256(unpack(path, source.member)).hexdigest()


def _cacheable(data: Dataset, archive: Archive) -> bool:
    """Return whether a data set can be cached: columns from files, with texts as labels."""
    if isinstance(data.features, Sequences):
        return False  # they are files of arrays, which are read as fast as a cache
    located = all(archive.locate(source) for source in data.sources)
    texts = all(
        isinstance(label, str)
        for _, column in _columns(data)
        if isinstance(column.dtype, pd.CategoricalDtype)
        for label in column.cat.categories
    )
    return bool(data.sources) and located and texts


def _columns(data: Dataset) -> Iterator[tuple[str, pd.Series]]:
    """Yield every column of a data set, with the part it belongs to."""
    for part in _FRAMES:
        frame = getattr(data, part)
        yield from () if frame is None else ((part, frame[name]) for name in frame)
    for part in _SERIES:
        column = getattr(data, part)
        yield from () if column is None else ((part, column),)


def _write(path: Path, data: Dataset) -> None:
    """Write codes and numbers as columns; categories, names and the rest as metadata."""
    arrays = {}
    described = []
    for number, (part, column) in enumerate(_columns(data)):
        categorical = isinstance(column.dtype, pd.CategoricalDtype)
        labels = list(column.cat.categories) if categorical else None
        arrays[str(number)] = pa.array(column.cat.codes if categorical else column)
        described.append({"part": part, "name": column.name, "categories": labels})
    meta = {
        "of": path.stem,
        "columns": described,
        "task": str(data.task),
        "sources": [asdict(source) for source in data.sources],
        "plain": {name: getattr(data, name) for name in _PLAIN},
    }
    table = pa.table(arrays).replace_schema_metadata({_META: json.dumps(meta).encode()})
    try:
        files.write_table(path, table, mode=0o600)
    except OSError:
        # A full or read-only disk costs time at the next start, and no result.
        return


def _read(path: Path, archive: Archive) -> Dataset | None:
    """Return the cached data set, or None if there is none, or none that can be used."""
    try:
        table = files.read_table(path, private=True)
        meta = json.loads(table.schema.metadata[_META])
        if meta["of"] != path.stem:
            raise files.DamagedError("the content is that of another data set, or of other options")
        sources = tuple(
            Source(**{**source, "urls": tuple(source["urls"])}) for source in meta["sources"]
        )
        if any(_sha256(source, archive) != source.sha256 for source in sources):
            return None
        return _restore(table, meta, sources)
    except files.DamagedError:
        with contextlib.suppress(OSError):  # on a read-only disk
            files.set_aside(path, "the data set is read anew")
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowException, UserError):
        pass
    return None


def _restore(table: pa.Table, meta: Mapping[str, Any], sources: tuple[Source, ...]) -> Dataset:
    """Return the data set that a cached table holds."""
    parts: dict[str, dict[str, pd.Series]] = {}
    for number, column in enumerate(meta["columns"]):
        values = table[str(number)].to_pandas()
        if column["categories"] is not None:
            codes = values.to_numpy()
            values = pd.Series(pd.Categorical.from_codes(codes, column["categories"]))
        parts.setdefault(column["part"], {})[column["name"]] = values.rename(column["name"])
    frames = {name: pd.DataFrame(parts[name]) for name in _FRAMES if name in parts}
    series = {name: next(iter(parts[name].values())) for name in _SERIES if name in parts}
    plain = {**meta["plain"], "classes": tuple(meta["plain"]["classes"])}
    return Dataset(task=Task(meta["task"]), sources=sources, **plain, **frames, **series)
