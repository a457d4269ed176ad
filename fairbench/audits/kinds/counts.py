"""The audit of counts: a published table with a row a category, as bias audits are published.

Of each category the table says how many people there were, and how many were selected, or which
share. Where rows name several attributes, a row with a blank or "Total" in one of them is of all
its levels. Rates that were rounded are taken as anything that rounds to them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import compress
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.audits.dossiers.categories import section_of, with_rules_ratio
from fairbench.audits.dossiers.unknown import says_nothing
from fairbench.audits.findings import LEVEL, OPEN, ErrorBudget
from fairbench.audits.impact import attributes_of_large, impact_findings
from fairbench.audits.question import PERCENT, Options
from fairbench.audits.report import OF_POPULATION, Audit
from fairbench.audits.sentences import listed
from fairbench.core.arrays import Floats
from fairbench.core.errors import UserError
from fairbench.core.formats import count, quoted
from fairbench.data.groups import CROSSED, references_of
from fairbench.evaluation.impact_ratios import (
    FEWEST_ROWS,
    ImpactRatio,
    impact_ratios_at,
    may_be_compared_with,
)
from fairbench.inference.impact import FOUR_FIFTHS
from fairbench.inference.rates import Limits, rate_limits
from fairbench.reporting.document.model import Column, Section
from fairbench.reporting.group_tables import MOST_ROWS, OF_GROUP, table_of

SELECTED = "selected"
_RULES = "Local Law 144 and the Uniform Guidelines"
# What stands in a column whose levels are not told apart in a row.
_ALL = frozenset({"", "all", "total", "totals", "overall", "any", "both", "everyone", "-", "*"})
_WHOLE = re.compile(r"(\d+|[1-9]\d{0,2}([,' \u00a0\u202f\u2019]\d{3})+)(\.0+)?")
_SHARE = re.compile(r"(\d*[.,]\d+|\d+)\s*(%?)")


@dataclass(frozen=True)
class CountedCategory:
    """What a table says of a category.

    Attributes
    ----------
    people : of the category. selected : how many of them were selected; not whole where only the
        rate is known. fewest, most : what it may be, which is the same where it is known.
    row : in the file, from 1; 0 of a sum of several rows.
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
    unknown : attribute -> how many people are of unknown category. notes : what a reader has to
        know of the rows.
    """

    categories: Mapping[str, Sequence[CountedCategory]]
    unknown: Mapping[str, int]
    notes: Sequence[str] = ()

    @property
    def plain(self) -> list[dict[str, Any]]:
        """The categories in plain values, for the JSON."""
        return [asdict(category) for own in self.categories.values() for category in own]

    @property
    def people(self) -> dict[str, int]:
        """How many people each attribute's table is of, those of unknown category included."""
        return {
            name: sum(category.people for category in own) + self.unknown.get(name, 0)
            for name, own in self.categories.items()
        }


@dataclass
class _Reader:
    """Reads the rows of a table, one after the other."""

    options: Options
    frame: pd.DataFrame
    decimals: int = 0
    rows: dict[str, dict[str, CountedCategory]] = field(default_factory=dict)
    unknown: dict[str, int] = field(default_factory=dict)
    totals: list[int] = field(default_factory=list)
    empty: list[str] = field(default_factory=list)
    off: list[str] = field(default_factory=list)

    def fault(self, column: str, row: int, sentence: str) -> UserError:
        return UserError(f"{self.options.path.name}: column '{column}', row {row}: {sentence}")

    def read(self) -> None:
        """Read every row into a category of its attribute."""
        names = self.options.group
        if self.options.rates:
            text = self.frame[self.options.rates].astype(str)
            self.decimals = max((_decimals(value) for value in text), default=0)
        for row, levels in enumerate(zip(*(self.frame[n].astype(str) for n in names), strict=True)):
            told = {
                name: level.strip()
                for name, level in zip(names, levels, strict=True)
                if level.strip().casefold() not in _ALL
            }
            if told:
                self._add(row, CROSSED.join(told), list(told.values()))
            elif len(names) == 1 and not levels[0].strip():
                raise self.fault(
                    names[0], row + 1, "there is no category: name it, or delete the row"
                )
            else:
                self.totals.append(row + 1)

    def _add(self, row: int, attribute: str, levels: Sequence[str]) -> None:
        people = self._people(row)
        if any(map(says_nothing, levels)):
            self.unknown[attribute] = self.unknown.get(attribute, 0) + people
            return
        group, own = CROSSED.join(levels), self.rows.setdefault(attribute, {})
        if group in own:
            first = self.options.group[0]
            raise self.fault(
                first,
                row + 1,
                f"{quoted(group, 40)} has row {own[group].row} as well: keep one row a category",
            )
        ends = self._selected(row, people)
        if people:
            own[group] = CountedCategory(attribute, group, people, *ends, row=row + 1)
        else:
            self.empty.append(f"{attribute}: {group}")

    def _people(self, row: int) -> int:
        column = self.options.total
        text = str(self.frame[column].iloc[row]).strip()
        return self._whole(column, row, text)

    def _whole(self, column: str, row: int, text: str) -> int:
        """Return a number of people, or refuse what is none."""
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
        """Return how many people were selected, at least and at most."""
        if self.options.rates:
            return self._of_rate(row, people)
        column = self.options.selected
        number_of = self._whole(column, row, str(self.frame[column].iloc[row]).strip())
        if number_of > people:
            raise self.fault(
                column, row + 1, f"{count(number_of)} were selected of {count(people)} people"
            )
        return number_of, number_of, number_of

    def _of_rate(self, row: int, people: int) -> tuple[float, float, float]:
        column = self.options.rates
        text = str(self.frame[column].iloc[row]).strip()
        share = _SHARE.fullmatch(text)
        if not share:
            what = "it is blank: fill in the rate" if not text else f"{quoted(text)} is no rate"
            raise self.fault(column, row + 1, what)
        percent = bool(share[2]) or self.options.scale == PERCENT
        scale = 100.0 if percent else 1.0
        rate = float(share[1].replace(",", ".")) / scale
        if rate > 1:
            hint = "" if percent else "; of percents give scale=percent"
            raise self.fault(column, row + 1, f"{quoted(text)} is no rate from 0 to 1{hint}")
        half = 0.5 * 10.0**-self.decimals / scale + 1e-12
        fewest = max(float(np.ceil((rate - half) * people)), 0.0)
        most = min(float(np.floor((rate + half) * people)), float(people))
        if fewest > most:
            self.off.append(f"row {row + 1} ({text} of {count(people)})")
            return rate * people, max((rate - half) * people, 0.0), min(
                (rate + half) * people, float(people)
            )  # fmt: skip
        return min(max(rate * people, fewest), most), fewest, most


def _decimals(text: str) -> int:
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
    categories = {name: list(own.values()) for name, own in reader.rows.items()}
    for name in options.group:
        if name not in categories:
            crossed = next((of for of in categories if name in of.split(CROSSED)), "")
            if not crossed:
                raise UserError(f"{options.path.name}: column '{name}' names no category")
            categories[name] = _summed(categories[crossed], name)
            notes.append(f"The categories of {name} are the sums of those of {crossed}.")
    in_order = sorted(categories, key=lambda name: (name.count(CROSSED), _place(name, options)))
    for name in in_order:
        if len(categories[name]) < 2:
            only = "".join(f" ({category.group})" for category in categories[name])
            raise UserError(
                f"{options.path.name}: {name} has {len(categories[name]) or 'no'} category{only} "
                "with people; a comparison takes two"
            )
    table = CountTable({name: categories[name] for name in in_order}, reader.unknown, notes)
    own = {name: people for name, people in table.people.items() if name in reader.rows}
    if len(set(own.values())) > 1:
        each = "; ".join(f"{name} {count(people)}" for name, people in own.items())
        notes.append(
            f"The tables are of different numbers of people, those unknown included: {each}."
        )
    return table


def _place(name: str, options: Options) -> int:
    return options.group.index(name.split(CROSSED)[0])


def _summed(crossed: Sequence[CountedCategory], name: str) -> list[CountedCategory]:
    """Return the categories of one attribute as sums over the others."""
    place = crossed[0].attribute.split(CROSSED).index(name)
    sums: dict[str, CountedCategory] = {}
    for cell in crossed:
        group = cell.group.split(CROSSED)[place]
        before = sums.get(group, CountedCategory(name, group, 0, 0, 0, 0))
        sums[group] = CountedCategory(
            name,
            group,
            before.people + cell.people,
            before.selected + cell.selected,
            before.fewest + cell.fewest,
            before.most + cell.most,
        )
    return list(sums.values())


def _notes(reader: _Reader) -> Iterator[str]:
    for attribute, people in reader.unknown.items():
        yield f"{attribute}: {count(people)} people of unknown category are in no comparison."
    if reader.totals:
        rows = listed([count(row) for row in reader.totals])
        yield f"Left out as totals: row{'s' * (len(reader.totals) > 1)} {rows}."
    if reader.empty:
        yield f"Left out, as nobody was in them: {listed(reader.empty)}."
    if reader.off:
        yield (
            f"No whole number of people gives the published rate in {listed(reader.off, 5)}: the "
            "rate or the number of people is not right, or people were weighted."
        )


def audit_counts(options: Options, frame: pd.DataFrame) -> Audit:
    """Audit a table of counts: rates, impact ratios with intervals, and what follows.

    Raises
    ------
    UserError : as :func:`read_counts` has it, or a reference that is no category.
    """
    table = read_counts(options, frame)
    references = _references(options, table)
    ratios = _ratios(table, references, LEVEL)
    categories = {
        name: with_rules_ratio(
            [ratio for ratio in ratios if ratio.attribute == name],
            [category.selected for category in own],
            table.people[name],
        )
        for name, own in table.categories.items()
    }
    few = _ratio_names(ratio for ratio in ratios if ratio.rows < FEWEST_ROWS)
    small = _ratio_names(
        ratio
        for name, own in categories.items()
        for ratio, enough in zip(
            [category.stable for category in own],
            may_be_compared_with(np.array([category.rows for category in own])),
            strict=True,
        )
        if not enough
    )
    # Of a small category selected more often than the one compared with there is nothing to say.
    judged = [
        ratio.attribute in options.group and ratio.rows >= FEWEST_ROWS and not ratio.ratio > 1
        for ratio in ratios
    ]
    single = list(compress(ratios, judged))
    budget = ErrorBudget(sum(not ratio.is_given_reference for ratio in single))
    wider = compress(_ratios(table, references, 1 - 2 * budget.risk), judged)
    findings = list(impact_findings(single, list(wider), SELECTED, attributes_of_large(ratios)))
    counted = f"{count(max(table.people.values()))} people in {len(ratios)} categories"
    of = f"'{options.selected}' of '{options.total}'"
    if options.rates:
        of = f"'{options.rates}' of '{options.total}', rounded: intervals allow for the rounding"
    notes = list(table.notes)
    if small:
        notes.append(
            f"Under {FEWEST_ROWS} people, or under 2 % of them: {listed(small)}. Our ratios are to "
            "the highest rate of the others."
        )
    if few:
        notes.append(f"Nothing is concluded of fewer than {FEWEST_ROWS} people: {listed(few)}.")
    plain = [category.plain() for own in categories.values() for category in own]
    return Audit(
        options,
        max(table.people.values()),
        0,
        findings,
        [f"{counted}: {of}.", OF_POPULATION],
        [
            *(
                section_of(own, "selection rate", _RULES, mark=FOUR_FIFTHS)
                for own in categories.values()
            ),
            *([_rounded(table)] if options.rates else []),
        ],
        {"counts": table.plain, "unknown": dict(table.unknown), "impact": plain},
        notes=notes,
        sure=[
            "All that is known are numbers: intervals take the people counted as a sample of all "
            "those that the tool may be used on, each decided upon by themself."
        ],
        unseen=[
            "Whether the counts are right, and whether a person is counted more than once, was not "
            "looked at; nor was why groups differ, or whether decisions are right."
        ],
        todo=["Counts of more people would settle what is open: ask for those of a longer time."]
        * any(finding.verdict == OPEN for finding in findings),
        figures=[
            {**asdict(category.stable), "over_highest": category.ratio}
            for own in categories.values()
            for category in own
        ],
        audited=[f"Counts: {of}."],
        counted=counted,
    )


def _ratio_names(ratios: Iterable[ImpactRatio]) -> list[str]:
    return [f"{ratio.attribute}: {ratio.group} ({count(ratio.rows)})" for ratio in ratios]


def _references(options: Options, table: CountTable) -> dict[str, str]:
    """Return attribute -> the category that somebody named to compare the others with."""
    groups = {
        name: pd.Series(pd.Categorical([category.group for category in table.categories[name]]))
        for name in options.group
    }
    named = references_of(groups, options.reference)
    for name in table.categories:
        parts = name.split(CROSSED)
        if len(parts) > 1 and all(part in named for part in parts):
            named[name] = CROSSED.join(named[part] for part in parts)
    return named


def _ratios(table: CountTable, references: Mapping[str, str], level: float) -> list[ImpactRatio]:
    """Return the impact ratios of all categories, with intervals at a level."""
    found = []
    for attribute, own in table.categories.items():
        people = np.array([category.people for category in own])
        values, fewest, most = (
            np.array([getattr(category, name) for category in own])
            for name in ("selected", "fewest", "most")
        )

        def at(
            each: float,
            people: NDArray[np.int64] = people,
            values: Floats = values,
            ends: tuple[Floats, Floats] = (fewest, most),
        ) -> Limits:
            low, high = (rate_limits(end, people, level=each) for end in ends)
            return Limits(values / people, low.lower, high.upper)

        found += impact_ratios_at(
            attribute,
            [category.group for category in own],
            people,
            at,
            reference=references.get(attribute, ""),
            level=level,
        )
    return found


def _rounded(table: CountTable) -> Section:
    """Return which numbers of people round to the published rates."""

    def selected(category: CountedCategory) -> str:
        fewest, most = np.ceil(category.fewest), np.floor(category.most)
        if fewest > most:
            return "no whole number"
        return count(most) if fewest == most else f"{count(fewest)} to {count(most)}"

    of_rates = table_of(
        [category for own in table.categories.values() for category in own],
        [
            *OF_GROUP,
            ("people", Column("people", "count")),
            (lambda row: row.selected / row.people, Column("rate", "number")),
            (selected, Column(SELECTED, right=True)),
        ],
        caption="selected: the numbers of people that round to the published rate",
        most=MOST_ROWS,
    )
    return Section("How many people were selected", [of_rates])
