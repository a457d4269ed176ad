"""The audit of a ranking: who is among the first, and who gets the exposure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.audits.findings import LARGE, LEVEL, OPEN, SHARE, ErrorBudget, Finding
from fairbench.audits.question import Options
from fairbench.audits.report import Audit
from fairbench.core.errors import UserError
from fairbench.core.formats import count
from fairbench.data.groups import codes_of, notes_on_groups, read_groups
from fairbench.data.tabular import numbers
from fairbench.evaluation.score_distributions import GroupScores, score_distributions
from fairbench.inference.exposure import exposure_weights, top_weights, weighted_shares
from fairbench.inference.rates import Limits
from fairbench.reporting.charts import COLOURS, Panel, Series, chart
from fairbench.reporting.document.model import Column, Figure, Section, Table
from fairbench.reporting.group_tables import (
    MOST_LINES,
    MOST_ROWS,
    density_panel,
    group_line,
    score_table,
    table_of,
)

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]
TOP, EXPOSURE = "top", "exposure"
_POINTS = 40  # lengths of the top in a curve


def audit_ranking(options: Options, frame: pd.DataFrame) -> Audit:
    """Audit the ranking of a table by its scores.

    Raises
    ------
    UserError : no scores, or a value that is none.
    """
    if not options.score:
        raise UserError("top= is of a ranking by scores: name their column by score=")
    file = options.path.name
    score = numbers(frame, options.score, file).to_numpy()
    groups = read_groups(frame, file, options.group, options.reference)[0]
    singles = {name: groups[name] for name in options.group}
    lists, in_lists, who = None, "", "people"
    if options.lists:
        lists = pd.factorize(frame[options.lists])[0].astype(np.intp)
        if lists.max() == 0:
            raise UserError(f"'{options.lists}' has one mark in all rows: leave out lists=")
        in_lists, who = f", in {count(lists.max() + 1)} lists", "lists"
    shares = shares_of_places(score, groups, lists, options.top)
    scores = score_distributions(score, singles)
    first = first_places(options.top, of_each=lists is not None)
    curves = [_figure(score, name, labels, lists, scores) for name, labels in singles.items()]
    return Audit(
        options,
        len(score),
        0,
        findings_of(shares, first),
        [
            f"{count(len(score))} rows ranked by '{options.score}', the highest first{in_lists}.",
            "Exposure: a place counts 1 / log2(1 + place), so that the first is seen most; rows of "
            "the same score share their places.",
            f"Intervals say how far off it may be if other {who} like these were ranked.",
        ],
        [
            Section(f"Among the {first}", [_table(shares, TOP, "first places")]),
            Section("Exposure", [_table(shares, EXPOSURE, "exposure")]),
            Section("Scores by group", [score_table(scores, "score")]),
        ],
        {
            "lists": 1 if lists is None else int(lists.max()) + 1,
            "ranking": shares.to_dict("records"),
            "scores": [asdict(distribution) for distribution in scores],
        },
        notes=notes_on_groups(frame, options.group),
        pictures=[Section("Who is first", curves)],
        unseen=["Whether scores are right was not looked at, only who stands where."],
        todo=["Read what stays open, and rank more rows for what matters most."]
        * (not shares["surely"].all()),
        figures=[
            {
                "metric": f"{row['kind']}_{quantity}",
                "attribute": row["attribute"],
                "group": row["group"],
                "value": row[quantity],
                "lower": row[f"{quantity}_lower"],
                "upper": row[f"{quantity}_upper"],
                "n": row["rows"],
            }
            for row in shares.to_dict("records")
            for quantity in ("share", "ratio")
        ],
    )


def shares_of_places(
    score: Floats, groups: Mapping[str, pd.Series], lists: Codes | None, top: float
) -> pd.DataFrame:
    """Return what every group of every attribute gets of the places of a ranking.

    Parameters
    ----------
    score : (n,) the highest first. lists : (n,) which list a row is in, where there are several.
    top : how many places are the first, or which share of them.

    Returns
    -------
    A row for each attribute, kind and group. kind : `TOP`, of the first places, or `EXPOSURE`, of
    all weighted by how much they are seen. of_rows : the group's share of all rows. share : of the
    places. ratio : of the two, 1 where the group gets as much as it has rows. below : how sure it
    is that this is under four fifths. surely : whether all such statements of an audit together say
    that it is not 1.
    """
    one = np.zeros(len(score), np.intp) if lists is None else lists
    kinds = {TOP: top_weights(score, one, top), EXPOSURE: exposure_weights(score, one)}
    questions = len(kinds) * sum(len(labels.cat.categories) for labels in groups.values())
    parts = []
    for attribute, labels in groups.items():
        codes, names = codes_of(labels)
        for kind, weight in kinds.items():
            shown, wider = (
                weighted_shares(weight, codes, len(names), lists=lists, level=level)
                for level in (LEVEL, 1 - ErrorBudget(questions).risk)
            )
            # The errors' correlation depends on the level a little, and so does what is wider.
            lower = np.minimum(shown.ratios.lower, wider.ratios.lower)
            upper = np.maximum(shown.ratios.upper, wider.ratios.upper)
            parts.append(
                pd.DataFrame(
                    {
                        "attribute": attribute,
                        "group": names,
                        "kind": kind,
                        "rows": np.bincount(codes),
                        "of_rows": shown.rows.value,
                        **_ends("share", shown.shares),
                        **_ends("ratio", shown.ratios),
                        "below": shown.below,
                        "surely": (lower > 1) | (upper < 1),
                    }
                )
            )
    return pd.concat(parts, ignore_index=True)


def _ends(name: str, limits: Limits) -> dict[str, Floats]:
    return dict(zip((name, f"{name}_lower", f"{name}_upper"), limits, strict=True))


def first_places(top: float, *, of_each: bool) -> str:
    """Return which places are the first, of each list where there are several, in words."""
    return f"first {f'{100 * top:g} %' if top < 1 else f'{top:g}'}{' of each list' * of_each}"


def findings_of(shares: pd.DataFrame, first: str) -> list[Finding]:
    """Return which groups get more or less of the places than their share of the rows.

    Parameters
    ----------
    first : which places are the first, in words.
    """
    return [
        Finding(
            SHARE,
            row.attribute,
            f"the {first}" if row.kind == TOP else "the exposure",
            LARGE if row.surely else OPEN,
            (row.group,),
            row.ratio,
            row.ratio_lower,
            row.ratio_upper,
            values=(row.share, row.of_rows),
            bound=1.0,
            n=row.rows,
        )
        for row in shares.itertuples()
    ]


def _table(shares: pd.DataFrame, kind: str, places: str) -> Table:
    return table_of(
        shares[shares["kind"] == kind].to_dict("records"),
        [
            ("attribute", Column("of", left_out=1)),
            ("group", Column("group")),
            ("rows", Column("rows", "count", left_out=2)),
            ("of_rows", Column("of rows", "number")),
            (("share", "share_lower", "share_upper"), Column("share", "estimate")),
            ("ratio", Column("ratio", "number", decimals=2)),
            (("ratio_lower", "ratio_upper"), Column("95 % interval", "interval", decimals=2)),
            ("below", Column("P(<0.8)", "probability")),
        ],
        caption=(
            f"of rows: the group's share of all rows; share: of the {places}; ratio: of the two, 1 "
            "where a group gets as much as its share; P(<0.8): how sure it is that this is under "
            "four fifths"
        ),
        most=MOST_ROWS,
    )


def _figure(
    score: Floats,
    attribute: str,
    labels: pd.Series,
    lists: Codes | None,
    scores: Sequence[GroupScores],
) -> Figure:
    """Return the groups' shares of the first places, at so many lengths of the top."""
    codes, names = codes_of(labels)
    one = np.zeros(len(score), np.intp) if lists is None else lists
    lengths = np.unique(np.round(np.geomspace(1, np.bincount(one).max(), _POINTS)))
    tops = [top_weights(score, one, length) for length in lengths]
    shares = [weighted_shares(top, codes, len(names), lists=lists).shares for top in tops]
    of_rows, x = np.bincount(codes) / len(codes), np.log10(lengths)
    lines, whole = [], []
    for g, name in enumerate(names[:MOST_LINES]):
        limits = Limits(*np.array([share.at(g) for share in shares]).T)
        lines.append(group_line(name, g, x, limits))
        colour = COLOURS[g % len(COLOURS)]
        whole.append(Series("", x[[0, -1]], of_rows[[g, g]], colour, marked=False))
    title = "log10 of how many places are the first"
    panels = [
        Panel([*lines, *whole], title, "share of the first places", from_zero="y"),
        density_panel([each for each in scores if each.attribute == attribute], "score"),
    ]
    drawing, *more = chart(panels, key=lines)
    return Figure(
        f"who is first, by {attribute}",
        svg=drawing,
        more=more,
        caption=f"{attribute}: shares of the first places, however many these are, with 95 % "
        "intervals (shaded); level lines are the shares of all rows",
    )
