"""The metrics of many runs in one table, texts as categories: a thousand take tens of megabytes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from fairbench.evaluation.columns import TEXTS
from fairbench.results.runs import reading

if TYPE_CHECKING:
    import pyarrow as pa

_TEXTS = ["run", *TEXTS]


def read_metrics(files: Mapping[str, Path]) -> pd.DataFrame:
    """Return the metrics of runs, id -> file, of their own variants, with the column ``run``."""
    import pyarrow as pa

    if not files:
        return pd.DataFrame({name: pd.Series(dtype="category") for name in _TEXTS})
    tables = [_table(id_, path) for id_, path in files.items()]
    metrics = pa.concat_tables(tables, promote_options="permissive")
    return metrics.unify_dictionaries().to_pandas()


def _table(id_: str, path: Path) -> pa.Table:
    """Return a run's rows of its own variant, texts as dictionaries from the start."""
    import pyarrow as pa
    from pyarrow import compute, parquet

    with reading(path):
        table = parquet.read_table(path, read_dictionary=_TEXTS)
    table = table.filter(compute.equal(table["variant"].cast(pa.string()), ""))
    run = pa.DictionaryArray.from_arrays(np.zeros(len(table), np.int32), [id_])
    return table.append_column("run", run)
