"""Whether the scores of groups agree with their labels, and to the same extent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from fairbench.audits.findings import EXCESS, LARGE, NOT_MEASURED, OPEN, Finding
from fairbench.audits.table import AuditTable
from fairbench.core.seeds import rng
from fairbench.evaluation.group_calibration import GroupCalibration, group_calibrations
from fairbench.inference.few_labels.check import calibration_p_values

ALARMS = 0.01  # the false alarm rate of an audit if all groups are calibrated in the same way


def least_alike(found: Sequence[GroupCalibration]) -> list[GroupCalibration]:
    """Return the groups whose labels fit least how the scores of other groups are calibrated.

    An attribute counts if its groups surely differ; of its groups the one that fits least is
    returned, or several that fit as little. However many groups are compared, at most 3 % of audits
    have an alarm without cause.
    """
    compared = [scores for scores in found if not np.isnan(scores.fit)]
    least: dict[str, float] = {}
    for scores in compared:
        least[scores.attribute] = min(scores.fit, least.get(scores.attribute, 1.0))
    return [
        scores
        for scores in compared
        if scores.fit == least[scores.attribute] and scores.fit * len(compared) < ALARMS
    ]


def calibrations(
    table: AuditTable, asked: Sequence[str] = (), *, seed: int = 0
) -> Iterator[GroupCalibration]:
    """Yield the calibration of every group of every attribute; nothing without scores or labels.

    Where rows were chosen by group, labels weigh as many rows as they stand for; where labelling
    may stop because of them, intervals are anytime-valid.

    Parameters
    ----------
    asked : the attributes whose groups' labels are compared with those of other groups.
    """
    known = table.known
    sampling = table.sampling
    if table.score is None or not len(known):
        return
    score = table.score[known]
    label = table.label[known].astype(np.int64)
    for attribute, groups in table.groups.items():
        of_groups = group_calibrations(
            attribute,
            groups,
            table.score,
            table.label,
            strata=None if sampling is None else sampling.codes,
            anytime_valid=sampling is not None and sampling.anytime_valid,
        )
        if attribute in asked:
            codes = groups.cat.codes.to_numpy(np.int64)[known]
            n_groups = len(groups.cat.categories)
            fits = calibration_p_values(
                score, label, codes, n_groups, rng(seed, "calibrated alike", attribute)
            )
            of_groups = map(lambda scores, fit: replace(scores, fit=float(fit)), of_groups, fits)
        yield from of_groups


def excess_findings(found: Sequence[GroupCalibration], risk: float) -> Iterator[Finding]:
    """Yield, for each group, whether its scores are too high or too low on average.

    Parameters
    ----------
    risk : the error rate of one answer.
    """
    for scores in found:
        lower, upper = scores.at(1 - risk)
        measured = not np.isnan(lower)
        off = measured and lower * upper > 0
        yield Finding(
            EXCESS,
            scores.attribute,
            "mean score less share of label 1",
            LARGE if off else OPEN if measured else NOT_MEASURED,
            (scores.group,),
            value=scores.excess,
            lower=scores.lower,
            upper=scores.upper,
            n=scores.labels,
            needs="" if measured else "there are too few labels, or of one kind",
        )
