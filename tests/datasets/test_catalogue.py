"""The catalogue: a page that says what the loaders do, and a check of every raw file."""

import re

import pytest

from docs import pages as written_pages
from fairbench.cli.main import main
from fairbench.cli.verbs.data import _check_file
from fairbench.components.datasets import german
from fairbench.data import download as catalogue
from fairbench.data.dataset import Source
from fairbench.data.download import Archive
from tests.datasets.raw_files import FOLDER, PARQUET, parquet, sequences, write_files
from tests.harness import ROOT, archive_with, listed


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Return the page and its groups, from made-up files and a contributor's own in data/."""
    files = sequences() | {path: parquet(path) for path in PARQUET.values()}
    folder = write_files(tmp_path_factory.mktemp("data"), files)
    places = (folder, FOLDER, ROOT / "data")
    archive = Archive(search_path=places, store=folder / "store", verify=False, download=False)
    return written_pages.datasets(archive, catalogue.entries())


def test_every_task_is_on_the_page_by_a_title_of_its_own_and_every_file(pages):
    written, tasks = pages[0], catalogue.entries()
    assert len({entry.title for entry in tasks}) == len(tasks)
    named = {name for entry in tasks for name in getattr(entry.module, "TITLES", {})}
    assert named <= {entry.name for entry in tasks}
    for entry in tasks:
        said = [text.rstrip(".") for text in vars(entry.datasheet).values()]
        said += [f"`{source.path}`" for source in catalogue.sources_of(entry.module)]
        if entry.name in listed("dataset") and entry.name != "table":
            said.append(f"| `{entry.name}` | {entry.title} |")
        assert not [text for text in (f"`{entry.name}`", *said) if text not in written]
    without = re.findall(r"There are no figures for `(\w+)`", written)
    assert [name for name in without if name in listed("dataset")] == ["table"]
    assert "There are no figures for `table`: dataset=table needs" in written


def test_figures_are_the_loaders_and_a_favourable_class_is_named(pages):
    written, groups = pages
    rows = {line.split("`")[1]: line for line in written.splitlines() if line.startswith("| `")}
    assert "| 10 | 31 | credit risk: bad risk | 0.3000 | 0 |" in rows["german"]
    assert rows["german"].endswith("| age 2, sex 2 |")
    assert "german,age,age >= 25,7,0.2857\ngerman,age,age < 25,3," in groups
    assert "| 3 (over 50K) | race " in rows["acs_income_bands"]


def test_a_missing_file_is_said_without_naming_folders(tmp_path):
    archive = Archive(search_path=(tmp_path,), store=tmp_path, download=False)
    tasks = [entry for entry in catalogue.entries() if entry.name == "german"]
    text, _ = written_pages.datasets(archive, tasks)
    why = "the file german/german.data was missing when this page was written."
    assert f"There are no figures for `german`: {why}" in text
    assert str(tmp_path) not in text


def test_sources_of_dictionaries_are_found():
    sources = [s.path for e in catalogue.entries() for s in catalogue.sources_of(e.module)]
    assert {"ihdp/ihdp_npci_10.csv", "student/student_por_derived.csv"} <= set(sources)
    assert {"twins/twin_pairs_X_3years_samesex.csv", "adult/adult.test"} <= set(sources)


def test_there_missing_and_wrong_are_told_apart(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)  # where no files of one's own are
    (tmp_path / "german").mkdir()
    (tmp_path / "german/german.data").write_bytes(b"spoilt")
    status = main(["data", "check", "download=false", f"search_path={tmp_path}"])
    said = capsys.readouterr().out
    assert status == 1
    assert "1 wrong" in said and "0 there" in said
    archive = Archive(search_path=(tmp_path,), store=tmp_path, download=False)
    wrong = _check_file(archive, german.GERMAN)
    missing = _check_file(archive, Source("a.csv", "0", page="https://toy.example"))
    assert (wrong[0], missing[0]) == ("wrong", "missing")
    assert german.GERMAN.sha256 in wrong[1]
    assert missing[1].startswith("no address to download it from is known; see https://toy.example")


def test_a_verified_file_is_there(tmp_path):
    assert _check_file(archive_with(german.GERMAN), german.GERMAN)[0] == "there"


@pytest.mark.thorough
@pytest.mark.data
def test_the_page_in_the_repository_is_current():
    real = Archive(download=False)
    ours = [entry for entry in catalogue.entries() if entry.name in listed("dataset")]
    sources = {s for e in ours for s in catalogue.sources_of(e.module)}
    there = {source.path for source in sources if real.locate(source)}
    nowhere = {"twins/twin_pairs_X_3years_samesex.csv", "dvlog/labels.csv"}
    expected = {source.path for source in sources} - nowhere
    if there != expected:
        pytest.skip(f"the page was written with other raw files: {sorted(there ^ expected)}")
    for suffix, written in zip((".md", ".csv"), written_pages.datasets(real, ours), strict=True):
        current = (ROOT / "docs" / "datasets").with_suffix(suffix).read_text()
        assert written == current, "run python -m docs.pages"
