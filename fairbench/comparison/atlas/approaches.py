"""One table of many runs: what was deployed, on which task, in which split, and what it gave.

A task is a data set with a protected attribute. An approach is what one could deploy: a learner,
an intervention and an uncertainty method with their options and, where labels were given by
thresholds of each group or withheld, the setting of that.
"""

from __future__ import annotations

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
from fairbench.results.catalogue import differing_options
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
_NOT_OF = ("bin", "level", "feature", "outcome", "k")  # rows of such a thing are left out
# What is compared: the values of runs' own variants, of no single group.
_ONE: Mapping[str, str] = MappingProxyType({"variant": "", "group": "", "statistic": VALUE})
_TEXTS = {"metric", "attribute", "binning", "constraint"}
# What abstaining and relaxed thresholds give, under the names of the metrics themselves.
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
    """Return what is compared of runs, by their paths: for several tables of the same runs."""
    return {run.path: _values(run) for run in runs}


def approach_table(
    runs: Sequence[Run], *, among: Sequence[Run] = (), values: RunValues | None = None
) -> pd.DataFrame:
    """Return a row for every task, approach, setting and repeat.

    Runs of one task are of one content of the data and one kind of split, the commonest. Of runs
    that differ in the number of their repeats alone, the one with most counts, and of those that
    differ in their evaluator alone, the one with most relaxations.

    Parameters
    ----------
    among : more runs, these among them, so that the tables of several parts of them name data sets
        and options alike.
    values : of the runs, where they were read already.

    Returns
    -------
    DataFrame
        ``family, dataset, protect``, the task; ``learner, intervention, method, options`` (of
        these three, those in which runs of one name differ, such as
        ``intervention.repair_level=0.5``); ``setting``: empty, ``statistical_parity<=0.05`` where
        thresholds of each group were chosen on validation rows, or ``abstained=0.2`` where so many
        labels are withheld; ``seed, repeat, run``; ``group_at_prediction``, whether a person's
        group must be known to predict; ``test_share``, of the rows trained on or tested; what is
        known of the task (``rows, features, positive_share, smallest_group_share, groups``); and
        one column a metric, in the unit of the metric, NaN where it is undefined.
    """
    kept = _comparable(runs)
    if not kept:
        return pd.DataFrame(columns=[*_FIRST])
    long = _long(kept, values)
    long["setting"] = _settings(long)
    long["metric"] = _approach_names(long)
    keys = long.groupby(["place", "setting", "repeat"], sort=True, observed=True).ngroup()
    wide = _pivot(keys.to_numpy(), long)
    known = _facts_of_runs(among or kept).set_index("run", drop=False)
    about = known.loc[[run.id for run in kept]].iloc[wide["place"].to_numpy()]
    about = about.reset_index(drop=True)
    table = pd.concat([about, wide.drop(columns="place")], axis=1)
    table["setting"] = table["setting"].astype(object)
    table["group_at_prediction"] |= table["setting"].str.contains("<=", regex=False)
    return table[[*_FIRST, *table.columns.difference([*_FIRST], sort=False)]]


def _comparable(runs: Sequence[Run]) -> list[Run]:
    """Return the runs of each task that share data and split, once each."""
    of_task: dict[tuple[str, str], dict[str, dict[str, Run]]] = {}
    names = _datasets(runs)
    for run, name in zip(runs, names, strict=True):
        split = {name: value for name, value in run.config["split"].items() if name != "repeats"}
        shared = digest([run.environment["data"], split])
        same = digest([run.seed, *(run.config[part] for part in _PARTS)])
        found = of_task.setdefault((name, run.protect), {}).setdefault(shared, {})
        if same not in found or _reaches(run) > _reaches(found[same]):
            found[same] = run
    return [run for sets in of_task.values() for run in max(sets.values(), key=len).values()]


def _reaches(run: Run) -> tuple[int, int]:
    """Return how many repeats a run has, and how many relaxations."""
    repeats, relaxations = run.config["split"].get("repeats"), run.config["evaluator"]
    return int(repeats or 1), len(relaxations.get("relaxations", ()))


def _datasets(runs: Sequence[Run]) -> list[str]:
    """Return the name of each run's data set, with the options that tell namesakes apart."""
    names = [run.choices["dataset"] for run in runs]
    options = differing_options(names, runs, ("dataset",))
    return [" ".join([name, *own]) for name, own in zip(names, options, strict=True)]


def _options(runs: Sequence[Run]) -> list[str]:
    """Return for each run the options in which runs of one component's name differ."""
    found: list[list[str]] = [[] for _ in runs]
    for part in _PARTS:
        names = [run.choices[part] for run in runs]
        for own, told in zip(found, differing_options(names, runs, (part,)), strict=True):
            own += [f"{part}.{option}" for option in told]
    return [" ".join(words) for words in found]


def _facts_of_runs(runs: Sequence[Run]) -> pd.DataFrame:
    """Return what is known of every run beside its metrics, a row a run."""
    facts: list[Mapping[str, Any]] = [run.environment.get("task", {}) for run in runs]
    names = _datasets(runs)
    columns = {
        "family": [fact.get("family", name) for fact, name in zip(facts, names, strict=True)],
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
    return float(value) if isinstance(value, int | float) else float("nan")


def _long(runs: Sequence[Run], values: RunValues | None) -> pd.DataFrame:
    """Return the rows of all runs' long tables that approaches are compared by."""
    import pyarrow as pa

    tables = [values[run.path] if values is not None else _values(run) for run in runs]
    place = np.repeat(np.arange(len(tables)), [len(each) for each in tables])
    table = pa.concat_tables(tables, promote_options="permissive")
    table = table.append_column("place", pa.array(place))
    frame: pd.DataFrame = table.unify_dictionaries().to_pandas()
    missing = {name: np.nan for name in _SETTINGS if name not in frame}
    frame = frame.assign(**missing)
    if "binning" in frame:
        frame = frame[(frame["binning"] != "mass").to_numpy()]
    return frame.reset_index(drop=True)


def _values(run: Run) -> pa.Table:
    """Return the rows of a run's long table that are of everyone or of all protected groups."""
    import pyarrow as pa
    from pyarrow import compute

    with reading(run.path / "metrics.parquet"):
        table = upgraded(_metrics(run))
        check_metrics(table, [name for name in METRICS if name in _READ])
    there = set(table.column_names)
    kept = compute.is_in(table["attribute"].cast(pa.string()), pa.array(["", run.protect]))
    for name, wanted in _ONE.items():
        kept = compute.and_(kept, compute.equal(table[name].cast(pa.string()), wanted))
    for name in _NOT_OF:
        if name in there:
            kept = compute.and_(kept, compute.is_null(table[name]))
    found = table.filter(kept).drop_columns([*_ONE, *(there & {*_NOT_OF})])
    for name in _TEXTS & {*found.column_names}:  # however the file stores it
        if not pa.types.is_dictionary(found[name].type):
            column = found[name].cast(pa.string()).dictionary_encode()
            found = found.set_column(found.column_names.index(name), name, column)
    return found


def _metrics(run: Run) -> pa.Table:
    """Return the columns that are needed of a run's long table, in a folder or in a pack."""
    if not run.pack:
        return run.read_parquet("metrics", _TEXTS, (*_READ, *_NOT_OF))
    table = run.table("metrics")
    return table.select([name for name in (*_READ, *_NOT_OF) if name in table.column_names])


def _settings(long: pd.DataFrame) -> pd.Categorical:
    """Return each row's setting in words."""
    points = long[[*_SETTINGS]]
    codes = points.groupby([*_SETTINGS], dropna=False, sort=False, observed=True).ngroup()
    first = points[~codes.duplicated()]
    texts = [_setting(*row) for row in first.itertuples(index=False)]
    names = sorted(set(texts))
    place = np.array([names.index(text) for text in texts], np.intp)
    return pd.Categorical.from_codes(place[codes.to_numpy()], names)


def _setting(rate: float, constraint: object, relaxation: float) -> str:
    if isinstance(constraint, str) and relaxation == relaxation:
        return f"{constraint}<={relaxation:g}"
    return f"abstained={rate:g}" if rate > 0 else ""


def _approach_names(long: pd.DataFrame) -> pd.Categorical:
    """Return each row's metric under the name it is compared by; empty for what is left out."""
    points = long[["metric", "constraint"]].assign(once=long["rate"] == 0)
    codes = points.groupby([*points], dropna=False, sort=False, observed=True).ngroup()
    first = points[~codes.duplicated()]
    texts = [_name(*row) for row in first.itertuples(index=False)]
    names = sorted({*texts})
    place = np.array([names.index(text) for text in texts], np.intp)
    return pd.Categorical.from_codes(place[codes.to_numpy()], names)


def _name(metric: str, constraint: object, once: bool) -> str:
    """Return a metric's name; nothing of a share of 0 abstained on, which is as without."""
    name = str(constraint) if metric == _OF_CONSTRAINT else _RENAMED.get(metric, metric)
    return name if not once and _compared(name) else ""


def _compared(name: str) -> bool:
    return find(name) is not None or name in (*COSTS, *_RENAMED.values())


def _pivot(keys: NDArray[np.intp], long: pd.DataFrame) -> pd.DataFrame:
    """Return the mean over folds of every metric, a row a key and a column a metric.

    A metric that is given of everyone and of the protected groups counts as the groups'.
    """
    columns = pd.Index(sorted(set(long["metric"]) - {""}))
    place = columns.get_indexer(long["metric"])
    of_groups = (long["attribute"] != "").to_numpy()
    shape = (int(keys.max()) + 1, len(columns))
    cell = keys * shape[1] + place
    known = place >= 0
    doubled = np.zeros(shape[0] * shape[1], bool)
    doubled[cell[known & of_groups]] = True
    known &= of_groups | ~doubled[np.where(known, cell, 0)]
    values = long["value"].to_numpy(float)
    size = shape[0] * shape[1]
    total = np.bincount(cell[known], values[known], size)
    count = np.bincount(cell[known], minlength=size)
    with np.errstate(invalid="ignore"):
        means = (total / count).reshape(shape)
    first = np.unique(keys, return_index=True)[1]
    wide = long.iloc[first][["place", "setting", "repeat"]].reset_index(drop=True)
    wide["test_share"] = _test_shares(long)[wide["place"].to_numpy()]
    found = pd.concat([wide, pd.DataFrame(means, columns=columns)], axis=1)
    return found[np.isfinite(means).any(axis=1)].reset_index(drop=True)


def _test_shares(long: pd.DataFrame) -> NDArray[np.float64]:
    """Return the share of rows trained on or tested that a split of each run tests; 0.5 if unknown.

    Rows of validation are neither; see :mod:`fairbench.inference.repeats`.
    """
    runs = int(long["place"].max()) + 1
    rows = [
        long[long["metric"].isin(names) & (long["setting"] == "")].groupby("place")["n"].mean()
        for names in (("error_rate", "rmse"), ("fit_seconds",))
    ]
    tested, trained = (row.reindex(range(runs)).to_numpy(float) for row in rows)
    share = tested / (tested + trained)
    return np.where(np.isfinite(share), share, 0.5)


def approach_names(table: pd.DataFrame) -> pd.Series:
    """Return each row's approach in words: what tells the table's approaches apart."""
    return table[[*APPROACH]].agg(lambda row: ", ".join(filter(None, row)), axis=1)
