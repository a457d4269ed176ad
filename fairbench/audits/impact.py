"""Adverse impact in an audit: the ratios of its groups, and what is found of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import numpy as np

from fairbench.audits.findings import LARGE, NOT_MEASURED, OPEN, RATIO, SMALL, Finding
from fairbench.audits.table import AuditTable
from fairbench.evaluation.impact_ratios import (
    LARGE_ENOUGH,
    ImpactRatio,
    impact_ratios_of,
    may_be_compared_with,
)
from fairbench.inference.impact import FOUR_FIFTHS


def impact_ratios(table: AuditTable, *, level: float = 0.95) -> list[ImpactRatio]:
    """Return the impact ratios of every group of every attribute; decisions need no labels.

    Of a table of the selected they are of everyone, of whom these were selected.
    """
    if table.everyone is not None:
        return impact_ratios(table.everyone, level=level)
    return [
        ratio
        for name, groups in table.groups.items()
        for ratio in impact_ratios_of(
            name,
            groups,
            table.favoured,
            reference=table.references.get(name, ""),
            design=table.design,
            times=table.times,
            level=level,
        )
    ]


def attributes_with_small_groups(ratios: Sequence[ImpactRatio]) -> set[str]:
    """Return the attributes of which some group is too small to be compared with.

    Parameters
    ----------
    ratios : the impact ratios of all groups.
    """
    rows: dict[str, list[int]] = {}
    for ratio in ratios:
        rows.setdefault(ratio.attribute, []).append(ratio.rows)
    return {name for name, sizes in rows.items() if not may_be_compared_with(np.array(sizes)).all()}


def impact_findings(
    ratios: Sequence[ImpactRatio],
    wider: Sequence[ImpactRatio],
    granted: str,
    with_small_groups: Collection[str] = (),
) -> Iterator[Finding]:
    """Yield whether each group is granted something at least four fifths as often as another.

    Parameters
    ----------
    ratios : the impact ratios with 95 % intervals.
    wider : the ratios of the same groups with intervals at the level of verdicts.
    granted : what somebody is who is counted, such as ``approved``.
    with_small_groups : the attributes of which only groups that are large enough are compared with.
    """
    for ratio, judged in zip(ratios, wider, strict=True):
        if ratio.is_given_reference:
            continue
        verdict = NOT_MEASURED if np.isnan(ratio.ratio) else OPEN
        if judged.upper < FOUR_FIFTHS:
            verdict = LARGE
        elif judged.lower >= FOUR_FIFTHS:
            verdict = SMALL
        yield Finding(
            RATIO,
            ratio.attribute,
            "impact ratio",
            verdict,
            (ratio.group, ratio.reference) if ratio.given else (ratio.group,),
            value=ratio.ratio,
            lower=ratio.lower,
            upper=ratio.upper,
            bound=FOUR_FIFTHS,
            n=ratio.rows,
            scope=f"of the groups {LARGE_ENOUGH}"
            if ratio.attribute in with_small_groups and not ratio.given
            else "",
            decided=granted,
            needs=f"nobody was {granted}" if verdict == NOT_MEASURED else "",
        )
