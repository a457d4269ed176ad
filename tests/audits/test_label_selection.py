"""Labels that cannot have been given at random are refused; random ones are not."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import fairbench
from fairbench.audits import labels as label_selection
from fairbench.audits.kinds import document_of
from fairbench.audits.labels import check_labels_at_random
from fairbench.audits.table import read_audit_table
from fairbench.cli.main import main
from fairbench.core.errors import UserError
from tests.audits.tables import parse, predictions, read

WORDS = ["target=label", "score=score", "group=sex"]


@pytest.mark.parametrize("group", [None, "Male"])
def test_labels_of_the_selected_alone_are_refused_with_what_to_write(group):
    frame = predictions(800).assign(granted=lambda frame: frame["score"] > 0.5)
    kept = frame["granted"] | (group is not None) & (frame["sex"] != group)
    with pytest.raises(UserError, match="not chosen for labelling at random") as refusal:
        read(frame.assign(labelled=kept), *WORDS, "labelled=labelled")
    text = str(refusal.value)
    assert "\n" not in text and "selected=COLUMN" in text
    assert not group or f"in {group}, 0 of the " in text
    assert 0 < len(read(frame, *WORDS, "selected=granted")[0].known) < len(frame)


def rows_of_every_kind(rows=2000, *, seed=0):
    """Return predictions of two classes, of three and of numbers, all with labels."""
    draw = np.random.default_rng(seed)
    frame = predictions(rows)
    classes = np.array(["cat", "dog", "emu"])
    predicted = draw.integers(3, size=rows)
    truth = np.where(draw.random(rows) < 0.7, predicted, draw.integers(3, size=rows))
    income = draw.gamma(4, 5000, rows)
    return frame.assign(
        other=np.clip(frame["score"] + draw.normal(0, 0.1, rows), 0, 1),
        place=draw.integers(60, size=rows).astype(str),
        men=frame["sex"].map({"Male": 0.8, "Female": 0.3}),
        predicted=classes[predicted],
        animal=classes[truth],
        guess=income + draw.normal(0, 3000, rows),
        income=income,
        household=draw.integers(rows // 3, size=rows),
    )


TWO = "[0-9,]+ of the [0-9,]+ rows not selected have a label, and [0-9,]+ of the .* rows selected"
# Of each kind the options and the column of predictions, and a sentence on the largest alone.
KINDS = [
    ("target=label score=score group=[sex,race]", "score", f": in .* x .*, .*{TWO}"),
    ("target=label score=score against=other group=sex", "score",
     f": in Male, {TWO}.*Leave target= out to audit decisions alone"),
    ("target=label score=score against=other group=sex", "other", TWO),
    ("target=label score=score group=[place,race]", "score",
     ": over all groups, .* of the .* rows not selected have a label, where .* about .* would"),
    ("target=label score=score proxy=men", "score", f": {TWO}"),
    ("target=animal prediction=predicted score=score group=sex", "predicted",
     r": in Male, ([0-9]+) of the \1 rows predicted 'emu' have a label, and 0 of the"),
    ("target=animal prediction=predicted score=score", "predicted",
     r": ([0-9]+) of the \1 rows predicted 'emu'.*name the column of predicted classes in group="),
    ("target=animal prediction=predicted score=score group=sex", "score",
     ": in .*ale, 'score' is distributed otherwise in rows with a label"),
    ("target=income prediction=guess group=sex", "guess",
     r": in Male, 'guess' is distributed .* \(means [0-9.]+ and [0-9.]+\).*weight=COLUMN"),
    ("target=income prediction=guess group=[sex,race] cluster=household", "guess",
     ": in .* x .*, 'guess' is distributed otherwise"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "column", "sentence"), KINDS)
def test_every_kind_refuses_labels_of_the_largest_predictions_alone(words, column, sentence):
    frame = rows_of_every_kind()
    kept = frame[column] > frame[column].sort_values().iloc[len(frame) // 3]
    options = parse(["predictions.csv", *words.split(), "labelled=labelled"])
    with pytest.raises(UserError, match=f"not chosen for labelling at random.*{sentence}"):
        document_of(options, frame.assign(labelled=kept).astype(str))


@pytest.mark.parametrize("group", ["[sex,race]", "[place,race]"])
@pytest.mark.parametrize("column", ["score", "decided"])
def test_small_groups_are_compared_together(group, column):
    """A handful of rows of a group cannot refute by themselves that labels are random."""
    draw = np.random.default_rng(6)
    frame = rows_of_every_kind(80 if group == "[sex,race]" else 400)
    frame["decided"] = draw.integers(2, size=len(frame))
    kept = frame[column] > 0.4
    words = f"target=label score=score prediction=decided group={group} labelled=labelled"
    what = {"score": "with 'score' above the median of their group", "decided": "not selected"}
    with pytest.raises(UserError, match=f"over all groups, .* rows {what[column]} have a label"):
        options = parse(["p.csv", *words.split()])
        read_audit_table(options, frame.assign(labelled=kept).astype(str), many=True)


def of_the_selected():
    """Return loans, repaid or not where they were granted."""
    frame = predictions(800).rename(columns={"label": "repaid"})
    granted = frame["score"] > 0.5
    return frame.assign(granted=granted.astype(int), repaid=frame["repaid"].where(granted))


def test_a_gate_of_decisions_alone_takes_labels_of_the_selected():
    asked = {"target": "repaid", "score": "score", "groups": "sex", "favourable": "1"}
    gate = fairbench.gate(of_the_selected(), fail_if="impact_ratio<0.1", **asked)
    assert gate.outcome == "passes"
    with pytest.raises(UserError, match="not chosen for labelling at random"):
        fairbench.gate(of_the_selected(), fail_if="sex:equal_opportunity>0.9", **asked)


@pytest.mark.parametrize("rules", ["lending", "four-fifths", "ll144"])
def test_dossiers_of_decisions_alone_take_labels_of_the_selected(rules, tmp_path):
    of_the_selected().to_csv(tmp_path / "loans.csv", index=False)
    groups = ["sex=sex", "race=race"] if rules == "ll144" else ["group=[sex,race]"]
    words = ["target=repaid", "prediction=granted", "favourable=1", *groups]
    assert main(["dossier", rules, str(tmp_path / "loans.csv"), *words]) == 0


def refused(is_labelled, cells, classes=None, values=None, **more):
    """Return why labels are not of rows at random; nothing where they may be."""
    about = {"advice": "", "classes": classes, "values": values, **more}
    try:
        check_labels_at_random("p.csv", is_labelled, cells.astype("category"), **about)
    except UserError as refusal:
        return str(refusal)
    return ""


def test_a_single_label_is_never_refused():
    """Not even that of the highest score: one row in twenty has it."""
    score = np.arange(20) / 20
    cells = pd.Series(pd.Categorical(["all"] * 20))
    for row in range(20):
        is_labelled = np.arange(20) == row
        assert not refused(is_labelled, cells, values={"'score'": score})


@pytest.mark.parametrize("seed", range(5))
def test_merged_rows_are_answered_like_all_rows(seed, monkeypatch):
    draw = np.random.default_rng(seed)
    rows = pd.DataFrame(
        {
            "cell": draw.choice(["a", "b", "c"], 3000, p=[0.6, 0.3, 0.1]),
            "code": draw.integers(4, size=3000),
            "score": draw.integers(8, size=3000) / 8,
        }
    )
    rows["labelled"] = draw.random(3000) < 0.2 + 0.02 * seed * rows["score"]
    merged = rows.value_counts().rename("times").reset_index()
    assert len(merged) < 200

    def answer(table, level, *, code=True, score=True):
        monkeypatch.setattr(label_selection, "_LEVEL", level)
        return refused(
            table["labelled"].to_numpy(),
            table["cell"],
            classes=(table["code"].to_numpy(np.int64), list("wxyz")) if code else None,
            values={"'score'": table["score"].to_numpy()} if score else None,
            times=table["times"].to_numpy(np.int64) if "times" in table else None,
        )

    for asked in ({}, {"code": False}, {"score": False}):
        for level in (1e9, 1e-3):  # at the first, every p-value refutes
            assert answer(rows, level, **asked) == answer(merged, level, **asked)
        assert "have a label" in answer(rows, 1e9) and "distributed" in answer(
            rows, 1e9, code=False
        )


@pytest.mark.slow
@pytest.mark.parametrize("classes", [2, 5])
@pytest.mark.parametrize("groups", [1, 3, 40])
@pytest.mark.parametrize("share", [0.02, 0.3, 0.97])
def test_a_refusal_of_random_labels_is_as_rare_as_said(classes, groups, share, monkeypatch):
    """With the level at a fiftieth, one file in fifty may be refused, and not more."""
    monkeypatch.setattr(label_selection, "_LEVEL", 0.02)
    draw, wrong = np.random.default_rng(2), 0
    cells = pd.Series(np.floor(groups * draw.random(300) ** 2), dtype="category")
    score = draw.random(300)
    codes = (score * classes).astype(np.int64)
    for _ in range(400):
        told = ((codes, list("abcde")[:classes]), {"'score'": score})
        wrong += bool(refused(draw.random(300) < share, cells, *told))
    assert wrong <= stats.binom.ppf(0.999, 400, 0.02)


@pytest.mark.thorough
def test_random_households_that_are_labelled_together_are_taken(monkeypatch):
    """Rows of a household are alike, so that they are not as many labels as they seem."""
    monkeypatch.setattr(label_selection, "_LEVEL", 0.02)
    draw, wrong = np.random.default_rng(5), 0
    for _ in range(200):
        household = np.repeat(np.arange(40), 10)
        guess = draw.normal(size=40)[household] + draw.normal(0, 0.01, 400)
        is_labelled = (draw.random(40) < 0.5)[household]
        cells = pd.Series(draw.choice(["a", "b"], 400))
        values, clusters = {"'guess'": guess}, pd.Series(household)
        wrong += bool(refused(is_labelled, cells, values=values, clusters=clusters))
    assert wrong <= stats.binom.ppf(0.999, 200, 0.02)
