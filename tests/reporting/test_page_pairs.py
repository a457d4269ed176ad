"""Which one is better: the page's pairs are those of the command, and what it does not compare."""

import re
from dataclasses import replace
from html import unescape

import pytest

from fairbench.cli.main import run_command
from fairbench.comparison.runs import _run_points as run_points
from fairbench.comparison.runs import load_predictions
from fairbench.inference.comparing import points
from fairbench.reporting import page as tables
from fairbench.reporting.document.model import Document
from fairbench.reporting.document.writing import to_html
from fairbench.results.catalogue import Catalogue
from fairbench.results.runs import TABLES, Run
from tests.reporting.page_runs import copy, finish

LEARNERS = ("logistic_regression", "gaussian_nb", "xgboost")


@pytest.fixture(scope="module")
def results(tmp_path_factory):
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
def of_blocks(results):
    return {block.name: block for block in tables._read(tables._blocks(Catalogue(results)))}


def compared(block):
    """Return the comparison of a block, its table, and what was left out."""
    section, left_out = tables._compare_block(block)
    (table,) = Document("", [section]).tables
    return section, table, left_out


@pytest.fixture(scope="module")
def page(results):
    path, _, left_out = tables.write_report(results)
    assert not left_out
    return unescape(path.read_text(encoding="utf-8"))


@pytest.mark.thorough
def test_the_command_on_the_page_prints_the_page(results, page, capsys):
    (command,) = re.findall(r"fairbench (compare runs=.*draws=\d+)", page)
    run_command([*command.split(), f"results={results}"])
    printed = capsys.readouterr().out
    _, _, matrix = printed.partition("Probability that the run of the row outperforms")
    of_command = [
        line.split()[1:] for line in matrix.splitlines() if re.match(r"\s*\d+\s+\D?\d", line)
    ]
    cells = re.findall(r'<td class="pair (?!same)[^>]*>\W*?([<>]?\d+)</td>', page)
    assert len(cells) == 6
    assert sum(of_command[-3:], []) == cells
    ids = re.findall(r'<td class="t"><a href="#run-(\w+)">', page)
    places_ = [printed.index(id_) for id_ in ids]
    assert places_ == sorted(places_)


@pytest.mark.thorough
def test_there_is_one_section_for_the_one_block_that_can_be_compared(page, of_blocks):
    assert page.count(">Which one is better?<") == 1
    section = page[page.index('<section id="simulated-1">') :]
    section = section[: section.index("</section>")]
    assert "Which one is better?" in section
    assert "differences up to 0.01 do not matter" in section
    assert "gap in true positive rate" in section
    assert tables._contenders(of_blocks["simulated-2"]) is None
    assert tables._contenders(of_blocks["simulated_regression"]) is None


def test_few_are_compared_and_the_page_says_so(of_blocks, monkeypatch):
    monkeypatch.setattr(tables, "MOST", 2)
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
    means, *_ = tables._contenders(replace(block, metrics=metrics))
    assert list(means) == [best, fair, third]  # the third is outperformed by the second
    lost = (metrics["metric"] == "equalized_odds") & (metrics["run"] == fair)
    lost &= metrics["repeat"] == 1
    undefined = metrics.assign(value=metrics["value"].where(~lost))
    assert tables._contenders(replace(block, metrics=undefined))[1] == "statistical_parity"


def test_runs_that_cannot_be_read_are_left_out_with_the_reason(results, of_blocks):
    block = of_blocks["simulated-1"]
    lost = next(iter(block.arms))
    path = results / "runs" / lost / TABLES
    content = path.read_bytes()
    try:
        path.write_bytes(b"damaged")
        _, table, (reason,) = compared(block)
    finally:
        path.write_bytes(content)
    assert lost not in {row[2].link.removeprefix("#run-") for row in table.rows}
    assert len(table.rows) == 2
    assert f"{lost}/{TABLES} is missing or damaged" in reason


def test_counts_from_metrics_are_those_of_the_predictions_where_there_are_some(results, of_blocks):
    block = of_blocks["simulated-1"]
    metrics = block.metrics.astype(dict.fromkeys(("metric", "attribute", "group"), str))
    counts = dict(tables._confusion_counts(metrics, block.protect))
    share = tables._test_share(block.metrics)
    for id_ in block.arms:
        run = load_predictions(Run(results / "runs" / id_))
        ours = points(counts[id_], block.dataset, test_share=share)
        for metric, point in run_points(run, run.protect).items():
            assert ours[metric] == pytest.approx(point, nan_ok=True)
    invalid = (metrics["run"] == id_) & (metrics["repeat"] == 0)
    metrics["value"] = metrics["value"].where(~invalid)
    assert set(dict(tables._confusion_counts(metrics, block.protect))) == set(counts) - {id_}
