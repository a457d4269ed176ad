"""Verdicts on statements, and on claims that combine several: holds, fails or not resolved."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from fairbench.comparison.atlas.claim_values import Claim, ClaimPart, select_deciding
from fairbench.comparison.atlas.values import AtlasValues, epsilon_of
from fairbench.core.arrays import Floats
from fairbench.core.formats import interval, number
from fairbench.inference.comparing.family_means import family_means, mean_over_families
from fairbench.inference.comparing.multilevel import FEWEST_FAMILIES
from fairbench.metrics.registry import label

# Turns the lower and the upper limit of a difference, and its epsilon, into a verdict.
Judge = Callable[[float, float, float], str]
HOLDS, FAILS, OPEN = "holds", "fails", "not resolved"
FEW_TASKS = (
    "A difference that was measured on fewer than half of the tasks is marked “few tasks” and "
    "decides nothing."
)
NO_DIFFERENCE_IS_LARGE = (
    "A difference under 0.01 counts as none. The claim holds if every difference is surely under "
    "0.01. It fails if one is surely above 0 and may be 0.01 or more."
)


def pluralise(count: int, one: str, several: str) -> str:
    """Return a count with the singular or the plural of a word.

    Examples
    --------
    >>> pluralise(1, "is", "are"), pluralise(2, "is", "are")
    ('1 is', '2 are')
    """
    return f"{count} {one if count == 1 else several}"


class StatementVerdict(Protocol):
    """A statement with two verdicts: one simultaneous with others, and one by itself."""

    @property
    def verdict(self) -> str:
        """By an interval that is simultaneous with all others."""
        ...

    @property
    def alone(self) -> str:
        """By its own interval."""
        ...


@dataclass(frozen=True)
class TwoVerdicts:
    """A verdict that is simultaneous with others, and one by itself."""

    verdict: str
    alone: str


def larger(lower: float, upper: float, epsilon: float) -> str:
    """Return whether a difference is above 0, given the limits of its interval.

    It fails if the difference is surely smaller than `epsilon`, and is open if it is neither.
    """
    if upper < epsilon:
        return FAILS
    return HOLDS if lower > 0 else OPEN


def no_larger(lower: float, upper: float, epsilon: float) -> str:
    """Return whether a difference is too small to matter: the opposite of `larger`."""
    return {HOLDS: FAILS, FAILS: HOLDS, OPEN: OPEN}[larger(lower, upper, epsilon)]


def sign_in_words(part: ClaimPart, *, alone: bool = False) -> str:
    """Return whether a difference is ``above 0``, ``under`` its epsilon, or ``open``.

    Unlike the verdict of a part, these words do not depend on what the claim says.

    Parameters
    ----------
    alone : by the difference's own interval, in place of the one that is simultaneous with others.
    """
    if (part.alone if alone else part.verdict) == OPEN:
        return "open"
    limits = (part.lower, part.upper) if alone else (part.all_lower, part.all_upper)
    return "above 0" if larger(*limits, part.epsilon) == HOLDS else f"under {part.epsilon:g}"


def all_hold(parts: Sequence[StatementVerdict]) -> str:
    """Return the verdict on a claim that holds if all of its parts hold.

    It fails if one part fails, judged by simultaneous intervals. It holds if every part holds by
    its own interval: by the intersection-union principle this needs no correction for the number of
    parts (Berger 1982, Technometrics 24).
    """
    if any(part.verdict == FAILS for part in parts):
        return FAILS
    return HOLDS if parts and all(part.alone == HOLDS for part in parts) else OPEN


def any_holds(parts: Sequence[StatementVerdict]) -> str:
    """Return the verdict on a claim that holds if any part holds: the mirror of `all_hold`."""
    if any(part.verdict == HOLDS for part in parts):
        return HOLDS
    return FAILS if parts and all(part.alone == FAILS for part in parts) else OPEN


@dataclass(frozen=True, eq=False)
class ClaimSeries:
    """A difference in a metric that is part of a claim, (T tasks, R splits), and its rule."""

    label: str
    metric: str
    values: Floats
    judge: Judge


def judge_parts(values: AtlasValues, series: Sequence[ClaimSeries]) -> tuple[ClaimPart, ...]:
    """Return the parts of a claim, each with a verdict by its mean over families.

    The intervals of the parts that decide are simultaneous (Bonferroni). A part on few tasks
    decides nothing, and one on fewer than three families is left out.

    Parameters
    ----------
    series : the differences that the claim is about, one for each part.
    """
    measured_series = [
        part_series for part_series in series if np.isfinite(part_series.values).any()
    ]
    if not measured_series:
        return ()
    measured = values.estimate_differences(
        np.stack([part_series.values for part_series in measured_series])
    )
    enough = measured.families >= FEWEST_FAMILIES
    few = measured.known.sum(axis=1) < values.fewest_tasks
    if not enough.any():
        return ()
    n_deciding = max(int((enough & ~few).sum()), 1)
    means = family_means(measured)
    pointwise = mean_over_families(means, level=1 - 0.05)
    simultaneous = mean_over_families(means, level=1 - 0.05 / n_deciding)
    simultaneous_verdicts = _verdicts(measured_series, simultaneous.lower, simultaneous.upper)
    pointwise_verdicts = _verdicts(measured_series, pointwise.lower, pointwise.upper)
    parts = []
    for position in np.flatnonzero(enough):
        part_series, is_known = measured_series[position], measured.known[position]
        part = ClaimPart(
            label=part_series.label,
            metric=part_series.metric,
            mean=float(pointwise.value[position]),
            lower=float(pointwise.lower[position]),
            upper=float(pointwise.upper[position]),
            all_lower=float(simultaneous.lower[position]),
            all_upper=float(simultaneous.upper[position]),
            epsilon=epsilon_of(part_series.metric),
            tasks=int(is_known.sum()),
            families=int(measured.families[position]),
            positive=int((measured.means[position][is_known] > 0).sum()),
            verdict=_consistent(simultaneous_verdicts[position], pointwise_verdicts[position]),
            alone=pointwise_verdicts[position],
            few_tasks=bool(few[position]),
            of_families=tuple(map(float, means[position][np.isfinite(means[position])])),
        )
        parts.append(part)
    return tuple(parts)


def _verdicts(series: Sequence[ClaimSeries], lower: Floats, upper: Floats) -> list[str]:
    """Return the verdict on each series, by the rule of the series and the limits of its mean."""
    limits = zip(series, lower, upper, strict=True)
    return [
        part_series.judge(float(low), float(high), epsilon_of(part_series.metric))
        for part_series, low, high in limits
    ]


def _consistent(verdict: str, alone: str) -> str:
    """Return the verdict of a simultaneous interval, or `OPEN` if it contradicts the narrower one.

    That can happen because the wider interval may reach epsilon where the narrower one does not.
    """
    return verdict if verdict == alone else OPEN


def claim_of_all(
    *,
    name: str,
    statement: str,
    source: str,
    difference: str,
    rule: str,
    measured: str,
    words: tuple[str, str],
    parts: tuple[ClaimPart, ...],
    decided_by: Sequence[ClaimPart] | None = None,
    remarks: tuple[str, ...] = (),
    fairest: tuple[ClaimPart, ...] = (),
) -> Claim:
    """Return a claim that holds if every part that decides it holds.

    Parameters
    ----------
    measured : a sentence on what was measured, with ``{}`` in the place of the differences.
    words : the word for a difference below 0, and that for one above.
    """
    deciding_parts = select_deciding(parts if decided_by is None else decided_by)
    return Claim(
        name=name,
        statement=statement,
        source=source,
        difference=difference,
        rule=rule,
        verdict=all_hold(deciding_parts),
        parts=parts,
        evidence=_evidence(measured, words, deciding_parts),
        remarks=remarks,
        fairest=fairest,
    )


def _evidence(measured: str, words: tuple[str, str], parts: Sequence[ClaimPart]) -> str:
    """Return a sentence on the means of the parts that decide: each of two, or their range."""
    parts = [part for part in parts if part.mean == part.mean]
    if not parts:
        return ""
    if len(parts) > 2:
        means = [part.mean for part in parts]
        span = _range_in_words(min(means), max(means), words)
        return f"{measured.format(span)} ({len(parts)} comparisons)."
    told = [signed_in_words(part.mean, part.lower, part.upper, words) for part in parts]
    if len(parts) > 1:
        told = [f"{text} in {label(part.metric)}" for text, part in zip(told, parts, strict=True)]
    return f"{measured.format(' and '.join(told))}."


def signed_in_words(mean: float, lower: float, upper: float, words: tuple[str, str]) -> str:
    """Return a difference and its interval without sign, with a word for its direction.

    Parameters
    ----------
    words : the word for a difference below 0, and that for one above.

    Examples
    --------
    >>> signed_in_words(-0.003, -0.006, -0.001, ("less", "more"))
    '0.003 less (0.001 to 0.006)'
    """
    sign = 1 if mean >= 0 else -1
    low, high = sorted([sign * lower, sign * upper])
    return f"{number(abs(mean))} {words[mean >= 0]} ({interval(low, high)})"


def _range_in_words(least: float, most: float, words: tuple[str, str]) -> str:
    """Return the ends of a range without sign, with a word for the direction of each."""
    if least >= 0:
        return f"{number(least)} to {number(most)} {words[1]}"
    if most <= 0:
        return f"{number(-most)} to {number(-least)} {words[0]}"
    return f"between {number(-least)} {words[0]} and {number(most)} {words[1]}"
