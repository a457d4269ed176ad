"""One run: config -> data set -> split -> cells -> readings -> metrics -> store -> tracking.

A stored run is verified here, too: that its cells are whole, and that some that are computed again
are the same.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain, groupby
from math import inf, isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import fairbench.metrics
from fairbench.components import CONF
from fairbench.core.arrays import rng
from fairbench.core.errors import UserError, check_choice
from fairbench.core.files import entry, is_folder
from fairbench.core.fingerprint import code_digest, describe
from fairbench.core.options import hydra_word
from fairbench.core.processes import GivenUpError, failure, in_time
from fairbench.core.text import digest, said
from fairbench.data.dataset import Dataset, Task
from fairbench.data.features import Encoder, Encoding, SequenceEncoding, Sequences
from fairbench.data.groups import group_columns
from fairbench.data.splits import Fold, Split
from fairbench.evaluation.evaluator import Evaluator
from fairbench.evaluation.predictions import Labelled, read_predictions
from fairbench.evaluation.regression import evaluate_truncation
from fairbench.evaluation.summary import summarise
from fairbench.evaluation.table import COSTS, MetricTable, RunSplit, by_run, concatenate
from fairbench.evaluation.uncertainties import evaluate_consistency
from fairbench.experiments import build, configuration
from fairbench.experiments.compute import compute, raw_outputs
from fairbench.experiments.configuration import COMPONENTS, Config, Presets
from fairbench.experiments.contracts import Cell, Method, Study, cells_of
from fairbench.inference.posterior import FREQUENTIST
from fairbench.inference.survey import Design
from fairbench.metrics.registry import table_rows
from fairbench.results import record, runs, tables
from fairbench.results.runs import (
    Columns,
    CorruptCellError,
    Run,
    RunWriter,
    Store,
    StoredCell,
    machine,
)
from fairbench.results.tables import TEST, VALIDATION

if TYPE_CHECKING:
    from omegaconf import DictConfig

T = TypeVar("T")

# Draws the figures of metrics, with a title and the protected attribute, into a folder.
DrawFigures = Callable[[pd.DataFrame, str, str, Path], None]


@dataclass(frozen=True)
class PlannedRun:
    """A composed run, checked and ready: nothing has been fitted yet.

    Attributes
    ----------
    choices, config : its identity, of :func:`fairbench.experiments.configuration.identity_of`.
    methods : variant -> the method that reads its cells; the run's own variant is empty.
    """

    choices: dict[str, str]
    config: dict[str, Any]
    study: Study
    cells: list[Cell]
    methods: dict[str, Method]
    evaluator: Evaluator
    store: Store
    family: str = ""
    purpose: str = record.STUDY

    @cached_property
    def id(self) -> str:
        """The run's id."""
        return digest(self.config, 12)

    @property
    def name(self) -> str:
        """A short name for people: data set, learner, intervention, method."""
        return record.run_name(self.choices)

    @cached_property
    def cell_of_id(self) -> dict[str, Cell]:
        """Its cells, each once, by the ids that they are stored under."""
        return {cell.id: cell for cell in self.cells}

    @property
    def dataset(self) -> Dataset:
        """The data set of the run."""
        return self.study.dataset

    @property
    def method(self) -> Method:
        """The method of the run's own configuration."""
        return self.methods[""]

    @property
    def protect(self) -> str:
        """The attribute, or combination, of the headline metrics."""
        return " x ".join(self.study.protect)

    @property
    def folder(self) -> Run:
        """The folder of the run, whether it is finished or not."""
        return Run(self.store.run_path(self.id))

    @property
    def writer(self) -> RunWriter:
        """The writer of the run's folder."""
        return RunWriter(self.store.run_path(self.id))

    @property
    def finished(self) -> bool:
        """Whether the run is stored completely, as it would be made now."""
        return self.writer.is_finished(self.fingerprint)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of everything the metrics depend on: cells, reading, evaluation, their code."""
        parts_of_run = (self.method, self.evaluator)
        modules = ["fairbench.experiments.pipeline:evaluate_runs"]
        modules += [type(part).__module__ for part in parts_of_run]
        # Metrics are found in their folder, and not imported by name: a new one is new code.
        metric_modules = pkgutil.iter_modules(fairbench.metrics.__path__, "fairbench.metrics.")
        modules += [module.name for module in metric_modules]
        parts: list[object] = [
            *map(describe, parts_of_run),
            self.study.protect,
            table_rows(),  # of metrics: what they say is computed, too
        ]
        if self.evaluator.weights:
            parts.append(self.dataset.weight_digest)
        cells = [[cell.id, cell.variant] for cell in self.cells]
        return digest([cells, parts, code_digest(tuple(modules))])


def prepare(cfg: DictConfig | Config) -> PlannedRun:
    """Build every component of a configuration and refuse what cannot work.

    Raises
    ------
    UserError : unknown names, bad values, missing data.
    IncompatibleError : a combination that cannot work.
    """
    config = configuration.plain(cfg)
    check_choice("purpose", purpose := str(config["purpose"]), record.PURPOSES)
    parts = build.components(config)
    choices, stored = configuration.identity_of(config, verified=parts.verified)
    for part, value in stored.items():
        if not record.CONFIG[part](value):  # or it could not be read again once it is stored
            raise UserError(said("experiments", "not_kept", part=part))
    build.check(parts)
    method, seed = parts.method, stored["seed"]
    study = Study(
        parts.dataset, parts.learner, parts.intervention, method.fitter, seed, parts.protect
    )
    folds = _folds(parts.split, parts.dataset, seed)
    cells, methods = cells_of(study, folds), {"": method}
    for label, varied, reading in parts.consistency.variants(study, method):
        cells += cells_of(varied, folds, label)
        methods[label] = reading
    store = Store(Path(config["results"]), float(config["wait_min"]))
    return PlannedRun(
        choices, stored, study, cells, methods, parts.evaluator, store, parts.family, purpose
    )


@lru_cache(maxsize=4)
def _folds(split: Split, dataset: Dataset, seed: int) -> list[Fold]:
    """Return the folds, drawn once for all jobs of a sweep on one data set."""
    return split.folds(dataset, seed)


def ensure(cell: Cell, store: Store, *, recompute: bool = False, wait: bool = True) -> bool:
    """Compute and store a cell unless it is stored undamaged; return whether it was computed.

    Raises
    ------
    BusyCellError : another process is computing it, and `wait` is false.
    """
    with store.lock(cell.id, wait=wait):
        if not recompute and store.intact(cell.id):
            return False
        columns, notes = compute(cell.study, cell.fold)
        store.write(cell.id, columns, notes)
        return True


def ensure_all(cells: Sequence[Cell], store: Store) -> int:
    """Ensure every cell, one after the other, and return how many were computed."""
    return sum(ensure(cell, store) for cell in cells)


def finish(
    runs: Sequence[PlannedRun], *, draw: DrawFigures | None = None, again: bool = False
) -> int:
    """Evaluate runs whose cells are in the store, and write their folders.

    A run that is finished already is left as it is, unless `again`; its figures are drawn if there
    are none, and its purpose is the one of those it was asked for that counts for most.

    Returns
    -------
    int
        How many cells turned out to be damaged, and were computed again.
    """
    due = []
    for run in runs:
        if again or not run.finished:
            due.append(run)
        else:
            run.writer.note_purpose(run.purpose)
            _draw(run, draw)
    computed = 0
    try:
        evaluated = evaluate_runs(due)
    except CorruptCellError:
        computed = sum(ensure_all(run.cells, run.store) for run in due)
        evaluated = evaluate_runs(due)
    for run, (metrics, summary, predictions) in zip(due, evaluated, strict=True):
        run.writer.remove_figures()
        _draw(run, draw, metrics)
        _write(run, metrics, summary, predictions)
    return computed


def _draw(run: PlannedRun, draw: DrawFigures | None, metrics: pd.DataFrame | None = None) -> None:
    """Draw a run's figures, if it is to have any and has none; its stored metrics by default."""
    if draw and not is_folder(run.folder.figures):
        with run.writer.drawing() as temporary:
            drawn_metrics = run.folder.all_metrics() if metrics is None else metrics
            draw(drawn_metrics, run.name, run.protect, temporary)


# Evaluating a run's cells: raw outputs from the store, readings, metrics; fits nothing.


@dataclass(frozen=True, eq=False)
class Reading:
    """One cell read: the predictions of its test and validation rows.

    Attributes
    ----------
    split : the number of the cell's split in the table of metrics.
    rows : the numbers of the tested rows in the data set.
    test, validation : the predictions of both parts, with labels; no validation rows are None.
    invalid : why the cell has no predictions; empty if it has.
    notes : costs and diagnostics of its fits: the value, and the number of rows it is about.
    """

    cell: Cell
    split: int
    rows: NDArray[np.intp]
    test: Labelled
    validation: Labelled | None
    invalid: str
    notes: dict[str, tuple[float, int]]


def _predictions(readings: Iterable[Reading]) -> pd.DataFrame:
    """Return the predictions of a run's own variant for validation and test rows; NaN of none."""
    parts = []
    for reading in readings:
        fold, test = reading.cell.fold, None if reading.invalid else reading.test
        numbers = (VALIDATION, fold.validation, reading.validation), (TEST, reading.rows, test)
        for part, rows, labelled in () if reading.cell.variant else numbers:
            columns = {"prediction": np.full(len(rows), np.nan)}
            if labelled is not None:
                columns = {str(name): labelled.column(name) for name in labelled.predictions}
            keys = {"repeat": fold.repeat, "fold": fold.fold, "part": part}
            if len(rows):
                parts.append(pd.DataFrame({**keys, "row": rows, **columns}))
    return pd.concat(parts, ignore_index=True)


def _generator(cell: Cell, purpose: str) -> np.random.Generator:
    """Return the generator of a cell's draws; neither the variant nor the method is a key."""
    return rng(cell.study.seed, purpose, cell.study.dataset.name, *cell.repeat_and_fold)


def read_cell(
    cell: Cell, method: Method, columns: Mapping[str, NDArray[np.generic]]
) -> pd.DataFrame:
    """Return the predictions that a method reads from stored outputs of a cell."""
    data = cell.study.dataset
    return read_predictions(
        method.read(raw_outputs(columns), data.task, _generator(cell, "read")),
        data.task,
        f"method {type(method).__name__}",
        keep_invalid=method.capabilities.keep_invalid,
        classes=len(data.classes),
    )


# The metrics of a run, fold by fold; their summary; and the predictions of its own variant.
Evaluated: TypeAlias = "tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]"


def evaluate_runs(runs: Sequence[PlannedRun]) -> list[Evaluated]:
    """Read the raw outputs of runs and evaluate them. Fits nothing.

    What is evaluated in the same way is evaluated together, whatever run it is of: for few rows,
    computing takes less time than asking for it.
    """
    runs_by_key: dict[Any, list[PlannedRun]] = {}
    for run in runs:
        key = id(run.dataset), repr(run.evaluator), run.protect
        runs_by_key.setdefault(key, []).append(run)
    evaluated: dict[str, Evaluated] = {}
    for several in runs_by_key.values():
        readings, splits, tables = _read_all(several)
        first = several[0]
        evaluator, measured = first.evaluator, []
        for alike in _alike(chain.from_iterable(readings)):
            test = Labelled.joined([reading.test for reading in alike])
            held_out = [reading.validation for reading in alike if reading.validation is not None]
            table = evaluator.table(
                test,
                [_generator(reading.cell, "posterior") for reading in alike],
                validation=Labelled.joined(held_out) if held_out else None,
                protect=first.protect,
                splits=[reading.split for reading in alike],
            )
            measured.append(_with_costs(alike, table, test))
        metrics = concatenate([*measured, *tables], splits)
        summary = summarise(metrics, ["run"], level=evaluator.level)
        each = zip(by_run(metrics), by_run(summary), map(_predictions, readings), strict=True)
        evaluated.update(zip((run.id for run in several), each, strict=True))
    return [evaluated[run.id] for run in runs]


def _read_all(
    runs: Sequence[PlannedRun],
) -> tuple[list[list[Reading]], list[RunSplit], list[MetricTable]]:
    """Return the readings of runs of one data set and evaluator, and what compares variants.

    Returns
    -------
    The readings of each run's cells; the splits, by their numbers; and tables of consistency.
    """
    data, evaluator = runs[0].dataset, runs[0].evaluator
    groups = group_columns(data.sensitive, data.privileged, evaluator.intersections)
    groups.setdefault(runs[0].protect, data.groups(runs[0].study.protect))
    splits: list[RunSplit] = []
    readings: list[list[Reading]] = []
    tables: list[MetricTable] = []
    for i, run in enumerate(runs):
        readings.append([])
        ordered = sorted(run.cells, key=lambda cell: (cell.fold.repeat, cell.fold.fold))
        variants = list(dict.fromkeys(["", *(cell.variant for cell in ordered)]))
        for fold, cells in groupby(ordered, lambda cell: cell.repeat_and_fold):
            # The rows of a fold: the run's own, then each variant's, then those of all variants
            # together.
            of_fold = []
            for cell in cells:
                split = len(splits) + variants.index(cell.variant)
                of_fold.append(read(run, cell, {} if cell.variant else groups, split))
            readings[-1] += of_fold
            splits += [(i, *fold, variant) for variant in (*variants, "")]
            uncertainties = {  # of the same rows, by the variant that has any
                reading.cell.variant: reading.test.column("uncertainty")
                for reading in of_fold
                if reading.cell.variant
                and not reading.invalid
                and "uncertainty" in reading.test.predictions
            }
            frequentist = evaluator.interval == FREQUENTIST
            tables.append(MetricTable(frequentist=frequentist, splits=(len(splits) - 1,)))
            evaluate_consistency(tables[-1], uncertainties)
    return readings, splits, tables


def read(run: PlannedRun, cell: Cell, groups: dict[str, pd.Series], split: int = 0) -> Reading:
    """Return a cell's predictions, with the labels of `groups` (attribute -> all rows')."""
    stored = run.store.read(cell.id)
    parts = stored.columns["part"]
    sizes = {"fit_seconds": stored.notes["train_rows"], "predict_seconds": len(parts)}
    notes = {name: (float(stored.notes[name]), int(sizes[name])) for name in COSTS}
    for name, value in stored.notes.get("diagnostics", {}).items():
        notes[name] = float(value), int(stored.notes["train_rows"])
    invalid = stored.notes.get("invalid", "")
    rows = stored.columns["row"][parts == TEST].astype(np.intp)
    test, validation = _labelled(run, cell, stored, TEST, groups), None
    if not invalid and (parts == VALIDATION).any():
        validation = _labelled(run, cell, stored, VALIDATION, groups)
    return Reading(cell, split, rows, test, validation, invalid, notes)


def _labelled(
    run: PlannedRun, cell: Cell, stored: StoredCell, part: int, groups: dict[str, pd.Series]
) -> Labelled:
    """Return the tested or the validation rows of a cell: their predictions, labels and groups.

    Predictions of a cell that has none are 0. Tested rows of the run's own variant have the
    features that the evaluator's settings need.
    """
    data, evaluator = run.dataset, run.evaluator
    is_of_part = stored.columns["part"] == part
    columns = {name: values[is_of_part] for name, values in stored.columns.items()}
    rows = columns["row"].astype(np.intp)
    predictions = pd.DataFrame({"prediction": np.zeros(len(rows))})
    if not stored.notes.get("invalid"):
        predictions = read_cell(cell, run.methods[cell.variant], columns)
    features = encoded = None
    if part == TEST and not cell.variant and not isinstance(data.features, Sequences):
        if evaluator.feature_shift_rates:
            features = data.features.take(rows)
        if evaluator.neighbours:
            encoder = Encoder(Encoding.STANDARD).fit(data.features.take(cell.fold.train))
            encoded = np.asarray(encoder.transform(data.features.take(rows)))
    return Labelled(
        data.target.to_numpy(np.float64)[rows],
        predictions,
        {name: pd.Series(labels.array.take(rows)) for name, labels in groups.items()},
        data.task,
        None if data.truth is None else data.truth.iloc[rows],
        features=features,
        encoded=encoded,
        design=_design(run, rows),
        classes=data.classes,
    )


def _design(run: PlannedRun, rows: NDArray[np.intp]) -> Design | None:
    """Return the weights and clusters of rows, if they have any that count."""
    if run.evaluator.interval != FREQUENTIST:
        return None
    weight = run.dataset.weight if run.evaluator.weights else None
    given = weight, run.dataset.clusters
    of_rows = (None if column is None else column.to_numpy()[rows] for column in given)
    return Design.given(len(rows), *of_rows)


def _alike(readings: Iterable[Reading]) -> Iterable[list[Reading]]:
    """Return the readings by how they are evaluated: those that are alike, together."""
    readings_by_key: dict[Any, list[Reading]] = {}
    for reading in readings:
        columns = tuple(reading.test.predictions)
        held_out = reading.validation is not None
        encoding = repr(reading.cell.study.learner.encoding)  # what sequences are cut to
        # Clusters are those of one split, so that sampled rows are evaluated split by split.
        split = None if reading.test.design is None else reading.split
        key = reading.invalid, held_out, columns, encoding, split, bool(reading.cell.variant)
        readings_by_key.setdefault(key, []).append(reading)
    return readings_by_key.values()


def _with_costs(readings: Sequence[Reading], table: MetricTable, test: Labelled) -> MetricTable:
    """Return the metrics of tested rows with what a length cut away, and the costs of the fits."""
    cells = [reading.cell for reading in readings]
    study = cells[0].study
    features, encoding = study.dataset.features, study.learner.encoding
    if isinstance(features, Sequences) and isinstance(encoding, SequenceEncoding):
        chosen = features.select(encoding.modalities or features.names)
        limits = [encoding.limits(features.take(cell.fold.train)) for cell in cells]
        rows = [reading.rows for reading in readings]
        lengths = chosen.take(np.concatenate(rows)).lengths
        read = np.repeat(limits, [len(of_cell) for of_cell in rows], axis=0)
        evaluate_truncation(table, test, lengths, read)
    if invalid := readings[0].invalid:
        table = table.without_values(invalid)
    for name in dict.fromkeys(name for reading in readings for name in reading.notes):
        notes = [reading.notes.get(name) for reading in readings]
        value, n_rows = zip(*(note or (np.nan, 0) for note in notes), strict=True)
        has_note = [[note is not None] for note in notes]
        arrays = np.reshape(value, (-1, 1)), np.reshape(n_rows, (-1, 1))
        table.add(name, *arrays, is_row=np.array(has_note))
    return table


# Storing what was evaluated.


def _write(
    run: PlannedRun, metrics: pd.DataFrame, summary: pd.DataFrame, predictions: pd.DataFrame
) -> None:
    """Write the folder of a run; nothing in it depends on when or how fast that is done."""
    values, names = metrics["value"].to_numpy(float), metrics["metric"].to_numpy()
    per_cell = float(sum(values[names == name].mean() for name in COSTS))
    cells = list(run.cell_of_id)
    cost = {"key": run.study.cost_key, "seconds_per_cell": per_cell}
    cost["seconds"] = per_cell * len(cells)
    environment = {
        "fingerprint": run.fingerprint,
        "name": run.name,
        "choices": run.choices,
        "seed": run.study.seed,
        "protect": run.protect,
        "purpose": run.writer.highest_purpose(run.purpose),
        "task": _task_facts(run),
        "group_at_prediction": run.study.group_at_prediction,
        "data_sha256": {source.path: source.sha256 for source in run.dataset.sources},
        "versions": run.study.identity()["versions"],
        "cost": cost,
        **machine(),
    }
    tables = {"metrics": metrics, "summary": summary, "predictions": predictions}
    run.writer.write(run.config, cells, tables, run.dataset, environment)


def _task_facts(run: PlannedRun) -> dict[str, Any]:
    """Return the facts about a task before anything is fitted, on the rows that the run uses.

    Returns
    -------
    dict
        ``family`` of the data set; ``rows``; ``features``, before encoding; ``positive_share``, of
        label 1, None where the task is not binary; ``smallest_group_share``, of the protected
        attribute; and ``groups``, how many have rows.
    """
    dataset, fold = run.dataset, run.cells[0].fold
    rows = np.concatenate([fold.train, fold.validation, fold.test])
    sizes = dataset.groups(run.study.protect).iloc[rows].value_counts()
    sizes = sizes[sizes > 0]
    binary = dataset.task is Task.BINARY
    return {
        "family": run.family,
        "rows": len(rows),
        "features": dataset.feature_count,
        "positive_share": float(dataset.target.iloc[rows].mean()) if binary else None,
        "smallest_group_share": float(sizes.min()) / len(rows),
        "groups": len(sizes),
    }


# Verifying a stored run: that its cells are whole, and that some computed again are the same.

# Memory that computing from a record may take, beside a multiple of what the run has stored, and
# seconds: what a stranger asks for may have no end.
_LEAST_BYTES, _TIMES_BYTES = 1 << 30, 100
_LEAST_S, _S_PER_MB, _TIMES_S = 120.0, 10.0, 50.0
_FEW = 1000  # splits, variants or rows, which are built whatever is stored


def _recomposed(run: Run, typed: Mapping[str, str]) -> DictConfig:
    """Return the configuration of a stored run, whose names stand for the files in ``conf``.

    What is stored may come from a stranger: it chooses components of this project by their names
    and sets options of theirs, to sizes that fit what is stored, and nothing else.

    Parameters
    ----------
    typed : options of the command line, which name the files that are read.

    Raises
    ------
    UserError : it does anything else.
    """
    from hydra import compose, initialize_config_dir
    from omegaconf import OmegaConf, open_dict

    components = Presets().stored_options(run)
    if missing := [group for group in COMPONENTS if group not in components]:
        raise UserError(f"run {run.id} has no {missing[0]}: an earlier version made it")
    configuration.check_files_named(run, COMPONENTS, typed)
    _check_sizes(run, components)
    words = [f"{group}={hydra_word(options['name'])}" for group, options in components.items()]
    with initialize_config_dir(str(CONF.resolve()), version_base="1.3"):
        cfg = compose("config", [*words, f"seed={run.seed}"], return_hydra_config=True)
    with open_dict(cfg):
        for group, options in components.items():
            own = {k: value for k, value in options.items() if k not in ("name", record.VERIFIED)}
            cfg[group] = OmegaConf.merge(cfg[group], own)
        cfg.protect, cfg.headline = run.config.get("protect"), run.config.get("headline")
        cfg.results = str(run.results)
        cfg.data.verify = run.verified
        cfg.purpose = run.purpose
    return cfg


def _check_sizes(run: Run, components: Mapping[str, Mapping[str, Any]]) -> None:
    """Refuse a configuration that asks for more splits or rows than the run has stored.

    Raises
    ------
    UserError : it does.
    """
    cells = len(run.cells())
    split, varied, data = (components[name] for name in ("split", "consistency", "dataset"))
    sizes = {
        "split.repeats": (split.get("repeats"), cells, "cells"),
        "split.n_folds": (split.get("n_folds"), cells, "cells"),
        "consistency.replicates": (varied.get("replicates"), cells, "cells"),
        "consistency.values": (len(varied.get("values") or ()), cells, "cells"),
    }
    with suppress(UserError):  # of people that were left out or are damaged
        sizes["dataset.n_samples"] = data.get("n_samples"), len(run.people()), "rows"
    for option, (size, stored, what) in sizes.items():
        # Some hundreds cost little, and variants that read the same fits share their cells.
        if isinstance(size, int) and size > max(stored, _FEW):
            raise UserError(f"run {run.id} has {option}={size}, and fewer {what} stored: {stored}")


def _within_bounds(run: Run, work: Callable[[], T], seconds: float = 0.0) -> T:
    """Return what work returns, unless it takes much more than what the run has stored explains.

    Parameters
    ----------
    seconds : how long it took when the run was made, as that is stored.

    Raises
    ------
    UserError : it takes too much time or memory, or a component fails.
    """
    store = Store(run.results)
    paths = [run.path / name for name in (*record.FILES, runs.TABLES)]
    paths += [tables.people_path(run.results, run.environment["data"])]
    paths += [store.cell_path(cell) for cell in run.cells()]
    stored = sum(about.st_size for path in paths if (about := entry(path)))
    try:
        return in_time(
            lambda _: work(),
            idle_s=inf,
            total_s=_LEAST_S + _S_PER_MB * stored / 1e6 + _TIMES_S * seconds,
            most_bytes=_LEAST_BYTES + _TIMES_BYTES * stored,
        )
    except GivenUpError as error:
        raise UserError(f"run {run.id} cannot be computed again: {error}") from error
    except Exception as error:  # many components refuse an option only when they are fitted
        reason, trace = failure(error)
        if not trace:
            raise
        raise UserError(f"run {run.id} cannot be computed again: {reason}") from error


# Between CPU types: of an output's largest value, from other orders of summation.
TOLERANCE = 1e-4


# How a recomputed cell differs from the stored one: its id, what differs, and by how much at most,
# as a share of the largest value; infinite for a shape.
Difference: TypeAlias = "tuple[str, str, float]"


def mend(run: Run, typed: Mapping[str, str], draw: DrawFigures) -> list[str]:
    """Make damaged files of a run again from its cells; return their paths.

    These are its own, the people and the rows that it shares with others; its figures are drawn
    again, if it has any. `typed` are options of the command line, which name the files to read.

    Raises
    ------
    UserError : the code, or a component's defaults, are no longer those that the run was made with.
    """
    damaged = sorted({runs.place_of(run.path, name) for name in run.damaged_files()})
    damaged += tables.damaged_people(run.results, run.environment["data"])
    damaged += tables.damaged_rows(run.results, run.environment["rows"])
    if damaged:
        planned = _prepared(run, typed)
        if (planned.id, planned.fingerprint) != (run.id, run.environment["fingerprint"]):
            paths = ", ".join(map(str, damaged))
            raise UserError(said("experiments", "other_code", files=paths, run=run.id))
        drawn = draw if is_folder(run.figures) else None
        _within_bounds(run, lambda: finish([planned], draw=drawn))
    return list(map(str, damaged))


def _prepared(run: Run, typed: Mapping[str, str]) -> PlannedRun:
    """Return the run of a stored configuration; no fit.

    Raises
    ------
    UserError : a file has other rows than the one that the run was made with.
    """
    config = _recomposed(run, typed)
    planned = _within_bounds(run, lambda: prepare(config))
    data, then = planned.dataset, run.environment["data_sha256"]
    other = [source for source in data.sources if source.sha256 not in then.values()]
    if other and data.digest != run.environment["data"]:
        about = {"now": other[0].sha256, "then": ", ".join(sha[:12] for sha in then.values())}
        raise UserError(said("experiments", "other_file", path=other[0].path, run=run.id, **about))
    return planned


def evaluate_again(run: Run, typed: Mapping[str, str], draw: DrawFigures) -> bool:
    """Evaluate a stored run from its cells if the evaluation's code has changed; fit nothing.

    Figures that there are, are drawn again. `typed` is what `mend` takes.

    Returns
    -------
    bool
        Whether it was: a run that would be the same is left as it is.

    Raises
    ------
    UserError : its cells are not in the store as they would be fitted now, or its configuration
        means another run now.
    """
    planned = _prepared(run, typed)
    if planned.id == run.id and planned.finished:
        return False
    missing = [cell for cell in planned.cells if not planned.store.intact(cell.id)]
    if planned.id != run.id or missing:
        why = f"{len(missing)} of {len(planned.cells)} cells are not in the store"
        if planned.id != run.id:
            why = "its configuration means another run with the code as it is"
        raise UserError(f"run {run.id} ({run.name}): {why}; repeat its command")
    figures = is_folder(run.figures)
    _within_bounds(run, lambda: finish([planned], draw=draw if figures else None))
    return True


def damaged_cells(run: Run, store: Store) -> list[str]:
    """Return the fault of each cell of a run that is missing or not as it was written."""
    problems = []
    for cell in run.cells():
        try:
            store.read(cell)
        except CorruptCellError as error:
            problems.append(str(error))
    return problems


def sample(run: Run, typed: Mapping[str, str], *, cells: int, seed: int = 0) -> list[Cell]:
    """Return some cells of a run, drawn at random, each under the id it is stored with.

    `typed` is what `mend` takes.

    Raises
    ------
    UserError : the stored configuration makes another number of cells than the run has.
    """
    planned = _prepared(run, typed)
    now = list({cell.id: cell for cell in planned.cells}.values())
    stored = run.cells()
    if len(now) != len(stored):
        sizes = {"stored": len(stored), "now": len(now)}
        raise UserError(said("experiments", "other_cells", run=run.id, **sizes))
    drawn = np.random.default_rng(seed).choice(len(now), min(cells, len(now)), replace=False)
    return [Cell(now[i].study, now[i].fold, stored[i], now[i].variant) for i in sorted(drawn)]


def difference(run: Run, cell: Cell, store: Store) -> Difference | None:
    """Compute a cell again and return how it differs from the stored one, None if in no bit."""
    stored = store.read(cell.id)
    costs = [stored.notes.get(name) for name in COSTS]
    seconds = sum(cost for cost in costs if isinstance(cost, float) and isfinite(cost))
    fresh, _ = _within_bounds(run, lambda: compute(cell.study, cell.fold), seconds)
    return _compare(cell.id, stored.columns, fresh)


def _compare(cell: str, stored: Columns, fresh: Columns) -> Difference | None:
    """Return how columns differ from the stored ones, relative to their largest value."""
    was, is_ = (
        {name: f"{values.dtype}{list(values.shape)}" for name, values in columns.items()}
        for columns in (stored, fresh)
    )
    if was != is_:
        return cell, f"columns {is_}, stored {was}", inf
    changed = [name for name in stored if stored[name].tobytes() != fresh[name].tobytes()]
    if not changed:
        return None
    largest = max(_largest(stored[name], fresh[name]) for name in changed)
    return cell, f"{len(changed)} of {len(stored)} columns ({changed[0]} ...)", largest


def _largest(stored: NDArray[Any], fresh: NDArray[Any]) -> float:
    """Return the largest difference as a share of the largest stored value; NaN equals NaN."""
    before, after = stored.astype(np.float64), fresh.astype(np.float64)
    if not np.array_equal(np.isfinite(before), np.isfinite(after)):
        return float("inf")
    finite = np.isfinite(before)
    if not finite.any():
        return 0.0
    scale = max(np.abs(before[finite]).max(), np.finfo(np.float64).tiny)
    return float(np.abs(before - after)[finite].max() / scale)


def changes_since(run: Run, cell: Cell) -> dict[str, str]:
    """Return the differences between the machine of a run and this one: CPU, commit, versions."""
    recorded = run.environment
    now = machine()
    versions = cell.study.identity()["versions"]
    pairs = {
        "CPU": (recorded["cpu"], now["cpu"]),
        "commit": (recorded.get("git_commit"), now.get("git_commit")),
        **{name: (version, versions.get(name)) for name, version in recorded["versions"].items()},
    }
    return {name: f"{was} then, {is_} now" for name, (was, is_) in pairs.items() if was != is_}
