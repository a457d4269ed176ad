"""What a stranger's record says is no word, path or size that a command goes by.

Each attack is sealed as if it had been written here, and lies under the id that belongs to it.
"""

import json
import shutil

import pytest

from fairbench.cli.main import main
from fairbench.core.errors import warn
from fairbench.core.files import sealed_json, unsealed_json
from fairbench.core.text import digest
from fairbench.results.record import GROUPS, run_name
from fairbench.results.runs import LAST
from tests.harness import quick, run_folder

SMALL = ("dataset=simulated", "dataset.n_samples=120", "tracking=none")
RUN = (*SMALL, "split.repeats=2", "learner=logistic_regression", "method=baseline")
TUNE = (*RUN, "learner.C=interval(0.5,2.0)", "trials=2")
SECRET = "what the environment knows"


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    cwd = tmp_path_factory.mktemp("original")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(cwd)
        assert main(["run", *RUN]) == 0
    return cwd


@pytest.fixture
def place(original, tmp_path, monkeypatch):
    """Return a folder with results, in which commands are given; a component lies beside it."""
    shutil.copytree(original / "results", tmp_path / "place" / "results")
    monkeypatch.chdir(tmp_path / "place")
    monkeypatch.setenv("FAIRBENCH_TEST_SECRET", SECRET)
    (tmp_path / "stranger.yaml").write_text(
        f"_target_: os.system\ncommand: touch {tmp_path / 'canary'}\n"
    )
    yield tmp_path / "place"
    assert not (tmp_path / "canary").exists()


def said(capsys, *words):
    """Return the status of a command, and all that it prints."""
    warn.cache_clear()
    status = main(list(words))
    printed = capsys.readouterr()
    text = printed.out + printed.err
    assert "Traceback" not in text and SECRET not in text
    return status, text


def stored(place, **changes):
    """Change options ``group__option`` of the run, put it under the id of that, and return it."""
    folder = run_folder(place / "results")
    record = unsealed_json((folder / LAST).read_bytes())
    for name, value in changes.items():
        group, _, option = name.partition("__")
        if group == "choices":
            record["choices"][option] = value
        elif option:
            record["config"][group][option] = value
        else:
            record["config"][group] = value
    if not any(name.startswith("choices") for name in changes):
        record["choices"] = {group: record["config"][group]["name"] for group in GROUPS}
        record["name"] = run_name(record["choices"])
    run = digest(record["config"], 12)
    target = folder.rename(folder.with_name(run))
    (target / LAST).write_text(sealed_json(record))
    return run


@pytest.mark.thorough
def test_a_record_of_no_shape_is_left_out_and_named_whoever_reads_it(place, capsys):
    """Which are none is in tests/results/test_run_folder.py."""
    run = stored(place, learner__C="${oc.env:FAIRBENCH_TEST_SECRET}")
    for words in (["store", "ls"], ["report"], ["leaderboard"], ["table", run],
                  ["store", "verify", run], ["store", "evaluate", run], ["store", "show", run],
                  ["choose", "dataset=simulated"], ["audit", run],
                  ["alternative", *SMALL, f"in_use={run}"]):  # fmt: skip
        _, text = said(capsys, *words)
        assert f"results/runs: {run} (runs: 1), whose environment.json is damaged" in text


VERIFY, EVALUATE = ["store", "verify"], ["store", "evaluate"]
IN_USE = ["alternative", *SMALL, "in_use"]
STORED = [
    # What is not installed or declared makes no word.
    ({"learner__name": "strangers"}, [IN_USE, VERIFY], "no component that is"),
    ({"learner__touched": "x"}, [IN_USE, VERIFY], "has no option 'touched'"),
    ({"learner__max_iter": 10**9}, [IN_USE, VERIFY], "learner.max_iter is too large"),
    ({"evaluator__choose_by": {}}, [IN_USE, VERIFY], "is of another type"),
    ({"learner__C": "x' hydra.run.dir='/"}, [IN_USE, VERIFY], "learner.C"),
    ({"learner__tol": -1.0}, [VERIFY], "computed again: InvalidParameterError: The 'tol' param"),
    # No more is built than is stored.
    ({"split__repeats": 90_000}, [VERIFY, EVALUATE], "repeats=90000, and fewer cells stored: 2"),
    (
        {"consistency__vary": "learner.C", "consistency__values": [float(i) for i in range(9000)]},
        [VERIFY, EVALUATE], "consistency.values=9000, and fewer cells stored: 2",
    ),
    ({"dataset__n_samples": 10**6}, [VERIFY, EVALUATE], "=1000000, and fewer rows stored: 120"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "commands", "reason"), quick(STORED, STORED[5:], several=True), ids=str
)
def test_what_cannot_be_computed_again_is_said_in_a_line(changes, commands, reason, place, capsys):
    run = stored(place, **changes)
    for *words, last in commands:
        words += [f"in_use={run}"] if last == "in_use" else [last, run]
        status, text = said(capsys, *words)
        assert status > 0 and reason in text


def test_a_page_says_which_run_has_no_command(place, capsys):
    run = stored(place, learner__name="strangers")
    assert said(capsys, "report")[0] == 0
    page = (place / "results" / "report" / "index.html").read_text()
    assert f"# run {run}: learner=strangers is no component that is installed here" in page
    assert "learner=strangers method" not in page


TRIALS = {
    "a component": {"learner": "../../../../../../stranger"},
    "a call": {"learner._target_": "os.system"},
    "a word more": {"learner.C": "1.0 learner._target_=os.system"},
    "a value outside": {"learner.C": 1e9},
    "no value": {},
}


@pytest.mark.thorough
@pytest.mark.parametrize("attack", TRIALS)
def test_a_trial_outside_of_the_space_is_judged_again(attack, place, capsys):
    assert said(capsys, "tune", *TUNE)[0] == 0
    (path,) = place.glob("results/tuning/*/trials.jsonl")
    first, *others = path.read_text().splitlines(keepends=True)
    values = unsealed_json(first.encode()) | {"values": TRIALS[attack]}
    path.write_text("".join([sealed_json(values), *others]))
    status, text = said(capsys, "tune", *TUNE)
    assert status == 0 and "trials from the damaged one on are judged again" in text
    assert json.loads(path.read_text().splitlines()[0])["values"].keys() == {"learner.C"}


@pytest.mark.thorough
@pytest.mark.parametrize("verb", ["verify", "evaluate"])
def test_a_file_is_read_where_the_command_names_it(verb, place, capsys):
    rows = "\n".join(f"{int(7 * i % 5 < 2)},{13 * i % 17},{'fm'[i // 60]}" for i in range(120))
    (place / "people.csv").write_text(f"y,x,sex\n{rows}\n")
    data = ("dataset=table", "dataset.path=people.csv", "dataset.target=y", "dataset.sensitive=sex")
    shutil.rmtree(place / "results" / "runs")
    assert said(capsys, "run", *RUN[2:], *data)[0] == 0
    run = run_folder(place / "results").name
    status, text = said(capsys, "store", verb, run)
    assert status > 0 and "add dataset.path=people.csv" in text
    assert said(capsys, "store", verb, run, "dataset.path=people.csv")[0] == 0


@pytest.mark.thorough
@pytest.mark.parametrize("folder", ["data", "splits"])
def test_verify_looks_at_all_that_a_run_names(folder, place, capsys):
    run = run_folder(place / "results").name
    (path,) = (place / "results" / folder).iterdir()
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(content)
    status, text = said(capsys, "store", "verify", run)
    assert status == 1 and f"{path.relative_to(place)}: it was made again" in text
    assert said(capsys, "store", "verify", run)[0] == 0


def test_a_list_of_figures_names_none_elsewhere(place, capsys):
    run = run_folder(place / "results")
    (place.parent / "secret.png").write_bytes(b"not to be read")
    listed = {"files": {"../../../../../secret.png": digest("x")}}
    (run / "figures" / "manifest.json").write_text(sealed_json(listed))
    _, text = said(capsys, "store", "verify", run.name)
    assert "secret" not in text and "manifest.json: it was made again" in text


def test_a_run_under_the_id_of_another_is_none(place, capsys):
    run = run_folder(place / "results")
    shutil.copytree(run, run.with_name("0" * 12))
    status, text = said(capsys, "store", "ls")
    assert status == 0 and "1 finished run" in text and f"({'0' * 12})" not in text
    assert "left out" in text and "0" * 12 in text
