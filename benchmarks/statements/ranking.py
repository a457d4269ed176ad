"""Populations of audits of rankings, of one list or of many."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.statements.simulate import Population, Sample
from benchmarks.statements.truth import Question, Truth
from benchmarks.statements.two_classes import PATH, names
from fairbench.audits.findings import SHARE, Finding
from fairbench.audits.gaps import Gap
from fairbench.audits.kinds import ranking
from fairbench.audits.question import Options
from fairbench.core.arrays import Floats
from fairbench.evaluation.ranking_shares import shares_of_places
from fairbench.inference.exposure import exposure_weights, top_weights

Codes = NDArray[np.intp]
_PLACES = 400_000  # that the truth is counted in, where groups differ


@dataclass(frozen=True, eq=False)
class Ranked:
    """People who are ranked.

    Attributes
    ----------
    shares : (G,) of the people; of lists, their mean. shift : (G,) of the scores.
    size, lists : how many are in a list, and how many lists there are; one of no lists.
    mixed : how much groups' shares differ from list to list: 1 over Dirichlet's concentration.
    digits : of the scores, so that some tie.
    """

    shares: Floats
    shift: Floats
    size: int
    lists: int = 1
    top: float = 10
    mixed: float = 0.0
    digits: int = 9

    @classmethod
    def of(cls, groups: int, size: int, *, shift: float = 0.0, rare: float = 0.0) -> Ranked:
        """Return people in groups of which the last scores lower, and may be rare."""
        shares = np.full(groups, 1 / groups)
        if rare:
            shares = np.r_[np.full(groups - 1, (1 - rare) / (groups - 1)), rare]
        return cls(shares, np.where(np.arange(groups) == groups - 1, -shift, 0.0), size)

    def rows(self, lists: int, generator: np.random.Generator) -> tuple[Floats, Codes, Codes]:
        """Draw scores, groups and lists."""
        of = np.repeat(np.arange(lists), self.size)
        shares = np.tile(self.shares, (lists, 1))
        if self.mixed:
            shares = generator.dirichlet(self.shares / self.mixed, lists)
        edges = np.cumsum(shares, axis=1)[of, :-1]
        group = (generator.random(len(of))[:, None] > edges).sum(axis=1)
        score = generator.standard_normal(len(of)) + self.shift[group]
        return np.round(score, self.digits), group.astype(np.intp), of

    def truth(self) -> Truth:
        """Return what groups get of the places over their shares: 1 of all where they are alike."""
        first = ranking.first_places(self.top, of_each=self.lists > 1)
        kinds = {f"the {first}": "top", "the exposure": "exposure"}
        groups = len(self.shares)
        values: dict[Question, Mapping[str, float]] = {}
        ratios = {kind: np.ones(groups) for kind in kinds.values()}
        if self.shift.any():
            lists = max(1, _PLACES // self.size)
            score, group, of = self.rows(lists, np.random.default_rng(3))
            for kind, weight in (
                ("top", top_weights(score, of, self.top)),
                ("exposure", exposure_weights(score, of)),
            ):
                share = np.bincount(group, weight, groups) / weight.sum()
                ratios[kind] = share / (np.bincount(group, minlength=groups) / len(group))
        for measure, kind in kinds.items():
            values[SHARE, "sex", measure, ""] = dict(
                zip(names(groups), ratios[kind].tolist(), strict=True)
            )
        return Truth(values, error=0.02 if self.shift.any() else 0.0)


def drawn(people: Ranked, generator: np.random.Generator) -> Sample:
    """Draw a ranking."""
    score, group, of = people.rows(people.lists, generator)
    groups = len(people.shares)
    options = Options(
        path=PATH,
        group=("sex",),
        score="score",
        top=float(people.top),
        lists="list" if people.lists > 1 else "",
    )

    def findings() -> tuple[Sequence[Finding], Sequence[Gap]]:
        size = np.bincount(group, minlength=groups)
        order = np.argsort(-size, kind="stable")
        order = order[size[order] > 0]
        place = np.zeros(groups, np.intp)
        place[order] = np.arange(len(order))
        named = [names(groups)[g] for g in order]
        single = pd.Series(pd.Categorical.from_codes(place[group], named))
        lists = of if people.lists > 1 else None
        first = ranking.first_places(people.top, of_each=people.lists > 1)
        shares = shares_of_places(score, {"sex": single}, lists, people.top)
        return ranking.findings_of(shares, first), []

    def frame() -> pd.DataFrame:
        return pd.DataFrame(
            {
                "sex": np.array(names(groups), dtype=object)[group],
                "score": score,
                "list": [f"L{which}" for which in of],
            }
        )

    return Sample(options, findings, frame)


def populations() -> Iterator[Population]:
    """Yield the populations: rankings without and with a shift, of one list and of many."""

    def of(name: str, people: Ranked, *, short: bool = False) -> Population:
        return Population("ranking", name, partial(drawn, people), people.truth, short)

    for groups, size in ((2, 100), (2, 2000), (10, 300), (10, 3000)):
        alike = Ranked.of(groups, size)
        yield of(f"{groups} alike, {size:,} rows", alike, short=size in (100, 300))
    rare = Ranked.of(3, 500, rare=0.03)
    yield of("3 alike, one of 3 %, 500 rows", rare)
    yield of("3 alike, first tenth of 500 rows", replace(Ranked.of(3, 500), top=0.1))
    yield of("3 alike, scores that tie, 500 rows", replace(Ranked.of(3, 500), digits=0))
    for lists in (3, 5, 10, 30, 200):
        few = replace(Ranked.of(3, 10), lists=lists, top=3)
        yield of(f"3 alike, {lists} lists of 10", few, short=lists in (5, 30))
        yield of(f"3 alike, {lists} lists of 10, mixed otherwise", replace(few, mixed=0.5))
    yield of("3 alike, one of 3 %, 30 lists of 10", replace(rare, size=10, lists=30, top=3))
    yield of("10 alike, 20 lists of 50", replace(Ranked.of(10, 50), lists=20))
    apart = Ranked.of(3, 1000, shift=0.8)
    yield of("1 of 3 behind, 1,000 rows", replace(apart, top=0.1), short=True)
    yield of("1 of 3 behind, 100 lists of 20", replace(apart, size=20, lists=100, top=5))
