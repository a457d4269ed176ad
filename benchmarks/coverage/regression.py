"""The family of regressions: errors and likelihoods of a group, and against another group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import e, exp, pi, sqrt

import numpy as np
from scipy import special

from benchmarks.coverage.rows import (
    BOOTSTRAP,
    explained_ours,
    heavy_ours,
    mean_normal,
    mean_ours,
    means_bootstrap,
    root_ours,
    share_ours,
    with_differences,
)
from benchmarks.coverage.simulate import BEFORE, LEVEL, Construction, Family, Interval, Sample
from fairbench.core.arrays import Floats
from fairbench.inference.rates import Limits, quantile
from fairbench.metrics.regression import (
    CRPS,
    MAE,
    absolute_error_rows,
    crps_normal_rows,
    normal_nll_rows,
)

ERRORS = ("normal", "skewed", "heavy-tailed")
# Whose mean squares a sample says little of. Of lognormals: the sigmas; of Student's distributions:
# the degrees of freedom; of normal errors of which some are so many times as large: the shares.
LOGNORMAL = {"lognormal": 1.5, "lognormal(2)": 2.0}
STUDENT = {"t(2.5)": 2.5, "t(2.2)": 2.2}
MIXED: Mapping[str, Mapping[float, float]] = {
    "contaminated": {1.0: 0.975, 10.0: 0.02, 20.0: 0.005},
    "1 % thirty times as large": {1.0: 0.99, 30.0: 0.01},
    "four fifths exact": {0.0: 0.8, 1.0: 0.2},
    "95 % exact": {0.0: 0.95, 1.0: 0.05},
    "99 % exact": {0.0: 0.99, 1.0: 0.01},
}
HEAVIER = (*LOGNORMAL, *STUDENT, *MIXED)
HEAVIER_SIZES = ((20, 20), (50, 50), (200, 200), (400, 400), (1000, 1000))
SIZES = ((20, 20), (50, 50), (200, 200), (2000, 2000), (950, 50))
SCALES = (1.0, 1.5)
_QUADRATURE = 2000


def _sd_of(parts: Mapping[float, float]) -> float:
    """Return the sd of normal errors of which shares are so many times as large."""
    return sqrt(sum(share * factor**2 for factor, share in parts.items()))


def _student_mean(freedom: float) -> float:
    """Return the mean size of Student's errors of sd 1.

    It is 2 sqrt(v) Gamma((v + 1) / 2) / ((v - 1) Gamma(v / 2) sqrt(pi)), over the sd.
    """
    gammas = special.gamma((freedom + 1) / 2) / special.gamma(freedom / 2)
    return float(2 * sqrt(freedom - 2) * gammas / ((freedom - 1) * sqrt(pi)))


_MEAN_ABSOLUTE = {
    "normal": sqrt(2 / pi),
    "skewed": 2 / e,
    "heavy-tailed": 2 / pi,
    **{name: exp(-(sigma**2) / 2) for name, sigma in LOGNORMAL.items()},
    **{name: _student_mean(freedom) for name, freedom in STUDENT.items()},
    **{
        name: sqrt(2 / pi) * sum(share * factor for factor, share in parts.items()) / _sd_of(parts)
        for name, parts in MIXED.items()
    },
}


@dataclass(frozen=True)
class Errors:
    """Two groups whose targets are predicted, the error of both claimed to be of sd 1.

    Attributes
    ----------
    sizes : rows of the first and of the second group.
    errors : the law of the errors: normal, exponential, of Student with 3 degrees of freedom, or
        one of `HEAVIER`.
    scale : the true sd of the second group's errors.
    """

    sizes: tuple[int, int]
    errors: str
    scale: float

    @property
    def name(self) -> str:
        """What tables call it."""
        rows = f"{self.sizes[0]} and {self.sizes[1]} rows"
        return f"{rows}, {self.errors} errors of sd {self.scale:g}"


@dataclass(frozen=True)
class Predicted:
    """Targets and predictions (R, n) of a group's rows, each with an sd of 1."""

    target: Floats
    prediction: Floats

    def losses(self) -> dict[str, Floats]:
        """Return what means are taken of, by name."""
        one = np.ones_like(self.target)
        error = self.target - self.prediction
        return {
            "MAE": absolute_error_rows(self.target, self.prediction),
            "CRPS": crps_normal_rows(self.target, self.prediction, one),
            "NLL": normal_nll_rows(self.target, self.prediction, one),
            "interval coverage": (np.abs(error) <= quantile(LEVEL)).astype(float),
        }


def _populations(short: bool) -> Sequence[Errors]:
    sizes = ((50, 50), (200, 200)) if short else SIZES
    usual = [Errors(*each) for each in product(sizes, ERRORS, SCALES)]
    heavier = ((50, 50), (500, 500)) if short else HEAVIER_SIZES
    return usual + [Errors(*each, 1.0) for each in product(heavier, HEAVIER)]


def _draw(population: Errors, replications: int, draw: np.random.Generator) -> Sample:
    """Draw both groups; metrics are of the second one, and of its difference from the first."""
    varied = draw.uniform(0.9, 1.1, (replications, 1))
    data, truths = [], []
    for size, scale in zip(population.sizes, (1.0, population.scale), strict=True):
        sd, shape = scale * varied, (replications, size)
        mean = draw.normal(0, 1, shape)
        data.append(Predicted(mean + sd * _unit_errors(population.errors, shape, draw), mean))
        truths.append(_truth(population.errors, sd))
    first, second = truths
    truth = second | {f"difference in {name}": second[name] - first[name] for name in second}
    return Sample(tuple(data), truth)


def _unit_errors(errors: str, shape: tuple[int, int], draw: np.random.Generator) -> Floats:
    """Draw errors of sd 1; the lognormal ones are of either sign alike, the others of mean 0."""
    if errors == "normal":
        return draw.normal(size=shape)
    if errors == "skewed":
        return draw.exponential(size=shape) - 1
    if errors == "heavy-tailed":
        return draw.standard_t(3, shape) / sqrt(3)
    if errors in LOGNORMAL:
        sigma = LOGNORMAL[errors]
        signed: Floats = draw.choice([-1.0, 1.0], shape) * draw.lognormal(-(sigma**2), sigma, shape)
        return signed
    if errors in STUDENT:
        freedom = STUDENT[errors]
        return draw.standard_t(freedom, shape) * sqrt((freedom - 2) / freedom)
    parts = MIXED[errors]
    factor: Floats = draw.choice(list(parts), shape, p=list(parts.values())) / _sd_of(parts)
    return draw.normal(size=shape) * factor


def _distribution(errors: str, value: Floats) -> Floats:
    """Return the distribution function of errors of sd 1."""
    if errors == "normal":
        below: Floats = special.ndtr(value)
    elif errors == "skewed":
        below = -np.expm1(-np.maximum(value + 1, 0))
    elif errors == "heavy-tailed":
        below = special.stdtr(3, value * sqrt(3))
    elif errors in LOGNORMAL:
        sigma = LOGNORMAL[errors]
        with np.errstate(divide="ignore"):
            size = special.ndtr((np.log(np.abs(value)) + sigma**2) / sigma)
        below = (1 + np.sign(value) * size) / 2
    elif errors in STUDENT:
        freedom = STUDENT[errors]
        below = special.stdtr(freedom, value * sqrt(freedom / (freedom - 2)))
    else:
        below = np.zeros_like(value)
        sd = _sd_of(MIXED[errors])
        for factor, share in MIXED[errors].items():
            below += share * (special.ndtr(value * sd / factor) if factor else value >= 0)
    return below


def _quantiles(errors: str) -> Floats:
    """Return the middles of equally likely parts of errors of sd 1."""
    share = (np.arange(_QUADRATURE) + 0.5) / _QUADRATURE
    if errors == "normal":
        nodes: Floats = special.ndtri(share)
    elif errors == "skewed":
        nodes = -np.log1p(-share) - 1
    elif errors == "heavy-tailed":
        nodes = special.stdtrit(3, share) / sqrt(3)
    else:
        # By bisection: laws without a quantile function of their own.
        low, high = np.full(_QUADRATURE, -1e3), np.full(_QUADRATURE, 1e3)
        for _ in range(60):
            nodes = (low + high) / 2
            under = _distribution(errors, nodes) < share
            low, high = np.where(under, nodes, low), np.where(under, high, nodes)
    return nodes


def _truth(errors: str, sd: Floats) -> dict[str, Floats]:
    """Return the metrics (R,) of errors of sds (R, 1) that are claimed to be 1."""
    scale, reach = sd[:, 0], quantile(LEVEL)
    # The CRPS is |error| and a remainder that vanishes where errors are large.
    error = sd * _quantiles(errors)
    density = np.exp(-(error**2) / 2) / sqrt(2 * pi)
    remainder = 2 * density - 2 * np.abs(error) * special.ndtr(-np.abs(error)) - 1 / sqrt(pi)
    absolute = _MEAN_ABSOLUTE[errors] * scale
    within = _distribution(errors, reach / scale) - _distribution(errors, -reach / scale)
    return {
        "MAE": absolute,
        "RMSE": scale,
        "R2": 1 - scale**2 / (1 + scale**2),
        "CRPS": absolute + remainder.mean(axis=1),
        "NLL": (scale**2 + np.log(2 * pi)) / 2,
        "interval coverage": within,
    }


def _ours(groups: Sequence[Predicted], _: np.random.Generator) -> Mapping[str, Interval]:
    limits: dict[str, list[Limits]] = {}
    for group in groups:
        losses = group.losses()
        for name, made in (
            ("MAE", mean_ours(losses["MAE"], MAE.fewest)),
            ("RMSE", root_ours((group.target - group.prediction) ** 2)),
            ("R2", explained_ours(group.target, group.prediction)),
            ("CRPS", mean_ours(losses["CRPS"], CRPS.fewest)),
            ("NLL", heavy_ours(losses["NLL"])),
            ("interval coverage", share_ours(losses["interval coverage"])),
        ):
            limits.setdefault(name, []).append(made)
    return with_differences({name: (first, second) for name, (first, second) in limits.items()})


def _before(groups: Sequence[Predicted], _: np.random.Generator) -> Mapping[str, Interval]:
    """Return the normal intervals of means; RMSE, R2 and differences had none."""
    return {name: mean_normal(losses) for name, losses in groups[1].losses().items()}


def _wald(groups: Sequence[Predicted], _: np.random.Generator) -> Mapping[str, Interval]:
    first, second = (group.losses() for group in groups)
    result = {name: mean_normal(second[name]) for name in second}
    for name in second:
        result[f"difference in {name}"] = mean_normal(second[name], first[name])
    return result


def _bootstrapped(groups: Sequence[Predicted], draw: np.random.Generator) -> Mapping[str, Interval]:
    first, second = (group.losses() for group in groups)
    result = {name: means_bootstrap(draw, second[name]) for name in second}
    for name in second:
        result[f"difference in {name}"] = means_bootstrap(draw, second[name], first[name])
    return result


FAMILIES = (
    Family(
        "regression",
        "Regressions",
        "The intervals are for the errors and likelihoods of a group's predictions, and for their "
        "differences from those of another group. Every prediction comes with a claimed standard "
        "deviation of 1. This is about right in the other group; in the group itself, the errors "
        "have the sd that the setting names. *skewed* errors are exponential. *heavy-tailed* "
        "errors have Student's t distribution with 3 degrees of freedom, *t(2.5)* errors with "
        "2.5. *lognormal* errors (sigma 1.5, or as said) have either sign. *contaminated* errors "
        "are normal, but 2 % are ten times and 0.5 % twenty times as large. *four fifths exact* "
        "means that four of five errors are 0.",
        _populations,
        _draw,
        (
            Construction("ours", _ours),
            Construction(BEFORE, _before),
            Construction("Wald", _wald),
            Construction(BOOTSTRAP, _bootstrapped, 200, 2),
        ),
    ),
)
