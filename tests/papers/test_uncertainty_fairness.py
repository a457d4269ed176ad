"""The study of uncertainty fairness: ratios of groups, verdicts, the proposition's directions."""

import io

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from fairbench.components.papers import PAPERS
from fairbench.components.papers.uncertainty_fairness import tables
from fairbench.components.papers.uncertainty_fairness.directions import directions
from fairbench.components.papers.uncertainty_fairness.tables import METRICS, ratios
from fairbench.reporting.papers.running import Effort

PUBLISHED = PAPERS / "uncertainty_fairness" / "published.csv"
COLUMNS = ["dataset", "run", "repeat", "metric", "attribute", "group", "value"]


def three_runs(dataset, **given):
    """Return runs whose group 1 has 0.1 of everything, and group 0 the given ratios to it."""
    rows = []
    for metric in sorted(set(METRICS.values())):
        for run, ratio in enumerate(np.broadcast_to(given.get(metric, 1.0), 3)):
            rows += [
                (dataset, str(run), 0, metric, "group", group, 0.1 * value)
                for group, value in (("1", 1.0), ("0", ratio))
            ]
    return pd.DataFrame(rows, columns=COLUMNS)


def cells(table):
    """Return the cells of each printed row."""
    console = Console(width=200, file=io.StringIO(), record=True)
    console.print(table)
    lines = [line for line in console.export_text().splitlines() if line.startswith("│")]
    return [[cell.strip() for cell in line.strip("│").split("│")] for line in lines]


def test_a_ratio_is_of_the_same_run_and_undefined_over_next_to_nothing():
    ours = three_runs("sd1", epistemic_uncertainty=[1.0, 2.0, 3.0])
    np.testing.assert_allclose(ratios(ours, "sd1", "group", "epistemic_uncertainty"), [1, 2, 3])
    tiny = ours["metric"].eq("epistemic_uncertainty") & ours["run"].eq("1")
    ours.loc[tiny, "value"] = 1e-8
    result = ratios(ours, "sd1", "group", "epistemic_uncertainty").to_numpy()
    np.testing.assert_allclose(result, [1, np.nan, 3])


def test_a_direction_counts_runs_that_show_both_of_its_parts():
    ours = pd.concat(
        [
            three_runs("sd1", aleatoric_uncertainty=[2.0, 1.0, 2.0], accuracy=[1.0, 1.0, 0.5]),
            three_runs("sd2", epistemic_uncertainty=[1.3, 0.7, 1.1]),
            three_runs("sd3", selection_rate=0.5, predictive_uncertainty=[1.0, 1.0, np.nan]),
        ]
    )
    counts = [row[2:5] for row in cells(directions(ours, ""))]
    assert counts == [
        ["2 of 3", "2 of 3", "1 of 3"],
        ["3 of 3", "2 of 3", "2 of 3"],
        ["2 of 3", "3 of 3", "2 of 3"],
    ]


def test_published_ratios_over_next_to_nothing_are_not_compared(monkeypatch):
    ours = (
        three_runs("adult").assign(attribute="sex").replace({"group": {"0": "Female", "1": "Male"}})
    )
    monkeypatch.setattr(tables, "values", lambda experiment, results: ours)
    compared = asked("5", "sex")
    result = pd.DataFrame(tables.numbers(compared, None, Effort.FIRST))
    rows = compared.drop(columns="sd").join(result[result["label"] == ""].set_index("row"))
    rows = rows.set_index("metric")
    assert rows.loc["ratio_epistemic", "reason"] == "the printed ratio is over next to nothing"
    assert rows.loc["ratio_aleatoric", "mean"] == pytest.approx(1)
    assert (rows.loc["accuracy", "repeats"] == 3).all()


def asked(table, attribute):
    """Return the printed numbers of a table and attribute that runs are to answer."""
    rows = published().query("table == @table and sensitive_attribute == @attribute")
    return rows[rows["metric"].isin(METRICS)]


def published():
    """Return the printed numbers, as text."""
    return pd.read_csv(PUBLISHED, dtype=str, keep_default_na=False)


def test_equation_24_is_answered_beside_what_the_table_prints(monkeypatch):
    rates = {"true_positive_rate": 2.0, "false_negative_rate": [3.0, 4.0, 5.0]}
    monkeypatch.setattr(tables, "values", lambda experiment, results: three_runs("sd1", **rates))
    rows = asked("1", "group").query("metric == 'ratio_equal_opportunity' and dataset == 'sd1'")
    result = [
        (number["label"], number["mean"]) for number in tables.numbers(rows, None, Effort.FIRST)
    ]
    assert [label for label, _ in result] == ["", "equation 24, of FNR", "trained networks"]
    np.testing.assert_allclose([mean for _, mean in result], [2, 4, 2])


def printed_ratios():
    """Return each printed ratio of equal opportunity beside its groups' FNR, PPV and the reach.

    The reach is how far rounding to two digits can move the ratio of two rates.
    """
    rows = published().drop_duplicates(["dataset", "sensitive_attribute", "metric", "setting"])
    for (_, _), group in rows.groupby(["dataset", "sensitive_attribute"]):
        for row in group.query("metric == 'ratio_equal_opportunity'").itertuples():
            of_all = row.setting.removeprefix("G0/G1")  # ", both" of D-Vlog's modalities
            value = group.set_index(["metric", "setting"])["value"].astype(float)
            first, second = (
                {m: value[m, f"group={g}{of_all}"] for m in ("fnr", "ppv")}
                for g in NAMES[row.sensitive_attribute]
            )
            yield float(row.value), first, second


NAMES = {
    "group": "01",
    "race": ("black", "white"),
    "age": ("<25", ">45"),
    "sex": ("female", "male"),
}


def reach(top, bottom):
    """Return the least and largest ratio of two numbers that round to these."""
    return (top - 0.005) / (bottom + 0.005), (top + 0.005) / (bottom - 0.005)


def test_the_printed_equal_opportunity_is_of_true_positive_rates_and_not_equation_24():
    result = list(printed_ratios())
    assert len(result) == 11
    as_tpr, as_fnr = 0, 0
    for ratio, first, second in result:
        low, high = reach(1 - first["fnr"], 1 - second["fnr"])
        as_tpr += low - 0.005 <= ratio <= high + 0.005
        low, high = reach(first["fnr"], second["fnr"])
        as_fnr += low - 0.005 <= ratio <= high + 0.005
    assert as_tpr == 11
    assert as_fnr <= 5  # where the groups' rates are nearly the same, no two digits tell


def test_the_printed_ppv_is_not_of_the_formula_that_is_printed():
    """It is printed as TP / (TP + FN), which is 1 - FNR; numbers that round to two digits."""
    off = [
        abs(group["ppv"] - (1 - group["fnr"]))
        for _, *groups in printed_ratios()
        for group in groups
    ]
    assert np.mean(np.array(off) > 0.0101) > 0.8


def test_table_2_is_table_3_without_age():
    key = ["dataset", "sensitive_attribute", "metric", "setting", "value"]
    two, three = (published().query("table == @table")[key] for table in "23")
    pd.testing.assert_frame_equal(
        two.reset_index(drop=True),
        three.query("sensitive_attribute != 'age'").reset_index(drop=True),
    )


def test_the_printed_counts_add_up_but_for_two_slips():
    """Table 5's women are Table 4's with two digits swapped; Table 6 has a digit too many."""
    rows = published()
    counts = rows[rows["metric"] == "count"].copy()
    counts["group"] = counts["setting"].str.split(", ").str[0]
    added = counts.astype({"value": int}).groupby(["dataset", "sensitive_attribute", "group"])
    added = added["value"].sum()
    sizes = rows[rows["metric"] == "sample_size"].copy()
    sizes["setting"] = sizes["setting"].str.split(", ").str[0]
    key = ["dataset", "sensitive_attribute", "setting"]
    sizes = sizes.drop_duplicates(key).set_index(key)["value"].astype(int)
    both = pd.DataFrame({"added": added, "printed": sizes.rename_axis(added.index.names)}).dropna()
    different = both[both["added"] != both["printed"]]
    assert len(both) == 10
    assert different.astype(int).to_dict("index") == {
        ("adult", "sex", "group=female"): {"added": 9782, "printed": 9872},
        ("dvlog", "sex", "group=female"): {"added": 3039, "printed": 639},
    }


class Data:
    """Ten people of a data set with its own test part."""

    sensitive = pd.DataFrame({"race": ["Black"] * 6 + ["White"] * 4, "sex": "Male"})
    target = pd.Series([1, 1, 0, 0, 0, 1, 1, 0, 0, 0])
    partition = pd.Series(["train"] * 5 + ["test"] + ["train"] * 4)


def test_people_are_counted_by_group_and_label_in_the_training_part(monkeypatch):
    monkeypatch.setitem(tables.LOADED, "adult", lambda archive: Data)
    columns = ["dataset", "sensitive_attribute", "metric", "setting"]
    rows = pd.DataFrame(
        [
            ("adult", "race", "count", "group=black, y=1"),
            ("adult", "race", "percent", "group=black, y=0"),
            ("adult", "race", "sample_size", "group=white"),
            ("adult", "sex", "sample_size", "group=male"),
        ],
        columns=columns,
    )
    result = pd.DataFrame(tables.counts(rows, None, Effort.FIRST))
    assert result["mean"].tolist() == [2, 60, 4, 9]
