"""The data sets and models of the study: Table 4.1 as printed, and as it is.

``python -m papers.few_labels.datasets`` prints a row per configuration of the released files: its
sizes, shares and true differences.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fairbench.components.papers import run_main
from fairbench.components.papers.few_labels.methods import RATES
from fairbench.components.papers.few_labels.people import people
from fairbench.components.papers.few_labels.pools import CONFIGURATIONS, everyone_else
from fairbench.components.papers.few_labels.study import CONFIGURATION, Key, released_pool
from fairbench.core.arrays import Floats
from fairbench.metrics.group import difference
from fairbench.metrics.rates import accuracy, total
from fairbench.reporting.papers.running import Effort

SIZE, PRIVILEGED = "test_size", "share_privileged"


def numbers(rows: pd.DataFrame, results: Path, effort: Effort) -> Iterator[dict[str, Any]]:
    """Yield test sizes, and shares of the people of random thirds, for rows of Table 4.1."""
    thirds = effort.choose(200, 20, 2)
    for place, row in zip(rows.index, rows.to_dict("records"), strict=True):
        values = described(row["dataset"], row["sensitive_attribute"], row["metric"], thirds)
        yield {
            "row": place,
            "mean": values.mean(),
            "sd": values.std(ddof=1),
            "repeats": thirds,
        }


def described(dataset: str, attribute: str, metric: str, thirds: int) -> Floats:
    """Return a number of Table 4.1 of each of some held-out thirds."""
    whole = people(dataset)
    held_out = [whole.held_out(third)[1] for third in range(thirds)]
    if metric == SIZE:
        return np.array([len(rows) for rows in held_out], dtype=np.float64)
    if metric == PRIVILEGED:
        one = (whole.groups[attribute] == whole.privileged[attribute]).astype(np.float64)
    else:
        one = whole.label.astype(np.float64)
    return np.array([one[rows].mean() for rows in held_out])


def released(key: Key) -> dict[str, object]:
    """Return a configuration's sizes, shares in percent, and true differences in points."""
    table = released_pool(key, as_released=True)
    counts = table.counts()
    of_all = {"rows": len(table.score), "groups": table.n_groups, "reference": table.groups[0]}
    shares = {
        "reference, %": 100 * (table.group == 0).mean(),
        "label 1, %": 100 * table.label.mean(),
        "accuracy, %": 100 * accuracy(total(counts))[0],
    }
    gaps = {
        f"difference of {name}": 100 * difference(rate, everyone_else(counts))[0]
        for name, rate in RATES.items()
    }
    return {**dict(zip(CONFIGURATION, key, strict=True)), **of_all, **shares, **gaps}


def main() -> None:
    """Print a row per configuration."""
    frame = pd.DataFrame([released(key) for key in CONFIGURATIONS])
    print(frame.round(1).to_string(index=False))


if __name__ == "__main__":
    run_main(main)
