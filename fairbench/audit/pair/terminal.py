"""The comparison of two classifiers on the terminal, in 100 columns."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from fairbench.audit.conclusions import Conclusions
from fairbench.audit.options import Options
from fairbench.audit.pair.comparison import Compared
from fairbench.audit.pair.conclusions import measured, verdict_words
from fairbench.audit.terminal import opened_report, print_conclusions, table_of
from fairbench.audit.words import chance, interval, number, signed

_COLUMNS = (
    ("groups", False),
    ("gap in", False),
    ("first", True),
    ("second", True),
    ("less", True),
    ("95 % interval", True),
    ("P(<)", True),
    ("verdict", False),
)


def print_pair(options: Options, rows: Sequence[Compared], conclusions: Conclusions) -> None:
    """Print the comparison, no line of it longer than the audit's others."""
    console = opened_report(options.path.name, conclusions)
    title = (
        f"Raw sizes of gaps, first of {options.score}, second of {options.against}; the second less"
        " the first; P(<): it is smaller"
    )
    table = table_of(title, _COLUMNS)
    for row in rows:
        table.add_row(
            Text(row.attribute or "everyone"),
            measured(row),
            number(row.first),
            number(row.second),
            signed(row.difference),
            interval(row.lower, row.upper),
            chance(row.lesser),
            verdict_words(row),
        )
    console.print(table)
    print_conclusions(console, conclusions)
