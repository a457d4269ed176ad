"""Two scores of one file compared: ``python audit.py ... score=a against=b``."""

import json

import numpy as np
import pytest

import audit
from fairbench.audit.options import parse
from fairbench.audit.pair import compare_tables
from fairbench.audit.reading import read_audit_table
from tests.audit.tables import predictions, written


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
    return {(row.attribute, row.metric): row for row in compare_tables(*tables, 0)}


def test_labels_for_all_rows_give_the_gaps_that_there_are(tmp_path):
    frame = pair()
    rows = compared(frame, tmp_path)
    for name, value in (("score", "first"), ("other", "second")):
        right = (frame[name] > 0.5) == frame["label"]
        assert getattr(rows["", "accuracy"], value) == pytest.approx(right.mean(), abs=0.01)
        by_sex = right.groupby(frame["sex"]).mean()
        gap = getattr(rows["sex", "accuracy_gap"], value)
        assert gap == pytest.approx(np.ptp(by_sex), abs=0.01)
    worse = rows["sex", "accuracy_gap"]
    assert worse.lower > 0
    assert worse.lesser < 0.01


def test_few_labels_know_less_and_do_not_contradict(tmp_path):
    few, all_ = (compared(pair(labels=n), tmp_path) for n in (60, None))
    for key, row in few.items():
        if key[1] != "statistical_parity":
            assert row.upper - row.lower > all_[key].upper - all_[key].lower
            assert row.lower < all_[key].upper
            assert row.upper > all_[key].lower


def test_the_command_prints_and_keeps_it(tmp_path, capsys):
    path = written(pair(400, labels=50), tmp_path)
    words = ["target=label", "score=score", "against=other", "group=[sex,race]"]
    out = f"out={tmp_path / 'out'}"
    assert audit.main([str(path), *words, "labelled=is_labelled", out]) == 0
    said = capsys.readouterr().out
    assert "other against score on the 400 rows" in said
    assert max(map(len, said.splitlines()[:-1])) <= 100
    content = json.loads((tmp_path / "out" / "pair.json").read_text())
    assert content["labels"] == 50
    assert {row["attribute"] for row in content["comparison"]} == {"", "sex", "race", "sex x race"}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["score=score", "against=othre"], "'othre': did you mean other"),
        (["score=score", "against=other", "prediction=label"], "give score= alone"),
        (["prediction=label", "against=other"], "give score= alone"),
    ],
)
def test_faults(words, sentence, tmp_path, capsys):
    path = written(pair(60), tmp_path)
    assert audit.main([str(path), "target=label", "group=sex", *words]) == 2
    assert sentence in capsys.readouterr().err


def test_a_difference_is_the_centre_of_its_interval_among_many_groups_too(tmp_path):
    frame = pair(600, labels=100)
    frame["sex"] = [f"g{i % 10}" for i in range(len(frame))]
    for row in compared(frame, tmp_path).values():
        off = row.difference - (row.lower + row.upper) / 2
        assert abs(off) < 0.1 * (row.upper - row.lower)
