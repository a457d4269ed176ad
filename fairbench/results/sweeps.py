"""The sweeps of a results folder: their commands, and the runs that each finished."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairbench.core.errors import warn
from fairbench.core.files import write_text
from fairbench.core.fingerprint import digest
from fairbench.core.safe_open import TEXT, is_file, names_in, read_bytes

_OUTCOMES = "outcomes.json"  # how each job ended
_NAME = "sweep.json"  # holds the name of the sweep
_EXPERIMENT = "experiment"
_LONGEST = 400


@dataclass(frozen=True)
class Sweep:
    """A sweep that has ended.

    Attributes
    ----------
    name : the words that define its runs: after ``fairbench run -m`` they repeat it. Two
        sweeps of one name are one sweep, given twice.
    runs : the ids of the distinct runs that it finished, in its order.
    """

    name: str
    runs: tuple[str, ...]


def sweep_name(words: Sequence[str], parts: Sequence[str]) -> str:
    """Return the name of the sweep that words of a command line ask for.

    Words that change no run, such as ``n_jobs=4``, and the order of words do not count. A very long
    name is cut, and ends in a digest of the whole.

    Parameters
    ----------
    words : the words of the command line.
    parts : the groups of a run's configuration, in the order in which a name has them:
        ``dataset``, ``split`` ...
    """
    order = [_EXPERIMENT, *parts]
    job_name = [word for word in words if _config_group(word) in order]
    name = shlex.join(sorted(job_name, key=lambda word: order.index(_config_group(word))))
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 12]}... {digest(name, 8)}"


def _config_group(word: str) -> str:
    """Return the group of a word such as ``learner.gamma=1``."""
    return word.partition("=")[0].partition(".")[0]


def keep_sweep(folder: Path, name: str, outcomes: Sequence[Mapping[str, Any]]) -> None:
    """Write the name of a sweep, and how each of its jobs ended, into its folder.

    Parameters
    ----------
    folder : the folder of the sweep.
    name : the name of the sweep.
    outcomes : one mapping for each job: its words as ``job``, a ``status``, the id of its ``run``
        and a message.
    """
    write_text(folder / _NAME, json.dumps({"name": name}))
    write_text(folder / _OUTCOMES, json.dumps(outcomes, indent=1))


def read_sweeps(results: Path, parts: Sequence[str]) -> list[Sweep]:
    """Return the sweeps of a results folder that finished any run, the oldest first.

    A sweep that was killed has left no outcomes; the same command again leaves those of all runs.

    Parameters
    ----------
    parts : the same parameter as of :func:`sweep_name`.
    """
    sweeps = []
    parent = results / "sweeps"
    for folder in (parent / name for name in names_in(parent)[1]):
        if is_file(folder / _OUTCOMES):
            try:
                sweeps.append(_read_sweep(folder, parts))
            except (OSError, ValueError, KeyError, TypeError):
                warn(f"{folder} is left out: {_OUTCOMES} or {_NAME} in it cannot be read")
    return [sweep for sweep in sweeps if sweep.runs]


def _read_sweep(folder: Path, parts: Sequence[str]) -> Sweep:
    """Return the sweep of a folder; older folders have the words of jobs instead of a name."""
    outcomes = json.loads(read_bytes(folder / _OUTCOMES, TEXT))
    runs = dict.fromkeys(str(row["run"]) for row in outcomes if row["status"] == "finished")
    if is_file(folder / _NAME):
        name = str(json.loads(read_bytes(folder / _NAME))["name"])
    else:
        name = _name_of_jobs((str(row.get("job", "")) for row in outcomes), parts)
    return Sweep(name, tuple(runs))


def _name_of_jobs(jobs: Iterable[str], parts: Sequence[str]) -> str:
    """Return the name of a sweep whose jobs alone were kept: its preset, or all values."""
    values: dict[str, dict[str, None]] = {}
    for job in jobs:
        for word in shlex.split(job):
            option, _, value = word.partition("=")
            values.setdefault(option, {})[value] = None
    shown = {_EXPERIMENT: values[_EXPERIMENT]} if _EXPERIMENT in values else values
    words = [f"{option}={','.join(of_option)}" for option, of_option in shown.items()]
    return sweep_name(words, parts)
