"""Individual fairness: the 20 nearest neighbours of every row of Adult, and what they say."""

from __future__ import annotations

import numpy as np

from benchmarks.measure import adult, cpu_of, show
from fairbench.core.seeds import rng
from fairbench.data.encoding import Encoder, Encoding
from fairbench.metrics.group_means import Neighbours, individual_fairness

K = 20
TARGET = 30.0  # seconds, of all 45,000 rows on one core


def main() -> None:
    dataset, overrides = adult()
    encoded = np.asarray(
        Encoder(Encoding.STANDARD).fit(dataset.features).transform(dataset.features)
    )
    values = rng(0, "benchmark", "individual").random((3, len(encoded)))
    Neighbours.of(encoded[: 2 * K], K)  # imports
    result: list[Neighbours] = []
    search = cpu_of(lambda: result.append(Neighbours.of(encoded, K)))
    fairness = cpu_of(lambda: [individual_fairness(column, result[0]) for column in values])
    points = len(result[0].nearest)
    rows = [
        (f"neighbours of {len(encoded)} rows on {points} points", search, TARGET),
        ("three kinds of values, k = 1..20", fairness, float("nan")),
    ]
    header = (f"{overrides}, {encoded.shape[1]} columns", "CPU s", "target s")
    show("individual fairness", header, rows)
