"""The ranking of a benchmark as a document, and as Python code asks for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from math import isfinite, isnan
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fairbench.comparison.rank.answer import (
    PairedDifference,
    Ranking,
    ResolutionPlan,
    answers,
)
from fairbench.comparison.rank.question import THESE, RankOptions
from fairbench.comparison.rank.sentences import (
    NAMED,
    PLURALS,
    found_sentences,
    fresh_sentences,
    near_in_words,
    new_task_sentences,
    open_sentences,
    resolving_sentences,
    simultaneous_sentences,
    unseen_in_words,
)
from fairbench.comparison.rank.sources import as_read, read_recognised
from fairbench.comparison.rank.table import ScoreTable, read_scores
from fairbench.core import VERSION
from fairbench.core.errors import unknown_name
from fairbench.core.escaping import file_name
from fairbench.core.formats import count, csv_text, interval, shortened, two_digits
from fairbench.core.typed_options import typed_values
from fairbench.data.benchmark_logs.table import BenchmarkTable
from fairbench.inference.comparing.new_tasks import FEW, MOST_OF_FEW
from fairbench.reporting.charts import forest
from fairbench.reporting.document.making import made_from
from fairbench.reporting.document.model import (
    Bar,
    Block,
    Column,
    Details,
    Document,
    ExecutiveSummary,
    Figure,
    Paragraph,
    Section,
    Table,
    Verdict,
)
from fairbench.reporting.document.report import DocumentReport
from fairbench.reporting.group_tables import bars, table_of

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
        ``split="fold"``, ``family="source"``, ``better="lower"`` or ``within=0.02``.

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
    for option in options:
        if option not in declared:
            raise unknown_name("option of rank", option, declared)
    stated = {"method": method, "task": task, "score": score, **options}
    stated = {option: value for option, value in stated.items() if value is not None}
    file = Path(frame) if isinstance(frame, str | Path) else None
    rank_options = RankOptions(path=file or Path(name), **typed_values(RankOptions, stated))
    return report_of(rank_options, None if file else frame)


def report_of(
    options: RankOptions, source: Any = None, read: BenchmarkTable | None = None
) -> RankReport:
    """Return the report of scores from a path, a table in memory, or a table already `read`."""
    if source is None and read is None:
        read = read_recognised(options)
    if read is not None:
        options = as_read(options, read)
    table = read_scores(options, source, read)
    rankings = tuple(answers(table, options))
    return RankReport(rank_document(table, rankings, options), rankings)


@dataclass(frozen=True, eq=False, repr=False)
class RankReport(DocumentReport):
    """The report on a benchmark, which :func:`fairbench.rank` returns.

    A notebook shows its summary as a page, and ``print(report)`` prints all of it.
    ``report.save("rank.html")`` writes it; other endings give other forms, such as ``.docx``,
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
        return pd.DataFrame([row for answer in self.answers for row in _rank_rows(answer)])

    @cached_property
    def findings(self) -> pd.DataFrame:
        """A row for each pair of methods and score: its difference, interval and verdict."""
        return pd.concat([_pair_frame(answer) for answer in self.answers], ignore_index=True)

    @cached_property
    def plans(self) -> pd.DataFrame:
        """A row for each pair that matters most and is open: what would tell the two apart."""
        rows = [
            {"score": answer.scores.score, **_plain_plan(plan)}
            for answer in self.answers
            for plan in answer.plans
        ]
        return pd.DataFrame(rows)

    def difference(self, first: str, second: str, score: str = "") -> PairedDifference:
        """Return the difference of two methods, with an interval that holds for all pairs at once.

        Raises
        ------
        UserError : a method or a score that is not there.
        """
        by_score = {answer.scores.score: answer for answer in self.answers}
        score = score or self.answers[0].scores.score
        if score not in by_score:
            raise unknown_name("score", score, by_score)
        return by_score[score].difference(first, second)


def rank_document(table: ScoreTable, rankings: Sequence[Ranking], options: RankOptions) -> Document:
    """Return the report on the rankings."""
    several = len(rankings) > 1
    summary = _summary(table, rankings, options)
    sections: list[Section] = []
    for answer in rankings:
        prefix = f"{answer.scores.score}: " if several else ""
        sections.append(Section(f"{prefix}Ranks", [_rank_table(answer, list(_rank_rows(answer)))]))
        if options.pair:
            pair = _pair_table(answer, [answer.difference(*options.pair)])
            sections.append(Section(f"{prefix}{' and '.join(options.pair)}", [pair]))
        if answer.plans:
            sections.append(
                Section(f"{prefix}What is not resolved", list(_open_questions(answer, table)))
            )
        sections.append(Section(f"{prefix}Pairs", [_pairs(answer)]))
    files = {}
    for answer in rankings:
        if len(answer.paired.first) <= _MOST_PAIRS:
            name = f"pairs-{answer.scores.score}.csv" if several else "pairs.csv"
            files[file_name(name)] = csv_text(_pair_frame(answer))
    return Document(
        f"Ranking of {options.path.name}: {shape(table, options)}",
        sections,
        verdict=_verdict(table, summary),
        notes=[*_notes(table, rankings, options)],
        origin=f"fairbench {VERSION}.",
        data=_data(table, rankings, options),
        files=files,
        summary=summary,
        made=made_from(options.path, options.seed),
    )


def _verdict(table: ScoreTable, summary: ExecutiveSummary) -> Verdict | None:
    """Return the warnings, with all findings if the first page has no room for them."""
    warning = " ".join(table.warnings)
    first_page = summary.shortened()
    if first_page.found == summary.found and first_page.still_open == summary.still_open:
        return Verdict((), (), warning=warning) if warning else None
    return Verdict(summary.found, summary.still_open, warning=warning)


def _summary(
    table: ScoreTable, rankings: Sequence[Ranking], options: RankOptions
) -> ExecutiveSummary:
    """Return the first page: what was found, what is open, and what to do about it."""
    leading_ranking = rankings[0]
    several = len(rankings) > 1
    findings: list[str] = []
    still_open: list[str] = []
    todo: list[str] = []
    for answer in rankings:
        prefix = f"{answer.scores.score}: " if several else ""
        findings += [f"{prefix}{sentence}" for sentence in _result_sentences(answer)]
        still_open += [f"{prefix}{sentence}" for sentence in open_sentences(answer)]
        todo += [f"{prefix}{sentence}" for sentence in resolving_sentences(answer, _cells(table))]
    return ExecutiveSummary(
        findings,
        sure=[
            simultaneous_sentences(
                "all scores" if several else "",
                on_new_tasks=any(answer.new is not None for answer in rankings),
                unseen=map(unseen_in_words, rankings),
            )
        ],
        todo=todo,
        still_open=still_open,
        key_figures=_key_figures(leading_ranking) if not several else None,
        chart=_figure(leading_ranking),
        audited_title="What was ranked",
    )


def shape(table: ScoreTable, options: RankOptions) -> str:
    """Return a sentence with the size of a table of scores: methods, tasks, families and scores."""
    methods = f"{count(len(table.methods))} methods"
    scores = ", ".join(f"{scores.score} ({scores.better} is better)" for scores in table.scores)
    family = f" from {count(len(table.families))} families" if table.families else ""
    if not table.tasks:
        rows_in_words = f"{count(table.questions)} questions{family}"
    else:
        rows_in_words = f"{count(len(table.tasks))} tasks{family}"
        if table.questions:
            rows_in_words += f", {count(table.questions)} questions in all"
        elif table.splits > 1:
            rows_in_words += f", up to {count(table.splits)} splits each"
    return f"{methods} on {rows_in_words}; {scores}"


def _result_sentences(answer: Ranking) -> Iterator[str]:
    """Yield the sentences on what the scores show."""
    yield from found_sentences(answer)
    yield from new_task_sentences(answer)
    yield from fresh_sentences(answer)


def _cells(table: ScoreTable) -> str:
    """Return the word for the repeated measurements of a task: questions or splits."""
    return "questions" if table.questions else "splits"


def _key_figures(answer: Ranking) -> Table:
    """Return the short table of the first methods, for the summary."""
    return _rank_table(answer, list(_rank_rows(answer))[:NAMED], short=True)


def _rank_rows(answer: Ranking) -> Iterator[dict[str, Any]]:
    """Yield the row of each method in the table of ranks, best first."""
    for index, name in enumerate(answer.methods):
        difference = None if index == 0 else answer.difference(name, answer.leader)
        yield {
            "score": answer.scores.score,
            "method": name,
            "first_rank": int(answer.first_rank[index]),
            "last_rank": int(answer.last_rank[index]),
            "may_be_best": bool(answer.may_be_best[index]),
            "mean": float(answer.means[index]),
            "difference": 0.0 if difference is None else difference.value,
            "lower": 0.0 if difference is None else difference.lower,
            "upper": 0.0 if difference is None else difference.upper,
            "near_best_on_new": _new_task_probability(answer, "near", index),
            "best_on_new": _new_task_probability(answer, "best", index),
            PLURALS[answer.unit]: int(answer.ran[index]),
        }


def _new_task_probability(answer: Ranking, name: str, index: int) -> float:
    """Return the probability of a name, ``near`` or ``best``, on a new task; NaN without any."""
    return float("nan") if answer.new is None else float(getattr(answer.new, name)[index])


def _decimals(answer: Ranking) -> int:
    """Return the number of decimals that show a tenth of epsilon."""
    if answer.epsilon == 0:
        return 4
    return int(np.clip(np.ceil(1 - np.log10(answer.epsilon)), 0, 6))


def _rank_table(
    answer: Ranking, rows: Sequence[Mapping[str, Any]], *, short: bool = False
) -> Table:
    """Return the table of ranks; a short one, without caption and bars, is for the summary."""
    rows = [
        {**row, "bar": bar, "place": index}
        for index, (row, bar) in enumerate(zip(rows, _interval_bars(answer, rows), strict=True))
    ]
    return table_of(
        rows,
        _rank_columns(answer, short=short),
        by="",
        caption="" if short else _rank_caption(answer),
        most=_MOST_ROWS,
        sortable=not short,
        title="" if short else f"Ranks by {answer.scores.score}",
    )


def _interval_bars(answer: Ranking, rows: Sequence[Mapping[str, Any]]) -> list[Bar | None]:
    """Return the interval of each row as a bar; None if a limit is unknown."""
    ends = np.array([(row["lower"], row["difference"], row["upper"]) for row in rows], float)
    ends[~np.isfinite(ends).all(axis=1)] = np.nan
    return bars([(low, value, high) for low, value, high in ends.tolist()], answer.epsilon)


def _rank_columns(answer: Ranking, *, short: bool) -> list[Any]:
    """Return the columns of a table of ranks, each with the function or field that fills it."""
    decimals = _decimals(answer)
    units = PLURALS[answer.unit]

    def rank_range(row: Mapping[str, Any]) -> str:
        first, last = row["first_rank"], row["last_rank"]
        return f"{first}" if first == last else f"{first}-{last}"

    def difference(row: Mapping[str, Any]) -> Any:
        return None if row["method"] == answer.leader else row["difference"]

    def interval_text(row: Mapping[str, Any]) -> Any:
        if row["method"] == answer.leader:
            return None
        return ends_in_words(row["lower"], row["upper"], decimals)

    columns: list[Any] = [
        (rank_range, Column("rank", right=True)),
        ("method", Column("method", heads=True)),
        (lambda row: "yes" if row["may_be_best"] else "", Column("may be best", left_out=2)),
        ("mean", Column(f"mean {answer.scores.score}", "number", decimals=decimals)),
        (difference, Column("minus the first", "signed", decimals=decimals, left_out=3)),
        (interval_text, Column("simultaneous 95 %", right=True, left_out=1)),
    ]
    if not short:
        columns.append(("bar", Column("", "bar", page_only=True)))
    if answer.new is not None:
        columns.append(
            (
                lambda row: near_in_words(answer, row["place"], " or more", ""),
                Column(f"% within {answer.epsilon:g}", right=True),
            )
        )
        if not short:
            columns.append(
                (
                    lambda row: 100 * row["best_on_new"],
                    Column("% best", "number", decimals=0, left_out=5),
                )
            )
    has_missing_units = len(np.unique(answer.ran)) > 1
    if has_missing_units:
        columns.append((units, Column(units, "count", left_out=4)))
    return columns


def _rank_caption(answer: Ranking) -> str:
    """Return how to read a table of ranks."""
    caption = (
        "rank: the ranks that each method can have, simultaneously; minus the first: mean "
        f"difference from {shortened(answer.leader, 40)}"
    )
    if answer.new is not None:
        caption += (
            f"; % within {answer.epsilon:g}, % best: probability of being so near the best, and "
            "the best, on a new task"
        )
    return caption


def ends_in_words(lower: float, upper: float, decimals: int) -> str:
    """Return an interval in words; one end or both may be unknown."""
    if isfinite(lower) and isfinite(upper):
        return interval(lower, upper, decimals)
    if isfinite(lower):
        return f"from {lower:.{decimals}f}"
    if isfinite(upper):
        return f"up to {upper:.{decimals}f}"
    return "not known"


def _pair_table(answer: Ranking, rows: Sequence[PairedDifference], title: str = "") -> Table:
    """Return the table of differences of pairs of methods."""
    decimals = _decimals(answer)
    units = PLURALS[answer.unit]
    return table_of(
        rows,
        [
            ("first", Column("first", heads=True)),
            ("second", Column("second")),
            ("value", Column("first - second", "signed", decimals=decimals)),
            (
                lambda row: ends_in_words(row.lower, row.upper, decimals),
                Column("simultaneous 95 %", right=True),
            ),
            ("units", Column(units, "count", left_out=1)),
            ("verdict", Column("the first is")),
        ],
        by="",
        title=title,
        most=_MOST_ROWS,
        sortable=True,
    )


def _pairs(answer: Ranking) -> Details:
    """Return a folded table of the first pairs, and the file that holds all pairs."""
    pairs = len(answer.paired.first)
    rows: list[PairedDifference] = []
    for difference in answer.differences():
        rows.append(difference)
        if len(rows) == _SHOWN_PAIRS:
            break
    remark = ""
    if pairs > len(rows):
        where = "pairs.csv" if pairs <= _MOST_PAIRS else "Python, report.difference(A, B)"
        remark = f"The first {count(len(rows))} of {count(pairs)}; the others are in {where}."
    note = [Paragraph(remark, "note")] if remark else []
    return Details(f"All pairs ({count(pairs)})", [*note, _pair_table(answer, rows)])


def _open_questions(answer: Ranking, table: ScoreTable) -> Iterator[Block]:
    """Yield the table of what would resolve each open pair, and the number of rivals left out."""
    cells = _cells(table)
    yield table_of(
        answer.plans,
        _plan_columns(answer, cells),
        by="",
        caption=_plan_caption(answer, cells),
        title=(
            "What would settle which is the best"
            if len(answer.best) > 1
            else "What would tell neighbours apart"
        ),
    )
    hidden = len(answer.best) - 1 - len(answer.plans)
    if hidden > 0:
        yield Paragraph(f"{count(hidden)} more methods may be the best.", "note")


def _has_noise(answer: Ranking) -> bool:
    """Return whether it is known how much of a variance is noise of the splits or questions."""
    return any(not isnan(plan.noise) for plan in answer.plans)


def _has_cost(answer: Ranking) -> bool:
    """Return whether the scores have a cost."""
    return any(not isnan(plan.cost) for plan in answer.plans)


def _plan_columns(answer: Ranking, cells: str) -> list[Any]:
    """Return the columns of the table of plans, each with the function or field that fills it.

    Parameters
    ----------
    cells : the plural word for the cells of a task, such as ``splits``.
    """
    decimals = _decimals(answer)
    units = PLURALS[answer.unit]

    def units_needed(plan: ResolutionPlan) -> Any:
        if isnan(plan.units_needed):
            return None
        return two_digits(plan.units_needed) if isfinite(plan.units_needed) else "over 10,000,000"

    def times_as_many(plan: ResolutionPlan) -> Any:
        if isnan(plan.times_as_many):
            return None
        if not isfinite(plan.times_as_many):
            return "no number"
        return f"{max(plan.times_as_many, 1):.2g} times"

    columns: list[Any] = [
        ("first", Column("first", heads=True)),
        ("rival", Column("second", heads=True)),
        (
            lambda plan: plan.difference.value,
            Column("first - second", "signed", decimals=decimals, left_out=4),
        ),
        (
            lambda plan: ends_in_words(plan.difference.lower, plan.difference.upper, decimals),
            Column("simultaneous 95 %", right=True, left_out=1),
        ),
        ("units", Column(f"{units} now", "count", left_out=2)),
        (units_needed, Column(f"{units} needed", right=True)),
    ]
    if _has_noise(answer):
        columns += [
            (times_as_many, Column(f"or {cells}", right=True)),
            (
                lambda plan: 100 * plan.noise,
                Column(f"% of {cells}", "number", decimals=0, left_out=3),
            ),
        ]
    if _has_cost(answer):
        columns.append(("cost", Column("cost", "count", left_out=1)))
    return columns


def _plan_caption(answer: Ranking, cells: str) -> str:
    """Return how to read the table of plans."""
    caption = (
        f"{PLURALS[answer.unit]} needed: in all, to tell the two apart in four of five such "
        f"benchmarks if they truly differ by {answer.epsilon:g}, with all pairs compared"
    )
    if _has_noise(answer):
        caption += (
            f"; or {cells}: so many times as many {cells} of the same tasks; % of {cells}: as much "
            "of the variance is their noise"
        )
    if _has_cost(answer):
        caption += "; cost: of what is missing, for all methods named here"
    return caption


def _figure(answer: Ranking) -> Figure | None:
    """Draw differences from the best-looking method."""
    rows = list(_rank_rows(answer))[1:_DRAWN]
    ends = [(row["lower"], row["upper"]) for row in rows]
    finite = [end for pair in ends for end in pair if isfinite(end)]
    if not finite:
        return None
    low, high = min(*finite, -answer.epsilon), max(*finite, answer.epsilon)
    room = 0.15 * (high - low)  # for the numbers below the ends of the shaded band
    span = (min(low, -answer.epsilon - room), max(high, answer.epsilon + room))
    estimates = [
        (
            row["method"],
            row["difference"],
            max(row["lower"], span[0]) if isfinite(row["upper"]) else float("nan"),
            min(row["upper"], span[1]) if isfinite(row["upper"]) else float("nan"),
        )
        for row in rows
    ]
    title = f"{answer.scores.score}, less that of {shortened(answer.leader, 40)}"
    span = (float(f"{span[0]:.2g}"), float(f"{span[1]:.2g}"))
    svg = forest(
        title, [estimates], span=span, mark=0.0, band=(-answer.epsilon, answer.epsilon),
        decimals=_decimals(answer),
    )  # fmt: skip
    caption = "95 % intervals of all pairs at once; shaded: what makes no difference"
    return Figure(title, svg=svg, name="differences", caption=caption)


def _notes(table: ScoreTable, rankings: Sequence[Ranking], options: RankOptions) -> Iterator[str]:
    """Yield the basis of the results, and how they are to be read."""
    ranking = rankings[0]
    yield from table.notes
    yield _estimand(ranking, table, options)
    if options.within is None:
        listed = ", ".join(dict.fromkeys(f"{answer.epsilon:g}" for answer in rankings))
        yield f"A difference of up to {listed} is taken not to matter; within= says otherwise."
    if ranking.held.flipped:
        yield (
            f"Pairs are told apart by flipping the signs of their differences on whole "
            f"{PLURALS[ranking.unit]}, and by Hall's statistic where differences are skewed."
        )
    else:
        yield "Pairs are told apart by Student's t with Bonferroni's correction."
    if ranking.new is not None:
        yield (
            "Probabilities on a new task are how often a method was so near the best on these, "
            f"drawn towards the other methods where {PLURALS[ranking.unit]} are few. They are of "
            "scores measured as these are, with as many splits or questions."
        )
        if ranking.units < FEW:
            yield (
                f"Of fewer than {FEW} {PLURALS[ranking.unit]}, a probability of being near the "
                f"best over {100 * MOST_OF_FEW:.0f} % is said to be that or more."
            )


def _estimand(answer: Ranking, table: ScoreTable, options: RankOptions) -> str:
    """Return the sentence on what is compared, and on what claims are about."""
    if options.about == THESE and answer.unit == "question":
        return (
            "Compared is the mean over these tasks, each of which counts alike, on new questions "
            "like theirs; nothing is claimed of other tasks or families."
        )
    if answer.unit == "question":
        return "Compared is the share or mean over questions, on new questions like these."
    unit_names = PLURALS[answer.unit]
    if options.mean == "tasks" and table.families:
        inner = "tasks" if table.tasks else "questions"
        return (
            f"Compared is the mean over {inner}, each of which counts alike; {inner} of a family "
            "go together, so that families are what the uncertainty comes from."
        )
    splits = (
        "; the splits of a task are averaged, as they share its rows" if table.splits > 1 else ""
    )
    return (
        f"Compared is the mean over {unit_names}, each of which counts alike{splits}. Claims are "
        "about "
        f"new {unit_names} like these."
    )


def _plain_plan(plan: ResolutionPlan) -> dict[str, Any]:
    """Return a plan as plain values, for JSON."""
    return {
        "first": plan.first,
        "second": plan.rival,
        "difference": plan.difference.value,
        "lower": plan.difference.lower,
        "upper": plan.difference.upper,
        "units": plan.units,
        "units_needed": plan.units_needed,
        "times_as_many": plan.times_as_many,
        "noise": plan.noise,
        "cost": plan.cost,
    }


def _pair_frame(answer: Ranking) -> pd.DataFrame:
    """Return all pairs, those of a better-looking first method."""
    places = np.empty(len(answer.order), np.intp)
    places[answer.order] = np.arange(len(answer.order))
    first_place, second_place = places[answer.paired.first], places[answer.paired.second]
    turned = np.where(first_place < second_place, 1.0, -1.0)
    sign = turned * answer.scores.sign
    ends = np.sort(np.stack([sign * answer.lower, sign * answer.upper]), axis=0)
    names = np.array(answer.methods, dtype=object)
    first, second = np.minimum(first_place, second_place), np.maximum(first_place, second_place)
    better = answer.held.better[np.ix_(answer.order, answer.order)]
    verdict = np.select([better[first, second], better[second, first]], ["better", "worse"], "open")
    frame = pd.DataFrame({
        "score": answer.scores.score,
        "first": names[first],
        "second": names[second],
        "difference": sign * answer.paired.means + 0.0,
        "lower": ends[0] + 0.0,
        "upper": ends[1] + 0.0,
        PLURALS[answer.unit]: answer.paired.sizes.astype(int),
        "verdict": verdict,
    })  # fmt: skip
    return frame.iloc[np.lexsort((second, first))].reset_index(drop=True)


def _data(
    table: ScoreTable, rankings: Sequence[Ranking], options: RankOptions
) -> Mapping[str, Any]:
    """Return the document's content as plain values, for JSON."""
    return {
        "version": VERSION,
        "options": {**asdict(options), "path": options.path.name},
        "shape": shape(table, options),
        "warnings": list(table.warnings),
        "notes": list(table.notes),
        "scores": [
            {
                "score": answer.scores.score,
                "better": answer.scores.better,
                "within": answer.epsilon,
                "unit": answer.unit,
                "units": answer.units,
                "pairs": len(answer.paired.first),
                "told_apart": answer.told_apart,
                "may_be_best": answer.best,
                "surely_near": answer.surely_near,
                "ranks": list(_rank_rows(answer)),
                "plans": [_plain_plan(plan) for plan in answer.plans],
                "fresh": None if answer.fresh is None else asdict(answer.fresh),
            }
            for answer in rankings
        ],
    }
