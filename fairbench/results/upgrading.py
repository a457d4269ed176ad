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
    place, metric = names.index("metric"), table["metric"].combine_chunks()
    coded = metric if pa.types.is_dictionary(metric.type) else metric.dictionary_encode()
    earlier_names = _earlier_names()
    parts = [earlier_names.get(name, (name, VALUE)) for name in coded.dictionary.to_pylist()]
    codes = coded.indices.to_numpy(zero_copy_only=False)
    kinds = list(dict.fromkeys(name for name, _ in parts))
    places = np.array([kinds.index(name) for name, _ in parts], np.int32)
    values = pa.array(kinds, coded.dictionary.type)
    renamed = pa.DictionaryArray.from_arrays(places[codes], values).cast(metric.type)
    which = np.array([STATISTICS.index(name) for _, name in parts], np.int8)
    statistic = pa.DictionaryArray.from_arrays(which[codes], pa.array(STATISTICS, pa.string()))
    if "status" in names and not pa.types.is_dictionary(table["status"].type):
        statistic = statistic.cast(pa.string())
    table = table.set_column(place, table.schema.field(place), renamed)
    return table.add_column(place + 1, "statistic", statistic)


@lru_cache(maxsize=1)
def _earlier_names() -> Mapping[str, tuple[str, str]]:
    """Return every name that said which statistic it was of: -> metric and statistic."""
    names = {f"{metric}{end}": (metric, which) for metric, end, which in _earlier()}
    undeclared = {name: parts for name, parts in names.items() if find(name) is None}
    # Groups were always compared by their debiased errors; their names said nothing of it.
    compared = [f"{error}_{by}" for error in _CALIBRATION for by in ("difference", "gap")]
    return MappingProxyType(undeclared | {name: (name, DEBIASED) for name in compared})


def _earlier() -> Iterator[tuple[str, str, str]]:
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
