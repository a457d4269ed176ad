"""The tables that are audited, and how."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

CLASSES = ("cat", "dog", "emu")
GROUPS = "group=[sex,race]"


@dataclass(frozen=True)
class Step:
    """One command of an audit: its task, and its words."""

    task: str
    words: tuple[str, ...]


@dataclass(frozen=True)
class AuditCase:
    """An audit, of one command or several; the last one writes the record."""

    name: str
    steps: tuple[Step, ...]
    committed: bool = False


def tables() -> Mapping[str, pd.DataFrame]:
    """Return the files that are audited, by their names."""
    people = _people(240)
    some = people["label"].where(people["row"] % 4 == 0).astype("Int64")
    yes_no = people["label"].map({0: "no", 1: "yes"})
    words = people.assign(
        label=yes_no, decision=(people["score"] > 0.6).map({True: "yes", False: "no"})
    )
    return {
        "all.csv": people,
        "few.csv": people.assign(label=some),
        "words.csv": words.assign(shown=people["row"] % 3 > 0),
        "classes.csv": _classified(180),
        "costs.csv": pd.DataFrame([("cat", 0, 1, 2), ("dog", 1, 0, 5), ("emu", 3, 1, 0)],
                                  columns=["truth", *CLASSES]),
        "answers.csv": people[["row", "label"]].iloc[:40].assign(row=lambda t: t["row"] + 1),
    }  # fmt: skip


def _people(rows: int) -> pd.DataFrame:
    """Return people with two scores, the labels of women higher than the first one says."""
    draw = np.random.default_rng(30)
    sex = draw.choice(["male", "female"], rows, p=[0.6, 0.4])
    race = draw.choice(["white", "black", "other"], rows, p=[0.6, 0.36, 0.04])
    score = draw.beta(1, 1.5, rows).round(4)
    chance = np.clip(score + 0.2 * (sex == "female"), 0, 1)
    other = np.clip(chance + draw.normal(0, 0.2, rows), 0, 1).round(4)
    label = (draw.random(rows) < chance).astype(int)
    columns = {"row": np.arange(rows), "sex": sex, "race": race, "score": score, "other": other}
    return pd.DataFrame({**columns, "label": label})


def _classified(rows: int) -> pd.DataFrame:
    """Return predictions of three classes, every third without its label."""
    draw = np.random.default_rng(31)
    chance = draw.dirichlet([1.0, 0.7, 0.4], rows).round(4)
    chance[:, 2] = (1 - chance[:, :2].sum(axis=1)).round(4)
    truth = np.array([draw.choice(CLASSES, p=each / each.sum()) for each in chance])
    frame = pd.DataFrame(chance, columns=[f"p_{name}" for name in CLASSES])
    return frame.assign(
        truth=np.where(np.arange(rows) % 3 == 0, "", truth),
        predicted=np.array(CLASSES)[chance.argmax(axis=1)],
        confidence=chance.max(axis=1),
        sex=draw.choice(["male", "female"], rows),
    )


def _audit(name: str, *words: str, committed: bool = False) -> AuditCase:
    return AuditCase(name, (Step("audit", (*words, "out=out")),), committed)


AUDITS = (
    _audit("all labels", "all.csv", "target=label", "score=score", GROUPS, committed=True),
    _audit("few labels", "few.csv", "target=label", "score=score", "group=[sex]", committed=True),
    _audit("two attributes", "few.csv", "target=label", "score=score", GROUPS, "epsilon=0.1"),
    _audit("no labels", "few.csv", "score=score", "group=[sex]", "threshold=0.3", "seed=2"),
    _audit("decisions", "words.csv", "target=label", "prediction=decision", "group=[race]",
           "positive=yes", "favourable=no", "labelled=shown", committed=True),
    _audit("pair", "all.csv", "target=label", "score=score", "against=other", GROUPS,
           committed=True),
    _audit("pair of few", "few.csv", "target=label", "score=score", "against=other", "group=[sex]"),
    _audit("classes", "classes.csv", "target=truth", "prediction=predicted", "score=confidence",
           "group=[sex]", committed=True),
    _audit("probabilities", "classes.csv", "target=truth", "score=[p_cat,p_dog,p_emu]",
           "cost=costs.csv", "prior=scores", "strength=5", committed=True),
    AuditCase("labelling", (
        Step("next", ("few.csv", "state=state.json", "target=label", "score=score", GROUPS, "n=4")),
        Step("label", ("state=state.json", "2=1", "3=0", "4=?")),
        Step("label", ("state=state.json", "labels=answers.csv", "overwrite=true")),
        Step("next", ("state=state.json", "question=gap", "strategy=thompson", "part=1/2", "n=3")),
        Step("report", ("state=state.json", "out=out")),
    )),
)  # fmt: skip
