"""The tables of a run: which columns there are, and how those of the last version are read.

A checksum shows that a table is what somebody stored, and not that it was this project. What is
asked here is what every reader of these tables relies on: each column once, of texts or of numbers.
Metrics were once called after the statistic too, such as ``equalized_odds_below``; the column
``statistic`` says so now, and :func:`upgraded` takes these names apart, as nothing else does. Last,
a run's headline metrics as a notebook shows them.
"""

from __future__ import annotations

import io
import json
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import compute

from fairbench.core.files import DamagedError
from fairbench.core.text import count, html, interval, number, read_csv
from fairbench.evaluation import table as long
from fairbench.evaluation.summary import debiased_gaps
from fairbench.metrics import registry

_ROWS = ("variant", "metric", "statistic", "attribute", "group", "n", "status", "reason")
METRICS = (*_ROWS, "repeat", "fold", "value")
SUMMARY = (*_ROWS, "mean", "sd", "lower", "upper", "binning", "feature")
# Columns of a run's summary in which an empty text is a text, and not a missing one.
SUMMARY_TEXTS = ("variant", "attribute", "group", "estimand", "reason", "feature", "outcome")
_TEXTS = {*long.TEXTS, "estimand"}
_PLACES = ("repeat", "fold")  # which every row has
_LARGEST = 2**53  # beyond which not every whole number is one of floating point
_COUNTS = tuple(name for name, dtype in long.SETTINGS.items() if dtype == "Int64")
# Texts that every row has one of; of the last two, one that there is.
_ALWAYS = ("variant", "metric", "attribute", "group", "statistic", "status")
_VALID = {"statistic": long.STATISTICS, "status": long.STATUSES}


def check_columns(there: Container[str], wanted: Sequence[str]) -> None:
    """Check that columns are there.

    Raises
    ------
    DamagedError : one is not.
    """
    if missing := [name for name in wanted if name not in there]:
        raise DamagedError(f"no column {missing[0]}")


def check_metrics(table: pa.Table, wanted: Sequence[str] = METRICS) -> None:
    """Check a long table of metrics, or some of its columns.

    Raises
    ------
    DamagedError : a column is missing, there twice, or of another type; or a row has no metric.
    """
    check_columns(table.column_names, wanted)
    check_numbers(table, but=_TEXTS)
    for name in _TEXTS & {*table.column_names}:
        kinds = ["string", "large_string", *["null"] * (name not in _ALWAYS)]
        if _kind(table[name]) not in kinds:
            raise DamagedError(f"column {name} is of {table[name].type}, not of texts")
        if name in _ALWAYS:
            _check_values(name, table[name].unique().to_pylist())
    for name in {*_PLACES, *_COUNTS} & {*table.column_names}:
        whole = str(table[name].type) in (*_INTEGERS, *["null"] * (name in _COUNTS))
        if not whole or (name in _PLACES and table[name].null_count):
            raise DamagedError(f"column {name} is not of whole numbers")


_INTEGERS = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
_NUMBERS = (*_INTEGERS, "halffloat", "float", "double", "null")


def check_numbers(table: pa.Table, but: Collection[str] = ()) -> None:
    """Check that the columns are different ones, all of numbers, as pandas reads them.

    Raises
    ------
    DamagedError : they are not.
    """
    check_plain(table)
    for name in table.column_names:
        if name in but:
            continue
        if _kind(table[name]) not in _NUMBERS:
            raise DamagedError(f"column {name} is of {table[name].type}, not of numbers")
        if str(table[name].type) in _INTEGERS:
            ends = compute.min_max(table[name]).as_py()
            if max(abs(ends["min"] or 0), abs(ends["max"] or 0)) > _LARGEST:
                raise DamagedError(f"column {name} has a number beyond {_LARGEST:,}")


def check_plain(table: pa.Table) -> None:
    """Check that the columns are different ones, of single values, and the same to pandas.

    Raises
    ------
    DamagedError : one is there twice, has lists, or is changed by what pandas noted of the table.
    """
    _check_plain(table.schema.serialize().to_pybytes())


@lru_cache(maxsize=256)
def _check_plain(written: bytes) -> None:
    """Check a schema as it is written: thousands of runs share one, and pandas reads it slowly."""
    schema = pa.ipc.read_schema(pa.py_buffer(written))
    names = schema.names
    if len({*names}) < len(names):
        raise DamagedError("a column is there twice")
    if nested := [field.name for field in schema if pa.types.is_nested(field.type)]:
        raise DamagedError(f"column {nested[0]} has several values in a row")
    notes = (schema.metadata or {}).get(b"pandas")
    if notes is None:
        return
    index = json.loads(notes)["index_columns"]
    plain = [entry for entry in index if isinstance(entry, dict) and not entry["start"]]
    if len(index) > 1 or len(plain) < len(index):
        raise DamagedError("pandas' notes of it have an index")
    if list(schema.empty_table().to_pandas().columns) != names:
        raise DamagedError("pandas' notes of it are of another table")


def _kind(column: pa.ChunkedArray) -> str:
    """Return the type of a column's values, whether they are stored as a dictionary or not."""
    kind = column.type
    return str(kind.value_type if pa.types.is_dictionary(kind) else kind)


def _check_values(name: str, values: Iterable[Any]) -> None:
    valid = _VALID.get(name)
    for value in values:
        if not isinstance(value, str) or not (valid is None or value in valid):
            raise DamagedError(f"column {name} has {str(value)[:40]!r}")


def check_summary(found: pd.DataFrame) -> None:
    """Check the means of a run's metrics.

    Raises
    ------
    DamagedError : a column is missing or of another type, or a row has no metric.
    """
    check_columns(found, SUMMARY)
    for name, column in found.items():
        if name not in _TEXTS and found[name].dtype.kind not in "biuf":
            raise DamagedError(f"column {name} is not of numbers")
        if name in _ALWAYS:
            _check_values(str(name), column.unique())
        elif name in long.SETTINGS and name in _TEXTS:
            _check_values(str(name), column.dropna().unique())


def checked_metrics(table: pa.Table, *, own: bool = False) -> pa.Table:
    """Return a long table of metrics after checking it, or the rows of a run's `own` variant.

    Raises
    ------
    DamagedError : it is none.
    """
    if own:
        table = table.filter(compute.equal(table["variant"].cast(pa.string()), ""))
    table = upgraded(table)
    check_metrics(table)
    return table


def joined(tables: Mapping[str, pa.Table]) -> pd.DataFrame:
    """Return the metrics of runs, by their ids, in one table with the column ``run``."""
    if not tables:
        names = ["run", *long.KEYS, *long.COLUMNS]
        kinds = {name: "category" if name in ("run", *long.TEXTS) else "float64" for name in names}
        return pd.DataFrame({name: pd.Series(dtype=kind) for name, kind in kinds.items()})
    marked = [
        table.append_column(
            "run", pa.DictionaryArray.from_arrays(np.zeros(len(table), np.int32), [run])
        )
        for run, table in tables.items()
    ]
    return pa.concat_tables(marked, promote_options="permissive").unify_dictionaries().to_pandas()


def summary_in(content: bytes) -> pd.DataFrame:
    """Return the means of a run's metrics over its splits, of the file that has them.

    Raises
    ------
    DamagedError : it has another content.
    """
    summary = read_csv(io.BytesIO(content), SUMMARY_TEXTS)
    if "statistic" not in summary:
        summary = upgraded(pa.Table.from_pandas(summary, preserve_index=False)).to_pandas()
    check_summary(summary)
    texts = [name for name in ("feature", "outcome") if name in summary]
    return summary.assign(**{name: summary[name].where(summary[name] != "") for name in texts})


_RATES = ("selection_rate", "error_rate", "true_positive_rate", "false_positive_rate")
_CALIBRATION = (
    *("expected_calibration_error", "multicalibration_error", "classwise_calibration_error"),
)
_MEASURES = (
    *("aleatoric", "epistemic", "predictive"),
    *("entropy_aleatoric", "entropy_epistemic", "entropy_predictive"),
)


def upgraded(table: pa.Table) -> pa.Table:
    """Return a table of metrics, or a summary, with the column ``statistic``.

    One that has it is returned as it is, as is one that is no table of metrics.
    """
    names = table.column_names
    if "statistic" in names or "metric" not in names:
        return table
    column = table["metric"].combine_chunks()
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    known_names = _earlier_names()
    metric_and_statistic = [
        known_names.get(name, (name, long.VALUE)) for name in encoded.dictionary.to_pylist()
    ]
    metrics = list(dict.fromkeys(metric for metric, _ in metric_and_statistic))
    metric_codes = np.array([metrics.index(metric) for metric, _ in metric_and_statistic], np.int32)
    metric_names = pa.array(metrics, encoded.dictionary.type)
    metric_column = pa.DictionaryArray.from_arrays(metric_codes[codes], metric_names)
    statistic_codes = np.array(
        [long.STATISTICS.index(statistic) for _, statistic in metric_and_statistic], np.int8
    )
    statistic_names = pa.array(long.STATISTICS, pa.string())
    statistic_column = pa.DictionaryArray.from_arrays(statistic_codes[codes], statistic_names)
    if "status" in names and not pa.types.is_dictionary(table["status"].type):
        statistic_column = statistic_column.cast(pa.string())
    index = names.index("metric")
    table = table.set_column(index, table.schema.field(index), metric_column.cast(column.type))
    return table.add_column(index + 1, "statistic", statistic_column)


@lru_cache(maxsize=1)
def _earlier_names() -> Mapping[str, tuple[str, str]]:
    """Return the metric and the statistic that each name of the last version stood for."""
    names = {f"{metric}{end}": (metric, statistic) for metric, end, statistic in _earlier_endings()}
    undeclared = {name: parts for name, parts in names.items() if registry.find(name) is None}
    # Groups were always compared by their debiased errors; their names said nothing of it.
    compared = [f"{error}_{by}" for error in _CALIBRATION for by in ("difference", "gap")]
    return MappingProxyType(undeclared | {name: (name, long.DEBIASED) for name in compared})


def _earlier_endings() -> Iterator[tuple[str, str, str]]:
    """Yield each metric whose names had an ending, the ending, and the statistic it stood for."""
    for metric in registry.metrics_of(registry.BINARY, "widest").values():
        if metric.is_gap:
            yield metric.name, "_below", long.BELOW_EPSILON
            yield metric.name, "_debiased", long.DEBIASED
            yield metric.name, "_pairs", long.PAIRS_THAT_DIFFER
    for rate in _RATES:
        yield rate, "_pooled", long.POOLED
        yield rate, "_worst", long.WORST
    for error in _CALIBRATION:
        yield error, "_debiased", long.DEBIASED
    ratios = [metric.name for metric in registry.metrics_of(registry.BINARY, "ratio").values()]
    for ratio in (*ratios, *(f"{measure}_uncertainty_ratio" for measure in _MEASURES)):
        yield ratio, "_outside_band", long.OUTSIDE_BAND


def run_html(title: str, summary: pd.DataFrame, protect: str) -> str:
    """Return the headline metrics of a run as a table of HTML; `protect` is what it protects."""
    headline = _headline(long.values_of(summary), protect)
    debiased = debiased_gaps(headline, summary)
    rows = [
        {
            "metric": registry.label(row.metric),
            "of": f"{row.attribute}: {row.group}" if row.group else row.attribute,
            "mean": number(row.mean, 4),
            **({long.DEBIASED: number(gap, 4)} if np.isfinite(debiased).any() else {}),
            "95 % interval": interval(row.lower, row.upper, 4),
            "rows": count(row.n),
        }
        for row, gap in zip(headline.itertuples(), debiased, strict=True)
    ]
    return titled_html(title, pd.DataFrame(rows))


def _headline(summary: pd.DataFrame, protect: str) -> pd.DataFrame:
    """Return the most important rows: of everyone, the gaps of `protect`, and its groups."""
    is_plain = (summary["variant"] == "") & summary["outcome"].isna()
    summary = summary[is_plain & (summary["binning"] != "mass")]
    is_of_everyone = summary["attribute"] == ""
    is_of_protect = summary["attribute"] == protect
    is_of_all_groups = summary["group"] == ""
    sections = {
        "everyone": is_of_everyone,
        "gaps": is_of_protect & is_of_all_groups,
        "groups": is_of_protect & ~is_of_all_groups,
    }
    tables = []
    for section, is_in_section in sections.items():
        metrics = [metric.name for metric in registry.declared() if section in metric.shown]
        tables.append(summary[is_in_section & summary["metric"].isin(metrics)])
    return pd.concat(tables)


def titled_html(title: str, table: pd.DataFrame) -> str:
    """Return a table under its title; pandas escapes what stands in it."""
    content = table.to_html(index=False, border=0) if len(table) else ""
    return f"<div><p><strong>{html(title)}</strong></p>{content}</div>"
