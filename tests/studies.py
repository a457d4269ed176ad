"""Small studies of simulated data, and a learner that remembers what it was fitted with."""

from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from benchmarks.stored import configured, run_of
from fairbench.components.algorithms.fitters.bag import Bag
from fairbench.components.algorithms.interventions.none import NoIntervention
from fairbench.components.algorithms.learners.xgboost import XGBoost
from fairbench.components.datasets import simulated
from fairbench.data.features import Encoding
from fairbench.data.splits import RepeatedHoldout
from fairbench.experiments.contracts import Capabilities, Study
from fairbench.results.record import GROUPS
from fairbench.results.runs import Run, seal_run

# What the record of any finished run has, beside its files.
RECORD = configured(
    {
        "protect": "group", "fingerprint": "x", "data": "read", "rows": "read", "data_sha256": {},
        "versions": {}, "python": "3.11", "cpu": "any", "config": dict.fromkeys(GROUPS, {}),
    },
    {
        "dataset": "simulated", "split": "holdout", "learner": "xgboost", "intervention": "none",
        "method": "baseline", "evaluator": "default", "seed": 0, "protect": None,
    },
)  # fmt: skip


def sealed_record(results, changed=None, *, cells=(), **entries):
    """Seal the record of a run in its folder, with some of configuration and entries changed."""
    record = configured(RECORD, changed or {}) | entries
    path = results / "runs" / run_of(record)
    path.mkdir(parents=True, exist_ok=True)
    (path / "cells.txt").write_text("".join(f"{cell}\n" for cell in cells))
    seal_run(path, record)
    return Run(path)


def survey(folder, sensitive="sex"):
    """Write a table of people with weights and homes; return it, and the words of its runs."""
    draw, path = np.random.default_rng(0), folder / "mine.csv"
    people = {"x": draw.normal(size=300), sensitive: draw.choice(["f", "m"], 300)}
    people["paid"] = (draw.random(300) < 0.3 + 0.3 * (people["x"] > 0)).astype(int)
    people |= {"people": draw.lognormal(0, 1, 300), "home": draw.integers(0, 60, 300)}
    frame = pd.DataFrame(people)
    frame.to_csv(path, index=False)
    words = {"target": "paid", "weight": "people", "clusters": "home"}
    words["sensitive"] = f"[{sensitive}]"
    return frame, (
        *("dataset=table", f"dataset.path={path}", *(f"dataset.{k}={v}" for k, v in words.items())),
        *("split.repeats=1", "tracking=none", "figures=false"),
    )


@cache
def _population():
    return simulated.load(None, n_samples=120)


def study(**parts):
    """Return a study of a bag of three small trees, any part of which can be replaced."""
    defaults = {
        "dataset": _population(),
        "learner": XGBoost(rounds=2, max_depth=2),
        "intervention": NoIntervention(),
        "fitter": Bag(3),
        "seed": 0,
        "protect": ("group",),
    }
    return Study(**{**defaults, **parts})


def folds_of(a_study, **options):
    split = RepeatedHoldout(**{"repeats": 2, "validation": 0.2, **options})
    return split.folds(a_study.dataset, a_study.seed)


@dataclass(frozen=True)
class Recorder:
    """A learner that gives everyone its `score` and keeps what every fit was given."""

    score: float = 0.5
    encoding: Encoding = Encoding.ONEHOT

    capabilities = Capabilities(seeded=True)
    seen: ClassVar[list[dict[str, Any]]] = []

    def estimator(self, loss, seed):
        return Recorded(self.score, seed)


class Recorded:
    """Its estimator."""

    classes_ = np.array([0, 1])

    def __init__(self, score, seed):
        self.score, self.seed = score, seed

    def fit(self, X, y, sample_weight=None):
        Recorder.seen.append({"X": X, "y": y, "weight": sample_weight, "seed": self.seed})
        return self

    def predict_proba(self, X):
        return np.tile([1 - self.score, self.score], (X.shape[0], 1))
