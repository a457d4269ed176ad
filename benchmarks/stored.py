"""Records of runs with another configuration, each under the id that it has by that."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fairbench.core.fingerprint import digest
from fairbench.results.record import GROUPS, UNVERIFIED, VERIFIED, run_name
from fairbench.results.run_writer import seal_run


def configured(known: Mapping[str, Any], changed: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record with some of its configuration changed, and what follows from it.

    Parameters
    ----------
    changed : values by name: ``learner`` for the name of a component, or all of it if it is a
        mapping; ``learner.max_depth`` for an option; ``seed`` and ``protect``.
    """
    config = dict(known["config"])
    for name, value in changed.items():
        group, _, option = name.partition(".")
        if not option and group in GROUPS and isinstance(value, str):
            option = "name"
        config[group] = {**config[group], option: value} if option else value
    choices = {group: config[group]["name"] for group in GROUPS}
    if config["dataset"].get(VERIFIED) is False:
        choices["dataset"] += UNVERIFIED
    named = {"name": run_name(choices), "choices": choices, "seed": config["seed"]}
    return {**known, **named, "config": config}


def run_of(record: Mapping[str, Any]) -> str:
    """Return the id of the run that a record is of."""
    return digest(record["config"], 12)


def copied(path: Path, record: Mapping[str, Any]) -> Path:
    """Copy a run's folder to where a record belongs, seal that there and return the copy."""
    target = path.with_name(run_of(record))
    if target != path:
        shutil.copytree(path, target)
    seal_run(target, record)
    return target
