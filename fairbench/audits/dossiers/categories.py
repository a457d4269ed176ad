"""Categories of an attribute as rules compare them: the rate of each over the highest of all.

Beside the ratio of a rule stands a stable one, with an interval, which is ours: over the highest
rate of the categories that are large enough that one person more or less does not decide it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from fairbench.core.arrays import Mask
from fairbench.core.errors import UserError
from fairbench.core.formats import count, number
from fairbench.evaluation.impact_ratios import (
    FEWEST_ROWS,
    SMALLEST_SHARE,
    ImpactRatio,
    impact_ratios_of,
)
from fairbench.reporting.charts import forest
from fairbench.reporting.document.model import Column, Figure, Section, Table
from fairbench.reporting.group_tables import table_of

NAN = float("nan")


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
    stable: ImpactRatio
    reason: str = ""

    @property
    def attribute(self) -> str:
        """The attribute that it is a category of."""
        return self.stable.attribute

    @property
    def group(self) -> str:
        """The name of the category."""
        return self.stable.group

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
        ours = self.stable
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
            "ours": {
                "rate_lower": ours.rate_lower,
                "rate_upper": ours.rate_upper,
                "reference": ours.reference,
                "given": ours.given,
                "ratio": ours.ratio,
                "lower": ours.lower,
                "upper": ours.upper,
                "below": ours.below,
            },
        }


def categories_of(
    attribute: str,
    groups: pd.Series,
    selected: Mask,
    people: int,
    *,
    reference: str = "",
    nobody: str = "nobody was selected",
) -> list[Category]:
    """Return the categories of one attribute, the largest first as the labels have them.

    Parameters
    ----------
    groups, selected : (n,) labels of the people whose category is known, and who is selected.
    people : how many people there are in all.
    reference : the category that our ratios compare with.
    nobody : why there is no ratio, where the highest rate is 0.

    Raises
    ------
    UserError : there are fewer than two.
    """
    stable = impact_ratios_of(attribute, groups, selected, reference=reference)
    if not stable:
        raise UserError(
            f"{attribute}: fewer than two categories are left to compare: name a column that has "
            "more, or fewer answers by unknown="
        )
    counts = pd.Series(selected).groupby(groups.astype(str).to_numpy()).sum()
    return with_rules_ratio(
        stable, [int(counts[ours.group]) for ours in stable], people, nobody=nobody
    )


def with_rules_ratio(
    stable: Sequence[ImpactRatio],
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
    people, nobody : the same parameters as of :func:`categories_of`.
    """
    rates = {
        ours.group: n_selected / ours.rows
        for ours, n_selected in zip(stable, selected, strict=True)
    }
    highest = max(rates.values())
    most_selected = tuple(group for group, rate in rates.items() if rate == highest)
    return [
        Category(
            rows=ours.rows,
            selected=n_selected,
            share=ours.rows / people,
            ratio=rates[ours.group] / highest if highest > 0 else NAN,
            most_selected=most_selected,
            stable=ours,
            reason="" if highest > 0 else f"{nobody}, and 0 over 0 is no number",
        )
        for ours, n_selected in zip(stable, selected, strict=True)
    ]


def smallest_ratio(categories: Sequence[Category], rate: str) -> str:
    """Return in a sentence the smallest ratio of an attribute, and ours of the same category.

    Parameters
    ----------
    rate : what the rate is called, such as ``selection rate``.
    """
    first = categories[0]
    if first.reason:
        return f"By {first.attribute}, no category has an impact ratio: {first.reason}."
    lowest = min(categories, key=lambda category: category.ratio)
    most = tied_groups_text(first.most_selected)
    if lowest.ratio == 1:
        return f"By {first.attribute}, every {rate} is {number(lowest.rate)}: all ratios are 1."
    top = next(category for category in categories if category.is_most_selected)
    ours = lowest.stable
    interval = f"{number(ours.lower, 2)} to {number(ours.upper, 2)}"
    ours_text = f"our 95 % interval is {interval}"
    if ours.reference not in first.most_selected:
        ours_text = (
            f"ours, over {ours.reference}, is {number(ours.ratio, 2)} (95 % interval {interval})"
        )
    return (
        f"By {first.attribute}, the smallest impact ratio is {number(lowest.ratio, 2)}: "
        f"{lowest.group} ({_selected_of_all(lowest)}) over {most} ({_selected_of_all(top)}); "
        f"{ours_text}."
    )


def tied_groups_text(groups: Sequence[str], most: int = 3) -> str:
    """Return groups that tie as a sentence lists them; of many, the first, and how many more."""
    rest = len(groups) - most
    names = [*groups[:most], f"{rest} more"] if rest > 1 else groups
    return " and ".join(names)


def _selected_of_all(category: Category) -> str:
    """Return how many of a category's people are selected, as "3 of 10"."""
    return f"{count(category.selected)} of {count(category.rows)}"


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
    references = list(dict.fromkeys(category.stable.reference for category in categories))
    figure = Figure(
        f"impact ratios by {first.attribute}",
        svg=forest(
            "impact ratio, ours",
            [[(c.group, c.stable.ratio, c.stable.lower, c.stable.upper) for c in categories]],
            span=(0.0, _end(categories)),
            mark=mark,
        ),
        caption=f"Our ratios, to {references[0]}, with 95 % intervals"
        f"{'' if np.isnan(mark) else '; dashed: four fifths'}.",
    )
    return Section(f"By {first.attribute}", [_table(categories, rate, by, mark, more), figure])


def _end(categories: Sequence[Category]) -> float:
    """Return the end of a scale that holds all ratios, most of which are at most 1."""
    highest = max((c.stable.upper for c in categories if c.stable.upper < np.inf), default=1.0)
    return float(max(1.2, np.ceil(2 * highest) / 2))


def _table(categories: Sequence[Category], rate: str, by: str, mark: float, more: str) -> Table:
    """Return the table of categories with the rule's ratio, and ours with its interval."""
    first = categories[0]
    ours = first.stable
    most = tied_groups_text(first.most_selected)
    reason = f"the highest of those with {FEWEST_ROWS} people and 2 % or more"
    if ours.given:
        reason = "as reference= says"
    caption = (
        f"impact ratio: by {by}, the {rate} of a category over that of the category where it is "
        f"highest ({first.reason or most}); our ratio: over {ours.reference}, {reason}; its "
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
                lambda c: (c.stable.rate_lower, c.stable.rate_upper),
                Column("95 % interval", "interval", left_out=2),
            ),
            ("ratio", Column("impact ratio", "number", decimals=2)),
            (lambda c: c.stable.ratio, Column("our ratio", "number", decimals=2, left_out=1)),
            (
                lambda c: (c.stable.lower, c.stable.upper),
                Column("its 95 % interval", "interval", decimals=2, left_out=1),
            ),
            *(
                [(lambda c: c.stable.below, Column("P(<0.8)", "probability", left_out=1))]
                if not np.isnan(mark)
                else []
            ),
        ],
        by="",
        caption=caption,
    )
