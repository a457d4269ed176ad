"""Claims of the literature that the atlas can test, and the rules by which they hold or fail.

Each claim states in its rule which differences decide it. A function for each measures these, its
*parts*, and combines their verdicts into that on the claim: `claims` has all of them. A verdict is
*holds*, *fails* or *not resolved*; each difference has two, one by an interval that holds
simultaneously with the others', and one *alone*, by its own 95 % interval.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import yaml

from fairbench.components.papers.atlas.thresholds import (
    FAILS,
    HOLDS,
    OPEN,
    MarginSeries,
    Verdicts,
    all_hold,
    falls_by_intervention,
)
from fairbench.core.arrays import Floats
from fairbench.core.text import interval, number
from fairbench.metrics.registry import label
from fairbench.reporting.group_tables import sentence_of
from fairbench.results.runs import Run
from fairbench_rank.approaches import (
    APPROACH,
    ERROR,
    FEWEST_FAMILIES,
    NONE,
    ApproachValues,
    Contrast,
    contrasts,
    epsilon_of,
    family_means,
    finite_mean,
    mean_differences,
    mean_over_families,
    name_with_group_need,
    option_values,
)
from fairbench_rank.standings import GAPS, pluralise

# Turns the lower and the upper limit of a difference, and its epsilon, into a verdict.
Judge: TypeAlias = Callable[[float, float, float], str]
_OPPOSITE = {HOLDS: FAILS, FAILS: HOLDS, OPEN: OPEN}

UNPROCESSING = "unprocessing_dominates"  # the claim's name
_WITHHELD = "abstained=0.2"
_PAGE = "fairbench.components.papers.atlas:claims"
_tell = partial(sentence_of, _PAGE)
ROLES = Path(__file__).with_name("claims.yaml")


def larger(lower: float, upper: float, epsilon: float) -> str:
    """Return whether a difference is above 0, given the limits of its interval.

    It fails if the difference is surely smaller than `epsilon`, and is open if it is neither.
    """
    if upper < epsilon:
        return FAILS
    return HOLDS if lower > 0 else OPEN


def no_larger(lower: float, upper: float, epsilon: float) -> str:
    """Return whether a difference is too small to matter: the opposite of `larger`."""
    return _OPPOSITE[larger(lower, upper, epsilon)]


def any_holds(verdicts: Sequence[Verdicts]) -> str:
    """Return the verdict on a claim that holds if any part holds: the mirror of `all_hold`."""
    return _OPPOSITE[all_hold([(_OPPOSITE[one], _OPPOSITE[alone]) for one, alone in verdicts])]


@dataclass(frozen=True)
class _ClaimPart:
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

    @property
    def verdicts(self) -> Verdicts:
        """Both verdicts."""
        return self.verdict, self.alone


def sign_in_words(part: _ClaimPart) -> str:
    """Return whether a difference is ``above 0``, ``under`` its epsilon, or ``open``.

    Unlike the verdict of a part, these words do not depend on what the claim says.
    """
    if part.verdict == OPEN:
        return "open"
    is_above = larger(part.all_lower, part.all_upper, part.epsilon) == HOLDS
    return "above 0" if is_above else f"under {part.epsilon:g}"


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
    """

    name: str
    statement: str
    source: str
    difference: str
    rule: str
    verdict: str
    parts: tuple[_ClaimPart, ...]
    evidence: str = ""
    remarks: tuple[str, ...] = ()

    @property
    def criterion(self) -> str:
        """Return what the differences are, and when the claim holds or fails."""
        return f"The difference is {self.difference}. {self.rule}"

    @property
    def deciding_parts(self) -> tuple[_ClaimPart, ...]:
        """Return the parts that were measured on enough tasks to decide the claim."""
        return _select_deciding(self.parts)


def _select_deciding(parts: Iterable[_ClaimPart]) -> tuple[_ClaimPart, ...]:
    """Return the parts that were measured on enough tasks to decide a claim."""
    return tuple(part for part in parts if not part.few_tasks)


@dataclass(frozen=True, eq=False)
class _ClaimSeries:
    """A difference in a metric that is part of a claim, (T tasks, R splits), and its rule."""

    label: str
    metric: str
    values: Floats
    judge: Judge


def _judge_parts(values: ApproachValues, series: Sequence[_ClaimSeries]) -> tuple[_ClaimPart, ...]:
    """Return the parts of a claim, each with a verdict by its mean over families.

    The intervals of the parts that decide are simultaneous (Bonferroni). A part on few tasks
    decides nothing, and one on fewer than three families is left out.

    Parameters
    ----------
    series : the differences that the claim is about, one for each part.
    """
    measured_series = [one for one in series if np.isfinite(one.values).any()]
    if not measured_series:
        return ()
    measured = values.estimate_differences(np.stack([one.values for one in measured_series]))
    enough = measured.families >= FEWEST_FAMILIES
    few = measured.known.sum(axis=1) < values.fewest_tasks
    if not enough.any():
        return ()
    n_deciding = max(int((enough & ~few).sum()), 1)
    means = family_means(measured)
    pointwise = mean_over_families(means, level=1 - 0.05)
    simultaneous = mean_over_families(means, level=1 - 0.05 / n_deciding)
    parts = []
    for position in np.flatnonzero(enough):
        one, is_known = measured_series[position], measured.known[position]
        epsilon = epsilon_of(one.metric)
        mean, lower, upper = (float(end[position]) for end in pointwise)
        all_lower, all_upper = (float(end[position]) for end in simultaneous[1:])
        alone = one.judge(lower, upper, epsilon)
        # The wider interval may reach epsilon where the narrower one does not: a contradiction.
        agrees = one.judge(all_lower, all_upper, epsilon) == alone
        parts.append(
            _ClaimPart(
                label=one.label,
                metric=one.metric,
                mean=mean,
                lower=lower,
                upper=upper,
                all_lower=all_lower,
                all_upper=all_upper,
                epsilon=epsilon,
                tasks=int(is_known.sum()),
                families=int(measured.families[position]),
                positive=int((measured.means[position][is_known] > 0).sum()),
                verdict=alone if agrees else OPEN,
                alone=alone,
                few_tasks=bool(few[position]),
            )
        )
    return tuple(parts)


@cache
def _declared() -> dict[str, Any]:
    """Return which components claims are about, and the texts of the claims."""
    return yaml.safe_load(ROLES.read_text())


def _claim(name: str, **found: Any) -> Claim:
    """Return a claim with its texts, and what was found."""
    texts = _declared()["texts"][name]
    return Claim(
        name, **{k: texts[k] for k in ("statement", "source", "difference", "rule")}, **found
    )


def _claim_of_all(
    name: str,
    parts: tuple[_ClaimPart, ...],
    decided_by: Sequence[_ClaimPart] | None = None,
    **found: Any,
) -> Claim:
    """Return a claim that holds if every part that decides it holds."""
    deciding = _select_deciding(parts if decided_by is None else decided_by)
    verdict = all_hold([part.verdicts for part in deciding])
    texts = _declared()["texts"][name]
    evidence = _range_of(texts["measured"], texts["words"], deciding)
    return _claim(name, verdict=verdict, parts=parts, evidence=evidence, **found)


def _range_of(measured: str, words: Sequence[str], parts: Sequence[_ClaimPart]) -> str:
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


def signed_in_words(mean: float, lower: float, upper: float, words: Sequence[str]) -> str:
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


def _range_in_words(least: float, most: float, words: Sequence[str]) -> str:
    """Return the ends of a range without sign, with a word for the direction of each."""
    if least >= 0:
        return f"{number(least)} to {number(most)} {words[1]}"
    if most <= 0:
        return f"{number(-most)} to {number(-least)} {words[0]}"
    return f"between {number(-least)} {words[0]} and {number(most)} {words[1]}"


def claims(
    values: ApproachValues,
    margins: Sequence[MarginSeries],
    remarks: Sequence[str] = (),
) -> tuple[Claim, ...]:
    """Return every claim that the atlas has the runs for.

    Parameters
    ----------
    values : the values of approaches in all settings.
    margins : the margins of interventions over relaxed thresholds, with one entry for each
        approach, task and gap.
    remarks : ways in which interventions were not configured on equal terms.
    """
    plain = values.only(values.table["setting"] == "")
    interventions = contrasts(plain, "intervention", NONE)
    methods = contrasts(plain, "method", _declared()["likelihood"])
    recalibrated = _chosen(interventions, _declared()["recalibrations"])
    others = [contrast for contrast in interventions if contrast not in recalibrated]
    all_claims = [
        _unprocessing_claim(values, margins, remarks),
        *_intervention_claims(plain, others),
        _ensemble_claim(plain, _chosen(methods, _declared()["bags"])),
        _binomial_claim(plain, methods),
        *_abstention_claims(values),
        _recalibration_claim(plain, recalibrated),
    ]
    return tuple(claim for claim in all_claims if claim.parts)


def _chosen(compared: Sequence[Contrast], names: Sequence[str]) -> list[Contrast]:
    return [contrast for contrast in compared if contrast.label.split()[0] in names]


def _series(
    plain: ApproachValues,
    compared: Sequence[Contrast],
    metric: str,
    judge: Judge,
    *,
    falls: bool = False,
    remark: str = "",
) -> list[_ClaimSeries]:
    """Return by how much each contrast raises a metric, or by how much the metric falls."""
    differences = (-1 if falls else 1) * mean_differences(plain.metric(metric), compared)
    return [
        _ClaimSeries(f"{contrast.name}{remark}", metric, difference, judge)
        for contrast, difference in zip(compared, differences, strict=True)
    ]


def _unprocessing_claim(
    values: ApproachValues,
    margins: Sequence[MarginSeries],
    remarks: Sequence[str] = (),
) -> Claim:
    """Return the claim that thresholds do no worse than any intervention.

    Parameters
    ----------
    remarks : further ways in which the comparison is uneven, of :func:`unequal_terms_remarks`.
    """
    falls = falls_by_intervention(values, margins)
    series = [
        _ClaimSeries(f"{name}, at the same {label(gap)}", ERROR, fall, no_larger)
        for (name, gap), fall in falls.items()
    ]
    parts = _judge_parts(values, series)
    names = (part.label.split()[0] for part in _select_deciding(parts) if part.mean == part.mean)
    fairest = dict.fromkeys(name for name in names if name in _declared()["thresholds"])
    of_rows = []
    if compared := sorted({margin.approach for margin in margins}):
        rows = values.approaches.iloc[compared].drop_duplicates(["intervention", "options"])
        without = int((~rows["group_at_prediction"].astype(bool)).sum())
        several = pluralise(len(rows), "intervention and strength", "interventions and strengths")
        of_rows.append(_tell("validation_rows", several=several, without=without))
    if fairest:
        of_rows.append(_tell("training_rows", names=" and ".join(fairest)))
    return _claim_of_all(UNPROCESSING, parts, remarks=(*of_rows, *remarks))


def unequal_terms_remarks(runs: Sequence[Run], path: Path = ROLES) -> list[str]:
    """Return remarks on interventions of these runs that were not configured on equal terms.

    Parameters
    ----------
    path : a configuration file with a list ``unlevel``. Each entry has an ``intervention``, its
        ``options`` and a remark ``says``, which is returned if a run has exactly these options.
    """
    return _remarks_on([run.config["intervention"] for run in runs], path)


def unequal_terms_of_table(table: pd.DataFrame, path: Path = ROLES) -> list[str]:
    """Return the same remarks of a table of approaches, which names the options that differ."""
    used = table[["intervention", "options"]].drop_duplicates().itertuples(index=False, name=None)
    words = ((name, options.replace("intervention.", "").split()) for name, options in used)
    return _remarks_on(
        [{"name": name, **dict(each.split("=", 1) for each in own)} for name, own in words], path
    )


def _remarks_on(used: Sequence[Mapping[str, Any]], path: Path) -> list[str]:
    """Return the remarks on interventions; an option that is not named is taken to be as in one."""
    return [
        remark["says"]
        for remark in yaml.safe_load(path.read_text()).get("unlevel", [])
        for expected in [{"name": remark["intervention"], **remark["options"]}]
        if any(all(str(own.get(k, v)) == str(v) for k, v in expected.items()) for own in used)
    ]


def _intervention_claims(
    plain: ApproachValues, compared: Sequence[Contrast]
) -> tuple[Claim, Claim]:
    """Return two claims: interventions help at equal error, and fairness costs accuracy."""
    series = _series(plain, compared, ERROR, larger)
    for gap in GAPS:
        series += _series(plain, compared, gap, larger, falls=True)
    parts = _judge_parts(plain, series)
    deciding = _select_deciding(parts)
    verdict = _some_intervention_helps(deciding)

    def claim(name: str, verdict: str) -> Claim:
        return _claim(name, verdict=verdict, parts=parts, evidence=_best_of(name, deciding))

    costly = claim("fairness_costs_accuracy", _OPPOSITE[verdict])
    return claim("interventions_help_at_equal_error", verdict), costly


def _some_intervention_helps(parts: Sequence[_ClaimPart]) -> str:
    """Return the verdict on "some intervention lowers a gap and does not raise the error"."""
    part_of = {(part.label, part.metric): part for part in parts}
    both = []
    for (name, metric), cost in part_of.items():
        if metric == ERROR:
            falls = any_holds([part_of[name, g].verdicts for g in GAPS if (name, g) in part_of])
            both.append((_and(falls, _OPPOSITE[cost.verdict]), _and(falls, _OPPOSITE[cost.alone])))
    return any_holds(both)


def _and(one: str, other: str) -> str:
    """Return the verdict on two statements together."""
    return FAILS if FAILS in (one, other) else HOLDS if one == other == HOLDS else OPEN


def _best_of(name: str, parts: Sequence[_ClaimPart]) -> str:
    """Return what was measured of the intervention that lowers a gap most, and what follows.

    It is the best of those that lower a gap and do not raise the error by simultaneous intervals;
    if there are none, of those that do by the intervals of each difference alone; then of all.

    Parameters
    ----------
    parts : the parts that decide the claim.
    """
    part_of = {(part.label, part.metric): part for part in parts}
    gap_parts = [part for part in parts if part.metric in GAPS and (part.label, ERROR) in part_of]

    def surely(way: int) -> list[_ClaimPart]:
        pairs = ((part, part_of[part.label, ERROR]) for part in gap_parts)
        return [a for a, b in pairs if (a.verdicts[way], b.verdicts[way]) == (HOLDS, FAILS)]

    at_once, alone = surely(0), surely(1)
    gap = max(at_once or alone or gap_parts, key=lambda part: part.mean, default=None)
    if gap is None:
        return ""
    cost = part_of[gap.label, ERROR]
    conclusion = _declared()["texts"][name]["measured"]
    told = "shown" if at_once else "not_shown" if alone else ""
    sure = _tell(told, conclusion=conclusion, count=len(parts)) if told else ""
    changes = {
        "by_gap": (-gap.mean, -gap.upper, -gap.lower),
        "by_error": (cost.mean, cost.lower, cost.upper),
    }
    names = {"gap_label": label(gap.metric), "error": label(ERROR)}
    return _tell("best", gap=gap, sure=sure, **names, **changes)


def _ensemble_claim(plain: ApproachValues, compared: Sequence[Contrast]) -> Claim:
    """Return the claim that bags are worse calibrated than the binomial likelihood."""
    own_metrics = ("log_loss", "expected_calibration_error")
    series = []
    for name in (*own_metrics, "nll"):
        read = "own probability" if name in own_metrics else "members' disagreement"
        by = "its" if name in own_metrics else "the"
        series += _series(plain, compared, name, larger, remark=f", by {by} {read}")
    parts = _judge_parts(plain, series)
    deciding = [part for part in parts if part.metric in own_metrics]
    return _claim_of_all("ensembles_are_uncalibrated", parts, deciding)


def _binomial_claim(plain: ApproachValues, compared: Sequence[Contrast]) -> Claim:
    """Return the claim that no method has a smaller log loss than the binomial likelihood."""
    series = _series(plain, compared, "log_loss", no_larger, falls=True)
    return _claim_of_all("binomial_nll_is_best", _judge_parts(plain, series))


def _abstention_claims(values: ApproachValues) -> tuple[Claim, Claim]:
    """Return two claims: withholding a fifth of the labels lowers the error, and the gaps."""
    is_unconstrained = values.table["intervention"] == NONE
    plain = values.only(is_unconstrained & values.table["setting"].isin(["", _WITHHELD]))

    def lowers(name: str, metrics: Sequence[str]) -> Claim:
        series = [
            _ClaimSeries(method, metric, fall, larger)
            for metric in metrics
            for method, fall in _fall_by_method(plain, metric).items()
        ]
        return _claim_of_all(name, _judge_parts(plain, series))

    return lowers("abstention_lowers_the_error", (ERROR,)), lowers("abstention_lowers_gaps", GAPS)


def _fall_by_method(values: ApproachValues, metric: str) -> dict[str, Floats]:
    """Return how much withholding labels lowers a metric: method -> (T, R)."""
    metric_values = values.metric(metric)
    rows = values.about_approaches
    position_of = {
        tuple(row[name] for name in APPROACH): position for position, row in enumerate(rows)
    }
    falls: dict[str, list[Floats]] = {}
    for position, row in enumerate(rows):
        base = position_of.get((*(row[name] for name in APPROACH[:-1]), ""))
        if row["setting"] == _WITHHELD and base is not None:
            name = f"{row['method']} {option_values('method', row['options'])}".strip()
            name = name_with_group_need(name, needs_group=bool(row["group_at_prediction"]))
            falls.setdefault(name, []).append(metric_values[base] - metric_values[position])
    return {name: finite_mean(np.stack(own)) for name, own in sorted(falls.items())}


def _recalibration_claim(plain: ApproachValues, compared: Sequence[Contrast]) -> Claim:
    """Return the claim that multicalibrating a model lowers no group's calibration error."""
    series = _series(plain, compared, "multicalibration_error", no_larger, falls=True)
    return _claim_of_all("multicalibration_is_redundant", _judge_parts(plain, series))
