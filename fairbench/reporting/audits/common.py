"""What the documents of all audits have in common."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from fairbench.audit.conclusions import Conclusions
from fairbench.audit.options import Options
from fairbench.core.version import VERSION
from fairbench.reporting.document.model import Bar, Verdict


def verdict_of(conclusions: Conclusions) -> Verdict:
    """Return what can and cannot be concluded, for a document."""
    return Verdict(
        conclusions.can, conclusions.cannot, basis=conclusions.basis, warning=conclusions.warning
    )


def origin(options: Options, labels: Sequence[str] = ()) -> str:
    """Return what an audit was made with."""
    names = f"label 1 is '{labels[1]}', label 0 '{labels[0]}'; " if labels else ""
    return f"fairbench {VERSION}; {names}seed {options.seed}."


def header(options: Options, **content: Any) -> Mapping[str, Any]:
    """Return the start of an audit's data: version, options, and what is given."""
    return {
        "version": VERSION,
        "options": {**asdict(options), "path": str(options.path)},
        **content,
    }


def starts(names: Sequence[str]) -> frozenset[int]:
    """Return the positions where a name differs from the one before."""
    return frozenset(i for i in range(len(names)) if i == 0 or names[i] != names[i - 1])


def bars(ends: Sequence[tuple[float, float, float]], epsilon: float) -> Iterator[Bar | None]:
    """Yield (lower, value, upper) placed on a scale that all share; None of what is undefined."""
    shown = [each for triple in ends for each in triple if not np.isnan(each)]
    low, high = min([-epsilon, *shown]), max([epsilon, *shown])

    def place(value: float) -> float:
        return round(100 * (value - low) / (high - low), 1)

    band, zero = (place(-epsilon), place(epsilon)), place(0)
    for triple in ends:
        if np.isnan(triple).any():
            yield None
        else:
            lower, value, upper = map(place, triple)
            yield Bar(lower, value, upper, band=band, zero=zero)
