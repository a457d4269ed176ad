"""The page of all finished runs: what it holds, that it asks for nothing, and its numbers."""

import re
from html import unescape

import numpy as np
import pandas as pd
import pytest

from fairbench.cli.main import run_command
from fairbench.components.papers.engine.mapping import Paper
from fairbench.components.papers.engine.matching import paper_tables
from fairbench.core.errors import UserError
from fairbench.evaluation.summary import summarise
from fairbench.experiments.configuration import IDENTITY, Presets, identity_of, options_of
from fairbench.reporting.page import UNRANKED, _blocks, _metric_tables, _read, write_report
from fairbench.results.catalogue import Catalogue
from fairbench.results.runs import Run
from tests.correlated import probability_better
from tests.harness import ROOT, configuration
from tests.reporting.page_runs import copy, finish

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Four runs in one block, one of them undefined in a repeat, and one with a hostile group."""
    folder = tmp_path_factory.mktemp("results")
    common = ("dataset=simulated", "split.repeats=3")
    plain = finish(folder, *common, "method=baseline")
    finish(folder, *common, "method=ensemble", "method.members=3")
    copy(plain, config={"learner.max_depth": 9}, rows=worse)
    copy(plain, config={"learner.max_depth": 2}, rows=without_an_error_rate)
    copy(plain, config={"seed": 1}, rows=with_a_hostile_group)
    return folder


def worse(metrics):
    rate = metrics["metric"] == "error_rate"
    noise = np.where(rate, 0.1 + 0.01 * metrics["repeat"], 0)
    return metrics.assign(value=metrics["value"] + noise)


def without_an_error_rate(metrics):
    lost = (metrics["metric"] == "error_rate") & (metrics["repeat"] == 1)
    status = metrics["status"].where(~lost, "undefined")
    reason = metrics["reason"].where(~lost, HOSTILE)
    return metrics.assign(value=metrics["value"].where(~lost), status=status, reason=reason)


def with_a_hostile_group(metrics):
    return metrics.assign(group=metrics["group"].replace("minority", HOSTILE))


@pytest.fixture(scope="module")
def page(results):
    return write_report(results)[0].read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def block(results):
    return max(measured_blocks(results), key=lambda block: len(block.runs))


def measured_blocks(results):
    return _read(_blocks(Catalogue(results)))


def tables_of(block):
    return {table.key: table for table in next(_metric_tables([block]))}


@pytest.mark.thorough
def test_it_asks_for_nothing_outside_itself_and_texts_of_runs_are_escaped(page, results):
    names = "src|srcset|data|poster|action|background"
    fetched = re.findall(rf'\s(?:{names})="([^"]*)"', page)
    fetched += re.findall(r'<link[^>]*href="([^"]*)"', page)
    assert fetched and all(address.startswith("data:") for address in fetched)
    text = re.sub(r"base64,[\w+/=]+", "", page)
    assert not re.search(r"@import|url\(|fetch\(|XMLHttp|https?:|//[a-z]", text)
    anchors, ids = (
        re.findall(words, page) for words in (r'<a [^>]*href="([^"]+)"', r'\sid="([^"]+)"')
    )
    assert {anchor[1:] for anchor in anchors if anchor.startswith("#")} <= {*ids}
    outside = {anchor for anchor in anchors if not anchor.startswith(("#", "../runs/hostile"))}
    missing = [e for e in outside if not (results / "report" / e).exists() and "figures" not in e]
    assert not missing
    assert page.count("<script") == 1
    assert HOSTILE not in page
    assert HOSTILE in unescape(page)


def test_it_holds_what_it_must(page):
    for text in ("simulated-1", "simulated-2", "max_depth=9", "P(best)", "quick: 3 repeats"):
        assert text in page
    for text in ("xgboost-cpu ", "simulated from the seed", "fairbench run"):
        assert text in page
    assert page.count("<figure") >= 2
    assert "Which one is better?" in page


def test_numbers_are_those_of_the_runs(page, block, results):
    for row in tables_of(block)["roc_auc"].rows:
        metrics = Run(results / "runs" / row["run"]).all_metrics()
        own = metrics[(metrics["metric"] == "roc_auc") & (metrics["attribute"] == "")]
        assert row["mean"] == pytest.approx(own["value"].mean())
        assert row["sd"] == pytest.approx(own["value"].std())
        summary = summarise(metrics).query("metric == 'roc_auc' and attribute == ''")
        assert row["lower"] == pytest.approx(summary["lower"].item(), nan_ok=True)
        assert f'data-value="{own["value"].mean():.8g}"' in page


def test_standings_are_of_paired_values(block, results):
    rows = pd.DataFrame(tables_of(block)["error_rate"].rows).set_index("label")
    assert rows.loc["baseline, max_depth=2", "standing"] == UNRANKED
    assert rows.loc["baseline, max_depth=9", "best"] < rows["best"].max()
    assert rows["best"].sum() == pytest.approx(1)
    errors = {label: errors_of(results, rows.loc[label, "run"]) for label in rows.index}
    plain, ensemble = errors["baseline, max_depth=6"], errors["ensemble"]
    better = probability_better(-ensemble, -plain, 0.2)
    # A third run can only take from what each of two has.
    assert rows.loc["ensemble", "best"] <= better + 0.03
    assert rows.loc["baseline, max_depth=6", "best"] <= 1 - better + 0.03
    assert rows.loc[["ensemble", "baseline, max_depth=6"], "best"].sum() > 0.8


def errors_of(results, run):
    metrics = Run(results / "runs" / run).all_metrics()
    mine = metrics[(metrics["metric"] == "error_rate") & (metrics["attribute"] == "")]
    return mine.sort_values("repeat")["value"].to_numpy()


def test_equal_values_of_other_evaluators_are_one_row(tmp_path):
    folder = finish(tmp_path, "dataset=simulated", "split.repeats=2", "method=baseline")
    copy(folder, config={"evaluator.bins": 7})
    copy(folder, config={"evaluator.bins": 9}, rows=worse)
    (only,) = measured_blocks(tmp_path)
    tables = tables_of(only)
    assert [row["label"] for row in tables["roc_auc"].rows] == ["baseline"]
    assert len({row["label"] for row in tables["error_rate"].rows}) == 2


@pytest.mark.thorough
def test_commands_compute_the_same_run(results):
    collection = Catalogue(results)
    presets = Presets()
    for run in collection.runs.values():
        words = [f"{name}={text}" for name, text in presets.overrides(run).items()]
        composed = identity_of(configuration(*words))[1]
        assert options_of(composed, IDENTITY) == options_of(run.config, IDENTITY)
    for choice in ("consistency=gamma", "method=ensemble", "dataset=german"):
        group, _, option = choice.partition("=")
        composed = {group: identity_of(configuration(choice))[1][group]}
        assert presets.choice(group, option) == options_of(composed, [group])
    jobs = [
        {"dataset": d, "method": m, "intervention": i}
        for d, m, i in [("a", "x", "none"), ("a", "y", "none"), ("a", "x", "z"), ("a", "y", "z")]
    ]
    assert presets.commands(jobs) == ["fairbench run -m dataset=a method=x,y intervention=none,z"]


@pytest.mark.thorough
def test_a_run_of_fewer_repeats_or_from_before_an_option_answers_an_experiment(tmp_path, as_there):
    folder = finish(tmp_path, "dataset=simulated", "split.repeats=2", "method=baseline")
    presets = Presets()
    copy(folder, config=as_there)
    three = copy(folder, config=as_there | {"split.repeats": 3})
    copy(folder, config=as_there | {"seed": 1, "split.repeats": 9})
    german = identity_of(configuration("dataset=german"))[1]["dataset"]
    evaluator = identity_of(configuration("evaluator.choose_on=test"))[1]["evaluator"]
    assert evaluator.pop("neighbours") == 0
    old = copy(folder, config={"dataset": german, "evaluator": evaluator})
    other = {"dataset": german, "evaluator": evaluator | {"neighbours": 5}}
    copy(folder, config=other | {"split.repeats": 9})
    result = presets.runs_of("fairlyuncertain/table8_13", Catalogue(tmp_path).runs)
    assert set(result) == {three.name, old.name}
    assert result[three.name][0] == {"dataset": "adult", "method": "baseline"}
    paper = Paper.read("fairlyuncertain", ROOT / "papers")
    tables = paper_tables(paper, list(paper.tables), Catalogue(tmp_path), presets, tmp_path)
    notes = {table.note for table in tables if table.counts["not run"] < len(table.rows)}
    assert "quick: 2 repeats" in notes
    run_command(["report", "experiment=fairlyuncertain/table8_13", f"results={tmp_path}"])
    assert (tmp_path / "report" / "fairlyuncertain-table8_13" / "index.html").exists()


@pytest.fixture
def as_there():
    """Return the options that Table 8 to 13's sweep fixes: its data set is called adult."""
    adult = identity_of(configuration("dataset=adult"))[1]["dataset"]
    return {"dataset": adult, "evaluator.choose_on": "test"}


def test_what_is_not_there_is_said(tmp_path):
    with pytest.raises(UserError, match="no finished run"):
        write_report(tmp_path)
    with pytest.raises(UserError, match="unknown option 'result'"):
        run_command(["report", "result=x"])
