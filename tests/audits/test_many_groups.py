"""An audit of many groups: what it says, what it writes, what it refuses, and how often it errs."""

import json

import numpy as np
import pandas as pd
import pytest

import fairbench
from fairbench.audits.kinds import _has_many_groups
from fairbench.audits.kinds.unknown import BEYOND, WITHIN
from fairbench.evaluation.findings import OPEN
from tests.audits.tables import shown_by, text_of, why_not, written

RATES = ("selection_rate", "error_rate", "true_positive_rate", "false_positive_rate")


def people(rows=6000, *, labelled=1.0, odd=0.5, seed=0):
    """Return predictions for 6 x 5 x 5 groups, of which one is selected more often by `odd`."""
    generator = np.random.default_rng(seed)
    codes = [generator.integers(k, size=rows) for k in (6, 5, 5)]
    frame = pd.DataFrame({n: [f"{n}{c}" for c in v] for n, v in zip("abc", codes, strict=True)})
    chance = 0.4 + odd * (frame[["a", "b", "c"]] == ["a1", "b2", "c3"]).all(axis=1)
    prediction = (generator.random(rows) < chance).astype(int)
    label = np.where(generator.random(rows) < 0.8, prediction, 1 - prediction).astype(str)
    shown = generator.random(rows) < labelled
    return frame.assign(prediction=prediction, label=np.where(shown, label, ""))


OF_MANY = {"target": "label", "prediction": "prediction", "groups": ["a", "b", "c"]}


def test_the_groups_that_stand_out_come_first_and_all_are_in_a_file(tmp_path, capsys):
    path = written(people(), tmp_path)
    words = ["target=label", "prediction=prediction", "group=[a,b,c]", f"out={tmp_path / 'out'}"]
    printed = shown_by([path, *words], capsys)
    assert "By a x b x c, 1 group is unlike everyone else in selection rate" in printed
    assert "a1 x b2 x c3" in printed
    assert "150 groups make 11,175 pairs, of which 559 would seem to differ by chance" in printed
    assert "Only groups by a, b and c were compared" in printed
    page = (tmp_path / "out" / "audit.html").read_text()
    assert page.count("<tr") < 40
    table = pd.read_csv(tmp_path / "out" / "groups.csv")
    assert table["rate"].value_counts().to_dict() == dict.fromkeys(RATES, 150)
    assert ((table["lower"] <= table["pooled"]) & (table["pooled"] <= table["upper"])).all()
    data = json.loads((tmp_path / "out" / "audit.json").read_text())
    selection = data["rates"][0]
    assert selection["surest_pair"][0] == "a1 x b2 x c3"
    assert sum(selection[name] for name in (WITHIN, BEYOND, OPEN)) == pytest.approx(1)
    assert len(data["figures"]) == 600


def test_columns_of_few_groups_are_compared_by_themselves_too():
    frame = people().assign(zip=np.arange(6000) % 60)
    frame["prediction"] |= (frame["a"] == "a3").astype(int)
    report = fairbench.audit(frame, prediction="prediction", groups=["a", "b", "zip"])
    gaps = report.findings.query("about == 'gap'").set_index("attribute")
    assert gaps["verdict"].to_dict() == {"a": "large", "b": "open", "a x b x zip": "large"}
    assert gaps["groups"]["a"].startswith("a3; ")
    assert "By a, the selection rate is 100.0 % for a3" in text_of(report)
    assert "Groups by zip were compared only where a, b and zip are combined" in text_of(report)


def test_rates_that_need_labels_are_of_the_rows_that_have_one():
    frame = people(labelled=0.3)
    report = fairbench.audit(frame, **OF_MANY)
    assert "chosen for labelling at random" in text_of(report)
    rows = report.table.groupby("rate")["rows"].sum()
    known = (frame["label"] != "").sum()
    assert (rows["selection_rate"], rows["error_rate"]) == (6000, known)
    assert rows["true_positive_rate"] + rows["false_positive_rate"] == known


def test_one_column_of_many_groups_and_combinations_of_few():
    frame = people(rows=400).assign(one=lambda frame: frame["a"] + frame["b"] + frame["c"])
    assert _has_many_groups(frame[["one"]]) and _has_many_groups(frame[["a", "b", "c"]])
    assert not _has_many_groups(frame[["a", "b"]])


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"groups": "id"}, "column 'id' holds 300 different values; a group column has 2 to 150"),
        ({"groups": ["a", "b", "half"]}, "combinations in 300 rows; up to 150 can be assessed"),
        ({"weight": "w"}, "weight= does not apply to an audit of many groups"),
    ],
)
def test_what_cannot_be_estimated_together_is_refused(more, message):
    row = np.arange(300)
    frame = people(rows=300).assign(id=row, half=row // 3, w=1 + row % 3)
    assert message in why_not(frame, **{**OF_MANY, **more})
