"""How probably each method is the best, or nearly so, on a new task.

Nothing is assumed of the scores: a new task is like one of those at hand, and how often a method
came near the best on them is counted. Such a share of few tasks is too extreme. It is therefore
shrunk towards those of the other methods, as far as these are alike, by a beta-binomial whose two
parameters are learned from all methods. Few units cannot show how far shares must be shrunk: with
fewer than :data:`FEW`, a probability over :data:`MOST_OF_FEW` is printed as that or more. It is a
probability of scores measured as those at hand are, with as many splits or questions.

Where a method was not run, its difference from the others is drawn from the tasks that it was run
on, so that every method has all rivals everywhere. Where rivals were drawn, a task tells little: a
method's tasks count by the share of the variance of its lead on the best rival that is not due to
the draws, the information that is not missing (Orchard and Woodbury 1972).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from fairbench.core.arrays import Floats

FEW, MOST_OF_FEW = 9, 0.65
_FILLINGS = 20  # draws of scores that are missing
_STRENGTHS = np.geomspace(0.3, 300, 16)  # how many units the other methods are worth
_MEANS = 24  # values of the mean of the beta distribution that are weighed
_FEW_NEAR = 2  # a power by which few methods near the best are likelier than many


@dataclass(frozen=True, eq=False)
class OnNewTask:
    """The probabilities (M,) of M methods on a new task: to be the best, and to be near the best.

    Equal methods share the probability to be the best. Where `few`, probabilities of
    `MOST_OF_FEW` to be near are that or more.
    """

    best: Floats
    near: Floats
    few: bool = False


def on_new_task(
    values: Floats, unit: NDArray[np.integer], *, epsilon: float, generator: np.random.Generator
) -> OnNewTask:
    """Return how probably each method is the best on a task of a new unit, and within `epsilon`.

    Parameters
    ----------
    values : (M, T) scores of methods on tasks, larger is better, NaN where there is none: there a
        score is drawn as a rival of the others, by how the method differs from them elsewhere.
    unit : (T,) whole numbers from 0: the family of each task, or the task. Units count alike.
    """
    measured = np.isfinite(values)
    fillings = 1 if measured.all() else _FILLINGS
    of_method = None if fillings == 1 else _method_effects(values, measured)
    # How often each method is best and near the best; its lead on the best rival, and its square.
    means = np.zeros((4, *values.shape))
    for _ in range(fillings):
        rivals = values if of_method is None else _filled(values, measured, of_method, generator)
        largest = rivals.max(axis=0)
        is_best = rivals >= largest
        near = rivals >= largest - epsilon - 1e-12
        ahead = _ahead(rivals)
        means += np.stack([is_best / is_best.sum(axis=0), near, ahead, ahead**2]) / fillings
    units = int(unit.max()) + 1
    count = _of_units(measured.astype(float), unit, units)
    size = (count > 0).sum(axis=1).astype(float)
    informative = size * _explained_share(means[2], means[3], measured, fillings)
    shares = [
        (_of_units(np.where(measured, share, 0.0), unit, units) / np.maximum(count, 1)).sum(axis=1)
        / np.maximum(size, 1)
        for share in means[:2]
    ]
    near_best = _drawn_together(shares[1] * informative, informative)
    if units < FEW:
        near_best = np.minimum(near_best, MOST_OF_FEW)
    return OnNewTask(_shared(shares[0] * informative, informative), near_best, units < FEW)


def _ahead(rivals: Floats) -> Floats:
    """Return by how much each method is ahead of the best of the others, (M, T); 0 of one alone."""
    if len(rivals) < 2:
        return np.zeros_like(rivals)
    second_best, best = np.partition(rivals, len(rivals) - 2, axis=0)[-2:]
    with np.errstate(invalid="ignore"):
        ahead = rivals - np.where(rivals >= best, second_best, best)
    return np.where(np.isfinite(ahead), ahead, 0.0)


def _explained_share(
    mean: Floats, square: Floats, measured: NDArray[np.bool_], fillings: int
) -> Floats:
    """Return the share of what tasks tell of each method that does not hang on drawn rivals, (M,).

    Parameters
    ----------
    mean, square : (M, T) over `fillings` of the distance to the best rival, and of its square.
    """
    if fillings == 1:
        return np.ones(len(mean))
    number = np.maximum(measured.sum(axis=1), 1)
    drawn, mean_of_tasks, square_of_tasks = (
        np.where(measured, array, 0.0).sum(axis=1) / number
        for array in ((square - mean**2) * fillings / (fillings - 1), mean, square)
    )
    whole = np.maximum(square_of_tasks - mean_of_tasks**2, drawn)
    return np.asarray(1 - np.divide(drawn, whole, out=np.zeros_like(drawn), where=whole > 0))


def _of_units(values: Floats, unit: NDArray[np.integer], units: int) -> Floats:
    """Return the sums of the tasks (M, T) of each unit, (M, U)."""
    return np.stack([np.bincount(unit, row, units) for row in values])


def _method_effects(values: Floats, measured: NDArray[np.bool_]) -> Floats:
    """Return the effects (M,) of methods, where a score is a method's effect plus a task's."""
    zero = np.where(measured, values, 0.0)
    tasks, methods = (np.maximum(measured.sum(axis=axis), 1) for axis in (0, 1))
    of_task, of_method = zero.sum(axis=0) / tasks, np.zeros(len(values))
    for _ in range(20):
        of_method = np.where(measured, zero - of_task, 0.0).sum(axis=1) / methods
        of_task = np.where(measured, zero - of_method[:, None], 0.0).sum(axis=0) / tasks
    return np.asarray(of_method)


def _filled(
    values: Floats, measured: NDArray[np.bool_], of_method: Floats, generator: np.random.Generator
) -> Floats:
    """Return the scores, with a draw for each that is missing.

    A draw is the method's effect, plus how much the methods that were run on the task are above
    their own effects there, plus the method's lead on the same methods on another task, drawn at
    random. A draw from a model's residuals would vary too little: a residual is a part of its
    task's mean.
    """
    filled = values.copy()
    off = np.where(measured, values - of_method[:, None], 0.0)
    for method in np.flatnonzero(~measured.all(axis=1)):
        present, lacks = np.flatnonzero(measured[method]), np.flatnonzero(~measured[method])
        if not len(present):
            filled[method, lacks] = -np.inf
            continue
        donor = generator.choice(present, len(lacks))
        on_both = measured[:, lacks] & measured[:, donor]
        count = measured[:, lacks].sum(axis=0)
        with np.errstate(invalid="ignore"):
            middle = off[:, lacks].sum(axis=0) / count
            usual = np.where(on_both, off[:, donor], 0.0).sum(axis=0) / on_both.sum(axis=0)
        ahead = off[method, donor] - np.where(on_both.any(axis=0), usual, 0.0)
        filled[method, lacks] = of_method[method] + np.where(count > 0, middle, 0.0) + ahead
    return filled


def _drawn_together(count: Floats, size: Floats) -> Floats:
    """Return probabilities of methods that succeeded `count` of `size` times, (M,).

    Means and strengths of a beta prior are weighed by how well they explain all counts. Some method
    is always near the best, so that the mean is at least 1 / M.
    """
    least = 1 / len(count)
    mean = (least + (1 - least) * (np.arange(_MEANS) + 0.5) / _MEANS)[:, None]
    of_success, of_failure = _STRENGTHS * mean, _STRENGTHS * (1 - mean)
    success, failure = count[:, None, None], (size - count)[:, None, None]
    likelihood = special.betaln(of_success + success, of_failure + failure) - special.betaln(
        of_success, of_failure
    )
    likelihood = likelihood.sum(axis=0)
    posterior = (of_success + success) / (_STRENGTHS + success + failure)
    prior = (1 - mean) ** _FEW_NEAR * _STRENGTHS / (_STRENGTHS + 1)
    weight = np.exp(likelihood - likelihood.max()) * prior
    return np.asarray((posterior * weight).sum(axis=(1, 2)) / weight.sum())


def _shared(count: Floats, size: Floats) -> Floats:
    """Return probabilities that sum to 1, of methods that were the best `count` of `size` times.

    With a symmetric Dirichlet prior, whose strength is weighed as above.
    """
    share = count / np.maximum(size, 1)
    whole = float(size.max())
    share = share * whole / max(share.sum(), 1e-300)
    strengths = _STRENGTHS / len(count)
    likelihood = special.gammaln(_STRENGTHS) - special.gammaln(_STRENGTHS + whole)
    likelihood = likelihood + sum(
        special.gammaln(strengths + exponent) - special.gammaln(strengths) for exponent in share
    )
    weight = np.exp(likelihood - likelihood.max())
    posterior = (share[:, None] + strengths) / (whole + _STRENGTHS)
    return np.asarray((posterior * weight).sum(axis=1) / weight.sum())
