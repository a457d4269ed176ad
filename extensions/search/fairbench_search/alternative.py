"""What was searched for on some rows, judged on others: an alternative model, or a tuned one.

A model in use is compared with a less discriminatory one on rows that were not used for the choice,
so that it needs no correction (:func:`compare_models`). If the same rows have judged other
candidates before, intervals are simultaneous over all candidates. A tuning study has the gain that
its validation rows promise, and the one that test rows show (:class:`TuningResult`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from fairbench.core.errors import UserError, unknown_name
from fairbench.experiments.execute import Execution, Plan, plan_run, prepared
from fairbench.experiments.pipeline import PlannedRun
from fairbench.inference.rates import rate_limits
from fairbench.inference.survey import sums
from fairbench.metrics.registry import BINARY, Metric, metrics_of
from fairbench.results.catalogue import Catalogue, comparable_sets
from fairbench.results.record import TUNING
from fairbench.results.runs import Run
from fairbench.results.tables import TEST
from fairbench_search import choice, gains
from fairbench_search.corrected import Tails, uncorrected_tails
from fairbench_search.gains import GoalEstimate, GoalRows
from fairbench_search.goals import Goal, Tuning
from fairbench_search.tuning import DrawnSearch, Search, Trial, label_rows

Estimate: TypeAlias = tuple[float, float, float]  # a value, and the limits of its interval
# What is said of a candidate, a group or an objective, by names.
Row: TypeAlias = Mapping[str, Any]
FURTHER = (1, 10, 100)  # numbers of further candidates for which the gain is bounded


def gap_named(name: str) -> Metric:
    """Return the gap between groups that has a name.

    Raises
    ------
    UserError : there is none.
    """
    gaps = {key: metric for key, metric in metrics_of(BINARY).items() if metric.is_gap}
    if name not in gaps:
        raise unknown_name("gap", name, gaps)
    return gaps[name]


@dataclass(frozen=True)
class _BothModels:
    """The model in use and the chosen one, on rows that were not used for the choice.

    Attributes
    ----------
    gaps, errors : the gap and the error of the model in use, and of the chosen model.
    gap_change, error_change : the chosen model's value minus that of the model in use.
    flips : the decisions that change in every group, and last those of everyone, whose ``group`` is
        empty: the number of ``people``; how many ``gained`` (0 becomes 1) and ``lost`` (1 becomes
        0); and the ``share`` of decisions that change, with its interval.
    level : the level of every interval.
    looks : the number of candidates that the intervals are simultaneous over.
    """

    metric: Metric
    people: int
    gaps: tuple[Estimate, Estimate]
    errors: tuple[Estimate, Estimate]
    gap_change: Estimate
    error_change: Estimate
    flips: Sequence[Row]
    level: float
    looks: int
    notes: Sequence[str]

    @property
    def label(self) -> str:
        """The name of the gap in sentences."""
        return Goal(self.metric).label

    @property
    def verdict(self) -> str:
        """Whether the chosen one is better: whether its gap surely is smaller."""
        _, lower, upper = self.gap_change
        return gains.verdict_of(-upper, -lower)


def compare_models(
    rows: choice.SharedRows, metric: Metric, *, level: float = 0.95, looks: int = 1
) -> _BothModels:
    """Return the comparison of two models on rows that were not used for the choice.

    Parameters
    ----------
    rows : predictions (n, 2) of the model in use and of the chosen one, in one split.
    looks : the number of candidates that these rows have judged, this one among them.
    """
    notes: list[str] = []
    level_of_each = 1 - (1 - level) / looks
    judged = choice.estimate_every_run(rows, metric, notes, level=level_of_each)
    gaps, errors = (
        ((used["value"], *used["naive"]), (chosen["value"], *chosen["naive"]))
        for used, chosen in zip(*judged, strict=True)
    )
    of_models = [_rows_of_model(rows, place) for place in (0, 1)]
    changes = list[Estimate]()
    for goal in (Goal(metric), Goal(metrics_of(BINARY)["error_rate"])):
        in_use, chosen = map(goal.estimate, of_models)
        tails = uncorrected_tails(level_of_each)
        lower, upper = gains.gain_limits(in_use, chosen, of_models[0], tails)
        changes.append((chosen.value - in_use.value, max(-upper, -1.0), min(-lower, 1.0)))
    flips = list(_count_flips(rows, level_of_each))
    values, people = (gaps, errors, changes[0], changes[1]), len(rows.row)
    return _BothModels(metric, people, *values, flips, level, looks, notes)


def _rows_of_model(rows: choice.SharedRows, model_index: int) -> GoalRows:
    """Return the rows with the predictions of one of the models, as one split."""
    group = pd.Categorical.from_codes(rows.group, rows.names)
    of_rows = {"fold": 0, "unit": rows.row, "target": rows.target, "group": group}
    return pd.DataFrame({**of_rows, "prediction": rows.prediction[:, model_index]})


def _count_flips(rows: choice.SharedRows, level: float) -> Iterator[Row]:
    """Yield the numbers of changed decisions in every group, and last of everyone."""
    change = np.diff(rows.prediction)[:, 0]
    groups = [(name, rows.group == code) for code, name in enumerate(rows.names)]
    for name, members in [*groups, ("", np.ones(len(change), bool))]:
        if people := int(members.sum()):
            gained, lost = (int((change[members] == sign).sum()) for sign in (1, -1))
            changed, of = np.array([[gained + lost], [people]], float)
            share = tuple(float(end[0]) for end in rate_limits(changed, of, level=level))
            counts = {"people": people, "gained": gained, "lost": lost}
            yield {"group": name, **counts, "share": share}


@dataclass(frozen=True)
class Alternative:
    """The result of the search for a less discriminatory alternative.

    Attributes
    ----------
    tried : the model in use first, then every candidate: ``what`` it is, as typed;
        its ``label`` for readers; ``gap`` and ``error_rate`` on validation rows, NaN if it failed,
        for a ``reason``; whether it needs the ``group_at_prediction``; the ``family`` that it was
        drawn from, empty of the model in use; and the ``cpu_seconds`` of its fit.
    chosen_index : the position of the chosen model in `tried`; 0 if no candidate is better.
    within : how much larger its error may be than that of the model in use.
    chosen_by : the number of validation rows used for the choice.
    runs : the runs of the model in use, and of the chosen one if it is another.
    read : the protected attributes that are also features of all these models.
    search : the search that drew the candidates.
    """

    tried: Sequence[Row]
    chosen_index: int
    within: float
    chosen_by: int
    comparison: _BothModels
    runs: Sequence[Run]
    search: DrawnSearch
    read: tuple[str, ...] = ()
    notes: Sequence[str] = ()

    @property
    def in_use(self) -> Row:
        """The model in use."""
        return self.tried[0]

    @property
    def selected(self) -> Row:
        """The chosen one."""
        return self.tried[self.chosen_index]

    def allows(self, tried: Row) -> bool:
        """Return whether a candidate's error on the validation rows is small enough."""
        return bool(tried["error_rate"] <= self.in_use["error_rate"] + self.within + 1e-9)

    @property
    def label(self) -> str:
        """The meaning of label 1."""
        return self.runs[0].people().positive_label or "1"

    @property
    def bounds(self) -> list[Row]:
        """What ``more`` candidates can bring, from 0 to the most.

        The ``chance`` that one of them would be chosen, and by how much they lower the gap on
        average: the one ``seen`` on the validation rows, and the ``true`` one, of which the upper
        limit of its interval is known. Half of the risk is the interval's, half the chance's.
        """
        chance = self.search.chance
        gaps = {"seen": self.selected["gap"], "true": self.comparison.gaps[1][2]}
        return [
            {"more": more, "chance": (0.0, 1 - (1 - chance) ** more)}
            | {of: (0.0, float(gains.further_gain(gaps[of], chance, more=more))) for of in gaps}
            for more in FURTHER
        ]


COMPONENTS = ("learner", "intervention", "method")


def alternative_of_search(
    search: DrawnSearch, in_use: Mapping[str, Any], draw: Any = None
) -> tuple[Alternative, list[Plan]]:
    """Search, and judge the model in use and the chosen one; return the answer and both runs.

    Test rows are read here, for these two alone.

    Parameters
    ----------
    in_use : the components and options of the model in use, by name.
    draw : the function that draws the figures of a run, None for no figures.
    """
    search.carry_out()
    both = _carried_out(search, search.everyone[search.chosen_index], draw)
    runs = list({run.id: run for run in both}.values())
    shared = choice.shared_rows([prepared(run).folder for run in runs])
    run = search.run
    # Sequences have no names of features.
    features = [*map(str, getattr(run.dataset.features, "columns", ()))]
    # The runs that searches have had judged on the test rows of the model in use.
    sets = comparable_sets(list(Catalogue(run.folder.results)))
    (comparable,) = (runs for runs in sets if run.id in [other.id for other in runs])
    looks = {both[1].id, *(other.id for other in comparable if other.purpose == TUNING)} - {run.id}
    needs_group = {family.name: family.group_at_prediction for family in search.families}
    needs_group[""] = run.study.group_at_prediction
    tried = []
    for trial, (gap, error) in zip(search.everyone, search.values.tolist(), strict=True):
        values = trial.values or in_use
        words = {name: f"{name}={value}" for name, value in values.items()}
        family = " ".join(words[name] for name in COMPONENTS if trial.values)
        known: dict[str, Any] = {"what": " ".join(words.values()), "label": candidate_name(values)}
        known |= {"gap": gap, "error_rate": error, "group_at_prediction": needs_group[family]}
        tried.append(
            {**known, "family": family, "cpu_seconds": trial.seconds, "reason": trial.error}
        )
    rows = replace(shared.judging, prediction=shared.judging.prediction[:, [0, len(runs) - 1]])
    metric, level = search.goals[0].metric, search.tuning.level
    answer = Alternative(
        comparison=compare_models(rows, metric, level=level, looks=len(looks) or 1),
        runs=shared.runs,
        tried=tried,
        chosen_index=search.chosen_index,
        within=search.within,
        chosen_by=len(run.cells[0].fold.validation),
        notes=shared.notes,
        read=tuple(name for name in run.study.protect if name in features),
        search=search,
    )
    return answer, runs


def _carried_out(search: Search, chosen: Trial, draw: Any) -> tuple[Plan, Plan]:
    """Carry out the runs of the default and of the chosen trial, on all rows, and return them."""
    runs = search.default_plan, plan_run(search.compose(chosen.values))
    for end in Execution(runs, search.executor, draw).carry_out():
        end.checked()
    return runs


def candidate_name(values: Mapping[str, Any]) -> str:
    """Return a candidate for a reader: its components, and the options that are not the usual."""
    parts = [values[name] for name in ("learner", "intervention") if values[name] != "none"]
    options = options_shown({name: value for name, value in values.items() if "." in name})
    return f"{' + '.join(parts)}{f': {options}' if options else ''}"


def options_shown(values: Mapping[str, Any]) -> str:
    """Return the options of a trial as it is listed, each by the last part of its name."""
    return ", ".join(f"{of.rpartition('.')[2]}={value_text(value)}" for of, value in values.items())


def value_text(value: object) -> str:
    """Return an option's value as tables show it."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


# The result of tuning: the chosen trial, the gain that validation rows promise, and the test.
#
# Test rows are read here, and for two runs alone: that of the chosen trial, and that of the
# untuned default. Both are ordinary runs of the results folder, evaluated like any other.


@dataclass(frozen=True, eq=False)
class TuningResult:
    """The result of a study.

    Attributes
    ----------
    position : the index of the chosen trial among those of the search; it is never the default.
    test_rows : the number of test rows.
    gains : for each objective, the ``goal``, what validation rows promise of the chosen trial, and
        what test rows show. ``default`` and ``value`` are the metric of the untuned default and of
        the chosen trial; ``naive`` and ``corrected`` are intervals of the value, without and with
        correction for the choice; ``gain`` is how much better the chosen trial is than the default
        on these rows; ``expected`` is the interval of its expected gain on new people, corrected
        for the choice; ``fresh`` is the prediction interval of the gain on the test rows, including
        their sampling error. ``test_default``, ``test_value``, ``test_gain`` and its
        ``test_interval`` are of the test rows.
    """

    search: Search
    position: int
    test_rows: int
    gains: Sequence[Row]

    @property
    def level(self) -> float:
        """The level of all intervals."""
        return self.search.tuning.level


def _choose_trial(trials: Sequence[Trial], goals: Sequence[Goal], tuning: Tuning) -> int:
    """Return the position of the finished trial with the smallest weighted sum of objectives.

    Raises
    ------
    UserError : no trial has a value.
    """
    scores = np.full(len(trials), np.inf)
    for position, trial in enumerate(trials):
        if position and not (trial.error or trial.stopped):
            objectives = np.array([estimate.value for estimate in trial.estimates(goals)])
            scores[position] = float(tuning.score(objectives))
    if not np.isfinite(scores).any():
        if len(trials) == 1:
            raise UserError("no trial was begun: cpu_seconds= was spent on the untuned default")
        errors = [trial.error for trial in trials if trial.error]
        why = f"; the first error: {errors[0]}" if errors else ": all were stopped early"
        raise UserError(f"none of {len(trials) - 1} trials has a value{why}")
    return int(scores.argmin())


def tuned(search: Search, draw: Any = None) -> tuple[TuningResult, tuple[Plan, Plan]]:
    """Search, and judge what is chosen; return the answer, and the runs of default and chosen.

    Parameters
    ----------
    draw : the function that draws the figures of a run, None for no figures.
    """
    trials, goals, tuning = search.carry_out(), search.goals, search.tuning
    position, fresh = _choose_trial(trials, goals, tuning), len(search.run.cells[0].fold.test)
    runs = _carried_out(search, trials[position], draw)
    rows, tested = _rows_of(trials[0]), [_read_test_rows(prepared(run)) for run in runs]
    estimates = (trials[place].estimates(goals) for place in (0, position))
    # The default and the trials without errors, one for each setting of the options.
    distinct = {str(sorted(trial.values.items())): trial for trial in trials if not trial.error}
    tails_of_goals = _tails_of_goals([*distinct.values()], goals, tuning, fresh)
    plain, found = uncorrected_tails(tuning.level), []
    for goal, default, chosen, tails in zip(goals, *estimates, tails_of_goals, strict=True):
        of_gain, of_fresh, of_value = tails
        values = {"naive": plain, "corrected": of_value}
        limits = {name: gains.value_limits(chosen, rows, beyond) for name, beyond in values.items()}
        intervals = {name: _clip_to_range(goal, ends) for name, ends in limits.items()}
        intervals["expected"] = gains.gain_limits(default, chosen, rows, of_gain)
        intervals["fresh"] = gains.gain_limits(default, chosen, rows, of_fresh, fresh=fresh)
        on_test = (goal.estimate(tested[0]), goal.estimate(tested[1]))
        intervals["test_interval"] = gains.gain_limits(*on_test, tested[0], plain)
        of_test = {f"test_{name}": value for name, value in _values(goal, *on_test).items()}
        found.append({"goal": goal, **_values(goal, default, chosen), **intervals, **of_test})
    return TuningResult(search, position, fresh, found), runs


def _values(goal: Goal, default: GoalEstimate, chosen: GoalEstimate) -> dict[str, float]:
    """Return the metric of the untuned default and of the chosen trial, and how much is gained."""
    default_value, value = (goal.sign * estimate.value for estimate in (default, chosen))
    return {"default": default_value, "value": value, "gain": default.value - chosen.value}


def _rows_of(trial: Trial) -> GoalRows:
    """Return the rows that a trial was judged on; a trial without an error has them."""
    assert trial.rows is not None
    return trial.rows


def _clip_to_range(goal: Goal, limits: choice.LowerAndUpper) -> choice.LowerAndUpper:
    """Return limits on the metric's own scale, clipped to its range."""
    lower, upper = limits if goal.sign > 0 else (-limits[1], -limits[0])
    least = 0.0 if goal.metric.rates else float(goal.metric.least)
    return max(lower, least), min(upper, 1.0 if goal.metric.rates else np.inf)


def _tails_of_goals(
    trials: Sequence[Trial], goals: Sequence[Goal], tuning: Tuning, test_rows: int
) -> list[tuple[Tails, Tails, Tails]]:
    """Return the tails of each goal's limits for the trial chosen; the default comes first."""
    estimates = [trial.estimates(goals) for trial in trials]
    codes = np.unique(_rows_of(trials[0])["unit"])
    # Which people each row is of, as positions in `codes`.
    units = [np.searchsorted(codes, _rows_of(trial)["unit"]) for trial in trials]
    of_trials = zip(estimates, units, strict=True)
    noise = [[sums(goal.linear, unit, len(codes)) for goal in of] for of, unit in of_trials]
    values = np.array([[goal.value for goal in of_trial] for of_trial in estimates])
    unseen = np.array([[goal.least_of_value for goal in of_trial] for of_trial in estimates])
    beside = [zip(estimates[0], of_trial, strict=True) for of_trial in estimates]
    fresh = np.array([[_fresh_variance(*of, test_rows) for of in pairs] for pairs in beside])
    weights, level = np.array(tuning.weights or [1.0] * len(goals)), tuning.level
    spreads = {"noise": np.array(noise), "unseen": unseen, "fresh": fresh}
    return gains.chosen_tails(values, **spreads, weights=weights, level=level)


def _fresh_variance(default: GoalEstimate, tuned: GoalEstimate, test_rows: int) -> float:
    """Return the variance of the gain over draws of `test_rows` fresh rows."""
    count = len(tuned.linear)
    scaled = default.linear[:count] * (len(default.linear) / count)
    return float(((scaled - tuned.linear) ** 2).sum() + tuned.least_of_value) * count / test_rows


def _read_test_rows(run: PlannedRun) -> GoalRows:
    """Return the test rows of a finished run, with its predictions."""
    table = run.folder.predictions()
    table = table[table["part"] == TEST]
    folds = []
    for number, (_, of_fold) in enumerate(table.groupby(["repeat", "fold"])):
        predicted = of_fold.drop(columns=["repeat", "fold", "part", "row"])
        rows = of_fold["row"].to_numpy(np.intp)
        folds.append(label_rows(run.dataset, run.study.protect, rows, predicted, number))
    return pd.concat(folds)
