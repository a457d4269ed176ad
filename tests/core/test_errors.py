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
    assert nearest("sex", ["score", "label"]) == []
    assert nearest("sl", ["ls", "show"]) == ["ls"]
    assert len(nearest("abcd", ["abce", "abcf", "abcg"], limit=2)) == 2
    assert nearest("adit", ["audit", "gate", "data"]) == ["audit"]


def test_of_dotted_names_with_one_first_part_only_the_rest_is_compared():
    options = ["learner.gamma", "learner.max_depth", "learner.rounds"]
    assert nearest("learner.zzz", options) == []
    assert nearest("learner.max_dept", options) == ["learner.max_depth"]


def test_of_many_names_all_are_listed_only_where_none_is_near():
    many = [*NAMES, "acs", "bank", "drug", "ricci"]
    assert (
        str(unknown_name("dataset", "adlt", many)) == "unknown dataset 'adlt': did you mean adult?"
    )
    assert str(unknown_name("dataset", "xyzzy", many)).startswith(
        "unknown dataset 'xyzzy'; valid: acs, adult, bank, "
    )
    names = [f"{letter * 30}" for letter in "abcdefghijklmn"]
    listed = str(unknown_name("run", "xyzzy", names, listed_by="fairbench store ls"))
    assert listed.endswith(" more; fairbench store ls lists them")


def test_the_sentence_names_the_near_and_the_few_valid_names():
    error = unknown_name("dataset", "adlt", reversed(NAMES))
    assert str(error) == (
        "unknown dataset 'adlt': did you mean adult? "
        "valid: adult, compas, compas_violent, diabetes, german"
    )
    assert str(unknown_name("split", "zzz", ["kfold"])) == "unknown split 'zzz'; valid: kfold"


@pytest.mark.parametrize("error", [DataError, IncompatibleError])
def test_every_error_for_people_is_a_user_error(error):
    assert issubclass(error, UserError)


def test_where_there_is_no_name_at_all_the_sentence_says_so():
    assert str(unknown_name("run", "3f2a", [])) == "unknown run '3f2a': there is none"
