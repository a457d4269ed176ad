"""The cases that both trees are asked: runs, tables, arrays, audits, and what is to be refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml


@dataclass(frozen=True)
class TableCase:
    """A table made of finished runs.

    Attributes
    ----------
    task : ``compare`` or ``tradeoff``.
    results : the folder of the runs.
    runs : those it rests on, by name; the table is committed where they all are.
    raw : the raw file its runs need, if any.
    """

    name: str
    task: str
    words: tuple[str, ...]
    results: str
    runs: tuple[str, ...] = ()
    raw: str = ""


# The trade-off of the committed runs alone: other runs of the folder would be in it too.
COMMITTED_TRADEOFF = TableCase(
    "held out", "tradeoff", ("dataset=simulated",), "holdout", ("plain", "reweighed", "thresholds")
)


# The arrays that ``fairbench.evaluate`` is asked about.

ROWS = 160


@dataclass(frozen=True)
class ArrayCase:
    """One call of ``fairbench.evaluate``.

    Attributes
    ----------
    arguments : of the call, as plain lists and values.
    evaluator : the options of its evaluator.
    cause : words of the refusal, where it is refused.
    """

    name: str
    arguments: Mapping[str, Any]
    evaluator: Mapping[str, Any] = field(default_factory=dict)
    cause: tuple[str, ...] = ()


def _people() -> dict[str, Any]:
    """Return people of two attributes, their labels, and scores and decisions on them."""
    draw = np.random.default_rng(20)
    sex = draw.choice(["male", "female", ""], ROWS, p=[0.6, 0.37, 0.03])
    race = draw.choice(["white", "black"], ROWS, p=[0.6, 0.4])
    score = draw.beta(1.2, 1.5, ROWS).round(4)
    target = (draw.random(ROWS) < np.clip(score + 0.1 * (sex == "female"), 0, 1)).astype(int)
    return {
        "target": target.tolist(),
        "prediction": (score > 0.5).astype(int).tolist(),
        "score": score.tolist(),
        "uncertainty": np.sqrt(score * (1 - score)).round(4).tolist(),
        "sensitive_features": {"sex": sex.tolist(), "race": race.tolist()},
    }


def _values() -> dict[str, Any]:
    """Return a regression: values, predictions, and what is claimed of their spread."""
    draw = np.random.default_rng(21)
    group = draw.choice(["a", "b"], ROWS, p=[0.7, 0.3])
    mean, sd = draw.normal(0, 2, ROWS).round(4), draw.uniform(0.5, 2, ROWS).round(4)
    return {
        "target": (mean + sd * draw.normal(0, 1, ROWS)).round(4).tolist(),
        "prediction": mean.tolist(),
        "sd": sd.tolist(),
        "uncertainty": sd.tolist(),
        "aleatoric": (0.7 * sd**2).tolist(),
        "epistemic": (0.3 * sd**2).tolist(),
        "sensitive_features": {"group": group.tolist()},
        "task": "regression",
    }


PEOPLE, VALUES = _people(), _values()
# A spread below zero, which there is not.
IMPOSSIBLE = {**VALUES, "sd": [-1.0, *VALUES["sd"][1:]]}
BARE = {name: PEOPLE[name] for name in ("target", "prediction", "sensitive_features")}
FINER: dict[str, Any] = {
    "draws": 500, "alpha": 0.5, "level": 0.9, "epsilon": 0.1, "bins": 5, "spread_groups": [4, 8],
    "spread_residual": "label", "abstention_rates": [0.0, 0.2], "choose_on": "test",
    "neighbours": 3, "minimum_group_size": 5, "intersections": 1,
}  # fmt: skip
TINY = {"target": [0, 1, 1, 0], "prediction": [0, 1, 0, 0], "sensitive_features": list("aabb")}

ARRAYS = (
    ArrayCase("people", PEOPLE, {"bins": 6, "spread_groups": [3]}),
    ArrayCase("labels alone", BARE, {"intersections": 1}),
    ArrayCase("finer", {**PEOPLE, "privileged": {"race": "white"}, "seed": 3}, FINER),
    ArrayCase("values", VALUES, {"spread_groups": [4], "coverage_levels": [0.5, 0.9]}),
    ArrayCase("impossible values", IMPOSSIBLE, cause=("sd", "1 of 160")),
    ArrayCase("four people", TINY),
    ArrayCase("one label", {**TINY, "target": [1, 1, 1, 1], "score": [0.5, 1.0, 0.0, 0.2]}),
    ArrayCase("third label", {**TINY, "target": [0, 1, 2, 0]}, cause=("target", "2", "row 2")),
    ArrayCase("too few", {**TINY, "score": [0.5]}, cause=("score", "1", "4")),
    ArrayCase("no such reference", {**TINY, "privileged": {"gruop": "a"}},
              cause=("gruop", "group")),
    ArrayCase("no such residual", TINY, {"spread_residual": "labels"}, cause=("spread_residual",)),
)  # fmt: skip


# The tables that are audited, and how.

CLASSES = ("cat", "dog", "emu")


@dataclass(frozen=True)
class AuditCase:
    """An audit, of one command or several: tasks and words. The last one writes the record."""

    name: str
    steps: tuple[tuple[str, tuple[str, ...]], ...]
    committed: bool = False


def tables() -> Mapping[str, pd.DataFrame]:
    """Return the files that are audited, by their names."""
    people = _people_audited(240)
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


def _people_audited(rows: int) -> pd.DataFrame:
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


# What is refused: with which exit status, and which words the sentence must hold.


@dataclass(frozen=True)
class RefusalCase:
    """A command line that is refused; `cause` are words of the complaint, in any order."""

    name: str
    task: str
    words: tuple[str, ...]
    cause: tuple[str, ...]
    status: int = 2


# The runs: every learner, intervention and method at least once, over every kind of split.

SMALL = ("dataset.n_samples=240", "dataset.n_features=4")
NUMBERS = ("dataset=simulated_regression", *SMALL, "split.repeats=2")
# The runs of one trade-off have their split in common; so have those of one comparison.
HOLDOUT = ("split.repeats=2", "split.validation=0.2")
FOLDS = ("split=kfold", "split.n_folds=3", "evaluator.bins=4")
HALVES = (*SMALL, "split=half_splits", "split.repeats=1", "evaluator.bins=4")
# What the words of a run begin with, and the folder of its results.
BASES = {
    "held": ((*SMALL, *HOLDOUT), "holdout"),
    "folded": ((*SMALL, *FOLDS), "folds"),
    "halves": (HALVES, "folds"),
    "numbers": (NUMBERS, "others"),
    "small": (SMALL, "others"),
}


@dataclass(frozen=True)
class RunCase:
    """One run.

    Attributes
    ----------
    name : what the run is called in place of its id, which changes with the code. None is the
        beginning of another, and none has a digit in it.
    words : what it is made of.
    results : the results folder it shares with the runs it is compared with.
    raw : the raw file it needs, if any.
    committed : whether its metrics are kept in the repository: it is quick, and gives ten equal
        digits on every machine.
    """

    name: str
    words: tuple[str, ...]
    results: str = "others"
    raw: str = ""
    committed: bool = False


def _of_run(name: str, words: Sequence[str], base: str = "", **more: Any) -> RunCase:
    first, results = BASES.get(base, ((), "others"))
    return RunCase(name, (*first, *words), **{"results": results, **more})


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _read(kind: str, of: Callable[..., Any]) -> tuple[Any, ...]:
    """Return the cases of a kind, which a YAML file beside this one has by their names."""
    return tuple(
        of(name, **{key: _tuples(value) for key, value in known.items()})
        for name, known in _WRITTEN[kind].items()
    )


_WRITTEN = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
RUNS: tuple[RunCase, ...] = _read("runs", _of_run)
TABLES: tuple[TableCase, ...] = _read("tables", TableCase)
AUDITS: tuple[AuditCase, ...] = _read("audits", AuditCase)
REFUSALS: tuple[RefusalCase, ...] = _read("refusals", RefusalCase)


# Which cases are asked: all of them, or those whose answers are committed.


@dataclass(frozen=True)
class Selection:
    """The cases that a tree is asked, kind by kind."""

    runs: tuple[RunCase, ...]
    tables: tuple[TableCase, ...]
    arrays: tuple[ArrayCase, ...]
    audits: tuple[AuditCase, ...]
    refusals: tuple[RefusalCase, ...]

    def at_hand(self, raw: Path, say: Callable[[str], None]) -> Selection:
        """Return the cases whose raw files are in a folder; the others are said to be left out."""
        there = {name for name in self.raw_files if (raw / name).is_file()}
        if missing := sorted(self.raw_files - there):
            say(f"left out, as not found in {raw}: the cases of {', '.join(missing)}")
        runs = tuple(case for case in self.runs if case.raw in there | {""})
        tables = tuple(case for case in self.tables if case.raw in there | {""})
        return Selection(runs, tables, self.arrays, self.audits, self.refusals)

    @property
    def raw_files(self) -> set[str]:
        """The raw data files that the cases need."""
        runs, tables = ({case.raw for case in cases} for cases in (self.runs, self.tables))
        return (runs | tables) - {""}


ALL = Selection(RUNS, TABLES, ARRAYS, AUDITS, REFUSALS)


# Those that are quick and give ten equal digits on every machine.
_QUICK = tuple(case for case in RUNS if case.committed)
_NAMES = {case.name for case in _QUICK}
COMMITTED = Selection(
    _QUICK,
    (*(case for case in TABLES if case.runs and set(case.runs) <= _NAMES), COMMITTED_TRADEOFF),
    ARRAYS,
    tuple(case for case in AUDITS if case.committed),
    # What a run is refused for has tests of its own, a process each.
    tuple(case for case in REFUSALS if case.task != "run"),
)
