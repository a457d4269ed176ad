"""The pages on searches: for a less discriminatory alternative, and of a tuning study.

That on an alternative comes with the log of what was tried. That on tuning has the answer in
sentences, the gains, the values and the trials.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
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
    GainOnTestRows,
    PromisedGain,
    Searched,
    Tried,
    TuningResult,
)
from fairbench.core import VERSION
from fairbench.core.text import count, counted, csv_text, interval, number, percent, signed
from fairbench.experiments.execute import prepared
from fairbench.experiments.tuning import Search
from fairbench.inference.comparing import is_dominated
from fairbench.metrics.registry import Metric
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
    sections = [Section("What was searched", [*_search_blocks(answer), _candidates_table(answer)])]
    if answer.search:
        sections.insert(0, Section("What further search may gain", [_bounds_table(answer.search)]))
    if answer.chosen_index:
        sections.insert(0, Section("What it would cost", [_flips(answer)]))
    return Document(
        f"A less discriminatory alternative: {answer.data} by {answer.protect}",
        sections,
        notes=answer.comparison.notes,
        data=_data(answer),
        files={"log.csv": csv_text(pd.DataFrame(_log(answer)))},
        origin=f"Made by fairbench {VERSION}; {_drawn_options_text(answer)}",
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


def _drawn_options_text(answer: Alternative) -> str:
    if answer.search is None:
        return "nothing was drawn or fitted."
    return f"seed {answer.search.seed}; the study is {answer.search.folder}."


def _name(metric: Metric) -> str:
    return f"{metric.label} gap" if "gap" not in metric.label else metric.label


def _estimate_text(estimate: Estimate, text: Callable[[float], str] = number) -> str:
    value, lower, upper = estimate
    return f"{text(value)} ({interval(lower, upper)})"


def _candidates(answer: Alternative) -> str:
    """Return how many other models were tried, in words."""
    tried = len(answer.tried) - 1
    kind = "candidate" if answer.search else "other run"
    return counted(tried, kind)


def _result_sentences(answer: Alternative) -> Iterator[str]:
    """Yield the findings, the most important first."""
    comparison = answer.comparison
    gap = _name(answer.comparison.metric)
    if not answer.chosen_index:
        yield (
            f"No alternative is better: of {_candidates(answer)}, none has a smaller {gap} on the "
            f"validation rows at an error of at most {number(answer.in_use.error + answer.within)}."
        )
        yield (
            f"On the {count(comparison.people)} test rows, the model in use has a {gap} of "
            f"{_estimate_text(comparison.gaps[0])} and an error of "
            f"{_estimate_text(comparison.errors[0])}."
        )
    else:
        verdict_text = {
            "smaller": f"There is a less discriminatory alternative. Its {gap} is surely smaller",
            "open": f"Whether the best alternative has a smaller {gap} is open",
            "larger": f"The alternative that looked best has a larger {gap}",
        }[comparison.verdict]
        yield (
            f"{verdict_text}: on the {count(comparison.people)} test rows, "
            f"{_estimate_text(comparison.gaps[1])} against {_estimate_text(comparison.gaps[0])} of "
            f"the model in use, a change of {_estimate_text(comparison.gap_change, signed)}."
        )
        yield (
            f"Its error is {_estimate_text(comparison.errors[1])} against "
            f"{_estimate_text(comparison.errors[0])}, a change of "
            f"{_estimate_text(comparison.error_change, signed)}; {_allowed_error_text(answer)}."
        )
        everyone = comparison.flips[-1]
        changed = everyone.gained + everyone.lost
        share = everyone.share
        yield (
            f"It decides otherwise for {count(changed)} of {count(everyone.people)} people "
            f"({percent(share[0])} %; {percent(share[1])} to {percent(share[2])} %): "
            f"{count(everyone.gained)} more are “{answer.label}” and {count(everyone.lost)} are no "
            "longer."
        )
    yield from _on_groups(answer)
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


def _on_groups(answer: Alternative) -> Iterator[str]:
    """Yield a warning if the model needs each person's group at prediction time."""
    if not (answer.chosen_index and answer.selected.group_at_prediction):
        return
    text = "It needs each person's group at prediction time."
    if allowed_alternative := answer.without_group:
        text += (
            f" Of what does not, {allowed_alternative.label} would be chosen: "
            f"{_name(answer.comparison.metric)} "
            f"{number(allowed_alternative.gap)} and error {number(allowed_alternative.error)} on "
            "the validation rows, where "
            f"this one has {number(answer.selected.gap)} and {number(answer.selected.error)} "
            "(without_group=true searches for it)."
        )
    else:
        text += " Of what does not, nothing is better than the model in use."
    yield text


def _bound(search: Searched) -> str:
    """Return the gain that further search may bring."""
    certificate = search.certificate
    if certificate.whole:
        return "Further search gains nothing: every candidate there is was tried."
    return (
        f"With {certificate.level:.0%} certainty, one more candidate would be chosen instead with "
        f"a chance of at most {percent(certificate.chance)} %. On average it lowers the gap on the "
        f"validation rows by at most {number(certificate.seen_gain(1))}, and the true gap, of "
        f"which less is known, by at most {number(certificate.gain(1))}."
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
    elif not answer.search.certificate.whole:
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
        pairs_left_out = len(answer.search.left_out)
        yield (
            f"{counted(pairs_left_out, 'combination')} of learner and "
            "intervention: see “What was searched”."
        )
    failed = sum(bool(tried.reason) for tried in answer.tried)
    if failed:
        yield f"{counted(failed, 'candidate')} failed; the log has the reasons."


def _advice_sentences(answer: Alternative) -> Iterator[str]:
    """Yield suggestions that would tell more."""
    search = answer.search
    if search and search.ended in (TRIALS, SECONDS):
        yield (
            f"The search ended before one more candidate was surely not worth {search.worth:g} of "
            f"the gap: the same command with a larger {search.ended}= goes on."
        )
    if search and search.ended == WORTH and search.certificate.tried < _FEW:
        yield (
            f"The gap is {number(answer.selected.gap)} on the {count(answer.chosen_by)} validation "
            "rows, and cannot fall much further there: more of them (split.validation=) tell "
            "smaller gaps apart, and make a longer search worth it."
        )
    if answer.chosen_index and answer.comparison.verdict == "open":
        yield "Judge both models on more people: these are too few to tell their gaps apart."


def _why_ended(search: Searched) -> str:
    """Return why the search ended, in words."""
    certificate = search.certificate
    tried = counted(certificate.tried, "candidate")
    return {
        WORTH: f"after {tried}, as one more surely lowers the gap on the validation rows by less "
        f"than {search.worth:g} on average",
        WHOLE: f"after {tried}, as there is none that was not tried",
        TRIALS: f"after {tried}, the most that trials= allows",
        SECONDS: f"after {tried}, as cpu_seconds= was spent",
    }[search.ended]


def _terms(answer: Alternative) -> list[tuple[str, Text]]:
    """Return the terms of the comparison with their texts."""
    # The labels of finished runs have their ids.
    run_texts = [f" (run {run})" if answer.search else "" for run in answer.runs]
    terms: list[tuple[str, Text]] = [("Model in use", f"{answer.in_use.label}{run_texts[0]}")]
    if answer.chosen_index:
        terms.append(("Alternative", f"{answer.selected.label}{run_texts[-1]}"))
    terms.append(
        (
            "Chosen by",
            f"the smallest {_name(answer.comparison.metric)} on {count(answer.chosen_by)} "
            f"validation rows, at an error of at most {answer.within:g} above that of the model in "
            "use",
        )
    )
    if answer.search:
        terms.append(("Search ended", _why_ended(answer.search)))
    return terms


def _both_models_table(answer: Alternative) -> Table:
    """Return the table of both models."""
    comparison = answer.comparison
    better = bool(answer.chosen_index)
    columns = [Column("on the test rows"), Column("in use", "estimate")]
    rows: list[list[object]] = [
        [_name(comparison.metric), comparison.gaps[0]],
        ["error rate", comparison.errors[0]],
    ]
    if better:
        columns += [Column("alternative", "estimate"), Column("difference", "estimate")]
        rows[0] += [comparison.gaps[1], comparison.gap_change]
        rows[1] += [comparison.errors[1], comparison.error_change]
    caption = f"{comparison.level:.0%} intervals, of {count(comparison.people)} people"
    caption += "; the difference is of the same people" if better else ""
    return Table(columns, rows, "both models" if better else "the model in use", caption)


def _flips(answer: Alternative) -> Table:
    """Return the table of decisions that change."""
    columns = [
        Column("group", heads=True),
        Column("people", "count"),
        Column(f"now “{answer.label}”", "count"),
        Column("no longer", "count"),
        Column("share that changes", "estimate"),
    ]
    rows = [
        [flip.group or "everyone", flip.people, flip.gained, flip.lost, flip.share]
        for flip in answer.comparison.flips
    ]
    rules = frozenset({len(rows) - 1})
    caption = "of the test rows: whose decision the alternative changes"
    return Table(columns, rows, "decisions that change", caption, rules=rules)


def _bounds_table(search: Searched) -> Table:
    """Return the table of the bounds."""
    certificate = search.certificate
    caption = (
        "of so many more candidates: the chance that one of them is chosen instead, and by how "
        "much they lower the gap on average; all bounds hold at once with "
        f"{certificate.level:.0%} certainty"
    )
    chance = certificate.chance
    return table_of(
        FURTHER,
        [
            (lambda draws: draws, Column("more", "count")),
            (lambda n: (0.0, 1 - (1 - chance) ** n), Column("chance of a better one", "interval")),
            (
                lambda draws: (0.0, certificate.seen_gain(draws)),
                Column("gain, validation rows", "interval"),
            ),
            (lambda draws: (0.0, certificate.gain(draws)), Column("gain, true gap", "interval")),
        ],
        by="",
        title="bounds on further search",
        caption=caption,
    )


def _search_blocks(answer: Alternative) -> Iterator[Table]:
    """Yield the table of drawn candidates, and the list of combinations left out."""
    search = answer.search
    if search is None:
        return
    columns = [Column("learner"), Column("intervention"), Column("drawn", "count")]
    columns += [Column("smallest gap", "number"), Column("group needed")]
    rows = []
    for family in search.families:
        tried_of_family = [tried for tried in answer.tried[1:] if tried.family == family.name]
        gaps = [tried.gap for tried in tried_of_family if answer.allows(tried)]
        choices = family.choices
        rows.append(
            [
                choices["learner"],
                choices["intervention"],
                len(tried_of_family),
                min(gaps, default=np.nan),
                "yes" if family.group_at_prediction else "no",
            ]
        )
    caption = (
        "every draw is of one of these, all as likely, and then of every option by itself; the "
        "smallest gap on the validation rows at an error that is allowed"
    )
    yield Table(columns, rows, "what is drawn", caption)
    drawn = {
        (family.choices[name.partition(".")[0]], name.partition(".")[2], text): None
        for family in search.families
        for name, text in family.stated.items()
    }
    columns = [Column("component"), Column("option"), Column("is drawn from")]
    caption = (
        "as it is typed: of an interval every value is as likely, of tag(log,...) every value of "
        "its logarithm"
    )
    yield Table(columns, list(drawn), "options", caption)
    if search.left_out:
        columns = [Column("combination"), Column("why it is not drawn")]
        yield Table(columns, list(search.left_out.items()), "what is not drawn")


def _standing(answer: Alternative, position: int) -> str:
    tried = answer.tried[position]
    if tried.reason:
        return "failed"
    standing = ["in use"] if position == 0 else []
    standing += ["chosen"] if position == answer.chosen_index else []
    return ", ".join(standing) or ("" if answer.allows(tried) else "error too large")


def _log(answer: Alternative) -> list[dict[str, Any]]:
    """Return all that was tried, nothing left out, in the order in which it was."""
    return [
        {
            "number": position,
            "standing": _standing(answer, position),
            "what": tried.what,
            "gap": tried.gap,
            "error_rate": tried.error,
            "group_at_prediction": tried.group_at_prediction,
            "cpu_seconds": tried.seconds,
            "reason": tried.reason,
        }
        for position, tried in enumerate(answer.tried)
    ]


def _candidates_table(answer: Alternative) -> Table:
    """Return the table of tried candidates: the allowed ones first, sorted by gap."""

    def order(position: int) -> tuple[bool, bool, float]:
        tried: Tried = answer.tried[position]
        return bool(tried.reason), not answer.allows(tried), tried.gap

    every = answer.tried
    columns: list[tuple[Any, Column]] = [
        (lambda position: position, Column("number", "count")),
        (lambda position: every[position].gap, Column(_name(answer.comparison.metric), "number")),
        (lambda position: every[position].error, Column("error rate", "number")),
        (lambda position: _standing(answer, position), Column("standing")),
        (lambda position: every[position].label, Column("what")),
    ]
    if any(tried.reason for tried in every):
        columns.append(
            (lambda position: every[position].reason, Column("why it failed", left_out=1))
        )
    positions = sorted(range(len(every)), key=order)
    caption = "on the validation rows; log.csv has all of it, in the order of the draws"
    title = "what was tried"
    return table_of(positions, columns, by="", title=title, caption=caption, most=_SHOWN)


def _data(answer: Alternative) -> dict[str, Any]:
    """Return the document's content as plain values."""
    comparison, search = answer.comparison, answer.search
    figures: dict[str, Any] = {
        "data": answer.data,
        "protect": answer.protect,
        "gap": comparison.metric.name,
        "within": answer.within,
        "level": comparison.level,
        "better": bool(answer.chosen_index),
        "verdict": comparison.verdict if answer.chosen_index else "none",
        "in_use": asdict(answer.in_use),
        "alternative": asdict(answer.selected) if answer.chosen_index else None,
        "runs": list(answer.runs),
        "validation_rows": answer.chosen_by,
        "test_rows": comparison.people,
        "candidates_judged": comparison.looks,
        "gaps": comparison.gaps,
        "errors": comparison.errors,
        "gap_change": comparison.gap_change,
        "error_change": comparison.error_change,
        "flips": [asdict(flip) for flip in comparison.flips],
        "tried": _log(answer),
    }
    if search is not None:
        certificate = search.certificate
        figures["search"] = {
            "drawn": certificate.tried,
            "ended": search.ended,
            "worth": search.worth,
            "seed": search.seed,
            "folder": search.folder,
            "families": [
                {**family.choices, "options": family.options} for family in search.families
            ],
            "left_out": dict(search.left_out),
            "chance_of_better": [0.0, certificate.chance],
            "gain_on_validation_rows": {
                str(draws): [0.0, certificate.seen_gain(draws)] for draws in FURTHER
            },
            "further_gain": {str(draws): [0.0, certificate.gain(draws)] for draws in FURTHER},
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
    title = f"Tuning {run.name} by {run.protect}"
    lead = [Paragraph(_tuning_sentences(answer, ids))]
    lead += [
        Paragraph(_promise(*promise_and_test, answer))
        for promise_and_test in zip(answer.promises, answer.tested, strict=True)
    ]
    blocks = [_gains(answer), _values(answer), _trials(answer, search)]
    return Document(title, [Section("", blocks)], lead=lead, notes=_notes(answer, search))


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
    by = " plus ".join(f"the {promised.goal.label}" for promised in answer.promises)
    return (
        f"Of {tried}, {values_text} has the smallest {by.removeprefix('the ')} on the validation "
        f"rows. It is run {ids[1]}; the untuned default is run {ids[0]}."
    )


def _promise(promise: PromisedGain, tested: GainOnTestRows, answer: TuningResult) -> str:
    """Return the expected gain in one objective, and the gain on the test rows."""
    label = promise.goal.label
    level = f"{answer.level:.0%}"
    verb = "larger" if promise.goal.sign < 0 else "smaller"
    return (
        f"{label[0].upper()}{label[1:]}: {number(promise.value)} on the validation rows, untuned "
        f"{number(promise.default)}. It was chosen because it looks good, which is partly luck: "
        f"corrected for that, its value is {interval(*promise.corrected)} ({level}), and it is "
        f"{verb} than untuned by {interval(*promise.expected)} on average over new people. On "
        f"{answer.test_rows} fresh rows, the gain should show as {interval(*promise.fresh)}. The "
        f"test rows, looked at once, show {signed(tested.gain)} ({interval(*tested.interval)}). "
        + _verdict(promise, tested)
    )


def _verdict(promise: PromisedGain, tested: GainOnTestRows) -> str:
    """Return the conclusion on one objective, in a sentence."""
    if tested.interval[0] > 0:
        return "Tuning helped."
    if tested.interval[1] < 0:
        return "Tuning did harm."
    if promise.expected[0] > 0:
        return "The validation rows show that tuning helped; the test rows alone do not."
    return "Whether tuning helped at all is not resolved."


def _gains(answer: TuningResult) -> Table:
    """Return the table of gains: what validation promises, and what test rows show."""
    caption = (
        "above 0 where tuning helped; the first two intervals are what validation promises, of the "
        "average over new people and of that many fresh rows, whose luck it counts; the last one "
        "is that of the test rows by themselves"
    )
    return table_of(
        list(zip(answer.promises, answer.tested, strict=True)),
        [
            (lambda row: row[0].goal.label, Column("gain over untuned in")),
            (lambda row: row[0].gain, Column("on validation rows", "number")),
            (lambda row: row[0].expected, Column(f"{answer.level:.0%}, expected", "interval")),
            (lambda row: row[0].fresh, Column(f"on {answer.test_rows} fresh rows", "interval")),
            (lambda row: row[1].gain, Column("on test rows", "number")),
            (lambda row: row[1].interval, Column("its interval", "interval")),
        ],
        by="",
        title="what tuning gains",
        caption=caption,
    )


def _values(answer: TuningResult) -> Table:
    """Return the table of values of the untuned default and of the tuned run."""
    return table_of(
        list(zip(answer.promises, answer.tested, strict=True)),
        [
            (lambda row: row[0].goal.label, Column("value of")),
            (lambda row: row[0].default, Column("untuned", "number")),
            (lambda row: row[0].value, Column("tuned", "number")),
            (lambda row: row[0].naive, Column("by itself", "interval")),
            (lambda row: row[0].corrected, Column("corrected", "interval")),
            (lambda row: row[1].default, Column("untuned, test", "number")),
            (lambda row: row[1].value, Column("tuned, test", "number")),
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
    values_of_trial = {
        trial_number: np.array([estimate.value for estimate in trial.estimates(search.goals)])
        for trial_number, trial in enumerate(answer.trials)
        if not trial.error
    }
    frontier = set[int]()
    if len(search.goals) > 1 and values_of_trial:
        beaten = is_dominated(np.array(list(values_of_trial.values())))
        frontier = set(np.array([*values_of_trial])[~beaten].tolist())
    rows = []
    score_of = {n: float(search.tuning.score(values)) for n, values in values_of_trial.items()}
    for trial_number in sorted(score_of, key=score_of.__getitem__):
        trial = answer.trials[trial_number]
        values = [estimate.sign * estimate.value for estimate in trial.estimates(search.goals)]
        standing = ["untuned"] if trial_number == 0 else []
        standing += ["chosen"] if trial_number == answer.position else []
        standing += ["frontier"] if trial_number in frontier else []
        standing += ["stopped: surely worse"] if trial.stopped else []
        value_texts = [value_text(trial.values[name]) if trial.values else "" for name in names]
        rows.append([str(trial_number), *value_texts, *values, trial.folds, ", ".join(standing)])
    caption = "on validation rows; trial 0 is the untuned default"
    caption += "; frontier: no other trial looks better in every objective" if frontier else ""
    return Table(columns, rows, "the trials", caption, most=15)


def _notes(answer: TuningResult, search: Search) -> list[str]:
    """Return notes on the repeats, the CPU time and an early end of the search."""
    notes = [f"{len(search.default_plan.cells)} repeats, each with validation rows of its own, and "
             "one test part that no trial was judged by"]  # fmt: skip
    wished = search.tuning.cpu_seconds
    if wished is not None:
        spent = sum(trial.seconds for trial in answer.trials)
        notes.append(f"{spent:.1f} of {wished:g} CPU seconds were spent on fits")
    if search.tried_all and len(search.trials) < search.tuning.trials:
        notes.append("the search ended early: there is no point of the space that was not tried")
    return notes


def value_text(value: object) -> str:
    """Return an option's value as tables show it."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
