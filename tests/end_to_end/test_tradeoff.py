"""Trade-offs of finished runs, as ``fairbench tradeoff dataset=simulated``."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fairbench.cli.main import run_command
from fairbench.comparison.runs import _run_points as run_points
from fairbench.comparison.runs import candidates, load_predictions, names_of_parts
from fairbench.core.errors import UserError
from fairbench.evaluation.table import values_of
from fairbench.experiments.execute import carry_out
from fairbench.inference.comparing import METRICS, is_dominated
from fairbench.results.catalogue import Catalogue
from fairbench.results.runs import Run
from tests.harness import configuration

COMMON = (
    "dataset.n_samples=300", "split.repeats=3", "split.validation=0.2", "tracking=none",
    "learner=logistic_regression", "figures=false",
)  # fmt: skip
POSTPROCESSED = "evaluator.relaxations=[0,0.1,1]"
RUNS = {
    "baseline": ("method=baseline",),
    "postprocessed": ("method=baseline", POSTPROCESSED),
    "reweighing": ("method=baseline", "intervention=reweighing"),
    "ensemble": ("method=ensemble",),
    "other_split": ("method=baseline", "split.repeats=2"),
}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder, ids = tmp_path_factory.mktemp("tradeoff") / "results", {}
    for name, overrides in RUNS.items():
        ids[name] = carry_out(configuration(*COMMON, *overrides, results=folder)).plan.id
    return folder, ids


@pytest.mark.thorough
def test_runs_of_one_split_are_found_once_each_and_named(results):
    folder, ids = results
    result = {
        run.id: names
        for run, names in zip(*candidates("simulated", "", Catalogue(folder)), strict=True)
    }
    assert set(result) == {ids[name] for name in ("postprocessed", "reweighing", "ensemble")}
    assert result[ids["reweighing"]] == {
        "learner": "logistic regression", "intervention": "reweighing", "method": "baseline",
    }  # fmt: skip


def test_fewer_than_two_runs_are_refused(results):
    with pytest.raises(UserError, match=r"has no finished run of german by sex; a trade-off needs"):
        candidates("german", "sex", Catalogue(results[0]))


def test_namesakes_are_told_apart_by_the_options_that_differ():
    configs = [{"name": "grid_search", "grid": 5, "bound": bound} for bound in (0.1, 0.2)]
    configs.append({"name": "none"})
    parts = ("learner", "intervention", "method")
    listed = [
        {"config": dict.fromkeys(parts, config), "choices": dict.fromkeys(parts, config["name"])}
        for config in configs
    ]
    named = names_of_parts([Run(Path(), of_run) for of_run in listed])
    assert [names["learner"] for names in named] == ["grid search 0.1", "grid search 0.2", "none"]


@pytest.mark.thorough
def test_points_are_the_metrics_and_the_spread_is_the_posteriors(results):
    folder, ids = results
    stored = Catalogue(folder).one(ids["postprocessed"])
    metrics, run = values_of(stored.all_metrics()), load_predictions(stored)
    result = run_points(run, run.protect, repeats="typical")
    error = metrics.query("metric == 'error_rate' and attribute == ''")
    for name in METRICS:
        gap = metrics.query(f"metric == '{name}' and attribute == '{run.protect[0]}'")["value"]
        assert result[name]["error"] == pytest.approx(error["value"].mean())
        assert result[name]["gap"] == pytest.approx(gap.mean())
    group = metrics.query(f"metric == 'error_rate' and attribute == '{run.protect[0]}'")
    group = group[group["repeat"] == error.sort_values("value", kind="stable")["repeat"].iloc[1]]
    # Beta variances of the groups' error rates: two of four cells are errors, each with a 1 prior.
    size, wrong = group["n"].to_numpy(), (group["n"] * group["value"]).to_numpy()
    mean = (wrong + 2) / (size + 4)
    variance = ((size / size.sum()) ** 2 * mean * (1 - mean) / (size + 5)).sum()
    assert result[METRICS[0]]["error_variance"] == pytest.approx(variance, rel=0.15)
    averaged = run_points(run, run.protect)[METRICS[0]]
    assert averaged["error"] == result[METRICS[0]]["error"]
    assert averaged["error_variance"] > 0


def test_dominance_is_of_no_larger_and_somewhere_smaller():
    values = np.array([[1, 4], [2, 2], [2, 3], [4, 1], [1, 4], [5, np.nan]])
    assert is_dominated(values).tolist() == [False, False, True, False, False, False]


@pytest.mark.thorough
def test_the_command_prints_and_writes_everything(results, said_by):
    folder, ids = results
    printed = said_by("tradeoff", "dataset=simulated", f"results={folder}")
    assert "error against the equalized odds gap" in printed
    assert "error of logistic regression, baseline" in printed
    (table_file,) = (folder / "report" / "tradeoff").glob("*.csv")
    assert table_file.with_suffix(".png").stat().st_size > 10_000
    table = pd.read_csv(table_file)
    assert len(table) == 3 * len(METRICS)
    for _, rows in table.groupby("metric"):
        np.testing.assert_array_equal(
            rows["dominated"], is_dominated(rows[["error", "gap"]].to_numpy())
        )
    assert table["certainty"].between(0, 1).all()
    assert table[table["metric"] != "predictive_parity"]["postprocessed_error"].notna().any()


@pytest.mark.parametrize(
    ("words", "message"),
    [([], "no data set is named"), (["dataset=x", "metric=y"], "unknown option 'metric'")],
)
def test_a_wrong_command_is_refused(words, message):
    with pytest.raises(UserError, match=message):
        run_command(["tradeoff", *words])
