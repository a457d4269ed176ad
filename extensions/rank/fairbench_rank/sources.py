"""Scores of methods on tasks, as every format of results is read, and what is known of them.

Begin with `benchmark_scores`, which knows a format by the content of a file. Tables whose columns
other projects have agreed on come first, then lm-evaluation-harness's logs, then fairbench's runs.
"""

from __future__ import annotations

import fnmatch
import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd

from fairbench.core.errors import DataError, UserError, check_choice
from fairbench.core.files import guard, opened, read_bytes
from fairbench.core.files import names_in as files_in
from fairbench.core.memory import check_json, check_memory, most_memory
from fairbench.core.text import counted, declared_in, listed, quoted, shortened
from fairbench.data.tables import names_in, read_any_table
from fairbench.evaluation.table import COSTS
from fairbench.metrics.registry import find
from fairbench.reporting.group_tables import sentence_of
from fairbench.results.catalogue import Catalogue
from fairbench.results.record import refuse_pack
from fairbench_rank import approaches
from fairbench_rank.approaches import TASK as TASK_COLUMNS
from fairbench_rank.approaches import read_schema

METHOD, TASK, SPLIT, ITEM, FAMILY = "method", "task", "split", "item", "family"
KEYS = (METHOD, TASK, SPLIT, ITEM, FAMILY)
_PLACE = (METHOD, TASK, SPLIT, ITEM)  # has one score at most
COMBINED = "score"  # the column of scores that differ from task to task
_told = partial(sentence_of, "fairbench_rank:sources")
Better: TypeAlias = Literal["higher", "lower", ""]


@dataclass(frozen=True)
class Score:
    """The facts about a column of scores.

    Attributes
    ----------
    better : whether higher or lower values are better; empty if the file does not say.
    binary : whether every value is 0 or 1, wrong or right.
    epsilon : the largest difference that does not matter in practice, if declared; such
        a score is on one scale in all rows.
    """

    name: str
    better: Better = ""
    binary: bool = False
    epsilon: float | None = None

    def __str__(self) -> str:
        """Return its name, and which values are good."""
        way = f"{self.better} is better" if self.better else "which way is better is not said"
        return f"{shortened(self.name)} ({'right or wrong, ' * self.binary}{way})"


@dataclass(frozen=True, eq=False)
class BenchmarkTable:
    """Scores of methods on tasks.

    Attributes
    ----------
    frame : one row per method, task, and any split and item, with the columns ``method``,
        ``task``, ``split``, ``item`` and ``family`` (texts; the last three only where there are
        such), one column per score and per cost. A row without a score has NaN.
    format : the format in which it was read, such as ``benchopt runs``.
    scores : the facts about each score.
    costs : the columns of what a row took, in seconds.
    notes : sentences for the reader on how it was read.
    warnings : sentences on what may be wrong with comparing these scores.
    """

    frame: pd.DataFrame
    format: str
    scores: tuple[Score, ...]
    costs: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def having(self, frame: pd.DataFrame, *notes: str) -> BenchmarkTable:
        """Return the table with other rows, and with further notes."""
        return replace(self, frame=frame, notes=(*self.notes, *notes))

    @property
    def sentence(self) -> str:
        """A sentence on the source of the table."""
        frame = self.frame
        counts = [counted(frame[of].nunique(), of) for of in (METHOD, TASK, SPLIT) if of in frame]
        if ITEM in frame:
            counts.append(counted(len(frame[[TASK, ITEM]].drop_duplicates()), ITEM))
        return f"{self.format}: {listed(counts)}; {', '.join(map(str, self.scores))}"


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
    where = table.frame[[score.name for score in kept]].notna().groupby(table.frame[TASK]).any()
    one_each = len(kept) > 1 and bool((where.sum(axis=1) <= 1).all())
    if len(kept) > 1 and not names and not one_each:
        few = ", ".join(shortened(score.name) for score in kept[:8])
        more = f" and {len(kept) - 8} more" if len(kept) > 8 else ""
        values = {"format": table.format, "count": len(kept), "first": kept[0].name}
        raise UserError(_told("several_scores", few=f"{few}{more}", **values))
    has_score = table.frame[TASK].isin(where.index[where.any(axis=1)])
    if not has_score.any():
        raise DataError(f"the {table.format} have no values of that score")
    notes = []
    if not has_score.all():
        left_out = table.frame[TASK][~has_score].unique()
        few = ", ".join(map(shortened, left_out[:5])) + (" ..." if len(left_out) > 5 else "")
        verb = "is" if len(left_out) == 1 else "are"
        notes = [f"no method has that score on {few}, which {verb} left out"]
    dropped = {*scores} - {score.name for score in kept}
    frame = table.frame[has_score].reset_index(drop=True).drop(columns=[*dropped])
    chosen = replace(table.having(frame, *notes), scores=tuple(kept))
    return _combine_scores(chosen) if one_each else chosen


def _combine_scores(table: BenchmarkTable) -> BenchmarkTable:
    """Return a table with its scores in a single column; each task has one of them."""
    ways = {score.better for score in table.scores}
    if len(ways) > 1:
        by_way = " and ".join(
            f"{next(score.name for score in table.scores if score.better == way)} is better "
            f"{way or 'in a way that is not said'}"
            for way in sorted(ways)
        )
        raise UserError(f"the tasks have scores of their own, and {by_way}: name one, by score=")
    names = [score.name for score in table.scores]
    single = table.frame[names].bfill(axis=1).iloc[:, 0]
    frame = table.frame.drop(columns=names).assign(**{COMBINED: single})
    score = Score(COMBINED, table.scores[0].better, all(s.binary for s in table.scores))
    note = f"every task has one score of its own ({', '.join(map(shortened, names))})"
    return replace(table.having(frame, note), scores=(score,))


def tidy(rows: Sequence[Mapping[str, Any]] | pd.DataFrame, source: str) -> pd.DataFrame:
    """Return a frame with its keys as the first columns, as texts; refuse two rows of one place.

    Parameters
    ----------
    source : the name of the source of the rows, for messages.

    Raises
    ------
    DataError : two rows of one method, task, split and item, or none at all.
    """
    frame = pd.DataFrame(rows)
    if frame.empty:
        raise DataError(f"the {source} have no scores")
    keys = [name for name in KEYS if name in frame]
    frame = frame[[*keys, *frame.columns.difference(keys, sort=False)]]
    frame = frame.astype(dict.fromkeys(keys, str))
    places = [name for name in _PLACE if name in frame]
    again = frame.duplicated(places)
    if again.any():
        repeated = frame[again].iloc[0]
        where = ", ".join(f"{name} {quoted(repeated[name])}" for name in places)
        raise DataError(_told("rows_twice", source=source, rows=again.sum(), where=where))
    frame.columns.name = None
    return frame.reset_index(drop=True)


def is_binary(values: pd.Series) -> bool:
    """Return whether there are values, and every one is 0 or 1."""
    present = values.dropna()
    return bool(len(present)) and bool(present.isin([0, 1]).all())


def _distinct_names(
    names: Sequence[str], settings: Sequence[Mapping[str, Any]], among: Sequence[object]
) -> list[str]:
    """Return names, with settings appended to equal names that differ in them.

    Parameters
    ----------
    settings : the settings of each name, which may differ between equal names.
    among : the context of each name, such as its task; only equal names of one context are
        distinguished.

    Examples
    --------
    >>> _distinct_names(["gpt", "gpt", "phi"], [{"shots": 0}, {"shots": 5}, {"shots": 0}], "aaa")
    ['gpt shots=0', 'gpt shots=5', 'phi']
    """
    of_name: dict[str, list[int]] = {}
    for index, name in enumerate(names):
        of_name.setdefault(name, []).append(index)
    distinct = list(names)
    for indices in of_name.values():
        if len(indices) == len({among[index] for index in indices}):
            continue
        own = [settings[index] for index in indices]
        every = dict.fromkeys(name for options in own for name in options)
        differing = [name for name in every if any(o.get(name) != own[0].get(name) for o in own)]
        for index in indices:
            values = (settings[index].get(key) for key in differing)
            texts = ("none" if x is None else shortened(str(x).replace(" ", "")) for x in values)
            words = map("=".join, zip(differing, texts, strict=True))
            distinct[index] = " ".join([names[index], *words])
    return distinct


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


def _as_number(values: pd.Series) -> pd.Series:
    """Return a column of texts, by file and row, as numbers, NaN where one is blank or says so.

    Raises
    ------
    DataError : a text that is no number.
    """
    texts = values.astype(str).str.strip()
    blank = texts.str.lower().isin(_BLANK)
    numbers = pd.to_numeric(texts.where(~blank), errors="coerce").astype(float)
    wrong = numbers.isna() & ~blank
    if wrong.any():
        file, row = wrong.idxmax()
        where = f"{file}: column '{values.name}' holds {quoted(texts[file, row])} in row {row + 1}"
        raise DataError(f"{where}, which is no number")
    return numbers


_BLANK = ("", "nan", "na", "n/a", "none", "null")


# Tables of results whose columns other projects have agreed on, recognised by their names:
# TabArena's results (and bencheval's), the AutoML benchmark's, and benchopt's runs; as CSV, Parquet
# or any other table that is read here.

_FORMATS = declared_in("fairbench_rank", "formats.toml")
_PARQUET = b"PAR1"


@dataclass(frozen=True)
class _Layout:
    """The columns of a format, as ``formats.toml`` says.

    Attributes
    ----------
    needs : the columns by which it is known.
    method, task : what names them; columns after the first do where they hold several values, and
        the first column of the task is then its family.
    split : the columns that together tell splits apart, of those that exist.
    score : the columns of scores; losses : those of which low values are better.
    costs, facts : further columns that are read if they exist.
    curves : whether rows of one split are a curve, of which the last point counts.
    negated, good : values of the column ``metric`` whose scores are negated, as lower is better,
        and those whose are not.
    """

    needs: str
    method: str
    task: str
    split: str
    score: str
    losses: str = ""
    costs: str = ""
    facts: str = ""
    curves: bool = False
    negated: str = ""
    good: str = ""

    def fits(self, names: Collection[str]) -> bool:
        return all({*each.split("|")} & {*names} for each in self.needs.split())

    def columns(self, names: Sequence[str]) -> dict[str, str]:
        """Return which columns are read, and the first of the names that each may have."""
        words = f"{self.method} {self.task} {self.split} {self.score} {self.costs} {self.facts}"
        read: dict[str, str] = {}
        for word in words.split():
            first, *others = word.split("|")
            found = next((name for name in (first, *others) if name in names), "")
            alike = {name: name for name in fnmatch.filter(names, word)}
            read |= {found: first} if found else alike
        return read


# The first that fits is taken.
_LAYOUTS = {kind: _Layout(**columns) for kind, columns in _FORMATS["tables"].items()}


def _read_frames(kind: str, paths: Mapping[Path, str]) -> BenchmarkTable:
    """Return the scores of tables of one format together; each file has its name in messages.

    Raises
    ------
    UserError : a value is no number, or a method has two scores at one place.
    """
    layout = _LAYOUTS[kind]
    notes: list[str] = []
    frames = {name: _read_frame(path, name, layout, notes) for path, name in paths.items()}
    frame = pd.concat(frames).fillna("")
    keys = _keys(frame, layout)
    scores = {}
    refused = f"the {kind} have no column {layout.score}"
    for name in fnmatch.filter(frame, layout.score):
        if name not in layout.task.split():
            try:
                scores[name] = _as_number(frame[name])
            except DataError as error:
                refused = str(error)
                notes.append(f"{shortened(name)} holds no numbers, and is left out")
    if not scores:
        raise DataError(refused)
    way: Better = ""
    if layout.negated:
        scores[layout.score], way = _higher(scores[layout.score], frame["metric"], layout, notes)
    if filled := int((frame.get("imputed", keys[METHOD]).str.lower() == "true").sum()):
        notes.append(f"{filled} rows are marked as imputed: they are another method's scores")
    warnings = []
    if "metric" in frame and frame["metric"].nunique() > 1:
        few = ", ".join(map(shortened, sorted(frame["metric"].unique())[:6]))
        warnings.append(_told("several_metrics", few=few))
    costs = {name: _as_number(frame[name]) for name in layout.costs.split() if name in frame}
    ways = {name: "lower" if name in layout.losses.split() else way for name in scores}
    described = [Score(name, ways[name], is_binary(scores[name])) for name in scores]
    made = tidy(pd.DataFrame({**keys, **scores, **costs}), kind)
    told = tuple(dict.fromkeys(notes)), tuple(warnings)
    return BenchmarkTable(made, kind, tuple(described), tuple(costs), *told)


def _read_frame(path: Path, name: str, layout: _Layout, notes: list[str]) -> pd.DataFrame:
    """Return the columns of a file, by their first names, and of curves the last points."""
    columns, packed = layout.columns(names_in(path, ())), _not_texts(path)
    frame = read_any_table(path, [column for column in columns if column not in packed])
    if frame.empty:
        raise DataError(f"{name} has no rows")
    objects = [shortened(column) for column in columns if column in packed]
    notes += [f"{column} holds objects, which are not opened" for column in objects]
    frame = frame.rename(columns=columns)
    if layout.curves:
        places = _present(frame, f"{layout.method} {layout.task} {layout.split}")
        points, frame = len(frame), frame.drop_duplicates(places, keep="last")
        if len(frame) < points:
            notes.append("of every curve of a solver its last point is read")
    return frame


def _not_texts(path: Path) -> set[str]:
    """Return the columns of a Parquet file that hold bytes or lists, such as pickled objects."""
    if _start_of(path, len(_PARQUET)) != _PARQUET:
        return set()
    from pyarrow import types

    kinds = {field.name: field.type for field in read_schema(path)}
    return {of for of, kind in kinds.items() if types.is_nested(kind) or "binary" in str(kind)}


def _present(frame: pd.DataFrame, words: str) -> list[str]:
    firsts = (word.partition("|")[0] for word in words.split())
    return [name for name in firsts if name in frame]


def _keys(frame: pd.DataFrame, layout: _Layout) -> dict[str, pd.Series]:
    """Return the method and the task of each row, and any split and family."""
    keys = {}
    for key, mark in ((METHOD, " "), (TASK, ", "), (SPLIT, ".")):
        if not (names := _present(frame, getattr(layout, key))):
            continue
        first, *others = (frame[name] for name in names)
        others = [each for each in others if key == SPLIT or each.nunique() > 1]
        keys[key] = first.str.cat(others, sep=mark) if others else first
        if others and key == TASK:
            keys[FAMILY] = first
    return keys


def _higher(
    result: pd.Series, metric: pd.Series, layout: _Layout, notes: list[str]
) -> tuple[pd.Series, Better]:
    """Return results with losses negated, if all metrics are known."""
    metric, negated, good = metric.str.strip(), layout.negated.split(), layout.good.split()
    unknown = {*metric[result.notna()]} - {*negated, *good}
    if failed := int(result.isna().sum()):
        notes.append(f"{failed} rows have no result: the framework failed there")
    if any(not name.startswith("neg_") for name in unknown):
        return result, ""
    turned = metric.isin(negated)
    if turned.any():
        notes.append("losses are negated, as the AutoML benchmark does: higher is better")
    return result.where(~turned, -result), "higher"


_MOST_FILES = 100_000


def _files_under(path: Path) -> tuple[dict[Path, str], int]:
    """Return the file, or the files of the folder and of those in it; no link is followed.

    What begins with a point is left out.

    Returns
    -------
    Each file, those of a folder before those within it, with its name in messages: its path within
    the folder that was named; and the number of links, pipes and the like that were skipped.

    Raises
    ------
    UserError : nothing is there, it cannot be read, or the folder has too many files.
    """
    if path.is_file():
        return {path: path.name}, 0
    if not path.is_dir():
        raise UserError(f"{path} is no file and no folder")
    files: list[Path] = []
    links = 0
    folders = [path]
    try:
        guard(path)
        for folder in folders:  # which grow on the way
            names, inner, others = files_in(folder)
            files += [folder / name for name in names if not name.startswith(".")]
            folders += [folder / name for name in inner if not name.startswith(".")]
            links += len(others)
            if len(files) > _MOST_FILES:
                most = f"{path} has more than {_MOST_FILES:,} files"
                raise UserError(f"{most}: name the folder of the results alone")
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror or error}") from error
    return {file: str(file.relative_to(path)) for file in files}, links


def _start_of(path: Path, size: int) -> bytes:
    """Return the first bytes of a file."""
    with open(opened(path), "rb") as file:
        return file.read(size)


def read_json(path: Path, name: str) -> Any:
    """Return the values of a file in JSON.

    Raises
    ------
    UserError : it takes more memory than is allowed, or is not JSON.
    OSError : it cannot be read.
    """
    return _parse_json(read_bytes(path, most_memory()), name)


def _parse_json(content: bytes, name: str) -> Any:
    """Return the values of a text in JSON; `name` is that of messages."""
    check_json(content)
    try:
        return json.loads(content)
    except json.JSONDecodeError as error:
        reason = f"is not JSON (line {error.lineno}: {error.msg})"
        if error.pos >= len(error.doc.rstrip()) - 1 or error.msg.startswith("Unterminated"):
            reason = "ends before it is whole"
        raise DataError(f"{name} {reason}: get it again, or move it away") from error
    except RecursionError as error:
        raise DataError(f"{name}: its values are nested too deeply") from error
    except ValueError as error:  # no UTF-8, or a number of thousands of digits
        raise DataError(f"{name} is not JSON: {str(error)[:100]}") from error


def _json_lines(path: Path, name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield where every line is, in words, and its values.

    Raises
    ------
    DataError : a line that is not an object in JSON.
    """
    content = read_bytes(path, most_memory())
    check_memory(2 * len(content), name)
    for line_number, line in enumerate(content.split(b"\n"), 1):
        if line.strip():
            where = f"{name}, line {line_number}"
            yield where, _as_object(_parse_json(line, f"{where},"), f"{where},")


def _as_object(values: Any, name: str) -> dict[str, Any]:
    """Return values, which must be an object; `name` says what was read, for messages."""
    if not isinstance(values, dict):
        raise DataError(f"{name} is not an object: it is no such log")
    return values


def text_of(values: Mapping[str, Any], key: str) -> str:
    """Return the text under a key; empty if there is none, or if it is no text."""
    text = values.get(key)
    return text.strip() if isinstance(text, str) else ""


# lm-evaluation-harness's files: scores of tasks (``results_*.json``), and of documents.
#
# A results file is of one model on several tasks, with an aggregate and its standard error for
# every metric. Documents are in ``samples_TASK_DATE.jsonl`` beside it, one line per document and
# filter. Which model answered is said in the results file of the same date, or by the name of the
# folder.

RESULTS, SAMPLES = "lm-evaluation-harness results", "lm-evaluation-harness samples"
_DATE = r"\d{4}-\d\d-\d\dT[0-9.-]+"
_RESULTS_NAME = re.compile(rf".*_({_DATE})\.json")
_SAMPLES_NAME = re.compile(rf"samples_(.+?)(?:_({_DATE}))?\.jsonl")
_STDERR = "_stderr"
_NO_FILTER = "none"
_LM_EVAL: Mapping[str, Sequence[str]] = _FORMATS["lm_eval"]


@dataclass(frozen=True)
class _Results:
    """A results file, with its content."""

    path: Path
    name: str
    values: dict[str, Any]

    @property
    def date(self) -> str:
        """The date in its name; empty if there is none."""
        dated = _RESULTS_NAME.fullmatch(self.path.name)
        return dated[1] if dated else ""

    def part(self, key: str) -> dict[str, Any]:
        """Return what is said under a key, mostly of each task; nothing if there is no such key."""
        part = self.values.get(key)
        return {} if part is None else _as_object(part, f"'{key}' of {self.name}")

    @property
    def groups(self) -> dict[str, list[str]]:
        """The tasks and groups of every group."""
        return {
            group: [name for name in names if isinstance(name, str)]
            for group, names in self.part("group_subtasks").items()
            if isinstance(names, list) and names
        }

    @property
    def tasks(self) -> dict[str, dict[str, Any]]:
        """The scores of every task; a group whose tasks have scores is left out."""
        scores, inner = self.part("results"), self.groups
        return {
            task: _as_object(task_scores, f"the results of task '{task}' in {self.name}")
            for task, task_scores in scores.items()
            if not any(name in scores for name in inner.get(task, ()))
        }


@dataclass(frozen=True)
class _Run:
    """A model on a task: the file that has its scores, and its results file, if it is there."""

    path: Path
    name: str
    task: str
    results: _Results | None

    @property
    def model(self) -> str:
        """The name of the model, as the harness takes it from what it was given."""
        if self.results is None:
            return self.path.parent.resolve().name
        arguments = self.results.part("config").get("model_args")
        if isinstance(arguments, str):
            words = [word.partition("=") for word in arguments.split(",")]
            arguments = {key.strip(): value for key, _, value in words}
        stated = arguments if isinstance(arguments, dict) else {}
        given = (text_of(stated, key) for key in _LM_EVAL["model"])
        name = text_of(self.results.values, "model_name") or next(filter(None, given), "")
        return name or self.path.parent.name

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of the task: one model with others is another method."""
        if self.results is None:
            return {}
        config, values = self.results.part("config"), self.results.values
        return {
            "shots": self.results.part("n-shot").get(self.task),
            "model_args": config.get("model_args"),
            "gen_kwargs": config.get("gen_kwargs"),
            "limit": config.get("limit"),
            "multiturn": values.get("fewshot_as_multiturn"),
            "template": text_of(values, "chat_template_sha")[:8] or None,
            "instruction": text_of(values, "system_instruction_sha")[:8] or None,
        }

    def direction(self, metric: str) -> Better:
        """Which values of a metric are good."""
        said = self.results.part("higher_is_better").get(self.task) if self.results else None
        is_higher = said.get(metric) if isinstance(said, dict) else None
        if is_higher is None:
            ways: tuple[Better, ...] = ("higher", "lower")
            return next((way for way in ways if metric in _LM_EVAL[way]), "")
        return "higher" if is_higher is True else "lower"


def _log_of(values: Mapping[str, Any]) -> str:
    """Return whether an object in JSON is a results file or a line of samples; else `OTHER`."""
    names = {*values}
    if isinstance(values.get("results"), dict) and names & {
        "configs", "versions", "config", "n-shot",
    }:  # fmt: skip
        return RESULTS
    is_sample = {"doc", "target"} <= names and names & {"resps", "filtered_resps"}
    return SAMPLES if is_sample else OTHER


def _read_lm_eval(
    results: Mapping[Path, str], samples: Mapping[Path, str], root: Path, *, items: bool
) -> BenchmarkTable:
    """Return the scores of documents, or of tasks if there are no samples.

    Parameters
    ----------
    results, samples : the files of each kind, with their names in messages.
    root : the file or folder that was named.
    items : whether documents are read, if there are any, or aggregates of tasks.

    Raises
    ------
    UserError : a file is damaged, a line has no id, two files are of one model and task, or models
        were asked different documents under one id.
    """
    read = [_Results(path, of, _as_object(read_json(path, of), of)) for path, of in results.items()]
    groups: dict[str, list[str]] = {}
    for group, names in chain(*(file.groups.items() for file in read)):
        groups.setdefault(group, []).extend(names)
    if not items and not results:
        raise DataError(f"{root} has no results_*.json: of samples no aggregates are read")
    if not (items and samples):
        return _table(RESULTS, _rows_of_results(read), groups)
    left_out = set[str]()
    runs = [_run_of_samples(path, name, read) for path, name in samples.items()]
    table = _table(SAMPLES, _rows_of_samples(runs, left_out), groups)
    return table.having(table.frame, *_notes_on_samples(runs, read, left_out))


# A run, and the keys of a method's row with its scores, by (metric, filter).
_Row: TypeAlias = tuple[_Run, dict[Any, Any]]


def _scores_in(row: Mapping[Any, Any]) -> list[tuple[str, str]]:
    return [key for key in row if key not in KEYS]


def _table(kind: str, found: Iterable[_Row], groups: Mapping[str, Iterable[str]]) -> BenchmarkTable:
    """Return the table of rows, its scores named by metric, and by filter where a task has several.

    The first file that says which values of a score are good decides.
    """
    rows, family = list(found), families(groups)
    ways: dict[tuple[str, str], Better] = {}
    for run, row in rows:
        row |= {FAMILY: family.get(run.task, run.task)} if family else {}
        for key in _scores_in(row):
            ways[key] = ways.get(key, "") or run.direction(key[0])
    if not ways:
        raise DataError(f"the {kind} have no metrics that are numbers")
    places = {(key, run.task) for run, row in rows for key in _scores_in(row)}
    on_task = Counter((metric, task) for (metric, _), task in places)
    several = {metric for (metric, _), filters in on_task.items() if filters > 1}
    names = {key: "/".join(key) if key[0] in several else key[0] for key in ways}
    frame = tidy([{names.get(key, key): row[key] for key in row} for _, row in rows], kind)
    way_of: dict[str, Better] = {}
    for key, name in names.items():
        way_of[name] = way_of.get(name, "") or ways[key]
    right = {name: kind == SAMPLES and is_binary(frame[name]) for name in way_of}
    scores = [Score(name, way, right[name]) for name, way in way_of.items()]
    return BenchmarkTable(frame, kind, tuple(scores))


def _methods(runs: Sequence[_Run]) -> list[str]:
    """Return the method of each run; refuse two files of one method and task."""
    methods = _distinct_names(
        [run.model for run in runs], [run.settings for run in runs], [run.task for run in runs]
    )
    seen: dict[tuple[str, str], str] = {}
    for method, run in zip(methods, runs, strict=True):
        if (earlier := seen.setdefault((method, run.task), run.name)) != run.name:
            values = {"model": quoted(method), "task": quoted(run.task)}
            raise DataError(_told("same_run", earlier=earlier, name=run.name, **values))
    return methods


def _rows_of_results(results: Sequence[_Results]) -> Iterator[_Row]:
    """Yield a row for each task, with its aggregate scores."""
    runs = [_Run(file.path, file.name, task, file) for file in results for task in file.tasks]
    scores = [of_task for file in results for of_task in file.tasks.values()]
    for method, run, of_task in zip(_methods(runs), runs, scores, strict=True):
        row: dict[Any, Any] = {METHOD: method, TASK: run.task}
        for key, value in of_task.items():
            metric, _, filtered = key.partition(",")
            is_score = not metric.endswith(_STDERR) and metric not in _LM_EVAL["no_scores"]
            if is_score and type(value) in (int, float):
                row[metric, filtered or _NO_FILTER] = float(value)
        yield run, row


def _run_of_samples(path: Path, name: str, results: Sequence[_Results]) -> _Run:
    """Return the run of samples, with the results file of its date, or the only one there."""
    match = _SAMPLES_NAME.fullmatch(path.name)
    task, date = (match[1], match[2] or "") if match else (path.stem, "")
    in_folder = [file for file in results if file.path.parent == path.parent]
    of_date = [file for file in in_folder if file.date == date]
    found = of_date or (in_folder if len(in_folder) == 1 else [])
    return _Run(path, name, task, found[0] if found else None)


def _rows_of_samples(runs: Sequence[_Run], left_out: set[str]) -> Iterator[_Row]:
    """Yield a row for each document; `left_out` gets the metrics whose value is no number."""
    documents: dict[tuple[str, str], tuple[str, str]] = {}
    for method, run in zip(_methods(runs), runs, strict=True):
        row_of_item: dict[str, dict[Any, Any]] = {}
        for where, line in _json_lines(run.path, run.name):
            item = line.get("doc_id")
            if isinstance(item, bool) or not isinstance(item, str | int):
                raise DataError(f"{where} has no doc_id: its documents cannot be paired")
            item = str(item)
            content = text_of(line, "doc_hash")
            seen, earlier = documents.setdefault((run.task, item), (content, run.name))
            if content and seen and content != seen:
                values = {"item": quoted(item), "task": quoted(run.task)}
                raise DataError(_told("documents", earlier=earlier, name=run.name, **values))
            row = row_of_item.setdefault(item, {METHOD: method, TASK: run.task, ITEM: item})
            left_out |= _add_line(row, line, f"{where}: document {quoted(item)}")
        if not row_of_item:
            raise DataError(f"{run.name} has no lines")
        yield from ((run, row) for row in row_of_item.values())


def _add_line(row: dict[Any, Any], line: Mapping[str, Any], document: str) -> set[str]:
    """Put the scores of a line, a document under one filter, into the document's row.

    Lines of older versions do not list their metrics.

    Returns
    -------
    The metrics whose value is no number.
    """
    filtered = text_of(line, "filter") or _NO_FILTER
    listed = line.get("metrics")
    metrics = [name for name in line if name not in _LM_EVAL["of_line"]]
    if isinstance(listed, list):
        metrics = [name for name in listed if isinstance(name, str)]
    values = {metric: line.get(metric) for metric in metrics}
    numbers = {of: value for of, value in values.items() if isinstance(value, bool | int | float)}
    for metric, value in numbers.items():
        if (metric, filtered) in row:
            raise DataError(_told("twice", document=document, filter=quoted(filtered)))
        row[metric, filtered] = float(value)
    return values.keys() - numbers


def _notes_on_samples(
    runs: Sequence[_Run], results: Sequence[_Results], left_out: set[str]
) -> Iterator[str]:
    """Yield notes for the reader: metrics and tasks left out, and models named by a guess."""
    if left_out:
        listed = ", ".join(map(shortened, sorted(left_out)))
        yield f"{listed}: no number for every document, and left out"
    if unnamed := [run for run in runs if not run.results]:
        yield _told("unnamed", name=unnamed[0].name, model=quoted(unnamed[0].model))
    present = {(run.results.path, run.task) for run in runs if run.results}
    lacking = [(of, task) for of in results for task in of.tasks if (of.path, task) not in present]
    if lacking:
        file, task = lacking[0]
        rest = f" and {len(lacking) - 1} more" * (len(lacking) > 1)
        yield _told("no_samples", task=quoted(task), file=f"{file.name}{rest}")


# The format of a file or folder of results, by its content, and its scores.

TABLE = "table"  # of columns that no format here has
OTHER = ""  # no results at all
_TABLES = {".csv", ".tsv", ".parquet", ".feather", ".arrow", ".xlsx"}
_PACKED = {".gz", ".bz2", ".xz", ".zst"}
_SQLITE = b"SQLite format 3"


def _format_of(path: Path, name: str, *, alone: bool) -> str:
    """Return the format of a single file, by its content.

    Parameters
    ----------
    name : of the file in messages.
    alone : whether it was named itself; of a folder's files, those that end as tables do are read.

    Returns
    -------
    str
        The name of a format, ``table`` for a table of other columns, or empty for anything else.

    Raises
    ------
    UserError : it is damaged, cannot be read, or is a log of inspect_ai.
    """
    values: Any = None
    try:
        if path.suffix in (".jsonl", ".ndjson"):
            line = _start_of(path, 1 << 24).lstrip().partition(b"\n")[0]
            values = _parse_json(line, f"{name}, line 1,") if line.startswith(b"{") else None
        elif path.suffix == ".json":
            values = read_json(path, name)
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror or error}") from error
    if path.suffix == ".eval" or (isinstance(values, dict) and {"eval", "samples"} <= {*values}):
        raise DataError(_told("inspect", name=name))
    if path.suffix in LOGS:
        return _log_of(values) if isinstance(values, dict) else OTHER
    suffixes = [suffix for suffix in path.suffixes if suffix not in _PACKED]
    if not alone and not {*suffixes[-1:]} & _TABLES:
        return OTHER
    if _start_of(path, len(_SQLITE)) == _SQLITE:
        raise DataError(_told("sqlite", name=name))
    columns = names_in(path, ())
    return next((kind for kind, layout in _LAYOUTS.items() if layout.fits(columns)), TABLE)


def _read_files(path: Path, *, items: bool) -> BenchmarkTable | None:
    """Return all scores of a file, or of the files of a folder, in one format of others."""
    files, links = _files_under(path)
    of_format: dict[str, dict[Path, str]] = {}
    for file, name in files.items():
        kind = _format_of(file, name, alone=path.is_file())
        of_format.setdefault(kind, {})[file] = name
    if path.is_file() and TABLE in of_format:
        return None
    others, tables = (of_format.pop(kind, {}) for kind in (OTHER, TABLE))
    passed = {**others, **tables}
    if not of_format:
        example = next(iter((tables or files).values()), "the folder is empty")
        about = {"name": example} if tables else {"example": example}
        raise UserError(_told("own_columns" if tables else "no_results", path=path, **about))
    results, samples = (of_format.get(kind, {}) for kind in (RESULTS, SAMPLES))
    if len(of_format) > 1 and of_format.keys() != {RESULTS, SAMPLES}:
        first = {kind: next(iter(names.values())) for kind, names in [*of_format.items()][:3]}
        listed = " and ".join(f"{kind} ({name})" for kind, name in first.items())
        raise UserError(f"{path} holds results of several formats: {listed}; name a folder of one")
    if results or samples:
        table = _read_lm_eval(results, samples, path, items=items)
    else:
        [(kind, paths)] = of_format.items()
        table = _read_frames(kind, paths)
    notes = []
    if passed:
        more, are = (f" and {len(passed) - 1} more", "are") if len(passed) > 1 else ("", "is")
        notes.append(f"{next(iter(passed.values()))}{more} {are} left out, as no results")
    if links:
        notes.append(f"{links} links or special files are not followed")
    return table.having(table.frame, *notes)


# fairbench's own runs: an approach is a method, a split a seed and a repeat.

RUNS = "fairbench runs"
LOGS = {".json", ".jsonl", ".ndjson", ".eval"}


def benchmark_scores(
    path: Path, scores: Sequence[str] = (), *, items: bool = True
) -> BenchmarkTable | None:
    """Return the scores of a file or folder; None for a table in no known format.

    Of finished runs, demos and tuning are left out.

    Parameters
    ----------
    scores : the scores to keep; if there are several, some must be named.
    items : whether single items of logs are read, where there are any, or aggregates of tasks.

    Raises
    ------
    UserError : it is damaged, holds no results, results of several formats, or several scores of
        which none is named.
    """
    refuse_pack(path)
    left_out = ""
    if approaches.is_approaches(path):
        wide = approaches.read_approaches(path)
    elif path.is_dir() and len(Catalogue(path)):
        counted, left_out = Catalogue(path).counted(())
        if not len(counted):
            raise UserError(f"{path} has no finished runs to rank; {left_out}".rstrip("; "))
        wide = approaches.approach_table(list(counted))
    else:
        read = _read_files(path, items=items)
        return None if read is None else with_scores(read, scores)
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
    ranked, left = enough.index[enough], int((~enough).sum())
    if not left or len(ranked) < 2:
        return table.having(measured.reset_index(drop=True))
    are, they = ("is", "it has") if left == 1 else ("are", "they have")
    counts = {"left": left, "all": len(enough), "tasks": tasks, "fewest": fewest}
    note = _told("few_tasks", are=are, they=they, **counts)
    return table.having(measured[measured[METHOD].isin(ranked)].reset_index(drop=True), note)


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
    frame = labelled[[METHOD, TASK, SPLIT, FAMILY, *names, *costs]]
    scores = [Score(name, _direction(name), epsilon=approaches.epsilon_of(name)) for name in names]
    return BenchmarkTable(tidy(frame, RUNS), RUNS, tuple(scores), tuple(costs))


def _direction(name: str) -> Better:
    """Return which values of a metric of ours are good; empty if it is none, or neither are."""
    metric: Any = find(name)
    return metric.better if metric and metric.better in ("higher", "lower") else ""
