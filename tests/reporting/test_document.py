"""A document says the same on a terminal of any width, on a page and in files, and escapes all."""

import base64
import hashlib
import html
import io
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from importlib.resources import files

import docx
import jsonschema
import numpy as np
import pytest

from fairbench.core.errors import UserError
from fairbench.reporting.document import forms
from fairbench.reporting.document.model import (
    Bar,
    Code,
    Column,
    Details,
    Document,
    ExecutiveSummary,
    Figure,
    Gallery,
    Items,
    Link,
    Mark,
    Paragraph,
    Section,
    Table,
    TableCell,
    Verdict,
)
from fairbench.reporting.document.writing import FORMS, check_page, to_html, write_document
from tests.harness import printed

HOSTILE = "<script>alert('1')</script> & \"quoted\""
NAN = float("nan")
TABLE = Table(
    [
        Column("who"),
        Column("rate", "estimate"),
        Column("difference", "signed", left_out=1),
        Column("95 % interval", "interval", left_out=2),
        Column("rows", "count", left_out=3),
        Column("P", "probability"),
        Column("", "bar"),
    ],
    [
        [TableCell(HOSTILE, mark="large", hint=HOSTILE), (0.5, 0.4, 0.6), 0.1, (0, 1), 1234, 0.0]
        + [Bar((0, 50, 100), band=(40, 60), zero=50)],
        ["b", (NAN, NAN, NAN), NAN, (NAN, NAN), 7, 1.0, None],
    ],
    title="Rates",
    caption="What there is to know.",
    rules=frozenset({1}),
    sortable=True,
)
DOCUMENT = Document(
    f"Title {HOSTILE}",
    [
        Section("First", [Paragraph((HOSTILE, Code("x=1"), Link("there", "#there"), Mark("ok")))]),
        Section("Second", [TABLE, Details(HOSTILE, [Items([HOSTILE])], name="there")], "second"),
        Section("Third", [Items([HOSTILE]), Paragraph((Code("python run.py"),))]),
        Section("Fourth", [Gallery([Figure("dots", ["<svg></svg>"], caption=HOSTILE)])]),
    ],
    Verdict(["It can."], [], basis=["Ten rows."], warning=HOSTILE),
    notes=[HOSTILE],
    origin="made here",
)


ALONE = ("meta", "link", "br", "img", "rect", "line", "circle")


class Tags(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.open, self.seen = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        self.open += [tag] * (tag not in ALONE)

    def handle_endtag(self, tag):
        assert tag in ALONE or self.open.pop() == tag


def test_a_page_is_whole_and_every_text_is_escaped():
    page = to_html(DOCUMENT)
    tags = Tags(page)
    assert not tags.open
    assert not [tag for tag, _ in tags.seen if tag == "script"]
    fetched = [attrs[k] for _, attrs in tags.seen for k in ("src", "href") if k in attrs]
    assert all(address.startswith(("data:", "#")) for address in fetched)
    assert 'data-value="0.5"' in page


@pytest.mark.parametrize("width", [80, 100, 120, 200])
def test_a_terminal_of_any_width_holds_it(width):
    lines = printed(DOCUMENT, width).splitlines()
    assert max(len(line.rstrip()) for line in lines) <= width
    text = " ".join(" ".join(lines).split())
    for part in ("Can be concluded", "It can.", "0.50 ±.10", "<0.01", ">0.99", "python run.py"):
        assert part in text
    assert "Fourth" not in text  # has a figure alone


def test_the_columns_that_matter_least_go_first():
    wide = Column("w" * 40, "number")
    columns = [Column("a"), wide, Column("second", "number", left_out=1)]
    columns += [Column("first", "number", left_out=2)]
    document = Document("", [Section("", [Table(columns, [["x", 1.0, 2.0, 3.0]])])])
    assert "first" in printed(document, 80)
    assert "first" not in printed(document, 59)
    assert "second" in printed(document, 53)
    assert "second" not in printed(document, 52)


def test_json_follows_its_schema_and_is_the_data_or_what_is_shown():
    templates = files("fairbench.reporting.document") / "templates"
    schema = json.loads((templates / "document.schema.json").read_text(encoding="utf-8"))
    for document in (WHOLE, hostile_document()):
        jsonschema.validate(json.loads(forms.to_json(document)), schema)
    content = json.loads(forms.to_json(DOCUMENT))
    (table,) = [block for block in content["sections"][1]["blocks"] if block["kind"] == "table"]
    assert [column["title"] for column in table["columns"]][-1] == "P"
    assert table["rows"][0][:3] == [HOSTILE, [0.5, 0.4, 0.6], 0.1]
    assert table["rows"][1][2] is None
    assert json.loads(forms.to_json(Document("", [], data={"a": float("inf")}))) == {"a": None}


def test_markdown_and_latex_hold_the_same_cells():
    for line, text in (
        (forms._markdown_table(TABLE), "&lt;script"),
        (forms._latex_table(TABLE), r"\textless{}"),
    ):
        assert text in line
        assert "+0.100" in line
        assert "1,234" in line
    assert r"\& " in forms._latex_table(TABLE)
    assert forms.to_markdown(DOCUMENT).count("## ") >= 5


LABELS = ("[unknown]", "[/red]", "\x1b[31mred", "\u202eabc", "<script>x</script>", "a\nb|c")


def hostile_document():
    rows = [[label, 0.5] for label in LABELS]
    table = Table((Column("[b]group"), Column("rate", "number")), rows, title=LABELS[2])
    return Document(LABELS[4], [Section(LABELS[3], [table])], notes=LABELS)


def test_labels_are_shown_as_they_are_and_never_obeyed():
    document = hostile_document()
    said, page, text = printed(document, 120), to_html(document), forms.to_markdown(document)
    formula, word = forms.to_latex(document), words_of(forms.to_word(document))
    for output in (said, page, text, formula, word):
        assert "\x1b" not in output and "\u202e" not in output
    for shown in ("[unknown]", "[/red]", r"\x1b[31mred", r"\u202eabc"):
        assert shown in said and shown in page and shown in word
    assert r"a\nb|c" in said
    assert "<script>x" not in page + text
    assert "<script>x</script>" in word and HOSTILE in words_of(forms.to_word(WHOLE))
    assert r"\[unknown\]" in text
    assert r"\textless{}script\textgreater{}" in formula


def test_a_page_lets_a_browser_run_its_own_script_alone():
    page = to_html(replace(hostile_document(), tabs=True))
    script = re.search(r"<script>(.*?)</script>", page, re.DOTALL).group(1)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = html.unescape(re.search(r'Security-Policy" content="([^"]*)"', page).group(1))
    assert f"script-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy


# A page takes the place of a page of fairbench's, and of nothing else.


def test_a_page_is_written_over_and_another_file_is_not(tmp_path):
    page = tmp_path / "index.html"
    check_page(page)
    write_document(Document("Title", []), tmp_path, "index")
    check_page(page)
    for content in ("", "<!doctype html>\n<html lang='en'>mine</html>"):
        page.write_text(content)
        with pytest.raises(UserError, match="no page of fairbench's: move it away"):
            check_page(page)
        assert page.read_text() == content


# A document is written as HTML, JSON, LaTeX, Markdown and Word, and says the same in each.

SUMMARY = ExecutiveSummary(["We found 100 % & more."], ["Quite sure."], ["The weather."], ["Go"])
WHOLE = replace(DOCUMENT, summary=SUMMARY)


def words_of(content):
    """Return every text of a Word file."""
    file = docx.Document(io.BytesIO(content))
    cells = [cell.text for table in file.tables for row in table.rows for cell in row.cells]
    return "\n".join([*(paragraph.text for paragraph in file.paragraphs), *cells])


@pytest.mark.parametrize("form", [form for form in FORMS if form != "pdf"])
def test_each_form_is_written_and_holds_summary_and_tables(form, tmp_path):
    (name,) = write_document(WHOLE, tmp_path / "new", "audit", [form])
    content = (tmp_path / "new" / name).read_bytes()
    text = words_of(content) if form == "word" else content.decode()
    for part in ("Quite sure.", "The weather.", "It can.", "1,234" if form != "json" else "1234"):
        assert part in text
    if form == "markdown":
        assert text.index("What was found") < text.index("Can be concluded") < text.index("Rates")
    with pytest.raises(UserError, match="word"):
        write_document(WHOLE, tmp_path, "audit", ["wrod"])


def balanced(text):
    """Say whether all braces and environments of LaTeX are closed in order."""
    plain = re.sub(r"\\[{}%&$#_\\]", "", re.sub(r"(?<!\\)%.*", "", text))
    depth = np.cumsum([(sign == "{") - (sign == "}") for sign in plain])
    open_ = []
    for kind, name in re.findall(r"\\(begin|end)\{(\w+)\}", text):
        if kind == "begin":
            open_.append(name)
        elif not open_ or open_.pop() != name:
            return False
    return depth.min() >= 0 and depth[-1] == 0 and not open_


def test_latex_is_a_whole_file_in_which_everything_is_closed_and_escaped():
    for document in (WHOLE, hostile_document()):
        text = forms.to_latex(document)
        assert text.index(r"\documentclass") < text.index(r"\begin{document}")
        assert balanced(text)
        assert "\x1b" not in text
    assert r"100 \% \& more" in forms.to_latex(WHOLE)


def test_on_paper_no_row_is_cut_and_what_is_folded_and_long_is_left_out():
    first, *rest = docx.Document(io.BytesIO(forms.to_word(WHOLE))).tables[0].rows
    assert "w:tblHeader" in first._tr.xml  # on every page
    assert all("w:cantSplit" in row._tr.xml for row in (first, *rest))
    table = Table([Column("n", "count")], [[i] for i in range(500)])
    document = Document("t", [Section("s", [Details("all", [table])])])
    for text in (forms.to_latex(document), words_of(forms.to_word(document))):
        assert "on the page and in the JSON" in text
