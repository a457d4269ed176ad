"""A table of scores as arrays: methods by tasks by splits or questions, with holes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.comparison.rank.question import (
    HIGHER,
    LEFT_OUT,
    LOWER,
    THESE,
    USUAL_NAMES,
    RankOptions,
)
from fairbench.core.arrays import Floats
from fairbench.core.errors import UserError
from fairbench.core.formats import count, quoted
from fairbench.data.any_table import check_columns, names_in, read_any_table
from fairbench.data.benchmark_logs.table import BenchmarkTable
from fairbench.data.columns import Place, mixed_scales, mixes_scales
from fairbench.data.in_memory import Table, names_of_table, texts_of_table
from fairbench.data.tabular import to_numbers
from fairbench.metrics.registry import find

Codes = NDArray[np.intp]
MOST_METHODS = 2000
_MOST_NUMBERS = 200_000_000
_BLANK = re.compile(r"\s*([+-]?(nan|inf|infinity)|na|n/a|none|null|-|)\s*", re.IGNORECASE)
_SMALLER = re.compile(
    r"error|loss|rmse|mse|mae|nll|brier|perplexity|latency|time|cost|regret|(^|_)ece($|_)", re.I
)
_LARGER = re.compile(r"acc|auc|f1|score|precision|recall|win|bleu|rouge|correct|r2|reward", re.I)
_NAMED = 3  # that a sentence lists


@dataclass(frozen=True, eq=False)
class Scores:
    """One score of M methods in C cells: splits of tasks, or questions.

    Attributes
    ----------
    score : its name. better : ``higher`` or ``lower``.
    values : (M, C) as they were given; NaN where a method has none.
    cost : (M, C) of what each took, or None.
    epsilon : the largest difference that does not matter in practice, where that is declared.
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
    """Scores with what their cells are.

    Attributes
    ----------
    methods : names. tasks : names; empty of questions without tasks.
    families : names; empty where none are given.
    task : (C,) the task of each cell, or the cell itself of questions without tasks.
    family : (K,) the family of each task, or the task itself.
    splits : how many splits a task has at most; 0 of questions.
    questions : how many questions there are; 0 of splits.
    notes : what a reader has to know. warnings : what may be wrong.
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
    source : the table, where it is in memory; the path is then only what messages call it.
    read : the scores of a format that was recognised, in place of a table.

    Raises
    ------
    UserError : a column that is not there, rows that come twice, scores that are none or of two
        scales, or too few methods or tasks to compare.
    """
    file = options.path.name
    ways: dict[str, str] = {}
    epsilons: dict[str, float] = {}
    if read is not None:
        source = read.frame
        epsilons = {
            score_column.name: score_column.epsilon
            for score_column in read.scores
            if score_column.epsilon is not None
        }
        ways = {score.name: score.better for score in read.scores if score.better}
    names = names_of_table(source) if source is not None else _names(options)
    options, told = _with_usual_names(options, names, file)
    if read is not None:
        told = [_sentence(text) for text in (read.sentence, *read.notes)]
    columns = _columns(options)
    numeric = [*options.score, *filter(None, [options.cost])]
    if source is None:
        frame = read_any_table(options.path, columns, numeric=numeric)
    else:
        check_columns(file, columns, names)
        frame = texts_of_table(source, file, only=columns, numeric=numeric)
    if not len(frame):
        raise UserError(f"{file}: no rows below the header")
    notes = [*frame.attrs.get("notes", []), *told]
    warnings = [_sentence(text) for text in read.warnings] if read is not None else []
    return _Reading(options, frame, file, notes, warnings, ways, epsilons).table()


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _names(options: RankOptions) -> Sequence[str]:
    from fairbench.data.any_table import check_file

    check_file(options.path)
    return names_in(options.path, _columns(options))


def _columns(options: RankOptions) -> list[str]:
    single = (options.method, options.task, options.item, options.family, options.cost)
    return list(dict.fromkeys([*filter(None, single), *options.split, *options.score]))


def _with_usual_names(
    options: RankOptions, names: Sequence[str], file: str
) -> tuple[RankOptions, list[str]]:
    """Return the options with columns by their usual names, and what is to be said of it."""
    plain = {name.lower(): name for name in reversed(names)}
    named = {*_columns(options)}
    guessed: dict[str, Any] = {}
    for role, usual in USUAL_NAMES.items():
        has = [plain[name] for name in usual if name in plain and plain[name] not in named]
        if not getattr(options, role) and has:
            guessed[role] = tuple(has) if role == "split" else has[0]
    options = replace(options, **guessed)
    if not options.method:
        raise UserError(
            f"{file}: no column is named for the methods: give method=COLUMN, one of "
            f"{', '.join(map(str, names[:12]))}"
        )
    if not options.task and not options.item:
        raise UserError(
            f"{file}: no column is named for the tasks: give task=COLUMN, or item=COLUMN where "
            "each row is an answer to one question"
        )
    if not options.score:
        raise UserError(
            f"{file}: no column is named for the scores: give score=COLUMN, one of "
            f"{', '.join(name for name in map(str, names) if name not in _columns(options))}"
        )
    told = [f"{role}={_listed(value)}" for role, value in guessed.items()]
    return options, ([f"Columns taken by their names: {', '.join(told)}."] if told else [])


def _listed(value: object) -> str:
    if isinstance(value, tuple):
        return value[0] if len(value) == 1 else f"[{','.join(value)}]"
    return str(value)


@dataclass(frozen=True, eq=False)
class _Reading:
    """The steps from a frame of texts to arrays; `notes` and `warnings` fill on the way.

    Attributes
    ----------
    ways : which values are better, of the scores whose format says so.
    epsilons : of the scores that declare one, and so are on one scale.
    """

    options: RankOptions
    frame: pd.DataFrame
    file: str
    notes: list[str]
    warnings: list[str]
    ways: Mapping[str, str]
    epsilons: Mapping[str, float]

    def table(self) -> ScoreTable:
        """Return the scores."""
        options = self.options
        method, methods = self._codes(options.method)
        if len(methods) < 2:
            raise UserError(
                f"{self.file}: column '{options.method}' holds one method, {quoted(methods[0])}: "
                "ranking needs two"
            )
        if len(methods) > MOST_METHODS:
            raise UserError(
                f"{self.file}: column '{options.method}' holds {count(len(methods))} methods; at "
                f"most {count(MOST_METHODS)} are ranked, as all pairs are compared: keep those "
                "that matter, or name another column"
            )
        cell, task, tasks = self._cells()
        family, families = self._families(cell, task)
        self._check_units(tasks, families, len(task))
        size = len(methods) * len(task)
        if size > _MOST_NUMBERS:
            raise UserError(
                f"{self.file}: {count(len(methods))} methods in {count(len(task))} cells are "
                f"{count(size)} numbers; at most {count(_MOST_NUMBERS)} are ranked"
            )
        place = self._places(method, cell, len(task))
        scores = tuple(
            self._scores(name, number, place, (len(methods), len(task)), task, methods)
            for number, name in enumerate(options.score)
        )
        self._say_holes(scores[0].values, task, tasks, methods)
        questions = len(task) if options.item else 0
        return ScoreTable(
            methods=methods,
            tasks=tasks,
            families=families,
            task=task,
            family=family,
            splits=0 if options.item else int(np.bincount(task).max()),
            questions=questions,
            scores=scores,
            notes=tuple(self.notes),
            warnings=tuple(self.warnings),
        )

    def _codes(self, column: str) -> tuple[Codes, tuple[str, ...]]:
        """Return a column's values as codes, in the order in which they first come."""
        text = self.frame[column].astype(str).str.strip()
        Place(self.file, column).refuse_blank(text, "a name: the cell is empty")
        codes, values = pd.factorize(text)
        return codes.astype(np.intp), tuple(map(str, values))

    def _cells(self) -> tuple[Codes, Codes, tuple[str, ...]]:
        """Return the cell of each row, the task of each cell, and the tasks."""
        options = self.options
        parts = []
        if options.task:
            row_task, tasks = self._codes(options.task)
        else:
            row_task, tasks = np.zeros(len(self.frame), np.intp), ("",)
        parts.append(row_task)
        for column in [options.item] if options.item else options.split:
            parts.append(self._codes(column)[0])
        cell = parts[0]
        for part in parts[1:]:
            cell = pd.factorize(cell * (int(part.max()) + 1) + part)[0].astype(np.intp)
        task = np.zeros(int(cell.max()) + 1, np.intp)
        task[cell] = row_task
        if len(tasks) > 1:
            return cell, task, tasks
        if options.item:
            return cell, np.arange(len(task)), ()
        return cell, task, tasks

    def _families(self, cell: Codes, task: Codes) -> tuple[Codes, tuple[str, ...]]:
        """Return the family of each task, which is the task itself where none is given."""
        of_task = np.arange(int(task.max()) + 1)
        if not self.options.family:
            return of_task, ()
        row_family, families = self._codes(self.options.family)
        row_task = task[cell]
        family = np.zeros(len(of_task), np.intp)
        family[row_task] = row_family
        wrong = family[row_task] != row_family
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            what = self.options.task or self.options.item
            raise UserError(
                f"{self.file}: column '{self.options.family}', row {row + 1}: {what} "
                f"{quoted(self.frame[what].iloc[row])} is of the family "
                f"{quoted(families[row_family[row]])}, and elsewhere of another; a task has one"
            )
        return family, families

    def _check_units(self, tasks: tuple[str, ...], families: tuple[str, ...], cells: int) -> None:
        options = self.options
        if options.about == THESE and not (options.item and tasks):
            raise UserError(
                "about=these is for questions of several tasks: name item= and task=, or leave it "
                "out"
            )
        if len(tasks) == 1 and not options.item:
            raise UserError(
                f"{self.file}: column '{options.task}' holds one task, {quoted(tasks[0])}: how "
                "methods do on a new task cannot be told from one; where each row is a question of "
                "it, name item="
            )
        if len(families) == 1 and options.about != THESE:
            raise UserError(
                f"{self.file}: column '{options.family}' holds one family, {quoted(families[0])}: "
                "leave family= out to compare its tasks as if they were independent"
            )
        if cells < 2:
            raise UserError(f"{self.file}: one question; ranking needs several")

    def _places(self, method: Codes, cell: Codes, cells: int) -> Codes:
        """Return where each row goes in a matrix of methods by cells; refuse rows that clash."""
        place = method * cells + cell
        several = bool(self.options.item and self.options.split)
        if several:
            parts = [self._codes(column)[0] for column in self.options.split]
            key = pd.DataFrame({"place": place, **{str(i): part for i, part in enumerate(parts)}})
            twice = key.duplicated(keep=False).to_numpy()
        else:
            twice = pd.Series(place).duplicated(keep=False).to_numpy()
        if not twice.any():
            return place
        rows = np.flatnonzero(twice)
        first = int(rows[0])
        others = rows[place[rows] == place[first]]
        if len(self.frame.iloc[rows].drop_duplicates()) == len(np.unique(place[rows])):
            extra = int(pd.Series(place).duplicated().sum())
            self.notes.append(
                f"Rows that say the same as an earlier one, counted once: {count(extra)} (the "
                f"first is row {int(np.flatnonzero(pd.Series(place).duplicated())[0]) + 1})."
            )
            return place
        named = [self.options.method, self.options.task or self.options.item]
        what = " and ".join(f"{name} {quoted(self.frame[name].iloc[first], 30)}" for name in named)
        hint = "tell them apart with split=COLUMN"
        if self.options.split or self.options.item:
            hint = "keep one of them"
        if len(self.options.split) == 1 and not self.options.item:
            hint = "keep one, or name all columns that tell splits apart: split=[A,B]"
        raise UserError(
            f"{self.file}: {len(others)} rows of {what} have different scores (rows "
            f"{others[0] + 1} and {others[1] + 1}): {hint}"
        )

    def _scores(
        self,
        name: str,
        number: int,
        place: Codes,
        shape: tuple[int, int],
        task: Codes,
        methods: tuple[str, ...],
    ) -> Scores:
        column = self.frame[name]
        given = to_numbers(column).copy()
        finite = np.isfinite(given)
        if not finite.all() and column.dtype.kind not in "iuf":
            text = column.astype(str)
            odd = ~finite & ~text.str.fullmatch(_BLANK).to_numpy(bool)
            truths = text[odd].str.lower().map({"true": 1.0, "false": 0.0})
            if odd.any() and truths.notna().all():
                given[odd] = truths.to_numpy()
                finite = np.isfinite(given)
            else:
                Place(self.file, name).refuse(text, odd, "number", said="no")
        if name not in self.epsilons and mixes_scales(given[finite]):
            raise mixed_scales(given, column.astype(str), Place(self.file, name))
        better = self._direction(name, number)
        values = _averaged(given, place, shape)
        if not finite.all():
            values = self._crashes(name, values, finite, place, task, methods, better)
        self._compare_scales(name, values, task)
        cost = None
        if self.options.cost:
            cost = _averaged(to_numbers(self.frame[self.options.cost]), place, shape)
        return Scores(name, better, values, cost, self.epsilons.get(name))

    def _direction(self, name: str, number: int) -> str:
        """Return the direction of a score, and warn where it contradicts the name."""
        declared = find(name)
        by_name = ""
        if declared is not None and declared.better in (HIGHER, LOWER):
            by_name = str(declared.better)
        elif _SMALLER.search(name):
            by_name = LOWER
        elif _LARGER.search(name):
            by_name = HIGHER
        by_name = self.ways.get(name, by_name)
        asked = self.options.better
        if not asked and name in self.ways:
            return by_name
        if not asked:
            self.notes.append(
                f"{(by_name or HIGHER).capitalize()} {name} is taken to be better"
                f"{', by its name' if by_name else ''}; better= says otherwise."
            )
            return by_name or HIGHER
        direction = asked[number if len(asked) > 1 else 0]
        if by_name and direction != by_name:
            self.warnings.append(
                f"better={direction} is asked for, but of a score called '{name}' {by_name} is "
                "usually better: if so, every rank is upside down."
            )
        return direction

    def _crashes(
        self,
        name: str,
        values: Floats,
        finite: NDArray[np.bool_],
        place: Codes,
        task: Codes,
        methods: tuple[str, ...],
        better: str,
    ) -> Floats:
        """Return scores with what crashed counted as is asked for."""
        rows = np.flatnonzero(~finite)
        broken = np.zeros(values.shape, bool)
        broken.flat[place[rows]] = True
        broken &= ~np.isfinite(values)
        who = np.flatnonzero(broken.any(axis=1))
        listed = _few([f"{methods[method]} ({count(broken[method].sum())})" for method in who])
        if not self.options.crashed:
            first = int(rows[0])
            raise UserError(
                f"{self.file}: column '{name}', row {first + 1}: {_scores_are(len(rows))} empty or "
                f"not finite, of {listed}: say what such a score counts, crashed=worst (the worst "
                "of that task), crashed=left-out, or a number"
            )
        value = self.options.crashed_value
        said = f"{name}: {_scores_are(broken.sum())} empty or not finite, of {listed}"
        if self.options.crashed == LEFT_OUT:
            self.warnings.append(
                f"{said}; left out, which flatters methods that fail where it is hard."
            )
            return values
        if value is not None:
            self.notes.append(f"{said}; such a score counts as {value:g}.")
            return np.where(broken, value, values)
        self.notes.append(
            f"{said}; they count as the worst score that any method has on that task."
        )
        filled = np.where(np.isfinite(values), values, -np.inf if better == LOWER else np.inf)
        by_cell = (filled.max if better == LOWER else filled.min)(axis=0)
        worst_of_task = np.full(int(task.max()) + 1, -np.inf if better == LOWER else np.inf)
        (np.maximum if better == LOWER else np.minimum).at(worst_of_task, task, by_cell)
        worst = np.broadcast_to(worst_of_task[task], values.shape)
        none = ~np.isfinite(worst) & broken
        if none.any():
            tasks = len(np.unique(task[np.flatnonzero(none.any(axis=0))]))
            self.warnings.append(f"{count(tasks)} tasks have no finite score at all: left out.")
        return np.where(broken & np.isfinite(worst), worst, values)

    def _compare_scales(self, name: str, values: Floats, task: Codes) -> None:
        """Warn where a few tasks' scores vary so much more that they make the mean."""
        tasks = int(task.max()) + 1
        if self.options.item or tasks < 3:
            return
        with np.errstate(invalid="ignore"):
            known = np.isfinite(values)
            size = np.where(known, np.abs(values), 0).sum(axis=0) / np.maximum(known.sum(0), 1)
        of_task = np.bincount(task, size, tasks) / np.bincount(task, minlength=tasks)
        usual = float(np.median(of_task))
        if usual > 0 and of_task.max() > _APART * usual:
            self.warnings.append(
                f"The scores of {name} on some tasks are over {_APART} times as large as on most: "
                "these tasks make the mean. Rank a score that is on one scale, such as a share of "
                "each task's best."
            )

    def _say_holes(
        self, values: Floats, task: Codes, tasks: tuple[str, ...], methods: tuple[str, ...]
    ) -> None:
        """Say which methods lack what others have."""
        known = np.isfinite(values)
        if known.all():
            return
        if not tasks:
            has, whole, what = known.sum(axis=1), known.shape[1], "questions"
        else:
            of_task = np.zeros((len(methods), len(tasks)), bool)
            for number in range(len(tasks)):
                of_task[:, number] = known[:, task == number].any(axis=1)
            has, whole, what = of_task.sum(axis=1), len(tasks), "tasks"
        short = [place for place in np.argsort(has, kind="stable") if has[place] < whole]
        if not short:
            self.notes.append(
                "Some methods lack splits that others have: two methods are compared on the splits "
                "that both have."
            )
            return
        listed = _few([f"{methods[place]} ({count(has[place])})" for place in short])
        subject = "1 method lacks" if len(short) == 1 else f"{count(len(short))} methods lack"
        self.notes.append(
            f"{subject} some of the {count(whole)} {what}: {listed}. Two methods are compared on "
            f"the {what} that both have, so that nobody gains by leaving out what is hard."
        )


_APART = 30


def _averaged(given: Floats, place: Codes, shape: tuple[int, int]) -> Floats:
    """Return the means of rows at their places, (M, C); NaN where no row is finite."""
    finite = np.isfinite(given)
    size = shape[0] * shape[1]
    values = np.full(size, np.nan)
    values[place[finite]] = given[finite]
    rows = int(finite.sum())
    if len(np.unique(place[finite])) < rows:
        sums = np.bincount(place[finite], given[finite], size)
        counts = np.bincount(place[finite], minlength=size)
        values = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
    return values.reshape(shape)


def _scores_are(number: int) -> str:
    return "1 score is" if number == 1 else f"{count(number)} scores are"


def _few(names: Sequence[str]) -> str:
    """Return a list of at most so many names."""
    more = f" and {count(len(names) - _NAMED)} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
