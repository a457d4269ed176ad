"""Verdicts on differences from published numbers, and the rows they are about."""

import numpy as np
import pandas as pd
import pytest

from fairbench.core.errors import UserError
from fairbench.experiments import pipeline
from fairbench.reporting.across import DRAWN
from fairbench.reporting.papers import command, jobs, report_figure
from fairbench.reporting.published import Paper, compare, half_unit, judge, scoreboard
from tests.harness import CONF, ROOT, configuration, options

PUBLISHED = ROOT / "papers"


@pytest.mark.parametrize(
    ("printed", "half"),
    [("0.31", 0.005), ("1.1", 0.05), ("1.0", 0.05), ("-0.6", 0.05), ("21.0", 0.5), ("120.0", 5.0)],
)
def test_half_a_unit_of_the_last_digit(printed, half):
    assert half_unit(printed) == pytest.approx(half)


@pytest.mark.parametrize(
    ("mean", "verdict"),
    [(0.90, "agrees"), (0.91, "agrees"), (0.924, "within sd"), (0.94, "differs")],
)
def test_verdicts(mean, verdict):
    # Two standard errors are 2 sqrt(0.02^2 / 10 + 0.03^2 / 10) = 0.0228, half a unit is 0.0005, and
    # the paper's own sd is 0.03.
    ours = {"mean": mean, "sd": 0.02, "repeats": 10}
    row = judge("0.895", "0.03", 10, ours)
    assert row["difference"] == pytest.approx(mean - 0.895)
    assert row["verdict"] == verdict


def test_what_was_not_run_is_said_not_to_be():
    assert judge("0.9", "0.02", 10, None)["verdict"] == "not run"
    ours = {"mean": np.nan, "sd": np.nan, "repeats": 0}
    assert judge("0.9", "0.02", 10, ours)["verdict"] == "not run"


def summary(**changes):
    row = {
        "experiment": "any", "dataset": "adult", "method": "ensemble", "intervention": "none",
        "option": "", "variant": "", "metric": "nll", "attribute": "",
        "group": "", "setting": "", "mean": 0.9, "sd": 0.02, "repeats": 10,
    }  # fmt: skip
    return {**row, **changes}


def test_only_the_runs_own_overall_row_answers():
    paper = Paper.read("fairlyuncertain", PUBLISHED)
    others = [
        summary(variant="max_depth=5", mean=7.0),
        summary(attribute="sex", group="Male", mean=8.0),
        summary(method="binomial_nll", mean=9.0),
        summary(dataset="bank", mean=6.0),
    ]
    rows = compare(paper, "1", pd.DataFrame([*others, summary()]))
    mine = rows.query("dataset == 'adult' and metric == 'nll' and `our method` == 'ensemble'")
    assert mine["ours"].tolist() == [0.9]
    assert mine["published"].tolist() == [0.9]
    assert "1 agrees" in scoreboard(mine)
    assert len(rows) == 40


def test_published_methods_can_have_several_answers():
    paper = Paper.read("fairlyuncertain", PUBLISHED)
    rows = compare(paper, "2", pd.DataFrame([summary()]))
    methods = rows.loc[rows["published method"] == "normal_nll", "our method"]
    assert set(methods) == {"normal_nll_reference", "normal_nll"}


def test_interventions_and_abstention_are_found_by_what_was_chosen():
    paper = Paper.read("fairlyuncertain", PUBLISHED)
    german = {"dataset": "german", "attribute": "age"}
    thresholds = {"method": "baseline", "intervention": "threshold_optimizer"}
    first, second = "fairlyuncertain/table8_13", "fairlyuncertain/table8_13_validation"
    rows = pd.DataFrame(
        [
            summary(
                **german, **thresholds, metric="equalized_odds", option="equalized_odds", mean=1
            ),
            summary(**german, **thresholds, metric="equalized_odds", option="demographic_parity"),
            summary(
                **german, experiment=first, metric="abstention_chosen_rate", mean=0.146, sd=0.1
            ),
            summary(**german, experiment=second, metric="abstention_chosen_rate", mean=0.2),
        ]
    )
    compared = compare(paper, "13", rows).query("verdict != 'not run'")
    thresholded = compared.query("metric == 'equalized_odds'").set_index("our method")["ours"]
    assert thresholded["threshold_optimizer equalized_odds"] == 1
    assert thresholded["threshold_optimizer demographic_parity"] == 0.9
    included = compared.query("metric == 'included_percent'").set_index("our method")
    assert included.loc["ensemble", ["ours", "our sd"]].tolist() == pytest.approx([85.4, 10])
    assert included.loc["ensemble validation", "ours"] == pytest.approx(80)
    assert included.loc["ensemble", "published"] == 85.4


def test_unknown_paper_and_table():
    with pytest.raises(UserError, match="unknown paper 'fairly': did you mean fairlyuncertain"):
        Paper.read("fairly", PUBLISHED)
    with pytest.raises(UserError, match="has no figure '99' here: valid: 2, "):
        report_figure(Paper.read("fairlyuncertain", PUBLISHED), "99", CONF, PUBLISHED)
    with pytest.raises(UserError, match="has no table '99' here: valid: 1, "):
        Paper.read("fairlyuncertain", PUBLISHED).experiments("99")


@pytest.mark.parametrize(
    "path", sorted(PUBLISHED.glob("*/mapping.yaml")), ids=lambda path: path.parent.name
)
def test_mappings_name_what_exists(path):
    paper = Paper.read(path.parent.name, PUBLISHED)
    methods = set(options("method"))
    for table, mapping in paper.tables.items():
        published = paper.rows[paper.rows["table"] == table]
        for rule in mapping["rules"]:
            assert set(rule["metrics"]) <= set(published["metric"])
            assert set(rule.get("methods", [])) <= set(published["method"])
            assert set(rule.get("settings", [])) <= set(published["setting"])
            for choice in rule.get("ours", [{}]):
                named = choice.get("method", "{method}").format(method="ensemble")
                assert named in methods or "{method}" in choice["method"]
                assert choice.get("experiment") in (None, *mapping["experiments"])
        for experiment in mapping["experiments"]:
            assert (CONF / "experiment" / f"{experiment}.yaml").is_file()


@pytest.mark.parametrize(
    "path", sorted(PUBLISHED.glob("*/mapping.yaml")), ids=lambda path: path.parent.name
)
def test_figures_name_what_exists(path):
    for figure in Paper.read(path.parent.name, PUBLISHED).figures.values():
        assert set(figure) == {"experiment", "draw"}
        assert figure["draw"] in DRAWN
        assert (CONF / "experiment" / f"{figure['experiment']}.yaml").is_file()


def test_a_figure_is_drawn_of_the_runs_that_are_there(tmp_path):
    given = ["dataset=simulated", "dataset.n_samples=200", "split.repeats=1"]
    paper = Paper.read("fairlyuncertain", PUBLISHED)
    assert "nothing was run yet" in report_figure(paper, "5", CONF, tmp_path, given)
    job = ["experiment=fairlyuncertain/figure5", "method=binomial_nll", *given]
    pipeline.execute(pipeline.prepare(configuration(*job, results=tmp_path)))
    line = report_figure(paper, "5", CONF, tmp_path, given)
    written = (tmp_path / "report" / "fairlyuncertain" / "figures").iterdir()
    names = sorted(path.stem for path in written)
    assert line.startswith("figure 5: figure5_error_rate, figure5_statistical_parity, ")
    assert line.endswith("; made by " + command("fairlyuncertain/figure5", given))
    assert all(name in line for name in names)
    assert len(names) == 7


@pytest.mark.parametrize(
    "experiment",
    sorted(
        str(path.relative_to(CONF / "experiment").with_suffix(""))
        for path in (CONF / "experiment").rglob("*.yaml")
    ),
)
def test_experiments_sweep_over_what_exists(experiment):
    for overrides in jobs(experiment, CONF):
        for pair in overrides:
            group, _, name = pair.partition("=")
            chosen = (CONF / group).is_dir() and group != "experiment"
            assert not chosen or name in options(group), pair
