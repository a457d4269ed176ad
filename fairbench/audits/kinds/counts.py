"""The audit of counts: a published table with one row per category, as bias audits are published.

Of each category the table says how many people there were, and how many were selected, or which
share. Where rows name several attributes, a row with a blank or "Total" in one of them is of all
its levels. Rates that were rounded are taken as anything that rounds to them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import compress
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.audits.assessment import attributes_with_small_groups, impact_findings
from fairbench.audits.categories import Category, says_nothing, section_of, with_rules_ratio
from fairbench.audits.question import PERCENT, Options
from fairbench.audits.report import OF_POPULATION, Audit
from fairbench.core.errors import UserError
from fairbench.core.text import count, listed, quoted
from fairbench.data.columns import spelled
from fairbench.data.groups import CROSSED, references_of
from fairbench.evaluation.by_group import (
    FEWEST_ROWS,
    Row,
    impact_ratios_at,
    is_given_reference,
    may_be_compared_with,
)
from fairbench.evaluation.findings import LEVEL, OPEN, ErrorBudget, Finding, one_sided_level
from fairbench.inference.gaps import FOUR_FIFTHS
from fairbench.inference.rates import Limits, rate_limits
from fairbench.reporting.document.model import Column, Section
from fairbench.reporting.group_tables import MOST_ROWS, OF_GROUP, table_of

SELECTED = "selected"
_RULES = "Local Law 144 and the Uniform Guidelines"
# What stands in a column whose levels are not told apart in a row.
_ALL = frozenset({"", "all", "total", "totals", "overall", "any", "both", "everyone", "-", "*"})
_WHOLE = re.compile(r"(\d{1,15}|[1-9]\d{0,2}([,' \u00a0\u202f\u2019]\d{3}){1,4})(\.0+)?")
_SHARE = re.compile(r"(\d*[.,]\d+|\d+)\s*(%?)")
_SURE = (
    "All that is known are numbers: intervals take the people counted as a sample of all those "
    "that the tool may be used on, each decided upon by themself."
)
_UNSEEN = (
    "Whether the counts are right, and whether a person is counted more than once, was not looked "
    "at; nor was why groups differ, or whether decisions are right."
)
_TODO = "Counts of more people would settle what is open: ask for those of a longer time."


@dataclass(frozen=True)
class CountedCategory:
    """What a table says of a category.

    Attributes
    ----------
    people : how many people are in the category.
    selected : how many of them were selected; not a whole number where only the rate is known.
    fewest, most : the limits of `selected`, equal to it where the number itself is known.
    row : the row of the file, from 1; 0 for a sum of several rows.
    """

    attribute: str
    group: str
    people: int
    selected: float
    fewest: float
    most: float
    row: int = 0


@dataclass(frozen=True)
class CountTable:
    """The categories of each attribute, and what was left out of them.

    Attributes
    ----------
    unknown : attribute -> how many people have an unknown category.
    notes : what a reader has to know of the rows.
    """

    categories: Mapping[str, Sequence[CountedCategory]]
    unknown: Mapping[str, int]
    notes: Sequence[str] = ()

    @property
    def plain(self) -> list[dict[str, Any]]:
        """The categories in plain values, for the JSON."""
        return [
            asdict(category) for categories in self.categories.values() for category in categories
        ]

    @property
    def people(self) -> dict[str, int]:
        """The number of people in each attribute's table, including those of unknown category."""
        return {
            name: sum(category.people for category in categories) + self.unknown.get(name, 0)
            for name, categories in self.categories.items()
        }


@dataclass
class _Reader:
    """Reads the rows of a table, one after the other.

    Attributes
    ----------
    decimals : how many decimals the most precise rate of the table has.
    rows : attribute -> group -> its category.
    unknown : attribute -> how many people have an unknown category.
    totals : the numbers of the rows that are totals.
    empty : names of the categories without people.
    impossible_rates : the rows whose rate no whole number of people has.
    """

    options: Options
    frame: pd.DataFrame
    decimals: int = 0
    rows: dict[str, dict[str, CountedCategory]] = field(default_factory=dict)
    unknown: dict[str, int] = field(default_factory=dict)
    totals: list[int] = field(default_factory=list)
    empty: list[str] = field(default_factory=list)
    impossible_rates: list[str] = field(default_factory=list)

    def fault(self, column: str, row: int, sentence: str) -> UserError:
        return UserError(f"{self.options.path.name}: column '{column}', row {row}: {sentence}")

    def read(self) -> None:
        """Read every row into a category of its attribute."""
        names = self.options.group
        if self.options.rates:
            text = self.frame[self.options.rates].astype(str)
            self.decimals = max((_decimals(value) for value in text), default=0)
        columns = [self.frame[name].astype(str) for name in names]
        for row, levels in enumerate(zip(*columns, strict=True)):
            level_of = {
                name: level.strip()
                for name, level in zip(names, levels, strict=True)
                if level.strip().casefold() not in _ALL
            }
            if level_of:
                self._add(row, CROSSED.join(level_of), list(level_of.values()))
            elif len(names) == 1 and not levels[0].strip():
                raise self.fault(
                    names[0], row + 1, "there is no category: name it, or delete the row"
                )
            else:
                self.totals.append(row + 1)

    def _add(self, row: int, attribute: str, levels: Sequence[str]) -> None:
        """Add a row to the categories of its attribute, or of a combination of attributes."""
        people = self._people(row)
        if any(map(says_nothing, levels)):
            self.unknown[attribute] = self.unknown.get(attribute, 0) + people
            return
        group = CROSSED.join(levels)
        categories = self.rows.setdefault(attribute, {})
        if group in categories:
            raise self.fault(
                self.options.group[0],
                row + 1,
                f"{quoted(group, 40)} has row {categories[group].row} as well: keep one row a "
                "category",
            )
        of_whom = str(self.frame[self.options.rates or self.options.selected].iloc[row])
        if people or spelled(of_whom):  # of nobody there is no rate, and it may be blank
            selected, fewest, most = self._selected(row, people)
        if people:
            categories[group] = CountedCategory(
                attribute, group, people, selected, fewest, most, row=row + 1
            )
        else:
            self.empty.append(f"{attribute}: {group}")

    def _people(self, row: int) -> int:
        column = self.options.total
        text = str(self.frame[column].iloc[row]).strip()
        return self._whole(column, row, text)

    def _whole(self, column: str, row: int, text: str) -> int:
        """Return a number of people; refuse a text that is none."""
        if not text:
            raise self.fault(
                column, row + 1, "it is blank: fill in the number of people, or delete the row"
            )
        if not _WHOLE.fullmatch(text):
            share = _SHARE.fullmatch(text)
            if share and (share[2] or float(share[1].replace(",", ".")) <= 1):
                raise self.fault(
                    column, row + 1,
                    f"{quoted(text)} is a share, not a number of people: name a column of shares "
                    "by rates= instead of selected=",
                )  # fmt: skip
            if share:
                raise self.fault(column, row + 1, f"{quoted(text)} is no whole number of people")
            below = "; it is below 0" if re.fullmatch(r"[-\u2212]\s*\d.*", text) else ""
            raise self.fault(column, row + 1, f"{quoted(text)} is no number of people{below}")
        return int(re.sub(r"\D", "", re.sub(r"\.0+$", "", text)))

    def _selected(self, row: int, people: int) -> tuple[float, float, float]:
        """Return how many people were selected, and how many at least and at most."""
        if self.options.rates:
            return self._selected_by_rate(row, people)
        column = self.options.selected
        selected = self._whole(column, row, str(self.frame[column].iloc[row]).strip())
        if selected > people:
            raise self.fault(
                column, row + 1, f"{count(selected)} were selected of {count(people)} people"
            )
        return selected, selected, selected

    def _selected_by_rate(self, row: int, people: int) -> tuple[float, float, float]:
        """Return how many people a rounded rate stands for, and how many at least and at most.

        Where no whole number of people has the rate, these need not be whole either.
        """
        column = self.options.rates
        text = str(self.frame[column].iloc[row]).strip()
        share = _SHARE.fullmatch(text)
        if not share:
            fault = "it is blank: fill in the rate" if not text else f"{quoted(text)} is no rate"
            raise self.fault(column, row + 1, fault)
        percent = bool(share[2]) or self.options.scale == PERCENT
        scale = 100.0 if percent else 1.0
        rate = float(share[1].replace(",", ".")) / scale
        if rate > 1:
            hint = "" if percent else "; of percents give scale=percent"
            raise self.fault(column, row + 1, f"{quoted(text)} is no rate from 0 to 1{hint}")
        rounding = 0.5 * 10.0**-self.decimals / scale + 1e-12  # the most that rounding changes
        fewest = max(float(np.ceil((rate - rounding) * people)), 0.0)
        most = min(float(np.floor((rate + rounding) * people)), float(people))
        if fewest > most:
            self.impossible_rates.append(f"row {row + 1} ({text} of {count(people)})")
            fewest = max((rate - rounding) * people, 0.0)
            most = min((rate + rounding) * people, float(people))
            return rate * people, fewest, most
        return min(max(rate * people, fewest), most), fewest, most


def _decimals(text: str) -> int:
    """Return how many decimals a number is written with."""
    digits = text.strip().rstrip("% ").replace(",", ".").partition(".")[2]
    return len(digits) if digits.isdigit() else 0


def read_counts(options: Options, frame: pd.DataFrame) -> CountTable:
    """Return the categories of a table of counts.

    Raises
    ------
    UserError : a number that is none or cannot be, a category twice, or fewer than two.
    """
    if not options.group:
        raise UserError("no categories to compare: name their columns, such as group=[sex,race]")
    if bool(options.selected) == bool(options.rates):
        raise UserError(
            "total= is of a table of counts: name who were selected, either by selected= (numbers "
            "of people) or by rates= (shares)"
        )
    if options.rare:
        raise UserError("rare= pools rows, and a row of counts is a category: leave it out")
    reader = _Reader(options, frame)
    reader.read()
    notes = list(_notes(reader))
    categories = {name: list(by_group.values()) for name, by_group in reader.rows.items()}
    for name in options.group:
        if name not in categories:
            combinations = (other for other in categories if name in other.split(CROSSED))
            crossed = next(combinations, "")
            if not crossed:
                raise UserError(f"{options.path.name}: column '{name}' names no category")
            categories[name] = _sum_over_others(categories[crossed], name)
            notes.append(f"The categories of {name} are the sums of those of {crossed}.")
    in_order = sorted(
        categories, key=lambda name: (name.count(CROSSED), _option_index(name, options))
    )
    for name in in_order:
        if len(categories[name]) < 2:
            only = "".join(f" ({category.group})" for category in categories[name])
            raise UserError(
                f"{options.path.name}: {name} has {len(categories[name]) or 'no'} category{only} "
                "with people; a comparison takes two"
            )
    table = CountTable({name: categories[name] for name in in_order}, reader.unknown, notes)
    people_of = {name: people for name, people in table.people.items() if name in reader.rows}
    if len(set(people_of.values())) > 1:
        numbers = "; ".join(f"{name} {count(people)}" for name, people in people_of.items())
        notes.append(
            f"The tables are of different numbers of people, those unknown included: {numbers}."
        )
    return table


def _option_index(name: str, options: Options) -> int:
    """Return the index of an attribute, or of the first of a combination, in ``group=``."""
    return options.group.index(name.split(CROSSED)[0])


def _sum_over_others(crossed: Sequence[CountedCategory], name: str) -> list[CountedCategory]:
    """Return the categories of one attribute as sums over the others."""
    index = crossed[0].attribute.split(CROSSED).index(name)
    sums: dict[str, CountedCategory] = {}
    for cell in crossed:
        group = cell.group.split(CROSSED)[index]
        subtotal = sums.get(group, CountedCategory(name, group, 0, 0, 0, 0))
        sums[group] = CountedCategory(
            name,
            group,
            subtotal.people + cell.people,
            subtotal.selected + cell.selected,
            subtotal.fewest + cell.fewest,
            subtotal.most + cell.most,
        )
    return list(sums.values())


def _notes(reader: _Reader) -> Iterator[str]:
    """Yield what was left out of the table, and which rates cannot be right."""
    for attribute, people in reader.unknown.items():
        yield f"{attribute}: {count(people)} people of unknown category are in no comparison."
    if reader.totals:
        rows = listed([count(row) for row in reader.totals])
        yield f"Left out as totals: {'rows' if len(reader.totals) > 1 else 'row'} {rows}."
    if reader.empty:
        yield f"Left out, as nobody was in them: {listed(reader.empty)}."
    if reader.impossible_rates:
        rows = listed(reader.impossible_rates, 5)
        yield (
            f"No whole number of people gives the published rate in {rows}: the rate or the number "
            "of people is not right, or people were weighted."
        )


def audit_counts(options: Options, frame: pd.DataFrame) -> Audit:
    """Audit a table of counts: rates, impact ratios with intervals, and what follows.

    Raises
    ------
    UserError : the table is not as :func:`read_counts` needs it, or a reference is no category.
    """
    table = read_counts(options, frame)
    references = _references(options, table)
    ratios = _ratios(table, references, LEVEL)
    categories = {
        name: with_rules_ratio(
            [ratio for ratio in ratios if ratio["attribute"] == name],
            [category.selected for category in of_name],
            table.people[name],
        )
        for name, of_name in table.categories.items()
    }
    in_order = [category for of_name in categories.values() for category in of_name]
    findings = _findings(options, table, references, ratios)
    people = max(table.people.values())
    counted = f"{count(people)} people in {len(ratios)} categories"
    columns = f"'{options.selected}' of '{options.total}'"
    sections = [
        section_of(of_name, "selection rate", _RULES, mark=FOUR_FIFTHS)
        for of_name in categories.values()
    ]
    if options.rates:
        columns = (
            f"'{options.rates}' of '{options.total}', rounded: intervals allow for the rounding"
        )
        sections.append(_rounded(table))
    is_open = any(finding.verdict == OPEN for finding in findings)
    return Audit(
        options,
        people,
        0,
        findings,
        [f"{counted}: {columns}.", OF_POPULATION],
        sections,
        {
            "counts": table.plain,
            "unknown": dict(table.unknown),
            "impact": [category.plain() for category in in_order],
        },
        notes=[*table.notes, *_notes_on_small(categories, ratios)],
        sure=[_SURE],
        unseen=[_UNSEEN],
        todo=[_TODO] if is_open else [],
        figures=[{**category.stable, "over_highest": category.ratio} for category in in_order],
        audited=[f"Counts: {columns}."],
        counted=counted,
    )


def _findings(
    options: Options,
    table: CountTable,
    references: Mapping[str, str],
    ratios: Sequence[Row],
) -> list[Finding]:
    """Return what the impact ratios of single attributes say, at an error rate that they share."""
    # Of a small category selected more often than the one compared with there is nothing to say.
    judged = [
        ratio["attribute"] in options.group
        and ratio["rows"] >= FEWEST_ROWS
        and not ratio["ratio"] > 1
        for ratio in ratios
    ]
    single = list(compress(ratios, judged))
    budget = ErrorBudget(sum(not is_given_reference(ratio) for ratio in single))
    wider = list(compress(_ratios(table, references, one_sided_level(budget.risk)), judged))
    return list(impact_findings(single, wider, SELECTED, attributes_with_small_groups(ratios)))


def _notes_on_small(
    categories: Mapping[str, Sequence[Category]], ratios: Sequence[Row]
) -> Iterator[str]:
    """Yield which categories are too small to be compared with, or to conclude anything of."""
    small = _ratio_names(
        category.stable
        for of_name in categories.values()
        for category, is_large_enough in zip(
            of_name,
            may_be_compared_with(np.array([category.rows for category in of_name])),
            strict=True,
        )
        if not is_large_enough
    )
    if small:
        yield (
            f"Under {FEWEST_ROWS} people, or under 2 % of them: {listed(small)}. Our ratios are to "
            "the highest rate of the others."
        )
    few = _ratio_names(ratio for ratio in ratios if ratio["rows"] < FEWEST_ROWS)
    if few:
        yield f"Nothing is concluded of fewer than {FEWEST_ROWS} people: {listed(few)}."


def _ratio_names(ratios: Iterable[Row]) -> list[str]:
    return [f"{ratio['attribute']}: {ratio['group']} ({count(ratio['rows'])})" for ratio in ratios]


def _references(options: Options, table: CountTable) -> dict[str, str]:
    """Return attribute -> the category that somebody named to compare the others with."""
    groups = {
        name: pd.Series(pd.Categorical([category.group for category in table.categories[name]]))
        for name in options.group
    }
    references = references_of(groups, options.reference)
    for name in table.categories:
        parts = name.split(CROSSED)
        if len(parts) > 1 and all(part in references for part in parts):
            references[name] = CROSSED.join(references[part] for part in parts)
    return references


def _ratios(table: CountTable, references: Mapping[str, str], level: float) -> list[Row]:
    """Return the impact ratios of all categories, with intervals at a level."""
    ratios = []
    for attribute, categories in table.categories.items():
        people = np.array([category.people for category in categories])
        ratios += impact_ratios_at(
            attribute,
            [category.group for category in categories],
            people,
            partial(_rate_limits, categories, people),
            reference=references.get(attribute, ""),
            level=level,
        )
    return ratios


def _rate_limits(
    categories: Sequence[CountedCategory], people: NDArray[np.int64], level: float
) -> Limits:
    """Return the selection rates of categories, with intervals that allow for the rounding."""
    selected, fewest, most = (
        np.array([getattr(category, name) for category in categories])
        for name in ("selected", "fewest", "most")
    )
    lower = rate_limits(fewest, people, level=level).lower
    upper = rate_limits(most, people, level=level).upper
    return Limits(selected / people, lower, upper)


def _rounded(table: CountTable) -> Section:
    """Return the section of the numbers of people that round to the published rates."""

    def selected(category: CountedCategory) -> str:
        fewest, most = np.ceil(category.fewest), np.floor(category.most)
        if fewest > most:
            return "no whole number"
        return count(most) if fewest == most else f"{count(fewest)} to {count(most)}"

    people_by_rate = table_of(
        [category for categories in table.categories.values() for category in categories],
        [
            *OF_GROUP,
            ("people", Column("people", "count")),
            (lambda row: row.selected / row.people, Column("rate", "number")),
            (selected, Column(SELECTED, right=True)),
        ],
        caption="selected: the numbers of people that round to the published rate",
        most=MOST_ROWS,
    )
    return Section("How many people were selected", [people_by_rate])
