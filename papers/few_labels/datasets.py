"""The data sets and models of the study, as the released files have them: Table 4.1.

``python -m papers.few_labels.datasets``. The table's printed numbers are not at hand.
"""

from __future__ import annotations

import pandas as pd

from fairbench.components.papers import run_main
from fairbench.components.papers.few_labels.methods import RATES
from fairbench.components.papers.few_labels.pools import CONFIGURATIONS, everyone_else
from fairbench.components.papers.few_labels.tables import CONFIGURATION, Key, pool
from fairbench.metrics.group import difference
from fairbench.metrics.rates import accuracy, total


def described(key: Key) -> dict[str, object]:
    """Return a configuration's sizes, shares in percent, and true differences in points."""
    table = pool(*key)
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
    frame = pd.DataFrame([described(key) for key in CONFIGURATIONS])
    print(frame.round(1).to_string(index=False))


if __name__ == "__main__":
    run_main(main)
