"""The first page of a report: one page, for somebody who reads nothing else, in every form."""

import html
import io
import json
import re
import shutil
import subprocess
import zipfile
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import fairbench
from fairbench.audits.kinds import document_of
from fairbench.audits.report import _gap_chart
from fairbench.audits.report import _key_figures as key_figures
from fairbench.cli.main import main
from fairbench.core import VERSION
from fairbench.core.errors import UserError
from fairbench.evaluation.findings import LARGE, OPEN, PAIR, RATIO, SMALL
from fairbench.reporting.document import writing
from fairbench.reporting.document.forms import to_latex, to_markdown, to_word
from fairbench.reporting.document.model import as_cell
from fairbench.reporting.document.terminal import MOST_LINES
from fairbench.reporting.document.writing import _to_pdf
from tests.audits.tables import gap, parse, predictions, written
from tests.harness import printed, quick


def table(rows=600, bias=0.25):
    """Return predictions of three attributes' groups."""
    frame = predictions(rows, bias=bias)
    return frame.assign(age=np.random.default_rng(1).choice(["young", "old", "middle"], rows))


@pytest.fixture(scope="module")
def document():
    words = ["p.csv", "target=label", "score=score", "group=[sex,race,age]"]
    made = document_of(parse(words), table().astype(str))
    return replace(made, made=replace(made.made, when="2026-05-04 12:30 UTC"))


@pytest.mark.thorough
def test_a_terminal_shows_the_summary_in_few_lines_of_eighty_columns(document):
    text = printed(document, 80)
    lines = text.splitlines()
    assert len(lines) <= MOST_LINES - 3 and max(map(len, lines)) <= 80
    for part in ("What was found", "Key figures", "What is open", "What to do next", "p.csv"):
        assert part in text
    assert "Rates by group" not in text


@pytest.mark.thorough
def test_what_has_no_room_on_a_terminal_is_what_matters_least(document):
    endless = ["word " * 400, *(f"sentence {number}" for number in range(60))]
    summary = replace(document.summary, sure=endless, unseen=endless, todo=endless)
    lines = printed(replace(document, summary=summary), 80).splitlines()
    assert len(lines) <= MOST_LINES - 3
    result = [sentence.split()[1] for sentence in document.summary.found[:3]]
    assert all(any(word in line for line in lines) for word in result)


REPORTS = [
    "audit target=label score=score", "audit score=score", "audit score=score top=50",
    "audit target=label score=score against=other", "audit target=score prediction=other",
    "dossier four-fifths prediction=label", "dossier model-card target=label score=score",
]  # fmt: skip


@pytest.mark.parametrize("words", quick(REPORTS, REPORTS[-2:-1]))
def test_every_kind_of_report_is_a_few_lines_and_the_page_is_everything(words, tmp_path, capsys):
    path = written(table().assign(other=lambda frame: 0.9 * frame["score"]), tmp_path)
    more = ["group=[sex,race,age]", f"path={path}", f"out={tmp_path / 'out'}"]
    assert main([*words.split(), *more]) == 0
    short = capsys.readouterr().out.splitlines()
    assert len(short) <= MOST_LINES
    pages = [*(tmp_path / "out").glob("*.html")]
    assert short[-1].startswith("all of it is written: ")
    assert all(page.name in short[-1] for page in pages)
    longest = max((page.read_text() for page in pages), key=len)
    titles = re.findall(r"<h2>([A-Z][^<]+)</h2>", longest)
    assert len(titles) > len([title for title in titles if title in "\n".join(short)])


def test_key_figures_are_of_all_that_is_found_and_say_why_a_row_is_open():
    rate = "true positive rate"
    unsure = gap(OPEN, measure=rate, value=-0.1, lower=-0.14, upper=-0.06)
    large = gap(LARGE, ("men", "women"), measure="selection rate", lower=0.15, upper=0.25)
    pair = replace(large, about=PAIR, measure=rate, lower=float("nan"))
    shown = key_figures([unsure, replace(large, value=0.2, values=(0.5, 0.3)), pair], ["sex"], rate)
    assert [(row[1], row[3], f"{row[5].value}{row[5].after}") for row in shown.rows] == [
        ("gap in true positive rate", (0.06, 0.14), "differ; size open †"),
        ("gap in selection rate: men and women", (0.15, 0.25), "large"),
    ]
    assert "†: the interval of this row alone lies beyond the limit" in shown.caption
    of_others = replace(large, values=(0.5, 0.2), value=0.4)  # the gap is not that of these two
    assert key_figures([of_others], ["sex"], "").rows[0][1] == "gap in selection rate"
    within = key_figures([replace(unsure, upper=0.02)], ["sex"], "")
    assert "†" not in within.caption
    assert (within.rows[0][5].value, within.rows[0][5].after) == ("open", "")


def decided(**options):
    """Return the report of decisions on as many of two groups, which differ."""
    hired = [1, 0] * 200 + [1] * 144 + [0] * 256 + [1] * options.pop("few", 0)
    sex = np.array(["m", "f", "few"])[np.arange(len(hired)) // 400]
    frame = pd.DataFrame({"sex": sex, "hired": hired})
    return fairbench.audit(frame, prediction="hired", groups="sex", favourable="1", **options)


def test_two_groups_that_differ_by_an_open_amount_are_so_everywhere():
    document = decided(epsilon=0.1).document
    tables = {part.title: part.blocks[0].rows for part in document.sections if part.title}
    assert tables["Gaps between groups"][0][-1].value == "differ; size open"
    assert "that of m is higher than that of f" in " ".join(document.verdict.can)
    assert document.summary.key_figures.rows[-1][-1].value == "differ; size open"


def test_a_page_can_be_made_again_from_itself(tmp_path):
    path = written(table(), tmp_path, "a b.csv")
    assert main(["audit", str(path), "target=label", "score=score", "group=[sex]", "seed=3"]) == 0
    made = json.loads((tmp_path / "a b-audit" / "audit.json").read_text())["made"]
    command = f"fairbench audit '{path}' target=label score=score 'group=[sex]' seed=3"
    expected = [command, "a b.csv", 3, VERSION]
    assert [made[name] for name in ("command", "file", "seed", "version")] == expected
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", made["when"])
    assert re.fullmatch("[0-9a-f]{64}", made["sha256"])
    page = (tmp_path / "a b-audit" / "audit.html").read_text()
    assert made["sha256"][:16] in page and "group=[sex]&#39; seed=3" in page


def test_a_report_in_python_names_its_call(monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    report = fairbench.audit(table(), target="label", score="score", groups=["sex"], epsilon=0.1)
    made = report.document.made
    assert (made.when, made.sha256) == ("1970-01-02 00:00 UTC", "")
    assert made.command == (
        "fairbench.audit(table, target='label', score='score', groups=['sex'], "
        "epsilon=0.1, name='predictions')"
    )


def test_the_first_page_names_three_findings_or_says_that_nothing_is_settled(document):
    many = replace(document.summary, found=[f"finding {n}." for n in range(9)], still_open=["a."])
    text = to_markdown(replace(document, summary=many))
    first, _, rest = text.partition("## Can be concluded")
    assert "finding 2" in first and "finding 3" not in first
    assert "More findings are in the full report" in first
    assert "Rates by group" in rest and "Rates by group" not in first
    assert text.index("finding 2") < text.index("What is open") < text.index("What was audited")
    none = to_markdown(replace(document, summary=replace(many, found=[])))
    places = [none.index(said) for said in ("Nothing is settled", "impact ratio", "What is open")]
    assert places == sorted(places)


def test_what_holds_no_pictures_says_where_they_are(document):
    for text in (to_markdown(document), to_latex(document)):
        assert "The figure “selection rate” is on the HTML page" in text
        assert "Figure:" not in text


@pytest.mark.thorough
def test_every_figure_of_word_is_a_picture_that_says_what_it_shows(document):
    figures = [*document.figures, document.summary.chart]
    drawings = sum(len(figure.drawings) for figure in figures)
    with zipfile.ZipFile(io.BytesIO(to_word(document))) as file:
        text = file.read("word/document.xml").decode()
    assert text.count("<pic:blipFill>") == drawings > 5
    assert 'descr="selection rate"' in text


def test_a_pdf_needs_a_browser_that_can_print(document, tmp_path, monkeypatch, refused):
    monkeypatch.setattr(writing, "BROWSERS", ())
    path = written(table(), tmp_path)
    line = refused("audit", path, "score=score", "group=sex", "formats=[html,pdf]")
    assert re.search(r"chromium.*formats=\[html\]", line)
    assert not (tmp_path / "predictions-audit").exists()
    monkeypatch.setattr(writing, "BROWSERS", ("false",))
    with pytest.raises(UserError, match="^.* could not print .*$"):
        _to_pdf(document)


TOOLS = [writing._browser(), shutil.which("pdftotext")]
needs_browser = pytest.mark.skipif(
    None in TOOLS, reason="needs a browser and pdftotext: apt-get install chromium poppler-utils"
)


def pages_of(content, folder):
    """Return the text of every page of a PDF."""
    (folder / "page.pdf").write_bytes(content)
    line = ["pdftotext", "-layout", str(folder / "page.pdf"), "-"]
    return subprocess.run(line, capture_output=True, check=True, text=True).stdout.split("\f")[:-1]


@needs_browser
@pytest.mark.thorough
def test_the_first_page_of_a_pdf_is_the_summary_alone(document, tmp_path):
    content = _to_pdf(document)
    pages = pages_of(content, tmp_path)
    assert len(pages) <= 20 and all(page.strip() for page in pages)
    first, second, *others = pages
    for part in ("What was found", "What to do next", "What was audited", "p.csv"):
        assert part in first
    assert not any(title.strip() in first for title in ("Rates by group", "Impact ratios"))
    assert "The groups in pictures" in second
    everything = "".join(others)
    assert "Rates by group" in everything
    assert "What would settle what is open" in everything  # which a page folds
    assert b"D:20260504123000" in content


def shown_text(page):
    """Return what a reader of a page sees, in pictures too."""
    unseen = r"(?s)<(script|style)\b.*?</\1>|<[^>]*>"
    return html.unescape(re.sub(unseen, " ", page.read_text()))


def test_a_page_of_three_attributes_is_short_and_the_page_beside_it_has_all(tmp_path):
    frame = table(4000)
    words = ["target=label", "score=score", "group=[sex,race,age]", f"out={tmp_path}"]
    assert main(["audit", str(written(frame, tmp_path)), *words]) == 0
    short, whole = (tmp_path / name for name in ("audit.html", "audit-all.html"))
    assert len(shown_text(short).split()) <= 2500
    conclusions = json.loads((tmp_path / "audit.json").read_text())["conclusions"]
    groups = {*(frame["sex"] + " x " + frame["age"])}
    for text in [*conclusions["can"], *conclusions["cannot"], "The groups in pictures", *groups]:
        assert text in shown_text(whole)
    assert not any(f'<td class="t">{group}</td>' in short.read_text() for group in groups)
    assert set(re.findall('href="([^"#:]+)"', short.read_text())) == {whole.name}
    for page in (short, whole):  # every link to a place leads somewhere
        text = page.read_text()
        assert all(f'id="{place}"' in text for place in re.findall('href="#([^"]+)"', text))


def test_key_figures_are_of_what_was_asked_for():
    ratio = gap(LARGE, ("women",), measure="impact ratio", lower=0.5, upper=0.7, bound=0.8)
    ratio = replace(ratio, about=RATIO, value=0.6)
    findings = [
        gap(LARGE, attribute="sex x race", value=0.9, lower=0.8, upper=1.0),
        gap(SMALL, value=0.01, lower=-0.01, upper=0.02),
        replace(ratio, groups=("men",), value=1.0),
        ratio,
        replace(ratio, attribute="race", given="if calibrated alike"),
    ]
    shown = key_figures(findings, ("sex", "race"), "")
    rows = [[as_cell(value).value for value in row] for row in shown.rows]
    assert rows == [
        ["sex", "impact ratio: women", 0.6, (0.5, 0.7), 0.8, "under four fifths"],
        ["sex", "gap in accuracy", 0.01, (0.0, 0.02), 0.05, "small"],
    ]
    assert key_figures([], ("sex",), "") is None
    assert _gap_chart([], ("sex",), "") is None


def test_every_attribute_has_its_key_figures_before_one_has_more():
    rates = ("selection rate", "true positive rate", "false positive rate", "accuracy")
    names = ("sex", "race", "age", "region")
    ends = {"value": 0.2, "lower": 0.1, "upper": 0.3}
    findings = [
        gap(LARGE, attribute=name, measure=rate, **ends) for name in names for rate in rates
    ]
    shown = key_figures(findings, names, "true positive rate")
    rows = [tuple(as_cell(value).value for value in row[:2]) for row in shown.rows]
    assert [name for name, measured in rows if measured == "gap in true positive rate"] == [*names]
    assert [name for name, _ in rows] == ["sex"] * 4 + ["race"] * 3 + ["age", "region"]


def test_a_chart_has_one_tolerance():
    age = gap(LARGE, attribute="age", value=9.0, lower=8.0, upper=10.0, bound=5.0)
    findings = [gap(LARGE, value=0.1, lower=0.08, upper=0.2), age]
    svg = _gap_chart(findings, ("sex", "age"), "").drawings[0]
    assert "sex" in svg
    assert "age" not in svg


OVER = [
    (0, {}, "over that of the group selected most often. Under"),
    (0, {"reference": ["f"]}, "over that of the group named by reference=. Under"),
    (5, {}, "of the group selected most often of those that are large enough. Under"),
]


@pytest.mark.parametrize(("few", "more", "over"), OVER)
def test_what_an_impact_ratio_is_over_is_said(few, more, over):
    """A few people who are all selected are no group that others are compared with."""
    assert over in decided(few=few, **more).document.summary.key_figures.caption
