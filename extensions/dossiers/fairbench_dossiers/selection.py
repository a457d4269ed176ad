"""Dossiers of who is selected: New York's Local Law 144, and the four-fifths rule.

Both show the rate of each group and its ratio to the highest; the first by sex, race and both. Who
gave an answer that says nothing (:class:`Unknown`) is counted, and in no comparison.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd

from fairbench.audits.direction import Direction
from fairbench.audits.kinds.counts import plain_answer, says_nothing, section_of, with_rules_ratio
from fairbench.audits.question import Options
from fairbench.audits.table import read_audit_table
from fairbench.core.arrays import Mask
from fairbench.core.errors import UserError, unknown_name, warn
from fairbench.core.text import MISSING, count, number, quoted, some_of
from fairbench.data.columns import ColumnRef
from fairbench.data.dataset import combine
from fairbench.data.groups import CROSSED, groups_of
from fairbench.evaluation.by_group import FEWEST_ROWS, SMALLEST_SHARE, Row, impact_ratios_of
from fairbench.inference.gaps import FOUR_FIFTHS
from fairbench.reporting.document.model import Document, ExecutiveSummary, Section
from fairbench.reporting.group_tables import named_table, sentence_of
from fairbench_dossiers.documents import DECISIONS, SCORES, dossier

_PAGE = "fairbench_dossiers:selection"
_said = partial(sentence_of, _PAGE)


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
    refuse_weights(options)
    if options.within:
        raise UserError("within=: these rules compare groups of everyone, so leave it out")
    median = None
    if options.score and not options.prediction and not at_threshold:
        selected, median, said = _beyond_median(options, frame)
        rate, read_as = "scoring rate", [said]
        nobody = f"no score of a known category is beyond the median {number(median)}"
    else:
        table = read_audit_table(options, frame=frame, decisions_alone=True)
        selected, rate, read_as = table.favoured, "selection rate", [*table.read_as]
        nobody = "nobody of a known category was selected"
    sex, race = options.group
    labels = {of: groups_of(frame[of], ColumnRef(options.path.name, of)) for of in options.group}
    answered, both = unknown_of(labels, unknown), f"{sex}{CROSSED}{race}"
    labels[both] = combine([labels[sex], labels[race]])
    known = answered.of(labels)
    categories = _categories(labels, selected, known, nobody=nobody)
    small = [c for each in categories.values() for c in each if c["share"] < SMALLEST_SHARE]
    excluded = [] if keep_small else sorted(small, key=lambda category: -category["rows"])
    if excluded:
        few = {name: [c["group"] for c in small if c["attribute"] == name] for name in known}
        kept = {of: rows & ~labels[of].isin(few[of]).to_numpy() for of, rows in known.items()}
        categories = _categories(labels, selected, kept, nobody=nobody)
    unknown_people = {name: int((~rows).sum()) for name, rows in known.items()}
    in_tables = {
        f"{measure}_by_{kind}": f"in the table of {name}: {len(categories[name])} categories"
        for kind, name in {"sex": sex, "race": race, "sex_and_race": both}.items()
        for measure in ("rate", "impact_ratio")
    }
    sections = []
    for name, of_attribute in categories.items():
        more = f". Unknown, and in no category: {count(unknown_people[name])} people"
        sections.append(section_of(of_attribute, rate, "6 RCNY 5-300", more=more))
    unseen = [*answered.sentences, _said("no_threshold")]
    no_ratio = {"ratio": np.nan, "reason": "an auditor excluded it, as it is under 2 %"}
    left_out = [{**category, **no_ratio} for category in excluded]
    if left_out:
        unseen.append(f"{len(left_out)} categories of under 2 % have a rate and no impact ratio.")
        selected_as = "selected" if rate == "selection rate" else "above"
        left = named_table(_PAGE, "left_out", left_out, selected=selected_as, rate=rate)
        sections.append(Section("Categories left out", [left]))
    ratios = [_smallest_ratio(each, rate) for each in categories.values()]
    tables = Document(
        "Local Law 144: selection and impact by sex, race and both",
        sections,
        summary=ExecutiveSummary(ratios, [*read_as, _said("sure")], unseen=unseen),
        data={
            "rate": rate,
            "median": median,
            "people": len(frame),
            "unknown": unknown_people,
            "unknown_answers": answered.answers,
            "keep_small": keep_small,
            "categories": [*chain.from_iterable(categories.values())],
            "left_out": left_out,
        },
    )
    people = count(len(frame))
    small_ones = f"none is under 2 % of the {people} people of the file"
    if small:
        done = "kept; an auditor may exclude them (keep_small=false)" if keep_small else "excluded"
        named = "; ".join(map(_name_and_size, small))
        small_ones = f"{done}: {named}; of the {people} people of the file, unknown ones too"
    answers = {
        **human_answers,
        "median": "" if median is None else number(median),
        "unknown": "; ".join(f"{name}: {count(n)}" for name, n in unknown_people.items()),
        "small": small_ones,
        "people": people,
        **in_tables,
    }
    about = DECISIONS if median is None else SCORES
    names = {"sex": sex, "race": race, "both": both}
    without = () if excluded else ("exclusion_reason",)
    how: dict[str, Any] = {"about": about, "names": names, "without": without}
    return dossier("ll144", tables, options, answers, day, **how)


def refuse_weights(options: Options) -> None:
    """Refuse options that a dossier which counts everyone once does not take."""
    if options.weight or options.cluster:
        raise UserError("weight= and cluster=: this dossier counts people, so leave them out")


def _beyond_median(options: Options, frame: pd.DataFrame) -> tuple[Mask, float, str]:
    """Return who has a score above the median of everyone's (6 RCNY 5-300), it, and a sentence.

    Where low scores are good (``favourable=0``), those below the median are counted.
    """
    score = ColumnRef(options.path.name, options.score).numbers(frame)
    median = float(np.median(score))
    above = score > median
    direction = Direction.of(("0", "1"), options.favourable, "")
    side = f"{options.score} above the median {median:g}"
    direction.check_said(replace(options, target=""), above.astype(np.int64), side=side)
    low = score < median, "below", "low"
    selected, side, good = (above, "above", "high") if direction.good else low
    return selected, median, f"Counted: {options.score} {side} its median; {good} scores are good."


def _name_and_size(category: Row) -> str:
    return f"{category['attribute']}: {category['group']} ({count(category['rows'])})"


@dataclass(frozen=True, eq=False)
class Unknown:
    """Whose category is not known, by attribute.

    Attributes
    ----------
    known : attribute -> (n,) whether the category is known.
    answers : attribute -> the answers that say it is not -> how many people gave them.
    """

    known: Mapping[str, Mask]
    answers: Mapping[str, Mapping[str, int]]

    def of(self, names: Iterable[str]) -> dict[str, Mask]:
        """Return attribute, or combination -> (n,) whether all that it consists of is known."""
        parts = {name: [self.known[part] for part in name.split(CROSSED)] for name in names}
        return {name: np.logical_and.reduce(known) for name, known in parts.items()}

    @property
    def sentences(self) -> list[str]:
        """What was taken for unknown, a sentence for each attribute where anything was."""
        return [
            f"{name}: counted as unknown, and left out of comparisons: "
            f"{', '.join(f'{quoted(label)} ({count(n)})' for label, n in answers.items())}."
            for name, answers in self.answers.items()
            if answers
        ]


def unknown_of(groups: Mapping[str, pd.Series], more: Sequence[str]) -> Unknown:
    """Return whose category is not known, with a warning if an answer says so, and not a blank.

    Parameters
    ----------
    groups : attribute -> (n,) categorical labels.
    more : further answers that mean unknown, in any spelling of case and signs.

    Raises
    ------
    UserError : no column has such an answer.
    """
    labels = {name: list(map(str, column.cat.categories)) for name, column in groups.items()}
    present = {plain_answer(label): label for of_column in labels.values() for label in of_column}
    for answer in more:
        if plain_answer(answer) not in present:
            raise unknown_name("answer in unknown=", answer, present.values())
    also = {plain_answer(answer) for answer in more}
    known, answers = {}, {}
    for name, column in groups.items():
        text = column.astype(str)
        silent = {x for x in labels[name] if says_nothing(x) or plain_answer(x) in also}
        known[name] = ~text.isin(silent).to_numpy()
        answers[name] = dict(Counter(text[~known[name]]).most_common())
    unknown = Unknown(known, answers)
    if {*chain(*answers.values())} - {MISSING}:
        warn(" ".join(unknown.sentences))
    return unknown


def _categories(
    labels: Mapping[str, pd.Series],
    selected: Mask,
    counted: Mapping[str, Mask],
    *,
    references: Mapping[str, str] | None = None,
    nobody: str = "nobody was selected",
) -> dict[str, list[Row]]:
    """Return the categories of each attribute, the largest first as the labels have them.

    Parameters
    ----------
    labels : attribute -> (n,) categorical labels of everyone.
    selected : (n,) who is selected.
    counted : attribute -> (n,) who is in one of its categories.
    references : attribute -> the category that our ratios compare with, where one was named.
    nobody : why there is no ratio, where the highest rate is 0.

    Raises
    ------
    UserError : an attribute has fewer than two.
    """
    categories = {}
    for name, of_everyone in labels.items():
        rows = counted[name]
        groups = of_everyone[rows]
        reference = (references or {}).get(name, "")
        stable = impact_ratios_of(name, groups, selected[rows], reference=reference)
        if not stable:
            raise UserError(_said("few", name=name))
        numbers_of = pd.Series(selected[rows]).groupby(groups.astype(str).to_numpy()).sum()
        each = [int(numbers_of[ours["group"]]) for ours in stable]
        categories[name] = with_rules_ratio(stable, each, len(rows), nobody=nobody)
    return categories


def _smallest_ratio(categories: Sequence[Row], rate: str) -> str:
    """Return in a sentence the smallest ratio of an attribute, and ours of the same category.

    Parameters
    ----------
    rate : what the rate is called, such as ``selection rate``.
    """
    first = categories[0]
    if first["reason"]:
        return f"By {first['attribute']}, no category has an impact ratio: {first['reason']}."
    lowest = min(categories, key=lambda category: category["ratio"])
    if lowest["ratio"] == 1:
        return _said("alike", lowest=lowest, rate=rate)
    top = next(row for row in categories if row["group"] in first["most_selected"])
    ours = lowest["ours"]
    figures = {name: number(ours[name], 2) for name in ("lower", "upper", "ratio")}
    of_lowest, of_top = (f"{count(of['selected'])} of {count(of['rows'])}" for of in (lowest, top))
    values = {
        "ratio": number(lowest["ratio"], 2),
        "most": some_of(first["most_selected"]),
        "ours": _said("our_ratio", reference=ours["reference"], **figures),
    }
    return _said("smallest", lowest=lowest, of_lowest=of_lowest, of_top=of_top, **values)


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
    refuse_weights(options)
    if options.within:
        raise UserError("within=: these rules compare groups of everyone, so leave it out")
    table = read_audit_table(options, frame=frame, decisions_alone=True)
    if not table.groups:
        raise UserError(f"{options.path.name}: no two groups to compare")
    answered = unknown_of({name: table.groups[name] for name in options.group}, unknown)
    known = answered.of(table.groups)
    categories = _categories(table.groups, table.favoured, known, references=table.references)
    in_order = list(chain.from_iterable(categories.values()))
    differences = [_difference(of, categories[of["attribute"]]) for of in in_order]
    more = "; P(<0.8): how sure it is that our ratio is under four fifths"
    law = "selection rate", "29 CFR 1607.4(D)"
    sections = [section_of(of, *law, mark=FOUR_FIFTHS, more=more) for of in categories.values()]
    sure = [*table.read_as, _said("sure")]
    others = [row for row in differences if row["group"] != row["reference"]]
    title = "Differences, and whether chance or a few persons explain them"
    ratios = [_smallest_ratio(each, "selection rate") for each in categories.values()]
    tables = Document(
        "The four-fifths rule: selection rates and impact ratios",
        [*sections, Section(title, [named_table(_PAGE, "differences", others)])],
        summary=ExecutiveSummary(ratios, sure, unseen=answered.sentences),
        data={
            "people": len(frame),
            "unknown": {name: int((~rows).sum()) for name, rows in known.items()},
            "unknown_answers": answered.answers,
            "groups": in_order,
            "differences": differences,
        },
    )
    under = [row for row in differences if row["under"]]
    most = {name: some_of(each[0]["most_selected"]) for name, each in categories.items()}
    small = [of for of in in_order if of["rows"] < FEWEST_ROWS or of["share"] < SMALLEST_SHARE]
    are_small = _or_none(map(_name_and_size, small))
    # For which groups under four fifths one other person selected would change the answer.
    one_person = "no group is under four fifths"
    if under:
        turns = {
            name: _or_none(_group_name(row) for row in under if row[f"{name}_by"] == 1)
            for name in ("reversed", "turned")
        }
        one_person = _said("one_person", **turns)
    answers = {
        **human_answers,
        "rates": f"{len(in_order)} groups, in the tables",
        "highest": "; ".join(f"{name}: {names}" for name, names in most.items()),
        "ratios": "in the tables",
        "under_four_fifths": _or_none(map(_group_name, under)),
        "significance": "in the table of differences",
        "small_numbers": f"groups of under {FEWEST_ROWS} people or 2 % of the file: {are_small}",
        "one_person": one_person,
    }
    return dossier("four-fifths", tables, options, answers, day)


def _or_none(names: Iterable[str]) -> str:
    """Return names in one string; "none" where there are none."""
    return "; ".join(names) or "none"


def _difference(category: Row, every: Sequence[Row]) -> dict[str, Any]:
    """Compare a group with the group of the highest rate, the largest of several, as the rule does.

    ``share`` is of all people; ``deviations`` and ``chance`` are those of `_difference_by_chance`;
    ``turned_by`` and ``reversed_by`` those of `selections_that_turn`.
    """
    highest = max(every, key=lambda row: (row["group"] in row["most_selected"], row["rows"]))
    selected = round(category["selected"]), round(highest["selected"])  # people are counted here
    rows = category["rows"], highest["rows"]
    deviations, chance = _difference_by_chance(selected, rows)
    turned_by, reversed_by = selections_that_turn(selected, rows)
    return {
        "attribute": category["attribute"],
        "group": category["group"],
        "reference": highest["group"],
        "share": category["share"],
        "under": highest["selected"] > 0 and is_under(selected, rows),
        "deviations": deviations,
        "chance": chance,
        "turned_by": turned_by,
        "reversed_by": reversed_by,
    }


def _group_name(row: Mapping[str, Any]) -> str:
    return f"{row['attribute']}: {row['group']}"


def _difference_by_chance(selected: tuple[int, int], rows: tuple[int, int]) -> tuple[float, float]:
    """Return by how many standard errors two rates differ, and how often chance does as much.

    Parameters
    ----------
    selected, rows : whole numbers of a group, and of the group it is compared with.

    Returns
    -------
    The first rate less the second over its standard error if both are alike, 0 where that is 0; and
    the p-value of Fisher's exact test, two-sided.
    """
    (first, second), (first_rows, second_rows) = selected, rows
    pooled = (first + second) / (first_rows + second_rows)
    error = np.sqrt(pooled * (1 - pooled) * (1 / first_rows + 1 / second_rows))
    deviations = float((first / first_rows - second / second_rows) / error) if error > 0 else 0.0
    table = [[first, first_rows - first], [second, second_rows - second]]
    from scipy.stats import fisher_exact  # takes a third of a second, which most audits do without

    return deviations, float(fisher_exact(table).pvalue)


def is_under(selected: tuple[int, int], rows: tuple[int, int]) -> bool:
    """Return whether a rate is under four fifths of another, exactly: 4 of 10 is not, of 5 of 10.

    Parameters
    ----------
    selected, rows : whole numbers of a group, and of the group it is compared with.
    """
    (first, second), (first_rows, second_rows) = selected, rows
    return 5 * first * second_rows < 4 * second * first_rows


def selections_that_turn(
    selected: tuple[int, int], rows: tuple[int, int]
) -> tuple[int | None, int | None]:
    """Return how many different persons selected would turn what a ratio says.

    One different person selected is one more of one group and one less of the other: as many are
    selected in all. That is what the agencies ask of small numbers (44 FR 11996, question 21).

    Parameters
    ----------
    selected, rows : whole numbers of a group, and of the group it is compared with.

    Returns
    -------
    The fewest that take the ratio to four fifths, or under it where it is not under; and, where it
    is, the fewest that give the group the higher rate. None where no number does.
    """
    (first, second), (first_rows, second_rows) = selected, rows
    under = is_under(selected, rows)
    most = min(first_rows - first, second) if under else min(first, second_rows - second)
    moved = np.arange(most + 1) * (1 if under else -1)
    rate, compared = (first + moved) * second_rows, (second - moved) * first_rows
    below = 5 * rate < 4 * compared
    reversed_ = _first(rate > compared) if under else None
    return _first(below != under), reversed_


def _first(holds: Mask) -> int | None:
    """Return the first position where something holds; None where it never does."""
    return int(holds.argmax()) if holds.any() else None
