"""Files in other projects' formats, most made by the others' own packages (written_by_others)."""

import json
import pickle
import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import fairbench
from fairbench.cli.main import main
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


def refusal(path, **options):
    """Return the line by which ranking a path is refused."""
    with pytest.raises(UserError) as caught:
        fairbench.rank(path, **options)
    line = str(caught.value)
    assert "\n" not in line and len(line) < 400
    return line


def test_the_harness_is_read_document_by_document_as_its_own_aggregates_say(tmp_path):
    table = benchmark_scores(LM_EVAL, ["acc"])
    assert table.format == "lm-evaluation-harness samples" and table.frame.shape == (16, 5)
    assert table.notes == ("what has no such score is left out: 1 task, said_squares",)
    assert set(table.frame["family"]) == {"choices"}
    copy = without(changed(tmp_path, LM_EVAL), "samples*")
    aggregates = benchmark_scores(copy, ["acc"])
    assert aggregates.format == "lm-evaluation-harness results"
    means = table.frame.groupby(["method", "task"])["acc"].mean()
    given = aggregates.frame.set_index(["method", "task"])["acc"].sort_index()
    pd.testing.assert_series_equal(means, given)
    both = fairbench.rank(copy, score=["acc", "exact_match/strict-match"]).answers[0]
    assert both.scores.values.shape == (2, 3) and both.units == 2  # families


def test_a_task_with_a_score_of_its_own_is_compared_by_it():
    table = benchmark_scores(LM_EVAL, ["acc", "exact_match/flexible-extract"])
    [score] = table.scores
    assert (score.name, score.better) == ("score", "higher")
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
    single = benchmark_scores(next(copy.rglob("samples_choice_again*")), ["acc"])
    assert single.frame["task"].unique().tolist() == ["choice_again"]


def test_a_task_without_samples_is_told_of(tmp_path):
    table = benchmark_scores(without(changed(tmp_path, LM_EVAL), "samples_said*"), ["acc"])
    assert "'said_squares' of birds__one" in table.notes[0] and "has no samples" in table.notes[0]


AGAIN = "samples_choice_again*"
DAMAGES = [
    (AGAIN, lambda text: text.replace('"doc_id": 1', '"id": 1'),
     "line 2, has no doc_id: its documents cannot be paired"),
    (AGAIN, lambda text: text + text, "document '0' of task 'choice_again' is there twice in"),
    (AGAIN, lambda text: text.replace('"doc_hash": "8', '"doc_hash": "0'),
     "document '0' of task 'choice_again' is not the same in all logs, such as"),
    (AGAIN, lambda text: text[:-200], "line 4, is not JSON (Unterminated string"),
    ("results_*", lambda text: '{"results": {"a": ' + "9" * 5000 + "}}", "is not JSON"),
    ("results_*", lambda text: '{"results": ' + "[" * 100_000, "recursion"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "change", "line"), DAMAGES)
def test_damaged_files_of_the_harness_are_refused_in_a_line(tmp_path, name, change, line):
    copy = changed(tmp_path, LM_EVAL, change, name)
    said = refusal(copy, score="acc")
    assert line in said and min(copy.rglob(name)).name.partition("_2")[0] in said


def test_a_second_run_is_refused_and_shots_tell_two_methods_apart(tmp_path):
    copy = changed(tmp_path, LM_EVAL)
    for path in [*copy.glob("birds__one/*")]:
        shutil.copy(path, path.with_name(path.name.replace("2026-11", "2026-12")))
    line = refusal(copy, score="acc")
    assert "are both of model 'birds/one' on task 'choice_again', with the same settings" in line
    [later] = without(copy, "samples*").glob("birds__one/results_2026-12*")
    later.write_text(re.sub(r'"((choice|said)_\w+)": 0\b', r'"\1": 5', later.read_text()))
    methods = {"birds/one shots=0", "birds/one shots=5", "birds/two"}
    assert set(benchmark_scores(copy, ["acc"]).frame["method"]) == methods


def test_what_is_no_log_is_left_out(tmp_path):
    copy = changed(tmp_path, LM_EVAL)
    (copy / "own.json").write_text('{"a": 1}')
    (copy / "own.csv").write_text("a,b\n1,2\n")
    (copy / "link.json").symlink_to(next(copy.rglob("results_*.json")))
    assert benchmark_scores(copy, ["acc_norm"]).frame["method"].nunique() == 2
    for path in (copy / "own.json", without(tmp_path, "*_*.json*")):
        assert "holds no results that are read here" in refusal(path)


@pytest.mark.parametrize(
    ("name", "content", "line"),
    [
        ("x.db", b"SQLite format 3\0" + bytes(100), "a database of SQLite"),
        ("x.pkl", pickle.dumps({"a": 1}), "a pickle, which is never opened"),
        ("x.json", b"{", "is not JSON"),
        ("x.eval", b"PK\x03\x04" + bytes(50), "by inspect_ai.analysis.samples_df, and rank that"),
        ("x.json", b'{"eval": {}, "samples": null}', "x.json is a log of inspect_ai: write its"),
        ("x.jsonl", b"", "holds no results"),
        ("x.html", b"<!doctype html><p>", "is not a table but a web page or XML"),
    ],
)
def test_a_file_that_is_no_result_is_refused(tmp_path, name, content, line):
    (tmp_path / name).write_bytes(content)
    assert line in refusal(tmp_path / name)


def test_tables_of_other_projects_are_known_by_their_columns(tmp_path, monkeypatch):
    """TabArena's, also as bencheval writes them, and benchopt's, whose curves end in a score."""
    tabarena = fairbench.rank(SAMPLES / "tabarena.csv", epsilon=0.1)
    (answer,) = tabarena.answers
    assert answer.scores.better == "lower" and answer.scores.cost.sum() == 8 * 3
    assert tabarena.document.data["notes"][0] == (
        "Columns taken by their names, as of TabArena results: method=framework, task=dataset, "
        "split=fold, score=metric_error, cost=time_train_s."
    )
    assert tabarena.difference("CatBoost (tuned)", "LightGBM (default)").value < 0
    text = "method,task,seed,metric_error,time_train_s\n"
    text += "".join(f"{of},t{n},0,0.{n}{e},1\n" for n in range(4) for e, of in enumerate("AB"))
    (tmp_path / "own.csv").write_text(text)
    assert fairbench.rank(tmp_path / "own.csv").answers[0].leader == "A"
    named = {"method": "framework", "task": "dataset", "split": "fold"}
    plain = fairbench.rank(SAMPLES / "tabarena.csv", score="metric_error_val", **named)
    assert plain.answers[0].scores.score == "metric_error_val"
    assert not any("TabArena" in note for note in plain.document.data["notes"])
    frame = pd.read_parquet(SAMPLES / "benchopt.parquet")
    assert b"benchopt-pkl" in frame["objective_path"].iloc[0]
    for name in ("load", "loads", "Unpickler"):  # by which it would be opened
        monkeypatch.setattr(pickle, name, None)
    (benchopt,) = fairbench.rank(SAMPLES / "benchopt.parquet").answers
    keys = ["solver_name", "dataset_name", "idx_rep"]
    last = frame.drop_duplicates(keys, keep="last").groupby("solver_name")["objective_value"].mean()
    assert benchopt.methods == ("fast", "slow") and benchopt.scores.better == "lower"
    assert benchopt.means == pytest.approx(last)


@pytest.mark.parametrize(
    ("name", "change", "line"),
    [
        ("tabarena.csv", lambda text: text.replace("0.21,", "a lot,"), "'a lot' is no number"),
        ("tabarena.csv", lambda text: text.partition("\n")[0] + "\n", "no rows below the header"),
        ("amlb.csv", lambda text: text, "say what such a score counts, crashed=worst"),
        ("amlb.csv", lambda text: text.replace("neg_", ""), "metric' holds logloss, of which low"),
    ],
)
def test_tables_of_results_that_are_wrong_are_refused(tmp_path, name, change, line):
    assert line in refusal(changed(tmp_path, SAMPLES / name, change))


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
        try:
            benchmark_scores(copy)
        except UserError as error:
            assert "\n" not in str(error) and len(str(error)) < 600


RANKED = [
    ("lm_eval", ["score=acc"], "birds/one"), ("tabarena.parquet", [], "CatBoost (tuned)"),
    ("amlb.csv", ["crashed=worst"], "flaml"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "words", "first"), RANKED)
def test_every_sample_is_ranked_by_the_command(name, words, first, tmp_path, capsys):
    assert main(["rank", str(SAMPLES / name), f"out={tmp_path / 'out'}", *words]) == 0
    page = json.loads((tmp_path / "out" / "rank.json").read_text())
    assert first in capsys.readouterr().out and page["options"]["path"] == name
    warnings = "Tasks have scores of several metrics", "All tasks are of one family, 'choices'"
    assert warnings[name == "lm_eval"] in " ".join(page["warnings"])


def test_a_score_of_several_is_named(refused):
    with_four = "4 scores: acc, acc_norm, exact_match/flexible-extract and exact_match/strict-match"
    refused("rank", str(LM_EVAL), message=with_four)
    refused("rank", str(LM_EVAL), "score=accc", message="did you mean acc")
