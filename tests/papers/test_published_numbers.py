"""The papers' mappings, the verdicts on differences from their numbers, and the printer."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from fairbench.components.papers.engine import matching, running
from fairbench.components.papers.engine.mapping import (
    KEYS,
    Paper,
    half_unit,
    judge,
    papers_in,
    rule_of,
    scoreboard,
)
from fairbench.components.papers.engine.pages import print_paper
from fairbench.core.errors import UserError
from fairbench.reporting.figures import DRAWN
from tests.harness import CONF, ROOT, options

PAPERS = ROOT / "papers"
NAMES = papers_in(PAPERS)
EMPTY = Paper("any", pd.DataFrame(), {}, runs=10)


@pytest.mark.parametrize(
    ("printed", "half"),
    [("0.31", 0.005), ("1.1", 0.05), ("1.0", 0.05), ("-0.6", 0.05), ("21.0", 0.5), ("120.0", 5.0)],
)
def test_half_a_unit_of_the_last_digit(printed, half):
    assert half_unit(printed) == pytest.approx(half)


@pytest.mark.parametrize(
    ("mean", "verdict"),
    [(0.90, "agrees"), (0.91, "agrees"), (0.918, "agrees"), (0.919, "differs")],
)
def test_verdicts(mean, verdict):
    # Two standard errors are 2 sqrt(0.02^2 / 10 + 0.03^2 / 10) = 0.0228, half a unit is 0.0005.
    ours = {"mean": mean, "sd": 0.02, "repeats": 10}
    row = judge(EMPTY, {"metric": "nll", "value": "0.895", "sd": "0.03"}, ours)
    assert row["difference"] == pytest.approx(mean - 0.895)
    assert row["verdict"] == verdict


def test_what_was_not_run_is_said_not_to_be():
    row = {"metric": "nll", "value": "0.9", "sd": "0.02"}
    assert judge(EMPTY, row, None)["verdict"] == "not run"
    ours = {"mean": np.nan, "sd": np.nan, "repeats": 0}
    assert judge(EMPTY, row, ours)["verdict"] == "not run"


def test_a_number_without_an_sd_is_taken_to_scatter_as_ours():
    # Two standard errors of the difference of one run and a mean of four are 2 sqrt(1.25) 0.02.
    paper = Paper("any", pd.DataFrame(), {}, runs=1, spread="ours", decimals={"": 2})
    row = {"metric": "nll", "value": "0.9", "sd": ""}
    bound = 2 * np.sqrt(1.25) * 0.02 + 0.005
    for mean, verdict in ((0.9 + 0.99 * bound, "agrees"), (0.9 + 1.01 * bound, "differs")):
        assert judge(paper, row, {"mean": mean, "sd": 0.02, "repeats": 4})["verdict"] == verdict
    given = {"mean": 1.0, "sd": 0.02, "repeats": 4, "error": 0.05}
    assert judge(paper, row, given)["verdict"] == "agrees"


def summary(**changes):
    row = {
        "experiment": "any", "dataset": "adult", "method": "ensemble", "intervention": "none",
        "option": "", "variant": "", "metric": "nll", "attribute": "",
        "group": "", "setting": "", "mean": 0.9, "sd": 0.02, "repeats": 10,
    }  # fmt: skip
    return {**row, **changes}


def test_only_the_runs_own_overall_row_answers():
    paper = Paper.read("fairlyuncertain", PAPERS)
    own = {"metric": "consistency_max_sd", "mean": 0.08}
    others = [
        summary(**own | {"mean": 7.0}, variant="max_depth=5"),
        summary(**own | {"mean": 8.0}, attribute="sex", group="Male"),
        summary(**own | {"mean": 9.0}, method="binomial_nll"),
        summary(**own | {"mean": 6.0}, dataset="bank"),
    ]
    rows = matching.compare(paper, "1", pd.DataFrame([*others, summary(**own)]))
    mine = rows.query(
        "dataset == 'adult' and metric == 'consistency_max_sd' and `our method` == 'ensemble'"
    )
    assert mine["ours"].tolist() == [0.08]
    assert mine["published"].tolist() == [0.08]
    assert "1 agrees" in scoreboard(mine)
    assert len(rows) == 40


def test_interventions_are_found_by_what_was_chosen():
    paper = Paper.read("fairlyuncertain", PAPERS)
    adult = {"dataset": "adult", "attribute": "sex", "metric": "equalized_odds"}
    thresholds = {"method": "baseline", "intervention": "threshold_optimizer"}
    rows = pd.DataFrame(
        [
            summary(**adult, **thresholds, option="equalized_odds", mean=1),
            summary(**adult, **thresholds, option="demographic_parity"),
            summary(**adult, experiment="fairlyuncertain/table8_13", method="baseline", mean=0.2),
            summary(**adult, experiment="another", method="baseline", mean=0.3),
        ]
    )
    compared = matching.compare(paper, "10", rows).query("verdict != 'not run'")
    found = compared.query("metric == 'equalized_odds'").set_index("our method")["ours"]
    assert found["threshold_optimizer equalized_odds"] == 1
    assert found["threshold_optimizer demographic_parity"] == 0.9
    assert found["baseline"] == 0.2


@pytest.mark.parametrize("name", NAMES)
def test_every_published_number_has_an_answer_or_a_reason(name):
    paper = Paper.read(name, PAPERS)
    rows = paper.rows
    assert set(rows["table"]) == set(paper.tables)
    assert not rows.duplicated(["table", "metric", *KEYS]).any()
    for row in rows.to_dict("records"):
        rule = rule_of(paper.tables[row["table"]]["rules"], row)
        assert len({"metrics", "computation", "absent"} & set(rule)) >= 1, row
        assert rule.get("computation") in (None, *paper.computations)


@pytest.mark.parametrize("name", NAMES)
def test_mappings_name_what_exists(name):
    paper = Paper.read(name, PAPERS)
    methods = set(options("method"))
    for table, mapping in paper.tables.items():
        published = paper.published(table)
        for rule in mapping["rules"]:
            assert set(rule.get("settings", [])) <= set(published["setting"])
            if "absent" in rule or "computation" in rule:
                continue
            assert set(rule["metrics"]) <= set(published["metric"])
            assert set(rule.get("methods", [])) <= set(published["method"])
            for choice in rule.get("ours", [{}]):
                named = choice.get("method", "{method}").format(method="ensemble")
                assert named in methods or "{method}" in choice["method"]
                assert choice.get("experiment") in (None, *mapping["experiments"])
    named = [experiment for table in paper.tables for experiment in paper.experiments(table)]
    named += [
        experiment
        for one in paper.computations.values()
        for experiment in one.get("experiments", [])
    ]
    named += [figure["experiment"] for figure in paper.figures.values() if "draw" in figure]
    for experiment in named:
        assert (CONF / "experiment" / f"{experiment}.yaml").is_file()
    for one in [*paper.computations.values(), *paper.figures.values()]:
        assert "draw" in one or callable(running.function_of(one["function"]))
        assert one.get("draw", "spread") in DRAWN


TINY = """
runs: 1
spread: ours
computations: {shares: {function: "tiny_paper:numbers", sentence: shares}}
tables:
  "1":
    rules:
      - {methods: [gone], absent: its code is not published}
      - {computation: shares}
"""
CSV = """table,dataset,sensitive_attribute,learner,method,metric,n_labelled,setting,value,sd
1,german,,,mine,share,,,0.50,
1,german,,,gone,share,,,0.75,
"""


def test_a_computation_is_stored_and_printed_beside_the_paper(tmp_path, monkeypatch, capsys):
    (tmp_path / "tiny").mkdir()
    (tmp_path / "tiny" / "mapping.yaml").write_text(TINY)
    (tmp_path / "tiny" / "published.csv").write_text(CSV)
    (tmp_path / "tiny_paper.py").write_text(
        "def numbers(rows, results, effort):\n"
        "    (place,) = rows.index\n"
        "    yield {'row': place, 'mean': 0.51, 'sd': 0.1, 'repeats': 4}\n"
        "    yield {'row': place, 'label': 'corrected', 'mean': 0.9, 'sd': 0.1, 'repeats': 4}\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    paper = Paper.read("tiny", tmp_path)
    assert not matching.is_computed(paper, "shares", "1", tmp_path)
    running.run_computation(paper, "shares", "1", tmp_path, matching.Effort.QUICK)
    assert matching.is_computed(paper, "shares", "1", tmp_path, matching.Effort.QUICK)
    assert list(matching.computed_numbers(paper, "shares", "1", tmp_path)["mean"]) == [0.51, 0.9]
    print_paper(paper, CONF, tmp_path, "1")
    printed = capsys.readouterr().out
    assert "0.51" in printed and "agrees" in printed and "corrected" in printed
    assert "1 number has no answer: its code is not published" in printed
    written = pd.read_csv(tmp_path / "report" / "tiny" / "table1.csv")
    assert written["verdict"].tolist() == ["agrees", "differs", "no answer"]
    print_paper(paper, CONF, tmp_path)
    assert "no answer" in capsys.readouterr().out


def test_numbers_that_a_paper_keeps_are_printed_with_how_near_they_are(tmp_path, capsys):
    folder = tmp_path / "tiny"
    folder.mkdir()
    kept = TINY.replace("sentence: shares", "sentence: shares, kept: n.csv")
    folder.joinpath("mapping.yaml").write_text(
        f'{kept}within: {{distances: [0.05, 0.5], tables: ["1"]}}\n'
    )
    folder.joinpath("published.csv").write_text(CSV)
    folder.joinpath("n.csv").write_text(
        "row,mean,repeats,label,error\n0,0.6,1,,0.01\n0,0.5,1,b,0\n"
    )
    paper = Paper.read("tiny", tmp_path)
    assert not matching.is_computed(paper, "shares", "1", tmp_path)
    print_paper(paper, CONF, tmp_path)
    printed = capsys.readouterr().out
    assert "the answer that reproduces, 1 number: 0% within 0.05, 100% within 0.50" in printed
    assert "b, 1 number: 100% within 0.05" in printed


def test_a_quick_look_is_of_small_data_and_few_repeats():
    paper = Paper.read("fairlyuncertain", PAPERS)
    words = list(running.sweeps(paper, CONF, ["1"], matching.Effort.QUICK))
    assert words == [["experiment=fairlyuncertain/table1", "split.repeats=2", "dataset=german"]]
    named = [words[0] for words in running.sweeps(paper, CONF)]
    assert len(named) == len(set(named)) > 8
    assert list(running.figure_sweeps(paper, CONF, ["3"])) == [
        ["experiment=fairlyuncertain/figure3"]
    ]
    computed = running.sweeps(paper, CONF, ["8"])
    assert ["experiment=fairlyuncertain/table8_13"] in list(computed)


def test_a_quick_look_leaves_out_what_the_mapping_names_and_varies_less():
    paper = Paper.read("uncertainty_fairness", PAPERS)
    quick = {
        words[0]: words[1:] for words in running.sweeps(paper, CONF, effort=matching.Effort.QUICK)
    }
    whole = {words[0] for words in running.sweeps(paper, CONF)}
    left_out = {f"experiment={name}" for name in paper.quick["leave_out"]}
    assert left_out <= whole
    assert set(quick) == whole - left_out
    synthetic = quick["experiment=uncertainty_fairness/sd1_3_trained"]
    assert synthetic == ["split.repeats=1", "dataset.seed=0"]
    assert quick["experiment=uncertainty_fairness/compas_trained"] == ["split.repeats=1"]


def test_a_figure_is_drawn_of_the_runs_that_are_there(tmp_path, monkeypatch):
    paper = Paper.read("fairlyuncertain", PAPERS)
    with pytest.raises(UserError, match="make them with fairbench run -m experiment=fairlyunc"):
        running.draw_figure(paper, "3", CONF, tmp_path)
    metrics = pd.DataFrame({"metric": ["spread"], "value": [1.0]})
    run = ({"dataset": "german", "method": "ensemble"}, None, metrics)
    monkeypatch.setattr(running, "runs_needed", lambda *asked: [run])
    monkeypatch.setitem(DRAWN, "spread", lambda rows: [(rows["method"].iloc[0], Figure((1, 1)))])
    paths = running.draw_figure(paper, "3", CONF, tmp_path)
    assert paths == [tmp_path / "report/fairlyuncertain/figures/figure3_ensemble.png"]
    assert all(path.is_file() for path in paths)
