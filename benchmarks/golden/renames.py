"""What today's tree calls otherwise than the frozen one, and what is not compared at all.

The names on the left are the frozen tree's; its answers are renamed before they are compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from fairbench.evaluation.columns import COSTS, SETTINGS, setting_text

# Columns of tables, and keys of JSON.
KEYS: Mapping[str, str] = {}
# Whole texts in cells and JSON: metrics, attributes, statuses, settings, verdicts.
TEXTS: Mapping[str, str] = {}
# Parts of longer texts, such as sentences of an audit and statuses that hold a number.
PHRASES: Mapping[str, str] = {}
# Keys and columns that today's tree has in addition.
ADDED: frozenset[str] = frozenset()
# Neither a result nor the same twice: the version, where files were, when and by what it was made.
IGNORED = frozenset({"version", "path", "out", "made"})


def of_today(value: Any) -> Any:
    """Return an answer of the frozen tree in today's names."""
    if isinstance(value, dict):
        kept = {key: part for key, part in value.items() if key not in IGNORED}
        return {KEYS.get(key, key): of_today(part) for key, part in kept.items()}
    if isinstance(value, list):
        return [of_today(part) for part in value]
    return _text(value) if isinstance(value, str) else value


def comparable(value: Any) -> Any:
    """Return an answer of today's tree without what the frozen one has not."""
    if isinstance(value, dict):
        left_out = IGNORED | ADDED
        return {key: comparable(part) for key, part in value.items() if key not in left_out}
    if isinstance(value, list):
        return [comparable(part) for part in value]
    return value


def worded(table: pd.DataFrame) -> pd.DataFrame:
    """Return a long table of metrics with its settings in words, in one column."""
    kinds = [name for name in SETTINGS if name in table]
    setting = setting_text(table).astype(str)
    return table.drop(columns=kinds).assign(setting=setting)


def without_seconds(metrics: Sequence[str]) -> list[bool]:
    """Say of each metric whether it is compared: how long something took is not."""
    return [metric not in COSTS for metric in metrics]


def _text(text: str) -> str:
    text = _replaced(PHRASES, text)
    return TEXTS.get(text, text)


def _replaced(phrases: Mapping[str, str], text: str) -> str:
    for old, new in phrases.items():
        text = text.replace(old, new)
    return text
