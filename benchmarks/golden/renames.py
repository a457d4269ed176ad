"""What today's tree calls otherwise than the frozen one, and what is not compared at all.

The names on the left are the frozen tree's; its answers are renamed before they are compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import pandas as pd

from fairbench.evaluation.columns import SETTINGS, setting_text

# Columns of tables, and keys of JSON.
KEYS: Mapping[str, str] = {}
# Whole texts in cells and JSON: metrics, attributes, statuses, settings, verdicts.
TEXTS: Mapping[str, str] = {}
# Parts of longer texts, such as sentences of an audit and statuses that hold a number.
PHRASES: Mapping[str, str] = {}
# Parts of the settings of metrics, each of which has a column of its own in today's tree.
SETTING_PHRASES: Mapping[str, str] = {
    "groups=": "bins=",  # of predicted spread, which are no groups of people
    " group=": " bin=",
    " width": " binning=width",
    " mass": " binning=mass",
    "rate=chosen": "",  # the rate that was chosen on the validation part is no number
}
# Keys and columns that today's tree has in addition.
ADDED: frozenset[str] = frozenset(
    {
        *("cluster", "if_calibrated_alike", "impact", "interval", "odds", "pairs", "proxy"),
        *("bounds", "constraint", "cuts", "decisions", "leave_out", "lists"),
        *("nominal", "rare", "reference", "scale", "top"),
        *("labelling", "selected", "short_of_labels", "standard_error", "stress", "supposed"),
        *("summary", "tipping", "weight"),
    }
)
# Neither a result nor the same twice: the version, and where files were. Then what audits of some
# labels no longer say: how labels were filled in, other estimates, raw gaps beside the posterior's;
# and what they say otherwise, since verdicts rest on labels alone. And by how much scores are too
# high, whose intervals were normal, and missed what a rare label leaves open.
IGNORED = frozenset(
    {
        *("version", "path", "out"),
        *("calibration", "completion", "checks", "raw", "labels_needed", "conclusions"),
    }
)
# Metrics that are times.
SECONDS = "_seconds"


def of_today(value: Any) -> Any:
    """Return an answer of the frozen tree in today's names."""
    if isinstance(value, dict):
        kept = {key: each for key, each in value.items() if key not in IGNORED}
        return {KEYS.get(key, key): of_today(each) for key, each in kept.items()}
    if isinstance(value, list):
        return [of_today(each) for each in value]
    return _text(value) if isinstance(value, str) else value


def comparable(value: Any) -> Any:
    """Return an answer of today's tree without what the frozen one has not."""
    if isinstance(value, dict):
        left_out = IGNORED | ADDED
        return {key: comparable(each) for key, each in value.items() if key not in left_out}
    return [comparable(each) for each in value] if isinstance(value, list) else value


def metrics_of_today(table: pd.DataFrame) -> pd.DataFrame:
    """Return a long table of metrics of either tree, with its settings in words.

    The frozen tree has a setting in words, and a status and its reason in one; today's has a column
    for every kind of setting, and one for the reason.
    """
    if "reason" in table:
        kinds = [name for name in SETTINGS if name in table]
        setting = setting_text(table).astype(str)
        return table.drop(columns=kinds).assign(setting=setting)
    parts = table["status"].str.partition(": ")
    setting = table["setting"].map(partial(_replaced, SETTING_PHRASES))
    # What could not be computed as some rows are impossible was undefined, and is invalid.
    status = parts[0].mask(parts[2].str.contains(" invalid in "), "invalid")
    return table.assign(status=status, reason=parts[2], setting=setting)


def without_seconds(metrics: Sequence[str]) -> list[bool]:
    """Say of each metric whether it is compared: how long something took is not."""
    return [not metric.endswith(SECONDS) for metric in metrics]


def _text(text: str) -> str:
    text = _replaced(PHRASES, text)
    return TEXTS.get(text, text)


def _replaced(phrases: Mapping[str, str], text: str) -> str:
    for old, new in phrases.items():
        text = text.replace(old, new)
    return text
