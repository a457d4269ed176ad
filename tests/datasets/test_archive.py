"""Finding, verifying and downloading raw files: what is said, and what is left behind."""

import gc
import gzip
import hashlib
import io
import time
import zipfile
from dataclasses import replace

import pytest
import requests

from benchmarks.faults.servers import server
from fairbench.components.datasets import german
from fairbench.core.errors import DataError
from fairbench.data import download
from fairbench.data.dataset import Source
from fairbench.data.download import Archive
from tests.datasets.raw_files import RAW
from tests.harness import quick

CONTENT = b"a,b\n1,2\n"
SOURCE = Source("toy/toy.csv", hashlib.sha256(CONTENT).hexdigest(), page="https://toy.example")
URLS = ("https://one.example", "https://two.example")
ZIPPED = replace(SOURCE, member="in/toy.csv")


def archive_of(folder, **options):
    return Archive(search_path=(folder / "found",), store=folder / "store", **options)


def put(folder, content, name="toy.csv"):
    path = folder / "found" / "toy" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def zipped(name, content):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as handle:
        handle.writestr(zipfile.ZipInfo(name), content)  # without the time, as tests have ids
    return packed.getvalue()


def everything_in(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize(
    ("name", "content"), [("toy.csv", CONTENT), ("toy.csv.gz", gzip.compress(CONTENT, mtime=0))]
)
def test_plain_and_gzip_files_are_the_same_file(tmp_path, name, content):
    put(tmp_path, content, name)
    assert archive_of(tmp_path).read(SOURCE) == CONTENT


PAGE = b"\n<!DOCTYPE html><html><head><title> 403 Forbidden\n</title></head><body>no</body></html>"
IS_PAGE = "is a web page, not the data"
DAMAGED = r": a damaged archive \(.*is it truncated\? Delete it and get it again$"
LARGE = CONTENT + bytes(10_000)


@pytest.mark.parametrize("verify", [True, False])
@pytest.mark.parametrize(
    ("content", "name", "source", "sentence"),
    [
        (PAGE, "toy.csv", SOURCE, IS_PAGE),
        (PAGE, "toy.csv.gz", SOURCE, IS_PAGE),
        (PAGE, "toy.csv", ZIPPED, IS_PAGE),
        (gzip.compress(CONTENT * 50, mtime=0)[:-9], "toy.csv.gz", SOURCE, DAMAGED),
        (b"PK" + gzip.compress(CONTENT, mtime=0), "toy.csv.gz", SOURCE, DAMAGED),
        (zipped("in/toy.csv", CONTENT)[:-30], "toy.csv", ZIPPED, "a damaged archive"),
        (zipped("other.csv", b""), "toy.csv", ZIPPED, "no file in/toy.csv in this zip archive"),
    ],
)
def test_what_is_no_such_file_is_refused_and_left(
    tmp_path, content, name, source, sentence, verify
):
    path = put(tmp_path, content, name)
    with pytest.raises(DataError, match=sentence):
        archive_of(tmp_path, verify=verify).read(source)
    assert path.read_bytes() == content


def test_no_more_is_unpacked_than_the_recorded_file_has(tmp_path):
    for name, content, source in (
        ("toy.csv.gz", gzip.compress(LARGE, mtime=0), replace(SOURCE, size=len(CONTENT))),
        ("toy.csv", zipped("in/toy.csv", LARGE), replace(ZIPPED, size=len(CONTENT))),
    ):
        path = put(tmp_path, content, name)
        with pytest.raises(DataError, match=f"more than {len(CONTENT)} bytes, which the recorded"):
            archive_of(tmp_path).read(source)
        assert archive_of(tmp_path, verify=False).read(source) == LARGE
        path.unlink()


def test_a_wrong_checksum_names_both_and_leaves_the_file(tmp_path):
    path = put(tmp_path, b"a,b\n1,3\n")
    result = hashlib.sha256(path.read_bytes()).hexdigest()
    with pytest.raises(DataError) as caught:
        archive_of(tmp_path).read(SOURCE)
    assert str(caught.value) == (
        f"{path} has sha256 {result}, expected {SOURCE.sha256}: the file was left in place and not "
        "used; replace it, or set data.verify=false to use it as it is"
    )
    assert everything_in(tmp_path) == ["found/toy/toy.csv"]
    assert archive_of(tmp_path, verify=False).read(SOURCE) == path.read_bytes()


def test_a_wrong_checksum_stops_a_loader_unless_nothing_is_verified(archive):
    data = archive.with_checksums(german.load(archive))
    assert data.sources[0].sha256 == hashlib.sha256(RAW["german"].content).hexdigest()
    verifying = replace(archive, verify=True)
    assert verifying.with_checksums(data) is data
    with pytest.raises(DataError, match=f"expected {german.GERMAN.sha256}"):
        german.load(verifying)


def test_a_missing_file_that_cannot_be_downloaded(tmp_path):
    with pytest.raises(DataError) as caught:
        archive_of(tmp_path).read(SOURCE)
    result, store = tmp_path / "found", tmp_path / "store"
    assert str(caught.value) == (
        "the raw file toy/toy.csv is missing. It is in none of these folders: "
        f"{result}, {store}. It was not downloaded: no address to download it from is known. Get "
        "it from https://toy.example, save it as FOLDER/toy/toy.csv, and name that folder by "
        "data.search_path=[FOLDER] or by the environment variable FAIRBENCH_DATA"
    )
    with pytest.raises(DataError, match=r"downloading is off \(data.download=false\)"):
        archive_of(tmp_path, download=False).read(replace(SOURCE, urls=URLS))


@pytest.fixture
def fetch(monkeypatch, tmp_path):
    """Return a function that reads a source, whose addresses are answered in place of a network."""

    def read(answer, source=SOURCE):
        asked = []

        def get(url, **options):
            asked.append(url)
            if isinstance(answer, Exception):
                raise answer
            made = requests.Response()
            made.status_code, made.raw = 200, io.BytesIO(answer)
            return made

        monkeypatch.setattr(requests, "get", get)
        return archive_of(tmp_path).read(replace(source, urls=URLS)), asked

    return read


@pytest.mark.parametrize(
    ("answer", "source"), [(CONTENT, SOURCE), (zipped("in/toy.csv", CONTENT), ZIPPED)]
)
def test_a_download_is_verified_kept_and_found_again(tmp_path, fetch, capsys, answer, source):
    assert fetch(answer, source) == (CONTENT, ["https://one.example"])
    assert fetch(answer, source) == (CONTENT, [])
    assert everything_in(tmp_path) == ["store/toy/toy.csv"]
    assert capsys.readouterr().err == "downloading https://one.example\n"


NO_NETWORK = "downloaded: https://one.example: no network; https://two.example: no network. Get"


def test_a_wrong_download_is_not_kept(tmp_path, fetch):
    for answer, source, sentence in (
        (OSError("Max retries exceeded with url: /"), SOURCE, NO_NETWORK),
        (b"a,b\n", SOURCE, f"has sha256 [0-9a-f]{{64}}, expected {SOURCE.sha256}"),
        (PAGE, ZIPPED, f"https://one.example {IS_PAGE[:41]}"),
    ):
        with pytest.raises(DataError, match=sentence):
            fetch(answer, source)
        assert everything_in(tmp_path) == []


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(
    ("behaviour", "size", "reason"),
    quick(
        [
            ("drips", 0, "given up: it did not get on for"),
            ("swells", 0, "larger than 4,294,967,296 bytes"),
            ("swells", 1000, "larger than 1,000 bytes"),
        ],
        [("swells", 1000, "larger than 1,000 bytes")],
        several=True,
    ),
)
def test_a_download_ends_whatever_the_server_does(tmp_path, monkeypatch, behaviour, size, reason):
    monkeypatch.setattr(download, "_IDLE_S", 1.0)
    with server(behaviour) as address:
        source = Source("a/b.csv", "0" * 64, urls=(f"{address}/b.csv",), page="page", size=size)
        start = time.monotonic()
        with pytest.raises(DataError, match=reason):
            Archive((tmp_path,), store=tmp_path).read(source)
        assert time.monotonic() - start < 10
    gc.collect()
    assert not (tmp_path / "a").exists()
