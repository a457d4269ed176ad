"""The dossier of New York's Local Law 144: rates and impact ratios by sex, race and both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.audits.columns import Place, groups_of
from fairbench.audits.dossiers.contents import Asked, dossier, measured, told
from fairbench.audits.impact import ImpactRatio, impact_ratios_of
from fairbench.audits.question import Options
from fairbench.audits.table import AuditTable, read_audit_table
from fairbench.core.errors import UserError
from fairbench.core.formats import count, number
from fairbench.data.dataset import combine
from fairbench.data.tabular import numbers, spelled
from fairbench.inference.impact import FOUR_FIFTHS
from fairbench.inference.rates import rate_limits
from fairbench.reporting.charts import forest
from fairbench.reporting.document.model import Column, Document, Figure, Section, Table

SMALLEST_SHARE = 0.02  # 6 RCNY 5-301(d)
UNKNOWN = ("unknown", "not specified", "not disclosed", "prefer not to say", "decline to state")
LL144_FACTS: Mapping[str, tuple[str, str]] = {
    "audit_date": ("the date of the most recent audit for bias", "6 RCNY 5-303(a)(1)"),
    "data_source": ("the source of the data, and what they are", "6 RCNY 5-303(a)(1)"),
    "data_kind": (
        "whether the data are historical, or why test data were used and how they were made",
        "6 RCNY 5-302",
    ),
    "distribution_date": ("the date from which the tool is in use", "6 RCNY 5-303(a)(2)"),
    "exclusion_reason": ("why small categories were left out", "6 RCNY 5-301(d)"),
}


@dataclass(frozen=True)
class SmallCategory:
    """A category of under 2 % of the people, with its rate and no impact ratio."""

    attribute: str
    category: str
    people: int
    rate: float
    lower: float
    upper: float


@dataclass(frozen=True, eq=False)
class Categories:
    """The impact ratios of the categories of an attribute, and who was left out.

    Attributes
    ----------
    unknown : how many people are of no known category; None where nobody is left out for that.
    """

    attribute: str
    ratios: Sequence[ImpactRatio]
    small: Sequence[SmallCategory] = ()
    unknown: int | None = None


def ll144(
    options: Options, frame: pd.DataFrame, sex: str, race: str, facts: Mapping[str, str], *,
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
    refuse_weights(options)
    selected, median = (
        _above_median(options, frame) if scoring else (_decisions(options, frame), None)
    )
    singles = {name: groups_of(frame[name], Place(options.path.name, name)) for name in (sex, race)}
    known = {name: ~_is_unknown(each) for name, each in singles.items()}
    both = known[sex] & known[race]
    combined = combine([_only(singles[sex], both), _only(singles[race], both)])
    found = [
        *(
            _categories(n, _only(singles[n], known[n]), selected[known[n]], known[n])
            for n in singles
        ),
        _categories(f"{sex} x {race}", combined, selected[both], both),
    ]
    rate = "scoring rate" if scoring else "selection rate"
    part = "c" if scoring else "b"
    asked = list(_asked_by_ll144(found, rate, part, median, facts))
    everyone = measured(
        "people", "the number of applicants or candidates", "6 RCNY 5-303(a)(1)", count(len(frame))
    )
    return dossier(
        "ll144",
        "Local Law 144: selection and impact by sex, race and both",
        options,
        [*asked, everyone],
        list(found_in(found, rate)),
        [*(ratio_table(each, rate) for each in found), *_small_section(found, rate)],
        rate=rate,
        median=median,
        people=len(frame),
        unknown={each.attribute: each.unknown for each in found},
        categories=[asdict(ratio) for each in found for ratio in each.ratios],
        left_out=[asdict(small) for each in found for small in each.small],
    )


def refuse_weights(options: Options) -> None:
    """Refuse weights and clusters, which count otherwise than the rules do."""
    if options.weight or options.cluster:
        raise UserError("weight= and cluster=: these rules count people, so leave them out")


def _decisions(options: Options, frame: pd.DataFrame) -> NDArray[np.bool_]:
    table = read_audit_table(options, frame=frame)
    return _selected(table, options)


def _selected(table: AuditTable, options: Options) -> NDArray[np.bool_]:
    unfavourable = bool(options.favourable) and spelled(options.favourable) == table.labels[0]
    chosen: NDArray[np.bool_] = table.prediction == (0 if unfavourable else 1)
    return chosen


def _above_median(options: Options, frame: pd.DataFrame) -> tuple[NDArray[np.bool_], float]:
    """Return whose score is above the median of all, and the median (6 RCNY 5-300)."""
    score = numbers(frame, options.score, options.path.name).to_numpy()
    Place(options.path.name, options.score).refuse(
        frame[options.score], np.isnan(score), "a score: everyone whom the tool assessed needs one"
    )
    median = float(np.median(score))
    return score > median, median


def _is_unknown(groups: pd.Series) -> NDArray[np.bool_]:
    labels: NDArray[np.bool_] = groups.astype(str).str.casefold().isin(UNKNOWN).to_numpy()
    return labels


def _only(groups: pd.Series, rows: NDArray[np.bool_]) -> pd.Series:
    return groups[rows].cat.remove_unused_categories().reset_index(drop=True)


def _categories(
    attribute: str, groups: pd.Series, selected: NDArray[np.bool_], known: NDArray[np.bool_]
) -> Categories:
    """Return the rates and ratios of an attribute, without those of under 2 % of the people."""
    sizes = groups.value_counts()
    small = [str(name) for name, n in sizes.items() if n < SMALLEST_SHARE * len(groups)]
    kept = ~groups.isin(small).to_numpy()
    ratios = impact_ratios_of(attribute, _only(groups, kept), selected[kept])
    if not ratios:
        raise UserError(f"{attribute}: fewer than two categories of 2 % of the people or more")
    left = [_small(attribute, name, selected[(groups == name).to_numpy()]) for name in small]
    return Categories(attribute, ratios, left, int((~known).sum()))


def _small(attribute: str, name: str, selected: NDArray[np.bool_]) -> SmallCategory:
    found = rate_limits(selected.sum(), len(selected))
    ends = (float(found.value), float(found.lower), float(found.upper))
    return SmallCategory(attribute, name, len(selected), *ends)


def _asked_by_ll144(
    found: Sequence[Categories],
    rate: str,
    part: str,
    median: float | None,
    facts: Mapping[str, str],
) -> Iterator[Asked]:
    if median is not None:
        yield measured(
            "median", "the median score of everyone", "6 RCNY 5-301(c)(1)", number(median)
        )
    first, second, third, last = (2, 3, 4, 5) if median is not None else (1, 2, 3, 5)
    for each, kind in zip(found, ("sex", "race", "sex_and_race"), strict=True):
        where = f"{part})({third}"
        told_in = f"in the table of {each.attribute}: {len(each.ratios)} categories"
        yield measured(
            f"rate_by_{kind}", f"the {rate} of each category of {each.attribute}",
            f"6 RCNY 5-301({part})({first}) and ({where})", told_in,
        )  # fmt: skip
        yield measured(
            f"impact_ratio_by_{kind}", f"the impact ratio of each category of {each.attribute}",
            f"6 RCNY 5-301({part})({second}) and ({where})", told_in,
        )  # fmt: skip
    unknown = "; ".join(f"{each.attribute}: {count(each.unknown or 0)}" for each in found)
    yield measured(
        "unknown", "how many people are left out as their category is unknown",
        f"6 RCNY 5-301({part})({last})", unknown,
    )  # fmt: skip
    small = [each for of in found for each in of.small]
    named = "; ".join(f"{s.attribute}: {s.category} ({count(s.people)})" for s in small)
    yield measured(
        "left_out", "categories of under 2 % of the people, which are left out of impact ratios",
        "6 RCNY 5-301(d)", named or "none",
    )  # fmt: skip
    for key, (what, source) in LL144_FACTS.items():
        if key != "exclusion_reason" or small:
            yield told(key, what, source, facts)


def found_in(found: Sequence[Categories], rate: str) -> Iterator[str]:
    """Yield the smallest impact ratio of each attribute in a sentence, and what was left out."""
    for each in found:
        lowest = min(each.ratios, key=lambda ratio: ratio.ratio)
        whose = "" if lowest.given else f", whose {rate} is the highest of the large groups"
        yield (
            f"By {each.attribute}, the smallest impact ratio is {number(lowest.ratio, 2)}, that of "
            f"{lowest.group} (95 % interval {number(lowest.lower, 2)} to "
            f"{number(lowest.upper, 2)}); it is compared with {lowest.reference}{whose}."
        )
    small = [each for of in found for each in of.small]
    if small:
        yield f"{len(small)} categories of under 2 % of the people have a rate and no impact ratio."


def ratio_table(found: Categories, rate: str) -> Section:
    """Return the table of an attribute, as the rules show it, with intervals."""
    columns = [
        Column(found.attribute),
        Column("people", "count"),
        Column(rate, "number"),
        Column("95 % interval", "interval"),
        Column("impact ratio", "number", decimals=2),
        Column("95 % interval", "interval", decimals=2),
        Column("P(<0.8)", "probability"),
    ]
    rows = [
        [
            each.group,
            each.rows,
            each.rate,
            (each.rate_lower, each.rate_upper),
            each.ratio,
            (each.lower, each.upper),
            each.below,
        ]
        for each in found.ratios
    ]
    caption = (
        f"impact ratio: the {rate} of a category over that of the category where it is highest; "
        "its interval allows for another truly being that one."
    )
    if found.unknown is not None:
        caption += f" Unknown, and left out: {count(found.unknown)} people."
    return Section(
        f"By {found.attribute}", [_picture(found), Table(columns, rows, caption=caption)]
    )


def _picture(found: Categories) -> Figure:
    parts = [(each.group, each.ratio, each.lower, each.upper) for each in found.ratios]
    drawing = forest("impact ratio", [parts], span=(0.0, 1.2), mark=FOUR_FIFTHS)
    caption = "Impact ratios with 95 % intervals; dashed: four fifths."
    return Figure(f"impact ratios by {found.attribute}", svg=drawing, caption=caption)


def _small_section(found: Sequence[Categories], rate: str) -> Iterator[Section]:
    small = [each for of in found for each in of.small]
    if small:
        columns = [Column("by"), Column("category"), Column("people", "count")]
        columns += [Column(rate, "number"), Column("95 % interval", "interval")]
        rows = [[s.attribute, s.category, s.people, s.rate, (s.lower, s.upper)] for s in small]
        caption = "Each is under 2 % of the people whose category is known (6 RCNY 5-301(d))."
        yield Section("Categories left out", [Table(columns, rows, caption=caption)])
