"""How many more labels would settle the open questions, for true gaps that are named.

The observed gap is noise in part, and a plan for it is not kept. So a plan names a true gap that
the interval does not exclude: none, where all groups have one rate, drawn from its posterior given
all counts; or twice the tolerance between the two groups that are most surely apart, their mean the
pooled rate, and the higher one drawn as the counts make it likely (four times the tolerance, where
all labels are too few for twice, and so on). The counts so far stay, and those of further labels
are drawn at these rates. A number is enough where `LIKELY` of the draws are answered as
`Measure.answered` will, at the risk of one question of the page:
without a gap, all pairs' upper limits are under the tolerance, and each group has `FEWEST_LABELS`;
with one, these two groups' lower limit is above it. As it is the chance given the counts, it holds
for each question, and so for the one that takes the fewest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np
from scipy import special

from fairbench.audits.direction import NEEDS_NO_LABELS, RATE_OF
from fairbench.audits.gaps import FEWEST_LABELS, Gap
from fairbench.audits.question import PlanOptions
from fairbench.core.arrays import Floats, rng
from fairbench.core.text import count, two_digits
from fairbench.evaluation.findings import OPEN, one_sided_level, risk_of
from fairbench.evaluation.groups import GroupCounts
from fairbench.evaluation.some_labels import SomeLabels
from fairbench.inference.few_labels import sobol
from fairbench.inference.gaps import GroupLimits, largest_gap, simultaneous_level, surest_gap
from fairbench.inference.rates import Limits, quick_limits
from fairbench.reporting.document.model import Document, Paragraph, Section
from fairbench.reporting.group_tables import named_table, sentence_of

LIKELY, UNLIKELY = 0.8, 0.2
_WORLDS = 1024  # a power of two, as quasi-random points are best
_EXACT = 1.01  # a least number of labels is found up to this factor
_LEAST = 0.02  # times the labels there are: fewer more are not planned
ALIKE = "all groups are alike"


def with_needed(
    gaps: Sequence[Gap], rows: SomeLabels, counted: Sequence[GroupCounts], risk: float, seed: int
) -> list[Gap]:
    """Return gaps with how many more labels would settle those that are open.

    Parameters
    ----------
    rows : the rows with the labels so far. Further ones are of rows at random among those that lack
        one; where none does, of new rows, at most as many as there are.
    counted : the counts of each attribute's groups.
    risk : the error rate of one answer of the page.
    """
    labels = rows.labels_known
    is_complete = labels == len(rows)
    most = len(rows) if is_complete else len(rows) - labels
    least = max(_LEAST * labels, 1)
    by_attribute = {groups.attribute: groups for groups in counted}

    def needed(gap: Gap) -> Mapping[str, int | None]:
        """Return what is supposed -> the number of labels; None where all are too few."""
        needs_rows = gap.metric == NEEDS_NO_LABELS and not is_complete
        if gap.verdict != OPEN or gap.assumed or needs_rows or len(gap.compared) < 2:
            return {}
        groups, epsilon = by_attribute[gap.attribute], gap.asked.bound
        x, n, labels, shares, size_after = rows.known_counts(gap.rate, groups)
        points = _points(len(x) + 2, seed, "labels needed", gap.attribute, gap.metric)
        luck = special.ndtri(points[:, 2:])
        pooled = np.repeat(_pooled(x, n, points[:, :1]), len(x), axis=1)
        missing = np.zeros(len(x)) if is_complete else FEWEST_LABELS - labels

        def shows_small(more: float) -> float:
            come = np.where(missing > 0, special.gammainc(np.fmax(missing, 1), more * shares), 1)
            level = one_sided_level(risk)
            upper = _supposed_gap(x, n, pooled, luck, size_after(more), level).upper
            return float(come.prod() * (upper < epsilon).mean())

        def shows_large(rates: Floats, more: float) -> float:
            level = simultaneous_level(1 - risk, len(x))
            sizes = size_after(more)[two]
            apart = _supposed_gap(x[two], n[two], rates, luck[:, two], sizes, level)
            return float((apart.lower > epsilon).mean())

        result = {}
        if gap.lower <= 0 <= gap.upper:
            result[ALIKE] = _least_number(shows_small, LIKELY, least, most)
        at = np.array(gap.compared)
        _, *pair = surest_gap(GroupLimits.of(x[at], n[at], level=1 - risk))
        two = at[sorted(pair)]
        names = " and ".join(groups.groups[group] for group in two)
        number, far = None, 2 * epsilon
        while number is None and far <= max(abs(gap.lower), abs(gap.upper)):
            rates = _apart(x[two], n[two], far, points)
            number = _least_number(partial(shows_large, rates), LIKELY, least, most)
            if number or far == 2 * epsilon:
                result[f"{names} differ by {far:g}"] = number
            far *= 2
        return result

    return [replace(gap, needed=needed(gap)) for gap in gaps]


def _points(columns: int, seed: int, *about: str) -> Floats:
    """Return numbers (W, columns) that fill (0, 1) evenly, of which the worlds are simulated."""
    return sobol(columns, _WORLDS, rng(seed, *about))


def _supposed_gap(
    successes: Floats, sizes: Floats, rates: Floats, luck: Floats, after: Floats, level: float
) -> Limits:
    """Return the interval (W,) of the largest gap at a level, once groups have more rows.

    Parameters
    ----------
    successes, sizes : (G,) counts so far.
    rates : (W, G) true rates in simulated worlds, or (G,) the same in all.
    luck : (W, G) standard normals, from which the further labels are simulated.
    after : (G,) the sizes with these.
    """
    added = after - sizes
    spread = np.sqrt(added * rates * (1 - rates))
    counts = successes + np.clip(added * rates + luck * spread, 0, added)
    limits = GroupLimits.at(lambda single: quick_limits(counts, after, level=single), level)
    return largest_gap(limits)


def _least_number(
    chance: Callable[[float], float], wanted: float, least: float, most: float
) -> int | None:
    """Return the least number with a wanted chance, of a chance that grows with the number.

    None where `most`, the largest number that is tried, is not enough.
    """
    if most < least or chance(most) < wanted:
        return None
    low, high = least, most
    while high > _EXACT * low:
        middle = float(np.sqrt(low * high))
        low, high = (low, middle) if chance(middle) >= wanted else (middle, high)
    return int(np.ceil(high))


def _pooled(successes: Floats, sizes: Floats, points: Floats) -> Floats:
    """Return quantiles of the posterior of the one rate of groups that are alike."""
    x, n = successes.sum(), sizes.sum()
    return special.betaincinv(x + 0.5, n - x + 0.5, points)


def _apart(successes: Floats, sizes: Floats, gap: float, points: Floats) -> Floats:
    """Return rates (W, 2) of two groups that are so far apart, from points (W, 2 or more)."""
    signed = np.array([[gap], [-gap]])  # of the first over the second
    first = _pooled(successes, sizes, points[:, 0]) + signed * sizes[1] / sizes.sum()
    first = np.clip(first, np.fmax(0, signed), 1 + np.fmin(0, signed))
    rates = np.stack([first, first - signed], axis=-1)
    inside = np.clip(rates, 1e-9, 1 - 1e-9)
    fit = special.xlogy(successes, inside) + special.xlogy(sizes - successes, 1 - inside)
    odds = special.softmax(fit.sum(axis=-1).mean(axis=-1))
    return np.where(points[:, 1, None] < odds[0], *rates)


# How many labels an audit will take, from what is supposed before there are any data.

MOST = 50_000_000  # labels; more are not planned


def _other_rate(options: PlanOptions) -> float:
    """Return the rate of the smallest group where it differs from the others'."""
    rate, gap = options.rate, options.gap
    return rate - gap if rate >= gap else rate + gap


def _plan_risk(options: PlanOptions) -> float:
    """Return the error rate of one question: a page asks of each attribute, and of each two."""
    attributes = options.attributes
    return risk_of(len(RATE_OF) * attributes * (attributes + 1) // 2)


def _planned_labels(
    options: PlanOptions, *, no_difference: bool, equally: bool
) -> list[int | None]:
    """Return how many labels give the right verdict with a probability of 0.2, and of 0.8.

    Rates are estimated from labels alone: scores, which may help, are not known yet.

    Parameters
    ----------
    no_difference : whether all groups have the same rate, so that the right verdict is a small
        gap; otherwise the smallest group differs by the gap, and the right verdict is a gap.
    equally : whether all groups get the same number of labels; otherwise people are labelled at
        random.

    Returns
    -------
    Both numbers; None where even `MOST` labels do not suffice.
    """
    gap = options.gap
    risk = _plan_risk(options)
    shares = np.array(options.groups)
    rates = np.full(len(options.groups), options.rate)
    label_shares = np.full(len(shares), 1 / len(shares)) if equally else shares / shares.sum()
    if not no_difference:
        rates[shares.argmin()] = _other_rate(options)
    luck = special.ndtri(_points(len(shares), options.seed, "plan"))
    nothing = np.zeros(len(shares))
    # Pairs of several groups are named at half the risk.
    of_pair = 1 - risk / (2 if len(shares) > 2 else 1)
    level = one_sided_level(risk) if no_difference else of_pair

    def chance(labels: float) -> float:
        """Return the power: the probability of the right verdict with so many labels."""
        sizes = labels * (label_shares * options.among)
        supposed = _supposed_gap(nothing, nothing, rates, luck, sizes, level)
        return float((supposed.upper < gap if no_difference else supposed.lower > 0).mean())

    return [_least_number(chance, probability, 1, MOST) for probability in (UNLIKELY, LIKELY)]


def plan_document(options: PlanOptions) -> Document:
    """Return the numbers of labels to two digits, and what they suppose."""
    smallest = f"{100 * min(options.groups):g} %"
    sizes = " : ".join(f"{100 * share:g} %" for share in options.groups)
    claims = {
        True: f"no two groups differ by {options.gap:g} or more, if all are alike",
        False: f"groups differ, if the one of {smallest} has a rate of {_other_rate(options):g}",
    }
    rows = []
    for (no_difference, claim), equally in product(claims.items(), (False, True)):
        labels = _planned_labels(options, no_difference=no_difference, equally=equally)
        few, enough = (f"over {count(MOST)}" if n is None else two_digits(n) for n in labels)
        chosen = "as many in each group" if equally else "at random"
        rows.append({"claim": claim, "chosen": chosen, "few": few, "enough": enough})
    text = sentence_of("plan", "text", sizes=sizes, options=options)
    lead = [Paragraph(text), Paragraph(sentence_of("plan", "assumed"), "note")]
    sections = [Section("", [named_table("plan", "labels", rows)])]
    return Document("Labels that an audit will take", sections, lead=lead)
