"""The audit of a ranking: who is among the first, and who gets the exposure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.audits.columns import Place, codes_of
from fairbench.audits.findings import LARGE, OPEN, SHARE, ErrorBudget, Finding
from fairbench.audits.pages.decisions import density_panel, group_line, score_table
from fairbench.audits.pages.parts import MOST_LINES, MOST_ROWS, starts
from fairbench.audits.question import Options
from fairbench.audits.report import Audit
from fairbench.audits.score_distributions import GroupScores, score_distributions
from fairbench.audits.table import notes_on_groups, read_groups
from fairbench.core.errors import UserError
from fairbench.core.formats import count
from fairbench.data.tabular import numbers
from fairbench.inference.exposure import exposure_weights, top_weights, weighted_shares
from fairbench.inference.rates import Limits
from fairbench.reporting.charts import COLOURS, Panel, Series, chart
from fairbench.reporting.document.model import Column, Figure, Section, Table

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]
TOP, EXPOSURE = "top", "exposure"
_POINTS = 40  # lengths of the top in a curve


@dataclass(frozen=True)
class GroupPlaces:
    """What a group gets of the places of a ranking.

    Attributes
    ----------
    kind : `TOP`, of the first places, or `EXPOSURE`, of all weighted by how much they are seen.
    rows : how many the group has. of_rows : its share of all. share : of the places, with interval.
    ratio : of the two, 1 where the group gets as much as it has rows, with its interval.
    below : how sure it is that the ratio is under four fifths.
    surely : whether all such statements of an audit together say that the ratio is not 1.
    """

    attribute: str
    group: str
    kind: str
    rows: int
    of_rows: float
    share: tuple[float, float, float]
    ratio: tuple[float, float, float]
    below: float
    surely: bool


@dataclass(frozen=True, eq=False)
class TopCurve:
    """Shares of the first places (K, G) of an attribute's groups, at K lengths of the top.

    `of_rows` are their shares of all rows.
    """

    attribute: str
    groups: Sequence[str]
    lengths: Floats
    shares: Limits
    of_rows: Floats


@dataclass(frozen=True, eq=False)
class RankingAssessment:
    """The result of an audit of a ranking of so many rows in so many lists."""

    options: Options
    rows: int
    lists: int
    places: Sequence[GroupPlaces]
    curves: Sequence[TopCurve]
    scores: Sequence[GroupScores]
    notes: Sequence[str] = ()


def assess_ranking(options: Options, frame: pd.DataFrame) -> RankingAssessment:
    """Assess the ranking of a table by its scores.

    Raises
    ------
    UserError : no scores, or a value that is none.
    """
    if not options.score:
        raise UserError("top= is of a ranking by scores: name their column by score=")
    places = {name: Place(options.path.name, name) for name in options.columns}
    score = numbers(frame, options.score, options.path.name).to_numpy()
    groups = read_groups(frame, places, options)[0]
    lists = None
    if options.lists:
        lists = pd.factorize(frame[options.lists])[0].astype(np.intp)
        if lists.max() == 0:
            raise UserError(f"'{options.lists}' has one mark in all rows: leave out lists=")
    singles = {name: groups[name] for name in options.group}
    return RankingAssessment(
        options,
        len(score),
        1 if lists is None else int(lists.max()) + 1,
        list(places_of(score, groups, lists, options.top)),
        [_curve(score, name, each, lists) for name, each in singles.items()],
        score_distributions(score, singles),
        notes_on_groups(frame, options),
    )


def places_of(
    score: Floats, groups: Mapping[str, pd.Series], lists: Codes | None, top: float
) -> Iterator[GroupPlaces]:
    """Yield what every group of every attribute gets of the places of a ranking.

    Parameters
    ----------
    score : (n,) the highest first. lists : (n,) which list a row is in, where there are several.
    top : how many places are the first, or which share of them.
    """
    one = np.zeros(len(score), np.intp) if lists is None else lists
    kinds = {TOP: top_weights(score, one, top), EXPOSURE: exposure_weights(score, one)}
    questions = len(kinds) * sum(len(each.cat.categories) for each in groups.values())
    sure = 1 - ErrorBudget(questions).risk
    for attribute, each in groups.items():
        codes, names = codes_of(each)
        rows = np.bincount(codes, minlength=len(names))
        for kind, weight in kinds.items():
            found, wider = (
                weighted_shares(weight, codes, len(names), lists=lists, level=level)
                for level in (0.95, sure)
            )
            # The errors' correlation depends on the level a little, and so does what is wider.
            above, under = (
                np.minimum(found.ratios.lower, wider.ratios.lower) > 1,
                np.maximum(found.ratios.upper, wider.ratios.upper) < 1,
            )
            surely = above | under
            for g, name in enumerate(names):
                yield GroupPlaces(
                    attribute,
                    name,
                    kind,
                    int(rows[g]),
                    float(found.rows.value[g]),
                    found.shares.at(g),
                    found.ratios.at(g),
                    float(found.below[g]),
                    bool(surely[g]),
                )


def _curve(score: Floats, attribute: str, groups: pd.Series, lists: Codes | None) -> TopCurve:
    codes, names = codes_of(groups)
    one = np.zeros(len(score), np.intp) if lists is None else lists
    longest = int(np.bincount(one).max())
    lengths = np.unique(np.round(np.geomspace(1, longest, _POINTS)))
    each = [
        weighted_shares(top_weights(score, one, length), codes, len(names), lists=lists).shares
        for length in lengths
    ]
    shares = Limits(*(np.stack(ends) for ends in zip(*each, strict=True)))
    of_rows = np.bincount(codes, minlength=len(names)) / len(codes)
    return TopCurve(attribute, names, lengths, shares, of_rows)


def first_places(top: float, lists: int) -> str:
    """Return which places are the first, in words."""
    each = " of each list" * (lists > 1)
    return f"first {100 * top:g} %{each}" if top < 1 else f"first {top:g}{each}"


def audit_ranking(options: Options, frame: pd.DataFrame) -> Audit:
    """Audit a ranking by scores."""
    assessment = assess_ranking(options, frame)
    open_ = not all(each.surely for each in assessment.places)
    return Audit(
        options,
        assessment.rows,
        0,
        findings_of(assessment.places, first_places(options.top, assessment.lists)),
        _basis(assessment),
        list(_sections(assessment)),
        _data(assessment),
        notes=assessment.notes,
        pictures=[
            Section("Who is first", [_figure(curve, assessment) for curve in assessment.curves])
        ],
        unseen=["Whether scores are right was not looked at, only who stands where."],
        todo=["Read what stays open, and rank more rows for what matters most."] * open_,
        figures=list(_figures(assessment)),
    )


def _figures(assessment: RankingAssessment) -> Iterator[dict[str, Any]]:
    """Yield the share of places of every group, and its ratio to the share of rows."""
    for places in assessment.places:
        for metric, ends in (("share", places.share), ("ratio", places.ratio)):
            yield {
                "metric": f"{places.kind}_{metric}",
                "attribute": places.attribute,
                "group": places.group,
                "value": ends[0],
                "lower": ends[1],
                "upper": ends[2],
                "n": places.rows,
            }


def findings_of(shares: Iterable[GroupPlaces], first: str) -> list[Finding]:
    """Return which groups get more or less of the places than their share of the rows.

    Parameters
    ----------
    first : which places are the first, in words.
    """
    return [
        Finding(
            SHARE,
            places.attribute,
            f"the {first}" if places.kind == TOP else "the exposure",
            LARGE if places.surely else OPEN,
            (places.group,),
            *places.ratio,
            values=(places.share[0], places.of_rows),
            bound=1.0,
            n=places.rows,
        )
        for places in shares
    ]


def _basis(assessment: RankingAssessment) -> list[str]:
    lists = assessment.lists
    return [
        f"{count(assessment.rows)} rows ranked by '{assessment.options.score}', the highest first"
        + (f", in {count(lists)} lists." if lists > 1 else "."),
        "Exposure: a place counts 1 / log2(1 + place), so that the first is seen most; rows of the "
        "same score share their places.",
        "Intervals say how far off it may be if other "
        + ("lists" if lists > 1 else "people")
        + " like these were ranked.",
    ]


def _sections(assessment: RankingAssessment) -> Iterator[Section]:
    first = first_places(assessment.options.top, assessment.lists)
    yield Section(f"Among the {first}", [_table(assessment, TOP)])
    yield Section("Exposure", [_table(assessment, EXPOSURE)])
    yield Section("Scores by group", [score_table(assessment.scores, "score")])


def _table(assessment: RankingAssessment, kind: str) -> Table:
    columns = [
        Column("of", left_out=1),
        Column("group"),
        Column("rows", "count", left_out=2),
        Column("of rows", "number"),
        Column("share", "estimate"),
        Column("ratio", "number", decimals=2),
        Column("95 % interval", "interval", decimals=2),
        Column("P(<0.8)", "probability"),
    ]
    mine = [each for each in assessment.places if each.kind == kind]
    rows = [
        [
            each.attribute,
            each.group,
            each.rows,
            each.of_rows,
            each.share,
            each.ratio[0],
            each.ratio[1:],
            each.below,
        ]
        for each in mine
    ]
    what = "exposure" if kind == EXPOSURE else "first places"
    return Table(
        columns,
        rows,
        caption=(
            f"of rows: the group's share of all rows; share: of the {what}; ratio: of the two, 1 "
            "where a group gets as much as its share; P(<0.8): how sure it is that this is under "
            "four fifths"
        ),
        rules=starts([each.attribute for each in mine]),
        most=MOST_ROWS,
    )


def _figure(curve: TopCurve, assessment: RankingAssessment) -> Figure:
    shown = range(min(len(curve.groups), MOST_LINES))
    lines = [
        group_line(
            curve.groups[g],
            g,
            np.log10(curve.lengths),
            Limits(*(end[:, g] for end in curve.shares)),
        )
        for g in shown
    ]
    ends = np.log10(curve.lengths[[0, -1]])
    whole = [
        Series("", ends, curve.of_rows[[g, g]], COLOURS[g % len(COLOURS)], marked=False)
        for g in shown
    ]
    title = "log10 of how many places are the first"
    mine = [each for each in assessment.scores if each.attribute == curve.attribute]
    panels = [
        Panel([*lines, *whole], title, "share of the first places", from_zero="y"),
        density_panel(mine, "score"),
    ]
    first, *more = chart(panels, key=lines)
    return Figure(
        f"who is first, by {curve.attribute}",
        svg=first,
        more=more,
        caption=f"{curve.attribute}: shares of the first places, however many these are, with 95 % "
        "intervals (shaded); level lines are the shares of all rows",
    )


def _data(assessment: RankingAssessment) -> Mapping[str, Any]:
    return {
        "lists": assessment.lists,
        "ranking": [asdict(each) for each in assessment.places],
        "scores": [asdict(each) for each in assessment.scores],
    }
