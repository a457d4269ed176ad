"""Pools of predictions with a truth, labelled in process as a person would."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd

from fairbench.audits.direction import Direction
from fairbench.audits.table import AuditTable
from fairbench.data.dataset import combine
from fairbench.data.groups import group_columns
from fairbench_label.questions import next_rows, question_of
from fairbench_label.session import Answer, Session, State
from tests.audits.tables import parse


def pool(rows=2000, *, bias=0.25, seed=0):
    """Return an unlabelled table and its labels; scores are wrong by `bias` for Black women."""
    generator = np.random.default_rng(seed)
    sex = generator.choice(["Male", "Female"], rows, p=[0.7, 0.3])
    race = generator.choice(["White", "Black"], rows, p=[0.7, 0.3])
    score = generator.beta(1, 1.5, rows)
    chance = np.clip(score + bias * ((sex == "Female") & (race == "Black")), 0, 1)
    label = (generator.random(rows) < chance).astype(float)
    singles = pd.DataFrame(
        {
            "sex": pd.Categorical(sex, ["Male", "Female"]),
            "race": pd.Categorical(race, ["White", "Black"]),
        }
    )
    groups = group_columns(singles, {"sex": "Male", "race": "White"}, 2)
    cells, unknown = combine([singles[name] for name in singles]), np.full(rows, np.nan)
    decision = (score > 0.5).astype(np.int64)
    return AuditTable(score, decision, unknown, groups, cells, Direction(("0", "1"))), label


def session(table, *, question="worst", strategy="top_two", by="sex x race", seed=0):
    """Return a session without answers."""
    words = ["x.csv", "target=label", "score=score", "group=[sex,race]", f"seed={seed}"]
    return Session(State(parse(words), "", len(table), by, question, strategy), table)


def answer(begun, rows, label):
    """Return the session once these rows have their labels."""
    given = tuple(Answer(int(row) + 1, str(int(label[row])), "") for row in rows)
    known = begun.table.label.copy()
    known[rows] = label[rows]
    return Session(begun.state.with_answers(given), replace(begun.table, label=known))


def label_actively(begun, label, number, *, step=1):
    """Return the session after so many labels, `step` of them chosen at a time."""
    for left in range(number, 0, -step):
        begun = answer(begun, next_rows(begun, min(step, left)), label)
    return begun


def said(begun):
    """Return what labels say to the question of a session, with the figures by group."""
    question = question_of(begun)
    return SimpleNamespace(**question.answer(), groups=question.groups())
