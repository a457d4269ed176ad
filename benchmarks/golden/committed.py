"""The committed golden files: the frozen tree's answers in today's names, at ten digits."""

from __future__ import annotations

import json
from typing import Any

from benchmarks.golden.compare import is_table
from benchmarks.golden.frozen import ROOT

FOLDER = ROOT / "tests" / "golden" / "expected"
_ROWS = {"columns", "rows"}


def write_committed(answers: dict[str, Any]) -> None:
    """Write a file for every kind of answer."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for kind, of_kind in answers.items():
        (FOLDER / f"{kind}.json").write_text(_text(_by_row(of_kind)) + "\n", encoding="utf-8")


def read_committed(kind: str) -> dict[str, Any]:
    """Return the answers of one kind by the names of their cases."""
    content = json.loads((FOLDER / f"{kind}.json").read_text(encoding="utf-8"))
    return dict(_by_column(content))


def _by_row(value: Any) -> Any:
    """Turn tables into rows, which are easier to read, and round every number."""
    if is_table(value):
        rows = [list(map(_by_row, row)) for row in zip(*value.values(), strict=True)]
        return {"columns": list(value), "rows": rows}
    if isinstance(value, dict):
        return {key: _by_row(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_by_row(each) for each in value]
    return float(f"{value:.10g}") if isinstance(value, float) else value


def _by_column(value: Any) -> Any:
    if isinstance(value, dict) and value.keys() == _ROWS:
        return {name: [row[i] for row in value["rows"]] for i, name in enumerate(value["columns"])}
    if isinstance(value, dict):
        return {key: _by_column(each) for key, each in value.items()}
    return [_by_column(each) for each in value] if isinstance(value, list) else value


def _text(value: Any) -> str:
    """Return JSON with a line for every list or dict that holds plain values alone."""
    parts = value.values() if isinstance(value, dict) else value
    if not (isinstance(value, dict | list) and any(isinstance(p, dict | list) for p in parts)):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list):
        return "[\n" + ",\n".join(map(_text, value)) + "\n]"
    items = (f"{json.dumps(key)}: {_text(each)}" for key, each in value.items())
    return "{\n" + ",\n".join(items) + "\n}"
