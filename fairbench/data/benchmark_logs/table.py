"""Scores of methods on tasks, as every format of results is read, and what is known of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd

from fairbench.core.errors import DataError, UserError, unknown_name
from fairbench.core.formats import quoted, shortened

METHOD, TASK, SPLIT, ITEM, FAMILY = "method", "task", "split", "item", "family"
KEYS = (METHOD, TASK, SPLIT, ITEM, FAMILY)
_PLACE = (METHOD, TASK, SPLIT, ITEM)  # has one score at most
COMBINED = "score"  # the column of scores that differ from task to task
Better: TypeAlias = Literal["higher", "lower", ""]


@dataclass(frozen=True)
class Score:
    """The facts about a column of scores.

    Attributes
    ----------
    better : whether higher or lower values are better; empty if the file does not say.
    binary : whether every value is 0 or 1, wrong or right.
    error : the column of its standard errors; empty if there is none.
    epsilon : the largest difference that does not matter in practice, if declared; such
        a score is on one scale in all rows.
    """

    name: str
    better: Better = ""
    binary: bool = False
    error: str = ""
    epsilon: float | None = None


@dataclass(frozen=True, eq=False)
class BenchmarkTable:
    """Scores of methods on tasks.

    Attributes
    ----------
    frame : one row per method, task, and any split and item, with the columns ``method``,
        ``task``, ``split``, ``item`` and ``family`` (texts; the last three only where there are
        such), one column per score and per cost. A row without a score has NaN.
    format : the format in which it was read, such as ``inspect_ai logs``.
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

    @property
    def sentence(self) -> str:
        """A sentence on the source of the table."""
        frame = self.frame
        counts = [
            _counted(frame[name].nunique(), name) for name in (METHOD, TASK, SPLIT) if name in frame
        ]
        if ITEM in frame:
            counts.append(_counted(len(frame[[TASK, ITEM]].drop_duplicates()), ITEM))
        listed = f"{', '.join(counts[:-1])} and {counts[-1]}"
        return f"{self.format}: {listed}; {', '.join(map(_described, self.scores))}"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _described(score: Score) -> str:
    way = f"{score.better} is better" if score.better else "which way is better is not said"
    values = "right or wrong, " if score.binary else ""
    return f"{shortened(score.name)} ({values}{way})"


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
        if name not in scores:
            raise unknown_name(f"score of the {table.format}", name, scores)
    kept = [scores[name] for name in dict.fromkeys(names)] or list(table.scores)
    where = table.frame[[score.name for score in kept]].notna().groupby(table.frame[TASK]).any()
    one_each = len(kept) > 1 and bool((where.sum(axis=1) <= 1).all())
    if len(kept) > 1 and not names and not one_each:
        listed = ", ".join(shortened(score.name) for score in kept[:8])
        if len(kept) > 8:
            listed += f" and {len(kept) - 8} more"
        raise UserError(
            f"the {table.format} have {len(kept)} scores: {listed}; name the one to rank by, "
            f"such as score={kept[0].name}"
        )
    dropped = {score.name for score in table.scores} - {score.name for score in kept}
    errors = {score.error for score in table.scores if score.name in dropped} - {""}
    chosen = _select_tasks(table, where.index[where.any(axis=1)])
    frame = chosen.frame.drop(columns=[*dropped, *errors])
    chosen = replace(chosen, frame=frame, scores=tuple(kept))
    return _combine_scores(chosen) if one_each else chosen


def _select_tasks(table: BenchmarkTable, tasks: pd.Index) -> BenchmarkTable:
    """Return the rows of some tasks, with a note on others: no method has the score there."""
    kept = table.frame[TASK].isin(tasks)
    if not kept.any():
        raise DataError(f"the {table.format} have no values of that score")
    if kept.all():
        return table
    left_out = table.frame[TASK][~kept].unique()
    listed = ", ".join(map(shortened, left_out[:5])) + (" ..." if len(left_out) > 5 else "")
    verb = "is" if len(left_out) == 1 else "are"
    note = f"no method has that score on {listed}, which {verb} left out"
    frame = table.frame[kept].reset_index(drop=True)
    return replace(table, frame=frame, notes=(*table.notes, note))


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
    errors = [score.error for score in table.scores if score.error]
    error = ""
    if errors:
        error = f"{COMBINED}_stderr"
        merged = table.frame[errors].bfill(axis=1).iloc[:, 0]
        frame = frame.drop(columns=errors).assign(**{error: merged})
    score = Score(COMBINED, table.scores[0].better, all(s.binary for s in table.scores), error)
    note = f"every task has one score of its own ({', '.join(map(shortened, names))})"
    return replace(table, frame=frame, scores=(score,), notes=(*table.notes, note))


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
    frame = frame[[*keys, *(name for name in frame if name not in keys)]]
    frame = frame.assign(**{name: frame[name].astype(str) for name in keys})
    check_once(frame, source)
    frame.columns.name = None
    return frame.reset_index(drop=True)


def check_once(frame: pd.DataFrame, source: str) -> None:
    """Refuse two rows of one method, task, split and item."""
    key_columns = [name for name in _PLACE if name in frame]
    again = frame.duplicated(key_columns)
    if again.any():
        repeated = frame[again].iloc[0]
        where = ", ".join(f"{name} {quoted(repeated[name])}" for name in key_columns)
        raise DataError(
            f"the {source} have {int(again.sum())} rows too many: {where} is there twice; keep one "
            "of them, or name what tells them apart"
        )


def is_binary(values: pd.Series) -> bool:
    """Return whether there are values, and every one is 0 or 1."""
    present = values.dropna()
    return bool(len(present)) and bool(present.isin([0, 1]).all())


def number(value: object) -> float:
    """Return a number or a truth as a float; NaN for everything else."""
    return float(value) if isinstance(value, int | float) else float("nan")


def distinct_names(
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
    >>> distinct_names(["gpt", "gpt", "phi"], [{"shots": 0}, {"shots": 5}, {"shots": 0}], "aaa")
    ['gpt shots=0', 'gpt shots=5', 'phi']
    """
    of_name: dict[str, list[int]] = {}
    for index, name in enumerate(names):
        of_name.setdefault(name, []).append(index)
    distinct = list(names)
    for indices in of_name.values():
        if len(indices) == len({among[index] for index in indices}):
            continue
        differing = _differing_settings([settings[index] for index in indices])
        for index in indices:
            words = [f"{key}={_value_text(settings[index].get(key))}" for key in differing]
            distinct[index] = " ".join([names[index], *words])
    return distinct


def _differing_settings(settings: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the names of the settings that are not the same in all."""
    names = dict.fromkeys(name for options in settings for name in options)
    reference = settings[0]
    return [
        name for name in names if any(other.get(name) != reference.get(name) for other in settings)
    ]


def _value_text(value: object) -> str:
    return "none" if value is None else shortened(str(value).replace(" ", ""))


def families(groups: Mapping[str, Iterable[str]]) -> dict[str, str]:
    """Return the outermost group of every task, by groups that list tasks and groups.

    Examples
    --------
    >>> families({"mmlu": ["stem"], "stem": ["algebra"]})
    {'stem': 'mmlu', 'algebra': 'mmlu'}
    """
    above = {
        name: group for group, names in groups.items() for name in names if name != group
    }  # fmt: skip
    outermost = {}
    for name in above:
        group = above[name]
        passed = {name}
        while group in above and group not in passed:
            passed.add(group)
            group = above[group]
        outermost[name] = group
    return outermost


def as_number(values: pd.Series, column: str, file: str) -> pd.Series:
    """Return a column of texts as numbers, NaN where one is blank or says so.

    Raises
    ------
    DataError : a text that is no number.
    """
    texts = values.astype(str).str.strip()
    blank = texts.str.lower().isin(_BLANK)
    numbers = pd.to_numeric(texts.where(~blank), errors="coerce").astype(float)
    wrong = numbers.isna() & ~blank
    if wrong.any():
        row = int(np.flatnonzero(wrong.to_numpy())[0])
        raise DataError(
            f"{file}: column '{column}' holds {quoted(texts.iloc[row])} in row {row + 1}, which is "
            "no number"
        )
    return numbers


_BLANK = ("", "nan", "na", "n/a", "none", "null")
