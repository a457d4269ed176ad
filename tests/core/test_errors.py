"""Errors for people: the nearest valid names."""

import pytest

from fairbench.core.errors import DataError, IncompatibleError, UserError, nearest, unknown_name

NAMES = ["adult", "german", "compas", "compas_violent", "diabetes"]


@pytest.mark.parametrize(
    ("name", "first"), [("adlt", "adult"), ("compass", "compas"), ("germn", "german")]
)
def test_the_nearest_name_comes_first(name, first):
    assert nearest(name, NAMES)[0] == first


def test_names_that_look_like_nothing_have_no_nearest():
    assert nearest("xyzzy", NAMES) == []
    assert len(nearest("abcd", ["abce", "abcf", "abcg"], limit=2)) == 2
    assert nearest("adit", ["audit", "gate", "data"]) == ["audit"]


def test_the_sentence_names_the_near_and_all_valid_names():
    error = unknown_name("dataset", "adlt", reversed(NAMES))
    assert str(error) == (
        "unknown dataset 'adlt': did you mean adult? "
        "valid: adult, compas, compas_violent, diabetes, german"
    )
    assert str(unknown_name("split", "zzz", ["kfold"])) == "unknown split 'zzz': valid: kfold"


@pytest.mark.parametrize("error", [DataError, IncompatibleError])
def test_every_error_for_people_is_a_user_error(error):
    assert issubclass(error, UserError)


def test_where_there_is_no_name_at_all_the_sentence_says_so():
    assert str(unknown_name("run", "3f2a", [])) == "unknown run '3f2a': there is none"
