"""How many more labels would settle the open questions, simulated from what is known so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy import special

from fairbench.audits.findings import ERROR_RATE, OPEN
from fairbench.audits.gaps import NEEDS_NO_LABELS, RATE_OF, Gap
from fairbench.audits.table import AuditTable
from fairbench.core.seeds import rng
from fairbench.evaluation.group_intervals import CountIntervals
from fairbench.evaluation.groups import Counted
from fairbench.inference.few_labels.importance import sobol
from fairbench.inference.further_labels import LIKELY, WORLDS, FurtherLabels, KnownRates

_MOST_ROWS = 10_000_000


def with_needed(
    gaps: Sequence[Gap], table: AuditTable, counted: Sequence[Counted], epsilon: float, seed: int
) -> list[Gap]:
    """Return gaps with how many more labels would settle those that are open.

    More labels are simulated in growing numbers until a gap is likely settled. Each question is
    simulated by itself: what else is asked changes nothing. Labels are given to rows at random
    among all; what the next ones say is drawn from what is known of the rates.

    Parameters
    ----------
    counted : what is known, by attribute; of no labels, if scores are right.
    """
    remaining = len(table) - len(table.known) or None
    by_attribute = {groups.attribute: groups for groups in counted}

    def needed(gap: Gap) -> FurtherLabels:
        asked = (gap.verdict == OPEN or gap.assumed) and len(gap.compared) > 1
        if not asked or (gap.metric == NEEDS_NO_LABELS and remaining is not None):
            return FurtherLabels()
        generator = rng(seed, "labels needed", gap.attribute, gap.metric)
        known = _known_rates(table, by_attribute[gap.attribute], gap, generator)
        tried: dict[int, float] = {}
        for labels in numbers(len(table.known), remaining):
            tried[labels] = known.settled(labels, epsilon, ERROR_RATE / len(RATE_OF))
            if tried[labels] >= LIKELY:
                break
        return FurtherLabels(list(tried), list(tried.values()), remaining)

    return [replace(gap, needed=needed(gap)) for gap in gaps]


def _known_rates(
    table: AuditTable, counted: Counted, gap: Gap, generator: np.random.Generator
) -> KnownRates:
    groups = table.groups[gap.attribute].cat.codes.to_numpy()
    compared, names, labels = gap.compared, len(counted.groups), len(table.known)
    rows = np.bincount(groups, minlength=names)
    if not isinstance(counted.intervals, CountIntervals):
        draws = counted.intervals.draws
        draws = draws[generator.permutation(len(draws))[:WORLDS]]
        # Draws are shares of everyone; a label is as many rows of the rate as a row of the group.
        shares = gap.rate.size(draws) / draws.sum(axis=-1)
        added = shares.mean(axis=0) * rows / len(table)
        luck = special.ndtri(sobol(len(compared), WORLDS, generator))[: len(draws)]
        return KnownRates(0, 0, gap.rate(draws)[:, compared], added[compared], luck)
    (successes,), (sizes,) = counted.intervals.effective_counts([gap.rate])
    labelled = np.bincount(groups[table.known], minlength=names)
    worth = sizes / np.maximum(labelled, 1)
    worth = np.where(labelled > 0, worth, sizes.sum() / labels)
    left = rows if len(table) == labels else rows - labelled
    added = worth * left / left.sum()
    x, n = successes[compared], sizes[compared]
    truth, luck = np.split(sobol(2 * len(x), WORLDS, generator), 2, axis=1)
    rates = special.betaincinv(x + 0.5, n - x + 0.5, truth)
    return KnownRates(x, n, rates, added[compared], special.ndtri(luck))


def numbers(labels: int, remaining: int | None) -> list[int]:
    """Return 10, 20, 50, 100, ... from a tenth of the labels there are to all that can be had."""
    most = _MOST_ROWS if remaining is None else remaining
    steps = [step * 10**power for power in range(1, 8) for step in (1, 2, 5)]
    wanted = [step for step in steps if 10 * step >= labels and step < most]
    return [*wanted, most] if remaining is not None else wanted


def rounded(labels: int) -> int:
    """Return a number to two digits, as sure as a simulation of it is."""
    return round(labels, 2 - max(len(str(labels)), 2))
