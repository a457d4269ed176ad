"""Finding the finished runs whose trade-offs can be seen in one figure, and naming their parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fairbench.core.errors import UserError
from fairbench.core.fingerprint import digest
from fairbench.results.catalogue import Catalogue
from fairbench.results.runs import Run

_PARTS = ("learner", "intervention", "method")


@dataclass(frozen=True, eq=False)
class Candidate:
    """A finished run, and what it is made of: ``learner``, ``intervention`` and ``method``."""

    run: Run
    names: Mapping[str, str]


def candidates(dataset: str, protect: str, catalogue: Catalogue) -> list[Candidate]:
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
    sets: dict[str, dict[str, Run]] = {}
    for run in catalogue:
        if run.choices["dataset"] == dataset and protect in ("", run.protect):
            shared = [run.protect, run.environment["data"], run.config["split"], run.seed]
            of_set = sets.setdefault(digest(shared), {})
            same = digest([run.config[name] for name in _PARTS])
            if same not in of_set or _relaxations(run) > _relaxations(of_set[same]):
                of_set[same] = run
    largest = list(max(sets.values(), key=len, default={}).values())
    if len(largest) < 2:
        by = f" by {protect}" if protect else ""
        raise UserError(
            f"{catalogue.folder / 'runs'} has {len(largest)} finished run of {dataset}{by}; a "
            "trade-off needs at least two of one split and seed"
        )
    names = {part: part_names([run.config[part] for run in largest]) for part in _PARTS}
    return [
        Candidate(run, {part: names[part][i] for part in _PARTS}) for i, run in enumerate(largest)
    ]


def _relaxations(run: Run) -> int:
    return len(run.config["evaluator"].get("relaxations", ()))


def part_names(configs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what each is called: its name, and the options that differ between namesakes."""
    modules = [str(config["name"]) for config in configs]
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
