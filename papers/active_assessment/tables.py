"""Our numbers for Tables 3.2 to 3.8 of Ji's thesis, on CIFAR-100 and SVHN.

The first answer to each printed number is what the text defines; the released code's, or that of
fewer runs, is given under the name of its cause in ``mapping.yaml``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fairbench.components.papers.active_assessment import (
    confusion,
    least_calibrated,
    most_costly,
    pairs,
)
from fairbench.components.papers.active_assessment.curves import Curves, Question, curves
from fairbench.components.papers.active_assessment.measures import (
    accuracy_error,
    ece_error,
    published_ece_error,
    reciprocal_rank,
)
from fairbench.components.papers.active_assessment.methods import (
    CODE,
    TEXT,
    Method,
    as_coded,
    estimation,
    lowest,
)
from fairbench.components.papers.active_assessment.pools import (
    ArmPool,
    by_class,
    by_score,
    by_superclass,
)
from fairbench.reporting.papers.running import Effort

DATASETS = {"cifar100": "CIFAR-100", "svhn": "SVHN"}
TOP = {"cifar100": 10, "svhn": 3}
FEWER = "100 runs"  # a cause, as is CODE
# The released code's curves are read one place late: "20 labels" is after 30.
_LATE = 10
# Of these a quick look leaves SVHN out, whose 26,032 rows are labelled one after another.
_LONG = ("3.5", "3.6", "3.7")
# How often every pair of groups is compared; the printed numbers are of one such pass.
_PASSES = {"cifar100": 3, "svhn": 10}


def accuracy_question(pool: ArmPool) -> Question:
    """Return Table 3.2's: estimate the accuracy of every class."""
    labels = 10 * len(pool.sizes) + _LATE
    return Question("accuracy", estimation, {"rmse": accuracy_error}, labels)


def ece_question() -> Question:
    """Return Table 3.4's: estimate the ECE of ten bins."""
    measures = {"published": published_ece_error, "ece": ece_error}
    return Question("ece", estimation, measures, 110)


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
        return self.effort.choose(1000, 10, 2)

    def curves(self, pool: ArmPool, question: Question, method: Method) -> Curves:
        """Return a method's learning curves."""
        asked = question.within(self.effort)
        return curves(pool, asked, method, self.folder, replications=self.replications)


def numbers(rows: pd.DataFrame, results: Path, effort: Effort) -> Iterator[dict[str, Any]]:
    """Yield our numbers for published ones, the text's before those of a cause.

    Parameters
    ----------
    rows : published numbers; the index is the place of each.
    """
    folder = results / "report" / "active"
    for table in rows["table"].unique():
        for dataset, title in DATASETS.items():
            published = rows[(rows["table"] == table) & rows["dataset"].str.startswith(title)]
            left_out = effort is Effort.QUICK and dataset == "svhn" and table in _LONG
            if published.empty or left_out:
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
                if place is not None:
                    yield {"row": place, **number}


def _accuracy(asked: Request) -> Iterator[dict[str, Any]]:
    pool = by_class(asked.dataset)
    question = accuracy_question(pool)
    return _few_labels(asked, pool, question, {"": "rmse", CODE: "rmse"}, len(pool.sizes))


def _ece(asked: Request) -> Iterator[dict[str, Any]]:
    measures = {"": "ece", CODE: "published"}
    return _few_labels(asked, by_score(asked.dataset), ece_question(), measures, 10)


def _few_labels(
    asked: Request, pool: ArmPool, question: Question, measures: dict[str, str], arms: int
) -> Iterator[dict[str, Any]]:
    """Yield a measure at the stated numbers of labels, and the code's, which is read late."""
    for method, name in TEXT.items():
        if name not in asked.methods:
            continue
        for cause, measure in measures.items():
            curve = asked.curves(pool, question, as_coded(method) if cause else method)
            for each in (2, 5, 10):
                mean, sd = curve.at(measure, each * arms + (_LATE if cause else 0))
                yield {
                    "method": name,
                    "setting": f"labels_per_group={each}",
                    "cause": cause,
                    "mean": mean,
                    "sd": sd,
                    "repeats": asked.replications,
                }


def _confusion(asked: Request) -> Iterator[dict[str, Any]]:
    return confusion.numbers(asked.dataset, asked.methods, asked.effort)


def _worst(asked: Request) -> Iterator[dict[str, Any]]:
    pool = by_class(asked.dataset)
    for m in (1, TOP[asked.dataset]):
        if f"top_m={m}" in asked.settings:
            for method, name in TEXT.items():
                if name in asked.methods:
                    found = _passages(asked, pool, worst_question(m), method)
                    yield from ({"method": name, "setting": f"top_m={m}", **each} for each in found)


def _passages(
    asked: Request, pool: ArmPool, question: Question, method: Method
) -> Iterator[dict[str, Any]]:
    """Yield the percent of the labels at which the mean passes its goal."""
    share, runs = 100 / len(pool.arm), asked.replications
    coded = {} if as_coded(method) == method else {CODE: as_coded(method)}
    for cause, run in {"": method, **coded}.items():
        labels, error = asked.curves(pool, question, run).reached("mrr")
        spread = share * error * np.sqrt(runs)
        yield {"cause": cause, "mean": share * labels, "sd": spread, "repeats": runs}
    each = share * asked.curves(pool, question, as_coded(method)).reached_by_batch("mrr")
    sd = float(each.std(ddof=1))
    # The printed number is that of one batch of runs.
    error = sd * np.sqrt(1 + 1 / len(each))
    yield {
        "cause": FEWER,
        "mean": float(each.mean()),
        "sd": sd,
        "repeats": len(each),
        "error": error,
    }


def _least_calibrated(asked: Request) -> Iterator[dict[str, Any]]:
    tops = {"top_1": 1, "top_m": TOP[asked.dataset]}
    for setting in sorted(asked.settings):
        found = least_calibrated.numbers(asked.dataset, tops[setting], asked.folder, asked.effort)
        yield from ({"setting": setting, **each} for each in found)


def _pairs(asked: Request) -> Iterator[dict[str, Any]]:
    """Yield the mean over all pairs, over passes through them: the printed number is of one."""
    pool, passes = by_superclass(asked.dataset), asked.effort.choose(_PASSES[asked.dataset], 1, 2)
    for method, name in TEXT.items():
        for reading, cause in ((pairs.TEXT, ""), (pairs.CODED, CODE)):
            if name in asked.methods:
                needed = pairs.labels_to_compare(
                    pool, method, asked.folder, passes=passes, reading=reading
                ).mean(axis=1)
                yield {
                    "method": name,
                    "setting": "",
                    "cause": cause,
                    "mean": float(needed.mean()),
                    "sd": float(needed.std(ddof=1)) if passes > 1 else float("nan"),
                    "repeats": passes,
                }


def _most_costly(asked: Request) -> Iterator[dict[str, Any]]:
    return most_costly.numbers(asked.settings, asked.folder, asked.effort)


_MAKERS: dict[str, Callable[[Request], Iterator[dict[str, Any]]]] = {
    "3.2": _accuracy,
    "3.3": _confusion,
    "3.4": _ece,
    "3.5": _worst,
    "3.6": _least_calibrated,
    "3.7": _pairs,
    "3.8": _most_costly,
}
