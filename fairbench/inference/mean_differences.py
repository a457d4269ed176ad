"""Standardised differences between the means of groups, raw, and adjusted for legitimate factors.

Let ``m_g`` be the mean of a score or a price in group g, ``m_r`` that of the reference group, and S
the standard deviation of everyone's, with n - 1 in the denominator. Three differences are made:

- the standardised mean difference, ``(m_g - m_r) / S``;
- the residual one: the standardised mean difference of the residuals of a least-squares regression
  on the factors. The groups are not in the regression, so that a factor that differs between them
  explains a part of the difference;
- the adjusted one: the coefficient of the group in a least-squares regression on the groups and
  the factors, over S. It is the difference between people with the same factors.

**Limits.** Each estimate is linearised: its error is the mean of the rows' influences, through the
means, through the coefficients of the regression, and through S. The mean influences in the
group, in the reference group and among all others have limits that allow for skewness
(:func:`fairbench.inference.means.centred_limits`); the error of the groups' shares of the rows is
normal. They are combined by the method of variance estimates recovery. The residual of a row is
that of the regression without the row (HC3). A few rows of a group may contain none of the rare
large values that other groups have; so an unseen row may lie as far from its group's mean as any
row of any group. A group of fewer than 20 rows has no limits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairbench.core.arrays import Floats
from fairbench.inference.means import ROWS, Moments, centred_limits
from fairbench.inference.rates import Limits, quantile

Codes = NDArray[np.integer]
# If factors leave at most this share of a group indicator's variance, they determine the group.
_DETERMINED = 1e-9
_GROUP, _REFERENCE, _OTHERS = 0, 1, 2


@dataclass(frozen=True, eq=False)
class _Linear:
    """A linearised estimate, with the influence of each row.

    Attributes
    ----------
    value : the estimate.
    influence : (n,) the contribution of each row to the error, times n; its mean is 0.
    extremes : the smallest and the largest distance of a row from the mean of its group, in the
        units of the estimate.
    """

    value: float
    influence: Floats
    extremes: tuple[float, float]


def mean_differences(
    values: Floats, codes: Codes, reference: int, *, level: float = 0.95
) -> Limits:
    """Return the standardised mean differences (G,) of groups 0 .. G - 1 from one of them.

    Parameters
    ----------
    values : (n,) the values of rows.
    codes : (n,) their groups, 0 .. G - 1.
    reference : the group that others are compared with.
    level : the level of the intervals.

    Returns
    -------
    The differences with limits. That of the reference group is 0, without an interval; NaN where
    nothing varies.
    """
    means = _means(values, codes)

    def estimate(g: int) -> _Linear:
        """Return the difference of group g.

        With values x, group means m and shares of rows p, the influence of row i on
        D = m_g - m_r is (x_i - m_g) / p_g in group g, -(x_i - m_r) / p_r in the reference group r
        and 0 elsewhere; `_standardise` divides by the standard deviation.
        """
        return _standardise(_difference(values, codes, means, g, reference), values)

    return _group_limits(codes, reference, level, estimate)


def residual_mean_differences(
    values: Floats, codes: Codes, reference: int, factors: Floats, *, level: float = 0.95
) -> Limits:
    """Return the residual standardised mean differences (G,), given factors (n, K).

    The package solas-ai calls this the residual standardised mean difference, with the predictions
    of the least-squares regression.
    """
    design = np.column_stack([np.ones(len(values)), factors])
    fit = _Regression(design)
    residuals, left_out = fit.residuals(values)
    means = _means(residuals, codes)

    def estimate(g: int) -> _Linear:
        """Return the difference of the mean residuals of group g.

        With rows z_i of the design Z, residuals e_i of rows left out, and the difference d between
        the two groups' means of z, the influence of row i is that on the difference of the mean
        residuals, less that through the coefficients: d' (Z'Z / n)^-1 z_i e_i.
        """
        direct = _difference(left_out, codes, _means(left_out, codes), g, reference)
        factor_gap = design[codes == g].mean(axis=0) - design[codes == reference].mean(axis=0)
        through_fit = fit.influence(factor_gap, left_out)
        linear = _Linear(
            value=float(means[g] - means[reference]),
            influence=direct.influence - through_fit,
            extremes=direct.extremes,
        )
        return _standardise(linear, residuals)

    return _group_limits(codes, reference, level, estimate)


def adjusted_mean_differences(
    values: Floats, codes: Codes, reference: int, factors: Floats, *, level: float = 0.95
) -> Limits:
    """Return the adjusted standardised mean differences (G,), given factors (n, K).

    NaN for a group whose members the factors determine.
    """
    others = [g for g in range(int(codes.max()) + 1) if g != reference and (codes == g).any()]
    members = np.column_stack([codes == g for g in others]).astype(float)
    covariates = np.column_stack([np.ones(len(values)), factors])
    design = np.column_stack([members, covariates])
    fit = _Regression(design)
    coefficients = fit.coefficients(values)
    _, left_out = fit.residuals(values)

    def estimate(g: int) -> _Linear:
        """Return the coefficient of group g; undefined if the other columns determine the group.

        With rows z_i of the design Z, residuals e_i of rows left out, and the unit vector u of the
        group's column, the influence of row i is u' (Z'Z / n)^-1 z_i e_i.
        """
        column = others.index(g)
        other_columns = np.delete(design, column, axis=1)
        unexplained, _ = _Regression(other_columns).residuals(design[:, column])
        if (unexplained**2).sum() <= _DETERMINED * len(values) * members[:, column].var():
            return _undefined(values)
        unit = np.eye(design.shape[1])[column]
        linear = _Linear(
            value=float(coefficients[column]),
            influence=fit.influence(unit, left_out),
            extremes=_extremes(left_out),
        )
        return _standardise(linear, values)

    return _group_limits(codes, reference, level, estimate)


class _Regression:
    """Least squares on columns (n, K), which may depend on each other."""

    def __init__(self, design: Floats) -> None:
        self._design = design
        self._scale = np.sqrt((design**2).mean(axis=0))
        self._scale[self._scale == 0] = 1
        scaled = design / self._scale
        self._inverse = np.linalg.pinv(scaled.T @ scaled / len(design), rcond=1e-12, hermitian=True)
        weights = scaled @ self._inverse
        leverage = (weights * scaled).sum(axis=1) / len(design)
        self._kept = np.maximum(1 - leverage, 1e-6)

    def coefficients(self, values: Floats) -> Floats:
        """Return the coefficients (K,)."""
        scaled = self._design / self._scale
        solved: Floats = np.linalg.lstsq(scaled, values, rcond=None)[0] / self._scale
        return solved

    def residuals(self, values: Floats) -> tuple[Floats, Floats]:
        """Return residuals (n,), and those of rows left out of the fit."""
        residuals = values - self._design @ self.coefficients(values)
        return residuals, residuals / self._kept

    def influence(self, combination: Floats, residuals: Floats) -> Floats:
        """Return the influences of rows (n,) on a linear combination (K,) of the coefficients."""
        weights = (self._design / self._scale) @ (self._inverse @ (combination / self._scale))
        influence: Floats = weights * residuals
        return influence


def _means(values: Floats, codes: Codes) -> Floats:
    with np.errstate(invalid="ignore"):
        means: Floats = np.bincount(codes, values) / np.bincount(codes)
    return means


def _difference(values: Floats, codes: Codes, means: Floats, g: int, reference: int) -> _Linear:
    """Return the difference of the means of a group and of the reference group."""
    influence = np.zeros(len(values))
    extremes = _extremes(values - means[codes])
    for sign, group in ((1, g), (-1, reference)):
        members = codes == group
        influence[members] = sign * (values[members] - means[group]) / members.mean()
    return _Linear(float(means[g] - means[reference]), influence, extremes)


def _extremes(deviations: Floats) -> tuple[float, float]:
    return float(deviations.min()), float(deviations.max())


def _undefined(values: Floats) -> _Linear:
    """Return an estimate that is not defined: NaN."""
    return _Linear(np.nan, np.full(len(values), np.nan), (np.nan, np.nan))


def _standardise(difference: _Linear, values: Floats) -> _Linear:
    """Return a difference over the standard deviation of values (n,).

    Notes
    -----
    With the deviations d of the values and their standard deviation s, the ratio r = D / s has the
    influence of D over s, less r / 2 (d^2 / s^2 - mean(d^2) / s^2).
    """
    deviation = values - values.mean()
    sd = float(deviation.std(ddof=1))
    if not sd > 1e-12 * np.abs(values).max(initial=0):
        return _undefined(values)
    ratio = difference.value / sd
    through_sd = ratio / 2 * ((deviation / sd) ** 2 - (deviation**2).mean() / sd**2)
    low, high = difference.extremes
    return _Linear(ratio, difference.influence / sd - through_sd, (low / sd, high / sd))


def _group_limits(
    codes: Codes, reference: int, level: float, estimate: Callable[[int], _Linear]
) -> Limits:
    """Return the limits (G,) of the groups that have rows, from the estimate of each."""
    groups = int(codes.max()) + 1
    limits = np.full((3, groups), np.nan)
    sizes = np.bincount(codes, minlength=groups)
    for g in range(groups):
        if g == reference:
            limits[0, g] = 0.0
        elif sizes[g] and sizes[reference]:
            limits[:, g] = _limits(estimate(g), codes, g, reference, level)
    return Limits(*limits)


def _limits(
    linear: _Linear, codes: Codes, g: int, reference: int, level: float
) -> tuple[float, float, float]:
    """Return an estimate with both limits; NaN limits where either group has too few rows."""
    role = np.where(codes == g, _GROUP, np.where(codes == reference, _REFERENCE, _OTHERS))
    if (role == _OTHERS).sum() < ROWS:
        role = np.minimum(role, _REFERENCE)
    size = np.bincount(role)
    if np.isnan(linear.value) or min((codes == g).sum(), (codes == reference).sum()) < ROWS:
        return linear.value, np.nan, np.nan
    moments = Moments.of_groups(linear.influence, role, len(size))
    # An unseen row of one group may lie as far out as any observed row of another.
    share = size / size.sum()
    low, high = linear.extremes
    least, most = np.full((2, len(size)), np.nan)
    least[:2] = moments.mean[:2] + np.array([low, -high]) / share[:2]
    most[:2] = moments.mean[:2] + np.array([high, -low]) / share[:2]
    means = centred_limits(moments.reaching(least, most), level=level)
    by_shares = quantile(level) ** 2 * (share * means.value**2).sum() / size.sum()
    down, up = (
        np.sqrt(((share * half_width) ** 2).sum() + by_shares)
        for half_width in (means.value - means.lower, means.upper - means.value)
    )
    return linear.value, linear.value - float(down), linear.value + float(up)
