"""What each loader makes of its quirks, on generated files."""

import numpy as np
import pytest

from fairbench.components.datasets import (
    acs,
    adult,
    bank,
    communities,
    compas,
    compas_zafar,
    credit_default,
    german,
    ihdp,
    insurance,
    law_school,
    law_school_bar,
    oulad,
    ricci,
    student,
    twins,
)
from fairbench.core.errors import DataError, UserError
from fairbench.data.features import onehot_names
from tests.datasets.raw_files import RAW


@pytest.fixture
def load(archive, save):
    """Return a function that loads a task's generated file."""

    def of(generated, loader, **options):
        save(RAW[generated]().files)
        return loader(archive, **options)

    return of


def test_adult_drops_incomplete_rows_and_marks_the_archives_parts(load):
    data = load("adult", adult.load)
    assert data.partition.tolist() == ["train"] * 8 + ["test"] * 4
    # Of rows 0, 1, 3, 4, 6 ... (every third has no work class), those that are 1 or 3 modulo 4.
    kept = [row for row in range(12) if row % 3 != 2]
    assert data.target.tolist()[:8] == [int(row % 4 in (1, 3)) for row in kept]
    assert "fnlwgt" not in data.features
    assert (data.weight >= 10_000).all()
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


def test_compas_zafar_keeps_people_without_a_charge_description(load):
    data = load("compas_zafar", compas_zafar.load)
    assert len(data) == len(load("compas", compas.load)) + 1
    assert list(data.features) == ["age", "race", "sex", "charge_degree", "priors_count"]
    assert data.features["age"].tolist()[:3] == ["under 25", "25 to 45", "over 45"]
    assert data.target.tolist() == [0, 1, 0, 1, 0, 1]
    without = load("compas_zafar", compas_zafar.load, keep_sensitive=False)
    assert list(without.features) == ["charge_degree", "priors_count"]


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


def test_bank_drops_unknowns_and_replaces_the_age(load):
    data = load("bank", bank.load)
    assert "age" not in data.features
    assert data.features["privileged_age"].tolist()[:4] == [False, True, False, True]
    assert "unknown" not in data.features["default"].cat.categories
    without = load("bank", bank.load, keep_duration=False, privileged_age=25)
    assert set(data.features) - set(without.features) == {"duration"}
    assert set(without.sensitive["age"]) == {"age >= 25"}


def test_insurance_drops_the_first_region_and_scales_charges(load):
    data = load("insurance", insurance.load)
    assert [name for name in data.features if name.startswith("region")] == [
        "region_northwest",
        "region_southeast",
        "region_southwest",
    ]
    assert (data.target.min(), data.target.max()) == (0, 1)
    plain = load("insurance", insurance.load, drop_first=False, target_scale="none")
    assert len(onehot_names(plain.features)) == len(onehot_names(data.features)) + 1
    assert plain.target.tolist()[:2] == [1000.5, 2001.0]
    with pytest.raises(UserError, match="unknown dataset.target_scale 'max'"):
        load("insurance", insurance.load, target_scale="max")


def test_ihdp_knows_its_truth_in_the_targets_unit(load):
    data = load("ihdp", ihdp.load)
    plain = load("ihdp", ihdp.load, target_scale="none")
    low, span = plain.target.min(), np.ptp(plain.target.to_numpy())
    np.testing.assert_allclose(data.truth["mean"], (plain.truth["mean"] - low) / span)
    np.testing.assert_allclose(data.truth["sd"], 1 / span)
    assert (plain.truth["sd"] == 1).all()
    with pytest.raises(UserError, match="dataset.realisation is 11: it must be 1 to 10"):
        load("ihdp", ihdp.load, realisation=11)


def test_ihdp_takes_the_mean_of_the_treatment_received(load):
    raw = RAW["ihdp"]()
    _, lines = raw.lines()
    cells = [dict(zip(raw.names, raw.split(line), strict=True)) for line in lines]
    expected = [float(row["mu1" if row["treatment"] == "1" else "mu0"]) for row in cells]
    assert load("ihdp", ihdp.load, target_scale="none").truth["mean"].tolist() == expected


def test_ricci_passes_at_seventy(load):
    data = load("ricci", ricci.load)
    assert data.target.tolist() == [int(score >= 70) for score in data.features["Combine"]]
    assert data.features["Combine"].tolist()[5] == 70 and data.target[5] == 1
    assert "Combine" not in load("ricci", ricci.load, keep_combined=False).features
    assert set(data.sensitive["race_white"]) == {"White", "not White"}


def test_credit_default_labels_undocumented_codes(load):
    data = load("credit_default", credit_default.load)
    assert "undocumented 0" in set(data.sensitive["education"])
    assert "ID" not in data.features


def test_oulad_keeps_the_enrolments_of_a_student_together(load):
    data = load("oulad", oulad.load)
    assert data.clusters.tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 0]
    assert "id_student" not in data.features


def test_student_can_leave_the_grades_out(load):
    data = load("student_mat", student.load, subject="mat")
    without = load("student_mat", student.load, subject="mat", keep_grades=False)
    assert set(data.features) - set(without.features) == {"G1", "G2"}
    assert data.sensitive["age"].tolist()[:3] == ["age < 18", "age >= 18", "age >= 18"]
    with pytest.raises(UserError, match="unknown dataset.subject 'art'"):
        load("student_mat", student.load, subject="art")


def test_communities_drops_keeps_or_imputes_incomplete_columns(load):
    dropped, kept, imputed = (
        load("communities", communities.load, incomplete_columns=how).features
        for how in ("drop", "keep", "impute")
    )
    assert set(kept) - set(dropped) == {"LemasSwornFT", "OtherPerCap"}
    assert kept["OtherPerCap"].isna().sum() == 1
    assert imputed["OtherPerCap"][3] == kept["OtherPerCap"].median()
    assert "communityname" not in kept
    assert dropped["racepctblack_above_0.2"].tolist()[:3] == [False, True, False]


def test_law_school_scales_grades(load):
    data = load("law_school", law_school.gpa)
    assert data.target.tolist()[:3] == [0, 0.5, 1]
    assert data.features.shape[1] == 4
    kusner = load("law_school_kusner", law_school.kusner)
    assert kusner.sensitive["sex"].tolist()[:2] == ["female", "male"]


def test_law_school_bar_keeps_gaps_and_reads_no_birth_year(load):
    data = load("law_school_bar", law_school_bar.bar)
    assert data.features["decile3"].isna().sum() == 5
    assert "unknown" in set(data.sensitive["race"])
    assert not {"DOB_yr", "age", "ID", "dnn_bar_pass_prediction"} & set(data.features)


def test_twins_reproduce_the_columns_of_the_paper(load):
    data = load("twins", twins.load)
    assert data.features.shape[1] == 19
    assert {"alcohol", "bord_0", "nprevistq", "pair"}.isdisjoint(data.features)
    assert data.target.tolist()[:3] == [0, 0.25, 1]
    assert data.clusters is None
    clean = load("twins", twins.load, columns="clean")
    gone = {"infant_id_0", "infant_id_1", "mort_0", "mort_1"}
    assert set(data.features) - set(clean.features) == gone


def test_twins_of_a_pair_share_a_cluster(load):
    pairs = load("twins", twins.load)
    data = load("twins", twins.load, unit="twin")
    assert len(data) == 2 * len(pairs)
    assert data.clusters.value_counts().tolist() == [2] * len(pairs)
    assert data.features["dbirwt"].tolist()[:2] == [
        pairs.features[f"dbirwt_{i}"][0] for i in (0, 1)
    ]
    assert data.features["heavier"].tolist()[:4] == [0, 1, 0, 1]
    assert data.target.tolist()[::2] == data.target.tolist()[1::2] == pairs.target.tolist()


def test_twins_files_of_unequal_length_are_refused(archive, save):
    files = dict(RAW["twins"]().files)
    path = "twins/twin_pairs_Y_3years_samesex.csv"
    save({**files, path: files[path].rsplit(b"\n", 2)[0] + b"\n"})
    with pytest.raises(DataError, match="Y_3years_samesex.csv: 11 rows: they differ"):
        twins.load(archive)


def test_twins_under_2000g_are_clustered_and_must_alternate(load, archive, save):
    data = load("twins_under2000g", twins.under_2000g)
    assert data.clusters.tolist() == [row // 2 for row in range(10)]
    raw = RAW["twins_under2000g"]()
    save(raw.with_cell(1, "treatment", "1"))
    with pytest.raises(DataError, match="rows do not alternate lighter"):
        twins.under_2000g(archive)


def test_acs_codes_are_categories_or_numbers(load):
    data = load("acs_income", acs.national, task="income")
    assert set(data.sensitive["race"]) == {"White", "Black"}
    assert str(data.features["OCCP"].dtype) == "category"
    assert list(data.features["OCCP"].cat.categories) == sorted(
        data.features["OCCP"].cat.categories, key=int
    )
    numeric = load("acs_income", acs.national, task="income", codes="numeric")
    assert len(onehot_names(numeric.features)) == 10
    assert "row" not in data.features


def test_acs_can_be_a_share_of_its_rows_and_two_of_its_races(load):
    whole = load("acs_income", acs.national, task="income")
    half = load("acs_income", acs.national, task="income", share=0.5)
    again = load("acs_income", acs.national, task="income", share=0.5)
    assert 0.2 < len(half.target) / len(whole.target) < 0.8
    assert half.features.equals(again.features)
    pair = load("acs_income", acs.national, task="income", races="white_and_black")
    assert set(pair.sensitive["race"]) == {"White", "Black"}
    with pytest.raises(UserError, match="dataset.share is 0"):
        load("acs_income", acs.national, task="income", share=0.0)
    with pytest.raises(UserError, match="races"):
        load("acs_income", acs.national, task="income", races="white")


def test_acs_refuses_a_race_that_is_no_code(archive, save):
    save(RAW["acs_income"]().with_cell(4, "RAC1P", "9"))
    with pytest.raises(DataError, match="column 'RAC1P', row 4: 10 is not one of 1, 2, 3"):
        acs.national(archive, task="income")


def test_acs_employment_checks_the_group_beside_the_race(archive, save):
    save(RAW["acs_employment_fu"]().with_cell(4, "group", "0"))
    with pytest.raises(DataError, match="column 'group' is not RAC1P - 1"):
        acs.employment_fu(archive)
