"""One table of many runs: approach, task, split and metrics.

A task is a data set with a protected attribute. An approach is what one could deploy: a learner,
an intervention and an uncertainty method with their options and, where thresholds per group were
set or labels withheld, that setting. `approach_table` makes the table of runs; `read_approaches`
reads one from a file, which is all that somebody needs to show own runs beside others'.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.core import files
from fairbench.core.arrays import Codes, Floats, Mask, divide
from fairbench.core.errors import DataError, UserError
from fairbench.core.files import UNREADABLE, DamagedError
from fairbench.core.memory import most_memory
from fairbench.core.text import digest, said
from fairbench.evaluation.table import COSTS, VALUE
from fairbench.inference.means import Moments, loss_limits
from fairbench.inference.rates import Limits
from fairbench.metrics.registry import find
from fairbench.results.catalogue import differing_options
from fairbench.results.record import reading
from fairbench.results.runs import Run, place_of
from fairbench.results.tables import METRICS, check_columns, check_plain, checked_metrics

if TYPE_CHECKING:
    import pyarrow as pa

TASK = ("dataset", "protect")
PARTS = ("learner", "intervention", "method")
APPROACH = (*PARTS, "options", "setting")
ERROR = "error_rate"
NONE = "none"  # the intervention of those that have none
_FIRST = ("family", *TASK, *APPROACH, "seed", "repeat", "run")
FACTS = ("rows", "features", "positive_share", "smallest_group_share", "groups")
# The columns of a table of approaches that are not metrics.
ABOUT = (*_FIRST, "group_at_prediction", "test_share", *FACTS)
_READ = (
    *("repeat", "variant", "metric", "statistic", "attribute", "group", "value", "n"),
    *("binning", "rate", "constraint", "relaxation"),
)
_SETTINGS = ("rate", "constraint", "relaxation")
# Rows with a value here are not read.
_LEFT_OUT_COLUMNS = ("bin", "level", "feature", "outcome", "k")
# The rows that are compared: values of a run itself, not of its variants, and of no single group.
_ROW_OF_RUN: Mapping[str, str] = {"variant": "", "group": "", "statistic": VALUE}
_TEXTS = {"metric", "attribute", "binning", "constraint"}
# Metrics after abstaining, or with relaxed thresholds, count as the metrics themselves.
_RENAMED: Mapping[str, str] = {
    "abstention_error_rate": "error_rate",
    "abstention_statistical_parity": "statistical_parity",
    "abstention_equalized_odds": "equalized_odds",
    "postprocessed_error_rate": "error_rate",
    "postprocessed_validation_error_rate": "validation_error_rate",
}
_OF_CONSTRAINT = "postprocessed_gap"


def approach_table(runs: Sequence[Run], *, among: Sequence[Run] = ()) -> pd.DataFrame:
    """Return a row for every task, approach, setting and repeat.

    The runs of one task have the same data and the same kind of split: the most common ones. Among
    runs that differ only in the number of repeats, the one with most repeats is used, and among
    runs that differ only in their evaluator, the one with most relaxations.

    Parameters
    ----------
    among : a superset of the runs. Names of data sets and options are made unique among these, so
        that tables of several parts of them agree in names.

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
    long = _long_table(compared)
    long["setting"] = _named(long[[*_SETTINGS]], _setting)
    points = long[["metric", "constraint"]].assign(once=long["rate"] == 0)
    long["metric"] = _named(points, _metric_name)
    wide = _pivot(long)
    facts = _facts_of_runs(among or compared).set_index("run", drop=False)
    facts_of_rows = facts.loc[[run.id for run in compared]].iloc[wide["run_index"].to_numpy()]
    facts_of_rows = facts_of_rows.reset_index(drop=True)
    table = pd.concat([facts_of_rows, wide.drop(columns="run_index")], axis=1)
    table["setting"] = table["setting"].astype(object)
    table["group_at_prediction"] |= table["setting"].str.contains("<=", regex=False)
    return table[[*_FIRST, *table.columns.difference([*_FIRST], sort=False)]]


APPROACHES = "approaches.parquet"  # the usual name of a file of such a table
_WORDS = ("family", *TASK, *APPROACH, "run")
_SETTING = re.compile(r"|(\w+<|abstained)=\d+(\.\d+)?(e-?\d+)?")


def approaches_bytes(table: pd.DataFrame) -> bytes:
    """Return a table of approaches as a Parquet file, which :func:`read_approaches` reads."""
    content: bytes = table.to_parquet(index=False, compression="zstd")
    return content


def read_approaches(path: Path) -> pd.DataFrame:
    """Return the table of approaches of a Parquet file, as :func:`approach_table` made it.

    Raises
    ------
    UserError : it cannot be read, or is no such table: a column is missing or of another type, a
        setting or a share is none, or an approach has two rows on one split.
    """
    try:
        table = files.table_within(files.read_bytes(path, most_memory()), path.name)
        check_plain(table)
        check_columns(table.column_names, ABOUT)
        frame: pd.DataFrame = table.to_pandas()
        _check_approaches(frame)
    except UserError:
        raise
    except UNREADABLE as error:
        told = {"path": path, "why": str(error).splitlines()[0], "usual": APPROACHES}
        raise DataError(said("fairbench_rank", "no_approaches", **told)) from error
    return frame


def is_approaches(path: Path) -> bool:
    """Say whether a file has the columns of a table of approaches, by its footer."""
    from pyarrow import parquet

    try:
        with open(files.opened(path), "rb") as file:
            return {*_FIRST} <= {*parquet.read_schema(file).names}
    except (OSError, ValueError):
        return False


def _check_approaches(table: pd.DataFrame) -> None:
    """Check the types of a table of approaches, and what is computed with before it is shown."""
    kinds = dict.fromkeys(_WORDS, "str") | dict.fromkeys(("seed", "repeat"), "int64")
    kinds["group_at_prediction"] = "bool"
    for name, column in table.items():
        if column.dtype != kinds.get(name, "float64") or (name in _WORDS and column.hasnans):
            raise DamagedError(f"column {name} is of {column.dtype}, or lacks values")
    if not all(_SETTING.fullmatch(text) for text in table["setting"].unique()):
        raise DamagedError("column setting has one that is none")
    if np.isinf(table.select_dtypes("float64")).any(axis=None):
        raise DamagedError("a number is infinite")
    if not table["test_share"].between(1e-6, 0.999).all():
        raise DamagedError("column test_share has a number that is no share")
    if table.duplicated([*_PLACE]).any():
        raise DamagedError("an approach has two rows on one split")


_PLACE = (*TASK, *APPROACH, "seed", "repeat")  # of a row


def approaches_together(tables: Sequence[pd.DataFrame]) -> tuple[pd.DataFrame, list[str]]:
    """Return tables of approaches as one, and a sentence on the rows of each that it leaves out.

    Tasks of one name have the facts of the first table. Later rows on other data or other splits
    of it are left out, and those of an approach that an earlier table has on the same split.
    """
    first, *others = tables
    notes = []
    for other in others:
        facts = [*FACTS, "test_share"]
        known = first[[*TASK, "family", *facts]].drop_duplicates([*TASK])
        known = other[[*TASK]].merge(known, how="left", on=[*TASK])
        same = np.isclose(known[facts], other[facts], rtol=1e-6, equal_nan=True).all(axis=1)
        here = other.set_index([*_PLACE]).index.isin(first.set_index([*_PLACE]).index)
        kept = (same | known["family"].isna().to_numpy()) & ~here
        if runs := len({*other["run"][~kept]} - {*first["run"]}):
            notes.append(said("fairbench_rank", "left_out_rows", runs=runs))
        family = known["family"].fillna(other["family"].reset_index(drop=True))
        other = other.assign(family=family.to_numpy())
        first = pd.concat([first, other[kept]], ignore_index=True)
    return first, notes


def _comparable(runs: Sequence[Run]) -> list[Run]:
    """Return the runs of each task that share data and split, once each."""
    sets_of_task: dict[tuple[str, str], dict[str, dict[str, Run]]] = {}
    names = _datasets(runs)
    for run, name in zip(runs, names, strict=True):
        split = {name: value for name, value in run.config["split"].items() if name != "repeats"}
        shared = digest([run.environment["data"], split])
        key = digest([run.seed, *(run.config[part] for part in PARTS)])
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
    marks = _contents(runs)
    by_path = sorted(zip(map(_path, runs), range(len(runs)), strict=True))
    first = {marks[index]: runs[index] for _, index in reversed(by_path)}
    names = [run.choices["dataset"] for run in first.values()]
    options = differing_options(names, list(first.values()), ("dataset",))
    told_apart = (" ".join([name, *own]) for name, own in zip(names, options, strict=True))
    name_of = dict(zip(first, told_apart, strict=True))
    return [name_of[mark] for mark in marks]


def _contents(runs: Sequence[Run]) -> list[str]:
    """Return for each run a mark of its data; a user's file is what is in it, wherever it lies."""
    marks = []
    for run in runs:
        options = dict(run.summarised["config"].get("dataset", {}))
        is_file = bool(options.pop("path", None))
        data = _file_content(run) if is_file else str(run.summarised["data"])
        marks.append(digest([options, data]))
    return marks


def _file_content(run: Run) -> str:
    """Return a hash of what is in the raw files of a run, whatever they are called."""
    return digest(sorted(run.environment["data_sha256"].values()))


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
    files = [_file_content(run) if _path(run)[0] else "" for run in runs]
    by_path = sorted(zip(map(_path, runs), files, strict=True), reverse=True)
    paths = {file: path for (_, path), file in by_path}
    stem_of = {file: Path(path).stem for file, path in paths.items() if file}
    stems = Counter(stem_of.values())
    own = {file: stem if stems[stem] == 1 else paths[file] for file, stem in stem_of.items()}
    return [
        own[file] if file else str(run.environment.get("task", {}).get("family", name))
        for run, name, file in zip(runs, names, files, strict=True)
    ]


def _options(runs: Sequence[Run]) -> list[str]:
    """Return for each run the options in which runs of one component's name differ."""
    words: list[list[str]] = [[] for _ in runs]
    for part in PARTS:
        names = [run.choices[part] for run in runs]
        for own, differing in zip(words, differing_options(names, runs, (part,)), strict=True):
            own += [f"{part}.{option}" for option in differing]
    return [" ".join(own) for own in words]


def _facts_of_runs(runs: Sequence[Run]) -> pd.DataFrame:
    """Return task, approach and facts of every run, one row per run."""
    facts: list[Mapping[str, Any]] = [run.environment.get("task", {}) for run in runs]
    names = _datasets(runs)
    columns = {
        "family": _families(runs, names),
        "dataset": names,
        "protect": [run.protect for run in runs],
        **{part: [run.choices[part] for run in runs] for part in PARTS},
        "options": _options(runs),
        "seed": [run.seed for run in runs],
        "run": [run.id for run in runs],
        "group_at_prediction": [bool(run.environment.get("group_at_prediction")) for run in runs],
        **{name: [_number(fact.get(name)) for fact in facts] for name in FACTS},
    }
    return pd.DataFrame(columns)


def _number(value: object) -> float:
    """Return a number as a float, and NaN for anything else."""
    return float(value) if isinstance(value, int | float) else float("nan")


def _long_table(runs: Sequence[Run]) -> pd.DataFrame:
    """Return the rows of all runs' long tables that approaches are compared by."""
    import pyarrow as pa

    tables = [_values(run) for run in runs]
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

    with reading(place_of(run.path, "metrics.parquet")):
        table = run.read_parquet("metrics", _TEXTS, (*_READ, *_LEFT_OUT_COLUMNS))
        checked_metrics(table, [name for name in METRICS if name in _READ])
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


def _named(points: pd.DataFrame, name_of: Callable[..., str]) -> pd.Categorical:
    """Return the name of each row, made once of every combination of values that there is."""
    codes = points.groupby([*points], dropna=False, sort=False, observed=True).ngroup()
    texts = [name_of(*row) for row in points[~codes.duplicated()].itertuples(index=False)]
    names = sorted({*texts})
    code_of_text = np.array([names.index(text) for text in texts], np.intp)
    return pd.Categorical.from_codes(code_of_text[codes.to_numpy()], names)


def _setting(rate: float, constraint: object, relaxation: float) -> str:
    """Return the name of a setting: thresholds with a limit, or a share of withheld labels."""
    if isinstance(constraint, str) and relaxation == relaxation:
        return f"{constraint}<={relaxation:g}"
    return f"abstained={rate:g}" if rate > 0 else ""


def _metric_name(metric: str, constraint: object, once: bool) -> str:
    """Return the name by which a row's metric is compared, or "" if the row is left out.

    Rows for abstaining on a share of 0 are left out: they repeat the values without abstaining.
    """
    name = str(constraint) if metric == _OF_CONSTRAINT else _RENAMED.get(metric, metric)
    is_compared = find(name) is not None or name in (*COSTS, *_RENAMED.values())
    return name if not once and is_compared else ""


def _pivot(long: pd.DataFrame) -> pd.DataFrame:
    """Return the mean over folds of every metric: rows are runs, settings and repeats.

    If a metric is given both for everyone and for the protected groups, the latter counts.
    """
    long, names = long[long["metric"] != ""], ["run_index", "setting", "repeat"]
    keys = [long[name] for name in (*names, "metric")]
    is_of_groups = long["attribute"] != ""
    has_groups = is_of_groups.groupby(keys, observed=True).transform("any")
    compared = long[is_of_groups | ~has_groups]
    wide = compared.pivot_table("value", names, "metric", observed=True)
    wide = wide.set_axis(wide.columns.astype(str), axis=1).reset_index()
    wide.insert(len(names), "test_share", _test_shares(long)[wide["run_index"].to_numpy()])
    return wide


def _test_shares(long: pd.DataFrame) -> Floats:
    """Return the share of rows trained on or tested that a split of each run tests; 0.5 if unknown.

    Rows of validation are neither; see :mod:`fairbench.inference.repeats`.
    """
    runs = int(long["run_index"].max()) + 1
    plain, metrics = long[long["setting"] == ""], (("error_rate", "rmse"), ("fit_seconds",))
    of_metrics = (plain[plain["metric"].isin(names)] for names in metrics)
    rows_per_split = [rows.groupby("run_index")["n"].mean() for rows in of_metrics]
    tested, trained = (rows.reindex(range(runs)).to_numpy(float) for rows in rows_per_split)
    return np.nan_to_num(tested / (tested + trained), nan=0.5)


# Metric values of approaches as arrays over tasks and splits, and their differences.

# The share of an atlas's tasks on which an approach must have been run to be ranked, or to decide a
# claim. Tasks are few, and differ: a mean over half of them is up to 1.4 times as uncertain as one
# over all, a mean over a tenth more than three times, and those few were not drawn by chance.
LEAST_SHARE = 0.5
EPSILON = 0.01  # for metrics that declare none


# Added to the name of every approach that needs the group of a person at prediction, as its
# components declare (`Capabilities.group_at_prediction`); also to the names that claims show.
NEEDS_GROUP = "needs the group at prediction"
THRESHOLDS_NEED = "thresholds for each group, which need the group at prediction,"


def name_with_group_need(name: str, *, needs_group: bool) -> str:
    """Return a name, followed by `NEEDS_GROUP` if so; the name of an approach or of a part."""
    return f"{name} ({NEEDS_GROUP})" if needs_group else name


def epsilon_of(metric: str) -> float:
    """Return the largest difference in a metric that does not matter in practice."""
    declared = find(metric)
    return declared.epsilon if declared is not None and not declared.relative else EPSILON


def fewest_tasks(total: int) -> int:
    """Return how many of `total` tasks an approach must have been run on to be ranked."""
    return ceil(LEAST_SHARE * total)


FEWEST_FAMILIES = 3


@dataclass(frozen=True, eq=False)
class MeasuredDifferences:
    """P differences that were measured on some of T data sets.

    Attributes
    ----------
    means : (P, T) mean differences over the splits of each data set; NaN where there is none.
    variances : (P, T) variances of the differences over splits, ddof 1.
    splits : (P, T) numbers of splits; a data set with fewer than two counts as not measured.
    test_share : (T,) the share of rows trained on or tested that a split tests.
    family : (T,) whole numbers from 0, the family of each data set.
    facts : (T, q) covariates that may explain differences, each with mean 0 and variance 1; None
        without covariates.
    """

    means: Floats
    variances: Floats
    splits: Floats
    test_share: Floats
    family: Codes
    facts: Floats | None = None

    @cached_property
    def known(self) -> Mask:
        """Where a difference was measured, (P, T)."""
        return np.isfinite(self.means) & np.isfinite(self.variances) & (self.splits > 1)

    @cached_property
    def inflation(self) -> Floats:
        """The variance of a mean over splits, over that of one split, (P, T)."""
        share = self.test_share / (1 - self.test_share)
        return 1 / np.maximum(self.splits, 1) + share

    @cached_property
    def families(self) -> Codes:
        """The numbers of families that each difference was measured on, (P,)."""
        return np.asarray(((self.known @ self.members) > 0).sum(axis=1))

    @cached_property
    def members(self) -> Floats:
        """The family of each data set, as an indicator matrix (T, F)."""
        return np.eye(int(self.family.max()) + 1)[self.family]


@dataclass(frozen=True, eq=False)
class ApproachValues:
    """A table of approaches, with the index of each row in arrays (approach, task, repeat).

    Attributes
    ----------
    approaches : a row for each of A approaches: its learner, intervention, method, options and
        setting.
    tasks : a row for each of T tasks.
    cell_index : (n, 3) indices of the approach, the task and the repeat of each row.
    total : the number of tasks of the whole atlas; `table` may cover fewer.
    """

    table: pd.DataFrame
    approaches: pd.DataFrame
    tasks: pd.DataFrame
    cell_index: NDArray[np.intp]
    total: int

    @classmethod
    def of(cls, table: pd.DataFrame) -> ApproachValues:
        """Return the values of a table of :func:`approaches.approach_table`."""
        table = table.reset_index(drop=True)
        approach = table.groupby([*APPROACH], sort=True, observed=True).ngroup().to_numpy()
        task = table.groupby([*TASK], sort=True, observed=True).ngroup().to_numpy()
        repeat = table.groupby(["seed", "repeat"], sort=True).ngroup().to_numpy()
        first_rows = (np.unique(code, return_index=True)[1] for code in (approach, task))
        approaches, tasks = (table.iloc[rows].reset_index(drop=True) for rows in first_rows)
        cell_index = np.stack([approach, task, repeat], axis=1)
        return cls(table, approaches, tasks, cell_index, len(tasks))

    def only(self, is_kept: pd.Series) -> ApproachValues:
        """Return the values of the rows of `table` where `is_kept` is true."""
        return replace(ApproachValues.of(self.table[is_kept.to_numpy()]), total=self.total)

    @property
    def fewest_tasks(self) -> int:
        """The number of tasks on which an approach must have been run to be ranked."""
        return fewest_tasks(self.total)

    def metric(self, name: str) -> Floats:
        """Return a metric, (A, T, R); NaN where it was not measured."""
        repeats = int(self.cell_index[:, 2].max(initial=-1)) + 1
        values = np.full((len(self.approaches), len(self.tasks), repeats), np.nan)
        if name in self.table:
            values[tuple(self.cell_index.T)] = self.table[name].to_numpy(float)
        return values

    @cached_property
    def family(self) -> Codes:
        """The family of each task, (T,)."""
        return np.asarray(pd.factorize(self.tasks["family"])[0], np.intp)

    @cached_property
    def test_share(self) -> Floats:
        """The share of rows that a split of each task tests, (T,)."""
        return np.asarray(self.tasks["test_share"], float)

    @cached_property
    def about_tasks(self) -> list[dict[str, Any]]:
        """The rows of `tasks` as dictionaries; reading single cells of a frame is slow."""
        return list(self.tasks.to_dict("records"))

    @cached_property
    def about_approaches(self) -> list[dict[str, Any]]:
        """The rows of `approaches` as dictionaries."""
        return list(self.approaches.to_dict("records"))

    @cached_property
    def names(self) -> list[str]:
        """The name of each approach: its parts, with their options."""
        return [approach_name(row) for row in self.about_approaches]

    def estimate_differences(
        self, differences: Floats, facts: Floats | None = None
    ) -> MeasuredDifferences:
        """Return the mean and the variance over splits of P differences, given as (P, T, R)."""
        splits = np.isfinite(differences).sum(axis=2).astype(float)
        filled = np.where(np.isfinite(differences), differences, 0)
        with np.errstate(invalid="ignore", divide="ignore"):
            means = filled.sum(axis=2) / splits
            deviations = np.where(np.isfinite(differences), differences - means[:, :, None], 0)
            variances = (deviations**2).sum(axis=2) / (splits - 1)
        return MeasuredDifferences(means, variances, splits, self.test_share, self.family, facts)


def approach_name(approach: Mapping[str, Any]) -> str:
    """Return the name of an approach: its parts with the values of their options."""
    named = [part for part in PARTS if (part, approach[part]) != ("intervention", NONE)]
    parts = [f"{approach[of]} {option_values(of, approach['options'])}".strip() for of in named]
    name = ", ".join([*parts, *filter(None, [approach["setting"]])])
    return name_with_group_need(name, needs_group=bool(approach.get("group_at_prediction", False)))


def options_without(part: str, options: str) -> str:
    """Return the options without those of one part, such as ``intervention``."""
    return " ".join(word for word in options.split() if not word.startswith(f"{part}."))


def option_values(part: str, options: str) -> str:
    """Return the values of the options of one part."""
    own = [word for word in options.split() if word.startswith(f"{part}.")]
    return " ".join(word.partition("=")[2] for word in own)


@dataclass(frozen=True)
class Contrast:
    """Pairs of approaches that differ in one part alone, such as the intervention.

    Attributes
    ----------
    label : the choice of that part, with its options, which the first of each pair has.
    pairs : the positions of both approaches of each pair.
    needs_group : whether this choice needs the group at prediction.
    """

    label: str
    pairs: tuple[tuple[int, int], ...]
    needs_group: bool = False

    @property
    def name(self) -> str:
        """The label, marked if the choice needs the group at prediction."""
        return name_with_group_need(self.label, needs_group=self.needs_group)

    def mean_difference(self, values: Floats) -> Floats:
        """Return first minus second of each pair, averaged over pairs, (T, R)."""
        first, second = np.array(self.pairs).T
        return finite_mean(values[first] - values[second])


def finite_mean(values: Floats) -> Floats:
    """Return the mean of the finite values over the first axis, (k, T, R) -> (T, R)."""
    is_known = np.isfinite(values)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(is_known, values, 0).sum(axis=0) / is_known.sum(axis=0))


def contrasts(values: ApproachValues, part: str, base: str) -> list[Contrast]:
    """Return a contrast with the choice `base` for every other choice of a part and its options.

    The two approaches of a pair agree in everything else. A contrast has the pairs of all learners.
    """
    others = [name for name in APPROACH if name not in (part, "options")]
    records = values.about_approaches
    keys = [(*map(row.get, others), options_without(part, row["options"])) for row in records]
    bases = {key: place for place, key in enumerate(keys) if records[place][part] == base}
    pairs_of_label: dict[str, list[tuple[int, int]]] = {}
    for position, (key, row) in enumerate(zip(keys, records, strict=True)):
        if row[part] != base and key in bases:
            label = " ".join([row[part], option_values(part, row["options"])]).strip()
            pairs_of_label.setdefault(label, []).append((position, bases[key]))
    # A contrast needs the group only if the changed part does: the base does not need it.
    needs = [bool(row.get("group_at_prediction", False)) for row in records]
    return [
        Contrast(label, tuple(pairs), any(needs[new] and not needs[old] for new, old in pairs))
        for label, pairs in sorted(pairs_of_label.items())
    ]


def mean_differences(values: Floats, compared: Sequence[Contrast]) -> Floats:
    """Return the mean difference of every contrast in a metric (A, T, R), as (P, T, R)."""
    if not compared:
        return np.full((0, *values.shape[1:]), np.nan)
    return np.stack([contrast.mean_difference(values) for contrast in compared])


# The plain mean of a difference over families of data, with an interval and without a model.
#
# Tasks are averaged within a family and families equally, however large their data are and
# however precisely a difference was measured on them: that is the estimand of "the mean over
# families", and families are what its uncertainty comes from. The multilevel model (`multilevel`)
# weighs data sets by precision; where effects shrink with the size of the data its mean is
# another one.


def family_means(measured: MeasuredDifferences) -> Floats:
    """Return the mean of each difference over the tasks of each family, (P, F).

    NaN of a family on whose tasks a difference was not measured.
    """
    total = np.where(measured.known, measured.means, 0) @ measured.members
    return divide(total, measured.known.astype(float) @ measured.members)


def mean_over_families(means: Floats, *, level: float = 0.95) -> Limits:
    """Return the mean over families of each difference, with its interval, (P,) each.

    Parameters
    ----------
    means : (P, F) of each family; NaN where there is none. A difference on fewer than
        `FEWEST_FAMILIES` families gets NaN.
    level : the level of each interval by itself.

    Notes
    -----
    The ends are the wider of Student's and of Hall's with one more family that lies farther out
    than any (:func:`fairbench.inference.means.loss_limits`). Families are few and their means
    skewed, so that the usual bootstraps of families give intervals that are too short. Where 20
    families are drawn from those of the atlas, percentiles and BCa cover 87 to 89 % for 95 %,
    Student's t 89 to 91 %, a bootstrapped t 91 %, and this 94 to 95 %. No construction holds where
    one family in twenty makes the mean, as a sample of twenty then often lacks such a one.
    """
    limits = np.full((3, len(means)), np.nan)
    for difference, family_values in enumerate(means):
        finite = family_values[np.isfinite(family_values)]
        if len(finite) >= FEWEST_FAMILIES:
            limits[:, difference] = loss_limits(Moments.of(finite), level=level, rows=0)
    return Limits(*limits)
