"""Populations of audits where nobody's group is known, only how probable each is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd

from benchmarks.statements.people import THRESHOLD, Cell
from benchmarks.statements.simulate import Population, Sample
from benchmarks.statements.truth import Question, Truth
from benchmarks.statements.two_classes import PATH
from fairbench.audits.columns import read_frame
from fairbench.audits.findings import GAP, Finding
from fairbench.audits.gaps import RATE_NAMES, RATE_OF, Gap
from fairbench.audits.kinds import unknown
from fairbench.audits.question import Options


@dataclass(frozen=True, eq=False)
class Guessed:
    """People whose group is one of two, known with a probability.

    Attributes
    ----------
    first, second : the people of either group, whatever its probability was.
    probability : values of that of the second group, equally frequent.
    """

    first: Cell
    second: Cell
    probability: Sequence[float]
    rows: int

    def truth(self) -> Truth:
        """Return the rates of either group."""
        values: dict[Question, Mapping[str, float]] = {}
        every = np.ones(len(self.first.score))
        for metric, rate in RATE_OF.items():
            values[GAP, "", RATE_NAMES[metric], unknown.WHOEVER] = {
                "not G1": float(rate(self.first.counts(self.first.score, every))),
                "G1": float(rate(self.second.counts(self.second.score, every))),
            }
        return Truth(values)


def drawn(people: Guessed, generator: np.random.Generator) -> Sample:
    """Draw people whose groups are not shown."""
    share = generator.choice(np.array(people.probability), people.rows)
    second = generator.random(people.rows) < share
    point = generator.integers(0, len(people.first.score), people.rows)
    score, chance = (
        np.where(second, getattr(people.second, name)[point], getattr(people.first, name)[point])
        for name in ("score", "chance")
    )
    label = (generator.random(people.rows) < chance).astype(int)
    options = Options(path=PATH, proxy=("G1",), target="label", score="score", threshold=THRESHOLD)

    def frame() -> pd.DataFrame:
        return pd.DataFrame({"G1": share, "label": label.astype(str), "score": score})

    def findings() -> tuple[Sequence[Finding], Sequence[Gap]]:
        table = read_frame(options, source=frame())
        return unknown.audit_proxy(options, table).findings, []

    return Sample(options, findings, frame)


def populations() -> Iterator[Population]:
    """Yield the populations: groups alike and apart, known well and hardly at all."""
    sure, hardly = (0.0, 0.01, 0.99, 1.0), (0.1, 0.3, 0.5, 0.7, 0.9)
    alike, apart = Cell.of(), Cell.of(mean=0.25)
    for name, second, probability, rows in (
        ("alike, known well", alike, sure, 2000),
        ("alike, known exactly", alike, (0.0, 1.0), 400),
        ("alike, known exactly", alike, (0.0, 1.0), 10_000),
        ("alike, hardly known", alike, hardly, 2000),
        ("apart, known well", apart, sure, 2000),
        ("apart, hardly known", apart, hardly, 5000),
    ):
        people = Guessed(alike, second, probability, rows)
        yield Population(
            "proxy",
            f"2 {name}, {rows:,} rows",
            partial(drawn, people),
            people.truth,
            short=rows == 2000,
        )
