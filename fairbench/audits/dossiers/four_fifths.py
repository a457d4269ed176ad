"""The dossier of the four-fifths rule (29 CFR 1607.4(D)), with whether chance explains it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import pandas as pd
from scipy import stats

from fairbench.audits.dossiers.contents import dossier, measured, told
from fairbench.audits.dossiers.local_law import (
    SMALLEST_SHARE,
    Categories,
    found_in,
    ratio_table,
    refuse_weights,
)
from fairbench.audits.impact import ImpactRatio, impact_ratios
from fairbench.audits.question import Options
from fairbench.audits.table import read_audit_table
from fairbench.core.errors import UserError
from fairbench.inference.impact import FOUR_FIFTHS
from fairbench.reporting.document.model import Column, Document, Section, Table

GUIDELINES = "29 CFR 1607.4(D)"
QUESTIONS = "44 FR 11996"  # the agencies' questions and answers on the guidelines


@dataclass(frozen=True)
class Adverse:
    """What the four-fifths rule looks at, of one group beside the group compared with.

    Attributes
    ----------
    share : of all people. deviations : by how many standard errors the rates differ. chance : how
        often chance alone makes a difference as large (Fisher's exact test, two-sided).
    short : how many more of the group would have to be selected to reach four fifths.
    """

    attribute: str
    group: str
    reference: str
    share: float
    deviations: float
    chance: float
    short: int


def four_fifths(options: Options, frame: pd.DataFrame, facts: Mapping[str, str]) -> Document:
    """Return what the Uniform Guidelines' four-fifths rule looks at, of every group."""
    refuse_weights(options)
    table = read_audit_table(options, frame=frame)
    ratios = impact_ratios(table, options)
    if not ratios:
        raise UserError(f"{options.path.name}: no two groups to compare")
    adverse = [_adverse(each, ratios, len(frame)) for each in ratios]
    under = [each for each in ratios if each.ratio < FOUR_FIFTHS]
    asked = [
        measured("rates", "the selection rate of each group", GUIDELINES, f"{len(ratios)} groups"),
        measured("highest", "the group with the highest rate", GUIDELINES, _highest(ratios)),
        measured("ratios", "the ratio of each rate to the highest", GUIDELINES, "in the tables"),
        measured(
            "under_four_fifths", "groups of a ratio under four fifths", GUIDELINES,
            "; ".join(f"{each.attribute}: {each.group}" for each in under) or "none",
        ),
        measured(
            "significance", "whether differences are statistically significant", GUIDELINES,
            "in the table of differences",
        ),
        measured(
            "small_numbers", "groups of under 2 % of the people", "29 CFR 1607.15(A)(2)(c)",
            "; ".join(f"{a.attribute}: {a.group}" for a in adverse if a.share < SMALLEST_SHARE)
            or "none",
        ),
        measured(
            "shortfall", "how many more selections would reach four fifths", QUESTIONS,
            "in the table of differences",
        ),
        *(told(key, what, source, facts) for key, (what, source) in FOUR_FIFTHS_FACTS.items()),
    ]  # fmt: skip
    attributes = dict.fromkeys(each.attribute for each in ratios)
    rate = "selection rate"
    by_attribute = [
        Categories(name, [each for each in ratios if each.attribute == name]) for name in attributes
    ]
    return dossier(
        "four-fifths",
        "The four-fifths rule: selection rates and impact ratios",
        options,
        asked,
        list(found_in(by_attribute, rate)),
        [*(ratio_table(each, rate) for each in by_attribute), _adverse_section(adverse)],
        people=len(frame),
        groups=[asdict(each) for each in ratios],
        differences=[asdict(each) for each in adverse],
    )


FOUR_FIFTHS_FACTS: Mapping[str, tuple[str, str]] = {
    "validity": ("evidence that the procedure predicts what it is used for", "29 CFR 1607.5"),
    "alternatives": ("which less adverse procedures were looked for", "29 CFR 1607.3(B)"),
    "period": ("the time, place and job that the decisions are of", "29 CFR 1607.15"),
}


def _highest(ratios: Sequence[ImpactRatio]) -> str:
    each = {ratio.attribute: ratio.reference for ratio in ratios}
    return "; ".join(f"{attribute}: {name}" for attribute, name in each.items())


def _adverse(each: ImpactRatio, ratios: Sequence[ImpactRatio], people: int) -> Adverse:
    other = next(r for r in ratios if r.attribute == each.attribute and r.group == each.reference)
    mine, theirs = round(each.rate * each.rows), round(other.rate * other.rows)
    short = int(np.ceil(FOUR_FIFTHS * other.rate * each.rows - 1e-9)) - mine
    share = each.rows / people
    if each.group == each.reference:
        return Adverse(each.attribute, each.group, each.reference, share, 0.0, 1.0, 0)
    return Adverse(
        each.attribute,
        each.group,
        each.reference,
        share,
        _deviations(mine, each.rows, theirs, other.rows),
        float(stats.fisher_exact([[mine, each.rows - mine], [theirs, other.rows - theirs]]).pvalue),
        max(short, 0),
    )


def _deviations(a: int, n: int, b: int, m: int) -> float:
    """Return by how many standard errors, pooled, a of n and b of m differ."""
    pooled = (a + b) / (n + m)
    error = np.sqrt(pooled * (1 - pooled) * (1 / n + 1 / m))
    return float((a / n - b / m) / error) if error > 0 else 0.0


def _adverse_section(adverse: Sequence[Adverse]) -> Section:
    columns = [Column("by"), Column("group"), Column("compared with"), Column("of all", "percent")]
    columns += [
        Column("standard errors", "signed", decimals=2),
        Column("P(by chance)", "probability"),
    ]
    columns += [Column("short by", "count")]
    rows = [
        [a.attribute, a.group, a.reference, a.share, a.deviations, a.chance, a.short]
        for a in adverse
        if a.group != a.reference
    ]
    caption = (
        "standard errors: by how many the group's rate differs from that of the group compared "
        "with; P(by chance): how often chance alone makes as large a difference (Fisher's exact "
        "test); short by: how many more of the group would have to be selected for four fifths. "
        "Of all: percent of the people."
    )
    return Section(
        "Differences, and whether chance explains them", [Table(columns, rows, caption=caption)]
    )
