"""A cached leaderboard: an existing page is reused if none of its inputs has changed.

A note in the user's own cache holds a hash of a page's inputs (the files of its runs, the code and
the configurations) and the sha256 of each of its files. The page is made anew if any of these
differs. The note is not kept beside the page, as whoever fills a results folder could forge it
there. It may be removed at any time.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from fairbench.components import HOME
from fairbench.core.files import most_memory, sealed_json, unsealed_json, write_text
from fairbench.core.fingerprint import ROOT, digest, own_cache, versions
from fairbench.core.safe_open import opened, read_bytes
from fairbench.reporting.document.model import (
    Column,
    Document,
    ExecutiveSummary,
    Section,
    Table,
    TableCell,
)
from fairbench.reporting.leaderboard.board import Leaderboard
from fairbench.results.catalogue import Catalogue
from fairbench.results.packs import PACK, is_pack, open_pack
from fairbench.results.runs import LAST

_KINDS_OF_PACK = ("runs", "metrics")  # the kinds of a pack's files that a page is made of
_FILES_OF_RUN = (LAST, "metrics.parquet", "cells.txt")
_PACKAGES = ("numpy", "scipy", "pandas", "pyarrow", "jinja2")


def open_leaderboard(
    folders: Sequence[Path],
    out: Path,
    *,
    metric: str = "",
    purposes: Sequence[str] = (),
    conf: Path | None = None,
    command: str = "",
) -> Leaderboard:
    """Return the leaderboard in `out` if it is up to date; otherwise write it.

    The parameters are those of :func:`fairbench.reporting.leaderboard.write.write_leaderboard`.

    Raises
    ------
    UserError : nothing finished, one task only, or an unknown metric.
    """
    options = [metric, *purposes, command, str(conf or "")]
    before = _identity(folders, options, conf)
    note = own_cache() / f"leaderboard-{digest(str(out.absolute()), 12)}.json"
    if before and (unchanged := _read_note(note, out, before)):
        return unchanged
    # Imported late, as it loads the statistics.
    from fairbench.reporting.leaderboard.write import write_leaderboard

    written = write_leaderboard(
        folders, out, metric=metric, purposes=purposes, conf=conf, command=command
    )
    if before and before == _identity(folders, options, conf):  # no run has finished since
        with contextlib.suppress(OSError):  # without the note, the page is computed again
            _write_note(note, written, out, before)
    return written


def _identity(folders: Sequence[Path], options: Sequence[str], conf: Path | None) -> str:
    """Return a hash of all inputs of a page; empty if a file cannot be read."""
    code_folders = {ROOT / "fairbench", HOME / "conf", *([conf] if conf else [])}
    try:
        code = [_sha256(path) for folder in sorted(code_folders) for path in _sources(folder)]
        content = [[_sha256(path) for path in _contents(folder)] for folder in folders]
    except OSError:
        return ""
    return digest([content, code, list(options), versions(_PACKAGES)], 64)


def _sources(folder: Path) -> Iterator[Path]:
    """Yield the files of a folder of the checkout, in order, without links and caches."""
    return (
        path
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink() and "__pycache__" not in path.parts
    )


def _contents(folder: Path) -> Iterator[Path]:
    """Yield the files that the runs of a results folder or a pack are read from."""
    if is_pack(folder):
        listed = open_pack(folder).listed
        names = [name for name in listed if listed[name].kind in _KINDS_OF_PACK]
        yield from (folder / PACK, *(folder / name for name in names))
        return
    for run in Catalogue(folder):
        yield from (run.path / name for name in _FILES_OF_RUN)


def _sha256(path: Path) -> str:
    """Return the digest of a file."""
    with open(opened(path), "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write_note(note: Path, written: Leaderboard, out: Path, identity: str) -> None:
    """Write a note of a page's inputs, its files, and its short form for a terminal."""
    files = {name: _sha256(out / name) for name in written.files}
    content = {"identity": identity, "files": files, "short": _plain(written.short)}
    write_text(note, sealed_json(content))


def _read_note(note: Path, out: Path, identity: str) -> Leaderboard | None:
    """Return the page in `out` if it has this identity and its files are unchanged."""
    try:
        content = unsealed_json(read_bytes(note, most_memory()))
        files: Mapping[str, str] = content["files"]
        if content["identity"] != identity or any(
            _sha256(out / name) != noted_digest for name, noted_digest in files.items()
        ):
            return None
        return Leaderboard(out / next(iter(files)), _restore(content["short"]), [*files], True)
    except (OSError, ValueError, LookupError, TypeError):
        return None


_KINDS = {
    kind.__name__: kind for kind in (Document, Section, Table, Column, TableCell, ExecutiveSummary)
}
_KIND = "kind"


def _plain(value: Any) -> Any:
    """Return a part of a document as plain values for JSON, which `_restore` turns back."""
    if is_dataclass(value):
        parts = {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
        return {_KIND: type(value).__name__, "parts": parts}
    if isinstance(value, tuple | frozenset):
        return {_KIND: type(value).__name__, "parts": [_plain(part) for part in value]}
    if isinstance(value, list):
        return [_plain(part) for part in value]
    if isinstance(value, Mapping):
        return {_KIND: "dict", "parts": {name: _plain(part) for name, part in value.items()}}
    return value.item() if hasattr(value, "item") else value


def _restore(value: Any) -> Any:
    """Return the part of a document that `_plain` was called with."""
    if isinstance(value, list):
        return [_restore(part) for part in value]
    if not isinstance(value, dict):
        return value
    kind, parts = value[_KIND], value["parts"]
    if isinstance(parts, list):
        return {"tuple": tuple, "frozenset": frozenset}[kind](map(_restore, parts))
    restored = {name: _restore(part) for name, part in parts.items()}
    return restored if kind == "dict" else _KINDS[kind](**restored)
