"""Dossiers of who is selected: New York's Local Law 144, and the four-fifths rule.

Both show the rate of each group and its ratio to the highest; the first by sex, race and both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from fairbench.audits.dossiers.contents import dossier
from fairbench.audits.dossiers.facts import FOUR_FIFTHS_FACTS, LL144_FACTS, LL144_SOURCES
from fairbench.audits.impact import impact_ratios
from fairbench.audits.question import Options
from fairbench.audits.table import read_audit_table
from fairbench.core.errors import UserError
from fairbench.core.formats import count, number
from fairbench.data.columns import Place
from fairbench.data.dataset import combine
from fairbench.data.groups import groups_of
from fairbench.data.tabular import numbers
from fairbench.evaluation.impact_ratios import ImpactRatio, impact_ratios_of
from fairbench.inference.impact import FOUR_FIFTHS
from fairbench.inference.rates import rate_limits
from fairbench.reporting.charts import forest
from fairbench.reporting.document.model import Column, Document, Figure, Section
from fairbench.reporting.group_tables import table_of

SMALLEST_SHARE = 0.02  # 6 RCNY 5-301(d), and 29 CFR 1607.15(A)(2)(c)
UNKNOWN = ("unknown", "not specified", "not disclosed", "prefer not to say", "decline to state")
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class SmallCategory:
    """A category of under 2 % of the people, with its rate and no impact ratio."""

    attribute: str
    category: str
    people: int
    rate: float
    lower: float
    upper: float


def ll144(
    options: Options, frame: pd.DataFrame, sex: str, race: str, told: Mapping[str, str], *,
    scoring: bool,
) -> Document:  # fmt: skip
    """Return the tables that the rules on Local Law 144 ask for (6 RCNY 5-300 to 5-304).

    Parameters
    ----------
    sex, race : the columns. scoring : the tool scores, and rates are of scores above the median of
        everyone; otherwise it selects.

    Raises
    ------
    UserError : a column that is not there or cannot be what it is said to be.
    """
    _refuse_weights(options)
    median = None
    if scoring:
        selected, median = _above_median(options, frame)
    else:
        table = read_audit_table(options, frame=frame)
        selected = table.favoured
    both = f"{sex} x {race}"
    groups = {name: groups_of(frame[name], Place(options.path.name, name)) for name in (sex, race)}
    known = {
        name: ~labels.astype(str).str.casefold().isin(UNKNOWN).to_numpy()
        for name, labels in groups.items()
    }
    groups[both], known[both] = combine([groups[sex], groups[race]]), known[sex] & known[race]
    unknown = {name: int((~known[name]).sum()) for name in groups}
    ratios: dict[str, list[ImpactRatio]] = {}
    small: list[SmallCategory] = []
    for name, rows in known.items():
        ratios[name], left_out = _categories(name, groups[name][rows], selected[rows])
        small += left_out
    rate = "scoring rate" if scoring else "selection rate"
    words = {**LL144_SOURCES[rate], "rate": rate, "sex": sex, "race": race, "both": both}
    answers = {
        **told,
        "unknown": "; ".join(f"{name}: {count(people)}" for name, people in unknown.items()),
        "left_out": _listed(f"{c.attribute}: {c.category} ({count(c.people)})" for c in small),
        "people": count(len(frame)),
    }
    for kind, name in (("sex", sex), ("race", race), ("sex_and_race", both)):
        in_table = f"in the table of {name}: {len(ratios[name])} categories"
        answers |= {f"rate_by_{kind}": in_table, f"impact_ratio_by_{kind}": in_table}
    if median is not None:
        answers["median"] = number(median)
    found, sections = _sentences_and_sections(ratios, rate, unknown)
    if small:
        found.append(
            f"{len(small)} categories of under 2 % of the people have a rate and no impact ratio."
        )
        sections.append(_small_section(small, rate))
    unasked = {"median"} - answers.keys() | ({"exclusion_reason"} if not small else set())
    return dossier(
        "ll144",
        "Local Law 144: selection and impact by sex, race and both",
        options,
        [
            replace(fact, what=fact.what.format(**words), source=fact.source.format(**words))
            for fact in LL144_FACTS
            if fact.key not in unasked
        ],
        answers,
        found=found,
        sections=sections,
        rate=rate,
        median=median,
        people=len(frame),
        unknown=unknown,
        categories=[asdict(ratio) for name in ratios for ratio in ratios[name]],
        left_out=[asdict(category) for category in small],
    )


def _refuse_weights(options: Options) -> None:
    if options.weight or options.cluster:
        raise UserError("weight= and cluster=: these rules count people, so leave them out")


def _above_median(options: Options, frame: pd.DataFrame) -> tuple[Bools, float]:
    """Return whose score is above the median of all, and the median (6 RCNY 5-300)."""
    score = numbers(frame, options.score, options.path.name).to_numpy()
    Place(options.path.name, options.score).refuse(
        frame[options.score], np.isnan(score), "a score: everyone whom the tool assessed needs one"
    )
    median = float(np.median(score))
    return score > median, median


def _categories(
    attribute: str, groups: pd.Series, selected: Bools
) -> tuple[list[ImpactRatio], list[SmallCategory]]:
    """Return the ratios of an attribute's categories, and those of under 2 % of the people."""
    small, groups = [], groups.cat.remove_unused_categories()
    for name, people in groups.value_counts().items():
        if people < SMALLEST_SHARE * len(groups):
            limits = rate_limits(selected[(groups == name).to_numpy()].sum(), people)
            small.append(SmallCategory(attribute, str(name), int(people), *map(float, limits)))
    kept = ~groups.isin([category.category for category in small]).to_numpy()
    ratios = impact_ratios_of(attribute, groups[kept], selected[kept])
    if not ratios:
        raise UserError(f"{attribute}: fewer than two categories of 2 % of the people or more")
    return ratios, small


def _listed(names: Iterable[str]) -> str:
    return "; ".join(names) or "none"


def _sentences_and_sections(
    ratios: Mapping[str, Sequence[ImpactRatio]], rate: str, unknown: Mapping[str, int]
) -> tuple[list[str], list[Section]]:
    """Return, of each attribute, its smallest ratio in a sentence, and a figure and the table."""
    sentences, sections = [], []
    for attribute, of_groups in ratios.items():
        lowest = min(of_groups, key=lambda ratio: ratio.ratio)
        whose = "" if lowest.given else f", whose {rate} is the highest of the large groups"
        sentences.append(
            f"By {attribute}, the smallest impact ratio is {number(lowest.ratio, 2)}, that of "
            f"{lowest.group} (95 % interval {number(lowest.lower, 2)} to "
            f"{number(lowest.upper, 2)}); it is compared with {lowest.reference}{whose}."
        )
        caption = (
            f"impact ratio: the {rate} of a category over that of the category where it is "
            "highest; its interval allows for another truly being that one."
        )
        if attribute in unknown:
            caption += f" Unknown, and left out: {count(unknown[attribute])} people."
        table = table_of(
            of_groups,
            [
                ("group", Column(attribute)),
                ("rows", Column("people", "count")),
                ("rate", Column(rate, "number")),
                (("rate_lower", "rate_upper"), Column("95 % interval", "interval")),
                ("ratio", Column("impact ratio", "number", decimals=2)),
                (("lower", "upper"), Column("95 % interval", "interval", decimals=2)),
                ("below", Column("P(<0.8)", "probability")),
            ],
            by="",
            caption=caption,
        )
        lines = [(ratio.group, ratio.ratio, ratio.lower, ratio.upper) for ratio in of_groups]
        figure = Figure(
            f"impact ratios by {attribute}",
            svg=forest("impact ratio", [lines], span=(0.0, 1.2), mark=FOUR_FIFTHS),
            caption="Impact ratios with 95 % intervals; dashed: four fifths.",
        )
        sections.append(Section(f"By {attribute}", [figure, table]))
    return sentences, sections


def _small_section(small: Sequence[SmallCategory], rate: str) -> Section:
    table = table_of(
        small,
        [
            ("attribute", Column("by")),
            ("category", Column("category")),
            ("people", Column("people", "count")),
            ("rate", Column(rate, "number")),
            (("lower", "upper"), Column("95 % interval", "interval")),
        ],
        by="",
        caption="Each is under 2 % of the people whose category is known (6 RCNY 5-301(d)).",
    )
    return Section("Categories left out", [table])


@dataclass(frozen=True)
class Adverse:
    """What the four-fifths rule looks at, of one group beside the group compared with."""

    attribute: str
    group: str
    reference: str
    share: float  # of all people
    deviations: float  # by how many standard errors the rates differ
    chance: float  # how often chance alone differs as much (Fisher's exact test, two-sided)
    short: int  # how many more of the group would have to be selected to reach four fifths


def four_fifths(options: Options, frame: pd.DataFrame, told: Mapping[str, str]) -> Document:
    """Return what the four-fifths rule of the Uniform Guidelines (29 CFR 1607.4(D)) looks at."""
    _refuse_weights(options)
    every = impact_ratios(read_audit_table(options, frame=frame))
    if not every:
        raise UserError(f"{options.path.name}: no two groups to compare")
    ratios = {
        name: list(of_groups) for name, of_groups in groupby(every, lambda each: each.attribute)
    }
    adverse = [
        _adverse(
            ratio,
            next(r for r in ratios[ratio.attribute] if r.group == ratio.reference),
            len(frame),
        )
        for ratio in every
    ]
    found, sections = _sentences_and_sections(ratios, "selection rate", {})
    answers = {
        **told,
        "rates": f"{len(every)} groups",
        "highest": "; ".join(f"{name}: {of[0].reference}" for name, of in ratios.items()),
        "ratios": "in the tables",
        "under_four_fifths": _listed(
            f"{ratio.attribute}: {ratio.group}" for ratio in every if ratio.ratio < FOUR_FIFTHS
        ),
        "significance": "in the table of differences",
        "small_numbers": _listed(
            f"{group.attribute}: {group.group}" for group in adverse if group.share < SMALLEST_SHARE
        ),
        "shortfall": "in the table of differences",
    }
    return dossier(
        "four-fifths",
        "The four-fifths rule: selection rates and impact ratios",
        options,
        FOUR_FIFTHS_FACTS,
        answers,
        found=found,
        sections=[*sections, _adverse_section(adverse)],
        people=len(frame),
        groups=[asdict(ratio) for ratio in every],
        differences=[asdict(group) for group in adverse],
    )


def _adverse(ratio: ImpactRatio, reference: ImpactRatio, people: int) -> Adverse:
    chosen, others = (round(group.rate * group.rows) for group in (ratio, reference))
    pooled = (chosen + others) / (ratio.rows + reference.rows)
    error = np.sqrt(pooled * (1 - pooled) * (1 / ratio.rows + 1 / reference.rows))
    counts = [[chosen, ratio.rows - chosen], [others, reference.rows - others]]
    short = int(np.ceil(FOUR_FIFTHS * reference.rate * ratio.rows - 1e-9)) - chosen
    return Adverse(
        ratio.attribute,
        ratio.group,
        ratio.reference,
        ratio.rows / people,
        float((chosen / ratio.rows - others / reference.rows) / error) if error > 0 else 0.0,
        float(stats.fisher_exact(counts).pvalue),
        max(short, 0),
    )


def _adverse_section(adverse: Sequence[Adverse]) -> Section:
    table = table_of(
        [group for group in adverse if group.group != group.reference],
        [
            ("attribute", Column("by")),
            ("group", Column("group")),
            ("reference", Column("compared with")),
            ("share", Column("of all", "percent")),
            ("deviations", Column("standard errors", "signed", decimals=2)),
            ("chance", Column("P(by chance)", "probability")),
            ("short", Column("short by", "count")),
        ],
        by="",
        caption="standard errors: by how many the group's rate differs from that of the group "
        "compared with; P(by chance): how often chance alone makes as large a difference (Fisher's "
        "exact test); short by: how many more of the group would have to be selected for four "
        "fifths. Of all: percent of the people.",
    )
    return Section("Differences, and whether chance explains them", [table])
