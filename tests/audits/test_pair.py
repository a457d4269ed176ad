"""Two scores of one file compared: ``fairbench audit ... score=a against=b``."""

import json

import numpy as np
import pytest

from fairbench.audits.kinds.pair import _verdict, compare_tables
from fairbench.audits.table import read_audit_table
from fairbench.evaluation.findings import OPEN, SMALL
from tests.audits.tables import audit, parse, predictions, refusal, shown_by, written


def pair(rows=1500, labels=None):
    """Return predictions with a second score, which is noisy for women."""
    generator = np.random.default_rng(1)
    frame = predictions(rows, labels=labels)
    noise = generator.normal(0, 3, rows) * (frame["sex"] == "Female")
    odds = np.log(frame["score"] / (1 - frame["score"])) + noise
    return frame.assign(other=1 / (1 + np.exp(-odds)))


def compared(frame, folder, *words):
    path = written(frame, folder)
    options = ["target=label", "score=score", "against=other", "group=sex", "labelled=is_labelled"]
    parsed = parse([str(path), *options, *words])
    other = parse([str(path), "target=label", "score=other", "group=sex", "labelled=is_labelled"])
    tables = read_audit_table(parsed), read_audit_table(other)
    return {(row.attribute, row.measure): row for row in compare_tables(*tables, parsed)}


def test_labels_for_all_rows_give_the_gaps_that_there_are(tmp_path):
    frame = pair()
    rows = compared(frame, tmp_path)
    for place, name in enumerate(("score", "other")):
        right = (frame[name] > 0.5) == frame["label"]
        assert rows["", "accuracy"].values[place] == pytest.approx(right.mean(), abs=0.01)
        by_sex = right.groupby(frame["sex"]).mean()
        gap = rows["sex", "accuracy"].values[place]
        assert gap == pytest.approx(np.ptp(by_sex), abs=0.01)
    worse = rows["sex", "accuracy"]
    assert worse.lower > 0


def test_few_labels_know_less_and_do_not_contradict(tmp_path):
    few, all_ = (compared(pair(labels=n), tmp_path) for n in (60, None))
    for key, row in few.items():
        if key[1] != "selection rate":
            assert row.upper - row.lower > all_[key].upper - all_[key].lower
            assert row.lower < all_[key].upper
            assert row.upper > all_[key].lower


def test_verdicts_are_those_of_the_intervals(tmp_path):
    rows = compared(pair(), tmp_path)
    assert _verdict(rows["", "accuracy"]) == "lower"
    assert _verdict(rows["sex", "accuracy"]) == "larger"
    assert {row.verdict for row in compared(pair(), tmp_path, "epsilon=0.9").values()} == {SMALL}
    few = compared(pair(labels=40), tmp_path)["sex", "precision"]
    assert few.lower < 0 < few.upper
    assert few.verdict == OPEN


def test_a_score_against_itself_is_alike(tmp_path, capsys):
    frame = pair().assign(other=lambda f: f["score"])
    rows = compared(frame, tmp_path)
    assert {row.verdict for row in rows.values()} <= {SMALL, OPEN}
    assert rows["", "accuracy"].verdict == rows["sex", "accuracy"].verdict == SMALL
    path = written(frame, tmp_path)
    words = ["target=label", "score=score", "against=other", "group=sex", f"out={tmp_path / 'out'}"]
    said = shown_by([str(path), *words], capsys)
    assert "For everyone, score and other differ by less than 0.05 in accuracy" in said


def test_without_labels_only_decisions_are_concluded_on(tmp_path, capsys):
    path = written(pair().drop(columns=["label", "is_labelled"], errors="ignore"), tmp_path)
    out = tmp_path / "<out>"
    assert audit([str(path), "score=score", "against=other", "group=sex", f"out={out}"]) == 0
    assert "Without labels, only decisions are compared" in capsys.readouterr().out
    conclusions = json.loads((out / "pair.json").read_text())["conclusions"]
    assert all("selection rate" in sentence for sentence in conclusions["can"])
    everyone, _, sex = conclusions["cannot"]
    assert everyone == "For everyone, accuracy is not compared: there are no labels."
    assert sex.startswith("By sex, the gap in true positive rate, false positive rate, precision")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["score=score", "against=othre"], "no column 'othre'; did you mean 'other'"),
        (["score=score", "against=other", "prediction=label"], "give score= alone"),
        (["prediction=label", "against=other"], "give score= alone"),
        (
            ["score=score", "against=other", "weight=score"],
            "weight= does not apply to a comparison of two scores (against=), but to an audit of",
        ),
    ],
)
def test_faults(words, sentence, tmp_path, capsys):
    path = written(pair(60), tmp_path)
    assert sentence in refusal([str(path), "target=label", "group=sex", *words], capsys)
