"""Small charts drawn as SVG text, which is much faster than matplotlib for a page of hundreds."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, floor, isnan, log10
from string import ascii_lowercase
from textwrap import wrap
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from fairbench.core.arrays import Floats
from fairbench.core.text import html as escape
from fairbench.core.text import interval, number

# Okabe and Ito's colours, distinguishable with common colour blindness. In black and white, markers
# and dashes distinguish the series.
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#5a5a5a"
COLOURS = (BLUE, ORANGE, GREEN, "#CC79A7", "#E69F00", "#56B4E9", GREY, "black")
*_RUNS, _BLACK = COLOURS
MARKERS = "os^DvPX*<"  # matplotlib's

NAN = float("nan")
WIDTH, HEIGHT = 300, 200  # of a panel's frame
_LEFT, _TOP, _RIGHT, _BOTTOM = 58, 24, 16, 44
PANEL = _LEFT + WIDTH + _RIGHT  # of a panel with its axes
_ROW = 16  # of the key
_KEY_WIDTH = 54  # letters
_ESTIMATE = 30  # of a name and its interval
_BETWEEN = 6  # space between two parts of a forest plot
_SHAPES = (
    "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0",
    "M-3.6 -3.6h7.2v7.2h-7.2z",
    "M0 -4.6L4.4 3.4H-4.4z",
    "M0 -5L4.2 0L0 5L-4.2 0z",
    "M0 4.6L4.4 -3.4H-4.4z",
    "M-4.5 -1.3h3.2v-3.2h2.6v3.2h3.2v2.6h-3.2v3.2h-2.6v-3.2h-3.2z",
    "M-4.5 -2.5L-2.5 -4.5L0 -2L2.5 -4.5L4.5 -2.5L2 0L4.5 2.5L2.5 4.5L0 2L-2.5 4.5L-4.5 2.5L-2 0z",
    "M0 -5.5L1.4 -1.9L5.2 -1.7L2.2 .7L3.2 4.4L0 2.3L-3.2 4.4L-2.2 .7L-5.2 -1.7L-1.4 -1.9z",
    "M-4.6 0L3.4 -4.4V4.4z",
)
_DASHES = ("", "5 3", "1.5 2.5", "9 3 2 3", "12 4", "5 2 1 2 1 2")


@dataclass(frozen=True, eq=False)
class Series:
    """Points of one name, each with a marker, and a line through them if it is `lined`.

    Attributes
    ----------
    x, y : (n,) the points.
    shape : the number of the marker.
    filled : whether markers are filled.
    dashed : the number of the kind of dashes, 0 for none; outlines have them too.
    band : the distance of a shaded band to either side of y, (n,), or below and above, (2, n).
    outline : a closed curve around the points, (m, 2).
    label : letters beside the first point.
    hint : the text that the pointer shows.
    tags : tags by which a page filters.
    """

    name: str
    x: ArrayLike
    y: ArrayLike
    colour: str
    shape: int = 0
    filled: bool = False
    lined: bool = True
    dashed: int = 0
    marked: bool = True
    band: ArrayLike | None = None
    outline: Floats | None = None
    label: str = ""
    hint: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Panel:
    """Series on one pair of axes.

    Attributes
    ----------
    from_zero : the axes that begin at 0.
    spans : the limits of an axis, ``x`` or ``y``, if not all that is drawn must fit.
    """

    series: Sequence[Series]
    x_label: str
    y_label: str
    title: str = ""
    from_zero: str = "xy"
    spans: Mapping[str, tuple[float, float]] = field(default_factory=dict)


def chart(panels: Sequence[Panel], *, key: Sequence[Series] = ()) -> list[str]:
    """Return each panel as a drawing in SVG, and last a key of the series.

    Each is as wide as a phone: a page sets as many side by side as there is room for.
    """
    height = _TOP + HEIGHT + _BOTTOM
    shifted_group = f'<g transform="translate({_LEFT} {_TOP})">'
    drawings = [
        svg_drawing(f"{shifted_group}{''.join(_panel(panel))}</g>", height) for panel in panels
    ]
    if key:
        parts = []
        top = 12
        for series in key:
            text = f"{series.label} {series.name.replace('_', ' ')}".strip()
            texts = wrap(text, _KEY_WIDTH) or [""]
            entry_group = f'<g transform="translate(12 {top})">{_key(series, texts)}</g>'
            parts.append(_group(entry_group, series))
            top += _ROW * len(texts)
        drawings.append(svg_drawing("".join(parts), top))
    return drawings


def svg_drawing(content: str, height: float) -> str:
    """Return SVG elements as a drawing of this height and the width of a panel."""
    return f'<svg class="chart" role="img" viewBox="0 0 {PANEL} {height:.0f}">{content}</svg>'


STYLE_SHEET = (  # of drawings in a page
    "text{font:11px system-ui,'DejaVu Sans',sans-serif;fill:#1a1a1a}.title{font-weight:600}"
    ".letter{font-size:13px;font-weight:700}.frame{fill:none;stroke:#595959}path{stroke-width:1.3}"
    ".grid{stroke:#d5d5d5;stroke-width:.5}.range{stroke:#1a1a1a;stroke-width:2.5}"
    ".ideal{stroke:#595959;stroke-dasharray:3 3}"
)


def file_of(drawings: Sequence[str]) -> str:
    """Return drawings of a figure, one below the other, as an SVG file that needs nothing else."""
    parts = []
    top = 0
    for drawing in drawings:
        height = int(re.search(r'viewBox="0 0 \d+ (\d+)"', drawing)[1])  # type: ignore[index]
        placed = f'<svg y="{top}" width="{PANEL}" height="{height}"'
        parts.append(drawing.replace("<svg", placed, 1))
        top += height
    box = f'width="{PANEL}" height="{top}" viewBox="0 0 {PANEL} {top}"'
    ground = '<rect width="100%" height="100%" fill="#fff"/>'
    style = f"<style>{STYLE_SHEET}</style>"
    return f'<svg xmlns="http://www.w3.org/2000/svg" {box}>{style}{ground}{"".join(parts)}</svg>'


Estimate: TypeAlias = tuple[str, float, float, float]


def forest(
    title: str,
    parts: Sequence[Sequence[Estimate]],
    *,
    span: tuple[float, float],
    mark: float = NAN,
    band: tuple[float, float] | None = None,
    decimals: int = 2,
) -> str:
    """Draw estimates with their intervals, each under its name and beside its numbers.

    Parameters
    ----------
    parts : names with value, lower and upper; a line separates two parts.
    span : the lower and the upper limit of the scale.
    mark : the value at which a dashed line is drawn; NaN for none.
    band : the limits of a shaded band; None for none.
    decimals : the number of decimals of the numbers.
    """
    left = 6
    width = PANEL - 12
    low, high = span

    def place_of(value: float) -> float:
        return left + width * min(max((value - low) / (high - low), 0), 1)

    start = top = 22 if title else 4
    bottom = start + _ESTIMATE * sum(map(len, parts)) + _BETWEEN * (len(parts) - 1)
    elements = [f'<text x="{left}" y="14" class="title">{escape(title)}</text>'] if title else []
    if band is not None:
        first, last = map(place_of, band)
        size = f'width="{last - first:.1f}" height="{bottom - start}"'
        elements.append(f'<rect x="{first:.1f}" y="{start}" {size} fill="{BLUE}" opacity=".15"/>')
    for index, part in enumerate(parts):
        if index:
            elements.append(
                f'<line class="grid" x1="0" x2="{PANEL}" y1="{top + 3}" y2="{top + 3}"/>'
            )
            top += _BETWEEN
        for estimate in part:
            elements += _estimate(estimate, place_of, top, decimals)
            top += _ESTIMATE
    if not isnan(mark):
        x = place_of(mark)
        dashes = f'x1="{x:.1f}" x2="{x:.1f}" y1="{start}" y2="{top}"'
        elements.append(f'<line class="frame" {dashes} stroke-dasharray="4 3"/>')
    ends = [(f"{low:g}", "start", float(left)), (f"{high:g}", "end", float(left + width))]
    if band is not None:
        ends += [(f"{end:g}", "middle", place_of(end)) for end in band if low < end < high]
    for text, anchor, x in ends:
        elements.append(f'<text x="{x}" y="{top + 12}" text-anchor="{anchor}">{text}</text>')
    return svg_drawing("".join(elements), top + 18)


def _estimate(
    estimate: Estimate, at: Callable[[float], float], top: float, decimals: int
) -> Iterator[str]:
    """Draw a name, its numbers at the other end of the line, and below the interval."""
    name, value, lower, upper = estimate
    ends = interval(lower, upper, decimals)
    numbers = f"{number(value, decimals)}{f' ({ends})' if ends else ''}"
    hint = f"<title>{escape(name)}</title>"
    yield f'<text x="6" y="{top + 12}">{escape(shorten_name(name))}{hint}</text>'
    yield f'<text x="{PANEL - 6}" y="{top + 12}" text-anchor="end">{numbers}</text>'
    y = top + 20
    yield f'<line class="grid" x1="6" x2="{PANEL - 6}" y1="{y}" y2="{y}"/>'
    if not isnan(lower):
        yield f'<line class="range" x1="{at(lower):.1f}" x2="{at(upper):.1f}" y1="{y}" y2="{y}"/>'
    if not isnan(value):
        yield f'<circle cx="{at(value):.1f}" cy="{y}" r="4"/>'


def shorten_name(name: str, most: int = 34) -> str:
    """Return a name in at most so many letters, its middle left out."""
    return name if len(name) <= most else f"{name[: most // 2]}…{name[-most // 2 + 1 :]}"


def track(
    x: ArrayLike,
    limits: Floats,
    labels: tuple[str, str],
    *,
    bound: float,
    events: Sequence[tuple[float, str]] = (),
) -> str:
    """Draw an estimate and its interval over time, with dashed lines at a bound, and events.

    Parameters
    ----------
    x : (n,) positions on the horizontal axis.
    limits : (n, 3) value, lower and upper.
    labels : the labels of both axes.
    bound : dashed lines are drawn at this distance on either side of 0.
    events : squares on the line: the position of each, and the text that the pointer shows.
    """
    along = np.asarray(x, float)
    (value, lower, upper) = limits.T
    across = [0.0, along[-1] if len(along) else 1.0]
    band = np.array([value - lower, upper - value])
    series = [
        *(Series("", across, [y, y], GREY, dashed=1, marked=False) for y in (-bound, bound)),
        Series("", along, value, BLUE, marked=False, band=band),
    ]
    for position, hint in events:
        height = np.interp([position], along, value)
        series.append(Series("", [position], height, ORANGE, shape=1, filled=True, hint=hint))
    return chart([Panel(series, *labels, from_zero="x")])[0]


# The values at both ends of an axis, and its length: a linear scale, from 0 to the length.
_Scale: TypeAlias = tuple[float, float, float]


def _place(scale: _Scale, values: ArrayLike) -> Floats:
    """Return the coordinates of values on an axis."""
    low, high, size = scale
    return np.asarray((np.asarray(values, float) - low) / (high - low) * size)


def _ticks(scale: _Scale) -> list[float]:
    """Return about five round numbers of an axis."""
    low, high, _ = scale
    step = 10.0 ** floor(log10((high - low) / 2))
    steps = (step * multiple for multiple in (0.1, 0.2, 0.5, 1, 2, 5))
    step = min(steps, key=lambda size: abs((high - low) / size - 4.5))
    return [
        round(step * k, 10) for k in range(ceil(low / step - 1e-9), floor(high / step + 1e-9) + 1)
    ]


def _scale(panel: Panel, axis: str, size: float) -> _Scale:
    """Return the scale of an axis: its given span, or one that all finite values fit on."""
    if axis in panel.spans:
        return (*panel.spans[axis], size)
    arrays = [np.zeros(int(axis in panel.from_zero))]
    for series in panel.series:
        values = np.asarray(series.x if axis == "x" else series.y, float)
        below, above = (np.zeros(1),) * 2 if axis == "x" else _reach(series)
        arrays += [values - below, values + above]
        if series.outline is not None:
            arrays.append(series.outline[:, "xy".index(axis)])
    shown = np.concatenate([np.ravel(ends) for ends in arrays])
    shown = shown[np.isfinite(shown)]
    low, high = (float(shown.min()), float(shown.max())) if len(shown) else (0.0, 1.0)
    if axis in panel.from_zero:
        low = 0.0
    room = 0.05 * (high - low) or 0.5
    return low if axis in panel.from_zero else low - room, high + room, size


def _panel(panel: Panel) -> Iterator[str]:
    """Yield the SVG of a panel: frame, grid, labels, and its series clipped to the frame."""
    x, y = _scale(panel, "x", WIDTH), _scale(panel, "y", HEIGHT)
    yield f'<rect class="frame" width="{WIDTH}" height="{HEIGHT}"/>'
    for tick, position in zip(_ticks(x), _place(x, _ticks(x)), strict=True):
        yield f'<line class="grid" x1="{position:.1f}" x2="{position:.1f}" y2="{HEIGHT}"/>'
        yield f'<text x="{position:.1f}" y="{HEIGHT + 14}" text-anchor="middle">{tick:g}</text>'
    for tick, position in zip(_ticks(y), HEIGHT - _place(y, _ticks(y)), strict=True):
        yield f'<line class="grid" x2="{WIDTH}" y1="{position:.1f}" y2="{position:.1f}"/>'
        yield f'<text x="-5" y="{position + 4:.1f}" text-anchor="end">{tick:g}</text>'
    middle = f'x="{WIDTH / 2}" text-anchor="middle"'
    yield f'<text {middle} y="{HEIGHT + 32}">{escape(panel.x_label)}</text>'
    yield f'<text {middle} y="-8" class="title">{escape(panel.title)}</text>'
    turned = f'transform="translate(-42 {HEIGHT / 2}) rotate(-90)" text-anchor="middle"'
    yield f"<text {turned}>{escape(panel.y_label)}</text>"
    yield f'<svg width="{WIDTH}" height="{HEIGHT}">'  # clips what lies outside the frame
    for series in panel.series:
        yield _group("".join(_series(series, x, y)), series)
    yield "</svg>"


def _group(content: str, series: Series) -> str:
    """Return a drawing with the tags of its series, if it has any."""
    tags = "".join(f' data-{name}="{escape(value)}"' for name, value in series.tags.items())
    return f"<g{tags}>{content}</g>" if tags else content


def _reach(series: Series) -> tuple[Floats, Floats]:
    """Return how far a band reaches below and above the line."""
    band = np.asarray(0.0 if series.band is None else series.band, float)
    below, above = np.broadcast_to(band, (2, *np.shape(series.y)))
    return below, above


def _series(series: Series, x: _Scale, y: _Scale) -> Iterator[str]:
    """Yield the SVG of a series: outline, band, line, markers and label."""
    across = _place(x, series.x)
    up = HEIGHT - _place(y, series.y)
    colour = f'stroke="{series.colour}"'
    if series.outline is not None:
        path = _path(_place(x, series.outline[:, 0]), HEIGHT - _place(y, series.outline[:, 1]))
        opacity = 0.9 if series.filled else 0.3
        yield f'<path d="{path}z" fill="none" {colour}{_dash(series)} opacity="{opacity}"/>'
    if series.band is not None:
        below, above = (reach / (y[1] - y[0]) * HEIGHT for reach in _reach(series))
        path = _path(np.r_[across, across[::-1]], np.r_[up - above, (up + below)[::-1]])
        yield f'<path d="{path}z" fill="{series.colour}" opacity=".12"/>'
    if series.lined:
        yield f'<path d="{_path(across, up)}" fill="none" {colour}{_dash(series)}/>'
    if series.marked:
        hint = f"<title>{escape(series.hint or series.name)}</title>"
        for left, top in zip(across, up, strict=True):
            if np.isfinite([left, top]).all():
                where = f'transform="translate({left:.1f} {top:.1f})"'
                yield f"<g {where}>{_marker(series)}{hint}</g>"
    if series.label and len(across):
        attributes = f'x="{across[0] - 6:.1f}" y="{up[0] - 5:.1f}" text-anchor="end"'
        attributes += f' fill="{series.colour}"'
        yield f'<text class="letter" {attributes}>{escape(series.label)}</text>'


def _dash(series: Series) -> str:
    """Return the dashes of a line; there are as many patterns as can be distinguished."""
    dashes = _DASHES[int(series.dashed) % len(_DASHES)]
    return f' stroke-dasharray="{dashes}"' if dashes else ""


def _path(across: Floats, up: Floats) -> str:
    is_known = np.isfinite(across) & np.isfinite(up)
    points = (f"{a:.1f} {u:.1f}" for a, u in zip(across[is_known], up[is_known], strict=True))
    return "M" + "L".join(points) if is_known.any() else "M0 0"


def _marker(series: Series) -> str:
    shape = _SHAPES[series.shape % len(_SHAPES)]
    fill = series.colour if series.filled else "#fff"
    opacity = "" if series.filled else ' fill-opacity=".6"'
    return f'<path d="{shape}" fill="{fill}" stroke="{series.colour}"{opacity}/>'


def _key(series: Series, texts: Sequence[str]) -> str:
    """Return an entry of the key in SVG: line and marker of a series, and lines of text."""
    line = f'<path d="M-11 0H11" fill="none" stroke="{series.colour}"{_dash(series)}/>'
    line = line if series.lined or series.outline is not None else ""
    marker = _marker(series) if series.marked else ""
    lines = (
        f'<text x="14" y="{4 + _ROW * i}">{escape(text)}</text>' for i, text in enumerate(texts)
    )
    return f"{line}{marker}{''.join(lines)}"


def with_styles(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table of runs with names, colours, markers, and letters for the non-dominated."""
    varying = [name for name in ("learner", "method") if table[name].nunique() > 1] or ["method"]
    kind = list(map(", ".join, zip(*(table[name] for name in varying), strict=True)))
    rows = list(zip(table["run"], table["dominated"], table["gap"], table["error"], strict=True))
    best = [
        i for i, (_, is_dominated, gap, _) in enumerate(rows) if not (is_dominated or isnan(gap))
    ]
    ordered = dict.fromkeys(rows[i][0] for i in sorted(best, key=lambda i: float(rows[i][3])))
    letters = dict(zip(ordered, ascii_lowercase, strict=False))
    interventions = [name for name in dict.fromkeys(table["intervention"]) if name != "none"]
    colours = {"none": _BLACK, **_cycled(interventions, _RUNS)}
    markers = _cycled(dict.fromkeys(kind), MARKERS)
    return table.assign(
        kind=kind,
        best=np.isin(np.arange(len(rows)), best),
        letter=[letters.get(run, np.nan) for run, *_ in rows],
        colour=[colours[name] for name in table["intervention"]],
        marker=[markers[name] for name in kind],
    )


def _cycled(names: Any, styles: Sequence[str]) -> dict[str, str]:
    return {name: styles[i % len(styles)] for i, name in enumerate(names)}


def letters_text(letters: Sequence[str]) -> str:
    """Return sorted letters in a few characters: ``a-d,f``."""
    runs: list[list[str]] = []
    for letter in letters:
        if runs and ord(letter) == ord(runs[-1][-1]) + 1:
            runs[-1].append(letter)
        else:
            runs.append([letter])
    short = (f"{run[0]}-{run[-1]}" if len(run) > 2 else ",".join(run) for run in runs)
    return ",".join(short)


def near_letters(rows: Sequence[Mapping[str, Any]], reach: Floats) -> dict[int, str]:
    """Return the letters of points, those near each other together at the first of them.

    Parameters
    ----------
    rows : the points, with their ``error``, ``gap`` and ``letter``.
    reach : (2,) the distances of error and of gap within which points are near.

    Returns
    -------
    Position of a row -> the letters that stand at it.
    """
    places = np.array([[row["error"], row["gap"]] for row in rows])
    letters: dict[int, list[str]] = {}
    for i, row in enumerate(rows):
        nearby = (k for k in letters if (np.abs(places[i] - places[k]) < reach).all())
        letters.setdefault(next(nearby, i), []).append(str(row["letter"]))
    return {i: letters_text(sorted(together)) for i, together in letters.items()}


def outline_of(row: Mapping[str, Any]) -> Floats:
    """Return the ellipse (48, 2) that holds 95 % of a normal of a row's error and gap."""
    covariance = row["covariance"]
    matrix = [[row["error_variance"], covariance], [covariance, row["gap_variance"]]]
    values, vectors = np.linalg.eigh(matrix)
    # The quantile of a chi-squared variable with two degrees of freedom.
    reach = np.sqrt(np.maximum(values, 0) * -2 * np.log(0.05))
    turn = np.linspace(0, 2 * np.pi, 48, endpoint=False)
    circle = np.stack([np.cos(turn), np.sin(turn)], axis=1)
    outline: Floats = np.array([row["error"], row["gap"]]) + (circle * reach) @ vectors.T
    return outline
