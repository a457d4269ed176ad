"""The committed golden files: the frozen tree's answers in today's names, at ten digits."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from benchmarks.golden.compare import is_table
from benchmarks.golden.frozen import ROOT

FOLDER = ROOT / "tests" / "golden" / "expected"
# What a table of columns and a list of records are written as: the names once, and rows.
_TABLE, _RECORDS = {"columns", "rows"}, {"keys", "rows"}


def write_committed(answers: dict[str, Any]) -> None:
    """Write a file for every kind of answer."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for kind, of_kind in answers.items():
        (FOLDER / f"{kind}.json").write_text(_text(_by_row(of_kind)) + "\n", encoding="utf-8")


def read_committed(kind: str) -> dict[str, Any]:
    """Return the answers of one kind by the names of their cases."""
    content = json.loads((FOLDER / f"{kind}.json").read_text(encoding="utf-8"))
    return dict(_read(content))


def _by_row(value: Any) -> Any:
    """Turn tables and lists of records into rows, and round every number."""
    if is_table(value):
        return {"columns": list(value), "rows": _rows(zip(*value.values(), strict=True))}
    if _is_records(value):
        return {"keys": list(value[0]), "rows": _rows(part.values() for part in value)}
    if isinstance(value, dict):
        return {key: _by_row(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_by_row(part) for part in value]
    return float(f"{value:.10g}") if isinstance(value, float) else value


def _rows(rows: Iterable[Iterable[Any]]) -> list[list[Any]]:
    return [list(map(_by_row, row)) for row in rows]


def _is_records(value: Any) -> bool:
    if not (isinstance(value, list) and value and isinstance(value[0], dict)):
        return False
    return all(isinstance(part, dict) and list(part) == list(value[0]) for part in value)


def _read(value: Any) -> Any:
    """Turn rows back into what they were."""
    if isinstance(value, list):
        return list(map(_read, value))
    if not isinstance(value, dict):
        return value
    if value.keys() == _TABLE:
        return {name: [row[i] for row in value["rows"]] for i, name in enumerate(value["columns"])}
    if value.keys() == _RECORDS:
        rows = map(_read, value["rows"])
        return [dict(zip(value["keys"], row, strict=True)) for row in rows]
    return {key: _read(part) for key, part in value.items()}


def _text(value: Any) -> str:
    """Return JSON with a line for every list or dict that holds plain values alone."""
    parts = value.values() if isinstance(value, dict) else value
    if not (isinstance(value, dict | list) and any(isinstance(p, dict | list) for p in parts)):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    if isinstance(value, list):
        return "[\n" + ",\n".join(map(_text, value)) + "\n]"
    items = (f"{json.dumps(key)}: {_text(part)}" for key, part in value.items())
    return "{\n" + ",\n".join(items) + "\n}"
