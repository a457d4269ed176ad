"""The tags, parameters and metrics under which MLflow shows a run, by MLflow's rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from fairbench.core.fingerprint import digest
from fairbench.evaluation.columns import setting_text
from fairbench.results.runs import Run

RUN = "fairbench.run_id"
_BY = ["variant", "attribute", "group", "metric"]
_LONGEST = 250
_LONGEST_VALUE = 6000


def tags(folder: Run, environment: Mapping[str, Any]) -> dict[str, str]:
    """Return what says where a run's results come from; MLflow would note the importer's."""
    return {
        RUN: folder.id,
        "fairbench.data_sha256": " ".join(environment["data_sha256"].values()),
        "mlflow.source.name": "run.py",
        "mlflow.source.type": "LOCAL",
        "mlflow.source.git.commit": environment.get("git_commit", ""),
        "mlflow.note.content": environment["name"],
    }


def parameters(folder: Run, environment: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield (dotted name, value) of every option of a run."""
    yield from environment["choices"].items()
    for name, value in folder.config.items():
        if isinstance(value, dict):
            options = {key: option for key, option in value.items() if key != "name"}
            yield from ((f"{name}.{key}", _value(option)) for key, option in options.items())
        else:
            yield name, _value(value)


def _value(option: Any) -> str:
    return str(option)[:_LONGEST_VALUE]


def metric_values(metrics: pd.DataFrame) -> Iterator[tuple[str, float]]:
    """Yield (MLflow metric name, mean over repeats) of every defined metric worth comparing.

    Points of diagrams are left to the figures and the metrics file.
    """
    drawn = metrics["bin"].notna()
    shown = metrics[~drawn]
    setting = setting_text(shown).astype(str)
    means = shown.groupby([*(shown[name] for name in _BY), setting], sort=False)["value"]
    for parts, mean in means.mean().dropna().items():
        yield _metric_name([str(part) for part in parts if part]), float(mean)


def _metric_name(parts: Sequence[str]) -> str:
    """Spell a path with the characters MLflow allows, in at most the 250 it allows."""
    name = "/".join(map(_spelled, parts))
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 9]}-{digest(name, 8)}"


def _spelled(part: str) -> str:
    for symbol, word in ((">=", "at least"), ("<=", "at most"), (">", "over"), ("<", "under")):
        part = part.replace(symbol, word)
    spelled = "".join(c if c.isalnum() or c in "_-. " else "-" for c in part)
    return spelled if spelled.strip(".") else "-" * len(spelled)
