"""Drawings become pictures with everything in its place, which anybody can read.

Colours are those that Okabe and Ito chose for the colour-blind; here it is black and white.
"""

import io
import re

import numpy as np
import pytest
from matplotlib.image import imread

import fairbench
from fairbench.reporting.charts import Panel, Series, chart, forest, png_of
from fairbench.reporting.document.model import Document
from fairbench.reporting.document.writing import to_html
from fairbench.reporting.page import MOST_DRAWN
from fairbench.reporting.panels import method_styles
from tests.audits.tables import predictions

_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
_NAMES = {"black": "#000000", "white": "#ffffff"}


def linear(colour):
    """Return a colour written #rrggbb or #rgb as linear RGB."""
    text = _NAMES.get(colour, colour)[1:]
    text = "".join(2 * digit for digit in text) if len(text) == 3 else text
    value = np.array([int(text[i : i + 2], 16) for i in (0, 2, 4)]) / 255
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def contrast(one, other):
    """Return the contrast of two colours as the Web Content Accessibility Guidelines define it."""
    low, high = sorted(float(linear(colour) @ _XYZ[1]) for colour in (one, other))
    return (high + 0.05) / (low + 0.05)


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
        plain = (variables[each[6:-1]] if each[:3] == "var" else each.strip() for each in both)
        assert contrast(*plain) >= 4.5, name
    for name in ("ink", "faint", "blue", "orange"):
        assert contrast(variables[name], "#ffffff") >= 4.5


def test_every_verdict_is_a_word_and_no_colour_alone():
    frame = predictions(800, bias=0.2)
    page = fairbench.audit(frame, target="label", score="score", groups=["sex", "race"]).to_html()
    marks = re.findall(r'<span class="mark (\w+)">(.*?)</span>', page)
    assert marks and all(mark in words for mark, words in marks)


def dark(image):
    """Return the rows and the columns of an image's dark pixels."""
    return (image[..., :3].sum(axis=2) < 1.2).nonzero()


def test_a_drawing_becomes_a_picture_with_everything_where_it_was():
    svg = (
        '<svg class="chart" viewBox="0 0 400 200"><rect x="100" y="50" width="100" height="50" '
        'fill="#0072b2" opacity=".15"/><g transform="translate(300 100)"><path '
        'd="M-10 0a10 10 0 1 0 20 0a10 10 0 1 0 -20 0" fill="black" stroke="black"/></g>'
        '<line class="range" x1="20" x2="20" y1="10" y2="190"/></svg>'
    )
    image = imread(io.BytesIO(png_of(svg)))
    height, width = image.shape[:2]
    assert width / height == pytest.approx(2, abs=0.01)

    def at(x, y):
        return image[round(y / 200 * height), round(x / 400 * width), :3]

    assert at(150, 75)[2] > at(150, 75)[0] + 0.05  # pale blue
    assert at(90, 75).min() == 1
    assert at(300, 100).max() == 0
    assert at(300, 88).min() == at(288, 100).min() == 1  # outside of the circle
    assert at(308, 100).max() == 0
    assert at(20, 100).max() < 0.2
    assert at(20, 5).min() == 1


def test_texts_of_a_drawing_stand_where_they_did_and_turned_ones_are_turned():
    plain = '<text x="390" y="20" text-anchor="end">1 $ and 2 $ iiiiii</text>'
    turned = '<text transform="translate(20 180) rotate(-90)">iiiiiiiiiiii</text>'
    for text, across in ((plain, True), (turned, False)):
        image = imread(io.BytesIO(png_of(f'<svg viewBox="0 0 400 200">{text}</svg>')))
        rows, columns = dark(image)
        assert (np.ptp(columns) > np.ptp(rows)) == across
    rows, columns = dark(imread(io.BytesIO(png_of(f'<svg viewBox="0 0 400 200">{plain}</svg>'))))
    assert columns.max() / image.shape[1] == pytest.approx(390 / 400, abs=0.01)


@pytest.mark.parametrize("label", ["\x1b[31m\x00 & <b>", "$x_1^2$ $", "女性", "a\u202eb\ud800"])
def test_any_label_can_be_drawn(label):
    svg = forest(label, [[(label, 0.1, 0.05, 0.2)]], span=(0, 1))
    assert len(dark(imread(io.BytesIO(png_of(svg))))[0]) > 100


@pytest.mark.parametrize("text", ["", "<svg/>", "<svg viewBox='0 0 1'/>", "no drawing"])
def test_what_is_no_drawing_is_refused(text):
    with pytest.raises(ValueError, match="no drawing"):
        png_of(text)


def test_a_forest_shades_its_band_and_names_its_end():
    svg = forest("", [[("sex", 0.1, 0.05, 0.2)]], span=(0, 0.4), band=(0, 0.1))
    (width,) = re.findall(r'<rect x="6.0" y="4" width="([\d.]+)"', svg)
    assert float(width) == pytest.approx((374 - 12) / 4)
    assert ">0.1</text>" in svg
    assert "<rect" not in forest("t", [[("sex", 0.1, 0.05, 0.2)]], span=(0, 1))
