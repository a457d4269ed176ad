"""What today's tree calls otherwise than the frozen one, and what is not compared at all.

The names on the left are the frozen tree's; its answers are renamed before they are compared.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from fairbench.evaluation.columns import COSTS, SETTINGS, setting_text

# Columns of tables, and keys of JSON.
KEYS: Mapping[str, str] = {}
# Whole texts in cells and JSON: metrics, attributes, statuses, settings, verdicts.
TEXTS: Mapping[str, str] = {}
# Parts of longer texts, such as sentences of an audit and statuses that hold a number.
PHRASES: Mapping[str, str] = {
    "It is open which has the higher accuracy": "For everyone, it is open which has the higher "
    "accuracy",
    "Accuracy is not compared": "For everyone, accuracy is not compared",
    "Other has a lower accuracy": "For everyone, other has a lower accuracy",
    # With favourable= alone, rates have the field's names.
    "share predicted 'yes' of those with 'yes'": "true positive rate",
    "share predicted 'yes' of those with 'no'": "false positive rate",
    "share with 'yes' of those predicted 'yes'": "precision",
    "Whatever needs them takes the scores at their word: if the scores are wrong, so are these "
    "figures, and nothing here would show it.": "Figures that need labels assume that the scores "
    "are right: if they are not, these figures are wrong, and nothing here would show it.",
    "further ones would probably settle": "more would probably settle",
    ", which takes the fewest.": ", the question that takes the fewest.",
    "The labels that are missing are not likely to settle": "More labels of these rows are "
    "unlikely to settle",
}
# Keys and columns that today's tree has in addition.
ADDED: frozenset[str] = frozenset({"total", "rates"})  # options of an audit of counts
# Neither a result nor the same twice: the version, where files were, when and by what it was made;
# and the summary of an audit, which words and selects the findings that are compared. Plans of more
# labels are for other gaps than the frozen tree's, which were seldom kept.
IGNORED = frozenset({"version", "path", "out", "made", "summary", "labels_needed", "needs"})
_PLAN = re.compile(r"; [^;()]*(more|other) (rows|labels)[^;()]* would [^;()]*settle it[^;()]*")


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
    return _PLAN.sub("", value) if isinstance(value, str) else value


def worded(table: pd.DataFrame) -> pd.DataFrame:
    """Return a long table of metrics with its settings in words, in one column."""
    kinds = [name for name in SETTINGS if name in table]
    setting = setting_text(table).astype(str)
    return table.drop(columns=kinds).assign(setting=setting)


def without_seconds(metrics: Sequence[str]) -> list[bool]:
    """Say of each metric whether it is compared: how long something took is not."""
    return [metric not in COSTS for metric in metrics]


def _text(text: str) -> str:
    text = _replaced(PHRASES, _PLAN.sub("", text))
    return TEXTS.get(text, text)


def _replaced(phrases: Mapping[str, str], text: str) -> str:
    for old, new in phrases.items():
        text = text.replace(old, new)
    return text
