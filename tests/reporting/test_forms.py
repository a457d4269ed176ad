"""A document is written as HTML, JSON, LaTeX, Markdown and Word, and says the same in each."""

import io
import json
import re

import docx
import jsonschema
import pytest

from fairbench.core.errors import UserError
from fairbench.reporting.document.json import schema, to_json
from fairbench.reporting.document.latex import to_latex_document
from fairbench.reporting.document.model import (
    Column,
    Details,
    Document,
    ExecutiveSummary,
    Section,
    Table,
)
from fairbench.reporting.document.plain_text import to_markdown
from fairbench.reporting.document.word import to_word
from fairbench.reporting.document.writing import FORMS, write_document
from tests.reporting.test_document import DOCUMENT, HOSTILE, hostile_document

SUMMARY = ExecutiveSummary(
    ["We found 100 % & more."], ["Quite sure."], ["The weather."], ["Go on."]
)
WHOLE = Document(
    DOCUMENT.title,
    DOCUMENT.sections,
    DOCUMENT.verdict,
    notes=DOCUMENT.notes,
    origin=DOCUMENT.origin,
    summary=SUMMARY,
)


def words_of(content):
    """Return every text of a Word file."""
    file = docx.Document(io.BytesIO(content))
    cells = [cell.text for table in file.tables for row in table.rows for cell in row.cells]
    return "\n".join([*(paragraph.text for paragraph in file.paragraphs), *cells])


@pytest.mark.parametrize("form", [form for form in FORMS if form not in ("pdf", "summary")])
def test_each_form_is_written_and_holds_summary_and_tables(form, tmp_path):
    (name,) = write_document(WHOLE, tmp_path / "new", "audit", [form])
    content = (tmp_path / "new" / name).read_bytes()
    text = words_of(content) if form == "word" else content.decode()
    for part in ("Quite sure.", "The weather.", "It can.", "1,234" if form != "json" else "1234"):
        assert part in text


def test_an_unknown_form_is_refused_with_those_there_are(tmp_path):
    with pytest.raises(UserError, match="word"):
        write_document(WHOLE, tmp_path, "audit", ["wrod"])


def balanced(text):
    """Say whether all braces and environments of LaTeX are closed in order."""
    plain = re.sub(r"\\[{}%&$#_\\]", "", re.sub(r"(?<!\\)%.*", "", text))
    depth = 0
    for sign in plain:
        depth += (sign == "{") - (sign == "}")
        assert depth >= 0
    open_ = []
    for kind, name in re.findall(r"\\(begin|end)\{(\w+)\}", text):
        if kind == "begin":
            open_.append(name)
        else:
            assert open_.pop() == name
    return depth == 0 and not open_


def test_latex_is_a_whole_file_in_which_everything_is_closed_and_escaped():
    for document in (WHOLE, hostile_document()):
        text = to_latex_document(document)
        assert text.index(r"\documentclass") < text.index(r"\begin{document}")
        assert balanced(text)
        assert "\x1b" not in text
    assert r"100 \% \& more" in to_latex_document(WHOLE)


def test_word_shows_labels_as_they_are():
    text = words_of(to_word(hostile_document()))
    assert "<script>x</script>" in text
    assert r"\x1b[31mred" in text
    assert HOSTILE in words_of(to_word(WHOLE))


def test_a_header_of_word_stands_on_every_page_and_no_row_is_cut():
    file = docx.Document(io.BytesIO(to_word(WHOLE)))
    first, *rest = file.tables[0].rows
    assert "w:tblHeader" in first._tr.xml
    assert all("w:cantSplit" in row._tr.xml for row in (first, *rest))


def test_markdown_begins_with_the_summary():
    text = to_markdown(WHOLE)
    assert text.index("What was found") < text.index("Can be concluded") < text.index("Rates")


def test_json_follows_its_schema():
    for document in (WHOLE, hostile_document()):
        jsonschema.validate(json.loads(to_json(document)), schema("document"))


def test_what_is_folded_and_long_is_left_out_on_paper():
    table = Table([Column("n", "count")], [[i] for i in range(500)])
    document = Document("t", [Section("s", [Details("all", [table])])])
    assert "on the page and in the JSON" in to_latex_document(document)
    assert "on the page and in the JSON" in words_of(to_word(document))
