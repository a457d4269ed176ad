"""The pages on searches: for a less discriminatory alternative, and of a tuning study.

That on an alternative comes with the log of what was tried. That on tuning has the answer in
sentences, the gains, the values and the trials.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd

from fairbench.comparison.alternative import (
    FURTHER,
    SECONDS,
    TRIALS,
    WHOLE,
    WORTH,
    Alternative,
    Estimate,
    Row,
    Searched,
    TuningResult,
)
from fairbench.core import VERSION
from fairbench.core.text import count, counted, csv_text, interval, number, percent, signed
from fairbench.experiments.execute import prepared
from fairbench.experiments.tuning import Search
from fairbench.inference.comparing import is_dominated
from fairbench.inference.selection import BETTER, OPEN, WORSE, verdict_of
from fairbench.reporting.document.model import (
    Code,
    Column,
    Document,
    ExecutiveSummary,
    Paragraph,
    Section,
    Table,
    Text,
)
from fairbench.reporting.group_tables import table_of

SOURCE = (
    "Hays, Laufer, Barocas and Raghavan, “Statistical Guarantees in the Search for Less "
    "Discriminatory Algorithms” (ICLR 2026, arXiv 2512.23943)"
)
_SHOWN = 15  # tried candidates that a terminal shows
_FEW = 30  # a search that ends with fewer candidates has ended early


def alternative_document(answer: Alternative, command: str) -> Document:
    """Return the page: the model in use, the best alternative, what it costs, and the search.

    Parameters
    ----------
    command : the command that makes the document again.
    """
    search = answer.search
    sections = [Section("What was searched", [*_search_blocks(answer), _candidates_table(answer)])]
    if search:
        sections.insert(0, Section("What further search may gain", [_bounds_table(search)]))
    if answer.chosen_index:
        sections.insert(0, Section("What it would cost", [_flips(answer)]))
    drawn = f"seed {search.seed}; the study is {search.folder}" if search else _NOTHING_DRAWN
    return Document(
        f"A less discriminatory alternative: {answer.data} by {answer.protect}",
        sections,
        notes=answer.comparison.notes,
        data=_data(answer),
        files={"log.csv": csv_text(pd.DataFrame(_log(answer)))},
        origin=f"Made by fairbench {VERSION}; {drawn}.",
        summary=ExecutiveSummary(
            found=list(_result_sentences(answer)),
            sure=list(_basis_sentences(answer)),
            unseen=list(_unsearched_sentences(answer)),
            todo=list(_advice_sentences(answer)),
            titles=(
                "What was found", "How sure this is", "What was not searched", "What to do next",
            ),
            audited=[*_terms(answer), ("Command", (Code(command),))],
            audited_title="What was compared",
            key_figures=_both_models_table(answer),
        ),
    )  # fmt: skip


_NOTHING_DRAWN = "nothing was drawn or fitted"


def _name(answer: Alternative) -> str:
    """Return the name of the gap in sentences."""
    label = answer.comparison.metric.label
    return label if "gap" in label else f"{label} gap"


def _estimate_text(estimate: Estimate, text: Callable[[float], str] = number) -> str:
    value, lower, upper = estimate
    return f"{text(value)} ({interval(lower, upper)})"


# What begins the sentence on the gap, by the verdict on the alternative.
_VERDICTS = {
    BETTER: "There is a less discriminatory alternative. Its {} is surely smaller",
    OPEN: "Whether the best alternative has a smaller {} is open",
    WORSE: "The alternative that looked best has a larger {}",
}


def _result_sentences(answer: Alternative) -> Iterator[str]:
    """Yield the findings, the most important first."""
    comparison, gap = answer.comparison, _name(answer)
    gap_in_use, gap_chosen = map(_estimate_text, comparison.gaps)
    error_in_use, error_chosen = map(_estimate_text, comparison.errors)
    rows = f"on the {count(comparison.people)} test rows,"
    if not answer.chosen_index:
        others = counted(len(answer.tried) - 1, "candidate" if answer.search else "other run")
        most = number(answer.in_use["error"] + answer.within)
        yield (
            f"No alternative is better: of {others}, none has a smaller {gap} on the "
            f"validation rows at an error of at most {most}."
        )
        yield (
            f"O{rows[1:]} the model in use has a {gap} of {gap_in_use} and an error of "
            f"{error_in_use}."
        )
    else:
        yield (
            f"{_VERDICTS[comparison.verdict].format(gap)}: {rows} {gap_chosen} against "
            f"{gap_in_use} of the model in use, a change of "
            f"{_estimate_text(comparison.gap_change, signed)}."
        )
        yield (
            f"Its error is {error_chosen} against {error_in_use}, a change of "
            f"{_estimate_text(comparison.error_change, signed)}; {_allowed_error_text(answer)}."
        )
        everyone = comparison.flips[-1]
        share, lower, upper = map(percent, everyone["share"])
        yield (
            f"It decides otherwise for {count(everyone['gained'] + everyone['lost'])} of "
            f"{count(everyone['people'])} people ({share} %; {lower} to {upper} %): "
            f"{count(everyone['gained'])} more are “{answer.label}” and "
            f"{count(everyone['lost'])} are no longer."
        )
    if answer.chosen_index and answer.selected["group_at_prediction"]:
        yield f"It needs each person's group at prediction time. {_without_group(answer)}"
    if answer.search:
        yield _bound(answer.search)


def _allowed_error_text(answer: Alternative) -> str:
    """Return whether the error on the test rows is within the allowed limit, in words."""
    _, lower, upper = answer.comparison.error_change
    by = f"{answer.within:g} above that of the model in use"
    if upper <= answer.within:
        return f"it is surely at most {by}"
    if lower > answer.within:
        return f"it is surely more than {by}"
    return f"whether it is truly at most {by} is open"


def _without_group(answer: Alternative) -> str:
    """Return what would be chosen of the models that need no group at prediction time."""
    other, chosen = answer.without_group, answer.selected
    if not other:
        return "Of what does not, nothing is better than the model in use."
    return (
        f"Of what does not, {other['label']} would be chosen: {_name(answer)} "
        f"{number(other['gap'])} and error {number(other['error'])} on the validation rows, where "
        f"this one has {number(chosen['gap'])} and {number(chosen['error'])} "
        "(without_group=true searches for it)."
    )


def _bound(search: Searched) -> str:
    """Return the gain that further search may bring."""
    if search.whole:
        return "Further search gains nothing: every candidate there is was tried."
    return (
        f"With {search.level:.0%} certainty, one more candidate would be chosen instead with "
        f"a chance of at most {percent(search.chance)} %. On average it lowers the gap on the "
        f"validation rows by at most {number(search.seen_gain(1))}, and the true gap, of "
        f"which less is known, by at most {number(search.gain(1))}."
    )


def _basis_sentences(answer: Alternative) -> Iterator[str]:
    """Yield the basis of the statements."""
    comparison = answer.comparison
    yield (
        f"{count(answer.chosen_by)} validation rows chose; the test rows chose nothing, so that "
        f"their {comparison.level:.0%} intervals need no correction for the choice. They are of "
        "these fitted models, on new people like those of the test rows."
    )
    yield from answer.notes
    if comparison.looks > 1:
        yield (
            f"{comparison.looks} candidates have been judged on these test rows by now: every "
            "interval is widened so that all hold at once for all of them (Bonferroni)."
        )
    if answer.search is None:
        yield (
            "The runs were not drawn from a stated distribution: nothing bounds what further "
            "search would gain."
        )
    elif not answer.search.whole:
        yield (
            "The bound on further search supposes that candidates are drawn independently, as they "
            "were here, and nothing else; it holds whenever the search ends. Of the true gap it is "
            f"the chance times the upper end of the gap's interval. {SOURCE}, lemma 3.2."
        )


def _unsearched_sentences(answer: Alternative) -> Iterator[str]:
    """Yield what was not searched."""
    if answer.read:
        yield (
            f"Models that do not read {' and '.join(answer.read)}: it is one of the features, so "
            "that every model here needs it at prediction time, with or without an intervention."
        )
    yield (
        "Other features, other people and other targets; and whether the error rate is what "
        "matters here, rather than a cost of each kind of error."
    )
    if answer.search and answer.search.left_out:
        left_out = counted(len(answer.search.left_out), "combination")
        yield f"{left_out} of learner and intervention: see “What was searched”."
    if failed := sum(bool(tried["reason"]) for tried in answer.tried):
        yield f"{counted(failed, 'candidate')} failed; the log has the reasons."


def _advice_sentences(answer: Alternative) -> Iterator[str]:
    """Yield suggestions that would tell more."""
    search = answer.search
    if search and search.ended in (TRIALS, SECONDS):
        yield (
            f"The search ended before one more candidate was surely not worth {search.worth:g} of "
            f"the gap: the same command with a larger {search.ended}= goes on."
        )
    if search and search.ended == WORTH and search.drawn < _FEW:
        yield (
            f"The gap is {number(answer.selected['gap'])} on the {count(answer.chosen_by)} "
            "validation rows, and cannot fall much further there: more of them "
            "(split.validation=) tell smaller gaps apart, and make a longer search worth it."
        )
    if answer.chosen_index and answer.comparison.verdict == OPEN:
        yield "Judge both models on more people: these are too few to tell their gaps apart."


_ENDED = {
    WORTH: "as one more surely lowers the gap on the validation rows by less than {:g} on average",
    WHOLE: "as there is none that was not tried",
    TRIALS: "the most that trials= allows",
    SECONDS: "as cpu_seconds= was spent",
}


def _terms(answer: Alternative) -> Iterator[tuple[str, Text]]:
    """Yield the terms of the comparison with their texts."""
    search = answer.search
    # The labels of finished runs have their ids.
    run_texts = [f" (run {run})" if search else "" for run in answer.runs]
    yield "Model in use", f"{answer.in_use['label']}{run_texts[0]}"
    if answer.chosen_index:
        yield "Alternative", f"{answer.selected['label']}{run_texts[-1]}"
    most = f"{answer.within:g} above that of the model in use"
    yield (
        "Chosen by",
        f"the smallest {_name(answer)} on {count(answer.chosen_by)} validation rows, at an error "
        f"of at most {most}",
    )
    if search:
        why = _ENDED[search.ended].format(search.worth)
        yield "Search ended", f"after {counted(search.drawn, 'candidate')}, {why}"


def _both_models_table(answer: Alternative) -> Table:
    """Return the table of both models."""
    comparison = answer.comparison
    better = bool(answer.chosen_index)
    shown = [Column("on the test rows")]
    shown += [Column(of, "estimate") for of in ("in use", "alternative", "difference")]
    rows = [
        [_name(answer), *comparison.gaps, comparison.gap_change],
        ["error rate", *comparison.errors, comparison.error_change],
    ]
    caption = f"{comparison.level:.0%} intervals, of {count(comparison.people)} people"
    if better:
        return Table(shown, rows, "both models", f"{caption}; the difference is of the same people")
    return Table(shown[:2], [row[:2] for row in rows], "the model in use", caption)


def _flips(answer: Alternative) -> Table:
    """Return the table of decisions that change."""
    return table_of(
        answer.comparison.flips,
        [
            (lambda flip: flip["group"] or "everyone", Column("group", heads=True)),
            ("people", Column("people", "count")),
            ("gained", Column(f"now “{answer.label}”", "count")),
            ("lost", Column("no longer", "count")),
            ("share", Column("share that changes", "estimate")),
        ],
        by="",
        rules=frozenset({len(answer.comparison.flips) - 1}),
        title="decisions that change",
        caption="of the test rows: whose decision the alternative changes",
    )


def _bounds_table(search: Searched) -> Table:
    """Return the table of the bounds."""
    rows = [
        {
            "more": more,
            "chance": (0.0, 1 - (1 - search.chance) ** more),
            "seen": (0.0, search.seen_gain(more)),
            "true": (0.0, search.gain(more)),
        }
        for more in FURTHER
    ]
    return table_of(
        rows,
        [
            ("more", Column("more", "count")),
            ("chance", Column("chance of a better one", "interval")),
            ("seen", Column("gain, validation rows", "interval")),
            ("true", Column("gain, true gap", "interval")),
        ],
        by="",
        title="bounds on further search",
        caption=(
            "of so many more candidates: the chance that one of them is chosen instead, and by how "
            "much they lower the gap on average; all bounds hold at once with "
            f"{search.level:.0%} certainty"
        ),
    )


def _search_blocks(answer: Alternative) -> Iterator[Table]:
    """Yield the table of drawn candidates, and the list of combinations left out."""
    search = answer.search
    if search is None:
        return
    rows = []
    for family in search.families:
        drawn = [tried for tried in answer.tried[1:] if tried["family"] == family.name]
        gaps = [tried["gap"] for tried in drawn if answer.allows(tried)]
        needed = "yes" if family.group_at_prediction else "no"
        rows.append(
            {
                **family.choices,
                "drawn": len(drawn),
                "gap": min(gaps, default=np.nan),
                "group": needed,
            }
        )
    yield table_of(
        rows,
        [
            ("learner", Column("learner")),
            ("intervention", Column("intervention")),
            ("drawn", Column("drawn", "count")),
            ("gap", Column("smallest gap", "number")),
            ("group", Column("group needed")),
        ],
        by="",
        title="what is drawn",
        caption=(
            "every draw is of one of these, all as likely, and then of every option by itself; the "
            "smallest gap on the validation rows at an error that is allowed"
        ),
    )
    options = {
        (family.choices[name.partition(".")[0]], name.partition(".")[2], text): None
        for family in search.families
        for name, text in family.stated.items()
    }
    columns = [Column(title) for title in ("component", "option", "is drawn from")]
    caption = (
        "as it is typed: of an interval every value is as likely, of tag(log,...) every value of "
        "its logarithm"
    )
    yield Table(columns, list(options), "options", caption)
    if search.left_out:
        columns = [Column("combination"), Column("why it is not drawn")]
        yield Table(columns, list(search.left_out.items()), "what is not drawn")


def _standing(answer: Alternative, position: int) -> str:
    tried = answer.tried[position]
    if tried["reason"]:
        return "failed"
    standing = ["in use"] if position == 0 else []
    standing += ["chosen"] if position == answer.chosen_index else []
    return ", ".join(standing) or ("" if answer.allows(tried) else "error too large")


# Column of the log -> what it has of a candidate.
_LOG = {
    "what": "what", "gap": "gap", "error_rate": "error",
    "group_at_prediction": "group_at_prediction", "cpu_seconds": "seconds", "reason": "reason",
}  # fmt: skip


def _log(answer: Alternative) -> list[dict[str, Any]]:
    """Return all that was tried, nothing left out, in the order in which it was."""
    return [
        {
            "number": position,
            "standing": _standing(answer, position),
            **{column: tried[name] for column, name in _LOG.items()},
        }
        for position, tried in enumerate(answer.tried)
    ]


def _candidates_table(answer: Alternative) -> Table:
    """Return the table of tried candidates: the allowed ones first, sorted by gap."""

    def order(row: Row) -> tuple[bool, bool, float]:
        return bool(row["reason"]), not answer.allows(row), row["gap"]

    rows = [{**tried, **log} for tried, log in zip(answer.tried, _log(answer), strict=True)]
    columns: list[tuple[Any, Column]] = [
        ("number", Column("number", "count")),
        ("gap", Column(_name(answer), "number")),
        ("error", Column("error rate", "number")),
        ("standing", Column("standing")),
        ("label", Column("what")),
    ]
    if any(row["reason"] for row in rows):
        columns.append(("reason", Column("why it failed", left_out=1)))
    return table_of(
        sorted(rows, key=order),
        columns,
        by="",
        title="what was tried",
        caption="on the validation rows; log.csv has all of it, in the order of the draws",
        most=_SHOWN,
    )


def _data(answer: Alternative) -> dict[str, Any]:
    """Return the document's content as plain values."""
    comparison, search = answer.comparison, answer.search
    better = bool(answer.chosen_index)
    figures: dict[str, Any] = {
        "data": answer.data,
        "protect": answer.protect,
        "gap": comparison.metric.name,
        "within": answer.within,
        "level": comparison.level,
        "better": better,
        "verdict": comparison.verdict if better else None,
        "in_use": answer.in_use,
        "alternative": answer.selected if better else None,
        "runs": list(answer.runs),
        "validation_rows": answer.chosen_by,
        "test_rows": comparison.people,
        "candidates_judged": comparison.looks,
        **{
            name: getattr(comparison, name)
            for name in ("gaps", "errors", "gap_change", "error_change", "flips")
        },
        "tried": _log(answer),
    }
    if search is not None:
        figures["search"] = {
            **{
                name: getattr(search, name)
                for name in ("drawn", "ended", "worth", "seed", "folder")
            },
            "families": [
                {**family.choices, "options": family.options} for family in search.families
            ],
            "left_out": dict(search.left_out),
            "chance_of_better": [0.0, search.chance],
            "gain_on_validation_rows": {str(n): [0.0, search.seen_gain(n)] for n in FURTHER},
            "further_gain": {str(n): [0.0, search.gain(n)] for n in FURTHER},
            "source": SOURCE,
        }
    return figures


def tuning_document(answer: TuningResult, search: Search, *, ids: tuple[str, str]) -> Document:
    """Return the result of a study as a document.

    Parameters
    ----------
    ids : the id of the run of the untuned default, and of that of the chosen trial.
    """
    run = prepared(search.default_plan)
    lead = [Paragraph(_tuning_sentences(answer, ids))]
    lead += [Paragraph(_promise(row, answer)) for row in answer.gains]
    blocks = [*_gain_tables(answer), _trials(answer, search)]
    return Document(
        f"Tuning {run.name} by {run.protect}",
        [Section("", blocks)],
        lead=lead,
        notes=list(_notes(answer, search)),
    )


def _tuning_sentences(answer: TuningResult, ids: tuple[str, str]) -> str:
    """Return how many trials were made and which was chosen, in sentences."""
    failed = sum(bool(trial.error) for trial in answer.trials)
    stopped = sum(trial.stopped for trial in answer.trials)
    values_text = ", ".join(
        f"{key}={value_text(value)}" for key, value in answer.best.values.items()
    )
    remarks = [f"{stopped} stopped early as surely worse"] if stopped else []
    remarks += [f"{failed} without a value"] if failed else []
    tried = counted(len(answer.trials) - 1, "trial")
    if remarks:
        tried += f" ({', '.join(remarks)})"
    by = " plus ".join(f"the {row['goal'].label}" for row in answer.gains)
    return (
        f"Of {tried}, {values_text} has the smallest {by.removeprefix('the ')} on the validation "
        f"rows. It is run {ids[1]}; the untuned default is run {ids[0]}."
    )


_PROMISE = (
    "{Label}: {value} on the validation rows, untuned {default}. It was chosen because it looks "
    "good, which is partly luck: corrected for that, its value is {corrected} ({level:.0%}), and "
    "it is {verb} than untuned by {expected} on average over new people. On {rows} fresh rows, the "
    "gain should show as {fresh}. The test rows, looked at once, show {gain} ({interval}). "
)
_TUNED = {BETTER: "Tuning helped.", WORSE: "Tuning did harm."}
_PROMISED = {BETTER: "The validation rows show that tuning helped; the test rows alone do not."}


def _promise(row: Row, answer: TuningResult) -> str:
    """Return the expected gain in one objective, the gain on the test rows, and the verdict."""
    label = row["goal"].label
    said = _PROMISE.format(
        Label=f"{label[0].upper()}{label[1:]}",
        **{name: number(row[name]) for name in ("value", "default")},
        **{name: interval(*row[name]) for name in ("corrected", "expected", "fresh")},
        level=answer.level,
        verb="larger" if row["goal"].sign < 0 else "smaller",
        rows=answer.test_rows,
        gain=signed(row["test_gain"]),
        interval=interval(*row["test_interval"]),
    )
    tested, promised = verdict_of(*row["test_interval"]), verdict_of(*row["expected"])
    unresolved = "Whether tuning helped at all is not resolved."
    return said + (_TUNED.get(tested) or _PROMISED.get(promised) or unresolved)


def _gain_tables(answer: TuningResult) -> Iterator[Table]:
    """Yield what validation promises and what test rows show; and the values themselves."""
    rows = [{**row, "label": row["goal"].label} for row in answer.gains]
    yield table_of(
        rows,
        [
            ("label", Column("gain over untuned in")),
            ("gain", Column("on validation rows", "number")),
            ("expected", Column(f"{answer.level:.0%}, expected", "interval")),
            ("fresh", Column(f"on {answer.test_rows} fresh rows", "interval")),
            ("test_gain", Column("on test rows", "number")),
            ("test_interval", Column("its interval", "interval")),
        ],
        by="",
        title="what tuning gains",
        caption=(
            "above 0 where tuning helped; the first two intervals are what validation promises, of "
            "the average over new people and of that many fresh rows, whose luck it counts; the "
            "last one is that of the test rows by themselves"
        ),
    )
    yield table_of(
        rows,
        [
            ("label", Column("value of")),
            ("default", Column("untuned", "number")),
            ("value", Column("tuned", "number")),
            ("naive", Column("by itself", "interval")),
            ("corrected", Column("corrected", "interval")),
            ("test_default", Column("untuned, test", "number")),
            ("test_value", Column("tuned, test", "number")),
        ],
        by="",
        title="the values themselves",
        caption="the interval by itself would hold for a trial named before looking",
    )


def _trials(answer: TuningResult, search: Search) -> Table:
    """Return the table of the trials, the best first."""
    names = [dimension.name for dimension in search.space]
    columns = [Column("trial")] + [Column(name.rpartition(".")[2]) for name in names]
    columns += [Column(goal.label, "number") for goal in search.goals]
    columns += [Column("repeats", "count"), Column("standing")]
    estimates_of = {
        trial_number: trial.estimates(search.goals)
        for trial_number, trial in enumerate(answer.trials)
        if not trial.error
    }
    values_of = {n: np.array([e.value for e in estimates]) for n, estimates in estimates_of.items()}
    frontier = set[int]()
    if len(search.goals) > 1 and values_of:
        beaten = is_dominated(np.array(list(values_of.values())))
        frontier = set(np.array([*values_of])[~beaten].tolist())
    rows = []
    for n in sorted(values_of, key=lambda n: float(search.tuning.score(values_of[n]))):
        trial = answer.trials[n]
        standings = {
            "untuned": n == 0,
            "chosen": n == answer.position,
            "frontier": n in frontier,
            "stopped: surely worse": trial.stopped,
        }
        standing = ", ".join(word for word, holds in standings.items() if holds)
        options = [value_text(trial.values[name]) if trial.values else "" for name in names]
        values = [estimate.sign * estimate.value for estimate in estimates_of[n]]
        rows.append([str(n), *options, *values, trial.folds, standing])
    caption = "on validation rows; trial 0 is the untuned default"
    caption += "; frontier: no other trial looks better in every objective" if frontier else ""
    return Table(columns, rows, "the trials", caption, most=15)


def _notes(answer: TuningResult, search: Search) -> Iterator[str]:
    """Yield notes on the repeats, the CPU time and an early end of the search."""
    yield (
        f"{len(search.default_plan.cells)} repeats, each with validation rows of its own, and "
        "one test part that no trial was judged by"
    )
    wished = search.tuning.cpu_seconds
    if wished is not None:
        spent = sum(trial.seconds for trial in answer.trials)
        yield f"{spent:.1f} of {wished:g} CPU seconds were spent on fits"
    if search.tried_all and len(search.trials) < search.tuning.trials:
        yield "the search ended early: there is no point of the space that was not tried"


def value_text(value: object) -> str:
    """Return an option's value as tables show it."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
