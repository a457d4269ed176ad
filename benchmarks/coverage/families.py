"""Every family of intervals in the battery, in the order of the report.

A further one is a module with ``FAMILIES``: what is drawn, what the truth is, and the
constructions, each a function from the data of all replications to both ends of their intervals.
"""

from __future__ import annotations

from benchmarks.coverage import (
    active_labels,
    along_the_run,
    bounds,
    chosen,
    chosen_runs,
    compared_runs,
    counts,
    evaluated,
    few_labels,
    lending,
    pooling,
    regression,
    run_learners,
    runs,
    scores,
    standardised,
    surveys,
)
from benchmarks.coverage.simulate import Family

FAMILIES: tuple[Family, ...] = (
    *counts.FAMILIES,
    *scores.FAMILIES,
    *regression.FAMILIES,
    *surveys.FAMILIES,
    *standardised.FAMILIES,
    *lending.FAMILIES,
    *pooling.FAMILIES,
    *few_labels.FAMILIES,
    *active_labels.FAMILIES,
    *along_the_run.FAMILIES,
    *bounds.FAMILIES,
    *chosen.FAMILIES,
    *chosen_runs.FAMILIES,
    *runs.FAMILIES,
    *run_learners.FAMILIES,
    *compared_runs.FAMILIES,
    *evaluated.FAMILIES,
)
