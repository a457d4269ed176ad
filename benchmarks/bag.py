"""One shared bag and its three readings against three bags on resampled rows."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from benchmarks.bare import bag_on_copies
from benchmarks.measure import adult, cpu_of, show
from fairbench.components.algorithms.fitters.bag import Bag
from fairbench.components.algorithms.interventions.none import NoIntervention
from fairbench.components.algorithms.learners.xgboost import XGBoost
from fairbench.components.algorithms.methods.ensemble import Ensemble
from fairbench.core.seeds import rng
from fairbench.data.encoding import onehot
from fairbench.data.splits import RepeatedHoldout
from fairbench.experiments.compute import raw_outputs
from fairbench.experiments.pipeline import ensure
from fairbench.experiments.study import Cell, Study, cells_of
from fairbench.metrics.probability import nll_of_sd
from fairbench.results.cells import Store

READINGS = (Ensemble(), Ensemble(reading="sign_test"), Ensemble(reading="disagreement"))
REPEATS = 3


def main() -> None:
    data, name = adult()
    study = Study(data, XGBoost(), NoIntervention(), Bag(), 0, (data.sensitive.columns[0],))
    cells = cells_of(study, RepeatedHoldout(repeats=REPEATS).folds(data, 0))
    X, y = onehot(data.features), data.target.to_numpy()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder))
        for cell in cells:
            losses: list[float] = []

            def ours(cell: Cell = cell, losses: list[float] = losses) -> None:
                ensure(cell, store)
                raw = raw_outputs(store.read(cell.id).columns)
                for method in READINGS:
                    read = method.read(raw, data.task, rng(0, "read"))
                    test = y[cell.fold.test]
                    losses.append(nll_of_sd(test, read["prediction"], read["uncertainty"]).mean())

            def copies(cell: Cell = cell) -> None:
                for seed in range(3):
                    bag_on_copies(X, y, cell.fold.train, cell.fold.test, seed)

            mine, theirs = cpu_of(ours), cpu_of(copies)
            rows.append((f"repeat {cell.fold.repeat}", mine, theirs, mine / theirs, *losses))
    rows.append(("mean", *(float(np.mean(column)) for column in list(zip(*rows, strict=True))[1:])))
    header = ("", "ours, s", "3 bags, s", "ratio", "NLL ensemble", "selective", "self-cons.")
    show(f"bag and three readings, CPU ({name}; target: ratio at most 0.15)", header, rows)
