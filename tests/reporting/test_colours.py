"""Pages and figures can be read by the colour-blind and in black and white, text in 80 columns."""

import itertools
import re

import numpy as np
import pytest

from fairbench.audits.kinds import document_of
from fairbench.reporting.charts import COLOURS, Panel, Series, chart
from fairbench.reporting.document.model import Document
from fairbench.reporting.document.writing import to_html
from fairbench.reporting.page import MOST_DRAWN
from fairbench.reporting.panels import method_styles
from tests.audits.tables import parse, predictions
from tests.harness import printed

# Machado, Oliveira and Fernandes 2009, full severity, of linear RGB.
SEEN = {
    "normal": np.eye(3),
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
                     [-0.011820, 0.042940, 0.968881]],
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
                   [-0.003882, -0.048116, 1.051998]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602],
                   [0.004733, 0.691367, 0.303900]],
}  # fmt: skip
_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
_NAMES = {"black": "#000000", "white": "#ffffff"}


def linear(colour):
    """Return a colour written #rrggbb or #rgb as linear RGB."""
    text = _NAMES.get(colour, colour)[1:]
    text = "".join(2 * digit for digit in text) if len(text) == 3 else text
    value = np.array([int(text[i : i + 2], 16) for i in (0, 2, 4)]) / 255
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def lab(rgb):
    """Return linear RGB in CIE L*a*b*, in which distances are as they are seen."""
    xyz = _XYZ @ np.clip(rgb, 0, 1) / np.array([0.9505, 1, 1.089])
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def contrast(one, other):
    """Return the contrast of two colours as the Web Content Accessibility Guidelines define it."""
    low, high = sorted(float(linear(colour) @ _XYZ[1]) for colour in (one, other))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("seen", SEEN)
def test_colours_are_told_apart(seen):
    """A distance of 2.3 is just noticed; 15 is plain."""
    colours = [lab(np.array(SEEN[seen]) @ linear(colour)) for colour in COLOURS]
    for one, other in itertools.combinations(colours, 2):
        assert np.linalg.norm(one - other) > 15


def looks(svg):
    """Return marker and dashes of every entry of a key, without its colour."""
    entries = re.findall(r'<g transform="translate\(12 \d+\)">(.*?)</g>', svg)
    return [re.sub(r'stroke="[^"]*"|fill="[^"]*"|<text.*', "", entry) for entry in entries]


def test_in_black_and_white_no_two_methods_look_alike():
    styles = method_styles([f"m{i}" for i in range(MOST_DRAWN)])
    series = [Series(name, [0, 1], [0, 1], **style) for name, style in styles.items()]
    dashed = [Series(f"g{i}", [0, 1], [0, 1], "black", marked=False, dashed=i) for i in range(6)]
    for several in (series, dashed):
        *_, key = chart([Panel(several, "x", "y")], key=several)
        assert len(looks(key)) == len(several) == len(set(looks(key)))


def test_words_on_a_page_stand_out_from_their_ground():
    css = to_html(Document("t", []))
    variables = dict(re.findall(r"--(\w+): (#\w+)", css))
    colour = r"(#\w+|var[^;}]+)"
    rules = re.findall(rf"\.([\w.-]+) {{ background: {colour};[^}}]*?(?<!-)color: {colour}", css)
    assert len(rules) >= 5
    for name, *both in rules:
        ground, ink = (
            variables[colour[6:-1]] if colour.startswith("var") else colour.strip()
            for colour in both
        )
        assert contrast(ground, ink) >= 4.5, name
    for name in ("ink", "faint", "blue", "orange"):
        assert contrast(variables[name], "#ffffff") >= 4.5


def test_every_verdict_is_a_word_and_no_colour_alone_and_fits_into_eighty_columns():
    frame = predictions(800, bias=0.2).astype(str)
    options = parse(["p.csv", "target=label", "score=score", "group=[sex,race]"])
    document = document_of(options, frame)
    for mark, words in re.findall(r'<span class="mark (\w+)">(.*?)</span>', to_html(document)):
        assert mark in words
    assert max(len(line.rstrip()) for line in printed(document, 80).splitlines()) <= 80
