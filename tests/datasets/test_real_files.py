"""The real files, where they are found: rows, columns, base rates and groups as published."""

import functools
import sys
from pathlib import Path

import pytest
import yaml

from fairbench.components import CHECKOUT
from fairbench.data.download import Archive, MissingFileError
from fairbench.data.features import onehot_names
from fairbench.data.tables import read_table
from tests.datasets.raw_files import ENTRIES, everything_said
from tests.harness import python

pytestmark = pytest.mark.data
EXPECTED = yaml.safe_load(Path(__file__).with_name("real_files.yaml").read_text(encoding="utf-8"))


ARCHIVE = Archive(download=False)


@functools.cache
def load(task, **options):
    """Return a task's data set as configured, but for options; skip where a file is not found."""
    entry = ENTRIES[task]
    try:
        return entry.function(ARCHIVE, **entry.options | options)
    except MissingFileError as error:
        pytest.skip(f"raw file not found: {error}")


@pytest.mark.thorough
@pytest.mark.parametrize("task", EXPECTED)
def test_figures(task):
    rows, columns, rate, groups = EXPECTED[task]
    data = load(task)
    assert len(data) == rows
    assert len(onehot_names(data.features)) == columns
    assert data.target.mean() == pytest.approx(rate, abs=5e-5)
    for attribute, sizes in groups.items():
        result = data.sensitive[attribute].value_counts().to_dict()
        assert {label: result[label] for label in sizes} == sizes


def test_adult_has_the_archives_own_split():
    assert load("adult").partition.value_counts().to_dict() == {"train": 30162, "test": 15060}


@pytest.mark.parametrize("realisation", range(1, 11))
def test_every_realisation_of_ihdp_scatters_around_its_truth(realisation):
    data = load("ihdp", realisation=realisation, target_scale="none")
    residual = data.target - data.truth["mean"]
    assert residual.mean() == pytest.approx(0, abs=0.15)
    assert residual.std() == pytest.approx(1, abs=0.1)


def test_twins_under_2000g_are_pairs():
    data = load("twins_under2000g")
    assert (data.clusters.value_counts() == 2).all()
    assert (data.target.groupby(data.clusters).nunique() == 1).all()


PERSONAL = ("name", "first", "last", "dob", "c_case_number", "r_case_number", "vr_case_number")


@pytest.mark.parametrize("task", ["compas", "compas_violent"])
def test_real_persons_stay_out(task):
    data = load(task)
    (source,) = data.sources
    said, raw = {*everything_said(data).split("\n")}, read_table(ARCHIVE.read(source), source.path)
    for column in PERSONAL:
        assert not said & (set(raw[column]) - {""}), column
        assert column not in said


PEAK = """
from fairbench.data.download import Archive
from fairbench.data.features import sparse_onehot
from fairbench.components.datasets import acs, german
import pyarrow.csv
archive = Archive(download=False)
german.load(archive)
def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) * 1024
start = peak()
features = acs.national(archive, task="income").features
matrix = sparse_onehot(features)
own = matrix.data.nbytes + matrix.indices.nbytes + matrix.indptr.nbytes
own += features.memory_usage(deep=True).sum()
print((peak() - start) / own)
"""


@pytest.mark.thorough
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_largest_table_and_its_onehot_take_at_most_four_times_their_size():
    load("acs_income"), load("german")  # or skipped
    assert 0 < float(python("-c", PEAK, PYTHONPATH=str(CHECKOUT)).stdout) < 4
