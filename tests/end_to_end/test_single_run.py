"""One run as a user starts it, bad input, and runs in whose groups metrics are undefined."""

import os
import signal
import subprocess

import numpy as np
import pandas as pd
import pytest

from fairbench.cli.main import main, run_command
from fairbench.core.errors import UserError
from fairbench.experiments.execute import carry_out
from fairbench.results.runs import Run
from tests.datasets.raw_files import FOLDER
from tests.harness import TINY, command, configuration, fairbench, quick, ran, run_folder, run_py

SMALL = ("split.repeats=3", "dataset.n_samples=400")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Return the folder of the default run, made once, and what it printed."""
    cwd = tmp_path_factory.mktemp("run")
    return cwd, run_py(*SMALL, cwd=cwd)


def test_default_run_prints_a_table_and_where_things_are(finished):
    cwd, done = finished
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert any("error rate" in line for line in lines)
    assert max(map(len, lines[:-1])) <= 100
    assert lines[-1].startswith("fitted 3 of 3 cells in ")
    assert f"files: results/runs/{run_folder(cwd / 'results').name}; MLflow: sqlite:" in lines[-1]


def test_run_folder_is_whole(finished):
    folder = run_folder(finished[0] / "results")
    assert set(Run(folder).all_metrics()["repeat"]) == {0, 1, 2}
    assert len(Run(folder).cells()) == 3
    assert Run(folder).config["dataset"]["n_samples"] == 400
    assert Run(folder).environment["versions"]["numpy"]
    figures = {path.name for path in (folder / "figures").iterdir()}
    expected = ("abstention", "group_rates", "reliability", "spread", "uncertainties")
    assert figures == {f"{name}.png" for name in expected}


def test_help_teaches(capsys):
    def of(*words):
        assert main(["run", *words]) == 0
        return capsys.readouterr().out

    printed, whole = of("--help"), of("--help", "all")
    assert "fairbench run dataset=german method=binomial_nll" in printed
    assert "seed=0           the seed that every random draw is made from" in printed
    assert "evaluator.draws=1000            posterior draws" in whole
    assert "fairlyuncertain/table1" in whole and "--help all" not in whole
    of_another = of("learner=lightgbm", "--help")
    assert "learner.num_leaves=31" in of_another and "learner.gamma" not in of_another


@pytest.mark.thorough
def test_one_class_in_training_is_undefined_not_wrong(tmp_path):
    rows = ["x,y,g"] + [f"{i % 7},{int(i == 0)},{'ab'[i % 2]}" for i in range(60)]
    (tmp_path / "rare.csv").write_text("\n".join(rows) + "\n")
    table = ("dataset=table", "dataset.path=rare.csv", "dataset.target=y", "dataset.sensitive=[g]")
    ran(*table, "split.repeats=6", "tracking=none", cwd=tmp_path)
    metrics = Run(run_folder(tmp_path / "results")).all_metrics()
    errors = metrics.query("metric == 'error_rate' and attribute == ''")
    undefined = errors[errors["value"].isna()]
    assert set(undefined["status"]) == {"undefined"}
    assert set(undefined["reason"]) == {"only class 0 among 48 training rows"}
    assert 0 < len(undefined) < 6


@pytest.mark.thorough
def test_interrupting_keeps_finished_cells(tmp_path):
    words = ("dataset.n_samples=20000", "method=ensemble", "split.repeats=40", "tracking=none")
    process = subprocess.Popen(
        command(*words), cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        # A shell's background jobs ignore interrupts, and their children with them.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    cells = tmp_path / "results" / "cells"
    while process.poll() is None and not list(cells.rglob("*.parquet")):
        pass
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted: finished cells are kept; the same command goes on" in error
    assert "Traceback" not in error


@pytest.mark.thorough
@pytest.mark.parametrize("date", ["abc", "", "-1", "1e9", "123456789012"])
def test_a_date_that_is_no_number_is_refused_before_any_library_reads_it(date, tmp_path):
    said = f"error: SOURCE_DATE_EPOCH is '{date}'; it must be a whole number of seconds since 1970"
    run = run_py(*TINY, cwd=tmp_path, SOURCE_DATE_EPOCH=date)
    for done in (run, fairbench("report", cwd=tmp_path, status=2, SOURCE_DATE_EPOCH=date)):
        assert (done.returncode, done.stderr) == (2, f"{said}: unset it\n")


@pytest.mark.thorough
def test_a_name_that_is_no_utf_8_is_shown_escaped(tmp_path):
    """Of the results folder, of a file or a folder in it, and of a file that is written."""
    run_py(*TINY, "learner=gaussian_nb", cwd=tmp_path)
    odd = (tmp_path / "results").rename(tmp_path / os.fsdecode(b"odd\xff"))
    name = os.fsdecode(b"x\xff\x1b[31m")
    for part in ("runs", "cells", "data", "splits"):
        (odd / part / name).touch()
        (odd / part / f"{name}.d").mkdir()
    (run,) = (path.name for path in (odd / "runs").iterdir() if path.name.isalnum())
    shown = r"odd\udcff"
    verbs = (["store", "ls"], ["store", "gc"], ["table", run], ["table", run, f"out={name}.csv"],
             ["report"], ["audit", run], ["sync"], ["store", "verify", run])  # fmt: skip
    for words in verbs:
        done = fairbench(*words, f"results={odd.name}", cwd=tmp_path)
        assert "\x1b" not in done.stdout and odd.name not in done.stdout
        assert shown in done.stdout or words[0] == "store" or len(words) > 2
    assert (tmp_path / f"{name}.csv").is_file()
    refused = run_py(*TINY, f"results={odd.name}", cwd=tmp_path)
    assert refused.returncode == 2
    assert refused.stderr.startswith(f"error: 'results={shown}' was not understood")


@pytest.mark.thorough
def test_a_run_of_unverified_files_is_marked_wherever_it_is_shown(tmp_path):
    raw = tmp_path / "raw" / "ricci" / "ricci.csv"
    raw.parent.mkdir(parents=True)
    header, *rows = (FOLDER / "ricci" / "ricci.csv").read_text().splitlines(keepends=True)
    raw.write_text("".join([header, *rows * 20]))  # made up, so that its checksum is another
    place = {"FAIRBENCH_DATA": str(tmp_path / "raw")}
    words = ("dataset=ricci", "learner=gaussian_nb", "split.repeats=1", "tracking=none")
    assert run_py(*words, cwd=tmp_path, **place).returncode == 2
    ran(*words, "data.verify=false", "figures=false", cwd=tmp_path, **place)
    (run,) = (tmp_path / "results" / "runs").iterdir()
    assert Run(run).config["dataset"]["verified"] is False
    assert "dataset=ricci-unverified" in fairbench("store", "ls", cwd=tmp_path).stdout
    assert "0 finished runs" in fairbench("store", "ls", "dataset=ricci", cwd=tmp_path).stdout
    shown = fairbench("store", "show", run.name, cwd=tmp_path).stdout
    assert "not verified (data.verify=false)" in shown
    fairbench("report", cwd=tmp_path)
    page = (tmp_path / "results" / "report" / "index.html").read_text()
    assert all(said in page for said in ("ricci-unverified", "data.verify=false"))
    assert "bit for bit" in fairbench("store", "verify", run.name, cwd=tmp_path, **place).stdout


@pytest.mark.thorough
def test_what_has_no_checksum_is_not_marked(tmp_path):
    for words in ((), ("data.verify=false",)):
        done = ran(*TINY, "figures=false", *words, cwd=tmp_path)
    assert "nothing to fit" in done.stdout
    (run,) = (tmp_path / "results" / "runs").iterdir()
    assert "verified" not in Run(run).config["dataset"]


def two_runs(folder, groups, repeats, *, rare=False):
    """Carry out two runs on 400 rows of some groups; if `rare`, three rows have label 1."""
    generator = np.random.default_rng(0)
    group = generator.integers(0, groups, 400)
    x = generator.normal(size=400)
    y = np.arange(400) < 3 if rare else x + generator.normal(size=400) > 0
    table = pd.DataFrame({"x": x, "group": [f"g{g:02d}" for g in group], "y": y.astype(int)})
    table.to_csv(folder / "table.csv", index=False)
    words = (
        "dataset=table", f"dataset.path={folder / 'table.csv'}", "dataset.target=y",
        "dataset.sensitive=[group]", f"split.repeats={repeats}", "tracking=none", "figures=false",
    )  # fmt: skip
    for learner in ("logistic_regression", "gaussian_nb"):
        carry_out(configuration(*words, f"learner={learner}", results=folder / "results"))
    return sorted(path.name for path in (folder / "results" / "runs").iterdir())


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize(
    ("groups", "repeats", "rare"),
    quick(
        [(1, 2, False), (2, 1, False), (8, 2, False), (15, 2, False), (40, 2, False)]
        + [(2, 2, True), (15, 1, True)],
        kept=[(2, 1, False), (15, 2, False)],
        several=True,
        rest=pytest.mark.slow,
    ),
)
def test_commands_answer_or_refuse_in_a_line(groups, repeats, rare, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    run, other = two_runs(tmp_path, groups, repeats, rare=rare)
    where, refused = "where=positive_predictive_value>=0", set()
    for words in (
        ["report"], ["leaderboard"], ["choose"], ["choose", "objective=predictive_parity", where],
        ["compare", "runs=all"], ["tradeoff", "dataset=table"], ["table", run],
        ["table", run, other, "out=both.csv"], ["audit", run],
    ):  # fmt: skip
        try:
            run_command([*words, f"results={tmp_path / 'results'}"])
        except UserError as error:
            assert "\n" not in str(error)
            refused.add(words[0])
    if (groups, repeats) == (15, 2):
        assert "chosen" in capsys.readouterr().out
        assert refused == {"leaderboard"}  # a group has no negatives, and is left out elsewhere
        page = (tmp_path / "results" / "report" / "index.html").read_text()
        assert "gap in selection rate gap</text>" in page
        assert "gap in equalized odds gap</text>" in page
