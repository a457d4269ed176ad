"""Claims of the literature that an atlas can test: what differences they are, and who decides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fairbench.comparison.atlas.claim_values import Claim, ClaimPart, deciding
from fairbench.comparison.atlas.frontiers import ERROR, GAPS, NONE, MarginSeries
from fairbench.comparison.atlas.unprocessing import unprocessing
from fairbench.comparison.atlas.values import (
    AtlasValues,
    contrasts,
    differences,
    known_mean,
    marked,
    own_options,
)
from fairbench.comparison.atlas.verdicts import (
    FAILS,
    HOLDS,
    OPEN,
    ClaimSeries,
    TwoVerdicts,
    any_holds,
    claim_of_all,
    judged,
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
    recalibrations : the interventions that change scores, and no decision on purpose.
    thresholds : the interventions that choose thresholds for each group on the training rows.
    """

    likelihood: str = ""
    bags: tuple[str, ...] = ()
    recalibrations: tuple[str, ...] = ()
    thresholds: tuple[str, ...] = ()

    @classmethod
    def read(cls, path: Path) -> ClaimRoles:
        """Return the roles of a file of configuration; none where there is no such file."""
        if not path.is_file():
            return cls()
        import yaml

        found = yaml.safe_load(path.read_text())
        several = ("bags", "recalibrations", "thresholds")
        return cls(found["likelihood"], *(tuple(found[name]) for name in several))


def claims(
    values: AtlasValues,
    margins: Sequence[MarginSeries],
    roles: ClaimRoles,
    remarks: Sequence[str] = (),
) -> tuple[Claim, ...]:
    """Return every claim that the atlas has the runs for.

    Parameters
    ----------
    values : of all settings.
    margins : of interventions against relaxed thresholds.
    remarks : what is unlevel in how interventions were configured.
    """
    made = [
        unprocessing(values, margins, remarks, roles.thresholds),
        *interventions(values, roles),
        ensembles(values, roles),
        binomial(values, roles),
        *abstention(values),
        recalibration(values, roles),
    ]
    return tuple(claim for claim in made if claim.parts)


def interventions(values: AtlasValues, roles: ClaimRoles) -> tuple[Claim, Claim]:
    """Return whether interventions help at equal error, and whether fairness costs accuracy."""
    plain = values.only(values.table["setting"] == "")
    made = [
        contrast
        for contrast in contrasts(plain, "intervention", NONE)
        if contrast.label.split()[0] not in roles.recalibrations
    ]
    error = differences(plain.metric(ERROR), made)
    series = [
        ClaimSeries(each.name, ERROR, own, larger) for each, own in zip(made, error, strict=True)
    ]
    for gap in GAPS:
        fallen = -differences(plain.metric(gap), made)
        pairs = zip(made, fallen, strict=True)
        series += [ClaimSeries(each.name, gap, own, larger) for each, own in pairs]
    parts = judged(plain, series)
    kept = deciding(parts)
    verdict = some_helps(kept)
    rule = (
        "The differences are the intervention's error minus that without, and the gap without "
        "minus the intervention's. A difference is there if it is surely above 0 and may be as "
        "large as 0.01, and is not if it is surely smaller than that. "
    )
    helps = Claim(
        name="interventions_help_at_equal_error",
        statement="Some intervention lowers a gap and raises the error by nothing that matters.",
        source="Friedler et al. 2019, A comparative study of fairness-enhancing interventions",
        rule=rule + "It holds if one intervention lowers a gap and does not raise the error.",
        verdict=verdict,
        parts=parts,
        evidence=_evidence(kept),
    )
    costly = Claim(
        name="fairness_costs_accuracy",
        statement="Every intervention that lowers a gap raises the error.",
        source="Menon and Williamson 2018, The cost of fairness in binary classification",
        rule=rule + "It holds if each of them surely lowers no gap or raises the error, and fails "
        "if one lowers a gap and does not raise the error.",
        verdict=_OPPOSITE[verdict],
        parts=parts,
        evidence=_evidence(kept),
    )
    return helps, costly


def some_helps(parts: Sequence[ClaimPart]) -> str:
    """Return whether an intervention lowers a gap and does not raise the error."""
    of = {(part.label, part.metric): part for part in parts}
    costs = {label: part for (label, metric), part in of.items() if metric == ERROR}
    falls = {
        label: any_holds([of[label, gap] for gap in GAPS if (label, gap) in of]) for label in costs
    }
    return any_holds([_both_verdicts(falls[label], cost) for label, cost in costs.items()])


def _evidence(parts: Sequence[ClaimPart]) -> str:
    """Say what the intervention changes that lowers a gap most, of those that cost least for sure.

    Those that surely lower a gap and do not raise the error come first, then those of which each of
    the two is sure by itself, then all others.
    """
    of = {(part.label, part.metric): part for part in parts}
    falls = [part for part in parts if part.metric in GAPS and (part.label, ERROR) in of]
    at_once = [f for f in falls if f.verdict == HOLDS and of[f.label, ERROR].verdict == FAILS]
    alone = [f for f in falls if f.alone == HOLDS and of[f.label, ERROR].alone == FAILS]
    gap = max(at_once or alone or falls, key=lambda part: part.mean, default=None)
    if gap is None:
        return ""
    cost = of[gap.label, ERROR]
    return (
        f"{gap.label} changes the {metric_label(gap.metric)} by {signed(-gap.mean)} "
        f"({interval(-gap.upper, -gap.lower)}) and the {metric_label(ERROR)} by "
        f"{signed(cost.mean)} ({interval(cost.lower, cost.upper)}), on {gap.tasks} tasks, "
        "each interval by itself"
    )


_OPPOSITE = {HOLDS: FAILS, FAILS: HOLDS, OPEN: OPEN}


def _both_verdicts(falls: str, cost: ClaimPart) -> TwoVerdicts:
    """Say whether an intervention lowers a gap and does not raise the error."""
    found = []
    for costs in (_OPPOSITE[cost.verdict], _OPPOSITE[cost.alone]):
        both = {falls, costs}
        found.append(FAILS if FAILS in both else HOLDS if both == {HOLDS} else OPEN)
    return TwoVerdicts(*found)


def ensembles(values: AtlasValues, roles: ClaimRoles) -> Claim:
    """Return whether bags are uncalibrated beside the binomial likelihood."""
    plain = values.only(values.table["setting"] == "")
    made = [
        contrast
        for contrast in contrasts(plain, "method", roles.likelihood)
        if contrast.label.split()[0] in roles.bags
    ]
    own = ("log_loss", "expected_calibration_error")
    series = [
        ClaimSeries(f"{each.name}, {_READ.get(name, _OWN)}", name, difference, larger)
        for name in (*own, "nll")
        for each, difference in zip(made, differences(plain.metric(name), made), strict=True)
    ]
    parts = judged(plain, series)
    return claim_of_all(
        name="ensembles_are_uncalibrated",
        statement="Ensembles are worse calibrated than the binomial likelihood.",
        source=FAIRLY_UNCERTAIN,
        rule="The difference is the ensemble's loss minus that of the binomial likelihood around "
        "the same learner. It holds if calibration error and log loss of the ensemble's own "
        "probability are surely larger and may be by 0.01, and fails if one surely is not; that "
        "of the members' disagreement, which the paper reads, is shown beside.",
        decided_by=[part for part in parts if part.metric in own],
        parts=parts,
    )


_OWN = "by its own probability"
_READ = {"nll": "by the members' disagreement"}


def binomial(values: AtlasValues, roles: ClaimRoles) -> Claim:
    """Return whether no method has a smaller log loss than the binomial likelihood."""
    plain = values.only(values.table["setting"] == "")
    made = contrasts(plain, "method", roles.likelihood)
    found = -differences(plain.metric("log_loss"), made)
    pairs = zip(made, found, strict=True)
    series = [ClaimSeries(each.name, "log_loss", own, no_larger) for each, own in pairs]
    parts = judged(plain, series)
    return claim_of_all(
        name="binomial_nll_is_best",
        statement="No uncertainty method has a smaller log loss than the binomial likelihood.",
        source=FAIRLY_UNCERTAIN,
        rule="The difference is the log loss of the binomial likelihood minus the method's. It "
        "holds if none can be as large as 0.01, and fails if one is surely above 0 and may be.",
        parts=parts,
    )


def abstention(values: AtlasValues) -> tuple[Claim, Claim]:
    """Return whether withholding a fifth of the labels lowers the error, and the gaps."""
    without = values.table["intervention"] == NONE
    plain = values.only(without & values.table["setting"].isin(["", WITHHELD]))
    found: list[tuple[str, str, Floats]] = []
    for metric in (ERROR, *GAPS):
        fallen = _fallen(plain, metric)
        found += [(label, metric, own) for label, own in fallen.items()]
    names = (
        (
            "abstention_lowers_the_error",
            "Withholding the least certain fifth of the labels lowers the error, whichever method "
            "says what is certain.",
            (ERROR,),
        ),
        (
            "abstention_lowers_gaps",
            "Withholding the least certain fifth of the labels lowers the gaps, whichever method "
            "says what is certain.",
            GAPS,
        ),
    )
    claimed = []
    for name, statement, metrics in names:
        series = [ClaimSeries(label, m, own, larger) for label, m, own in found if m in metrics]
        parts = judged(plain, series)
        claimed.append(
            claim_of_all(
                name=name,
                statement=statement,
                source=FAIRLY_UNCERTAIN,
                rule="The difference is the value of all people minus that of those who keep a "
                "label. It holds if all are surely above 0 and may be as large as 0.01, and fails "
                "if one is surely smaller than that.",
                parts=parts,
            )
        )
    return claimed[0], claimed[1]


def _fallen(values: AtlasValues, metric: str) -> dict[str, Floats]:
    """Return by how much a metric falls where labels are withheld, by method, (T, R) each."""
    of = values.metric(metric)
    rows = values.approaches.to_dict("records")
    place = {tuple(row[name] for name in _SAME): i for i, row in enumerate(rows)}
    found: dict[str, list[Floats]] = {}
    for i, row in enumerate(rows):
        base = place.get((*(row[name] for name in _SAME[:-1]), ""))
        if row["setting"] == WITHHELD and base is not None:
            label = f"{row['method']} {own_options('method', row['options'])}".strip()
            label = marked(label, needs_group=bool(row.get("group_at_prediction", False)))
            found.setdefault(label, []).append(of[base] - of[i])
    return {label: known_mean(np.stack(each)) for label, each in sorted(found.items())}


_SAME = ("learner", "intervention", "method", "options", "setting")


def recalibration(values: AtlasValues, roles: ClaimRoles) -> Claim:
    """Return whether multicalibrating what was fitted lowers no group's calibration error."""
    plain = values.only(values.table["setting"] == "")
    made = [
        contrast
        for contrast in contrasts(plain, "intervention", NONE)
        if contrast.label.split()[0] in roles.recalibrations
    ]
    metric = "multicalibration_error"
    found = -differences(plain.metric(metric), made)
    pairs = zip(made, found, strict=True)
    series = [ClaimSeries(each.name, metric, own, no_larger) for each, own in pairs]
    parts = judged(plain, series)
    return claim_of_all(
        name="multicalibration_is_redundant",
        statement="Multicalibrating a fitted model lowers no group's calibration error.",
        source="Hansen, Devic, Nakkiran and Sharan 2024, When is multicalibration post-processing "
        "necessary?",
        rule="The difference is the largest calibration error of any group without minus that "
        "with. It holds if none can be as large as 0.01, and fails if one is surely above 0 and "
        "may be.",
        parts=parts,
    )
