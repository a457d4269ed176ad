"""Answers that say that a category is not known are told from categories, in any spelling."""

import pandas as pd
import pytest

from fairbench.audits.dossiers.unknown import says_nothing, unknown_of
from fairbench.core.errors import UserError

SAY_NOTHING = """
Decline To Self Identify|Decline to Self-Identify|I do not wish to answer|I don't wish to answer
I don’t wish to answer|I DO NOT WANT TO ANSWER|Prefer not to answer|prefer not to say
I prefer not to disclose my race|I'd rather not say|Rather not say|N/A|n/a|NA|Not Applicable|nan
Choose not to disclose|I choose not to self-identify|Choose Not To Identify|Unspecified|Unknown
Not specified|Race not specified|Ethnicity unknown|Decline to state|Declined to specify|Declined
Not Disclosed|Undisclosed|Not provided|Not reported|Did not answer|No response|Refused|NULL|-|?
Do not wish to disclose|I do not wish to provide this information|Prefer not to self-identify
Decline to answer (race/ethnicity)|Prefer Not To Say / Unknown|unknown/not reported|Unavailable
I don't know|Prefer not to respond|Decline to Self-ID|Candidate declined|  prefer NOT to  say
"""
SAY_SOMETHING = """
White|Black or African American|Two or more races|Other|Prefer to self-describe|None of the above
Not Hispanic or Latino|Native American|Male|X|Nonbinary|Non-binary|Not listed|Some other race
Asian|A gender not listed here|Wanted|na x White|Race|Sex|I identify as White
"""


def answers(text):
    return [answer for line in text.strip().splitlines() for answer in line.split("|")]


@pytest.mark.parametrize("answer", ["", *answers(SAY_NOTHING)])
def test_an_answer_that_says_nothing(answer):
    assert says_nothing(answer) and says_nothing(answer.upper())


@pytest.mark.parametrize("answer", answers(SAY_SOMETHING))
def test_a_category(answer):
    assert not says_nothing(answer)


@pytest.mark.parametrize("end", ["", " x"])
def test_a_long_answer_is_read_at_once(end):
    assert says_nothing("decline race " * 10_000 + end) == (not end)


def test_what_was_taken_for_unknown_is_said_with_its_number():
    race = pd.Series(["White", "N/A", "Other", "Declined", "N/A", "X"], dtype="category")
    result = unknown_of({"race": race}, ["other"])
    assert result.known["race"].tolist() == [True, False, False, False, False, True]
    assert result.answers == {"race": {"N/A": 2, "Other": 1, "Declined": 1}}
    (sentence,) = result.sentences
    assert "'N/A' (2), 'Other' (1), 'Declined' (1)" in sentence and result.surprising


def test_blanks_alone_are_no_surprise():
    race = pd.Series(["White", "unknown", "Black"], dtype="category")
    assert not unknown_of({"race": race}, []).surprising


def test_an_answer_that_nobody_gave_is_refused():
    race = pd.Series(["White", "Black"], dtype="category")
    with pytest.raises(UserError, match="did you mean White"):
        unknown_of({"race": race}, ["Whit"])
