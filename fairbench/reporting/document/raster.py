"""A drawing in SVG as PNG, for files that hold no SVG, such as Word's.

Only what :mod:`fairbench.reporting.charts` draws with is known: lines, rectangles, circles, texts
and paths of straight lines and half circles, in groups that are moved or turned, and drawings
within a drawing. Matplotlib draws them, so that the same drawing looks the same on every machine.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import atan2, cos, pi, sin
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from fairbench.core.formats import visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.transforms import Affine2D, Transform

_DOTS = 220  # an inch
_WIDTH = 5.2  # inches, of a drawing as wide as a panel
_PANEL = 374.0  # units
_LETTER = 11.0  # units
_INK, _FAINT, _LINE, _BLUE = "#1a1a1a", "#595959", "#d5d5d5", "#0072b2"
# How a page's style has the classes of drawings look.
_CLASSES: Mapping[str, Mapping[str, str]] = {
    "frame": {"stroke": _FAINT, "fill": "none"},
    "grid": {"stroke": _LINE, "stroke-width": ".5"},
    "range": {"stroke": _INK, "stroke-width": "2.5"},
    "ideal": {"stroke": _FAINT, "stroke-dasharray": "3 3"},
    "title": {"font-weight": "700"},
    "letter": {"font-size": "13", "font-weight": "700"},
}
_TAGS: Mapping[str, Mapping[str, str]] = {
    "circle": {"fill": _INK},
    "rect": {"fill": _INK},
    "path": {"stroke-width": "1.3"},
    "text": {"fill": _INK},
}
# Drawings of a hundred units, whose marks are finer.
_SMALL: Mapping[str, Mapping[str, str]] = {
    "range": {"stroke": _BLUE, "stroke-width": "1.5"},
    "frame": {"stroke": _LINE, "stroke-width": ".5", "fill": "none"},
    "circle": {"fill": _BLUE},
}


def png_of(svg: str) -> bytes:
    """Return a drawing as PNG.

    Raises
    ------
    ValueError : it is no drawing with a ``viewBox``.
    """
    from matplotlib.figure import Figure

    try:
        root = ElementTree.fromstring(visible(svg, lines=True))  # labels may hold any sign
        left, top, width, height = map(float, root.attrib["viewBox"].split())
    except (ElementTree.ParseError, KeyError, ValueError) as error:
        raise ValueError("this is no drawing with a viewBox") from error
    inches = _WIDTH if width >= _PANEL / 2 else _WIDTH / 2
    figure = Figure((inches, inches * height / width), dpi=_DOTS)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    axes.set(xlim=(left, left + width), ylim=(top + height, top))
    drawing = _Drawing(axes, 72 * inches / width, is_small="chart" not in _classes(root))
    drawing.draw_all(root)
    content = io.BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")  # letters that the font lacks are boxes
        figure.savefig(content, format="png", metadata={"Software": None})
    return content.getvalue()


def _classes(element: ElementTree.Element) -> list[str]:
    return element.attrib.get("class", "").split()


@dataclass(frozen=True, eq=False)
class _Drawing:
    """What is drawn on.

    Attributes
    ----------
    points : of a unit of the drawing. is_small : whether its marks are the finer ones.
    """

    axes: Axes
    points: float
    is_small: bool

    def draw_all(self, parent: ElementTree.Element, moved: Transform | None = None) -> None:
        """Draw what stands in an element."""
        from matplotlib.transforms import Affine2D

        for element in parent:
            tag = element.tag.rpartition("}")[2]
            if tag in ("g", "svg"):
                own = Affine2D()
                for step in _steps(element.attrib.get("transform", "")):
                    own = step(own)
                self.draw_all(element, own if moved is None else own + moved)
            elif tag in _SHAPES_OF:
                self._draw(tag, element, Affine2D() if moved is None else moved)

    def _draw(self, tag: str, element: ElementTree.Element, moved: Transform) -> None:
        from matplotlib.patches import PathPatch
        from matplotlib.path import Path

        looks = self._looks(tag, element)
        if tag == "text":
            self._write(element, looks, moved)
            return
        vertices = _SHAPES_OF[tag](element.attrib)
        if not vertices:
            return
        points, codes = [], []
        for outline, closed in vertices:
            points += [*outline, *[outline[0]] * closed]
            codes += [Path.MOVETO, *[Path.LINETO] * (len(outline) - 1), *[Path.CLOSEPOLY] * closed]
        dashes = [float(dash) * self.points for dash in looks.get("stroke-dasharray", "").split()]
        width = float(looks.get("stroke-width", 1)) * self.points
        opacity = float(looks.get("opacity", 1))
        patch = PathPatch(
            Path(points, codes),
            facecolor=_colour(looks.get("fill", "none"), looks.get("fill-opacity", "1")),
            edgecolor=looks.get("stroke", "none"),
            linewidth=width if "stroke" in looks else 0,
            linestyle=(0, dashes) if dashes else "solid",
            alpha=None if opacity == 1 else opacity,
            capstyle="butt",
            transform=moved + self.axes.transData,
        )
        self.axes.add_patch(patch)

    def _looks(self, tag: str, element: ElementTree.Element) -> dict[str, str]:
        looks = dict(_TAGS.get(tag, {}))
        for name in _classes(element):
            looks |= _CLASSES.get(name, {})
        if self.is_small:
            looks |= {key: value for name in (tag, *_classes(element))
                      for key, value in _SMALL.get(name, {}).items()}  # fmt: skip
        return looks | {key: value for key, value in element.attrib.items() if key != "class"}

    def _write(
        self, element: ElementTree.Element, looks: Mapping[str, str], moved: Transform
    ) -> None:
        from matplotlib.transforms import Affine2D

        own = Affine2D()
        for step in _steps(element.attrib.get("transform", "")):
            own = step(own)
        places = (float(element.attrib.get(name, 0)) for name in "xy")
        at = own + moved
        matrix = at.get_matrix()
        turned = -atan2(matrix[1, 0], matrix[0, 0]) * 180 / pi
        x, y = at.transform(tuple(places))
        sides = {"middle": "center", "end": "right"}
        self.axes.text(
            x,
            y,
            (element.text or "").replace("$", r"\$"),
            fontsize=float(looks.get("font-size", _LETTER)) * self.points,
            color=looks["fill"],
            family="DejaVu Sans",
            weight=int(looks.get("font-weight", "400")),
            ha=sides.get(looks.get("text-anchor", ""), "left"),
            va="baseline",
            rotation=turned,
            rotation_mode="anchor",
        )


def _colour(name: str, opacity: str) -> Any:
    return name if name == "none" else (name, float(opacity))


def _steps(text: str) -> Iterator[Callable[[Affine2D], Affine2D]]:
    """Yield what is done to a place, the innermost step first."""
    for name, numbers in reversed(re.findall(r"(translate|rotate)\(([^)]*)\)", text)):
        values = [float(number) for number in _NUMBER.findall(numbers)]
        if name == "rotate":
            yield lambda place, by=values[0]: place.rotate_deg(by)  # type: ignore[misc]
        else:
            yield lambda place, by=(*values, 0.0)[:2]: place.translate(*by)  # type: ignore[misc]


_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_STEP = re.compile(rf"([MLHVAZ])|({_NUMBER.pattern})", re.IGNORECASE)
_Outline = tuple[list[tuple[float, float]], bool]


def _line(attributes: Mapping[str, str]) -> list[_Outline]:
    ends = [float(attributes.get(name, 0)) for name in ("x1", "y1", "x2", "y2")]
    return [([(ends[0], ends[1]), (ends[2], ends[3])], False)]


def _rectangle(attributes: Mapping[str, str]) -> list[_Outline]:
    x, y, width, height = (float(attributes.get(name, 0)) for name in ("x", "y", "width", "height"))
    return [([(x, y), (x + width, y), (x + width, y + height), (x, y + height)], True)]


def _circle(attributes: Mapping[str, str]) -> list[_Outline]:
    x, y, radius = (float(attributes.get(name, 0)) for name in ("cx", "cy", "r"))
    angles = [2 * pi * k / _CORNERS for k in range(_CORNERS)]
    return [([(x + radius * cos(a), y + radius * sin(a)) for a in angles], True)]


_CORNERS = 36  # of what is drawn for a circle


def _path(attributes: Mapping[str, str]) -> list[_Outline]:
    """Return the outlines of a path: M, L, H, V, half circles as A, and Z, of either case."""
    outlines: list[_Outline] = []
    points: list[tuple[float, float]] = []
    numbers: list[float] = []
    command, x, y = "", 0.0, 0.0
    needed = {"M": 2, "L": 2, "H": 1, "V": 1, "A": 7}
    for letter, value in _STEP.findall(attributes.get("d", "")):
        if letter:
            command, numbers = letter, []
            if letter in "Zz" and points:
                outlines.append((points, True))
                (x, y), points = points[0], []
            continue
        numbers.append(float(value))
        if len(numbers) < needed[command.upper()]:
            continue
        from_x, from_y = (x, y) if command.islower() else (0.0, 0.0)
        kind, before = command.upper(), (x, y)
        if kind != "V":
            x = from_x + (numbers[0] if kind == "H" else numbers[-2 % len(numbers)])
        if kind != "H":
            y = from_y + numbers[-1]
        if kind == "M":
            if points:
                outlines.append((points, False))
            points, command = [], "l" if command == "m" else "L"
        points = [*points, *(_half_circle(before, (x, y)) if kind == "A" else []), (x, y)]
        numbers = []
    return [*outlines, *[(points, False)] * bool(points)]


def _half_circle(start: tuple[float, float], end: tuple[float, float]) -> list[tuple[float, float]]:
    x, y = (start[0] + end[0]) / 2, (start[1] + end[1]) / 2
    radius, first = abs(complex(end[0] - x, end[1] - y)), atan2(start[1] - y, start[0] - x)
    angles = [first - pi * k / _CORNERS for k in range(1, _CORNERS)]
    return [(x + radius * cos(a), y + radius * sin(a)) for a in angles]


_SHAPES_OF: Mapping[str, Callable[[Mapping[str, str]], list[_Outline]]] = {
    "line": _line,
    "rect": _rectangle,
    "circle": _circle,
    "path": _path,
    "text": lambda attributes: [],
}
