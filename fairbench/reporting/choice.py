"""The run that was chosen out of many: the answer in sentences, and the runs it was chosen from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import isnan

import numpy as np

from fairbench.comparison.choice import Choice
from fairbench.comparison.settings import Bound
from fairbench.core.formats import interval, number
from fairbench.evaluation.headlines import estimate
from fairbench.metrics.registry import Metric
from fairbench.reporting.document.model import Column, Document, Paragraph, Section, Table


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
    table_value = estimate(run.summary(), objective.metric.name, run.protect)[0]
    if isnan(table_value) or number(table_value) == number(objective.value):
        return
    yield (
        f"fairbench table {run.id} shows {number(table_value)} as the {_name(objective.metric)}, "
        f"the mean of the gaps of all splits. Here it is {number(objective.value)}, the gap of the "
        "mean rates: luck makes the gap of a single split larger, and evens out in the mean rates. "
        "The interval by itself is the same in both."
    )


def _sentences(choice: Choice, names: Mapping[str, str]) -> str:
    """Return the chosen run, its estimates, the corrected limits, and the runs tied with it."""
    objective, *bounded = choice.judged
    best = choice.runs[choice.chosen_index]
    k = len(choice.runs)
    level = f"{choice.level:.0%}"
    rows = "validation rows" if choice.apart else "test rows"
    rows += f", as means over {choice.repeats} repeats," if choice.repeats > 1 else ""
    words = " and ".join(_bounds_text(bound) for bound in choice.bounds)
    within = f"{choice.eligible.sum()} of {k} runs have {words} on the {rows}".rstrip(",")
    beginning_text = f"{within}. Of these, " if words else f"Of {k} runs, judged on the {rows} "
    text = [
        f"{beginning_text}{names[best.id]} ({best.id}) has the smallest {_name(objective.metric)}."
    ]
    seems = ", ".join(
        f"{_name(judgement.metric)} {number(judgement.value)} ({interval(*judgement.naive)})"
        for judgement in choice.judged
    )
    if choice.apart:
        text.append(f"On the test rows, which did not choose, with {level} intervals: {seems}.")
        text.append("These need no correction for the choice.")
    else:
        text.append(f"By itself, with {level} intervals: {seems}.")
        text.append("It was chosen because it looks so, which is partly luck. Corrected for the")
        corrected = [f"{_name(e.metric)} {interval(*e.corrected)}" for e in choice.judged]
        text[-1] += f" choice among {k}: {', '.join(corrected)}."
    if len(bounded) == 1 and bounded[0].metric.better == "lower":
        ends = [number(end) for end in choice.simultaneous_upper]
        text.append(
            f"Both at once, at {level}: {_name(objective.metric)} at most {ends[0]} and "
            f"{_name(bounded[0].metric)} at most {ends[1]}."
        )
    return " ".join([*text, _near_text(choice, names)])


def _bounds_text(bound: Bound) -> str:
    side = {"<=": "of at most", "<": "under", ">=": "of at least", ">": "over"}[bound.operator]
    article = "an" if bound.metric.label[0] in "aeiou" else "a"
    return f"{article} {bound.metric.label} {side} {bound.limit:g}"


def _name(metric: Metric) -> str:
    return f"{metric.label} gap" if metric.is_gap and "gap" not in metric.label else metric.label


def _near_text(choice: Choice, names: Mapping[str, str]) -> str:
    """Return which other runs cannot be distinguished from the best, the first five by name."""
    order = np.argsort(choice.objectives, kind="stable")
    best = choice.runs[choice.chosen_index]
    near = [choice.runs[i] for i in order if choice.near[i] and not choice.same[i]]
    same = [run for run, is_same in zip(choice.runs, choice.same, strict=True) if is_same]
    tied = ""
    if len(same) > 1:
        tied_names = "; ".join(f"{names[run.id]} ({run.id})" for run in same if run.id != best.id)
        tied = f"It is a tie with {tied_names}: their predictions of these rows are the same. "
    if not near:
        return f"{tied}No other run may be the best."
    listed = "; ".join(f"{names[run.id]} ({run.id})" for run in near[:5])
    further = f" and {len(near) - 5} more" if len(near) > 5 else ""
    several = "other runs cannot be" if len(near) > 1 else "other run cannot be"
    text = f"{tied}{len(near)} {several} told from the best: {listed}{further}."
    behind = int((choice.near & choice.larger).sum())
    if not behind:
        return text
    has = f"{behind} of them have" if behind > 1 else "One of them has"
    subject = "they are" if behind > 1 else "it is"
    name = _name(choice.judged[0].metric)
    return (
        f"{text} {has} a surely larger {name} than the chosen run: {subject} the best only if the "
        "chosen run, and any other with a smaller one, is truly beyond a bound."
    )


def _chosen_run_table(choice: Choice) -> Table:
    """Return the table of the chosen run."""
    level = f"{choice.level:.0%}"
    columns = [Column("metric"), Column("value", "number"), Column(f"{level} interval", "interval")]
    rows: list[list[object]] = [
        [
            _name(judgement.metric),
            judgement.value,
            judgement.naive,
            judgement.corrected,
        ]
        for judgement in choice.judged
    ]
    of = "of these fitted models, on new people like those of the test rows"
    if choice.apart:
        caption = f"{of}; test rows did not choose, so that no correction is needed"
        return Table(columns, [row[:3] for row in rows], "the chosen run", caption)
    columns.append(Column("corrected for the choice", "interval"))
    caption = (
        f"{of}; the first interval would hold for a run that was named before looking, the "
        "corrected one holds for whichever run is chosen"
    )
    return Table(columns, rows, "the chosen run", caption)


def _runs_table(choice: Choice, names: Mapping[str, str]) -> Table:
    """Return the table of all runs: those within the bounds by their objective, then the others."""
    metrics = [judgement.metric for judgement in choice.judged]
    columns = [Column("run"), Column("id")]
    columns += [Column(_name(metric), "number") for metric in metrics]
    columns.append(Column("standing"))
    order = np.lexsort((choice.objectives, ~choice.eligible))
    rows: list[list[object]] = []
    for i in order:
        run = choice.runs[i]
        values = [choice.objectives[i], *choice.values[i]]
        rows.append([names[run.id], run.id, *values, _standing(choice, int(i))])
    rule = int(choice.eligible.sum())
    rules = frozenset({rule} if 0 < rule < len(rows) else ())
    where = "validation" if choice.apart else "test"
    caption = f"on the {where} rows; under the line are runs beyond a bound" if rules else ""
    return Table(columns, rows, "all runs", caption, rules=rules, most=30)


def _standing(choice: Choice, i: int) -> str:
    """Return how run `i` compares with the chosen one, in a few words."""
    if i == choice.chosen_index:
        return "chosen"
    if choice.same[i]:
        return "tied: the same predictions"
    if not choice.near[i]:
        return "not the best"
    return "best only if others miss a bound" if choice.larger[i] else "not told from the best"
