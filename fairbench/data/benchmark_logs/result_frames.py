"""Tables of results whose columns other projects have agreed on, recognised by their names.

TabArena's results (and bencheval's), the AutoML benchmark's, OpenML's lists of evaluations,
AutoGluon's leaderboards, and benchopt's runs; as CSV, Parquet or any other table that is read here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from fairbench.core.errors import DataError
from fairbench.core.files import read_schema
from fairbench.core.formats import quoted, shortened
from fairbench.data.any_table import names_in, read_any_table
from fairbench.data.benchmark_logs.files import Files
from fairbench.data.benchmark_logs.table import (
    BenchmarkTable,
    Better,
    Score,
    as_number,
    check_once,
    distinct_names,
    is_binary,
    tidy,
)

_TABARENA, _AMLB = "TabArena results", "AutoML benchmark results"
_OPENML, _AUTOGLUON, _BENCHOPT = "OpenML evaluations", "AutoGluon leaderboards", "benchopt runs"
_OBJECTIVE, _PARQUET = "objective_", b"PAR1"


@dataclass(frozen=True)
class _Layout:
    """The columns by which a format is known, and what makes scores of them.

    Attributes
    ----------
    needs : sets of names; a table must have at least one name of each.
    columns : further columns that are read if they exist.
    prefix : the prefix of further columns that are read.
    read : a function of the columns of a file and its name that returns a table.
    """

    needs: tuple[frozenset[str], ...]
    columns: frozenset[str]
    read: Callable[[pd.DataFrame, str], BenchmarkTable]
    prefix: str = ""

    def fits(self, names: Collection[str]) -> bool:
        return all(alternatives & {*names} for alternatives in self.needs)

    def wanted(self, names: Sequence[str]) -> list[str]:
        """Return which columns are read."""
        wanted = self.columns.union(*self.needs)
        begins = self.prefix or "\0"  # no name begins with this
        return [name for name in names if name in wanted or name.startswith(begins)]


def format_of(path: Path) -> str:
    """Return the format of a table, by its columns; empty if they are of none.

    Raises
    ------
    UserError : it is no table, or damaged.
    """
    names = names_in(path, ())
    return next((name for name, layout in _LAYOUTS.items() if layout.fits(names)), "")


def read(kind: str, paths: Sequence[Path], files: Files) -> BenchmarkTable:
    """Return the scores of tables of one format together.

    Raises
    ------
    UserError : a value is no number, or a method has two scores at one place.
    """
    layout = _LAYOUTS[kind]
    tables = []
    for path in paths:
        names = layout.wanted(names_in(path, ()))
        packed = [name for name in names if name in _not_texts(path)]
        frame = read_any_table(path, [name for name in names if name not in packed])
        if frame.empty:
            raise DataError(f"{files.name(path)} has no rows")
        table = layout.read(frame, path.name)
        notes = [f"{shortened(name)} holds objects, which are not opened" for name in packed]
        tables.append(replace(table, notes=(*table.notes, *notes)))
    return _together(tables, kind)


def _not_texts(path: Path) -> set[str]:
    """Return the columns of a Parquet file that hold bytes or lists, such as pickled objects."""
    with open(path, "rb") as file:
        if file.read(4) != _PARQUET:
            return set()
    from pyarrow import types

    return {
        field.name
        for field in read_schema(path)
        if types.is_nested(field.type) or "binary" in str(field.type)
    }


def _together(tables: Sequence[BenchmarkTable], kind: str) -> BenchmarkTable:
    """Return the tables of several files as one, with every score that one of them has."""
    scores: dict[str, Score] = {}
    for table in tables:
        for score in table.scores:
            seen = scores.setdefault(score.name, score)
            if seen.better != score.better:
                raise DataError(f"score {score.name} is better high in one file, low in another")
            scores[score.name] = replace(seen, binary=seen.binary and score.binary)
    frame = pd.concat([table.frame for table in tables], ignore_index=True)
    check_once(frame, kind)
    costs = dict.fromkeys(cost for table in tables for cost in table.costs)
    notes = dict.fromkeys(note for table in tables for note in table.notes)
    warnings = dict.fromkeys(warning for table in tables for warning in table.warnings)
    return BenchmarkTable(
        frame, kind, tuple(scores.values()), tuple(costs), tuple(notes), tuple(warnings)
    )


def _costs(frame: pd.DataFrame, names: Sequence[str], file: str) -> dict[str, pd.Series]:
    return {name: as_number(frame[name], name, file) for name in names if name in frame}


def _first(frame: pd.DataFrame, *names: str) -> str:
    return next((name for name in names if name in frame), "")


def _join_columns(frame: pd.DataFrame, names: Sequence[str]) -> pd.Series:
    """Return columns as one of texts: ``2.0`` for repeat 2 and fold 0."""
    leading, *following = (frame[name] for name in names)
    return leading.str.cat(following, sep=".") if following else leading


def _tabarena(frame: pd.DataFrame, file: str) -> BenchmarkTable:
    """Return the table of results of TabArena."""
    method, task = _first(frame, "method", "framework"), _first(frame, "dataset", "task")
    splits = [name for name in ("repeat", "fold", "split", "seed") if name in frame]
    table = {"method": frame[method], "task": frame[task]}
    if splits:
        table["split"] = _join_columns(frame, splits)
    error = as_number(frame["metric_error"], "metric_error", file)
    costs = _costs(frame, ("time_train_s", "time_infer_s"), file)
    made = tidy(pd.DataFrame({**table, "metric_error": error, **costs}), f"rows of {file}")
    notes = []
    if "imputed" in frame and (filled := int((frame["imputed"].str.lower() == "true").sum())):
        notes.append(f"{filled} rows are marked as imputed: they are another method's scores")
    score = Score("metric_error", "lower")
    return BenchmarkTable(
        made, _TABARENA, (score,), tuple(costs), tuple(notes), _mixed_metrics(frame)
    )  # fmt: skip


def _mixed_metrics(frame: pd.DataFrame) -> tuple[str, ...]:
    """Return a warning if tasks have scores in different units."""
    if "metric" not in frame or frame["metric"].nunique() < 2:
        return ()
    listed = ", ".join(map(shortened, sorted(frame["metric"].unique())[:6]))
    return (
        f"tasks have scores of several metrics ({listed}), whose mean mixes units: rank the tasks "
        "of one metric, or a score on one scale",
    )


# Metrics of the AutoML benchmark that are losses; newer versions negate them, as neg_logloss.
_LOSSES = {"logloss", "rmse", "mse", "mae", "rmsle", "msle"}
_GOOD = {"auc", "acc", "balacc", "f1", "pac", "r2", "auc_ovo", "auc_ovr"}


def _amlb(frame: pd.DataFrame, file: str) -> BenchmarkTable:
    """Return the table of results of the AutoML benchmark."""
    result = as_number(frame["result"], "result", file)
    metric = frame["metric"].str.strip()
    unknown = {*metric[result.notna()]} - _LOSSES - _GOOD
    unknown = {name for name in unknown if not name.startswith("neg_")}
    method = frame["framework"]
    if "constraint" in frame and frame["constraint"].nunique() > 1:
        method = method.str.cat(frame["constraint"], sep=" ")
    turned = metric.isin(_LOSSES)
    notes = []
    if turned.any() and not unknown:
        notes.append("losses are negated, as the AutoML benchmark does: higher is better")
        result = result.where(~turned, -result)
    costs = _costs(frame, ("duration",), file)
    columns = {"method": method, "task": frame["task"], "split": frame["fold"], "result": result}
    made = tidy(pd.DataFrame({**columns, **costs}), f"rows of {file}")
    if failed := int(result.isna().sum()):
        notes.append(f"{failed} rows have no result: the framework failed there")
    score = Score("result", "" if unknown else "higher")
    return BenchmarkTable(
        made, _AMLB, (score,), tuple(costs), tuple(notes), _mixed_metrics(frame)
    )  # fmt: skip


# OpenML's measures that are losses; all others that are known are better high.
_OPENML_LOSSES = {
    "mean_absolute_error", "root_mean_squared_error", "relative_absolute_error",
    "root_relative_squared_error", "mean_prior_absolute_error", "root_mean_prior_squared_error",
    "total_cost", "average_cost",
}  # fmt: skip
_OPENML_GOOD = {
    "predictive_accuracy", "area_under_roc_curve", "f_measure", "kappa", "precision", "recall",
    "balanced_accuracy", "weighted_recall", "kb_relative_information_score",
    "mean_weighted_precision", "mean_weighted_recall", "mean_weighted_f_measure",
    "mean_weighted_area_under_roc_curve",
}  # fmt: skip


def _openml(frame: pd.DataFrame, file: str) -> BenchmarkTable:
    """Return the table of evaluations listed by OpenML, with one column for each measure."""
    setups = frame["setup_id"].astype(str)
    tasks = frame["data_name"].str.cat(frame["task_id"].astype(str), sep=" ")
    methods = distinct_names(
        frame["flow_name"].tolist(), [{"setup": setup} for setup in setups],
        list(zip(tasks, frame["function"], strict=True)),
    )  # fmt: skip
    table = pd.DataFrame({"method": methods, "task": tasks, "function": frame["function"]})
    values = frame["values"] if "values" in frame else pd.Series("", frame.index)
    if values.str.startswith("[").any():
        table["value"] = [_folds(text, file) for text in values]
        table = table.explode("value", ignore_index=False)
        table["split"] = (table.groupby(level=0).cumcount() + 1).astype(str)
        table["value"] = table["value"].astype(float)
    else:
        table["value"] = as_number(frame["value"], "value", file)
    keys = [name for name in ("method", "task", "split") if name in table]
    for _, rows in table.groupby("function"):
        check_once(rows[keys], _OPENML)
    wide = table.set_index([*keys, "function"])["value"].unstack("function").reset_index()
    names = [name for name in wide if name not in keys]
    scores = tuple(Score(str(name), _openml_direction(name)) for name in names)
    return BenchmarkTable(tidy(wide, f"rows of {file}"), _OPENML, scores)


def _openml_direction(measure: str) -> Better:
    if measure in _OPENML_LOSSES:
        return "lower"
    return "higher" if measure in _OPENML_GOOD else ""


def _folds(text: str, file: str) -> list[float]:
    """Return the values of folds, as a list in JSON."""
    try:
        values = json.loads(text) if text else []
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, list) or any(
        isinstance(value, bool) or not isinstance(value, int | float) for value in values
    ):
        raise DataError(f"{file}: column 'values' holds {quoted(text)}, no list of numbers")
    return [float(value) for value in values]


def _autogluon(frame: pd.DataFrame, file: str) -> BenchmarkTable:
    """Return the table of a leaderboard of AutoGluon."""
    name = _first(frame, "score_test", "score_val")
    task = frame["dataset"] if "dataset" in frame else file.partition(".")[0]
    columns = {"method": frame["model"], "task": task}
    if "fold" in frame:
        columns["split"] = frame["fold"]
    values = as_number(frame[name], name, file)
    costs = _costs(frame, ("fit_time", "pred_time_test"), file)
    made = tidy(pd.DataFrame({**columns, name: values, **costs}), f"rows of {file}")
    notes = []
    if name == "score_val":
        notes.append(
            "score_val is of validation rows, which chose ensembles: give leaderboard() test data "
            "for a score_test"
        )
    return BenchmarkTable(
        made, _AUTOGLUON, (Score(name, "higher"),), tuple(costs), tuple(notes)
    )  # fmt: skip


def _benchopt(frame: pd.DataFrame, file: str) -> BenchmarkTable:
    """Return the table of Benchopt's results: of each solver's curve, the last point."""
    task = frame[_first(frame, "dataset_name", "data_name")]
    columns = {"method": frame["solver_name"], "task": task}
    if frame["objective_name"].nunique() > 1:
        columns["task"] = task.str.cat(frame["objective_name"], sep=", ")
        columns["family"] = task
    if "idx_rep" in frame:
        columns["split"] = frame["idx_rep"]
    table = pd.DataFrame(columns)
    notes = []
    keys = [name for name in ("method", "task", "split") if name in table]
    last = ~table.duplicated(keys, keep="last")
    if not last.all():
        notes.append("of every curve of a solver its last point is read")
    names = [name for name in frame if name.startswith(_OBJECTIVE) and name != "objective_name"]
    scores = {}
    for name in names:
        try:
            scores[name] = as_number(frame[name], name, file)[last]
        except DataError:
            notes.append(f"{shortened(name)} holds no numbers, and is left out")
    if not scores:
        raise DataError(f"{file} has no column objective_* of numbers")
    costs = _costs(frame[last], ("time",), file)
    made = tidy(table[last].assign(**scores, **costs), f"rows of {file}")
    described = tuple(
        Score(name, "lower" if name == "objective_value" else "", is_binary(values))
        for name, values in scores.items()
    )
    return BenchmarkTable(made, _BENCHOPT, described, tuple(costs), tuple(notes))


def _one_of(*names: str) -> frozenset[str]:
    return frozenset(names)


# The first that fits is taken.
_LAYOUTS: Mapping[str, _Layout] = {
    _OPENML: _Layout(
        tuple(map(_one_of, ("task_id", "setup_id", "flow_name", "data_name", "function"))),
        _one_of("value", "values"),
        _openml,
    ),
    _BENCHOPT: _Layout(
        (_one_of("solver_name"), _one_of("dataset_name", "data_name"), _one_of("objective_name")),
        _one_of("idx_rep", "time"),
        _benchopt,
        _OBJECTIVE,
    ),
    _TABARENA: _Layout(
        (_one_of("metric_error"), _one_of("method", "framework"), _one_of("dataset", "task")),
        _one_of("repeat", "fold", "split", "seed", "metric", "time_train_s", "time_infer_s",
                "imputed"),
        _tabarena,
    ),
    _AMLB: _Layout(
        tuple(map(_one_of, ("task", "framework", "fold", "result", "metric"))),
        _one_of("constraint", "duration"),
        _amlb,
    ),
    _AUTOGLUON: _Layout(
        (_one_of("model"), _one_of("score_test", "score_val"), _one_of("fit_time"),
         _one_of("stack_level", "eval_metric")),
        _one_of("dataset", "fold", "pred_time_test"),
        _autogluon,
    ),
}  # fmt: skip
