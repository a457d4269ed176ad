"""Two classifiers compared on the same partly labelled rows, every label shared by both."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from fairbench.core.errors import UserError
from fairbench.inference.few_labels.bayesian_calibration import (
    CalibrationPosterior,
    bayesian_calibration,
)
from fairbench.inference.few_labels.calibration import BETA, CLIP
from fairbench.inference.few_labels.table import PartlyLabelled

Floats = NDArray[np.float64]
# Both decide alike, only the first says 1, only the second does.
PATTERNS = 3
_AGREE, _FIRST, _SECOND = range(PATTERNS)
# BETA, but for intercepts that may differ more: a classifier that is no good shifts those of
# disputed rows by as much as its own log odds.
MODEL = replace(BETA, spread_sd=(0.15, 0.15, 2.0))


@dataclass(frozen=True)
class PairedPosterior:
    """Draws of both classifiers' counts; the same draw of both is of the same labels.

    Attributes
    ----------
    first, second : (T, G, 4) TN, FP, FN, TP of the whole pool, so that any metric of counts may
        be subtracted draw by draw.
    calibration : the posterior behind them, of groups split by who says 1.
    """

    first: Floats
    second: Floats
    calibration: CalibrationPosterior


def paired_calibration(
    first: PartlyLabelled,
    second: PartlyLabelled,
    generator: np.random.Generator,
    *,
    draws: int = 2048,
    pool_noise: bool = True,
) -> PairedPosterior:
    """Return the posterior of two classifiers' counts on one pool of partly labelled rows.

    Two separate posteriors would take a row to be positive for one classifier and negative for
    the other. Here one calibration map gives each unlabelled row one probability. It maps the
    mean log odds of the two scores; but the rows that decide between the classifiers are those
    where they disagree, on which that mean is near even whichever is right. Hence a group's rows
    that only the first calls 1, those that only the second does, and the others have maps of
    their own, shrunk together by the hierarchy: without labels both are believed alike, and
    labels of disputed rows say who is right. Where one is far worse than it claims, some twenty
    of these are needed before an interval holds what it promises.

    Parameters
    ----------
    first, second : the same rows with the same groups and labels.
    draws, pool_noise : those of `bayesian_calibration`.

    Raises
    ------
    UserError : the rows are not the same.
    """
    _check_same_rows(first, second)
    split = split_by_pattern(first, second)
    posterior = bayesian_calibration(
        split, generator, model=MODEL, draws=draws, pool_noise=pool_noise
    )
    return PairedPosterior(*margins(posterior.counts), posterior)


def margins(counts: Floats) -> tuple[Floats, Floats]:
    """Return both classifiers' counts (T, G, 4) from those of a pool split by pattern, (T, 3 G, 4).

    Where only one says 1, the other's negatives are its false positives.
    """
    patterns = counts.reshape(len(counts), -1, PATTERNS, 4)
    swapped = patterns[:, :, [_FIRST, _SECOND]][..., [1, 0, 3, 2]]
    return patterns.sum(axis=2), patterns[:, :, _AGREE] + swapped.sum(axis=2)


def split_by_pattern(first: PartlyLabelled, second: PartlyLabelled) -> PartlyLabelled:
    """Return the pool by group and pattern, with the first's decisions and the mean log odds."""
    log_odds = [logit(np.clip(each.score, CLIP, 1 - CLIP)) for each in (first, second)]
    pattern = np.where(first.prediction == second.prediction, _AGREE, _SECOND)
    pattern[(first.prediction == 1) & (second.prediction == 0)] = _FIRST
    return PartlyLabelled(
        expit((log_odds[0] + log_odds[1]) / 2),
        first.prediction,
        first.group * PATTERNS + pattern,
        first.label,
        tuple((group, pattern) for group in first.groups for pattern in range(PATTERNS)),
    )


def _check_same_rows(first: PartlyLabelled, second: PartlyLabelled) -> None:
    if len(first.score) != len(second.score):
        sizes = f"{len(first.score)} and {len(second.score)}"
        raise UserError(f"the classifiers have {sizes} rows; a paired comparison needs the same")
    for name in ("group", "label"):
        one, other = getattr(first, name), getattr(second, name)
        different = np.flatnonzero((one != other) & ~(np.isnan(one) & np.isnan(other)))
        if len(different):
            raise UserError(
                f"the classifiers' rows differ in column '{name}', first in row "
                f"{different[0] + 1}; a paired comparison needs the same rows in the same order"
            )
    if first.groups != second.groups:
        raise UserError(
            f"the classifiers have groups {first.groups} and {second.groups}; a paired "
            "comparison needs the same, the reference first"
        )
