"""How often the labels that a page plans settle its question: ``python -m benchmarks.plans 100``.

The true gaps of the populations are those that a plan names: none, or one of twice the tolerance.
Of every page, each number is followed whose supposition is true: so many more rows are drawn from
the same population, or labels of the same rows, and the question is asked anew. It is to be settled
rightly in 75 to 88 % of cases; where several groups could show the gap and the plan is for two, in
up to 95 %. The argument is the number of pages of each population.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from benchmarks.measure import command, exact_interval, show
from benchmarks.statements.simulate import EPSILON
from benchmarks.statements.two_classes import Cell, People, Rows, several
from fairbench.audits.direction import RATE_OF
from fairbench.audits.gaps import Gap, gaps_of
from fairbench.audits.labels_needed import ALIKE, with_needed
from fairbench.evaluation.evaluator import Evaluator
from fairbench.evaluation.findings import LARGE, SMALL, risk_of
from fairbench.evaluation.some_labels import SomeLabels

LEAST, MOST, MOST_OF_SEVERAL = 0.75, 0.88, 0.95
CERTAINTY = 0.999  # of the interval of a share
_SAME = 2e-3  # gaps of populations are named ones up to this, as their scores are steps
HEADER = ("population", "questions", "planned", "settled", "of these", "interval", "fewest settled")


@dataclass(frozen=True, eq=False)
class Planned:
    """A population, and the size of its pages.

    Attributes
    ----------
    rows : of a page, of which `labels` have a label; all where that is 0.
    """

    name: str
    people: People
    rows: int
    labels: int = 0

    def drawn(self, generator: np.random.Generator) -> Rows:
        """Draw the rows of a page, and those that may follow; all have labels."""
        return self.people.draw(self.rows if self.labels else 2 * self.rows, generator)

    def seen(self, drawn: Rows, more: int = 0) -> SomeLabels:
        """Return what a page rests on, with so many more rows, or labels of the same rows."""
        if self.labels:
            known = np.arange(self.rows) < self.labels + more
            return drawn.with_labels(known).table().as_chosen
        return drawn.take(np.arange(self.rows + more)).table().as_chosen

    def names(self, supposed: str, gap: Gap) -> str:
        """Return the right verdict where what is supposed is true; otherwise an empty text."""
        attributes = tuple(gap.attribute.split(" x "))
        rates = self.people.rates(attributes, RATE_OF[gap.metric])
        if supposed == ALIKE:
            return SMALL if max(rates.values()) - min(rates.values()) < _SAME else ""
        groups, size = supposed.rsplit(" differ by ", 1)
        first, second = groups.split(" and ")
        return LARGE if abs(abs(rates[first] - rates[second]) - float(size)) < _SAME else ""


@dataclass
class Study:
    """What came of following plans: questions that a plan names rightly, and that were settled.

    Attributes
    ----------
    questions : open ones of which what a plan supposes is true. planned : those with a number.
    settled : those that this number settled rightly.
    fewest, fewest_settled : pages with such a number, and those whose smallest one settled it.
    """

    questions: int = 0
    planned: int = 0
    settled: int = 0
    fewest: int = 0
    fewest_settled: int = 0

    @property
    def interval(self) -> tuple[float, float]:
        """The exact interval of the share that is settled."""
        return exact_interval(self.settled, self.planned, CERTAINTY)


def populations() -> Iterator[Planned]:
    """Yield populations of few and several groups, alike and unequal, by rows and by labels."""

    def unequal(higher: float) -> list[Cell]:
        return [Cell.of_rates(0.5, higher, 0.2), Cell.of_rates(0.5, 0.7, 0.2)]

    def everyone_alike(_: tuple[int, ...]) -> Cell:
        return Cell.of(mean=0.25, spread=0.8)

    three = {"sex": ["A", "B"], "race": ["C", "D"], "age": ["E", "F"]}
    adult = {"sex": ["M", "F"], "race": ["W", "B", "A", "I", "O"]}
    shares = [sex * race for sex in (0.67, 0.33) for race in (0.85, 0.1, 0.03, 0.01, 0.01)]
    rare = Cell.of(mean=0.1, spread=0.8)
    yield Planned("2 alike, 4,000 rows", several([Cell.of()] * 2), 4000)
    yield Planned("2 apart, 5,000 rows", several(unequal(0.8)), 5000)
    yield Planned("2 alike, 10:1, 7,000 rows", several([Cell.of(mean=0.2)] * 2, (10, 1)), 7000)
    yield Planned("2 apart, 10:1, 16,000 rows", several(unequal(0.8), (10, 1)), 16000)
    yield Planned("2 apart, 1:10, 16,000 rows", several(unequal(0.8), (1, 10)), 16000)
    people = People.of(three, lambda _: Cell.of(mean=0.3))
    yield Planned("3 attributes alike, 9,000 rows", people, 9000)
    yield Planned("5 alike, 3,000 rows", several([rare] * 5), 3000)
    apart = several([unequal(0.8)[0]] * 4 + [unequal(0.8)[1]])
    yield Planned("1 of 5 apart, 18,000 rows", apart, 18000)
    yield Planned("2 alike, 250 labels of 4,000", several([Cell.of(mean=0.2)] * 2), 4000, 250)
    yield Planned("2 alike, 10:1, 250 labels of 8,000", several([rare] * 2, (10, 1)), 8000, 250)
    yield Planned("2 apart, 250 labels of 8,000", several(unequal(0.8)), 8000, 250)
    yield Planned("2 far apart, 100 labels of 2,000", several(unequal(0.9)), 2000, 100)
    yield Planned("5 alike, 250 labels of 8,000", several([rare] * 5), 8000, 250)
    people = People.of(adult, everyone_alike, shares)
    yield Planned("Adult's groups alike, 250 labels of 4,000", people, 4000, 250)


def study(population: Planned, pages: int) -> Study:
    """Follow the plans of so many pages of a population."""
    generator, result = np.random.default_rng(0), Study()
    for _ in range(pages):
        drawn = population.drawn(generator)
        seen = population.seen(drawn)
        evaluator = Evaluator(epsilon=EPSILON)
        _, counts = seen.evaluate(evaluator, 0, counts_alone=True)
        risk = risk_of(len(counts) * len(RATE_OF))
        asked = partial(gaps_of, epsilon=EPSILON, risk=risk, assumed=False)
        asked = partial(asked, minimum=evaluator.minimum_group_size)
        gaps = with_needed(asked(counts), seen, counts, risk, 0)
        named = [
            (number, gap, verdict)
            for gap in gaps
            for supposed, number in gap.needed.items()
            if (verdict := population.names(supposed, gap))
        ]
        result.questions += len(named)
        followed: dict[int, bool] = {}
        for number, gap, verdict in named:
            if number is not None:
                after = population.seen(drawn, number)
                after = replace(after, groups={gap.attribute: after.groups[gap.attribute]})
                _, then = after.evaluate(evaluator, 0, counts_alone=True)
                (anew,) = asked(then, metrics=[gap.metric])
                result.planned += 1
                result.settled += anew.verdict == verdict
                followed.setdefault(number, anew.verdict == verdict)
        if followed:
            result.fewest += 1
            result.fewest_settled += followed[min(followed)]
    return result


def main(pages: int = 100) -> bool:
    """Print the table; return whether no population is surely outside of what is promised."""
    rows: list[list[str]] = []
    held = True
    for population in populations():
        result = study(population, pages)
        lower, upper = result.interval
        several_groups = max(map(len, population.people.groups.values())) > 2
        held &= upper >= LEAST and lower <= (MOST_OF_SEVERAL if several_groups else MOST)
        share = f"{result.settled / max(result.planned, 1):.3f}"
        interval = f"{lower:.3f}-{upper:.3f}"
        first = f"{result.fewest_settled} of {result.fewest}"
        numbers = (result.questions, result.planned, result.settled)
        rows.append([population.name, *map(str, numbers), share, interval, first])
        print("  ".join(rows[-1]), file=sys.stderr, flush=True)
    show(f"{pages} pages of each population", HEADER, rows)
    return held


if __name__ == "__main__":
    sys.exit(command(main, sys.argv[1:]))
