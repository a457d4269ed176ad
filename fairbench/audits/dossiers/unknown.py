"""Answers that say that somebody's category is not known, as forms and files write them.

Rules on categories count such people and compare nobody with them: who declines to state a race is
no race.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from fairbench.core.arrays import Mask
from fairbench.core.errors import unknown_name
from fairbench.core.formats import MISSING, count, quoted

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
    return _SAYS_NOTHING.fullmatch(_plain(label)) is not None


def _plain(label: str) -> str:
    return " ".join(re.findall(r"[^\W_]+", label.casefold()))


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

    @property
    def sentences(self) -> list[str]:
        """What was taken for unknown, a sentence for each attribute where anything was."""
        return [
            f"{name}: counted as unknown, and left out of comparisons: {_answers_text(answers)}."
            for name, answers in self.answers.items()
            if answers
        ]

    @property
    def surprising(self) -> bool:
        """Whether an answer was taken for unknown that is more than a blank."""
        return any(set(answers) - {MISSING} for answers in self.answers.values())


def _answers_text(answers: Mapping[str, int]) -> str:
    return ", ".join(f"{quoted(label)} ({count(people)})" for label, people in answers.items())


def unknown_of(groups: Mapping[str, pd.Series], more: Sequence[str]) -> Unknown:
    """Return whose category is not known.

    Parameters
    ----------
    groups : attribute -> (n,) categorical labels.
    more : further answers that mean unknown, in any spelling of case and signs.

    Raises
    ------
    UserError : no column has such an answer.
    """
    labels = {
        name: [str(label) for label in column.cat.categories] for name, column in groups.items()
    }
    present = {_plain(label): label for of_column in labels.values() for label in of_column}
    for answer in more:
        if _plain(answer) not in present:
            raise unknown_name("answer in unknown=", answer, present.values())
    also = {_plain(answer) for answer in more}
    known = {}
    answers = {}
    for name, column in groups.items():
        silent = [label for label in labels[name] if says_nothing(label) or _plain(label) in also]
        text = column.astype(str)
        known[name] = ~text.isin(silent).to_numpy()
        answers[name] = _count_each(text[~known[name]])
    return Unknown(known, answers)


def _count_each(labels: Iterable[str]) -> dict[str, int]:
    """Return how often each label comes, the most frequent first."""
    return dict(Counter(labels).most_common())
