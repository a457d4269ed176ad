"""Rows of Tables 8 to 13 that abstain from nobody, where ten splits say little.

The answers are the text's ten splits, forty splits, and the grid search of the released code,
which wraps a regressor and rounds what it predicts.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fairbench.components.papers.fairlyuncertain.abstention import (
    METRICS,
    SAMPLES,
    SPLITS,
    counts_of,
    our_number,
)
from fairbench.components.papers.fairlyuncertain.people import MANY, job, repeats_of, tests
from fairbench.core.arrays import Floats
from fairbench.data.encoding import onehot
from fairbench.evaluation.predictions import Labelled
from fairbench.experiments.pipeline import PlannedRun
from fairbench.metrics.rates import binary_confusion
from fairbench.reporting.papers.running import Effort

ROUNDED = "rounded regressor"
# In place of forty splits where each takes tens of fits.
FEWER = {"exponentiated_gradient": 20, "grid_search": 20}
_SWEEPS = {
    "baseline": "fairlyuncertain/table8_13",
    "threshold_optimizer": "fairlyuncertain/table8_13_thresholds",
    "exponentiated_gradient": "fairlyuncertain/table8_13_reductions",
    "grid_search": "fairlyuncertain/table8_13_reductions",
}


def numbers(rows: pd.DataFrame, results: Path, effort: Effort) -> pd.DataFrame:
    """Return the text's numbers for published rows that abstain from nobody, and causes."""
    found = []
    keys = ["dataset", "method", "setting"]
    for (dataset, method, setting), part in rows.groupby(keys, sort=False):
        own = SAMPLES.get(str(dataset), str(dataset))
        words = [f"dataset={own}", "method=baseline"]
        if method != "baseline":
            words += [f"intervention={method}", f"intervention.constraints={setting}"]
        repeats = repeats_of(effort)
        many = repeats_of(effort, FEWER.get(str(method), MANY))
        run = job(_SWEEPS[str(method)], results, words, many)
        splits = [_values(test) for test in tests(run)]
        found += list(_rows(part, splits[:repeats], ""))
        if method == "grid_search":
            found += list(_rows(part, list(_rounded(run, repeats, effort)), ROUNDED))
        found += list(_rows(part, splits, SPLITS))
    return pd.DataFrame(found)


def _values(test: Labelled) -> dict[str, float]:
    (counts,) = counts_of(test, np.ones(len(test)))
    return _metrics(counts)


def _metrics(counts: Floats) -> dict[str, float]:
    return {name: float(metric(counts)) for name, metric in METRICS.items()}


def _rows(
    published: pd.DataFrame, splits: list[dict[str, float]], cause: str
) -> Iterator[dict[str, Any]]:
    values = pd.DataFrame(splits)
    for row, metric in published["metric"].items():
        yield {"row": row, **our_number(values[metric], cause), "label": cause}


def _rounded(run: PlannedRun, repeats: int, effort: Effort) -> Iterator[dict[str, float]]:
    """Yield the metrics of fairlearn's grid search around a regressor whose output is rounded."""
    import fairlearn.reductions
    import xgboost

    moments = {
        "demographic_parity": fairlearn.reductions.DemographicParity,
        "equalized_odds": fairlearn.reductions.EqualizedOdds,
    }
    moment = moments[str(run.study.intervention.constraints)]  # type: ignore[attr-defined]
    X = np.asarray(onehot(run.dataset.features))
    y = run.dataset.target.to_numpy(int)
    labels = run.dataset.groups(run.study.protect)
    group = labels.cat.codes.to_numpy()
    rounds = effort.choose(100, 100, 2)
    for cell in run.cells[:repeats]:
        train, test = cell.fold.train, cell.fold.test
        regressor = xgboost.XGBRegressor(n_estimators=rounds, n_jobs=1)
        search = fairlearn.reductions.GridSearch(regressor, moment())
        search.fit(X[train], y[train], sensitive_features=group[train])
        label = np.round(np.clip(search.predict(X[test]), 0, 1)).astype(int)
        size = len(labels.cat.categories)
        counts = binary_confusion(y[test], label, group[test], n_groups=size)
        yield _metrics(counts.astype(float))
