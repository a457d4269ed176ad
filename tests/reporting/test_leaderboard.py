"""The leaderboard: it needs nothing else, holds every row, and refuses what says nothing."""

import gzip
import io
import json
import re
import shutil

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from fairbench.cli.main import run_command
from fairbench.comparison.atlas.approaches import approach_table
from fairbench.core.errors import UserError
from fairbench.core.files import write_text
from fairbench.core.formats import read_csv
from fairbench.reporting.document.html import to_html
from fairbench.reporting.document.json import to_json
from fairbench.reporting.document.model import (
    Column,
    Document,
    ExecutiveSummary,
    Section,
    Table,
    TableCell,
)
from fairbench.reporting.document.plain_text import to_markdown
from fairbench.reporting.document.terminal import print_document, terminal
from fairbench.reporting.leaderboard.answer import answer_of
from fairbench.reporting.leaderboard.cached_page import (
    Leaderboard,
    _plain,
    _restore,
    open_leaderboard,
)
from fairbench.reporting.leaderboard.means import TaskMeans
from fairbench.reporting.leaderboard.write import (
    BoardFindings,
    BoardTable,
    comparable_board,
    page_of,
    short_of,
    write_leaderboard,
)
from fairbench.results.catalogue import Catalogue
from fairbench.results.run_writer import seal_run
from fairbench.results.runs import read_environment
from tests.comparison.generated_atlas import table
from tests.harness import CONF
from tests.reporting.page_runs import copy, finish

COMMON = ("dataset=simulated", "split.repeats=3", "split.train=0.6", "split.validation=0.2")
APPROACHES = {"a": {}, "b": {"method": "ensemble"}, "c": {"intervention": "reweighing"}}
HOSTILE = "<script>alert(1)</script>"


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
    return write_leaderboard([results], tmp_path_factory.mktemp("board"))


@pytest.fixture(scope="module")
def page(board):
    return board.path.read_text(encoding="utf-8")


def test_it_asks_for_nothing_outside_itself(page):
    text = re.sub(r"base64,[\w+/=]+", "", page)
    assert not re.search(r"@import|url\(|fetch\(|XMLHttp|https?:|//[a-z]", text)
    assert not re.search(r'(src|action|srcset)="(?!data:)', text)


def test_all_is_there_without_javascript(page):
    assert "filtered" not in re.sub(r"<(style|script)>.*?</\1>", "", page, flags=re.DOTALL)
    for n in range(301, 305):
        assert f"simulated n_samples={n} by group" in page


def test_a_run_of_other_splits_is_left_out_and_the_page_says_so(page):
    assert "1 more run is not part of these answers. A run is left out if it has other" in page


def test_every_row_can_be_downloaded(board, results):
    table = pd.read_csv(
        io.BytesIO(gzip.decompress((board.path.parent / "table.csv.gz").read_bytes()))
    )
    assert set(table["run"].astype(str)) >= {
        id_of(results, n, kind) for n in range(4) for kind in APPROACHES
    }
    plain = table[table["setting"].isna()]
    assert len(plain) == (4 * 3 + 1) * 3
    means = read_csv(board.path.parent / "means.csv", ["setting", "options"])
    assert len(means) == len(table) // 3
    assert list(means["dataset"]) == sorted(means["dataset"])


def test_a_pack_of_metrics_gives_the_same_table(results, tmp_path):
    pack, own = tmp_path / "pack", Catalogue(results)
    fitted = max(own.runs, key=len)  # the others are copies with short names
    words = [fitted, f"results={results}", f"out={pack}", "cells=false", "predictions=false"]
    run_command(["store", "pack", *words])
    packed = approach_table(list(Catalogue(pack)))
    assert len(packed) and packed.equals(approach_table([own.runs[fitted]]))


def test_links_and_files_lead_somewhere(page, board):
    anchors = re.findall(r'href="([^"]+)"', page)
    ids = set(re.findall(r'id="([^"]+)"', page))
    assert {anchor[1:] for anchor in anchors if anchor.startswith("#")} <= ids
    files = [anchor for anchor in anchors if not anchor.startswith(("#", "data:"))]
    assert files and all((board.path.parent / file).exists() for file in files)


def test_what_is_filtered_by_is_sorted_and_tagged(page):
    for name in ("intervention", "method"):
        options = re.search(rf'<select name="{name}">(.*?)</select>', page)[1]
        values = re.findall(r'value="([^"]+)"', options)
        assert values == sorted(values) and len(values) > 1
        assert all(f'data-{name}="{value}"' in page for value in values)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["metric=gap"], "metric 'gap'"),
        (["metric=statistical_party"], "statistical_parity"),
        (["add=[nowhere]"], "nowhere"),
    ],
)
def test_wrong_words_are_refused_in_a_line(words, sentence, results, tmp_path):
    with pytest.raises(UserError, match=re.escape(sentence)):
        run_command(["leaderboard", f"results={results}", f"out={tmp_path}", *words])


def test_folders_that_say_nothing_are_refused(results, tmp_path):
    with pytest.raises(UserError, match="no finished run"):
        write_leaderboard([tmp_path], tmp_path / "out")
    one = tmp_path / "one" / "runs"
    one.mkdir(parents=True)
    for kind in APPROACHES:
        run = id_of(results, 0, kind)
        shutil.copytree(results / "runs" / run, one / run)
    with pytest.raises(UserError, match="needs several tasks"):
        write_leaderboard([one.parent], tmp_path / "out")


def test_a_place_that_is_a_file_is_refused_before_anything_is_computed(results, tmp_path):
    (tmp_path / "file").write_text("mine")
    for place in (tmp_path / "file", tmp_path / "file" / "under"):
        with pytest.raises(UserError, match=r"file is a file; name another place, out=FOLDER"):
            run_command(["leaderboard", f"results={results}", f"out={place}"])
    run_command(
        ["store", "pack", f"results={results}", f"out={tmp_path / 'pack'}", id_of(results, 0, "b")]
    )
    with pytest.raises(UserError, match="pack is a pack, which stays as it is"):
        run_command(["leaderboard", f"results={results}", f"out={tmp_path / 'pack' / 'board'}"])


def test_a_run_of_the_same_name_that_other_code_fitted_is_left_out_and_the_page_says_so(
    results, tmp_path
):
    """Two people's methods of one name, with the same options, have one id."""
    shutil.copytree(results / "runs", tmp_path / "runs")
    path = tmp_path / "runs" / id_of(results, 0, "b") / "cells.txt"
    path.write_text(path.read_text().translate(str.maketrans("012345", "123450")))
    seal_run(path.parent, read_environment(path.parent))
    sure = write_leaderboard([results, tmp_path], tmp_path / "out").short.summary.sure
    (note,) = (sentence for sentence in sure if "later folder" in sentence)
    assert note.startswith("1 run of a later folder is left out, such as simulated, ")
    assert "needs another name" in note


def test_names_of_any_length_and_signs_are_files_of_their_own():
    titles = ["a b", "a/b", "a-b", "<b>a b", "x" * 300, "y" * 300, "数据" * 300, "数" * 599]
    names = [TaskMeans({"dataset": title, "protect": "sex"}, None, 3).name for title in titles]
    assert len(set(names)) == len(titles)
    assert max(len(f"task-{name}.svg".encode()) for name in names) <= 255
    assert names[0] == "a-b-by-sex"
    assert all(re.fullmatch(r"[\w-]+", name) for name in names)


def small(whole, **kept):
    """Return the findings of a part of a table."""
    for name, values in kept.items():
        whole = whole[whole[name].isin(values)]
    board = comparable_board(whole.reset_index(drop=True), "here", "")
    return BoardFindings.of(board, "", draws=20)


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
    told = small(whole, **kept)
    said = answer_of(told.atlas, told.gaps).unseen
    assert bool(told.atlas.standings) == (not why)
    assert [sentence for sentence in said if sentence.startswith("Nothing is ranked")] == [
        sentence for sentence in said if why and why in sentence
    ]


def test_tasks_whose_target_is_a_number_are_no_part_of_the_page():
    whole = table(families=(1, 1, 1, 1), learners=("xgboost",), repeats=2)
    numbers = whole["dataset"] == "data 00"
    gone = ["error_rate", *(name for name in ("statistical_parity", "equalized_odds"))]
    whole.loc[numbers, gone] = np.nan
    assert [task.title for task in comparable_board(whole, "here", "").tasks] == [
        f"data 0{n} by sex" for n in (1, 2, 3)
    ]
    with pytest.raises(UserError, match="tasks whose target is a number have none"):
        comparable_board(whole[numbers], "here", "")


@pytest.fixture(scope="module")
def told():
    """A generated atlas whose interventions lower the gap and cost errors, and its findings."""
    whole = table(families=(1, 1, 1, 2), learners=("xgboost",), repeats=3)
    left = ["log_loss", "multicalibration_error", "expected_calibration_error"]
    left += ["statistical_parity"]
    board = BoardTable(whole.drop(columns=left))
    return board, BoardFindings.of(board, "equalized_odds", draws=40)


@pytest.fixture(scope="module")
def document(told):
    return page_of(*told, [], None, "fairbench leaderboard")


@pytest.mark.thorough
def test_it_opens_with_the_answer_and_the_picture(document, told):
    titles = [title for title, _ in document.summary.parts]
    assert titles == ["What to use", "How sure this is", "What is not resolved"]
    by_size, best, *_ = document.summary.found
    asked = "At the same gap, thresholds for each group, which need the group at prediction, err"
    assert by_size.startswith(asked) and "rows" in by_size
    assert "error rate" in best
    sized, frontier = document.lead[:2]
    assert (sized.name, frontier.name) == ("by-size", "frontier")
    assert len(frontier.drawings) == 1 + 1
    assert "equalized odds" in frontier.drawings[0]


@pytest.mark.thorough
def test_the_sections_show_what_the_statistics_say(document, told):
    page, findings = to_html(document), told[1].atlas
    assert [section.title for section in document.sections] == [
        *("Ranks", "Claims", "Cost and benefit", "What explains it", "Data sets"),
        "Download and origin",
    ]
    for claim in findings.claims:
        assert claim.source in page and f">{claim.verdict}</span>" in page
    for standing in findings.standings:
        assert f'id="ranks-{standing.metric}"' in page
        assert all(one.approach in page for one in standing.standings)
    drawn = [name for name in document.files if name.startswith("figures/")]
    assert len(drawn) == len(set(drawn)) >= 6 + 2
    assert all(document.files[name].startswith("<svg xmlns") for name in drawn)


@pytest.mark.thorough
def test_the_other_forms_and_the_terminal_have_the_answer(document, told, capsys):
    print_document(short_of(document, told[1]), terminal(80))
    printed = capsys.readouterr().out
    assert "What is not resolved" in printed and "claims of the literature" in printed
    assert max(map(len, printed.splitlines())) <= 80
    assert '"standings"' in to_json(document) and "What to use" in to_markdown(document)


@pytest.fixture
def opened_board(results, tmp_path, monkeypatch):
    """Open the leaderboard of a copy of the runs, quickly written; say how often it was."""
    monkeypatch.setenv("FAIRBENCH_CACHE", str(tmp_path / "cache"))
    shutil.copytree(results / "runs", tmp_path / "mine" / "runs")
    shutil.copytree(CONF, tmp_path / "conf")
    written = []

    def write(folders, out, **options):
        written.append(out)
        write_text(out / "index.html", str(options))
        columns = [Column("approach"), Column("difference", "estimate")]
        rows = [[TableCell("ensemble", strong=True), (0.1, -0.2, float("nan"))]]
        table = Table(columns, rows, "error rate", rules=frozenset({1}), tags=[{"of": "one"}])
        summary = ExecutiveSummary(["this"], ["sure"])
        short = Document("A board", [Section("", [table])], summary=summary)
        return Leaderboard(out / "index.html", short, ["index.html"])

    monkeypatch.setattr("fairbench.reporting.leaderboard.write.write_leaderboard", write)

    def opening(**options):
        folders, conf = [tmp_path / "mine"], tmp_path / "conf"
        board = open_leaderboard(folders, tmp_path / "out", conf=conf, **options)
        return board, len(written)

    return opening


def test_a_page_of_which_nothing_changed_is_opened_and_not_computed(opened_board):
    first, _ = opened_board()
    again, count = opened_board()
    assert count == 1 and again.unchanged and not first.unchanged
    assert again.path == first.path
    assert to_json(again.short) == to_json(first.short)
    assert again.short.sections[0].blocks[0].rows[0][0].strong
    assert printed(again.short) == printed(first.short)


def printed(document):
    console = Console(file=io.StringIO(), width=120)
    print_document(document, console)
    return console.file.getvalue()


def test_what_has_changed_makes_the_page_anew(opened_board, results, tmp_path):
    opened_board()
    assert opened_board(metric="equalized_odds")[1] == 2
    assert opened_board()[1] == 3
    (tmp_path / "out" / "index.html").write_text("<script>mine</script>")
    assert opened_board()[1] == 4
    assert "script" not in (tmp_path / "out" / "index.html").read_text()
    with (tmp_path / "conf" / "split" / "holdout.yaml").open("a") as file:
        file.write("# other code\n")
    assert opened_board()[1] == 5
    metrics = tmp_path / "mine" / "runs" / id_of(results, 3, "b") / "metrics.parquet"
    shutil.copy(results / "runs" / id_of(results, 2, "b") / "metrics.parquet", metrics)
    assert opened_board()[1] == 6
    shutil.rmtree(metrics.parent)
    assert opened_board()[1] == 7
    assert opened_board()[1] == 7


def test_no_page_of_a_strangers_is_taken_for_one_of_ours(opened_board, tmp_path, monkeypatch):
    """Who fills a results folder can write whatever is sealed, but not into my own cache."""
    opened_board()
    monkeypatch.setenv("FAIRBENCH_CACHE", str(tmp_path / "another's cache"))
    board, count = opened_board()
    assert count == 2 and not board.unchanged


@pytest.mark.thorough
def test_what_a_terminal_shows_is_kept_to_the_letter(document, told):
    short = short_of(document, told[1])
    assert len(short.tables) > 1
    assert printed(_restore(json.loads(json.dumps(_plain(short))))) == printed(short)
