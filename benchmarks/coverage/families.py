"""Every family of intervals in the battery, in the order of the report."""

from __future__ import annotations

from benchmarks.coverage import counts, evaluated, regression, scores
from benchmarks.coverage.simulate import Family

FAMILIES: tuple[Family, ...] = (
    *counts.FAMILIES,
    *scores.FAMILIES,
    *regression.FAMILIES,
    *evaluated.FAMILIES,
)
