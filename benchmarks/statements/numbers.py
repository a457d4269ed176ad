"""Populations of audits of predicted numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd
from scipy import special, stats

from benchmarks.statements.simulate import Population, Sample
from benchmarks.statements.truth import EPSILON, Question, Truth
from benchmarks.statements.two_classes import DOZEN, PATH, names
from fairbench.audits.findings import GAP, Finding
from fairbench.audits.gaps import Gap
from fairbench.audits.kinds import numbers
from fairbench.audits.question import Options
from fairbench.core.arrays import Floats
from fairbench.data.dataset import Task
from fairbench.data.groups import group_columns
from fairbench.evaluation.predictions import Labelled
from fairbench.metrics.registry import label

_GRID = 2_000_000  # quantiles of an error, of which its means are taken
_EXACT = 0.8  # share of the predictions that are exact, in one of the shapes
_CONTAMINATED, _FACTOR = 0.02, 10.0


def quantiles(shape: str, grid: Floats) -> Floats:
    """Return quantiles of errors of mean 0."""
    if shape == "normal":
        return np.asarray(special.ndtri(grid))
    if shape.startswith("lognormal"):
        sigma = float(shape.split()[1])
        return np.asarray(np.exp(sigma * special.ndtri(grid)) - np.exp(sigma**2 / 2))
    if shape.startswith("t"):
        return np.asarray(stats.t.ppf(grid, float(shape.split()[1])))
    # A mixture is drawn by which part the first digits of the grid fall in.
    tail = _CONTAMINATED if shape == "contaminated" else 1 - _EXACT
    inside = grid < tail
    within = np.where(inside, grid / tail, (grid - tail) / (1 - tail))
    spread = np.where(inside, _FACTOR, 1.0) if shape == "contaminated" else inside
    return np.asarray(spread * special.ndtri(np.clip(within, 1e-12, 1 - 1e-12)))


@dataclass(frozen=True, eq=False)
class Predicted:
    """People of whom a number is predicted.

    Attributes
    ----------
    shape : of the errors. shares : (G,) of the people.
    level, bias, scale : (G,) of each group: mean prediction, mean error, and what errors are
        multiplied by.
    reach : (G,) how far bounds of a prediction go to either side; nothing without bounds.
    """

    shape: str
    rows: int
    shares: Floats
    level: Floats
    bias: Floats
    scale: Floats
    reach: Floats | None = None

    @classmethod
    def of(
        cls,
        shape: str,
        rows: int,
        groups: int = 2,
        *,
        shares: Sequence[float] = (),
        level: float = 0.0,
        bias: float = 0.0,
        scale: float = 1.0,
        reach: float = 0.0,
    ) -> Predicted:
        """Return groups of which the last may have another mean prediction, error, or scale."""
        weights = np.array(shares or [1.0] * groups)
        last = np.arange(groups) == groups - 1
        return cls(
            shape,
            rows,
            weights / weights.sum(),
            np.where(last, level, 0.0),
            np.where(last, bias, 0.0),
            np.where(last, scale, 1.0),
            np.full(groups, reach) if reach else None,
        )

    @property
    def unit(self) -> float:
        """The standard deviation of the targets, about, of which epsilon is a share."""
        errors = quantiles(self.shape, (np.arange(100_000) + 0.5) / 100_000)
        return float(np.sqrt(1 + errors.var()))

    def truth(self) -> Truth:
        """Return means of predictions, of errors and of their sizes, and coverage."""
        errors = quantiles(self.shape, (np.arange(_GRID) + 0.5) / _GRID)
        errors = errors - errors.mean()
        own = [bias + scale * errors for bias, scale in zip(self.bias, self.scale, strict=True)]
        measures = {
            "mean_prediction": self.level.tolist(),
            "mean_residual": self.bias.tolist(),
            "mae": [float(np.abs(each).mean()) for each in own],
        }
        if self.reach is not None:
            measures[numbers.COVERAGE] = [
                float((np.abs(each) <= reach).mean())
                for each, reach in zip(own, self.reach, strict=True)
            ]
        values: dict[Question, Mapping[str, float]] = {
            (GAP, "sex", label(measure), ""): dict(
                zip(names(len(self.shares)), column, strict=True)
            )
            for measure, column in measures.items()
        }
        bounds = {
            label(measure): EPSILON * (1 if measure == numbers.COVERAGE else self.unit)
            for measure in measures
        }
        return Truth(values, error=1e-4 * float(np.abs(errors).mean()), bounds=bounds)


def drawn(people: Predicted, generator: np.random.Generator) -> Sample:
    """Draw a sample of predictions."""
    groups = len(people.shares)
    group = generator.choice(groups, people.rows, p=people.shares)
    prediction = people.level[group] + generator.standard_normal(people.rows)
    error = quantiles(people.shape, generator.random(people.rows))
    target = prediction + people.bias[group] + people.scale[group] * error
    bounds = None
    if people.reach is not None:
        bounds = prediction - people.reach[group], prediction + people.reach[group]
    options = Options(
        path=PATH,
        group=("sex",),
        target="target",
        prediction="prediction",
        bounds=("lower", "upper") if bounds else (),
    )

    def findings() -> tuple[Sequence[Finding], Sequence[Gap]]:
        size = np.bincount(group, minlength=groups)
        order = np.argsort(-size, kind="stable")
        order = order[size[order] > 0]
        place = np.zeros(groups, np.int64)
        place[order] = np.arange(len(order))
        named = [names(groups)[g] for g in order]
        single = pd.DataFrame({"sex": pd.Categorical.from_codes(place[group], named)})
        columns = {"prediction": prediction}
        if bounds is not None:
            columns |= {"lower_90": bounds[0], "upper_90": bounds[1]}
        by_sex = group_columns(single, {"sex": named[0]}, 2)
        data = Labelled(target, pd.DataFrame(columns), by_sex, Task.REGRESSION)
        return numbers.gap_findings(data, options), []

    def frame() -> pd.DataFrame:
        columns = {
            "sex": np.array(names(groups), dtype=object)[group],
            "target": target,
            "prediction": prediction,
        }
        if bounds is not None:
            columns |= {"lower": bounds[0], "upper": bounds[1]}
        return pd.DataFrame(columns)

    return Sample(options, findings, frame)


def populations() -> Iterator[Population]:
    """Yield the populations: errors of several shapes, alike in all groups or not."""

    def of(name: str, people: Predicted, *, short: bool = False) -> Population:
        return Population("numbers", name, partial(drawn, people), people.truth, short)

    shapes = ("normal", "lognormal 1.0", "lognormal 1.5", "t 2.5", "contaminated", "mostly exact")
    for shape in shapes:
        for rows in (100, 1000):
            yield of(
                f"2 alike, {shape}, {rows:,} rows",
                Predicted.of(shape, rows, reach=1.5),
                short=rows == 100 and shape in ("normal", "lognormal 1.5"),
            )
    for shape in ("normal", "lognormal 1.5", "t 2.5"):
        yield of(f"10 alike, {shape}, 1,000 rows", Predicted.of(shape, 1000, 10, reach=1.5))
        yield of(
            f"2 alike, {shape}, 20,000 rows",
            Predicted.of(shape, 20_000, reach=1.5),
        )
        unequal = Predicted.of(shape, 1000, shares=(0.95, 0.05), reach=1.5)
        yield of(f"2 alike, one of 5 %, {shape}, 1,000 rows", unequal)
        apart = Predicted.of(shape, 1000, bias=-0.3, scale=1.4, reach=1.5)
        yield of(f"2 apart, {shape}, 1,000 rows", apart, short=shape == "normal")
        small = Predicted.of(shape, 1000, shares=(0.95, 0.05), level=0.2, bias=0.15, scale=1.2)
        yield of(f"2 apart, one of 5 %, {shape}, 1,000 rows", small)
    several = Predicted.of("normal", 20_000, 30, reach=1.5)
    yield of("30 alike, normal, 20,000 rows", several)
    at = Predicted.of("normal", 20_000, level=EPSILON * float(np.sqrt(2)))
    yield of("2 at epsilon, normal, 20,000 rows", at)
    dozen = Predicted.of("normal", 6000, 3, shares=DOZEN, level=0.6, bias=0.6, reach=1.5)
    yield of("2 alike, a dozen apart, normal, 6,000 rows", dozen, short=True)
