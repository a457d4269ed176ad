"""The table a run prints: its width, its rows, and what is undefined."""

import io
import json
import re
import shlex
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from matplotlib.path import Path

from fairbench import Evaluator, evaluate
from fairbench.cli.jobs import _job_name, _next_commands, _show_table, varied_names
from fairbench.cli.main import main
from fairbench.cli.verbs.store import _runs_lines
from fairbench.comparison.runs import load_predictions, predictions_frame
from fairbench.core.errors import UserError
from fairbench.data.dataset import Task
from fairbench.evaluation.summary import Headlines, summarise
from fairbench.evaluation.table import values_of
from fairbench.experiments.configuration import full_name
from fairbench.experiments.execute import carry_out
from fairbench.metrics import registry
from fairbench.metrics.registry import label as metric_label
from fairbench.reporting.charts import _outline_of, file_of, png_of, tradeoff_chart
from fairbench.reporting.document.model import Paragraph
from fairbench.reporting.page import write_report
from fairbench.reporting.runs import (
    _labels_in_words,
    _run_document,
    document_of,
    headline,
    runs_document,
    tidy,
    tradeoff_document,
)
from fairbench.results.catalogue import Catalogue
from fairbench.results.runs import Store
from fairbench.tracking import entries
from tests import harness
from tests.evaluation.labelled import labelled
from tests.harness import configuration, ran
from tests.studies import survey

COLUMNS = {"repeat": 0, "fold": 0, "variant": ""}


def metrics_of(group=("Male", "Female"), n=60, seed=0, **options):
    """Return the metrics of random predictions on two repeats."""
    draw, tables = np.random.default_rng(seed), []
    for repeat in range(2):
        score, target, labels = draw.random(n), draw.integers(2, size=n), draw.choice(group, n)
        given = {"score": score, "sensitive_features": {"sex": labels}, **options}
        table = evaluate(target, score > 0.5, **given)
        tables.append(table.assign(**{**COLUMNS, "repeat": repeat}))
    return pd.concat(tables, ignore_index=True)


def table_of_run(summary, name="", **options):
    """Return the headline table of a run, and its row of that name."""
    table = _run_document(summary, "a run", "sex", **options).tables[0]
    return table, next((row for row in table.rows if row[0] == name), None)


def printed(metrics, width=100, protect="sex"):
    document = _run_document(summarise(metrics), "adult, xgboost, baseline", protect)
    return harness.printed(document, width).splitlines()


@pytest.mark.parametrize(
    "group",
    [("Male", "Female"), ("A" * 60, "a very long label, of several words, of a small group")],
)
def test_the_table_fits_a_hundred_columns(group):
    lines = printed(metrics_of(group))
    assert max(map(len, lines)) <= 100
    assert lines[0].startswith("adult, xgboost, baseline")
    text = "".join("".join(line.split()) for line in lines)
    for label in group:
        assert label[:8].replace(" ", "") in text


def test_a_row_shows_mean_sd_interval_and_rows():
    metrics = metrics_of()
    summary = values_of(summarise(metrics)).set_index(["metric", "attribute", "group"])
    lines = [re.sub(" {2,}", "  ", line.strip()) for line in printed(metrics, width=140)]
    for *place, shown in (
        ("error_rate", "", "", "error rate"),
        ("equalized_odds", "sex", "", "gap in equalized odds  sex"),
        ("selection_rate", "sex", "Female", "selection rate  sex: Female"),
    ):
        row = summary.sort_index().loc[tuple(place)].squeeze()
        ends = "" if np.isnan(row["lower"]) else f"  {row['lower']:.3f} to {row['upper']:.3f}"
        cells = f"{shown}  {row['mean']:.4f}  {row['sd']:.4f}{ends}  {row['n']:.0f}"
        assert [line for line in lines if line.startswith(cells)]


def test_the_table_begins_with_what_labels_and_selected_mean():
    for task, facts, expected in (
        (Task.BINARY, {}, "The selection rate is the share predicted 1."),
        (Task.BINARY, {"positive_label": "bad risk", "favourable": 0},
         "Label 1 is 'bad risk'; the selection rate is the share predicted 1. Label 0 is good for "
         "the person."),
        (Task.MULTICLASS,
         {"classes": ("low", "middle", "high"), "ordered": True, "favourable": 2},
         "The classes are 'low', 'middle', 'high', in this order. The selection rate of a class is "
         "the share predicted to be in it. 'high' is good for the person."),
        (Task.REGRESSION, {},
         "The target, grade, is a number. The gap in selection rate is between the groups' shares "
         "of predictions above one value, where that gap is largest."),
    ):  # fmt: skip
        unknown = {"positive_label": "", "favourable": None, "classes": (), "ordered": False}
        about = SimpleNamespace(task=task, target_name="grade", **{**unknown, **facts})
        meaning = _labels_in_words(about)
        assert meaning == expected
        document = _run_document(summarise(metrics_of()), "a run", "sex", meaning=meaning)
        assert document.sections[0].blocks[0] == Paragraph(expected)


def test_a_ratio_says_whose_rate_is_divided_by_whose():
    for groups, expected in (
        (("Male", "Female"), "sex: {1} over {0}"),
        (("A", "B", "C"), "sex: smallest over largest"),
    ):
        summary = values_of(summarise(metrics_of(groups)))
        rate_rows = (summary["metric"] == "selection_rate") & (summary["group"] != "")
        rates = summary[rate_rows].set_index("group")["mean"]
        names = list(rates.index)
        table, row = table_of_run(summary, "ratio of selection rates")
        assert "of a gap those of its smallest group" in table.caption
        assert row[1] == expected.format(*names)
        if len(names) == 2:
            assert (row[2] > 1) == (rates[names[1]] > rates[names[0]])


def test_every_row_without_an_interval_says_why():
    metrics = metrics_of(uncertainty=np.linspace(0, 0.5, 60))
    row = {"metric": "fit_seconds", "attribute": "", "value": 1.0, "n": 60, "status": "ok"}
    cost = metrics.groupby("repeat").head(1).assign(**row, lower=np.nan, upper=np.nan, group="")
    summary = summarise(pd.concat([metrics, cost], ignore_index=True))
    rows = _run_document(summary, "a run", "sex").tables[0].rows
    without = {row[0]: row[-1] for row in rows if np.isnan(row[4][0])}
    assert without["spread error"] == "no known interval"
    assert without["fit seconds"] == "as measured"
    assert all(without.values())


def test_rows_of_a_gap_of_a_regression_are_those_of_all_groups():
    draw = np.random.default_rng(0)
    about = {"sensitive_features": {"sex": draw.choice(["f", "m"], 60)}, "task": "regression"}
    metrics = evaluate(*draw.normal(size=(2, 60)), **about)
    table, gap = table_of_run(summarise(metrics.assign(**COLUMNS)), "gap in selection rate")
    assert gap[5] == 60 and "of a gap those of all groups" in table.caption


def test_an_undefined_row_is_shown_with_its_reason():
    target, group = [0, 0, 0, 1, 1, 0] * 4, list("aaabbb") * 4
    table = evaluate(target, target, sensitive_features={"sex": group}).assign(**COLUMNS)
    lines = printed(table)
    assert max(map(len, lines)) <= 100
    assert any(re.match(r"\s*true positive rate +sex: a +- +- ", line) for line in lines)
    place = next(line.index("status") for line in lines if "status" in line)
    assert "undefined: no positives" in " ".join(" ".join(line[place:].split()) for line in lines)


def test_variants_and_attributes_other_than_the_protected_one_are_left_to_the_files():
    own = metrics_of()
    varied = metrics_of(seed=1).assign(variant="max_depth=5")
    race = own[own["attribute"] == "sex"].assign(attribute="race")
    both = pd.concat([varied, own, race], ignore_index=True)
    assert printed(both) == printed(own)
    assert set(headline(summarise(both), "race")["attribute"]) == {"", "race"}


def test_a_run_of_sets_shows_their_coverage_and_size_by_group():
    sets = {"set_0_90": [1.0] * 30 + [0.0] * 10, "set_1_90": [1.0] * 40}
    ones, score = [1.0] * 40, [0.6] * 40
    data = labelled([0.0, 1.0] * 20, "ab" * 20, prediction=ones, score=score, **sets)
    metrics = Evaluator().table(data, [np.random.default_rng(0)]).frame().assign(**COLUMNS)
    lines = printed(metrics, protect="g")
    (at,) = [i for i, line in enumerate(lines) if line.startswith("sets that promise 90%")]
    rows = {line.split("  ")[0]: line.split() for line in lines[at + 3 : at + 6]}
    assert {name: (cells[1], cells[-2]) for name, cells in rows.items()} == {
        "everyone": ("0.875", "0.000"), "a": ("0.750", "0.000"), "b": ("1.000", "0.000"),
    }  # fmt: skip


def table_of(document, title):
    """Return the one table of a document whose title begins so."""
    (table,) = [table for table in document.tables if table.title.startswith(title)]
    return table


def test_every_cell_of_the_classes_is_that_of_its_title():
    draw, names = np.random.default_rng(0), np.array(["low", "middle", "high"])
    label, group = draw.integers(3, size=300), draw.choice(["a", "b"], 300)
    predicted = np.where(draw.random(300) < 0.6, label, draw.integers(3, size=300))
    given = {"task": "multiclass", "sensitive_features": {"sex": group}}
    summary = summarise(evaluate(names[label], names[predicted], **given).assign(**COLUMNS))
    table = table_of(_run_document(summary, "a run", "sex"), "each class against the rest")
    titles = {
        "share": ("base_rate", ""),
        "predicted": ("selection_rate", ""),
        "found": ("true_positive_rate", ""),
        "false alarms": ("false_positive_rate", ""),
        "gap in predicted": ("statistical_parity", "sex"),
        "gap in found": ("equal_opportunity", "sex"),
    }
    values = values_of(summary).query("group == ''").set_index(["metric", "attribute", "outcome"])
    assert [row[0] for row in table.rows] == sorted(names)
    for name, *cells in table.rows:
        interval = None
        for column, cell in zip(table.columns[1:], cells, strict=True):
            if column.title == "95 % interval":
                assert cell == interval
                continue
            row = values.sort_index().loc[(*titles[column.title], name)].squeeze()
            interval = (row["lower"], row["upper"])
            assert cell == row["mean"]


def evaluated_by_sex(task, n=400):
    """Return the summary of predictions that are twice as uncertain of one group as of another."""
    draw = np.random.default_rng(0)
    women = draw.random(n) < 0.5
    twice = np.where(women, 2.0, 1.0) * draw.uniform(0.95, 1.05, n)
    if task == "regression":
        given = {"target": draw.normal(0, twice), "prediction": np.zeros(n), "sd": twice}
    else:
        score = twice / 4
        given = {"target": draw.random(n) < score, "prediction": score > 0.4, "score": score}
    sex = {"sex": np.where(women, "women", "men")}
    return summarise(evaluate(**given, task=task, sensitive_features=sex).assign(**COLUMNS))


@pytest.mark.parametrize(
    ("task", "uncertainty", "calibration", "statistic"),
    [
        ("binary", {"men": 0.375, "women": 0.5}, "expected_calibration_error", "debiased"),
        ("regression", {"men": 1, "women": 4}, "coverage", "value"),
    ],
)
def test_a_run_shows_how_uncertain_it_is_of_each_group_and_how_well_calibrated(
    task, uncertainty, calibration, statistic
):
    summary = evaluated_by_sex(task)
    table = table_of(_run_document(summary, "a run", "sex"), "uncertainty of each group of sex")
    titles = [column.title for column in table.columns]
    shown = calibration.removeprefix("expected_").replace("_", " ")
    assert titles == [
        *("group", "uncertainty", "95 % interval", "ratio", "95 % interval"),
        *(shown, "95 % interval", "rows", "status"),
    ]
    own = summary[(summary["metric"] == calibration) & (summary["statistic"] == statistic)]
    own = own[(own["level"].fillna(0.9) == 0.9) & (own["binning"] != "mass")]
    for group, value, ends, ratio, of_ratio, error, of_error, rows, status in table.rows:
        assert value == pytest.approx(uncertainty[group], rel=0.02)
        assert ends[0] <= value <= ends[1]
        (expected,) = own[(own["group"] == group)].itertuples()
        assert (error, *of_error) == (expected.mean, expected.lower, expected.upper)
        assert (rows, status) == (expected.n, "")
        assert (ratio is None) == (of_ratio is None) == (group == "men")
    assert table.rows[1][3] == pytest.approx(uncertainty["women"] / uncertainty["men"], rel=0.02)
    assert "ratio: over the uncertainty of men" in table.caption


def test_of_many_groups_unlike_everyone_else_the_surest_are_shown():
    columns = {"metric": "selection_rate", "attribute": "race", "group": [*"abcdefghij"]}
    unlike = pd.DataFrame({**columns, "value": np.linspace(0.1, 0.19, 10), "rest": 0.5, "n": 100})
    unlike.attrs["tests"] = 40
    many, few = (
        table_of(_run_document(summarise(metrics_of()), "a run", "sex", rows), "groups that differ")
        for rows in (unlike, unlike.head(8))
    )
    assert many.title.startswith("groups that differ from everyone else: 10 of 40 tested")
    assert "the 8 surest are shown" in many.caption and "surest" not in few.caption
    assert [list(row) for row in many.rows] == [
        ["selection rate", f"race: {row.group}", row.value, row.rest, row.n]
        for row in unlike.head(8).itertuples()
    ]


def test_groups_estimated_together_have_the_figures_of_the_summary():
    summary = summarise(metrics_of(("Male", "Female", "Other"), n=300))
    table = table_of(_run_document(summary, "a run", "sex"), "groups of sex, estimated together")
    rates = {row.metric for row in summary[summary["statistic"] == "pooled"].itertuples()}
    assert len(table.rows) == 3 * len(rates)
    by_place = summary.set_index(["metric", "statistic", "group"]).sort_index()
    for rate, group, raw, pooled, interval, worst, rows, _ in table.rows:
        metric = str(rate).replace(" ", "_")
        expected = by_place.loc[(metric, "pooled", group)].iloc[0]
        assert raw == by_place.loc[(metric, "value", group)].iloc[0]["mean"]
        assert worst == by_place.loc[(metric, "worst", group)].iloc[0]["mean"]
        assert (pooled, interval) == (expected["mean"], (expected["lower"], expected["upper"]))
        assert rows == expected["n"]


def test_what_chance_adds_to_a_gap_of_many_groups_stands_beside_it():
    """Twenty alike groups of fifty rows are 0.2 and more apart."""
    names = [f"g{place:02d}" for place in range(20)]
    document = _run_document(summarise(metrics_of(names, n=1000)), "alike", "sex")
    (table, *_) = document.tables
    assert [column.title for column in table.columns][2:4] == ["mean", "debiased"]
    (gap,) = [row for row in table.rows if row[0] == "gap in selection rate"]
    assert gap[2] > 0.2 and gap[3] < 0.6 * gap[2]
    widest = registry.metrics_of(registry.BINARY, "widest", "widest_mean").values()
    gaps = {metric.label for metric in widest if metric.better == "lower"}
    assert {row[3] for row in table.rows if row[0] not in gaps} == {None}
    assert "debiased: the gap less what chance adds" in table.caption
    pooled = table_of(document, "groups of sex, estimated together").caption
    rates = dict(re.findall(r"(selection rate|error rate) (\d\.\d{3})", pooled))
    assert set(rates) == {"selection rate", "error rate"}
    assert float(rates["selection rate"]) < 0.5 * gap[3]
    two = _run_document(summarise(metrics_of()), "alike", "sex").tables[0]
    assert "debiased" not in [column.title for column in two.columns]


# Tables of several runs: a sweep's end, `fairbench table`, and what tells runs apart.

QUICK = ("dataset.n_samples=300", "split.repeats=2", "method=baseline", "tracking=none")
SMALL = (*QUICK, "learner=gaussian_nb", "figures=false")


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """Return the folder of a small sweep and what it printed."""
    cwd = tmp_path_factory.mktemp("swept")
    words = ("-m", *QUICK, "learner.max_depth=2,4", "figures=false")
    return cwd / "results", ran(*words, cwd=cwd).stdout


@pytest.fixture
def runs(swept):
    """Return the runs of the sweep."""
    return Catalogue(swept[0])


def test_a_sweep_ends_with_its_table_and_what_to_do_next(swept, runs):
    text = swept[1]
    lines = [line for line in text.splitlines() if line.startswith("  finished: ")]
    names = [f"simulated, xgboost, baseline, learner.max_depth={depth}" for depth in (2, 4)]
    assert sorted(line.split(": ")[1] for line in lines) == names
    assert "2 runs of results" in text
    for run in runs:
        error, lower, upper = Headlines(run.summary(), run.protect).usual["error"]
        assert f"{error:.3f}" in text
        assert f"{lower:.2f} to {upper:.2f}" in text
    ids = [run[:6] for run in runs.runs]
    commands = [shlex.split(line) for line in text.splitlines() if line.startswith("  fairbench ")]
    assert [command[1] for command in commands] == ["report", "table", "compare"]
    assert set(ids) < set(commands[1]) and set(ids) < set(commands[2])
    result = _next_commands([*map(str, range(40))], runs, "elsewhere")  # of many, none is named
    assert result[1] == ["fairbench", "table", "all", "out=runs.csv", "results=elsewhere"]
    assert result[2][2:4] == ids


def test_no_comparison_of_weighted_runs_is_proposed_which_would_be_refused(tmp_path):
    sweep = ("-m", *survey(tmp_path)[1], "learner=gaussian_nb,logistic_regression")
    text = ran(*sweep, "evaluator.weights=true", cwd=tmp_path).stdout
    assert text.splitlines()[-1].startswith("  fairbench table ")


def test_what_varies_is_in_the_name_of_a_job():
    jobs = [("dataset=german", f"learner.max_depth={k // 2}", f"seed={k % 2}") for k in range(4)]
    varied = varied_names(jobs)
    assert varied == ["learner.max_depth", "seed"]
    expected = "german, xgboost, learner.max_depth=1, seed=1"
    assert _job_name("german, xgboost", jobs[3], varied) == expected


def test_tables_are_tidy_and_typed(swept, runs, capsys):
    assert main(["table", "all", "format=csv", f"results={swept[0]}"]) == 0
    frame = pd.read_csv(io.StringIO(capsys.readouterr().out), keep_default_na=False)
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


def test_a_file_is_written_as_it_is_called(swept, tmp_path, said_by):
    for name, begins, parts in (
        ("runs.csv", "run,name,", ["baseline, max_depth=2"]),
        ("runs.tex", "% Typeset it with", [r"max\_depth=2", r"\toprule"]),
        ("runs.md", "# 2 runs of", ["| id | run | accuracy | 95 % interval |"]),
    ):
        place, asked = tmp_path / name, ["metrics=[accuracy]"] * name.endswith("md")
        words = ["dataset=simulated", f"out={place}", f"results={swept[0]}", *asked]
        assert said_by("table", *words) == f"2 runs in {place}"
        content = place.read_text()
        assert content.startswith(begins) and all(part in content for part in parts)


def test_one_run_has_its_own_table(swept, runs, said_by):
    for words in ((), (next(iter(runs.runs)),)):
        text = said_by("table", *words, f"results={swept[0]}")
        assert "accuracy" in text and "files: " in text


def test_a_caption_explains_what_is_shown_and_calls_folds_folds():
    metrics = metrics_of(("a", "b", "c"))
    of_folds = metrics.assign(repeat=0, fold=metrics["repeat"])
    for table, splits in ((metrics, "repeats"), (of_folds, "folds")):
        document = _run_document(summarise(table), "a run", "sex")
        assert "of 2)" in harness.printed(document)  # a status that counts splits
        caption = document.tables[0].caption
        assert f"mean: over {splits}; sd: between {splits}; " in caption
        assert f"(1 of 3) for 1 of 3 {splits}" in caption
        for width, is_wide in ((100, False), (160, True)):
            printed = " ".join(harness.printed(document, width).split())
            assert ("sd: between" in printed) == (" sd " in printed) == is_wide
            assert ("rows: how many" in printed) == is_wide


@pytest.mark.parametrize("data", ["simulated", "simulated_classes"])
def test_what_choose_takes_otherwise_is_said_where_it_does(data, tmp_path):
    carry_out(configuration(*SMALL, f"dataset={data}", results=tmp_path))
    caption = runs_document(Catalogue(tmp_path)).tables[0].caption
    assert ("not the gap of mean rates as in choose" in caption) == (data == "simulated")


def test_tables_say_the_level_of_their_intervals(tmp_path):
    """A page's intervals of means are at the level of those of the splits, which they rest on."""
    carry_out(configuration(*SMALL, "evaluator.level=0.5", results=tmp_path))
    (half,) = Catalogue(tmp_path)
    heads = [column.title for table in document_of(half).tables for column in table.columns]
    assert "50 % interval" in heads and "95 % interval" not in heads
    assert "50 % interval" in half._repr_html_()
    page = write_report(tmp_path)[0].read_text()
    assert "50 % interval" in page and "95 % interval" not in page
    lower, upper = Headlines(half.summary(), half.protect).usual["error"][1:]
    assert f"{lower:.4f} to {upper:.4f}" in page
    carry_out(configuration(*SMALL, results=tmp_path))
    several = runs_document(Catalogue(tmp_path)).tables[0]
    assert "50 or 95 % interval" in [column.title for column in several.columns]


def test_what_is_not_there_is_refused(swept, refused):
    for words, message in (
        ("table zz", "unknown run 'zz' in"),
        ("table dataset=adult", "no run has dataset=adult; values among the runs: simulated"),
        ("table metrics=[accurracy] all", "none of these runs has a metric 'accurracy': did you"),
        ("table out=a.xlsx", "out=a.xlsx: end it in .csv, .tex or .md, or give format="),
        ("table datset=adult", "unknown key 'datset': did you mean dataset"),
        ("audit ./plan", "error: plan is not a file; unknown run 'plan' in "),
    ):
        refused(*words.split(), f"results={swept[0]}", message=message)


def test_rows_are_ordered_by_error_within_a_data_set(runs):
    (table,) = runs_document(runs).tables
    errors = [row[2] for row in table.rows]
    assert errors == sorted(errors)
    assert not table.rules
    assert "error is the error rate" in table.caption
    lines = _runs_lines(runs)
    assert lines[-3].split()[1] == "options"
    assert {line.split()[1] for line in lines[-2:]} == {"max_depth=2", "max_depth=4"}


def test_what_mlflow_is_told_tells_runs_apart(runs):
    assert {full_name(run.name, run.config) for run in runs} == {
        f"simulated, xgboost, baseline, n_samples=300, max_depth={depth}, repeats=2"
        for depth in (2, 4)
    }
    for run in runs:
        values = entries.latest_values(entries.logged_metrics(run))
        first = Headlines(run.summary(), run.protect).usual
        error, log_loss, _, gap = (values[name] for name in entries._opening_names("binary"))
        assert [error, log_loss, gap] == pytest.approx([figures[0] for figures in first.values()])
        told = entries.tags(run)
        assert (told[entries.RUN], told[entries.VERSION_TAG]) == (run.id, entries.VERSION)
        began, ended = entries.times(run)
        assert 0 < ended - began < 60_000
        assert ended == int(1000 * run.finished.timestamp())
        (tag,) = entries.data_set(run).tags
        known = entries.data_set(run).dataset
        assert (known.name, known.digest) == ("simulated", run.environment["data"])
        assert tag.key == "mlflow.data.context"


def test_an_audit_of_a_run_knows_its_repeat_what_is_favourable_and_what_belongs_together(
    swept, runs, tmp_path, capsys
):
    run = next(iter(runs))
    for repeat, more in ((0, []), (1, ["repeat=1"])):
        assert main(["audit", run.id, f"results={swept[0]}", f"out={tmp_path}", *more]) == 0
        printed = capsys.readouterr()
        assert f"Audit of {run.id}, repeat {repeat} of 0 to 1" in printed.out
        assert f"note: this is repeat {repeat} of 0 to 1 of run {run.id}" in printed.err
        assert "a decision for '1' is good for a person" in " ".join(printed.out.split())
    known = json.loads((tmp_path / "audit.json").read_text())["options"]
    assert (known["favourable"], known["cluster"]) == ("1", "")
    loaded = load_predictions(run)
    marks = pd.Series(range(len(loaded.people))) // 3
    clustered = replace(loaded, people=replace(loaded.people, clusters=marks))
    frame = predictions_frame(clustered, 0)
    assert (frame["cluster"] == frame["row"] // 3).all()
    assert "cluster" not in predictions_frame(loaded, 0)


def test_a_regression_is_audited_and_exported_as_numbers(tmp_path, capsys):
    results = tmp_path / "results"
    words = ("dataset=simulated_regression", "method=marginal", *harness.TINY)
    run = carry_out(configuration(*words, results=results)).plan
    assert main(["audit", run.id[:6], f"results={results}", f"out={tmp_path / 'page'}"]) == 0
    printed = capsys.readouterr()
    assert "epsilon=0.05 of the standard deviation of 'target'" in " ".join(printed.out.split())
    assert not printed.err
    assert main(["store", "export", run.id, f"{tmp_path}/run.csv", f"results={results}"]) == 0
    exported = pd.read_csv(tmp_path / "run.csv")
    assert exported["target"].nunique() > 2 and exported["prediction"].notna().all()


def test_a_run_of_several_repeats_says_where_its_posterior_is(tmp_path):
    for repeats, interval in ((2, "dirichlet"), (1, "dirichlet"), (2, "frequentist")):
        words = f"split.repeats={repeats}", f"evaluator.interval={interval}"
        run = carry_out(configuration(*SMALL, *words, results=tmp_path)).prepared
        caption = document_of(run.folder).tables[0].caption
        told = "interval=dirichlet: each of the repeats has intervals" in caption
        assert told == (repeats == 2 and interval == "dirichlet")


def test_a_run_is_audited_with_its_weights_and_clusters_and_so_is_its_export(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    words, rates = (*survey(tmp_path, "weight")[1], "learner=logistic_regression"), {}
    for weights in (True, False):
        run = carry_out(configuration(*words, f"evaluator.weights={weights}")).prepared
        metrics = run.folder.all_metrics().query("metric == 'base_rate' and attribute == ''")
        capsys.readouterr()
        assert main(["store", "export", run.folder.id, "run.csv", "people=true"]) == 0
        command = shlex.split(capsys.readouterr().out.splitlines()[-1])
        assert ("weight=weight" in command, "cluster=cluster" in command) == (weights, True)
        for page, audit in (("file", command[1:]), ("run", ["audit", run.folder.id])):
            page = tmp_path / f"{page}{weights}"
            assert main([*audit, f"out={page}", "formats=json"]) == 0
            table = pd.DataFrame(json.loads((page / "audit.json").read_text())["metrics"])
            row = table.query("metric == 'base_rate' and attribute == ''").iloc[0]
            for name in ("value", "lower", "upper"):
                assert row[name] == pytest.approx(metrics[name].iloc[0])
        rates[weights] = row["value"]
    assert rates[True] != pytest.approx(rates[False], abs=0.01)


def test_a_table_that_cannot_be_made_costs_a_line(runs, tmp_path, capsys, monkeypatch):
    def damaged(*arguments):
        raise UserError("summary.csv is damaged")

    monkeypatch.setattr("fairbench.cli.jobs.runs_document", damaged)
    _show_table([SimpleNamespace(id=next(iter(runs.runs)), store=Store(runs.folder))])
    assert "no table: summary.csv is damaged" in capsys.readouterr().out


# The picture and the table of a trade-off: marks, letters, ellipses and the key.

METRICS = ("statistical_parity", "equalized_odds", "equal_opportunity", "predictive_parity")
BASE = "xgboost, baseline"


def rows(metric):
    return pd.DataFrame({
        "metric": metric, "run": list("1234"), "learner": "xgboost",
        "intervention": ["none", "hardt", "none", "hardt"],
        "method": ["baseline", "baseline", "ensemble", "bag"],
        "error": [0.1, 0.3, 0.2, 0.4], "gap": [0.2, 0.1, 0.3, np.nan],
        "error_variance": 0.01**2, "covariance": -0.5 * 0.01 * 0.02, "gap_variance": 0.02**2,
        "dominated": [False, False, True, False], "certainty": [0, 0.1, 0.9, 0],
        "postprocessed_error": [0.1, np.nan, 0.1, np.nan], "left_out": [0, 1, 0, 2],
        "without_group": 0,
    })  # fmt: skip


CURVE = pd.DataFrame(
    {"constraint": "equalized_odds", "relaxation": [0.0, 1], "error": [0.3, 0.1], "gap": [0.0, 0.2]}
)


@pytest.fixture(scope="module")
def drawings():
    table = pd.concat([rows(metric) for metric in METRICS], ignore_index=True)
    return tradeoff_chart(table, CURVE, BASE)


def markers(panel):
    """Return place, colour of the filling and colour of the stroke of every run's marker."""
    marker = r'<g transform="translate\(([\d. ]+)\)"><path d="[^"]+" fill="(\S+)" stroke="(\S+)"'
    found = re.findall(marker + r"[^>]*/><title>([^<]*): error", panel)
    return [(tuple(map(float, place.split())), fill, stroke) for place, fill, stroke, _ in found]


@pytest.mark.thorough
def test_a_panel_a_metric_with_a_point_and_an_ellipse_a_run_a_frontier_and_a_key(drawings):
    *panels, key = drawings
    labels = [re.search(r"rotate\(-90\)[^>]*>([^<]*)<", panel)[1] for panel in panels]
    assert labels == [f"{metric_label(metric)} gap" for metric in METRICS]
    for panel in panels:
        assert len(re.findall(r'z" fill="none"', panel)) == 3
        assert 'y="204.0" text-anchor="end">0<' in panel  # the axis begins at 0
        assert len({place for place, *_ in markers(panel)}) >= 3
    drawn = [bool(re.search(r'd="M[^L"]+L[^L"]+" fill="none"', panel)) for panel in panels]
    assert drawn == [False, True, False, False]  # where its constraint is
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", key)
    assert texts[:2] == ["none, baseline", "hardt, baseline"]
    assert sorted(texts[2:4]) == ["hardt, bag", "none, ensemble"]
    assert texts[4].startswith(BASE)
    file = file_of(drawings, title="german by age", across=2)
    places = re.findall(r'<svg x="(\d+)" y="(\d+)"', file)
    assert [x for x, _ in places] == ["0", "374", "0", "374", "0"]
    assert len({y for _, y in places}) == 3
    assert 'class="title">german by age<' in file
    assert len(png_of(file)) > 10_000


def test_those_that_none_dominates_are_filled(drawings):
    *panels, _ = drawings
    for panel in panels:
        drawn = markers(panel)
        (xa, ya), (xb, yb) = sorted(place for place, fill, stroke in drawn if fill == stroke)
        (hollow,) = (place for place, fill, _ in drawn if fill == "#fff")
        assert xa < hollow[0] < xb and hollow[1] < ya < yb


def test_an_ellipse_holds_95_percent_of_its_normal():
    row = rows("equalized_odds").iloc[0]
    covariance = [[row.error_variance, row.covariance], [row.covariance, row.gap_variance]]
    draws = np.random.default_rng(0).multivariate_normal([row.error, row.gap], covariance, 20000)
    assert Path(_outline_of(row)).contains_points(draws).mean() == pytest.approx(0.95, abs=0.007)


def test_the_table_marks_and_orders_and_fits_in_100_columns():
    table = rows("equalized_odds")
    document = tradeoff_document(table, ["equalized_odds"], title="", base=BASE)
    lines = harness.printed(document).splitlines()
    printed = [line for line in lines if "baseline  " in line or "bag  " in line or "ble  " in line]
    assert printed[0].split("  ")[0] == "* none, baseline"
    assert "0.100 (0.010)  0.200 (0.020)" in printed[0]
    assert [line[0] for line in printed] == ["*", " ", "*", " "]
    assert printed[2].rstrip().endswith("-")
    assert max(map(len, lines)) <= 100
    assert "are left out of it, up to 2 of a run" in " ".join(" ".join(lines).split())
