"""Approaches on many tasks: the one table of many runs, and ranks on tables of known truth."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from fairbench.comparison.runs import without_copies
from fairbench.core.arrays import rng
from fairbench.core.errors import UserError
from fairbench.evaluation.table import values_of
from fairbench.experiments.execute import carry_out
from fairbench.reporting.page import _blocks as blocks
from fairbench.results.catalogue import Catalogue
from fairbench.results.upkeep import pack, unpack
from fairbench_rank.approaches import (
    NEEDS_GROUP,
    ApproachValues,
    MeasuredDifferences,
    approach_table,
    family_means,
    mean_over_families,
)
from fairbench_rank.leaderboard import ranks_section, summary_of
from fairbench_rank.ranking import answers
from fairbench_rank.scores import RankOptions, as_read, read_scores
from fairbench_rank.sources import (
    approaches_as_methods,
    benchmark_scores,
    select_approaches_with_enough_tasks,
    with_scores,
)
from fairbench_rank.standings import (
    RankedValues,
    family_mean_interval,
    few_tasks_sentences,
    findings_of,
    standings_of,
)
from tests.extensions.rank import generated_atlas
from tests.extensions.rank.generated_atlas import FEW, with_few
from tests.harness import configuration
from tests.reporting import page_runs


@pytest.fixture(scope="module")
def findings():
    return findings_of(generated_atlas.table(), metrics=("error_rate",))


def test_the_better_learner_leads_and_its_bag_is_tied(findings):
    (ranked,) = findings.standings
    assert ranked.reference == "logistic_regression, baseline"
    assert {"logistic_regression, ensemble", ranked.reference} <= set(ranked.answer.best)
    assert not any(name.startswith("xgboost") for name in ranked.answer.best)
    by = {standing["method"]: standing for standing in ranked.rows}
    worse = by["xgboost, baseline"]
    assert worse["lower"] < 0.03 < worse["upper"]
    assert (worse["first_rank"], worse["may_be_best"]) != (1, True)
    assert worse["near_best_on_new"] < 0.5 < by[ranked.reference]["near_best_on_new"]
    assert sum(standing["best_on_new"] for standing in ranked.rows) == pytest.approx(1)
    assert all(standing["first_rank"] <= standing["last_rank"] for standing in ranked.rows)


@pytest.mark.parametrize(
    "learner, method", [("logistic_regression", "ensemble"), ("xgboost", "baseline")]
)
def test_equal_approaches_stand_at_one_place_and_share_their_chance(learner, method):
    """One that makes the same predictions as another, under another name, is a tie with it."""
    table = generated_atlas.table(families=(1, 1, 1, 2), repeats=3)
    mine = (table["learner"] == learner) & (table["method"] == method)
    rows = pd.concat([table, table[mine].assign(method="twin")])
    values = ApproachValues.of(rows[rows["setting"] == ""])
    result = standings_of(RankedValues.of(values, "error_rate", 0))
    by = {standing["method"]: standing for standing in result.rows}
    one, other = by[f"{learner}, {method}"], by[f"{learner}, twin"]
    assert one | {"method": ""} == other | {"method": ""}
    assert one["last_rank"] > one["first_rank"]
    assert sum(standing["best_on_new"] for standing in result.rows) == pytest.approx(1)


def test_approaches_on_few_families_are_not_ranked():
    table = generated_atlas.table(families=(1, 1, 1, 4), repeats=3)
    few = (table["learner"] == "xgboost") & ~table["family"].isin(["family 0", "family 3"])
    values = ApproachValues.of(table[(table["setting"] == "") & ~few])
    place = values.names.index("logistic_regression, baseline")
    ranked = RankedValues.of(values, "error_rate", place)
    assert not any("xgboost" in name for name in ranked.names)
    assert len(standings_of(ranked).rows) == len(ranked.names)
    with pytest.raises(UserError, match="none of these has one"):
        findings_of(table.iloc[:0])


def test_gaps_of_points_are_within_their_bands(findings):
    by = {point["setting"] or point["intervention"]: point for point in findings.mean_frontiers}
    noise = 0.01 * np.sqrt(2 / np.pi)  # the mean of what is shown of a gap of 0
    for limit, fall, shown in (
        ("statistical_parity<=0", 0.2, 0.2 - noise),
        ("equalized_odds<=0.1", 0.1, 0.1),
    ):
        assert by[limit]["gap"][1] < -shown < by[limit]["gap"][2]
        assert by[limit]["error"][1] < 0.1 * fall < by[limit]["error"][2]
    assert by["reweighing 1.0"]["gap"][0] == pytest.approx(-0.15, abs=0.01)
    for point in findings.mean_frontiers:
        for value, lower, upper in (point["error"], point["gap"]):
            assert lower <= value <= upper


# Approaches that were run on few tasks are shown, not ranked.


@pytest.fixture(scope="module")
def of_few():
    return findings_of(with_few(generated_atlas.table()), metrics=("error_rate",))


def test_an_approach_on_few_tasks_is_shown_and_changes_no_rank(findings, of_few):
    (without,), (ranked,) = (report.to_dict()["standings"] for report in (findings, of_few))
    assert ranked["few"] and ranked | {"few": []} == without
    assert [row["name"] for row in of_few.few] == [FEW]
    assert (of_few.fewest_tasks, findings.few) == (5, [])
    assert {point["intervention"] for point in of_few.mean_frontiers} == {
        point["intervention"] for point in findings.mean_frontiers
    }
    (few,) = of_few.standings[0].few
    assert (few["approach"], few["tasks"], few["families"]) == (FEW, 4, 4)
    assert few["lower"] < few["difference"] < few["upper"] < 0
    (said,) = few_tasks_sentences(of_few)
    assert said.startswith("1 of the 15 approaches is not ranked: it was run on fewer than 5 of ")
    assert said in summary_of(of_few, "statistical_parity").sure
    assert ranks_section(of_few, "statistical_parity").blocks[-1].name == "ranks-few-tasks"


def test_it_is_ranked_on_half_of_the_tasks():
    tasks = [f"data {task:02}" for task in range(5)]
    table = with_few(generated_atlas.table(learners=("logistic_regression",)), tasks)
    result = findings_of(table, metrics=("error_rate",))
    assert result.few == [] and result.standings[0].few == []
    assert FEW in {standing["method"] for standing in result.standings[0].rows}


def measured(values, family, share=0.2):
    """Return differences of approaches by their values in splits, (count, tasks, splits)."""
    splits = np.full(values.shape[:2], float(values.shape[2]))
    shares, family = np.full(values.shape[1], share), np.asarray(family)
    return MeasuredDifferences(values.mean(2), values.var(2, ddof=1), splits, shares, family)


def test_one_task_has_the_corrected_t_interval():
    values = np.random.default_rng(0).standard_normal((1, 1, 7))
    mean, lower, upper = (end[0] for end in family_mean_interval(measured(values, [0], 0.2)))
    half = stats.t.ppf(0.975, 6) * values.std(ddof=1) * np.sqrt(1 / 7 + 0.25)
    assert mean == pytest.approx(values.mean())
    assert [lower, upper] == pytest.approx([values.mean() - half, values.mean() + half])


@pytest.mark.parametrize(
    ("family", "least", "most"), [([0, 1, 2], 0.935, 0.97), ([0, 0, 0], 0.95, 1)]
)
def test_intervals_of_these_families_hold(family, least, most):
    """Overlapping splits of three tasks; relatives are taken to go together, which is careful."""
    draw, share = np.random.default_rng(3), 0.2
    truth = draw.standard_normal((2000, 3, 1))
    noise = np.sqrt(share) * draw.standard_normal((2000, 3, 1))
    noise = noise + np.sqrt(1 - share) * draw.standard_normal((2000, 3, 10))
    result = measured(truth + np.array([0.5, 1, 2])[:, None] * noise, family, share)
    _, lower, upper = family_mean_interval(result)
    exact = truth[..., 0].mean(axis=1)
    assert least < np.mean((lower <= exact) & (exact <= upper)) <= most


def test_runs_are_ranked_as_on_the_page_of_the_atlas(of_few):
    """One metric alone has all of the error rate in both, and so the very same answer."""
    (page,) = of_few.standings
    scores = with_scores(approaches_as_methods(with_few(generated_atlas.table())), ["error_rate"])
    read = select_approaches_with_enough_tasks(scores)
    options = as_read(RankOptions(path=Path("runs")), read)
    (answer,) = answers(read_scores(options, read=read), options)
    assert read.notes[-1] == (
        "1 of 15 approaches is left out, as in the leaderboard: it has the score on fewer than 5 "
        "of the 10 tasks, half of them"
    )
    assert (answer.best, answer.epsilon) == (page.answer.best, page.answer.epsilon)
    for name, own in (
        ("method", answer.methods), ("first_rank", answer.first_rank),
        ("last_rank", answer.last_rank),
    ):  # fmt: skip
        assert [*own] == [standing[name] for standing in page.rows]
    for name, own in (("mean", answer.means), ("near_best_on_new", answer.new.near)):
        np.testing.assert_allclose(own, [standing[name] for standing in page.rows])


# Plain means over families: what is averaged, and how often the intervals hold.


def test_tasks_are_averaged_within_families_and_families_equally_however_precise():
    family, values = np.array([0, 0, 0, 1, 2, 2, 3]), rng(0, "means").standard_normal((3, 7))
    values[1, :3] = np.nan
    variances = np.broadcast_to([1e-9, 1, 1, 1, 1, 1, 1e-9], values.shape)
    splits = np.full(values.shape, 5.0)
    differences = MeasuredDifferences(values, variances, splits, np.full(7, 0.2), family)
    result = family_means(differences)
    for row, of in zip(values, result, strict=True):
        expected = pd.Series(row).groupby(family).mean()
        np.testing.assert_allclose(of, expected)
    assert mean_over_families(result).value == pytest.approx(np.nanmean(result, axis=1))
    assert np.isnan(mean_over_families(np.array([[0.1, 0.2, np.nan, np.nan]]))).all()


def test_the_interval_is_no_narrower_than_student_and_turns_with_the_sign():
    values = rng(0, "skewed").lognormal(size=(50, 20))
    result, turned = mean_over_families(values), mean_over_families(-values)
    student = stats.ttest_1samp(values, 0, axis=1).confidence_interval(0.95)
    assert (result.lower <= student.low + 1e-12).all()
    assert (result.upper >= student.high - 1e-12).all()
    assert (result.upper > student.high + 1e-6).any()
    assert turned.lower == pytest.approx(-result.upper)
    wider = mean_over_families(values, level=1 - 0.05 / 42)
    assert (wider.lower < result.lower).all() and (wider.upper > result.upper).all()


SPLIT = ("split.repeats=2", "split.validation=0.25", "learner=logistic_regression")
RELAXED = "evaluator.relaxations=[0,1]"


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("atlas") / "results"
    page_runs.finish(folder, *SPLIT)  # the same as the next, which has more settings
    path = page_runs.finish(folder, *SPLIT, RELAXED)
    dir_ = page_runs.finish(folder, *SPLIT, "intervention=disparate_impact_remover")
    page_runs.copy(dir_, config={"intervention.repair_level": 0.5})
    page_runs.finish(folder, "learner=logistic_regression", "split.repeats=1")  # another split
    return folder, path.name


@pytest.mark.thorough
def test_a_row_is_a_task_an_approach_a_setting_and_a_repeat(results):
    folder, plain = results
    table = approach_table(list(Catalogue(folder)))
    keys = ["dataset", "protect", "learner", "intervention", "method", "options", "setting"]
    assert not table.duplicated([*keys, "seed", "repeat"]).any()
    assert table["run"].nunique() == 3
    assert set(table["options"]) == {
        "",
        "intervention.repair_level=0.5",
        "intervention.repair_level=1.0",
    }
    own = table[(table["run"] == plain) & (table["setting"] == "")].set_index("repeat")
    metrics = values_of(Catalogue(folder).runs[plain].all_metrics())
    for name in ("error_rate", "equalized_odds", "log_loss", "fit_seconds"):
        long = metrics[(metrics["metric"] == name) & (metrics["group"] == "")]
        long = long[long["rate"].isna() & long["attribute"].isin(["", own["protect"].iloc[0]])]
        assert long.set_index("repeat")["value"].to_dict() == own[name].to_dict()
    assert own["test_share"].iloc[0] == pytest.approx(60 / (60 + 180), abs=0.01)


@pytest.mark.thorough
def test_thresholds_and_abstaining_are_settings(results):
    folder, plain = results
    table = approach_table(list(Catalogue(folder)))
    settings = set(table.loc[table["run"] == plain, "setting"])
    assert {"", "abstained=0.2", "statistical_parity<=0", "equalized_odds<=1"} <= settings
    relaxed = table[table["setting"] == "statistical_parity<=0"]
    assert np.isfinite(relaxed[["error_rate", "statistical_parity"]].to_numpy()).all()
    assert relaxed["equalized_odds"].isna().all()
    assert relaxed["group_at_prediction"].all()
    by = table[table["setting"] == ""].groupby("intervention")["group_at_prediction"].all()
    assert by.to_dict() == {"none": False, "disparate_impact_remover": True}


def test_parts_of_runs_are_named_as_all_are(results):
    assert approach_table([]).empty
    folder, _ = results
    runs = list(Catalogue(folder))
    (half,) = (run for run in runs if run.config["intervention"].get("repair_level") == 0.5)
    assert set(approach_table([half])["options"]) == {""}
    (told,) = set(approach_table([half], among=runs)["options"])
    assert "intervention.repair_level=0.5" in told.split()


def test_runs_of_a_folder_and_of_an_unpacked_one_are_scores_to_rank(results, tmp_path):
    folder, plain = results
    table = benchmark_scores(folder, ["error_rate", "equalized_odds"])
    assert table.format == "fairbench runs" and table.costs == ("fit_seconds", "predict_seconds")
    assert {score.name: score.better for score in table.scores} == {
        "error_rate": "lower", "equalized_odds": "lower",
    }  # fmt: skip
    wide = approach_table(list(Catalogue(folder)))
    wide = wide[(wide["run"] == plain) & (wide["setting"] == "")]
    own = table.frame.query("method == 'logistic_regression, binomial_nll'")
    assert own["error_rate"].tolist() == wide["error_rate"].tolist()
    assert own["split"].tolist() == ["0.0", "0.1"]
    assert set(table.frame["method"]) == {
        "logistic_regression, binomial_nll",
        f"logistic_regression, disparate_impact_remover 0.5, binomial_nll ({NEEDS_GROUP})",
        f"logistic_regression, disparate_impact_remover 1.0, binomial_nll ({NEEDS_GROUP})",
    }
    pack(list(Catalogue(folder)), tmp_path / "pack.zip", cells=False)
    with pytest.raises(UserError, match="pack.zip is a pack: fairbench store unpack"):
        benchmark_scores(tmp_path / "pack.zip", ["error_rate", "equalized_odds"])
    unpack(tmp_path / "pack.zip", tmp_path / "unpacked")
    unpacked = benchmark_scores(tmp_path / "unpacked", ["error_rate", "equalized_odds"])
    assert unpacked.frame.equals(table.frame)
    with pytest.raises(UserError, match=r"the fairbench runs have \d+ scores: .*; name the one"):
        benchmark_scores(folder)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Return the runs of one file under four paths, one of which is another name, and of another.

    Each has two ids by path, and the same learner.
    """
    folder = tmp_path_factory.mktemp("files")
    draw = np.random.default_rng(0)
    table = ("dataset=table", "dataset.target=y", "dataset.sensitive=[sex]", "split.repeats=2")
    for name in ("x/people", "x/again", "y/people"):
        path = folder / f"{name}.csv"
        path.parent.mkdir(exist_ok=True)
        people = pd.DataFrame({"a": draw.normal(size=80), "sex": draw.choice(["f", "m"], 80)})
        people["y"] = (people["a"] + draw.normal(size=80) > 0).astype(int)
        people.round(3).to_csv(path, index=False)
        if name == "x/again":
            path.write_bytes((folder / "x" / "people.csv").read_bytes())
        options = (*table, f"dataset.path={path}", "learner=logistic_regression")
        run = carry_out(configuration(*options, "tracking=none", results=folder / "results"))
        for other in (f"./{name}.csv", f"../z/{name}.csv"):
            page_runs.copy(run.prepared.folder.path, config={"dataset.path": other})
    return folder / "results"


@pytest.mark.thorough
def test_a_file_is_what_is_in_it_and_one_task_by_any_path(files):
    runs = list(Catalogue(files))
    assert len(runs) == 9
    table = approach_table(runs)
    paths = [run.config["dataset"]["path"] for run in runs]  # in the order of their ids
    first = [next(path for path in paths if part in path) for part in ("/x/", "/y/")]
    assert set(table["dataset"]) == {f"table path={path}" for path in first}
    assert table["family"].nunique() == table["run"].nunique() == 2
    assert len(table[table["setting"] == ""]) == 4  # two repeats of either
    assert [len(block.runs) for block in blocks(Catalogue(files))] == [3, 3, 3]
    one = [run for run in runs if run.config["dataset"]["path"].endswith("/x/people.csv")]
    (told,) = set(approach_table(one)["dataset"])
    assert told == "table"
    sets = Catalogue(files).comparable()
    assert [len(each) for each in sets] == [3, 3, 3]
    for each in sets:
        kept, notes = without_copies(list(each))
        assert len(kept) == 1 and len(notes) == 2
        assert f"is run {kept[0].id} again" in notes[0]
