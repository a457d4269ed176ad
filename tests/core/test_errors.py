"""Errors for people: the nearest valid names."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pytest

from fairbench.core import errors

NAMES = ["adult", "german", "compas", "compas_violent", "diabetes"]


@pytest.mark.parametrize(
    ("name", "names", "found"),
    [
        ("adlt", NAMES, ["adult"]),
        ("compass", NAMES, ["compas"]),
        ("xyzzy", NAMES, []),
        ("sex", ["score", "label"], []),
        ("sl", ["ls", "show"], ["ls"]),
        ("adit", ["audit", "gate", "data"], ["audit"]),
        # Of dotted names with one first part only the rest is compared.
        ("learner.zzz", ["learner.gamma", "learner.rounds"], []),
        ("learner.max_dept", ["learner.max_depth", "learner.rounds"], ["learner.max_depth"]),
    ],
)
def test_the_nearest_names_are_those_that_look_alike(name, names, found):
    assert errors.nearest(name, names) == found


MANY = [*NAMES, "acs", "bank", "drug", "ricci"]
LONG = [letter * 30 for letter in "abcdefghijklmn"]


@pytest.mark.parametrize(
    ("name", "names", "sentence"),
    [
        ("adlt", NAMES[::-1], r": did you mean adult\? valid: adult, compas, compas_violent, dia"),
        ("adlt", MANY, r": did you mean adult\?$"),
        ("xyzzy", MANY, "; valid: acs, adult, bank, "),
        ("xyzzy", LONG, " more; fairbench store ls lists them$"),
        ("xyzzy", [], ": there is none$"),
    ],
)
def test_the_sentence_names_the_near_or_else_the_valid_names(name, names, sentence):
    said = str(errors.unknown_name("dataset", name, names, listed_by="fairbench store ls"))
    assert re.match(f"unknown dataset '{name}'.*{sentence}", said)


# Checks of option values: what they let through, and the sentence they refuse with.


def refusal(check, *arguments, **options):
    """Return what a check refuses its arguments with, and nothing if it lets them through."""
    try:
        check(*arguments, **options)
    except errors.UserError as error:
        return str(error)
    return ""


@dataclass(frozen=True)
class Options:
    depth: int = 1
    rate: float = 0.5
    fast: bool = False
    name: str = ""
    limit: int | None = None
    either: int | str = 0
    levels: tuple[float, ...] = ()


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("depth", 3, ""),
        ("rate", 0.25, ""),
        ("rate", 1, ""),
        ("fast", True, ""),
        ("name", "x", ""),
        ("limit", None, ""),
        ("limit", 4, ""),
        ("either", "x", ""),
        ("levels", "anything", ""),
        ("unknown", object(), ""),
        ("depth", 0.5, "a whole number"),
        ("depth", True, "a whole number"),
        ("depth", "3", "a whole number"),
        ("rate", "0.5", "a number"),
        ("rate", False, "a number"),
        ("fast", 1, "true or false"),
        ("name", 3, "a text"),
        ("limit", 1.5, "a whole number"),
    ],
)
def test_values_of_another_type_than_the_declared_are_refused_by_name(name, value, expected):
    said = refusal(errors.check_types, "learner", Options, {"depth": 2, name: value})
    assert said == (f"learner.{name} is {value!r}; it must be {expected}" if expected else "")


def test_functions_have_options_too_and_top_level_settings_no_group():
    def load(archive, *, n: int = 3):
        """Load."""

    said = refusal(errors.check_types, "", load, {"n": "many"})
    assert said == "n is 'many'; it must be a whole number"


INSIDE, FROM_0 = "between 0 and 1", "at least 0 and under 1"


@pytest.mark.parametrize(
    ("value", "zero", "within"),
    [
        (0.5, False, ""),
        (1e-9, False, ""),
        (0.0, True, ""),
        (0, False, INSIDE),
        (1, False, INSIDE),
        (-0.1, False, INSIDE),
        (float("nan"), False, INSIDE),
        (1, True, FROM_0),
        (-0.1, True, FROM_0),
    ],
)
def test_what_is_no_share_is_refused(value, zero, within):
    said = refusal(errors.check_share, "split.train", value, zero=zero)
    assert said == (f"split.train is {value}; it must be {within}" if within else "")


def test_a_value_under_the_minimum_is_refused():
    assert not refusal(errors.check_minimum, "n", 1, 1)
    assert refusal(errors.check_minimum, "n", 0, 1) == "n is 0; it must be at least 1"
