"""What becomes of claims across data sets, and of thresholds by the size of data: plain values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class ClaimPart:
    """One statement that a claim is made of, across data sets.

    Attributes
    ----------
    label, metric : whose difference it is, and of what.
    mean, lower, upper : the mean over families of the difference, with its 95 % interval by
        itself; `all_lower`, `all_upper` : ends that are meant to hold for all parts at once.
    epsilon : the largest difference that does not matter.
    tasks, families : on how many it was measured; `positive` : of the tasks, on how many the
        difference is above 0.
    verdict : by the mean's interval, all at once; `alone` : by its own.
    few_tasks : whether it was measured on too few tasks to decide the claim.
    of_families : the mean of each family on whose tasks it was measured.
    """

    label: str
    metric: str
    mean: float
    lower: float
    upper: float
    all_lower: float
    all_upper: float
    epsilon: float
    tasks: int
    families: int
    positive: int
    verdict: str
    alone: str
    few_tasks: bool = False
    of_families: tuple[float, ...] = ()


@dataclass(frozen=True)
class Claim:
    """A claim of the literature, and whether it holds in this atlas.

    Attributes
    ----------
    rule : what the differences of the parts are, and what decides.
    verdict : by means over families.
    evidence : in words, the figures that decide, where several parts do so together.
    remarks : what is to be known beside it, such as what is unlevel in what is compared.
    """

    name: str
    statement: str
    source: str
    rule: str
    verdict: str
    parts: tuple[ClaimPart, ...]
    evidence: str = ""
    remarks: tuple[str, ...] = ()

    @property
    def deciding(self) -> tuple[ClaimPart, ...]:
        """Return the parts that were measured on enough tasks to decide the claim."""
        return deciding(self.parts)


def deciding(parts: Iterable[ClaimPart]) -> tuple[ClaimPart, ...]:
    """Return the parts that were measured on enough tasks to decide a claim."""
    return tuple(part for part in parts if not part.few_tasks)


@dataclass(frozen=True)
class TaskMargin:
    """The error of thresholds minus that of an intervention at the same gap, on one task.

    The mean over all interventions, strengths and gaps, with its 95 % interval for new splits.
    """

    dataset: str
    protect: str
    family: str
    rows: float
    difference: float
    lower: float
    upper: float


@dataclass(frozen=True)
class SizeClass:
    """The same over the tasks with some numbers of rows: the plain mean over their families.

    Attributes
    ----------
    least_rows, most_rows : of the tasks.
    positive, tasks : on how many of the tasks the difference is above 0.
    above, compared : in how many comparisons, of an intervention and a gap, the mean over families
        is above 0.
    """

    label: str
    least_rows: float
    most_rows: float
    tasks: int
    families: int
    positive: int
    difference: float
    lower: float
    upper: float
    above: int
    compared: int


@dataclass(frozen=True)
class MarginsBySize:
    """Thresholds for each group against interventions, by the size of the data."""

    classes: tuple[SizeClass, ...]
    tasks: tuple[TaskMargin, ...]
