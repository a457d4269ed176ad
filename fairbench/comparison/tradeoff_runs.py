"""Finding the finished runs whose trade-offs can be seen in one figure, and naming their parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairbench.comparison.stored_runs import finished_runs
from fairbench.core.errors import UserError
from fairbench.core.fingerprint import digest
from fairbench.results.runs import RunFolder

_SHARED = ("dataset", "split", "seed")
_PARTS = ("learner", "intervention", "method")


@dataclass(frozen=True, eq=False)
class Candidate:
    """A finished run, and what it is made of: ``learner``, ``intervention`` and ``method``."""

    folder: RunFolder
    config: Mapping[str, Any]
    names: Mapping[str, str]


def candidates(dataset: str, protect: str, results: Path) -> list[Candidate]:
    """Return the runs of a data set that have split, seed and protected attributes in common.

    Where there are several such sets, the largest. Of runs that differ in their evaluator alone,
    the one with most relaxations is kept.

    Parameters
    ----------
    protect : the protected attributes, joined by `` x ``; those of most runs if empty.

    Raises
    ------
    UserError : fewer than two such runs.
    """
    sets: dict[str, dict[str, tuple[RunFolder, dict[str, Any]]]] = {}
    for folder, config in _found(dataset, protect, results):
        attributes = folder.environment()["protect"]
        of_set = sets.setdefault(digest([attributes, *(config[name] for name in _SHARED)]), {})
        same = digest([config[name] for name in _PARTS])
        if same not in of_set or _relaxations(config) > _relaxations(of_set[same][1]):
            of_set[same] = folder, config
    largest = list(max(sets.values(), key=len, default={}).values())
    if len(largest) < 2:
        by = f" by {protect}" if protect else ""
        raise UserError(
            f"{results / 'runs'} has {len(largest)} finished run of {dataset}{by}; a trade-off "
            "needs at least two of one split and seed"
        )
    names = {part: part_names([config[part] for _, config in largest]) for part in _PARTS}
    return [
        Candidate(folder, config, {part: names[part][i] for part in _PARTS})
        for i, (folder, config) in enumerate(largest)
    ]


def _found(dataset: str, protect: str, results: Path) -> Iterator[tuple[RunFolder, dict[str, Any]]]:
    for folder in finished_runs(results):
        environment = folder.environment()
        mine = str(environment["name"]).split(", ")[0] == dataset
        if mine and protect in ("", environment["protect"]):
            yield folder, folder.config()


def _relaxations(config: Mapping[str, Any]) -> int:
    return len(config["evaluator"].get("relaxations", ()))


def part_names(configs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what each is called: its module, and the options that differ between namesakes."""
    modules = [str(config["_target_"]).split(".")[-2] for config in configs]
    names = []
    for module, config in zip(modules, configs, strict=True):
        namesakes = [other for other, name in zip(configs, modules, strict=True) if name == module]
        told = [
            str(value)
            for option, value in config.items()
            if any(other.get(option) != value for other in namesakes)
        ]
        names.append(" ".join([module, *told]).replace("_", " "))
    return names
