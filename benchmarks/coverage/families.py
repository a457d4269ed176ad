"""Every family of intervals in the battery, in the order of the report.

A further one is a module with ``FAMILIES``: what is drawn, what the truth is, and the
constructions, each a function from the data of all replications to both ends of their intervals.
"""

from __future__ import annotations

from benchmarks.coverage import bounds, counts, evaluated, labels, lending, runs, scores, surveys
from benchmarks.coverage.simulate import Family

_MODULES = (counts, scores, surveys, lending, labels, bounds, runs, evaluated)
FAMILIES: tuple[Family, ...] = tuple(family for of in _MODULES for family in of.FAMILIES)
