"""A paper's folder: its printed numbers, what of ours answers each, and the rows of its text.

``mapping.yaml`` has the same form for every paper. A table has `rules`; the first that holds for a
published row says what answers it: runs of the table's experiments (`metrics`, `ours`), a
computation of the paper's folder (`computation`), or nothing, and why (`absent`). A rule is for the
`datasets`, `methods`, `metrics`, `settings` and the like that it names, and for all where it names
none.

The first answer has the setting of the paper's text. A later one may name a `cause`, one of the
paper's `causes`: the one setting in which it differs. Where the first differs from the printed
number and one under a cause agrees, that cause explains the difference. `impossible` lists printed
numbers that cannot be, each with the reason and the test that shows it.

``contents.yaml`` has a row for every table, figure, definition, algorithm, data set, setting and
claim, with its place in the text: what the text has, what we run, and where the two differ. One of
`ANSWERS` says what answers it: a table or a figure of the mapping, a command that prints a study,
the code that implements it, a data set of ``conf``, ``words``, or ``absent``, why it cannot be had.
The verdict of a table is counted from its numbers; that of other rows is written in the file.

Begin with `Paper`, then `judge` and `settle`, which compare one number.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from fairbench.cli.command import Results
from fairbench.core.options import option

# The columns that distinguish the published rows of one table and metric.
KEYS = ("dataset", "sensitive_attribute", "learner", "method", "n_labelled", "setting")
OURS = "ours"
# Column -> the key of a rule that names the values which the rule is for.
_CONDITIONS = {name: f"{name}s" for name in ("table", "metric", *KEYS)}
_CONDITIONS["n_labelled"] = "n_labelled"


@dataclass(frozen=True)
class Paper:
    """A paper's numbers and what of ours answers them.

    Attributes
    ----------
    rows : the CSV as text, so that the number of printed digits is known.
    tables : table -> its rules and experiments.
    title : the work, with its authors.
    brief : what the work ``claims``, and what was ``found``, in a few sentences each.
    runs : the number of runs behind a published mean.
    spread : ``printed``, or ``ours`` where the paper prints no sd and its numbers are taken to
        scatter as ours do.
    decimals : metric -> printed decimals, where the CSV has lost trailing zeros; "" for the rest.
    computations : name -> the function, as ``papers.PAPER.MODULE:FUNCTION``, and what it needs.
    causes : name -> the one setting that is changed, in a sentence.
    impossible : rules of printed numbers that cannot be: for which they are, ``because`` and the
        ``test`` that shows it.
    figures : figure -> its ``experiment`` and what of it is to ``draw``, or the ``function`` of the
        paper's folder that draws it, as ``papers.PAPER.MODULE:FUNCTION``, and a ``sentence``.
    quick : the ``repeats`` and ``datasets`` of a quick look, the values of other options that its
        sweeps ``vary``, and experiments that it is to ``leave_out``.
    folder : the paper's own, where it keeps numbers of ours.
    """

    name: str
    rows: pd.DataFrame
    tables: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    runs: int = 1
    title: str = ""
    brief: Mapping[str, str] = field(default_factory=dict)
    spread: str = "printed"
    decimals: Mapping[str, int] = field(default_factory=dict)
    computations: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    causes: Mapping[str, str] = field(default_factory=dict)
    impossible: Sequence[Mapping[str, Any]] = ()
    figures: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    quick: Mapping[str, Any] = field(default_factory=dict)
    folder: Path = Path()

    @classmethod
    def read(cls, name: str, folder: Path) -> Paper:
        """Read ``mapping.yaml`` and ``published.csv`` of ``folder/name``."""
        mapping = yaml.safe_load((folder / name / "mapping.yaml").read_text(encoding="utf-8"))
        mapping.pop("shared", None)
        published = folder / name / "published.csv"
        rows = pd.read_csv(published, dtype=str, keep_default_na=False)
        return cls(name, rows, **mapping, folder=folder / name)

    def published(self, table: str) -> pd.DataFrame:
        """Return the printed numbers of a table, as text."""
        return self.rows[self.rows["table"] == table]

    def experiments(self, table: str) -> list[str]:
        """Return the experiments whose runs answer a table."""
        return list(self.tables[table].get("experiments", []))

    def computed(self, table: str) -> list[str]:
        """Return the names of the computations that answer a table."""
        names = [name for rule in self.tables[table]["rules"] for name in computations_of(rule)]
        return list(dict.fromkeys(names))


def papers_in(folder: Path) -> list[str]:
    """Return the names of the papers whose folder has a mapping."""
    return sorted(path.parent.name for path in folder.glob("*/mapping.yaml"))


def computations_of(rule: Mapping[str, Any]) -> dict[str, str]:
    """Return computation -> the cause under which it answers a rule, nothing for the text's."""
    if "computation" not in rule:
        return {}
    causes = rule.get("causes", {})
    return {rule["computation"]: "", **{name: cause for cause, name in causes.items()}}


def rule_of(rules: Sequence[Mapping[str, Any]], row: Mapping[str, str]) -> Mapping[str, Any]:
    """Return the first rule of the mapping that applies to a published row, or an empty one."""
    for rule in rules:
        if all(key not in rule or row[name] in rule[key] for name, key in _CONDITIONS.items()):
            return rule
    return {}


def answers(
    rule: Mapping[str, Any], row: Mapping[str, str]
) -> Iterator[tuple[dict[str, str], dict[str, Any]]]:
    """Yield which runs of ours answer a published row, and by which metric.

    ``{method}`` in a rule's texts is the row's. The first answer reproduces the published number,
    others correct it.
    """
    metric = rule["metrics"][row["metric"]]
    for choice in rule.get("ours", [{}]):
        chosen = {"method": row["method"], "intervention": "none", **choice}
        yield _filled(chosen, row), {**metric, **_filled(metric, row)}


def _filled(texts: Mapping[str, Any], row: Mapping[str, str]) -> dict[str, str]:
    return {name: text.format(**row) for name, text in texts.items() if isinstance(text, str)}


def metrics_of(paper: Paper) -> set[str]:
    """Return the metrics of ours that the tables need from runs."""
    rules = [rule for table in paper.tables.values() for rule in table["rules"]]
    metric_rules = [rule["metrics"] for rule in rules if isinstance(rule.get("metrics"), Mapping)]
    return {str(metric["metric"]) for metrics in metric_rules for metric in metrics.values()}


# Of a printed number, by the first answer to it; a single answer agrees or differs.
VERDICTS = AGREES, CAUSED, IMPOSSIBLE, UNEXPLAINED, MISSING, ABSENT = (
    "agrees",
    "agrees under a cause",
    "cannot be",
    "unexplained",
    "not run",
    "no answer",
)
DIFFERS = "differs"
UNANSWERED = (MISSING, ABSENT)


def judge(
    paper: Paper, row: Mapping[str, str], ours: Mapping[str, float] | None, runs: int | None = None
) -> dict[str, float | str]:
    """Compare one published number with ours.

    It ``agrees`` if the means differ by at most 2 sqrt(sd1^2 / R1 + sd2^2 / R2) plus half a unit of
    the last published digit.

    Parameters
    ----------
    row : `metric`, `value` and `sd` as printed.
    ours : `mean`, `sd`, `repeats`, and `error`, the standard error of the difference, where it is
        not that of two means.
    runs : the number of runs behind the published mean, if other than in the paper's other tables.
    """
    published = float(row["value"])
    printed = float(row["sd"]) if row["sd"] else 0.0
    columns: dict[str, float | str] = {"published": published, "published sd": printed}
    columns |= dict.fromkeys(("ours", "our sd", "repeats", "difference"), np.nan)
    if ours is None or np.isnan(ours["mean"]):
        return {**columns, "verdict": MISSING}
    own_sd = 0.0 if np.isnan(ours["sd"]) else ours["sd"]
    spread = own_sd if paper.spread == OURS else printed
    error = ours.get("error", np.nan)
    if np.isnan(error):
        error = np.sqrt(own_sd**2 / ours["repeats"] + spread**2 / (runs or paper.runs))
    difference = ours["mean"] - published
    decimals = paper.decimals.get(row["metric"], paper.decimals.get(""))
    rounded = half_unit(row["value"]) if decimals is None else float(0.5 * 10**-decimals)
    agrees = abs(difference) <= 2 * error + rounded
    columns |= {"ours": ours["mean"], "our sd": own_sd, "repeats": ours["repeats"]}
    return {**columns, "difference": difference, "verdict": AGREES if agrees else DIFFERS}


def settle(
    paper: Paper, row: Mapping[str, str], answers: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return the verdict on a printed number whose first answer may differ from it.

    Parameters
    ----------
    answers : all of them, each with ``verdict``, ``cause`` and ``ours``; the first is the text's.

    Returns
    -------
    dict of str to object
        ``verdict``; ``cause`` and ``ours under it`` where a cause explains the difference.
    """
    first, *others = answers
    settled = {"verdict": first["verdict"], "cause": "", "ours under it": np.nan}
    if first["verdict"] != DIFFERS:
        return settled
    for answer in others:
        if answer["cause"] and answer["verdict"] == AGREES:
            return {"verdict": CAUSED, "cause": answer["cause"], "ours under it": answer["ours"]}
    settled["verdict"] = IMPOSSIBLE if rule_of(paper.impossible, row) else UNEXPLAINED
    return settled


def half_unit(printed: str) -> float:
    """Return half a unit of the last digit of a number as printed.

    A number of ten or more that ends in ``.0`` was printed without decimals, and its trailing
    zeros are no digits: ``120.0`` stands for 120, printed to tens.
    """
    whole, _, decimals = printed.lstrip("-").partition(".")
    if decimals == "0" and len(whole) > 1:
        return float(0.5 * 10 ** (len(whole) - len(whole.rstrip("0"))))
    return float(0.5 * 10 ** -len(decimals))


def counts(rows: pd.DataFrame) -> dict[str, int]:
    """Return how many reproductions have each verdict."""
    verdict_counts = rows.loc[rows["reproduces"], "verdict"].value_counts()
    return {name: int(verdict_counts.get(name, 0)) for name in VERDICTS}


def distance(rows: pd.DataFrame, *, under_causes: bool = False) -> float:
    """Return how far ours are from the printed numbers, in units of what these scatter by.

    The mean of the absolute difference over the printed sd; over the sd of the paper's own numbers
    of that table, metric, data set and number of labels where it prints none. NaN where neither is
    known, or nothing was compared. It stands beside the counts of numbers that agree, because a
    wide spread of ours makes everything agree.

    Parameters
    ----------
    rows : a row for each printed number, with ``value``, ``sd`` and ``difference``.
    under_causes : take our number under the cause that explains a difference, where there is one.
    """
    value = pd.to_numeric(rows["value"])
    same = [rows[name] for name in ("table", "metric", "dataset", "sensitive_attribute")]
    spread = value.groupby([*same, rows["n_labelled"]]).transform("std")
    printed = pd.to_numeric(rows["sd"])
    unit = printed.where(printed > 0, spread)
    off = rows["difference"].astype(float)
    if under_causes:
        off = (rows["ours under it"].astype(float) - value).fillna(off)
    return float((off.abs() / unit.where(unit > 0)).mean())


def scoreboard(rows: pd.DataFrame) -> str:
    """Return how many printed numbers have which verdict, as a sentence."""
    always = (AGREES, UNEXPLAINED, MISSING)
    shown = [(name, count) for name, count in counts(rows).items() if count or name in always]
    parts = [f"{count} {name}" for name, count in shown]
    return f"{', '.join(parts)} of {int(rows['reproduces'].sum())} numbers"


# The rows of a work, and what answers each.

ANSWERS = ("table", "figure", "command", "code", "dataset", "words", "absent")
CANNOT = "cannot be had"
# In the order in which a page lists claims; `page.md` has the meaning of those that do not say it.
ROW_VERDICTS = (
    *("does not hold", "holds in part", "not resolved", "holds"),
    *("agrees", "agrees in part", "differs", "drawn", "not comparable"),
    *("implemented", "substitute", "loader only"),
)


@dataclass(frozen=True)
class Row:
    """A row of a work, and what answers it.

    Attributes
    ----------
    item : its name in the work, such as ``Table 3.2``.
    place : its section, equation, table or figure in the text.
    what : what the text has, in words.
    ours : what we run or have.
    differs : where the two differ, and what that changes; empty where they do not.
    words : the answer, where it is one in words.
    verdict : one of `VERDICTS`; empty for tables and what is absent.
    note : the observation.
    other_data : why the numbers of a table are of other people than the paper's, so that none is
        expected to agree.
    test : the test that shows it.
    quick : words that turn the command into a quick look; None if it has none.
    """

    item: str
    what: str
    place: str
    ours: str = ""
    differs: str = ""
    table: str = ""
    figure: str = ""
    command: str = ""
    code: str = ""
    dataset: str = ""
    words: str = ""
    absent: str = ""
    verdict: str = ""
    note: str = ""
    other_data: str = ""
    test: str = ""
    quick: str | None = ""

    @property
    def kind(self) -> str:
        """Which of `ANSWERS` it has."""
        (kind,) = (name for name in ANSWERS if getattr(self, name))
        return kind

    @property
    def is_claim(self) -> bool:
        """Whether it is a claim, which has a verdict of its own also where a table shows it."""
        return self.item.startswith("Claim")

    @property
    def is_counted(self) -> bool:
        """Whether its verdict is counted from the numbers of a table."""
        return self.kind == "table" and not self.is_claim

    def arguments(self, *, quick: bool) -> list[str] | None:
        """Return the words after ``python`` in its command; None if a quick look leaves it out."""
        if quick and self.quick is None:
            return None
        _, *words = shlex.split(self.command)
        return [*words, *(shlex.split(self.quick or "") if quick else [])]


def contents(paper: Paper) -> list[Row]:
    """Read the rows of a paper, in the order of the work."""
    text = (paper.folder / "contents.yaml").read_text(encoding="utf-8")
    return [_row(**entry) for entry in yaml.safe_load(text)]


def _row(quick: bool | str = "", **entry: object) -> Row:
    texts = {name: " ".join(str(text).split()) for name, text in entry.items()}
    return Row(**texts, quick=None if quick is False else str(quick))


# What is asked of a paper.

ALL = "all"


@dataclass(frozen=True)
class PaperOptions(Results):
    """Which of a paper's tables or figures, and whether to run what is missing."""

    name: str = option("", "The name of a paper's folder in papers/; or all.", argument="NAME")
    table: str = option("", "One table by its number, or all of them one by one.")
    figure: str = option("", "Draw one figure by its number, instead of printing tables.")
    figures: bool = option(False, "Draw all figures, instead of printing tables.")
    run: bool = option(False, "Run what is missing first: sweeps, computations and studies.")
    quick: bool = option(False, "With run=true: few repeats on small data sets.")
    record: bool = option(False, "Write what came out to papers/*/verdicts.csv and docs/papers*.")
