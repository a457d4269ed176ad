"""Small folders of results, packed."""

import numpy as np
import pandas as pd
import pytest

from benchmarks.stored import configured, run_of
from fairbench.cli.main import run_command
from fairbench.core.errors import UserError
from fairbench.results.catalogue import Catalogue
from fairbench.results.cells import Store
from fairbench.results.packing import Contents, write_pack
from fairbench.results.run_writer import RunTables, RunWriter
from tests.results.test_run_folder import METRICS, PREDICTIONS
from tests.studies import RECORD

_SEVERAL = (configured(RECORD, {"learner.rate": 1e-5, "seed": seed}) for seed in range(5))
RECORDS = sorted(_SEVERAL, key=run_of)
ALL_RUNS = [run_of(record) for record in RECORDS]
RUNS = ALL_RUNS[:3]  # those of a `small_folder`


def drawn_metrics(seed):
    draw = np.random.default_rng(seed)
    names = ["error_rate", "log_loss", "fit_seconds", "abstention_error_rate"] * 3
    table = pd.concat([METRICS] * len(names), ignore_index=True)
    return table.assign(
        metric=names, value=draw.random(len(names)),
        status=pd.Categorical(["ok"] * len(names), ["ok", "undefined"]),
        bins=pd.array([15, None] * 6, "Int64"), feature="",
    )  # fmt: skip


def write(folder, run, cells, data, seed=0, *, known=None, **columns):
    """Write a run of `ALL_RUNS`, with entries `known` of its record."""
    record = RECORDS[ALL_RUNS.index(run)] | (known or {})
    store, metrics = Store(folder), drawn_metrics(seed).assign(**columns)
    for cell in cells:
        columns = {"row": np.arange(5, dtype=np.int32), "score": np.float32([len(cell)] * 5) / 3}
        extra = {"sd": np.ones(5)} if cell.startswith("b") else {}
        store.write(cell, columns | extra, {"fit_seconds": 0.1 * seed, "text": "é"})
    tables = RunTables(metrics, metrics, PREDICTIONS)
    RunWriter(folder / "runs" / run).write(record["config"], cells, tables, data, record)


def small_folder(place, data):
    """Write three runs; two kinds of cells, one of them shared."""
    for seed, run in enumerate(RUNS):
        write(place, run, [f"a{seed}", f"b{seed}", "shared"], data, seed)
    return place


def packed(folder, name="pack", **options):
    out = folder.with_name(name)
    return write_pack([list(Catalogue(folder))], out, Contents(people=True, **options)).path


def contents(pack):
    return {path.name: path.read_bytes() for path in pack.iterdir()}


def refused(*words):
    with pytest.raises(UserError) as error:
        run_command(["store", *map(str, words)])
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 400
    return str(error.value)
