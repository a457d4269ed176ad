"""Runs are listed and filtered by what was chosen; mistaken words are refused."""

import json
import shutil
from itertools import count

import pytest

from benchmarks.stored import configured, copied, run_of
from fairbench.cli.verbs.store import _runs_lines
from fairbench.core.errors import UserError
from fairbench.core.files import sealed_json, unsealed_json
from fairbench.results import catalogue as listing
from fairbench.results.catalogue import Catalogue
from fairbench.results.record import GROUPS
from fairbench.results.runs import read_environment, seal_run
from tests.studies import RECORD


def of_id(start, changed):
    """Return a record whose id begins so, which the rounds of its learner make it."""
    records = (configured(RECORD, changed | {"learner.rounds": rounds}) for rounds in count())
    return next(record for record in records if run_of(record).startswith(start))


RECORDS = [
    of_id(start, {"dataset": dataset, "method": method, "seed": seed, "learner.max_depth": depth})
    | {"protect": protect, "rows": "0123", "data": dataset}
    for start, dataset, method, protect, seed, depth in (
        ("a1", "adult", "ensemble", "sex x race", 0, 6),
        ("a2", "adult", "binomial_nll", "sex", 0, 6),
        ("b3", "german", "ensemble", "sex", 7, 3),
    )
]
A1, A2, B3 = map(run_of, RECORDS)


@pytest.fixture
def results(tmp_path):
    for record in RECORDS:
        path = tmp_path / "runs" / run_of(record)
        path.mkdir(parents=True)
        seal_run(path, record)
    (tmp_path / "runs" / "cc04").mkdir()
    (tmp_path / "runs" / "cc05").mkdir()
    (tmp_path / "runs" / "cc05" / "environment.json").write_text("half a fi")
    return tmp_path


def test_words_choose_runs(results):
    for words, expected in (
        ([], {A1, A2, B3}),
        (["dataset=adult"], {A1, A2}),
        (["dataset=adult,german", "method=ensemble"], {A1, B3}),
        (["protect=sexxrace"], {A1}),
        (["seed=7"], {B3}),
        (["a"], {A1, A2}),
        (["b", A2], {A2, B3}),
        (["a", "method=ensemble"], {A1}),
        (["intervention=reweighing"], set()),
        (["cc"], set()),
        (["learner.max_depth=6"], {A1, A2}),
        (["learner.max_depth=3,6", "method=ensemble"], {A1, B3}),
        (["learner.max_depth=9"], set()),
    ):
        assert {run.id for run in Catalogue(results).matching(words)} == expected


def test_why_no_run_matches_is_said(results):
    for words, sentence in (
        (["dataset=germn"], "did you mean dataset=german? Values among the runs: adult, german"),
        (["method=conformal"], "no run has method=conformal; values among the runs: "),
        (["learner.max_depth=9"], "no run has learner.max_depth=9; values among the runs: 3, 6"),
        (["dataset=german", "seed=0"], "no run has dataset=german and seed=0 at once: "),
        (["zz"], "unknown run 'zz' in "),
    ):
        assert sentence in Catalogue(results).why_none(words)


def test_words_that_mean_no_run_or_several_are_refused_with_the_nearest(results):
    for find, words, said in (
        ("one", "", "no run is named: give the beginning of its id"),
        ("one", "a", f"'a' means 2 runs: {A1} .*, {A2} "),
        ("one", "zz", rf"unknown run .* in .*runs.* {A1} \(adult, .*\); {A2} \("),
        ("one", "/a", "unknown run .* in .*runs"),
        ("matching", ["methd=a"], "unknown key 'methd': did you mean method"),
        ("matching", ["learner.max_dept=6"], "'learner.max_dept': did you mean learner.max_depth"),
    ):
        with pytest.raises(UserError, match=said):
            getattr(Catalogue(results), find)(words)


def test_what_runs_have_in_common_is_said_once_in_lines_of_a_hundred_characters(results):
    text = "\n".join(_runs_lines(Catalogue(results)))
    assert text.count("xgboost") == text.count("binomial_nll") == 1
    assert "intervention=none" in text
    copied(results / "runs" / A1, of_id("d4", {group: 40 * group[0] for group in GROUPS}))
    lines = _runs_lines(Catalogue(results))
    assert max(map(len, lines)) == 100
    assert all("…" in line for line in lines if line.startswith("d4"))
    assert sum(line.startswith(("a1", "a2", "b3", "d4")) for line in lines) == 4


def test_runs_are_found_selected_and_labelled_by_what_differs(results):
    catalogue = Catalogue(results)
    assert catalogue.one("b").id == catalogue.one("german, xgboost, ensemble").id == B3
    some = catalogue.select(dataset=["adult", "german"], method="ensemble")
    assert list(some.runs) == [A1, B3]
    assert list(catalogue.select(learner__max_depth=3).runs) == [B3]
    assert not catalogue.select(learner__max_depth="3").runs
    assert catalogue.label() == {
        A1: "adult, ensemble, protect=sex x race, seed=0",
        A2: "adult, binomial_nll, protect=sex, seed=0",
        B3: "german, ensemble, protect=sex, seed=7",
    }
    # The attribute is named where it differs on one data set.
    assert some.label() == {A1: "adult, seed=0", B3: "german, seed=7"}
    assert catalogue.only({A2}).label() == {A2: "binomial_nll"}
    assert not catalogue.comparable()


@pytest.fixture
def indexed(results, monkeypatch):
    """Return a folder whose runs are in an index; the damaged one is not."""
    monkeypatch.setattr(listing, "_PAYS", 1)
    monkeypatch.setattr(listing, "_RECENT", -1.0)
    assert list(Catalogue(results).runs) == [A1, A2, B3]
    monkeypatch.setattr(listing, "_PAYS", 1000)
    return results


@pytest.fixture
def read(monkeypatch):
    """Return the list of runs whose records are read."""
    result = []

    def reading(path, parts):
        result.append(path.name)
        return read_environment(path, parts)

    monkeypatch.setattr(listing, "read_environment", reading)
    return result


def listed(results):
    return _runs_lines(Catalogue(results)), Catalogue(results).to_dataframe().to_dict("records")


def test_runs_of_an_index_are_listed_and_chosen_as_without_it(indexed, read):
    with_index = listed(indexed)
    assert set(read) == {"cc05"}
    assert list(Catalogue(indexed).matching(["learner.max_depth=3"]).runs) == [B3]
    assert Catalogue(indexed).one("b").finished == listing.Run(indexed / "runs" / B3).finished
    (indexed / listing.INDEX).unlink()
    assert listed(indexed) == with_index


def test_a_record_that_changed_is_read_again(indexed, read):
    record = indexed / "runs" / A1 / "environment.json"
    record.write_bytes(record.read_bytes().replace(b'"seed": 0', b'"seed": 1'))
    seal_run(indexed / "runs" / A2, RECORDS[1] | {"protect": "race"})
    catalogue = Catalogue(indexed)
    assert list(catalogue.runs) == [A2, B3]
    assert catalogue.one("a").protect == "race"
    assert set(read) == {A1, A2, "cc05"}


def test_the_index_of_a_folder_that_was_copied_is_not_used(indexed, read, tmp_path):
    shutil.copytree(indexed / "runs", indexed / "copy" / "runs")
    shutil.copy2(indexed / listing.INDEX, indexed / "copy")
    assert len(Catalogue(indexed / "copy")) == 3
    assert set(read) == {A1, A2, B3, "cc05"}


def replaced(old, new):
    return lambda known: json.loads(json.dumps(known).replace(old, new))


def forged(change):
    """Return how an index is sealed again that somebody changed."""
    return lambda content: sealed_json(change(unsealed_json(content))).encode()


PROTECT = '"sex x race"'
DAMAGE = {
    "cut": lambda content: content[:-40],
    "changed": lambda content: content.replace(b"adult", b"compa", 1),
    "empty": lambda content: b"{}",
    "signs": forged(replaced(PROTECT, '"\\ud800"')),
    "number": forged(replaced(PROTECT, "7")),
    "values": forged(lambda known: known | {"values": []}),
    "run": forged(lambda known: known | {"runs": {A1: [[1, 2], 3, 4]}}),
    "runs": forged(lambda known: known | {"runs": [1]}),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_an_index_that_is_damaged_or_not_well_formed_is_not_used(indexed, read, damage):
    path = indexed / listing.INDEX
    path.write_bytes(DAMAGE[damage](path.read_bytes()))
    runs = Catalogue(indexed).runs
    assert len(runs) == 3 and runs[A1].name == "adult, xgboost, ensemble"
    assert A1 in read


def test_a_run_is_never_used_as_an_index_says_but_as_its_record_does(indexed):
    path = indexed / listing.INDEX
    path.write_bytes(forged(replaced(PROTECT, '"colour"'))(path.read_bytes()))
    run = Catalogue(indexed).runs[A1]
    assert run.protect == "colour"
    with pytest.raises(UserError, match=rf"{A1}/environment\.json is missing or damaged"):
        run.config  # noqa: B018
