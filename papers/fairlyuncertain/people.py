"""What was predicted of single people: the fits of an experiment's jobs, read one by one.

Fits come from the results folder where it has them; others are computed, and kept there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from hydra import compose, initialize_config_dir

from fairbench.components.papers import CONF
from fairbench.evaluation.predictions import Labelled
from fairbench.experiments import pipeline
from fairbench.experiments.pipeline import PlannedRun
from fairbench.experiments.run_evaluation import RunEvaluation
from fairbench.reporting.papers.running import Effort

REPEATS = 10  # splits behind every printed number
MANY = 40  # splits of ours, where those behind a printed number are one draw of many


def repeats_of(effort: Effort, whole: int = REPEATS) -> int:
    """Return how many splits a computation of an effort has."""
    return effort.choose(whole, 2, 1)


def job(experiment: str, results: Path, words: Sequence[str], repeats: int = 1) -> PlannedRun:
    """Return one job of an experiment, which fits nothing yet."""
    with initialize_config_dir(str(CONF), version_base="1.3"):
        fixed = [f"experiment={experiment}", f"split.repeats={repeats}", "tracking=none"]
        return pipeline.prepare(
            compose("config", [*fixed, *words, f"results={results}"], return_hydra_config=True)
        )


def evaluation(run: PlannedRun) -> RunEvaluation:
    """Return what reads a job's own fits, after computing those that are missing."""
    pipeline.ensure_all(run.cells, run.store)
    return RunEvaluation(
        run.dataset, run.methods, run.evaluator, run.study.protect, run.store, run.study.seed
    )


def tests(run: PlannedRun) -> Iterator[Labelled]:
    """Yield the test rows of each split of a job, with the groups that it protects."""
    reader = evaluation(run)
    groups = {run.protect: run.dataset.groups(run.study.protect)}
    for cell in run.cells:
        yield reader.read(cell, groups).test
