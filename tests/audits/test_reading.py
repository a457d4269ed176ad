"""Files that are read: spreadsheets, private ones, and the page that comes of them."""

import json
import os
import re
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest

from fairbench.audits.assessment import assess
from fairbench.audits.kinds import document_of
from fairbench.audits.kinds.binary import findings_of
from fairbench.audits.kinds.unknown import assess_selected
from fairbench.audits.report import _key_figures as key_figures
from fairbench.audits.sentences import in_short, sentence_of
from fairbench.audits.table import read_audit_table, read_frame
from fairbench.cli.main import main
from fairbench.core.errors import UserError
from fairbench.evaluation.findings import GAP, LARGE, PAIR, RATIO, Finding
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
from tests.audits.spreadsheets import SHEETS
from tests.audits.tables import audit, parse, predictions, written

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


LOANS = SHEETS["a bank's decisions alone"]
OF_LOANS = ("target=Ausfall", "score=PD", "scale=percent", "group=nationality")
OF_REPAYMENT = ("target=repaid", "score=score", "group=sex")


def read(frame, *words):
    """Return the table of a sheet, and its options."""
    options = parse(["sheet.csv", *words])
    return read_audit_table(options, read_frame(options, source=frame)), options


@cache
def findings(name):
    sheet = SHEETS[name]
    table, options = read(sheet.make(), *sheet.words, *sheet.answers)
    return findings_of(assess(table, options, only_findings=True)), table.direction


@pytest.mark.parametrize("name", SHEETS)
def test_nobody_but_the_wronged_group_is_named(name):
    sheet = SHEETS[name]
    large = [finding for finding in findings(name)[0] if finding.verdict == LARGE]
    assert any(finding.about in (GAP, RATIO) for finding in large)
    strangers = [
        finding
        for finding in large
        if finding.about in (GAP, PAIR, RATIO)
        and finding.groups
        and not set(finding.groups) & set(sheet.wronged)
        and not any(group in name for name in finding.groups for group in sheet.wronged)
    ]
    assert not strangers


@pytest.mark.parametrize("name", SHEETS)
def test_the_wronged_group_is_the_worse_off(name):
    sheet, (of_sheet, direction) = SHEETS[name], findings(name)
    shares = {
        direction.rate_names["statistical_parity"],
        direction.rate_names[direction.wrongly_refused],
    }
    judged = 0
    for finding in of_sheet:
        if finding.verdict != LARGE or not finding.groups:
            continue
        if finding.about == RATIO:
            assert any(group in finding.groups[0] for group in sheet.wronged)
            judged += 1
        elif finding.about in (GAP, PAIR) and finding.measure in shares:
            refused = finding.groups[direction.good == 1]  # the higher share is of label 1
            assert any(group in refused for group in sheet.wronged)
            judged += 1
    assert judged


@pytest.mark.parametrize("name", [name for name, sheet in SHEETS.items() if sheet.asks])
def test_what_is_open_is_asked_with_both_readings(name, tmp_path, capsys):
    sheet = SHEETS[name]
    path = written(sheet.make(), tmp_path, "sheet.csv")
    assert audit([path, *sheet.words]) == 2
    said = capsys.readouterr().err
    assert re.search("^(error:|[12][.]) sheet.csv: ", said, re.MULTILINE)
    assert all(part in said for part in sheet.asks)
    assert max(map(len, said.splitlines())) <= 300


@pytest.mark.parametrize("name", SHEETS)
def test_the_summary_begins_with_the_wronged_group(name):
    first, *_ = in_short(*_short(name))
    assert any(group in first for group in SHEETS[name].wronged)


def _short(name):
    of_sheet, direction = findings(name)
    return of_sheet, [direction.rate_names[direction.wrongly_refused]]


def test_a_score_said_to_be_of_the_other_label_is_warned_of_first():
    table, _ = read(LOANS.make(), *OF_LOANS, "positive=nein", "favourable=nein")
    assert table.warnings[0].startswith("Scores are lower where the label is 'nein'")


def test_scores_that_run_against_labels_are_asked_about():
    frame = SHEETS["scores of repayment"].make()
    frame["score"] = 1 - frame["score"]
    with pytest.raises(UserError, match="positive=yes puts .* positive=no"):
        read(frame, *OF_REPAYMENT)


def test_a_threshold_that_grants_nearly_all_is_said_first():
    words = (*OF_LOANS, "positive=ja", "favourable=nein", "threshold=0.9")
    table, _ = read(LOANS.make(), *words)
    assert "of the rows are predicted 'nein'" in table.warnings[0]


def test_decisions_against_the_scores_are_said_first():
    frame = SHEETS["scores of repayment"].make()
    frame["decided"] = (frame["score"] < 0.5).map({True: "yes", False: "no"})
    table, _ = read(frame, *OF_REPAYMENT, "prediction=decided", "favourable=yes")
    assert [warning.partition(": ")[0] for warning in table.warnings] == [
        "'decided' goes against 'repaid'",
        "'decided' goes against 'score'",
    ]


def test_of_the_selected_impact_ratios_are_of_everyone():
    frame = LOANS.make()
    frame["granted"] = (frame["decision"] == "Approved").astype(str)
    words = (*OF_LOANS, "positive=ja", "favourable=nein", "selected=granted")
    table, options = read(frame, *words)
    shares = frame.groupby("nationality")["decision"].agg(lambda made: (made == "Approved").mean())
    for ratio in assess_selected(table, options, only_findings=True).impact:
        assert ratio["rate"] == pytest.approx(shares[ratio["group"]])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["decision=approved"], "must name two decisions"),
        (["favourable=maybe"], "unknown favourable label 'maybe'"),
        (["purpose=lending"], "the decisions are for lending"),
        (["decision=good/bad"], "decision= is given"),
    ],
    ids=["one decision", "no label", "purpose alone", "decision alone"],
)  # fmt: skip
def test_what_cannot_be_is_refused(words, said):
    with pytest.raises(UserError, match=said):
        read(SHEETS["scores of repayment"].make(), *OF_REPAYMENT, *words)


def test_a_scoring_tool_is_asked_which_end_of_its_scores_is_good(tmp_path, capsys):
    path = written(LOANS.make(), tmp_path, "sheet.csv")
    words = ["dossier", "ll144", str(path), "score=PD", "sex=sex", "race=nationality"]
    out = f"out={tmp_path / 'out'}"
    assert main([*words, out]) == 2
    said = capsys.readouterr().err
    assert "favourable=0 reads" in said and "favourable=1 turns it round" in said
    assert main([*words, out, "favourable=0"]) == 0
    data = json.loads((tmp_path / "out" / "ll144.json").read_text())
    ratios = {category["group"]: category["ratio"] for category in data["categories"]}
    assert "SY" in min(ratios, key=ratios.get)


def test_a_large_gap_has_the_rates_of_the_groups_that_it_names():
    gap = Finding(GAP, "race", "share approved", LARGE, ("a", "b"), value=0.919, lower=0.4,
                  upper=0.99, values=(0.916, 0.799), bound=0.05)  # fmt: skip
    assert "(0.916 and 0.799; the largest difference of any two groups is 0.919" in sentence_of(gap)
    (row,) = key_figures([gap], ["race"], "").rows
    assert row[1] == "gap in share approved"  # which is not that of a and b


def test_a_combination_is_in_the_summary_where_no_attribute_shows_it():
    crossed = Finding(GAP, "sex x race", "accuracy", LARGE, ("f x b", "m x w"), value=0.4,
                      values=(0.8, 0.4), bound=0.05)  # fmt: skip
    alone = replace(crossed, attribute="sex", groups=("f", "m"))
    assert len(in_short([crossed])) == 1
    assert in_short([crossed, alone]) == in_short([alone])


ASKED = ("target=label", "score=score", "group=sex")
STATE = "own/state.json"


@pytest.fixture
def loans(tmp_path, monkeypatch):
    draw = np.random.default_rng(0)
    score = draw.random(200).round(3)
    columns = {"sex": draw.choice(["women", "men"], 200), "score": score}
    label = (draw.random(200) < score).astype(int)
    pd.DataFrame({**columns, "label": label}).to_csv(tmp_path / "loans.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.thorough
@pytest.mark.parametrize("umask", [0o000, 0o027], ids=["an open umask", "a usual one"])
@pytest.mark.parametrize(
    "words",
    [
        ("audit", "loans.csv", *ASKED),
        ("audit", "loans.csv", *ASKED, "out=mine"),
        ("dossier", "model-card", "loans.csv", *ASKED, "out=mine"),
        ("label", "next", "loans.csv", *ASKED, f"state={STATE}"),
        ("watch", "loans.csv", *ASKED, f"state={STATE}", "out=mine"),
    ],
    ids=["audit", "out=", "dossier", "label", "watch"],
)
def test_others_may_read_nothing_that_is_said_of_people(words, umask, loans):
    (loans / "own").mkdir(mode=0o700)
    before = os.umask(umask)
    try:
        assert main(words) in (0, 3)
    finally:
        os.umask(before)
    written = [path for path in loans.rglob("*") if path.name not in ("loans.csv", "own")]
    assert any(path.is_file() for path in written)
    assert not [path for path in written if path.stat().st_mode & 0o077]
