"""How many more labels would settle the open questions, simulated from what is known so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fairbench.audits.findings import ERROR_RATE, OPEN
from fairbench.audits.gaps import NEEDS_NO_LABELS, RATE_OF, Gap
from fairbench.core.formats import count, probability, two_digits
from fairbench.core.seeds import rng
from fairbench.evaluation.groups import GroupCounts
from fairbench.evaluation.some_labels import SomeLabels
from fairbench.inference.further_labels import LIKELY, FurtherLabels

_MOST_ROWS = 10_000_000  # further labels that are simulated, where the rows there are set no limit


def with_needed(
    gaps: Sequence[Gap], rows: SomeLabels, counted: Sequence[GroupCounts], epsilon: float, seed: int
) -> list[Gap]:
    """Return gaps with how many more labels would settle those that are open.

    More labels are simulated in growing numbers until a gap is likely settled. Each question is
    simulated by itself: what else is asked changes nothing. Labels are given to rows at random
    among all; what the next ones say is drawn from what is known of the rates.

    Parameters
    ----------
    rows : the rows with the labels so far.
    counted : the counts of each attribute's groups; where there are no labels, those that follow
        if scores are right.
    epsilon : the gap that matters.
    """
    known = rows.labels
    remaining = rows.rows - known or None
    by_attribute = {groups.attribute: groups for groups in counted}

    def needed(gap: Gap) -> FurtherLabels:
        """Return the numbers of labels that were tried, and how probably each settles the gap."""
        is_open = (gap.verdict == OPEN or gap.assumed) and len(gap.compared) > 1
        if not is_open or (gap.metric == NEEDS_NO_LABELS and remaining is not None):
            return FurtherLabels()
        generator = rng(seed, "labels needed", gap.attribute, gap.metric)
        counts = by_attribute[gap.attribute]
        rates = rows.known_rates(gap.rate, counts, gap.compared, generator)
        chance_of: dict[int, float] = {}
        for labels in numbers(known, remaining):
            chance_of[labels] = rates.settled_share(labels, epsilon, ERROR_RATE / len(RATE_OF))
            if chance_of[labels] >= LIKELY:
                break
        return FurtherLabels(list(chance_of), list(chance_of.values()), remaining)

    return [replace(gap, needed=needed(gap)) for gap in gaps]


def numbers(labels: int, remaining: int | None) -> list[int]:
    """Return 10, 20, 50, 100, ... from a tenth of the labels there are to all that can be had."""
    most = _MOST_ROWS if remaining is None else remaining
    steps = [step * 10**power for power in range(1, 8) for step in (1, 2, 5)]
    wanted = [step for step in steps if 10 * step >= labels and step < most]
    return [*wanted, most] if remaining is not None else wanted


def kind_of_labels(needed: FurtherLabels) -> str:
    """Return what further labels are: of rows that lack one, or of new rows."""
    return "more labels" if needed.remaining is not None else "more rows with labels"


def likely_numbers(needed: FurtherLabels) -> list[str]:
    """Return the numbers of labels that perhaps and probably settle a gap; one if they agree."""
    labels_needed = dict.fromkeys([needed.few, needed.enough])
    return [two_digits(labels) for labels in labels_needed if labels is not None]


def needed_in_words(needed: FurtherLabels) -> str:
    """Return how many labels would settle a gap, in words; empty if that was not computed."""
    kind = kind_of_labels(needed)
    if not needed.labels:
        return ""
    if needed.enough is not None:
        return f"{' to '.join(likely_numbers(needed))} {kind} would probably settle it"
    last = count(needed.labels[-1])
    chance = probability(needed.settled[-1])
    most = f"{last} {kind}" if needed.remaining is None else f"all {last} other labels"
    return f"{most} would settle it with a probability of only {chance}"
