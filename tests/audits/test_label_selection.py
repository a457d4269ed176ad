"""Labels that cannot have been given at random are refused; random ones are not."""

import numpy as np
import pytest
from scipy import stats

from fairbench.audits.label_selection import check_labels_at_random
from fairbench.audits.table import read_audit_table
from fairbench.core.errors import UserError
from tests.audits.tables import parse, predictions

WORDS = ["predictions.csv", "target=label", "score=score", "group=sex", "labelled=labelled"]


def read(frame, kept, *words):
    """Return the table of rows of which some have a label."""
    return read_audit_table(parse([*WORDS, *words]), frame.assign(labelled=kept).astype(str))


def people(rows=800):
    """Return rows that all have a label, with decisions of a score."""
    return predictions(rows, labels=rows)


@pytest.mark.parametrize("group", [None, "Male"])
def test_labels_of_the_selected_alone_are_refused_with_what_to_write(group):
    frame = people()
    kept = frame["score"] > 0.5
    if group:
        kept |= frame["sex"] != group
    with pytest.raises(UserError, match="not chosen for labelling at random") as refusal:
        read(frame, kept)
    text = str(refusal.value)
    assert "\n" not in text and "selected=COLUMN" in text
    assert not group or f"in {group}, 0 of the " in text
    table = read_audit_table(
        parse([*WORDS[:-1], "selected=granted"]),
        frame.assign(granted=frame["score"] > 0.5).astype(str),
    )
    assert 0 < len(table.known) < len(frame)


def test_labels_of_the_largest_scores_are_refused_though_decisions_are_others():
    frame = people()
    decided = np.random.default_rng(0).integers(2, size=len(frame))
    kept = frame["score"] > frame["score"].median()
    with pytest.raises(UserError, match="scores of rows with a label are distributed otherwise"):
        read(frame.assign(decided=decided), kept, "prediction=decided")


@pytest.mark.parametrize("share", [0.02, 0.5, 0.98])
def test_labels_at_random_within_groups_are_taken(share):
    frame, draw = people(), np.random.default_rng(1)
    by_group = np.where(frame["sex"] == "Male", share, 1 - share)
    for _ in range(20):
        kept = draw.random(len(frame)) < by_group
        read(frame, kept)


def test_a_refusal_of_random_labels_is_as_rare_as_said(monkeypatch):
    """With the level at a hundredth, one file in a hundred may be refused, and not more."""
    from fairbench.audits import label_selection

    monkeypatch.setattr(label_selection, "_LEVEL", 0.01)
    frame, draw, refused = people(300), np.random.default_rng(2), 0
    cells = frame["sex"].astype("category")
    score = frame["score"].to_numpy(float)
    decision = (score > 0.5).astype(int)
    for _ in range(400):
        label = np.where(draw.random(len(frame)) < 0.3, frame["label"], np.nan)
        try:
            check_labels_at_random("p.csv", label, decision, score, cells, ("no", "yes"))
        except UserError:
            refused += 1
    assert refused <= stats.binom.ppf(0.999, 400, 0.01)
