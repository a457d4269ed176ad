"""A stranger's results folder, records and tables: nothing runs, and what is wrong is named."""

import pickle
import re
import shutil
from html.parser import HTMLParser

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.faults import tables
from benchmarks.stored import configured, copied, laid_out
from fairbench.cli.main import main
from fairbench.core.errors import warn
from fairbench.core.files import sealed_json
from fairbench.core.text import label_notes, visible
from fairbench.results.runs import Run, read_environment, seal_run
from tests.end_to_end.test_browser import CHROMIUM, chromium
from tests.harness import run_folder

SMALL = ("dataset=simulated", "dataset.n_samples=120", "tracking=none")
RUN = (*SMALL, "split.repeats=2", "learner=logistic_regression", "method=baseline")
SECRET = "what the environment knows"
CANARY = "../canary"


class Runs:
    """What a pickle of a stranger's does when it is read."""

    def __reduce__(self):
        return open, (CANARY, "w")


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


@pytest.fixture
def strange(place):
    """Return the run of that folder, whose files lie there by themselves."""
    return Run(laid_out(run_folder(place / "results")))


def said(capsys, *words):
    """Return the status of a command, and all that it prints."""
    warn.cache_clear()
    status = main(list(words))
    printed = capsys.readouterr()
    text = printed.out + printed.err
    assert "Traceback" not in text and SECRET not in text and "\x1b" not in text
    return status, text


def replaced(name, content):
    """Return an attack by the content of a file of a run."""

    def attack(strange):
        known = strange.environment
        (strange.path / name).write_bytes(content() if callable(content) else content)
        seal_run(strange.path, known)

    return attack


def raw_record(text):
    """Return an attack by what stands in place of a record."""

    def attack(strange):
        (strange.path / "environment.json").write_text(text)

    return attack


def parquet(table):
    buffer = pa.BufferOutputStream()
    pq.write_table(table, buffer)
    return buffer.getvalue().to_pybytes()


def pickled_type():
    """Return Parquet whose schema has a type of Python's, which old readers unpickled."""
    meta = {
        b"ARROW:extension:name": b"arrow.py_extension_type",
        b"ARROW:extension:metadata": pickle.dumps(Runs()),
    }
    schema = pa.schema([pa.field("variant", pa.string(), metadata=meta)])
    return parquet(pa.table({"variant": [""]}, schema=schema))


LABEL = "<script>alert(1)</script>\x1b[31m"
LISTED = ("store ls",)
ATTACKS = {
    "YAML that makes objects": (
        replaced("config.yaml", b"!!python/object/apply:os.system ['touch ../canary']"),
        ("store show {run}",), "!!python/object",
    ),
    "metrics that are a pickle": (
        replaced("metrics.parquet", lambda: pickle.dumps(Runs())),
        ("table {run}", "report"), "metrics.parquet is missing or damaged",
    ),
    "predictions that are a pickle": (
        replaced("predictions.parquet", lambda: pickle.dumps(Runs())),
        ("audit {run}", "store export {run} out.csv"), "predictions.parquet is missing or damaged",
    ),
    "a type that was unpickled": (
        replaced("metrics.parquet", pickled_type), ("report",), "metrics.parquet"
    ),
    "a summary that is none": (
        replaced("summary.csv", b"a,b\n=cmd|' /C calc'!A0,1\n"), ("table {run}",), "summary.csv"
    ),
    "a record that is too large": (
        raw_record(sealed_json({"name": "x" * (1 << 25)})), LISTED, "left out"
    ),
    "a record that is too deep": (
        raw_record(sealed_json({}).replace("{", '{"a": ' + "[" * 10**5, 1)), LISTED, "left out"
    ),
}  # fmt: skip


@pytest.mark.thorough
@pytest.mark.parametrize(("attack", "verbs", "expected"), ATTACKS.values(), ids=ATTACKS)
def test_nothing_runs_and_the_attack_is_named(attack, verbs, expected, strange, capsys):
    attack(strange)
    for words in verbs:
        status, text = said(capsys, *words.format(run=strange.id).split())
        assert status in (0, 1, 2) and expected in text


@pytest.mark.thorough
def test_a_label_is_shown_and_not_obeyed(strange, place, capsys):
    known, path = strange.environment, strange.path / "metrics.parquet"
    rows = pq.read_table(path).to_pandas()
    # What a browser, a terminal and a spreadsheet would obey.
    rows["group"] = rows["group"].astype(str).replace("minority", LABEL)
    rows.to_parquet(path, index=False)
    seal_run(strange.path, known)
    said(capsys, "table", strange.id)
    said(capsys, "report")
    page = (place / "results" / "report" / "index.html").read_text()
    assert "\x1b" not in page
    assert LABEL[:25] not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;\\x1b[31m" in page


def stored(place, changed):
    """Change options of the run, put it under the id of that, and return it."""
    folder = run_folder(place / "results")
    target = copied(folder, configured(read_environment(folder), changed))
    shutil.rmtree(folder)
    return target.name


@pytest.mark.thorough
def test_a_record_of_no_shape_is_left_out_and_named_whoever_reads_it(place, capsys):
    """Which are none is in tests/results/test_run_folder.py."""
    run = stored(place, {"learner.C": "${oc.env:FAIRBENCH_TEST_SECRET}"})
    for words in (["store", "ls"], ["report"], ["leaderboard"], ["table", run],
                  ["store", "verify", run], ["store", "evaluate", run], ["store", "show", run],
                  ["choose", "dataset=simulated"], ["audit", run]):  # fmt: skip
        _, text = said(capsys, *words)
        assert f"results/runs: {run} (runs: 1), whose environment.json is damaged" in text


STORED = [
    # What is not installed or declared makes no word.
    ({"learner": "strangers"}, "no component that is"),
    ({"learner.touched": "x"}, "has no option 'touched'"),
    ({"learner.max_iter": 10**9}, "learner.max_iter is too large"),
    ({"evaluator.choose_by": {}}, "is of another type"),
    ({"learner.C": "x' hydra.run.dir='/"}, "learner.C"),
    ({"learner.tol": -1.0}, "computed again: InvalidParameterError: The 'tol' param"),
    # No more is built than is stored.
    ({"split.repeats": 90_000}, "repeats=90000, and fewer cells stored: 2"),
    (
        {"consistency.vary": "learner.C", "consistency.values": [float(i) for i in range(9000)]},
        "consistency.values=9000, and fewer cells stored: 2",
    ),
    ({"dataset.n_samples": 10**6}, "=1000000, and fewer rows stored: 120"),
]  # fmt: skip


@pytest.mark.thorough
@pytest.mark.parametrize(("changes", "reason"), STORED, ids=str)
def test_what_cannot_be_computed_again_is_said_in_a_line(changes, reason, place, capsys):
    run = stored(place, changes)
    status, text = said(capsys, "store", "verify", run)
    assert status > 0 and reason in text


def test_a_page_says_which_run_has_no_command(place, capsys):
    run = stored(place, {"learner": "strangers"})
    assert said(capsys, "report")[0] == 0
    page = (place / "results" / "report" / "index.html").read_text()
    assert f"# run {run}: learner=strangers is no component that is installed here" in page
    assert "learner=strangers method" not in page


@pytest.mark.thorough
@pytest.mark.parametrize("verb", ["verify", "evaluate"])
def test_a_file_is_read_where_the_command_names_it(verb, place, capsys):
    rows = "\n".join(f"{int(7 * i % 5 < 2)},{13 * i % 17},{'fm'[i // 60]}" for i in range(120))
    path = place / "people.csv"
    path.write_text(f"y,x,sex\n{rows}\n")
    data = ("dataset=table", "dataset.path=people.csv", "dataset.target=y", "dataset.sensitive=sex")
    shutil.rmtree(place / "results" / "runs")
    assert said(capsys, "run", *RUN[2:], *data)[0] == 0
    run = run_folder(place / "results").name
    status, text = said(capsys, "store", verb, run)
    assert status > 0 and "add dataset.path=people.csv" in text
    assert said(capsys, "store", verb, run, "dataset.path=people.csv")[0] == 0
    path.write_text(path.read_text().replace("f", "m", 1))
    status, text = said(capsys, "store", verb, run, "dataset.path=people.csv")
    assert status > 0 and f"people.csv is another file now than run {run} was made with" in text


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


HACK = tables.HACK
LABELS = (
    "[unknown]", "[/red]", "\x1b[2Jred", "\u202egnirts", "a\u200bb", f"<script>{HACK}</script>",
    f'"><img src=x onerror="{HACK}">', f"javascript:{HACK}", "=cmd|' /C calc'!A0", "+1", "@x",
    "\\input{/etc/passwd} $x_1^2$ 50 % & #", "**a** | `b` | [c](http://d)", "\U0001f600",
    "a\nb\r", "a\tb", "a", "a ", "A", "caf\u00e9", "cafe\u0301", "nan", "NA", "None", "", "True",
    "true", "01", "1", "1.0", "a,b", "a;b", 'say "a"', "_hidden", "l" * 3000, "everyone", "$",
    "&lt;b&gt;",
)  # fmt: skip


@pytest.fixture(scope="module")
def tried(tmp_path_factory):
    case = tables.labelled("all at once", *LABELS, rows=len(LABELS) * 6)
    root = tmp_path_factory.mktemp("tables")
    return next(tables.tried([case], root))


@pytest.mark.thorough
def test_no_row_is_lost_or_changed_and_nothing_is_obeyed(tried):
    assert tried.taken == {"run": True, "export": True, "audit": True}
    assert tried.wrong == []


class Shown(HTMLParser):
    """The title and text of a browser's document, and elements that run, load or lead elsewhere."""

    def __init__(self, document):
        super().__init__()
        self.title, self.text, self.tag, self.odd = "", "", "", []
        self.feed(document)

    def handle_starttag(self, tag, attrs):
        self.tag = tag
        elsewhere = tag in ("script", "iframe", "object", "embed", "form", "base") or any(
            name.startswith("on") or (name in LINKS and not re.match(WITHIN, value or ""))
            for name, value in attrs
        )
        self.odd += [self.get_starttag_text()] * elsewhere

    def handle_endtag(self, tag):
        self.tag = ""

    def handle_data(self, data):
        if self.tag == "title":
            self.title += data
        elif self.tag != "style":
            self.text += data


LINKS, WITHIN = ("href", "src", "action", "xlink:href"), r"#|data:|[\w./-]*$"
POLICY = r'<meta http-equiv="Content-Security-Policy"[^>]*>'


@pytest.mark.thorough
@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here to look at pages with")
def test_a_browser_shows_the_labels_and_runs_none(tried, tmp_path):
    page = (tried.folder / "out" / "audit.html").read_text()
    without, removed = re.subn(POLICY, "", page)
    assert removed == 1
    for number, content in enumerate((page, without)):
        path = tmp_path / f"{number}.html"
        path.write_text(content)
        shown = Shown(chromium(f"--user-data-dir={tmp_path}/own", "--dump-dom", path.as_uri()))
        assert shown.title.startswith("Audit of ") and not shown.odd
        text = " ".join(shown.text.split())
        assert not [label for label in LABELS if " ".join(visible(label).split()) not in text]


def test_labels_that_look_alike_are_named():
    labels = ["male", "Male ", "female", "01", "1.0", "", "unknown", "caf\u00e9", "cafe\u0301"]
    assert [note.removesuffix(" look alike, and are different groups")
            for note in label_notes("sex", labels)] == [
        "sex: '01' and '1.0'", "sex: 'Male ' and 'male'", r"sex: 'cafe\u0301' and 'caf\xe9'",
        "sex: rows without a label are counted with those of the label 'unknown'",
    ]  # fmt: skip
    assert not [*label_notes("sex", ["a", "b", "1", "", "9007199254740993", "9007199254740992"])]
