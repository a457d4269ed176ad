"""Rows for consistency: how much each individual's uncertainty moves across variants."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from fairbench.evaluation.table import NAN, OK, MetricTable, Setting, invalid_rows

REPLICATE = "replicate="  # how the labels of variants begin that differ in their draws alone
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
    n, setting = values.shape[1], Setting(variants=len(values))
    bad = np.asarray(~np.isfinite(values).all(axis=0))
    status = invalid_rows(bad, "uncertainty")
    if status != OK:
        values = np.full_like(values, NAN)
    sd = values.std(axis=0)
    for name, value, row in (
        ("max_sd", sd.max(), setting),
        ("mean_sd", sd.mean(), setting),
        ("mean_range", np.ptp(values, axis=0).mean(), setting),
        *(("sd", np.quantile(sd, q), setting._replace(quantile=q)) for q in _QUANTILES),
    ):
        table.add(f"{prefix}_{name}", float(value), n, setting=row, status=status)
