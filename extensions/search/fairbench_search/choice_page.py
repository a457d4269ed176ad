"""The document on the run that was chosen out of many."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from fairbench.core.text import interval, number
from fairbench.evaluation.summary import Headlines
from fairbench.inference.verdicts import ALIKE, OPEN, WORSE
from fairbench.metrics.registry import Metric
from fairbench.reporting.document.model import Column, Document, Paragraph, Section, Table
from fairbench.reporting.group_tables import named_table, sentence_of, sentences_of
from fairbench_search.choice import Bound, Choice

_PAGE = "fairbench_search:choice"
_NONE = "no interval"


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
    there = Headlines(run.summary(), run.protect).estimate(objective["metric"].name)[0]
    if objective["metric"].is_gap and number(there) != number(objective["value"]):
        metric = objective["metric"].label
        values = {"run": run.id, "there": there, "metric": metric, "judged": objective}
        yield sentence_of(_PAGE, "other_value", **values)


def _sentences(choice: Choice, names: Mapping[str, str]) -> str:
    """Return the chosen run, its estimates, the corrected limits, and the runs tied with it."""
    text: dict[str, str] = {}
    for judged in choice.judged:
        name = _name(choice, judged["metric"])
        for key, said in {
            "seems": f"{name} {number(judged['value'])} ({interval(*judged['naive']) or _NONE})",
            "corrected": f"{name} {interval(*judged['corrected']) or _NONE}",
            "at_once": f"{name} at most {number(judged['at_once'][1])}",
        }.items():
            between = " and " if key == "at_once" else ", "
            text[key] = f"{text[key]}{between}{said}" if key in text else said
    means = f", as means over {choice.repeats} repeats" if choice.repeats > 1 else ""
    ending = "." if choice.bounds else ","
    values = {
        **text,
        "runs": len(choice.runs),
        "eligible": choice.eligible.sum(),
        "bounds": " and ".join(_bounds_text(bound) for bound in choice.bounds),
        "rows": "validation rows" if choice.apart else "test rows",
        "means": f"{means}{ending}",
        "chosen": _named(choice, names, [choice.chosen_index]),
        "best": _best(choice),
        "level": choice.level,
    }
    _, *bounded = choice.judged
    holding = {
        "within" if choice.bounds else "among": True,
        "apart" if choice.apart else "corrected": True,
        "at_once": len(bounded) == 1
        and all(
            of["metric"].better == "lower" and np.isfinite(of["at_once"][1]) for of in choice.judged
        ),
    }
    return " ".join([*sentences_of(_PAGE, holding, **values), _near_text(choice, names)])


def _named(choice: Choice, names: Mapping[str, str], places: Iterable[int]) -> str:
    """Return the names and ids of runs."""
    runs = [choice.runs[i] for i in places]
    return "; ".join(f"{names[run.id]} ({run.id})" for run in runs)


def _bounds_text(bound: Bound) -> str:
    side = {"<=": "of at most", "<": "under", ">=": "of at least", ">": "over"}[bound.operator]
    article = "an" if bound.metric.label[0] in "aeiou" else "a"
    return f"{article} {bound.metric.label} {side} {bound.limit:g}"


def _name(choice: Choice, metric: Metric) -> str:
    """Return what a metric is called: a gap of rates over several splits is no mean of gaps."""
    of_means = " of the mean rates" if metric.is_gap and choice.several else ""
    return f"{metric.label}{of_means}"


def _best(choice: Choice) -> str:
    """Return which value of the metric is the best, in words."""
    metric = choice.judged[0]["metric"]
    name, extreme = _name(choice, metric), {"lower": "smallest", "higher": "largest"}
    if isinstance(metric.better, float):
        return f"{name} nearest to {metric.better:g}"
    return f"{extreme[metric.better]} {name}"


def _near_text(choice: Choice, names: Mapping[str, str]) -> str:
    """Return which other runs cannot be distinguished from the best, the first five by name."""
    order = np.argsort(choice.objectives, kind="stable").tolist()
    near = [i for i in order if choice.verdict(i) == OPEN]
    same = [i for i in np.flatnonzero(choice.same).tolist() if i != choice.chosen_index]
    behind = int((choice.near & choice.larger).sum())
    values = {
        "tied": _named(choice, names, same),
        "same": "their predictions of these rows",
        "count": len(near),
        "run": "runs" if len(near) > 1 else "run",
        "shown": _named(choice, names, near[:5]),
        "further": f" and {len(near) - 5} more" if len(near) > 5 else "",
        "have": f"{behind} of them have" if behind > 1 else "One of them has",
        "they": "they are" if behind > 1 else "it is",
        "metric": _name(choice, choice.judged[0]["metric"]),
    }
    said = {"tie": same, "alone": not near, "near": near, "behind": near and behind}
    return "".join(sentences_of(_PAGE, said, **values))


def _chosen_run_table(choice: Choice) -> Table:
    """Return the table of the chosen run."""
    rows = [{**judged, "name": _name(choice, judged["metric"])} for judged in choice.judged]
    table, without = ("apart", ["corrected"]) if choice.apart else ("corrected", [])
    caption = sentence_of(_PAGE, f"table_{table}")
    values: dict[str, Any] = {"level": choice.level, "caption": caption}
    return named_table(_PAGE, "chosen", rows, without=without, **values)


def _runs_table(choice: Choice, names: Mapping[str, str]) -> Table:
    """Return the table of all runs: those within the bounds by their objective, then the others."""
    values = np.column_stack([choice.shown, choice.values])
    judged = [Column(_name(choice, judged["metric"]), "number") for judged in choice.judged]
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
