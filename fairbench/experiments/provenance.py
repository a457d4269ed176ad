"""Where numbers come from: the runs, their data, code and packages, and the commands for them."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fairbench.experiments.build import IDENTITY
from fairbench.experiments.presets import Presets, options_of
from fairbench.results.runs import Run

_BY_DEFAULT = {
    "split": "holdout",
    "learner": "xgboost",
    "intervention": "none",
    "evaluator": "default",
    "consistency": "default",
}
_MERGED = ("method", "intervention", "learner")


@dataclass(frozen=True)
class Provenance:
    """What is behind a table.

    Attributes
    ----------
    runs : ids of the runs, which are hashes of their resolved configurations.
    data : file -> sha256; empty for simulated data.
    versions : package -> version, several where runs differ.
    commits : of this project, with ``+`` where files were changed since.
    commands : the commands that compute the runs again.
    """

    runs: tuple[str, ...]
    data: Mapping[str, str]
    versions: Mapping[str, str]
    commits: tuple[str, ...]
    commands: tuple[str, ...]


def provenance(runs: Sequence[Run], presets: Presets) -> Provenance:
    """Return what is behind some runs."""
    environments = [run.environment for run in runs]
    commits = {
        str(e.get("git_commit", "unknown"))[:12] + "+" * bool(e.get("git_dirty"))
        for e in environments
    }
    return Provenance(
        tuple(run.id for run in runs),
        _merged(e["data_sha256"] for e in environments),
        _merged(e["versions"] for e in environments),
        tuple(sorted(commits)),
        tuple(commands([overrides(run, presets) for run in runs])),
    )


def _merged(tables: Iterator[Mapping[str, str]]) -> dict[str, str]:
    values: dict[str, dict[str, None]] = {}
    for table in tables:
        for name, value in table.items():
            values.setdefault(name, {})[str(value)] = None
    return {name: ", ".join(different) for name, different in values.items()}


def overrides(run: Run, presets: Presets) -> dict[str, str]:
    """Return what the command line of a run says: choices, and options that differ from theirs."""
    own = options_of(run.config, IDENTITY)
    words = dict(run.choices)
    preset: dict[str, Any] = {"seed": 0, "protect": None}
    for group, option in [*run.choices.items(), ("consistency", _BY_DEFAULT["consistency"])]:
        preset |= presets.choice(group, option)
    for key, value in own.items():
        if key in preset and preset[key] != value:
            words[key] = _as_written(value)
    return {name: text for name, text in words.items() if _BY_DEFAULT.get(name) != text}


def _as_written(value: object) -> str:
    """Return a value in Hydra's grammar of overrides, where JSON's nearly is one."""
    if isinstance(value, str):
        plain = value.replace("_", "").replace("-", "").replace(".", "").isalnum()
        return value if plain else "'" + value.replace("'", "\\'") + "'"
    return json.dumps(value).replace(" ", "").replace('"', "'")


def commands(jobs: Sequence[Mapping[str, str]]) -> list[str]:
    """Return command lines for all jobs, those that differ in one group alone merged to a sweep."""
    merged = [dict(job) for job in jobs]
    for group in _MERGED:
        sweeps: dict[tuple[tuple[str, str], ...], dict[str, None]] = {}
        for job in merged:
            value = job.pop(group, _BY_DEFAULT.get(group, ""))
            sweeps.setdefault(tuple(job.items()), {})[value] = None
        merged = [{**dict(rest), group: ",".join(values)} for rest, values in sweeps.items()]
    return [_command(job) for job in merged]


def _command(job: Mapping[str, str]) -> str:
    first = {name: job[name] for name in ("dataset", *_MERGED) if name in job}
    shown = {k: text for k, text in {**first, **job}.items() if _BY_DEFAULT.get(k) != text}
    sweep = ["-m"] if any("," in shown.get(group, "") for group in _MERGED) else []
    words = [f"{name}={text}" for name, text in shown.items()]
    return shlex.join(["python", "run.py", *sweep, *words])
