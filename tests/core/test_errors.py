"""Errors for people: the nearest valid names."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from fairbench.core.errors import (
    DataError,
    IncompatibleError,
    UserError,
    check_minimum,
    check_share,
    check_types,
    nearest,
    unknown_name,
)

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


# Checks of option values: what they let through, and the sentence they refuse with.


@dataclass(frozen=True)
class Options:
    depth: int = 1
    rate: float = 0.5
    fast: bool = False
    name: str = ""
    limit: int | None = None
    either: int | str = 0
    levels: tuple[float, ...] = ()


GOOD = [
    ("depth", 3), ("rate", 0.25), ("rate", 1), ("fast", True), ("name", "x"), ("limit", None),
    ("limit", 4), ("either", "x"), ("levels", "anything"), ("unknown", object()),
]  # fmt: skip
BAD = [
    ("depth", 0.5, "a whole number"),
    ("depth", 1.0, "a whole number"),
    ("depth", True, "a whole number"),
    ("depth", "3", "a whole number"),
    ("depth", None, "a whole number"),
    ("rate", "0.5", "a number"),
    ("rate", False, "a number"),
    ("rate", [0.5], "a number"),
    ("fast", 1, "true or false"),
    ("fast", "yes", "true or false"),
    ("name", 3, "a text"),
    ("limit", 1.5, "a whole number"),
]


@pytest.mark.parametrize(("name", "value"), GOOD)
def test_values_of_the_declared_type_pass(name, value):
    check_types("learner", Options, {name: value})


@pytest.mark.parametrize(("name", "value", "expected"), BAD)
def test_other_values_are_refused_by_name(name, value, expected):
    with pytest.raises(UserError) as refusal:
        check_types("learner", Options, {"depth": 2, name: value})
    assert str(refusal.value) == f"learner.{name} is {value!r}; it must be {expected}"


def test_functions_have_options_too_and_top_level_settings_no_group():
    def load(archive, *, n: int = 3):
        """Load."""

    check_types("dataset", load, {"n": 3})
    with pytest.raises(UserError) as refusal:
        check_types("", load, {"n": "many"})
    assert str(refusal.value) == "n is 'many'; it must be a whole number"


@pytest.mark.parametrize(("value", "minimum"), [(1, 1), (2.5, 1), (0, -3)])
def test_a_value_at_the_minimum_passes(value, minimum):
    check_minimum("x.y", value, minimum)


def test_a_value_under_the_minimum_is_refused():
    with pytest.raises(UserError) as refusal:
        check_minimum("split.repeats", 0, 1)
    assert str(refusal.value) == "split.repeats is 0; it must be at least 1"


@pytest.mark.parametrize(
    ("value", "zero"), [(0.5, False), (0.0, True), (0.999, True), (1e-9, False)]
)
def test_shares_pass(value, zero):
    check_share("split.train", value, zero=zero)


@pytest.mark.parametrize(
    ("value", "zero", "within"),
    [
        (0, False, "between 0 and 1"),
        (1, False, "between 0 and 1"),
        (-0.1, False, "between 0 and 1"),
        (float("nan"), False, "between 0 and 1"),
        (1, True, "at least 0 and under 1"),
        (-0.1, True, "at least 0 and under 1"),
    ],
)
def test_what_is_no_share_is_refused(value, zero, within):
    with pytest.raises(UserError) as refusal:
        check_share("split.train", value, zero=zero)
    assert str(refusal.value) == f"split.train is {value}; it must be {within}"
