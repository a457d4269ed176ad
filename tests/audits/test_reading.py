"""Files that are read: spreadsheets, private ones, and the page that comes of them."""

import json
import os
import re

import numpy as np
import pandas as pd
import pytest

from fairbench.audits.assessment import assess
from fairbench.audits.kinds import document_of
from fairbench.audits.kinds.binary import findings_of
from fairbench.audits.sentences import in_short
from fairbench.cli.main import main
from fairbench.core.errors import UserError
from fairbench.evaluation.findings import GAP, LARGE, PAIR, RATIO
from fairbench.reporting.document import model
from fairbench.reporting.document.model import Column, Document, Section, Table
from fairbench.reporting.document.writing import to_html
from tests.audits.tables import parse, predictions, read, written

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
    place = [column.title for column in table.columns].index("P(<0.05)")
    assert all((row[place] is None) == (row[0] != "sex") for row in table.rows)


TABLE = Table([Column("who"), Column("rate", "number"), Column("", "bar")], [["a", 0.5, None]])


def test_a_table_fits_a_phone_and_the_paper():
    page = to_html(Document("t", [Section("s", [TABLE])]))
    assert re.findall(r'data-label="(\w+)"', page) == ["who", "rate"]
    assert "attr(data-label)" in page
    wide = Table([Column(f"c{i}", "number") for i in range(60)], [[0.123] * 60])
    for table, is_wide in ((wide, True), (TABLE, False)):
        assert ("--break:normal" in to_html(Document("t", [Section("", [table])]))) == is_wide


def test_a_page_needs_no_script():
    sections = [Section("s", [TABLE], name="s")]
    page = to_html(Document("t", sections, tabs=True, summary=model.ExecutiveSummary(["x"])))
    hidden = re.findall(r"([^{}\n]*){[^}]*display: none", page)
    assert all(".js" in rule or "@media" not in page for rule in hidden if "section" in rule)


# Spreadsheets of a bank, each with a wrong planted.


def people(rows, seed, **groups):
    """Return a generator, the groups of people by attribute, and how likely the event is."""
    draw = np.random.default_rng(seed)
    columns = {
        name: draw.choice(list(shares), rows, p=list(shares.values()))
        for name, shares in groups.items()
    }
    return draw, pd.DataFrame(columns), draw.normal(-1.6, 1.2, rows)


def logistic(values):
    return 1 / (1 + np.exp(-values))


def loans():
    """Return loans with probabilities of default, of Syrians too high."""
    nations = {"DE": 0.6, "IT": 0.15, "PL": 0.15, "SY": 0.1}
    draw, frame, logit = people(6000, 1, nationality=nations, sex={"f": 0.5, "m": 0.5})
    default = draw.random(len(frame)) < logistic(logit)
    risk = logistic(logit + 1.4 * (frame["nationality"] == "SY"))
    return frame.assign(
        customer=[f"C-{i}" for i in range(len(frame))],
        PD=np.round(100 * risk, 1),
        Ausfall=np.where(default, "ja", "nein"),
        decision=np.where(risk > 0.25, "Declined", "Approved"),
    )


def repayments():
    """Return loans with scores of repayment, of women too low."""
    draw, frame, logit = people(5000, 2, sex={"female": 0.45, "male": 0.55})
    repaid = draw.random(len(frame)) < logistic(logit + 1.6)
    score = logistic(logit + 1.6 - 1.2 * (frame["sex"] == "female"))
    return frame.assign(score=score, repaid=np.where(repaid, "yes", "no"))


OF_LOANS = ("target=Ausfall", "score=PD", "scale=percent", "group=nationality")
GOOD = ("positive=ja", "favourable=nein")
OF_REPAYMENT = ("target=repaid", "score=score", "group=sex")
SHEETS = {
    "probabilities of default": (
        loans,
        (*OF_LOANS, *GOOD, "threshold=0.25", "decision=approved/declined", "purpose=lending"),
        "SY",
    ),
    "decisions alone": (
        loans, ("prediction=decision", "group=nationality", "decision=Approved/Declined"), "SY"
    ),
    "scores of repayment": (
        repayments, (*OF_REPAYMENT, "favourable=yes", "purpose=lending"), "female"
    ),
}  # fmt: skip


@pytest.mark.parametrize(("make", "words", "wronged"), SHEETS.values(), ids=SHEETS)
def test_the_wronged_group_is_named_first_and_alone_as_the_worse_off(make, words, wronged):
    table, options = read(make(), *words)
    findings = findings_of(assess(table, options, only_findings=True))
    rates, refused = table.direction.rate_names, table.direction.wrongly_refused
    shares = {rates["statistical_parity"], rates[refused]}
    large = [finding for finding in findings if finding.verdict == LARGE]
    compared = [each for each in large if each.about in (GAP, PAIR, RATIO) and each.groups]
    assert all(wronged in " ".join(finding.groups) for finding in compared)
    judged = [each for each in compared if each.about == RATIO or each.measure in shares]
    for finding in judged:
        # The higher share is of label 1.
        worse = 0 if finding.about == RATIO else table.direction.good == 1
        assert wronged in finding.groups[worse]
    assert judged and any(finding.about in (GAP, RATIO) for finding in large)
    assert wronged in in_short(findings, [rates[refused]])[0]


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        (("prediction=decision", "group=nationality"),
         ["decision=Approved/Declined or decision=Declined/Approved"]),
        ((*OF_LOANS[:3], "group=[nationality,sex]", "threshold=0.25"),
         ["'ja'", "'nein'", "positive=nein puts", "positive=ja "]),
    ],
)  # fmt: skip
def test_what_is_open_is_asked_with_both_readings(words, asked, tmp_path, capsys):
    path = written(loans(), tmp_path, "sheet.csv")
    assert main(["audit", str(path), *words]) == 2
    said = capsys.readouterr().err
    assert re.search("^(error:|[12][.]) sheet.csv: ", said, re.MULTILINE)
    assert all(part in said for part in asked)
    assert max(map(len, said.splitlines())) <= 300


def test_what_hardly_can_be_meant_is_warned_of_first():
    table, _ = read(loans(), *OF_LOANS, "positive=nein", "favourable=nein")
    assert table.warnings[0].startswith("Scores are lower where the label is 'nein'")
    table, _ = read(loans(), *OF_LOANS, *GOOD, "threshold=0.9")
    assert "of the rows are predicted 'nein'" in table.warnings[0]
    frame = repayments()
    frame["decided"] = (frame["score"] < 0.5).map({True: "yes", False: "no"})
    table, _ = read(frame, *OF_REPAYMENT, "prediction=decided", "favourable=yes")
    assert [warning.partition(": ")[0] for warning in table.warnings] == [
        "'decided' goes against 'repaid'",
        "'decided' goes against 'score'",
    ]


def test_of_the_selected_impact_ratios_are_of_everyone():
    frame = loans()
    frame["granted"] = (frame["decision"] == "Approved").astype(str)
    table, options = read(frame, *OF_LOANS, *GOOD, "selected=granted")
    shares = frame.groupby("nationality")["decision"].agg(lambda made: (made == "Approved").mean())
    for ratio in assess(table.of_selected(), options, only_findings=True).impact:
        assert ratio["rate"] == pytest.approx(shares[ratio["group"]])


UNCLEAR = [
    ("score=score purpose=lending", "the decisions are for lending"),
    ("score=score decision=good/bad", "decision= is given"),
    ("score=against", "positive=yes puts .* positive=no"),
]


@pytest.mark.parametrize(("words", "said"), UNCLEAR)
def test_what_is_unclear_is_asked(words, said):
    frame = repayments().assign(against=lambda each: 1 - each["score"])
    with pytest.raises(UserError, match=said):
        read(frame, "target=repaid", "group=sex", *words.split())


def test_a_scoring_tool_is_asked_which_end_of_its_scores_is_good(tmp_path, capsys):
    path = written(loans(), tmp_path, "sheet.csv")
    words = ["dossier", "ll144", str(path), "score=PD", "sex=sex", "race=nationality"]
    out = f"out={tmp_path / 'out'}"
    assert main([*words, out]) == 2
    said = capsys.readouterr().err
    for part in ("'PD' may be bad", "favourable=0 reads", "favourable=1 turns it round"):
        assert part in said
    assert main([*words, out, "favourable=0"]) == 0
    data = json.loads((tmp_path / "out" / "ll144.json").read_text())
    ratios = {category["group"]: category["ratio"] for category in data["categories"]}
    assert "SY" in min(ratios, key=ratios.get)


@pytest.mark.thorough
@pytest.mark.parametrize("umask", [0o000, 0o027], ids=["an open umask", "a usual one"])
@pytest.mark.parametrize("words", ["audit", "audit out=mine", "dossier model-card out=mine",
    "label next state=own/state.json", "watch state=own/state.json out=mine"])  # fmt: skip
def test_others_may_read_nothing_that_is_said_of_people(words, umask, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    written(predictions(200), tmp_path, "loans.csv")
    (tmp_path / "own").mkdir(mode=0o700)
    before = os.umask(umask)
    try:
        command = [*words.split(), "path=loans.csv", "target=label", "score=score", "group=sex"]
        assert main(command) in (0, 3)
    finally:
        os.umask(before)
    made = [path for path in tmp_path.rglob("*") if path.name not in ("loans.csv", "own")]
    assert made and not [path for path in made if path.stat().st_mode & 0o077]
