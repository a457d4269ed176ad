"""What a posterior of 20 labels reports: the probabilities of section 4.7, over thirds and labels.

``python -m papers.few_labels.reports [quick=true]``: by the perceptron, how sure calibration is
that decisions on Adult's women are more often right than on its men, and that those on the groups
of Bank differ by less than 0.02. The text gives those of one set of labels: 0.99 and 0.87.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from fairbench.cli.command import Results
from fairbench.components.papers import run_main
from fairbench.components.papers.few_labels.people import third_of
from fairbench.components.papers.few_labels.pools import everyone_else, label_orders
from fairbench.core.arrays import Floats
from fairbench.core.options import option
from fairbench.core.seeds import rng
from fairbench.inference.few_labels.bayesian_calibration import bayesian_calibrations
from fairbench.inference.few_labels.table import PartlyLabelled
from fairbench.metrics.group import difference
from fairbench.metrics.rates import accuracy

EPSILON, LABELS = 0.02, 20
PAIRS = {("adult", "sex"): "0.99 (positive)", ("bank", "age"): "0.87 (within 0.02)"}


@dataclass(frozen=True)
class Options(Results):
    """Over how many thirds and label orders."""

    quick: bool = option(False, "Two thirds and two label orders each, of Bank alone.")


def reported(table: PartlyLabelled, runs: int) -> Floats:
    """Return P(difference > 0) and P(|difference| < 0.02) of each label order, (R, 2)."""
    subsets = [order[:LABELS] for order in label_orders(table, runs)]
    generator = rng(0, "few_labels", "reports")
    posteriors = bayesian_calibrations(table, subsets, generator, draws=512, pool_noise=False)
    draws = [difference(accuracy, everyone_else(p.counts))[:, 0] for p in posteriors]
    return np.array([probabilities(drawn) for drawn in draws])


def probabilities(draws: Floats) -> tuple[float, float]:
    """Return how many draws of a difference are positive, and how many within epsilon."""
    return float((draws > 0).mean()), float((np.abs(draws) < EPSILON).mean())


def reports(thirds: int, runs: int, results: Path, pairs: int = len(PAIRS)) -> pd.DataFrame:
    """Return a row a pair: what the text says, and quartiles of ours over thirds and orders."""
    rows = []
    for pair, theirs in list(PAIRS.items())[-pairs:]:
        tables = [third_of(*pair, "mlp", third, results) for third in range(thirds)]
        ours = np.concatenate([reported(table, runs) for table in tables])
        low, middle, high = np.quantile(ours, [0.25, 0.5, 0.75], axis=0)
        row: dict[str, object] = {"pair": " ".join(pair), "text": theirs}
        for place, name in enumerate(("positive", f"within {EPSILON}")):
            row[name] = f"{middle[place]:.2f} ({low[place]:.2f} to {high[place]:.2f})"
        rows.append(row)
    return pd.DataFrame(rows)


def main(options: Options) -> None:
    """Print a row a pair: the text's probability, and the median and quartiles of ours."""
    size = (2, 2, options.results, 1) if options.quick else (8, 20, options.results, 2)
    print(reports(*size).to_string(index=False))


if __name__ == "__main__":
    run_main(main, Options)
