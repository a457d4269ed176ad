"""The study of uncertainty fairness: ratios of groups, verdicts, the proposition's directions."""

import io

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from papers import PAPERS
from papers.uncertainty_fairness import tables
from papers.uncertainty_fairness.directions import directions
from papers.uncertainty_fairness.tables import METRICS, ratios

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
    found = ratios(ours, "sd1", "group", "epistemic_uncertainty").to_numpy()
    np.testing.assert_allclose(found, [1, np.nan, 3])


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
    published = pd.read_csv(PUBLISHED, dtype=str, keep_default_na=False)
    ours = (
        three_runs("adult").assign(attribute="sex").replace({"group": {"0": "Female", "1": "Male"}})
    )
    monkeypatch.setattr(tables, "values", lambda experiment, results: ours)
    compared = published.query("metric != 'ratio_equalized_odds' and dataset == 'adult'")
    found = pd.DataFrame(tables.numbers(compared, None)).set_index("row")
    rows = (
        compared.drop(columns="sd")
        .join(found)
        .query("dataset == 'adult' and sensitive_attribute == 'sex'")
        .set_index("metric")
    )
    assert rows.loc["ratio_epistemic", "reason"] == "the printed ratio is over next to nothing"
    assert rows.loc["ratio_aleatoric", "mean"] == pytest.approx(1)
    assert (rows.loc["accuracy", "repeats"] == 3).all()
