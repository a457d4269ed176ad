"""Rows for consistency: how much each individual's uncertainty moves across variants."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from fairbench.evaluation.table import MetricTable
from fairbench.variants import REPLICATE

_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def evaluate_consistency(
    table: MetricTable, uncertainty: Mapping[str, NDArray[np.float64]]
) -> None:
    """Add the spread of per-individual uncertainty over the variants of one fold.

    Per individual the population sd of the uncertainty across variants; reported are its maximum
    (FairlyUncertain, Tables 1 and 2), its mean and its quantiles. Replicates, which differ in
    their draws alone, get the same rows under ``noise_...``.

    Parameters
    ----------
    uncertainty : variant -> (n,) uncertainties of the same individuals.
    """
    for prefix, chosen in (
        ("consistency", [u for v, u in uncertainty.items() if not v.startswith(REPLICATE)]),
        ("noise", [u for v, u in uncertainty.items() if v.startswith(REPLICATE)]),
    ):
        if len(chosen) > 1:
            _add_spread(table, prefix, np.stack(chosen))


def _add_spread(table: MetricTable, prefix: str, values: NDArray[np.float64]) -> None:
    sd, n, setting = values.std(axis=0), values.shape[1], f"variants={len(values)}"
    table.add(f"{prefix}_max_sd", float(sd.max()), n, setting=setting)
    table.add(f"{prefix}_mean_sd", float(sd.mean()), n, setting=setting)
    table.add(f"{prefix}_mean_range", float(np.ptp(values, axis=0).mean()), n, setting=setting)
    for quantile in _QUANTILES:
        row = f"{setting} quantile={quantile:g}"
        table.add(f"{prefix}_sd", float(np.quantile(sd, quantile)), n, setting=row)
