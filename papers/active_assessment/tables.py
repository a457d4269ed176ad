"""Our numbers for Tables 3.2 to 3.7 of Ji's thesis, on CIFAR-100 and SVHN."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fairbench.components.papers.active_assessment import confusion, least_calibrated
from fairbench.components.papers.active_assessment.curves import Curves, Question, curves
from fairbench.components.papers.active_assessment.measures import (
    accuracy_error,
    ece_error,
    published_ece_error,
    reciprocal_rank,
)
from fairbench.components.papers.active_assessment.methods import (
    PUBLISHED,
    Method,
    estimation,
    lowest,
)
from fairbench.components.papers.active_assessment.pairs import labels_to_compare
from fairbench.components.papers.active_assessment.pools import (
    ArmPool,
    by_class,
    by_score,
    by_superclass,
)
from fairbench.reporting.papers.running import Effort

DATASETS = {"cifar100": "CIFAR-100", "svhn": "SVHN"}
TOP = {"cifar100": 10, "svhn": 3}
# The published curves are read one place late: "20 labels" is after 30.
_LATE = 10
_UNIFORM = Method("uniform", "random")
# What the paper calls a uniform prior is none in its code.
_WITH_UNIFORM = {**PUBLISHED, _UNIFORM: "uniform_prior"}


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


@dataclass(frozen=True)
class Request:
    """What of a table is asked for: a data set's numbers by some methods, in some settings."""

    dataset: str
    methods: frozenset[str]
    settings: frozenset[str]
    folder: Path
    effort: Effort

    @property
    def replications(self) -> int:
        """Return over how many replications a number is a mean."""
        return self.effort.choose(1000, 50, 2)

    def curves(self, pool: ArmPool, question: Question, method: Method) -> Curves:
        """Return a method's learning curves."""
        asked = question.within(self.effort)
        return curves(pool, asked, method, self.folder, replications=self.replications)


def numbers(rows: pd.DataFrame, results: Path, effort: Effort) -> Iterator[dict[str, Any]]:
    """Yield our numbers for published ones, those that correct one after it.

    Parameters
    ----------
    rows : published numbers; the index is the place of each.
    """
    folder = results / "report" / "active"
    for table in rows["table"].unique():
        for dataset, title in DATASETS.items():
            published = rows[(rows["table"] == table) & rows["dataset"].str.startswith(title)]
            if published.empty:
                continue
            places = {(row.method, row.setting): row.Index for row in published.itertuples()}
            request = Request(
                dataset,
                frozenset(published["method"]),
                frozenset(published["setting"]),
                folder,
                effort,
            )
            for number in _MAKERS[table](request):
                place = places.get((number.pop("method"), number.pop("setting")))
                if place is None:
                    continue
                repeats = number.setdefault("repeats", request.replications)
                if "error" in number:
                    number["sd"] = number.pop("error") * np.sqrt(repeats)
                yield {"row": place, **number}


def _accuracy(asked: Request) -> Iterator[dict[str, Any]]:
    pool = by_class(asked.dataset)
    for method, name in _wanted(_WITH_UNIFORM, asked):
        curve = asked.curves(pool, accuracy_question(pool), method)
        for late in (_LATE, 0):
            yield from _at(curve, "rmse", name, len(pool.sizes), method=method, late=late)


def _confusion(asked: Request) -> Iterator[dict[str, Any]]:
    return confusion.numbers(asked.dataset, asked.methods, asked.effort)


def _ece(asked: Request) -> Iterator[dict[str, Any]]:
    pool = by_score(asked.dataset)
    for method, name in _wanted(_WITH_UNIFORM, asked):
        curve = asked.curves(pool, ece_question(), method)
        for measure, late in (("published", _LATE), ("ece", 0)):
            yield from _at(curve, measure, name, 10, method=method, late=late)


def _wanted(methods: dict[Method, str], asked: Request) -> Iterator[tuple[Method, str]]:
    return ((method, name) for method, name in methods.items() if name in asked.methods)


def _at(
    curve: Curves, measure: str, name: str, arms: int, *, method: Method, late: int
) -> Iterator[dict[str, Any]]:
    """Yield a measure at the stated numbers of labels, or `late` labels after them."""
    for each in (2, 5, 10):
        mean, error = curve.at(measure, each * arms + late)
        label = "" if late else "at that many labels"
        if method == _UNIFORM:
            label = f"Beta(1, 1) {label}".strip()
        setting = f"labels_per_group={each}"
        yield {"method": name, "setting": setting, "label": label, "mean": mean, "error": error}


def _worst(asked: Request) -> Iterator[dict[str, Any]]:
    pool = by_class(asked.dataset)
    share = 100 / len(pool.arm)
    for m in (1, TOP[asked.dataset]):
        setting = f"top_m={m}"
        for method, name in _wanted(PUBLISHED, asked):
            if setting in asked.settings:
                labels, error = asked.curves(pool, worst_question(m), method).reached("mrr")
                yield {
                    "method": name,
                    "setting": setting,
                    "mean": share * labels,
                    "error": share * error,
                }


def _least_calibrated(asked: Request) -> Iterator[dict[str, Any]]:
    tops = {"top_1": 1, "top_m": TOP[asked.dataset]}
    for setting in sorted(asked.settings):
        yield from least_calibrated.numbers(
            asked.dataset, setting, tops[setting], asked.folder, asked.effort
        )


def _pairs(asked: Request) -> Iterator[dict[str, Any]]:
    pool = by_superclass(asked.dataset)
    pairs = {
        _UNIFORM: "uniform_prior",
        **{method: name for method, name in PUBLISHED.items() if method.prior == "scores"},
    }
    for method, name in _wanted(pairs, asked):
        needed = labels_to_compare(pool, method, asked.folder, replications=asked.replications)
        yield {
            "method": name,
            "setting": "",
            "mean": float(needed.mean()),
            "error": float(needed.std(ddof=1) / np.sqrt(len(needed))),
        }


_MAKERS: dict[str, Callable[[Request], Iterator[dict[str, Any]]]] = {
    "3.2": _accuracy,
    "3.3": _confusion,
    "3.4": _ece,
    "3.5": _worst,
    "3.6": _least_calibrated,
    "3.7": _pairs,
}
