"""The dossier of a lender: decisions, odds, the best by score, segments, and means of prices.

Figures are those of lenders' practice, defined as the package solas-ai defines them: every group is
compared with one that is named, or is the largest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import date
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.audits.dossiers.contents import dossier
from fairbench.audits.dossiers.rulebook import pack_of
from fairbench.audits.dossiers.unknown import Unknown, unknown_of
from fairbench.audits.question import HIGH, LOW, LendingQuestion, Options
from fairbench.audits.sentences import listed
from fairbench.audits.table import AuditTable, read_audit_table
from fairbench.core.arrays import Floats
from fairbench.core.errors import UserError
from fairbench.core.formats import count, number
from fairbench.data.columns import ColumnRef, numbers_of
from fairbench.data.dataset import reference_first
from fairbench.data.groups import CROSSED, codes_of, notes_on_groups
from fairbench.data.tabular import to_numbers
from fairbench.evaluation.impact_ratios import (
    ImpactRatio,
    among_best,
    impact_ratios_at,
    impact_ratios_of,
)
from fairbench.inference.impact import FOUR_FIFTHS
from fairbench.inference.mean_differences import (
    adjusted_mean_differences,
    mean_differences,
    residual_mean_differences,
)
from fairbench.inference.means import ROWS, Moments, loss_limits
from fairbench.inference.odds import odds_ratios
from fairbench.inference.rates import Limits, difference_limits, rate_limits
from fairbench.inference.standardised import StandardisedRates
from fairbench.reporting.charts import forest
from fairbench.reporting.document.model import (
    Block,
    Column,
    Document,
    ExecutiveSummary,
    Figure,
    Section,
    Table,
)
from fairbench.reporting.group_tables import MOST_ROWS, table_of

Codes = NDArray[np.intp]
Ends: TypeAlias = tuple[float, float, float]

ALL_SEGMENTS = "all segments"
GRANTED = "granted"  # what the good decision is called where decision= names none
_MOST_LEVELS = 50  # of a factor that is no number
_SURE = (
    "Each interval is a 95 % interval by itself, not adjusted for looking at several: if many "
    "samples of the same people were audited in this way, 19 of 20 such intervals would contain "
    "the true value."
)


@dataclass(frozen=True)
class OddsRatio:
    """The rate at which a group is refused, and the odds ratio of its grants to the reference's."""

    attribute: str
    group: str
    reference: str
    rows: int
    refused: float
    refused_lower: float
    refused_upper: float
    odds: float
    lower: float
    upper: float


@dataclass(frozen=True)
class PartRatio:
    """An adverse impact ratio among the best by score, or in a segment.

    Attributes
    ----------
    part : the best by score, as ``best 10 %``, or the name of the segment.
    cut : the score that separates the best from the others; NaN for a segment.
    rows : how many people are in the group.
    rate : the share of the group that is among the best, or is granted.
    ratio : the group's rate over that of the reference group.
    """

    attribute: str
    part: str
    cut: float
    group: str
    reference: str
    rows: int
    rate: float
    rate_lower: float
    rate_upper: float
    ratio: float
    lower: float
    upper: float


@dataclass(frozen=True)
class MeanDifference:
    """The mean score or price of a group, and its differences to the reference group's mean.

    All have 95 % intervals. The differences are NaN for the reference group itself.

    Attributes
    ----------
    mean : the mean of the group.
    less : the mean less the reference's.
    smd : the standardised mean difference.
    residual : the standardised mean difference of the residuals of a regression on the factors;
        NaN without factors.
    adjusted : the standardised coefficient of the group in a regression on it and the factors; NaN
        without factors.
    """

    measure: str
    attribute: str
    group: str
    reference: str
    rows: int
    mean: Ends
    less: Ends
    smd: Ends
    residual: Ends
    adjusted: Ends


@dataclass(frozen=True, eq=False)
class _Compared:
    """The people whose group is known, for one attribute.

    Attributes
    ----------
    groups : (m,) the group of each of these people; the reference is the first category.
    rows : (n,) a mask of their rows in the file.
    """

    groups: pd.Series
    rows: NDArray[np.bool_]

    @property
    def reference(self) -> str:
        """The group with which others are compared."""
        return str(self.groups.cat.categories[0])


def lending(
    options: LendingQuestion,
    frame: pd.DataFrame,
    human_answers: Mapping[str, str],
    day: date,
    *,
    unknown: Sequence[str] = (),
) -> Document:
    """Return the dossier of a lender's decisions, scores and prices.

    Parameters
    ----------
    unknown : further answers that mean that a group is not known.

    Raises
    ------
    UserError : if the options do not tell which decision, or which scores, are good for a person,
        or a value is invalid.
    """
    if options.weight or options.cluster:
        raise UserError("weight= and cluster=: this dossier counts people, so leave them out")
    plain = {field.name: getattr(options, field.name) for field in fields(Options)}
    without_score = {"score": ""} if options.prediction else {}  # scores may then be any numbers
    audit_options = Options(**plain | without_score | {"purpose": "lending"})
    table = read_audit_table(audit_options, frame=frame, decisions_alone=True)
    answered = unknown_of({name: table.groups[name] for name in options.group}, unknown)
    measured = _measure(options, frame, table, answered)
    return dossier(
        pack_of("lending"),
        _document(options, frame, table, answered, measured),
        options,
        {**human_answers, **_answers(options, measured)},
        day,
        without=measured.missing,
    )


@dataclass(frozen=True, eq=False)
class _Measured:
    """The measures of a lender's decisions, scores and prices, by group.

    Attributes
    ----------
    references : attribute or combination of attributes -> its reference group.
    ratios, odds : the impact ratios and the odds ratios of decisions.
    by_quantile : the impact ratios among the best by score.
    by_segment : the impact ratios within each segment.
    means : the means of scores and prices.
    values : the scores and prices (n,) themselves, by column.
    given_factors : whether means are compared given factors, too.
    notes : how scores were read.
    """

    references: Mapping[str, str]
    ratios: list[ImpactRatio]
    odds: list[OddsRatio]
    by_quantile: list[PartRatio]
    by_segment: list[PartRatio]
    means: list[MeanDifference]
    values: Mapping[str, Floats]
    given_factors: bool
    notes: list[str]

    @property
    def missing(self) -> list[str]:
        """The questions of the rule that have no measurement."""
        measured = {
            "air_by_quantile": bool(self.by_quantile),
            "air_by_segment": bool(self.by_segment),
            "mean_differences": bool(self.means),
            "mean_differences_given": self.given_factors,
            "factors_why": self.given_factors,
        }
        return [question for question, is_there in measured.items() if not is_there]


def _measure(
    options: LendingQuestion, frame: pd.DataFrame, table: AuditTable, answered: Unknown
) -> _Measured:
    """Measure decisions, scores and prices by group."""
    compared = {name: _known_people(name, table, answered) for name in table.groups}
    singles = {name: compared[name] for name in options.group}
    ratios: list[ImpactRatio] = []
    odds: list[OddsRatio] = []
    for name, people in compared.items():
        granted = table.favoured[people.rows]
        ratios += impact_ratios_of(name, people.groups, granted, reference=people.reference)
        odds += _odds(name, people.groups, granted)
    best: list[PartRatio] = []
    notes: list[str] = []
    values: dict[str, Floats] = {}
    if options.score:
        values[options.score] = numbers_of(frame, ColumnRef(options.path.name, options.score))
        high = _good_side(options, table, values[options.score])
        notes.append(f"{'High' if high else 'Low'} '{options.score}' is good for a person.")
        best = list(_best(values[options.score], singles, options.quantiles, high=high))
    segments: list[PartRatio] = []
    if table.strata is not None:
        segments = list(_segments(singles, table.strata, table.favoured))
    for name in options.price:
        values[name] = _prices(frame, ColumnRef(options.path.name, name))
    design = _factors(frame, options) if options.factors else None
    means = [
        row
        for measure, numbers in values.items()
        for name, people in singles.items()
        for row in _means(measure, name, people, numbers, design)
    ]
    return _Measured(
        references={name: people.reference for name, people in compared.items()},
        ratios=ratios,
        odds=odds,
        by_quantile=best,
        by_segment=segments,
        means=means,
        values=values,
        given_factors=design is not None,
        notes=notes,
    )


def _document(
    options: LendingQuestion,
    frame: pd.DataFrame,
    table: AuditTable,
    answered: Unknown,
    measured: _Measured,
) -> Document:
    """Return the tables of what was measured, with their summary."""
    granted = table.granted if table.direction.decisions else GRANTED
    sections = [_decisions_section(measured.ratios, measured.odds, granted)]
    if measured.by_quantile:
        sections.append(_best_section(measured.by_quantile, options.score))
    if measured.by_segment:
        sections.append(_segment_section(measured.by_segment, granted))
    sections += [_mean_section(name, measured.means, options.factors) for name in measured.values]
    compared_with = f"Compared with: {_reference_names(measured.references, options.group)}."
    return Document(
        "Fair lending: decisions, scores and prices by group",
        sections,
        summary=ExecutiveSummary(
            list(_in_short(measured.ratios, measured.means, granted, options)),
            [*table.read_as, *measured.notes, *answered.sentences, compared_with, _SURE],
            list(_unseen(options, table, measured.values)),
        ),
        notes=[*answered.sentences, *notes_on_groups(frame, options.group)],
        data={
            "people": len(frame),
            "granted": granted,
            "references": measured.references,
            "unknown": {name: int((~rows).sum()) for name, rows in answered.known.items()},
            "ratios": [asdict(row) for row in measured.ratios],
            "odds_ratios": [asdict(row) for row in measured.odds],
            "by_quantile": [asdict(row) for row in measured.by_quantile],
            "by_segment": [asdict(row) for row in measured.by_segment],
            "means": [asdict(row) for row in measured.means],
            "factors": list(options.factors),
        },
    )


def _answers(options: LendingQuestion, measured: _Measured) -> dict[str, str]:
    """Return what is answered to each question of the rule."""
    return {
        "rates": f"{len(measured.ratios)} groups",
        "adverse_impact_ratio": "in the tables of decisions",
        "odds_ratio": "in the tables of decisions",
        "air_by_quantile": f"at {len(options.quantiles)} cuts",
        "air_by_segment": f"by {listed(options.within)}",
        "mean_differences": f"of {listed(list(measured.values))}",
        "mean_differences_given": f"given {listed(options.factors)}, by least-squares regression",
    }


def _known_people(name: str, table: AuditTable, answered: Unknown) -> _Compared:
    """Return the people of an attribute, or of a combination, whose group is known.

    Raises
    ------
    UserError : fewer than two groups are known.
    """
    rows = np.logical_and.reduce([answered.known[part] for part in name.split(CROSSED)])
    groups = table.groups[name]
    reference = str(groups.cat.categories[0])
    groups = groups[rows].cat.remove_unused_categories().reset_index(drop=True)
    names = list(map(str, groups.cat.categories))
    if len(names) < 2:
        raise UserError(f"{name}: fewer than two groups are known: name a column that has more")
    if reference not in names:  # it was an answer that says nothing
        groups = reference_first(groups, str(groups.value_counts().index[0]))
    return _Compared(groups, rows)


def _good_side(options: LendingQuestion, table: AuditTable, score: Floats) -> bool:
    """Return whether high scores are good for a person; refuse options that do not tell."""
    if not options.prediction:
        return bool(table.direction.good)
    if not options.good_scores:
        granted, refused = (
            number(float(score[rows].mean())) if rows.any() else "unknown"
            for rows in (table.favoured, ~table.favoured)
        )
        raise UserError(
            f"{options.path.name}: whether high or low '{options.score}' is good for a person is "
            f"not said; its mean is {granted} of those {table.granted} and {refused} of the "
            f"others. Give good_scores={HIGH} or good_scores={LOW}."
        )
    return options.good_scores == HIGH


def _prices(frame: pd.DataFrame, source: ColumnRef) -> Floats:
    """Return prices (n,), NaN where they are blank."""
    text = frame[source.name]
    prices: Floats = to_numbers(text)
    blank = text.isna().to_numpy() | (text.astype(str).str.strip() == "").to_numpy()
    source.refuse(
        text, ~np.isfinite(prices) & ~blank, "price: it has to be a number", negation="no"
    )
    if blank.all():
        raise source.fault("is blank in all rows: name a column of prices by price=")
    return prices


def _factors(frame: pd.DataFrame, options: LendingQuestion) -> Floats:
    """Return legitimate factors as columns (n, K): numbers, or a mark for each level but one."""
    parts = []
    for name in options.factors:
        source = ColumnRef(options.path.name, name)
        text = frame[name]
        source.refuse_blank(text, "a factor: every row needs one, or leave the column out")
        values = to_numbers(text)
        if np.isfinite(values).all():
            parts.append(values[:, None])
            continue
        if np.isfinite(values).mean() > 0.5:
            source.refuse(
                text, ~np.isfinite(values), "number, as most of this factor are", negation="no"
            )
        levels = pd.Categorical(text.astype(str))
        if len(levels.categories) > _MOST_LEVELS:
            raise source.fault(
                f"holds {len(levels.categories)} different values; a factor is a number, or has up "
                f"to {_MOST_LEVELS} levels: make it coarser"
            )
        parts.append(np.eye(len(levels.categories))[levels.codes][:, 1:])
    return np.concatenate(parts, axis=1)


def _odds(attribute: str, groups: pd.Series, granted: NDArray[np.bool_]) -> Iterator[OddsRatio]:
    """Yield the odds ratio of each group to the reference, which comes first."""
    codes, names = codes_of(groups)
    n_people = np.bincount(codes)
    n_granted = np.bincount(codes, granted)
    refused = rate_limits(n_people - n_granted, n_people)
    odds = odds_ratios((n_granted, n_granted[0]), (n_people, n_people[0]))
    for group, name in enumerate(names):
        refused_share, refused_lower, refused_upper = refused.at(group)
        odds_ratio, lower, upper = odds.at(group) if group else (1.0, np.nan, np.nan)
        yield OddsRatio(
            attribute=attribute,
            group=name,
            reference=names[0],
            rows=int(n_people[group]),
            refused=refused_share,
            refused_lower=refused_lower,
            refused_upper=refused_upper,
            odds=odds_ratio,
            lower=lower,
            upper=upper,
        )


def _best(
    score: Floats, singles: Mapping[str, _Compared], shares: Sequence[float], *, high: bool
) -> Iterator[PartRatio]:
    """Yield the ratios among the best of everyone by score, at each cut."""
    for attribute, people in singles.items():
        for share in sorted(shares):
            best, cut = among_best(score, share, high=high)
            part = f"best {100 * share:g} %"
            yield from _part_ratios(attribute, part, people.groups, best[people.rows], float(cut))


def _part_ratios(
    attribute: str,
    part: str,
    groups: pd.Series,
    selected: NDArray[np.bool_],
    cut: float = float("nan"),
) -> Iterator[PartRatio]:
    """Yield the impact ratios of the selected people among all people or a part of them."""
    codes, names = codes_of(groups)
    rows = np.bincount(codes)
    rates = rate_limits(np.bincount(codes, selected), rows)
    reference = str(groups.cat.categories[0])
    if reference not in names:
        return
    ratios = impact_ratios_at(attribute, names, rows, lambda _: rates, reference=reference)
    for row in ratios:
        yield PartRatio(
            attribute=attribute,
            part=part,
            cut=cut,
            group=row.group,
            reference=reference,
            rows=row.rows,
            rate=row.rate,
            rate_lower=row.rate_lower,
            rate_upper=row.rate_upper,
            ratio=row.ratio,
            lower=np.nan if row.is_given_reference else row.lower,
            upper=np.nan if row.is_given_reference else row.upper,
        )


def _segments(
    singles: Mapping[str, _Compared], strata: pd.Series, favoured: NDArray[np.bool_]
) -> Iterator[PartRatio]:
    """Yield the ratios in each segment, and those over all of them.

    Over all segments, a group's rate is compared with the reference group's rate standardised to
    the group's mix of segments. Segments without people of both groups are left out.
    """
    for attribute, people in singles.items():
        groups = people.groups
        granted = favoured[people.rows]
        codes, names = codes_of(groups)
        segment_codes, segments = codes_of(strata[people.rows])
        for index, segment in enumerate(segments):
            in_segment = segment_codes == index
            of_segment = groups[in_segment].reset_index(drop=True)
            yield from _part_ratios(attribute, segment, of_segment, granted[in_segment])
        cells = codes * len(segments) + segment_codes
        shape = len(names), len(segments)
        n_people = np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape)
        n_granted = np.bincount(cells, granted, minlength=n_people.size).reshape(shape)
        for group, name in enumerate(names[1:], start=1):
            pair = StandardisedRates.of(
                n_granted[[group, 0]], n_people[[group, 0]], mix=n_people[group]
            )
            # At (0, 1): the group's rate in the segments shared with the reference group, and its
            # ratio to the reference group's standardised rate.
            rate, rate_lower, rate_upper = (float(array[0, 1]) for array in pair.limits())
            ratio, lower, upper = (float(array[0, 1]) for array in pair.ratios())
            yield PartRatio(
                attribute=attribute,
                part=ALL_SEGMENTS,
                cut=np.nan,
                group=name,
                reference=names[0],
                rows=int(pair.rows[0, 1]),
                rate=rate,
                rate_lower=rate_lower,
                rate_upper=rate_upper,
                ratio=ratio,
                lower=lower,
                upper=upper,
            )


def _means(
    measure: str, attribute: str, people: _Compared, values: Floats, design: Floats | None
) -> Iterator[MeanDifference]:
    """Yield the means of the groups that have values, the reference group's first."""
    rows = np.isfinite(values) & people.rows
    codes, names = codes_of(people.groups[rows[people.rows]].reset_index(drop=True))
    known_values = values[rows]
    if people.reference not in names or len(names) < 2:
        return
    reference = names.index(people.reference)
    means = loss_limits(Moments.of_groups(known_values, codes, len(names)))
    less = difference_limits(means, means.take([reference]))
    standardised = mean_differences(known_values, codes, reference)
    unknown = Limits(*np.full((3, len(names)), np.nan))
    residual = adjusted = unknown
    if design is not None:
        residual = residual_mean_differences(known_values, codes, reference, design[rows])
        adjusted = adjusted_mean_differences(known_values, codes, reference, design[rows])
    sizes = np.bincount(codes)
    for group, name in enumerate(names):
        is_reference = group == reference
        yield MeanDifference(
            measure=measure,
            attribute=attribute,
            group=name,
            reference=people.reference,
            rows=int(sizes[group]),
            mean=means.at(group),
            less=(unknown if is_reference else less).at(group),
            smd=(unknown if is_reference else standardised).at(group),
            residual=(unknown if is_reference else residual).at(group),
            adjusted=(unknown if is_reference else adjusted).at(group),
        )


def _in_short(
    ratios: Sequence[ImpactRatio],
    means: Sequence[MeanDifference],
    granted: str,
    options: LendingQuestion,
) -> Iterator[str]:
    """Yield the smallest ratio and the largest difference of each attribute, in sentences."""
    for attribute in options.group:
        of_attribute = [
            ratio
            for ratio in ratios
            if ratio.attribute == attribute and not ratio.is_given_reference
        ]
        lowest = min(of_attribute, key=lambda ratio: np.nan_to_num(ratio.ratio, nan=np.inf))
        if np.isnan(lowest.ratio):
            yield f"By {attribute}, nobody of {lowest.reference} is {granted}: there is no ratio."
            continue
        yield (
            f"By {attribute}, the smallest adverse impact ratio is {number(lowest.ratio, 2)}, that "
            f"of {lowest.group} (95 % interval {number(lowest.lower, 2)} to "
            f"{number(lowest.upper, 2)}), compared with {lowest.reference}."
        )
    for measure in options.price:
        of_price = [row for row in means if row.measure == measure and np.isfinite(row.smd[0])]
        if of_price:
            worst = max(of_price, key=lambda row: row.smd[0])
            difference = worst.less[0]
            side = "lower" if difference < 0 else "higher"
            lower, upper = sorted(-limit if difference < 0 else limit for limit in worst.less[1:])
            in_interval = ""
            if np.isfinite(lower):
                in_interval = f" (95 % interval {number(lower)} to {number(upper)})"
            yield (
                f"The mean '{measure}' of {worst.group} is {side} than that of "
                f"{worst.reference} by {number(abs(difference))}{in_interval}: "
                f"{number(abs(worst.smd[0]), 2)} "
                f"standard deviations{_given_factors(worst, options)}."
            )


def _given_factors(row: MeanDifference, options: LendingQuestion) -> str:
    """Return the end of a sentence on a difference: what it is among people of equal factors."""
    if not options.factors or not np.isfinite(row.adjusted[0]):
        return ""
    adjusted = float(np.copysign(1.0, row.smd[0])) * row.adjusted[0]
    return f", and {number(adjusted, 2)} among people of the same {listed(options.factors)}"


def _reference_names(references: Mapping[str, str], single: Sequence[str]) -> str:
    """Return each attribute with the group that its others are compared with."""
    return "; ".join(f"{name}: {references[name]}" for name in single)


def _unseen(
    options: LendingQuestion, table: AuditTable, values: Mapping[str, Floats]
) -> Iterator[str]:
    """Yield what was not looked at."""
    if len(table.known):
        yield f"The outcomes in '{options.target}' were not used: these figures take none."
    if not options.factors:
        yield "Why groups differ was not looked at; factors= names what may explain it."
    yield "Whether a difference is justified was not looked at."
    for name in options.price:
        blank = int(np.isnan(values[name]).sum())
        if blank:
            yield (
                f"'{name}' is known for those alone who got an offer ({count(blank)} rows are "
                "blank): its differences depend on whom the lender chose."
            )


def _decisions_section(
    ratios: Sequence[ImpactRatio], odds: Sequence[OddsRatio], granted: str
) -> Section:
    """Return the section of decisions: a figure of impact ratios, their table, and odds ratios."""
    tables = [_ratio_table(ratios, granted), _odds_table(odds, granted)]
    return Section("Decisions by group", [*_ratio_figure(ratios), *tables])


def _ratio_table(ratios: Sequence[ImpactRatio], granted: str) -> Table:
    """Return the table of each group's share of granted decisions, and its impact ratio."""
    return table_of(
        ratios,
        [
            ("attribute", Column("by", left_out=1)),
            ("group", Column("group")),
            ("rows", Column("people", "count")),
            (("rate", "rate_lower", "rate_upper"), Column(granted, "estimate")),
            ("ratio", Column("AIR", "number", decimals=2)),
            (
                lambda row: None if row.is_given_reference else (row.lower, row.upper),
                Column("95 % interval", "interval", decimals=2),
            ),
            (
                lambda row: None if row.is_given_reference else row.below,
                Column("P(<0.8)", "probability", left_out=2),
            ),
        ],
        caption=(
            f"AIR, adverse impact ratio: the share {granted} of a group over that of the group it "
            "is compared with, whose own ratio is 1; P(<0.8): how sure it is that the ratio is "
            "under four fifths, a rule of thumb from employment"
        ),
        most=MOST_ROWS,
    )


def _odds_table(odds: Sequence[OddsRatio], granted: str) -> Table:
    """Return the table of how often each group is refused, and its odds ratio."""
    return table_of(
        odds,
        [
            ("attribute", Column("by", left_out=1)),
            ("group", Column("group")),
            (
                ("refused", "refused_lower", "refused_upper"),
                Column(f"not {granted}", "estimate"),
            ),
            ("odds", Column("odds ratio", "number", decimals=2)),
            (
                lambda row: None if row.group == row.reference else (row.lower, row.upper),
                Column("95 % interval", "interval", decimals=2),
            ),
        ],
        caption=(
            f"odds ratio: the odds of being {granted} of a group over those of the group it is "
            "compared with; that of not being so is one over it"
        ),
        most=MOST_ROWS,
    )


def _ratio_figure(ratios: Sequence[ImpactRatio]) -> Iterator[Figure]:
    """Yield a figure of the impact ratios, where there are any."""
    lines = [
        (f"{ratio.attribute}: {ratio.group}", ratio.ratio, ratio.lower, ratio.upper)
        for ratio in ratios
        if not ratio.is_given_reference and np.isfinite(ratio.ratio)
    ]
    if lines:
        svg = forest("adverse impact ratio", [lines], span=(0.0, 1.5), mark=FOUR_FIFTHS)
        caption = (
            "Adverse impact ratios with 95 % intervals; dashed: four fifths, a rule of thumb from "
            "employment."
        )
        yield Figure("adverse impact ratios", svg=svg, caption=caption)


def _rate_column(title: str) -> tuple[tuple[str, ...], Column]:
    """Return the column of a rate and its interval."""
    return ("rate", "rate_lower", "rate_upper"), Column(title, "estimate")


_RATIO_COLUMNS = (
    ("ratio", Column("AIR", "number", decimals=2)),
    (
        lambda row: None if np.isnan(row.lower) else (row.lower, row.upper),
        Column("95 % interval", "interval", decimals=2),
    ),
)


def _best_section(best: Sequence[PartRatio], score: str) -> Section:
    """Return the section of the impact ratios among the best by score, at each cut."""
    table = table_of(
        best,
        [
            ("attribute", Column("by", left_out=1)),
            ("part", Column("of all")),
            ("cut", Column("cut", "number", left_out=2)),
            ("group", Column("group")),
            _rate_column("among these"),
            *_RATIO_COLUMNS,
        ],
        by="part",
        caption=(
            f"the best by '{score}' are those who reach the cut; with ties they may be more; the "
            "intervals are of all people at this cut"
        ),
        most=MOST_ROWS,
    )
    return Section("Adverse impact ratio by quantile of the score", [table])


def _segment_section(segments: Sequence[PartRatio], granted: str) -> Section:
    """Return the section of the impact ratios in each segment, and over all segments."""
    table = table_of(
        segments,
        [
            ("attribute", Column("by", left_out=1)),
            ("part", Column("segment")),
            ("group", Column("group")),
            ("rows", Column("people", "count", left_out=2)),
            _rate_column(granted),
            *_RATIO_COLUMNS,
        ],
        by="part",
        caption=(
            f"{ALL_SEGMENTS}: the group's share {granted} over what the share of the group it is "
            "compared with would be, had that the group's mix of segments; of segments that have "
            "people of both"
        ),
        most=MOST_ROWS,
    )
    return Section("Adverse impact ratio by segment", [table])


def _mean_section(measure: str, means: Sequence[MeanDifference], factors: Sequence[str]) -> Section:
    """Return the section of the means of one score or price, and of their differences."""
    of_measure = [row for row in means if row.measure == measure]
    blocks: list[Block] = [_mean_table(of_measure)]
    if factors:
        blocks.append(_given_factors_table(of_measure, factors))
    return Section(f"Means of '{measure}' by group", blocks)


def _mean_table(means: Sequence[MeanDifference]) -> Table:
    """Return the table of each group's mean, and its difference from the reference's."""
    decimals = 3 if max((abs(row.mean[0]) for row in means), default=0) < 100 else 1
    return table_of(
        means,
        [
            ("attribute", Column("by", left_out=1)),
            ("group", Column("group")),
            ("rows", Column("people", "count", left_out=2)),
            (lambda row: row.mean[0], Column("mean", "number", decimals=decimals)),
            (
                lambda row: None if np.isnan(row.less[1]) else row.less[1:],
                Column("difference", "interval", decimals=decimals),
            ),
            *_difference_columns("smd", "SMD"),
        ],
        caption=(
            "difference: 95 % interval of the mean less that of the group compared with; SMD, "
            "standardised mean difference: it over the standard deviation of everyone's; "
            f"groups of under {ROWS} people have no interval"
        ),
        most=MOST_ROWS,
    )


def _given_factors_table(means: Sequence[MeanDifference], factors: Sequence[str]) -> Table:
    """Return the table of the differences that remain when factors are taken into account."""
    return table_of(
        [row for row in means if row.group != row.reference],
        [
            ("attribute", Column("by", left_out=1)),
            ("group", Column("group")),
            *_difference_columns("residual", "residual SMD"),
            *_difference_columns("adjusted", "adjusted SMD"),
        ],
        caption=(
            f"given {listed(factors)}; residual SMD: of what a least-squares regression on "
            "these leaves, which does not know the groups; a factor that differs between "
            "groups takes a part of the difference with it; adjusted SMD: between people of "
            "the same factors, the coefficient of the group beside them; empty: the factors "
            "tell who is in the group"
        ),
        most=MOST_ROWS,
    )


def _difference_columns(name: str, title: str) -> list[tuple[Any, Column]]:
    """Return the columns of a standardised difference and its interval, empty where unknown."""

    def value(row: MeanDifference) -> float | None:
        ends: Ends = getattr(row, name)
        return None if np.isnan(ends[0]) else ends[0]

    def limits(row: MeanDifference) -> tuple[float, float] | None:
        ends: Ends = getattr(row, name)
        return None if np.isnan(ends[1]) else ends[1:]

    return [
        (value, Column(title, "number", decimals=2)),
        (limits, Column("95 % interval", "interval", decimals=2)),
    ]
