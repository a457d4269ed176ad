"""The cases that both trees are asked: runs, tables, arrays, audits, and what is to be refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd


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


def _compared(
    name: str,
    runs: tuple[str, ...],
    *words: str,
    results: str = "folds",
    besides: tuple[str, ...] = (),
    raw: str = "",
) -> TableCase:
    named = f"runs=[{','.join(runs)}]"
    return TableCase(name, "compare", (named, *words), results, (*runs, *besides), raw)


HELD = ("plain", "reweighed", "thresholds")
TABLES = (
    _compared("pooled folds", ("bayes", "linear")),
    _compared("rho and rope", ("kernel", "linear"), "rho=1/K", "rope=[0.02,0.05]", "level=0.9",
              "objectives=[balanced_accuracy,equalized_odds]", "paired=false"),
    _compared("one objective", ("linear", "kernel"), "rho=0.1", "objectives=[accuracy]",
              "rope=[0.01]", "predictive=true", "seed=1", "draws=2000"),
    _compared("relative rho", ("kernel", "linear"), "rho=relative_up", "rho_per=group",
              besides=("half_kernel", "half_linear")),
    _compared("repeats", ("plain", "reweighed"), "alpha=0.5", results="holdout"),
    _compared("ranked", HELD, "certainty=0.6", results="holdout"),
    _compared("credit", ("credit", "ensemble"), results="german", raw="german/german.data"),
    TableCase("all folds", "compare", ("runs=all",), "folds"),
    TableCase("all held out", "tradeoff", ("dataset=simulated",), "holdout"),
    TableCase("german", "tradeoff", ("dataset=german", "protect=age"), "german",
              raw="german/german.data"),
)  # fmt: skip
# The trade-off of the committed runs alone: other runs of the folder would be in it too.
COMMITTED_TRADEOFF = TableCase("held out", "tradeoff", ("dataset=simulated",), "holdout", HELD)


# The arrays that ``fairbench.evaluate`` is asked about.

ROWS = 160
_NOTHING: dict[str, Any] = {}


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
GROUPS = "group=[sex,race]"


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


def _audit(name: str, *words: str, committed: bool = False) -> AuditCase:
    return AuditCase(name, (("audit", (*words, "out=out")),), committed)


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
        ("next", ("few.csv", "state=state.json", "target=label", "score=score", GROUPS, "n=4")),
        ("label", ("state=state.json", "2=1", "3=0", "4=?")),
        ("label", ("state=state.json", "labels=answers.csv", "overwrite=true")),
        ("next", ("state=state.json", "question=gap", "strategy=thompson", "part=1/2", "n=3")),
        ("report", ("state=state.json", "out=out")),
    )),
)  # fmt: skip


# What is refused: with which exit status, and which words the sentence must hold.
#
# The words are the cause: the wrong name and the nearest valid one, or the number and its bounds.
# How the sentence goes is free.


@dataclass(frozen=True)
class RefusalCase:
    """A command line that is refused; `cause` are words of the complaint, in any order."""

    name: str
    task: str
    words: tuple[str, ...]
    cause: tuple[str, ...]
    status: int = 2


def _run(name: str, *words: str, cause: tuple[str, ...]) -> RefusalCase:
    return RefusalCase(name, "run", ("tracking=none", "figures=false", *words), cause)


TABLE = ("all.csv", "target=label", "group=[sex,race]")
REFUSALS = (
    _run("data set", "dataset=germn", cause=("germn", "german")),
    _run("method", "method=binomal_nll", cause=("binomal_nll", "binomial_nll")),
    _run("option", "learner.max_dept=3", cause=("learner.max_dept", "learner.max_depth")),
    _run("setting", "sede=1", cause=("sede", "seed")),
    _run("number", "learner.max_depth=deep", cause=("learner.max_depth", "deep", "number")),
    _run("share", "split.train=1.5", cause=("split.train", "1.5", "0", "1")),
    _run("jobs", "n_jobs=0", cause=("n_jobs", "0", "1")),
    _run("task", "dataset=simulated_regression", "method=binomial_nll",
         cause=("binomial_nll", "regression", "binary")),
    _run("loss", "learner=gaussian_nb", "method=normal_nll", "dataset=simulated_regression",
         cause=("gaussian_nb",)),
    _run("attribute", "protect=race", cause=("race", "group")),
    _run("test part", "split=predefined", cause=("predefined", "simulated", "holdout")),
    _run("raw file", "dataset=adult", "data.search_path=[nowhere]", "data.download=false",
         cause=("adult/adult.data", "nowhere")),
    RefusalCase("compare nothing", "compare", ("runs=[zzz,yyy]",), ("zzz",)),
    RefusalCase("compare one", "compare", ("runs=[plain]", "results=holdout"), ("1", "two")),
    RefusalCase("compare by", "compare",
                ("runs=[plain,reweighed]", "results=holdout", "objectives=[acuracy]"),
                ("acuracy", "accuracy")),
    RefusalCase("compare rho", "compare",
                ("runs=[plain,reweighed]", "results=holdout", "rho=much"), ("rho", "much")),
    RefusalCase("compare option", "compare", ("runs=all", "leve=0.9"), ("leve", "level")),
    RefusalCase("trade-off option", "tradeoff", ("dataset=simulated", "protec=group"),
                ("protec", "protect")),
    RefusalCase("trade-off of none", "tradeoff", ("dataset=german", "results=holdout"),
                ("german", "two")),
    RefusalCase("audit option", "audit", (*TABLE, "score=score", "epsilo=0.1"),
                ("epsilo", "epsilon")),
    RefusalCase("audit column", "audit", (*TABLE, "score=scor"), ("scor", "score", "all.csv")),
    RefusalCase("audit file", "audit", ("al.csv", *TABLE[1:], "score=score"),
                ("al.csv", "all.csv")),
    RefusalCase("audit nothing", "audit", TABLE, ("score=", "prediction=")),
    RefusalCase("audit epsilon", "audit", (*TABLE, "score=score", "epsilon=2"), ("epsilon", "2")),
    RefusalCase("audit score", "audit", ("all.csv", "target=label", "score=row", "group=[sex]"),
                ("all.csv", "row", "0", "1")),
    RefusalCase("label nothing", "label", ("state=nowhere.json", "1=1"), ("nowhere.json",)),
)  # fmt: skip


# The runs: every learner, intervention and method at least once, over every kind of split.

GERMAN = "german/german.data"
GRADES = "law_school/law_school_gpa_reconstructed.csv"
BAR = "law_school/bar_pass_prediction.csv"
SMALL = ("dataset.n_samples=240", "dataset.n_features=4")
NUMBERS = ("dataset=simulated_regression", *SMALL, "split.repeats=2")
# The runs of one trade-off have their split in common; so have those of one comparison.
HOLDOUT = ("split.repeats=2", "split.validation=0.2")
FOLDS = ("split=kfold", "split.n_folds=3", "evaluator.bins=4")
HALVES = (*SMALL, "split=half_splits", "split.repeats=1", "evaluator.bins=4")
BAG = "method.members=3"
QUICK_NETWORK = "learner.epochs=5"


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


def _held(name: str, *words: str, committed: bool = False) -> RunCase:
    return RunCase(name, (*SMALL, *HOLDOUT, *words), "holdout", committed=committed)


def _folded(name: str, *words: str, committed: bool = False) -> RunCase:
    return RunCase(name, (*SMALL, *FOLDS, *words), "folds", committed=committed)


def _number(name: str, *words: str, committed: bool = False) -> RunCase:
    return RunCase(name, (*NUMBERS, *words), committed=committed)


TRADED = (
    _held("plain", "learner=gaussian_nb", "method=baseline",
          "evaluator.relaxations=[0,0.1,1]", committed=True),
    _held("reweighed", "learner=gaussian_nb", "intervention=reweighing", "method=ensemble", BAG,
          committed=True),
    _held("thresholds", "learner=gaussian_nb", "intervention=threshold_optimizer",
          "method=baseline", committed=True),
    _held("grid", "learner=logistic_regression", "intervention=grid_search", "method=baseline"),
    _held("gradient", "learner=logistic_regression", "intervention=exponentiated_gradient",
          "intervention.max_iter=5", "method=baseline"),
)  # fmt: skip

COMPARED = (
    _folded("bayes", "learner=gaussian_nb", "intervention=disparate_impact_remover",
            "method=selective_ensemble", BAG, committed=True),
    _folded("bound", "learner=linear_svm", "intervention=linear_ferm", "method=self_consistency",
            BAG),
    _folded("covariance", "learner=logistic_regression", "intervention=disparate_mistreatment",
            "method=baseline"),
    _folded("kernel", "learner=svm", "method=baseline", committed=True),
    _folded("linear", "learner=logistic_regression", "method=baseline", committed=True),
    _folded("mean", "learner=svm", "intervention=ferm", "method=baseline"),
    RunCase("half_kernel", (*HALVES, "learner=svm", "method=baseline"), "folds", committed=True),
    RunCase("half_linear", (*HALVES, "learner=logistic_regression", "method=baseline"),
            "folds", committed=True),
)  # fmt: skip

OTHERS = (
    RunCase("depths", (*SMALL, "split.repeats=1", "dataset.n_groups=3", "evaluator.bins=4",
                       "learner=xgboost", "method=binomial_nll", "consistency=max_depth",
                       "consistency.values=[2,4]", "consistency.replicates=1",
                       "evaluator.neighbours=5", "evaluator.choose_on=test",
                       "evaluator.feature_shift_rates=[0.1]"),
            committed=True),
    RunCase("boosted", (*SMALL, "split.repeats=2", "learner=lightgbm", "intervention=fairgbm",
                        "method=conformal")),
    RunCase("tuned", (*SMALL, "split=predefined", "dataset.shift=1", "learner=xgboost_tuned",
                      "learner.depths=[1,3]", "learner.rounds=6", "method=marginal")),
    RunCase("forest", (*SMALL, *FOLDS, "learner=random_forest", "learner.n_estimators=5",
                       "intervention=hardt", "method=random"), committed=True),
    RunCase("dropped", (*SMALL, "split.repeats=1", "learner=mlp", "learner.dropout=0.1",
                        QUICK_NETWORK, "method=mc_dropout")),
    RunCase("drawn", (*SMALL, "split.repeats=1", "learner=bayesian_nn", QUICK_NETWORK,
                      "method=bayes_by_backprop")),
    RunCase("network", (*SMALL, "split.repeats=1", "learner=sklearn_mlp", "learner.max_iter=400",
                        "learner.learning_rate_init=0.1", "intervention=reweighing",
                        "method=baseline")),
    _number("normal", "method=normal_nll", committed=True),
    _number("slow_normal", "method=normal_nll_reference"),
    # Some of its standard deviations are below zero, so that most metrics are invalid.
    _number("impossible", "learner.learning_rate=1", "method=normal_nll_reference"),
    _number("beta", "method=beta_nll", "method.beta=0.25"),
    _number("slow_beta", "method=beta_nll_reference"),
    _number("faithful", "learner=xgboost_tuned", "learner.depths=[1,3]", "learner.rounds=6",
            "method=faithful_nll"),
    _number("slow_faithful", "method=faithful_nll_reference"),
    _number("constant", "learner=random_forest", "learner.n_estimators=5", "method=constant_sd"),
    _number("several", "learner=mlp", QUICK_NETWORK, "method=deep_ensemble", "method.members=2"),
    _number("covered", "method=conformal", "method.scaled=true", "method.guarantee=group",
            "intervention=disparate_impact_remover"),
)  # fmt: skip

REAL = (
    RunCase("credit", ("dataset=german", *HOLDOUT, "learner=logistic_regression",
                       "method=baseline", "evaluator.relaxations=[0,0.1,1]"), "german", GERMAN),
    RunCase("ensemble", ("dataset=german", *HOLDOUT, "learner=xgboost", "method=ensemble", BAG),
            "german", GERMAN),
    RunCase("sexes", ("dataset=german", "split.repeats=1", "protect=[sex,age]", "evaluator.bins=4",
                      "learner=gaussian_nb", "intervention=reweighing", "method=baseline"),
            "german", GERMAN, committed=True),
    RunCase("grades", ("dataset=law_school", "split.repeats=1", "method=normal_nll"), raw=GRADES,
            committed=True),
    RunCase("bar", ("dataset=law_school_bar", "split=kfold", "split.n_folds=2",
                    "learner=logistic_regression", "method=binomial_nll"), raw=BAR),
)  # fmt: skip

RUNS = (*TRADED, *COMPARED, *OTHERS, *REAL)


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


def committed() -> Selection:
    """Return the cases that are quick and give ten equal digits on every machine."""
    runs = tuple(case for case in RUNS if case.committed)
    names = {case.name for case in runs}
    tables = tuple(case for case in TABLES if case.runs and set(case.runs) <= names)
    return Selection(
        runs,
        (*tables, COMMITTED_TRADEOFF),
        ARRAYS,
        tuple(case for case in AUDITS if case.committed),
        # What a run is refused for has tests of its own, a process each.
        tuple(case for case in REFUSALS if case.task != "run"),
    )


COMMITTED = committed()
