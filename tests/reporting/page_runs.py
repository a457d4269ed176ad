"""Small result folders for the tests of the page: real runs, and copies made from them."""

from pathlib import Path

import pyarrow as pa

from benchmarks.stored import configured, copied
from fairbench.core.files import parquet_bytes
from fairbench.experiments.execute import carry_out
from fairbench.results.record import FILES
from fairbench.results.runs import Run, read_environment, seal_run, stored, write_stored
from tests.harness import configuration


def finish(results: Path, *overrides: str) -> Path:
    """Finish a small run and return its folder."""
    cfg = configuration("dataset.n_samples=300", *overrides, results=results)
    return carry_out(cfg).prepared.folder.path


def copy(folder: Path, *, config: dict[str, object], rows=None, **entries: object) -> Path:
    """Copy a run as one of another configuration, with some of its rows and record changed."""
    target = copied(folder, configured(read_environment(folder), config) | entries)
    if rows is not None:
        changed = pa.Table.from_pandas(rows(Run(target).all_metrics()), preserve_index=False)
        kept = {name: stored(target, name) for name in FILES}
        write_stored(target, kept | {"metrics.parquet": parquet_bytes(changed)})
        seal_run(target, read_environment(target))
    return target
