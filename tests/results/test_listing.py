"""Runs are listed and filtered by what was chosen; mistaken words are refused."""

import json
import shutil

import pytest

from fairbench.cli.verbs.store import runs_lines
from fairbench.core.errors import UserError
from fairbench.core.files import sealed_json, unsealed_json
from fairbench.results import index
from fairbench.results.catalogue import Catalogue, labels
from fairbench.results.run_writer import seal_run
from fairbench.results.runs import read_environment
from tests.studies import RECORD

CHOICES = {"split": "holdout", "learner": "xgboost", "intervention": "none", "evaluator": "default"}


@pytest.fixture
def results(tmp_path):
    runs = {
        "aa01": ("adult", "ensemble", "sex x race", 0),
        "aa02": ("adult", "binomial_nll", "sex", 0),
        "bb03": ("german", "ensemble", "sex", 7),
    }
    for run, (dataset, method, protect, seed) in runs.items():
        environment = {
            **RECORD,
            "choices": {**CHOICES, "dataset": dataset, "method": method},
            "protect": protect,
            "seed": seed,
            "name": f"{dataset}, {method}",
            "rows": "0123",
            "data": dataset,
        }
        folder = tmp_path / "runs" / run
        folder.mkdir(parents=True)
        depth = 6 if dataset == "adult" else 3
        learner = {"learner": {"max_depth": depth}, "label": None}
        seal_run(folder, environment | {"config": RECORD["config"] | learner})
    (tmp_path / "runs" / "cc04").mkdir()
    (tmp_path / "runs" / "cc05").mkdir()
    (tmp_path / "runs" / "cc05" / "environment.json").write_text("half a fi")
    return tmp_path


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], {"aa01", "aa02", "bb03"}),
        (["dataset=adult"], {"aa01", "aa02"}),
        (["dataset=adult,german", "method=ensemble"], {"aa01", "bb03"}),
        (["protect=sexxrace"], {"aa01"}),
        (["seed=7"], {"bb03"}),
        (["aa"], {"aa01", "aa02"}),
        (["bb", "aa02"], {"aa02", "bb03"}),
        (["aa", "method=ensemble"], {"aa01"}),
        (["intervention=reweighing"], set()),
        (["cc"], set()),
        (["learner.max_depth=6"], {"aa01", "aa02"}),
        (["learner.max_depth=3,6", "method=ensemble"], {"aa01", "bb03"}),
        (["learner.max_depth=9"], set()),
    ],
)
def test_words_choose_runs(results, words, expected):
    assert {run.id for run in Catalogue(results).matching(words)} == expected


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["dataset=germn"], "did you mean dataset=german? Values among the runs: adult, german"),
        (["method=conformal"], "no run has method=conformal; values among the runs: "),
        (["learner.max_depth=9"], "no run has learner.max_depth=9; values among the runs: 3, 6"),
        (["dataset=german", "seed=0"], "no run has dataset=german and seed=0 at once: "),
        (["zz"], "unknown run 'zz' in "),
    ],
)
def test_why_no_run_matches_is_said(results, words, sentence):
    assert sentence in Catalogue(results).why_none(words)


def test_a_run_that_is_not_named_is_asked_for(results):
    with pytest.raises(UserError, match="no run is named: give the beginning of its id"):
        Catalogue(results).one("")


def test_an_unknown_key_is_refused_with_the_nearest(results):
    with pytest.raises(UserError, match="unknown key 'methd': did you mean method"):
        Catalogue(results).matching(["methd=ensemble"])


def test_an_option_that_no_run_has_is_refused_with_the_nearest(results):
    with pytest.raises(
        UserError, match="option 'learner.max_dept': did you mean learner.max_depth"
    ):
        Catalogue(results).matching(["learner.max_dept=6"])


def test_what_all_runs_have_in_common_is_said_once(results):
    text = "\n".join(runs_lines(Catalogue(results)))
    assert text.count("xgboost") == 1
    assert "intervention=none" in text
    assert text.count("binomial_nll") == 1


def test_lines_fit_a_hundred_characters(results):
    path = results / "runs" / "dd06"
    shutil.copytree(results / "runs" / "aa01", path)
    environment = read_environment(path)
    environment["choices"] = {key: 40 * key[0] for key in environment["choices"]}
    seal_run(path, environment)
    lines = runs_lines(Catalogue(results))
    assert max(map(len, lines)) == 100
    assert all("…" in line for line in lines if line.startswith("dd06"))
    assert sum(line.startswith(("aa0", "bb0", "dd0")) for line in lines) == 4


def test_one_run_is_found_by_the_beginning_of_its_id_or_its_name(results):
    assert Catalogue(results).one("bb").id == "bb03"
    assert Catalogue(results).one("german, ensemble").id == "bb03"
    with pytest.raises(UserError, match="'aa' means 2 runs: aa01 .*, aa02 "):
        Catalogue(results).one("aa")
    with pytest.raises(UserError, match=r"finished runs: aa01 \(adult, ensemble\); aa02 \("):
        Catalogue(results).one("zz")
    for word in ("zz", "/aa"):
        with pytest.raises(UserError, match="unknown run .* in .*runs"):
            Catalogue(results).one(word)


def test_runs_are_selected_by_keys_and_options(results):
    catalogue = Catalogue(results)
    assert list(catalogue.select(dataset="adult").runs) == ["aa01", "aa02"]
    assert list(catalogue.select(dataset=["adult", "german"], method="ensemble").runs) == [
        "aa01", "bb03",
    ]  # fmt: skip
    assert list(catalogue.select(learner__max_depth=3).runs) == ["bb03"]
    assert not catalogue.select(learner__max_depth="3").runs
    assert catalogue.label() == {
        "aa01": "adult, ensemble, protect=sex x race, seed=0",
        "aa02": "adult, binomial_nll, protect=sex, seed=0",
        "bb03": "german, ensemble, protect=sex, seed=7",
    }
    assert list(catalogue.to_dataframe()["learner.max_depth"]) == [6, 6, 3]
    assert not catalogue.comparable()


def test_a_label_has_the_attribute_only_where_it_differs_on_one_data_set(results):
    runs = Catalogue(results).runs
    assert labels([runs["aa01"], runs["bb03"]]) == ["adult, seed=0", "german, seed=7"]
    assert labels([runs["aa02"], runs["bb03"]]) == [
        "adult, binomial_nll, seed=0", "german, ensemble, seed=7",
    ]  # fmt: skip
    assert labels([runs["aa02"]]) == ["binomial_nll"]


@pytest.mark.parametrize(("value", "cell"), [
    (2**53 - 1, 2**53 - 1), (2**53, str(2**53)), (-(2**53), str(-(2**53))), (True, True),
])  # fmt: skip
def test_a_whole_number_that_floating_point_cannot_hold_is_a_text(results, value, cell):
    path = results / "runs" / "aa01"
    environment = read_environment(path)
    environment["config"]["learner"]["max_depth"] = value
    seal_run(path, environment)
    frame = Catalogue(results).to_dataframe().set_index("run")
    assert frame.loc["aa01", "learner.max_depth"] == cell
    assert type(frame.loc["aa01", "learner.max_depth"]) is type(cell) or isinstance(cell, int)


@pytest.fixture
def indexed(results, monkeypatch):
    """Return a folder whose runs are in an index; the damaged one is not."""
    monkeypatch.setattr(index, "_PAYS", 1)
    monkeypatch.setattr(index, "_RECENT", -1.0)
    assert list(Catalogue(results).runs) == ["aa01", "aa02", "bb03"]
    monkeypatch.setattr(index, "_PAYS", 1000)
    return results


@pytest.fixture
def read(monkeypatch):
    """Return the list of runs whose records are read."""
    result = []

    def reading(path):
        result.append(path.name)
        return read_environment(path)

    monkeypatch.setattr(index, "read_environment", reading)
    return result


def listed(results):
    return runs_lines(Catalogue(results)), Catalogue(results).to_dataframe().to_dict("records")


def test_runs_of_an_index_are_listed_and_chosen_as_without_it(indexed, read):
    with_index = listed(indexed)
    assert set(read) == {"cc05"}
    assert list(Catalogue(indexed).matching(["learner.max_depth=3"]).runs) == ["bb03"]
    assert Catalogue(indexed).one("bb").finished == index.Run(indexed / "runs" / "bb03").finished
    (indexed / index.INDEX).unlink()
    assert listed(indexed) == with_index


def test_a_record_that_changed_is_read_again(indexed, read):
    record = indexed / "runs" / "aa01" / "environment.json"
    record.write_bytes(record.read_bytes().replace(b'"seed": 0', b'"seed": 1'))
    seal_run(indexed / "runs" / "aa02", read_environment(indexed / "runs" / "aa02") | {"seed": 3})
    catalogue = Catalogue(indexed)
    assert list(catalogue.runs) == ["aa02", "bb03"]
    assert catalogue.one("aa").seed == 3
    assert set(read) == {"aa01", "aa02", "cc05"}


def test_the_index_of_a_folder_that_was_copied_is_not_used(indexed, read, tmp_path):
    shutil.copytree(indexed / "runs", indexed / "copy" / "runs")
    shutil.copy2(indexed / index.INDEX, indexed / "copy")
    assert len(Catalogue(indexed / "copy")) == 3
    assert set(read) == {"aa01", "aa02", "bb03", "cc05"}


def test_a_damaged_index_is_not_used(indexed, read):
    path = indexed / index.INDEX
    whole = path.read_bytes()
    for content in (whole[:-40], whole.replace(b"adult", b"compa", 1), b"", b"{}", b"[]"):
        path.write_bytes(content)
        assert len(Catalogue(indexed)) == 3
        assert len(read) == 4
        read.clear()


def forged(indexed, change):
    """Seal an index that somebody changed."""
    path = indexed / index.INDEX
    path.write_text(sealed_json(change(unsealed_json(path.read_bytes()))))


def replaced(old, new):
    return lambda known: json.loads(json.dumps(known).replace(old, new))


def test_a_run_is_never_used_as_an_index_says_but_as_its_record_does(indexed):
    forged(indexed, replaced('"adult, ensemble"', '"german, ensemble"'))
    run = Catalogue(indexed).runs["aa01"]
    assert run.name == "german, ensemble"
    with pytest.raises(UserError, match=r"aa01/environment\.json is missing or damaged"):
        run.config  # noqa: B018


@pytest.mark.parametrize(
    "change",
    [
        replaced('"adult, ensemble"', '"\\u001b[31m"'),
        replaced('"adult, ensemble"', "7"),
        lambda known: known | {"values": []},
        lambda known: known | {"runs": {"aa01": [[1, 2], 3, 4]}},
        lambda known: known | {"runs": [1]},
    ],
)
def test_an_index_that_is_not_well_formed_is_not_used(indexed, read, change):
    forged(indexed, change)
    assert Catalogue(indexed).runs["aa01"].name == "adult, ensemble"
    assert "aa01" in read
