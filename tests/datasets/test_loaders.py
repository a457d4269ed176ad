"""What each loader makes of its quirks, on generated files; its options, and whom it names."""

import inspect
import io
import re
import zipfile
from pathlib import Path

import folktables
import numpy as np
import pandas as pd
import pytest
import yaml

from fairbench.components.datasets import acs, acs_pums, dvlog
from fairbench.core.errors import DataError, UserError
from fairbench.data.features import onehot_names
from fairbench.data.splits import Predefined
from fairbench.experiments.build import _family_of
from tests.datasets.raw_files import (
    ENTRIES,
    FOLDER,
    HEAD,
    PARQUET,
    RAW,
    SECRETS,
    everything_said,
    npy,
    parquet,
    sequences,
)

MADE = yaml.safe_load(Path(__file__).with_name("loaded.yaml").read_text(encoding="utf-8"))


def part_of(data, path):
    """Return a part of a data set, such as ``sensitive.sex``."""
    name, _, column = path.partition(".")
    return getattr(data, name)[column] if column else getattr(data, name)


@pytest.mark.parametrize("case", MADE.values(), ids=MADE)
def test_a_loader_makes_of_its_file(case, load):
    data = load(case["task"], **case.get("options", {}))
    for path, values in case.get("first", {}).items():
        assert [*part_of(data, path)[: len(values)]] == pytest.approx(values, nan_ok=True), path
    for name, value in case.get("is", {}).items():
        assert getattr(data, name) == value, name
    for path, values in case.get("labels", {}).items():
        assert {*part_of(data, path).cat.categories} == {*values}, path
    for path, count in case.get("gaps", {}).items():
        assert part_of(data, path).isna().sum() == count, path
    features = {*data.features}
    assert len(features) == case.get("width", len(features))
    assert {*case.get("with", ())} <= features and not features & {*case.get("without", ())}


def test_adult_names_the_file_and_row_of_a_fault_in_the_test_file(load):
    content = (FOLDER / "adult/adult.test").read_bytes()
    fault = content.replace(b"40, Cuba, >50K.", b"4O, Cuba, >50K.", 1)
    sentence = "^adult/adult.test: column 'hours-per-week', row 2: '4O' is"
    with pytest.raises(UserError, match=sentence):
        load("adult", {"adult/adult.test": fault})


def test_what_contradicts_itself_is_refused(load):
    for task, row, column, value, sentence in (
        ("twins_under2000g", 1, "treatment", "1", "rows do not alternate lighter"),
        ("acs_income", 4, "RAC1P", "9", "column 'RAC1P', row 4: 10 is not one of 1, 2, 3"),
        ("acs_employment_fu", 4, "group", "0", "column 'group' is not RAC1P - 1"),
        ("loan_application", 3, "hispan", "1", "'hispan', row 3: both black and hispan are 1"),
    ):
        with pytest.raises(DataError, match=sentence):
            load(task, RAW[task].with_cell(row, column, value))


def test_compas_refuses_repeated_headers_that_differ(load):
    raw = RAW["compas"]
    head, (names, first, *lines) = raw.lines()
    cells = raw.split(first)
    cells[raw.names.index("priors_count")] = "77"
    with pytest.raises(DataError, match="the two columns named 'priors_count' differ"):
        load("compas", raw.with_lines(head, [names, raw.join(cells), *lines]))


def test_ihdp_knows_its_truth_in_the_targets_unit(load):
    data = load("ihdp")
    plain = load("ihdp", target_scale="none")
    low, span = plain.target.min(), np.ptp(plain.target.to_numpy())
    np.testing.assert_allclose(data.truth["mean"], (plain.truth["mean"] - low) / span)
    np.testing.assert_allclose(data.truth["sd"], 1 / span)


def test_twins_files_of_unequal_length_are_refused(load):
    path = "twins/twin_pairs_Y_3years_samesex.csv"
    lines = (FOLDER / path).read_bytes().splitlines(keepends=True)
    with pytest.raises(DataError, match="Y_3years_samesex.csv: 11 rows: they differ"):
        load("twins", {path: b"".join(lines[:-1])})


def test_acs_codes_are_categories_or_numbers(load):
    codes = [*load("acs_income").features["OCCP"].cat.categories]
    assert codes == sorted(codes, key=int)
    assert len(onehot_names(load("acs_income", codes="numeric").features)) == 10


def test_acs_can_be_a_share_of_its_rows(load):
    for task in ("acs_income", "acs_travel_time"):
        half, again = (load(task, share=0.5) for _ in range(2))
        assert 0.2 < len(half) / len(load(task)) < 0.8
        assert half.features.equals(again.features)


@pytest.mark.parametrize("task", PARQUET)
def test_a_parquet_file_is_read_and_half_of_one_is_refused(task, load):
    data = load(task)
    assert len(data) == len(data.features) > 0
    assert set(load(task, keep_sensitive=False).features) < set(data.features)
    for attribute in data.sensitive:
        assert data.groups(attribute).cat.categories[0] == data.privileged[attribute]
    path, content = PARQUET[task], parquet(PARQUET[task])
    with pytest.raises(DataError, match=f"{path}: not a Parquet file[^\n]*$"):
        load(task, {path: content[: len(content) // 2]})


def test_months_that_not_everybody_was_followed_are_refused(load):
    with pytest.raises(DataError, match="row 1: 60 months without a return"):
        load("recid", RAW["recid"].with_cell(1, "durat", "60"), months=65)


def test_the_files_of_the_web_are_read_alike(load):
    """They put row names in quotation marks, and write NA where nothing is known."""
    raw = RAW["resume"]
    head, (names, *lines) = raw.lines()
    rows = [raw.split(line) for line in lines]
    web = [",".join([f'"{row[0]}"', *(cell or "NA" for cell in row[1:])]) for row in rows]
    assert load("resume", raw.with_lines(head, [names, *web])).digest == load("resume").digest


def test_incomes_of_young_people_are_in_ordered_bands(load, archive):
    income = load("acs_mobility").features["PINCP"].to_numpy()
    bands = [10, 20.5, 100_000]
    data = acs.income_bands(archive, bands=bands)
    between = ("over 0.01K to 0.0205K", "over 0.0205K to 100K")
    assert data.classes == ("up to 0.01K", *between, "over 100K") and data.ordered
    expected = sum((income > band).astype(int) for band in bands)
    assert data.target.tolist() == expected.tolist() and expected.max() == 3
    assert "PINCP" not in data.features


def test_the_authors_files_are_read(archive, save):
    files = sequences()
    save(files)
    data = dvlog.load(archive)
    assert data.features.names == ("acoustic", "visual")
    assert [part.channels for part in data.features.parts] == [25, 136]
    assert data.features.lengths[:, 0].tolist() == list(range(20, 70, 5))
    assert data.features.lengths[4].tolist() == [40, 39]
    assert data.target.tolist() == [1, 0] * 5
    assert data.sensitive["sex"].tolist()[:4] == ["male", "female", "female", "male"]
    assert data.groups("sex").cat.categories[0] == "male"
    (fold,) = Predefined().folds(data, 0)
    assert fold.test.tolist() == [3, 7] and len(fold.train) == 8
    first = np.load(io.BytesIO(files["dvlog/0/0_acoustic.npy"]))
    np.testing.assert_allclose(data.features.parts[0].joined()[:20], first, rtol=1e-6)
    assert not data.redistributable


def test_where_to_ask_is_said_when_there_are_no_files(archive):
    with pytest.raises(DataError) as refused:
        dvlog.load(archive)
    assert "the raw file dvlog/labels.csv is missing" in str(refused.value)
    assert "sites.google.com/view/jeewoo-yoon/dataset" in str(refused.value)


VIDEO, LABELS, NO_ARRAY = "dvlog/3/3_visual.npy", "dvlog/labels.csv", "is no array of numbers"


def labels(line, head=HEAD):
    return f"{head}\n{line}\n".encode()


@pytest.mark.parametrize(
    ("path", "content", "sentence"),
    [
        (
            VIDEO,
            None,
            "^file 3/3_visual.npy not found beside dvlog/labels.csv, which names it; ask",
        ),
        (VIDEO, npy(np.array([{"a": 1}]), allow_pickle=True), f"{NO_ARRAY}: Object arrays cannot"),
        (VIDEO, b"<html>", f"3_visual.npy {NO_ARRAY}: "),
        (VIDEO, b"", f"3_visual.npy {NO_ARRAY}: "),
        (VIDEO, npy(np.ones(136)), f"3_visual.npy {NO_ARRAY}, frames x 136$"),
        (VIDEO, npy(np.ones((9, 25))), "3_visual.npy has 25 channels; visual frames have 136$"),
        (VIDEO, npy(np.ones((0, 136))), "^dvlog: visual of video 3 has no frames; a row has at"),
        (VIDEO, npy(np.full((9, 136), np.nan)), "missing or infinite in frame 0 of video 3$"),
        (LABELS, labels("0,sad,1,f,train"), "row 1: 'sad' is not one of depression, normal$"),
        (LABELS, labels("0,normal,1,f,dev"), "'fold', row 1: 'dev' is not one of test, train, val"),
        (LABELS, labels("../0,normal,1,f,train"), "index '../0' is no name of a folder$"),
        (LABELS, labels("0,normal,f,train", "index,label,gender,fold"), "duration"),
    ],
)
def test_a_spoilt_file_is_refused_in_one_line(path, content, sentence, archive, save):
    files = sequences() | {path: content}
    save({path: content for path, content in files.items() if content is not None})
    with pytest.raises(DataError, match=sentence) as refused:
        dvlog.load(archive)
    assert "\n" not in str(refused.value)


def test_missing_values_become_0_where_that_is_asked_for(archive, save):
    save({**sequences(), "dvlog/3/3_visual.npy": npy(np.full((9, 136), np.nan))})
    data = dvlog.load(archive, missing="zero")
    assert not data.features.take(np.array([3])).parts[1].joined().any()


@pytest.mark.parametrize("task", ["compas", "compas_violent"])
def test_made_up_persons_stay_out_of_data_and_of_messages_about_bad_files(task, load):
    with pytest.raises(DataError) as caught:
        load(task, RAW[task].with_cell(2, "age", "x"))
    text = everything_said(load(task)) + str(caught.value)
    for secret in SECRETS:
        assert secret not in text


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES)
def test_keys_are_the_loaders_keyword_parameters_which_are_documented(entry):
    archive, *others = inspect.signature(entry.function).parameters.values()
    assert archive.name == "archive"
    assert list(entry.options) == [each.name for each in others if each.kind is each.KEYWORD_ONLY]
    assert {*entry.options} - {"seed"} <= {*re.findall(r"\w+", inspect.getdoc(entry.function))}
    for text in (vars(entry.datasheet) | {"family": _family_of(entry.module)}).values():
        assert text and text == text.strip() and "  " not in text


def test_data_sets_of_the_same_people_or_source_are_one_family():
    family = {name: _family_of(entry.module) for name, entry in ENTRIES.items()}
    for parent, names in {
        "german": {"german", "south_german_credit"},
        "hmda_boston": {"hmda_boston", "loan_application"},
        "compas": {"compas", "compas_violent", "compas_zafar"},
        "student": {"student_mat", "student_por"},
        "acs": {name for name in family if name.startswith("acs")},
        "law_school": {name for name in family if name.startswith("law_school")},
        "recid": {"recid"},
    }.items():
        assert {name for name in family if family[name] == parent} == names
    simulated = ("sd1", "sd2", "sd3", "simulated", "simulated_sequences")
    assert {family[name] for name in simulated} == {"simulated"}


# The tasks of ACS: folktables' definitions, on census files of several years.


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
    asked = ("NY", ["NY", "CA"])
    one, two = (acs_pums.load(archive, task="employment", states=states) for states in asked)
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
