"""A table of scores as arrays: methods by tasks by splits or questions, with holes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.core.arrays import Codes, Floats, Mask
from fairbench.core.errors import UserError
from fairbench.core.memory import check_memory
from fairbench.core.options import check_declared, option
from fairbench.core.text import count, declared_in, is_number, listed, quoted
from fairbench.data.columns import ColumnRef, mixed_scales, mixes_scales, to_numbers
from fairbench.data.in_memory import Table, names_of_table, texts_of_table
from fairbench.data.tables import TablePart, check_file, names_in, read_any_table
from fairbench.metrics.registry import find
from fairbench.reporting.group_tables import sentence_of
from fairbench_rank.sources import (
    FAMILY,
    ITEM,
    METHOD,
    SPLIT,
    TASK,
    BenchmarkTable,
    Score,
    benchmark_scores,
)

MOST_METHODS = 2000  # all pairs are compared: about a minute of CPU and 1.5 GB (docs/scale.md)
_TRUTHS = {"True": "1", "true": "1", "TRUE": "1", "False": "0", "false": "0", "FALSE": "0"}
_BLANK = re.compile(r"[+-]?(nan|inf|infinity)|na|n/a|none|null|-|", re.IGNORECASE)
_SMALLER = re.compile(
    r"error|loss|rmse|mse|mae|nll|brier|perplexity|bits_per|latency|time|cost|regret"
    r"|(^|_)(ece|ter)($|_)",
    re.I,
)
_LARGER = re.compile(r"acc|auc|f1|score|precision|recall|win|bleu|rouge|correct|r2|reward", re.I)
_NAMED = 3  # names that a sentence lists


@dataclass(frozen=True, eq=False)
class Scores:
    """One score of M methods in C cells: splits of tasks, or questions.

    Attributes
    ----------
    score : the name of the score.
    better : ``higher`` or ``lower``.
    values : (M, C) as they were given; NaN if missing.
    cost : (M, C) the cost of each, or None.
    epsilon : the largest difference that does not matter in practice, if declared.
    """

    score: str
    better: str
    values: Floats
    cost: Floats | None
    epsilon: float | None = None

    @property
    def sign(self) -> float:
        """1 where higher is better, -1 where lower is."""
        return 1.0 if self.better == HIGHER else -1.0

    @property
    def larger_is_better(self) -> Floats:
        """The values turned so that the larger are the better."""
        return self.sign * self.values


@dataclass(frozen=True, eq=False)
class ScoreTable:
    """Scores, with the task, split or question of each cell.

    Attributes
    ----------
    methods : the names of the methods.
    tasks : the names of the tasks; empty for questions without tasks.
    families : names; empty where none are given.
    task : (C,) the task of each cell, or the cell itself of questions without tasks.
    family : (K,) the family of each task, or the task itself.
    splits : the most splits of a task; 0 for questions.
    questions : the number of questions; 0 for splits.
    notes : sentences for the reader.
    warnings : sentences on what may be wrong.
    """

    methods: tuple[str, ...]
    tasks: tuple[str, ...]
    families: tuple[str, ...]
    task: Codes
    family: Codes
    splits: int
    questions: int
    scores: tuple[Scores, ...]
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def read_scores(
    options: RankOptions, source: Table | None = None, read: BenchmarkTable | None = None
) -> ScoreTable:
    """Read a table of scores.

    Parameters
    ----------
    source : the table, if it is in memory; the path is then only used in messages.
    read : the scores of a recognised format, instead of a table.

    Raises
    ------
    UserError : a column that is not there, rows that come twice, scores that are none or of two
        scales, or too few methods or tasks to compare.
    """
    file = options.path.name
    warnings: list[str] = []
    declared: Mapping[str, Score] = {}
    known: Mapping[str, Any] = {}
    metric: list[str] = []
    if read is not None:
        source = read.frame
        declared = {score.name: score for score in read.scores}
        notes = [f"{text[:1].upper()}{text[1:]}." for text in (read.format, *read.notes)]
    else:
        if source is None:
            check_file(options.path)
            names = names_in(options.path, _columns(options), options)
        else:
            names = names_of_table(source)
        kind, known = _format_of(options, names)
        options, notes = _with_usual_names(options, names, file, kind, known)
        metric = ["metric"] if kind and "metric" in names else []
    columns = [*_columns(options), *metric]
    numeric = [*options.score, *filter(None, [options.cost])]
    if source is None:
        frame = read_any_table(options.path, columns, numeric=numeric, part=options)
    else:
        frame, _ = texts_of_table(source, file, columns, numeric=numeric)
    if not len(frame):
        raise _refusal("no_rows", file=file)
    if metric:
        metrics = list(frame["metric"].str.strip().unique())
        if losses := [name for name in metrics if name in known.get("refused", ())]:
            raise _refusal("losses", file=file, loss=losses[0])
        if len(metrics) > 1:
            warnings.append(_told("several_metrics", few=listed(sorted(metrics), 6)))
    if "curves" in known:
        notes.append("Of every curve its last point is read.")
        keys = [options.method, options.task, *options.split]
        frame = frame.drop_duplicates(keys, keep="last")
    again = frame.duplicated()
    if again.any():
        notes.append(_told("again", rows=int(again.sum()), first=again.idxmax() + 1))
        frame = frame[~again]
    return _Reading(options, frame, file, notes, warnings, declared).table()


_told = partial(sentence_of, "fairbench_rank:scores")


def _refusal(name: str, /, **values: object) -> UserError:
    """Return the error that a sentence tells."""
    return UserError(_told(name, **values))


def _columns(options: RankOptions) -> list[str]:
    single = (options.method, options.task, options.item, options.family, options.cost)
    return list(dict.fromkeys([*filter(None, single), *options.split, *options.score]))


def _format_of(options: RankOptions, names: Sequence[str]) -> tuple[str, Mapping[str, Any]]:
    """Return the format of a table by its columns, and how it calls them.

    The format is empty if the table has none, or if the options name columns.
    """
    declared = declared_in("fairbench_rank", "formats.toml")
    if not (options.method or options.task or options.item):
        for kind, known in declared["tables"].items():
            if {*known["needs"]} <= {*names}:
                return kind, known
    return "", declared["usual"]


def _with_usual_names(
    options: RankOptions, names: Sequence[str], file: str, kind: str, known: Mapping[str, Any]
) -> tuple[RankOptions, list[str]]:
    """Return the options with columns found by their usual names, and a note on these."""
    chosen = _columns(options)
    free = {name.lower(): name for name in reversed(names) if name not in chosen}
    found: dict[str, Any] = {}
    guesses = []
    for role in (METHOD, TASK, SPLIT, ITEM, FAMILY, "score", "cost"):
        matches = tuple(free[name] for name in known.get(role, ()) if name in free)
        if not getattr(options, role) and matches:
            kept = matches if role == SPLIT else matches[:1]
            found[role] = kept if role in (SPLIT, "score") else kept[0]
            guesses.append(f"{role}=[{','.join(kept)}]" if kept[1:] else f"{role}={kept[0]}")
    if "score" in found and not options.better:
        found["better"] = (known["better"],)
    options = replace(options, **found)
    for role in (METHOD, "score"):
        if not getattr(options, role):
            others = ", ".join([str(name) for name in names if name not in _columns(options)][:12])
            raise _refusal("no_column", file=file, role=role, others=others)
    if not options.task and not options.item:
        raise _refusal("no_tasks", file=file)
    of = f", as of {kind}" if kind else ""
    return options, [f"Columns taken by their names{of}: {', '.join(guesses)}."] * bool(guesses)


@dataclass(eq=False)
class _Reading:
    """The steps from a frame of texts to arrays; `notes` and `warnings` fill on the way.

    Attributes
    ----------
    declared : what the format says of scores, by their names.
    method, cell, task : (rows,) the codes of methods and cells, and (C,) the task of each cell.
    """

    options: RankOptions
    frame: pd.DataFrame
    file: str
    notes: list[str]
    warnings: list[str]
    declared: Mapping[str, Score]

    def table(self) -> ScoreTable:
        """Return the scores."""
        options = self.options
        self.method, self.methods = self._codes(options.method)
        column, count_of = options.method, len(self.methods)
        if count_of < 2:
            method = quoted(self.methods[0])
            raise _refusal("one_method", file=self.file, column=column, method=method)
        if count_of > MOST_METHODS:
            values = {"methods": count_of, "most": MOST_METHODS}
            raise _refusal("many_methods", file=self.file, column=column, **values)
        self.cell, self.task, self.tasks = self._cells()
        family, families = self._families()
        self._check_units()
        self.shape = len(self.methods), len(self.task)
        check_memory(8 * prod(self.shape), self.file)
        self.cell_code = self._cell_codes()
        scores = tuple(self._scores(name, number) for number, name in enumerate(options.score))
        self._note_missing(scores[0].values)
        return ScoreTable(
            methods=self.methods,
            tasks=self.tasks,
            families=families,
            task=self.task,
            family=family,
            splits=0 if options.item else int(np.bincount(self.task).max()),
            questions=len(self.task) if options.item else 0,
            scores=scores,
            notes=tuple(self.notes),
            warnings=tuple(self.warnings),
        )

    def _codes(self, column: str) -> tuple[Codes, tuple[str, ...]]:
        """Return a column's values as codes, in order of first appearance."""
        text = self.frame[column].astype(str).str.strip()
        ColumnRef(self.file, column).refuse_blank(text, "a name: the cell is empty")
        codes, values = pd.factorize(text)
        return codes.astype(np.intp), tuple(map(str, values))

    def _cells(self) -> tuple[Codes, Codes, tuple[str, ...]]:
        """Return the cell of each row, the task of each cell, and the tasks."""
        options = self.options
        row_task: Codes = np.zeros(len(self.frame), np.intp)
        tasks: tuple[str, ...] = ("",)
        if options.task:
            row_task, tasks = self._codes(options.task)
        columns = [options.item] if options.item else options.split
        keys = [row_task, *(self._codes(column)[0] for column in columns)]
        cell = self.frame.groupby(keys, sort=False).ngroup().to_numpy(np.intp)
        task = row_task[np.unique(cell, return_index=True)[1]]
        if len(tasks) == 1 and options.item:
            return cell, np.arange(len(task)), ()
        return cell, task, tasks

    def _families(self) -> tuple[Codes, tuple[str, ...]]:
        """Return the family of each task; the task itself if none, or only one, is named."""
        own_families = np.arange(int(self.task.max()) + 1)
        if not self.options.family:
            return own_families, ()
        row_family, families = self._codes(self.options.family)
        row_task = self.task[self.cell]
        family = row_family[np.unique(row_task, return_index=True)[1]]
        wrong = family[row_task] != row_family
        if wrong.any():
            row = int(wrong.argmax())
            column = self.options.task or self.options.item
            task, of = quoted(self.frame[column].iloc[row]), quoted(families[row_family[row]])
            where = self.frame.index[row] + 1
            values = {"family": self.options.family, "row": where, "column": column}
            raise _refusal("two_families", file=self.file, task=task, of=of, **values)
        if len(families) == 1:
            self.warnings.append(_told("relatives", family=quoted(families[0])))
            return own_families, ()
        return family, families

    def _check_units(self) -> None:
        """Refuse tables with too few tasks or questions to rank by."""
        options, tasks = self.options, self.tasks
        if len(tasks) == 1 and not options.item:
            raise _refusal("one_task", file=self.file, column=options.task, task=quoted(tasks[0]))
        if len(self.task) < 2:
            raise _refusal("one_question", file=self.file)

    def _cell_codes(self) -> Codes:
        """Return the flat index of each row in the matrix (methods, cells); refuse duplicates."""
        cell_code = self.method * len(self.task) + self.cell
        splits = self.options.split if self.options.item else ()
        key = pd.DataFrame({"": cell_code} | {name: self._codes(name)[0] for name in splits})
        twice = key.duplicated().to_numpy()
        if not twice.any():
            return cell_code
        rows = np.flatnonzero(cell_code == cell_code[twice.argmax()])
        columns = self.options.method, self.options.task or self.options.item
        keys = " and ".join(f"{of} {quoted(self.frame[of].iloc[rows[0]], 30)}" for of in columns)
        one, other, *_ = self.frame.index[rows] + 1
        values = {"rows": len(rows), "keys": keys, "one": one, "other": other}
        raise _refusal("clashing", file=self.file, **values)

    def _scores(self, name: str, number: int) -> Scores:
        """Return a column of scores as a matrix of methods by cells, checked."""
        column = self.frame[name]
        is_text = column.dtype.kind not in "iuf"
        if is_text:
            column = column.astype(str).str.strip().replace(_TRUTHS)
        row_values = to_numbers(column)
        finite = np.isfinite(row_values)
        if is_text and not finite.all():
            wrong = ~finite & ~column.str.fullmatch(_BLANK).to_numpy(bool)
            ColumnRef(self.file, name).refuse_as(column, wrong, "is no number")
        epsilon = self.declared.get(name, Score(name)).epsilon
        if epsilon is None and _mixes_units(row_values[finite]):
            shares = (row_values > 0) & (row_values < 1)
            place = ColumnRef(self.file, name)
            raise mixed_scales(shares, row_values > 1, column.astype(str), place)
        better = self._direction(name, number)
        values = self._cell_means(row_values)
        if not finite.all():
            values = self._with_crashed_scores(name, values, finite, better)
        if not self.options.item:
            size_of_row = pd.Series(np.abs(np.where(finite, row_values, np.nan)))
            sizes = size_of_row.groupby(self.task[self.cell]).mean()
            if len(sizes) > 2 and 0 < _APART * sizes.median() < sizes.max():
                self.warnings.append(_told("scales", name=name, apart=_APART))
        cost = None
        if self.options.cost:
            cost = self._cell_means(to_numbers(self.frame[self.options.cost]))
        return Scores(name, better, values, cost, epsilon)

    def _direction(self, name: str, number: int) -> str:
        """Return whether higher or lower is better, and warn if that contradicts the name."""
        said = self.declared.get(name, Score(name)).better or getattr(find(name), "better", "")
        is_said, by_name = said in (HIGHER, LOWER), str(said)
        if not is_said:
            by_name = LOWER if _SMALLER.search(name) else HIGHER if _LARGER.search(name) else ""
        given = self.options.better
        if not given:
            way, by = by_name or HIGHER, ", by its name" * bool(by_name)
            if not is_said:
                self.notes.append(_told("direction", way=way.capitalize(), name=name, by=by))
            return way
        direction = given[number if len(given) > 1 else 0]
        if by_name and direction != by_name:
            self.warnings.append(_told("upside_down", asked=direction, name=name, usual=by_name))
        return direction

    def _with_crashed_scores(self, name: str, values: Floats, finite: Mask, better: str) -> Floats:
        """Return scores in which crashed ones count as the option ``crashed=`` says."""
        is_crashed = np.zeros(values.shape, bool)
        is_crashed.flat[self.cell_code[~finite]] = True
        is_crashed &= ~np.isfinite(values)
        crashed = is_crashed.sum(axis=1)
        named = self._first_names(np.flatnonzero(crashed), crashed)
        number = int((~finite).sum())
        are = "1 score is" if number == 1 else f"{count(number)} scores are"
        crashes = _told("crashes", name=name, are=are, listed=named)
        if not self.options.crashed:
            row = self.frame.index[~finite][0] + 1
            raise _refusal("not_finite", file=self.file, row=row, crashes=crashes)
        if self.options.crashed == LEFT_OUT:
            self.warnings.append(_told("crashes_left_out", crashes=crashes))
            return values
        if self.options.crashed != WORST:
            self.notes.append(f"{crashes}; such a score counts as {self.options.crashed}.")
            return np.where(is_crashed, float(self.options.crashed), values)
        self.notes.append(_told("crashes_worst", crashes=crashes))
        worst = np.fmax if better == LOWER else np.fmin  # which leave NaN out
        worst_of_task = np.full(int(self.task.max()) + 1, np.nan)
        worst.at(worst_of_task, self.task, worst.reduce(values, axis=0))
        if lacking := int(np.isnan(worst_of_task).sum()):
            self.warnings.append(f"{count(lacking)} tasks have no finite score at all: left out.")
        return np.where(is_crashed, worst_of_task[self.task], values)

    def _note_missing(self, values: Floats) -> None:
        """Note which methods lack tasks, questions or splits that others have."""
        is_known = np.isfinite(values)
        if is_known.all():
            return
        by_task = pd.DataFrame(is_known.T).groupby(self.task).any().to_numpy()
        present, (total, _) = by_task.sum(axis=0), by_task.shape
        incomplete = [m for m in np.argsort(present, kind="stable") if present[m] < total]
        if not incomplete:
            self.notes.append(_told("lack_splits"))
            return
        lack = "method lacks" if len(incomplete) == 1 else "methods lack"
        counts = {"count": len(incomplete), "lack": lack, "total": total}
        counts["units"] = "tasks" if self.tasks else "questions"
        named = self._first_names(incomplete, present)
        self.notes.append(_told("lack_units", listed=named, **counts))

    def _cell_means(self, row_values: Floats) -> Floats:
        """Return the means of the rows of each cell, (M, C); NaN if no row is finite."""
        finite = pd.Series(np.where(np.isfinite(row_values), row_values, np.nan))
        means = finite.groupby(self.cell_code).mean().reindex(range(prod(self.shape)))
        return means.to_numpy().reshape(self.shape)

    def _first_names(self, methods: Sequence[int] | Codes, numbers: NDArray[np.integer]) -> str:
        """Return the first methods, each with its number, and how many more there are."""
        return listed([f"{self.methods[m]} ({count(numbers[m])})" for m in methods], _NAMED)


_PERCENT = 10  # what shares are mixed with, if they are: all that is over 1 is this at least


def _mixes_units(values: Floats) -> bool:
    """Return whether some scores (n,) are surely shares of 1, and others percents.

    A score that may exceed 1, such as a loss, does so by little as well as by much.
    """
    over = values[values > 1]
    as_percents = (over >= _PERCENT) & (over <= 100)
    return mixes_scales(values) and values.min() >= 0 and bool(as_percents.all())


_APART = 30  # scores of a task this many times as large as usual are noted as another scale


# Options for ranking a table of scores: its columns, and how they count.

HIGHER, LOWER = "higher", "lower"
FAMILIES, TASKS = "families", "tasks"
WORST, LEFT_OUT = "worst", "left-out"


@dataclass(frozen=True)
class RankOptions(TablePart):
    """Options for ranking: the table, its columns, and how they count.

    Attributes
    ----------
    path : A CSV, Excel, Parquet or Arrow file with one row for each score of a method; a file or
        folder of lm-evaluation-harness, TabArena, the AutoML benchmark or benchopt; or a results
        folder.
    score : The column of scores, or several; they share one error rate.
    method : The column of what is ranked; one called method, model or algorithm by default.
    task : The column of tasks; one called task or dataset by default.
    split : The columns that tell the splits of a task apart, such as [repeat,fold].
    item : The column of questions, where each row is a method's answer to one.
    family : The column of families: tasks of one source, which go together.
    cost : The column of what a row cost, by which plans are priced.
    better : Whether higher or lower scores are better, for each score; by its name by default.
    epsilon : The largest difference that does not matter; by default 0.01, or 1 where scores are
        percentages.
    crashed : What an empty or NaN score counts as: the worst score of any method on that task,
        left-out, or a number. Without it such tables are refused.
    mean : What has equal weight in a mean: each family, or each task (with item=, each question).
    seed : The seed of random draws.
    out : The folder of the page and the JSON.
    """

    path: Path = option(
        Path,
        argument="SCORES",
        needed="nothing to rank: give a table of scores, such as scores.csv score=auc, or a folder "
        "by its name",
    )
    score: tuple[str, ...] = option((), shown="[COLUMN,...]")
    method: str = option("", shown="COLUMN")
    task: str = option("", shown="COLUMN")
    split: tuple[str, ...] = option((), shown="[COLUMN,...]")
    item: str = option("", shown="COLUMN")
    family: str = option("", shown="COLUMN")
    cost: str = option("", shown="COLUMN")
    better: tuple[str, ...] = option((), shown="higher|lower")
    epsilon: float | None = option(None, least=0)
    crashed: str = option("", shown="worst|left-out|NUMBER")
    mean: str = option(FAMILIES, choices=(FAMILIES, TASKS))
    seed: int = option(0, least=0)
    out: str = option("", shown="FOLDER")

    def __post_init__(self) -> None:
        """Refuse what cannot be asked."""
        check_declared(self)
        for direction in self.better:
            if direction not in (HIGHER, LOWER):
                raise UserError(f"better is '{direction}'; it must be higher or lower")
        ways, scores = len(self.better), len(self.score)
        if ways > 1 and ways != scores:
            raise _refusal("directions", ways=ways, scores=scores)
        if self.crashed not in ("", WORST, LEFT_OUT) and not is_number(self.crashed):
            raise _refusal("no_crash", crashed=self.crashed)


# Scores of a recognised format, and the columns that it has.


def read_recognised(options: RankOptions) -> BenchmarkTable | None:
    """Return the scores of logs or of finished runs; None for any table, or if columns are named.

    Raises
    ------
    UserError : as of :func:`benchmark_scores`.
    """
    path, named = options.path, options.method or options.task or options.item
    if not path.exists() or (path.is_file() and named):
        return None
    return benchmark_scores(path, options.score)


def as_read(options: RankOptions, table: BenchmarkTable) -> RankOptions:
    """Return the options with the columns of a recognised table, unless others are named.

    Plans use the first of several costs.
    """
    frame = table.frame
    names = [name for name in (METHOD, TASK, ITEM, FAMILY) if name in frame]
    columns: dict[str, Any] = {name: name for name in names if not getattr(options, name)}
    if SPLIT in frame and not options.split:
        columns[SPLIT] = (SPLIT,)
    if table.costs and not options.cost:
        columns["cost"] = table.costs[0]
    return replace(options, score=tuple(score.name for score in table.scores), **columns)
