"""The audit of a ranking: who is among the first, and who gets the exposure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.audits.columns import Place, codes_of
from fairbench.audits.conclusions import Conclusions
from fairbench.audits.gaps import CERTAIN
from fairbench.audits.question import Options
from fairbench.audits.score_distributions import GroupScores, score_distributions
from fairbench.audits.table import notes_on_groups, read_groups
from fairbench.core.errors import UserError
from fairbench.core.formats import count, interval, number
from fairbench.data.tabular import numbers
from fairbench.inference.exposure import exposure_weights, top_weights, weighted_shares
from fairbench.inference.rates import Limits

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
    UserError : no scores, a value that is none, or an option that is not of rankings.
    """
    for name in ("against", "selected", "proxy", "cost", "weight", "cluster", "constraint"):
        if getattr(options, name):
            raise UserError(f"{name}= is not of rankings: leave out either it or top=")
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
        list(_places(score, groups, lists, options.top)),
        [_curve(score, name, each, lists) for name, each in singles.items()],
        score_distributions(score, singles),
        notes_on_groups(frame, options),
    )


def _places(
    score: Floats, groups: Mapping[str, pd.Series], lists: Codes | None, top: float
) -> Iterator[GroupPlaces]:
    one = np.zeros(len(score), np.intp) if lists is None else lists
    kinds = {TOP: top_weights(score, one, top), EXPOSURE: exposure_weights(score, one)}
    questions = len(kinds) * sum(len(each.cat.categories) for each in groups.values())
    sure = 1 - (1 - CERTAIN) / questions
    for attribute, each in groups.items():
        codes, names = codes_of(each)
        rows = np.bincount(codes, minlength=len(names))
        for kind, weight in kinds.items():
            found, wider = (
                weighted_shares(weight, codes, len(names), lists=lists, level=level)
                for level in (0.95, sure)
            )
            surely = (wider.ratios.lower > 1) | (wider.ratios.upper < 1)
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


def conclude_ranking(assessment: RankingAssessment) -> Conclusions:
    """Return what follows, and what does not, in sentences."""
    first = first_places(assessment.options.top, assessment.lists)
    notes = [
        *assessment.notes,
        "What can be concluded is said so rarely that in at most one audit of twenty any of it is "
        "wrong.",
    ]
    can = [_settled(each, first) for each in assessment.places if each.surely]
    return Conclusions(
        "", _basis(assessment), can, list(_not_settled(assessment.places, first)), notes
    )


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


def _settled(each: GroupPlaces, first: str) -> str:
    """Return which way a group's places surely differ from its share of the rows."""
    what = f"the {first}" if each.kind == TOP else "the exposure"
    side = "less" if each.ratio[0] < 1 else "more"
    return (
        f"{each.attribute}: {each.group} gets {side} than its share "
        f"({number(each.share[0])} of {what} at {number(each.of_rows)} of the rows: "
        f"{number(each.ratio[0], 2)} times as much, {interval(*each.ratio[1:], 2)})."
    )


def _not_settled(places: Sequence[GroupPlaces], first: str) -> Iterator[str]:
    """Yield of which groups of an attribute it is open whether they get their share."""
    open_: dict[tuple[str, str], list[str]] = {}
    for each in places:
        if not each.surely:
            open_.setdefault((each.attribute, each.kind), []).append(each.group)
    for (attribute, kind), names in open_.items():
        what = f"the {first}" if kind == TOP else "exposure"
        yield (
            f"{attribute}: open whether {', '.join(names)} get more or less of {what} than "
            "their share of the rows."
        )
