"""The page of all finished runs: what it holds, its numbers, and which run is the better one."""

import re
from dataclasses import replace
from html import unescape

import numpy as np
import pandas as pd
import pytest

from fairbench.cli.main import run_command
from fairbench.comparison.runs import _run_points as run_points
from fairbench.comparison.runs import load_predictions
from fairbench.components.papers.engine.mapping import Paper
from fairbench.components.papers.engine.matching import paper_tables
from fairbench.core.errors import UserError
from fairbench.evaluation.summary import summarise
from fairbench.experiments.configuration import IDENTITY, Presets, _options_of, identity_of
from fairbench.inference.comparing import METRICS, points
from fairbench.reporting import page as pages
from fairbench.reporting.document.model import Document
from fairbench.reporting.document.writing import to_html
from fairbench.reporting.page import UNRANKED, write_report
from fairbench.results.catalogue import Catalogue
from fairbench.results.runs import TABLES, Run
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


def measured_blocks(results):
    return pages._read(pages._blocks(Catalogue(results)))


def tables_of(block):
    return {table.key: table for table in next(pages._metric_tables([block]))}


@pytest.fixture(scope="module")
def block(results):
    return max(measured_blocks(results), key=lambda block: len(block.runs))


@pytest.mark.thorough
def test_it_asks_for_nothing_outside_itself_and_texts_of_runs_are_escaped(page, results):
    fetched = re.findall(r'\s(?:src|srcset|data|poster|action|background)="([^"]*)"', page)
    fetched += re.findall(r'<link[^>]*href="([^"]*)"', page)
    assert fetched and all(address.startswith("data:") for address in fetched)
    text = re.sub(r"base64,[\w+/=]+", "", page)
    assert not re.search(r"@import|url\(|fetch\(|XMLHttp|https?:|//[a-z]", text)
    anchors, ids = re.findall(r'<a [^>]*href="([^"]+)"', page), re.findall(r'\sid="([^"]+)"', page)
    assert {anchor[1:] for anchor in anchors if anchor.startswith("#")} <= {*ids}
    outside = {anchor for anchor in anchors if not anchor.startswith(("#", "../runs/hostile"))}
    missing = [e for e in outside if not (results / "report" / e).exists() and "figures" not in e]
    assert not missing
    assert page.count("<script") == 1
    assert HOSTILE not in page and HOSTILE in unescape(page)


def test_it_holds_what_it_must(page):
    for text in ("simulated-1", "simulated-2", "max_depth=9", "P(best)"):
        assert text in page
    for text in ("xgboost-cpu ", "simulated from the seed", "fairbench run", "Which one is bett"):
        assert text in page
    assert page.count("<figure") >= 2


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
    two = rows.loc[["ensemble", "baseline, max_depth=6"]]
    tables = (Run(results / "runs" / run).all_metrics() for run in two["run"])
    errors = (table.query("metric == 'error_rate' and attribute == ''") for table in tables)
    ensemble, plain = (rows.sort_values("repeat")["value"].to_numpy() for rows in errors)
    better = probability_better(-ensemble, -plain, 0.2)
    # A third run can only take from what each of two has.
    assert (two["best"] <= [better + 0.03, 1 - better + 0.03]).all()
    assert two["best"].sum() > 0.8


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
        assert _options_of(composed, IDENTITY) == _options_of(run.config, IDENTITY)
    for choice in ("consistency=gamma", "method=ensemble", "dataset=german"):
        group, _, option = choice.partition("=")
        composed = {group: identity_of(configuration(choice))[1][group]}
        assert presets.choice(group, option) == _options_of(composed, [group])
    jobs = [{"dataset": "a", "method": m, "intervention": i} for i in ("none", "z") for m in "xy"]
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
    notes = {table.note for table in tables if (table.rows["verdict"] != "not run").any()}
    assert "quick look" in notes
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


# Which one is better: the page's pairs are those of the command, and what it does not compare.

LEARNERS = ("logistic_regression", "gaussian_nb", "xgboost")


@pytest.fixture(scope="module")
def classifiers(tmp_path_factory):
    """Three classifiers, one evaluated twice, a run with another seed, and a regression."""
    folder = tmp_path_factory.mktemp("better")
    common = ("method=baseline", "split.repeats=3")
    runs = [finish(folder, "dataset=simulated", *common, f"learner={name}") for name in LEARNERS]
    copy(runs[0], config={"evaluator.bins": 7})
    finish(folder, "dataset=simulated", *common, "seed=1")
    for method in ("marginal", "normal_nll"):
        finish(folder, "dataset=simulated_regression", "split.repeats=3", f"method={method}")
    return folder


@pytest.fixture(scope="module")
def of_blocks(classifiers):
    return {block.name: block for block in measured_blocks(classifiers)}


def compared(block):
    """Return the comparison of a block, its table, and what was left out."""
    section, left_out = pages._compare_block(block)
    (table,) = Document("", [section]).tables
    return section, table, left_out


@pytest.mark.thorough
def test_the_command_on_the_page_prints_the_page(classifiers, of_blocks, capsys):
    path, _, left_out = write_report(classifiers)
    assert not left_out
    page = unescape(path.read_text(encoding="utf-8"))
    (command,) = re.findall(r"fairbench (compare runs=.*draws=\d+)", page)
    run_command([*command.split(), f"results={classifiers}"])
    printed = capsys.readouterr().out
    _, _, matrix = printed.partition("Probability that the run of the row outperforms")
    lines = [line for line in matrix.splitlines() if re.match(r"\s*\d+\s+\D?\d", line)]
    cells = re.findall(r'<td class="pair (?!same)[^>]*>\W*?([<>]?\d+)</td>', page)
    assert len(cells) == 6
    assert sum((line.split()[1:] for line in lines[-3:]), []) == cells
    ids = re.findall(r'<td class="t"><a href="#run-(\w+)">', page)
    places_ = [printed.index(id_) for id_ in ids]
    assert places_ == sorted(places_)
    # There is one section, for the one block that can be compared.
    assert page.count(">Which one is better?<") == 1
    section = page.partition('<section id="simulated-1">')[2].partition("</section>")[0]
    assert "Which one is better?" in section
    assert "differences up to 0.01 do not matter" in section
    assert "gap in true positive rate" in section
    assert pages._contenders(of_blocks["simulated-2"]) is None
    assert pages._contenders(of_blocks["simulated_regression"]) is None


def test_few_are_compared_and_the_page_says_so(of_blocks, monkeypatch):
    monkeypatch.setattr(pages, "MOST", 2)
    section, table, _ = compared(of_blocks["simulated-1"])
    assert len(table.rows) == 2
    assert "Shown are the 2 of 3 runs" in to_html(Document("", [section]))


def test_the_first_are_those_that_fewest_outperform(of_blocks):
    block = of_blocks["simulated-1"]
    means = {"error_rate": (0.1, 0.2, 0.3), "equalized_odds": (0.5, 0.1, 0.1)}
    metrics = block.metrics[block.metrics["run"].isin(block.arms)].copy()
    for name, values in means.items():
        for id_, value in zip(block.arms, values, strict=True):
            metrics.loc[(metrics["run"] == id_) & (metrics["metric"] == name), "value"] = value
    best, fair, third = block.arms
    means, *_ = pages._contenders(replace(block, metrics=metrics))
    assert list(means) == [best, fair, third]  # the third is outperformed by the second
    lost = metrics.eval("metric == 'equalized_odds' and run == @fair and repeat == 1")
    undefined = metrics.assign(value=metrics["value"].where(~lost))
    assert pages._contenders(replace(block, metrics=undefined))[1] == "statistical_parity"


def test_runs_that_cannot_be_read_are_left_out_with_the_reason(classifiers, of_blocks):
    block = of_blocks["simulated-1"]
    lost = next(iter(block.arms))
    path = classifiers / "runs" / lost / TABLES
    content = path.read_bytes()
    try:
        path.write_bytes(b"damaged")
        _, table, (reason,) = compared(block)
    finally:
        path.write_bytes(content)
    assert lost not in {row[2].link.removeprefix("#run-") for row in table.rows}
    assert len(table.rows) == 2
    assert f"{lost}/{TABLES} is missing or damaged" in reason


def test_counts_from_metrics_are_those_of_the_predictions_where_there_are_some(
    classifiers, of_blocks
):
    block = of_blocks["simulated-1"]
    metrics = block.metrics.astype(dict.fromkeys(("metric", "attribute", "group"), str))
    counts = dict(pages._confusion_counts(metrics, block.protect))
    share = pages._test_share(block.metrics)
    for id_ in block.arms:
        run = load_predictions(Run(classifiers / "runs" / id_))
        ours = points(counts[id_], block.dataset, test_share=share)
        for metric, point in run_points(run, METRICS).items():
            assert ours[metric] == pytest.approx(point, nan_ok=True)
    invalid = (metrics["run"] == id_) & (metrics["repeat"] == 0)
    metrics["value"] = metrics["value"].where(~invalid)
    assert set(dict(pages._confusion_counts(metrics, block.protect))) == set(counts) - {id_}
