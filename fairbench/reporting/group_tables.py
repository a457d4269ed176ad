"""Tables, sentences and lines of groups, which reports of all kinds have in common."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from math import isnan
from string import Formatter
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from fairbench.core.arrays import Floats
from fairbench.core.text import count, declared_in, interval, listed, signed
from fairbench.data.groups import CROSSED
from fairbench.evaluation.table import values_of
from fairbench.inference.rates import Limits
from fairbench.reporting.charts import BLUE, COLOURS, GREY, Panel, Series
from fairbench.reporting.document.model import FORMATS, Bar, Column, Paragraph, Table

# How sentences show a value, by the name after its colon: as a column of this kind, and more.
_SHOWN: Mapping[str, Callable[[Any, int], str]] = {
    **FORMATS,
    "listed": lambda names, _: listed(names),
    "share": lambda level, _: f"{100 * level:g}%",
    "change": lambda estimate, _: f"{signed(estimate[0])} ({interval(*estimate[1:])})",
    "Upper": lambda text, _: f"{text[:1].upper()}{text[1:]}",
}


class _Formatter(Formatter):
    """The formatter of sentences."""

    def format_field(self, value: Any, format_spec: str) -> str:
        shown = _SHOWN.get(format_spec)
        return shown(value, _DECIMALS) if shown else str(super().format_field(value, format_spec))


_DECIMALS = 3  # of numbers in sentences


def _declared(page: str, file: str) -> Mapping[str, Any]:
    """Return what a file declares of a page; that of an extension is ``its_package:page``."""
    package, _, name = page.rpartition(":")
    declared: Mapping[str, Any] = declared_in(package or "reporting", file)[name]
    return declared


def template_of(page: str, name: str) -> str:
    """Return a sentence or a caption of a page, of ``sentences.toml``, with its braces."""
    return str(_declared(page, "sentences.toml")[name])


def sentence_of(page: str, name: str, /, **values: object) -> str:
    """Return a sentence or a caption of a page, of ``sentences.toml``, with its values."""
    return _Formatter().vformat(template_of(page, name), (), values)


def sentences_of(page: str, said: Mapping[str, object], /, **values: object) -> list[str]:
    """Return those sentences of a page, of all that it may say, that hold."""
    return [sentence_of(page, name, **values) for name, holds in said.items() if holds]


MOST_ROWS = 16  # rows of a table by group that a terminal shows
MOST_LINES = 8  # groups in a figure


# (attribute, group, metric) -> (value, lower, upper)
Estimates: TypeAlias = Mapping[tuple[str, str, str], tuple[float, float, float]]


def estimates(metrics: pd.DataFrame, names: Collection[str]) -> Estimates:
    """Return value, lower and upper of metrics of these names, by attribute, group and metric."""
    metrics = values_of(metrics)
    selected = metrics[metrics["metric"].isin(list(names))]
    columns = ("attribute", "group", "metric", "value", "lower", "upper")
    rows = zip(*(selected[name] for name in columns), strict=True)
    return {(str(a), str(g), str(m)): (v, low, up) for a, g, m, v, low, up in rows}


def _starts(names: Sequence[object]) -> frozenset[int]:
    """Return the positions where a name differs from the one before."""
    return frozenset(i for i in range(len(names)) if i == 0 or names[i] != names[i - 1])


def bars(ends: Sequence[tuple[float, float, float]], epsilon: float) -> list[Bar | None]:
    """Return intervals (lower, value, upper) on a shared scale; None if one is undefined."""
    values = np.array([*ends, (-epsilon, 0, epsilon)], float)
    low, high = np.nanmin(values), np.nanmax(values)
    scaled = (100 * (values - low) / (high - low)).tolist()
    *placed, (left, zero, right) = [[round(end, 1) for end in triple] for triple in scaled]
    return [
        None if isnan(lower + value + upper) else Bar((lower, value, upper), (left, right), zero)
        for lower, value, upper in placed
    ]


def named_table(
    page: str,
    name: str,
    rows: Iterable[Mapping[str, Any]],
    /,
    *,
    without: Collection[str] = (),
    apart: Sequence[object] = (),
    **values: object,
) -> Table:
    """Return a table of rows as ``tables.toml`` declares it.

    There, ``of`` is the field that a column shows, or several: ``rate.mean`` is that of a mapping
    in the row, and a row that lacks it has an empty cell. ``by`` is the field at whose changes a
    rule is drawn, by default ``attribute`` if rows have it; empty for none. A short page leaves
    rows of combinations of attributes out.

    Parameters
    ----------
    without : the fields, or the estimates or single parts of them, whose columns are left out.
    apart : a value of each row; a rule is drawn where it changes.
    values : what the title, the caption and the headings name.
    """
    about = _filled(_declared(page, "tables.toml")[name], values)
    rows = list(rows)
    cells: list[list[object]] = [[] for _ in rows]
    columns = []
    for said in about.pop("columns"):
        of = said.pop("of")
        first = of[0] if isinstance(of, list) else of
        if {first, first.partition(".")[0]} & {*without}:
            continue
        columns.append(Column(**said))
        for row, shown in zip(rows, cells, strict=True):
            parts = tuple(_field(row, one) for one in (of if isinstance(of, list) else [of]))
            is_whole = all(part is not None for part in parts)
            shown.append((parts if isinstance(of, list) else parts[0]) if is_whole else None)
    about["rules"] = _starts(apart) - {0}
    by = about.pop("by", "attribute")
    if rows and by in rows[0]:
        groups = [str(row[by]) for row in rows]
        about["rules"] = _starts(groups)
        about["more"] = frozenset(i for i, value in enumerate(groups) if CROSSED in value)
    return Table(columns, cells, **about)


def _field(row: Mapping[str, Any], name: str) -> object:
    estimate, _, part = name.rpartition(".")
    return row.get(estimate, {}).get(part) if estimate else row[name]


def _filled(declared: Mapping[str, Any], values: Mapping[str, object]) -> dict[str, Any]:
    """Return a declaration with the values that its texts name."""
    filled = dict(declared)
    for name in filled.keys() & {"title", "caption", "reading"}:
        filled[name] = _Formatter().vformat(filled[name], (), values)
    if "columns" in filled:
        filled["columns"] = [_filled(column, values) for column in filled["columns"]]
    return filled


def where_all_is(metrics: pd.DataFrame) -> Paragraph:
    """Return where a reader finds every metric: a page has those that answer a question."""
    return Paragraph(f"All {count(len(metrics))} metrics are in the JSON of this report.", "note")


def group_line(name: str, g: int, x: Floats, y: Floats | Limits, *, marked: bool = False) -> Series:
    """Return the line of the g-th group, with a band if it has intervals."""
    value = y
    band = None
    if isinstance(y, Limits):
        value = y.value
        band = (y.value - y.lower, y.upper - y.value)
    colour = COLOURS[g % len(COLOURS)]
    return Series(name, x, value, colour, shape=g, marked=marked, dashed=g, band=band)


def density_panel(scores: Sequence[Mapping[str, Any]], attribute: str, label: str) -> Panel:
    """Return how often each score occurs in the groups of one of the attributes."""
    scores = [of_group for of_group in scores if of_group["attribute"] == attribute]
    corners = np.repeat(scores[0]["edges"], 2)[1:-1]
    lines = [
        group_line(group["group"], g, corners, np.repeat(group["density"], 2))
        for g, group in enumerate(scores[:MOST_LINES])
    ]
    return Panel(lines, label, "share of the group", from_zero="y")


def reliability_panel(
    points: Iterable[tuple[float, float, float, float]], label: str, more: Sequence[Series] = ()
) -> Panel:
    """Return how often scores come true: of each bin the mean score, the share and its limits."""
    series = [*more, Series("", [0, 1], [0, 1], GREY, marked=False, dashed=1)]
    for score, share, lower, upper in points:
        line = np.array([[score, lower], [score, upper]])
        looks: dict[str, Any] = {"filled": True, "lined": False, "outline": line}
        series.append(Series("", [score], [share], BLUE, **looks))
    return Panel(series, "score", label, spans=dict.fromkeys("xy", (0.0, 1.0)))


def score_table(scores: Sequence[Mapping[str, Any]], what: str) -> Table:
    """Return means and quantiles of the scores of every group.

    Parameters
    ----------
    what : the word for a score.
    """
    rows = [
        {
            **row,
            "mean": row["mean"][0],
            "limits": row["mean"][1:],
            "difference": row["difference"][1:],
            **dict(zip(("low", "median", "high"), row["quantiles"], strict=True)),
        }
        for row in scores
    ]
    return replace(named_table("any", "scores", rows, what=what), most=MOST_ROWS)
