"""The leaderboard: it needs nothing else, holds every row, and refuses what says nothing."""

import gzip
import io
import json
import re
import shutil

import numpy as np
import pandas as pd
import pytest

from benchmarks.stored import laid_out
from fairbench.cli.main import run_command
from fairbench.core.errors import UserError
from fairbench.core.text import read_csv
from fairbench.reporting.document.forms import to_json, to_markdown
from fairbench.reporting.document.terminal import print_document, terminal
from fairbench.reporting.document.writing import to_html
from fairbench.results.catalogue import Catalogue
from fairbench.results.runs import read_environment, seal_run
from fairbench_rank import leaderboard
from fairbench_rank.approaches import approaches_bytes, approaches_together, read_approaches
from fairbench_rank.sources import benchmark_scores
from tests.extensions.rank.generated_atlas import table
from tests.reporting.page_runs import copy, finish

COMMON = ("dataset=simulated", "split.repeats=3", "split.train=0.6", "split.validation=0.2")
APPROACHES = {"a": {}, "b": {"method": "ensemble"}, "c": {"intervention": "reweighing"}}


def add(base, task, shift, **choices):
    """Copy a run as one of another task and approach."""
    config = {"dataset.n_samples": 301 + task, **choices}
    copy(base, config=config, rows=lambda m: moved(m, shift))


def id_of(results, task, kind):
    """Return the id of an approach's run on a task."""
    words = {"method": "baseline", "intervention": "none", "dataset__n_samples": 301 + task}
    (run,) = Catalogue(results).select(split__repeats=3, **words | APPROACHES[kind])
    return run.id


def moved(metrics, shift):
    rates = metrics["metric"].isin(["error_rate", "statistical_parity"])
    noise = shift * (1 + 0.2 * metrics["repeat"])
    return metrics.assign(value=metrics["value"] + noise.where(rates, 0))


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Three approaches on each of four tasks, and a run of other splits, of one fitted run."""
    folder = tmp_path_factory.mktemp("results")
    base = finish(folder, *COMMON, "method=baseline", "evaluator.relaxations=[0,0.1,1]")
    for n in range(4):
        shifts = (0.01 * n, 0.01 * n + 0.02, 0.03 - 0.01 * n)
        for shift, choices in zip(shifts, APPROACHES.values(), strict=True):
            add(base, n, shift, **choices)
    copy(base, config={"dataset.n_samples": 301, "split.repeats": 2})
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


def test_every_row_can_be_downloaded(board, results):
    table = pd.read_csv(
        io.BytesIO(gzip.decompress((board[0].parent / "table.csv.gz").read_bytes()))
    )
    assert set(table["run"].astype(str)) >= {
        id_of(results, n, kind) for n in range(4) for kind in APPROACHES
    }
    plain = table[table["setting"].isna()]
    assert len(plain) == (4 * 3 + 1) * 3
    means = read_csv(board[0].parent / "means.csv", ["setting", "options"])
    assert len(means) == len(table) // 3
    assert list(means["dataset"]) == sorted(means["dataset"])


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["", "metric=gap"], "metric 'gap'"),
        (["", "metric=statistical_party"], "statistical_parity"),
        (["", "add=[nowhere]"], "nowhere"),
        (["file"], "file is a file; name another place, out=FOLDER"),
        (["file/under"], "file is a file; name another place, out=FOLDER"),
    ],
)
def test_wrong_words_are_refused_in_a_line(words, sentence, results, tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(UserError, match=re.escape(sentence)):
        run_command(["leaderboard", f"results={results}", f"out={tmp_path / words[0]}", *words[1:]])


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


@pytest.mark.thorough
def test_a_run_of_the_same_name_that_other_code_fitted_is_left_out_and_the_page_says_so(
    results, tmp_path
):
    """Two people's methods of one name, with the same options, have one id."""
    shutil.copytree(results / "runs", tmp_path / "runs")
    path = laid_out(tmp_path / "runs" / id_of(results, 0, "b")) / "cells.txt"
    path.write_text(path.read_text().translate(str.maketrans("012345", "123450")))
    seal_run(path.parent, read_environment(path.parent))
    sure = leaderboard.write_leaderboard([results, tmp_path], tmp_path / "out")[1].summary.sure
    (note,) = (sentence for sentence in sure if "later folder" in sentence)
    assert note.startswith("1 run of a later folder is left out, such as simulated, ")
    assert "needs another name" in note


def test_names_of_any_length_and_signs_are_files_of_their_own():
    titles = ["a b", "a/b", "a-b", "<b>a b", "x" * 300, "y" * 300, "数据" * 300, "数" * 599]
    about = [{"dataset": title, "protect": "sex"} for title in titles]
    names = [leaderboard.TaskMeans(each, None, 3).name for each in about]
    assert len(set(names)) == len(titles)
    assert max(len(f"task-{name}.svg".encode()) for name in names) <= 255
    assert names[0] == "a-b-by-sex"
    assert all(re.fullmatch(r"[\w-]+", name) for name in names)


def small(whole, **kept):
    """Return the findings of a part of a table."""
    for name, values in kept.items():
        whole = whole[whole[name].isin(values)]
    board = leaderboard.comparable_board(whole.reset_index(drop=True), "here", "")
    return leaderboard.board_findings(board), board.gaps[0]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("kept", "why"),
    [
        ({"intervention": ["none"], "method": ["baseline"]}, "there is one approach alone"),
        ({"family": ["family 0", "family 1"]}, "cannot be told from 2: run data sets of at least"),
        ({"repeat": [0]}, "one split does not show what is luck"),
        ({"intervention": ["reweighing"]}, ""),  # nothing without an intervention is there
    ],
)
def test_what_is_not_ranked_is_said_with_the_reason(kept, why):
    whole = table(families=(1, 1, 1, 1), learners=("xgboost",), repeats=2)
    whole = whole[whole["setting"] == ""]
    findings, gap = small(whole, **kept)
    said = leaderboard.summary_of(findings, gap).unseen
    assert bool(findings.standings) == (not why)
    assert [sentence for sentence in said if sentence.startswith("Nothing is ranked")] == [
        sentence for sentence in said if why and why in sentence
    ]


def test_tasks_whose_target_is_a_number_are_no_part_of_the_page():
    whole = table(families=(1, 1, 1, 1), learners=("xgboost",), repeats=2)
    numbers = whole["dataset"] == "data 00"
    whole.loc[numbers, ["error_rate", "statistical_parity", "equalized_odds"]] = np.nan
    tasks = leaderboard.comparable_board(whole, "here", "").tasks
    assert [task.title for task in tasks] == [f"data 0{n} by sex" for n in (1, 2, 3)]
    with pytest.raises(UserError, match="tasks whose target is a number have none"):
        leaderboard.comparable_board(whole[numbers], "here", "")


@pytest.fixture(scope="module")
def told():
    """A generated atlas whose interventions lower the gap and cost errors, and its findings."""
    whole = table(families=(1, 1, 1, 2), learners=("xgboost",), repeats=3)
    left = ["log_loss", "multicalibration_error", "expected_calibration_error"]
    board = leaderboard.BoardTable(whole.drop(columns=[*left, "statistical_parity"]))
    return board, leaderboard.board_findings(board, "equalized_odds")


@pytest.fixture(scope="module")
def document(told):
    return leaderboard.page_of(*told, "equalized_odds", command="fairbench leaderboard")


@pytest.mark.thorough
def test_the_page_has_the_answer_and_the_sections_that_the_statistics_say(document, told, capsys):
    titles = [title for title, _ in document.summary.named_parts.values()]
    assert titles == ["What to use", "How sure this is", "What is not resolved"]
    assert "error rate" in document.summary.found[0]
    frontier = document.lead[0]
    assert frontier.name == "frontier" and len(frontier.drawings) == 1 + 1
    assert "equalized odds" in frontier.drawings[0]
    page = to_html(document)
    titles = [section.title for section in document.sections]
    assert titles == ["Ranks", "Cost and benefit", "Data sets", "Download and origin"]
    for standing in told[1].standings:
        assert f'id="ranks-{standing.metric}"' in page
        assert all(row["method"] in page for row in standing.rows)
    drawn = [name for name in document.files if name.startswith("figures/")]
    assert len(drawn) == len(set(drawn)) >= 5 + 2
    assert all(document.files[name].startswith("<svg xmlns") for name in drawn)
    print_document(leaderboard.short_of(document, told[1], "equalized_odds"), terminal(80))
    printed = capsys.readouterr().out
    assert "What is not resolved" in printed
    assert max(map(len, printed.splitlines())) <= 80
    assert '"standings"' in to_json(document) and "What to use" in to_markdown(document)


def test_the_table_of_a_page_makes_the_same_page(board, results, tmp_path):
    written = board[0].parent / "approaches.parquet"
    again = leaderboard.write_leaderboard([written], tmp_path / "again")
    ranked = benchmark_scores(written, ["error_rate"])
    assert ranked.frame["task"].nunique() == 4 + 1 and ranked.scores[0].better == "lower"
    assert read_approaches(written).equals(read_approaches(again[0].parent / written.name))
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
    both, alone = (read_approaches(path) for path in (tmp_path / "out" / others.name, others))
    place = ["run", "setting", "repeat"]
    metrics = [*place, "error_rate", "statistical_parity"]
    pd.testing.assert_frame_equal(
        both.sort_values(place, ignore_index=True)[metrics],
        alone.sort_values(place, ignore_index=True)[metrics],
    )


def test_what_a_table_has_of_other_data_or_of_a_namesake_is_left_out():
    first = table(families=(1, 1, 1), learners=("xgboost",), repeats=2)
    later = first.assign(run="later " + first["run"], family="another")
    namesake = later[later["method"] == "ensemble"]
    elsewhere = later[later["dataset"] == "data 01"].assign(rows=7.0, method="mine")
    own = later[later["method"] == "ensemble"].assign(method="mine")
    both, notes = approaches_together([first, pd.concat([namesake, elsewhere, own])])
    assert len(both) == len(first) + len(own)
    assert set(both["family"]) == set(first["family"])
    assert "On 1 task, runs are left out that have other data" in notes[0]
    assert notes[1].startswith("3 later runs are left out") and "another name" in notes[1]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda t: t.drop(columns="options"), "no column options"),
        (lambda t: t.assign(seed="0"), "column seed is of"),
        (lambda t: t.assign(error_rate="much"), "column error_rate is of"),
        (lambda t: t.assign(error_rate=np.inf), "infinite"),
        (lambda t: t.assign(learner=None), "column learner"),
        (lambda t: t.assign(setting="abstained=x"), "column setting"),
        (lambda t: t.assign(test_share=1.0), "column test_share"),
        (lambda t: pd.concat([t, t]), "two rows on one split"),
        (lambda t: t, "damaged"),
    ],
)
def test_a_table_of_something_else_is_refused_in_a_line(change, sentence, tmp_path):
    path = tmp_path / "odd.parquet"
    content = approaches_bytes(change(table(families=(1, 1, 1), learners=("xgboost",), repeats=2)))
    path.write_bytes(content[:-100] if sentence == "damaged" else content)
    with pytest.raises(UserError, match=sentence) as refused:
        run_command(["leaderboard", f"results={path}", f"out={tmp_path / 'out'}"])
    assert "\n" not in str(refused.value)
