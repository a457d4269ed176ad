"""Files in other projects' formats, most made by the others' own packages (written_by_others)."""

import gzip
import json
import pickle
import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import fairbench
from fairbench.cli.main import main, run_command
from fairbench.core.errors import UserError
from fairbench_rank.sources import benchmark_scores, families
from tests.harness import quick

SAMPLES = Path(__file__).with_name("written_by_others")
LM_EVAL = SAMPLES / "lm_eval"


def changed(tmp_path, source, change=None, name=""):
    """Return a copy of a sample, the text of one of its files changed."""
    copy = tmp_path / source.name
    (shutil.copytree if source.is_dir() else shutil.copy)(source, copy)
    if change:
        path = min(copy.rglob(name)) if name else copy
        path.write_text(change(path.read_text()))
    return copy


def without(copy, pattern):
    """Return a copied sample without some of its files."""
    for path in copy.rglob(pattern):
        path.unlink()
    return copy


def refusal(path, scores=(), **options):
    """Return the line by which a path is refused."""
    with pytest.raises(UserError) as caught:
        benchmark_scores(path, scores, **options)
    line = str(caught.value)
    assert "\n" not in line and len(line) < 400
    return line


def test_the_harness_is_read_document_by_document_as_its_own_aggregates_say():
    table = benchmark_scores(LM_EVAL, ["acc"])
    assert table.sentence == (
        "lm-evaluation-harness samples: 2 methods, 2 tasks and 8 items; acc (right or wrong, "
        "higher is better)"
    )
    assert table.notes == ("no method has that score on said_squares, which is left out",)
    assert set(table.frame["family"]) == {"choices"}
    aggregates = benchmark_scores(LM_EVAL, ["acc"], items=False)
    assert aggregates.format == "lm-evaluation-harness results"
    means = table.frame.groupby(["method", "task"])["acc"].mean()
    given = aggregates.frame.set_index(["method", "task"])["acc"].sort_index()
    pd.testing.assert_series_equal(means, given)


def test_a_task_with_a_score_of_its_own_is_compared_by_it():
    table = benchmark_scores(LM_EVAL, ["acc", "exact_match/flexible-extract"])
    [score] = table.scores
    assert (score.name, score.better, score.binary) == ("score", "higher", True)
    assert table.frame["score"].notna().all() and table.frame["task"].nunique() == 3
    assert table.notes == (
        "every task has one score of its own (acc, exact_match/flexible-extract)",
    )
    both = benchmark_scores(LM_EVAL, ["acc", "acc_norm"])
    assert [score.name for score in both.scores] == ["acc", "acc_norm"]


def test_samples_alone_are_of_the_model_their_folder_is_called_after(tmp_path):
    copy = without(changed(tmp_path, LM_EVAL), "results_*.json")
    table = benchmark_scores(copy, ["acc"])
    assert set(table.frame["method"]) == {"birds__one", "birds__two"}
    assert "the model is called 'birds__one', as its folder is" in table.notes[0]
    single = benchmark_scores(next(copy.rglob("samples_choice_again*")), ["acc"])
    assert single.frame["task"].unique().tolist() == ["choice_again"]


def test_a_task_without_samples_is_told_of(tmp_path):
    table = benchmark_scores(without(changed(tmp_path, LM_EVAL), "samples_said*"), ["acc"])
    assert "'said_squares' of birds__one" in table.notes[0] and "has no samples" in table.notes[0]


AGAIN = "samples_choice_again*"
DAMAGES = [
    (AGAIN, lambda text: text.replace('"doc_id": 1', '"id": 1'),
     "line 2 has no doc_id: its documents cannot be paired"),
    (AGAIN, lambda text: text + text, "line 5: document '0' is there twice, with the filter"),
    (AGAIN, lambda text: text.replace('"doc_hash": "8', '"doc_hash": "0'),
     "document '0' of task 'choice_again' is another one in"),
    (AGAIN, lambda text: text[:-200],
     "line 4, ends before it is whole: get it again, or move it away"),
    ("results_*", lambda text: text.replace(": 0.75,", ": .75,", 1), "is not JSON (line"),
    ("results_*", lambda text: '{"results": {"a": ' + "9" * 5000 + "}}", "is not JSON"),
    ("results_*", lambda text: '{"results": ' + "[" * 100_000, "values are nested too deeply"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "change", "line"), DAMAGES)
def test_damaged_files_of_the_harness_are_refused_in_a_line(tmp_path, name, change, line):
    copy = changed(tmp_path, LM_EVAL, change, name)
    said = refusal(copy, ["acc"])
    assert line in said and min(copy.rglob(name)).name.partition("_2")[0] in said


def test_a_second_run_is_refused_and_shots_tell_two_methods_apart(tmp_path):
    copy = changed(tmp_path, LM_EVAL)
    for path in [*copy.glob("birds__one/*")]:
        shutil.copy(path, path.with_name(path.name.replace("2026-11", "2026-12")))
    line = refusal(copy, ["acc"])
    assert "are both of model 'birds/one' on task 'choice_again', with the same settings" in line
    [later] = without(copy, "samples*").glob("birds__one/results_2026-12*")
    later.write_text(re.sub(r'"((choice|said)_\w+)": 0\b', r'"\1": 5', later.read_text()))
    methods = {"birds/one shots=0", "birds/one shots=5", "birds/two"}
    assert set(benchmark_scores(copy, ["acc"]).frame["method"]) == methods


def test_results_of_two_formats_are_not_ranked_together(tmp_path):
    shutil.copytree(LM_EVAL, tmp_path / LM_EVAL.name)
    shutil.copy(SAMPLES / "amlb.csv", tmp_path)
    line = refusal(tmp_path)
    assert "holds results of several formats: AutoML benchmark results (amlb.csv)" in line
    assert line.endswith("name a folder of one")
    assert "is no file and no folder" in refusal(tmp_path / "none")


def test_what_is_no_result_is_left_out_and_told_of(tmp_path):
    copy = changed(tmp_path, LM_EVAL)
    (copy / "README.md").write_text("# runs")
    (copy / "own.csv").write_text("a,b\n1,2\n")
    (copy / "link.json").symlink_to(next(copy.rglob("results_*.json")))
    table = benchmark_scores(copy, ["acc_norm"])
    assert table.notes[:2] == (
        "README.md and 1 more are left out, as no results",
        "1 links or special files are not followed",
    )
    assert table.frame["method"].nunique() == 2


@pytest.mark.parametrize(
    ("name", "content", "line"),
    [
        ("x.db", b"SQLite format 3\0" + bytes(100), "if it is MLflow's, mlflow.search_runs()"),
        ("x.pkl", pickle.dumps({"a": 1}), "a pickle, which is never opened"),
        ("x.json", b'{"a": 1}', "holds no results that are read here"),
        ("x.json", b"{", "ends before it is whole"),
        ("x.zip", b"PK\x03\x04" + bytes(50), "x.zip"),
        ("x.eval", b"PK\x03\x04" + bytes(50), "by inspect_ai.analysis.samples_df, and rank that"),
        ("x.json", b'{"eval": {}, "samples": null}', "x.json is a log of inspect_ai: write its"),
        ("x.jsonl", b"", "holds no results"),
        ("x.html", b"<!doctype html><p>", "is not a table but a web page or XML"),
    ],
)
def test_a_file_that_is_no_result_is_refusal(tmp_path, name, content, line):
    (tmp_path / name).write_bytes(content)
    assert line in refusal(tmp_path / name)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_tabarena_s_results_are_errors_of_methods_on_data_sets_and_folds(suffix):
    table = benchmark_scores(SAMPLES / f"tabarena.{suffix}")
    assert table.sentence == (
        "TabArena results: 2 methods, 2 tasks and 2 splits; metric_error (lower is better)"
    )
    assert table.costs == ("time_train_s", "time_infer_s")
    assert table.warnings[0].startswith(
        "tasks have scores of several metrics (rmse, roc_auc), whose"
    )
    row = table.frame.query("method == 'CatBoost (tuned)' and task == 'diamonds' and split == '1'")
    assert row["metric_error"].item() == pytest.approx(535.3)


def test_bencheval_s_frame_is_one_of_tabarena_s(tmp_path):
    path = tmp_path / "own.csv.gz"
    text = "method,task,seed,metric_error,time_train_s\nA,t1,0,0.1,1\nB,t1,0,0.2,2\n"
    path.write_bytes(gzip.compress(text.encode()))
    columns = ["method", "task", "split", "metric_error", "time_train_s"]
    assert list(benchmark_scores(path).frame) == columns


def test_the_automl_benchmark_s_failures_stay_and_losses_are_negated(tmp_path):
    table = benchmark_scores(SAMPLES / "amlb.csv")
    assert table.scores[0].better == "higher" and table.costs == ("duration",)
    assert table.frame["result"].isna().sum() == 2
    assert "2 rows have no result: the framework failed there" in table.notes
    old = changed(
        tmp_path, SAMPLES / "amlb.csv",
        lambda text: text.replace("neg_logloss", "logloss").replace(",-0.1", ",0.1"),
    )  # fmt: skip
    again = benchmark_scores(old)
    pd.testing.assert_frame_equal(again.frame, table.frame)
    assert any("losses are negated" in note for note in again.notes)


def test_benchopt_s_curves_end_in_a_score_and_no_object_in_them_is_opened(tmp_path, monkeypatch):
    path = SAMPLES / "benchopt.parquet"
    frame = pd.read_parquet(path)
    assert b"benchopt-pkl" in frame["objective_path"].iloc[0]
    assert "2 scores: objective_value, objective_sparsity" in refusal(path)
    report = fairbench.rank(path, score="objective_value")
    assert report.answers[0].scores.better == "lower"
    notes = " ".join(report.document.notes)
    assert "Benchopt runs: 2 methods, 2 tasks and 2 splits; objective_value (lower" in notes
    assert "Objective_path holds objects, which are not opened." in notes
    assert "is taken to be better" not in notes
    frame.rename(columns={"dataset_name": "data_name"}).to_parquet(tmp_path / "old.parquet")
    frame.drop(columns="objective_path").to_csv(tmp_path / "new.csv", index=False)
    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(pickle, name, None)
    read, *others = (
        benchmark_scores(each, ["objective_value"]).frame
        for each in (path, tmp_path / "old.parquet", tmp_path / "new.csv")
    )
    means = read.groupby("method")["objective_value"].mean()
    assert means["fast"] < means["slow"]
    for other in others:
        pd.testing.assert_frame_equal(other, read)


def test_a_table_of_other_columns_is_left_to_the_columns_that_are_named(tmp_path, capsys):
    (tmp_path / "own.csv").write_text("model,dataset,auc\na,x,0.5\n")
    assert benchmark_scores(tmp_path / "own.csv") is None
    assert "own.csv has columns of its own: give the file itself, with method=" in refusal(tmp_path)
    named = {"method": "framework", "task": "dataset", "split": "fold"}
    plain = fairbench.rank(SAMPLES / "tabarena.csv", score="metric_error_val", **named)
    assert "was read as" not in capsys.readouterr().err
    assert plain.answers[0].scores.score == "metric_error_val"


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (lambda text: text.replace("0.21,", "a lot,"), "'a lot' in row 1, which is no number"),
        (lambda text: text + text.partition("\n")[2], "task 'credit-g', split '0' is there twice"),
        (lambda text: text.partition("\n")[0] + "\n", "has no rows"),
    ],
)
def test_tables_of_results_that_are_wrong_are_refused(tmp_path, change, line):
    assert line in refusal(changed(tmp_path, SAMPLES / "tabarena.csv", change))


def test_the_family_of_a_task_is_its_outermost_group():
    groups = {"mmlu": ["stem", "law"], "stem": ["algebra"], "loop": ["again"], "again": ["loop"]}
    outermost = {"stem": "mmlu", "law": "mmlu", "algebra": "mmlu"}
    assert families(groups) | {"loop": "", "again": ""} == outermost | {"loop": "", "again": ""}


ODD = (None, [], {}, [1], {"a": [1]}, "x", "", 5, -1.5, True, [[None]], {"a": {"b": {"c": 1}}})


def odd_texts(values, draw, count):
    """Yield what JSON holds as texts, with so many odd values in the place of each value."""
    holders = [values]
    for holder in holders:
        for key in [*holder] if isinstance(holder, dict) else range(len(holder)):
            kept = holder[key]
            holders += [kept] * isinstance(kept, dict | list)
            for odd in draw.choice(len(ODD), count, replace=False):
                holder[key] = ODD[odd]
                yield json.dumps(values)
            holder[key] = kept


@pytest.mark.parametrize("count", quick([1, 4], [1], rest=pytest.mark.slow))
@pytest.mark.parametrize("name", ["lm_eval/*one/results*", "lm_eval/*one/samples_said*"])
def test_odd_values_in_any_place_are_read_or_refused_in_a_line(tmp_path, name, count):
    [source] = SAMPLES.glob(name)
    lines = source.read_text().splitlines() if source.suffix == ".jsonl" else []
    values = json.loads(lines[1] if lines else source.read_text())
    values.pop("configs", None)  # large, and not read
    copy = tmp_path / source.name
    for text in odd_texts(values, np.random.default_rng(0), count):
        copy.write_text("\n".join([lines[0], text, *lines[2:]]) if lines else text)
        for items in (True, False):
            try:
                benchmark_scores(copy, items=items)
            except UserError as error:
                assert "\n" not in str(error) and len(str(error)) < 600


RANKED = [
    ("lm_eval", ["score=acc"], "birds/one"), ("tabarena.csv", [], "CatBoost (tuned)"),
    ("tabarena.parquet", [], "CatBoost (tuned)"), ("amlb.csv", ["crashed=worst"], "flaml"),
    ("benchopt.parquet", ["score=objective_value"], "fast"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "words", "first"), RANKED)
def test_every_sample_is_ranked_by_the_command(name, words, first, tmp_path, capsys):
    assert main(["rank", str(SAMPLES / name), f"out={tmp_path / 'out'}", *words]) == 0
    captured = capsys.readouterr()
    assert f"note: {name} was read as " in captured.err
    page = json.loads((tmp_path / "out" / "rank.json").read_text())
    assert first in captured.out and page["options"]["path"] == name
    mixed = "Tasks have scores of several metrics" in " ".join(page["warnings"])
    assert mixed == name.startswith(("tabarena", "amlb"))


def test_aggregates_are_ranked_where_items_are_not_wanted():
    items = fairbench.rank(SAMPLES / "lm_eval", score="acc")
    both = ["acc", "exact_match/strict-match"]
    tasks = fairbench.rank(SAMPLES / "lm_eval", score=both, item="none")
    assert (items.answers[0].unit, items.answers[0].scores.values.shape) == ("task", (2, 8))
    assert tasks.answers[0].scores.values.shape == (2, 3)
    assert tasks.answers[0].units == 2  # families
    assert "all tasks are of one family, choices" in items.document.data["warnings"][0].lower()


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["{samples}/lm_eval"], "4 scores: acc, acc_norm, exact_match/strict-match"),
        (["{samples}/lm_eval", "score=accc"], "did you mean acc"),
        (["{samples}/amlb.csv"], "say what such a score counts, crashed=worst"),
        (["{tmp}"], "holds no results that are read here (the folder is empty)"),
    ],
)
def test_what_cannot_be_ranked_is_refused(words, line, tmp_path):
    with pytest.raises(UserError, match=re.escape(line)):
        run_command(["rank", *(word.format(samples=SAMPLES, tmp=tmp_path) for word in words)])
