"""The same differences by another method, where one alone should not be relied on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from fairbench.audit.gaps import NEEDS_NO_LABELS, RATE_OF, Gap
from fairbench.audit.reading import AuditTable
from fairbench.inference.few_labels.plug_in import plug_in
from fairbench.inference.few_labels.prediction_powered import prediction_powered
from fairbench.inference.few_labels.summary import summarise_normal
from fairbench.inference.few_labels.table import PartlyLabelled

FEW, MANY = 40, 500


@dataclass(frozen=True, eq=False)
class Check:
    """Another estimate of a gap: the highest group's rate minus the lowest's, or as signed.

    Attributes
    ----------
    method : ``scores as they are`` or ``prediction-powered``.
    lower, upper : interval of the latter.
    agrees : whether that interval and the gap's have anything in common.
    """

    gap: Gap
    method: str
    value: float
    lower: float
    upper: float

    @property
    def agrees(self) -> bool:
        """Whether the two intervals overlap; an estimate without one has to lie in the gap's."""
        low = self.value if np.isnan(self.lower) else self.lower
        high = self.value if np.isnan(self.upper) else self.upper
        return bool(low <= self.gap.upper and high >= self.gap.lower)


def checks(table: AuditTable, gaps: Sequence[Gap]) -> Iterator[Check]:
    """Yield the plug-in under 40 labels, and the prediction-powered interval above 500.

    Nothing where there are no scores, no labels, or labels for all rows. Prediction-powered
    intervals ask for labels at random within each group: where rows were chosen by group, those
    of other groups are left out.
    """
    labels = len(table.known)
    few, many = 0 < labels < FEW, MANY < labels < len(table)
    if table.score is None or not (few or many):
        return
    for attribute, groups in table.groups.items():
        mine = [gap for gap in gaps if gap.attribute == attribute and len(gap.compared) > 1]
        partly = table.partly_labelled(groups)
        for gap in mine:
            if gap.metric != NEEDS_NO_LABELS and (few or _is_random(table, groups, gap)):
                yield _plug_in(partly, gap) if few else _prediction_powered(partly, gap)


def _is_random(table: AuditTable, groups: pd.Series, gap: Gap) -> bool:
    """Say whether labelled rows are a random sample of each of the two groups compared."""
    if table.sampling is None:
        return True
    pair = _pair(table.partly_labelled(groups), gap)
    return bool(table.sampling.separates(groups)[list(pair)].all())


def _plug_in(table: PartlyLabelled, gap: Gap) -> Check:
    first, second = _pair(table, gap)
    rates = RATE_OF[gap.metric](plug_in(table))
    nan = float("nan")
    return Check(gap, "scores as they are", float(rates[second] - rates[first]), nan, nan)


def _prediction_powered(table: PartlyLabelled, gap: Gap) -> Check:
    pair = _pair(table, gap)
    rows = np.isin(table.group, pair)
    code = (table.group[rows] == pair[1]).astype(np.int64)
    two = PartlyLabelled(
        table.score[rows], table.prediction[rows], code, table.label[rows], ("first", "second")
    )
    difference = prediction_powered(two, RATE_OF[gap.metric]).differences()
    summary = summarise_normal(float(difference.value[0]), float(difference.error[0]))
    return Check(gap, "prediction-powered", summary.estimate, summary.lower, summary.upper)


def _pair(table: PartlyLabelled, gap: Gap) -> tuple[int, int]:
    """Return the groups whose difference the gap is, first and second."""
    if gap.signed:
        return gap.compared[0], gap.compared[1]
    names = list(table.groups)
    return names.index(gap.low), names.index(gap.high)
