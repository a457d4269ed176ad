"""Rank the methods of any benchmark: which are better, which may be best, what is open.

Give any table with a row for each score: methods by tasks, by splits or by questions, with holes.
The page says which ranks each method can have, all at once; who may be the best on average; how
probable it is that each is within a margin of the best on a new task; how any two differ; and how
many more tasks, splits or questions would tell those apart that are not.
Tasks of one source go together if you name their family; splits of a task share its rows, and are
averaged. Columns that are called method, task, split, item or family need not be named.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property, partial
from math import isfinite, isnan, nan
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from fairbench.cli.command import Asked, Page, Results, command
from fairbench.cli.verbs.audit import print_and_write
from fairbench.core import VERSION
from fairbench.core.errors import check_choice
from fairbench.core.options import typed_values
from fairbench.core.text import count, csv_text, file_name, shortened, two_digits
from fairbench.reporting.charts import forest
from fairbench.reporting.document import model
from fairbench.reporting.document.writing import DocumentReport, check_forms
from fairbench.reporting.group_tables import bars, named_table, sentence_of, sentences_of
from fairbench_rank import ranking, scores
from fairbench_rank.new_tasks import FEW, MOST_OF_FEW
from fairbench_rank.ranking import NAMED, Ranking
from fairbench_rank.scores import RankOptions, ScoreTable

MADE_FOR = "0.1"


def _print_ranking(options: Asked) -> None:
    """Print what the scores say, and write it.

    Examples
    --------
    fairbench rank scores.csv method=model task=dataset score=auc split=fold
    fairbench rank scores.csv score=auc family=source epsilon=0.005
    fairbench rank answers.parquet score=correct item=question family=document
    fairbench rank scores.csv 'score=[auc,log_loss]' crashed=worst cost=seconds
    fairbench rank lm_eval_output score=acc
    """
    check_forms(options.formats)
    report = _report_of(options.taken_as(RankOptions))
    beside = options.path.parent / f"{options.path.name.partition('.')[0]}-rank"
    folder = Path(options.out) if options.out else beside
    print_and_write(report.document, lambda: folder, "rank", options.formats)


COMMAND = command(_print_ranking, RankOptions, Page, Results)


# The ranking of a benchmark as a document, and as Python code asks for it.

_PAGE = "fairbench_rank:rank"
_DRAWN = 20  # methods in the figure
_MOST_ROWS = 30  # rows that a terminal shows
_MOST_PAIRS = 20_000  # more pairs are not written as a CSV file
_SHOWN_PAIRS = 200  # pairs on the page


def rank(
    frame: Any,
    *,
    method: str = "",
    task: str = "",
    score: Any = (),
    name: str = "scores",
    **options: Any,
) -> RankReport:
    """Say which methods of a benchmark are better, and what its tasks cannot tell.

    Parameters
    ----------
    frame : a row for each score: a pandas, polars or Arrow table, or the path of a file.
    method, task : the columns of what is ranked, and of what it is ranked on.
    score : the column of scores, or a list of them.
    name : what the report calls the table.
    options : any other option of ``fairbench rank``, which ``fairbench rank --help`` lists, such as
        ``split="fold"``, ``family="source"``, ``better="lower"`` or ``epsilon=0.02``.

    Returns
    -------
    A report that a notebook shows as a page, and that can be saved.

    Raises
    ------
    UserError : a column that is not there, or scores that cannot be ranked.

    Examples
    --------
    >>> import fairbench, numpy as np, pandas as pd
    >>> random = np.random.default_rng(0)
    >>> scores = pd.DataFrame({
    ...     "method": np.repeat(["forest", "linear", "nearest"], 40),
    ...     "task": np.tile(np.arange(40), 3),
    ...     "accuracy": np.repeat([0.85, 0.80, 0.80], 40) + random.normal(0, 0.02, 120),
    ... })
    >>> report = fairbench.rank(scores, score="accuracy")
    >>> report.table[["method", "first_rank", "last_rank"]].values.tolist()
    [['forest', 1, 1], ['linear', 2, 3], ['nearest', 2, 3]]
    >>> report.difference("forest", "linear").verdict
    'better'
    """
    declared = [field.name for field in fields(RankOptions) if field.name not in ("path", "out")]
    for name_of_option in options:
        check_choice("option of rank", name_of_option, declared)
    stated = {"method": method, "task": task, "score": score, **options}
    stated = {key: value for key, value in stated.items() if value is not None}
    file = Path(frame) if isinstance(frame, str | Path) else None
    rank_options = RankOptions(path=file or Path(name), **typed_values(RankOptions, stated))
    return _report_of(rank_options, None if file else frame)


def _report_of(options: RankOptions, source: Any = None) -> RankReport:
    """Return the report of scores from a path, or of a table in memory."""
    read = scores.read_recognised(options) if source is None else None
    if read is not None:
        options = scores.as_read(options, read)
    table = scores.read_scores(options, source, read)
    rankings = tuple(ranking.answers(table, options))
    return RankReport(_rank_document(table, rankings, options), rankings)


@dataclass(frozen=True, eq=False, repr=False)
class RankReport(DocumentReport):
    """The report on a benchmark, which :func:`fairbench.rank` returns.

    A notebook and ``print(report)`` show its summary, and ``report.save("rank.html")`` writes all
    of it; other endings give other forms, such as ``.docx``,
    ``.pdf``, ``.tex``, ``.md``, ``.json`` and ``.csv``.

    Attributes
    ----------
    table : a data frame with a row for each method and score: its possible ranks, whether it may
        be the best, and its difference from the method of the best mean, with an interval.
    findings : a data frame with a row for each pair of methods and score: their difference, its
        interval and the verdict (``better``, ``worse`` or ``open``). The intervals hold for all
        pairs at once.
    plans : a data frame with a row for each pair that matters most and is open: the leader and a
        rival that may be the best, or neighbours in the ranking if the best is settled; and how
        many tasks would tell them apart.
    tables : the tables of the page as data frames, by their titles.
    answers : the ranking by each score.
    document : the report as headings, sentences, tables and figures.

    Examples
    --------
    On 40 tasks, the forest is the best method; the other two cannot be told apart:

    >>> import fairbench, numpy as np, pandas as pd
    >>> random = np.random.default_rng(0)
    >>> scores = pd.DataFrame({
    ...     "method": np.repeat(["forest", "linear", "nearest"], 40),
    ...     "task": np.tile(np.arange(40), 3),
    ...     "accuracy": np.repeat([0.85, 0.80, 0.80], 40) + random.normal(0, 0.02, 120),
    ... })
    >>> report = fairbench.rank(scores, score="accuracy")
    >>> report.findings[["first", "second", "verdict"]].values.tolist()
    [['forest', 'linear', 'better'], ['forest', 'nearest', 'better'], ['linear', 'nearest', 'open']]
    >>> difference = report.difference("forest", "nearest")
    >>> round(difference.value, 2), difference.lower > 0.03
    (0.05, True)
    """

    answers: tuple[Ranking, ...] = ()
    name = "rank"

    @cached_property
    def table(self) -> pd.DataFrame:
        """A row for each method and score: ranks, mean, difference from the best-looking one."""
        return pd.DataFrame([row for answer in self.answers for row in answer.rows()])

    @cached_property
    def findings(self) -> pd.DataFrame:
        """A row for each pair of methods and score: its difference, interval and verdict."""
        return pd.concat([_pair_frame(answer) for answer in self.answers], ignore_index=True)

    @cached_property
    def plans(self) -> pd.DataFrame:
        """A row for each pair that matters most and is open: what would tell the two apart."""
        by_answer = [(of.scores.score, plan) for of in self.answers for plan in of.plans]
        return pd.DataFrame([{"score": score, **plan} for score, plan in by_answer])

    def difference(self, first: str, second: str, score: str = "") -> ranking.PairedDifference:
        """Return the difference of two methods, with an interval that holds for all pairs at once.

        Raises
        ------
        UserError : a method or a score that is not there.
        """
        by_score = {answer.scores.score: answer for answer in self.answers}
        score = score or self.answers[0].scores.score
        check_choice("score", score, by_score)
        return by_score[score].difference(first, second)


def _rank_document(
    table: ScoreTable, rankings: Sequence[Ranking], options: RankOptions
) -> model.Document:
    """Return the report on the rankings."""
    several, shape, warning = len(rankings) > 1, _shape(table), " ".join(table.warnings)
    sections: list[model.Section] = []
    files = {}
    for answer in rankings:
        score = answer.scores.score
        parts: dict[str, list[model.Block]] = {
            "Ranks": [rank_table(answer, title=f"Ranks by {score}")],
            "What is not resolved": _open_questions(answer, table),
            "Pairs": [_pairs(answer)],
        }
        prefix = f"{score}: " if several else ""
        sections += [model.Section(f"{prefix}{name}", part) for name, part in parts.items() if part]
        if answer.pair_count <= _MOST_PAIRS:
            name = file_name(f"pairs-{score}.csv" if several else "pairs.csv")
            files[name] = csv_text(_pair_frame(answer))
    summary = _summary(table, rankings)
    first_page = summary.shortened()
    conclusions: tuple[Sequence[str], Sequence[str]] = ((), ())
    if first_page.found != summary.found or first_page.still_open != summary.still_open:
        conclusions = (summary.found, summary.still_open)
    return model.Document(
        f"Ranking of {options.path.name}: {shape}",
        sections,
        verdict=model.Verdict(*conclusions, warning=warning),
        notes=_notes(table, rankings, options),
        origin=f"fairbench {VERSION}.",
        data={
            "version": VERSION,
            "options": {**asdict(options), "path": options.path.name},
            "shape": shape,
            "warnings": list(table.warnings),
            "notes": list(table.notes),
            "scores": [answer.plain() for answer in rankings],
        },
        files=files,
        summary=summary,
        made=model.made_from(options.path, options.seed),
    )


def _summary(table: ScoreTable, rankings: Sequence[Ranking]) -> model.ExecutiveSummary:
    """Return the first page: what was found, what is open, and what to do about it."""
    leading = rankings[0]
    several = len(rankings) > 1

    def of_each(*tellers: Callable[[Ranking], Iterable[str]]) -> list[str]:
        """Return what is told of every ranking; of several, each begins with its score."""
        told = ((of.scores.score, line) for of in rankings for tell in tellers for line in tell(of))
        return [f"{score}: {line}" if several else line for score, line in told]

    return model.ExecutiveSummary(
        of_each(ranking.found_sentences, ranking.new_task_sentences, ranking.fresh_sentences),
        sure=[ranking.simultaneous_sentences(rankings)],
        todo=of_each(partial(ranking.resolving_sentences, cells=_cells(table))),
        still_open=of_each(ranking.open_sentences),
        key_figures=None if several else rank_table(leading, leading.rows()[:NAMED], short=True),
        chart=_figure(leading),
        audited_title="What was ranked",
    )


def _shape(table: ScoreTable) -> str:
    """Return a sentence with the size of a table of scores: methods, tasks, families and scores."""
    questions = f"{count(table.questions)} questions"
    by = ", ".join(f"{score.score} ({score.better} is better)" for score in table.scores)
    family = f" from {count(len(table.families))} families" if table.families else ""
    tasks = f"{count(len(table.tasks))} tasks" if table.tasks else questions
    more = f", up to {count(table.splits)} splits each" if table.splits > 1 else ""
    if table.tasks and table.questions:
        more = f", {questions} in all"
    return f"{count(len(table.methods))} methods on {tasks}{family}{more}; {by}"


def _cells(table: ScoreTable) -> str:
    """Return the word for the repeated measurements of a task: questions or splits."""
    return "questions" if table.questions else "splits"


def rank_table(
    answer: Ranking,
    rows: Sequence[Mapping[str, Any]] = (),
    *,
    reference: str = "",
    short: bool = False,
    **about: Any,
) -> model.Table:
    """Return the table of ranks; a short one, without caption and bars, is for a summary.

    Parameters
    ----------
    rows : of the ranking; all of them by default. Those of a leaderboard have ``tasks``, ``cost``
        and ``need`` as well.
    reference : the method that a leaderboard's differences are from; the leader otherwise.
    about : further fields of the :class:`Table`, such as its tags.
    """
    rows = rows or answer.rows()
    base, decimals = reference or answer.leader, _decimals(answer)
    place = {name: index for index, name in enumerate(answer.methods)}
    ends = np.array([(row["lower"], row["difference"], row["upper"]) for row in rows], float)
    ends[~np.isfinite(ends).all(axis=1)] = np.nan
    shown = [
        {
            **row,
            "rank": "-".join(dict.fromkeys([f"{row['first_rank']}", f"{row['last_rank']}"])),
            "best": "yes" if row["may_be_best"] else "",
            "minus": row["difference"],
            "bar": bar,
            "near": ranking.near_in_words(answer, place[row["method"]]),
            "first": 100 * row["best_on_new"],
            "units": row[answer.plural],
            **(dict.fromkeys(("minus", "lower", "upper")) if row["method"] == base else {}),
        }
        for row, bar in zip(rows, bars([*map(tuple, ends.tolist())], answer.epsilon), strict=True)
    ]
    is_left_out = {
        "bar": short,
        "near": answer.new is None,
        "first": answer.new is None or short,
        "units": len(np.unique(answer.ran)) == 1,
        **dict.fromkeys(("tasks", "cost", "need"), not reference),
    }
    values: dict[str, object] = {
        "noun": "approach" if reference else "method",
        "score": answer.scores.score,
        "named": "reference" if reference else "first",
        "base": shortened(base, 40),
        "near": f"within {answer.epsilon:g}",
        "units": answer.plural,
    }
    caption = {"ranks": not short, "chances": not short and answer.new is not None}
    values["caption"] = "; ".join(sentences_of(_PAGE, caption, **values))
    about |= {"without": [name for name, left_out in is_left_out.items() if left_out]}
    about = {"most": _MOST_ROWS, "sortable": not short, "decimals": decimals, **about}
    return declared_table(_PAGE, "ranks", shown, values, **about)


def declared_table(
    page: str,
    name: str,
    rows: Iterable[Mapping[str, Any]],
    values: Mapping[str, Any] = MappingProxyType({}),
    *,
    without: Collection[str] = (),
    decimals: int = 3,
    **about: Any,
) -> model.Table:
    """Return a table of a page, as ``tables.toml`` declares it, with further fields of its own.

    Parameters
    ----------
    values : what its texts name.
    without : the fields whose columns are left out.
    decimals : of the columns that declare none.
    """
    table = named_table(page, name, rows, without=without, **values)
    columns = [
        replace(column, decimals=decimals) if column.decimals == model.Column.decimals else column
        for column in table.columns
    ]
    return replace(table, columns=columns, **about)


def _decimals(answer: Ranking) -> int:
    """Return the number of decimals that show a tenth of epsilon."""
    return int(np.clip(np.ceil(1 - np.log10(answer.epsilon or 0.001)), 0, 6))


def _pair_table(answer: Ranking, rows: Sequence[Mapping[str, Any]]) -> model.Table:
    """Return the table of differences of pairs of methods."""
    values = {"units": answer.plural}
    return declared_table(_PAGE, "pairs", rows, values, decimals=_decimals(answer))


def _pairs(answer: Ranking) -> model.Details:
    """Return a folded table of the first pairs, and the file that holds all pairs."""
    pairs = answer.pair_count
    rows: list[dict[str, Any]] = answer.pairs[:_SHOWN_PAIRS].to_dict("records")
    blocks: list[model.Block] = [_pair_table(answer, rows)]
    if pairs > len(rows):
        where = "pairs.csv" if pairs <= _MOST_PAIRS else "Python, report.difference(A, B)"
        remark = sentence_of(_PAGE, "first_pairs", shown=len(rows), pairs=pairs, where=where)
        blocks.insert(0, model.Paragraph(remark, "note"))
    return model.Details(f"All pairs ({count(pairs)})", blocks)


def _open_questions(answer: Ranking, table: ScoreTable) -> list[model.Block]:
    """Return the table of what would resolve each open pair that matters most, if there is any."""
    if not answer.plans:
        return []
    has_noise = any(not isnan(plan["noise"]) for plan in answer.plans)
    has_cost = any(not isnan(plan["cost"]) for plan in answer.plans)

    def unless_endless(value: float, text: str, endless: str) -> str | None:
        return None if isnan(value) else text if isfinite(value) else endless

    rows = [
        {
            **plan,
            "needed": unless_endless(needed, two_digits(needed), "over 10,000,000"),
            "times": unless_endless(times, f"{max(times, 1):.2g} times", "no number"),
            "share": 100 * plan["noise"],
        }
        for plan in answer.plans
        for needed, times in [(plan["units_needed"], plan["times_as_many"])]
    ]
    values: dict[str, object] = {"answer": answer, "cells": _cells(table)}
    said = {"needed": True, "or_cells": has_noise, "cost": has_cost}
    values["caption"] = "; ".join(sentences_of(_PAGE, said, **values))
    values["title"] = sentence_of(_PAGE, "settle" if answer.best[1:] else "neighbours")
    without = [*(["times", "share"] * (not has_noise)), *(["cost"] * (not has_cost))]
    return [
        declared_table(_PAGE, "open", rows, values, without=without, decimals=_decimals(answer))
    ]


def _figure(answer: Ranking) -> model.Figure | None:
    """Draw differences from the best-looking method."""
    rows = answer.rows()[1:_DRAWN]
    ends = np.array([(row["lower"], row["upper"]) for row in rows])
    ends[~np.isfinite(ends).all(axis=1)] = nan
    if np.isnan(ends).all():
        return None
    low, high = min(np.nanmin(ends), -answer.epsilon), max(np.nanmax(ends), answer.epsilon)
    room = 0.15 * (high - low)  # for the numbers below the ends of the shaded band
    span = float(f"{low - room:.2g}"), float(f"{high + room:.2g}")
    shown = zip(rows, ends.tolist(), strict=True)
    estimates = [(row["method"], row["difference"], *pair) for row, pair in shown]
    title = f"{answer.scores.score}, less that of {shortened(answer.leader, 40)}"
    about: dict[str, Any] = {"mark": 0.0, "band": (-answer.epsilon, answer.epsilon)}
    svg = forest(title, [estimates], span=span, decimals=_decimals(answer), **about)
    caption = "95 % intervals of all pairs at once; shaded: what makes no difference"
    return model.Figure(title, [svg], name="differences", caption=caption)


def _notes(table: ScoreTable, rankings: Sequence[Ranking], options: RankOptions) -> list[str]:
    """Return the basis of the results, and how they are to be read."""
    leading = rankings[0]
    on_new, of_tasks = leading.new is not None, options.mean == scores.TASKS and table.families
    compared = "of_tasks" if of_tasks else "of_units"
    if leading.unit == "question":
        compared = "of_questions"
    said = {
        compared: True,
        "epsilon": options.epsilon is None,
        "flips" if leading.held.flipped else "student": True,
        "new_tasks": on_new,
        "few_units": on_new and leading.units < FEW,
    }
    values: dict[str, object] = {
        "ranking": leading,
        "epsilons": ", ".join(dict.fromkeys(f"{answer.epsilon:g}" for answer in rankings)),
        "splits": sentence_of(_PAGE, "splits") * (table.splits > 1),
        "inner": "tasks" if table.tasks else "questions",
    }
    return [*table.notes, *sentences_of(_PAGE, said, few=FEW, most=MOST_OF_FEW, **values)]


def _pair_frame(answer: Ranking) -> pd.DataFrame:
    """Return all pairs, as Python code and a file have them."""
    frame = answer.pairs.rename(columns={"value": "difference", "units": answer.plural})
    frame.insert(0, "score", answer.scores.score)
    return frame
