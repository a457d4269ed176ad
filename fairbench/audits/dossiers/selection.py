"""Dossiers of who is selected: New York's Local Law 144, and the four-fifths rule.

Both show the rate of each group and its ratio to the highest; the first by sex, race and both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import date
from itertools import groupby
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.audits.direction import Decided, check_said, direction_of
from fairbench.audits.dossiers.contents import dossier
from fairbench.audits.dossiers.rulebook import DECISIONS, SCORES, pack_of
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
from fairbench.inference.impact import FOUR_FIFTHS, difference_by_chance
from fairbench.reporting.charts import forest
from fairbench.reporting.document.model import (
    Column,
    Document,
    ExecutiveSummary,
    Figure,
    Section,
)
from fairbench.reporting.group_tables import table_of

SMALLEST_SHARE = 0.02  # 6 RCNY 5-301(d), and 29 CFR 1607.15(A)(2)(c)
UNKNOWN = ("unknown", "not specified", "not disclosed", "prefer not to say", "decline to state")
_SURE = (
    "Every rate has its 95 % interval and the number of people that it rests on: made in the same "
    "way from other samples of the same people, 19 of 20 such intervals hold the true value."
)
# What the JSON calls the fields of a category that is left out, which has no ratio.
_OF_SMALL = {
    **{"attribute": "attribute", "category": "group", "people": "rows"},
    **{"rate": "rate", "lower": "rate_lower", "upper": "rate_upper"},
}
Bools = NDArray[np.bool_]


def ll144(
    options: Options,
    frame: pd.DataFrame,
    told: Mapping[str, str],
    day: date,
    *,
    at_threshold: bool = False,
) -> Document:
    """Return the tables that the rules on Local Law 144 ask for (6 RCNY 5-300 to 5-304).

    Parameters
    ----------
    options : their groups are the columns of sex and of race.
    at_threshold : scores above the threshold are selected; otherwise a tool of scores scores, and
        rates are of scores above the median of everyone.

    Raises
    ------
    UserError : a column that is not there or cannot be what it is said to be.
    """
    _refuse_others(options)
    scoring = bool(options.score) and not options.prediction and not at_threshold
    rate, median = "selection rate", None
    if scoring:
        rate = "scoring rate"
        selected, median, how = _beyond_median(options, frame)
        read_as: Sequence[str] = [how]
    else:
        table = read_audit_table(options, frame=frame)
        selected, read_as = table.favoured, table.read_as
    sex, race = options.group
    both = f"{sex} x {race}"
    groups = {name: groups_of(frame[name], Place(options.path.name, name)) for name in (sex, race)}
    known = {
        name: ~labels.astype(str).str.casefold().isin(UNKNOWN).to_numpy()
        for name, labels in groups.items()
    }
    groups[both], known[both] = combine([groups[sex], groups[race]]), known[sex] & known[race]
    unknown = {name: int((~rows).sum()) for name, rows in known.items()}
    ratios: dict[str, list[ImpactRatio]] = {}
    small: list[ImpactRatio] = []
    for name, rows in known.items():
        ratios[name], left_out = _categories(name, groups[name][rows], selected[rows])
        small += left_out
    answers = {
        **told,
        "median": "" if median is None else number(median),
        "unknown": "; ".join(f"{name}: {count(people)}" for name, people in unknown.items()),
        "small": _listed(f"{c.attribute}: {c.group} ({count(c.rows)})" for c in small),
        "people": count(len(frame)),
    }
    for kind, name in (("sex", sex), ("race", race), ("sex_and_race", both)):
        in_table = f"in the table of {name}: {len(ratios[name])} categories"
        answers |= {f"rate_by_{kind}": in_table, f"impact_ratio_by_{kind}": in_table}
    found = [_smallest(of_groups, rate) for of_groups in ratios.values()]
    sections = [_ratios(ratios[name], rate, unknown[name]) for name in ratios]
    if small:
        found.append(
            f"{len(small)} categories of under 2 % of the people have a rate and no impact ratio."
        )
        sections.append(_left_out(small, rate))
    data = {
        "rate": rate,
        "median": median,
        "people": len(frame),
        "unknown": unknown,
        "categories": [asdict(ratio) for of_groups in ratios.values() for ratio in of_groups],
        "left_out": [
            {name: getattr(category, field) for name, field in _OF_SMALL.items()}
            for category in small
        ],
    }
    title = "Local Law 144: selection and impact by sex, race and both"
    measured = Document(
        title, sections, summary=ExecutiveSummary(found, [*read_as, _SURE]), data=data
    )
    return dossier(
        pack_of("ll144"),
        measured,
        options,
        answers,
        day,
        about=SCORES if scoring else DECISIONS,
        names={"sex": sex, "race": race, "both": both},
        without=() if small else ("exclusion_reason",),
    )


def _refuse_others(options: Options) -> None:
    if options.weight or options.cluster:
        raise UserError("weight= and cluster=: these rules count people, so leave them out")
    if options.within:
        raise UserError("within=: these rules compare groups of everyone, so leave it out")


def _beyond_median(options: Options, frame: pd.DataFrame) -> tuple[Bools, float, str]:
    """Return whose score is above the median of all (6 RCNY 5-300), the median, and how it is read.

    Where low scores are good (``favourable=0``), those below the median are counted.
    """
    score = numbers(frame, options.score, options.path.name).to_numpy()
    Place(options.path.name, options.score).refuse(
        frame[options.score], np.isnan(score), "a score: everyone whom the tool assessed needs one"
    )
    median, above = float(np.median(score)), score > np.median(score)
    direction = direction_of(("0", "1"), options.favourable, "")
    sex = groups_of(frame[options.group[0]], Place(options.path.name, options.group[0]))
    rows = Decided(options.path.name, sex, above.astype(np.int64))
    check_said(direction, [options.score], rows, f"{options.score} above the median {median:g}")
    selected, side = (above, "above") if direction.good else (score < median, "below")
    end = "high" if direction.good else "low"
    how = f"Counted: {options.score} {side} its median; {end} scores are good."
    return selected, median, how


def _categories(
    attribute: str, groups: pd.Series, selected: Bools
) -> tuple[list[ImpactRatio], list[ImpactRatio]]:
    """Return the categories of an attribute, and those of under 2 %, of which the rate counts."""
    every = impact_ratios_of(attribute, groups, selected)
    small = [category for category in every if category.rows < SMALLEST_SHARE * len(groups)]
    kept = ~groups.isin([category.group for category in small]).to_numpy()
    ratios = impact_ratios_of(attribute, groups[kept], selected[kept])
    if not ratios:
        raise UserError(f"{attribute}: fewer than two categories of 2 % of the people or more")
    return ratios, sorted(small, key=lambda category: -category.rows)


def _listed(names: Iterable[str]) -> str:
    return "; ".join(names) or "none"


def _smallest(ratios: Sequence[ImpactRatio], rate: str) -> str:
    """Return the smallest ratio of an attribute, in a sentence."""
    lowest = min(ratios, key=lambda ratio: ratio.ratio)
    whose = "" if lowest.given else f", whose {rate} is the highest of the large groups"
    return (
        f"By {lowest.attribute}, the smallest impact ratio is {number(lowest.ratio, 2)}, that of "
        f"{lowest.group} (95 % interval {number(lowest.lower, 2)} to {number(lowest.upper, 2)}); "
        f"it is compared with {lowest.reference}{whose}."
    )


def _ratios(ratios: Sequence[ImpactRatio], rate: str, unknown: int | None = None) -> Section:
    """Return a figure and the table of the ratios of an attribute."""
    attribute = ratios[0].attribute
    left_out = "" if unknown is None else f" Unknown, and left out: {count(unknown)} people."
    table = table_of(
        ratios,
        [
            ("group", Column(attribute)),
            ("rows", Column("people", "count")),
            *_of_rate(rate),
            ("ratio", Column("impact ratio", "number", decimals=2)),
            (("lower", "upper"), Column("95 % interval", "interval", decimals=2)),
            ("below", Column("P(<0.8)", "probability")),
        ],
        by="",
        caption=f"impact ratio: the {rate} of a category over that of the category where it is "
        f"highest; its interval allows for another truly being that one.{left_out}",
    )
    lines = [(ratio.group, ratio.ratio, ratio.lower, ratio.upper) for ratio in ratios]
    figure = Figure(
        f"impact ratios by {attribute}",
        svg=forest("impact ratio", [lines], span=(0.0, 1.2), mark=FOUR_FIFTHS),
        caption="Impact ratios with 95 % intervals; dashed: four fifths.",
    )
    return Section(f"By {attribute}", [figure, table])


def _of_rate(rate: str) -> list[tuple[str | tuple[str, ...], Column]]:
    return [
        ("rate", Column(rate, "number")),
        (("rate_lower", "rate_upper"), Column("95 % interval", "interval")),
    ]


def _left_out(small: Sequence[ImpactRatio], rate: str) -> Section:
    table = table_of(
        small,
        [
            ("attribute", Column("by")),
            ("group", Column("category")),
            ("rows", Column("people", "count")),
            *_of_rate(rate),
        ],
        by="",
        caption="Each is under 2 % of the people whose category is known (6 RCNY 5-301(d)).",
    )
    return Section("Categories left out", [table])


def four_fifths(
    options: Options, frame: pd.DataFrame, told: Mapping[str, str], day: date
) -> Document:
    """Return what the four-fifths rule of the Uniform Guidelines (29 CFR 1607.4(D)) looks at."""
    _refuse_others(options)
    audited = read_audit_table(options, frame=frame)
    every = impact_ratios(audited)
    if not every:
        raise UserError(f"{options.path.name}: no two groups to compare")
    ratios = {name: list(rows) for name, rows in groupby(every, lambda ratio: ratio.attribute)}
    rows_of = {(ratio.attribute, ratio.group): ratio for ratio in every}
    differences = [
        _difference(ratio, rows_of[ratio.attribute, ratio.reference], len(frame)) for ratio in every
    ]
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
            f"{ratio.attribute}: {ratio.group}"
            for ratio in every
            if ratio.rows / len(frame) < SMALLEST_SHARE
        ),
        "one_person": "in the table of differences",
    }
    measured = Document(
        "The four-fifths rule: selection rates and impact ratios",
        [
            *(_ratios(of_groups, "selection rate") for of_groups in ratios.values()),
            _of_differences(differences),
        ],
        summary=ExecutiveSummary(
            [_smallest(of_groups, "selection rate") for of_groups in ratios.values()],
            [*audited.read_as, _SURE],
        ),
        data={
            "people": len(frame),
            "groups": [asdict(ratio) for ratio in every],
            "differences": differences,
        },
    )
    return dossier(pack_of("four-fifths"), measured, options, answers, day)


def _difference(ratio: ImpactRatio, reference: ImpactRatio, people: int) -> dict[str, Any]:
    """Return what the rule looks at, of one group beside the group compared with.

    ``share`` is of all people; ``deviations`` and ``chance`` are those of `difference_by_chance`;
    ``short``, how many more of the group would have to be selected to reach four fifths.
    """
    selected, others = (round(group.rate * group.rows) for group in (ratio, reference))
    deviations, chance = difference_by_chance((selected, others), (ratio.rows, reference.rows))
    enough = int(np.ceil(FOUR_FIFTHS * reference.rate * ratio.rows - 1e-9))
    return {
        "attribute": ratio.attribute,
        "group": ratio.group,
        "reference": ratio.reference,
        "share": ratio.rows / people,
        "deviations": deviations,
        "chance": chance,
        "short": max(enough - selected, 0),
    }


def _of_differences(differences: Sequence[Mapping[str, Any]]) -> Section:
    table = table_of(
        [row for row in differences if row["group"] != row["reference"]],
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
