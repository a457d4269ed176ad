"""How values are written on the page and in its files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
}  # fmt: skip
_NAMES = {"nll": "NLL of the uncertainty", "log_loss": "log loss of the score"}
_LARGE = 100


def number(value: float, decimals: int = 4) -> str:
    """Return a number for people: so many decimals, one of large numbers."""
    if np.isnan(value):
        return "-"
    return f"{value:.{decimals}f}" if abs(value) < _LARGE else f"{value:.1f}"


def probability(value: float) -> str:
    """Return a probability that was drawn, to the digits that the draws give."""
    return "-" if np.isnan(value) else f"{value:.2f}"


def exact(value: float) -> str:
    """Return a number for sorting; nothing of one that is undefined."""
    return "" if np.isnan(value) else f"{value:.8g}"


def interval(row: Mapping[str, Any]) -> str:
    """Return the interval of a row, nothing where there is none."""
    low, high = row["lower"], row["upper"]
    return "" if np.isnan(low) else f"{number(low)} to {number(high)}"


def words(name: str) -> str:
    """Return the name of a metric in words."""
    return _NAMES.get(name, name.replace("_", " "))


def sha(data: Mapping[str, str]) -> str:
    """Return the beginnings of checksums."""
    return ", ".join(value[:12] for value in data.values()) or "simulated"


def latex(text: str) -> str:
    """Return a text with what LaTeX would take for commands escaped."""
    return "".join(_LATEX.get(letter, letter) for letter in text)


def markdown(text: str) -> str:
    """Return a text that stays within a cell of a Markdown table."""
    return text.replace("|", r"\|").replace("<", "&lt;").replace("\n", " ")
