"""Tables that hold what nobody expects: read alike by every verb, shown as text, or refused.

``python -m benchmarks.faults tables`` gives all of them to the commands; here most are read in this
process, and the labels of all go through the commands at once.
"""

import re
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.faults import tables
from benchmarks.faults.browser import browser, browser_path
from fairbench.audits.question import Options
from fairbench.core.errors import UserError
from fairbench.core.text import label_notes
from tests import warm
from tests.harness import Lazily

audit_columns = Lazily("fairbench.audits.table")
table = Lazily("fairbench.components.datasets.table")
download = Lazily("fairbench.data.download")
HACK = tables.HACK
LABELS = (
    "[unknown]", "[/red]", "\x1b[2Jred", "\u202egnirts", "a\u200bb", f"<script>{HACK}</script>",
    f'"><img src=x onerror="{HACK}">', f"javascript:{HACK}", "=cmd|' /C calc'!A0", "+1", "@x",
    "\\input{/etc/passwd} $x_1^2$ 50 % & #", "**a** | `b` | [c](http://d)", "\U0001f600",
    "a\nb\r", "a\tb", "a", "a ", "A", "caf\u00e9", "cafe\u0301", "nan", "NA", "None", "", "True",
    "true", "01", "1", "1.0", "a,b", "a;b", 'say "a"', "_hidden", "l" * 3000, "everyone", "$",
    "&lt;b&gt;",
)  # fmt: skip
READ = (*tables.LABELS, *tables.HEADERS, *tables.ENCODINGS, *tables.FILES)


def start(words, cwd, environment):
    return warm.run(words, cwd=cwd, timeout=240, environment=dict(environment))


def groups_of_run(path, group):
    archive = download.Archive.of(download=False)
    data = table.load(archive, path=path, target="label", sensitive=[group])
    return Counter(data.sensitive[group].tolist())


def groups_of_audit(path, group):
    options = Options(path=Path(path), target="label", score="score", group=(group,))
    frame = audit_columns.read_frame(options)
    return Counter(frame[group].replace("", "unknown").tolist())


@pytest.mark.thorough
@pytest.mark.parametrize(
    "case", READ, ids=lambda case: case.name.encode("ascii", "replace").decode()
)
def test_both_readers_find_the_labels_that_were_written(case, tmp_path, monkeypatch):
    for name, value in case.environment.items():
        monkeypatch.setenv(name, value)
    path = str(case.write(tmp_path))
    for verb, read in (("run", groups_of_run), ("audit", groups_of_audit)):
        if (said := case.refusal(verb)) is None:
            assert read(path, case.group) == case.groups
        else:
            with pytest.raises((UserError, OSError), match=re.escape(said)):
                read(path, case.group)


@pytest.fixture(scope="module")
def tried(tmp_path_factory):
    case = tables.labelled("all at once", *LABELS, rows=len(LABELS) * 6)
    root = tmp_path_factory.mktemp("tables")
    return next(tables.tried([case], root, start)), root


@pytest.mark.thorough
def test_no_row_is_lost_or_changed_and_nothing_is_obeyed(tried):
    result, _ = tried
    assert result.taken == {"run": True, "export": True, "audit": True}
    assert result.wrong == []


@pytest.mark.thorough
def test_a_browser_shows_the_labels_and_runs_none(tried):
    path = browser_path()
    if path is None:
        pytest.skip("there is no Chromium here to look at pages with")
    result, _ = tried
    with browser(path) as opened:
        for policy in (True, False):
            seen = opened.open(result.page, policy=policy)
            assert list(tables.judged(seen, result.case, policy=policy)) == []


def test_a_browser_is_asked_what_would_run(tmp_path):
    path = browser_path()
    if path is None:
        pytest.skip("there is no Chromium here to look at pages with")
    page = tmp_path / "page.html"
    policy = "default-src 'none'"
    page.write_text(
        f'<meta http-equiv="Content-Security-Policy" content="{policy}"><title>Audit of x</title>'
        f"<body>a<script>{tables.HACK}</script></body>"
    )
    case = tables.labelled("one", "a")
    with browser(path) as opened:
        kept = list(tables.judged(opened.open(page), case, policy=True))
        free = list(tables.judged(opened.open(page, policy=False), case, policy=False))
    assert not any("a script ran" in message for message in kept)
    assert any("said with its policy" in message for message in kept)
    assert "a script ran without a policy: hacked" in free


def test_labels_that_look_alike_are_named():
    said = list(label_notes("sex", ["male", "Male ", "female", "01", "1.0", "", "unknown"]))
    assert said == [
        "sex: '01' and '1.0' look alike, and are different groups",
        "sex: 'Male ' and 'male' look alike, and are different groups",
        "sex: rows without a label are counted with those of the label 'unknown'",
    ]
    (one,) = label_notes("city", ["caf\u00e9", "cafe\u0301", "b"])
    assert one == r"city: 'cafe\u0301' and 'caf\xe9' look alike, and are different groups"
    assert not list(
        label_notes("sex", ["a", "b", "1", "2", "", "9007199254740993", "9007199254740992"])
    )
