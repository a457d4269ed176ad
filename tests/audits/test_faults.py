"""Every fault of a user's file or command gets one sentence and exit status 2."""

import os

import numpy as np
import pandas as pd
import pytest

from fairbench.cli.main import main
from tests.audits.tables import audit, predictions, refusal, written
from tests.harness import fairbench

USUAL = {"target": "label", "score": "score", "group": "[sex,race]"}


def words(path, **options):
    given = USUAL | options
    return [str(path), *(f"{name}={value}" for name, value in given.items() if value)]


def with_value(column, row, value):
    frame = predictions(60).astype({column: object})
    frame.loc[row, column] = value
    return frame


FAULTS = {
    "missing column": (predictions(60), {"score": "scroe"}, r"'scroe'; did you mean 'score'"),
    "parts without end": (
        predictions(60),
        {"group": f"[age:quantiles({'9' * 4301})]"},
        r"name 2 to 1000 parts",
    ),
    "missing group": (predictions(60), {"group": "[sex,rcae]"}, r"'rcae'; did you mean 'race'"),
    "score over 1": (with_value("score", 4, 1.2), {}, r"column 'score', row 5: '1.2' is not a pr"),
    "negative score": (with_value("score", 0, -0.1), {}, r"'score', row 1: '-0.1'"),
    "missing score": (with_value("score", 6, None), {}, r"column 'score', row 7: '' is no number"),
    "score NaN": (with_value("score", 6, "nan"), {}, r"column 'score', row 7: 'nan' is no number"),
    "percents": (
        predictions(60).assign(score=lambda frame: 100 * frame["score"]),
        {},
        r"column 'score', row .* is not a probability between 0 and 1; of percents give scale=perc",
    ),
    "deciles": (
        predictions(60).assign(score=np.arange(60) % 10 + 1),
        {},
        r"row 2: '2' is not a probability between 0 and 1; of ratings such as deciles give "
        r"scale=rating, and as threshold=",
    ),
    "a rating without a threshold": (
        predictions(60),
        {"scale": "rating"},
        r"name the rating above which a decision is positive, such as threshold=5",
    ),
    "a rating and a constraint": (
        predictions(60),
        {"scale": "rating", "threshold": "5", "constraint": "ratio:0.8"},
        r"scale=rating is of scores and labels or groups alone: leave constraint= out",
    ),
    "a rating that is no number": (
        with_value("score", 4, "high"),
        {"scale": "rating", "threshold": "5"},
        r"column 'score', row 5: 'high' is no number",
    ),
    "percents with signs": (
        predictions(60).assign(
            score=lambda frame: [f"{100 * probability:.1f} %" for probability in frame.score]
        ),
        {},
        r"column 'score', row 1: '.* %' is no number: of percents give scale=percent",
    ),
    "shares and a few percents": (
        predictions(60).assign(score=lambda frame: frame["score"].where(frame.index > 3, 45)),
        {},
        r"column 'score' holds shares and percents, such as '0\.\d+' in row 5 and '45.0' in row 1: "
        r"write all in one way",
    ),
    "few rows that may be either": (
        pd.DataFrame(
            {
                "sex": ["f", "m"] * 3,
                "race": "x",
                "score": [0.3, 45, 0.2, 60, 0.4, 31],
                "label": [0, 1] * 3,
            }
        ),
        {"group": "sex"},
        r"such as '0.3' in row 1 and '45.0' in row 2: .*; if all are percents, give scale=percent",
    ),
    "shares and percents, called percents": (
        predictions(600).assign(
            score=lambda frame: frame["score"] * np.where(frame.index % 2, 1, 100)
        ),
        {"scale": "percent"},
        r"column 'score' holds shares and percents, such as '0\..*' in row \d+ and .*:",
    ),
    "percents, some with signs": (
        predictions(60).assign(
            score=lambda frame: [
                f"{100 * score:.1f}" + " %" * (row % 2) for row, score in enumerate(frame["score"])
            ]
        ),
        {"scale": "percent"},
        r"column 'score' holds shares and percents, such as '.*' in row 1 and '.* %' in row 2",
    ),
    "decisions of other words": (
        predictions(60).assign(label=["bad", "good"] * 30, decision=["yes", "no"] * 30),
        {"score": "", "prediction": "decision", "positive": "good"},
        r"column 'decision', row 1: 'yes' is not 'bad' or 'good', the labels of the target",
    ),
    "decisions 0 and 1 beside labels that are turned round": (
        predictions(60).assign(label=["no", "yes"] * 30, decision=[0, 1] * 30),
        {"score": "", "prediction": "decision", "positive": "no"},
        r"column 'decision', row 1: '0' is not 'yes' or 'no', the labels of the target",
    ),
    "label and group in one": (
        predictions(60),
        {"group": "[sex,label]"},
        r"group= names 'label', which is the column of labels \(target=\): .* name another column",
    ),
    "blank scores": (
        predictions(60).assign(score=lambda frame: frame["score"].where(frame.index > 2)),
        {},
        r"row 1: '' is no number: each row needs a score; add it, or delete the 3 rows without",
    ),
    "regression": (
        predictions(60).assign(label=lambda frame: 9 * frame["score"]),
        {},
        r"a label has two values, here 60 different numbers: make two classes of them",
    ),
    "age": (
        predictions(600).assign(age=np.arange(600) % 70 + 18),
        {"group": "age"},
        r"'age' holds 70 different numbers, which are no groups yet: .* group=age:25,40,62 or",
    ),
    "bands that fall": (
        predictions(60).assign(age=30),
        {"group": "[sex,age:40,25]"},
        r"group=age:40,25: the limits of bands rise, such as age:25,40,62",
    ),
    "bands of a text": (
        predictions(60),
        {"group": "sex:25,40"},
        r"column 'sex', row 1: '.*' is no number, which bands such as sex:25,40 are of",
    ),
    "left out": (
        predictions(60),
        {"leave_out": "[race=Green]"},
        r"unknown group of 'race' in leave_out 'Green'",
    ),
    "score text": (with_value("score", 6, "high"), {}, r"column 'score', row 7: 'high' is no nu"),
    "third label": (with_value("label", 9, 2), {}, r"column 'label', row 10: '2' is not '.' or"),
    "text labels": (
        predictions(60).assign(label=["bad", "good"] * 30),
        {},
        r"'bad' and 'good'; it is unclear which of them 'score' .*positive=good.*positive=bad",
    ),
    "wrong positive": (
        predictions(60).assign(label=["no", "yes"] * 30),
        {"positive": "maybe"},
        r"'no' and 'yes'; positive=maybe is neither",
    ),
    "mark": (
        with_value("is_labelled", 3, "perhaps"),
        {"labelled": "is_labelled"},
        r"column 'is_labelled', row 4: 'perhaps' is not true or false",
    ),
    "marked without label": (
        with_value("label", 2, None),
        {"labelled": "is_labelled"},
        r"column 'label', row 3: '' is not a label, though 'is_labelled' is true",
    ),
    "one group": (
        predictions(60).assign(sex="Male"),
        {},
        r"column 'sex' holds 1 different values \('Male'\)",
    ),
    "no groups": (predictions(60), {"group": "score"}, r"column 'score' holds 60 different values"),
    "foreign decision": (
        predictions(60).assign(decision="maybe"),
        {"prediction": "decision"},
        r"column 'decision', row 1: 'maybe' is not '0' or '1'",
    ),
    "favourable": (predictions(60), {"favourable": "good"}, r"favourable label 'good'"),
    "favourable of decisions alone": (
        predictions(60).assign(decision=lambda frame: (frame["score"] > 0.5).astype(int)),
        {"score": "", "target": "", "prediction": "decision", "favourable": "good"},
        r"favourable label 'good'",
    ),
    "column twice": (
        predictions(60).assign(again=1).rename(columns={"again": "label"}),
        {},
        r"2 columns are named 'label'",
    ),
    "no rows": (predictions(60).iloc[:0], {}, r"no rows below the header"),
    "epsilon": (predictions(60), {"epsilon": "2"}, r"epsilon is 2"),
    "epsilon text": (predictions(60), {"epsilon": "few"}, r"epsilon is 'few'; it must be a number"),
    "option": (predictions(60), {"treshold": "0.4"}, r"option 'treshold': did you mean threshold"),
    "group twice": (predictions(60), {"group": "[sex,sex]"}, r"names a column twice"),
    "label with an x": (
        predictions(60).replace({"Male": "Male x White"}),
        {"group": "[sex,race]"},
        r"predictions.csv: label 'Male x White' of column 'sex' has an x between spaces",
    ),
    "no group": (predictions(60), {"group": "[]"}, r"no groups to compare"),
    "score by the labels' name": (predictions(60), {"score": "label"}, r"score= names 'label', wh"),
    "decision by the labels' name": (
        predictions(60),
        {"score": "", "prediction": "label"},
        r"prediction= names 'label', which is the column of labels \(target=\): .*; name another",
    ),
    "score is the label": (
        predictions(60).assign(score=lambda frame: frame["label"]),
        {},
        r"predictions.csv: column 'score' is the label: it is 0 for one label and 1 for the other "
        r"in all 60 labelled rows, which is leakage; name the column of predicted probabilities",
    ),
    "score is the label turned round": (
        predictions(200, labels=100).assign(score=lambda frame: 0.9 - 0.4 * frame["label"]),
        {"labelled": "is_labelled"},
        r"it is 0.9 for one label and 0.5 for the other in all 100 labelled rows",
    ),
    "other score is the label": (
        predictions(60).assign(other=lambda frame: frame["label"]),
        {"against": "other", "group": "sex"},
        r"column 'other' is the label",
    ),
    "nothing to go by": (
        predictions(60).assign(label=np.nan, decision=1),
        {"score": "", "prediction": "decision"},
        r"neither labels nor scores",
    ),
}


@pytest.mark.parametrize(("frame", "options", "sentence"), FAULTS.values(), ids=FAULTS)
def test_fault_is_one_sentence(frame, options, sentence, tmp_path, capsys):
    path = written(frame, tmp_path)
    assert audit([*words(path, **options), f"out={tmp_path / 'out'}"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("error: ")
    assert printed.err.count("\n") == 1
    assert pd.Series([printed.err]).str.contains(sentence, regex=True)[0], printed.err
    assert not (tmp_path / "out").exists()


def noted(frame, folder, capsys, **options):
    """Return what an audit prints, on one line."""
    assert audit([*words(written(frame, folder), **options), f"out={folder / 'out'}"]) == 0
    return " ".join(capsys.readouterr().out.split())


def test_a_score_that_contains_the_label_is_told_of(tmp_path, capsys):
    frame = predictions(60).assign(score=lambda each: 0.8 * each["label"] + 0.1 * each["score"])
    printed = noted(frame, tmp_path, capsys, group="sex")
    assert "'score' tells the two labels apart without one mistake in 60 labelled rows" in printed


def test_decisions_that_are_the_label_are_told_of(tmp_path, capsys):
    frame = predictions(60).assign(decision=lambda each: each["label"])
    printed = noted(frame, tmp_path, capsys, group="sex", prediction="decision")
    assert "'decision' equals the label in all 60 labelled rows" in printed


def test_few_right_scores_are_no_leak(tmp_path, capsys):
    frame = predictions(40).assign(score=lambda each: each["label"])
    assert "may have been made" not in noted(frame, tmp_path, capsys, group="sex")


@pytest.mark.thorough
@pytest.mark.parametrize("labels", [60, 3])
@pytest.mark.parametrize(
    ("label", "missing"), [(1, "false positive rate"), (0, "true positive rate")]
)
def test_labels_of_one_class_are_told_of(label, missing, labels, tmp_path, capsys):
    frame = predictions(60, labels=labels).assign(label=label)
    printed = noted(frame, tmp_path, capsys, group="sex", labelled="is_labelled")
    assert f"All {labels} labels are '{label}': there are selection rates, accuracy" in printed
    assert f"nothing is known of the {missing}" in printed


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "no header line"),
        (b"score,label,sex,race\n0.5,1,a\n", "row 1 has 3 fields"),
        (b"score,label,sex,race\n0.5,1,\x81,b\n", "not UTF-8 text"),
    ],
    ids=["empty", "ragged", "bytes"],
)
def test_malformed_file(content, sentence, tmp_path, capsys):
    path = tmp_path / "predictions.csv"
    path.write_bytes(content)
    assert sentence in refusal(words(path), capsys)


def test_malformed_parquet(tmp_path, capsys):
    path = tmp_path / "predictions.parquet"
    path.write_bytes(b"PAR1 is not a table")
    assert "not a table in Parquet" in refusal(words(path), capsys)


def test_too_many_combinations(tmp_path, capsys):
    frame = predictions(600)
    for name, groups in (("sex", 40), ("race", 41)):
        frame[name] = np.random.default_rng(groups).integers(groups, size=600)
    assert "combinations in 600 rows; up to 300" in refusal(words(written(frame, tmp_path)), capsys)


def test_missing_file_names_the_nearest(tmp_path):
    written(predictions(60), tmp_path)
    done = fairbench("audit", *words(tmp_path / "prediction.csv"), cwd=tmp_path, status=2)
    assert "did you mean predictions.csv?" in done.stderr


@pytest.mark.parametrize("command", [
    ["audit", "loop.csv"], ["gate", "loop.csv", "fail_if=impact_ratio<0.8"],
    ["audit", "predictions.csv", "policy=loop.csv"], ["watch", "loop.csv", "state=s", "time=week"],
    ["watch", "predictions.csv", "state=loop.csv", "time=week"],
    ["label", "next", "loop.csv", "state=s"],
    ["label", "next", "predictions.csv", "state=loop.csv"],
])  # fmt: skip
def test_a_link_to_itself_is_no_file_and_stays(command, tmp_path, capsys, monkeypatch):
    written(predictions(60).assign(week=1), tmp_path)
    monkeypatch.chdir(tmp_path)
    os.symlink("loop.csv", "loop.csv")
    assert main([*command, "target=label", "score=score", "group=sex"]) == 2
    printed = capsys.readouterr().err.splitlines()
    assert "loop.csv" in printed[-1] and printed[-1].startswith("error: ")
    assert os.readlink("loop.csv") == "loop.csv"


@pytest.mark.thorough
def test_report_from_the_command_line(tmp_path):
    path = written(predictions(200), tmp_path)
    done = fairbench("audit", *words(path), f"out={tmp_path / 'out'}", cwd=tmp_path)
    assert "200, all of them with a label" in done.stdout
    assert max(map(len, done.stdout.splitlines()[:-1])) <= 100
    assert {p.name for p in (tmp_path / "out").iterdir()} == {
        "asked.txt",
        "audit.html",
        "audit.json",
    }


@pytest.mark.thorough
def test_an_audit_stays_beside_its_file_and_never_over_another(tmp_path, capsys):
    path = written(predictions(200), tmp_path, "loans.csv")
    both = words(path, group="sex")
    for folder, asked in [
        ("loans-audit", both),
        ("loans-audit-2", [*both, "threshold=0.4"]),
        ("loans-audit", both),
    ]:
        assert audit(asked) == 0
        assert f"written: {tmp_path / folder / 'audit.html'}" in capsys.readouterr().out
    assert {p.name for p in tmp_path.iterdir()} == {"loans.csv", "loans-audit", "loans-audit-2"}
    other = written(predictions(200, seed=1), tmp_path, "others.csv")
    out = f"out={tmp_path / 'loans-audit'}"
    assert "holds the audit of" in refusal([*words(other, group="sex"), out], capsys)
