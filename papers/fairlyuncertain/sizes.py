"""Table 6: how many people and columns each data set has, once categories are columns."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from fairbench.components.papers.fairlyuncertain.likelihoods import OWN
from fairbench.components.papers.fairlyuncertain.people import job
from fairbench.core.errors import UserError
from fairbench.data.encoding import onehot
from fairbench.reporting.papers.running import Effort

_EXPERIMENTS = {"binary": "fairlyuncertain/table8_13", "regression": "fairlyuncertain/table4"}


def numbers(rows: pd.DataFrame, results: Path, effort: Effort) -> pd.DataFrame:
    """Return the size of each data set; of one without files, that it has none."""
    found = []
    for (task, dataset), part in rows.groupby(["task", "dataset"], sort=False):
        own = OWN.get(str(dataset), str(dataset))
        words = [f"dataset={own}", "method=baseline"]
        try:
            data = job(_EXPERIMENTS[str(task)], results, words).dataset
        except UserError:
            reason = "its covariates are in no file that we have"
            found += [{"row": row, "repeats": 1, "reason": reason} for row in part.index]
            continue
        size = {"rows": len(data.target), "features": onehot(data.features).shape[1]}
        found += [
            {"row": row, "mean": size[str(metric)], "sd": 0.0, "repeats": 1}
            for row, metric in part["metric"].items()
        ]
    return pd.DataFrame(found)
