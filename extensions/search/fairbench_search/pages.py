"""The pages on searches: for an alternative model, of a tuning study, and among finished runs.

That on a less discriminatory alternative comes with the log of what was tried. That on tuning has
the answer in sentences, the gains, the values and the trials; that on a choice, the chosen run and
how all others compare.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from fairbench.core import VERSION
from fairbench.core.text import counted, csv_text, interval, number
from fairbench.inference.comparing import is_dominated
from fairbench.inference.verdicts import BETTER, OPEN
from fairbench.metrics.registry import Metric
from fairbench.reporting.document import model as doc
from fairbench.reporting.group_tables import named_table, sentence_of, sentences_of
from fairbench_search import alternative
from fairbench_search.alternative import Alternative, TuningResult, value_text
from fairbench_search.choice import Choice
from fairbench_search.gains import verdict_of
from fairbench_search.tuning import Search

SOURCE = (
    "Hays, Laufer, Barocas and Raghavan, “Statistical Guarantees in the Search for Less "
    "Discriminatory Algorithms” (ICLR 2026, arXiv 2512.23943)"
)
_FEW = 30  # a search that ends with fewer candidates has ended early

# The pages whose sentences and tables are declared beside this file.
_ALTERNATIVE, _TUNING = "fairbench_search:alternative", "fairbench_search:tuning"
_CHOICE = "fairbench_search:choice"
_NONE = "no interval"


def alternative_document(answer: Alternative, command: str) -> doc.Document:
    """Return the page: the model in use, the best alternative, what it costs, and the search.

    Parameters
    ----------
    command : the command that makes the document again.
    """
    search, better, run = answer.search, bool(answer.chosen_index), answer.runs[0]
    flips = [{**flip, "who": flip["group"] or "everyone"} for flip in answer.comparison.flips]
    about_flips: dict[str, Any] = {"rules": frozenset({len(flips) - 1}), "label": answer.label}
    table, level = partial(named_table, _ALTERNATIVE), answer.comparison.level
    sections: dict[str, list[doc.Block]] = {
        "What it would cost": [table("flips", flips, **about_flips)] if better else [],
        "What further search may gain": [table("bounds", answer.bounds, level=level)],
        "What was searched": [*_search_blocks(answer), _candidates_table(answer)],
    }
    by = f"seed {search.run.study.seed}; study {search.id}"
    tell = partial(sentence_of, _ALTERNATIVE, **_values(answer))
    found, sure, unseen, todo = ([tell(name) for name in part] for part in _parts(answer))
    titles = ("What was found", "How sure this is", "What was not searched", "What to do next")
    return doc.Document(
        f"A less discriminatory alternative: {run.choices['dataset']} by {run.protect}",
        [doc.Section(title, blocks) for title, blocks in sections.items() if blocks],
        notes=answer.comparison.notes,
        data=_data(answer),
        files={"log.csv": csv_text(pd.DataFrame(_log(answer)))},
        origin=f"Made by fairbench {VERSION}; {by}.",
        summary=doc.ExecutiveSummary(
            found=found,
            sure=[tell("chosen_by"), *answer.notes, *sure],
            unseen=unseen,
            todo=todo,
            titles=titles,
            audited=[*_terms(answer, tell), ("Command", (doc.Code(command),))],
            audited_title="What was compared",
            key_figures=_both_models_table(answer),
        ),
    )


def _values(answer: Alternative) -> dict[str, object]:
    """Return what the sentences of the page name."""
    search, everyone = answer.search, answer.comparison.flips[-1]
    return {
        "answer": answer,
        "comparison": answer.comparison,
        "search": search,
        "everyone": everyone,
        "changed": everyone["gained"] + everyone["lost"],
        "gap": answer.comparison.label,
        "others": counted(len(answer.tried) - 1, "candidate"),
        "most": answer.in_use["error_rate"] + answer.within,
        "source": SOURCE,
        "read": " and ".join(answer.read),
        "failed": counted(sum(bool(tried["reason"]) for tried in answer.tried), "candidate"),
        "seen_gain": answer.bounds[0]["seen"][1],
        "true_gain": answer.bounds[0]["true"][1],
        "left_out": counted(len(search.left_out), "combination"),
        "drawn": counted(len(search.trials), "candidate"),
    }


def _parts(answer: Alternative) -> list[list[str]]:
    """Return the names of the sentences: found, further ones on how sure that is, unseen, to do."""
    comparison, search, better = answer.comparison, answer.search, bool(answer.chosen_index)
    _, lower, upper = comparison.error_change
    kept, exceeded = upper <= answer.within, lower > answer.within
    # The most important first.
    found: dict[str, object] = {
        comparison.verdict: better,
        "error_kept" if kept else "error_exceeded" if exceeded else "error_open": better,
        "flips": better,
        "none_found": not better,
        "in_use": not better,
        "group_needed": better and answer.selected["group_at_prediction"],
        "whole": search.tried_all,
        "bound": not search.tried_all,
    }
    sure = {"looks": comparison.looks > 1, "lemma": not search.tried_all}
    unseen = {
        "read": answer.read,
        "others_unseen": True,
        "left_out": search.left_out,
        "failed": any(tried["reason"] for tried in answer.tried),
    }
    todo = {
        "go_on": search.ended in ("trials", "cpu_seconds"),
        "more_rows": search.ended == "worth" and len(search.trials) < _FEW,
        "more_people": better and comparison.verdict == OPEN,
    }
    parts: tuple[Mapping[str, object], ...] = (found, sure, unseen, todo)
    return [[name for name, holds in part.items() if holds] for part in parts]


def _terms(answer: Alternative, tell: Callable[[str], str]) -> Iterator[tuple[str, doc.Text]]:
    """Yield the terms of the comparison with their texts."""
    yield "Model in use", f"{answer.in_use['label']} (run {answer.runs[0].id})"
    if answer.chosen_index:
        yield "Alternative", f"{answer.selected['label']} (run {answer.runs[-1].id})"
    yield "Chosen by", tell("by")
    yield "Search ended", tell(f"ended_{answer.search.ended}")


def _both_models_table(answer: Alternative) -> doc.Table:
    """Return the table of both models."""
    of = answer.comparison
    values = {of.label: (*of.gaps, of.gap_change), "error rate": (*of.errors, of.error_change)}
    names = ("what", "in_use", "other", "change")
    rows = [dict(zip(names, (what, *shown), strict=True)) for what, shown in values.items()]
    without = [] if answer.chosen_index else ["other", "change"]
    return named_table(_ALTERNATIVE, "both", rows, without=without, comparison=of)


def _search_blocks(answer: Alternative) -> Iterator[doc.Table]:
    """Yield the table of drawn candidates, and the list of combinations left out."""
    search, rows = answer.search, []
    for family in search.families:
        drawn = [tried for tried in answer.tried[1:] if tried["family"] == family.name]
        smallest = min((tried["gap"] for tried in drawn if answer.allows(tried)), default=np.nan)
        needed = "yes" if family.group_at_prediction else "no"
        about = {"drawn": len(drawn), "smallest": smallest, "needed": needed}
        rows.append({**family.choices, "options": family.options, **about})
    yield named_table(_ALTERNATIVE, "drawn", rows)
    if search.left_out:
        rows = [{"combination": what, "why": why} for what, why in search.left_out.items()]
        yield named_table(_ALTERNATIVE, "left_out", rows)


def _standing(answer: Alternative, position: int) -> str:
    tried = answer.tried[position]
    if tried["reason"]:
        return "failed"
    words = ["in use"] * (position == 0) + ["chosen"] * (position == answer.chosen_index)
    return ", ".join(words) or ("" if answer.allows(tried) else "error too large")


_LOGGED = ("what", "gap", "error_rate", "group_at_prediction", "cpu_seconds", "reason")


def _log(answer: Alternative) -> list[dict[str, Any]]:
    """Return all that was tried, nothing left out, in the order in which it was."""
    return [
        {"number": n, "standing": _standing(answer, n), **{name: tried[name] for name in _LOGGED}}
        for n, tried in enumerate(answer.tried)
    ]


def _candidates_table(answer: Alternative) -> doc.Table:
    """Return the table of tried candidates: the allowed ones first, sorted by gap."""
    rows = [{**tried, **log} for tried, log in zip(answer.tried, _log(answer), strict=True)]
    without = [] if any(row["reason"] for row in rows) else ["reason"]
    rows.sort(key=lambda row: (bool(row["reason"]), not answer.allows(row), row["gap"]))
    return named_table(_ALTERNATIVE, "tried", rows, without=without, gap=answer.comparison.label)


def _data(answer: Alternative) -> dict[str, Any]:
    """Return the document's content as plain values."""
    comparison, search = answer.comparison, answer.search
    better = bool(answer.chosen_index)
    families = [{**family.choices, "options": family.options} for family in search.families]
    seen, true = (
        {str(bound["more"]): [*bound[of]] for bound in answer.bounds} for of in ("seen", "true")
    )
    of_search = {
        "drawn": len(search.trials),
        **_fields(search, "ended", "worth"),
        "seed": search.run.study.seed,
        "study": search.id,
        "families": families,
        "left_out": dict(search.left_out),
        "chance_of_better": [0.0, search.chance],
        "gain_on_validation_rows": seen,
        "further_gain": true,
        "source": SOURCE,
    }
    return {
        "data": answer.runs[0].choices["dataset"],
        "protect": answer.runs[0].protect,
        "gap": comparison.metric.name,
        "within": answer.within,
        "level": comparison.level,
        "better": better,
        "verdict": comparison.verdict if better else None,
        "in_use": answer.in_use,
        "alternative": answer.selected if better else None,
        "runs": [run.id for run in answer.runs],
        "validation_rows": answer.chosen_by,
        "test_rows": comparison.people,
        "candidates_judged": comparison.looks,
        **_fields(comparison, "gaps", "errors", "gap_change", "error_change", "flips"),
        "tried": _log(answer),
        "search": of_search,
    }


def _fields(record: object, *names: str) -> dict[str, Any]:
    return {name: getattr(record, name) for name in names}


def tuning_document(answer: TuningResult, *, ids: tuple[str, str]) -> doc.Document:
    """Return the result of a study as a document.

    Parameters
    ----------
    ids : the id of the run of the untuned default, and of that of the chosen trial.
    """
    run = answer.search.run
    sentences = [_tuning_sentences(answer, ids), *(_promise(row, answer) for row in answer.gains)]
    rows = [{**row, "label": row["goal"].label} for row in answer.gains]
    # What validation promises and what test rows show; and the values themselves.
    level, test_rows = answer.level, answer.test_rows
    gains = named_table(_TUNING, "gains", rows, level=level, test_rows=test_rows)
    tables = [gains, named_table(_TUNING, "values", rows), _trials(answer)]
    title, lead = f"Tuning {run.name} by {run.protect}", list(map(doc.Paragraph, sentences))
    notes = list(_notes(answer.search))
    return doc.Document(title, [doc.Section("", tables)], lead=lead, notes=notes)


def _tuning_sentences(answer: TuningResult, ids: tuple[str, str]) -> str:
    """Return how many trials were made and which was chosen, in sentences."""
    trials = answer.search.everyone
    chosen = trials[answer.position].values
    values = ", ".join(f"{key}={value_text(value)}" for key, value in chosen.items())
    counts = {
        "stopped early as surely worse": sum(trial.stopped for trial in trials),
        "without a value": sum(bool(trial.error) for trial in trials),
    }
    remarks = ", ".join(f"{number} {words}" for words, number in counts.items() if number)
    tried = counted(len(trials) - 1, "trial") + (f" ({remarks})" if remarks else "")
    by = " plus ".join(f"the {row['goal'].label}" for row in answer.gains).removeprefix("the ")
    told = {"tried": tried, "values": values, "by": by}
    return sentence_of(_TUNING, "tried", default=ids[0], chosen=ids[1], **told)


def _promise(row: alternative.Row, answer: TuningResult) -> str:
    """Return the expected gain in one objective, the gain on the test rows, and the verdict."""
    verdict = verdict_of(*row["test_interval"])
    if verdict == OPEN and verdict_of(*row["expected"]) == BETTER:
        verdict = "promised"
    told = {"row": row, "answer": answer, "verdict": sentence_of(_TUNING, verdict)}
    verb = "larger" if row["goal"].sign < 0 else "smaller"
    return sentence_of(_TUNING, "promise", verb=verb, **told)


def _trials(answer: TuningResult) -> doc.Table:
    """Return the table of the trials, the best first."""
    search = answer.search
    names = [dimension.name for dimension in search.space]
    columns = [doc.Column("trial")] + [doc.Column(name.rpartition(".")[2]) for name in names]
    columns += [doc.Column(goal.label, "number") for goal in search.goals]
    columns += [doc.Column("repeats", "count"), doc.Column("standing")]
    trials = {n: trial for n, trial in enumerate(search.everyone) if not trial.error}
    estimates = {n: trial.estimates(search.goals) for n, trial in trials.items()}
    values_of = {n: np.array([e.value for e in of]) for n, of in estimates.items()}
    frontier = set[int]()
    if len(search.goals) > 1 and values_of:
        beaten = is_dominated(np.array(list(values_of.values())))
        frontier = set(np.array([*values_of])[~beaten].tolist())
    rows = []
    for n in sorted(values_of, key=lambda n: float(search.tuning.score(values_of[n]))):
        trial = trials[n]
        standings = {
            "untuned": n == 0,
            "chosen": n == answer.position,
            "frontier": n in frontier,
            "stopped: surely worse": trial.stopped,
        }
        standing = ", ".join(word for word, holds in standings.items() if holds)
        options = [value_text(trial.values[name]) if trial.values else "" for name in names]
        values = [estimate.sign * estimate.value for estimate in estimates[n]]
        rows.append([str(n), *options, *values, trial.folds, standing])
    caption = "on validation rows; trial 0 is the untuned default"
    caption += "; frontier: no other trial looks better in every objective" if frontier else ""
    return doc.Table(columns, rows, "the trials", caption, most=15)


def _notes(search: Search) -> Iterator[str]:
    """Yield notes on the repeats and an early end of the search."""
    yield sentence_of(_TUNING, "repeats", repeats=len(search.default_plan.cells))
    if search.tried_all and len(search.trials) < search.tuning.trials:
        yield sentence_of(_TUNING, "ended")


# The page on the run that was chosen out of many.


def choice_document(choice: Choice, names: Mapping[str, str]) -> doc.Document:
    """Return a document on the run that was chosen out of many.

    Parameters
    ----------
    names : a label for each run, by id.
    """
    first = choice.runs[0]
    title = f"The best of {len(choice.runs)} runs of {first.choices['dataset']} by {first.protect}"
    lead = [doc.Paragraph(_sentences(choice, names))]
    rows = [{**judged, "name": _name(choice, judged["metric"])} for judged in choice.judged]
    caption = sentence_of(_CHOICE, "table_apart" if choice.apart else "table_corrected")
    about: dict[str, Any] = {"level": choice.level, "caption": caption}
    without = ["corrected"] if choice.apart else []
    chosen = named_table(_CHOICE, "chosen", rows, without=without, **about)
    tables = [chosen, _runs_table(choice, names)]
    of_means = {"mean_rates": choice.several and choice.judged[0]["metric"].is_gap}
    notes = [*choice.notes, *sentences_of(_CHOICE, of_means)]
    return doc.Document(title, [doc.Section("", tables)], lead=lead, notes=notes)


def _sentences(choice: Choice, names: Mapping[str, str]) -> str:
    """Return the chosen run, its estimates, the corrected limits, and the runs tied with it."""
    named = [(_name(choice, judged["metric"]), judged) for judged in choice.judged]
    seems = [
        f"{name} {number(of['value'])} ({interval(*of['naive']) or _NONE})" for name, of in named
    ]
    corrected = [f"{name} {interval(*of['corrected']) or _NONE}" for name, of in named]
    means = ", as means over the splits" if choice.several else ""
    ending = "." if choice.bounds else ","
    values = {
        "seems": ", ".join(seems),
        "corrected": ", ".join(corrected),
        "runs": len(choice.runs),
        "eligible": choice.eligible.sum(),
        "bounds": " and ".join(map(str, choice.bounds)),
        "rows": "validation rows" if choice.apart else "test rows",
        "means": f"{means}{ending}",
        "chosen": _named(choice, names, [choice.chosen_index]),
        "best": _best(choice),
        "level": choice.level,
    }
    holding = {
        "within" if choice.bounds else "among": True,
        "apart" if choice.apart else "corrected": True,
    }
    return " ".join([*sentences_of(_CHOICE, holding, **values), _near_text(choice, names)])


def _named(choice: Choice, names: Mapping[str, str], places: Iterable[int]) -> str:
    """Return the names and ids of runs."""
    runs = [choice.runs[i] for i in places]
    return "; ".join(f"{names[run.id]} ({run.id})" for run in runs)


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
    near = [i for i in order if choice.near[i] and i != choice.chosen_index]
    values = {
        "count": len(near),
        "run": "runs" if len(near) > 1 else "run",
        "shown": _named(choice, names, near[:5]),
        "further": f" and {len(near) - 5} more" if len(near) > 5 else "",
    }
    return sentence_of(_CHOICE, "near" if near else "alone", **values)


def _runs_table(choice: Choice, names: Mapping[str, str]) -> doc.Table:
    """Return the table of all runs: those within the bounds by their objective, then the others."""
    values = np.column_stack([choice.shown, choice.values])
    judged = [doc.Column(_name(choice, judged["metric"]), "number") for judged in choice.judged]
    order = np.lexsort((choice.objectives, ~choice.eligible)).tolist()
    rows = []
    for i in order:
        run, measured = choice.runs[i].id, values[i, : len(judged)]
        rows.append([names[run], run, *measured, _standing_of_run(choice, i)])
    rule = int(choice.eligible.sum())
    rules = frozenset({rule} if 0 < rule < len(order) else ())
    holding = {"runs_apart" if choice.apart else "runs_test": True, "runs_beyond": rules}
    caption = "; ".join(sentences_of(_CHOICE, holding))
    columns = [doc.Column("run"), doc.Column("id"), *judged, doc.Column("standing")]
    return doc.Table(columns, rows, "all runs", caption, rules=rules, most=30)


def _standing_of_run(choice: Choice, i: int) -> str:
    """Return how run `i` compares with the chosen one, in a few words."""
    if i == choice.chosen_index:
        return "chosen"
    return "not told from the best" if choice.near[i] else "not the best"


def print_as(document: doc.Document, kind: str) -> None:
    """Print a document in the terminal's form (``text``) or as the text of another."""
    from fairbench.reporting.document.terminal import print_document
    from fairbench.reporting.document.writing import FORMS

    if kind == "text":
        print_document(document)
    else:
        print(FORMS[kind][1](document))
