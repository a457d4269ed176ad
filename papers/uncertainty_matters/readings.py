"""How the printed tables are read: what a column's setting asks for, and which answers we give.

A :class:`Reading` is one of our answers to the 430 numbers of Tables 2, 3, 12.2 to 12.5, 13.1, 15.1
and 15.2: one setting for all of them. The first was chosen by looking at these numbers, the second
was not; the third is what intervals say that hold the truth as often as they claim.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairbench.components.papers.uncertainty_matters.posteriors import LEVEL, ROPE, favourable
from fairbench.core.arrays import Floats
from fairbench.inference.comparing.objectives import objective
from fairbench.inference.comparing.practical_difference import Comparison, highest_density_region

Names = tuple[str, str]
TRUTH = "ground truth"
# Accuracy, equal opportunity, demographic parity: gaps as the published code signs them, and as
# what they are in size, with a minus sign.
SIGNED = ("accuracy", "equal_opportunity_difference", "statistical_parity_difference")
ABSOLUTE = ("accuracy", "equal_opportunity", "statistical_parity")
_PRIORS = {"prior Dir(0)": 0.0, "prior Dir(1/2)": 0.5, "prior Dir(1)": 1.0}
# Published metric -> the name of the event, of both objectives' names.
_EVENTS = {
    "p_a_outperforms_b": "A >> B",
    "p_b_outperforms_a": "B >> A",
    "p_equivalent": "A ~ B",
    "p_a_accuracy_b_fairness": "A {0}, B {1}",
    "p_b_accuracy_a_fairness": "B {0}, A {1}",
}


@dataclass(frozen=True)
class Setting:
    """What a column of these tables is computed with.

    Attributes
    ----------
    rho : the choice of rho, or ``ground truth``.
    level : of the highest-density region that events are restricted to; 0 for none. Where a table
        does not say it is 95 %: Table 2's last column is that of Table 12.2's 95 % region.
    objectives : how many, from accuracy on.
    """

    rho: str
    level: float = LEVEL
    rope: float = ROPE[0]
    alpha: float = 1.0
    objectives: int = 2

    @classmethod
    def read(cls, text: str) -> Setting:
        """Read ``rho_rel_up, 95 % hdr; rope=0.01; prior Dir(1)`` and its like."""
        first, *others = text.split("; ")
        rho, _, region = first.partition(", ") if "hdr" in first else (first, "", "")
        options: dict[str, Any] = {"level": 0.0} if rho == TRUTH or region == "no hdr" else {}
        if region.endswith("% hdr"):
            options["level"] = float(region.split()[0]) / 100
        for each in others:
            if each in _PRIORS:
                options["alpha"] = _PRIORS[each]
            elif each.startswith("objectives"):
                options["objectives"] = len(each.split(", "))
            else:
                options["rope"] = float(each.removeprefix("rope=")) if "=" in each else 0.0
        return cls(rho, **options)


@dataclass(frozen=True)
class Reading:
    """One answer to all of the numbers.

    Attributes
    ----------
    label : what is printed beside the answer; nothing for the one that reproduces.
    stands_for : algorithm of the tables -> what of ours is compared in its place.
    signed : whether a gap in favour of the other group counts as better than none.
    halves : whether relative rhos come from half-splits; else every algorithm is taken to vary as
        the reference learner does, so that rho_rel is 1/K.
    paired : whether the posterior is that of the joint table, of the mean of several partitions and
        with rho = 0, in place of two independent ones of one partition.
    factor : what every count is multiplied by besides.
    nine : whether each of the nine outcomes of two objectives is a conclusion of its own, as here
        before anything was compared with the print; else better in both and better in one are one.
    """

    label: str
    stands_for: Mapping[str, str] = field(default_factory=dict)
    signed: bool = False
    halves: bool = False
    paired: bool = False
    factor: float = 1.0
    nine: bool = False

    def names(self, pair: Names) -> Names:
        """Return the algorithms of ours that are compared."""
        first, second = (self.stands_for.get(name, name) for name in pair)
        return first, second

    def objectives(self, count: int) -> tuple[str, ...]:
        """Return the names of the first objectives."""
        return (SIGNED if self.signed else ABSOLUTE)[:count]

    def values(self, counts: NDArray[Any], count: int = 2) -> Floats:
        """Return objectives of every table, (..., G, 4) -> (..., m)."""
        turned = favourable(counts)
        return np.stack([objective(name)(turned) for name in self.objectives(count)], axis=-1)

    def conclusions(self, delta: Floats, rope: float = ROPE[0]) -> list[str]:
        """Return the event that each difference (N, 2) shows."""
        names = self.objectives(delta.shape[1])
        if self.nine:
            return list(map(str, Comparison(names, delta, np.full(len(names), rope)).codes))
        shown = [
            Comparison(names, each[None], np.full(len(names), rope)).events() for each in delta
        ]
        return [max(events, key=lambda name: events[name]) for events in shown]

    def events(self, delta: Floats, setting: Setting) -> dict[str, float]:
        """Return the shares of the published events among differences (N, m), by metric."""
        known = delta[~np.isnan(delta).any(axis=1)]
        names = self.objectives(setting.objectives)
        inside = highest_density_region(known, setting.level).inside if setting.level else None
        found = Comparison(names, known, np.full(len(names), setting.rope)).events(inside)
        return {metric: found[text.format(*names)] for metric, text in _EVENTS.items()}


# Chosen by looking at the published numbers: FERM's C, that a gap counts by its size, which
# outcomes are one conclusion, and where relative rhos come from. That Tables 2, 3 and 13.1 are of
# the 95 % region was read off the print as well, for every reading.
CHOSEN = Reading("", {"FERM": "FERM, C = 0.4"}, halves=True)
PRESET = Reading("not chosen by looking", signed=True, halves=True, nine=True)
RIGHT = Reading("right intervals", CHOSEN.stands_for, paired=True)
READINGS = (CHOSEN, PRESET, RIGHT)
