"""Tables 1 and 12.1 of Uncertainty Matters, on a ground truth small enough to check by hand."""

import numpy as np
import pandas as pd
import pytest

from fairbench.components.papers.uncertainty_matters.measured import Measured
from fairbench.components.papers.uncertainty_matters.posteriors import (
    OBJECTIVES,
    Cloud,
    events,
    favourable,
    values,
)
from fairbench.components.papers.uncertainty_matters.readings import ALONE, ONE_HOT, TEXT
from fairbench.components.papers.uncertainty_matters.tables import (
    AREA,
    INSIDE,
    KEPT,
    READINGS,
    read_published,
    table_12_1,
)

PUBLISHED = read_published()
ROWS = PUBLISHED[PUBLISHED["table"].isin(["1", "12.1"])]


def counts_of(accuracy, generator, cvs=40, rows=(810, 190)):
    """Return (B, G, 4) counts whose groups have this accuracy, give or take partition noise."""
    shares = np.array([0.7 * accuracy, 0.7 * (1 - accuracy), 0.3 * (1 - accuracy), 0.3 * accuracy])
    tables = np.array([np.round(shares * n) for n in rows]).astype(np.int64)
    moved = generator.integers(-3, 4, size=(cvs, len(rows)))
    counts = np.repeat(tables[None], cvs, axis=0)
    counts[..., 0] += moved
    counts[..., 1] -= moved
    return counts


@pytest.fixture(scope="module")
def measured():
    draw = np.random.default_rng(0)
    counts = {"SVM": counts_of(0.75, draw), "FERM": counts_of(0.76, draw)}
    ratios = {name: np.ones((4, 2, 1)) * (1 + 3 * (name == "FERM")) for name in counts}
    return Measured(counts, ratios, posteriors=4, draws=2000)


def test_values_are_those_of_the_good_loan():
    counts = np.array([[60, 20, 5, 15], [30, 30, 10, 30]])  # label 1 is the bad one
    accuracy, difference = values(counts)
    assert accuracy == pytest.approx(135 / 200)
    assert difference == pytest.approx(30 / 60 - 60 / 80)
    np.testing.assert_array_equal(favourable(counts)[0], [15, 5, 20, 60])


def test_posterior_is_narrower_than_the_predictive_and_widens_with_rho():
    counts = counts_of(0.75, np.random.default_rng(1), cvs=3)
    sds = {}
    for worth, predictive in ((1.0, False), (0.5, False), (0.5, True)):
        draws = Cloud.of(
            counts, worth, np.random.default_rng(2), draws=20000, predictive=predictive
        )
        sds[worth, predictive] = draws.draws.std(axis=1)
    np.testing.assert_allclose(sds[0.5, False] / sds[1.0, False], np.sqrt(2), rtol=0.05)
    np.testing.assert_allclose(sds[0.5, True] / sds[0.5, False], np.sqrt(2), rtol=0.05)


def test_events_count_practical_differences():
    delta = np.array([[0.02, 0.02], [0.02, 0.0], [-0.02, 0.005], [0.0, 0.0], [0.02, -0.02]])
    shares = events(np.vstack([delta, [np.nan, 0.0]]))
    accuracy, gap = OBJECTIVES
    assert shares["A >> B"] == pytest.approx(0.4)
    assert shares["B >> A"] == pytest.approx(0.2)
    assert shares["A ~ B"] == pytest.approx(0.2)
    assert shares[f"A {accuracy}, B {gap}"] == pytest.approx(0.2)
    assert sum(shares.values()) == pytest.approx(1)


def test_regions_hold_the_partition_noise_and_shrink_with_rho(measured):
    rows = table_12_1(measured, PUBLISHED[PUBLISHED["table"] == "12.1"])
    assert set(rows["method"]) == {"SVM", "FERM"}
    rows = rows.set_index(["method", "setting", "metric"])
    area = rows.xs(AREA, level="metric")["mean"]
    assert area["SVM", "rho=1/K"] / area["SVM", "rho in [0,1/K]"] == pytest.approx(
        1.9 * np.log(1.9) / 0.9, rel=0.05
    )
    assert rows.loc[("SVM", "rho=1/K", INSIDE), "mean"] == 100
    # Four times the reference's variance in both groups: four times its area.
    assert area["SVM", "rho_rel"] == pytest.approx(area["SVM", "rho=1/K"], rel=0.05)
    assert area["FERM", "rho_rel"] == pytest.approx(4 * area["FERM", "rho=1/K"], rel=0.1)


def test_an_area_is_known_to_its_mean_unless_it_hangs_on_one_ratio(measured):
    rows = table_12_1(measured, PUBLISHED[PUBLISHED["table"] == "12.1"])
    mine = rows[(rows["method"] == "FERM") & (rows["metric"] == AREA)].set_index("setting")
    assert mine.loc["rho=1/K", "error"] == pytest.approx(mine.loc["rho=1/K", "sd"] / 2)
    assert mine.loc["rho_rel", "error"] == pytest.approx(mine.loc["rho_rel", "sd"] * 1.25**0.5)


def test_table_1_has_the_numbers_of_table_12_1_but_for_linear_ferm():
    """Proof that a row of one of them cannot be: they are one table, printed twice."""
    keys = ["method", "setting", "metric"]
    short, long = (
        ROWS[ROWS["table"] == table].set_index(keys)["value"].astype(float)
        for table in ("1", "12.1")
    )
    differs = short[short != long[short.index]]
    assert set(differs.index.get_level_values("method")) == {"Linear FERM"}
    place = ("Linear FERM", "rho=1/K", AREA)
    assert (short[place], long[place]) == (0.0109, 0.0093)
    assert len(differs) == 7


def test_kept_numbers_answer_every_published_one_by_the_text_first():
    kept = pd.read_csv(KEPT, keep_default_na=False)
    first = kept.drop_duplicates("row")
    assert set(first["row"]) == set(ROWS.index)
    assert set(first["cause"]) == {""}
    assert set(kept["cause"]) == {reading.cause for reading in READINGS}
    areas = ROWS.loc[(ROWS["metric"] == AREA) & (ROWS["setting"] == "rho=1/K")].index
    text, alone = (
        kept[kept["cause"] == reading.cause].set_index("row")["mean"].loc[areas]
        for reading in (TEXT, ALONE)
    )
    assert (text / alone).between(1.5, 2.2).all()
    assert ONE_HOT.cause in set(kept["cause"])
