"""Error against fairness: the finished runs that one figure shows, and their points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from fairbench.comparison.runs import (
    AVERAGED,
    TYPICAL,
    Labels,
    RunPredictions,
    Settings,
    outperformance,
    tested_share,
)
from fairbench.core.arrays import Floats
from fairbench.core.errors import UserError
from fairbench.core.text import digest
from fairbench.inference.comparing import (
    DRAWS,
    METRICS,
    Point,
    at_equal_fairness,
    point_table,
    points,
)
from fairbench.results.catalogue import Catalogue
from fairbench.results.runs import Run

_PARTS = ("learner", "intervention", "method")


def candidates(
    dataset: str, protect: str, catalogue: Catalogue
) -> tuple[list[Run], list[dict[str, str]]]:
    """Return the runs of a data set that have split, seed and protected attributes in common.

    With each is the name of its ``learner``, ``intervention`` and ``method``. Of
    several such sets, the largest is returned. Among runs that differ only in their evaluator, the
    one with most relaxations is kept.

    Parameters
    ----------
    protect : the protected attributes, joined by `` x ``; those of most runs if empty.

    Raises
    ------
    UserError : fewer than two such runs.
    """
    sets: dict[str, dict[str, Run]] = {}
    for run in catalogue:
        if run.choices["dataset"] == dataset and protect in ("", run.protect):
            shared = [run.protect, run.environment["data"], run.config["split"], run.seed]
            runs_of_set = sets.setdefault(digest(shared), {})
            key = digest([run.config[name] for name in _PARTS])
            if key not in runs_of_set or _relaxations(run) > _relaxations(runs_of_set[key]):
                runs_of_set[key] = run
    largest = list(max(sets.values(), key=len, default={}).values())
    if len(largest) < 2:
        attributes_text = f" by {protect}" if protect else ""
        raise UserError(
            f"{catalogue.folder} has {'1' if largest else 'no'} finished run of "
            f"{dataset}{attributes_text}; a "
            "trade-off needs at least two of one split and seed"
        )
    names = {part: part_names([run.config[part] for run in largest]) for part in _PARTS}
    return largest, [{part: names[part][i] for part in _PARTS} for i in range(len(largest))]


def _relaxations(run: Run) -> int:
    return len(run.config["evaluator"].get("relaxations", ()))


def part_names(configs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a label for each run: its name, and options in which runs of this name differ."""
    modules = [str(config["name"]) for config in configs]
    names = []
    for module, config in zip(modules, configs, strict=True):
        namesakes = [
            namesake for namesake, name in zip(configs, modules, strict=True) if name == module
        ]
        differing = [
            str(value)
            for option, value in config.items()
            if any(namesake.get(option) != value for namesake in namesakes)
        ]
        names.append(" ".join([module, *differing]).replace("_", " "))
    return names


def run_points(
    run: RunPredictions, protect: tuple[str, ...], *, repeats: str = AVERAGED
) -> dict[str, Point]:
    """Return a run's point for every metric of `METRICS`."""
    labels = Labels.of(run, protect)
    counts = [labels.counts(folds) for folds in run.repeats.values()]
    share = float("nan") if repeats == TYPICAL else tested_share(run)
    return points(np.array(counts), run.people.name, test_share=share)


def tradeoff(
    runs: Sequence[RunPredictions],
    names: Sequence[Mapping[str, str]],
    curve: pd.DataFrame,
    protect: tuple[str, ...],
    *,
    repeats: str = AVERAGED,
) -> pd.DataFrame:
    """Return a row for every metric and run.

    Parameters
    ----------
    repeats : whether a run's repeats are averaged, or a typical one is taken.

    Returns
    -------
    The columns of `objectives.point_table`, ``certainty`` (the largest
    posterior probability that one other run is better in both, paired on the same rows) and
    ``postprocessed_error`` (of the frontier at a gap no larger).
    """
    points_of_runs = [run_points(run, protect, repeats=repeats) for run in runs]
    table = point_table([run.id for run in runs], names, points_of_runs)
    settings = Settings(rope=(0.0, 0.0), draws=DRAWS, protect=protect, repeats=repeats)
    table["certainty"] = np.concatenate([_certainty(runs, name, settings) for name in METRICS])
    postprocessed = [
        at_equal_fairness(curve, metric, gap)
        for metric, gap in zip(table["metric"], table["gap"], strict=True)
    ]
    return table.assign(postprocessed_error=postprocessed)


def _certainty(runs: Sequence[RunPredictions], metric: str, settings: Settings) -> Floats:
    """Return the largest probability, over the other runs, of outperforming each run."""
    matrix = outperformance(runs, replace(settings, objectives=("error_rate", metric)))
    np.fill_diagonal(matrix, 0)
    largest: Floats = matrix.max(axis=0)
    return largest
