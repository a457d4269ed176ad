"""A page opens with a summary, contradicts no table, and is whole on a phone and on paper."""

import re

import pytest

from fairbench.audits.kinds import document_of
from fairbench.reporting.document.model import (
    Column,
    Document,
    ExecutiveSummary,
    Paragraph,
    Section,
    Table,
    Verdict,
)
from fairbench.reporting.document.writing import to_html
from tests.audits.tables import parse, predictions

OPTIONS = ["predictions.csv", "target=label", "score=score", "group=[sex,race]"]


@pytest.fixture(scope="module")
def document():
    frame = predictions(1500, bias=0.2).astype(str)
    return document_of(parse(OPTIONS), frame)


def test_a_page_opens_with_the_summary_then_pictures_then_tables(document):
    page = to_html(document)
    parts = ["What was found", "How sure this is", "What was not looked at", "What to do next"]
    titles = [f">{part}<" for part in [*parts, "The groups in pictures"]]
    appendix = page.index(titles[-1])
    places = [page.index(title) for title in titles]
    places += [page.index(part, appendix) for part in ("<svg", ">Can be concluded<", "<table")]
    assert places == sorted(places)


def test_a_gap_of_several_groups_has_no_probability_beside_its_interval(document):
    (table,) = [table for table in document.tables if "verdict" in [c.title for c in table.columns]]
    titles = [column.title for column in table.columns]
    for row in table.rows:
        value = row[titles.index("P(<0.05)")]
        assert (value is None) == (row[0] != "sex")


TABLE = Table([Column("who"), Column("rate", "number"), Column("", "bar")], [["a", 0.5, None]])


def test_every_cell_says_on_a_phone_what_it_is():
    page = to_html(Document("t", [Section("s", [TABLE])]))
    assert re.findall(r'data-label="(\w+)"', page) == ["who", "rate"]
    assert "attr(data-label)" in page


def test_a_table_is_made_to_fit_the_paper():
    wide = Table([Column(f"c{i}", "number") for i in range(60)], [[0.123] * 60])
    assert "--break:normal" in to_html(Document("t", [Section("", [wide])]))
    assert "--break:normal" not in to_html(Document("t", [Section("", [TABLE])]))


def test_without_a_summary_the_verdict_stays_first():
    verdict = Verdict(["It can."], [])
    page = to_html(Document("t", [], verdict, lead=[Paragraph("the lead")]))
    assert page.index("It can.") < page.index("the lead")


def test_open_gaps_of_groups_that_differ_lead_to_the_pairs(document):
    page = to_html(document)
    assert ('href="#pairs"' in page) == ('id="pairs"' in page)


def test_a_page_needs_no_script():
    tabs = Document(
        "t", [Section("s", [TABLE], name="s")], tabs=True, summary=ExecutiveSummary(["x"])
    )
    page = to_html(tabs)
    hidden = re.findall(r"([^{}\n]*){[^}]*display: none", page)
    assert all(".js" in rule or "@media" not in page for rule in hidden if "section" in rule)
