"""lm-evaluation-harness's files: scores of tasks (``results_*.json``), and of documents.

A results file is of one model on several tasks, with an aggregate and its standard error for every
metric. Documents are in ``samples_TASK_DATE.jsonl`` beside it, one line per document and filter.
Which model answered is said in the results file of the same date, or by the name of the folder.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairbench.core.errors import DataError
from fairbench.core.formats import quoted, shortened
from fairbench.data.benchmark_logs.files import (
    Files,
    as_object,
    json_lines,
    part_of,
    read_json,
    text_of,
)
from fairbench.data.benchmark_logs.table import (
    BenchmarkTable,
    Better,
    Score,
    distinct_names,
    families,
    is_binary,
    number,
    tidy,
)

FORMAT, ITEMS_FORMAT = "lm-evaluation-harness results", "lm-evaluation-harness samples"
_DATE = r"\d{4}-\d\d-\d\dT[0-9.-]+"
_RESULTS_NAME = re.compile(rf".*_({_DATE})\.json")
_SAMPLES_NAME = re.compile(rf"samples_(.+?)(?:_({_DATE}))?\.jsonl")
_STDERR = "_stderr"
_NO_FILTER = "none"
# The arguments that name a model, in the order in which the harness looks for them.
_MODEL_ARGUMENTS = ("peft", "delta", "pretrained", "model", "path", "engine")
# What a line of samples has beside its scores.
_OF_LINE = {
    "doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics",
    "doc_hash", "prompt_hash", "target_hash", "schema_version",
}  # fmt: skip
# Metrics of the harness, for samples without a results file.
_LOWER = {"perplexity", "word_perplexity", "byte_perplexity", "bits_per_byte", "brier_score", "ter"}
_HIGHER = {
    "acc", "acc_norm", "acc_mutual_info", "exact_match", "em", "f1", "mcc", "bleu", "chrf",
    "rouge1", "rouge2", "rougeL", "likelihood", "pass@1",
}  # fmt: skip


@dataclass(frozen=True)
class _Results:
    """A results file, with the date in its name and its content."""

    path: Path
    name: str
    date: str
    values: dict[str, Any]

    @property
    def model(self) -> str:
        """The name of the model, as the harness takes it from what it was given."""
        config = part_of(self.values, "config", self.name)
        arguments = config.get("model_args")
        if isinstance(arguments, str):
            words = [word.partition("=") for word in arguments.split(",")]
            arguments = {key.strip(): value for key, _, value in words}
        if not isinstance(arguments, dict):
            arguments = {}
        given = (text_of(arguments, key) for key in _MODEL_ARGUMENTS)
        name = text_of(self.values, "model_name") or next(filter(None, given), "")
        return name or self.path.parent.name

    def settings(self, task: str) -> dict[str, Any]:
        """Return the settings of a task: one model with others is another method."""
        config = part_of(self.values, "config", self.name)
        return {
            "shots": part_of(self.values, "n-shot", self.name).get(task),
            "model_args": config.get("model_args"),
            "gen_kwargs": config.get("gen_kwargs"),
            "limit": config.get("limit"),
            "multiturn": self.values.get("fewshot_as_multiturn"),
            "template": _short(self.values.get("chat_template_sha")),
            "instruction": _short(self.values.get("system_instruction_sha")),
        }

    @property
    def groups(self) -> dict[str, list[str]]:
        """The tasks and groups of every group."""
        listed = part_of(self.values, "group_subtasks", self.name)
        return {
            group: [name for name in names if isinstance(name, str)]
            for group, names in listed.items()
            if isinstance(names, list) and names
        }

    @property
    def tasks(self) -> dict[str, dict[str, Any]]:
        """The scores of every task; a group whose tasks have scores is left out."""
        scores = part_of(self.values, "results", self.name)
        inner = self.groups
        return {
            task: as_object(task_scores, f"the results of task '{task}' in {self.name}")
            for task, task_scores in scores.items()
            if not any(name in scores for name in inner.get(task, ()))
        }

    def direction(self, task: str, metric: str) -> Better:
        """Which values of a task's metric are good."""
        of_metrics = part_of(self.values, "higher_is_better", self.name).get(task)
        is_higher = of_metrics.get(metric) if isinstance(of_metrics, dict) else None
        if is_higher is None:
            return _usual_direction(metric)
        return "higher" if is_higher is True else "lower"


def _short(value: object) -> object:
    return value[:8] if isinstance(value, str) else value


def _usual_direction(metric: str) -> Better:
    if metric in _HIGHER:
        return "higher"
    return "lower" if metric in _LOWER else ""


def is_results(values: Mapping[str, Any]) -> bool:
    """Return whether an object in JSON is a results file."""
    return isinstance(values.get("results"), dict) and bool(
        {"configs", "versions", "config", "n-shot"} & {*values}
    )


def is_sample(values: Mapping[str, Any]) -> bool:
    """Return whether an object in JSON is a line of samples."""
    return {"doc", "target"} <= {*values} and bool({"resps", "filtered_resps"} & {*values})


def read(
    results: Sequence[Path], samples: Sequence[Path], files: Files, *, items: bool | None = None
) -> BenchmarkTable:
    """Return the scores of documents, or of tasks if there are no samples.

    Parameters
    ----------
    results, samples : the files of each kind.
    items : whether documents are read, or aggregates of tasks; documents by default, if there are.

    Raises
    ------
    UserError : a file is damaged, a line has no id, two files are of one model and task, or models
        were asked different documents under one id.
    """
    read_results = [_results(path, files.name(path)) for path in results]
    if items and not samples:
        raise DataError(f"{files.root} has no samples: give lm_eval the option --log_samples")
    if samples and items is not False:
        return _read_samples(samples, read_results, files)
    return _read_results(read_results)


def _results(path: Path, name: str) -> _Results:
    dated = _RESULTS_NAME.fullmatch(path.name)
    return _Results(path, name, dated[1] if dated else "", as_object(read_json(path, name), name))


def _score_name(metric: str, filtered: str, several: set[str]) -> str:
    """Return the name of a metric, with its filter if some task has several filters."""
    return f"{metric}/{filtered}" if metric in several else metric


def _metrics_with_filters(pairs: set[tuple[str, str, str]]) -> set[str]:
    """Return the metrics that a task has with several filters, by (task, metric, filter)."""
    counts: dict[tuple[str, str], int] = {}
    for task, metric, _ in pairs:
        counts[task, metric] = counts.get((task, metric), 0) + 1
    return {metric for (_, metric), count in counts.items() if count > 1}


def _read_results(results: Sequence[_Results]) -> BenchmarkTable:
    """Return the aggregate scores of tasks, with their standard errors."""
    scores_of_files = [
        (results_file, task, scores)
        for results_file in results
        for task, scores in results_file.tasks.items()
    ]
    methods = distinct_names(
        [results_file.model for results_file, _, _ in scores_of_files],
        [results_file.settings(task) for results_file, task, _ in scores_of_files],
        [task for _, task, _ in scores_of_files],
    )
    _check_once(
        [
            (m, task, results_file.name)
            for m, (results_file, task, _) in zip(methods, scores_of_files, strict=True)
        ]
    )
    family = _families(results)
    pairs = {
        (task, *_metric_and_filter(key))
        for _, task, scores in scores_of_files
        for key, value in scores.items()
        if _is_score(key, value)
    }
    with_filters = _metrics_with_filters(pairs)
    rows = []
    directions = dict[str, Better]()
    errors = set[str]()
    for method, (results_file, task, scores) in zip(methods, scores_of_files, strict=True):
        row: dict[str, Any] = {"method": method, "task": task}
        if family:
            row["family"] = family.get(task, task)
        for key, value in scores.items():
            if not _is_score(key, value):
                continue
            metric, filtered = _metric_and_filter(key)
            name = _score_name(metric, filtered, with_filters)
            row[name] = number(value)
            # The first file that says which values are good decides.
            directions[name] = directions.get(name, "") or results_file.direction(task, metric)
            error = scores.get(f"{metric}{_STDERR},{filtered}")
            if isinstance(error, float):
                row[f"{name}{_STDERR}"] = error
                errors.add(name)
        rows.append(row)
    if not directions:
        raise DataError(f"the {FORMAT} have no metrics")
    score_columns = tuple(
        Score(name, better, error=f"{name}{_STDERR}" if name in errors else "")
        for name, better in directions.items()
    )
    return BenchmarkTable(tidy(rows, FORMAT), FORMAT, score_columns)


def _is_score(key: str, value: object) -> bool:
    metric, _, _ = key.partition(",")
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and not metric.endswith(_STDERR) and metric not in _NOT_SCORES


_NOT_SCORES = {"sample_len", "samples", "alias", "name"}


def _metric_and_filter(key: str) -> tuple[str, str]:
    metric, _, filtered = key.partition(",")
    return metric, filtered or _NO_FILTER


def _families(results: Sequence[_Results]) -> dict[str, str]:
    """Return the outermost group of every task, by the groups of all files."""
    groups: dict[str, list[str]] = {}
    for results_file in results:
        for group, names in results_file.groups.items():
            groups.setdefault(group, []).extend(names)
    return families(groups)


def _check_once(owned: Sequence[tuple[str, str, str]]) -> None:
    """Refuse two files of one method and task, by (method, task, file)."""
    seen: dict[tuple[str, str], str] = {}
    for method, task, name in owned:
        earlier = seen.setdefault((method, task), name)
        if earlier != name:
            raise DataError(
                f"{earlier} and {name} are both of model {quoted(method)} on task {quoted(task)}, "
                "with the same settings: keep one of them"
            )


@dataclass(frozen=True)
class _Samples:
    """A file of samples, and the results file of the same run, if it is there."""

    path: Path
    name: str
    task: str
    results: _Results | None

    @property
    def model(self) -> str:
        return self.results.model if self.results else self.path.parent.resolve().name

    @property
    def settings(self) -> dict[str, Any]:
        return self.results.settings(self.task) if self.results else {}


def _read_samples(
    paths: Sequence[Path], results: Sequence[_Results], files: Files
) -> BenchmarkTable:
    """Return the scores of documents."""
    runs = [_samples(path, results, files) for path in paths]
    tasks = [run.task for run in runs]
    methods = distinct_names([run.model for run in runs], [run.settings for run in runs], tasks)
    _check_once([(m, run.task, run.name) for m, run in zip(methods, runs, strict=True)])
    reader = _ItemReader(_families(results))
    for method, run in zip(methods, runs, strict=True):
        reader.add(method, run)
    if not reader.directions:
        raise DataError(f"the {ITEMS_FORMAT} have no metrics that are numbers")
    return _items_table(
        reader.rows,
        reader.directions,
        _metrics_with_filters(reader.pairs),
        (*_notes(runs, results, reader.left_out),),
    )


@dataclass
class _ItemReader:
    """Collects the scores of documents from files of samples.

    Attributes
    ----------
    family : the group of each task, if there are any.
    rows : one for each method and document, with scores by (metric, filter).
    directions : (metric, filter) -> which values are good.
    pairs : each (task, metric, filter) that has scores.
    left_out : the metrics that have a value that is no number.
    documents : the content of each (task, document), and the file in which it was first seen.
    """

    family: Mapping[str, str]
    rows: list[dict[Any, Any]] = field(default_factory=list)
    directions: dict[tuple[str, str], Better] = field(default_factory=dict)
    pairs: set[tuple[str, str, str]] = field(default_factory=set)
    left_out: set[str] = field(default_factory=set)
    documents: dict[tuple[str, str], tuple[str, str]] = field(default_factory=dict)

    def add(self, method: str, run: _Samples) -> None:
        """Read a file: a line is a document under one filter."""
        row_of_item: dict[str, dict[Any, Any]] = {}
        for line_number, line in json_lines(run.path, run.name):
            item = _item(line, run.name, line_number)
            _check_document(self.documents, run, item, line)
            row = row_of_item.setdefault(item, {"method": method, "task": run.task, "item": item})
            if self.family:
                row["family"] = self.family.get(run.task, run.task)
            self._add_scores(
                row, run, line, f"{run.name}, line {line_number}: document {quoted(item)}"
            )
        if not row_of_item:
            raise DataError(f"{run.name} has no lines")
        self.rows += row_of_item.values()

    def _add_scores(
        self, row: dict[Any, Any], run: _Samples, line: Mapping[str, Any], document: str
    ) -> None:
        """Put the scores of a line into the row of its document."""
        filtered = text_of(line, "filter") or _NO_FILTER
        for metric in _metrics(line):
            value = line.get(metric)
            if not isinstance(value, bool | int | float):
                self.left_out.add(metric)
                continue
            key = metric, filtered
            if key in row:
                raise DataError(
                    f"{document} is there twice, with the filter {quoted(filtered)}: keep one of "
                    "the lines"
                )
            row[key] = float(value)
            self.pairs.add((run.task, metric, filtered))
            direction = (
                run.results.direction(run.task, metric) if run.results else _usual_direction(metric)
            )
            self.directions[key] = self.directions.get(key, "") or direction


def _items_table(
    rows: Sequence[Mapping[Any, Any]],
    directions: Mapping[tuple[str, str], Better],
    several: set[str],
    notes: tuple[str, ...],
) -> BenchmarkTable:
    """Return the table of rows whose scores are under (metric, filter).

    Parameters
    ----------
    several : the metrics that a task has with several filters.
    """
    names = {key: _score_name(*key, several) for key in directions}
    if len(set(names.values())) < len(names):  # one filter each, and another in another task
        several = {metric for metric, _ in names}
        names = {key: _score_name(*key, several) for key in directions}
    renamed = [{names.get(key, key): value for key, value in row.items()} for row in rows]
    frame = tidy(renamed, ITEMS_FORMAT)
    scores = tuple(
        Score(names[key], better, is_binary(frame[names[key]]))
        for key, better in directions.items()
    )
    return BenchmarkTable(frame, ITEMS_FORMAT, scores, notes=notes)


def _samples(path: Path, results: Sequence[_Results], files: Files) -> _Samples:
    """Return a file of samples with its results file: that of its date, or the only one there."""
    match = _SAMPLES_NAME.fullmatch(path.name)
    task, date = (match[1], match[2] or "") if match else (path.stem, "")
    in_folder = [file for file in results if file.path.parent == path.parent]
    of_date = [file for file in in_folder if file.date == date]
    results_file = None
    if of_date:
        results_file = of_date[0]
    elif len(in_folder) == 1:
        results_file = in_folder[0]
    return _Samples(path, files.name(path), task, results_file)


def _item(line: Mapping[str, Any], name: str, line_number: int) -> str:
    item = line.get("doc_id")
    if isinstance(item, bool) or not isinstance(item, str | int):
        raise DataError(f"{name}, line {line_number} has no doc_id: its documents cannot be paired")
    return str(item)


def _check_document(
    documents: dict[tuple[str, str], tuple[str, str]],
    run: _Samples,
    item: str,
    line: Mapping[str, Any],
) -> None:
    """Refuse another document under an id that was seen before."""
    content = text_of(dict(line), "doc_hash")
    seen, where = documents.setdefault((run.task, item), (content, run.name))
    if content and seen and content != seen:
        raise DataError(
            f"document {quoted(item)} of task {quoted(run.task)} is another one in {where} than in "
            f"{run.name}: models are compared on the same documents"
        )


def _metrics(line: Mapping[str, Any]) -> list[str]:
    """Return the names of a line's metrics, which lines of older versions do not list."""
    listed = line.get("metrics")
    if isinstance(listed, list):
        return [name for name in listed if isinstance(name, str)]
    return [name for name in line if name not in _OF_LINE]


def _notes(
    runs: Sequence[_Samples], results: Sequence[_Results], left_out: set[str]
) -> Iterator[str]:
    """Yield notes for the reader: metrics and tasks left out, and models named by a guess."""
    if left_out:
        listed = ", ".join(map(shortened, sorted(left_out)))
        yield f"{listed}: no number for every document, and left out"
    unnamed = [run for run in runs if not run.results]
    if unnamed:
        yield (
            f"{unnamed[0].name} has no results file of its date beside it: the model is called "
            f"{quoted(unnamed[0].model)}, as its folder is"
        )
    present = {(run.results.path, run.task) for run in runs if run.results}
    lacking = [
        (file, task) for file in results for task in file.tasks if (file.path, task) not in present
    ]
    if lacking:
        file, task = lacking[0]
        rest = f" and {len(lacking) - 1} more" if len(lacking) > 1 else ""
        yield (
            f"task {quoted(task)} of {file.name}{rest} has no samples, and is left out: items and "
            "aggregates are not ranked together"
        )
