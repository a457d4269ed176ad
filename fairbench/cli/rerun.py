"""The commands that run chosen jobs of a sweep again, and no others."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from itertools import groupby
from math import prod

Job = tuple[str, ...]  # a job's overrides: "dataset=german", "method=ensemble"


def commands(jobs: Sequence[Job], *, script: str, hydra: Sequence[str] = ()) -> list[str]:
    """Return few commands that together run exactly these jobs.

    Parameters
    ----------
    jobs : the overrides of each job; in a sweep all name the same options in the same order.
    script : the program, as it was called.
    hydra : overrides of Hydra itself, such as the launcher.
    """
    words = [["python", script, "-m", *hydra, *sweep] for sweep in sweeps(jobs)]
    return [shlex.join(each) for each in words]


def sweeps(jobs: Sequence[Job]) -> list[list[str]]:
    """Split jobs into sweeps, each the product of its options' values; one if that can be."""
    columns = [list(dict.fromkeys(column)) for column in zip(*jobs, strict=True)]
    if prod(map(len, columns)) == len(set(jobs)):
        return [[_joined(values) for values in columns]]
    varying = next(i for i, values in enumerate(columns) if len(values) > 1)
    parts = groupby(sorted(jobs, key=lambda job: columns[varying].index(job[varying])),
                    key=lambda job: job[varying])  # fmt: skip
    return [sweep for _, part in parts for sweep in sweeps(list(part))]


def _joined(overrides: Sequence[str]) -> str:
    """Return ``"a=1,2"`` for ``["a=1", "a=2"]``."""
    name = overrides[0].partition("=")[0]
    return f"{name}={','.join(override.partition('=')[2] for override in overrides)}"
