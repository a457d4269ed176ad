"""Approaches on many tasks: their table, their ranks, and the page, which needs nothing else."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from fairbench.cli.main import run_command
from fairbench.comparison.runs import without_copies
from fairbench.core.arrays import rng
from fairbench.core.errors import UserError
from fairbench.core.text import read_csv
from fairbench.evaluation.table import values_of
from fairbench.experiments.execute import carry_out
from fairbench.reporting.document.writing import to_html
from fairbench.reporting.page import _blocks as blocks
from fairbench.results.catalogue import Catalogue
from fairbench_rank import approaches, leaderboard, sources, standings
from fairbench_rank.approaches import approach_table, family_means, mean_over_families
from fairbench_rank.ranking import answers
from fairbench_rank.scores import RankOptions, as_read, read_scores
from fairbench_rank.sources import benchmark_scores
from fairbench_rank.standings import RankedValues, findings_of, standings_of
from tests.audits.tables import predictions
from tests.extensions.rank import generated_atlas as atlas
from tests.harness import configuration, printed
from tests.reporting import page_runs


@pytest.fixture(scope="module")
def findings():
    return findings_of(atlas.table(), metrics=("error_rate",))


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


def test_equal_approaches_stand_at_one_place_and_share_their_chance():
    """One that makes the same predictions as another, under another name, is a tie with it."""
    table = atlas.table(families=(1, 1, 1, 2), repeats=3)
    for learner, method in (("logistic_regression", "ensemble"), ("xgboost", "baseline")):
        mine = (table["learner"] == learner) & (table["method"] == method)
        rows = pd.concat([table, table[mine].assign(method="twin")])
        values = approaches.ApproachValues.of(rows[rows["setting"] == ""])
        result = standings_of(RankedValues.of(values, "error_rate", 0)).rows
        by = {standing["method"]: standing for standing in result}
        one, other = by[f"{learner}, {method}"], by[f"{learner}, twin"]
        assert one | {"method": ""} == other | {"method": ""}
        assert one["last_rank"] > one["first_rank"]
        assert sum(standing["best_on_new"] for standing in result) == pytest.approx(1)


def test_approaches_on_few_families_are_not_ranked():
    table = atlas.table(families=(1, 1, 1, 4), repeats=3)
    few = (table["learner"] == "xgboost") & ~table["family"].isin(["family 0", "family 3"])
    values = approaches.ApproachValues.of(table[(table["setting"] == "") & ~few])
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
    return findings_of(atlas.with_few(atlas.table()), metrics=("error_rate",))


def test_an_approach_on_few_tasks_is_shown_and_changes_no_rank(findings, of_few):
    (without,), (ranked,) = (report.to_dict()["standings"] for report in (findings, of_few))
    assert ranked == without
    assert [row["name"] for row in of_few.few] == [atlas.FEW]
    assert (of_few.values.fewest_tasks, findings.few) == (5, [])
    one, other = (
        {point["intervention"] for point in of.mean_frontiers} for of in (findings, of_few)
    )
    assert one == other
    (said,) = standings.few_tasks_sentences(of_few)
    assert said.startswith("Not ranked: 1 of the 15 approaches, which were run on fewer than 5 of")
    assert said in leaderboard.summary_of(of_few, "statistical_parity").sure
    section = leaderboard.ranks_section(of_few, "statistical_parity")
    listed = section.blocks[-1].blocks[-1]
    assert section.blocks[-1].name == "ranks-few-tasks" and f"{atlas.FEW} (4 tasks)" in listed.text


def test_it_is_ranked_on_half_of_the_tasks():
    tasks = [f"data {task:02}" for task in range(5)]
    table = atlas.with_few(atlas.table(learners=("logistic_regression",)), tasks)
    result = findings_of(table, metrics=("error_rate",))
    assert result.few == []
    assert atlas.FEW in {standing["method"] for standing in result.standings[0].rows}


def test_runs_are_ranked_as_on_the_page_of_the_atlas(of_few):
    """One metric alone has all of the error rate in both, and so the very same answer."""
    (page,) = of_few.standings
    methods = sources.approaches_as_methods(atlas.with_few(atlas.table()))
    scores = sources.with_scores(methods, ["error_rate"])
    read = sources.select_approaches_with_enough_tasks(scores)
    options = as_read(RankOptions(path=Path("runs")), read)
    (answer,) = answers(read_scores(options, read=read), options)
    assert read.notes[-1] == (
        "left out, as in the leaderboard: 1 of 15 approaches, with the score on fewer than 5 of "
        "the 10 tasks, half of them"
    )
    assert (answer.best, answer.epsilon) == (page.answer.best, page.answer.epsilon)
    names = ["method", "first_rank", "last_rank", "mean", "near_best_on_new"]
    shown, own = pd.DataFrame(page.rows)[names], pd.DataFrame(answer.rows())[names]
    pd.testing.assert_frame_equal(own, shown)


# Plain means over families: what is averaged, and how often the intervals hold.


def test_tasks_are_averaged_within_families_and_families_equally_however_precise():
    family, values = np.array([0, 0, 0, 1, 2, 2, 3]), rng(0, "means").standard_normal((3, 7))
    values[1, :3] = np.nan
    variances = np.broadcast_to([1e-9, 1, 1, 1, 1, 1, 1e-9], values.shape)
    splits = np.full(values.shape, 5.0)
    differences = approaches.MeasuredDifferences(values, variances, splits, np.full(7, 0.2), family)
    result = family_means(differences)
    np.testing.assert_allclose(result, pd.DataFrame(values).T.groupby(family).mean().T)
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
    assert (mean_over_families(values, level=1 - 0.05 / 42).upper > result.upper).all()


SPLIT = ("split.repeats=2", "split.validation=0.25", "learner=logistic_regression")


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """Return a results folder, the run of no intervention, and the table of all."""
    folder = tmp_path_factory.mktemp("atlas") / "results"
    page_runs.finish(folder, *SPLIT)  # the same as the next, which has more settings
    path = page_runs.finish(folder, *SPLIT, "evaluator.relaxations=[0,1]")
    dir_ = page_runs.finish(folder, *SPLIT, "intervention=disparate_impact_remover")
    page_runs.copy(dir_, config={"intervention.repair_level": 0.5})
    page_runs.finish(folder, "learner=logistic_regression", "split.repeats=1")  # another split
    return folder, path.name, approach_table(list(Catalogue(folder)))


@pytest.mark.thorough
def test_a_row_is_a_task_an_approach_a_setting_and_a_repeat(fitted):
    folder, plain, table = fitted
    keys = ["dataset", "protect", "learner", "intervention", "method", "options", "setting"]
    assert not table.duplicated([*keys, "seed", "repeat"]).any()
    assert table["run"].nunique() == 3
    level = "intervention.repair_level="
    assert set(table["options"]) == {"", f"{level}0.5", f"{level}1.0"}
    own = table[(table["run"] == plain) & (table["setting"] == "")].set_index("repeat")
    metrics = values_of(Catalogue(folder).runs[plain].all_metrics())
    for name in ("error_rate", "equalized_odds", "log_loss", "fit_seconds"):
        long = metrics[(metrics["metric"] == name) & (metrics["group"] == "")]
        long = long[long["rate"].isna() & long["attribute"].isin(["", own["protect"].iloc[0]])]
        assert long.set_index("repeat")["value"].to_dict() == own[name].to_dict()
    assert own["test_share"].iloc[0] == pytest.approx(60 / (60 + 180), abs=0.01)


@pytest.mark.thorough
def test_thresholds_and_abstaining_are_settings(fitted):
    _, plain, table = fitted
    settings = set(table.loc[table["run"] == plain, "setting"])
    assert {"", "abstained=0.2", "statistical_parity<=0", "equalized_odds<=1"} <= settings
    relaxed = table[table["setting"] == "statistical_parity<=0"]
    assert np.isfinite(relaxed[["error_rate", "statistical_parity"]].to_numpy()).all()
    assert relaxed["equalized_odds"].isna().all()
    assert relaxed["group_at_prediction"].all()
    by = table[table["setting"] == ""].groupby("intervention")["group_at_prediction"].all()
    assert by.to_dict() == {"none": False, "disparate_impact_remover": True}


def test_parts_of_runs_are_named_as_all_are(fitted):
    assert approach_table([]).empty
    runs = list(Catalogue(fitted[0]))
    (half,) = (run for run in runs if run.config["intervention"].get("repair_level") == 0.5)
    assert set(approach_table([half])["options"]) == {""}
    (told,) = set(approach_table([half], among=runs)["options"])
    assert "intervention.repair_level=0.5" in told.split()


def test_runs_of_a_folder_are_scores_to_rank(fitted):
    folder, plain, wide = fitted
    table = benchmark_scores(folder, ["error_rate", "equalized_odds"])
    assert table.format == "fairbench runs" and table.costs == ("fit_seconds", "predict_seconds")
    assert [score.name for score in table.scores] == ["error_rate", "equalized_odds"]
    wide = wide[(wide["run"] == plain) & (wide["setting"] == "")]
    own = table.frame.query("method == 'logistic_regression, binomial_nll'")
    assert own["error_rate"].tolist() == wide["error_rate"].tolist()
    assert own["split"].tolist() == ["0.0", "0.1"]
    removed = "logistic_regression, disparate_impact_remover 0.5, binomial_nll"
    assert f"{removed} ({approaches.NEEDS_GROUP})" in set(table.frame["method"])
    assert table.frame["method"].nunique() == 3
    with pytest.raises(UserError, match=r"the fairbench runs have \d+ scores: .*; name the one"):
        benchmark_scores(folder)


@pytest.mark.thorough
def test_a_file_is_what_is_in_it_and_one_task_by_any_path(tmp_path):
    """Of two files, one of them under two names, each by three paths and so of three ids."""
    mine, other = (predictions(80, seed=seed)[["score", "sex", "label"]] for seed in (0, 1))
    of = ("dataset=table", "dataset.target=label", "dataset.sensitive=[sex]", "split.repeats=2")
    for name, frame in (("x/people", mine), ("x/again", mine), ("y/people", other)):
        path = tmp_path / f"{name}.csv"
        path.parent.mkdir(exist_ok=True)
        frame.to_csv(path, index=False)
        words = (*of, f"dataset.path={path}", "learner=logistic_regression", "tracking=none")
        run = carry_out(configuration(*words, results=tmp_path)).prepared.folder.path
        for other_path in (f"./{name}.csv", f"../z/{name}.csv"):
            page_runs.copy(run, config={"dataset.path": other_path})
    runs = list(Catalogue(tmp_path))
    assert len(runs) == 9
    table = approach_table(runs)
    paths = [run.config["dataset"]["path"] for run in runs]  # in the order of their ids
    first = [next(path for path in paths if part in path) for part in ("/x/", "/y/")]
    assert set(table["dataset"]) == {f"table path={path}" for path in first}
    assert table["family"].nunique() == table["run"].nunique() == 2
    assert len(table[table["setting"] == ""]) == 4  # two repeats of either
    assert [len(block.runs) for block in blocks(Catalogue(tmp_path))] == [3, 3, 3]
    one = [run for run in runs if run.config["dataset"]["path"].endswith("/x/people.csv")]
    assert set(approach_table(one)["dataset"]) == {"table"}
    sets = Catalogue(tmp_path).comparable()
    assert [len(each) for each in sets] == [3, 3, 3]
    for each in sets:
        kept, notes = without_copies(list(each))
        assert len(kept) == 1 and len(notes) == 2
        assert f"is run {kept[0].id} again" in notes[0]


# The page.

COMMON = ("dataset=simulated", "split.repeats=3", "split.train=0.6", "split.validation=0.2")
APPROACHES = {"a": {}, "b": {"method": "ensemble"}, "c": {"intervention": "reweighing"}}


def id_of(results, task, kind):
    """Return the id of an approach's run on a task."""
    words = {"method": "baseline", "intervention": "none", "dataset__n_samples": 301 + task}
    (run,) = Catalogue(results).select(split__repeats=3, **words | APPROACHES[kind])
    return run.id


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Three approaches on each of four tasks, and a run of other splits, of one fitted run."""
    folder = tmp_path_factory.mktemp("results")

    def moved(metrics, shift):
        rates = metrics["metric"].isin(["error_rate", "statistical_parity"])
        return metrics.assign(value=metrics["value"] + shift * rates * (1 + metrics["repeat"] / 5))

    base = page_runs.finish(folder, *COMMON, "method=baseline", "evaluator.relaxations=[0,0.1,1]")
    for n in range(4):
        shifts = (0.01 * n, 0.01 * n + 0.02, 0.03 - 0.01 * n)
        for shift, choices in zip(shifts, APPROACHES.values(), strict=True):
            config = {"dataset.n_samples": 301 + n, **choices}
            page_runs.copy(base, config=config, rows=lambda m, shift=shift: moved(m, shift))
    page_runs.copy(base, config={"dataset.n_samples": 301, "split.repeats": 2})
    return folder


@pytest.fixture(scope="module")
def board(results, tmp_path_factory):
    return leaderboard.write_leaderboard([results], tmp_path_factory.mktemp("board"))


@pytest.fixture(scope="module")
def page(board):
    return board[0].read_text(encoding="utf-8")


@pytest.mark.thorough
def test_it_asks_for_nothing_outside_itself_and_its_links_lead_somewhere(page, board):
    text = re.sub(r"base64,[\w+/=]+", "", page)
    assert not re.search(r"@import|url\(|fetch\(|XMLHttp|https?:|//[a-z]", text)
    assert not re.search(r'(src|action|srcset)="(?!data:)', text)
    anchors = re.findall(r'href="([^"]+)"', page)
    ids = set(re.findall(r'id="([^"]+)"', page))
    assert {anchor[1:] for anchor in anchors if anchor.startswith("#")} <= ids
    files = [anchor for anchor in anchors if not anchor.startswith(("#", "data:"))]
    assert files and all((board[0].parent / file).exists() for file in files)


def test_all_is_there_without_javascript_and_what_is_filtered_by_is_sorted_and_tagged(page):
    assert "filtered" not in re.sub(r"<(style|script)>.*?</\1>", "", page, flags=re.DOTALL)
    assert all(f"simulated n_samples={n} by group" in page for n in range(301, 305))
    assert "1 more run is not part of these answers. A run is left out if it has other" in page
    for name in ("intervention", "method"):
        options = re.search(rf'<select name="{name}">(.*?)</select>', page)[1]
        values = re.findall(r'value="([^"]+)"', options)
        assert values == sorted(values) and len(values) > 1
        assert all(f'data-{name}="{value}"' in page for value in values)


@pytest.mark.thorough
def test_a_page_with_ranks_has_all_methods_and_its_short_form_fits_a_terminal():
    whole = atlas.table(families=(1, 1, 1, 2), learners=("xgboost",), repeats=3)
    board = leaderboard.comparable_board(whole, "here", "")
    findings = leaderboard.board_findings(board)
    document = leaderboard.page_of(board, findings)
    page, said = to_html(document), document.summary.found
    assert "error rate" in said[0] and "the cheapest is" in said[-1]
    for standing in findings.standings:
        assert f'id="ranks-{standing.metric}"' in page
        assert all(row["method"] in page for row in standing.rows)
    text = printed(leaderboard.short_of(document, findings, board.gaps[0]), 80)
    assert "What is not resolved" in text and max(map(len, text.splitlines())) <= 80


def test_every_row_can_be_downloaded(board, results):
    table = approaches.read_approaches(board[0].parent / "approaches.parquet")
    runs = {id_of(results, n, kind) for n in range(4) for kind in APPROACHES}
    assert runs <= set(table["run"])
    assert table["setting"].eq("").sum() == (4 * 3 + 1) * 3
    means = read_csv(board[0].parent / "means.csv", ["setting", "options"])
    assert len(means) == len(table) // 3
    assert list(means["dataset"]) == sorted(means["dataset"])


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["", "metric=statistical_party"], "statistical_parity"),
        (["", "add=[nowhere]"], "nowhere"),
        (["file/under"], "file is a file; name another place, out=FOLDER"),
    ],
)
def test_wrong_words_are_refused_in_a_line(words, sentence, results, tmp_path, refused):
    (tmp_path / "file").write_text("mine")
    out = f"out={tmp_path / words[0]}"
    refused("leaderboard", f"results={results}", out, *words[1:], message=sentence)


def test_folders_that_say_nothing_are_refused(results, tmp_path):
    with pytest.raises(UserError, match="no finished run"):
        leaderboard.write_leaderboard([tmp_path], tmp_path / "out")
    one = tmp_path / "one" / "runs"
    one.mkdir(parents=True)
    for kind in APPROACHES:
        run = id_of(results, 0, kind)
        shutil.copytree(results / "runs" / run, one / run)
    with pytest.raises(UserError, match="needs several tasks"):
        leaderboard.write_leaderboard([one.parent], tmp_path / "out")


def test_names_of_any_length_and_signs_are_files_of_their_own():
    titles = ["a b", "a/b", "a-b", "<b>a b", "x" * 300, "y" * 300, "数据" * 300, "数" * 599]
    about = [{"dataset": title, "protect": "sex"} for title in titles]
    names = [leaderboard.TaskMeans(each, None, 3).name for each in about]
    assert len(set(names)) == len(titles)
    assert max(len(f"task-{name}.svg".encode()) for name in names) <= 255
    assert all(re.fullmatch(r"[\w-]+", name) for name in names)


@pytest.mark.parametrize(
    ("kept", "of"),
    [
        ({"intervention": ["none"], "method": ["baseline"]}, "Here are 1 approach, 4 families and"),
        ({"family": ["family 0", "family 1"]}, "2 families and 2 splits of each task."),
        ({"repeat": [0]}, "4 families and 1 split of each task."),
        ({"intervention": ["reweighing"]}, ""),  # nothing without an intervention is there
    ],
)
def test_what_is_not_ranked_is_said_with_what_it_takes(kept, of):
    whole = atlas.table(families=(1, 1, 1, 1), learners=("xgboost",), repeats=2)
    whole = whole[whole["setting"] == ""]
    for name, values in kept.items():
        whole = whole[whole[name].isin(values)]
    board = leaderboard.comparable_board(whole, "here", "")
    findings = leaderboard.board_findings(board)
    assert bool(findings.standings) == (not of)
    said = " ".join(leaderboard.summary_of(findings, board.gaps[0]).unseen)
    assert ("Nothing is ranked: that takes" in said) == bool(of) and of in said


def test_tasks_whose_target_is_a_number_are_no_part_of_the_page():
    whole = atlas.table(families=(1, 1, 1, 1), learners=("xgboost",), repeats=2)
    numbers = whole["dataset"] == "data 00"
    whole.loc[numbers, ["error_rate", "statistical_parity", "equalized_odds"]] = np.nan
    tasks = leaderboard.comparable_board(whole, "here", "").tasks
    assert [task.title for task in tasks] == [f"data 0{n} by sex" for n in (1, 2, 3)]
    with pytest.raises(UserError, match="tasks whose target is a number have none"):
        leaderboard.comparable_board(whole[numbers], "here", "")


def test_the_table_of_a_page_makes_the_same_page(board, results, tmp_path):
    written = board[0].parent / "approaches.parquet"
    again = leaderboard.write_leaderboard([written], tmp_path / "again")
    ranked = benchmark_scores(written, ["error_rate"])
    assert ranked.frame["task"].nunique() == 4 + 1
    assert approaches.read_approaches(written).equals(
        approaches.read_approaches(again[0].parent / written.name)
    )
    one, other = (
        json.loads((page[0].parent / "index.json").read_text())["standings"]
        for page in (board, again)
    )
    assert one == other


def test_runs_are_shown_beside_a_table_of_others_and_count_once(board, results, tmp_path):
    """The runs of one approach alone, beside the table of all."""
    for n in range(4):
        run = id_of(results, n, "b")
        shutil.copytree(results / "runs" / run, tmp_path / "mine" / "runs" / run)
    others = board[0].parent / "approaches.parquet"
    words = [f"results={tmp_path / 'mine'}", f"add=[{others}]", f"out={tmp_path / 'out'}"]
    run_command(["leaderboard", *words])
    columns = ["run", "setting", "repeat", "error_rate", "statistical_parity"]
    both, alone = (
        approaches.read_approaches(path)[columns].sort_values(columns[:3], ignore_index=True)
        for path in (tmp_path / "out" / others.name, others)
    )
    pd.testing.assert_frame_equal(both, alone)


def test_what_a_table_has_of_other_data_or_of_a_namesake_is_left_out():
    first = atlas.table(families=(1, 1, 1), learners=("xgboost",), repeats=2)
    later = first.assign(run="later " + first["run"], family="another")
    namesake = later[later["method"] == "ensemble"]
    elsewhere = later[later["dataset"] == "data 01"].assign(rows=7.0, method="mine")
    own = later[later["method"] == "ensemble"].assign(method="mine")
    both, notes = approaches.approaches_together([first, pd.concat([namesake, elsewhere, own])])
    assert len(both) == len(first) + len(own)
    assert set(both["family"]) == set(first["family"])
    runs = pd.concat([namesake, elsewhere])["run"].nunique()
    assert notes[0].startswith(f"Left out of a later table: runs ({runs}) that have other data")


ODD = {
    "no column options": lambda table: table.drop(columns="options"),
    "column error_rate is of": lambda table: table.assign(error_rate="much"),
    "infinite": lambda table: table.assign(error_rate=np.inf),
    "column learner": lambda table: table.assign(learner=None),
    "column setting": lambda table: table.assign(setting="abstained=x"),
    "column test_share": lambda table: table.assign(test_share=1.0),
    "two rows on one split": lambda table: pd.concat([table, table]),
    "damaged": lambda table: table,
}


@pytest.mark.parametrize("sentence", ODD)
def test_a_table_of_something_else_is_refused_in_a_line(sentence, tmp_path, refused):
    table = atlas.table(families=(1, 1, 1), learners=("xgboost",), repeats=2)
    content = approaches.approaches_bytes(ODD[sentence](table))
    path = tmp_path / "odd.parquet"
    path.write_bytes(content[:-100] if sentence == "damaged" else content)
    refused("leaderboard", f"results={path}", f"out={tmp_path / 'out'}", message=sentence)
