"""Tables 3.2, 3.4, 3.5 and 3.7 on CIFAR-100 and SVHN, each number beside the published one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from papers import PAPERS
from papers.active_assessment.curves import Curves, Question, curves
from papers.active_assessment.measures import (
    accuracy_error,
    ece_error,
    published_ece_error,
    reciprocal_rank,
)
from papers.active_assessment.methods import PUBLISHED, Method, estimation, lowest
from papers.active_assessment.pairs import labels_to_compare
from papers.active_assessment.pools import ArmPool, by_class, by_score, by_superclass

FILE = PAPERS / "active_assessment" / "published.csv"
DATASETS = {"cifar100": "CIFAR-100", "svhn": "SVHN"}
TOP = {"cifar100": 10, "svhn": 3}
TABLES = ("3.2", "3.4", "3.5", "3.7")
# The published curves are read one place late: "20 labels" is after 30.
_LATE = 10
_GOAL = 0.99
_UNIFORM = Method("uniform", "random")
_PUBLISHED_RUNS, _PUBLISHED_PAIRS = 1000, 100


def accuracy_question(pool: ArmPool) -> Question:
    """Return Table 3.2's: estimate the accuracy of every class; some 15 labels a class."""
    return Question("accuracy", estimation, {"rmse": accuracy_error}, 15 * len(pool.sizes))


def ece_question() -> Question:
    """Return Table 3.4's: estimate the ECE of ten bins."""
    measures = {"published": published_ece_error, "ece": ece_error}
    return Question("ece", estimation, measures, 1010)


def worst_question(m: int) -> Question:
    """Return Table 3.5's: find the m least accurate classes."""
    measures = {"mrr": reciprocal_rank(m)}
    return Question(f"worst {m}", lowest, measures, 10**9, plays=m)


def rows(tables: list[str], folder: Path, replications: int) -> Iterator[dict[str, object]]:
    """Yield every published number of the tables with ours and its standard error."""
    makers = {"3.2": _accuracy, "3.4": _ece, "3.5": _worst, "3.7": _pairs}
    published = pd.read_csv(FILE, dtype={"table": str})
    for table in tables:
        for dataset, title in DATASETS.items():
            values = published[
                (published["table"] == table) & published["dataset"].str.startswith(title)
            ]
            for row in makers[table](dataset, folder, replications):
                yield {"table": table, "dataset": title, **row, "published": _value(values, row)}


def scoreboard(table: pd.DataFrame) -> pd.DataFrame:
    """Add the difference, and whether it is within two standard errors and half a digit."""
    runs = np.where(table["table"] == "3.7", _PUBLISHED_PAIRS, _PUBLISHED_RUNS)
    both = table["error"] * np.sqrt(1 + table["replications"] / runs)
    difference = table["ours"] - table["published"]
    agrees = difference.abs() <= 2 * both + 0.05
    verdict = np.where(table["published"].isna(), "", np.where(agrees, "agrees", "differs"))
    return table.assign(difference=difference, verdict=verdict)


def _value(published: pd.DataFrame, row: dict[str, object]) -> float:
    found = published[published["method"] == row["method"]]
    if row["setting"]:
        found = found[found["setting"] == row["setting"]]
    return float(found["value"].iloc[0]) if len(found) else float("nan")


def _methods() -> dict[Method, str]:
    return {**PUBLISHED, _UNIFORM: "Beta(1, 1)"}


def _accuracy(dataset: str, folder: Path, replications: int) -> Iterator[dict[str, object]]:
    pool = by_class(dataset)
    for method, name in _methods().items():
        found = curves(pool, accuracy_question(pool), method, folder, replications=replications)
        yield from _at(found, "rmse", name, len(pool.sizes), replications)


def _ece(dataset: str, folder: Path, replications: int) -> Iterator[dict[str, object]]:
    pool = by_score(dataset)
    for method, name in _methods().items():
        found = curves(pool, ece_question(), method, folder, replications=replications)
        ours = {row["setting"]: row for row in _at(found, "ece", name, 10, replications, late=0)}
        for row in _at(found, "published", name, 10, replications):
            yield {**row, "corrected": ours[row["setting"]]["ours"]}


def _at(
    found: Curves, measure: str, name: str, arms: int, replications: int, *, late: int = _LATE
) -> Iterator[dict[str, object]]:
    for each in (2, 5, 10):
        mean, error = found.at(measure, each * arms + late)
        yield {
            "method": name,
            "setting": f"labels_per_group={each}",
            "ours": mean,
            "error": error,
            "replications": replications,
            "corrected": found.at(measure, each * arms)[0],
        }


def _worst(dataset: str, folder: Path, replications: int) -> Iterator[dict[str, object]]:
    pool = by_class(dataset)
    for m in (1, TOP[dataset]):
        for method, name in PUBLISHED.items():
            found = curves(pool, worst_question(m), method, folder, replications=replications)
            share = 100 / len(pool.arm)
            batches = found.batches["mrr"]
            each = [_reached(found.labels, batch) for batch in batches.T]
            ours = share * _reached(found.labels, batches.mean(axis=1))
            yield {
                "method": name,
                "setting": f"top_m={m}",
                "ours": ours,
                "error": share * float(np.std(each, ddof=1) / np.sqrt(len(each))),
                "replications": replications,
                "corrected": np.nan,
            }


def _reached(labels: np.ndarray, mrr: np.ndarray) -> float:
    """Return the first number of labels with a mean reciprocal rank above 0.99."""
    return float(labels[np.argmax(mrr > min(_GOAL, _GOAL * mrr.max()))])


def _pairs(dataset: str, folder: Path, replications: int) -> Iterator[dict[str, object]]:
    pool = by_superclass(dataset)
    pairs = {
        _UNIFORM: "uniform_prior",
        **{method: name for method, name in PUBLISHED.items() if method.prior == "scores"},
    }
    for method, name in pairs.items():
        needed = labels_to_compare(pool, method, folder, replications=replications)
        yield {
            "method": name,
            "setting": "",
            "ours": float(needed.mean()),
            "error": float(needed.std(ddof=1) / np.sqrt(len(needed))),
            "replications": replications,
            "corrected": np.nan,
        }
