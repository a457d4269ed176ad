"""What Python code and notebooks ask for: an audit of a data frame, its parts and its files."""

import json
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest

import fairbench
from fairbench.core.errors import UserError
from tests.audits.tables import predictions

COLUMNS = {"target": "label", "prediction": "decision", "groups": ["sex", "race"]}


@pytest.fixture(scope="module")
def frame():
    table = predictions(600, labels=600, bias=0.2)
    return table.assign(decision=(table["score"] > 0.5).astype(int))


@pytest.fixture(scope="module")
def report(frame):
    return fairbench.audit(frame, **COLUMNS)


def test_the_table_has_the_figures_of_evaluate(frame, report):
    groups = {"sex": frame["sex"], "race": frame["race"]}
    expected = fairbench.evaluate(frame["label"], frame["decision"], sensitive_features=groups)
    keys = ["metric", "attribute", "group"]
    asked = "metric == 'selection_rate' and attribute in ('', 'sex', 'race')"
    asked += " and statistic == 'value'"
    mine, other = (table.query(asked).set_index(keys) for table in (report.table, expected))
    for column in ("value", "lower", "upper"):
        np.testing.assert_allclose(mine[column], other[column].reindex(mine.index))


def test_pandas_polars_and_a_file_say_the_same(frame, report, tmp_path):
    frame.to_csv(tmp_path / "predictions", index=False)
    of_polars = fairbench.audit(pl.from_pandas(frame), **COLUMNS)
    of_file = fairbench.audit(tmp_path / "predictions", **COLUMNS)
    one, other = (json.loads(document.to_json()) for document in (of_polars, report))
    assert {**one, "made": ""} == {**other, "made": ""}  # which has the time of day
    pd.testing.assert_frame_equal(of_file.table, report.table)


def test_a_notebook_shows_a_part_whose_style_stays_within_it(report):
    shown = report._repr_html_()
    assert shown.startswith('<div class="fairbench-report"') and shown.endswith("</div>")
    assert not re.search(r"<(script|html|head|body|link|meta)\b", shown)
    style = shown.partition("<style>")[2].partition("</style>")[0]
    assert style.startswith("@scope (.fairbench-report)")
    assert not re.search(r"(?m)^\s*(:root|body|html)\b", style)


def test_a_report_prints_itself(report):
    assert max(map(len, str(report).splitlines())) < 400
    assert repr(report).startswith("Audit of predictions")


def test_tables_have_a_column_for_each_end_of_an_interval(report):
    rates = report.tables["Rates by group"]
    assert {"group", "selected", "selected lower", "selected upper"} <= set(rates)
    assert (rates["selected lower"] <= rates["selected"]).all()


def test_saving_writes_what_the_ending_says(report, tmp_path):
    for ending in (".html", ".json", ".md", ".tex", ".csv"):
        path = report.save(tmp_path / f"mine{ending}")
        assert path.stat().st_size > 500
    assert "\\toprule" in (tmp_path / "mine.tex").read_text()
    assert report.to_latex() == (tmp_path / "mine.tex").read_text()
    with pytest.raises(UserError, match="unknown ending of a report '.doc'"):
        report.save(tmp_path / "mine.doc")


@pytest.mark.thorough
def test_a_folder_gets_everything(report, tmp_path):
    report.save(tmp_path / "all")
    names = {path.name for path in (tmp_path / "all").iterdir()}
    assert {"audit.html", "audit.tex", "audit.csv", "gaps.png", "gaps.svg", "gaps.pdf"} <= names
    assert {"rates_sex.pdf", "rates_race.pdf"} <= names


def test_calibration_is_drawn_where_there_are_scores(frame):
    scored = fairbench.audit(frame.head(200), target="label", score="score", groups="sex")
    assert list(scored.figures) == ["gaps", "rates_sex", "calibration"]
    assert scored.figures["gaps"]._repr_png_().startswith(b"\x89PNG")


def test_figures_are_those_that_there_are_numbers_for(frame):
    aged = frame.assign(age=np.arange(len(frame)) % 60, hours=np.arange(len(frame)) + 0.5)
    banded = fairbench.audit(aged, **COLUMNS | {"groups": ["sex", "age:30"]})
    assert {"gaps", "rates_sex", "rates_age"} <= set(banded.figures)
    numbers = fairbench.audit(aged, target="hours", prediction="score", groups="sex")
    assert not [name for name in numbers.figures if name.startswith("rates")]


def by_index(frame):
    """Return the columns of an audit as Series, one of them in another order."""
    return {
        "target": frame["label"],
        "score": frame["score"].sample(frac=1, random_state=1),
        "groups": [frame["sex"], frame["race"]],
    }


VALUES = {
    "Series by their index": by_index,
    "arrays and lists": lambda frame: {
        "target": frame["label"].tolist(),
        "score": frame["score"].to_numpy()[:, None],
        "groups": {"sex": frame["sex"].tolist(), "race": frame["race"].to_numpy()},
    },
    "a DataFrame of groups, and names": lambda frame: {
        "target": list(map(str, frame["label"])), "score": "score", "groups": frame[["sex", "race"]]
    },
}  # fmt: skip


@pytest.mark.thorough
@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
def test_columns_are_given_by_value_as_well(frame, values):
    frame = frame.set_axis([f"C-{i}" for i in range(len(frame))])
    named = fairbench.audit(frame, target="label", score="score", groups=["sex", "race"])
    given = fairbench.audit(frame, **values(frame))
    pd.testing.assert_frame_equal(given.table, named.table)
    assert given.document.data["options"]["group"] == ("sex", "race")


def test_a_changed_column_keeps_its_own_values(frame):
    halved = fairbench.audit(frame, target="label", score=frame["score"] / 2, groups="sex")
    named = fairbench.audit(frame.assign(h=frame["score"] / 2), target="label", score="h",
                            groups="sex")  # fmt: skip
    pd.testing.assert_frame_equal(halved.table, named.table)


OTHER_ROWS = {
    "rows that are not there": (lambda score: score.iloc[:100], "Series without index '100'"),
    "another index": (lambda score: score.set_axis(score.index + 7), "Series without index '0'"),
    "an index that repeats": (lambda score: score.set_axis(score.index // 2), "an index repeats"),
    "too few values": (lambda score: score.to_numpy()[1:], "has 599 values, and .* 600 rows"),
    "two dimensions": (lambda score: np.stack([score, score], 1), "score= is an array of 600 x 2"),
}


@pytest.mark.parametrize(("changed", "message"), OTHER_ROWS.values(), ids=OTHER_ROWS)
def test_values_of_other_rows_are_refused_and_never_paired_in_silence(frame, changed, message):
    with pytest.raises(UserError, match=message) as caught:
        fairbench.audit(frame, target="label", score=changed(frame["score"]), groups="sex")
    assert len(str(caught.value)) < 300


def test_a_column_in_place_of_a_word_or_a_number_is_refused_in_a_line(frame):
    for option, kind in (("positive", "text"), ("threshold", "number")):
        with pytest.raises(UserError, match=f"{option} is a Series; it must be a {kind}"):
            fairbench.audit(
                frame, target="label", score="score", groups="sex", **{option: frame["label"]}
            )


def test_labels_and_numbers_need_no_quotes(frame):
    swapped = fairbench.audit(frame, **COLUMNS, positive=0, epsilon=1e-2)
    assert swapped.document.data["label_names"] == {"0": "1", "1": "0"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"groups": "sexx"}, "predictions has no column 'sexx'; did you mean 'sex'"),
        (
            {"groups": "sex", "group": "race"},
            "unknown option of audit 'group'",
        ),
        ({"groups": "sex", "threshold": "x"}, "threshold is 'x'; it must be a number"),
    ],
)
def test_what_cannot_be_is_refused(frame, options, message):
    with pytest.raises(UserError, match=message):
        fairbench.audit(frame, target="label", score="score", **options)


def test_a_notebook_shows_the_summary_and_says_where_the_rest_is(report):
    for shown in (repr(report), report._repr_html_()):
        assert "What was found" in shown
        assert "What to do next" in shown
        assert "Rates by group" not in shown
        assert "report.findings" in shown
    assert len(repr(report)) < len(report.to_markdown()) / 2


def test_findings_are_a_tidy_table(report):
    first = ["about", "attribute", "groups", "measure", "value", "lower", "upper", "n", "verdict"]
    assert list(report.findings)[:10] == [*first, "sentence"]
    assert len(report.findings) == len(report.document.data["findings"])
    gaps = report.findings.query("about == 'gap' and attribute == 'sex'")
    assert (gaps["lower"] <= gaps["value"]).all()
    assert gaps["sentence"].str.len().min() > 20
