"""Comparisons in words, and a matrix of all pairs that stays legible, however many there are."""

import numpy as np
import pandas as pd
import pytest

from fairbench.inference.comparing import Comparison, event_names, highest_density_region
from fairbench.reporting.charts import chart
from fairbench.reporting.comparisons import MATRIX, _lead_panel, pair_document, ranking_document
from tests import harness

ABOUT = {"data": "all", "groups": "sex", "objectives": ("accuracy",)}


def printed(outperforms, ranks, names=None, ids=None):
    """Return the lines of the document of all pairs, and how many matrices it has."""
    runs = len(ranks)
    names, ids = names or ["run"] * runs, ids or ["id"] * runs
    document = ranking_document(outperforms, ranks, names, ids, **ABOUT, certainty=0.95)
    lines = harness.printed(document).splitlines()
    assert MATRIX in lines
    return lines, sum(line.startswith("──") for line in lines) - 1


@pytest.mark.parametrize(("runs", "tables"), [(2, 1), (13, 1), (18, 1), (30, 2)])
def test_a_hundred_columns_hold_every_number_whole(runs, tables):
    lines, result = printed(np.full((runs, runs), 0.995), np.arange(runs))
    assert result == tables
    text = "\n".join(lines)
    assert "…" not in text
    assert text.count(">99") == runs * (runs - 1)
    assert max(map(len, lines)) <= 100


def test_rows_and_columns_are_in_the_order_of_the_ranks_with_ties():
    outperforms = np.array([[np.nan, 0.002, 0.3], [0.98, np.nan, 1.0], [0.6, 0.0, np.nan]])
    lines, _ = printed(outperforms, np.array([2, 1, 2]), ["lr", "svm", "nb"], ["a1", "b2", "c3"])
    # Of the tie the one that the other outperforms with 60 % comes last.
    for row in (["1", "100", "98"], ["2", "0", "60"], ["3", "<1", "30"]):
        assert row in [line.split() for line in lines]
    named = [line.split() for line in lines if line.rstrip().endswith(("a1", "b2", "c3"))]
    assert [row[:2] for row in named] == [["1", "1"], ["2=", "2"], ["2=", "3"]]
    assert [row[2:] for row in named] == [["svm", "b2"], ["nb", "c3"], ["lr", "a1"]]


def test_a_matrix_of_probabilities_says_what_the_rest_is():
    outperforms = np.array([[np.nan, 0.002], [0.94, np.nan]])
    document = ranking_document(outperforms, np.array([1, 1]), "ab", "12", **ABOUT, certainty=0.9)
    ranked, matrix = document.tables
    assert "a probability of 0.9 or more" in ranked.caption
    assert "run 1 outperforms run 2 is 94%, and that run 2 outperforms run 1 is less than 1%" in (
        matrix.caption
    )
    assert "left to 100% is the probability that neither outperforms the other" in matrix.caption


TWO = ("accuracy", "equal_opportunity")
TESTED = "like the 500 rows of the data, 100 of which are tested in 1 repeat"


def document_of(probabilities, objectives=TWO, repeats=1, tested=TESTED, **options):
    """Return the document of two runs with these probabilities."""
    draws = np.random.default_rng(0).normal(scale=0.01, size=(1000, len(objectives)))
    events = pd.DataFrame([probabilities] * repeats)
    observed = np.linspace(0.1, 0.4, 2 * len(objectives)).reshape(2, -1)
    shown = Comparison(objectives, draws, np.full(len(objectives), 0.01))
    about = {"observed": observed, "level": 0.95, "tested": tested, **options}
    return pair_document(["one", "other"], everywhere=events, inside=events, shown=shown, **about)


OPEN = "Not decided: no outcome has the probability of 0.95 that a decision needs.\n"
BETTER = "in at least one metric and worse in none."


def test_a_comparison_of_two_runs_begins_with_its_answer():
    for probabilities, said in (
        ({"A >> B": 0.003, "B >> A": 0.806, "A ~ B": 0.191},
         f"{OPEN}The most probable outcome, with 0.806: B is better {BETTER}"),
        ({"A >> B": 0.97, "B >> A": 0.01, "A ~ B": 0.02},
         f"Decided: A is better {BETTER} The probability is 0.970, and 0.95 is needed."),
        ({"A >> B": 0.1, "A ~ B": 0.2, "B accuracy, A equal_opportunity": 0.7},
         f"{OPEN}The most probable outcome, with 0.700: B is better in accuracy, A in the gap in "
         "true positive rate."),
        ({"A >> B": 0.01, "B >> A": 0.01, "A ~ B": 0.98},
         "Decided: no difference that matters in practice. The probability is 0.980, and 0.95 is "
         "needed."),
    ):  # fmt: skip
        assert document_of(probabilities, tested="").sections[0].blocks[0].text == f"{said}\n"


EVENT = {"A >> B": 0.5, "A ~ B": 0.5}


def test_every_event_has_a_name_of_its_own_in_plain_words():
    for objectives in (("accuracy",), TWO, (*TWO, "disparate_impact")):
        names = event_names(objectives)
        outcomes, _ = document_of(dict.fromkeys(names, 0.1), objectives).tables
        labels = [row[0] for row in outcomes.rows]
        assert len(set(labels)) == len(names)
        assert not any(mark in text for text in labels for mark in (">", "~", "_"))
    event = "A accuracy, B equal_opportunity, A disparate_impact"
    assert labels[names.index(event)] == (
        "A is better in accuracy and the ratio of selection rates, B in the gap in true positive "
        "rate"
    )


def test_a_lead_says_how_it_follows_from_both_values():
    _, differences = document_of(EVENT).tables
    assert [row[:3] for row in differences.rows] == [
        ["accuracy", pytest.approx(0.1), pytest.approx(0.3)],
        ["gap in true positive rate", pytest.approx(0.2), pytest.approx(0.4)],
    ]
    assert (
        "A - B in accuracy (larger is better) and B - A in the gap in true positive rate (smaller "
        "is better); positive if A is better." in differences.caption
    )
    assert "inverse" not in differences.caption
    _, ratio = document_of(EVENT, ("accuracy", "disparate_impact")).tables
    assert "Of a ratio above 1, its inverse is taken." in ratio.caption


def test_probabilities_inside_the_region_are_details():
    titles = [column.title for column in document_of(EVENT).tables[0].columns]
    assert titles == ["outcome", "probability"]
    outcomes, _ = document_of(EVENT, repeats=2, computed="so").tables
    titles = [column.title for column in outcomes.columns]
    assert titles == ["outcome", "probability", "inside the region", "over repeats"]
    assert "region that holds 95% of all draws" in outcomes.caption
    assert "medians of 2 repeats" in outcomes.caption


# The picture of a comparison shows what was computed.


def panel_of(delta, rope=(0.01, 0.02), level=0.95):
    comparison = Comparison(TWO, delta, np.array(rope))
    region = highest_density_region(delta, level)
    return _lead_panel(comparison, region), region


@pytest.fixture(scope="module")
def normal():
    return np.random.default_rng(0).normal([0.01, -0.05], [0.02, 0.05], size=(3000, 2))


def test_lines_are_at_the_rope_and_the_outline_is_that_of_the_region(normal):
    panel, region = panel_of(normal)
    assert panel.x_label == "accuracy: A ahead by"
    assert panel.y_label == "gap in true positive rate: A ahead by"
    *lines, outline = panel.series
    ends = [line.x if line.x[0] == line.x[1] else line.y for line in lines]
    assert ends == [[-0.01] * 2, [0.01] * 2, [-0.02] * 2, [0.02] * 2]
    assert region.density.holds(outline.outline * 0.999 + 0.001 * normal.mean(axis=0)).all()
    for axis, (low, high) in zip("xy", region.bounds, strict=True):
        left, right = panel.spans[axis]
        assert left < low < high < right
    region_drawn = outline.outline.min(axis=0), outline.outline.max(axis=0)
    np.testing.assert_allclose(region_drawn, region.bounds.T, atol=0.02)


@pytest.mark.parametrize(
    ("rope", "level", "constant", "lines"),
    [((0.0, 0.0), 0.3, [0], 4), ((0.01, np.inf), 0.99, [0, 1], 2), ((np.inf, np.inf), 0.3, [], 0)],
)
def test_any_level_and_rope_can_be_drawn_and_what_does_not_vary_as_a_line(
    normal, rope, level, constant, lines
):
    delta = normal.copy()
    delta[:, constant] = 0
    panel, region = panel_of(delta, rope, level)
    assert len(panel.series) - lines >= 1
    if constant:
        np.testing.assert_array_equal([panel.series[-1].x, panel.series[-1].y], region.bounds)
    chart([panel])


def test_the_page_has_the_picture_and_a_terminal_has_not(normal):
    region = highest_density_region(normal, 0.95)
    document = document_of({"A >> B": 0.5, "B >> A": 0.2, "A ~ B": 0.3}, region=region)
    (figure,) = document.figures
    assert "further up and to the right" in figure.caption
