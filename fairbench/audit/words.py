"""How an audit writes numbers and names what it measures."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

RATES: Mapping[str, str] = MappingProxyType(
    {
        "statistical_parity": "selection rate",
        "equal_opportunity": "true positive rate",
        "false_positive_rate_gap": "false positive rate",
        "predictive_parity": "precision",
        "accuracy_gap": "accuracy",
    }
)


def number(value: float) -> str:
    """Return a number with three decimals, a dash for none."""
    return "-" if np.isnan(value) else f"{value:.3f}"


def signed(value: float) -> str:
    """Return a number with its sign."""
    return "-" if np.isnan(value) else f"{value:+.3f}"


def interval(lower: float, upper: float) -> str:
    """Return the ends of an interval, nothing of none."""
    return "" if np.isnan(lower) else f"{number(lower)} to {number(upper)}"


def short(value: float, lower: float, upper: float) -> str:
    """Return a share and half the width of its interval in nine characters."""
    if np.isnan(value):
        return "-"
    half = "" if np.isnan(lower) else f" ±{(upper - lower) / 2:.2f}".replace("0.", ".")
    return f"{value:.2f}{half}"


def chance(value: float) -> str:
    """Return a probability, never as 0 or 1: it was simulated."""
    if np.isnan(value):
        return "-"
    if value < 0.01:
        return "<0.01"
    return ">0.99" if value > 0.99 else f"{value:.2f}"


def count(value: int) -> str:
    """Return a whole number with separators."""
    return f"{value:,}"
