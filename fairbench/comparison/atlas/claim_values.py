"""Dataclasses for claims and their parts, and for margins of thresholds by the size of data."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class ClaimPart:
    """One statement that a claim is made of, across data sets.

    Attributes
    ----------
    label : the intervention, method or comparison whose difference this is.
    metric : the metric that the difference is in.
    mean, lower, upper : the mean difference over families, with its own 95 % interval.
    all_lower, all_upper : the limits of an interval that holds simultaneously with those of the
        claim's other parts.
    epsilon : the largest difference that does not matter.
    tasks, families : the numbers of tasks and families on which the difference was measured.
    positive : the number of these tasks on which the difference is above 0.
    verdict : the verdict by the simultaneous interval.
    alone : the verdict by the difference's own interval.
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
    difference : the difference that each part is, in words that follow "the difference is".
    rule : when the claim holds or fails.
    verdict : holds, fails or not resolved, by means over families.
    evidence : what was measured of the parts that decide, in sentences; empty if there are none.
    remarks : further sentences, such as ways in which the comparison is uneven.
    fairest : the parts that compare on the most equal terms, if a remark names them.
    """

    name: str
    statement: str
    source: str
    difference: str
    rule: str
    verdict: str
    parts: tuple[ClaimPart, ...]
    evidence: str = ""
    remarks: tuple[str, ...] = ()
    fairest: tuple[ClaimPart, ...] = ()

    @property
    def criterion(self) -> str:
        """Return what the differences are, and when the claim holds or fails."""
        return f"The difference is {self.difference}. {self.rule}"

    @property
    def deciding_parts(self) -> tuple[ClaimPart, ...]:
        """Return the parts that were measured on enough tasks to decide the claim."""
        return select_deciding(self.parts)


def select_deciding(parts: Iterable[ClaimPart]) -> tuple[ClaimPart, ...]:
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
    """The error of thresholds minus that of interventions, over tasks of similar numbers of rows.

    Attributes
    ----------
    label : the class in words, such as ``up to 1,000 rows``.
    least_rows, most_rows : the smallest and the largest number of rows of these tasks.
    tasks, families : the numbers of tasks and families in the class.
    positive : the number of tasks on which the difference is above 0.
    difference, lower, upper : the plain mean over families, with its 95 % interval.
    compared : the number of comparisons: pairs of an intervention and a gap.
    above : the number of comparisons whose mean over families is above 0.
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
