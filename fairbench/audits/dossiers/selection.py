"""Dossiers of who is selected: New York's Local Law 144, and the four-fifths rule.

Both show the rate of each group and its ratio to the highest; the first by sex, race and both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from fairbench.audits.direction import Decided, check_said, direction_of
from fairbench.audits.dossiers.categories import (
    Category,
    categories_of,
    section_of,
    smallest_ratio,
    tied_groups_text,
)
from fairbench.audits.dossiers.contents import dossier
from fairbench.audits.dossiers.rulebook import DECISIONS, SCORES, pack_of
from fairbench.audits.dossiers.unknown import Unknown, unknown_of
from fairbench.audits.question import Options
from fairbench.audits.table import read_audit_table
from fairbench.core.arrays import Mask
from fairbench.core.errors import UserError, warn
from fairbench.core.formats import count, number
from fairbench.data.columns import ColumnRef
from fairbench.data.dataset import combine
from fairbench.data.groups import CROSSED, groups_of
from fairbench.data.tabular import numbers
from fairbench.evaluation.impact_ratios import FEWEST_ROWS
from fairbench.inference.impact import (
    FOUR_FIFTHS,
    difference_by_chance,
    is_under,
    selections_that_turn,
)
from fairbench.reporting.document.model import Column, Document, ExecutiveSummary, Section
from fairbench.reporting.group_tables import table_of

_SURE = (
    "Every rate has its 95 % interval and the number of people that it rests on. If many samples "
    "of the same people were audited in this way, 19 of 20 such intervals would contain the true "
    "value."
)
_NO_THRESHOLD = (
    "The Local Law sets no smallest impact ratio and asks for no action on one; four fifths is of "
    "other guidelines (fairbench dossier four-fifths). Intervals and what is called ours are no "
    "part of it either."
)


def ll144(
    options: Options,
    frame: pd.DataFrame,
    human_answers: Mapping[str, str],
    day: date,
    *,
    at_threshold: bool = False,
    unknown: Sequence[str] = (),
    keep_small: bool = True,
) -> Document:
    """Return the tables that the rules on Local Law 144 ask for (6 RCNY 5-300 to 5-304).

    Parameters
    ----------
    options : options whose groups are the columns of sex and of race.
    frame : the table of people, as text.
    human_answers : the answers that only people can give, by the names of rules.
    day : the day as of which the rules are taken.
    at_threshold : whether a person is selected by a score above the threshold; otherwise the rates
        are scoring rates: shares of people with a score above everyone's median.
    unknown : further answers that mean that a category is not known.
    keep_small : whether categories with under 2 % of the people have ratios; an auditor may exclude
        them, but need not (6 RCNY 5-301(d)).

    Raises
    ------
    UserError : if a column is missing, or is not what the options say.
    """
    _refuse_others(options)
    by_score = bool(options.score) and not options.prediction and not at_threshold
    if by_score:
        selection = _selected_by_score(options, frame)
    else:
        selection = _selected_by_decision(options, frame)
    groups = _sex_and_race(options, frame, unknown)
    categories = _compared_categories(groups, selection, groups.known)
    small = [category for category in _in_order(categories) if category.is_small]
    excluded = [] if keep_small else sorted(small, key=lambda category: -category.rows)
    if excluded:
        categories = _compared_categories(groups, selection, _rows_without(groups, excluded))
    n_people = len(frame)
    n_unknown = {name: int((~known).sum()) for name, known in groups.known.items()}
    answers = {
        **human_answers,
        "median": "" if selection.median is None else number(selection.median),
        "unknown": "; ".join(f"{name}: {count(people)}" for name, people in n_unknown.items()),
        "small": _small_categories(small, n_people, kept=keep_small),
        "people": count(n_people),
        **_answers_on_tables(groups, categories),
    }
    data = {
        "people": n_people,
        "unknown": n_unknown,
        "unknown_answers": groups.unknown.answers,
        "keep_small": keep_small,
    }
    tables = _tables_of_categories(selection, categories, excluded, groups.unknown.sentences, data)
    return dossier(
        pack_of("ll144"),
        tables,
        options,
        answers,
        day,
        about=SCORES if by_score else DECISIONS,
        names={"sex": groups.sex, "race": groups.race, "both": groups.both},
        without=() if excluded else ("exclusion_reason",),
    )


@dataclass(frozen=True, eq=False)
class _SexAndRace:
    """The sex and race of everyone, and who did not state them.

    Attributes
    ----------
    sex, race, both : what the attributes and their combination are called.
    labels : attribute -> (n,) the group of each person.
    known : attribute -> (n,) whether it is known.
    unknown : the answers that were taken for unknown.
    """

    sex: str
    race: str
    both: str
    labels: Mapping[str, pd.Series]
    known: Mapping[str, Mask]
    unknown: Unknown


def _sex_and_race(options: Options, frame: pd.DataFrame, unknown: Sequence[str]) -> _SexAndRace:
    """Return the sex and race of everyone, and both crossed.

    Parameters
    ----------
    unknown : further answers that mean that a category is not known.
    """
    sex, race = options.group
    both = f"{sex}{CROSSED}{race}"
    labels = {
        name: groups_of(frame[name], ColumnRef(options.path.name, name)) for name in (sex, race)
    }
    answered = _unknown(labels, unknown)
    known = {**answered.known, both: answered.known[sex] & answered.known[race]}
    labels[both] = combine([labels[sex], labels[race]])
    return _SexAndRace(sex, race, both, labels=labels, known=known, unknown=answered)


def _compared_categories(
    groups: _SexAndRace, selection: _Selection, counted: Mapping[str, Mask]
) -> dict[str, list[Category]]:
    """Return the categories of each attribute, of the people that are `counted` for it."""
    return {
        name: categories_of(
            name,
            groups.labels[name][rows],
            selection.selected[rows],
            len(rows),
            nobody=selection.nobody_is,
        )
        for name, rows in counted.items()
    }


def _rows_without(groups: _SexAndRace, excluded: Sequence[Category]) -> dict[str, Mask]:
    """Return, by attribute, whose group is known and is none of the excluded categories."""
    rows = {}
    for name, known in groups.known.items():
        small_groups = [category.group for category in excluded if category.attribute == name]
        rows[name] = known & ~groups.labels[name].isin(small_groups).to_numpy()
    return rows


def _answers_on_tables(
    groups: _SexAndRace, categories: Mapping[str, Sequence[Category]]
) -> dict[str, str]:
    """Return in which table the rates and the impact ratios of each attribute are."""
    answers = {}
    attributes = {"sex": groups.sex, "race": groups.race, "sex_and_race": groups.both}
    for kind, name in attributes.items():
        in_table = f"in the table of {name}: {len(categories[name])} categories"
        answers[f"rate_by_{kind}"] = in_table
        answers[f"impact_ratio_by_{kind}"] = in_table
    return answers


@dataclass(frozen=True, eq=False)
class _Selection:
    """Who was selected, and how that is worded.

    Attributes
    ----------
    rate : what the share of the selected is called.
    selected : (n,) who was selected.
    read_as : how the file was read.
    nobody_is : why no category has a ratio, if nobody was selected.
    median : the median of everyone's scores, where people are selected by score.
    """

    rate: str
    selected: Mask
    read_as: Sequence[str]
    nobody_is: str
    median: float | None = None


def _selected_by_decision(options: Options, frame: pd.DataFrame) -> _Selection:
    """Return who was selected by a decision, or by a score above the threshold."""
    table = read_audit_table(options, frame=frame, decisions_alone=True)
    nobody_is = "nobody of a known category was selected"
    return _Selection("selection rate", table.favoured, table.read_as, nobody_is)


def _in_order(categories: Mapping[str, Sequence[Category]]) -> list[Category]:
    """Return the categories of all attributes in one list."""
    return [category for of_attribute in categories.values() for category in of_attribute]


def _tables_of_categories(
    selection: _Selection,
    categories: Mapping[str, list[Category]],
    left_out: Sequence[Category],
    on_unknown: Sequence[str],
    data: Mapping[str, Any],
) -> Document:
    """Return the tables of categories, with their summary.

    Parameters
    ----------
    categories : the categories of sex, of race and of both.
    left_out : the categories of under 2 % that have no ratio.
    on_unknown : sentences on answers that name no category.
    data : plain values for the JSON; ``unknown`` counts people of no category by attribute.
    """
    rate = selection.rate
    n_unknown = data["unknown"]
    sections = [
        section_of(
            of_attribute,
            rate,
            "6 RCNY 5-300",
            more=f". Unknown, and in no category: {count(n_unknown[name])} people",
        )
        for name, of_attribute in categories.items()
    ]
    ratios = [smallest_ratio(of_attribute, rate) for of_attribute in categories.values()]
    unseen = [*on_unknown, _NO_THRESHOLD]
    if left_out:
        unseen.append(f"{len(left_out)} categories of under 2 % have a rate and no impact ratio.")
        sections.append(_left_out_section(left_out, rate))
    return Document(
        "Local Law 144: selection and impact by sex, race and both",
        sections,
        summary=ExecutiveSummary(ratios, [*selection.read_as, _SURE], unseen=unseen),
        data={
            "rate": rate,
            "median": selection.median,
            **data,
            "categories": [category.plain() for category in _in_order(categories)],
            "left_out": [_plain_left_out(category) for category in left_out],
        },
    )


def _unknown(groups: Mapping[str, pd.Series], more: Sequence[str]) -> Unknown:
    """Return whose category is not known, and warn of answers that were taken for that."""
    answered = unknown_of(groups, more)
    if answered.surprising:
        warn(" ".join(answered.sentences))
    return answered


def _small_categories(small: Sequence[Category], people: int, *, kept: bool) -> str:
    """Return which categories are under 2 %, of how many people, and what was done with them."""
    if not small:
        return f"none is under 2 % of the {count(people)} people of the file"
    names = "; ".join(_name_and_size(category) for category in small)
    done = "kept; an auditor may exclude them (keep_small=false)" if kept else "excluded"
    return f"{done}: {names}; of the {count(people)} people of the file, unknown ones too"


def _name_and_size(category: Category) -> str:
    return f"{category.attribute}: {category.group} ({count(category.rows)})"


def _plain_left_out(category: Category) -> dict[str, Any]:
    """Return a category that has no ratio in plain values, for the JSON."""
    return {
        "attribute": category.attribute,
        "category": category.group,
        "people": category.rows,
        "selected": category.selected,
        "rate": category.rate,
        "lower": category.stable.rate_lower,
        "upper": category.stable.rate_upper,
    }


def _refuse_others(options: Options) -> None:
    """Refuse options that rules which count everyone once do not take."""
    if options.weight or options.cluster:
        raise UserError("weight= and cluster=: these rules count people, so leave them out")
    if options.within:
        raise UserError("within=: these rules compare groups of everyone, so leave it out")


def _selected_by_score(options: Options, frame: pd.DataFrame) -> _Selection:
    """Return who has a score above the median of everyone's (6 RCNY 5-300).

    Where low scores are good (``favourable=0``), those below the median are counted.
    """
    score = numbers(frame, options.score, options.path.name).to_numpy()
    ColumnRef(options.path.name, options.score).refuse(
        frame[options.score], np.isnan(score), "a score: everyone whom the tool assessed needs one"
    )
    median = float(np.median(score))
    above = score > np.median(score)
    direction = direction_of(("0", "1"), options.favourable, "")
    sex = groups_of(frame[options.group[0]], ColumnRef(options.path.name, options.group[0]))
    rows = Decided(options.path.name, sex, above.astype(np.int64))
    check_said(direction, [options.score], rows, f"{options.score} above the median {median:g}")
    selected, side = (above, "above") if direction.good else (score < median, "below")
    good_scores = "high" if direction.good else "low"
    return _Selection(
        rate="scoring rate",
        selected=selected,
        read_as=[f"Counted: {options.score} {side} its median; {good_scores} scores are good."],
        nobody_is=f"no score of a known category is beyond the median {number(median)}",
        median=median,
    )


def _or_none(names: Iterable[str]) -> str:
    """Return names in one string; "none" where there are none."""
    return "; ".join(names) or "none"


def _left_out_section(left_out: Sequence[Category], rate: str) -> Section:
    """Return the section of the categories that are too small to have a ratio."""
    table = table_of(
        left_out,
        [
            ("attribute", Column("by")),
            ("group", Column("category")),
            ("rows", Column("people", "count")),
            ("selected", Column("selected" if rate == "selection rate" else "above", "count")),
            ("rate", Column(rate, "number")),
            (
                lambda c: (c.stable.rate_lower, c.stable.rate_upper),
                Column("95 % interval", "interval"),
            ),
        ],
        by="",
        caption="Each is under 2 % of the people of the file (6 RCNY 5-301(d)).",
    )
    return Section("Categories left out", [table])


def four_fifths(
    options: Options,
    frame: pd.DataFrame,
    human_answers: Mapping[str, str],
    day: date,
    *,
    unknown: Sequence[str] = (),
) -> Document:
    """Return what the four-fifths rule of the Uniform Guidelines (29 CFR 1607.4(D)) looks at.

    Parameters
    ----------
    options, frame, human_answers, day : as for :func:`ll144`; groups may be of any attributes.
    unknown : further answers that mean that a group is not known, such as ``prefer not to say``.
    """
    _refuse_others(options)
    table = read_audit_table(options, frame=frame, decisions_alone=True)
    if not table.groups:
        raise UserError(f"{options.path.name}: no two groups to compare")
    answered = _unknown({name: table.groups[name] for name in options.group}, unknown)
    known = dict(answered.known)
    for first, second in combinations(options.group, 2):
        known[f"{first}{CROSSED}{second}"] = known[first] & known[second]
    categories = {
        name: categories_of(
            name,
            labels[known[name]],
            table.favoured[known[name]],
            len(frame),
            reference=table.references.get(name, ""),
        )
        for name, labels in table.groups.items()
    }
    differences = [
        _difference(category, _highest(of_attribute))
        for of_attribute in categories.values()
        for category in of_attribute
    ]
    ratios = [
        smallest_ratio(of_attribute, "selection rate") for of_attribute in categories.values()
    ]
    tables = Document(
        "The four-fifths rule: selection rates and impact ratios",
        [*_four_fifths_sections(categories), _differences_section(differences)],
        summary=ExecutiveSummary(ratios, [*table.read_as, _SURE], unseen=answered.sentences),
        data={
            "people": len(frame),
            "unknown": {name: int((~is_known).sum()) for name, is_known in known.items()},
            "unknown_answers": answered.answers,
            "groups": [category.plain() for category in _in_order(categories)],
            "differences": differences,
        },
    )
    answers = {**human_answers, **_four_fifths_answers(categories, differences)}
    return dossier(pack_of("four-fifths"), tables, options, answers, day)


def _four_fifths_sections(categories: Mapping[str, Sequence[Category]]) -> list[Section]:
    """Return the table and the figure of each attribute's rates and impact ratios."""
    return [
        section_of(
            of_attribute,
            "selection rate",
            "29 CFR 1607.4(D)",
            mark=FOUR_FIFTHS,
            more="; P(<0.8): how sure it is that our ratio is under four fifths",
        )
        for of_attribute in categories.values()
    ]


def _four_fifths_answers(
    categories: Mapping[str, Sequence[Category]], differences: Sequence[Mapping[str, Any]]
) -> dict[str, str]:
    """Return the answers that the file gives to the questions of the four-fifths rule."""
    in_order = _in_order(categories)
    under = [row for row in differences if row["under"]]
    most_selected = (
        f"{name}: {tied_groups_text(of_attribute[0].most_selected)}"
        for name, of_attribute in categories.items()
    )
    small = _or_none(
        _name_and_size(category)
        for category in in_order
        if category.rows < FEWEST_ROWS or category.is_small
    )
    return {
        "rates": f"{len(in_order)} groups, in the tables",
        "highest": "; ".join(most_selected),
        "ratios": "in the tables",
        "under_four_fifths": _or_none(_group_name(row) for row in under),
        "significance": "in the table of differences",
        "small_numbers": f"groups of under {FEWEST_ROWS} people or 2 % of the file: {small}",
        "one_person": _by_one_person(under),
    }


def _highest(categories: Sequence[Category]) -> Category:
    """Return the group with the highest rate; the largest of several."""
    highest = [category for category in categories if category.is_most_selected]
    return max(highest, key=lambda category: category.rows)


def _difference(category: Category, highest: Category) -> dict[str, Any]:
    """Compare a group with the group of the highest rate, in the terms of the rule.

    ``share`` is of all people; ``deviations`` and ``chance`` are those of `difference_by_chance`;
    ``turned_by`` and ``reversed_by`` those of `selections_that_turn`.
    """
    selected = round(category.selected), round(highest.selected)  # people, who are counted here
    rows = category.rows, highest.rows
    deviations, chance = difference_by_chance(selected, rows)
    turned_by, reversed_by = selections_that_turn(selected, rows)
    return {
        "attribute": category.attribute,
        "group": category.group,
        "reference": highest.group,
        "share": category.share,
        "under": highest.selected > 0 and is_under(selected, rows),
        "deviations": deviations,
        "chance": chance,
        "turned_by": turned_by,
        "reversed_by": reversed_by,
    }


def _group_name(row: Mapping[str, Any]) -> str:
    return f"{row['attribute']}: {row['group']}"


def _by_one_person(under: Sequence[Mapping[str, Any]]) -> str:
    """Say for which groups under four fifths one other person selected would change the answer."""
    if not under:
        return "no group is under four fifths"
    reversed_ = _or_none(_group_name(row) for row in under if row["reversed_by"] == 1)
    turned = _or_none(_group_name(row) for row in under if row["turned_by"] == 1)
    return f"would give the higher rate to: {reversed_}; would take to four fifths: {turned}"


def _differences_section(differences: Sequence[Mapping[str, Any]]) -> Section:
    """Return the section of how far each group is from the highest rate, and why that may be."""
    table = table_of(
        [row for row in differences if row["group"] != row["reference"]],
        [
            ("attribute", Column("by", left_out=2)),
            ("group", Column("group")),
            ("reference", Column("compared with")),
            ("share", Column("of all", "percent", left_out=3)),
            ("deviations", Column("standard errors", "signed", decimals=2, left_out=1)),
            ("chance", Column("P(by chance)", "probability")),
            ("turned_by", Column("turned by", "count")),
            ("reversed_by", Column("reversed by", "count")),
        ],
        by="",
        caption="standard errors: by how many the group's rate differs from the highest; P(by "
        "chance): how often chance alone makes as large a difference (Fisher's exact test); turned "
        "by: so many different persons selected, one of the one group for one of the other, take "
        "the ratio to four fifths, or under it; reversed by: so many give the group the higher "
        "rate. Of all: percent of the people.",
    )
    return Section("Differences, and whether chance or a few persons explain them", [table])
