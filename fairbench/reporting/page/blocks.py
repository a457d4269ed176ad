"""Blocks of a page: runs that predict the same rows in the same splits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from fairbench.core.escaping import file_name
from fairbench.core.fingerprint import digest
from fairbench.data.periods import natural
from fairbench.evaluation.columns import DEBIASED, values_of
from fairbench.results.catalogue import Catalogue, add_differing_options
from fairbench.results.metric_tables import read_metrics
from fairbench.results.runs import Run

ARM = ("learner", "intervention", "method")
_SHARED = ("split", "seed")


@dataclass(frozen=True, eq=False)
class RunBlock:
    """Runs of one data set, split, seed and protected attribute.

    Attributes
    ----------
    name : the data set, numbered if it has several blocks; files are named by it.
    title : the data set, and what distinguishes its blocks.
    """

    name: str
    title: str
    runs: Mapping[str, Run]

    @property
    def first(self) -> Run:
        """One of the runs, to read what all have in common."""
        return next(iter(self.runs.values()))

    @cached_property
    def arms(self) -> Mapping[str, str]:
        """Run id -> name, for the first run of each name; others differ in evaluation alone."""
        run_of_name: dict[str, str] = {}
        for id_, name in zip(self.runs, name_runs(list(self.runs.values())), strict=True):
            run_of_name.setdefault(name, id_)
        return {id_: name for name, id_ in run_of_name.items()}

    @property
    def dataset(self) -> str:
        """The option chosen for the data set."""
        return self.first.choices["dataset"]

    @property
    def protect(self) -> str:
        """The protected attribute, or combination, that the headline metrics compare."""
        return self.first.protect

    @property
    def repeats(self) -> int:
        """The number of splits."""
        return int(self.first.config["split"].get("repeats", 1))

    @property
    def split(self) -> str:
        """The split and its options, in words."""
        options = dict(self.first.config["split"])
        kind = options.pop("name")
        return f"{kind}({', '.join(f'{name}={value}' for name, value in options.items())})"


@dataclass(frozen=True, eq=False)
class MeasuredBlock(RunBlock):
    """A block with the metrics of its runs, which a page of many runs does not keep.

    Attributes
    ----------
    metrics : the long table of values, with the column ``run``.
    debiased : the same of gaps less what chance adds to them.
    """

    metrics: pd.DataFrame
    debiased: pd.DataFrame


def blocks(catalogue: Catalogue) -> list[RunBlock]:
    """Return the blocks of a catalogue by data set, those of most runs first."""
    sets: dict[str, dict[str, dict[str, Run]]] = {}
    for run in catalogue.runs.values():
        data = run.environment["data"]  # and not the path of a file, of which there are several
        key = digest([run.protect, data, *(run.config[name] for name in _SHARED)])
        sets.setdefault(run.choices["dataset"], {}).setdefault(key, {})[run.id] = run
    all_blocks = []
    for dataset, runs_by_key in sorted(sets.items()):
        titles = _titles([next(iter(runs.values())) for runs in runs_by_key.values()])
        titled = sorted(zip(runs_by_key.values(), titles, strict=True), key=_most_runs_first)
        for i, (runs, title) in enumerate(titled, start=1):
            name = f"{dataset}-{i}" if len(titled) > 1 else dataset
            all_blocks.append(RunBlock(file_name(name), title, runs))
    return all_blocks


_TOGETHER = 40  # runs read at once, to limit memory; a single block may have more


def read_blocks(run_blocks: Sequence[RunBlock]) -> Iterator[list[MeasuredBlock]]:
    """Yield the blocks with their metrics; blocks of few runs are read several at a time."""
    batch: list[RunBlock] = []
    for block in run_blocks:
        if batch and sum(len(member.runs) for member in [*batch, block]) > _TOGETHER:
            yield _read(batch)
            batch = []
        batch.append(block)
    if batch:
        yield _read(batch)


def _read(batch: Sequence[RunBlock]) -> list[MeasuredBlock]:
    """Read the metrics of some blocks: numbers as floats, which are quick to select."""
    runs = [run for block in batch for run in block.runs.values()]
    every_row = read_metrics(runs)
    metrics = values_of(every_row)
    metrics = metrics.astype(dict.fromkeys(metrics.select_dtypes("Int64"), float))
    debiased = every_row[(every_row["statistic"] == DEBIASED).to_numpy(bool)]
    code_of_run = {id_: code for code, id_ in enumerate(metrics["run"].cat.categories)}
    measured_blocks = []
    for block in batch:
        codes = [code_of_run[id_] for id_ in block.runs if id_ in code_of_run]
        of_block = (
            rows[np.isin(rows["run"].cat.codes.to_numpy(), codes)].reset_index(drop=True)
            for rows in (metrics, debiased)
        )
        measured_blocks.append(MeasuredBlock(block.name, block.title, block.runs, *of_block))
    return measured_blocks


def _most_runs_first(titled: tuple[Mapping[str, Run], str]) -> tuple[int, list[Any]]:
    """Sort by how many runs there are, then by title, its numbers as numbers."""
    runs, title = titled
    return -len(runs), natural(title)


def _titles(firsts: Sequence[Run]) -> list[str]:
    """Name blocks of one data set, each by one of its runs, by what differs between them."""
    titles = add_differing_options(
        [run.choices["dataset"] for run in firsts], firsts, ("dataset", "split")
    )
    for name, values in (
        ("seed", [run.config["seed"] for run in firsts]),
        ("protect", [run.protect for run in firsts]),
    ):
        if len(set(values)) > 1:
            titles = [f"{title}, {name}={v}" for title, v in zip(titles, values, strict=True)]
    return titles


def name_runs(runs: Sequence[Run]) -> list[str]:
    """Name each run by its choices, and by the options of them in which namesakes differ.

    The learner is left out where all have the same.
    """
    learners = {run.choices["learner"] for run in runs}
    parts = ARM if len(learners) > 1 else ARM[1:]
    names = [
        ", ".join(run.choices[part] for part in parts if run.choices[part] != "none")
        for run in runs
    ]
    return add_differing_options(names, runs, ARM)
