"""What a run was made for: comparisons leave demos and tuning out, and say so."""

import pytest

from fairbench.cli.main import run_command
from fairbench.core.errors import UserError
from fairbench.experiments.execute import Execution, Here, carry_out, plan
from fairbench.results.catalogue import Catalogue
from fairbench.results.index import listed_runs
from fairbench.results.run_writer import seal_run
from fairbench.results.runs import Run, read_environment
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


def test_a_purpose_is_no_part_of_what_a_run_is(results, tmp_path):
    ids = {plan(configuration(*SMALL, f"purpose={each}")).id for each in ("demo", "study")}
    assert len(ids) == 1
    with pytest.raises(UserError, match="unknown purpose 'dmo': did you mean demo"):
        plan(configuration(*SMALL, "purpose=dmo"))


@pytest.mark.parametrize(
    ("words", "runs"),
    [
        ((), 2),
        (("purpose=demo,study",), 3),
        (("purpose=[demo,study]",), 3),
        (("purpose=[demo,tuning,paper,study]",), 4),
    ],
)
def test_a_choice_leaves_demos_and_tuning_out_and_says_how_many(results, words, runs, capsys):
    run_command(["choose", "minimise=error_rate", f"results={results}", *words])
    printed = capsys.readouterr()
    assert f"The best of {runs} runs" in printed.out
    said = "note: 1 demo run and 1 tuning run are left out: purpose=[demo,tuning,paper,study] takes"
    assert (said in printed.err) == (not words)


def test_runs_that_are_named_count_whatever_they_were_made_for(results, capsys):
    run_command(["choose", *Catalogue(results).runs, f"results={results}", "minimise=error_rate"])
    printed = capsys.readouterr()
    assert "The best of 4 runs" in printed.out and "left out" not in printed.err


def test_a_tradeoff_and_lists_know_purposes(results, capsys):
    run_command(["tradeoff", "simulated", f"results={results}"])
    printed = capsys.readouterr()
    assert "simulated by group, 2 runs" in printed.out and "1 demo run" in printed.err
    run_command(["tradeoff", "simulated", "purpose=[tuning,study]", f"results={results}"])
    assert "simulated by group, 3 runs" in capsys.readouterr().out
    run_command(["store", "ls", "purpose=demo,tuning", f"results={results}"])
    assert "2 finished runs" in capsys.readouterr().out
    for words in (["choose", "purpose=dmo"], ["store", "ls", "purpose=dmo"]):
        with pytest.raises(UserError, match="unknown purpose 'dmo': did you mean demo"):
            run_command([*words, f"results={results}"])
    with pytest.raises(UserError, match="unknown purpose 'dmo'"):
        run_command(["tradeoff", "simulated", "purpose=dmo", f"results={results}"])


def test_a_leaderboard_of_demos_alone_says_what_takes_them_in(results, tmp_path):
    made(tmp_path / "demos", "gaussian_nb", "demo")
    with pytest.raises(UserError, match=r"no finished run \(1 demo run is left out: purpose="):
        run_command(["leaderboard", f"results={tmp_path / 'demos'}"])


def test_what_is_asked_for_as_a_study_becomes_one_and_fits_nothing(tmp_path):
    demo = made(tmp_path, "gaussian_nb", "demo")
    metrics = (demo.path / "metrics.parquet").stat().st_mtime_ns
    words = (*SMALL, "figures=false", "learner=gaussian_nb")
    for purpose, becomes in (("tuning", "tuning"), ("study", "study"), ("demo", "study")):
        planned = plan(configuration(*words, f"purpose={purpose}", results=tmp_path))
        for path in (tmp_path / "cells").rglob("*.parquet"):
            path.unlink()  # which a finished run does without
        (end,) = Execution([planned], Here()).carry_out()
        assert end.computed == 0 and not end.error
        assert Run(demo.path).purpose == becomes
        assert listed_runs(tmp_path)[0].purpose == becomes
    assert (demo.path / "metrics.parquet").stat().st_mtime_ns == metrics
    again = configuration(*words, "purpose=demo", "resume=false", results=tmp_path)
    carry_out(again)
    assert Run(demo.path).purpose == "study"


def test_records_of_earlier_versions_are_of_studies(tmp_path):
    run = made(tmp_path, "gaussian_nb", "demo")
    environment = read_environment(run.path)
    del environment["purpose"]
    seal_run(run.path, environment)
    (listed,) = Catalogue(tmp_path)
    assert (listed.purpose, listed.environment["data"]) == ("study", environment["data"])


def test_a_pack_keeps_purposes(results, tmp_path, capsys):
    pack = tmp_path / "pack"
    run_command(["store", "pack", f"results={results}", f"out={pack}"])
    assert sorted(run.purpose for run in Catalogue(pack)) == ["demo", "study", "study", "tuning"]
    run_command(["choose", "minimise=error_rate", f"results={pack}", "purpose=demo,study"])
    assert "The best of 3 runs" in capsys.readouterr().out
