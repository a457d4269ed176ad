"""What others wrote is ranked as it is: each sample of their formats, by one command."""

import json

import pytest

import fairbench
from fairbench.cli.main import main, run_command
from fairbench.core.errors import UserError
from tests.extensions.rank.test_benchmark_logs import SAMPLES

ADDED = {
    "lm_eval": ["score=acc"], "amlb.csv": ["crashed=worst"],
    "benchopt.parquet": ["score=objective_value"],
}  # fmt: skip
FIRST = {
    "lm_eval": "birds/one", "tabarena.csv": "CatBoost (tuned)",
    "tabarena.parquet": "CatBoost (tuned)", "amlb.csv": "flaml", "benchopt.parquet": "fast",
}  # fmt: skip


@pytest.mark.parametrize("name", FIRST)
def test_every_sample_is_ranked_by_the_command(name, tmp_path, capsys):
    words = [f"out={tmp_path / 'out'}", *ADDED.get(name, [])]
    assert main(["rank", str(SAMPLES / name), *words]) == 0
    captured = capsys.readouterr()
    assert f"note: {name} was read as " in captured.err
    page = json.loads((tmp_path / "out" / "rank.json").read_text())
    assert FIRST[name] in captured.out and page["options"]["path"] == name


def test_a_page_says_what_was_read_and_which_way_is_better_by_the_format():
    report = fairbench.rank(SAMPLES / "benchopt.parquet", score="objective_value")
    assert report.answers[0].scores.better == "lower"
    notes = " ".join(report.document.notes)
    assert "Benchopt runs: 2 methods, 2 tasks and 2 splits; objective_value (lower" in notes
    assert "Objective_path holds objects, which are not opened." in notes
    assert "is taken to be better" not in notes


def test_scores_in_several_units_are_warned_of(capsys):
    report = fairbench.rank(SAMPLES / "tabarena.csv")
    assert report.document.data["warnings"][0].startswith("Tasks have scores of several metrics")


def test_columns_that_are_named_are_read_as_in_any_table(capsys):
    named = {"method": "framework", "task": "dataset", "split": "fold"}
    path = SAMPLES / "tabarena.csv"
    plain = fairbench.rank(path, score="metric_error_val", **named)
    assert "was read as" not in capsys.readouterr().err
    assert plain.answers[0].scores.score == "metric_error_val"


def test_aggregates_are_ranked_where_items_are_not_wanted():
    items = fairbench.rank(SAMPLES / "lm_eval", score="acc")
    tasks = fairbench.rank(SAMPLES / "lm_eval", score=["acc", "exact_match/strict-match"],
                           item="none")  # fmt: skip
    assert (items.answers[0].unit, items.answers[0].scores.values.shape) == ("task", (2, 8))
    assert tasks.answers[0].scores.values.shape == (2, 3)
    assert tasks.answers[0].units == 2  # families
    assert "all tasks are of one family, choices" in items.document.data["warnings"][0].lower()


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["{samples}/lm_eval"], "4 scores: acc, acc_norm, exact_match/strict-match"),
        (["{samples}/lm_eval", "score=accc"], "did you mean acc"),
        (["{samples}/lm_eval", "score=acc", "method=who"], "lm_eval has no column 'who'"),
        (["{samples}/amlb.csv"], "say what such a score counts, crashed=worst"),
        (["{tmp}"], "holds no results that are read here (the folder is empty)"),
        (["{tmp}/none.csv"], "none.csv is not a file"),
    ],
)
def test_what_cannot_be_ranked_is_refused_in_a_line(words, line, tmp_path):
    with pytest.raises(UserError) as caught:
        run_command(["rank", *(word.format(samples=SAMPLES, tmp=tmp_path) for word in words)])
    assert line in str(caught.value) and "\n" not in str(caught.value)
