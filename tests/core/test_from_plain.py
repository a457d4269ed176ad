"""Plain values become the dataclasses whose fields they are."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass

import pytest

from fairbench.core.from_plain import from_plain


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
