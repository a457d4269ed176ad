"""Claims of the literature that an atlas can test.

Each claim states in its rule which differences decide it. Each function here measures these
differences, its parts, and combines their verdicts (`verdicts`) into that on the claim.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fairbench.comparison.atlas.claim_values import Claim, ClaimPart, select_deciding
from fairbench.comparison.atlas.frontiers import ERROR, GAPS, NONE, MarginSeries
from fairbench.comparison.atlas.unprocessing import unprocessing_claim
from fairbench.comparison.atlas.values import (
    AtlasValues,
    contrasts,
    finite_mean,
    mean_differences,
    name_with_group_need,
    option_values,
)
from fairbench.comparison.atlas.verdicts import (
    FAILS,
    HOLDS,
    NO_DIFFERENCE_IS_LARGE,
    OPEN,
    ClaimSeries,
    TwoVerdicts,
    any_holds,
    claim_of_all,
    judge_parts,
    larger,
    no_larger,
)
from fairbench.core.arrays import Floats
from fairbench.core.formats import interval, signed
from fairbench.metrics.registry import label as metric_label

WITHHELD = "abstained=0.2"
FAIRLY_UNCERTAIN = "Rosenblatt and Witter 2024, FairlyUncertain"


@dataclass(frozen=True)
class ClaimRoles:
    """Which components claims are about; without one, claims about it are left out.

    Attributes
    ----------
    likelihood : the method whose log loss is said to be the best.
    bags : the methods that are said to be uncalibrated.
    recalibrations : the interventions that recalibrate scores without aiming at other decisions.
    thresholds : the interventions that choose thresholds for each group on the training rows.
    """

    likelihood: str = ""
    bags: tuple[str, ...] = ()
    recalibrations: tuple[str, ...] = ()
    thresholds: tuple[str, ...] = ()

    @classmethod
    def read(cls, path: Path) -> ClaimRoles:
        """Read the roles from a configuration file; all are empty if there is no such file."""
        if not path.is_file():
            return cls()
        import yaml

        roles = yaml.safe_load(path.read_text())
        role_names = ("bags", "recalibrations", "thresholds")
        return cls(roles["likelihood"], *(tuple(roles[name]) for name in role_names))


def claims(
    values: AtlasValues,
    margins: Sequence[MarginSeries],
    roles: ClaimRoles,
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
    all_claims = [
        unprocessing_claim(values, margins, remarks, roles.thresholds),
        *intervention_claims(values, roles),
        ensemble_claim(values, roles),
        binomial_claim(values, roles),
        *abstention_claims(values),
        recalibration_claim(values, roles),
    ]
    return tuple(claim for claim in all_claims if claim.parts)


def intervention_claims(values: AtlasValues, roles: ClaimRoles) -> tuple[Claim, Claim]:
    """Return two claims: interventions help at equal error, and fairness costs accuracy."""
    plain = values.only(values.table["setting"] == "")
    compared = [
        contrast
        for contrast in contrasts(plain, "intervention", NONE)
        if contrast.label.split()[0] not in roles.recalibrations
    ]
    error = mean_differences(plain.metric(ERROR), compared)
    series = [
        ClaimSeries(contrast.name, ERROR, difference, larger)
        for contrast, difference in zip(compared, error, strict=True)
    ]
    for gap in GAPS:
        falls = -mean_differences(plain.metric(gap), compared)
        pairs = zip(compared, falls, strict=True)
        series += [ClaimSeries(contrast.name, gap, fall, larger) for contrast, fall in pairs]
    parts = judge_parts(plain, series)
    deciding_parts = select_deciding(parts)
    verdict = some_intervention_helps(deciding_parts)
    difference = (
        "the error with the intervention minus the error without it; for a gap, the gap without "
        "the intervention minus the gap with it"
    )
    counted = (
        "An intervention lowers a gap, or raises the error, if the difference is surely above 0 "
        "and may be 0.01 or more. It surely does not if the difference is surely under 0.01. "
    )
    helps = Claim(
        name="interventions_help_at_equal_error",
        statement="Some intervention lowers a gap and does not raise the error by an amount that "
        "matters.",
        source="Friedler et al. 2019, A comparative study of fairness-enhancing interventions",
        difference=difference,
        rule=counted + "The claim holds if one intervention lowers a gap and surely does not raise "
        "the error. It fails if every intervention surely lowers no gap or raises the error.",
        verdict=verdict,
        parts=parts,
        evidence=_evidence(
            deciding_parts,
            "it lowers the gap and does not raise the error by an amount that matters",
        ),
    )
    costly = Claim(
        name="fairness_costs_accuracy",
        statement="Every intervention that lowers a gap raises the error.",
        source="Menon and Williamson 2018, The cost of fairness in binary classification",
        difference=difference,
        rule=counted + "The claim holds if every intervention surely lowers no gap or raises the "
        "error. It fails if one intervention lowers a gap and surely does not raise the error.",
        verdict=_OPPOSITE[verdict],
        parts=parts,
        evidence=_evidence(
            deciding_parts,
            "this contradicts the claim: the intervention lowers the gap and does not raise the "
            "error by an amount that matters",
        ),
    )
    return helps, costly


def some_intervention_helps(parts: Sequence[ClaimPart]) -> str:
    """Return the verdict on "some intervention lowers a gap and does not raise the error"."""
    part_of = {(part.label, part.metric): part for part in parts}
    costs = {label: part for (label, metric), part in part_of.items() if metric == ERROR}
    falls = {
        label: any_holds([part_of[label, gap] for gap in GAPS if (label, gap) in part_of])
        for label in costs
    }
    return any_holds([_lowers_gap_at_no_error(falls[label], cost) for label, cost in costs.items()])


def _evidence(parts: Sequence[ClaimPart], conclusion: str) -> str:
    """Return what was measured of the intervention that lowers a gap most, and what follows.

    It is the best of those that lower a gap and do not raise the error by simultaneous intervals;
    if there are none, of those that do by the intervals of each difference alone; then of all.

    Parameters
    ----------
    parts : the parts that decide the claim.
    conclusion : what follows if it lowers a gap and does not raise the error.
    """
    part_of = {(part.label, part.metric): part for part in parts}
    gap_parts = [part for part in parts if part.metric in GAPS and (part.label, ERROR) in part_of]
    at_once = [
        gap_part
        for gap_part in gap_parts
        if gap_part.verdict == HOLDS and part_of[gap_part.label, ERROR].verdict == FAILS
    ]
    alone = [
        gap_part
        for gap_part in gap_parts
        if gap_part.alone == HOLDS and part_of[gap_part.label, ERROR].alone == FAILS
    ]
    gap = max(at_once or alone or gap_parts, key=lambda part: part.mean, default=None)
    if gap is None:
        return ""
    cost = part_of[gap.label, ERROR]
    all_differences = f"llowing for all {len(parts)} differences at once, that is"
    sure = (
        f" So {conclusion}. A{all_differences} shown, too."
        if at_once
        else f" Judged by these two intervals, {conclusion}. But a{all_differences} not shown."
        if alone
        else ""
    )
    return (
        f"On {gap.tasks} tasks, {gap.label} changes the {metric_label(gap.metric)} by "
        f"{signed(-gap.mean)} ({interval(-gap.upper, -gap.lower)}) and the {metric_label(ERROR)} "
        f"by {signed(cost.mean)} ({interval(cost.lower, cost.upper)}), each interval by itself."
        f"{sure}"
    )


_OPPOSITE = {HOLDS: FAILS, FAILS: HOLDS, OPEN: OPEN}


def _lowers_gap_at_no_error(falls: str, cost: ClaimPart) -> TwoVerdicts:
    """Return the verdicts on "an intervention lowers a gap and does not raise the error".

    Parameters
    ----------
    falls : the verdict on "it lowers a gap".
    cost : the part on its error, whose verdict is on "it raises the error".
    """
    verdicts = []
    for costs in (_OPPOSITE[cost.verdict], _OPPOSITE[cost.alone]):
        both_verdicts = {falls, costs}
        verdicts.append(
            FAILS if FAILS in both_verdicts else HOLDS if both_verdicts == {HOLDS} else OPEN
        )
    return TwoVerdicts(*verdicts)


def ensemble_claim(values: AtlasValues, roles: ClaimRoles) -> Claim:
    """Return the claim that bags are worse calibrated than the binomial likelihood."""
    plain = values.only(values.table["setting"] == "")
    compared = [
        contrast
        for contrast in contrasts(plain, "method", roles.likelihood)
        if contrast.label.split()[0] in roles.bags
    ]
    own_metrics = ("log_loss", "expected_calibration_error")
    series = [
        ClaimSeries(
            f"{contrast.name}, {_PROBABILITY_READ.get(name, _OWN_PROBABILITY)}",
            name,
            difference,
            larger,
        )
        for name in (*own_metrics, "nll")
        for contrast, difference in zip(
            compared, mean_differences(plain.metric(name), compared), strict=True
        )
    ]
    parts = judge_parts(plain, series)
    return claim_of_all(
        name="ensembles_are_uncalibrated",
        statement="Ensembles are worse calibrated than the binomial likelihood.",
        source=FAIRLY_UNCERTAIN,
        difference="the ensemble's loss minus that of the binomial likelihood around the same "
        "learner",
        rule="The claim holds if both the log loss and the calibration error of the ensemble's own "
        "probability are surely larger, and may be larger by 0.01 or more. It fails if one of the "
        "two is surely not larger by 0.01. The row on the members' disagreement, which the paper "
        "scores, is shown but does not decide.",
        measured="By its own probability, the ensemble's loss is {}",
        words=("lower", "higher"),
        decided_by=[part for part in parts if part.metric in own_metrics],
        parts=parts,
    )


_OWN_PROBABILITY = "by its own probability"
_PROBABILITY_READ = {"nll": "by the members' disagreement"}


def binomial_claim(values: AtlasValues, roles: ClaimRoles) -> Claim:
    """Return the claim that no method has a smaller log loss than the binomial likelihood."""
    plain = values.only(values.table["setting"] == "")
    compared = contrasts(plain, "method", roles.likelihood)
    falls = -mean_differences(plain.metric("log_loss"), compared)
    pairs = zip(compared, falls, strict=True)
    series = [ClaimSeries(contrast.name, "log_loss", fall, no_larger) for contrast, fall in pairs]
    parts = judge_parts(plain, series)
    return claim_of_all(
        name="binomial_nll_is_best",
        statement="No uncertainty method has a smaller log loss than the binomial likelihood.",
        source=FAIRLY_UNCERTAIN,
        difference="the log loss of the binomial likelihood minus the method's",
        rule=NO_DIFFERENCE_IS_LARGE,
        measured="The binomial likelihood's log loss is {} than another method's",
        words=("lower", "higher"),
        parts=parts,
    )


def abstention_claims(values: AtlasValues) -> tuple[Claim, Claim]:
    """Return two claims: withholding a fifth of the labels lowers the error, and the gaps."""
    is_unconstrained = values.table["intervention"] == NONE
    plain = values.only(is_unconstrained & values.table["setting"].isin(["", WITHHELD]))
    falls: list[tuple[str, str, Floats]] = []
    for metric in (ERROR, *GAPS):
        fall_by_method = _fall_by_method(plain, metric)
        falls += [(label, metric, fall) for label, fall in fall_by_method.items()]
    names = (
        (
            "abstention_lowers_the_error",
            "Withholding the least certain fifth of the labels lowers the error, whichever method "
            "says what is certain.",
            "the error rate among all people minus that among those who keep a label",
            "Among those who keep a label, the error rate is {} than among all people",
            (ERROR,),
        ),
        (
            "abstention_lowers_gaps",
            "Withholding the least certain fifth of the labels lowers the gaps, whichever method "
            "says what is certain.",
            "the gap among all people minus that among those who keep a label",
            "Among those who keep a label, the gap is {} than among all people",
            GAPS,
        ),
    )
    claimed = []
    for name, statement, difference, measured, metrics in names:
        series = [
            ClaimSeries(label, metric, fall, larger)
            for label, metric, fall in falls
            if metric in metrics
        ]
        parts = judge_parts(plain, series)
        claimed.append(
            claim_of_all(
                name=name,
                statement=statement,
                source=FAIRLY_UNCERTAIN,
                difference=difference,
                rule="The claim holds if every difference is surely above 0 and may be 0.01 or "
                "more. It fails if one is surely under 0.01.",
                measured=measured,
                words=("higher", "lower"),
                parts=parts,
            )
        )
    return claimed[0], claimed[1]


def _fall_by_method(values: AtlasValues, metric: str) -> dict[str, Floats]:
    """Return how much withholding labels lowers a metric: method -> (T, R)."""
    metric_values = values.metric(metric)
    rows = values.approaches.to_dict("records")
    position_of = {
        tuple(row[name] for name in _IDENTITY): position for position, row in enumerate(rows)
    }
    falls: dict[str, list[Floats]] = {}
    for position, row in enumerate(rows):
        base = position_of.get((*(row[name] for name in _IDENTITY[:-1]), ""))
        if row["setting"] == WITHHELD and base is not None:
            label = f"{row['method']} {option_values('method', row['options'])}".strip()
            label = name_with_group_need(
                label, needs_group=bool(row.get("group_at_prediction", False))
            )
            falls.setdefault(label, []).append(metric_values[base] - metric_values[position])
    return {
        label: finite_mean(np.stack(label_falls)) for label, label_falls in sorted(falls.items())
    }


_IDENTITY = ("learner", "intervention", "method", "options", "setting")


def recalibration_claim(values: AtlasValues, roles: ClaimRoles) -> Claim:
    """Return the claim that multicalibrating a model lowers no group's calibration error."""
    plain = values.only(values.table["setting"] == "")
    compared = [
        contrast
        for contrast in contrasts(plain, "intervention", NONE)
        if contrast.label.split()[0] in roles.recalibrations
    ]
    metric = "multicalibration_error"
    falls = -mean_differences(plain.metric(metric), compared)
    pairs = zip(compared, falls, strict=True)
    series = [ClaimSeries(contrast.name, metric, fall, no_larger) for contrast, fall in pairs]
    parts = judge_parts(plain, series)
    return claim_of_all(
        name="multicalibration_is_redundant",
        statement="Multicalibrating a fitted model lowers no group's calibration error.",
        source="Hansen, Devic, Nakkiran and Sharan 2024, When is multicalibration post-processing "
        "necessary?",
        difference="the largest calibration error of any group without multicalibrating minus "
        "that with it",
        rule=NO_DIFFERENCE_IS_LARGE,
        measured="After multicalibrating, the largest calibration error of any group is {}",
        words=("higher", "lower"),
        parts=parts,
    )
