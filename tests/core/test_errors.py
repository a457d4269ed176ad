"""Errors for people: the nearest valid names."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pytest

from fairbench.core import errors

NAMES = ["adult", "german", "compas", "compas_violent", "diabetes"]


def test_the_nearest_names_are_those_that_look_alike():
    for name, names, found in (
        ("adlt", NAMES, ["adult"]),
        ("compass", NAMES, ["compas"]),
        ("xyzzy", NAMES, []),
        ("sex", ["score", "label"], []),
        ("sl", ["ls", "show"], ["ls"]),
        ("adit", ["audit", "gate", "data"], ["audit"]),
        # Of dotted names with one first part only the rest is compared.
        ("learner.zzz", ["learner.gamma", "learner.rounds"], []),
        ("learner.max_dept", ["learner.max_depth", "learner.rounds"], ["learner.max_depth"]),
    ):
        assert errors.nearest(name, names) == found


MANY = [*NAMES, "acs", "bank", "drug", "ricci"]
LONG = [letter * 30 for letter in "abcdefghijklmn"]


def test_the_sentence_names_the_near_or_else_the_valid_names():
    for name, names, sentence in (
        ("adlt", NAMES[::-1], r": did you mean adult\? valid: adult, compas, compas_violent, dia"),
        ("adlt", MANY, r": did you mean adult\?$"),
        ("xyzzy", MANY, "; valid: acs, adult, bank, "),
        ("xyzzy", LONG, " more; fairbench store ls lists them$"),
        ("xyzzy", [], ": there is none$"),
    ):
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


# Of each option, values that are let through and refused, and what it must be.
VALUES = {
    "depth": ([3], [0.5, True, "3"], "a whole number"),
    "rate": ([0.25, 1], ["0.5", False], "a number"),
    "fast": ([True], [1], "true or false"),
    "name": (["x"], [3], "a text"),
    "limit": ([None, 4], [1.5], "a whole number"),
    "either": (["x"], [], ""),
    "levels": (["anything"], [], ""),
    "unknown": ([object()], [], ""),
}


@pytest.mark.parametrize("name", VALUES)
def test_values_of_another_type_than_the_declared_are_refused_by_name(name):
    good, bad, expected = VALUES[name]
    for value in good:
        assert not refusal(errors.check_types, "learner", Options, {"depth": 2, name: value})
    for value in bad:
        said = refusal(errors.check_types, "learner", Options, {"depth": 2, name: value})
        assert said == f"learner.{name} is {value!r}; it must be {expected}"


def test_functions_have_options_too_and_top_level_settings_no_group():
    def load(archive, *, n: int = 3):
        """Load."""

    said = refusal(errors.check_types, "", load, {"n": "many"})
    assert said == "n is 'many'; it must be a whole number"
