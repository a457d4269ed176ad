"""Finding, verifying and downloading raw files: what is said, and what is left behind."""

import gc
import gzip
import hashlib
import io
import time
import zipfile
from contextlib import nullcontext
from dataclasses import replace
from typing import ClassVar

import pytest
import requests

from benchmarks.faults.servers import server
from fairbench.components.datasets import german
from fairbench.core.errors import DataError
from fairbench.data import download
from fairbench.data.dataset import Source
from fairbench.data.download import Archive, with_checksums
from tests.datasets.raw_files import RAW
from tests.harness import quick

CONTENT = b"a,b\n1,2\n"
SOURCE = Source("toy/toy.csv", hashlib.sha256(CONTENT).hexdigest(), page="https://toy.example")


def archive_of(folder, **options):
    return Archive(search_path=(folder / "found",), store=folder / "store", **options)


def put(folder, content, name="toy.csv"):
    path = folder / "found" / "toy" / name
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    return path


def everything_in(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_plain_and_gzip_files_are_the_same_file(tmp_path):
    put(tmp_path / "plain", CONTENT)
    put(tmp_path / "packed", gzip.compress(CONTENT), "toy.csv.gz")
    for name in ("plain", "packed"):
        assert archive_of(tmp_path / name).read(SOURCE) == CONTENT


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


def test_a_wrong_checksum_stops_a_loader(tmp_path):
    path = tmp_path / german.GERMAN.path
    path.parent.mkdir()
    path.write_bytes(RAW["german"]().files[german.GERMAN.path])
    with pytest.raises(DataError, match=f"expected {german.GERMAN.sha256}"):
        german.load(Archive(search_path=(tmp_path,), store=tmp_path / "store"))


def test_without_verification_the_sources_are_what_was_read(archive, save):
    raw = RAW["german"]()
    save(raw.files)
    data = with_checksums(german.load(archive), archive)
    assert data.sources[0].sha256 == hashlib.sha256(raw.files[raw.path]).hexdigest()
    assert with_checksums(data, replace(archive, verify=True)) is data


def test_a_missing_file_without_an_address(tmp_path):
    with pytest.raises(DataError) as caught:
        archive_of(tmp_path).read(SOURCE)
    result, store = tmp_path / "found", tmp_path / "store"
    assert str(caught.value) == (
        "the raw file toy/toy.csv is missing. It is in none of these folders: "
        f"{result}, {store}. It was not downloaded: no address to download it from is known. Get "
        "it from https://toy.example, save it as FOLDER/toy/toy.csv, and name that folder by "
        "data.search_path=[FOLDER] or by the environment variable FAIRBENCH_DATA"
    )


def test_a_missing_file_with_downloading_off(tmp_path):
    source = Source(SOURCE.path, SOURCE.sha256, ("https://toy.example/toy.csv",))
    with pytest.raises(DataError, match=r"downloading is off \(data.download=false\)"):
        archive_of(tmp_path, download=False).read(source)


class Server:
    """In place of requests.get: answers with bytes, or fails as a dead network does."""

    headers: ClassVar = {}

    def __init__(self, answer):
        self.answer = answer
        self.asked = []

    def __call__(self, url, **options):
        self.asked.append(url)
        if isinstance(self.answer, Exception):
            raise self.answer
        return nullcontext(self)

    def raise_for_status(self):
        pass

    def iter_content(self, size):
        yield self.answer


def fetch(monkeypatch, folder, answer, **parts):
    server = Server(answer)
    monkeypatch.setattr(requests, "get", server)
    source = Source(SOURCE.path, SOURCE.sha256, ("https://one.example", "https://two.example"))
    return server, lambda: archive_of(folder).read(
        Source(**{**source.__dict__, "page": SOURCE.page, **parts})
    )


def test_a_download_is_verified_kept_and_found_again(tmp_path, monkeypatch, capsys):
    server, read = fetch(monkeypatch, tmp_path, CONTENT)
    assert read() == CONTENT
    assert read() == CONTENT
    assert server.asked == ["https://one.example"]
    assert everything_in(tmp_path) == ["store/toy/toy.csv"]
    assert capsys.readouterr().err == "downloading https://one.example\n"


def test_no_network(tmp_path, monkeypatch):
    server, read = fetch(monkeypatch, tmp_path, OSError("Max retries exceeded with url: /"))
    with pytest.raises(DataError) as caught:
        read()
    assert (
        "downloaded: https://one.example: no network; https://two.example: no network. Get"
        in str(caught.value)
    )
    assert everything_in(tmp_path) == []


def test_a_wrong_download_is_not_kept(tmp_path, monkeypatch):
    server, read = fetch(monkeypatch, tmp_path, b"a,b\n")
    result = hashlib.sha256(b"a,b\n").hexdigest()
    with pytest.raises(DataError, match=f"has sha256 {result}, expected {SOURCE.sha256}"):
        read()
    assert everything_in(tmp_path) == []


def zipped(name, content):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as handle:
        handle.writestr(name, content)
    return packed.getvalue()


def test_a_file_comes_out_of_a_zip_archive(tmp_path, monkeypatch):
    packed = zipped("in/toy.csv", CONTENT)
    _, read = fetch(monkeypatch, tmp_path, packed, member="in/toy.csv")
    assert read() == CONTENT
    assert everything_in(tmp_path) == ["store/toy/toy.csv"]


def test_a_zip_archive_without_the_file(tmp_path, monkeypatch):
    _, read = fetch(monkeypatch, tmp_path, zipped("other.csv", b""), member="in/toy.csv")
    with pytest.raises(DataError, match="no file in/toy.csv in this zip archive"):
        read()


PAGE = b"\n<!DOCTYPE html><html><head><title> 403 Forbidden\n</title></head><body>no</body></html>"


@pytest.mark.parametrize(
    ("name", "parts"),
    [("toy.csv", {}), ("toy.csv.gz", {}), ("toy.csv", {"member": "in/toy.csv"})],
    ids=["plain", "gzip", "zip"],
)
@pytest.mark.parametrize("verify", [True, False])
def test_a_403_page_saved_as_a_file_is_recognised(tmp_path, name, parts, verify):
    path = put(tmp_path, PAGE, name)
    source = Source(SOURCE.path, SOURCE.sha256, **parts)
    with pytest.raises(DataError, match="is a web page titled '403 Forbidden', not the data"):
        archive_of(tmp_path, verify=verify).read(source)
    assert path.read_bytes() == PAGE


def test_a_403_page_downloaded_for_a_zip_archive(tmp_path, monkeypatch):
    _, read = fetch(monkeypatch, tmp_path, PAGE, member="in/toy.csv")
    with pytest.raises(DataError, match="https://one.example is a web page titled '403 Forbidden'"):
        read()
    assert everything_in(tmp_path) == []


@pytest.mark.parametrize(
    ("name", "content", "member"),
    [
        ("toy.csv.gz", gzip.compress(CONTENT + bytes(10_000), mtime=0), ""),
        ("toy.csv", zipped("in/toy.csv", CONTENT + bytes(10_000)), "in/toy.csv"),
    ],
    ids=["gzip", "zip"],
)
def test_no_more_is_unpacked_than_the_recorded_file_has(tmp_path, name, content, member):
    put(tmp_path, content, name)
    source = Source(SOURCE.path, SOURCE.sha256, member=member, size=len(CONTENT))
    with pytest.raises(DataError, match=f"more than {len(CONTENT)} bytes, which the recorded"):
        archive_of(tmp_path).read(source)
    assert archive_of(tmp_path, verify=False).read(source).startswith(CONTENT)


@pytest.mark.parametrize("spoil", [lambda packed: packed[:-9], lambda packed: b"PK" + packed])
def test_a_damaged_gzip_file(tmp_path, spoil):
    path = put(tmp_path, spoil(gzip.compress(CONTENT * 50)), "toy.csv.gz")
    with pytest.raises(DataError) as caught:
        archive_of(tmp_path).read(SOURCE)
    assert str(caught.value).startswith(f"{path}: a damaged archive (")
    assert str(caught.value).endswith("is it truncated? Delete it and get it again")


def test_a_damaged_zip_archive(tmp_path):
    put(tmp_path, zipped("in/toy.csv", CONTENT)[:-30])
    source = Source(SOURCE.path, SOURCE.sha256, member="in/toy.csv")
    with pytest.raises(DataError, match="a damaged archive"):
        archive_of(tmp_path).read(source)


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
