"""The audit of counts: a published table with one row per category, as bias audits are published.

Of each category the table says how many people there were, and how many were selected, or which
share. Where rows name several attributes, a row with a blank or "Total" in one of them is of all
its levels; so is one whose numbers are the sums of all others', whatever it is called. Rates that
were rounded are taken as anything that rounds to them.

Categories are compared as rules compare them: the rate of each over the highest of all. Beside the
ratio of a rule stands a stable one, with an interval, which is ours: over the highest rate of the
categories that are large enough that one person more or less does not decide it. Whose category is
not known (:func:`says_nothing`) is counted, and compared with nobody: who declines to state a race
is no race.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain, compress, product
from typing import TypeAlias

import numpy as np
import pandas as pd

from fairbench.audits import question
from fairbench.audits.assessment import impact_findings, small_groups
from fairbench.audits.question import PERCENT, Options
from fairbench.audits.report import OF_POPULATION, Audit
from fairbench.core.errors import UserError
from fairbench.core.text import count, listed, quoted, some_of
from fairbench.data.columns import TOTALS, spelled
from fairbench.data.groups import CROSSED, references_of
from fairbench.data.tables import check_points
from fairbench.evaluation import by_group as shares
from fairbench.evaluation.by_group import Row
from fairbench.evaluation.findings import LEVEL, NAN, one_sided_level, risk_of
from fairbench.inference.gaps import FOUR_FIFTHS
from fairbench.inference.rates import Limits, rate_limits
from fairbench.reporting.charts import forest
from fairbench.reporting.document.model import Figure, Section
from fairbench.reporting.group_tables import named_table, sentence_of, sentences_of

_said = partial(sentence_of, "counts")
SELECTED = "selected"
_RULES = "Local Law 144 and the Uniform Guidelines"
# What the JSON has of our ratio.
_OURS = ("rate_lower", "rate_upper", "reference", "given", "ratio", "lower", "upper", "below")
# What stands in a column whose levels are not told apart in a row: that, or a plain answer.
_ALL = TOTALS | {"", "-", "*"}
_WHOM = "all|(all )?(people|persons|applicants|candidates|employees|groups|categories)"
_TOTAL = re.compile(
    rf"(grand |overall )?(totals?|sum|summe|gesamt|insgesamt)( ({_WHOM}))?|all ({_WHOM})"
)
_SUBTOTAL = re.compile(r"sub ?totals?|(zwischen|teil)summe")  # of some rows, nobody knows which
_FEWEST_PARTS = 3  # of a row that is a total by its numbers alone
_WHOLE = re.compile(r"(\d{1,15}|[1-9]\d{0,2}([,' \u00a0\u202f\u2019]\d{3}){1,4})(\.0+)?")
_ROUNDED = 1e-6  # people that sums of rounded rates may be off
_SHARE = re.compile(r"(\d*[.,]\d+|\d+)\s*(%?)")


# Whose category is not known.

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


def _is_of_all(label: str) -> bool:
    """Return whether a label is that of a row of all levels, such as nothing or ``Total``."""
    return label.strip().casefold() in _ALL or bool(_TOTAL.fullmatch(plain_answer(label)))


# The rate of each category over the highest.


def with_rules_ratio(
    stable: Sequence[Row],
    selected: Sequence[float],
    people: int,
    *,
    nobody: str = "nobody was selected",
) -> list[Row]:
    """Return the categories of one attribute, of which our ratios are known.

    Parameters
    ----------
    stable : our ratio of each category.
    selected : how many people of each are selected; not whole where only the rate is known.
    people : how many people there are in all.
    nobody : why there is no ratio, where the highest rate is 0.

    Returns
    -------
    Of each category: attribute, group and rows, how many people are in it; selected, how many of
    them are; share, that of the category of all people, those of unknown category included; rate,
    the share selected; ratio, its rate over the highest, NaN if that is 0, for which reason says
    why; most_selected, the categories of the highest rate, several where they tie; and ours, our
    ratio and its interval.
    """
    rates = [of / ours["rows"] for ours, of in zip(stable, selected, strict=True)]
    highest = max(rates)
    groups = [ours["group"] for ours in stable]
    return [
        {
            "attribute": ours["attribute"],
            "group": ours["group"],
            "rows": ours["rows"],
            "selected": n_selected,
            "share": ours["rows"] / people,
            "rate": rate,
            "ratio": rate / highest if highest > 0 else NAN,
            "most_selected": [*compress(groups, (other == highest for other in rates))],
            "reason": "" if highest > 0 else f"{nobody}, and 0 over 0 is no number",
            "ours": {name: ours[name] for name in _OURS},
        }
        for ours, n_selected, rate in zip(stable, selected, rates, strict=True)
    ]


def section_of(
    categories: Sequence[Row], rate: str, by: str, *, mark: float = NAN, more: str = ""
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
    ours = [row["ours"] for row in categories]
    highest = max((ratio["upper"] for ratio in ours if ratio["upper"] < np.inf), default=1.0)
    estimates = ((ratio["ratio"], ratio["lower"], ratio["upper"]) for ratio in ours)
    svg = forest(
        "impact ratio, ours",
        [[(row["group"], *of) for row, of in zip(categories, estimates, strict=True)]],
        span=(0.0, float(max(1.2, np.ceil(2 * highest) / 2))),  # most ratios are at most 1
        mark=mark,
    )
    figure = Figure(
        f"impact ratios by {first['attribute']}",
        [svg],
        caption=f"Our ratios, to {ours[0]['reference']}, with 95 % intervals"
        f"{'' if np.isnan(mark) else '; dashed: four fifths'}.",
    )
    reason = f"the highest of those with {shares.FEWEST_ROWS} people and 2 % or more"
    if ours[0]["given"]:
        reason = "as reference= says"
    table = named_table(
        "counts",
        "categories",
        categories,
        without=["ours.below"] if np.isnan(mark) else [],
        attribute=first["attribute"],
        selected=SELECTED if rate == "selection rate" else "above",
        most=first["reason"] or some_of(first["most_selected"]),
        **{"by": by, "rate": rate, "ours": ours[0], "reason": reason, "more": more},
    )
    return Section(f"By {first['attribute']}", [table, figure])


# A table of counts, read.


# What a table says of each category of each attribute: attribute and group; people, how many are in
# it; selected, how many of them were, not a whole number where only the rate is known; fewest and
# most, the limits of that, equal to it where the number itself is known; and row, that of the file,
# from 1, or 0 for a sum of several rows.
_Categories: TypeAlias = Mapping[str, Sequence[Row]]
# The categories; attribute -> how many people have an unknown one; and notes on the rows.
_CountTable: TypeAlias = tuple[_Categories, Mapping[str, int], Sequence[str]]


def _people_of(categories: _Categories, unknown: Mapping[str, int]) -> dict[str, int]:
    """Return the number of people in each attribute's table, those of unknown category too."""
    return {
        name: sum(row["people"] for row in rows) + unknown.get(name, 0)
        for name, rows in categories.items()
    }


Fault: TypeAlias = Callable[[str], UserError]


def _read_counts(options: Options, frame: pd.DataFrame) -> _CountTable:
    """Return the categories of a table of counts, who is in none, and notes.

    Raises
    ------
    UserError : a number that is none or cannot be, a category twice, fewer than two, or a total
        that its parts contradict.
    """
    if not options.group:
        raise UserError("no categories to compare: name their columns, such as group=[sex,race]")
    if bool(options.selected) == bool(options.rates):
        raise UserError(_said("no_part"))
    if options.rare:
        raise UserError("rare= pools rows, and a row of counts is a category: leave it out")
    read, unknown, notes = _read_rows(options, frame)
    categories, notes = dict(read), list(notes)
    for name in options.group:
        if name not in categories:
            combinations = (other for other in categories if name in other.split(CROSSED))
            crossed = next(combinations, "")
            if not crossed:
                raise UserError(f"{options.path.name}: column '{name}' names no category")
            categories[name] = _sum_over_others(categories[crossed], name)
            notes.append(_said("sums", name=name, crossed=crossed))
    in_order = sorted(
        categories,
        key=lambda name: (name.count(CROSSED), options.group.index(name.split(CROSSED)[0])),
    )
    for name in in_order:
        if len(categories[name]) < 2:
            only = "".join(f"1 category ({row['group']})" for row in categories[name])
            file, there = options.path.name, only or "no category"
            raise UserError(_said("one_category", file=file, name=name, there=there))
    people_of = _people_of({name: read[name] for name in in_order if name in read}, unknown)
    if len(set(people_of.values())) > 1:
        numbers = "; ".join(f"{name} {count(people)}" for name, people in people_of.items())
        notes.append(_said("unequal", numbers=numbers))
    return {name: categories[name] for name in in_order}, unknown, notes


def _read_rows(options: Options, frame: pd.DataFrame) -> _CountTable:
    """Return the categories that rows name, with notes on rows left out and impossible rates."""
    names, of_whom = options.group, options.rates or options.selected
    texts = frame[[*names, options.total, of_whom]].astype(str)
    for name in filter(None, (options.total, options.selected)):
        check_points(texts[name], options.path.name)
    decimals = max(map(_decimals, frame[of_whom].astype(str)), default=0)
    categories: dict[str, dict[str, Row]] = {}
    unknown: dict[str, int] = {}
    counted: list[tuple[Mapping[str, str], Row]] = []
    totals, summed, empty, impossible = [], [], [], []
    for row, (*levels, total, part) in enumerate(texts.to_numpy(), start=1):
        total, part = total.strip(), part.strip()
        fault = partial(_fault, options.path.name, row)
        level_of = {
            name: level.strip()
            for name, level in zip(names, levels, strict=True)
            if not _is_of_all(level)
        }
        if any(_SUBTOTAL.fullmatch(plain_answer(level)) for level in levels):
            totals.append(count(row))
            continue
        if not level_of:
            if len(names) == 1 and not levels[0].strip():
                raise fault(names[0], "there is no category: name it, or delete the row")
            totals.append(count(row))
            with suppress(UserError):  # which may be left blank
                people = _whole(total, partial(fault, options.total))
                number = _number_selected(part, people, options, decimals, partial(fault, of_whom))
                counted.append(({}, {"people": people, **number, "row": row}))
            continue
        attribute, group = map(CROSSED.join, (level_of, level_of.values()))
        people = _whole(total, partial(fault, options.total))
        if any(map(says_nothing, level_of.values())):
            unknown[attribute] = unknown.get(attribute, 0) + people
            continue
        of_attribute = categories.setdefault(attribute, {})
        if group in of_attribute:
            other = of_attribute[group]["row"]
            raise fault(
                names[0], f"{quoted(group, 40)} has row {other} as well: keep one row a category"
            )
        number = {}
        if people or spelled(part):  # of nobody there is no rate, and it may be blank
            number = _number_selected(part, people, options, decimals, partial(fault, of_whom))
            if np.ceil(number["fewest"]) > np.floor(number["most"]):
                impossible.append(f"row {row} ({part} of {count(people)})")
        if people:
            about = {"attribute": attribute, "group": group, "people": people}
            of_attribute[group] = {**about, **number, "row": row}
            counted.append((level_of, of_attribute[group]))
        else:
            empty.append(f"{attribute}: {group}")
    for attribute, of_attribute in categories.items():
        if whole := _whole_of(list(of_attribute.values()), unknown.get(attribute, 0)):
            summed.append(f"{quoted(whole['group'], 40)} (row {whole['row']})")
            del of_attribute[whole["group"]]
            counted = [({} if of is whole else levels, of) for levels, of in counted]
    notes = [_said("unknown", attribute=name, people=people) for name, people in unknown.items()]
    notes += sentences_of(
        "counts",
        {"totals": totals, "summed": summed, "empty": empty, "impossible": impossible},
        totals=f"{'rows' if len(totals) > 1 else 'row'} {listed(totals)}",
        summed=summed,
        names=empty,
        rows=listed(impossible, 5),
    )
    notes += _notes_on_totals(options, counted, unknown)
    by_name = {name: list(by_group.values()) for name, by_group in categories.items()}
    return by_name, unknown, notes


def _whole_of(rows: Sequence[Row], unknown: int) -> Row | None:
    """Return the category whose numbers are the sums of all others', if there is such a total.

    Parameters
    ----------
    unknown : how many people have no known category, who may be in a total.
    """
    if len(rows) <= _FEWEST_PARTS:
        return None
    whole = max(rows, key=lambda row: row["people"])
    parts = pd.DataFrame([row for row in rows if row is not whole])
    sums = parts[["people", "fewest", "most"]].sum()
    others = whole["people"] - int(sums["people"])
    least, most = whole["fewest"] - sums["most"], whole["most"] - sums["fewest"]
    is_sum = others in (0, unknown) and least <= others + _ROUNDED and most >= -_ROUNDED
    return whole if is_sum else None


def _notes_on_totals(
    options: Options, counted: Sequence[tuple[Mapping[str, str], Row]], unknown: Mapping[str, int]
) -> Iterator[str]:
    """Yield how many people of totals are in no row; refuse a row that its parts contradict.

    Its parts are rows of the same levels that tell apart what it does not. They may be of fewer
    people: published tables leave out who is in none of their categories.

    Parameters
    ----------
    counted : of each row its levels, none of a total, and its numbers.
    """
    parts_of: dict[tuple[str, ...], list[tuple[Mapping[str, str], Row]]] = {}
    for levels, numbers in counted:
        parts_of.setdefault(tuple(levels), []).append((levels, numbers))
    for (levels, whole), names in product(counted, parts_of):
        parts = [of for own, of in parts_of[names] if levels.items() < own.items()]
        if not parts:
            continue
        sums = pd.DataFrame(parts)[["people", "selected", "fewest", "most"]].sum()
        others = whole["people"] - int(sums["people"])
        least, most = whole["fewest"] - sums["most"], whole["most"] - sums["fewest"]
        about = {"whole": whole, "sums": sums, "by": CROSSED.join(names)}
        if others < 0 or most < -_ROUNDED or least > others + _ROUNDED:
            rows = listed([count(part["row"]) for part in parts], 5)
            raise UserError(_said("contradicts", file=options.path.name, rows=rows, **about))
        if not levels and others > unknown.get(CROSSED.join(names), 0):
            yield _said("in_none", others=others, **about)


def _fault(file: str, row: int, column: str, sentence: str) -> UserError:
    return UserError(f"{file}: column '{column}', row {row}: {sentence}")


def _whole(text: str, fault: Fault) -> int:
    """Return a number of people; refuse a text that is none."""
    if not text:
        raise fault("it is blank: fill in the number of people, or delete the row")
    if not _WHOLE.fullmatch(text):
        share = _SHARE.fullmatch(text)
        if share and (share[2] or float(share[1].replace(",", ".")) <= 1):
            raise fault(_said("share", text=quoted(text)))
        raise fault(f"{quoted(text)} is no whole number of people, without marks of thousands")
    return int(re.sub(r"\D", "", re.sub(r"\.0+$", "", text)))


def _number_selected(
    text: str, people: int, options: Options, decimals: int, fault: Fault
) -> dict[str, float]:
    """Return how many people were selected, or a rounded rate stands for: and the limits of that.

    Where no whole number of people has the rate, these need not be whole either.

    Parameters
    ----------
    decimals : how many decimals the most precise rate of the table has.
    """
    if not options.rates:
        selected = _whole(text, fault)
        if selected > people:
            raise fault(f"{count(selected)} were selected of {count(people)} people")
        return dict.fromkeys(("selected", "fewest", "most"), selected)
    share = _SHARE.fullmatch(text)
    if not share:
        raise fault(f"{quoted(text)} is no rate" if text else "it is blank: fill in the rate")
    percent = bool(share[2]) or options.scale == PERCENT
    scale = 100.0 if percent else 1.0
    rate = float(share[1].replace(",", ".")) / scale
    if rate > 1:
        hint = "" if percent else "; of percents give scale=percent"
        raise fault(f"{quoted(text)} is no rate from 0 to 1{hint}")
    rounding = 0.5 * 10.0**-decimals / scale + 1e-12  # the most that rounding changes
    least, largest = (rate - rounding) * people, (rate + rounding) * people
    fewest = max(float(np.ceil(least)), 0.0)
    most = min(float(np.floor(largest)), float(people))
    value = min(max(rate * people, fewest), most)
    if fewest > most:
        value, fewest, most = rate * people, max(least, 0.0), min(largest, float(people))
    return {"selected": value, "fewest": fewest, "most": most}


def _decimals(text: str) -> int:
    """Return how many decimals a number is written with."""
    digits = text.strip().rstrip("% ").replace(",", ".").partition(".")[2]
    return len(digits) if digits.isdigit() else 0


def _sum_over_others(crossed: Sequence[Row], name: str) -> list[Row]:
    """Return the categories of one attribute as sums over the others."""
    rows = pd.DataFrame(crossed)
    index = crossed[0]["attribute"].split(CROSSED).index(name)
    groups = rows["group"].str.split(CROSSED, regex=False).str[index]
    sums = rows[["people", "selected", "fewest", "most"]].groupby(groups, sort=False).sum()
    table = sums.reset_index().assign(row=0)
    table.insert(0, "attribute", name)
    return list(table.to_dict("records"))


def _audit_counts(options: Options, frame: pd.DataFrame) -> Audit:
    """Audit a table of counts: rates, impact ratios with intervals, and what follows.

    Raises
    ------
    UserError : the table is not as :func:`_read_counts` needs it, or a reference is no category.
    """
    table, unknown, notes = _read_counts(options, frame)
    people_of = _people_of(table, unknown)
    ratios = _ratios(options, table, LEVEL)
    categories = {
        name: with_rules_ratio(
            [ratio for ratio in ratios if ratio["attribute"] == name],
            [row["selected"] for row in rows],
            people_of[name],
        )
        for name, rows in table.items()
    }
    in_order = [*chain.from_iterable(categories.values())]
    # Of a small category selected more often than the one compared with there is nothing to say.
    judged = [
        ratio["attribute"] in options.group
        and ratio["rows"] >= shares.FEWEST_ROWS
        and not ratio["ratio"] > 1
        for ratio in ratios
    ]
    single = list(compress(ratios, judged))
    risk = risk_of(sum(not shares.is_given_reference(ratio) for ratio in single))
    wider = list(compress(_ratios(options, table, one_sided_level(risk)), judged))
    with_small = {ratio["attribute"] for ratio in small_groups(ratios)}
    findings = list(impact_findings(single, wider, SELECTED, with_small))
    people = max(people_of.values())
    counted = f"{count(people)} people in {len(ratios)} categories"
    columns = f"'{options.selected}' of '{options.total}'"
    sections = [
        section_of(rows, "selection rate", _RULES, mark=FOUR_FIFTHS) for rows in categories.values()
    ]
    if options.rates:
        columns = _said("rounded", columns=f"'{options.rates}' of '{options.total}'")
    return Audit(
        options,
        people,
        0,
        findings,
        [f"{counted}: {columns}.", OF_POPULATION],
        sections,
        {
            "counts": [*chain.from_iterable(table.values())],
            "unknown": dict(unknown),
            "impact": in_order,
        },
        notes=[*notes, *_notes_on_small(ratios)],
        sure=[_said("sure")],
        unseen=[_said("unseen")],
        todo_if_open=_said("todo"),
        figures=[
            {**ours, "over_highest": row["ratio"]}
            for ours, row in zip(ratios, in_order, strict=True)
        ],
        audited=[f"Counts: {columns}."],
        counted=counted,
    )


def _notes_on_small(ratios: Sequence[Row]) -> Iterator[str]:
    """Yield which categories are too small to be compared with, or to conclude anything of."""
    if small := _ratio_names(small_groups(ratios)):
        yield _said("small", fewest=shares.FEWEST_ROWS, names=small)
    few = _ratio_names(ratio for ratio in ratios if ratio["rows"] < shares.FEWEST_ROWS)
    if few:
        yield _said("few", fewest=shares.FEWEST_ROWS, names=few)


def _ratio_names(ratios: Iterable[Row]) -> list[str]:
    return [f"{ratio['attribute']}: {ratio['group']} ({count(ratio['rows'])})" for ratio in ratios]


def _ratios(options: Options, table: _Categories, level: float) -> list[Row]:
    """Return the impact ratios of all categories, with intervals at a level."""
    groups = {
        name: pd.Series(pd.Categorical([row["group"] for row in table[name]]))
        for name in options.group
    }
    references = references_of(groups, options.reference, table)
    ratios = []
    for attribute, rows in table.items():
        columns = pd.DataFrame(rows)
        ratios += shares.impact_ratios_at(
            attribute,
            columns["group"].tolist(),
            columns["people"].to_numpy(),
            partial(_rate_limits, columns),
            reference=references.get(attribute, ""),
            level=level,
        )
    return ratios


def _rate_limits(rows: pd.DataFrame, level: float) -> Limits:
    """Return the selection rates of categories, with intervals that allow for the rounding."""
    people, selected, fewest, most = rows[["people", "selected", "fewest", "most"]].to_numpy().T
    lower = rate_limits(fewest, people, level=level).lower
    upper = rate_limits(most, people, level=level).upper
    return Limits(selected / people, lower, upper)


AUDITS = {question.COUNTS: _audit_counts}
