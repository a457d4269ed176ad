"""Hierarchical calibration of scores: the link, its features and its priors (Ji et al. 2020)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fairbench.core.arrays import Floats

CLIP = 0.01
_CACHED = 1 << 14
# Beyond these the link is flat for any clipped score, and exp would be in danger.
_LARGEST_LOG_SLOPE, _LARGEST_SLOPE, _LARGEST_INTERCEPT = 3.0, 20.0, 20.0


@dataclass(frozen=True)
class Calibration:
    """A calibration map per group, whose parameters scatter around means the groups share.

    P(label 1 | score) = sigmoid(sum_k exp(theta_k) x_k(score) + theta_D): the first parameters
    are logarithms of slopes, the last is the intercept; theta = 0 leaves the scores as they are.
    A `signed` model has slopes 1 + theta_k, which may be negative: scores that say the opposite.
    For group g, theta_gk ~ N(mu_k, sigma_k), mu_k ~ N(0, mean_sd_k), and sigma_k is a half-normal
    of scale spread_sd_k.

    Attributes
    ----------
    slopes : 2 for beta calibration, c + a log s - b log(1 - s); 1 for a = b, linear in log odds.
    mean_sd, spread_sd : (D,) standard deviations, the slopes' first, the intercept's last. Without
        `spread_sd` the groups share nothing, and theta_gk ~ N(0, mean_sd_k).
    """

    slopes: int
    mean_sd: tuple[float, ...]
    spread_sd: tuple[float, ...] | None
    signed: bool = False

    @property
    def size(self) -> int:
        """Return the number D of parameters of a group."""
        return self.slopes + 1

    def scaled(self, factor: float) -> Calibration:
        """Return the model with every prior standard deviation multiplied by `factor`."""
        spread = self.spread_sd and tuple(factor * sd for sd in self.spread_sd)
        return replace(self, mean_sd=tuple(factor * sd for sd in self.mean_sd), spread_sd=spread)

    def features(self, score: Floats) -> Floats:
        """Return the features that slopes and intercept multiply, (n,) scores -> (D, n)."""
        clipped = np.clip(score, CLIP, 1 - CLIP)
        log_s, log_not_s = np.log(clipped), np.log1p(-clipped)
        slopes = [log_s, -log_not_s] if self.slopes == 2 else [log_s - log_not_s]
        return np.stack([*slopes, np.ones_like(clipped)])

    def coefficients(self, theta: Floats) -> Floats:
        """Return slopes and intercepts from parameters, (..., G, D) -> (..., G, D)."""
        coefficients = np.empty_like(theta)
        slopes, intercept = theta[..., :-1], theta[..., -1]
        if self.signed:
            np.clip(1 + slopes, -_LARGEST_SLOPE, _LARGEST_SLOPE, out=coefficients[..., :-1])
        else:
            np.exp(np.minimum(slopes, _LARGEST_LOG_SLOPE), out=coefficients[..., :-1])
        coefficients[..., -1] = np.clip(intercept, -_LARGEST_INTERCEPT, _LARGEST_INTERCEPT)
        return coefficients

    def flat_coefficients(self, theta: Floats) -> Floats:
        """Return the coefficients of parameters kept in one axis, (..., G D) -> (..., G D)."""
        grouped = theta.reshape(*theta.shape[:-1], -1, self.size)
        flat: Floats = self.coefficients(grouped).reshape(theta.shape)
        return flat

    def design(self, score: Floats, group: NDArray[np.int64], n_groups: int) -> Floats:
        """Return the (G D, n) matrix that maps all groups' coefficients to the rows' log odds."""
        columns = np.zeros((n_groups, self.size, len(score)))
        columns[group, :, np.arange(len(score))] = self.features(score).T
        return columns.reshape(n_groups * self.size, len(score))

    def normals(self, n_groups: int) -> int:
        """Return the number of standard normals that the whole prior is made from."""
        return (n_groups + 2 * (self.spread_sd is not None)) * self.size

    def from_normals(self, z: Floats, n_groups: int) -> Floats:
        """Return parameters from independent standard normals, (..., Z) -> (..., G, D).

        They are means, spreads (by their absolute value) and groups; groups alone without spreads.
        """
        shape = (*z.shape[:-1], n_groups, self.size)
        if self.spread_sd is None:
            scaled: Floats = z.reshape(shape) * np.array(self.mean_sd)
            return scaled
        means, spreads, groups = np.split(z, [self.size, 2 * self.size], axis=-1)
        centre = (means * np.array(self.mean_sd))[..., None, :]
        spread = (np.abs(spreads) * np.array(self.spread_sd))[..., None, :]
        theta: Floats = centre + spread * groups.reshape(shape)
        return theta

    def to_normals(self, theta: Floats, spread: Floats, generator: np.random.Generator) -> Floats:
        """Draw the normals behind parameters (C, G, D) and spreads (C, D): the means are drawn."""
        mean_sd = np.array(self.mean_sd)
        if self.spread_sd is None:
            scaled: Floats = theta / mean_sd
            return scaled.reshape(len(theta), -1)
        precision = theta.shape[1] / spread**2 + 1 / mean_sd**2
        mean = theta.sum(axis=1) / spread**2 / precision
        mean += generator.standard_normal(mean.shape) / np.sqrt(precision)
        groups = (theta - mean[:, None]) / spread[:, None]
        spreads = spread / np.array(self.spread_sd)
        z: Floats = np.hstack([mean / mean_sd, spreads, groups.reshape(len(theta), -1)])
        return z


def sigmoid(log_odds: Floats) -> Floats:
    """Return probabilities from log odds under 700, which are overwritten.

    NumPy's exp is vectorised, unlike scipy's expit.
    """
    np.exp(log_odds, out=log_odds)
    return np.divide(log_odds, 1 + log_odds, out=log_odds)


def expected_l1_error(calibrated: Floats, optimal: Floats) -> float:
    """Return the mean of |f(s) - f*(s)| over the scores of a group.

    It bounds how far the accuracy that f expects of the group lies from its true one; the sum over
    two groups bounds the error of their difference (Ji 2020, Lemmas 4.5.1 and 4.5.2; Ji, Smyth,
    Steyvers 2020, Lemma 2.1).

    Parameters
    ----------
    calibrated : (n,) the posterior mean of the calibrated probability of label 1.
    optimal : (n,) the true probability of label 1 at that score.
    """
    return float(np.abs(np.asarray(calibrated) - np.asarray(optimal)).mean())


def log_likelihood(
    coefficients: Floats, design: Floats, label: Floats, weight: Floats | None = None
) -> Floats:
    """Return the log likelihood of labels (L,) under every row of coefficients, (T, G D) -> (T,).

    The terms linear in the coefficients are summed over rows once.

    Parameters
    ----------
    weight : (L,) rows that each label stands for; one each, if left out.
    """
    softplus = np.empty(len(coefficients))
    for block in blocks(len(coefficients), len(label)):
        odds = coefficients[block] @ design
        np.exp(odds, out=odds)
        np.log1p(odds, out=odds)
        softplus[block] = odds.sum(axis=1) if weight is None else odds @ weight
    positives = label if weight is None else weight * label
    return np.asarray(coefficients @ (design @ positives) - softplus)


def blocks(draws: int, rows: int) -> Iterator[slice]:
    """Yield ranges of draws small enough that draws x rows stay in the processor's cache."""
    step = max(1, _CACHED // max(1, rows))
    for start in range(0, draws, step):
        yield slice(start, start + step)


BETA = Calibration(2, (0.4, 0.4, 2.0), (0.15, 0.15, 0.75))
LLO = Calibration(1, (0.4, 2.0), (0.15, 0.75))
SEPARATE = replace(BETA, spread_sd=None)
# Of an audit: scores may be wrong in any way, and differ between groups as labels show.
SIGNED = Calibration(2, (0.5, 0.5, 2.0), (0.3, 0.3, 0.75), signed=True)
CALIBRATIONS = {"beta": BETA, "llo": LLO, "separate": SEPARATE}
