"""The cache of loaded data sets: the same data set again, and never a stale or spoilt one."""

import hashlib
import json
import os
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from fairbench.components import CHECKOUT
from fairbench.components.datasets import acs, adult, german, simulated
from fairbench.core.errors import DataError
from fairbench.data import download as dataset_cache
from fairbench.data.dataset import Dataset
from fairbench.data.download import Archive, entries
from fairbench.data.features import Sequences
from tests.datasets.raw_files import RAW
from tests.harness import CONF

GERMAN = {"_target_": "datasets.german.load", "privileged_age": ">= 25"}


def assert_same_frame(one, other):
    """Compare two frames exactly; pandas' own comparison takes minutes on large categoricals."""
    assert list(one) == list(other)
    pd.testing.assert_index_equal(one.index, other.index, exact="equiv")
    for name in one:
        left, right = one[name], other[name]
        assert left.dtype == right.dtype, name
        if isinstance(left.dtype, pd.CategoricalDtype):
            assert list(left.cat.categories) == list(right.cat.categories)
            assert left.cat.categories.dtype == right.cat.categories.dtype
            left, right = left.cat.codes, right.cat.codes
            assert left.dtype == right.dtype
        assert left.equals(right), name


def assert_same_part(left, right):
    if isinstance(left, Sequences):
        assert (left.names, left.shape) == (right.names, right.shape)
        for one, other in zip(left.parts, right.parts, strict=True):
            np.testing.assert_array_equal(one.lengths, other.lengths)
            np.testing.assert_array_equal(one.joined(), other.joined())
    else:
        frames = [data.to_frame() if data.ndim == 1 else data for data in (left, right)]
        assert_same_frame(*frames)


def assert_same(one: Dataset, other: Dataset):
    for part in ("features", "sensitive", "truth", "target", "partition", "clusters"):
        left, right = getattr(one, part), getattr(other, part)
        assert (left is None) == (right is None)
        if left is not None:
            assert_same_part(left, right)
    for part in ("name", "task", "privileged", "target_name", "positive_label", "favourable"):
        assert getattr(one, part) == getattr(other, part)
    assert one.sources == other.sources


@pytest.fixture
def cached(tmp_path, monkeypatch, save):
    """Return a function that loads german through the cache and says whether it was read anew."""
    monkeypatch.delenv("FAIRBENCH_CACHE", raising=False)
    content = RAW["german"]().files
    save(content)
    source = german.GERMAN
    monkeypatch.setattr(
        german,
        "GERMAN",
        type(source)(source.path, hashlib.sha256(content[source.path]).hexdigest()),
    )
    calls = []

    def load(verify=True, **options):
        archive = Archive((tmp_path,), tmp_path / "store", verify=verify, download=False)
        calls.clear()

        def loader(archive):
            calls.append(1)
            return german.load(archive, **options)

        return dataset_cache.load(archive, {**GERMAN, **options}, loader), bool(calls)

    return load


def cache_files(tmp_path):
    return sorted((tmp_path / "store" / ".cache").glob("*.parquet"))


def test_the_second_load_is_the_first_one(cached, tmp_path):
    (first, anew), (second, again) = cached(), cached()
    assert (anew, again) == (True, False)
    assert_same(first, second)
    assert [path.name[:7] for path in cache_files(tmp_path)] == ["german-"]
    assert sorted(os.listdir(tmp_path / "store/.cache")) == [p.name for p in cache_files(tmp_path)]


def test_options_have_caches_of_their_own(cached, tmp_path):
    cached()
    strict, anew = cached(privileged_age="> 25")
    assert anew
    assert "age > 25" in set(strict.sensitive["age"])
    assert len(cache_files(tmp_path)) == 2


def test_other_code_is_another_cache(cached, monkeypatch):
    cached()
    monkeypatch.setattr(dataset_cache, "code_digest", lambda modules: "another")
    assert cached()[1]


def test_a_changed_raw_file_is_never_served_from_the_cache(cached, save):
    cached()
    save(RAW["german"]().with_cell(2, "credit_amount", "7"))
    with pytest.raises(DataError, match="the file was left in place"):
        cached()


def test_a_raw_file_that_is_gone_is_missed(cached, tmp_path):
    cached()
    (tmp_path / german.GERMAN.path).unlink()
    with pytest.raises(DataError, match="is missing. It is in none of"):
        cached()


@pytest.mark.parametrize(
    "spoil",
    [
        lambda content: content[: len(content) // 2],
        lambda content: b"",
        lambda content: content[:40] + bytes([content[40] ^ 255]) + content[41:],
    ],
    ids=["cut", "empty", "one byte"],
)
def test_a_spoilt_cache_is_ignored_and_written_again(cached, tmp_path, spoil):
    first, _ = cached()
    (path,) = cache_files(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(spoil(whole))
    second, anew = cached()
    assert anew
    assert_same(first, second)
    assert path.read_bytes() == whole
    assert not cached()[1]


def test_without_verification_nothing_is_cached_and_sources_are_what_was_read(
    cached, tmp_path, save
):
    cached()
    save(RAW["german"]().with_cell(2, "credit_amount", "7"))
    data, anew = cached(verify=False)
    assert anew
    assert data.features["credit_amount"][1] == 7
    content = (tmp_path / german.GERMAN.path).read_bytes()
    assert data.sources[0].sha256 == hashlib.sha256(content).hexdigest()
    assert len(cache_files(tmp_path)) == 1


def test_the_folder_can_be_named(cached, tmp_path, monkeypatch):
    monkeypatch.setenv("FAIRBENCH_CACHE", str(tmp_path / "elsewhere"))
    cached()
    assert not cache_files(tmp_path)
    assert len(list((tmp_path / "elsewhere").iterdir())) == 1
    assert not cached()[1]


def test_a_folder_that_cannot_be_written_is_no_failure(cached, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("FAIRBENCH_CACHE", str(tmp_path / "file"))
    assert cached()[1] and cached()[1]


def test_nothing_is_cached_of_data_without_files(tmp_path):
    archive = Archive((tmp_path,), tmp_path, download=False)
    dataset_cache.load(archive, {"_target_": "datasets.simulated.load"}, simulated.load)
    assert not list(tmp_path.rglob("*"))


def test_a_table_of_the_users_is_read_every_time(tmp_path):
    archive = Archive((tmp_path,), tmp_path, download=False)
    options = {"_target_": "datasets.table.load", "path": "mine.csv"}
    assert dataset_cache.load(archive, options, lambda archive: "read") == "read"


def test_two_processes_may_write_at_once(cached, tmp_path):
    data, _ = cached()
    (path,) = cache_files(tmp_path)
    for _ in range(3):
        dataset_cache._write(path, data)
    assert not cached()[1]
    described = json.loads(pq.read_schema(path).metadata[b"fairbench"])
    assert described["plain"]["sources"][0]["path"] == german.GERMAN.path


def real(tmp_path):
    return Archive.of(store=str(tmp_path), download=False)


def skip_unless_found(archive, *sources):
    for source in sources:
        if archive.locate(source) is None:
            pytest.skip(f"raw file {source.path} is not found")


@pytest.mark.thorough
@pytest.mark.data
@pytest.mark.parametrize("entry", entries(CONF), ids=lambda entry: entry.name)
def test_every_data_set_is_the_same_from_the_cache_in_under_a_second(entry, tmp_path, monkeypatch):
    monkeypatch.delenv("FAIRBENCH_CACHE", raising=False)
    if entry.name == "table":
        pytest.skip("a table of the user's")
    archive = real(tmp_path)
    options = {"_target_": f"{entry.module.__name__}.{entry.function.__name__}", **entry.options}
    try:
        first = dataset_cache.load(archive, options, entry.load)
    except DataError as error:
        pytest.skip(f"raw file not found: {error}")
    started = time.perf_counter()
    second = dataset_cache.load(archive, options, entry.load)
    assert time.perf_counter() - started < 1
    assert_same(first, second)


@pytest.mark.data
def test_adult_is_read_in_under_a_second_the_first_time(tmp_path):
    archive = real(tmp_path)
    skip_unless_found(archive, adult.TRAIN, adult.TEST)
    started = time.perf_counter()
    adult.load(archive)
    assert time.perf_counter() - started < 1


PEAK = """
from fairbench.data.download import Archive
from fairbench.data.features import sparse_onehot
from fairbench.components.datasets import acs, german
import pyarrow.csv
archive = Archive.of(download=False)
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
@pytest.mark.data
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_largest_table_and_its_onehot_take_at_most_four_times_their_size():
    skip_unless_found(Archive.of(download=False), acs.NATIONAL["income"], german.GERMAN)
    run = subprocess.run(
        [sys.executable, "-c", PEAK],
        cwd=CHECKOUT,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert 0 < float(run.stdout) < 4


@pytest.mark.data
@pytest.mark.parametrize("task", ["german", "compas", "bank"])
def test_trees_on_the_sparse_and_the_dense_matrix_predict_the_same(task, tmp_path):
    from xgboost import DMatrix, train

    from fairbench.data.features import onehot, sparse_onehot

    entry = next(entry for entry in entries(CONF) if entry.name == task)
    try:
        data = entry.load(real(tmp_path))
    except DataError as error:
        pytest.skip(f"raw file not found: {error}")
    rows = np.random.default_rng(0).permutation(len(data))[:5000]
    data = data.take(rows)
    predictions = []
    for encode in (onehot, sparse_onehot):
        matrix = DMatrix(encode(data.features), label=data.target)
        options = {"objective": "binary:logistic", "max_depth": 6, "nthread": 1}
        predictions.append(train(options, matrix, 10).predict(matrix))
    np.testing.assert_array_equal(*predictions)
