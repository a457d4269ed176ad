"""The data sets of lending, hiring, prisons and hearts: what is a label, and what gives it away."""

import numpy as np
import pytest

from fairbench.components import imported
from fairbench.components.datasets import acs, hmda_boston, loan_application, recid, resume
from fairbench.core.errors import DataError, UserError
from fairbench.data.download import Archive
from tests.datasets.raw_desk import PARQUET
from tests.datasets.raw_files import RAW


@pytest.fixture
def load(archive, save):
    """Return a function that loads a task from its generated file."""

    def loaded(task, **options):
        save(RAW[task]().files if task in RAW else dict([PARQUET[task]()]))
        return imported(f"datasets.{task}").load(archive, **options)

    return loaded


@pytest.mark.parametrize("task", PARQUET)
def test_a_parquet_file_is_read(task, load):
    data = load(task)
    assert len(data) == len(data.features) > 0
    assert set(load(task, keep_sensitive=False).features) < set(data.features)
    for attribute in data.sensitive:
        assert data.groups(attribute).cat.categories[0] == data.privileged[attribute]


@pytest.mark.parametrize("task", PARQUET)
def test_what_is_no_parquet_file_is_refused(task, load, archive, save):
    path, content = PARQUET[task]()
    save({path: content[: len(content) // 2]})
    with pytest.raises(DataError, match=f"{path}: not a Parquet file") as caught:
        imported(f"datasets.{task}").load(archive)
    assert "\n" not in str(caught.value)


def test_a_denial_of_insurance_can_be_left_out(load):
    assert "insurance_denied" in load("hmda_boston").features
    data = load("hmda_boston", keep_insurance=False)
    assert "insurance_denied" not in data.features
    assert data.target.tolist() == [0, 0, 0, 1] * 2
    assert data.favourable == 0


def test_rows_of_one_advertisement_belong_together_and_no_name_is_a_feature(load):
    data = load("resume")
    assert data.clusters.nunique() == 3
    assert not {"firstname", "job_ad_id", "rownames"} & set(data.features)
    assert data.features["job_fed_contractor"].isna().sum() == 4
    assert "Kristen" not in data.features.to_string()


def test_what_follows_the_decision_is_no_feature(load):
    data = load("loan_application")
    known = {"action", "reject", "typur", "review", "inson", "gdlin", "unver", "approve"}
    assert not known & set(data.features)
    assert {"gdlin", "unver"} <= set(load("loan_application", keep_judgements=True).features)
    assert data.features["liq"].isna().tolist() == [False, True] * 4 + [False]
    assert data.features["term"].isna().sum() == 4
    assert set(data.sensitive["race"]) == {"white", "Black", "Hispanic"}
    assert data.sensitive["sex"].tolist() == ["male", "unknown", "female"] * 3


def test_black_and_hispanic_at_once_is_refused(archive, save):
    save(RAW["loan_application"]().with_cell(3, "hispan", "1"))
    with pytest.raises(DataError, match="column 'hispan', row 3: both black and hispan are 1"):
        loan_application.load(archive)


@pytest.mark.parametrize(("months", "returned"), [(None, 4), (30, 4), (29, 2), (8, 0)])
def test_a_return_counts_within_the_months(load, months, returned):
    data = load("recid", months=months)
    assert data.target.sum() == returned
    assert not {"durat", "ldurat", "cens", "follow"} & set(data.features)
    assert data.sensitive["age"].tolist()[:3] == ["age < 25", "age >= 25", "age >= 25"]


def test_months_that_not_everybody_was_followed_are_refused(archive, save):
    with pytest.raises(UserError, match="dataset.months is 71: give 1 to 70, or null"):
        recid.load(archive, months=71)
    save(RAW["recid"]().with_cell(1, "durat", "60"))
    with pytest.raises(DataError, match="row 1: 60 months without a return"):
        recid.load(archive, months=65)


def test_the_files_of_the_web_are_read_alike(load, archive, save):
    """They put row names in quotation marks, and write NA where nothing is known."""
    data, raw = load("resume"), RAW["resume"]()
    head, lines = raw.lines()
    rows = [raw.split(line) for line in lines[1:]]
    web = [",".join([f'"{row[0]}"', *(cell or "NA" for cell in row[1:])]) for row in rows]
    save(raw.with_lines(head, [lines[0], *web]))
    again = resume.load(archive)
    assert again.digest == data.digest


def test_hearts_south_germans_and_commuters(load):
    hearts = load("heart_disease")
    assert hearts.target.tolist() == [0, 1, 1, 1, 1] * 2
    assert hearts.features[["ca", "thal"]].isna().sum().tolist() == [5, 2]
    assert load("south_german_credit", privileged_age="> 25").sensitive["age"].tolist()[:3] == [
        "age <= 25",
        "age <= 25",
        "age > 25",
    ]
    commuters = load("acs_travel_time")
    assert set(commuters.sensitive["race"]) == {"White", "Black", "American Indian"}
    assert commuters.features["POWPUMA"].cat.categories[-1] == "70100"
    assert 0 < len(load("acs_travel_time", share=0.5)) < len(commuters)


def test_ranks_of_applications_and_answers_about_drugs(load):
    nursery = load("nursery")
    assert nursery.target.tolist() == [0, 1, 1, 2, 3] * 2
    assert nursery.classes[1] == "recommended"
    assert load("nursery", rank="five").target.tolist() == [0, 1, 2, 3, 4] * 2
    drug = load("drug")
    assert drug.target.tolist() == [0, 1, 1, 2, 2, 2, 2] * 2
    assert (drug.classes[0], drug.ordered) == ("never", True)
    assert set(drug.sensitive["ethnicity"]) == {"White", "not White"}
    smokers = load("drug", substance="nicotine", periods="seven")
    assert smokers.target.tolist() == list(range(7)) * 2
    assert len(smokers.classes) == 7


def test_incomes_of_young_people_are_in_ordered_bands(archive, save):
    save(RAW["acs_mobility"]().files)
    people = acs.national(archive, task="mobility")
    data = acs.income_bands(archive, bands=[10, 20.5, 100_000])
    assert data.classes == (
        "up to 0.01K",
        "over 0.01K to 0.0205K",
        "over 0.0205K to 100K",
        "over 100K",
    )
    income = people.features["PINCP"].to_numpy()
    assert (
        data.target.tolist()
        == sum((income > band).astype(int) for band in (10, 20.5, 1e5)).tolist()
    )
    assert data.target.max() == 3
    assert data.ordered
    assert "PINCP" not in data.features
    with pytest.raises(UserError, match="each more than the one before"):
        acs.income_bands(archive, bands=[3, 3])


def _real(loader, **options):
    try:
        return loader.load(Archive.of(download=False), **options)
    except DataError as error:
        pytest.skip(f"raw file not found: {error}")


@pytest.mark.data
def test_the_cards_of_the_real_files_say_what_is_in_them():
    data = _real(resume)
    assert data.clusters.nunique() == 1323
    rates = data.target.groupby(data.sensitive["race"], observed=True).mean()
    assert rates.round(4).to_dict() == {"white": 0.0965, "Black": 0.0645}
    secretaries = data.features["job_type"] == "secretary"
    women = data.sensitive["gender"] == "female"
    assert (secretaries.sum(), (secretaries & women).sum()) == (1621, 1591)
    denied = _real(hmda_boston)
    insurance = denied.features["insurance_denied"]
    assert (insurance.sum(), denied.target[insurance].sum()) == (48, 44)
    loans = _real(loan_application, keep_judgements=True)
    assert loans.features["gdlin"].isna().sum() == 2
    assert loans.features[["liq", "lines", "term"]].isna().sum().tolist() == [9, 1, 4]
    assert loans.target[loans.sensitive["sex"] == "unknown"].tolist() == [1] * 15
    assert _real(recid).target.sum() == 552
    assert _real(recid, months=60).target.mean() == pytest.approx(0.3626, abs=5e-5)
    assert np.isfinite(_real(recid).features["age"]).all()
