"""People of whom two classes are predicted: cells of them, samples, and what is true of groups."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import special

from fairbench.audits.direction import Direction
from fairbench.audits.table import AuditTable
from fairbench.core.arrays import Floats
from fairbench.data.dataset import combine
from fairbench.data.groups import group_columns
from fairbench.metrics.rates import Rate

Codes = NDArray[np.int64]
POINTS = 1000  # equally likely scores of a cell, so that every truth is a sum
THRESHOLD = 0.5


@dataclass(frozen=True, eq=False)
class Cell:
    """People of whom everything is alike but their score, (K,) points that are equally likely.

    Attributes
    ----------
    score : of the classifier. chance : of label 1.
    other : of another classifier. selected : how often somebody of such a score is selected.
    """

    score: Floats
    chance: Floats
    other: Floats
    selected: Floats

    @classmethod
    def of(
        cls,
        *,
        mean: float = 0.5,
        spread: float = 2.0,
        slope: float = 1.0,
        shift: float = 0.0,
        digits: int = 9,
        noise: float = 0.0,
        other_shift: float = 0.0,
    ) -> Cell:
        """Return people whose scores are Beta's, and whose labels' log odds are linear in theirs.

        Parameters
        ----------
        mean, spread : of the scores: Beta(mean * spread, (1 - mean) * spread).
        slope, shift : of the log odds of label 1, on those of the score.
        digits : of the scores as they are known.
        noise, other_shift : what the other classifier's log odds are off by: at random, and always.
        """
        grid = (np.arange(POINTS) + 0.5) / POINTS
        score = np.clip(special.betaincinv(mean * spread, (1 - mean) * spread, grid), 1e-6, None)
        score = np.minimum(score, 1 - 1e-6)
        odds = special.logit(score)
        # Quantiles of a normal, in an order that has nothing to do with that of the scores.
        turn = np.random.default_rng(11).permutation(POINTS)
        other = special.expit(odds + noise * special.ndtri(grid)[turn] + other_shift)
        return cls(
            np.round(score, digits),
            special.expit(slope * odds + shift),
            np.round(other, digits),
            special.expit(2 * odds + 0.5),
        )

    @classmethod
    def of_rates(cls, base: float, positives: float, negatives: float) -> Cell:
        """Return people of two scores, with a base rate, and true and false positive rates."""
        shares = np.array([(1 - base) * negatives, base * positives])
        among = shares.sum()
        high = round(POINTS * among)
        score = np.r_[np.full(high, 0.75), np.full(POINTS - high, 0.25)]
        chance = np.r_[
            np.full(high, shares[1] / among),
            np.full(POINTS - high, base * (1 - positives) / (1 - among)),
        ]
        return cls(score, chance, score, np.ones(POINTS))

    def moved(self, excess: float) -> Cell:
        """Return the same people with scores that are higher by so much than they should be."""
        score = np.clip(self.score + excess, 0, 1)
        return replace(self, score=score)

    def counts(self, score: Floats, among: Floats) -> Floats:
        """Return the probabilities of TN, FP, FN and TP of people who are counted so often."""
        decided = score > THRESHOLD
        parts = [
            (each * mine * among).mean()
            for each in (1 - self.chance, self.chance)
            for mine in (~decided, decided)
        ]
        return np.array(parts)


@dataclass(frozen=True, eq=False)
class People:
    """Cells of people by their groups.

    Attributes
    ----------
    groups : attribute -> the names of its groups. cells : a cell for each combination.
    shares : (N,) of the people, by combination.
    """

    groups: Mapping[str, Sequence[str]]
    cells: Sequence[Cell]
    shares: Floats

    @classmethod
    def of(
        cls,
        groups: Mapping[str, Sequence[str]],
        cell: Callable[[tuple[int, ...]], Cell],
        shares: Sequence[float] = (),
    ) -> People:
        """Return people whose cell is a function of the positions of their groups."""
        places = list(product(*(range(len(names)) for names in groups.values())))
        weights = np.array(shares or [1.0] * len(places))
        return cls(groups, [cell(place) for place in places], weights / weights.sum())

    @property
    def attributes(self) -> list[tuple[str, ...]]:
        """The attributes, and their pairs, whose groups an audit compares."""
        names = list(self.groups)
        return [(name,) for name in names] + list(combinations(names, 2))

    def members(self, attributes: Sequence[str]) -> Mapping[str, NDArray[np.bool_]]:
        """Return which cells (N,) make up each group of some attributes' combinations."""
        places = list(product(*(range(len(names)) for names in self.groups.values())))
        at = [list(self.groups).index(name) for name in attributes]
        names = [self.groups[name] for name in attributes]
        return {
            " x ".join(names[i][place] for i, place in enumerate(which)): np.array(
                [all(place[a] == w for a, w in zip(at, which, strict=True)) for place in places]
            )
            for which in product(*(range(len(name)) for name in names))
        }

    def of_groups(
        self, attributes: Sequence[str], value: Callable[[Cell], Floats]
    ) -> Mapping[str, Floats]:
        """Return of each group what is linear in people, such as their counts."""
        values = np.array([value(cell) for cell in self.cells])
        return {
            name: np.einsum("n,n...->...", self.shares * inside, values)
            / (self.shares * inside).sum()
            for name, inside in self.members(attributes).items()
        }

    def rates(
        self,
        attributes: Sequence[str],
        rate: Rate,
        *,
        other: bool = False,
        selected: bool = False,
    ) -> dict[str, float]:
        """Return a rate of each group.

        Parameters
        ----------
        other : of the other classifier. selected : of those who are selected.
        """

        def counts(cell: Cell) -> Floats:
            among = cell.selected if selected else np.ones(len(cell.score))
            return cell.counts(cell.other if other else cell.score, among)

        return {
            name: float(rate(value)) for name, value in self.of_groups(attributes, counts).items()
        }

    def draw(self, rows: int, generator: np.random.Generator) -> Rows:
        """Draw people at random."""
        cell = generator.choice(len(self.cells), rows, p=self.shares)
        return self._drawn(cell, generator)

    def draw_clusters(
        self, clusters: int, size: int, generator: np.random.Generator
    ) -> tuple[Rows, Codes]:
        """Draw clusters of so many people who are alike in everything, and which is whose."""
        of = np.repeat(np.arange(clusters), size)
        first = self.draw(clusters, generator)
        return first.take(of), of

    def _drawn(self, cell: Codes, generator: np.random.Generator) -> Rows:
        point = generator.integers(0, POINTS, len(cell))
        column = {
            name: np.stack([getattr(each, name) for each in self.cells])[cell, point]
            for name in ("score", "other", "chance", "selected")
        }
        draws = generator.random((2, len(cell)))
        return Rows(
            self.groups,
            np.stack(np.unravel_index(cell, [len(group) for group in self.groups.values()])),
            column["score"],
            column["other"],
            (draws[0] < column["chance"]).astype(float),
            draws[1] < column["selected"],
        )


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a sample.

    Attributes
    ----------
    groups : attribute -> names. codes : (A, n) the group of each row.
    score, other : (n,) of two classifiers. label : (n,) NaN where unknown. selected : (n,).
    """

    groups: Mapping[str, Sequence[str]]
    codes: NDArray[np.intp]
    score: Floats
    other: Floats
    label: Floats
    selected: NDArray[np.bool_]

    def take(self, rows: Codes) -> Rows:
        """Return some rows, each as often as it is named."""
        return replace(
            self,
            codes=self.codes[:, rows],
            score=self.score[rows],
            other=self.other[rows],
            label=self.label[rows],
            selected=self.selected[rows],
        )

    def with_labels(self, known: NDArray[np.bool_]) -> Rows:
        """Return the same of which only some labels are known."""
        return replace(self, label=np.where(known, self.label, np.nan))

    def columns(self) -> pd.DataFrame:
        """Return the groups as categories, the largest first, as they are read from a file."""
        columns = {}
        for (name, names), codes in zip(self.groups.items(), self.codes, strict=True):
            size = np.bincount(codes, minlength=len(names))
            order = np.argsort(-size, kind="stable")
            order = order[size[order] > 0]
            place = np.zeros(len(names), np.intp)
            place[order] = np.arange(len(order))
            columns[name] = pd.Categorical.from_codes(place[codes], [names[g] for g in order])
        return pd.DataFrame(columns, copy=False)

    def table(self, *, score: Floats | None = None, many: bool = False) -> AuditTable:
        """Return the table that an audit would read.

        Parameters
        ----------
        score : instead of the first classifier's.
        many : its groups are estimated together.
        """
        singles = self.columns()
        first = {name: str(singles[name].cat.categories[0]) for name in singles}
        shown = self.score if score is None else score
        return AuditTable(
            shown,
            (shown > THRESHOLD).astype(np.int64),
            self.label,
            {} if many else group_columns(singles, first, 2),
            combine([singles[name] for name in singles]),
            Direction(("0", "1")),
        )

    def frame(self) -> pd.DataFrame:
        """Return the table as somebody would bring it."""
        label = pd.Series(self.label).map({0.0: "0", 1.0: "1"}).fillna("").astype(str)
        columns = {
            name: np.array(names, dtype=object)[codes]
            for (name, names), codes in zip(self.groups.items(), self.codes, strict=True)
        }
        return pd.DataFrame(
            {
                **columns,
                "label": label.to_numpy(),
                "score": self.score,
                "other": self.other,
                "selected": np.where(self.selected, "true", "false"),
                "decision": np.where(self.score > THRESHOLD, "1", "0"),
            }
        )
