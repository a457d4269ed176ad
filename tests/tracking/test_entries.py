"""Names of metrics in MLflow: only such as it takes, one for each metric."""

import json
import posixpath
import re
import socket
from pathlib import Path

import pandas as pd
import pytest

from fairbench import Evaluator, evaluate
from fairbench.cli.verbs.sync import _serve
from fairbench.core.errors import UserError
from fairbench.core.files import write_cache
from fairbench.evaluation.summary import HEADLINES, summarise
from fairbench.tracking import entries
from fairbench.tracking.database import stamp
from fairbench.tracking.importer import NOTE, _Entry, _Note, _write_note, read_note

# mlflow.utils.validation: on Windows, too, a name has these characters and is a normal path.
ALLOWED, LONGEST = re.compile(r"[/\w.\- ]*"), 250
LABELS = [
    ">=25", "<25", "age < 25", "a+b", "Other / unknown", "/", ".", "..", "../x", "x/", "/x",
    "Español", "a\nb", "<=$50K", "50%", "a:b", "Male|Female", "x" * 300, "",
]  # fmt: skip


def allowed(name):
    path = posixpath.normpath(name)
    unique = path == name and name != "." and not path.startswith(("..", "/"))
    return bool(ALLOWED.fullmatch(name)) and unique and len(name) <= LONGEST


def metrics_of(labels, attribute="age"):
    labels = list(labels) * 8
    target = [(i // 2) % 2 for i in range(len(labels))]
    score = [(i * 7 % 10) / 10 for i in range(len(labels))]
    table = evaluate(
        target, [int(s > 0.5) for s in score], score=score, uncertainty=score,
        sensitive_features={attribute: labels}, evaluator=Evaluator(draws=100),
    )  # fmt: skip
    return table.assign(repeat=0, fold=0, variant="")


def means(table):
    return entries._means_of(summarise(table, intervals=False))


def logged(table, attribute="age"):
    return dict(entries._values(means(table), attribute))


ATTRIBUTES = [".", "sex/race", "<x>", "sex x age", "y" * 240]


@pytest.mark.parametrize(
    ("label", "attribute"),
    [*((label, "age") for label in LABELS), *(("a", attribute) for attribute in ATTRIBUTES)],
    ids=ascii,
)
def test_any_label_and_attribute_give_names_that_mlflow_takes(label, attribute):
    rows = means(metrics_of([label, f"{label}2", "b"], attribute))
    names = [name for name, _ in entries._values(rows, attribute)]
    assert len(set(names)) == len(names) > 50
    assert [name for name in names if not allowed(name)] == []


def test_labels_that_are_spelled_alike_have_metrics_of_their_own():
    """Those that MLflow can write, and all without a namesake, stay plain."""
    alike = ["A+", "A-", "A(", "at least 25", ">= 25", ".", "<25"]
    names = [name for name in logged(metrics_of(alike, "b"), "b") if re.match("b/.*/sel", name)]
    assert len(names) == len(alike)
    assert {f"b/{plain}/selection_rate" for plain in ("A-", "at least 25", "under25")} <= {*names}


def test_classes_and_attributes_that_are_spelled_alike_have_metrics_of_their_own():
    labels = ["A+", "A-", "B"] * 16
    table = evaluate(
        labels, labels[1:] + labels[:1], task="multiclass",
        sensitive_features={"s+": list("ab") * 24, "s-": list("aab") * 16},
        evaluator=Evaluator(intersections=1),
    )  # fmt: skip
    logged = entries.values_of_evaluation(table)
    of_classes = [name for name in logged if name.startswith("selection_rate/")]
    assert len(of_classes) == 3 and "selection_rate/outcome-A-" in of_classes
    gaps = [name for name in logged if name.endswith("/accuracy_gap")]
    assert len(gaps) == 2 and "s-/accuracy_gap" in gaps


def test_a_value_is_called_as_its_metric_and_other_statistics_say_which_they_are():
    metrics = metrics_of("abc")
    result = logged(metrics)
    gaps = metrics[metrics["metric"].eq("equalized_odds") & metrics["attribute"].eq("age")]
    value = gaps.set_index(gaps["statistic"].astype(str))["value"].to_dict()
    assert result["age/equalized_odds"] == value["value"]
    assert result["age/equalized_odds debiased"] == value["debiased"]
    assert result["age/equalized_odds below epsilon/epsilon-0.05"] == value["below_epsilon"]
    assert "age/b/selection_rate" in result
    assert not [name for name in result if name.startswith("age/b/") and "pooled" in name]


def test_values_are_means_over_the_repeats_that_have_one():
    table = metrics_of("ab")
    tables = []
    for repeat, value in enumerate((0.2, 0.4, float("nan"))):
        mine = table.assign(repeat=repeat)
        mine.loc[mine["metric"] == "roc_auc", "value"] = value
        mine.loc[mine["metric"] == "log_loss", "value"] = float("nan")
        tables.append(mine)
    result = logged(pd.concat(tables, ignore_index=True))
    assert result["roc_auc"] == pytest.approx(0.3)
    assert not [name for name in result if name.endswith("log_loss")]
    assert not [name for name in result if name.startswith(("reliability", "spread_predicted"))]


def test_gaps_of_any_attribute_share_one_name():
    result = {}
    for attribute in ("age", "race"):
        own = logged(metrics_of("abab", attribute), attribute)
        result[attribute] = dict(entries._aligned_values(own, attribute, "binary"))
        assert result[attribute]["parity/statistical"] == own[f"{attribute}/statistical_parity"]
        assert result[attribute]["parity/equalized_odds"] == own[f"{attribute}/equalized_odds"]
        assert result[attribute]["headline/error_rate"] == own["error_rate"]
        assert set(entries._opening_names("binary")) <= set(result[attribute])
    assert result["age"].keys() == result["race"].keys()
    assert all(name.startswith((entries.HEADLINE, entries.PARITY)) for name in result["age"])


@pytest.mark.parametrize("attribute", ["parity", "headline", "abstention", "consistency"])
def test_an_attribute_that_is_called_as_a_kind_of_metrics_takes_no_name_of_theirs(attribute):
    own = logged(metrics_of("ab", attribute), attribute)
    assert own[f"attribute {attribute}/equalized_odds"] >= 0
    assert not [name for name in own if name.startswith(f"{attribute}/")]
    assert "parity/equalized_odds" in dict(entries._aligned_values(own, attribute, "binary"))


def test_abstention_is_a_curve_over_the_percentage_abstained_on():
    table = metrics_of("ab")
    mine = table["metric"].eq("abstention_error_rate") & table["group"].eq("")
    half = table.assign(repeat=1, value=table["value"].where(~mine, table["value"] / 2))
    both = pd.concat([table, half], ignore_index=True)
    points = list(entries._curves(means(both), "age"))
    expected = dict(zip(table.loc[mine, "rate"], table.loc[mine, "value"], strict=True))
    errors = {point.step: point.value for point in points if point.name == "abstention/error_rate"}
    # The mean of a value and its half.
    assert errors == pytest.approx({round(100 * r): 0.75 * v for r, v in expected.items()})
    names = {point.name for point in points}
    assert {"abstention/statistical_parity", "abstention/equalized_odds"} <= names
    assert list(entries._curves(means(table), "sex")) == []
    # A share between two percentages is left to the file.
    odd = table.assign(rate=table["rate"].replace(0.05, 0.055))
    assert {p.step for p in entries._curves(means(odd), "age")} == {*errors} - {5}


def test_consistency_is_a_curve_over_people():
    own = metrics_of("ab")
    spread = own.iloc[:2].assign(
        metric="consistency_sd", attribute="", group="", value=[0.1, 0.3], quantile=[0.25, 0.95],
        variants=2,
    )  # fmt: skip
    rows = means(pd.concat([own, spread], ignore_index=True))
    points = [point for point in entries._curves(rows, "age") if "consistency" in point.name]
    assert points == [("consistency/sd", pytest.approx(0.1), 25), ("consistency/sd", 0.3, 95)]
    assert not [name for name, _ in entries._values(rows, "age") if "consistency" in name]


def test_a_tag_of_sweeps_has_each_once_and_holds_what_it_can():
    tag = entries.with_sweeps("", ["dataset=adult", "dataset=adult,german"])
    assert tag == "[dataset=adult] [dataset=adult,german]"
    assert entries.with_sweeps(tag, ["dataset=adult,german", "dataset=adult"]) == tag
    longer = entries.with_sweeps("[dataset=adult,german]", ["dataset=adult"])
    assert longer == "[dataset=adult,german] [dataset=adult]"
    full = entries.with_sweeps("", [f"seed={i} {'x' * 300}" for i in range(30)])
    assert len(full) < 8000 and full.count("[") < 30
    assert entries.with_sweeps(full, [f"seed={i} {'x' * 300}" for i in range(30)]) == full


def test_the_page_opens_on_what_runs_have():
    assert entries._opening_names("binary") == [
        "headline/error_rate", "headline/log_loss", "parity/statistical", "parity/equalized_odds",
    ]  # fmt: skip
    regression = entries._opening_names("regression")
    assert regression == ["headline/rmse", "headline/nll", "parity/statistical"]
    last = f"parity/{HEADLINES['multiclass']['gap']}"
    assert entries._opening_names("multiclass")[-1] == last
    binary = error, log_loss, parity, odds = entries._opening_names("binary")
    assert entries.columns(()) == entries.columns(["accuracy", *binary]) == binary
    first = binary
    both = entries.columns(regression, entries.view(first))
    assert both == [error, log_loss, "headline/rmse", "headline/nll", parity, odds]
    assert entries.columns(regression, "no view") == regression
    shown = json.loads(entries.view(both, "method='a b',c"))
    mark = entries.sweep_mark("method=_a b_,c")
    assert shown["searchFilter"] == f"tags.sweep LIKE '%{mark}%'"
    assert shown["orderByKey"] == "metrics.`headline/error_rate`"
    drawn = [chart.get("metricKey") for chart in shown["compareRunCharts"]]
    assert {"parity/equalized_odds", "abstention/error_rate", "consistency/sd"} <= set(drawn)
    assert len({chart["uuid"] for chart in shown["compareRunCharts"]}) == len(drawn)
    assert len(entries.view(both, "x" * 400)) < 5000  # characters of an experiment's tag


# Notes of what MLflow has: what counts in which state of the database, and what is kept.


STAMP = (1, 100, 5, 5)
NOTED = _Note({"a": _Entry("f", "1", ""), "b": _Entry("g", "2", "[seed=0]")}, all_noted=True)
PLACE = {"database": "mlflow.db", "experiment": "fairbench", "version": "2"}


@pytest.mark.parametrize("stamped", [STAMP, ()])
@pytest.mark.parametrize(
    ("place", "now"),
    [
        (PLACE, (1, 200, 5, 5)),
        (PLACE, (1, 100, 5, 6)),
        (PLACE, ()),
        (PLACE | {"version": "1"}, STAMP),
    ],
)
def test_of_a_database_that_was_written_or_another_nothing_is_noted(tmp_path, stamped, place, now):
    _write_note(tmp_path, PLACE, stamped, NOTED)
    assert read_note(tmp_path, place, now) == _Note()


def test_a_note_is_read_as_it_was_written(tmp_path):
    _write_note(tmp_path, PLACE, STAMP, NOTED)
    assert read_note(tmp_path, PLACE, STAMP) == NOTED
    (tmp_path / NOTE).write_text("{}")
    assert read_note(tmp_path, PLACE, STAMP) == _Note()
    assert read_note(tmp_path / "none", PLACE, STAMP) == _Note()
    _write_note(tmp_path / NOTE, PLACE, STAMP, NOTED)  # where nothing can be written, no error
    assert read_note(tmp_path / NOTE, PLACE, STAMP) == _Note()


@pytest.mark.parametrize("runs", [{"a": ["f"]}, {"a": 3}, {"a": {}}, ["a"], None], ids=str)
def test_a_note_with_other_values_is_none(tmp_path, runs):
    write_cache(tmp_path / NOTE, {"place": PLACE, "stamp": STAMP, "runs": runs, "all_noted": True})
    assert read_note(tmp_path, PLACE, STAMP) == _Note()


def test_a_stamp_is_of_the_file_and_of_what_is_written_ahead(tmp_path):
    path, ahead = tmp_path / "a.db", tmp_path / "a.db-wal"
    assert stamp(path) == ()
    path.write_bytes(b"x")
    alone = stamp(path)
    ahead.touch()
    assert stamp(path) == alone
    ahead.write_bytes(b"y")
    assert stamp(path)[:4] == alone != stamp(path)


# Ports that cannot be served at.


def test_a_port_in_use_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UserError, match=f"^port {port} is in use; another one"):
            _serve(Path("results"), port)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("port", [-1, 99999999])
def test_a_port_that_is_none_is_refused(port):
    with pytest.raises(UserError, match=f"^'{port}' is no port$"):
        _serve(Path("results"), port)
