"""Categories of people as rules compare them: the rate of each over the highest of all.

Beside the ratio of a rule stands a stable one, with an interval, which is ours: over the highest
rate of the categories that are large enough that one person more or less does not decide it. Whose
category is not known (:func:`says_nothing`) is counted, and compared with nobody: who declines to
state a race is no race.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairbench.evaluation.by_group import FEWEST_ROWS, SMALLEST_SHARE, Row
from fairbench.reporting.charts import forest
from fairbench.reporting.document.model import Column, Figure, Section, Table
from fairbench.reporting.group_tables import table_of

NAN = float("nan")
_RATIO = ("ratio", "lower", "upper")
# What the JSON has of our ratio.
_OURS = ("rate_lower", "rate_upper", "reference", "given", "ratio", "lower", "upper", "below")

# Matched with a whole label in lower case, whose signs other than letters are blanks: "Decline To
# Self-Identify" is "decline to self identify", and "N/A" is "n a". A word that was read is never
# read in another way (*+ and ?> keep it), as some labels could be read in millions of ways.
_ASKED = r"(race( or| and)? ethnicity|race|ethnicity|sex|gender|identity|information|info|question)"
_STATES = (
    r"(unknown|unspecified|undisclosed|undeclared|undetermined|unidentified|unreported|unanswered|"
    r"unavailable|blank|missing|withheld|null|nan|na|n a|nil|(i )?(don t|do not) know|"
    r"not (known|specified|stated|disclosed|declared|identified|provided|reported|recorded|given|"
    r"available|answered|applicable|collected|asked|obtained|indicated|self identified)|"
    r"none( given| specified| provided)?|"
    r"no (answer|response|data|information|record|selection)( given| provided)?|"
    r"(did|does) not (answer|respond|state|specify|disclose|self identify))"
)
_DECLINES = (
    r"(i )?(d |have |would |do )?(rather not|"
    r"(prefer(s|red)?|choose(s)?|chose(n)?|elect(s|ed)?|opt(s|ed)?|wish(es)?|want(s)?) not|"
    r"((do|does|did) not|don t|doesn t|didn t) (wish|want|care)|"
    r"(decline|refuse)(s|d)?)( to)?"
    r"( (say|state|answer|disclose|identify|respond|specify|share|provide|report|declare|indicate|"
    r"tell|reveal|self (id|identify|disclose|report)))?"
    rf"( (this|the|that|my|your|his|her|their|any|at this time|{_ASKED})\b)*+"
)
_NOTHING = rf"(?>({_ASKED} |(applicant|candidate|employee|person) )?({_STATES}|{_DECLINES})\b)"
_SAYS_NOTHING = re.compile(rf"({_NOTHING}( (or )?{_NOTHING})*+)?")


def says_nothing(label: str) -> bool:
    """Return whether an answer says that the category is not known.

    Examples
    --------
    >>> [says_nothing(label) for label in ("Decline To Self-Identify", "N/A", "Other")]
    [True, True, False]
    """
    return _SAYS_NOTHING.fullmatch(plain_answer(label)) is not None


def plain_answer(label: str) -> str:
    """Return an answer in lower case, with blanks for all signs that are no letters or digits."""
    return " ".join(re.findall(r"[^\W_]+", label.casefold()))


@dataclass(frozen=True)
class Category:
    """How often the people of a category are selected, against the category most selected.

    Attributes
    ----------
    rows : how many people are in the category.
    selected : how many of them are selected; not a whole number where only a rate is known.
    share : the category's share of all people, those of unknown category included.
    ratio : its rate over the highest rate; NaN if that is 0.
    reason : why the ratio is NaN; empty where it is a number.
    most_selected : the categories of the highest rate, several where they tie.
    stable : our ratio and its interval.
    """

    rows: int
    selected: float
    share: float
    ratio: float
    most_selected: Sequence[str]
    stable: Row
    reason: str = ""

    @property
    def attribute(self) -> str:
        """The attribute that it is a category of."""
        return str(self.stable["attribute"])

    @property
    def group(self) -> str:
        """The name of the category."""
        return str(self.stable["group"])

    @property
    def rate(self) -> float:
        """The share of its people who are selected."""
        return self.selected / self.rows

    @property
    def is_small(self) -> bool:
        """Whether it is under 2 % of all people."""
        return self.share < SMALLEST_SHARE

    @property
    def is_most_selected(self) -> bool:
        """Whether its rate is the highest."""
        return self.group in self.most_selected

    def plain(self) -> dict[str, Any]:
        """Return the category in plain values, for the JSON."""
        return {
            "attribute": self.attribute,
            "group": self.group,
            "rows": self.rows,
            "selected": self.selected,
            "share": self.share,
            "rate": self.rate,
            "ratio": self.ratio,
            "most_selected": list(self.most_selected),
            "reason": self.reason,
            "ours": {name: self.stable[name] for name in _OURS},
        }


def with_rules_ratio(
    stable: Sequence[Row],
    selected: Sequence[float],
    people: int,
    *,
    nobody: str = "nobody was selected",
) -> list[Category]:
    """Return the categories of one attribute, of which our ratios are known.

    Parameters
    ----------
    stable : our ratio of each category.
    selected : how many people of each are selected; not whole where only the rate is known.
    people : how many people there are in all.
    nobody : why there is no ratio, where the highest rate is 0.
    """
    rates = {
        ours["group"]: n_selected / ours["rows"]
        for ours, n_selected in zip(stable, selected, strict=True)
    }
    highest = max(rates.values())
    most_selected = tuple(group for group, rate in rates.items() if rate == highest)
    return [
        Category(
            rows=ours["rows"],
            selected=n_selected,
            share=ours["rows"] / people,
            ratio=rates[ours["group"]] / highest if highest > 0 else NAN,
            most_selected=most_selected,
            stable=ours,
            reason="" if highest > 0 else f"{nobody}, and 0 over 0 is no number",
        )
        for ours, n_selected in zip(stable, selected, strict=True)
    ]


def tied_groups_text(groups: Sequence[str], most: int = 3) -> str:
    """Return groups that tie as a sentence lists them; of many, the first, and how many more."""
    rest = len(groups) - most
    names = [*groups[:most], f"{rest} more"] if rest > 1 else groups
    return " and ".join(names)


def section_of(
    categories: Sequence[Category], rate: str, by: str, *, mark: float = NAN, more: str = ""
) -> Section:
    """Return the table of an attribute's categories, and a figure of our ratios.

    Parameters
    ----------
    rate : what the rate is called.
    by : the rule that defines the ratio.
    mark : the bound of the rule, drawn as a dashed line; NaN if it has none, and then the
        probability that a ratio is under it is left out too.
    more : what else the caption says.
    """
    first = categories[0]
    references = list(dict.fromkeys(category.stable["reference"] for category in categories))
    figure = Figure(
        f"impact ratios by {first.attribute}",
        svg=forest(
            "impact ratio, ours",
            [[(c.group, *(c.stable[end] for end in _RATIO)) for c in categories]],
            span=(0.0, _end(categories)),
            mark=mark,
        ),
        caption=f"Our ratios, to {references[0]}, with 95 % intervals"
        f"{'' if np.isnan(mark) else '; dashed: four fifths'}.",
    )
    return Section(f"By {first.attribute}", [_table(categories, rate, by, mark, more), figure])


def _end(categories: Sequence[Category]) -> float:
    """Return the end of a scale that holds all ratios, most of which are at most 1."""
    uppers = (category.stable["upper"] for category in categories)
    highest = max((upper for upper in uppers if upper < np.inf), default=1.0)
    return float(max(1.2, np.ceil(2 * highest) / 2))


def _table(categories: Sequence[Category], rate: str, by: str, mark: float, more: str) -> Table:
    """Return the table of categories with the rule's ratio, and ours with its interval."""
    first = categories[0]
    ours = first.stable
    most = tied_groups_text(first.most_selected)
    reason = f"the highest of those with {FEWEST_ROWS} people and 2 % or more"
    if ours["given"]:
        reason = "as reference= says"
    caption = (
        f"impact ratio: by {by}, the {rate} of a category over that of the category where it is "
        f"highest ({first.reason or most}); our ratio: over {ours['reference']}, {reason}; its "
        f"interval allows for another truly being the highest{more}"
    )
    return table_of(
        categories,
        [
            ("group", Column(first.attribute)),
            ("rows", Column("people", "count")),
            ("selected", Column("selected" if rate == "selection rate" else "above", "count")),
            ("rate", Column(rate, "number")),
            (
                lambda c: (c.stable["rate_lower"], c.stable["rate_upper"]),
                Column("95 % interval", "interval", left_out=2),
            ),
            ("ratio", Column("impact ratio", "number", decimals=2)),
            (lambda c: c.stable["ratio"], Column("our ratio", "number", decimals=2, left_out=1)),
            (
                lambda c: (c.stable["lower"], c.stable["upper"]),
                Column("its 95 % interval", "interval", decimals=2, left_out=1),
            ),
            *(
                [(lambda c: c.stable["below"], Column("P(<0.8)", "probability", left_out=1))]
                if not np.isnan(mark)
                else []
            ),
        ],
        by="",
        caption=caption,
    )
