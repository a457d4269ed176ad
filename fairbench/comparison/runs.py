"""Comparisons of finished runs: their settings, which runs can be compared, and what comes out.

:class:`Settings` says by which objectives; :func:`load_predictions` reads what runs predicted, and
:func:`shared_rows` finds the rows that they share; :func:`compare_pair` and :func:`every_pair`
compare, with folds pooled by effective counts; :class:`VarianceRatios` says how much folds share.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache, partial
from itertools import chain, combinations, product
from pathlib import Path
from typing import Any, Self, TypeAlias

import numpy as np
import pandas as pd
import yaml
from numpy.typing import NDArray

from fairbench.components import CONF
from fairbench.core.arrays import Floats, rng
from fairbench.core.errors import UserError, did_you_mean, refused
from fairbench.core.files import DamagedError, write_bytes, write_text
from fairbench.core.options import check_declared, option
from fairbench.core.text import csv_text, digest, said
from fairbench.data.columns import unique_names
from fairbench.data.dataset import Dataset, Task
from fairbench.evaluation.summary import HEADLINES, headline_of, rows_of, several_values
from fairbench.experiments.configuration import IDENTITY, Presets
from fairbench.inference import comparing, posterior, survey
from fairbench.inference import repeats as means
from fairbench.inference.gaps import cells_of
from fairbench.inference.verdicts import Pairs
from fairbench.metrics.registry import binary_confusion
from fairbench.results.catalogue import Catalogue, differing_options
from fairbench.results.record import reading
from fairbench.results.runs import Run, place_of
from fairbench.results.tables import TEST, check_columns

AVERAGE, AT_MOST, RELATIVE, RELATIVE_UP = "average", "1/K", "relative", "relative_up"
MEAN, GROUP = "mean", "group"
AVERAGED, TYPICAL = "averaged", "typical"
# What a posterior is about, in words.
SPREADS = {AVERAGED: "the mean of all repeats", TYPICAL: "one repeat"}
# Settings of comparisons by confusion counts alone.
_OF_COUNTS = ("rho", "repeats", "paired", "predictive", "alpha")


@dataclass(frozen=True)
class Settings:
    """Options for comparing two runs: those of `fairbench compare`.

    Attributes
    ----------
    objectives : The metrics by which runs are compared, any that they store; by default the error
        and the gap that a run is first looked at by. Of a gap between groups, smaller is better.
    rope : Up to which difference of each objective two runs are practically equal; by default what
        each metric declares, 0.01 for most, or a hundredth of an RMSE or an uncertainty.
    rho : The correlation between folds: average (over 0 to 1/K), 1/K, a number, or from half-split
        runs and those of a reference learner: relative (the reference's own being 1/K) or
        relative_up (averaged over 0 to the relative one).
    rho_per : There is one relative correlation for each group, or one from the variance ratios'
        mean over groups and objectives.
    reference_run : The half-split run of the reference learner, by id or name; the one of
        learner=svm without intervention by default.
    repeats : Several repeats are averaged, which says what holds of these fitted models on new
        people; or, as the paper does, each is compared by itself and the typical one is shown.
    paired : Compare through the joint table of both runs' predictions on the same rows; otherwise
        by two independent posteriors, as the paper does.
    predictive : Draw counts after the probabilities, as the published code does.
    alpha : The prior pseudo-count of a cell of the confusion matrix.
    draws : How many posterior draws are made.
    level : The level of intervals, and of the region of the most credible differences.
    protect : The sensitive attributes whose groups are compared; those of the first run by default.
    seed : The seed of all random draws.
    """

    objectives: tuple[str, ...] = option((), shown="[METRIC,...]")
    rope: tuple[float, ...] = option((), shown="[NUMBER,...]")
    rho: str = option(AVERAGE)
    rho_per: str = option(GROUP, choices=(GROUP, MEAN))
    reference_run: str = option("", shown="RUN")
    repeats: str = option(AVERAGED, choices=(AVERAGED, TYPICAL))
    paired: bool = option(True)
    predictive: bool = option(False)
    alpha: float = option(1.0, least=0)
    draws: int = option(10000, least=100)
    level: float = option(0.95, share=True)
    protect: tuple[str, ...] = option(())
    seed: int = option(0, least=0)

    def __post_init__(self) -> None:
        """Refuse settings that mean nothing, before any run is read."""
        self.shrinkage(10, 1.0)
        check_declared(self)

    def about(self, *runs: RunPredictions) -> Self:
        """Return these settings for some runs, with their headlines where nothing is named.

        Raises
        ------
        UserError : settings of comparisons by counts, with an objective that is not one of counts.
        """
        task = runs[0].people.task
        usual = HEADLINES[task]
        names = self.objectives or (usual["error"], headline_of(runs) or usual["gap"])
        about = replace(self, objectives=names)
        of_splits = [goal.metric.name for goal in about.goals(task) if not goal.of_counts]
        defaults = Settings()
        given = [name for name in _OF_COUNTS if getattr(self, name) != getattr(defaults, name)]
        if of_splits and given:
            words = " and ".join(f"{name}=" for name in given)
            raise UserError(said("comparison", "of_splits", metric=of_splits[0], given=words))
        return about

    def goals(self, task: str) -> list[comparing.Objective]:
        """Return the objectives of runs of a task."""
        return [comparing.objective(name, task) for name in self.objectives]

    @property
    def relative(self) -> bool:
        """Whether rho comes from half-split runs."""
        return self.rho in (RELATIVE, RELATIVE_UP)

    def shrinkage(self, folds: int, ratio: float | Floats | None = None) -> Floats:
        """Return the share of the rows of `folds` pooled folds that counts as independent.

        Parameters
        ----------
        ratio : the run's variance divided by the reference learner's, a number or (G, 1); a
            relative rho needs it.
        """
        if folds == 1:
            return np.asarray(1.0)
        if self.rho == AVERAGE:
            return np.asarray(survey.mean_shrinkage(folds))
        if self.relative:
            if ratio is None:
                raise UserError(said("comparison", "no_ratio", rho=self.rho))
            if self.rho == RELATIVE_UP:
                return survey.mean_relative_shrinkage(ratio, folds)
            return survey.shrinkage(survey.relative_rho(ratio, folds), folds)
        try:
            return survey.shrinkage(1 / folds if self.rho == AT_MOST else float(self.rho), folds)
        except ValueError:
            raise UserError(said("comparison", "unknown_rho", rho=self.rho)) from None


# The labels that finished runs predicted, to be compared or written as a table.


# What one fold predicted: the numbers of its test ``rows``, ``prediction``: their labels, or the
# numbers of a regression, and, if there are any, ``score``.
_Split: TypeAlias = tuple[int, int]  # a repeat, and the position of a fold
Fold: TypeAlias = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class RunPredictions:
    """The predictions of a finished run, with labels and groups.

    `repeats` has the folds of each repeat: one of a hold-out split, K of a K-fold split. `metrics`
    reads the run's long table; `headline` is the gap that it is first looked at by, if it has one.
    `weighted` is whether its metrics are of weighted rows.
    """

    id: str
    name: str
    people: Dataset
    protect: tuple[str, ...]
    repeats: Mapping[int, list[Fold]]
    metrics: Callable[[], pd.DataFrame]
    headline: str = ""
    weighted: bool = False


NUMBERS = (Task.BINARY, Task.REGRESSION)  # the tasks whose predictions are a number each
_NOT_BINARY = {Task.REGRESSION: "of a regression", Task.MULTICLASS: "of several classes"}


def load_predictions(
    run: Run, *, participle: str = "compared", tasks: Sequence[Task] = (Task.BINARY,)
) -> RunPredictions:
    """Read the predictions of a finished run for its test rows.

    Parameters
    ----------
    participle : what is done with the predictions, for the message of a refusal.
    tasks : those that the run may have.

    Raises
    ------
    UserError : another task; files that are missing or damaged, or a fold without predictions.
    """
    people = people_of(run, participle, tasks)
    table = read_predictions(run, people, ("prediction", "score"))
    repeats: dict[int, list[Fold]] = {}
    for (repeat, fold), rows in table[table["part"] == TEST].groupby(["repeat", "fold"]):
        if rows["prediction"].isna().any():
            raise UserError(said("comparison", "no_predictions", run=run, repeat=repeat, fold=fold))
        kinds = {"prediction": _type_of(people), "score": float}
        columns = {name: rows[name].to_numpy(kinds[name]) for name in kinds if name in rows}
        of_fold = {"rows": rows["row"].to_numpy(np.intp), **columns}
        repeats.setdefault(int(repeat), []).append(of_fold)
    names, metrics = (run.id, run.name), cache(run.all_metrics)
    return RunPredictions(
        *names, people, run.attributes, repeats, metrics, run.headline, is_weighted(run)
    )


def is_weighted(run: Run) -> bool:
    """Return whether a run's metrics are of weighted rows, which its counts are not."""
    return bool(run.config["evaluator"].get("weights"))


def load_all(
    runs: Sequence[Run], settings: Settings, tasks: Sequence[Task] = (Task.BINARY,)
) -> tuple[list[RunPredictions], list[str]]:
    """Return the predictions of runs of these tasks that can be compared, and why others cannot."""
    loaded, left_out = [], []
    for run in runs:
        try:
            of_run = load_predictions(run, tasks=tasks)
            _refuse_weights(of_run, settings)
            loaded.append(of_run)
        except UserError as error:
            left_out.append(str(error))
    return loaded, left_out


def _refuse_weights(run: RunPredictions, settings: Settings) -> None:
    """Refuse a run of weighted rows where it is compared by counts, in which every row is one."""
    if run.weighted and any(goal.of_counts for goal in settings.about(run).goals(run.people.task)):
        raise UserError(said("comparison", "weighted", run=run))


def _type_of(people: Dataset) -> type[np.number[Any]]:
    """Return the type of targets and predictions: labels, or numbers of a regression."""
    return np.float64 if people.task is Task.REGRESSION else np.int64


def people_of(run: Run, participle: str, tasks: Sequence[Task] = (Task.BINARY,)) -> Dataset:
    """Return the people of a run, or refuse it if it has another task.

    Parameters
    ----------
    participle : what runs of these tasks are, for the message, such as ``compared``.
    """
    people = run.people()
    if people.task not in tasks:
        others = " and regressions" if Task.REGRESSION in tasks else ""
        told = {"kind": _NOT_BINARY[people.task], "others": others, "participle": participle}
        raise UserError(said("comparison", "other_task", run=run, **told))
    return people


def read_predictions(run: Run, people: Dataset, columns: Sequence[str]) -> pd.DataFrame:
    """Return some columns of a run's table of predictions, checked.

    Raises
    ------
    UserError : the rows are not those of `people`, or labels are not 0 and 1.
    """
    table = run.predictions(columns)
    with reading(place_of(run.path, "predictions.parquet")):
        check_columns(table, ["prediction"])
        labels = table["prediction"].to_numpy()
        is_label = np.isnan(labels) | np.isin(labels, (0, 1))
        if people.task is Task.BINARY and not is_label.all():
            raise DamagedError("it predicts other labels than 0 and 1")
        if not len(table) or table["row"].max() >= len(people):
            raise DamagedError("its rows are not those of the data set")
    return table


def predictions_frame(run: RunPredictions, repeat: int) -> pd.DataFrame:
    """Return one repeat's test rows: row, fold, target, score, prediction, sensitive columns.

    There is a score only if the method gives one, a cluster only if the data set has clusters, and
    a weight only if the run weighs its rows.
    The folds of a K-fold split are concatenated. A table has one repeat, as others test some of the
    same people again.

    Raises
    ------
    UserError : a repeat that the run does not have.
    """
    if repeat not in run.repeats:
        there = ", ".join(map(str, run.repeats))
        raise UserError(said("comparison", "no_repeat", run=run, repeats=there, repeat=repeat))
    folds = run.repeats[repeat]
    columns = {name: np.concatenate([fold[name] for fold in folds]) for name in folds[0]}
    rows = columns.pop("rows")
    table = {
        "row": rows,
        "fold": np.repeat(np.arange(len(folds)), [len(fold["rows"]) for fold in folds]),
        "target": run.people.target.to_numpy()[rows].astype(_type_of(run.people)),
        **dict(sorted(columns.items(), reverse=True)),  # the score before the prediction
    }
    if run.people.clusters is not None:
        table["cluster"] = run.people.clusters.to_numpy()[rows]
    if run.weighted:
        if run.people.weight is None:
            raise UserError(said("comparison", "no_weights", run=run))
        table["weight"] = run.people.weight.to_numpy()[rows]
    sensitive = run.people.sensitive.iloc[rows].reset_index(drop=True).astype(str)
    sensitive.columns = _group_columns(run)
    return pd.concat([pd.DataFrame(table), sensitive], axis="columns")


def _group_columns(run: RunPredictions) -> list[str]:
    """Return the columns of groups in the table of a run's predictions.

    An attribute with the name of another column, such as ``target``, becomes ``target.1``.
    """
    others = [*_OTHER_COLUMNS, *(["weight"] if run.weighted else [])]
    return unique_names([*others, *map(str, run.people.sensitive.columns)])[len(others) :]


_OTHER_COLUMNS = ("row", "fold", "target", "score", "prediction", "cluster")


def audit_options(run: RunPredictions, frame: pd.DataFrame) -> dict[str, Any]:
    """Return the options with which a table of a run's predictions is audited as the run was."""
    favourable, groups = run.people.favourable, _group_columns(run)
    columns = [name for name in frame if name not in ("row", "fold", *groups)]
    return {
        **{name: name for name in columns},
        "group": tuple(groups),
        **({} if favourable is None else {"favourable": str(favourable)}),
    }


def export(run: RunPredictions, path: Path, repeat: int, *, people: bool = False) -> pd.DataFrame:
    """Write the predictions of one repeat as CSV, or as Parquet by the file's ending.

    Parameters
    ----------
    people : whether target and groups are written although the data set does not say that they may
        be passed on.

    Raises
    ------
    UserError : an ending that is neither, a place that cannot be written, or no such repeat.
    """
    frame = predictions_frame(run, repeat)
    if not (people or run.people.redistributable):
        frame = frame.drop(
            columns=["target", "cluster", "weight", *_group_columns(run)], errors="ignore"
        )
    try:
        if path.suffix == ".parquet":
            write_bytes(path, frame.to_parquet(index=False), mode=0o600)
        elif path.suffix == ".csv":
            write_text(path, csv_text(frame), mode=0o600)
        else:
            raise UserError(said("comparison", "no_ending", path=path))
    except OSError as error:
        raise UserError(f"not written: {refused(error)}") from error
    return frame


def without_copies(runs: Sequence[Run]) -> tuple[list[Run], list[str]]:
    """Return runs without those that are one of the others again, and a sentence on each of these.

    Runs of different ids are one where they computed the same from the same data, such as from a
    file by two paths.
    """
    first: dict[str, Run] = {}
    notes = []
    for run in runs:
        original = first.setdefault(run.environment["fingerprint"], run)
        if original is not run:
            notes.append(said("comparison", "copied", run=run, original=original))
    return list(first.values()), notes


# Comparisons of finished runs, with folds pooled by effective counts.

# The other events are mixed.
_PLAIN = (comparing.A_BETTER, comparing.B_BETTER, comparing.PRACTICALLY_EQUAL)


def typical_repeat(events: pd.DataFrame) -> int:
    """Return the position of the repeat with event probabilities nearest to the medians."""
    distance = (events - events.median()).abs().sum(axis=1)
    return int(distance.to_numpy().argmin())


# Returns the ratio of a run's variance to the reference learner's, a number or (G, 1).
Ratios = Callable[[RunPredictions], Floats]


def compare_pair(
    first: RunPredictions, second: RunPredictions, settings: Settings, ratios: Ratios | None = None
) -> _PairComparison:
    """Return the comparison of two runs by the repeats that both have.

    Parameters
    ----------
    settings : how repeats are pooled, what is compared, and the prior.
    ratios : computes the variance ratio of a run, which a relative rho needs.

    Raises
    ------
    UserError : runs of different data sets or splits, or (paired) of different test rows; runs that
        weigh their rows, by counts.
    """
    settings = settings.about(first, second)
    for run in (first, second):
        _refuse_weights(run, settings)
    if first.people.name != second.people.name or len(first.people) != len(second.people):
        raise UserError(said("comparison", "other_data", first=first, second=second))
    repeats = sorted(first.repeats.keys() & second.repeats.keys())
    if not repeats:
        raise UserError(f"runs {first.id} and {second.id} have no repeat in common")
    is_one_by_one = settings.repeats == TYPICAL
    repeats_of_comparisons = [[repeat] for repeat in repeats] if is_one_by_one else [repeats]
    fractions = [effective_sample_fraction(run, settings, ratios) for run in (first, second)]
    return _PairComparison((first, second), settings, fractions, repeats_of_comparisons)


@dataclass(eq=False)
class _PairComparison:
    """The comparison of two runs, by settings that name the objectives.

    Attributes
    ----------
    fractions : the effective sample fractions of both runs' pooled rows.
    repeats : those of each of the `comparisons`: of one of averaged repeats, or of one per repeat.
    """

    runs: tuple[RunPredictions, RunPredictions]
    settings: Settings
    fractions: Sequence[Floats]
    repeats: list[list[int]]

    def __post_init__(self) -> None:
        """Compare the runs."""
        self.comparisons = list(map(self._compared, self.repeats))

    def events(self, regions: list[comparing.Region] | None = None) -> pd.DataFrame:
        """Return the probabilities of the events, a row per comparison, within `regions`."""
        inside = [region.inside for region in regions] if regions else [None] * len(self.repeats)
        pairs = zip(self.comparisons, inside, strict=True)
        return pd.DataFrame([comparison.events(rows) for comparison, rows in pairs])

    def regions(self, level: float) -> list[comparing.Region]:
        """Return the highest-density region of every comparison."""
        return [comparing.highest_density_region(of.delta, level) for of in self.comparisons]

    def _compared(self, repeats: Sequence[int]) -> comparing.Comparison:
        """Return the comparison of the runs by some of their repeats together.

        Repeats that test different rows are compared twice: by their averaged counts, deflated for
        what repeats share, and by the spread of their tables. The wider of the two is returned.
        """
        settings, people = self.settings, self.runs[0].people
        objectives = settings.goals(people.task)
        if not all(goal.of_counts for goal in objectives):
            return self._in_splits(repeats, objectives)
        rope = settings.rope or tuple(goal.metric.epsilon for goal in objectives)
        counts = self._effective_counts(repeats)
        generator = rng(settings.seed, "comparison", people.name, repeats[0])
        averaged = [np.mean(count, axis=0) for count in counts]
        share = _tested_share(self.runs[0], repeats)
        counted = np.stack(posterior.margins(averaged[0]) if settings.paired else averaged)
        if np.isnan(share):
            drawn = self._draws(averaged, generator)
            return comparing.compare(*drawn, objectives, rope, counted)
        if settings.predictive:
            raise UserError("predictive=true is about one test set: it needs repeats=typical")
        factor = means.inflation(len(repeats), share)
        deflated = self._draws([table / factor for table in averaged], generator)
        from_counts = comparing.compare(*deflated, objectives, rope, counted)
        drawn = self._mean_draws(counts, share, generator)
        from_repeats = comparing.compare(*drawn, objectives, rope)
        return replace(from_repeats, delta=means.no_narrower(from_repeats.delta, from_counts.delta))

    def _in_splits(
        self, repeats: Sequence[int], goals: Sequence[comparing.Objective]
    ) -> comparing.Comparison:
        """Return the comparison of the runs by their values in the splits, in pairs.

        What is no function of confusion counts, such as a loss, has one value in a split. Its
        mean's posterior is that of the Bayesian correlated t-test; so is that of the mean tables
        which any other objective is computed from, by the same draws.
        """
        settings, people = self.settings, self.runs[0].people
        others = [goal for goal in goals if not goal.of_counts]
        stored, folds, share = values_in_splits(self.runs, repeats, others, settings)
        # The same draws for every objective.
        generator = partial(rng, settings.seed, "comparison in splits", people.name, repeats[0])
        student = means.student_draws(len(stored), settings.draws, generator())
        if len(others) < len(goals):
            labels = _labels_of(people, settings.protect or self.runs[0].protect)
            counts = np.stack([labels.counts(of_run) for of_run in folds], axis=1)
            shares = counts / counts.sum(axis=(-1, -2), keepdims=True)
            tables = means.mean_table_draws(
                shares, share, draws=settings.draws, generator=generator()
            )
        leads: list[Floats] = []
        rope: list[float] = []
        for goal in goals:
            if goal.of_counts:
                leads.append(goal(tables[:, 0]) - goal(tables[:, 1]))
                rope.append(goal.metric.epsilon)
            else:
                values = stored[..., others.index(goal)]
                leads.append(comparing.lead_of_values(values, goal, share, student))
                rope.append(goal.metric.negligible(values))
        return comparing.Comparison.of(leads, settings.objectives, settings.rope or rope)

    def _effective_counts(self, repeats: Sequence[int]) -> list[Floats]:
        """Return the effective counts of both runs' pooled folds of J repeats, (J, G, C) each.

        Paired runs have one joint table, others one table each. A joint table has the smaller of
        the two effective sample fractions.
        """
        labels = _labels_of(self.runs[0].people, self.settings.protect or self.runs[0].protect)
        _check_folds(self.runs, repeats)

        def pooled(count: Callable[..., NDArray[Any]], *runs: RunPredictions) -> NDArray[Any]:
            folds = ([run.repeats[repeat] for run in runs] for repeat in repeats)
            return np.stack([count(*of_repeat).sum(axis=0) for of_repeat in folds])

        if self.settings.paired:
            return [pooled(labels.joint, *self.runs) * np.minimum(*self.fractions)]
        each = zip(self.runs, self.fractions, strict=True)
        return [pooled(labels.counts, run) * fraction for run, fraction in each]

    def _draws(
        self, counts: Sequence[Floats], generator: np.random.Generator
    ) -> tuple[Floats, Floats]:
        """Return draws from the posterior of both runs' tables, given their effective counts."""
        of = self.settings
        options: dict[str, Any] = {"alpha": of.alpha, "predictive": of.predictive}
        if of.paired:
            return posterior.paired_draws(counts[0], of.draws, generator, **options)
        return posterior.independent_draws(counts[0], counts[1], of.draws, generator, **options)

    def _mean_draws(
        self, counts: Sequence[Floats], share: float, generator: np.random.Generator
    ) -> tuple[Floats, Floats]:
        """Return draws of both runs' mean tables over fits, on new people.

        Parameters
        ----------
        counts : the effective counts of repeats: one joint table for paired runs, otherwise one
            each.
        share : the share of rows that a repeat tests.
        """
        paired = self.settings.paired
        tables = np.stack(posterior.margins(counts[0]) if paired else counts, axis=1)
        tables = tables / tables.sum(axis=(-1, -2), keepdims=True)
        draw = partial(means.mean_table_draws, draws=self.settings.draws, generator=generator)
        if paired:
            drawn = draw(tables, share)
            return drawn[:, 0], drawn[:, 1]
        return draw(tables[:, 0], share), draw(tables[:, 1], share)


def values_in_splits(
    runs: Sequence[RunPredictions],
    repeats: Sequence[int],
    goals: Sequence[comparing.Objective],
    settings: Settings,
) -> tuple[Floats, list[list[Fold]], float]:
    """Return the values (J, R, M) that R runs store of M metrics in J splits, where all have one.

    Also the folds (R, J) of these splits, and the share of all rows that one tests.

    Raises
    ------
    UserError : the runs were tested on different rows, or share fewer than two splits; a run has no
        such metric, or several values of it in a split.
    """
    _check_folds(runs, repeats)
    places = [(repeat, fold) for repeat in repeats for fold in range(len(runs[0].repeats[repeat]))]
    folds = [[run.repeats[repeat][fold] for repeat, fold in places] for run in runs]
    for same in zip(*folds, strict=True):
        if not all(np.array_equal(same[0]["rows"], other["rows"]) for other in same):
            raise UserError(said("comparison", "other_rows", advice=""))
    stored = [[_stored_values(run, goal, settings, places) for goal in goals] for run in runs]
    values = np.moveaxis(np.array(stored), -1, 0)
    defined = np.isfinite(values).all(axis=(1, 2))
    kept = [[fold for fold, is_kept in zip(of, defined, strict=True) if is_kept] for of in folds]
    distinct = len({fold["rows"].tobytes() for fold in kept[0]})
    if distinct < 2 or distinct < len(kept[0]):
        name = goals[0].metric.name
        raise UserError(said("comparison", "one_split", metric=name, count=distinct))
    share = float(np.mean([len(fold["rows"]) for fold in kept[0]])) / len(runs[0].people)
    return values[defined], kept, share


def _stored_values(
    run: RunPredictions, goal: comparing.Objective, settings: Settings, places: Sequence[_Split]
) -> Floats:
    """Return a metric's value in each split of a run, (J,); NaN where it is undefined.

    Raises
    ------
    UserError : the run has no such metric, or several values of it in a split.
    """
    name, table = goal.metric.name, run.metrics()
    rows = rows_of(table, name, " x ".join(settings.protect or run.protect))
    if rows.empty:
        hint = did_you_mean(name, {*table["metric"]})
        raise UserError(f"run {run.id} ({run.name}) has no metric '{name}'{hint and ': '}{hint}")
    if rows.duplicated(["repeat", "fold"]).any():
        raise several_values(name, rows)
    value_of = rows.set_index(["repeat", "fold"])["value"]
    return value_of.reindex(pd.MultiIndex.from_tuples(places)).to_numpy(float)


def _check_folds(runs: Sequence[RunPredictions], repeats: Sequence[int]) -> None:
    """Refuse runs that have different numbers of folds in a repeat."""
    for repeat, other in product(repeats, runs[1:]):
        first, second = (len(run.repeats[repeat]) for run in (runs[0], other))
        if first != second:
            folds = {"first": first, "second": second}
            raise UserError(said("comparison", "other_folds", runs=(runs[0], other), **folds))


def _tested_share(run: RunPredictions, repeats: Sequence[int] = ()) -> float:
    """Return the share of all rows that a hold-out repeat tests, on average over repeats.

    It is NaN if every repeat tests all rows (K folds) or the same rows: such repeats are pooled,
    and count as one.

    Parameters
    ----------
    repeats : the repeats to average over; all of the run's if empty.
    """
    folds_of_repeats = [run.repeats[repeat] for repeat in (repeats or run.repeats)]
    tested_rows = [folds[0]["rows"] for folds in folds_of_repeats]
    are_same_rows = all(np.array_equal(rows, tested_rows[0]) for rows in tested_rows[1:])
    if len(folds_of_repeats[0]) > 1 or are_same_rows:
        return float("nan")
    return float(np.mean([len(rows) for rows in tested_rows])) / len(run.people)


@dataclass(frozen=True, eq=False)
class _Labels:
    """The target and the group of every row of a data set, as codes."""

    target: NDArray[np.int64]
    group: NDArray[np.int64]
    n_groups: int

    def counts(self, folds: Sequence[Fold]) -> NDArray[np.int64]:
        """Return the (F, G, 4) confusion counts of F folds."""
        target, code, prediction = self._pool_folds(folds)
        counts = binary_confusion(target, prediction, code, n_groups=len(folds) * self.n_groups)
        return counts.reshape(len(folds), self.n_groups, 4)

    def joint(self, first_folds: Sequence[Fold], second_folds: Sequence[Fold]) -> NDArray[np.int64]:
        """Return the (F, G, 8) joint counts of two runs' predictions on F folds."""
        if not all(
            np.array_equal(first["rows"], second["rows"])
            for first, second in zip(first_folds, second_folds, strict=True)
        ):
            advice = ": compare them with paired=false"
            raise UserError(said("comparison", "other_rows", advice=advice))
        target, code, first, second = self._pool_folds(first_folds, second_folds)
        n_groups = len(first_folds) * self.n_groups
        counts = cells_of(target, first, second, code, groups=n_groups)
        return counts.reshape(len(first_folds), self.n_groups, 8)

    def _pool_folds(self, *folds_of_runs: Sequence[Fold]) -> list[NDArray[np.int64]]:
        """Return target, code of fold and group, and each run's predictions of all folds' rows.

        Runs must have the same rows.
        """
        folds = folds_of_runs[0]
        rows = np.concatenate([fold["rows"] for fold in folds])
        fold_number = np.repeat(np.arange(len(folds)), [len(fold["rows"]) for fold in folds])
        fold_and_group = fold_number * self.n_groups + self.group[rows]
        predictions = [
            np.concatenate([fold["prediction"] for fold in run]) for run in folds_of_runs
        ]
        return [self.target[rows], fold_and_group, *predictions]


@lru_cache(maxsize=8)
def _labels_of(people: Dataset, protect: tuple[str, ...]) -> _Labels:
    """Return the labels of a data set, cached as many pairs of runs share them."""
    groups = people.groups(protect)
    codes = groups.cat.codes.to_numpy(np.int64)
    return _Labels(people.target.to_numpy(np.int64), codes, len(groups.cat.categories))


def observed_values(run: RunPredictions, settings: Settings, repeats: Sequence[int]) -> Floats:
    """Return a run's values (m,) of what it is compared by: in test rows, means over repeats.

    A repeat's folds are pooled. Gaps and errors have their own sign; a ratio above 1 is inverted. A
    value is NaN where no repeat defines it.
    """
    goals = settings.about(run).goals(run.people.task)
    return np.array([means.finite_mean(_observed(run, goal, settings, repeats)) for goal in goals])


def _observed(
    run: RunPredictions, goal: comparing.Objective, settings: Settings, repeats: Sequence[int]
) -> Floats:
    """Return a run's values of a metric, with its own sign, in each repeat, or in each split."""
    if not goal.of_counts:
        places = [(repeat, k) for repeat in repeats for k in range(len(run.repeats[repeat]))]
        return _stored_values(run, goal, settings, places)
    sign = -1.0 if goal.metric.better == "lower" else 1.0
    return sign * goal(_tables(run, settings, repeats))


def _tables(run: RunPredictions, settings: Settings, repeats: Sequence[int]) -> Floats:
    """Return the confusion tables (J, G, 4) of J repeats, whose folds are pooled."""
    labels = _labels_of(run.people, settings.protect or run.protect)
    return np.stack([labels.counts(run.repeats[repeat]).sum(axis=0) for repeat in repeats])


def left_out(
    runs: Sequence[RunPredictions], settings: Settings, repeats: Sequence[int]
) -> list[str]:
    """Say which groups, and how many repeats, are left out of what A and B are compared by."""
    holders: dict[str, list[str]] = {}
    for letter, run in zip("AB", runs, strict=True):
        groups = run.people.groups(settings.protect or run.protect).cat.categories
        for goal in settings.about(run).goals(run.people.task):
            values = _observed(run, goal, settings, repeats)
            about = {"metric": goal.metric.label, "all": len(values)}
            about["splits"] = "repeats" if goal.of_counts else "splits"
            notes = []
            if goal.metric.interval == "widest" and goal.of_counts:
                lacks = ~goal.having(tables := _tables(run, settings, repeats))
                for g in np.flatnonzero(lacks.any(axis=0)):
                    of_group = tables[lacks[:, g], g]
                    why = next(of.empty for of in goal.metric.rates if np.isnan(of(of_group)).any())
                    told = {"group": groups[g], "count": int(lacks[:, g].sum()), "why": why}
                    notes.append(said("comparison", "without_group", **told, **about))
            if count := int(np.isnan(values).sum()):
                notes.append(said("comparison", "without_value", count=count, **about))
            for note in notes:
                holders.setdefault(note, []).append(letter)
    return [note if len(of) > 1 else f"{of[0]}: {note}" for note, of in holders.items()]


def effective_sample_fraction(
    run: RunPredictions, settings: Settings, ratios: Ratios | None = None
) -> Floats:
    """Return the share of a run's pooled rows that counts as independent: a number or (G, 1).

    Training sets of folds overlap, so counts of pooled folds are multiplied by this.
    """
    folds = len(next(iter(run.repeats.values())))
    ratio = ratios(run) if ratios and settings.relative and folds > 1 else None
    return settings.shrinkage(folds, ratio)


def every_pair(
    runs: Sequence[RunPredictions],
    settings: Settings,
    ratios: Ratios | None = None,
    shown: Callable[[list[tuple[int, int]]], Iterable[tuple[int, int]]] = iter,
) -> Pairs:
    """Return the probabilities of the events of every pair of R runs.

    If repeats are compared one by one, these are medians over repeats.

    Parameters
    ----------
    shown : a function that yields the pairs, and may show how far it has come.
    """
    better, equivalent, traded = np.full((3, len(runs), len(runs)), np.nan)
    for first, second in shown([*combinations(range(len(runs)), 2)]):
        events = compare_pair(runs[first], runs[second], settings, ratios).events()
        wins, losses, alike = events[list(_PLAIN)].median()
        better[first, second], better[second, first] = wins, losses
        equivalent[first, second] = equivalent[second, first] = alike
        mixed = events.drop(columns=list(_PLAIN)).sum(axis=1).median()
        traded[first, second] = traded[second, first] = mixed
    return Pairs(better, equivalent, traded)


# Half-split runs, and ratios of variances to a reference learner, from which rho is estimated.

HALF_SPLITS = "half_splits"
# Settings that do not change which labels a run predicts.
_ASIDE = ("split", "evaluator", "consistency", "headline")
# Settings in which the reference's run agrees with the run that it is compared with.
_SHARED_SETTINGS = ("dataset", "method", "seed")


@dataclass(frozen=True, eq=False)
class VarianceRatios:
    """Ratios of variances to the reference learner's, from the half-split runs of a folder.

    Attributes
    ----------
    catalogue : the results folder.
    settings : ratios are of the rates that its `objectives` use. Its `reference` is the id or name
        of the reference learner's half-split run; if empty, it is the run of the components that
        ``conf/reference.yaml`` names. Its `rho_per` is ``group``: one ratio for each group, the
        mean over rates; or ``mean`` over both. Its `protect` has the attributes that define the
        groups; if empty, these are the run's own.
    """

    catalogue: Catalogue
    settings: Settings

    def __call__(self, run: RunPredictions) -> Floats:
        """Return the run's ratio r: a number, or (G, 1) per group."""
        ratios = self.ratios_of_rates(run)
        is_known = ~np.isnan(ratios)
        if not is_known.any():
            raise UserError(said("comparison", "no_variance", run=run))
        if self.settings.rho_per == MEAN:
            return np.asarray(ratios[is_known].mean())
        # A group without a ratio of its own gets the mean of all ratios.
        filled = np.where(is_known.any(axis=0), ratios, ratios[is_known].mean())
        return np.asarray(np.nanmean(filled, axis=0)[:, None])

    def ratios_of_rates(self, run: RunPredictions) -> Floats:
        """Return the ratio of every rate and group, (R, G); NaN if undefined in a half."""
        self.check([run])
        own, reference = (
            self._estimates(load_predictions(half_run), run)
            for half_run in self._half_runs_of(run)
            if half_run
        )
        shared = sorted(own.keys() & reference.keys())
        return survey.variance_ratio(
            *(np.stack([of[repeat] for repeat in shared]) for of in (own, reference))
        )

    def check(self, runs: Sequence[RunPredictions]) -> None:
        """Refuse runs without a half-split run of their own or of the reference.

        Raises
        ------
        UserError : it names the missing runs, and the commands that make them.
        """
        lacking = [run for run in runs if None in self._half_runs_of(run)]
        if not lacking:
            return
        missing: dict[str, Mapping[str, str]] = {}
        presets = Presets()
        for run in lacking:
            own, reference = self._half_runs_of(run)
            words = presets.overrides(self.catalogue.runs[run.id])
            words = {name: text for name, text in words.items() if not name.startswith(_ASIDE)}
            if own is None:
                missing[f"run {run.id}"] = words | {"split": HALF_SPLITS}
            if reference is None:
                components = tuple(self._components)
                others = {k: text for k, text in words.items() if not k.startswith(components)}
                missing["the reference learner"] = (
                    others | self._components | {"split": HALF_SPLITS}
                )
        jobs = {json.dumps(dict(job), sort_keys=True): job for job in missing.values()}
        commands = " and ".join(presets.commands(list(jobs.values())))
        values = {"missing": ", ".join(missing), "commands": commands}
        folder = self.catalogue.folder
        raise UserError(said("comparison", "no_half_splits", folder=folder, **values))

    def _half_runs_of(self, run: RunPredictions) -> tuple[Run | None, Run | None]:
        """Return the half-split runs of a run's configuration and of the reference, if any.

        Of several, it is the one with most halvings.
        """
        stored = self.catalogue.runs[run.id]
        own = [half for half in self._half_runs if _identity(half) == _identity(stored)]
        if self.settings.reference_run:
            return _most_halvings(own), self.catalogue.one(self.settings.reference_run)
        references = [
            half
            for half in self._half_runs
            if all(half.choices[group] == option for group, option in self._components.items())
            and all(half.config[name] == stored.config[name] for name in _SHARED_SETTINGS)
        ]
        protect = stored.config["protect"]
        references = [
            half for half in references if half.config["protect"] == protect
        ] or references
        if len({json.dumps(half.config["learner"]) for half in references}) > 1:
            ids = ", ".join(half.id for half in references)
            raise UserError(said("comparison", "several_references", ids=ids))
        return _most_halvings(own), _most_halvings(references)

    @cached_property
    def _components(self) -> dict[str, str]:
        """The learner and the intervention of the reference."""
        return dict(yaml.safe_load((CONF / "reference.yaml").read_text(encoding="utf-8")))

    @cached_property
    def _half_runs(self) -> list[Run]:
        return list(self.catalogue.select(split=HALF_SPLITS))

    def _estimates(self, half_run: RunPredictions, run: RunPredictions) -> dict[int, Floats]:
        """Return the rates of both halves of every halving: repeat -> (2, R, G)."""
        labels = _labels_of(run.people, self.settings.protect or run.protect)
        task = run.people.task
        goals = self.settings.about(run).goals(task)
        rates = dict.fromkeys(chain.from_iterable(goal.rates for goal in goals))
        estimates = {}
        for repeat, folds in half_run.repeats.items():
            counts = labels.counts(folds)
            estimates[repeat] = np.stack([rate(counts) for rate in rates], axis=1)
        return estimates


def _identity(run: Run) -> dict[str, Any]:
    return {name: run.config.get(name) for name in IDENTITY if name not in _ASIDE}


def _most_halvings(runs: Sequence[Run]) -> Run | None:
    return max(runs, key=lambda run: int(run.config["split"]["repeats"]), default=None)


# Error against fairness: the finished runs that one figure shows, and their points.

_PARTS = ("learner", "intervention", "method")


def candidates(dataset: str, protect: str, catalogue: Catalogue) -> list[Run]:
    """Return the runs of a data set that have split, seed and protected attributes in common.

    Of several such sets, the largest is returned. Among runs that differ only in their evaluator,
    the one with most relaxations is kept. Runs that weigh their rows are left out.

    Parameters
    ----------
    protect : the protected attributes, joined by `` x ``; those of most runs if empty.

    Raises
    ------
    UserError : fewer than two such runs.
    """
    sets: dict[str, dict[str, Run]] = {}
    for run in catalogue:
        if run.choices["dataset"] != dataset or protect not in ("", run.protect):
            continue
        if not is_weighted(run):
            shared = [run.protect, run.environment["data"], run.config["split"], run.seed]
            runs_of_set = sets.setdefault(digest(shared), {})
            key = digest([run.config[name] for name in _PARTS])
            if key not in runs_of_set or _relaxations(run) > _relaxations(runs_of_set[key]):
                runs_of_set[key] = run
    largest = list(max(sets.values(), key=len, default={}).values())
    if len(largest) < 2:
        values = {"count": "1" if largest else "no", "by": f" by {protect}" if protect else ""}
        folder = catalogue.folder
        raise UserError(said("comparison", "too_few", folder=folder, dataset=dataset, **values))
    return largest


def names_of_parts(runs: Sequence[Run]) -> list[dict[str, str]]:
    """Return the name of each run's ``learner``, ``intervention`` and ``method``.

    With it are the values of the options in which runs of this name differ.
    """
    named: list[dict[str, str]] = [{} for _ in runs]
    for part in _PARTS:
        names = [run.choices[part] for run in runs]
        differing = differing_options(names, runs, [part])
        for of_run, name, options in zip(named, names, differing, strict=True):
            values = [option.partition("=")[2] for option in options]
            of_run[part] = " ".join([name, *values]).replace("_", " ")
    return named


def _relaxations(run: Run) -> int:
    return len(run.config["evaluator"].get("relaxations", ()))


def _run_points(
    run: RunPredictions, metrics: Iterable[str], repeats: str = AVERAGED
) -> dict[str, dict[str, float]]:
    """Return a run's error and gap for every metric of gaps, with their variances."""
    labels = _labels_of(run.people, run.protect)
    counts = [labels.counts(folds) for folds in run.repeats.values()]
    share = float("nan") if repeats == TYPICAL else _tested_share(run)
    return comparing.points(np.array(counts), run.people.name, metrics, test_share=share)


def tradeoff(
    runs: Sequence[RunPredictions],
    names: Sequence[Mapping[str, str]],
    curve: pd.DataFrame,
    repeats: str = AVERAGED,
) -> pd.DataFrame:
    """Return a row for every metric of `METRICS` and run, of the runs' headline gap first.

    Parameters
    ----------
    repeats : whether a run's repeats are averaged, or a typical one is taken.

    Returns
    -------
    The columns of `objectives.point_table`, ``certainty`` (the largest
    posterior probability that one other run is better in both, paired on the same rows) and
    ``postprocessed_error`` (of the frontier at a gap no larger).
    """
    metrics = [*dict.fromkeys([headline_of(runs) or comparing.METRICS[0], *comparing.METRICS])]
    points_of_runs = [_run_points(run, metrics, repeats) for run in runs]
    table = comparing.point_table([run.id for run in runs], names, points_of_runs)
    settings = Settings(rope=(0.0, 0.0), draws=comparing.DRAWS, repeats=repeats)
    table["certainty"] = np.concatenate([_certainty(runs, name, settings) for name in metrics])
    postprocessed = [
        comparing.at_equal_fairness(curve, metric, gap)
        for metric, gap in zip(table["metric"], table["gap"], strict=True)
    ]
    return table.assign(postprocessed_error=postprocessed)


def _certainty(runs: Sequence[RunPredictions], metric: str, settings: Settings) -> Floats:
    """Return the largest probability, over the other runs, of outperforming each run."""
    matrix = every_pair(runs, replace(settings, objectives=("error_rate", metric))).outperforms
    np.fill_diagonal(matrix, 0)
    return matrix.max(axis=0)
