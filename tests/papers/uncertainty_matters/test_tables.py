"""Tables on German: areas, the one cross-validation that a table rests on, and published ratios."""

import numpy as np
import pandas as pd
import pytest

from fairbench.components.datasets import german
from fairbench.components.papers.uncertainty_matters import grid, ground_truth, readings
from fairbench.components.papers.uncertainty_matters import tables as study
from tests.harness import archive_with

PUBLISHED = study.read_published()
ROWS = PUBLISHED[PUBLISHED["table"].isin(["1", "12.1"])]


def counts_of(accuracy, draw, cvs=40, rows=(810, 190)):
    """Return (B, G, 4) counts whose groups have this accuracy, give or take partition noise."""
    shares = np.array([0.7 * accuracy, 0.7 * (1 - accuracy), 0.3 * (1 - accuracy), 0.3 * accuracy])
    moved = draw.integers(-3, 4, size=(cvs, len(rows), 1)) * [1, -1, 0, 0]
    return np.round(np.multiply.outer(rows, shares)).astype(np.int64) + moved


def test_a_gap_in_favour_of_the_other_group_is_a_gap():
    counts = np.array([[60, 20, 5, 15], [30, 3, 10, 30]])
    signed, size = (readings.Reading("", signed=way).values(counts) for way in (True, False))
    assert signed[0] == size[0]
    assert abs(signed[1]) == pytest.approx(-size[1])


def test_events_count_practical_differences():
    """Definition 3.1: on the edge of the region, 0.01 wide each way, two are equivalent."""
    delta = [[0.02, 0.02], [0.02, 0], [-0.02, 0.005], [0, 0], [0.02, -0.02], [0.01, -0.01]]
    shares = readings.events(np.array([*delta, [np.nan, 0.0]]))
    accuracy, gap = readings.OBJECTIVES
    asked = ("A >> B", "B >> A", "A ~ B", f"A {accuracy}, B {gap}", f"B {accuracy}, A {gap}")
    assert [6 * shares[event] for event in asked] == pytest.approx([2, 1, 2, 1, 0])


def test_regions_hold_the_partition_noise_and_shrink_with_rho():
    draw = np.random.default_rng(0)
    counts = {"SVM": counts_of(0.75, draw), "FERM": counts_of(0.76, draw)}
    ratios = {"SVM": np.ones((4, 2, 1)), "FERM": np.full((4, 2, 1), 4.0)}
    measured = readings.Measured(counts, ratios, posteriors=4, draws=2000)
    keys = ["metric", "method", "setting"]
    found = pd.DataFrame(study.table_12_1(measured, PUBLISHED[PUBLISHED["table"] == "12.1"]))
    rows = found.join(PUBLISHED[keys], on="row").set_index(keys)
    area, inside = rows["mean"][study.AREA], rows["mean"][study.INSIDE]
    assert set(area.index.unique(0)) == {"SVM", "FERM"}
    averaged = area["SVM", "rho=1/K"] / area["SVM", "rho in [0,1/K]"]
    assert averaged == pytest.approx(1.9 * np.log(1.9) / 0.9, rel=0.05)
    assert inside["SVM", "rho=1/K"] == 100
    # Four times the reference's variance in both groups: four times its area.
    assert area["SVM", "rho_rel"] == pytest.approx(area["SVM", "rho=1/K"], rel=0.05)
    assert area["FERM", "rho_rel"] == pytest.approx(4 * area["FERM", "rho=1/K"], rel=0.1)
    # An area is known to its mean, unless it hangs on one ratio.
    known = (rows["error"] / rows["sd"])[study.AREA]["FERM"]
    assert [*known[["rho=1/K", "rho_rel"]]] == pytest.approx([1 / 2, 1.25**0.5])


def test_table_1_has_the_numbers_of_table_12_1_but_for_linear_ferm():
    """Proof that a row of one of them cannot be: they are one table, printed twice."""
    printed = ROWS.set_index(["method", "setting", "metric"]).astype({"value": float})
    short, long = (printed.loc[printed["table"] == table, "value"] for table in ("1", "12.1"))
    differs = short[short != long[short.index]]
    assert set(differs.index.get_level_values("method")) == {"Linear FERM"}
    place = ("Linear FERM", "rho=1/K", study.AREA)
    assert (short[place], long[place]) == (0.0109, 0.0093)
    assert len(differs) == 7


def test_kept_numbers_answer_every_published_one_by_the_text_first():
    kept = pd.read_csv(study.AREAS, keep_default_na=False)
    first = kept.drop_duplicates("row")
    assert set(first["row"]) == set(ROWS.index)
    assert set(first["cause"]) == {""}
    assert set(kept["cause"]) == {reading.cause for reading in study.AREA_READINGS}
    assert readings.ONE_HOT.cause in set(kept["cause"])
    areas = ROWS.query("metric == @study.AREA and setting == 'rho=1/K'").index
    means = kept.set_index(["cause", "row"])["mean"]
    text, alone = (means[reading.cause][areas] for reading in (readings.TEXT, readings.ALONE))
    assert (text / alone).between(1.5, 2.2).all()


NAMES = ("Linear SVM + Hardt", "FERM")


@pytest.fixture(scope="module")
def pair():
    """Four partitions: B is more accurate by 2 points, 3 and 11, and in one less by 5."""
    first, second = np.array([[[[600, 100, 50, 60], [120, 20, 20, 30]]] * 4] * 2)
    first[:, 0, :2] += np.multiply.outer((-20, -30, 50, -110), (1, -1))
    return study.Pair(readings.ALONE, NAMES, (first, second))


def test_the_partition_is_near_the_mean_or_far_with_another_conclusion(pair):
    """The last one is further from the mean than the third, but its conclusion is the mean's."""
    np.testing.assert_allclose(pair.delta[:, 0], [-0.02, -0.03, 0.05, -0.11])
    assert (pair.nearest[0], pair.furthest[0]) == (1, 2)
    shown = pair.reading.conclusions(pair.delta)
    assert shown[0] == shown[3] != shown[2]


def test_a_third_objective_leaves_fewer_conclusions_of_one_over_the_other(pair):
    two, three = (
        pair.probabilities(readings.Setting("rho=1/K", 0.0, objectives=count), furthest=False)
        for count in (2, 3)
    )
    assert three["p_b_outperforms_a"] < two["p_b_outperforms_a"]
    assert three["p_equivalent"] <= two["p_equivalent"]


def test_another_C_stands_behind_a_name():
    assert "learner.C=0.4" in ground_truth.overrides("FERM, C = 0.4")
    assert "learner.C=1.0" not in ground_truth.overrides("FERM, C = 0.4")
    assert {"intervention.label=0", "learner.C=1.0"} <= set(ground_truth.overrides("FERM"))


def test_what_is_packed_is_of_german():
    for name in readings.ALL:
        tables = readings.packed_counts(name)
        assert len(tables) >= (readings.FEW if name in ground_truth.ALGORITHMS else 400)
        assert tables.min() >= 0
        assert (tables.sum(axis=-1) == [810, 190]).all()
    for method in readings.PAIRS[:2]:
        joint = readings.packed_joint(readings.RIGHT.names(method))
        assert joint.shape == (readings.PARTITIONS, 2, 8)
        assert (joint.sum(axis=(1, 2)) == 1000).all()


def test_kept_numbers_answer_every_published_one():
    rows = PUBLISHED[PUBLISHED["table"].isin(study.ANSWERED)]
    kept = pd.read_csv(study.NUMBERS, keep_default_na=False)
    assert rows["table"].isin(study.TABLES).sum() == 430
    first = kept.drop_duplicates("row")
    assert (first[["cause", "label"]] == "").all(axis=None)
    for reading in readings.READINGS:
        mine = kept.query("label == @reading.label and cause == @reading.cause")["row"]
        assert len(mine) and not mine.duplicated().any()
        assert reading.paired or {*rows.index} == {*mine}


def test_a_share_within_its_error_agrees():
    rows = pd.DataFrame({"table": ["2", "2", "3"], "value": ["0.50", "0.80", "0.10"]})
    found = pd.DataFrame({"row": [0, 1, 2], "mean": [0.54, 0.70, 0.10], "error": [0.02, 0.01, 0]})
    result = study.shares(found, rows)
    assert result.loc["2"].tolist() == [0.5, 0.5]
    assert result.loc["all", "agrees"] == pytest.approx(2 / 3)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "reading", readings.READINGS, ids=lambda each: each.label or each.cause or "text"
)
def test_kept_numbers_are_those_of_the_packed_counts(reading):
    """Of one table's column, and of the reading that reproduces a number of every setting."""
    rows = PUBLISHED[PUBLISHED["table"].isin(study.TABLES)].drop_duplicates(["setting", "metric"])
    if reading != readings.ALONE:
        rows = PUBLISHED.query("table == '12.5' and setting == 'rho_rel_up, no hdr; rope=0.01'")
    result = pd.DataFrame(study.partition_answers([study.pairs(reading)], rows))
    kept = pd.read_csv(study.NUMBERS, keep_default_na=False)
    kept = kept.query("label == @reading.label and cause == @reading.cause").set_index("row")
    np.testing.assert_allclose(result["mean"], kept["mean"][result["row"]], atol=1e-4)


def test_the_truth_of_case_2_is_that_of_another_pair():
    """Proof: the printed 0.83 is Table 2's, of FERM with a kernel, and the case has linear FERM."""
    truth = PUBLISHED.query("setting == 'ground truth' and metric == 'p_b_outperforms_a'")
    value = truth.set_index(["table", "method"])["value"]
    assert value["14.2.2"].to_dict() == {"Linear SVM + Hardt vs Linear FERM": "0.83"}
    assert value["2", "Linear SVM + Hardt vs FERM"] == "0.83"


def test_hardts_rule_does_not_err_more_than_calling_everybody_good():
    """Proof: 700 of 1000 loans are good, and one label for all is fair: 0.61 is far below 0.70."""
    for choice in ("", grid.RULE_APART):
        counts = grid.counts("Linear SVM + Hardt", choice).sum(axis=1)
        right = (counts[:, 0] + counts[:, 3]) / counts.sum(axis=1)
        assert (counts[:, :2].sum(axis=1) == 700).all()
        assert right.min() > 0.61 + 0.04
        assert (right.mean() - 0.61) / right.std() > 6


@pytest.mark.slow
@pytest.mark.data
def test_packed_counts_are_those_of_the_algorithms():
    """One partition of each, and the first half of the first halving."""
    archive_with(german.GERMAN)
    for name in readings.ALL:
        (counts,) = ground_truth.counted(ground_truth.study(name), [3])
        np.testing.assert_array_equal(counts, readings.packed_counts(name)[3])
    first, second = names = readings.RIGHT.names(readings.PAIRS[1])
    np.testing.assert_array_equal(
        readings.joint_counts(names, 1)[0], readings.packed_joint(names)[0]
    )
    assert ground_truth.study(second).learner.C == 0.4
    own = readings.half_estimates(first, 1)
    np.testing.assert_allclose(own[0], readings.half_split_estimates(first)[0], atol=1e-6)


def areas(r, worths):
    """Return areas proportional to the inflations that four choices of rho give."""
    values = {"rho=1/K": 1.9, "rho in [0,1/K]": 0.9 / np.log(1.9), "rho_rel": 1.9 * r, **worths}
    same = {"table": "12.1", "method": "any", "metric": study.AREA}
    return pd.DataFrame([{**same, "setting": s, "value": v} for s, v in values.items()])


def test_each_reading_predicts_its_own_areas():
    r = 1.6
    grid = np.linspace(0, (1.9 * r - 1) / 9, 20001)
    up_to_rel = 1 / np.trapezoid(1 / (1 + 9 * grid), grid) * grid[-1]
    (row,) = study.ratio_readings(areas(r, {"rho_rel_up": up_to_rel})).to_dict("records")
    assert row["r"] == pytest.approx(r)
    assert row["rho in [0,rho_rel]"] == pytest.approx(up_to_rel, rel=1e-6)
    assert row["rho_0 in [0,1/K]"] == pytest.approx(r * 0.9 / np.log(1.9))


def test_published_areas_have_rho_averaged_up_to_rho_rel():
    result = study.ratio_readings(PUBLISHED)
    assert len(result) == 13
    ratios = result.iloc[:, 2:].div(result["published"], axis=0)
    errors = (ratios - 1).abs().mean()
    assert errors["rho in [0,rho_rel]"] < 0.015 < 0.1 < errors["rho_0 in [0,1/K]"]
