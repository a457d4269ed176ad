"""The format of a file or folder of results, by its content, and its scores."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from fairbench.core.errors import DataError, UserError
from fairbench.data.benchmark_logs import inspect_ai, lm_eval, result_frames
from fairbench.data.benchmark_logs.files import Files, files_under, parse_json, read_json, start_of
from fairbench.data.benchmark_logs.table import BenchmarkTable, with_scores

TABLE = "table"  # of columns that no format here has
OTHER = ""  # no results at all
_INSPECT, _RESULTS, _SAMPLES = inspect_ai.FORMAT, lm_eval.FORMAT, lm_eval.ITEMS_FORMAT
_TABLES = {".csv", ".tsv", ".parquet", ".feather", ".arrow", ".xlsx"}
_PACKED = {".gz", ".bz2", ".xz", ".zst"}
_SQLITE, _ZIP = b"SQLite format 3", b"PK\x03\x04"
# How the harness and inspect_ai begin: without them, the whole file is read to know it.
_RESULTS_START = re.compile(rb'\s*\{\s*"results"\s*:\s*\{')
_INSPECT_START = re.compile(rb'\s*\{\s*"version"\s*:\s*\d+\s*,\s*"status"\s*:')


def format_of(path: Path, files: Files | None = None) -> str:
    """Return the format of a single file, by its content.

    Returns
    -------
    str
        The name of a format, ``table`` for a table of other columns, or empty for anything else.

    Raises
    ------
    UserError : it is damaged, or cannot be read.
    """
    name = files.name(path) if files else path.name
    try:
        start = start_of(path)
        if path.suffix == ".jsonl" or path.suffix == ".ndjson":
            return _format_of_lines(path, name)
        if start.startswith(_ZIP):
            if path.suffix == ".eval" or inspect_ai.is_archive(path, name):
                return _INSPECT
            return _format_of_table(path) if path.suffix == ".xlsx" else OTHER
        if path.suffix == ".eval":
            raise DataError(f"{name} is no log of inspect_ai, or not whole: get it again")
        if path.suffix == ".json":
            return _format_of_json(path, name, start)
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror or error}") from error
    if start.startswith(_SQLITE):
        return OTHER
    suffixes = [suffix for suffix in path.suffixes if suffix not in _PACKED]
    return _format_of_table(path) if not files or set(suffixes[-1:]) & _TABLES else OTHER


def _format_of_table(path: Path) -> str:
    return result_frames.format_of(path) or TABLE


def _format_of_lines(path: Path, name: str) -> str:
    """Return the format of a file of lines in JSON, by the first of them."""
    start = start_of(path, 1 << 24).lstrip()
    line, end, _ = start.partition(b"\n")
    if not line.startswith(b"{"):
        return OTHER
    values = parse_json(line, f"{name}, line 1,")
    is_sample = isinstance(values, dict) and lm_eval.is_sample(values)
    return _SAMPLES if is_sample else OTHER


def _format_of_json(path: Path, name: str, start: bytes) -> str:
    """Return the format of a JSON file, by its first bytes or its content."""
    if _RESULTS_START.match(start):
        return _RESULTS
    if _INSPECT_START.match(start):
        return _INSPECT
    values = read_json(path, name)
    if isinstance(values, dict) and lm_eval.is_results(values):
        return _RESULTS
    whole = isinstance(values, dict) and isinstance(values.get("eval"), dict)
    return _INSPECT if whole and "status" in values else OTHER


def read_benchmark(
    path: Path, scores: Sequence[str] = (), *, items: bool | None = None
) -> BenchmarkTable | None:
    """Return the scores of a file, or of the files of a folder; None of a table of other columns.

    Parameters
    ----------
    scores : the scores to keep; where there are several, some must be named.
    items : whether single items are read, or aggregates, where a folder has both; items by default.

    Raises
    ------
    UserError : it is damaged, holds no results, results of several formats, or several scores of
        which none is named.
    """
    files = files_under(path)
    if path.is_file():
        kinds = {path: format_of(path)}
    else:
        kinds = {file: format_of(file, files) for file in files.paths}
    of_format: dict[str, list[Path]] = {}
    for file, kind in kinds.items():
        of_format.setdefault(kind, []).append(file)
    if path.is_file() and kinds[path] == TABLE:
        return None
    tables = of_format.pop(TABLE, [])
    passed = [*of_format.pop(OTHER, []), *tables]
    if tables and not of_format:
        raise UserError(
            f"{path}: {files.name(tables[0])} has columns of its own: give the file itself, with "
            "method=, task= and score="
        )
    _check_one_format(path, files, of_format, passed)
    table = _read(of_format, files, items)
    return with_scores(
        replace(table, notes=(*table.notes, *_note_on_unread(files, passed))), scores
    )


def _check_one_format(
    path: Path, files: Files, of_format: dict[str, list[Path]], passed: Sequence[Path]
) -> None:
    """Refuse a path without results, or with those of several formats."""
    if not of_format:
        raise UserError(f"{path} holds no results that are read here{_hint(files, passed)}")
    together = [{*of_format} - {_SAMPLES}, {*of_format} - {_RESULTS}]
    if min(map(len, together)) > 1 or {_RESULTS, _SAMPLES} < {*of_format}:
        listed = " and ".join(
            f"{kind} ({files.name(names[0])})" for kind, names in [*of_format.items()][:3]
        )
        raise UserError(f"{path} holds results of several formats: {listed}; name a folder of one")


def _hint(files: Files, passed: Sequence[Path]) -> str:
    """Return the other formats that a path may have, as the end of a sentence."""
    for path in passed:
        try:
            start = start_of(path, 64)
        except OSError:
            continue
        if start.startswith(_SQLITE):
            return (
                f": {files.name(path)} is a database of SQLite; if it is MLflow's, and your own, "
                f"give experiment=NAME uri=sqlite:///{path}"
            )
        if path.name == "meta.yaml":
            return (
                ": if it is a folder of MLflow's, `mlflow migrate-filestore` makes a database of "
                "it, to be read by experiment=NAME uri=sqlite:///FILE"
            )
        if start.startswith(b"\x80") or path.suffix in (".pkl", ".pickle"):
            return (
                f": {files.name(path)} is a pickle, which is never opened, as it may hold a program"
            )
    if not files.paths:
        return ": the folder is empty"
    return f" ({files.name(files.paths[0])}): docs/howto/rank_files.md lists the formats"


def _note_on_unread(files: Files, passed: Sequence[Path]) -> list[str]:
    """Return a note on what was not read."""
    notes = []
    if passed:
        more = f" and {len(passed) - 1} more" if len(passed) > 1 else ""
        are = "are" if len(passed) > 1 else "is"
        notes.append(f"{files.name(passed[0])}{more} {are} left out, as no results")
    if files.links:
        notes.append(f"{files.links} links or special files are not followed")
    return notes


def _read(of_format: dict[str, list[Path]], files: Files, items: bool | None) -> BenchmarkTable:
    """Read the files of the one format that was recognised."""
    if _INSPECT in of_format:
        return inspect_ai.read(of_format[_INSPECT], files)
    results, samples = (of_format.get(kind, []) for kind in (_RESULTS, _SAMPLES))
    if results or samples:
        return lm_eval.read(results, samples, files, items=items)
    [(kind, paths)] = of_format.items()
    return result_frames.read(kind, paths, files)
