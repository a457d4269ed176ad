"""The audit of a ranking: who is among the first, and who gets the exposure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import numpy as np
import pandas as pd

from fairbench.audits.question import Options
from fairbench.audits.report import Audit
from fairbench.core.arrays import Codes, Floats
from fairbench.core.errors import UserError
from fairbench.core.text import count
from fairbench.data.columns import ColumnRef, numbers_of
from fairbench.data.groups import codes_of, notes_on_groups, read_groups
from fairbench.evaluation.by_group import (
    EXPOSURE,
    TOP,
    GroupScores,
    in_long_form,
    score_distributions,
    shares_by_length,
    shares_of_places,
)
from fairbench.evaluation.findings import ERROR_RATE, LARGE, LEVEL, OPEN, SHARE, Finding
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


def audit_ranking(options: Options, frame: pd.DataFrame) -> Audit:
    """Audit the ranking of a table by its scores.

    Raises
    ------
    UserError : no scores, or a value that is none.
    """
    if not options.score:
        raise UserError("top= is of a ranking by scores: name their column by score=")
    file = options.path.name
    score = numbers_of(frame, ColumnRef(file, options.score))
    groups = read_groups(frame, file, options.group, options.reference)[0]
    singles = {name: groups[name] for name in options.group}
    lists = None
    in_lists = ""
    what = "people"
    if options.lists:
        lists = pd.factorize(frame[options.lists])[0].astype(np.intp)
        if lists.max() == 0:
            raise UserError(f"'{options.lists}' has one mark in all rows: leave out lists=")
        in_lists = f", in {count(lists.max() + 1)} lists"
        what = "lists"
    shares = shares_of_places(score, groups, lists, options.top, level=LEVEL, error_rate=ERROR_RATE)
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
            f"Intervals say how far off it may be if other {what} like these were ranked.",
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
        todo=(
            ["Read what stays open, and rank more rows for what matters most."]
            if not shares["surely"].all()
            else []
        ),
        figures=in_long_form(shares).to_dict("records"),
    )


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
    """Return the table of each group's share of the places, or of other things of one kind."""
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
    lengths, shares = shares_by_length(score, codes, len(names), lists)
    row_shares = np.bincount(codes) / len(codes)
    log_lengths = np.log10(lengths)
    lines = []
    level_lines = []
    for index, name in enumerate(names[:MOST_LINES]):
        lines.append(group_line(name, index, log_lengths, shares.take(index)))
        colour = COLOURS[index % len(COLOURS)]
        level_lines.append(
            Series("", log_lengths[[0, -1]], row_shares[[index, index]], colour, marked=False)
        )
    title = "log10 of how many places are the first"
    panels = [
        Panel([*lines, *level_lines], title, "share of the first places", from_zero="y"),
        density_panel([score for score in scores if score.attribute == attribute], "score"),
    ]
    drawing, *more = chart(panels, key=lines)
    return Figure(
        f"who is first, by {attribute}",
        svg=drawing,
        more=more,
        caption=f"{attribute}: shares of the first places, however many these are, with 95 % "
        "intervals (shaded); level lines are the shares of all rows",
    )
