"""What a run was made for: comparisons leave demos and tuning out, and say so."""

import shutil

import pytest

from fairbench.cli.main import run_command
from fairbench.core.errors import UserError
from fairbench.experiments.execute import Execution, carry_out, in_process, plan_run
from fairbench.results.catalogue import Catalogue
from fairbench.results.catalogue import _listed_runs as listed_runs
from fairbench.results.runs import TABLES, Run, Store, read_environment, seal_run
from fairbench.results.upkeep import note_begun
from tests.harness import configuration

SMALL = ("dataset.n_samples=300", "split.repeats=2", "method=baseline", "tracking=none")
LEARNERS = ("logistic_regression", "gaussian_nb", "lightgbm")


def made(folder, learner, purpose, *more):
    """Make a run for a purpose; return it."""
    words = (*SMALL, "figures=false", f"learner={learner}", f"purpose={purpose}", *more)
    return carry_out(configuration(*words, results=folder)).prepared.folder


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Two runs of a study, and one each that was a demo and that tuning made."""
    folder = tmp_path_factory.mktemp("purposes") / "results"
    for learner in LEARNERS[:2]:
        made(folder, learner, "study")
    made(folder, "lightgbm", "demo")
    made(folder, "logistic_regression", "tuning", "learner.C=3")
    return folder


CHOSEN = [
    ([], 2),
    (["purpose=demo,study"], 3),
    (["purpose=[demo,tuning,paper,study]"], 4),
    (["named"], 4),  # these count whatever they were made for
]


@pytest.mark.thorough
@pytest.mark.parametrize(("words", "runs"), CHOSEN)
def test_a_choice_leaves_demos_and_tuning_out_and_says_how_many(results, words, runs, capsys):
    given = list(Catalogue(results).runs) if words == ["named"] else words
    run_command(["choose", "objective=error_rate", f"results={results}", *given])
    printed = capsys.readouterr()
    assert f"The best of {runs} runs" in printed.out
    said = "note: 1 demo run and 1 tuning run are left out: purpose=[demo,tuning,paper,study] takes"
    assert (said in printed.err) == (not words)


@pytest.mark.thorough
def test_a_tradeoff_and_lists_know_purposes(results, said_by, refused):
    where = f"results={results}"
    assert "simulated by group, 2 runs" in said_by("tradeoff", "simulated", where)
    some = said_by("tradeoff", "simulated", "purpose=[tuning,study]", where)
    assert "simulated by group, 3 runs" in some
    assert "2 finished runs" in said_by("store", "ls", "purpose=demo,tuning", where)
    unknown = "unknown purpose 'dmo': did you mean demo"
    for words in (["choose"], ["store", "ls"], ["tradeoff", "simulated"], ["run", *SMALL]):
        refused(*words, "purpose=dmo", where, message=unknown)


@pytest.mark.thorough
def test_what_is_asked_for_as_a_study_becomes_one_and_fits_nothing(tmp_path):
    demo = made(tmp_path, "gaussian_nb", "demo")
    metrics = (demo.path / TABLES).stat().st_mtime_ns
    words = (*SMALL, "figures=false", "learner=gaussian_nb")
    for purpose, becomes in (("tuning", "tuning"), ("study", "study"), ("demo", "study")):
        planned = plan_run(configuration(*words, f"purpose={purpose}", results=tmp_path))
        for path in (tmp_path / "cells").rglob("*.parquet"):
            path.unlink()  # which a finished run does without
        (end,) = Execution([planned], in_process).carry_out()
        assert end.computed == 0 and not end.error
        assert Run(demo.path).purpose == becomes
        assert listed_runs(tmp_path)[0].purpose == becomes
    assert (demo.path / TABLES).stat().st_mtime_ns == metrics
    carry_out(configuration(*words, "purpose=demo", "resume=false", results=tmp_path))
    assert Run(demo.path).purpose == "study"
    environment = read_environment(demo.path)
    del environment["purpose"]  # as records of earlier versions
    seal_run(demo.path, environment)
    (listed,) = Catalogue(tmp_path)
    assert (listed.purpose, listed.environment["data"]) == ("study", environment["data"])
    made(tmp_path / "demos", "gaussian_nb", "demo")
    with pytest.raises(UserError, match=r"no finished run \(1 demo run is left out: purpose="):
        run_command(["leaderboard", f"results={tmp_path / 'demos'}"])


@pytest.fixture(scope="module")
def three_runs(tmp_path_factory):
    """Two readings of one bag, which share their cells, and a run by itself."""
    folder = tmp_path_factory.mktemp("removable") / "results"
    ensemble = made(folder, "gaussian_nb", "study", "method=ensemble")
    selective = made(folder, "gaussian_nb", "demo", "method=selective_ensemble")
    alone = made(folder, "logistic_regression", "demo", "dataset.n_samples=200")
    return folder, [run.id for run in (ensemble, selective, alone)]


@pytest.fixture
def removable(three_runs, tmp_path):
    """Return a copy of them: the folder, and the runs."""
    shutil.copytree(three_runs[0], tmp_path / "results")
    return tmp_path / "results", *(Run(tmp_path / "results" / "runs" / i) for i in three_runs[1])


def files(folder):
    """Return path -> size of the files of a folder, but for its locks."""
    paths = [path for path in folder.rglob("*") if path.is_file() and "locks" not in path.parts]
    return {path: path.stat().st_size for path in paths}


@pytest.mark.thorough
def test_runs_are_removed_and_what_others_share_stays(removable, said_by):
    folder, ensemble, selective, alone = removable
    before, cells = files(folder), set(alone.cells())
    assert not cells & set(selective.cells()) and set(selective.cells()) == set(ensemble.cells())
    words = ["store", "rm", "purpose=demo", f"results={folder}"]
    said = said_by(*words, "dry_run=true")
    assert files(folder) == before
    assert "2 of 4 cells stay, as other runs share them" in said
    assert alone.id in said and selective.id in said and ensemble.id not in said
    done, after = said_by(*words), files(folder)
    freed = sum(size for path, size in before.items() if path not in after)
    freed = f"{freed / 1e6:.2f} MB ({freed:,} bytes)"
    assert f"would remove 2 runs and free {freed}" in said
    assert f"removed 2 runs and freed {freed}" in done
    assert list(Catalogue(folder).runs) == [ensemble.id]
    assert {path.stem for path in (folder / "cells").rglob("*.parquet")} == set(ensemble.cells())
    kept = said_by("store", "gc", "hours=0", "dry_run=true", f"results={folder}")
    assert "would free 0.00 MB" in kept and len(ensemble.predictions())


@pytest.mark.thorough
def test_what_is_not_there_or_not_one_is_refused_and_nothing_goes(removable, refused):
    folder, run, *_ = removable
    near = f"{run.id[:-1]}{'1' if run.id[-1] == '0' else '0'}"
    for words, message in (
        ([], "nothing is named: fairbench store rm RUN, or purpose=demo"),
        (["purpose=tuning"], "no run has purpose=tuning; values among the runs: "),
        (["purpose=demos"], "unknown purpose 'demos': did you mean demo"),
        (["pupose=demo"], "unknown key 'pupose': did you mean purpose"),
        ([near], f": did you mean {run.id}"),
        ([run.id, "nothing"], "unknown run 'nothing'"),
    ):
        refused("store", "rm", *words, f"results={folder}", message=message)
    assert len(Catalogue(folder)) == 3


def test_cells_of_a_sweep_that_was_broken_off_stay_when_a_run_of_it_is_removed(removable):
    folder, *_, alone = removable
    kept, gone = alone.cells()
    note_begun(Store(folder), ["another"], [kept])
    run_command(["store", "rm", alone.id, f"results={folder}"])
    assert Store(folder).has(kept) and not Store(folder).has(gone)
