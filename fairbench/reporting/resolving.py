"""The document on rounds of further splits: which may be the best, and why it ends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from math import isfinite

from fairbench.comparison.rank.answer import WRONG, Ranking
from fairbench.comparison.rank.further_splits import RivalBound, TaskNoise
from fairbench.comparison.rank.rounds import BOUND, BUDGET, ONE_SPLIT, RESOLVED, Round
from fairbench.comparison.rank.sentences import PLURALS, join_words, units_in_words
from fairbench.core import VERSION
from fairbench.core.formats import count, percent, two_digits
from fairbench.reporting.document.model import Column, Document, ExecutiveSummary, Section, Table
from fairbench.reporting.group_tables import table_of

_SHOWN = 5  # approaches that a sentence names


def resolving_document(
    answer: Ranking,
    rounds: Sequence[Round],
    noise: Sequence[TaskNoise],
    bounds: Sequence[RivalBound],
    reason: str,
    *,
    methods: int,
) -> Document:
    """Return a document on the rounds of further splits, and what they told apart.

    Parameters
    ----------
    answer : the ranking after the last round.
    bounds : how far splits can help with each rival that is left.
    reason : why there is no further round.
    methods : the number of approaches that were compared.
    """
    metric = answer.scores.score
    last_round = rounds[-1]
    summary = ExecutiveSummary(
        _findings(answer, rounds, methods),
        sure=[
            "The approach that is truly best was dropped in any round with a chance of at most "
            f"{percent(WRONG)} %, if splits scatter alike to either side. What is compared are "
            f"means over {units_in_words(answer)} like these, each of which counts alike."
        ],
        still_open=list(_open_questions(answer, bounds, reason)),
        todo=list(_todo(answer, bounds, reason)),
        audited_title="What was compared",
    )
    sections = [Section("What each round bought", [_rounds_table(rounds)])]
    if bounds:
        title = "What splits can and cannot tell"
        sections.append(Section(title, [_bounds_table(answer, bounds)]))
    if noise:
        sections.append(Section("Splits of each task", [_tasks_table(noise, last_round)]))
    data = {
        "version": VERSION,
        "metric": metric,
        "reason": reason,
        "rounds": [asdict(round_) for round_ in rounds],
        "tasks": [asdict(task) for task in noise],
        "rivals": [{**asdict(bound), "is_out_of_reach": bound.is_out_of_reach} for bound in bounds],
    }
    return Document(
        f"Where fits were spent: {metric}",
        sections,
        origin=f"fairbench {VERSION}.",
        data=data,
        summary=summary,
    )


def _findings(answer: Ranking, rounds: Sequence[Round], methods: int) -> list[str]:
    """Return which of so many approaches may be the best, and what further fits were made."""
    best = rounds[-1].best
    least = "least" if answer.scores.better == "lower" else "largest"
    findings = [
        f"{count(len(best))} of {count(methods)} approaches may have the {least} "
        f"{answer.scores.score} on average over {PLURALS[answer.unit]}; after the experiment "
        f"itself it was {count(len(rounds[0].best))}."
    ]
    if len(best) <= _SHOWN:
        findings.append(f"These are {join_words(best)}." if best[1:] else f"It is {best[0]}.")
    further = rounds[1:]
    if further:
        fits = sum(round_.fits for round_ in further)
        findings.append(
            f"{count(fits)} further fits in {_time(further)} went to approaches that could still "
            "be the best, on the tasks whose splits scatter most for what they cost."
        )
    else:
        findings.append("No further fit was made.")
    return findings


def _time(rounds: Sequence[Round]) -> str:
    """Return how long rounds took, in words."""
    seconds = sum(round_.seconds for round_ in rounds)
    if seconds < 90:
        return f"{seconds:.0f} seconds"
    minutes = seconds / 60
    return f"{minutes:.0f} minutes" if minutes < 90 else f"{minutes / 60:.1f} hours"


def _open_questions(answer: Ranking, bounds: Sequence[RivalBound], reason: str) -> Iterator[str]:
    """Yield the questions that further splits cannot answer, and those that they may."""
    units = PLURALS[answer.unit]
    out_of_reach = [bound for bound in bounds if bound.is_out_of_reach]
    if reason == RESOLVED:
        return
    if reason == ONE_SPLIT:
        yield "Every task has one split, so that it is not known what further ones would bring."
    if out_of_reach:
        yield (
            f"{count(len(out_of_reach))} of {count(len(bounds))} rivals cannot be told from the "
            f"leader by any number of splits, if they differ as they seem to: what {units} differ "
            "by leaves each interval wider than the difference."
        )
    if reason == BUDGET and len(out_of_reach) < len(bounds):
        left = len(bounds) - len(out_of_reach)
        yield f"Further splits may tell the leader from {count(left)} rivals; the time was over."


def _todo(answer: Ranking, bounds: Sequence[RivalBound], reason: str) -> Iterator[str]:
    """Yield what to do next."""
    units = PLURALS[answer.unit]
    if reason == BUDGET:
        yield "Give the same command again: it goes on where it stopped."
    beyond = [bound.units_needed for bound in bounds if bound.is_out_of_reach]
    if reason == BOUND or beyond:
        finite = sorted(needed for needed in beyond if isfinite(needed))
        if finite:
            half = finite[(len(finite) - 1) // 2]
            yield (
                f"Add {units}: {two_digits(half)} in all would tell the leader from half of these "
                f"rivals (now {count(answer.units)})."
            )


def _rounds_table(rounds: Sequence[Round]) -> Table:
    """Return the table of rounds: who may be the best after each, and what it cost."""
    columns = [
        Column("round"),
        Column("may be the best", "count"),
        Column("splits, all tasks", "count"),
        Column("fits", "count"),
        Column("seconds", "count"),
        Column("may be wrong", right=True),
    ]
    rows = [
        [
            str(round_.number) if round_.number > 1 else "1 (the experiment)",
            len(round_.best),
            sum(round_.splits.values()),
            round_.fits,
            round(round_.seconds),
            f"{round_.wrong:.2%}",
        ]
        for round_ in rounds
    ]
    caption = "may be wrong: the chance that the round drops the best approach; all rounds: 5 %"
    return Table(columns, rows, caption=caption)


def _bounds_table(answer: Ranking, bounds: Sequence[RivalBound]) -> Table:
    """Return the table of how far any number of splits can help with each rival."""
    units = PLURALS[answer.unit]

    def needed(bound: RivalBound) -> str:
        return two_digits(bound.units_needed) if isfinite(bound.units_needed) else "over 10,000,000"

    return table_of(
        list(bounds),
        [
            ("rival", Column("rival", heads=True)),
            (lambda bound: bound.difference.value, Column("leader - rival", "signed", decimals=4)),
            ("floor", Column("no narrower than ±", "number", decimals=4)),
            (
                lambda bound: "no" if bound.is_out_of_reach else "may",
                Column("further splits tell them apart"),
            ),
            (needed, Column(f"{units} needed", right=True)),
        ],
        by="",
        caption=(
            f"leader: {answer.leader}. no narrower than: half the width of the interval with any "
            f"number of splits, a bound that is right with a chance of 95 %; {units} needed: in "
            "all, with many splits of each task, to tell the two apart in four of five such "
            f"benchmarks (now {count(answer.units)})"
        ),
        most=30,
    )


def _tasks_table(noise: Sequence[TaskNoise], last: Round) -> Table:
    """Return the table of tasks with their splits, the most increased ones first."""
    return table_of(
        sorted(noise, key=lambda task: task.splits - last.splits[task.task]),
        [
            ("task", Column("task", heads=True)),
            ("splits", Column("splits at first", "count")),
            (lambda task: last.splits[task.task], Column("splits now", "count")),
            (lambda task: task.noise**0.5, Column("spread of a split", "number", decimals=4)),
            ("seconds", Column("seconds per split", "number", decimals=2)),
        ],
        by="",
        caption="spread: the standard deviation of one split's score around the approach's mean",
        most=30,
    )
