"""The long tables of metrics of finished runs, read together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fairbench.results.record import reading

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from fairbench.results.runs import Run


def read_metrics(runs: Sequence[Run]) -> pd.DataFrame:
    """Return the metrics of runs, of their own variants, with the column ``run``."""
    import pandas as pd
    import pyarrow as pa

    from fairbench.evaluation import columns

    if not runs:
        names = ["run", *columns.KEYS, *columns.COLUMNS]
        kinds = {
            name: "category" if name in ("run", *columns.TEXTS) else "float64" for name in names
        }
        return pd.DataFrame({name: pd.Series(dtype=kind) for name, kind in kinds.items()})
    tables = [_table(run) for run in runs]
    metrics = pa.concat_tables(tables, promote_options="permissive")
    return metrics.unify_dictionaries().to_pandas()


def _table(run: Run) -> pa.Table:
    """Return a run's rows of its own variant, texts as dictionaries from the start."""
    import numpy as np
    import pyarrow as pa
    from pyarrow import compute

    from fairbench.evaluation import columns
    from fairbench.results.pack_tables import with_dictionaries
    from fairbench.results.shapes import check_metrics
    from fairbench.results.upgrading import upgraded

    with reading(run.path / "metrics.parquet"):
        if run.pack:
            table = with_dictionaries(run.pack.table("metrics", run.id))
        else:
            table = run.read_parquet("metrics", columns.TEXTS)
        table = upgraded(table.filter(compute.equal(table["variant"].cast(pa.string()), "")))
        check_metrics(table)
    ids = pa.DictionaryArray.from_arrays(np.zeros(len(table), np.int32), [run.id])
    return table.append_column("run", ids)
