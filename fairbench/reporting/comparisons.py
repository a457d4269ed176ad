"""The documents of compared runs: which of two is better, a rank for each, and the chosen one.

`pair_document` says which of two is better and by how much, `ranking_document` gives each of many a
rank, and `choice_document` is of the run that was chosen out of many.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import isnan
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.comparison.choice import Bound, Choice
from fairbench.core.arrays import Floats
from fairbench.core.text import interval, listed, number, percent
from fairbench.evaluation.summary import estimate
from fairbench.inference import comparing
from fairbench.inference.comparing import Comparison
from fairbench.inference.selection import ALIKE, OPEN, WORSE, in_order
from fairbench.metrics.registry import Metric, label
from fairbench.reporting.document.model import Block, Column, Document, Paragraph, Section, Table
from fairbench.reporting.group_tables import named_table, sentence_of, sentences_of


def pair_document(
    names: Sequence[str],
    shown: Comparison,
    observed: Floats,
    *,
    everywhere: pd.DataFrame,
    inside: pd.DataFrame,
    level: float,
    tested: str = "",
    computed: str = "",
) -> Document:
    """Return the comparison of two runs, A and B.

    Parameters
    ----------
    names : the names of A and B.
    shown : the comparison whose differences are shown.
    observed : (2, m) each run's values of the metrics in its test rows, A's first.
    everywhere, inside : (repeats, events) probabilities over all draws, and within the
        highest-density region.
    level : the level of the intervals and of the region.
    tested : how many rows were tested how often, such as ``like the 500 rows of the data, all of
        which are tested in 1 repeat``; empty if each repeat is compared by itself. With it, the
        document tells which differences can hardly be seen.
    computed : how it was computed; with it, the probabilities within the highest-density region
        are shown too.
    """
    title = "\n".join(f"{letter}: {name}" for letter, name in zip("AB", names, strict=True))
    probabilities = everywhere.median()
    answer = _answer(probabilities, shown.objectives)
    if tested and float(probabilities.max()) < _SURE:
        missed = [
            f"less than {number(limit, 3)} in {_in_a_sentence(name)}"
            if limit < _largest_difference(name)
            else f"any size in {_in_a_sentence(name)}"
            for name, limit in zip(shown.objectives, shown.reach(level), strict=True)
        ]
        answer += sentence_of("pair", "often_missed", missed=listed(missed))
    about = sentence_of("pair", "about", tested=tested) if tested else ""
    notes = [Paragraph(text, style="note") for text in (about, computed) if text]
    blocks: list[Block] = [
        Paragraph(f"{answer}\n"),
        _outcomes(everywhere, inside, shown.objectives, level if computed else 0.0),
        _differences(shown, observed, level, averaged=bool(tested)),
        *notes,
    ]
    return Document(title, [Section("", blocks)])


_SURE = 0.95  # the probability from which an outcome is stated


def _answer(probabilities: pd.Series, objectives: Sequence[str]) -> str:
    """Return whether an outcome of a comparison is sure, and the most probable one, in words."""
    outcome = _outcome_label(str(probabilities.idxmax()), objectives)
    probability = float(probabilities.max())
    said = "decided" if probability >= _SURE else "not_decided"
    return sentence_of("pair", said, outcome=outcome, probability=probability, sure=_SURE)


def _outcome_label(event: str, objectives: Sequence[str]) -> str:
    """Return an event of :meth:`Comparison.events` in plain words."""
    if event == comparing.PRACTICALLY_EQUAL:
        return "no difference that matters in practice"
    if event in (comparing.A_BETTER, comparing.B_BETTER):
        several = " in at least one metric and worse in none" if len(objectives) > 1 else ""
        return f"{event[0]} is better{several}"
    wins: dict[str, list[str]] = {}
    for part in event.split(", "):
        letter, _, objective = part.partition(" ")
        wins.setdefault(letter, []).append(_in_a_sentence(objective))
    (first, its_metrics), (second, other_metrics) = wins.items()
    return f"{first} is better in {listed(its_metrics)}, {second} in {listed(other_metrics)}"


def _in_a_sentence(name: str) -> str:
    """Return the label of an objective's metric with the article that a sentence needs."""
    between_groups = comparing.objective(name).metric.interval in ("widest", "difference")
    return f"the {label(name)}" if between_groups else label(name)


def _largest_difference(name: str) -> float:
    """Return the largest difference that two runs can have: of shares 1, of signed ones 2."""
    return 2.0 if comparing.objective(name).metric.interval == "difference" else 1.0


def _outcomes(
    everywhere: pd.DataFrame, inside: pd.DataFrame, objectives: Sequence[str], region: float
) -> Table:
    """Return the table of the outcomes' probabilities, medians over repeats.

    Parameters
    ----------
    region : the level of the region whose probabilities are shown, too; 0 for none.
    """
    several = len(inside) > 1
    rows = [
        {
            "outcome": _outcome_label(event, objectives),
            "probability": everywhere[event].median(),
            "inside": inside[event].median(),
            "ends": (inside[event].min(), inside[event].max()),
        }
        for event in everywhere.columns
    ]
    without = [] if region and several else ["ends"] if region else ["inside", "ends"]
    said = {"outcomes": True, "region": region, "medians": several}
    caption = "".join(sentences_of("pair", said, level=region, repeats=len(inside)))
    return named_table("pair", "outcomes", rows, without=without, caption=caption)


def _differences(
    comparison: Comparison, observed: Floats, level: float, *, averaged: bool
) -> Table:
    """Return the table of both runs' values and of their differences, with intervals."""
    ends = np.quantile(comparison.delta, [(1 - level) / 2, (1 + level) / 2], axis=0)
    columns = {
        "label": list(map(label, comparison.objectives)),
        "a": observed[0],
        "b": observed[1],
        "ahead": comparison.delta.mean(axis=0),
        "ends": list(map(tuple, ends.T)),
        "rope": comparison.rope,
        **({"missed": comparison.reach(level)} if averaged else {}),
    }
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    largest = np.array([_largest_difference(name) for name in comparison.objectives])
    said = {
        "mean_values" if averaged else "values": True,
        "ahead": True,
        "impossible": (np.abs(ends) > largest).any(),
        "equal": True,
        "missed": averaged,
    }
    explained = sentences_of("pair", said, directions=_directions(comparison.objectives))
    where, without = ("", []) if averaged else (", in the typical repeat", ["missed"])
    values: dict[str, Any] = {"where": where, "level": level, "caption": "\n".join(explained)}
    return named_table("pair", "differences", rows, without=without, **values)


def _directions(objectives: Sequence[str]) -> str:
    """Say how a lead is computed from both runs' values, and when it is positive."""
    metrics = [comparing.objective(name).metric for name in objectives]
    ways = [
        f"{'B - A' if metric.better == 'lower' else 'A - B'} in {_in_a_sentence(metric.name)} "
        f"({metric.direction or 'larger counts as better, whichever group it favours'})"
        for metric in metrics
    ]
    text = f"{listed(ways)}; positive if A is better."
    is_ratio = any(isinstance(metric.better, float) for metric in metrics)
    return f"{text} Of a ratio above 1, its inverse is taken." if is_ratio else text


MATRIX = "Probability that the run of the row outperforms the run of the column, in percent"


def ranking_document(
    outperforms: Floats,
    ranks: NDArray[np.int64],
    names: Sequence[str],
    ids: Sequence[str],
    title: str,
    *,
    certainty: float,
) -> Document:
    """Return the comparison of all pairs of several runs, in the order of their ranks.

    Parameters
    ----------
    outperforms : (R, R) probabilities that the row's run outperforms the column's.
    ranks : (R,), from 1; equal ones are tied.
    certainty : the probability from which a run ranks above another.
    """
    order = in_order(ranks, outperforms)
    places = [[rank_of(ranks, i), rank, names[i], ids[i]] for rank, i in enumerate(order, start=1)]
    columns = [Column("rank", right=True), Column("", "count"), Column("run"), Column("id")]
    ranked = Table(columns, places, caption=sentence_of("ranking", "ranks", certainty=certainty))
    return Document(title, [Section("", [ranked, _matrix(outperforms, order)])])


def ranking_title(data: str, groups: str, objectives: Sequence[str]) -> str:
    """Return the title of a ranking of the runs of a data set."""
    by = listed([_in_a_sentence(name) for name in objectives])
    return f"{data}, groups by {groups}: runs ranked by {by}"


def rank_of(ranks: NDArray[np.int64], i: int) -> str:
    """Return a run's rank, with = if it is tied."""
    is_tied = (ranks == ranks[i]).sum() > 1
    return f"{ranks[i]}=" if is_tied else f"{ranks[i]}"


def _matrix(outperforms: Floats, order: NDArray[np.intp]) -> Table:
    """Return every pair's probability; ``<1`` is no impossibility."""
    columns = [Column("", "count", narrow=True)]
    columns += [Column(str(i), "percent", narrow=True) for i in range(1, len(order) + 1)]
    rows = [
        [rank, *(None if i == j else outperforms[i, j] for j in order)]
        for rank, i in enumerate(order, start=1)
    ]
    first, second = order[:2]
    pair = (outperforms[first, second], outperforms[second, first])
    first_text, second_text = (
        percent(value).replace("<", "less than ").replace(">", "more than ") for value in pair
    )
    caption = sentence_of("ranking", "matrix", first=first_text, second=second_text)
    return Table(columns, rows, title=MATRIX, caption=caption, repeated=1)


def choice_document(choice: Choice, names: Mapping[str, str]) -> Document:
    """Return a document on the run that was chosen out of many.

    Parameters
    ----------
    names : a label for each run, by id.
    """
    by = choice.runs[0].protect
    data = choice.runs[0].choices["dataset"]
    title = f"The best of {len(choice.runs)} runs of {data} by {by}"
    lead = [Paragraph(_sentences(choice, names))]
    tables = [_chosen_run_table(choice), _runs_table(choice, names)]
    notes = [*choice.notes, *_why_table_differs(choice)]
    return Document(title, [Section("", tables)], lead=lead, notes=notes)


def _why_table_differs(choice: Choice) -> Iterator[str]:
    """Yield why the table of the chosen run has another number for the objective, if it has."""
    run, objective = choice.runs[choice.chosen_index], choice.judged[0]
    name = _name(objective["metric"])
    there = estimate(run.summary(), objective["metric"].name, run.protect)[0]
    if not isnan(there) and number(there) != number(objective["value"]):
        values = {"run": run.id, "there": there, "metric": name, "judged": objective}
        yield sentence_of("choice", "other_value", **values)


def _sentences(choice: Choice, names: Mapping[str, str]) -> str:
    """Return the chosen run, its estimates, the corrected limits, and the runs tied with it."""
    text: dict[str, str] = {}
    for judged in choice.judged:
        name = _name(judged["metric"])
        for key, said in {
            "seems": f"{name} {number(judged['value'])} ({interval(*judged['naive'])})",
            "corrected": f"{name} {interval(*judged['corrected'])}",
            "at_once": f"{name} at most {number(judged['at_once'][1])}",
        }.items():
            between = " and " if key == "at_once" else ", "
            text[key] = f"{text[key]}{between}{said}" if key in text else said
    means = f", as means over {choice.repeats} repeats" if choice.repeats > 1 else ""
    ending = "." if choice.bounds else means and ","
    values = {
        **text,
        "runs": len(choice.runs),
        "eligible": choice.eligible.sum(),
        "bounds": " and ".join(_bounds_text(bound) for bound in choice.bounds),
        "rows": "validation rows" if choice.apart else "test rows",
        "means": f"{means}{ending}",
        "chosen": _named(choice, names, [choice.chosen_index]),
        "metric": _name(choice.judged[0]["metric"]),
        "level": choice.level,
    }
    _, *bounded = choice.judged
    holding = {
        "within" if choice.bounds else "among": True,
        "apart" if choice.apart else "corrected": True,
        "at_once": len(bounded) == 1 and bounded[0]["metric"].better == "lower",
    }
    return " ".join([*sentences_of("choice", holding, **values), _near_text(choice, names)])


def _named(choice: Choice, names: Mapping[str, str], places: Iterable[int]) -> str:
    """Return the names and ids of runs."""
    runs = [choice.runs[i] for i in places]
    return "; ".join(f"{names[run.id]} ({run.id})" for run in runs)


def _bounds_text(bound: Bound) -> str:
    side = {"<=": "of at most", "<": "under", ">=": "of at least", ">": "over"}[bound.operator]
    article = "an" if bound.metric.label[0] in "aeiou" else "a"
    return f"{article} {bound.metric.label} {side} {bound.limit:g}"


def _name(metric: Metric) -> str:
    return f"{metric.label} gap" if metric.is_gap and "gap" not in metric.label else metric.label


def _near_text(choice: Choice, names: Mapping[str, str]) -> str:
    """Return which other runs cannot be distinguished from the best, the first five by name."""
    order = np.argsort(choice.objectives, kind="stable").tolist()
    near = [i for i in order if choice.verdict(i) == OPEN]
    same = [i for i in np.flatnonzero(choice.same).tolist() if i != choice.chosen_index]
    behind = int((choice.near & choice.larger).sum())
    values = {
        "tied": _named(choice, names, same),
        "count": len(near),
        "run": "runs" if len(near) > 1 else "run",
        "shown": _named(choice, names, near[:5]),
        "further": f" and {len(near) - 5} more" if len(near) > 5 else "",
        "have": f"{behind} of them have" if behind > 1 else "One of them has",
        "they": "they are" if behind > 1 else "it is",
        "metric": _name(choice.judged[0]["metric"]),
    }
    said = {"tie": same, "alone": not near, "near": near, "behind": near and behind}
    return "".join(sentences_of("choice", said, **values))


def _chosen_run_table(choice: Choice) -> Table:
    """Return the table of the chosen run."""
    rows = [{**judged, "name": _name(judged["metric"])} for judged in choice.judged]
    table, without = ("apart", ["corrected"]) if choice.apart else ("corrected", [])
    caption = sentence_of("choice", f"table_{table}")
    values: dict[str, Any] = {"level": choice.level, "caption": caption}
    return named_table("choice", "chosen", rows, without=without, **values)


def _runs_table(choice: Choice, names: Mapping[str, str]) -> Table:
    """Return the table of all runs: those within the bounds by their objective, then the others."""
    values = np.column_stack([choice.objectives, choice.values])
    judged = [Column(_name(judged["metric"]), "number") for judged in choice.judged]
    order = np.lexsort((choice.objectives, ~choice.eligible)).tolist()
    rows = [
        [
            names[choice.runs[i].id],
            choice.runs[i].id,
            *values[i, : len(judged)],
            _standing(choice, i),
        ]
        for i in order
    ]
    rule = int(choice.eligible.sum())
    rules = frozenset({rule} if 0 < rule < len(order) else ())
    where = "validation" if choice.apart else "test"
    caption = f"on the {where} rows; under the line are runs beyond a bound" if rules else ""
    columns = [Column("run"), Column("id"), *judged, Column("standing")]
    return Table(columns, rows, "all runs", caption, rules=rules, most=30)


_STANDINGS = {ALIKE: "tied: the same predictions", WORSE: "not the best"}


def _standing(choice: Choice, i: int) -> str:
    """Return how run `i` compares with the chosen one, in a few words."""
    if i == choice.chosen_index:
        return "chosen"
    is_open = "best only if others miss a bound" if choice.larger[i] else "not told from the best"
    return _STANDINGS.get(choice.verdict(i), is_open)
