"""Small charts drawn as SVG text, which is much faster than matplotlib for a page of hundreds.

Begin with `chart`; `tradeoff_chart` is error against gaps, and `png_of` makes a picture of any.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, floor, isnan, log10
from pathlib import Path
from textwrap import wrap
from typing import Any, BinaryIO, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from fairbench.core.arrays import Floats
from fairbench.core.errors import check_choice
from fairbench.core.text import html as escape
from fairbench.core.text import number, visible, with_interval
from fairbench.metrics.registry import label as metric_label

# Okabe and Ito's colours, distinguishable with common colour blindness. In black and white, markers
# and dashes distinguish the series.
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#5a5a5a"
COLOURS = (BLUE, ORANGE, GREEN, "#CC79A7", "#E69F00", "#56B4E9", GREY, "black")
*_RUNS, _BLACK = COLOURS

NAN = float("nan")
_WIDTH, _HEIGHT = 300, 200  # of a panel's frame
_NAMED_ROW, _MARKED_ROW = 14, 9  # of the rows of a panel with names
_LEFT, _TOP, _RIGHT, _BOTTOM = 58, 24, 16, 44
_NAMES = 152  # in place of the left, of a panel whose rows have names
PANEL = _LEFT + _WIDTH + _RIGHT  # of a panel with its axes
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
    ends : where a level line through each point begins and ends, (n, 2).
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
    ends: Floats | None = None
    hint: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Panel:
    """Series on one pair of axes.

    Attributes
    ----------
    from_zero : the axes that begin at 0.
    spans : the limits of an axis, ``x`` or ``y``, if not all that is drawn must fit.
    names : the names of the rows at y = 0, 1 and so on, the first on top, in place of numbers.
    """

    series: Sequence[Series]
    x_label: str
    y_label: str
    title: str = ""
    from_zero: str = "xy"
    spans: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    names: Sequence[str] = ()

    @property
    def height(self) -> float:
        """How high its frame is: of rows with names, as high as names and markers need."""
        if not len(self.names):
            return _HEIGHT
        places = {place for series in self.series for place in np.ravel(series.y)}
        return max(_HEIGHT, _NAMED_ROW * len(self.names), _MARKED_ROW * len(places))


def key_of(panels: Sequence[Panel]) -> list[Series]:
    """Return the first series of each name, for a key of several panels."""
    first = {one.name: one for panel in reversed(panels) for one in reversed(panel.series)}
    return [one for name, one in reversed(first.items()) if name]


def chart(panels: Sequence[Panel], *, key: Sequence[Series] = ()) -> list[str]:
    """Return each panel as a drawing in SVG, and last a key of the series.

    Each is as wide as a phone: a page sets as many side by side as there is room for.
    """
    heights = [_TOP + panel.height + _BOTTOM for panel in panels]
    drawings = [*map(_svg_drawing, map("".join, map(_panel, panels)), heights)]
    if key:
        parts = []
        top = 12
        for series in key:
            texts = wrap(series.name.replace("_", " "), _KEY_WIDTH) or [""]
            entry_group = f'<g transform="translate(12 {top})">{_key(series, texts)}</g>'
            parts.append(_group(entry_group, series))
            top += _ROW * len(texts)
        drawings.append(_svg_drawing("".join(parts), top))
    return drawings


def _svg_drawing(content: str, height: float) -> str:
    """Return SVG elements as a drawing of this height and the width of a panel."""
    return f'<svg class="chart" role="img" viewBox="0 0 {PANEL} {height:.0f}">{content}</svg>'


STYLE_SHEET = (  # of drawings in a page
    "text{font:11px system-ui,'DejaVu Sans',sans-serif;fill:#1a1a1a}.title{font-weight:600}"
    ".frame{fill:none;stroke:#595959}path{stroke-width:1.3}"
    ".grid{stroke:#d5d5d5;stroke-width:.5}.range{stroke:#1a1a1a;stroke-width:2.5}"
)


class Drawing(str):
    """A figure as the text of an SVG file that needs nothing else; a notebook shows it."""

    __slots__ = ()

    def _repr_svg_(self) -> str:
        """Return the figure as a notebook shows it."""
        return str(self)

    def savefig(self, file: str | Path | BinaryIO, format: str = "") -> None:
        """Write the figure as SVG or PNG, by the format or else by the ending of the file's name.

        Raises
        ------
        UserError : another format.
        """
        kind = format or Path(str(file)).suffix.removeprefix(".")
        check_choice("format of a figure", kind, ("png", "svg"))
        content = png_of(self) if kind == "png" else self.encode(errors="backslashreplace")
        if isinstance(file, str | Path):
            Path(file).write_bytes(content)
        else:
            file.write(content)


def drawn(panels: Sequence[Panel], title: str = "") -> Drawing:
    """Return panels and one key of all as a figure, in rows of two drawings."""
    drawings = chart(panels, key=key_of(panels))
    return file_of(drawings, title=title, across=min(len(drawings), 2))


def file_of(drawings: Sequence[str], *, title: str = "", across: int = 1) -> Drawing:
    """Return drawings of a figure as an SVG file that needs nothing else.

    Parameters
    ----------
    title : what stands above them.
    across : how many drawings are beside one another.
    """
    lines = wrap(title, _KEY_WIDTH * across)
    parts = [
        f'<text x="12" y="{_ROW * i}" class="title">{escape(line)}</text>'
        for i, line in enumerate(lines, start=1)
    ]
    top = bottom = _ROW * (len(lines) + bool(lines))
    for index, drawing in enumerate(drawings):
        left = index % across * PANEL
        top = top if left else bottom
        height = int(re.search(r'viewBox="0 0 \d+ (\d+)"', drawing)[1])  # type: ignore[index]
        placed = f'<svg x="{left}" y="{top}" width="{PANEL}" height="{height}"'
        parts.append(drawing.replace("<svg", placed, 1))
        bottom = max(bottom, top + height)
    width = PANEL * across
    box = f'width="{width}" height="{bottom}" viewBox="0 0 {width} {bottom}"'
    ground = '<rect width="100%" height="100%" fill="#fff"/>'
    style = f"<style>{STYLE_SHEET}</style>"
    root = f'<svg xmlns="http://www.w3.org/2000/svg" {box}>'
    return Drawing(f"{root}{style}{ground}{''.join(parts)}</svg>")


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
            y = top + 3
            elements.append(f'<line class="grid" x1="0" x2="{PANEL}" y1="{y}" y2="{y}"/>')
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
    return _svg_drawing("".join(elements), top + 18)


def _estimate(
    estimate: Estimate, at: Callable[[float], float], top: float, decimals: int
) -> Iterator[str]:
    """Draw a name, its numbers at the other end of the line, and below the interval."""
    name, value, lower, upper = estimate
    numbers = with_interval(value, lower, upper, decimals)
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
    first, last = ceil(low / step - 1e-9), floor(high / step + 1e-9)
    return [round(step * k, 10) for k in range(first, last + 1)]


def _scale(panel: Panel, axis: str, size: float) -> _Scale:
    """Return the scale of an axis: its given span, or one that all finite values fit on."""
    if axis == "y" and len(panel.names):
        return len(panel.names) - 0.5, -0.5, size
    if axis in panel.spans:
        return (*panel.spans[axis], size)
    arrays = [np.zeros(int(axis in panel.from_zero))]
    for series in panel.series:
        values = np.asarray(series.x if axis == "x" else series.y, float)
        below, above = (np.zeros(1),) * 2 if axis == "x" else _reach_of(series)
        arrays += [values - below, values + above]
        if series.outline is not None:
            arrays.append(series.outline[:, "xy".index(axis)])
        if series.ends is not None and axis == "x":
            arrays.append(series.ends)
    shown = np.concatenate([np.ravel(ends) for ends in arrays])
    shown = shown[np.isfinite(shown)]
    low, high = (float(shown.min()), float(shown.max())) if len(shown) else (0.0, 1.0)
    if axis in panel.from_zero:
        low = 0.0
    room = 0.05 * (high - low) or 0.5
    return low if axis in panel.from_zero else low - room, high + room, size


def _panel(panel: Panel) -> Iterator[str]:
    """Yield the SVG of a panel: frame, grid, labels, and its series clipped to the frame."""
    left = _NAMES if len(panel.names) else _LEFT
    width = PANEL - left - _RIGHT
    height = panel.height
    x, y = _scale(panel, "x", width), _scale(panel, "y", height)
    ticks = {tick: f"{tick:g}" for tick in ([] if len(panel.names) else _ticks(y))}
    ticks |= {place: shorten_name(str(name), 26) for place, name in enumerate(panel.names)}
    yield f'<g transform="translate({left} {_TOP})">'
    yield f'<rect class="frame" width="{width}" height="{height}"/>'
    for tick, position in zip(_ticks(x), _place(x, _ticks(x)), strict=True):
        yield f'<line class="grid" x1="{position:.1f}" x2="{position:.1f}" y2="{height}"/>'
        yield f'<text x="{position:.1f}" y="{height + 14}" text-anchor="middle">{tick:g}</text>'
    for text, position in zip(ticks.values(), height - _place(y, [*ticks]), strict=True):
        yield f'<line class="grid" x2="{width}" y1="{position:.1f}" y2="{position:.1f}"/>'
        yield f'<text x="-5" y="{position + 4:.1f}" text-anchor="end">{escape(text)}</text>'
    middle = f'x="{width / 2:g}" text-anchor="middle"'
    under = f'x="{PANEL / 2 - left:g}" text-anchor="middle"' if len(panel.names) else middle
    for row, line in enumerate(wrap(panel.x_label, _KEY_WIDTH)):
        yield f'<text {under} y="{height + 28 + 12 * row}">{escape(line)}</text>'
    yield f'<text {middle} y="-8" class="title">{escape(panel.title)}</text>'
    turned = f'transform="translate({16 - left} {height / 2}) rotate(-90)" text-anchor="middle"'
    yield f"<text {turned}>{escape(panel.y_label)}</text>"
    yield f'<svg width="{width}" height="{height}">'  # clips what lies outside the frame
    for series in panel.series:
        yield _group("".join(_series(series, x, y)), series)
    yield "</svg></g>"


def _group(content: str, series: Series) -> str:
    """Return a drawing with the tags of its series, if it has any."""
    tags = "".join(f' data-{name}="{escape(value)}"' for name, value in series.tags.items())
    return f"<g{tags}>{content}</g>" if tags else content


def _reach_of(series: Series) -> tuple[Floats, Floats]:
    """Return how far a band reaches below and above the line."""
    band = np.asarray(0.0 if series.band is None else series.band, float)
    below, above = np.broadcast_to(band, (2, *np.shape(series.y)))
    return below, above


def _series(series: Series, x: _Scale, y: _Scale) -> Iterator[str]:
    """Yield the SVG of a series: outline, band, line, markers and label."""
    across = _place(x, series.x)
    height = y[2]
    up = height - _place(y, series.y)
    colour = f'stroke="{series.colour}"'
    if series.outline is not None:
        path = _path(_place(x, series.outline[:, 0]), height - _place(y, series.outline[:, 1]))
        opacity = 0.9 if series.filled else 0.3
        yield f'<path d="{path}z" fill="none" {colour}{_dash(series)} opacity="{opacity}"/>'
    if series.band is not None:
        below, above = (reach / (y[1] - y[0]) * height for reach in _reach_of(series))
        path = _path(np.r_[across, across[::-1]], np.r_[up - above, (up + below)[::-1]])
        yield f'<path d="{path}z" fill="{series.colour}" opacity=".12"/>'
    if series.lined:
        yield f'<path d="{_path(across, up)}" fill="none" {colour}{_dash(series)}/>'
    for (start, end), top in zip([] if series.ends is None else series.ends, up, strict=False):
        yield f'<path d="{_path(_place(x, [start, end]), np.array([top, top]))}" {colour}/>'
    if series.marked:
        hint = f"<title>{escape(series.hint or series.name)}</title>"
        for left, top in zip(across, up, strict=True):
            if np.isfinite([left, top]).all():
                where = f'transform="translate({left:.1f} {top:.1f})"'
                yield f"<g {where}>{_marker(series)}{hint}</g>"


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
    heights = enumerate(map(escape, texts))
    lines = (f'<text x="14" y="{4 + _ROW * i}">{text}</text>' for i, text in heights)
    return f"{line}{marker}{''.join(lines)}"


_DOTS = 220  # per inch
_INCHES = 5.2  # inches, of a drawing as wide as a panel
_FONTS = ("DejaVuSans.ttf", "DejaVuSans-Bold.ttf")


def png_of(svg: str) -> bytes:
    """Return a drawing as PNG.

    Raises
    ------
    ValueError : it is no drawing with a ``viewBox``.
    """
    import matplotlib
    import resvg_py

    text = visible(svg, lines=True)  # labels may hold any sign
    box = re.match(r"<svg\b[^>]*\bviewBox=[\"'](?:[-\d.]+ ){2}([\d.]+) [\d.]+[\"']", text)
    if box is None:
        raise ValueError("this is no drawing with a viewBox")
    inches = _INCHES * min(max(float(box[1]) / PANEL, 0.5), 2)
    if "xmlns=" not in text:
        text = text.replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"', 1)
    fonts = Path(matplotlib.get_data_path(), "fonts", "ttf")
    looks: dict[str, Any] = {
        "background": "white",
        "style_sheet": STYLE_SHEET,
        "skip_system_fonts": True,
    }
    looks["font_files"] = [str(fonts / name) for name in _FONTS]
    try:
        return bytes(resvg_py.svg_to_bytes(text, width=round(inches * _DOTS), **looks))
    except ValueError as error:
        raise ValueError("this is no drawing that can be drawn") from error


# Error against gaps between groups: a point with its ellipse for every run.


def tradeoff_chart(table: pd.DataFrame, curve: pd.DataFrame, base: str) -> list[str]:
    """Return a panel for each metric; points that none dominates are filled.

    A metric that is undefined for all runs has no panel.

    Parameters
    ----------
    table : the result of :func:`fairbench.inference.comparing.point_table`.
    curve : the result of :func:`fairbench.inference.comparing.frontier`.
    base : the name of the model that the curve was made from.
    """
    rows = _with_styles(table)
    line: dict[str, Any] = {"colour": _BLACK, "filled": True}
    panels = []
    for metric in dict.fromkeys(row["metric"] for row in rows if not isnan(row["gap"])):
        of_metric = [row for row in rows if row["metric"] == metric and not isnan(row["gap"])]
        series = [_point(row) for row in sorted(of_metric, key=lambda row: bool(row["best"]))]
        if len(curve):
            limits = curve[curve["constraint"] == metric].sort_values("relaxation")
            if len(limits):
                series.append(Series(base, limits["error"], limits["gap"], **line))
        panels.append(Panel(series, "error rate", f"{metric_label(metric)} gap", from_zero="y"))
    runs: dict[str, dict[str, Any]] = {}
    for row in rows:
        runs.setdefault(row["run"], row)
    key = [_point(row) for row in sorted(runs.values(), key=lambda row: not row["best"])]
    if base:
        name = f"{base}, a threshold per group, from unprocessed to parity"
        key.append(Series(name, [], [], **line))
    return chart(panels, key=key)


def _with_styles(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows with their looks, and whether none dominates each."""
    varying = [name for name in ("learner", "method") if table[name].nunique() > 1] or ["method"]
    kind, intervention = table[varying].agg(", ".join, axis=1), table["intervention"]
    processed = intervention[intervention != "none"].unique()
    colours = {name: _RUNS[i % len(_RUNS)] for i, name in enumerate(processed)}
    looks = {"shape": pd.factorize(kind)[0], "dashed": pd.factorize(intervention)[0]}
    looks |= {"colour": intervention.map(colours).fillna(_BLACK), "kind": kind}
    best = ~(table["dominated"].astype(bool) | table["gap"].isna())
    return table.assign(best=best, **looks).to_dict("records")


def _point(row: Mapping[str, Any]) -> Series:
    """Return a run as a point: its marker shows the kind, colour and dashes the intervention."""
    name = f"{row['intervention']}, {row['kind']}"
    return Series(
        name,
        [row["error"]],
        [row["gap"]],
        **{look: row[look] for look in ("colour", "shape", "dashed")},
        filled=row["best"],
        lined=False,
        outline=None if isnan(row["gap"]) else _outline_of(row),
        hint=f"{name}: error {number(row['error'])}, gap {number(row['gap'])}",
    )


def _outline_of(row: Mapping[str, Any]) -> Floats:
    """Return the ellipse (48, 2) that holds 95 % of a normal of a row's error and gap."""
    covariance = row["covariance"]
    matrix = [[row["error_variance"], covariance], [covariance, row["gap_variance"]]]
    values, vectors = np.linalg.eigh(matrix)
    # The quantile of a chi-squared variable with two degrees of freedom.
    reach = np.sqrt(np.maximum(values, 0) * -2 * np.log(0.05))
    turn = np.linspace(0, 2 * np.pi, 48, endpoint=False)
    circle = np.stack([np.cos(turn), np.sin(turn)], axis=1)
    return np.array([row["error"], row["gap"]]) + (circle * reach) @ vectors.T
