"""A drawing in SVG as PNG, for files that hold no SVG, such as Word's.

The resvg library draws it with the letters that matplotlib brings along, so that the same drawing
looks the same on every machine.
"""

from __future__ import annotations

import re
from pathlib import Path

from fairbench.core.formats import visible
from fairbench.reporting.charts import STYLE_SHEET

_DOTS = 220  # per inch
_WIDTH = 5.2  # inches, of a drawing as wide as a panel
_PANEL = 374.0  # units
_FONTS = ("DejaVuSans.ttf", "DejaVuSans-Bold.ttf")
# Drawings of a hundred units have finer marks.
_SMALL = (
    ".range{stroke:#0072b2;stroke-width:1.5}.frame{stroke:#d5d5d5;stroke-width:.5;fill:none}"
    "circle{fill:#0072b2}"
)


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
    is_small = 'class="chart"' not in text
    inches = _WIDTH if float(box[1]) >= _PANEL / 2 else _WIDTH / 2
    with_namespace = text.replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"', 1)
    try:
        return bytes(
            resvg_py.svg_to_bytes(
                svg_string=with_namespace if "xmlns=" not in text else text,
                width=round(inches * _DOTS),
                background="white",
                style_sheet=STYLE_SHEET + _SMALL if is_small else STYLE_SHEET,
                skip_system_fonts=True,
                font_files=[
                    str(Path(matplotlib.get_data_path(), "fonts", "ttf", name)) for name in _FONTS
                ],
            )
        )
    except ValueError as error:
        raise ValueError("this is no drawing that can be drawn") from error
