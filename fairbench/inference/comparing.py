"""Two algorithms by error and fairness together: objectives, their points, and their difference.

An objective says which metric counts and with which sign (:class:`Objective`, :func:`points`,
:func:`frontier`); :func:`compare` gives the probability that two algorithms differ in practice, and
the region in which their difference lies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import pi
from statistics import NormalDist
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.core.arrays import Floats, even_points, rng
from fairbench.core.errors import UserError
from fairbench.inference import repeats
from fairbench.inference.posterior import table_draws
from fairbench.inference.survey import effective_counts, mean_shrinkage
from fairbench.metrics import registry


@dataclass(frozen=True)
class Objective:
    """A metric that algorithms are compared by, turned so that larger values are the better.

    If it is `of_counts`, it is a function of tables (..., G, 4) -> (...): a rate of everyone, what
    compares the rates of groups, or a signed difference. Any other has its values in the splits.
    """

    metric: registry.Metric

    @property
    def of_counts(self) -> bool:
        """Whether it is a function of confusion counts."""
        kinds = ("rate", "widest", "difference")
        return self.metric.task == registry.BINARY and self.metric.interval in kinds

    @property
    def rates(self) -> tuple[Callable[[registry.Counts], Floats], ...]:
        """The rates, (..., G, 4) -> (..., G), that it compares or takes of everyone."""
        of_everyone = self.metric.interval == "rate"
        return (self.metric.function,) if of_everyone else self.metric.rates

    def __call__(self, tables: registry.Counts) -> Floats:
        """Return the objective of every set of group tables.

        Groups without a rate are left out of what compares the rates of more, as in a run's table.
        """
        metric = self.metric
        if metric.interval == "rate":
            return metric.larger_is_better(metric(registry.total(tables))[..., 0])
        values = metric(tables)
        if metric.interval == "widest":
            if np.isnan(values).any():  # rarely: no group lacks a rate
                has_rates = self.having(tables)
                another = has_rates.argmax(axis=-1)[..., None, None]
                stand_in = np.take_along_axis(tables, another, axis=-2)  # which changes no extreme
                values = metric(np.where(has_rates[..., None], tables, stand_in))
            return metric.larger_is_better(values)
        if values.shape[-1] != 1:
            raise UserError(
                f"a signed difference of {metric.rates[0].name} needs two groups, not "
                f"{values.shape[-1] + 1}"
            )
        return np.asarray(values[..., 0])

    def having(self, tables: registry.Counts) -> NDArray[np.bool_]:
        """Return which groups (..., G) have every rate; all of them where fewer than two do."""
        rates = [rate(tables) for rate in self.rates]
        has_rates = ~np.isnan(rates).any(axis=0)
        return has_rates | (has_rates.sum(axis=-1, keepdims=True) < 2)


def objective(name: str, task: str = registry.BINARY) -> Objective:
    """Return the objective of a name, of runs of a task.

    Rates of everyone (``accuracy`` ...); gaps between groups with a minus sign
    (``equal_opportunity`` ...); ``disparate_impact`` as the smaller of ratio and inverse; signed
    differences of two groups, the other group's minus the reference's
    (``equal_opportunity_difference`` ...), which the published code uses: there a gap in favour of
    the other group counts as better than none. Any other metric that runs store: losses, areas,
    uncertainties, and what compares these between groups.
    """
    return Objective(registry.named(name, task))


METRICS = ("statistical_parity", "equalized_odds", "equal_opportunity", "predictive_parity")
DRAWS = 2000
_SEED = 0


def points(
    counts: NDArray[Any],
    dataset: str,
    metrics: Iterable[str] = METRICS,
    *,
    test_share: float = float("nan"),
) -> dict[str, dict[str, float]]:
    """Return an algorithm's error and gap for every metric, and the posterior of both.

    `error` and `gap` are the means over the repeats; `without_group` is how many have a gap that a
    group is left out of, as it has no rate, and `left_out` how many have no gap.
    `error_variance`, `covariance` and `gap_variance` are those of a normal whose standard
    deviations are half the width of the central 68 % of the posterior: the posterior of a mean over
    three repeats or fewer has no variance. It is that of the mean of all repeats, or of the repeat
    of median error and of one test set; they are NaN where the gap is undefined in nearly every
    draw.

    The posterior is that of the counts: Dirichlet in every group, groups weighed by their share of
    the test rows, so that error and gap come from the same draws. K folds are pooled at their
    effective counts. As in a comparison, that of several repeats is no narrower than half of what
    their counts alone would give.

    Parameters
    ----------
    counts : (R, K, G, 4) confusion counts of R repeats of K folds; one fold of a hold-out split.
    dataset : name that the draws are seeded by, so that a data set's algorithms share them.
    metrics : the gaps.
    test_share : the share of the rows that a hold-out repeat tests, for the posterior of the mean
        of all repeats; NaN for that of the repeat of median error.
    """
    folds = counts.shape[1]
    worth = mean_shrinkage(folds) if folds > 1 else 1.0
    observed = effective_counts(np.swapaxes(counts, 0, 1), worth)
    errors = _error(observed)
    median = int(np.argsort(errors, kind="stable")[len(errors) // 2])
    generator = rng(_SEED, "tradeoff", dataset, median)
    if len(observed) == 1 or np.isnan(test_share):
        counted = observed[median]
        draws = from_counts = table_draws(counted, DRAWS, generator)
    else:
        shares = observed / observed.sum(axis=(-1, -2), keepdims=True)
        draws = repeats.mean_table_draws(shares, test_share, draws=DRAWS, generator=generator)
        counted = observed.mean(axis=0) / repeats.inflation(len(observed), test_share)
        from_counts = table_draws(counted, DRAWS, generator)
    error = repeats.no_narrower(_error(draws)[:, None], _error(from_counts)[:, None])
    values = {}
    for name in metrics:
        goal = objective(name)
        gaps = -goal(observed)
        among = goal.having(counted)  # the others have a rate by the prior alone
        drawn, least = (-goal(tables[:, among])[:, None] for tables in (draws, from_counts))
        defined = ~np.isnan(drawn[:, 0])
        covariance = np.full((2, 2), np.nan)
        if defined.sum() > 1:
            drawn = repeats.no_narrower(drawn[defined], least)
            spread = np.concatenate([repeats.half_widths(error), repeats.half_widths(drawn)])
            with np.errstate(invalid="ignore"):  # of one group, the gap is 0 in every draw
                shape = np.nan_to_num(np.corrcoef(error[defined, 0], drawn[:, 0]))
            covariance = shape * np.outer(spread, spread)
        values[name] = {
            "error": float(errors.mean()),
            "gap": float(repeats.finite_mean(gaps)),
            "without_group": int((~goal.having(observed)).any(axis=-1).sum()),
            "left_out": int(np.isnan(gaps).sum()),
            "error_variance": float(covariance[0, 0]),
            "covariance": float(covariance[0, 1]),
            "gap_variance": float(covariance[1, 1]),
        }
    return values


def point_table(
    runs: Sequence[str],
    names: Sequence[Mapping[str, str]],
    found: Sequence[Mapping[str, Mapping[str, float]]],
) -> pd.DataFrame:
    """Return a row for every metric and run.

    Parameters
    ----------
    runs : the id of every run.
    names : the ``learner``, ``intervention`` and ``method`` of every run.
    found : the points of every run, by metric.

    Returns
    -------
    ``metric``, ``run``, ``learner``, ``intervention``, ``method``, ``error``, ``gap``,
    ``error_variance``, ``gap_variance``, ``covariance``, ``dominated``.
    """
    rows = []
    for metric in found[0]:
        run_points = [objective_values[metric] for objective_values in found]
        behind = is_dominated(np.array([[p["error"], p["gap"]] for p in run_points])).tolist()
        for run, name, point, is_behind in zip(runs, names, run_points, behind, strict=True):
            rows.append({"metric": metric, "run": run, **name, **point, "dominated": is_behind})
    return pd.DataFrame(rows)


def _error(tables: Floats) -> Floats:
    return registry.error_rate(registry.total(tables))[..., 0]


def is_dominated(values: Floats) -> NDArray[np.bool_]:
    """Return which rows (R, m) are dominated: another is no larger, and smaller in a column.

    A row with NaN neither dominates nor is dominated.
    """
    no_larger = (values[:, None] <= values[None]).all(axis=-1)
    smaller = (values[:, None] < values[None]).any(axis=-1)
    return np.asarray((no_larger & smaller).any(axis=0))


def frontier(tables: Sequence[pd.DataFrame], protect: str) -> pd.DataFrame:
    """Return error and gap of the best score's thresholds per group, means over repeats.

    Parameters
    ----------
    tables : metrics of the runs without intervention; of those that have been postprocessed, the
        one of least unprocessed error on validation rows is taken.

    Returns
    -------
    ``base`` (position in `tables`), ``constraint``, ``relaxation``, ``error``, ``gap``; empty where
    no run was postprocessed.
    """
    columns = ["base", "constraint", "relaxation", "error", "gap"]
    curves = []
    for i, metrics in enumerate(tables):
        rows = metrics[metrics["metric"].str.startswith("postprocessed_")]
        rows = rows[(rows["attribute"] == protect) & (rows["variant"] == "")]
        if rows.empty:
            continue
        rows = rows.assign(constraint=rows["constraint"].astype(str))
        by = ["constraint", "relaxation", "metric"]
        mean = rows.groupby(by)["value"].mean().unstack().reset_index().assign(base=i)
        mean.columns = [str(name).removeprefix("postprocessed_") for name in mean.columns]
        curves.append(mean.rename(columns={"error_rate": "error"}))
    if not curves:
        return pd.DataFrame(columns=columns)
    best = min(curves, key=lambda mean: float(mean["validation_error_rate"].min()))
    return best[columns]


def at_equal_fairness(curve: pd.DataFrame, metric: str, gap: float) -> float:
    """Return the least error of the frontier at a gap no larger than `gap`, NaN where it has none.

    Two of its points may be mixed: at random between them, the error is on the line between them,
    and the gap no larger.
    """
    points = curve.loc[curve["constraint"] == metric, ["error", "gap"]].to_numpy(float)
    under, over = points[points[:, 1] <= gap], points[points[:, 1] > gap]
    if not len(under):
        return float("nan")
    share = (gap - under[:, None, 1]) / (over[:, 1] - under[:, None, 1])
    mixed = under[:, None, 0] + share * (over[:, 0] - under[:, None, 0])
    return float(min(under[:, 0].min(), mixed.min(initial=float("inf"))))


# Whether two algorithms differ in practice, and the region their difference lies in.

FIRST, EQUIVALENT, SECOND = range(3)


@dataclass(frozen=True, eq=False)
class Comparison:
    """Draws of Delta = Theta_A - Theta_B, and the regions of practical equivalence.

    Attributes
    ----------
    objectives : names of the m objectives; of each, more is better.
    delta : (T, m) differences, without draws in which an objective is undefined.
    rope : (m,) half-widths epsilon: |Delta| <= epsilon is practically equivalent.
    undefined : the share of draws that were left out as undefined.
    """

    objectives: tuple[str, ...]
    delta: Floats
    rope: Floats
    undefined: float = 0.0

    @classmethod
    def of(
        cls, leads: Sequence[Floats], names: tuple[str, ...], rope: Sequence[float] | Floats
    ) -> Comparison:
        """Return the comparison of draws (T,) of A's lead in each of m objectives.

        Raises
        ------
        UserError : a rope for each objective is missing or negative, or an objective is undefined
            in every draw.
        """
        epsilon = np.asarray(rope, float)
        if epsilon.shape != (len(names),) or not (epsilon >= 0).all():
            raise UserError(
                f"rope is {list(rope)}: it needs one number of at least 0 for each of {len(names)} "
                f"objectives ({', '.join(names)})"
            )
        # Columns of contiguous memory: everything after reads one objective at a time.
        delta = np.stack(leads).T
        undefined = np.isnan(delta)
        if not undefined.any():
            return cls(names, delta, epsilon)
        kept = ~undefined.any(axis=1)
        if not kept.any():
            name = names[int(undefined.mean(axis=0).argmax())]
            raise UserError(
                f"{name} is undefined in every draw: a group has no rows it rests on; name another "
                "of objectives=, such as statistical_parity, or other groups with protect="
            )
        return cls(names, delta[kept], epsilon, 1 - float(kept.mean()))

    @cached_property
    def codes(self) -> NDArray[np.int64]:
        """The outcome of each draw as a number in base 3, with one digit an objective.

        A digit is 0 where A is better, 1 where both are equivalent, and 2 where B is better.
        """
        digits = 1 + (self.delta < -self.rope).astype(np.int64) - (self.delta > self.rope)
        return digits @ 3 ** np.arange(len(self.objectives) - 1, -1, -1)

    def events(self, inside: NDArray[np.bool_] | None = None) -> dict[str, float]:
        """Return the probabilities of the paper's events; they sum to 1.

        ``A >> B`` (better in some objective, worse in none), ``B >> A``, ``A ~ B`` (equivalent in
        all), and each way of being better in some and worse in others.

        Parameters
        ----------
        inside : (T,) draws to which the events are restricted, such as a highest-density region.
        """
        codes = self.codes if inside is None else self.codes[inside]
        outcomes = list(product(range(3), repeat=len(self.objectives)))
        shares = np.bincount(codes, minlength=len(outcomes)) / len(codes)
        events = dict.fromkeys(event_names(self.objectives), 0.0)
        for outcome, share in zip(outcomes, shares.tolist(), strict=True):
            events[_event_name(outcome, self.objectives)] += share
        return events

    def reach(self, level: float = 0.95) -> Floats:
        """Return the true differences (m,) that would be found in four of five comparisons.

        A difference is found where the central interval of this level lies beyond the rope. The
        interval's half-width is 1.96 standard errors at 95 %, and four of five estimates lie at
        most 0.84 of them under the truth: 1.4 half-widths, also of a Student t.
        """
        lower, upper = np.quantile(self.delta, [(1 - level) / 2, (1 + level) / 2], axis=0)
        power = NormalDist().inv_cdf(0.8) / NormalDist().inv_cdf((1 + level) / 2)
        return self.rope + (1 + power) * (upper - lower) / 2


A_BETTER, B_BETTER, PRACTICALLY_EQUAL = "A >> B", "B >> A", "A ~ B"


def _event_name(outcome: Sequence[int], objectives: Sequence[str]) -> str:
    """Return the name of the event that an outcome (one digit an objective) belongs to."""
    if FIRST in outcome and SECOND in outcome:
        sides = {FIRST: "A", SECOND: "B"}
        return ", ".join(
            f"{sides[digit]} {name}"
            for digit, name in zip(outcome, objectives, strict=True)
            if digit != EQUIVALENT
        )
    if FIRST in outcome:
        return A_BETTER
    return B_BETTER if SECOND in outcome else PRACTICALLY_EQUAL


def event_names(objectives: Sequence[str]) -> list[str]:
    """Return the names of all events, mixed ones last."""
    outcomes = product(range(3), repeat=len(objectives))
    names = [_event_name(outcome, objectives) for outcome in outcomes]
    return list(dict.fromkeys([A_BETTER, B_BETTER, PRACTICALLY_EQUAL, *names]))


def compare(
    first: Floats,
    second: Floats,
    objectives: Sequence[Objective],
    rope: Sequence[float] | Floats,
    counts: Floats | None = None,
) -> Comparison:
    """Compare two algorithms by draws of their confusion tables.

    Parameters
    ----------
    first, second : (T, G, 4) draws of the tables of A and of B; paired draws give a paired
        comparison.
    objectives : the m objectives, all of counts.
    rope : m half-widths of the regions of practical equivalence; 0 and infinity are allowed.
    counts : (2, G, 4) what A and B counted: a group without a rate there, which draws have by the
        prior alone, is left out of a gap.

    Raises
    ------
    UserError : as in :meth:`Comparison.of`.

    Notes
    -----
    Barrainkua et al., AISTATS 2024, section 5. Fairness gaps enter with a minus sign.
    """
    names = tuple(objective.metric.name for objective in objectives)
    leads = []
    for objective in objectives:
        tables = [first, second]
        if counts is not None and objective.metric.interval == "widest":
            has_rates = np.all(objective.having(counts), axis=0)
            if 1 < has_rates.sum() < has_rates.size:
                tables = [drawn[..., has_rates, :] for drawn in tables]
        leads.append(objective(tables[0]) - objective(tables[1]))
    return Comparison.of(leads, names, rope)


def lead_of_values(
    values: Floats, goal: Objective, test_share: float, student: repeats.StudentDraws
) -> Floats:
    """Return draws (T,) of how far A is ahead of B in a metric that has one value in a split.

    Parameters
    ----------
    values : (J, 2) both algorithms' values in J splits, 2 at least.
    test_share : the share of the rows that a split tests.
    student : draws made by :func:`fairbench.inference.repeats.student_draws` for J splits.

    Notes
    -----
    The posterior is the Bayesian correlated t-test's (Benavoli et al. 2017, JMLR 18, equation 6).
    """
    drawn = repeats.posterior_draws(values, test_share, student)
    first, second = goal.metric.larger_is_better(drawn).T
    return np.asarray(first - second)


_GRID = 256
_PADDING = 4.0  # standard deviations of the kernel left free around the draws


@dataclass(frozen=True, eq=False)
class Density:
    """A density of two differences on a grid, and the threshold of its region.

    Attributes
    ----------
    x, y : (X,) and (Y,) the coordinates of the grid.
    values : (X, Y) the density there.
    threshold : the density at the border of the highest-density region.
    """

    x: Floats
    y: Floats
    values: Floats
    threshold: float

    def holds(self, points: Floats) -> NDArray[np.bool_]:
        """Return which of (N, 2) points lie in the region."""
        low = np.array([self.x[0], self.y[0]])
        position = (points - low) / [self.x[1] - self.x[0], self.y[1] - self.y[0]]
        on_grid = ((position >= 0) & (position <= _GRID - 1)).all(axis=1)
        position = np.where(on_grid[:, None], position, 0)
        indices, weights = _corners(position)
        density = (self.values.ravel()[indices] * weights).sum(axis=0)
        return on_grid & (density >= self.threshold)


@dataclass(frozen=True, eq=False)
class Region:
    """A region that holds a share of the draws.

    Attributes
    ----------
    inside : (T,) whether a draw lies in the region.
    size : length, area or volume, in the units of the draws; 0 where a dimension does not vary.
    bounds : (m, 2) smallest and largest coordinates of the draws inside.
    density : the density on a grid, for two dimensions that both vary; otherwise None.
    """

    inside: NDArray[np.bool_]
    size: float
    bounds: Floats
    density: Density | None = None


def highest_density_region(draws: Floats, level: float = 0.95) -> Region:
    """Return the highest-density region of (T, m) draws.

    Notes
    -----
    The threshold is the (1 - level) quantile of the density at the draws themselves (Hyndman
    1996), so that smoothing, which keeps a region's shape, does not enlarge it. Dimensions that
    do not vary are left out of the density, and make the size 0.
    """
    varies = np.ptp(draws, axis=0) > 0
    varying = draws[:, varies]
    dimensions = int(varies.sum())
    density = None
    if dimensions == 0:
        is_inside, size = np.ones(len(draws), bool), 0.0
    elif dimensions == 1:
        is_inside, size = _shortest_interval(varying[:, 0], level)
    elif dimensions == 2:
        is_inside, size, density = _planar_region(varying, level)
    else:
        is_inside, size = _neighbour_region(varying, level)
    inside = draws[is_inside]
    bounds = np.stack([inside.min(axis=0), inside.max(axis=0)], axis=1)
    return (
        Region(is_inside, size, bounds, density) if varies.all() else Region(is_inside, 0.0, bounds)
    )


# Regions of each number of dimensions: which draws (T,) lie in it, and its length, area or volume.


def _shortest_interval(draws: Floats, level: float) -> tuple[NDArray[np.bool_], float]:
    """Return the shortest interval that holds `level` of the draws (T,)."""
    ordered = np.sort(draws)
    n_inside = int(np.ceil(level * len(draws)))
    widths = ordered[n_inside - 1 :] - ordered[: len(draws) - n_inside + 1]
    start = int(widths.argmin())
    low, high = ordered[start], ordered[start + n_inside - 1]
    return (draws >= low) & (draws <= high), float(high - low)


def _planar_region(draws: Floats, level: float) -> tuple[NDArray[np.bool_], float, Density]:
    """Return the highest-density region of draws (T, 2) by a kernel density on a grid.

    Notes
    -----
    Scott's bandwidth is the standard deviation times T^(-1/6). Draws are divided between the four
    grid points around each (linear binning) and convolved with the kernel by Fourier transforms.
    """
    bandwidth = np.cov(draws, rowvar=False) * len(draws) ** (-1 / 3)  # Scott's factor, squared
    pad = _PADDING * np.sqrt(np.diag(bandwidth))
    low, high = draws.min(axis=0) - pad, draws.max(axis=0) + pad
    step = (high - low) / (_GRID - 1)
    position = (draws - low) / step
    indices, weights = _corners(position)
    # A kernel narrower than the grid, of two almost equal objectives, would ring.
    covariance = bandwidth / np.outer(step, step) + 2 * np.eye(2)
    counts: Floats = np.bincount(indices.ravel(), weights.ravel(), _GRID**2).astype(np.float64)
    values = _smooth(counts.reshape(_GRID, _GRID), covariance)
    at_draws = (values.ravel()[indices] * weights).sum(axis=0)
    threshold = float(np.quantile(at_draws, 1 - level))
    area = float((values >= threshold).sum() * step.prod())
    values /= len(draws) * step.prod()
    x, y = (low[i] + step[i] * np.arange(_GRID) for i in range(2))
    density = Density(x, y, values, threshold / (len(draws) * float(step.prod())))
    return at_draws >= threshold, area, density


def _corners(position: Floats) -> tuple[NDArray[np.intp], Floats]:
    """Return flat indices and bilinear weights (4, T) of the grid points around positions."""
    corner = np.minimum(position.astype(np.intp), _GRID - 2)
    i = corner[:, 0] * _GRID + corner[:, 1]
    fx, fy = (position - corner).T
    weights = np.stack([(1 - fx) * (1 - fy), (1 - fx) * fy, fx * (1 - fy), fx * fy])
    return np.stack([i, i + 1, i + _GRID, i + _GRID + 1]), weights


def _smooth(counts: Floats, covariance: Floats) -> Floats:
    """Convolve counts (X, Y) with a normal kernel whose covariance is in grid steps."""
    u = 2 * pi * np.fft.fftfreq(_GRID)[:, None]
    v = 2 * pi * np.fft.rfftfreq(_GRID)
    exponent = covariance[0, 0] * u**2 + 2 * covariance[0, 1] * u * v + covariance[1, 1] * v**2
    return np.fft.irfft2(np.fft.rfft2(counts) * np.exp(-exponent / 2), s=counts.shape)


def _neighbour_region(draws: Floats, level: float) -> tuple[NDArray[np.bool_], float]:
    """Return the highest-density region of draws (T, m) by k-th-neighbour distance.

    Notes
    -----
    The draws are whitened. The density at a draw is the higher, the nearer its k-th
    neighbour is, with k about sqrt(T) / 2; the region holds the `level` nearest.
    """
    from scipy.spatial import cKDTree

    total = len(draws)
    k = max(round(np.sqrt(total) / 2), 1)
    # The nudge keeps the factor finite where two objectives are almost the same.
    factor = np.linalg.cholesky(np.cov(draws, rowvar=False) + 1e-12 * np.diag(draws.var(axis=0)))
    white = np.linalg.solve(factor, draws.T).T
    tree = cKDTree(white)
    distance = tree.query(white, [k + 1])[0][:, 0]  # the first neighbour of a draw is itself
    radius = float(np.quantile(distance, level))
    inside = distance <= radius

    low, high = white[inside].min(axis=0) - radius, white[inside].max(axis=0) + radius
    # The share of the box that the region fills, by evenly spread points.
    reach = tree.query(low + (high - low) * even_points(total, len(low)), [k])[0][:, 0]
    filled = float((reach <= radius).mean())
    box_volume = float((high - low).prod() * np.diag(factor).prod())
    return inside, filled * box_volume
