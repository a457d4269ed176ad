"""Two classifiers compared on the same rows: whose gaps between groups are smaller."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.audits.completion import MOST_BY_GROUP, MOST_CALIBRATED, complete
from fairbench.audits.conclusions import Conclusions
from fairbench.audits.gaps import CERTAIN, NEEDS_NO_LABELS, OPEN, RATE_NAMES, RATE_OF
from fairbench.audits.question import Options
from fairbench.audits.table import AuditTable, read_audit_table
from fairbench.core.formats import count, interval, probability, signed
from fairbench.core.seeds import rng
from fairbench.inference.few_labels.paired import (
    PATTERNS,
    margins,
    paired_calibration,
    split_by_pattern,
)
from fairbench.inference.few_labels.table import PartlyLabelled
from fairbench.inference.posterior import central_interval
from fairbench.metrics.group import gap
from fairbench.metrics.rates import accuracy

Floats = NDArray[np.float64]
DRAWS, MINIMUM = 2048, 30
ALIKE, SMALLER, LARGER = "alike", "smaller", "larger"
# Cells that a row can fall in: where only the first says 1 there are none of its negatives.
_POSSIBLE = np.array([[1, 1, 1, 1], [0, 1, 0, 1], [1, 0, 1, 0]], dtype=bool)


@dataclass(frozen=True)
class GapComparison:
    """A metric of two classifiers, and the second's less the first's.

    Attributes
    ----------
    attribute : empty for the accuracy of everyone. metric : a gap's size, or the accuracy.
    first, second : raw, of the mean counts.
    difference, lower, upper : mean and interval of the difference's posterior.
    lesser : the probability that the second's is smaller.
    small : that they differ by less than epsilon.
    assumed : whether labels were needed and there are none: the scores were believed.
    """

    attribute: str
    metric: str
    first: float
    second: float
    difference: float
    lower: float
    upper: float
    lesser: float
    small: float
    assumed: bool = False

    @property
    def verdict(self) -> str:
        """No difference that matters, if that is certain; else what the interval says."""
        if self.small >= CERTAIN:
            return ALIKE
        if self.upper < 0:
            return SMALLER
        return LARGER if self.lower > 0 else OPEN


@dataclass(frozen=True, eq=False)
class PairAssessment:
    """The result of comparing two classifiers' gaps on the same rows.

    Attributes
    ----------
    table : of the first classifier; rows and labels are the same for both.
    rows : everyone's accuracy, then every attribute's gaps.
    """

    options: Options
    table: AuditTable
    rows: Sequence[GapComparison]


def assess_pair(table: AuditTable, frame: pd.DataFrame, options: Options) -> PairAssessment:
    """Compare the classifier that a table is of with that of the column ``against=`` names.

    Parameters
    ----------
    frame : the table as it was read.
    """
    other = read_audit_table(replace(options, score=options.against), frame=frame)
    rows = list(compare_tables(table, other, options.seed, options.epsilon))
    return PairAssessment(options, table, rows)


def compare_tables(
    first: AuditTable, second: AuditTable, seed: int, epsilon: float
) -> Iterator[GapComparison]:
    """Yield the accuracies, and the gaps of every attribute with two groups of enough rows.

    Parameters
    ----------
    epsilon : a difference under this makes no practical difference.
    """
    unlabelled = not len(first.known)
    compared = partial(_compared, epsilon=epsilon, unlabelled=unlabelled)
    for place, (attribute, groups) in enumerate(first.groups.items()):
        draws = population_pair(
            first.partly_labelled(groups),
            second.partly_labelled(groups),
            rng(seed, "pair", attribute),
        )
        if not place:
            everyone = [each.sum(axis=1, keepdims=True) for each in draws]
            yield compared("", "accuracy", lambda each: accuracy(each)[..., 0], everyone)
        enough = np.flatnonzero(large_enough(groups))
        if len(enough) > 1:
            of_groups = [each[:, enough] for each in draws]
            for metric, rate in RATE_OF.items():
                yield compared(attribute, metric, partial(gap, rate), of_groups)


def large_enough(groups: pd.Series) -> NDArray[np.bool_]:
    """Say of each category whether its rows are enough to be compared."""
    size = np.bincount(groups.cat.codes, minlength=len(groups.cat.categories))
    return size >= MINIMUM


def population_pair(
    first: PartlyLabelled, second: PartlyLabelled, generator: np.random.Generator
) -> tuple[Floats, Floats]:
    """Draw both classifiers' shares of TN, FP, FN, TP in the population, two (T, G, 4).

    The shares of a group sum to its share of the rows. Few labels are extended by paired
    calibration, many by those of the same group and decisions.
    """
    split, labels = split_by_pattern(first, second), len(first.labelled)
    few = labels <= MOST_CALIBRATED and labels * split.n_groups <= MOST_BY_GROUP
    if few and labels < len(first.score):
        counts = paired_calibration(first, second, generator, draws=DRAWS).calibration.counts
    else:
        counts = complete(split, generator, has_score=True).counts
    joint = np.broadcast_to(counts, (DRAWS, *counts.shape[1:]))
    groups = joint.reshape(DRAWS, -1, PATTERNS, 4)
    # Half a row in each of eight cells is one in each of a classifier's four.
    gammas = generator.standard_gamma(groups + 0.5) * _POSSIBLE
    size = groups.sum(axis=(2, 3), keepdims=True)
    shares = gammas / gammas.sum(axis=(2, 3), keepdims=True) * size / len(first.score)
    return margins(shares)


def _compared(
    attribute: str,
    metric: str,
    function: Callable[[Floats], Floats],
    draws: Sequence[Floats],
    *,
    epsilon: float,
    unlabelled: bool,
) -> GapComparison:
    """Summarise draws of both; the two values are those of the mean counts, less widened by noise.

    The difference is the mean of its posterior, as its interval is the posterior's: noise need not
    widen both gaps alike.
    """
    first, second = (float(function(each.mean(axis=0))) for each in draws)
    difference = function(draws[1]) - function(draws[0])
    lower, upper = map(float, central_interval(difference))
    lesser, small = (float(x.mean()) for x in (difference < 0, np.abs(difference) < epsilon))
    assumed = unlabelled and metric != NEEDS_NO_LABELS
    mean = float(difference.mean())
    return GapComparison(
        attribute, metric, first, second, mean, lower, upper, lesser, small, assumed
    )


def conclude_pair(assessment: PairAssessment) -> Conclusions:
    """Return the conclusions of a comparison."""
    options, table, rows = assessment.options, assessment.table, assessment.rows
    settled = [row for row in rows if row.verdict != OPEN and not row.assumed]
    return Conclusions(
        _warning(table),
        list(_basis(options, table)),
        [_settled(options, row) for row in settled],
        list(_not_settled(options, [row for row in rows if row not in settled])),
        list(_notes(table, rows)),
    )


def verdict_text(row: GapComparison) -> str:
    """Return the verdict of a row on the second classifier in a word; accuracies are no gaps."""
    if row.assumed:
        return "assumed"
    if row.attribute:
        return row.verdict
    return {SMALLER: "lower", LARGER: "higher"}.get(row.verdict, row.verdict)


def measured(row: GapComparison) -> str:
    """Return what a row is about: everyone's accuracy, or the rate whose gap it is."""
    return RATE_NAMES.get(row.metric, "accuracy itself")


def _warning(table: AuditTable) -> str:
    if len(table.known):
        return ""
    return (
        "There are no labels. Whatever needs them takes both scores at their word: if one of them "
        "is wrong, so are these figures, and nothing here would show it."
    )


def _basis(options: Options, table: AuditTable) -> Iterator[str]:
    rows, labels = len(table), len(table.known)
    yield (
        f"{options.against} against {options.score} on the {count(rows)} rows of "
        f"{options.path.name}, {count(labels)} of them with a label ({labels / rows:.2%})."
    )
    if labels == rows:
        yield "Intervals say how far off the population may be that these rows are a sample of."
    elif labels:
        yield (
            "Labels of the other rows are drawn from both scores, calibrated together on the "
            "labelled rows, or, of many labels, from rows of the same group and decisions. This "
            "assumes that rows were chosen for labelling at random, or by group and scores alone."
        )


def _settled(options: Options, row: GapComparison) -> str:
    one, other, about = options.score, options.against, measured(row)
    numbers = f"difference {signed(row.difference)}, 95 % interval {interval(row.lower, row.upper)}"
    if row.verdict == ALIKE:
        both = f"{row.attribute}: the gaps in {about}" if row.attribute else "The accuracies"
        return (
            f"{both} of {one} and {other} differ by less than {options.epsilon:g} (probability "
            f"{probability(row.small)}; {numbers})."
        )
    if row.attribute:
        than = f"{row.verdict} gap in {about} than {one}"
        return f"{row.attribute}: {other} has a {than} ({numbers})."
    more = "less" if row.verdict == SMALLER else "more"
    return f"{other} is {more} accurate than {one} ({numbers})."


def _not_settled(options: Options, rows: Sequence[GapComparison]) -> Iterator[str]:
    other = options.against
    for attribute in dict.fromkeys(row.attribute for row in rows):
        mine = [row for row in rows if row.attribute == attribute]
        assumed = ", ".join(measured(row) for row in mine if row.assumed)
        still = [row for row in mine if not row.assumed]
        listed = ", ".join(f"{probability(row.lesser)} in {measured(row)}" for row in still)
        if assumed:
            yield f"{attribute or 'Everyone'}: without labels nothing is known of {assumed}."
        if listed and attribute:
            yield f"{attribute}: open whose gap is smaller; {other}'s is with probability {listed}."
        elif listed:
            less = probability(still[0].lesser)
            yield f"Open which is more accurate; {other} is less so with probability {less}."


def _notes(table: AuditTable, rows: Sequence[GapComparison]) -> Iterator[str]:
    yield from table.notes
    for attribute, groups in table.groups.items():
        enough = large_enough(groups)
        few = ", ".join(map(str, groups.cat.categories[~enough]))
        kept = "" if enough.sum() > 1 else "; there are no two groups to compare"
        if few:
            yield f"{attribute}: left out for under {MINIMUM} rows: {few}{kept}."
    judged = sum(not row.assumed for row in rows)
    yield (
        f"Differences examined at 95 %: {judged}. On average {judged * (1 - CERTAIN):.1f} of that "
        "many would be misjudged if every verdict were as uncertain as is allowed."
    )
