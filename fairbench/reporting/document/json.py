"""A document as JSON: the data it was made of, or its own sentences, tables and titles."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, fields, is_dataclass
from importlib.resources import files
from typing import Any

from fairbench.reporting.document.model import (
    Block,
    Commands,
    Definitions,
    Details,
    Document,
    ExecutiveSummary,
    Figure,
    Gallery,
    Items,
    Paragraph,
    Section,
    Table,
    as_cell,
    plain,
)


def to_json(document: Document) -> str:
    """Return a document as JSON; numbers that do not exist are null."""
    content = dict(document.data) or _structure(document)
    if document.summary is not None:
        first_page = _first_page(document.summary) if document.made else {}
        content["summary"] = _summary(document.summary) | first_page
    if document.made is not None:
        content["made"] = asdict(document.made)
    return json.dumps(finite(content), indent=1, ensure_ascii=False) + "\n"


def _summary(summary: ExecutiveSummary) -> dict[str, Any]:
    """Return the parts of a summary as lists of sentences."""
    sentences = [*summary.found, *summary.still_open]
    return {
        "found": sentences,
        **{name: getattr(summary, name) for name in ("sure", "unseen", "todo")},
    }


def _first_page(summary: ExecutiveSummary) -> dict[str, Any]:
    """Return the parts of a report's first page other than the sentences of its summary."""
    figures = summary.key_figures
    return {
        "still_open": summary.still_open,
        "audited": {term: plain(text) for term, text in summary.audited},
        "key_figures": None if figures is None else _table(figures),
    }


def schema(name: str) -> dict[str, Any]:
    """Return the JSON schema of a ``document`` without data of its own, or of a ``dossier``."""
    text = files("fairbench.reporting.document").joinpath("templates", f"{name}.schema.json")
    parsed: dict[str, Any] = json.loads(text.read_text(encoding="utf-8"))
    return parsed


def finite(value: Any) -> Any:
    """Return a value in plain types, with null for every number that is none."""
    if is_dataclass(value):
        return {field.name: finite(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, dict):
        return {key: finite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _structure(document: Document) -> dict[str, Any]:
    """Return a document as nested dictionaries and lists."""
    return {
        "title": document.title,
        "verdict": asdict(document.verdict) if document.verdict else None,
        "sections": _blocks([*document.lead, *document.sections]),
        "notes": list(document.notes),
        "origin": document.origin,
    }


def _blocks(blocks: Sequence[Block]) -> list[dict[str, Any]]:
    return [{"kind": type(block).__name__.lower(), **_block(block)} for block in blocks]


def _block(block: Block) -> dict[str, Any]:
    """Return a block as plain values."""
    match block:
        case Section():
            return {"title": block.title, "name": block.name, "blocks": _blocks(block.blocks)}
        case Details():
            return {"title": plain(block.summary), "blocks": _blocks(block.blocks)}
        case Table():
            return _table(block)
        case Paragraph():
            return {"text": plain(block.text)}
        case Items():
            return {"items": [plain(item) for item in block.items]}
        case Definitions():
            return {"items": {term: plain(text) for term, text in block.items}}
        case Commands():
            return {"lines": list(block.lines)}
        case Figure():
            return {"title": block.title, "caption": plain(block.caption)}
        case Gallery():
            return {"blocks": _blocks(list(block.figures))}


def _table(table: Table) -> dict[str, Any]:
    shown_columns = [i for i, column in enumerate(table.columns) if column.kind != "bar"]
    columns = [
        {"title": c.title, "kind": c.kind} for c in (table.columns[i] for i in shown_columns)
    ]
    rows = [[_value(row[i]) for i in shown_columns] for row in table.rows]
    return {"title": table.title, "caption": table.caption, "columns": columns, "rows": rows}


def _value(value: Any) -> Any:
    value = as_cell(value).value
    if isinstance(value, tuple) and any(not isinstance(item, float | int) for item in value):
        return plain(value)
    return value.item() if hasattr(value, "item") else value
