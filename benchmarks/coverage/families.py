"""Every family of intervals in the battery, in the order of the report.

A further one is a module with ``FAMILIES``: what is drawn, what the truth is, and the
constructions, each a function from the data of all replications to both ends of their intervals.
"""

from __future__ import annotations

from benchmarks.coverage import bounds, counts, evaluated, labels, lending, runs, scores, surveys
from benchmarks.coverage.simulate import Family

FAMILIES: tuple[Family, ...] = (
    *counts.FAMILIES,
    *scores.FAMILIES,
    *scores.FAMILIES_ERRORS,
    *surveys.FAMILIES,
    *surveys.FAMILIES_STANDARDISED,
    *lending.FAMILIES,
    *lending.FAMILIES_POOLED,
    *labels.FAMILIES,
    *labels.FAMILIES_ACTIVE,
    *labels.FAMILIES_ALONG,
    *bounds.FAMILIES,
    *runs.FAMILIES_CHOSEN,
    *runs.FAMILIES_CHOSEN_RUNS,
    *runs.FAMILIES,
    *runs.FAMILIES_MANY,
    *runs.FAMILIES_COMPARED,
    *evaluated.FAMILIES,
)
