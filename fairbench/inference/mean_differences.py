"""Standardised differences between the means of groups, raw, and adjusted for legitimate factors.

Let ``m_g`` be the mean of a score or a price in group g, ``m_r`` that of the reference group, and S
the standard deviation of everyone's, with n - 1 in the denominator. Three differences are made:

- the standardised mean difference, ``(m_g - m_r) / S``;
- the residual one: the same of what a least-squares regression on the factors leaves, over the
  standard deviation of what it leaves. The regression does not know the groups, so that a factor
  that differs between them takes a part of the difference with it;
- the adjusted one: the coefficient of the group in a least-squares regression on the groups and
  the factors, over S. It is the difference between people of the same factors.

**Limits.** Each is linearised: its error is the mean over rows of an influence that every row has,
through the means, through the coefficients of the regression, and through S. The influences of the
group, of the reference group and of all others are three means with limits that know skewness
(:func:`fairbench.inference.means.centred_limits`), and what their shares of the rows add is normal;
all are put together by the method of variance estimates recovery. Residuals are those that the
regression leaves without the row (HC3). Few rows of a group may hold none of the rare large values
that others have: a row more may lie as far from its group's mean as any row of any group does. A
group of fewer than 20 rows has no limits.
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
_TOLD = 1e-9  # of a group's spread: what factors leave of it where they tell who is in it
_GROUP, _REFERENCE, _OTHERS = 0, 1, 2


@dataclass(frozen=True, eq=False)
class _Linear:
    """An estimate, and what each row adds to its error.

    Attributes
    ----------
    influence : (n,) of each row; its mean is 0.
    ends : how far under and over the mean of its group any row lies, in the units of the estimate.
    """

    value: float
    influence: Floats
    ends: tuple[float, float]


def mean_differences(
    values: Floats, codes: Codes, reference: int, *, level: float = 0.95
) -> Limits:
    """Return the standardised mean differences (G,) of groups 0 .. G - 1 from one of them.

    Parameters
    ----------
    values, codes : (n,) of each row.

    Returns
    -------
    That of the reference group is 0, without an interval; NaN where nothing varies.
    """
    means = _means(values, codes)
    return _of_groups(codes, reference, level, lambda g: _standardised(
        _difference(values, codes, means, g, reference), values
    ))  # fmt: skip


def residual_mean_differences(
    values: Floats, codes: Codes, reference: int, factors: Floats, *, level: float = 0.95
) -> Limits:
    """Return the residual standardised mean differences (G,), given factors (n, K).

    The package solas-ai calls this the residual standardised mean difference, of the least-squares
    regression as its prediction.
    """
    design = np.column_stack([np.ones(len(values)), factors])
    fit = _Regression(design)
    left, without = fit.residuals(values)
    means = _means(left, codes)

    def of_group(g: int) -> _Linear:
        plain = _difference(without, codes, _means(without, codes), g, reference)
        apart = design[codes == g].mean(axis=0) - design[codes == reference].mean(axis=0)
        through_fit = fit.influence(apart, without)
        linear = _Linear(
            float(means[g] - means[reference]), plain.influence - through_fit, plain.ends
        )
        return _standardised(linear, left)

    return _of_groups(codes, reference, level, of_group)


def adjusted_mean_differences(
    values: Floats, codes: Codes, reference: int, factors: Floats, *, level: float = 0.95
) -> Limits:
    """Return the adjusted standardised mean differences (G,), given factors (n, K).

    NaN of a group of whom the factors tell who is in it.
    """
    others = [g for g in range(int(codes.max()) + 1) if g != reference and (codes == g).any()]
    members = np.column_stack([codes == g for g in others]).astype(float)
    covariates = np.column_stack([np.ones(len(values)), factors])
    design = np.column_stack([members, covariates])
    fit = _Regression(design)
    coefficients, (_, without) = fit.coefficients(values), fit.residuals(values)

    def of_group(g: int) -> _Linear:
        place = others.index(g)
        spread = np.delete(design, place, axis=1)
        left = _Regression(spread).residuals(design[:, place])[0]
        if (left**2).sum() <= _TOLD * len(values) * members[:, place].var():
            return _nothing(values)
        unit = np.eye(design.shape[1])[place]
        linear = _Linear(float(coefficients[place]), fit.influence(unit, without), _ends(without))
        return _standardised(linear, values)

    return _of_groups(codes, reference, level, of_group)


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
        """Return what is left (n,), and what would be of a row that did not take part."""
        left = values - self._design @ self.coefficients(values)
        return left, left / self._kept

    def influence(self, combination: Floats, residuals: Floats) -> Floats:
        """Return what rows (n,) add to a linear combination (K,) of the coefficients."""
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
    ends = _ends(values - means[codes])
    for sign, group in ((1, g), (-1, reference)):
        rows = codes == group
        influence[rows] = sign * (values[rows] - means[group]) / rows.mean()
    return _Linear(float(means[g] - means[reference]), influence, ends)


def _ends(away: Floats) -> tuple[float, float]:
    return float(away.min()), float(away.max())


def _nothing(values: Floats) -> _Linear:
    """Return what is not known."""
    return _Linear(np.nan, np.full(len(values), np.nan), (np.nan, np.nan))


def _standardised(difference: _Linear, values: Floats) -> _Linear:
    """Return a difference over the standard deviation of values (n,)."""
    away = values - values.mean()
    sd = float(away.std(ddof=1))
    if not sd > 1e-12 * np.abs(values).max(initial=0):
        return _nothing(values)
    ratio = difference.value / sd
    through_sd = ratio / 2 * ((away / sd) ** 2 - (away**2).mean() / sd**2)
    low, high = difference.ends
    return _Linear(ratio, difference.influence / sd - through_sd, (low / sd, high / sd))


def _of_groups(
    codes: Codes, reference: int, level: float, of_group: Callable[[int], _Linear]
) -> Limits:
    """Return the limits (G,) of the groups that have rows."""
    groups = int(codes.max()) + 1
    ends = np.full((3, groups), np.nan)
    rows = np.bincount(codes, minlength=groups)
    for g in range(groups):
        if g == reference:
            ends[0, g] = 0.0
        elif rows[g] and rows[reference]:
            ends[:, g] = _limits(of_group(g), codes, g, reference, level)
    return Limits(*ends)


def _limits(
    linear: _Linear, codes: Codes, g: int, reference: int, level: float
) -> tuple[float, float, float]:
    """Return an estimate with both ends; NaN ends where either group has too few rows."""
    part = np.where(codes == g, _GROUP, np.where(codes == reference, _REFERENCE, _OTHERS))
    if (part == _OTHERS).sum() < ROWS:
        part = np.minimum(part, _REFERENCE)
    size = np.bincount(part)
    if np.isnan(linear.value) or min((codes == g).sum(), (codes == reference).sum()) < ROWS:
        return linear.value, np.nan, np.nan
    moments = Moments.of_groups(linear.influence, part, len(size))
    # What is seen in any group, the rows of another that were not seen may be as well.
    share, (low, high) = size / size.sum(), linear.ends
    least, most = np.full((2, len(size)), np.nan)
    least[:2] = moments.mean[:2] + np.array([low, -high]) / share[:2]
    most[:2] = moments.mean[:2] + np.array([high, -low]) / share[:2]
    means = centred_limits(moments.reaching(least, most), level=level)
    of_shares = quantile(level) ** 2 * (share * means.value**2).sum() / size.sum()
    down, up = (
        np.sqrt(((share * away) ** 2).sum() + of_shares)
        for away in (means.value - means.lower, means.upper - means.value)
    )
    return linear.value, linear.value - float(down), linear.value + float(up)
