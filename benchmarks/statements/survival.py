"""Populations of audits of times until an event."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
import pandas as pd

from benchmarks.statements.simulate import Population, Sample
from benchmarks.statements.truth import Question, Truth
from benchmarks.statements.two_classes import DOZEN, PATH, names
from fairbench.audits.findings import GAP, Finding
from fairbench.audits.gaps import Gap
from fairbench.audits.kinds import survival
from fairbench.audits.question import Options
from fairbench.core.arrays import Floats

HORIZON = 6.0
_LARGE = 10_000  # rows of a sample that a concordance is taken from, of which there are so many:
_SAMPLES = 6
_ERROR = 0.004  # of their mean, about twice its standard error


@dataclass(frozen=True, eq=False)
class Observed:
    """People with exponential times until an event, observed for an exponential time.

    Attributes
    ----------
    shares : (G,) of the people. noise : (G,) standard deviation of the logarithm of what their
        risks are off by. observed : (G,) mean time that each group is observed for.
    """

    rows: int
    shares: Floats
    noise: Floats
    observed: Floats

    @classmethod
    def of(
        cls,
        rows: int,
        groups: int = 2,
        *,
        shares: Sequence[float] = (),
        noise: float = 0.0,
        observed: float = 15.0,
        last_observed: float = 15.0,
    ) -> Observed:
        """Return groups of which the last may have other risks, or be observed otherwise."""
        weights = np.array(shares or [1.0] * groups)
        last = np.arange(groups) == groups - 1
        return cls(
            rows,
            weights / weights.sum(),
            np.where(last, noise, 0.0),
            np.where(last & (last_observed != 15.0), last_observed, observed),
        )

    def truth(self) -> Truth:
        """Return concordances, of large samples, and Brier scores."""
        pairs = list(zip(self.noise.tolist(), self.observed.tolist(), strict=True))
        columns = {
            survival.CONCORDANCE: [_concordance(*pair) for pair in pairs],
            survival.BRIER: [_brier(noise) for noise, _ in pairs],
        }
        values: dict[Question, Mapping[str, float]] = {
            (GAP, "sex", measure, ""): dict(zip(names(len(pairs)), column, strict=True))
            for measure, column in columns.items()
        }
        return Truth(values, error=_ERROR if len(set(pairs)) > 1 else 0.0)


def times(
    noise: Floats, observed: Floats, generator: np.random.Generator
) -> tuple[Floats, Floats, Floats]:
    """Draw times until the event, ends of observation, and risks, each (n,)."""
    rate = np.exp(generator.normal(-2, 1, len(noise)))
    off = np.exp(noise * generator.standard_normal(len(noise)))
    ends = generator.exponential(observed)
    return generator.exponential(1 / rate), ends, 1 - np.exp(-HORIZON * rate * off)


@lru_cache
def _concordance(noise: float, observed: float) -> float:
    """Return a group's concordance, which depends on who is censored as well as on the risks."""
    generator, shares = np.random.default_rng(5), []
    for _ in range(_SAMPLES):
        time, end, risk = times(np.full(_LARGE, noise), np.full(_LARGE, observed), generator)
        rows = survival.Survival(np.minimum(time, end), time <= end, risk)
        shares.append(survival.concordance(rows)[0])
    return float(np.mean(shares))


@lru_cache
def _brier(noise: float) -> float:
    """Return the mean squared distance of risks from who has the event by the horizon."""
    people = np.full(1_000_000, noise)
    time, _, risk = times(people, np.ones_like(people), np.random.default_rng(6))
    return float(((time <= HORIZON) - risk) ** 2 @ np.full(len(people), 1 / len(people)))


def drawn(people: Observed, generator: np.random.Generator) -> Sample:
    """Draw a sample of people, censored where observation ended before the event."""
    groups = len(people.shares)
    group = generator.choice(groups, people.rows, p=people.shares)
    time, end, risk = times(people.noise[group], people.observed[group], generator)
    table = pd.DataFrame(
        {
            "sex": np.array(names(groups), dtype=object)[group],
            "time": np.minimum(time, end),
            "event": time <= end,
            "risk": risk,
        }
    )
    options = Options(
        path=PATH, group=("sex",), target="time", event="event", score="risk", horizon=HORIZON
    )

    def findings() -> tuple[Sequence[Finding], Sequence[Gap]]:
        return survival.audit_survival(options, table).findings, []

    return Sample(options, findings, lambda: table)


def populations() -> Iterator[Population]:
    """Yield the populations: groups alike, observed for other times, and with noisy risks."""

    def of(name: str, people: Observed, *, short: bool = False) -> Population:
        return Population("survival", name, partial(drawn, people), people.truth, short)

    for groups, rows in ((2, 150), (2, 1000), (4, 400), (10, 3000)):
        yield of(f"{groups} alike, {rows:,} rows", Observed.of(rows, groups), short=rows == 400)
    yield of("2 alike, one of 5 %, 1,000 rows", Observed.of(1000, shares=(0.95, 0.05)))
    censored = Observed.of(1000, 4, observed=3.0, last_observed=3.0)
    yield of("4 alike, most censored, 1,000 rows", censored)
    yield of("2 observed for unlike times, 1,000 rows", Observed.of(1000, last_observed=4.0))
    yield of("1 of 3 with noisy risks, 1,500 rows", Observed.of(1500, 3, noise=2.0))
    dozen = Observed.of(6000, 3, shares=DOZEN, noise=20.0)
    yield of("2 alike, a dozen with noisy risks, 6,000 rows", dozen)
