"""Answers that were taken for unknown are counted and named."""

import pandas as pd
import pytest

from fairbench.core.errors import UserError
from fairbench_dossiers.selection import unknown_of


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
