"""Opening the leaderboard: the page that is there, where nothing that it is made of has changed.

What a page was made of is noted in the user's own cache, with the sha256 of each of its files: not
beside the page, since who fills a results folder could note there that a page of theirs is ours.
Runs count by the bytes of their files, code and configurations by theirs: whatever changes, the
page is made anew. The note is a cache, which may be removed at any time.
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

_OF_PACK = ("runs", "metrics")  # the kinds of a pack's files that a page is made of
_OF_RUN = (LAST, "metrics.parquet", "cells.txt")
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
    """Return the leaderboard that is in `out`, or write it where it would be another one now.

    The parameters are those of :func:`fairbench.reporting.leaderboard.write.write_leaderboard`.

    Raises
    ------
    UserError : nothing finished, one task only, or an unknown metric.
    """
    options = [metric, *purposes, command, str(conf or "")]
    before = _identity(folders, options, conf)
    note = own_cache() / f"leaderboard-{digest(str(out.absolute()), 12)}.json"
    if before and (unchanged := _noted(note, out, before)):
        return unchanged
    # Imported late, as it loads the statistics.
    from fairbench.reporting.leaderboard.write import write_leaderboard

    written = write_leaderboard(
        folders, out, metric=metric, purposes=purposes, conf=conf, command=command
    )
    if before and before == _identity(folders, options, conf):  # no run has finished since
        with contextlib.suppress(OSError):  # without the note, the page is computed again
            _note(note, written, out, before)
    return written


def _identity(folders: Sequence[Path], options: Sequence[str], conf: Path | None) -> str:
    """Return a hash of all that a page is made of; nothing where a file cannot be read."""
    places = {ROOT / "fairbench", HOME / "conf", *([conf] if conf else [])}
    try:
        code = [_sha256(path) for place in sorted(places) for path in _sources(place)]
        content = [[_sha256(path) for path in _contents(folder)] for folder in folders]
    except OSError:
        return ""
    return digest([content, code, list(options), versions(_PACKAGES)], 64)


def _sources(folder: Path) -> Iterator[Path]:
    """Yield the files of a part of the checkout, in order; links lead to what no page has."""
    return (
        path
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink() and "__pycache__" not in path.parts
    )


def _contents(folder: Path) -> Iterator[Path]:
    """Yield the files that the runs of a results folder or a pack are read from."""
    if is_pack(folder):
        listed = open_pack(folder).listed
        yield from (folder / PACK, *(folder / n for n in listed if listed[n].kind in _OF_PACK))
        return
    for run in Catalogue(folder):
        yield from (run.path / name for name in _OF_RUN)


def _sha256(path: Path) -> str:
    with open(opened(path), "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _note(note: Path, written: Leaderboard, out: Path, identity: str) -> None:
    """Write a note of a page's inputs, its files, and its short form for a terminal."""
    files = {name: _sha256(out / name) for name in written.files}
    content = {"identity": identity, "files": files, "short": _plain(written.short)}
    write_text(note, sealed_json(content))


def _noted(note: Path, out: Path, identity: str) -> Leaderboard | None:
    """Return the page that is there, if it is of this identity and its files are whole."""
    try:
        content = unsealed_json(read_bytes(note, most_memory()))
        files: Mapping[str, str] = content["files"]
        if content["identity"] != identity or any(
            _sha256(out / name) != was for name, was in files.items()
        ):
            return None
        return Leaderboard(out / next(iter(files)), _restored(content["short"]), [*files], True)
    except (OSError, ValueError, LookupError, TypeError):
        return None


_KINDS = {
    kind.__name__: kind for kind in (Document, Section, Table, Column, TableCell, ExecutiveSummary)
}
_KIND = "kind"


def _plain(value: Any) -> Any:
    """Return a part of a document as JSON has it, so that the same part can be made of it."""
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


def _restored(value: Any) -> Any:
    """Return the part of a document that :func:`_plain` was given."""
    if isinstance(value, list):
        return [_restored(part) for part in value]
    if not isinstance(value, dict):
        return value
    kind, parts = value[_KIND], value["parts"]
    if isinstance(parts, list):
        return {"tuple": tuple, "frozenset": frozenset}[kind](map(_restored, parts))
    restored = {name: _restored(part) for name, part in parts.items()}
    return restored if kind == "dict" else _KINDS[kind](**restored)
