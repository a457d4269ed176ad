"""What is refused: with which exit status, and which words the sentence must hold.

The words are the cause: the wrong name and the nearest valid one, or the number and its bounds. How
the sentence goes is free.
"""

from __future__ import annotations

from dataclasses import dataclass


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
    RefusalCase("compare nothing", "compare", ("compare=[zzz,yyy]",), ("zzz",)),
    RefusalCase("compare one", "compare", ("compare=[plain]", "results=holdout"), ("1", "two")),
    RefusalCase("compare by", "compare",
                ("compare=[plain,reweighed]", "results=holdout", "objectives=[acuracy]"),
                ("acuracy", "accuracy")),
    RefusalCase("compare rho", "compare",
                ("compare=[plain,reweighed]", "results=holdout", "rho=much"), ("rho", "much")),
    RefusalCase("compare option", "compare", ("compare=all", "leve=0.9"), ("leve", "level")),
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
