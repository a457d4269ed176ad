"""Plain values become the dataclasses whose fields they are."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass

import numpy as np
import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser

from fairbench.core.errors import UserError
from fairbench.core.options import from_plain, hydra_word


@dataclass(frozen=True)
class Point:
    x: float
    ends: tuple[float, float] | None = None


@dataclass(frozen=True)
class Track:
    points: tuple[Point, ...]
    names: Mapping[str, tuple[str, ...]]


def test_what_was_written_as_json_is_the_same_again():
    track = Track((Point(1.0), Point(2.0, (0.0, 3.0))), {"a": ("b", "c"), "d": ()})
    assert from_plain(Track, json.loads(json.dumps(asdict(track)))) == track


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"points": 3, "names": {}},
        {"points": [{"y": 1}], "names": {}},
        {"points": [], "names": 3},
    ],
    ids=["missing", "no list", "unknown", "no mapping"],
)
def test_other_values_are_refused(values):
    with pytest.raises(TypeError):
        from_plain(Track, values)


# Hydra reads every word that is made of a value as that value, and never as an interpolation.

SIGNS = list("ab'\"\\,:={}[]()$ ~\t+?%é0.-_#")


def read(word):
    return OverridesParser.create().parse_override(f"learner.x={word}").value()


@pytest.mark.parametrize("value", [
    None, True, False, 0, -1, 2**62, 0.5, -0.0, 1e-320, 1e308, math.inf, -math.inf, "", " ", "true",
    "False", "null", "nan", "inf", "1e5", "1_0", "007", ".5", "1-Year", "a.b-c", "a b", "~a", "+a",
    "choice(a,b)", "range(3)", "interval(0,1)", "[a,b]", "{a:1}", "a,b", "it's", "\\'", "a\\", "$x",
    [], [1, "a,b", None, [True, "x'"]], {}, {"a": {"b": ["c d", 1.5]}}, (1, 2),
])  # fmt: skip
def test_a_value_is_read_as_it_is(value):
    found = read(hydra_word(value))
    assert repr(found) == repr(list(value) if isinstance(value, tuple) else value)


@pytest.mark.thorough
def test_so_is_every_text():
    draw = np.random.default_rng(0)
    for length in draw.integers(1, 9, 1500):
        text = "".join(draw.choice(SIGNS, length))
        if "${" not in text:
            assert read(hydra_word(text)) == text


@pytest.mark.parametrize("value", ["${oc.env:HOME}", "a${b}", ["${b}"], {"a": "${b}"}])
def test_an_interpolation_is_no_value(value):
    with pytest.raises(UserError, match="interpolation"):
        hydra_word(value)


def test_a_key_is_a_name():
    with pytest.raises(UserError, match="as a key"):
        hydra_word({"a b": 1})
