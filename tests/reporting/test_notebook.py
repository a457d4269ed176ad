"""What Python code and notebooks ask for: an audit of a data frame, its parts and its files."""

import re

import numpy as np
import pandas as pd
import pytest

import fairbench
from fairbench.core.errors import UserError
from tests.audits.tables import predictions, why_not

COLUMNS = {"target": "label", "prediction": "decision", "groups": ["sex", "race"]}


@pytest.fixture(scope="module")
def frame():
    table = predictions(600, labels=600, bias=0.2)
    return table.assign(decision=(table["score"] > 0.5).astype(int))


@pytest.fixture(scope="module")
def report(frame):
    return fairbench.audit(frame, **COLUMNS)


def test_a_notebook_shows_the_summary_alone_whose_style_stays_within_it(report):
    html = report._repr_html_()
    assert html.startswith('<div class="fairbench-report"') and html.endswith("</div>")
    assert not re.search(r"<(script|html|head|body|link|meta)\b", html)
    style = html.partition("<style>")[2].partition("</style>")[0]
    assert style.startswith("@scope (.fairbench-report)")
    assert not re.search(r"(?m)^\s*(:root|body|html)\b", style)
    for shown in (repr(report), html):
        for part in ("What was found", "What to do next", "report.findings"):
            assert part in shown
        assert "Rates by group" not in shown
    assert repr(report).startswith("Audit of predictions")
    assert len(repr(report)) < len(report.to_markdown()) / 2
    assert max(map(len, str(report).splitlines())) < 400


@pytest.mark.thorough
def test_saving_writes_what_the_ending_says_and_into_a_folder_everything(report, tmp_path):
    for ending in (".html", ".json", ".md", ".tex", ".csv"):
        path = report.save(tmp_path / f"mine{ending}")
        assert path.stat().st_size > 500
    assert "\\toprule" in (tmp_path / "mine.tex").read_text()
    assert report.to_latex() == (tmp_path / "mine.tex").read_text()
    with pytest.raises(UserError, match="unknown ending of a report '.doc'"):
        report.save(tmp_path / "mine.doc")
    report.save(tmp_path / "all")
    names = {path.name for path in (tmp_path / "all").iterdir()}
    assert {"audit.html", "audit.tex", "audit.csv", "gaps.png", "gaps.svg"} <= names
    assert {name.partition("-")[0] for name in names if name.endswith(".svg")} >= {"selection_rate"}


def test_figures_are_those_that_there_are_numbers_for(frame):
    aged = frame.assign(age=np.arange(len(frame)) % 60, hours=np.arange(len(frame)) + 0.5)
    asked = {"target": "label", "score": "score", "groups": ["sex", "age:30"]}
    scored = fairbench.audit(aged.head(200), **asked)
    of_rates = {"impact ratio", "selection rate", "true positive rate", "accuracy"}
    assert {"gaps", "reliability of 30 and over", *of_rates} <= {*scored.figures}
    assert scored.figures["gaps"]._repr_svg_().startswith("<svg")
    numbers = fairbench.audit(aged, target="hours", prediction="score", groups="sex")
    assert {*numbers.figures} == {"gaps", "residuals by sex"}


def test_a_changed_column_keeps_its_own_values(frame):
    half = frame["score"] / 2
    halved = fairbench.audit(frame, target="label", score=half, groups="sex")
    named = fairbench.audit(frame.assign(h=half), target="label", score="h", groups="sex")
    pd.testing.assert_frame_equal(halved.table, named.table)


def test_what_cannot_be_is_refused(frame):
    for options, message in (
        ({"group": "race"}, "unknown option of audit 'group'"),
        ({"threshold": "x"}, "threshold is 'x'; it must be a number"),
        ({"positive": pd.Series([1])}, "positive is a Series; it must be a text"),
        ({"threshold": pd.Series([1])}, "threshold is a Series; it must be a number"),
    ):
        assert message in why_not(frame, target="label", score="score", groups="sex", **options)


def test_findings_and_tables_are_tidy(frame, report):
    first = ["about", "attribute", "groups", "measure", "value", "lower", "upper", "n", "verdict"]
    assert list(report.findings)[:10] == [*first, "sentence"]
    assert len(report.findings) == len(report.document.data["findings"])
    gaps = report.findings.query("about == 'gap' and attribute == 'sex'")
    assert (gaps["lower"] <= gaps["value"]).all()
    assert gaps["sentence"].str.len().min() > 20
    rates = report.tables["Rates by group"]
    assert {"group", "selected", "selected lower", "selected upper"} <= set(rates)
    assert (rates["selected lower"] <= rates["selected"]).all()
    errors = report.tables["Errors by group"]  # two of its columns have one title
    ends = [f"{rate} more than reference lower" for rate in ("FPR", "FNR")]
    assert not errors[ends[0]].equals(errors[ends[1]])
    swapped = fairbench.audit(frame, **COLUMNS, positive=0, epsilon=1e-2)
    assert swapped.document.data["label_names"] == {"0": "1", "1": "0"}
