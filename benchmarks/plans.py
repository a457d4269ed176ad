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
from benchmarks.statements.kinds import DECLARED
from benchmarks.statements.simulate import EPSILON
from benchmarks.statements.two_classes import People, Rows
from fairbench.audits.direction import RATE_OF
from fairbench.audits.gaps import Gap, gaps_of
from fairbench.audits.labels_needed import ALIKE, with_needed
from fairbench.evaluation.evaluator import Evaluator
from fairbench.evaluation.findings import LARGE, SMALL, risk_of
from fairbench.evaluation.some_labels import SomeLabels

LEAST, MOST, MOST_OF_SEVERAL = 0.75, 0.88, 0.95
CERTAINTY = 0.999  # of the interval of a share
_SAME = 2e-3  # gaps of populations are named ones up to this, as their scores are steps
HEADER = ("population", "questions", "planned", "settled", "of these", "interval")


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


def populations() -> Iterator[Planned]:
    """Yield the populations: few and several groups, alike and unequal, by rows and by labels."""
    for name, given in DECLARED["plans"].items():
        people = People.of(given["cells"], given.get("groups"), given.get("shares", ()))
        yield Planned(name, people, given["rows"], given.get("labels", 0))


def study(population: Planned, pages: int) -> tuple[int, int, int]:
    """Follow the plans of so many pages of a population.

    Returns
    -------
    tuple of int
        Open questions of which what a plan supposes is true, those of them that it has a number
        for, and those that this number settles rightly.
    """
    generator = np.random.default_rng(0)
    questions = planned = settled = 0
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
        questions += len(named)
        for number, gap, verdict in named:
            if number is not None:
                after = population.seen(drawn, number)
                after = replace(after, groups={gap.attribute: after.groups[gap.attribute]})
                _, then = after.evaluate(evaluator, 0, counts_alone=True)
                (anew,) = asked(then, metrics=[gap.metric])
                planned += 1
                settled += anew.verdict == verdict
    return questions, planned, settled


def main(pages: int = 100) -> bool:
    """Print the table; return whether no population is surely outside of what is promised."""
    rows: list[list[str]] = []
    held = True
    for population in populations():
        questions, planned, settled = study(population, pages)
        lower, upper = exact_interval(settled, planned, CERTAINTY)
        several_groups = max(map(len, population.people.groups.values())) > 2
        held &= upper >= LEAST and lower <= (MOST_OF_SEVERAL if several_groups else MOST)
        share = f"{settled / max(planned, 1):.3f}"
        interval = f"{lower:.3f}-{upper:.3f}"
        numbers = map(str, (questions, planned, settled))
        rows.append([population.name, *numbers, share, interval])
        print("  ".join(rows[-1]), file=sys.stderr, flush=True)
    show(f"{pages} pages of each population", HEADER, rows)
    return held


if __name__ == "__main__":
    sys.exit(command(main, sys.argv[1:]))
