"""The document on a tuning study: the answer in sentences, the gains, the values, the trials."""

from __future__ import annotations

import numpy as np

from fairbench.comparison.tuning_result import GainOnTestRows, PromisedGain, TuningResult
from fairbench.core.formats import interval, number, signed
from fairbench.experiments.execute import prepared
from fairbench.experiments.tuning import Search
from fairbench.inference.comparing.objectives import is_dominated
from fairbench.reporting.document.model import Column, Document, Paragraph, Section, Table


def tuning_document(answer: TuningResult, search: Search, *, ids: tuple[str, str]) -> Document:
    """Return the result of a study as a document.

    Parameters
    ----------
    ids : the id of the run of the untuned default, and of that of the chosen trial.
    """
    run = prepared(search.default_plan)
    title = f"Tuning {run.name} by {run.protect}"
    lead = [Paragraph(_sentences(answer, ids))]
    lead += [
        Paragraph(_promise(*promise_and_test, answer))
        for promise_and_test in zip(answer.promises, answer.tested, strict=True)
    ]
    blocks = [_gains(answer), _values(answer), _trials(answer, search)]
    return Document(title, [Section("", blocks)], lead=lead, notes=_notes(answer, search))


def _sentences(answer: TuningResult, ids: tuple[str, str]) -> str:
    """Return how many trials were made and which was chosen, in sentences."""
    count = len(answer.trials) - 1
    failed = sum(bool(trial.error) for trial in answer.trials)
    stopped = sum(trial.stopped for trial in answer.trials)
    values_text = ", ".join(
        f"{key}={value_text(value)}" for key, value in answer.best.values.items()
    )
    remarks = [f"{stopped} stopped early as surely worse"] if stopped else []
    remarks += [f"{failed} without a value"] if failed else []
    tried = f"{count} trial{'s' if count > 1 else ''}"
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
    columns = [Column("gain over untuned in"), Column("on validation rows", "number")]
    columns += [Column(f"{answer.level:.0%}, expected", "interval")]
    columns += [Column(f"on {answer.test_rows} fresh rows", "interval")]
    columns += [Column("on test rows", "number"), Column("its interval", "interval")]
    rows = [
        [
            promised.goal.label,
            promised.gain,
            promised.expected,
            promised.fresh,
            tested.gain,
            tested.interval,
        ]
        for promised, tested in zip(answer.promises, answer.tested, strict=True)
    ]
    caption = (
        "above 0 where tuning helped; the first two intervals are what validation promises, of the "
        "average over new people and of that many fresh rows, whose luck it counts; the last one "
        "is that of the test rows by themselves"
    )
    return Table(columns, rows, "what tuning gains", caption)


def _values(answer: TuningResult) -> Table:
    """Return the table of values of the untuned default and of the tuned run."""
    columns = [Column("value of"), Column("untuned", "number"), Column("tuned", "number")]
    columns += [Column("by itself", "interval"), Column("corrected", "interval")]
    columns += [Column("untuned, test", "number"), Column("tuned, test", "number")]
    rows = [
        [
            promised.goal.label,
            promised.default,
            promised.value,
            promised.naive,
            promised.corrected,
            tested.default,
            tested.value,
        ]
        for promised, tested in zip(answer.promises, answer.tested, strict=True)
    ]
    caption = "the interval by itself would hold for a trial named before looking"
    return Table(columns, rows, "the values themselves", caption)


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
    frontier: set[int] = set()
    if len(search.goals) > 1 and values_of_trial:
        beaten = is_dominated(np.array(list(values_of_trial.values())))
        frontier = {
            trial_number
            for trial_number, is_beaten in zip(values_of_trial, beaten, strict=True)
            if not is_beaten
        }
    rows = []
    for trial_number in sorted(
        values_of_trial,
        key=lambda trial_number: float(search.tuning.score(values_of_trial[trial_number])),
    ):
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
