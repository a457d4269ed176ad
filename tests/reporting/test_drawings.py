"""Drawings: charts become pictures with everything in its place, whatever their labels say."""

import io
import re

import numpy as np
import pytest
from matplotlib.image import imread

from fairbench.reporting.charts import forest, png_of


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
