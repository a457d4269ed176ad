"""inspect_ai's logs: ``.eval`` archives and ``.json`` files, a sample of an evaluation each row.

A log is of one model on one task. A sample is an item, an epoch a split. Of an archive the
summaries of samples are read, which have all their scores; of one that was cut short, its journal.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

import pandas as pd

from fairbench.core.errors import DataError
from fairbench.core.formats import quoted, shortened
from fairbench.data.benchmark_logs.files import (
    Files,
    LogArchive,
    as_object,
    list_of,
    part_of,
    read_json,
    text_of,
)
from fairbench.data.benchmark_logs.table import (
    BenchmarkTable,
    Better,
    Score,
    distinct_names,
    is_binary,
    tidy,
)

FORMAT = "inspect_ai logs"
_HEADER, _START, _SUMMARIES = "header.json", "_journal/start.json", "summaries.json"
_JOURNAL = "_journal/summaries/"
# As inspect_ai's value_to_float has them: correct, partial, incorrect, and no answer.
_GRADES: Mapping[str, float] = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
_WORDS: Mapping[str, float] = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
_COUNTS_RIGHT = "accuracy"  # the metric of scorers whose values are right or wrong


@dataclass(frozen=True)
class _Log:
    """The content of a log.

    Attributes
    ----------
    name : the name of its file, for messages.
    about : what it tells of the evaluation.
    rows : one row per sample: ``item``, ``split``, and the values of each score by its name.
    failed : samples that ended in an error.
    status : ``success``, or how far it came.
    """

    name: str
    about: dict[str, Any]
    rows: list[dict[str, Any]]
    failed: int
    status: str

    @property
    def model(self) -> str:
        return text_of(self.about, "model") or "model"

    @property
    def task(self) -> str:
        return text_of(self.about, "task") or "task"

    @property
    def solver_settings(self) -> dict[str, Any]:
        """The settings that make another method of the same model."""
        names = ("solver", "solver_args", "model_args", "model_roles")
        settings = {name: self.about.get(name) for name in names}
        return {
            **{name: _as_text(value) for name, value in settings.items() if value},
            **part_of(self.about, "model_generate_config", self.name),
        }

    @property
    def task_settings(self) -> dict[str, Any]:
        """The settings that make another task of the same name."""
        return {
            **part_of(self.about, "task_args", self.name),
            "version": self.about.get("task_version"),
        }

    @property
    def expected(self) -> int:
        """The number of samples of a complete log; 0 if it is not recorded."""
        dataset = part_of(self.about, "dataset", self.name)
        epochs = part_of(self.about, "config", self.name).get("epochs") or 1
        ids = list_of(dataset, "sample_ids", self.name)
        return len(ids) * epochs if isinstance(epochs, int) else 0


def is_archive(path: Path, name: str) -> bool:
    """Return whether a zip archive is a log."""
    members = LogArchive.of(path, name).members
    return _HEADER in members or _START in members


def read(paths: Sequence[Path], files: Files) -> BenchmarkTable:
    """Return the scores of every sample of logs; those without any are left out, with a note.

    Raises
    ------
    UserError : a log is damaged, none has samples, samples have no ids, or two logs are of one
        model and task.
    """
    every = [_log(path, files.name(path)) for path in paths]
    logs = [log for log in every if log.rows]
    if not logs:
        raise DataError(
            f"{every[0].name} has no samples: they were not logged, or it was cut short"
        )
    tasks = _tasks(logs)
    methods = distinct_names(
        [log.model for log in logs], [log.solver_settings for log in logs], tasks
    )  # fmt: skip
    _check_once(logs, methods, tasks)
    rows = [
        {"method": method, "task": task, **row}
        for log, method, task in zip(logs, methods, tasks, strict=True)
        for row in log.rows
    ]
    frame = tidy(rows, FORMAT)
    if frame["split"].nunique() < 2:
        frame = frame.drop(columns="split")
    frame, scores, left_out = _as_scores(frame, _counting_scorers(logs))
    return BenchmarkTable(frame, FORMAT, scores, notes=(*_notes(every), *left_out))


def _log(path: Path, name: str) -> _Log:
    """Read a log."""
    if path.suffix == ".json":
        values = as_object(read_json(path, name), name)
        samples = list_of(values, "samples", name)
    else:
        values, samples = _read_archive(LogArchive.of(path, name))
    rows = [_row(sample, name) for sample in samples]
    failed = sum(1 for sample in samples if sample.get("error"))
    return _Log(name, part_of(values, "eval", name), rows, failed, text_of(values, "status"))


def _read_archive(archive: LogArchive) -> tuple[dict[str, Any], list[Any]]:
    """Return an archive's record of the evaluation, and the summaries of its samples."""
    head = _HEADER if _HEADER in archive.members else _START
    if head not in archive.members:
        raise DataError(f"{archive.name} has no {_HEADER}: it is no log of inspect_ai")
    values = as_object(archive.json(head), f"{archive.name} ({head})")
    if _SUMMARIES in archive.members:
        parts = [_SUMMARIES]
    else:
        parts = [name for name in archive.members if name.startswith(_JOURNAL)]
    samples: list[Any] = []
    for part in parts:
        summaries = archive.json(part)
        if not isinstance(summaries, list):
            raise DataError(f"{archive.name} ({part}) is no list of samples")
        samples += summaries
    return values, samples


def _row(sample: Any, name: str) -> dict[str, Any]:
    """Return a sample's item, epoch, and scores."""
    sample = as_object(sample, f"a sample of {name}")
    item = sample.get("id")
    if not isinstance(item, str | int):
        raise DataError(f"{name} has a sample without an id: its items cannot be paired")
    row: dict[str, Any] = {"split": str(sample.get("epoch", 1)), "item": str(item)}
    for scorer, score in part_of(sample, "scores", name).items():
        value = as_object(score, f"score '{scorer}' of {name}").get("value")
        if isinstance(value, dict):
            row |= {f"{scorer}/{part}": part_value for part, part_value in value.items()}
        else:
            row[scorer] = value
    return row


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)


def _tasks(logs: Sequence[_Log]) -> list[str]:
    """Return the name of each log's task, with the arguments in which tasks of one name differ."""
    settings = [log.task_settings for log in logs]
    return distinct_names([log.task for log in logs], settings, [""] * len(logs))


def _check_once(logs: Sequence[_Log], methods: Sequence[str], tasks: Sequence[str]) -> None:
    """Refuse two logs of the same model on the same task with the same settings."""
    seen: dict[tuple[str, str], str] = {}
    for log, method, task in zip(logs, methods, tasks, strict=True):
        earlier = seen.setdefault((method, task), log.name)
        if earlier != log.name:
            raise DataError(
                f"{earlier} and {log.name} are both of model {quoted(method)} on task "
                f"{quoted(task)}, with the same settings: keep one of them"
            )


def _counting_scorers(logs: Iterable[_Log]) -> set[str]:
    """Return the names of scorers that count what is right."""
    counting = set()
    for log in logs:
        for scorer in list_of(log.about, "scorers", log.name):
            about = as_object(scorer, f"a scorer of {log.name}")
            metrics = about.get("metrics")
            listed = metrics if isinstance(metrics, list) else []
            metric_names = [
                text_of(metric, "name") for metric in listed if isinstance(metric, dict)
            ]
            if any(name.rpartition("/")[2] == _COUNTS_RIGHT for name in metric_names):
                counting.add(text_of(about, "name").rpartition("/")[2])
    return counting


def _as_scores(
    frame: pd.DataFrame, counting: set[str]
) -> tuple[pd.DataFrame, tuple[Score, ...], list[str]]:
    """Return a frame with its scores as numbers, facts about each score, and those left out."""
    scores, left_out = [], []
    keys = {"method", "task", "split", "item"}
    for name in [name for name in frame if name not in keys]:
        values = frame[name].where(frame[name].notna(), None)
        numbers = pd.Series([_number(value) for value in values], frame.index, dtype=object)
        wrong = numbers.isna() & values.notna()
        if wrong.any():
            value = quoted(values[wrong].iloc[0], 30)
            left_out.append(f"score {shortened(name)} holds {value}, no number: it is left out")
            frame = frame.drop(columns=name)
            continue
        numbers = numbers.astype(float)
        frame = frame.assign(**{name: numbers})
        binary = is_binary(numbers)
        graded = values.map(lambda value: isinstance(value, str | bool)).any()
        better: Better = "higher" if graded or name in counting else ""
        scores.append(Score(name, better, binary))
    if not scores:
        reason = f" ({left_out[0]})" if left_out else ": no sample was scored"
        raise DataError(f"the {FORMAT} have no scores{reason}")
    return frame, tuple(scores), left_out


def _number(value: object) -> float | None:
    """Return a value as inspect_ai's value_to_float does; None if that finds no number."""
    if isinstance(value, bool | int | float):
        return float(value)
    if not isinstance(value, str):
        return None
    if value in _GRADES:
        return _GRADES[value]
    if value.lower() in _WORDS:
        return _WORDS[value.lower()]
    try:
        number = float(value)
    except ValueError:
        return None
    return number if isfinite(number) else None


def _notes(logs: Sequence[_Log]) -> Iterator[str]:
    """Yield notes on samples that failed or are missing."""
    failed = sum(log.failed for log in logs)
    total = sum(len(log.rows) for log in logs)
    if failed:
        yield f"{failed} of {total} samples ended in an error: their scores are missing"
    for log in logs:
        if not log.rows:
            yield f"{log.name} has the status '{log.status}' and no samples, and is left out"
            continue
        lacking = log.expected - len(log.rows)
        if log.status != "success" or lacking > 0:
            state = f"has the status '{log.status}'" if log.status != "success" else "is not whole"
            of_expected = f" of {log.expected}" if log.expected else ""
            yield f"{log.name} {state}: {len(log.rows)}{of_expected} samples are in it"
