"""A results folder of a stranger's: nothing in it runs, and what is wrong with it is named.

The stranger knows this project, and seals what is false as if it had been written here.
"""

import pickle
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.stored import laid_out
from fairbench.core.files import read_table, sealed_json, write_table
from fairbench.results.runs import Run, Store, seal_run
from tests.harness import fairbench, ran, run_folder

RUN = ("split.repeats=2", "dataset.n_samples=300", "tracking=none", "figures=false")
CANARY = "canary"


class Runs:
    """What a pickle of a stranger's does when it is read."""

    def __reduce__(self):
        return open, (CANARY, "w")


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    cwd = tmp_path_factory.mktemp("original")
    ran(*RUN, cwd=cwd)
    return cwd


@pytest.fixture
def run(original, tmp_path):
    """Return a run of a folder that was copied."""
    shutil.copytree(original / "results", tmp_path / "results")
    return Run(laid_out(run_folder(tmp_path / "results")))


def replaced(name, content):
    """Return an attack by the content of a file of a run."""

    def attack(run):
        known = run.environment
        (run.path / name).write_bytes(content() if callable(content) else content)
        seal_run(run.path, known)

    return attack


def raw_record(text):
    """Return an attack by what stands in place of a record."""

    def attack(run):
        (run.path / "environment.json").write_text(text)

    return attack


def bomb():
    zeros = pa.DictionaryArray.from_arrays(np.zeros(30_000_000, np.int32), ["x"])
    return parquet(pa.table({f"c{i}": zeros for i in range(20)}))


def parquet(table):
    buffer = pa.BufferOutputStream()
    pq.write_table(table, buffer)
    return buffer.getvalue().to_pybytes()


def pickled_type():
    """Return Parquet whose schema has a type of Python's, which old readers unpickled."""
    meta = {
        b"ARROW:extension:name": b"arrow.py_extension_type",
        b"ARROW:extension:metadata": pickle.dumps(Runs()),
    }
    schema = pa.schema([pa.field("variant", pa.string(), metadata=meta)])
    return parquet(pa.table({"variant": [""]}, schema=schema))


def swapped_cells(run):
    store = Store(run.results)
    first, second = (store.cell_path(cell) for cell in run.cells()[:2])
    content = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(content)


def pickled_notes(run):
    path = Store(run.results).cell_path(run.cells()[0])
    table = read_table(path)
    meta = {**table.schema.metadata, b"fairbench": pickle.dumps(Runs())}
    write_table(path, table.replace_schema_metadata(meta))


def labelled(run):
    """Call a group what a browser, a terminal and a spreadsheet would obey."""
    table = pq.read_table(run.path / "metrics.parquet").to_pandas()
    table["group"] = table["group"].astype(str).replace("minority", LABEL)
    known = run.environment
    table.to_parquet(run.path / "metrics.parquet", index=False)
    seal_run(run.path, known)


LABEL = "<script>alert(1)</script>\x1b[31m"
LISTED = ("store ls",)
VERIFIED = ("store verify {run}",)
ATTACKS = {
    "YAML that makes objects": (
        replaced("config.yaml", b"!!python/object/apply:os.system ['touch canary']"),
        ("store show {run}",), "!!python/object",
    ),
    "metrics that are a pickle": (
        replaced("metrics.parquet", lambda: pickle.dumps(Runs())),
        ("table {run}", "report"), "metrics.parquet is missing or damaged",
    ),
    "predictions that are a pickle": (
        replaced("predictions.parquet", lambda: pickle.dumps(Runs())),
        ("audit {run}", "store export {run} out.csv"), "predictions.parquet is missing or damaged",
    ),
    "a type that was unpickled": (
        replaced("metrics.parquet", pickled_type), ("report",), "metrics.parquet"
    ),
    "metrics that unfold": (
        replaced("metrics.parquet", bomb), ("table {run}", "report"), "metrics.parquet"
    ),
    "a summary that is none": (
        replaced("summary.csv", b"a,b\n=cmd|' /C calc'!A0,1\n"), ("table {run}",), "summary.csv"
    ),
    "a record that is too large": (
        raw_record(sealed_json({"name": "x" * (1 << 25)})), LISTED, "left out"
    ),
    "a record that is too deep": (
        raw_record(sealed_json({}).replace("{", '{"a": ' + "[" * 10**5, 1)), LISTED, "left out"
    ),
    "cells that are other cells": (swapped_cells, VERIFIED, "another cell's"),
    "notes of a cell that are a pickle": (pickled_notes, VERIFIED, "corrupt"),
}  # fmt: skip


@pytest.mark.thorough
@pytest.mark.parametrize("name", ATTACKS)
def test_nothing_runs_and_the_attack_is_named(name, run, tmp_path):
    attack, verbs, said = ATTACKS[name]
    attack(run)
    for words in verbs:
        done = run_verb(words.format(run=run.id), tmp_path)
        assert said in done.stdout + done.stderr
        assert "\x1b" not in done.stdout + done.stderr
        assert not (tmp_path / CANARY).exists()


def run_verb(words, cwd):
    """Run a verb whatever its exit status is, as long as it has one of ours."""
    for status in (2, 0, 1):
        try:
            return fairbench(*words.split(), cwd=cwd, status=status, PATH="")
        except AssertionError as error:
            if status == 1 or "Traceback" in str(error):
                raise
    raise AssertionError(words)


@pytest.mark.thorough
def test_a_label_is_shown_and_not_obeyed(run, tmp_path):
    labelled(run)
    said = fairbench("table", run.id, cwd=tmp_path, PATH="").stdout
    fairbench("report", cwd=tmp_path, PATH="")
    page = (tmp_path / "results" / "report" / "index.html").read_text()
    assert "\x1b" not in said + page
    assert LABEL[:25] not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;\\x1b[31m" in page
