"""How the printed tables are read: what a column's setting asks for, and which answers we give.

A :class:`Reading` is one of our answers to the printed numbers on German: one setting for all of
them. The first is the text's. The others stand for a cause, and differ from it, or from the cause
before, in what their sentence in ``mapping.yaml`` says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairbench.components.papers.uncertainty_matters import grid, packed
from fairbench.components.papers.uncertainty_matters.halves import AT_A_TIME, REFERENCE
from fairbench.components.papers.uncertainty_matters.posteriors import LEVEL, ROPE, favourable
from fairbench.core.arrays import Floats
from fairbench.inference.comparing.objectives import objective
from fairbench.inference.comparing.practical_difference import Comparison, highest_density_region
from fairbench.inference.effective_counts import variance_ratio

Names = tuple[str, str]
TRUTH = "ground truth"
# The paper's choices of rho -> ours.
RHOS = {
    "rho=1/K": "1/K",
    "rho in [0,1/K]": "average",
    "rho_rel": "relative",
    "rho_rel_up": "relative_up",
}
RELATIVE = ("relative", "relative_up")
GROUPS, MEAN, NONE = "groups", "mean", "none"  # sources of the ratio r
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
    label : what is printed beside an answer that is neither the text's nor a cause's.
    cause : the name of the cause that it stands for; nothing for the text.
    choices : algorithm -> which of `grid.choices` is compared, where not the first.
    stands_for : algorithm of the tables -> which packed one of :mod:`packed` is compared, whose
        columns are one-hot; nothing where all are of the grid.
    signed : whether a gap in favour of the other group counts as better than none.
    ratio : where relative rhos come from: ``groups``, one ratio from half-splits for each group;
        ``mean``, one for both; ``none``: every algorithm varies as the reference learner does.
    predictive : whether a table is drawn after its probabilities (equation (1), step ii).
    paired : whether the posterior is that of the joint table, of the mean of several partitions and
        with rho = 0, in place of two independent ones of one partition.
    nine : whether each of the nine outcomes of two objectives is a conclusion of its own; else
        better in both and better in one are one, as in section 3.
    """

    label: str = ""
    cause: str = ""
    choices: Mapping[str, str] = field(default_factory=dict)
    stands_for: Mapping[str, str] | None = None
    signed: bool = False
    ratio: str = GROUPS
    predictive: bool = False
    paired: bool = False
    nine: bool = False

    def counts(self, name: str) -> NDArray[np.int64]:
        """Return an algorithm's cross-validations, (B, G, 4)."""
        if self.stands_for is None:
            return grid.counts(name, self.choices.get(name, ""))
        return packed.most_counts(self.stands_for.get(name, name))

    def variance_ratio(self, name: str, place: int) -> Floats:
        """Return the ratio r of each group, (G, 1), of the `place`-th five half-splits.

        Where there are fewer, those at hand are taken in turn.
        """
        if self.ratio == NONE:
            return np.ones((2, 1))
        own, reference = self._estimates(name), self._estimates(REFERENCE)
        whole = min(len(own), len(reference))
        first = AT_A_TIME * (place % max(whole // AT_A_TIME, 1))
        part = slice(first, min(first + AT_A_TIME, whole))
        ratio = variance_ratio(own[part], reference[part])
        ratio[np.isinf(ratio)] = np.nan  # a reference that did not vary
        if self.ratio == MEAN:
            return np.full((2, 1), np.nanmean(ratio))
        return np.asarray(np.nanmean(ratio, axis=0)[:, None])

    def _estimates(self, name: str) -> Floats:
        if self.stands_for is None:
            return grid.estimates(name, self.choices.get(name, ""))
        return packed.half_split_estimates(self.stands_for.get(name, name))

    def names(self, pair: Names) -> Names:
        """Return the algorithms of ours that are compared."""
        first, second = ((self.stands_for or {}).get(name, name) for name in pair)
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

    def events(
        self, delta: Floats, setting: Setting, inside: NDArray[np.bool_] | None = None
    ) -> dict[str, float]:
        """Return the shares of the published events among differences (N, m), by metric.

        `inside` are the draws of the setting's region, which is found where they are not given.
        """
        known = delta[~np.isnan(delta).any(axis=1)]
        names = self.objectives(setting.objectives)
        if inside is None and setting.level:
            inside = highest_density_region(known, setting.level).inside
        found = Comparison(names, known, np.full(len(names), setting.rope)).events(inside)
        return {metric: found[text.format(*names)] for metric, text in _EVENTS.items()}


TEXT = Reading(predictive=True)
ALONE = Reading(cause="step (i) alone")
POOLED = Reading(cause="one ratio for both groups", ratio=MEAN)
FAIREST = Reading(
    cause="FERM validated for fairness",
    choices={"FERM": grid.FAIREST, "Linear FERM": grid.FAIREST},
)
_FERM = {"FERM": grid.EXACT_BETWEEN, "Linear FERM": grid.FAIREST}
ONE_MACHINE = Reading(
    cause="one machine",
    choices=_FERM
    | dict.fromkeys(("SVM", "Reweighing + SVM", "SVM + Hardt"), grid.WIDE)
    | {"Disparate impact remover + SVM": grid.NARROW},
)
BETWEEN = Reading(cause="FERM with C = 0.5", choices=_FERM)
APART = Reading(
    cause="Hardt's rule apart", choices=_FERM | dict.fromkeys(grid.APART, grid.RULE_APART)
)
REFERENCE_RATIO = Reading(cause="no half-splits", choices=BETWEEN.choices, ratio=NONE)
ONE_HOT = Reading(cause="one-hot columns", stands_for={"FERM": "FERM, C = 0.4"})
SIGNED_GAPS = Reading(cause="signed gaps", stands_for={}, signed=True, nine=True)
RIGHT = Reading("right intervals", stands_for=ONE_HOT.stands_for, paired=True)
READINGS = (
    TEXT,
    ALONE,
    POOLED,
    BETWEEN,
    APART,
    REFERENCE_RATIO,
    FAIREST,
    ONE_HOT,
    SIGNED_GAPS,
    RIGHT,
)
