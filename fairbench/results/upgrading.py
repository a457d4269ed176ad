"""Convert tables of the last version to those of this one, whenever they are read from disk.

Metrics were once called after the statistic too, such as ``equalized_odds_below``; the column
``statistic`` says so now. Nowhere else is a name taken apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from fairbench.evaluation.columns import (
    BELOW_EPSILON,
    DEBIASED,
    OUTSIDE_BAND,
    PAIRS_THAT_DIFFER,
    POOLED,
    STATISTICS,
    VALUE,
    WORST,
)
from fairbench.metrics.registry import BINARY, find, metrics_of

if TYPE_CHECKING:
    import pyarrow as pa

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
    import pyarrow as pa

    names = table.column_names
    if "statistic" in names or "metric" not in names:
        return table
    column = table["metric"].combine_chunks()
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    known_names = _earlier_names()
    metric_and_statistic = [
        known_names.get(name, (name, VALUE)) for name in encoded.dictionary.to_pylist()
    ]
    metrics = list(dict.fromkeys(metric for metric, _ in metric_and_statistic))
    metric_codes = np.array([metrics.index(metric) for metric, _ in metric_and_statistic], np.int32)
    metric_names = pa.array(metrics, encoded.dictionary.type)
    metric_column = pa.DictionaryArray.from_arrays(metric_codes[codes], metric_names)
    statistic_codes = np.array(
        [STATISTICS.index(statistic) for _, statistic in metric_and_statistic], np.int8
    )
    statistic_names = pa.array(STATISTICS, pa.string())
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
    undeclared = {name: parts for name, parts in names.items() if find(name) is None}
    # Groups were always compared by their debiased errors; their names said nothing of it.
    compared = [f"{error}_{by}" for error in _CALIBRATION for by in ("difference", "gap")]
    return MappingProxyType(undeclared | {name: (name, DEBIASED) for name in compared})


def _earlier_endings() -> Iterator[tuple[str, str, str]]:
    """Yield each metric whose names had an ending, the ending, and the statistic it stood for."""
    for metric in metrics_of(BINARY, "widest").values():
        if metric.is_gap:
            yield metric.name, "_below", BELOW_EPSILON
            yield metric.name, "_debiased", DEBIASED
            yield metric.name, "_pairs", PAIRS_THAT_DIFFER
    for rate in _RATES:
        yield rate, "_pooled", POOLED
        yield rate, "_worst", WORST
    for error in _CALIBRATION:
        yield error, "_debiased", DEBIASED
    ratios = [metric.name for metric in metrics_of(BINARY, "ratio").values()]
    for ratio in (*ratios, *(f"{measure}_uncertainty_ratio" for measure in _MEASURES)):
        yield ratio, "_outside_band", OUTSIDE_BAND
