"""What each loader makes of its quirks, on generated files."""

import numpy as np
import pytest

from datasets import adult, compas, german
from fairbench.errors import UserError
from tests.datasets.raw_files import RAW


@pytest.fixture
def load(archive, save):
    """Return a function that loads a task's generated file."""

    def of(task, loader, **options):
        save(RAW[task]().files)
        return loader(archive, **options)

    return of


def test_adult_drops_incomplete_rows_and_marks_the_archives_parts(load):
    data = load("adult", adult.load)
    assert data.partition.tolist() == ["train"] * 8 + ["test"] * 4
    # Of rows 0, 1, 3, 4, 6 ... (every third has no work class), those that are 1 or 3 modulo 4.
    kept = [row for row in range(12) if row % 3 != 2]
    assert data.target.tolist()[:8] == [int(row % 4 in (1, 3)) for row in kept]
    assert "fnlwgt" not in data.features
    assert data.features["male"].tolist() == (data.sensitive["sex"] == "Male").tolist()


def test_adult_names_the_file_and_row_of_a_fault_in_the_test_file(load, archive, save):
    raw = RAW["adult"]()
    content = raw.files["adult/adult.test"].replace(b"40, Cuba, >50K.", b"4O, Cuba, >50K.", 1)
    save({**raw.files, "adult/adult.test": content})
    with pytest.raises(UserError) as caught:
        adult.load(archive)
    message = "adult/adult.test: column 'hours-per-week', row 2: '4O' is no number"
    assert str(caught.value) == message


def test_german_reads_sex_from_the_personal_status_and_cuts_age_as_told(load):
    data = load("german", german.load)
    assert data.sensitive["sex"].tolist()[:4] == ["male", "female", "male", "male"]
    assert data.sensitive["age"].tolist()[:4] == ["age < 25", *["age >= 25"] * 3]
    assert data.target.tolist()[:3] == [0, 0, 1]
    strict = load("german", german.load, privileged_age="> 25", columns="all")
    assert strict.sensitive["age"].tolist()[:4] == [*["age <= 25"] * 2, *["age > 25"] * 2]
    assert strict.features.shape[1] == 20


@pytest.mark.parametrize("option", [{"columns": "some"}, {"privileged_age": "30"}])
def test_german_refuses_unknown_options(load, option):
    with pytest.raises(UserError, match=f"unknown dataset.{next(iter(option))}"):
        load("german", german.load, **option)


def test_compas_keeps_the_rows_of_the_filter(load):
    data = load("compas", compas.load)
    assert data.features["age"].tolist() == [20, 21, 22, 23, 24]
    assert list(data.features["c_charge_desc"].cat.categories) == ["Theft, petit"]
    assert data.favourable == 0
    assert data.target.tolist() == [0, 1, 0, 1, 0]


def test_compas_refuses_repeated_headers_that_differ(archive, save):
    raw = RAW["compas"]()
    head, lines = raw.lines()
    cells = raw.split(lines[1])
    cells[raw.names.index("priors_count")] = "77"
    save(raw.with_lines(head, [lines[0], raw.join(cells), *lines[2:]]))
    with pytest.raises(UserError, match="the two columns named 'priors_count' differ"):
        compas.load(archive)


def test_targets_are_whole_numbers(load):
    for task, loader in (("adult", adult.load), ("german", german.load), ("compas", compas.load)):
        assert load(task, loader).target.dtype == np.int64
