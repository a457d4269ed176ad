"""A cache of loaded data sets: a sealed file each, used while the raw files stay the same."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from fairbench.core.errors import UserError
from fairbench.core.files import DamagedError, read_table, set_aside, write_table
from fairbench.core.fingerprint import code_digest, digest, versions
from fairbench.data.dataset import Dataset, Source, Task
from fairbench.data.download import Archive, unpack
from fairbench.data.sequences import Sequences

_META = b"fairbench"
_FRAMES = ("features", "sensitive", "truth")
_SERIES = ("target", "partition", "clusters", "weight")
_PLAIN = (
    "name",
    "privileged",
    "target_name",
    "positive_label",
    "favourable",
    "redistributable",
    "classes",
    "ordered",
)


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
    sources = tuple(
        source
        if archive.verify and source.sha256
        else replace(source, sha256=_sha256(source, archive) or source.sha256)
        for source in data.sources
    )
    return replace(data, sources=sources)


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
        write_table(path, table, mode=0o600)
    except OSError:
        # A full or read-only disk costs time at the next start, and no result.
        return


def _read(path: Path, archive: Archive) -> Dataset | None:
    """Return the cached data set, or None if there is none, or none that can be used."""
    try:
        table = read_table(path, private=True)
        meta = json.loads(table.schema.metadata[_META])
        if meta["of"] != path.stem:
            raise DamagedError("the content is that of another data set, or of other options")
        sources = tuple(
            Source(**{**source, "urls": tuple(source["urls"])}) for source in meta["sources"]
        )
        if any(_sha256(source, archive) != source.sha256 for source in sources):
            return None
        return _restore(table, meta, sources)
    except DamagedError:
        with contextlib.suppress(OSError):  # on a read-only disk
            set_aside(path, "the data set is read anew")
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
