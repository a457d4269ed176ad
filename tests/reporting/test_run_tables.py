"""Tables of several runs: a sweep's end, `fairbench table`, and what tells runs apart."""

import io
import json
import shlex
from dataclasses import replace
from types import SimpleNamespace

import pandas as pd
import pytest

from fairbench.cli.main import main
from fairbench.cli.summary import job_name, next_commands, show_table, varied_names
from fairbench.cli.verbs.store import runs_lines
from fairbench.comparison.run_predictions import load_predictions, predictions_frame
from fairbench.core.errors import UserError
from fairbench.evaluation.headlines import headlines
from fairbench.experiments.configuration import full_name
from fairbench.experiments.execute import carry_out
from fairbench.reporting.run_tables import runs_table, tidy
from fairbench.results.catalogue import Catalogue
from fairbench.results.cells import Store
from fairbench.tracking.metrics import logged_values, opening_names
from fairbench.tracking.run_entry import RUN, VERSION, VERSION_TAG, data_set, tags, times
from tests.harness import configuration, run_py

SWEEP = (
    "-m", "dataset.n_samples=300", "split.repeats=2", "learner.max_depth=2,4", "method=baseline",
    "figures=false", "tracking=none",
)  # fmt: skip


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """Return the folder of a small sweep and what it printed."""
    cwd = tmp_path_factory.mktemp("swept")
    done = run_py(*SWEEP, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return cwd / "results", done.stdout


@pytest.fixture
def runs(swept):
    """Return the runs of the sweep."""
    return Catalogue(swept[0])


def said(capsys, *words):
    status = main(["table", *words])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_lines_of_a_sweep_tell_its_runs_apart(swept):
    lines = [line for line in swept[1].splitlines() if line.startswith("  finished: ")]
    assert sorted(line.split(": ")[1] for line in lines) == [
        "simulated, xgboost, baseline, max_depth=2",
        "simulated, xgboost, baseline, max_depth=4",
    ]


def test_a_sweep_ends_with_its_table_and_what_to_do_next(swept, runs):
    text = swept[1]
    assert "2 runs of results" in text
    for run in runs:
        error, lower, upper = headlines(run.summary(), run.protect)["error"]
        assert f"{error:.3f}" in text
        assert f"{lower:.2f} to {upper:.2f}" in text
    ids = [run[:6] for run in runs.runs]
    commands = [shlex.split(line) for line in text.splitlines() if line.startswith("  fairbench ")]
    assert [command[1] for command in commands] == ["report", "table", "compare"]
    assert set(ids) < set(commands[1]) and set(ids) < set(commands[2])


def test_commands_of_many_runs_name_none(runs):
    result = next_commands([str(i) for i in range(40)], runs, "elsewhere")
    assert result[1] == ["fairbench", "table", "all", "out=runs.csv", "results=elsewhere"]
    assert result[2][2:4] == [run[:6] for run in runs.runs]


def test_what_varies_is_in_the_name_of_a_job():
    jobs = [
        ("dataset=german", f"learner.max_depth={depth}", f"seed={seed}", "split=holdout")
        for depth in (1, 2)
        for seed in (0, 1)
    ]
    varied = varied_names(jobs)
    assert varied == ["learner.max_depth", "seed"]
    assert job_name("german, xgboost", jobs[1], varied) == "german, xgboost, max_depth=1, seed=1"
    both = ["learner.k", "method.k"]
    assert job_name("a", ("learner.k=1", "method.k=2"), both) == "a, learner.k=1, method.k=2"


def test_tables_are_tidy_and_typed(swept, runs, capsys):
    results = f"results={swept[0]}"
    status, text, _ = said(capsys, "all", "format=csv", results)
    frame = pd.read_csv(io.StringIO(text), keep_default_na=False)
    assert status == 0
    assert set(frame["run"]) == set(runs.runs)
    assert set(frame["name"]) == {"baseline, max_depth=2", "baseline, max_depth=4"}
    assert not frame.duplicated(["run", "metric", "attribute", "group"]).any()
    assert {"error_rate", "log_loss", "equalized_odds"} <= set(frame["metric"])
    own = tidy(runs, ["accuracy"])
    assert len(own[own["group"] == ""]) == 2
    assert list(own["metric"].unique()) == ["accuracy"]
    assert set(frame["statistic"]) == set(own["statistic"]) == {"value"}
    gap = tidy(runs, ["equalized_odds"])
    assert not gap.duplicated(["run", "metric", "statistic", "attribute", "group"]).any()
    assert {"value", "below_epsilon"} <= set(gap["statistic"])


def test_tables_for_a_paper(swept, capsys):
    results = f"results={swept[0]}"
    _, latex, _ = said(capsys, "all", "format=latex", results)
    assert latex.count(r"\\") == 3 and r"max\_depth=2" in latex and r"\toprule" in latex
    _, markdown, _ = said(capsys, "all", "metrics=[accuracy]", "format=markdown", results)
    assert "| id | run | accuracy | 95 % interval |" in markdown


@pytest.mark.parametrize("name", ["runs.csv", "runs.tex", "runs.md"])
def test_a_file_is_written_as_it_is_called(swept, tmp_path, capsys, name):
    place = tmp_path / name
    status, text, _ = said(capsys, "dataset=simulated", f"out={place}", f"results={swept[0]}")
    assert (status, text) == (0, f"2 runs in {place}\n")
    begins = {"csv": "run,name,", "tex": "% 2 runs of", "md": "# 2 runs of"}
    assert place.read_text().startswith(begins[place.suffix[1:]])


def test_one_run_has_its_own_table(swept, runs, capsys):
    for words in ((), (next(iter(runs.runs)),)):
        _, text, _ = said(capsys, *words, f"results={swept[0]}")
        assert "accuracy" in text and "files: " in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("zz",), "unknown run 'zz' in"),
        (("dataset=adult",), "no run has dataset=adult; values among the runs: simulated"),
        (
            ("metrics=[accurracy]", "all"),
            "none of these runs has a metric 'accurracy': did you mean",
        ),
        (("out=a.xlsx",), "out=a.xlsx: end it in .csv, .tex or .md, or give format="),
        (("datset=adult",), "unknown key 'datset': did you mean dataset"),
    ],
)
def test_what_is_not_there_is_refused(swept, capsys, words, message):
    status, _, error = said(capsys, *words, f"results={swept[0]}")
    assert status == 2 and message in error and error.count("\n") == 1


def test_rows_are_ordered_by_error_within_a_data_set(runs):
    table = runs_table(runs)
    errors = [row[2] for row in table.rows]
    assert errors == sorted(errors)
    assert not table.rules
    assert "error is the error rate" in table.caption


def test_what_mlflow_is_told_tells_runs_apart(runs):
    names = {full_name(run.name, run.config) for run in runs}
    assert names == {
        f"simulated, xgboost, baseline, n_samples=300, max_depth={depth}, repeats=2"
        for depth in (2, 4)
    }
    for run in runs:
        values, first = logged_values(run), headlines(run.summary(), run.protect)
        error, log_loss, _, gap = (values[name] for name in opening_names("binary"))
        assert [error, log_loss, gap] == pytest.approx([figures[0] for figures in first.values()])
        told = tags(run, run.environment)
        assert (told[RUN], told[VERSION_TAG]) == (run.id, VERSION)
        began, ended = times(run)
        assert 0 < ended - began < 60_000
        assert ended == int(1000 * run.finished.timestamp())
        (tag,) = data_set(run).tags
        known = data_set(run).dataset
        assert (known.name, known.digest) == ("simulated", run.environment["data"])
        assert tag.key == "mlflow.data.context"


def test_an_audit_of_a_run_knows_what_is_favourable_and_what_belongs_together(
    swept, runs, tmp_path, capsys
):
    run = next(iter(runs))
    assert main(["audit", run.id, f"results={swept[0]}", f"out={tmp_path}"]) == 0
    assert "a decision for '1' is good for a person" in " ".join(capsys.readouterr().out.split())
    known = json.loads((tmp_path / "audit.json").read_text())["options"]
    assert (known["favourable"], known["cluster"]) == ("1", "")
    loaded = load_predictions(run)
    marks = pd.Series(range(len(loaded.people))) // 3
    clustered = replace(loaded, people=replace(loaded.people, clusters=marks))
    frame = predictions_frame(clustered, 0)
    assert (frame["cluster"] == frame["row"] // 3).all()
    assert "cluster" not in predictions_frame(loaded, 0)


def test_an_audit_of_a_run_says_which_of_its_repeats_it_is_of(swept, runs, tmp_path, capsys):
    run = next(iter(runs))
    words = ["audit", run.id, f"results={swept[0]}"]
    for repeat, more in ((0, []), (1, ["repeat=1"])):
        assert main([*words, *more, f"out={tmp_path / str(repeat)}"]) == 0
        printed = capsys.readouterr()
        assert f"Audit of {run.id}, repeat {repeat} of 0 to 1" in printed.out
        assert f"note: this is repeat {repeat} of 0 to 1 of run {run.id}" in printed.err


def test_a_regression_is_audited_and_exported_as_numbers(tmp_path, capsys):
    results = tmp_path / "results"
    words = ("dataset=simulated_regression", "dataset.n_samples=200", "method=marginal")
    run = carry_out(configuration(*words, "split.repeats=1", "tracking=none", results=results)).plan
    assert main(["audit", run.id[:6], f"results={results}", f"out={tmp_path / 'page'}"]) == 0
    printed = capsys.readouterr()
    assert "epsilon=0.05 of the standard deviation of 'target'" in " ".join(printed.out.split())
    assert not printed.err
    assert main(["store", "export", run.id, f"{tmp_path}/run.csv", f"results={results}"]) == 0
    exported = pd.read_csv(tmp_path / "run.csv")
    assert exported["target"].nunique() > 2 and exported["prediction"].notna().all()


def test_an_audit_of_neither_a_file_nor_a_run_says_so(swept, capsys):
    assert main(["audit", "./plan", f"results={swept[0]}"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: plan is not a file; unknown run 'plan' in ")
    assert error.count("\n") == 1


def test_a_list_of_runs_tells_them_apart_by_their_options(runs):
    lines = runs_lines(runs)
    assert lines[-3].split()[1] == "options"
    assert {line.split()[1] for line in lines[-2:]} == {"max_depth=2", "max_depth=4"}


def test_a_table_that_cannot_be_made_costs_a_line(runs, tmp_path, capsys, monkeypatch):
    def damaged(*arguments):
        raise UserError("summary.csv is damaged")

    planned = SimpleNamespace(id=next(iter(runs.runs)), store=Store(runs.folder))
    monkeypatch.setattr("fairbench.reporting.run_tables.runs_document", damaged)
    show_table([planned])
    assert "no table: summary.csv is damaged" in capsys.readouterr().out
