"""The tasks of ACS, against folktables on generated census files."""

import io
import zipfile

import numpy as np
import pandas as pd
import pytest

from datasets import acs, acs_pums
from fairbench.core.errors import UserError
from tests.datasets.raw_files import RAW


@pytest.fixture
def people(save):
    """Write the generated person file of New York and return it as folktables reads it."""
    raw = RAW["acs"]()
    save(raw.files)
    content = raw.files[raw.path]
    return pd.read_csv(io.BytesIO(content), dtype={"PINCP": float, "RT": str, "SERIALNO": str})


@pytest.mark.parametrize(
    ("task", "problem"),
    [
        ("income", "ACSIncome"),
        ("employment", "ACSEmployment"),
        ("public_coverage", "ACSPublicCoverage"),
        ("mobility", "ACSMobility"),
        ("travel_time", "ACSTravelTime"),
    ],
)
def test_rows_features_and_labels_are_those_of_folktables(task, problem, archive, people):
    folktables = pytest.importorskip("folktables", reason="folktables is not installed")
    oracle = getattr(folktables, problem)
    features, label, group = oracle.df_to_numpy(people)
    data = acs_pums.load(archive, task=task, codes="numeric")
    assert len(data) > 5
    assert len(data.weight) == len(data)
    assert data.weight.isin(people["PWGTP"]).all()
    ours = data.features[oracle.features].to_numpy(float)
    np.testing.assert_array_equal(ours, features)
    assert set(data.features) == set(oracle.features)
    np.testing.assert_array_equal(data.target, label.astype(int))
    races = data.sensitive["race"].map({name: code for code, name in acs.RACES.items()})
    np.testing.assert_array_equal(races.astype(int), group)


def test_states_are_put_together_and_zip_archives_opened(archive, save):
    raw = RAW["acs"]()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as handle:
        handle.writestr("psam_p06.csv", raw.files[raw.path])
    save({**raw.files, "acs/2018/1-Year/psam_p06.csv": packed.getvalue()})
    one, two = (
        acs_pums.load(archive, task="employment", states=states)
        for states in (["NY"], ["NY", "CA"])
    )
    assert len(two) == 2 * len(one)
    assert (one.name, two.name) == ("acs_employment_NY_2018", "acs_employment_NY_CA_2018")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"task": "health"}, "unknown dataset.task 'health'"),
        ({"states": ["XX"]}, "unknown dataset.states 'XX'"),
        ({"states": []}, "dataset.states is empty"),
        ({"year": 2021}, "dataset.year is 2021: the tasks are defined for 2014 to 2018"),
        ({"horizon": "2-Year"}, "unknown dataset.horizon '2-Year'"),
        ({"year": 2016}, "file acs/2016/1-Year/ss16pny.csv not found in"),
    ],
)
def test_what_is_refused(options, message, archive):
    with pytest.raises(UserError, match=message):
        acs_pums.load(archive, **{"task": "income", **options})
