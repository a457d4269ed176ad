"""The tasks of ACS: folktables' definitions, on generated census files of several years."""

import io
import zipfile

import folktables
import numpy as np
import pandas as pd
import pytest

from fairbench.components.datasets import acs, acs_pums
from fairbench.core.errors import DataError
from tests.datasets.raw_files import RAW

SINCE = {2018: {}, 2019: {"RELP": "RELSHIPP", "JWTR": "JWTRNS"}}
SINCE[2023] = {**SINCE[2019], "ST": "STATE"}


def saved(save, year):
    """Write the generated person file as one of a year; return it as pandas reads it."""
    content = RAW["acs"].content
    for name, new in SINCE[year].items():
        content = content.replace(f",{name},".encode(), f",{new},".encode(), 1)
        content = content.replace(f",{name}\n".encode(), f",{new}\n".encode(), 1)
    save({f"acs/{year}/1-Year/psam_p36.csv": content})
    people = pd.read_csv(io.BytesIO(content), dtype={"PINCP": float, "RT": str, "SERIALNO": str})
    assert set(SINCE[year].values()) <= set(people)
    return people.rename(columns={new: name for name, new in SINCE[year].items()})


@pytest.mark.parametrize("year", SINCE)
@pytest.mark.parametrize("task", acs_pums.TASKS)
def test_rows_features_labels_and_weights_are_those_of_the_definitions(task, year, archive, save):
    people = saved(save, year)
    problem = getattr(folktables, acs_pums.TASKS[task])
    data = acs_pums.load(archive, task=task, codes="numeric", year=year)
    kept, (features, labels, _) = problem._preprocess(people), problem.df_to_numpy(people)
    assert 5 < len(data) == len(kept)
    assert list(data.features) == problem.features
    np.testing.assert_array_equal(data.features.to_numpy(float), features)
    np.testing.assert_array_equal(data.target, labels)
    np.testing.assert_array_equal(data.weight, kept["PWGTP"])
    np.testing.assert_array_equal(data.sensitive["race"], kept["RAC1P"].map(acs.RACES))
    np.testing.assert_array_equal(data.sensitive["sex"], kept["SEX"].map({1: "Male", 2: "Female"}))


def test_states_and_features_of_the_samples_are_those_of_folktables_and_the_district():
    assert set(acs_pums.STATES) == {*folktables.state_list, "DC"}
    assert len(set(acs_pums.STATES.values())) == len(acs_pums.STATES)
    for task in ("income", "public_coverage", "mobility"):
        problem = getattr(folktables, acs_pums.TASKS[task])
        features = set(acs._COLUMNS[task].split()) - {"row", problem.target}
        assert features == set(problem.features) - {"ST"}


def test_states_are_put_together_and_zip_archives_opened(archive, save):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as handle:
        handle.writestr("psam_p06.csv", RAW["acs"].content)
    save({"acs/2018/1-Year/psam_p06.csv": packed.getvalue()})
    one, two = (
        acs_pums.load(archive, task="employment", states=states) for states in ("NY", ["NY", "CA"])
    )
    assert len(two) == 2 * len(one)
    assert (one.name, two.name) == ("acs_employment_NY_2018", "acs_employment_NY_CA_2018")


def test_a_person_without_an_age_is_refused(archive, save):
    save(RAW["acs"].with_cell(4, "AGEP", ""))
    with pytest.raises(DataError, match=r"psam_p36.csv: column 'AGEP', row 4: '' is no number"):
        acs_pums.load(archive, task="employment")


def test_files_are_looked_for_where_the_census_has_them():
    found = [*acs_pums.sources_of(["NY", "DC"], 2019, "5-Year")]
    found += acs_pums.sources_of(["NY"], 2020, "1-Year")
    assert [source.path for source in found[:2]] == [
        f"acs/2019/5-Year/psam_p{code}.csv" for code in ("36", "11")
    ]
    census = "https://www2.census.gov/programs-surveys/acs"
    assert found[1].urls == (f"{census}/data/pums/2019/5-Year/csv_pdc.zip",)
    assert found[2].urls == (f"{census}/experimental/2020/data/pums/1-Year/csv_pny.zip",)
