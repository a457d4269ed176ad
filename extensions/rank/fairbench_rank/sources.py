"""Scores of methods on tasks in logs of lm-evaluation-harness and in fairbench's runs.

Begin with `benchmark_scores`, which knows both by their content. Of any table, `scores` reads the
columns, and knows those that some projects have agreed on.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd

from fairbench.core.errors import DataError, UserError, check_choice
from fairbench.core.files import guard, opened, read_bytes
from fairbench.core.files import names_in as files_in
from fairbench.core.memory import check_json, check_memory, most_memory
from fairbench.core.text import counted, declared_in, listed, quoted, shortened
from fairbench.evaluation.table import COSTS
from fairbench.reporting.group_tables import sentence_of
from fairbench.results.catalogue import Catalogue
from fairbench.results.record import refuse_pack
from fairbench_rank import approaches
from fairbench_rank.approaches import TASK as TASK_COLUMNS

METHOD, TASK, SPLIT, ITEM, FAMILY = "method", "task", "split", "item", "family"
COMBINED = "score"  # the column of scores that differ from task to task
_told = partial(sentence_of, "fairbench_rank:sources")
Better: TypeAlias = Literal["higher", "lower", ""]


@dataclass(frozen=True)
class Score:
    """The facts about a column of scores.

    Attributes
    ----------
    better : whether higher or lower values are better; empty if the file does not say.
    epsilon : the largest difference that does not matter in practice, if declared; such
        a score is on one scale in all rows.
    """

    name: str
    better: Better = ""
    epsilon: float | None = None


@dataclass(frozen=True, eq=False)
class BenchmarkTable:
    """Scores of methods on tasks.

    Attributes
    ----------
    frame : one row per method, task, and any split and item, with the columns ``method``,
        ``task``, ``split``, ``item`` and ``family`` (texts; the last three only where there are
        such), one column per score and per cost. A row without a score has NaN.
    format : the format in which it was read, such as `RUNS`.
    scores : the facts about each score.
    costs : the columns of what a row took, in seconds.
    notes : sentences for the reader on how it was read.
    """

    frame: pd.DataFrame
    format: str
    scores: tuple[Score, ...]
    costs: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def having(self, frame: pd.DataFrame, *notes: str) -> BenchmarkTable:
        """Return the table with other rows, and with further notes."""
        return replace(self, frame=frame, notes=(*self.notes, *notes))


def with_scores(table: BenchmarkTable, names: Sequence[str]) -> BenchmarkTable:
    """Return a table with the scores that are named, or with its only one.

    Scores of which every task has exactly one, such as `acc` of one task and `exact_match` of
    another, are one column, ``score``.

    Raises
    ------
    UserError : a name that no score has, several scores and none named, or scores in one column of
        which some are better high and others low.
    """
    scores = {score.name: score for score in table.scores}
    for name in names:
        check_choice(f"score of the {table.format}", name, scores)
    kept = [scores[name] for name in dict.fromkeys(names)] or list(table.scores)
    has_score = table.frame[[score.name for score in kept]].notna()
    scores_of_task = has_score.groupby(table.frame[TASK]).any().sum(axis=1)
    one_each = len(kept) > 1 and scores_of_task.max() <= 1
    if len(kept) > 1 and not names and not one_each:
        few = listed([shortened(score.name) for score in kept], 8)
        values = {"format": table.format, "count": len(kept), "first": kept[0].name}
        raise UserError(_told("several_scores", few=few, **values))
    without = scores_of_task.index[scores_of_task == 0]
    if len(without) == len(scores_of_task):
        raise DataError(f"the {table.format} have no values of that score")
    notes = []
    if len(without):
        few = listed([*map(shortened, without)], 5)
        notes.append(f"what has no such score is left out: {counted(len(without), TASK)}, {few}")
    others = {*scores} - {score.name for score in kept}
    frame = table.frame[~table.frame[TASK].isin(without)].reset_index(drop=True)
    chosen = replace(table.having(frame.drop(columns=[*others]), *notes), scores=tuple(kept))
    return _combine_scores(chosen) if one_each else chosen


def _combine_scores(table: BenchmarkTable) -> BenchmarkTable:
    """Return a table with its scores in a single column; each task has one of them."""
    names = [score.name for score in table.scores]
    if len({score.better for score in table.scores}) > 1:
        several = listed(names)
        raise UserError(f"of {several}, some are better high and others low: name one, by score=")
    single = table.frame[names].bfill(axis=1).iloc[:, 0]
    frame = table.frame.drop(columns=names).assign(**{COMBINED: single})
    note = f"every task has one score of its own ({', '.join(map(shortened, names))})"
    return replace(table.having(frame, note), scores=(Score(COMBINED, table.scores[0].better),))


def families(groups: Mapping[str, Iterable[str]]) -> dict[str, str]:
    """Return the outermost group of every task, by groups that list tasks and groups.

    Examples
    --------
    >>> families({"mmlu": ["stem"], "stem": ["algebra"]})
    {'stem': 'mmlu', 'algebra': 'mmlu'}
    """
    above = {name: group for group, names in groups.items() for name in names if name != group}
    outermost = {}
    for name, group in above.items():
        passed = {name}
        while group in above and group not in passed:
            passed.add(group)
            group = above[group]
        outermost[name] = group
    return outermost


# lm-evaluation-harness's files: scores of tasks (``results_*.json``), and of documents.
#
# A results file is of one model on several tasks, with an aggregate and its standard error for
# every metric. Documents are in ``samples_TASK_DATE.jsonl`` beside it, one line per document and
# filter. Which model answered is said in the results file of the same date, or by the name of the
# folder.

LOGS = {".json", ".jsonl", ".eval"}
RESULTS, SAMPLES = "lm-evaluation-harness results", "lm-evaluation-harness samples"
_DATE = re.compile(r"_\d{4}-\d\d-\d\dT[0-9.-]+$")
_NO_FILTER = "none"
_LM_EVAL: Mapping[str, Sequence[str]] = declared_in("fairbench_rank", "formats.toml")["lm_eval"]


def _files_under(root: Path) -> Iterator[Path]:
    """Yield the logs of a folder, those of a folder before those within it; no link is followed."""
    guard(root)
    folders = [root]
    for folder in folders:  # which grow on the way
        names, inner, _ = files_in(folder)
        yield from (folder / name for name in names if Path(name).suffix in LOGS)
        folders += [folder / name for name in inner if not name.startswith(".")]


def _parsed(content: bytes, name: str) -> Any:
    """Return the values of a text in JSON; `name` is that of messages."""
    check_json(content)
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        why = str(error)[:100]
        raise DataError(f"{name} is not JSON ({why}): get it again, or move it away") from error


def _lines(path: Path, name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield where every line is, in words, and its values.

    Raises
    ------
    DataError : a line that is not an object in JSON.
    """
    with open(opened(path), "rb") as file:
        check_memory(2 * path.stat().st_size, name)
        for line_number, line in enumerate(file, 1):
            if line.strip():
                where = f"{name}, line {line_number},"
                values = _parsed(line, where)
                if not isinstance(values, dict):
                    raise DataError(f"{where} is not an object: it is no such log")
                yield where, values


def _text_of(values: Mapping[str, Any], key: str) -> str:
    """Return the text under a key; empty if there is none, or if it is no text."""
    text = values.get(key)
    return text.strip() if isinstance(text, str) else ""


def _part(values: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Return what is said under a key; nothing if that is no mapping."""
    part = values.get(key)
    return part if isinstance(part, dict) else {}


@dataclass(frozen=True)
class _Run:
    """A model on a task: the file that has its scores, and what its results file says, if any."""

    path: Path
    name: str
    task: str
    about: Mapping[str, Any]

    @property
    def model(self) -> str:
        """The name of the model; without a results file, that of the folder."""
        return _text_of(self.about, "model_name") or self.path.resolve().parent.name

    @property
    def settings(self) -> dict[str, str]:
        """The settings of the task: one model with others is another method."""
        config = _part(self.about, "config")
        values = {
            "shots": _part(self.about, "n-shot").get(self.task),
            **{key: config.get(key) for key in ("model_args", "gen_kwargs", "limit")},
            "multiturn": self.about.get("fewshot_as_multiturn"),
            "template": _text_of(self.about, "chat_template_sha")[:8],
            "instruction": _text_of(self.about, "system_instruction_sha")[:8],
        }
        return {key: shortened(str(of).replace(" ", "")) for key, of in values.items()}


# A score: its run, the document and its content, the metric, its filter, and the value.
_Row: TypeAlias = tuple[_Run, str, str | None, str, str, float]


def _read_lm_eval(root: Path) -> BenchmarkTable:
    """Return the scores of documents, or of tasks if there are no samples.

    Raises
    ------
    UserError : a file is damaged, a line has no id, two files are of one model and task, or models
        were asked different documents under one id.
    """
    results: dict[tuple[Path, str], dict[str, Any]] = {}  # by their folder and date
    aggregates: list[_Run] = []
    samples: list[tuple[Path, str]] = []
    for path in [root] if root.is_file() else _files_under(root):
        name = path.name if path == root else str(path.relative_to(root))
        is_inspect, values = path.suffix == ".eval", {}
        if path.suffix == ".json":
            values = _parsed(read_bytes(path, most_memory()), name)
        elif not is_inspect:
            values = next(_lines(path, name), ("", {}))[1]
        keys = {*values} if isinstance(values, dict) else set()
        if is_inspect or {"eval", "samples"} <= keys:
            raise DataError(_told("inspect", name=name))
        if keys & {"configs", "versions", "config", "n-shot"} and _part(values, "results"):
            results[path.parent, path.stem.rpartition("_")[2]] = values
            aggregates += [_Run(path, name, task, values) for task in _tasks(values)]
        elif {"doc", "target"} <= keys and keys & {"resps", "filtered_resps"}:
            samples.append((path, name))
    if not samples and not aggregates:
        raise UserError(_told("no_results", path=root))
    groups: dict[str, list[str]] = {}
    for values in results.values():
        for group, names in _groups(values).items():
            groups.setdefault(group, []).extend(names)
    if not samples:
        return _table(RESULTS, aggregates, map(_rows_of_results, aggregates), groups)
    runs = []
    for path, name in samples:
        task = _DATE.sub("", path.stem).removeprefix("samples_")
        date = path.stem.rpartition("_")[2]
        runs.append(_Run(path, name, task, results.get((path.parent, date), {})))
    table = _table(SAMPLES, runs, map(_rows_of_samples, runs), groups)
    present = {(id(run.about), run.task) for run in runs}
    if lacking := [run for run in aggregates if (id(run.about), run.task) not in present]:
        tasks = listed([f"{quoted(run.task)} of {run.name}" for run in lacking], 1)
        return table.having(table.frame, _told("no_samples", tasks=tasks))
    return table


def _groups(about: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the tasks and groups of every group."""
    groups = _part(about, "group_subtasks").items()
    return {of: [*map(str, names)] for of, names in groups if isinstance(names, list) and names}


def _tasks(about: Mapping[str, Any]) -> list[str]:
    """Return the tasks of a results file; a group whose tasks have scores is left out."""
    scores, inner = _part(about, "results"), _groups(about)
    return [of for of in scores if not any(name in scores for name in inner.get(of, ()))]


def _rows_of_results(run: _Run) -> Iterator[_Row]:
    """Yield the aggregate scores of a task."""
    for key, value in _part(_part(run.about, "results"), run.task).items():
        metric, _, filtered = key.partition(",")
        is_score = not metric.endswith("_stderr") and metric not in _LM_EVAL["no_scores"]
        if is_score and type(value) in (int, float):
            yield run, "", None, metric, filtered or _NO_FILTER, float(value)


def _rows_of_samples(run: _Run) -> Iterator[_Row]:
    """Yield the scores of each document; NaN where it has none."""
    for where, line in _lines(run.path, run.name):
        item = line.get("doc_id")
        if type(item) not in (int, str):
            raise DataError(f"{where} has no doc_id: its documents cannot be paired")
        about = run, str(item), _text_of(line, "doc_hash") or None
        filtered = _text_of(line, "filter") or _NO_FILTER
        for metric, value in line.items():
            if metric not in _LM_EVAL["of_line"]:
                number = float(value) if isinstance(value, int | float) else np.nan
                yield *about, metric, filtered, number


def _table(
    kind: str,
    runs: Sequence[_Run],
    rows: Iterable[Iterable[_Row]],
    groups: Mapping[str, Iterable[str]],
) -> BenchmarkTable:
    """Return the table of rows, its scores named by metric, and by filter where a task has several.

    The first file that says which values of a score are good decides.
    """
    method_of, family = _methods(runs), families(groups)
    names = ("run", ITEM, "content", "metric", "filter", "value")
    long = pd.DataFrame([row for of_run in rows for row in of_run], columns=names)
    long[TASK] = [run.task for run in long["run"]]
    long[METHOD] = [method_of[run.path, run.task] for run in long["run"]]
    again = long.duplicated([METHOD, TASK, ITEM, "metric", "filter"])
    others = long.groupby([TASK, ITEM])["content"].transform("nunique") > 1
    for refused, rows_of in (("twice", again), ("documents", others)):
        if rows_of.any():
            row = long[rows_of].iloc[0]
            values = {"item": quoted(row[ITEM]), "task": quoted(row[TASK])}
            raise DataError(_told(refused, name=row["run"].name, **values))
    filters = long.groupby(["metric", TASK])["filter"].nunique().groupby("metric").max()
    several = long["metric"].map(filters) > 1
    long["score"] = long["metric"].mask(several, long["metric"] + "/" + long["filter"])
    wide = long.pivot(index=[METHOD, TASK, ITEM], columns="score", values="value")
    wide = wide.dropna(axis="columns", how="all").rename_axis(columns=None)
    if wide.empty:
        raise DataError(f"the {kind} have no metrics that are numbers")
    ways: dict[str, Better] = {}
    for run in runs:
        for metric, is_higher in _part(_part(run.about, "higher_is_better"), run.task).items():
            if isinstance(is_higher, bool):
                ways.setdefault(metric, "higher" if is_higher else "lower")
    scores = tuple(Score(name, ways.get(name.partition("/")[0], "")) for name in wide)
    frame = wide.reset_index()
    if kind == RESULTS:
        frame = frame.drop(columns=ITEM)
    if family:
        frame[FAMILY] = frame[TASK].map(family).fillna(frame[TASK])
    return BenchmarkTable(frame, kind, scores)


def _methods(runs: Sequence[_Run]) -> dict[tuple[Path, str], str]:
    """Return the method of each file and task: its model, with the settings that tell runs apart.

    Raises
    ------
    DataError : two files of one method and task.
    """
    table = pd.DataFrame([{"model": run.model, TASK: run.task, **run.settings} for run in runs])
    names = dict(table["model"])
    for model, own in table.groupby("model"):
        if own[TASK].duplicated().any():
            settings = own.drop(columns=["model", TASK])
            differing = settings.loc[:, settings.nunique() > 1].to_dict("index")
            for place, values in differing.items():
                names[place] = " ".join([model, *map("=".join, values.items())])
    first: dict[tuple[str, str], _Run] = {}
    for name, run in zip(names.values(), runs, strict=True):
        if (earlier := first.setdefault((name, run.task), run)) is not run:
            values = {"model": quoted(name), "task": quoted(run.task)}
            raise DataError(_told("same_run", earlier=earlier.name, name=run.name, **values))
    return {(run.path, run.task): name for name, run in zip(names.values(), runs, strict=True)}


# fairbench's own runs: an approach is a method, a split a seed and a repeat.

RUNS = "fairbench runs"


def benchmark_scores(path: Path, scores: Sequence[str] = ()) -> BenchmarkTable | None:
    """Return the scores of logs, or of finished runs but demos and tuning; None for a table.

    Parameters
    ----------
    scores : the scores to keep; if there are several, some must be named.

    Raises
    ------
    UserError : it is damaged, holds no results, or several scores of which none is named.
    """
    refuse_pack(path)
    left_out = ""
    if path.is_file():
        if path.suffix in LOGS:
            return with_scores(_read_lm_eval(path), scores)
        if not approaches.is_approaches(path):
            return None
        wide = approaches.read_approaches(path)
    elif not len(Catalogue(path)):
        return with_scores(_read_lm_eval(path), scores)
    else:
        kept, left_out = Catalogue(path).counted()
        if not len(kept):
            raise UserError(f"{path} has no finished runs to rank; {left_out}")
        wide = approaches.approach_table(list(kept))
    table = approaches_as_methods(wide)
    table = table.having(table.frame, *filter(None, [left_out]))
    return select_approaches_with_enough_tasks(with_scores(table, scores))


def select_approaches_with_enough_tasks(table: BenchmarkTable) -> BenchmarkTable:
    """Return a table of the approaches that the leaderboard ranks, with a note on the others.

    These have the scores on half of the tasks; if fewer than two do, all are kept. A metric that is
    undefined for an approach, such as the log loss of one without scores, counts as not measured,
    and not as a crash.
    """
    names = [score.name for score in table.scores]
    measured = table.frame[table.frame[names].notna().any(axis=1)]
    tasks = measured[TASK].nunique()
    fewest = approaches.fewest_tasks(tasks)
    has_score = measured[names].notna().groupby([measured[METHOD], measured[TASK]]).any()
    counts = has_score.groupby(METHOD).sum().min(axis=1)
    enough = counts.reindex(table.frame[METHOD].unique(), fill_value=0) >= fewest
    notes = []
    if not enough.all() and enough.sum() > 1:
        measured = measured[measured[METHOD].isin(enough.index[enough])]
        counts = {"left": int((~enough).sum()), "all": len(enough), "tasks": tasks}
        notes = [_told("few_tasks", fewest=fewest, **counts)]
    return table.having(measured.reset_index(drop=True), *notes)


def with_methods_and_tasks(wide: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of approaches without settings, in the order of tasks.

    The columns ``method`` and ``task`` have the names that a ranking uses.
    """
    wide = wide[(wide["setting"] == "").to_numpy()]
    wide = wide.sort_values([*TASK_COLUMNS, *approaches.APPROACH, "seed", "repeat"], kind="stable")
    values = approaches.ApproachValues.of(wide)
    names = np.array(values.names, dtype=object)[values.cell_index[:, 0]]
    task = values.table["dataset"].str.cat(values.table["protect"], sep=", ")
    return values.table.assign(method=names, task=task)


def approaches_as_methods(wide: pd.DataFrame) -> BenchmarkTable:
    """Return a table of approaches as a table of scores."""
    labelled = with_methods_and_tasks(wide)
    names = [n for n in wide if n not in (*approaches.ABOUT, *COSTS)]
    costs = [name for name in COSTS if name in wide]
    repeat = labelled["repeat"].astype(int).astype(str)
    labelled["split"] = labelled["seed"].astype(str).str.cat(repeat, sep=".")
    frame = labelled[[METHOD, TASK, SPLIT, FAMILY, *names, *costs]].reset_index(drop=True)
    scores = [Score(name, epsilon=approaches.epsilon_of(name)) for name in names]
    return BenchmarkTable(frame, RUNS, tuple(scores), tuple(costs))
