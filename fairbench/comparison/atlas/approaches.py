"""One table of many runs: approach, task, split and metrics.

A task is a data set with a protected attribute. An approach is what one could deploy: a learner,
an intervention and an uncertainty method with their options and, where thresholds per group were
set or labels withheld, that setting.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.core.fingerprint import digest
from fairbench.evaluation.columns import COSTS, VALUE
from fairbench.metrics.registry import find
from fairbench.results.catalogue import contents, differing_options, file_content
from fairbench.results.record import reading
from fairbench.results.runs import Run
from fairbench.results.shapes import METRICS, check_metrics
from fairbench.results.upgrading import upgraded

if TYPE_CHECKING:
    import pyarrow as pa

TASK = ("dataset", "protect")
APPROACH = ("learner", "intervention", "method", "options", "setting")
_FIRST = ("family", *TASK, *APPROACH, "seed", "repeat", "run")
_PARTS = ("learner", "intervention", "method")
_FACTS = ("rows", "features", "positive_share", "smallest_group_share", "groups")
_READ = (
    *("repeat", "variant", "metric", "statistic", "attribute", "group", "value", "n"),
    *("binning", "rate", "constraint", "relaxation"),
)
_SETTINGS = ("rate", "constraint", "relaxation")
_LEFT_OUT_COLUMNS = (
    "bin",
    "level",
    "feature",
    "outcome",
    "k",
)  # rows with a value here are left out
# The rows that are compared: values of a run itself, not of its variants, and of no single group.
_ROW_OF_RUN: Mapping[str, str] = MappingProxyType({"variant": "", "group": "", "statistic": VALUE})
_TEXTS = {"metric", "attribute", "binning", "constraint"}
# Metrics after abstaining, or with relaxed thresholds, count as the metrics themselves.
_RENAMED: Mapping[str, str] = MappingProxyType(
    {
        "abstention_error_rate": "error_rate",
        "abstention_statistical_parity": "statistical_parity",
        "abstention_equalized_odds": "equalized_odds",
        "postprocessed_error_rate": "error_rate",
        "postprocessed_validation_error_rate": "validation_error_rate",
    }
)
_OF_CONSTRAINT = "postprocessed_gap"


RunValues = Mapping[Path, "pa.Table"]


def read_values(runs: Sequence[Run]) -> RunValues:
    """Return the values of runs by path, for use in several tables of the same runs."""
    return {run.path: _values(run) for run in runs}


def approach_table(
    runs: Sequence[Run], *, among: Sequence[Run] = (), values: RunValues | None = None
) -> pd.DataFrame:
    """Return a row for every task, approach, setting and repeat.

    The runs of one task have the same data and the same kind of split: the most common ones. Among
    runs that differ only in the number of repeats, the one with most repeats is used, and among
    runs that differ only in their evaluator, the one with most relaxations.

    Parameters
    ----------
    among : a superset of the runs. Names of data sets and options are made unique among these, so
        that tables of several parts of them agree in names.
    values : the result of :func:`read_values`, if the runs were read already.

    Returns
    -------
    DataFrame
        ``family, dataset, protect``, the task; ``learner, intervention, method, options`` (of
        these three, those in which runs of one name differ, such as
        ``intervention.repair_level=0.5``); ``setting``: empty, ``statistical_parity<=0.05`` where
        thresholds of each group were chosen on validation rows, or ``abstained=0.2`` where so many
        labels are withheld; ``seed, repeat, run``; ``group_at_prediction``, whether a person's
        group must be known to predict; ``test_share``, of the rows trained on or tested; facts
        about the task (``rows, features, positive_share, smallest_group_share, groups``); and
        one column per metric, in the unit of the metric, NaN where it is undefined.
    """
    compared = _comparable(runs)
    if not compared:
        return pd.DataFrame(columns=[*_FIRST])
    long = _long_table(compared, values)
    long["setting"] = _settings(long)
    long["metric"] = _metric_names(long)
    keys = long.groupby(["run_index", "setting", "repeat"], sort=True, observed=True).ngroup()
    wide = _pivot(keys.to_numpy(), long)
    facts = _facts_of_runs(among or compared).set_index("run", drop=False)
    facts_of_rows = facts.loc[[run.id for run in compared]].iloc[wide["run_index"].to_numpy()]
    facts_of_rows = facts_of_rows.reset_index(drop=True)
    table = pd.concat([facts_of_rows, wide.drop(columns="run_index")], axis=1)
    table["setting"] = table["setting"].astype(object)
    table["group_at_prediction"] |= table["setting"].str.contains("<=", regex=False)
    return table[[*_FIRST, *table.columns.difference([*_FIRST], sort=False)]]


def _comparable(runs: Sequence[Run]) -> list[Run]:
    """Return the runs of each task that share data and split, once each."""
    sets_of_task: dict[tuple[str, str], dict[str, dict[str, Run]]] = {}
    names = _datasets(runs)
    for run, name in zip(runs, names, strict=True):
        split = {name: value for name, value in run.config["split"].items() if name != "repeats"}
        shared = digest([run.environment["data"], split])
        key = digest([run.seed, *(run.config[part] for part in _PARTS)])
        by_key = sets_of_task.setdefault((name, run.protect), {}).setdefault(shared, {})
        if key not in by_key or _extent(run) > _extent(by_key[key]):
            by_key[key] = run
    return [run for sets in sets_of_task.values() for run in max(sets.values(), key=len).values()]


def _extent(run: Run) -> tuple[int, int]:
    """Return how many repeats a run has, and how many relaxations."""
    repeats = run.config["split"].get("repeats")
    relaxations = run.config["evaluator"].get("relaxations", ())
    return int(repeats or 1), len(relaxations)


def _datasets(runs: Sequence[Run]) -> list[str]:
    """Return the name of each run's data set, with the options that tell namesakes apart.

    Data that are equal have one name, by the shortest path of the file that they are from.
    """
    marks = contents(runs)
    by_path = sorted(zip(map(_path, runs), range(len(runs)), strict=True))
    first = {marks[index]: runs[index] for _, index in reversed(by_path)}
    names = [run.choices["dataset"] for run in first.values()]
    options = differing_options(names, list(first.values()), ("dataset",))
    name_of = {
        mark: " ".join([name, *options_of_run])
        for mark, name, options_of_run in zip(first, names, options, strict=True)
    }
    return [name_of[mark] for mark in marks]


def _path(run: Run) -> tuple[int, str]:
    """Return the length and the text of the path of a run's file, to sort by."""
    path = str(run.config["dataset"].get("path") or "")
    return len(path), path


def _families(runs: Sequence[Run], names: Sequence[str]) -> list[str]:
    """Return the family of each run's data; a user's file is one by itself, whatever its name.

    Parameters
    ----------
    names : the names of the data sets.
    """
    files = [file_content(run) if _path(run)[0] else "" for run in runs]
    paths = {
        file: path
        for (_, path), file in sorted(zip(map(_path, runs), files, strict=True), reverse=True)
    }
    stems = Counter(Path(path).stem for file, path in paths.items() if file)
    families = []
    for run, name, file in zip(runs, names, files, strict=True):
        stem = Path(paths[file]).stem
        own = stem if stems[stem] == 1 else paths[file]
        families.append(own if file else str(run.environment.get("task", {}).get("family", name)))
    return families


def _options(runs: Sequence[Run]) -> list[str]:
    """Return for each run the options in which runs of one component's name differ."""
    options_of_runs: list[list[str]] = [[] for _ in runs]
    for part in _PARTS:
        names = [run.choices[part] for run in runs]
        for run_options, differing in zip(
            options_of_runs, differing_options(names, runs, (part,)), strict=True
        ):
            run_options += [f"{part}.{option}" for option in differing]
    return [" ".join(words) for words in options_of_runs]


def _facts_of_runs(runs: Sequence[Run]) -> pd.DataFrame:
    """Return task, approach and facts of every run, one row per run."""
    facts: list[Mapping[str, Any]] = [run.environment.get("task", {}) for run in runs]
    names = _datasets(runs)
    columns = {
        "family": _families(runs, names),
        "dataset": names,
        "protect": [run.protect for run in runs],
        **{part: [run.choices[part] for run in runs] for part in _PARTS},
        "options": _options(runs),
        "seed": [run.seed for run in runs],
        "run": [run.id for run in runs],
        "group_at_prediction": [
            bool(run.environment.get("group_at_prediction", False)) for run in runs
        ],
        **{name: [_number(fact.get(name)) for fact in facts] for name in _FACTS},
    }
    return pd.DataFrame(columns)


def _number(value: object) -> float:
    """Return a number as a float, and NaN for anything else."""
    return float(value) if isinstance(value, int | float) else float("nan")


def _long_table(runs: Sequence[Run], values: RunValues | None) -> pd.DataFrame:
    """Return the rows of all runs' long tables that approaches are compared by."""
    import pyarrow as pa

    tables = [values[run.path] if values is not None else _values(run) for run in runs]
    run_index = np.repeat(np.arange(len(tables)), [len(run_table) for run_table in tables])
    table = pa.concat_tables(tables, promote_options="permissive")
    table = table.append_column("run_index", pa.array(run_index))
    frame: pd.DataFrame = table.unify_dictionaries().to_pandas()
    missing = {name: np.nan for name in _SETTINGS if name not in frame}
    frame = frame.assign(**missing)
    if "binning" in frame:
        frame = frame[(frame["binning"] != "mass").to_numpy()]
    return frame.reset_index(drop=True)


def _values(run: Run) -> pa.Table:
    """Return a run's metric values over all people or over all protected groups together."""
    import pyarrow as pa
    from pyarrow import compute

    with reading(run.path / "metrics.parquet"):
        table = upgraded(_metrics(run))
        check_metrics(table, [name for name in METRICS if name in _READ])
    present = set(table.column_names)
    is_kept = compute.is_in(table["attribute"].cast(pa.string()), pa.array(["", run.protect]))
    for name, value in _ROW_OF_RUN.items():
        is_kept = compute.and_(is_kept, compute.equal(table[name].cast(pa.string()), value))
    for name in _LEFT_OUT_COLUMNS:
        if name in present:
            is_kept = compute.and_(is_kept, compute.is_null(table[name]))
    kept = table.filter(is_kept).drop_columns([*_ROW_OF_RUN, *(present & {*_LEFT_OUT_COLUMNS})])
    for name in _TEXTS & {*kept.column_names}:  # however the file stores it
        if not pa.types.is_dictionary(kept[name].type):
            column = kept[name].cast(pa.string()).dictionary_encode()
            kept = kept.set_column(kept.column_names.index(name), name, column)
    return kept


def _metrics(run: Run) -> pa.Table:
    """Return the columns that are needed of a run's long table, in a folder or in a pack."""
    if not run.pack:
        return run.read_parquet("metrics", _TEXTS, (*_READ, *_LEFT_OUT_COLUMNS))
    table = run.table("metrics")
    return table.select(
        [name for name in (*_READ, *_LEFT_OUT_COLUMNS) if name in table.column_names]
    )


def _settings(long: pd.DataFrame) -> pd.Categorical:
    """Return the name of each row's setting."""
    points = long[[*_SETTINGS]]
    codes = points.groupby([*_SETTINGS], dropna=False, sort=False, observed=True).ngroup()
    first = points[~codes.duplicated()]
    texts = [_setting(*row) for row in first.itertuples(index=False)]
    names = sorted(set(texts))
    code_of_text = np.array([names.index(text) for text in texts], np.intp)
    return pd.Categorical.from_codes(code_of_text[codes.to_numpy()], names)


def _setting(rate: float, constraint: object, relaxation: float) -> str:
    if isinstance(constraint, str) and relaxation == relaxation:
        return f"{constraint}<={relaxation:g}"
    return f"abstained={rate:g}" if rate > 0 else ""


def _metric_names(long: pd.DataFrame) -> pd.Categorical:
    """Return the name by which each row's metric is compared; empty if it is left out."""
    points = long[["metric", "constraint"]].assign(once=long["rate"] == 0)
    codes = points.groupby([*points], dropna=False, sort=False, observed=True).ngroup()
    first = points[~codes.duplicated()]
    texts = [_metric_name(*row) for row in first.itertuples(index=False)]
    names = sorted({*texts})
    code_of_text = np.array([names.index(text) for text in texts], np.intp)
    return pd.Categorical.from_codes(code_of_text[codes.to_numpy()], names)


def _metric_name(metric: str, constraint: object, once: bool) -> str:
    """Return the name a metric is compared by, or "" if its row is left out.

    Rows for abstaining on a share of 0 are left out: they repeat the values without abstaining.
    """
    name = str(constraint) if metric == _OF_CONSTRAINT else _RENAMED.get(metric, metric)
    return name if not once and _is_compared(name) else ""


def _is_compared(name: str) -> bool:
    return find(name) is not None or name in (*COSTS, *_RENAMED.values())


def _pivot(keys: NDArray[np.intp], long: pd.DataFrame) -> pd.DataFrame:
    """Return the mean over folds of every metric, one row per key and one column per metric.

    If a metric is given both for everyone and for the protected groups, the latter counts.
    """
    columns = pd.Index(sorted(set(long["metric"]) - {""}))
    column = columns.get_indexer(long["metric"])
    is_of_groups = (long["attribute"] != "").to_numpy()
    shape = (int(keys.max()) + 1, len(columns))
    cell = keys * shape[1] + column
    is_compared = column >= 0
    doubled = np.zeros(shape[0] * shape[1], bool)
    doubled[cell[is_compared & is_of_groups]] = True
    is_compared &= is_of_groups | ~doubled[np.where(is_compared, cell, 0)]
    values = long["value"].to_numpy(float)
    size = shape[0] * shape[1]
    total = np.bincount(cell[is_compared], values[is_compared], size)
    count = np.bincount(cell[is_compared], minlength=size)
    with np.errstate(invalid="ignore"):
        means = (total / count).reshape(shape)
    first_rows = np.unique(keys, return_index=True)[1]
    wide = long.iloc[first_rows][["run_index", "setting", "repeat"]].reset_index(drop=True)
    wide["test_share"] = _test_shares(long)[wide["run_index"].to_numpy()]
    means_by_key = pd.concat([wide, pd.DataFrame(means, columns=columns)], axis=1)
    return means_by_key[np.isfinite(means).any(axis=1)].reset_index(drop=True)


def _test_shares(long: pd.DataFrame) -> NDArray[np.float64]:
    """Return the share of rows trained on or tested that a split of each run tests; 0.5 if unknown.

    Rows of validation are neither; see :mod:`fairbench.inference.repeats`.
    """
    runs = int(long["run_index"].max()) + 1
    rows_per_split = [
        long[long["metric"].isin(names) & (long["setting"] == "")].groupby("run_index")["n"].mean()
        for names in (("error_rate", "rmse"), ("fit_seconds",))
    ]
    tested, trained = (rows.reindex(range(runs)).to_numpy(float) for rows in rows_per_split)
    share = tested / (tested + trained)
    return np.where(np.isfinite(share), share, 0.5)


def approach_names(table: pd.DataFrame) -> pd.Series:
    """Return the name of each row's approach."""
    return table[[*APPROACH]].agg(lambda row: ", ".join(filter(None, row)), axis=1)
