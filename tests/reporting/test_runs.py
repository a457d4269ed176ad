"""The table a run prints: its width, its rows, and what is undefined."""

import io
import re

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from fairbench import Evaluator, evaluate
from fairbench.evaluation.columns import values_of
from fairbench.evaluation.summary import summarise
from fairbench.reporting.document.terminal import print_document
from fairbench.reporting.runs import headline, run_document
from tests.evaluation.labelled import labelled

COLUMNS = {"repeat": 0, "fold": 0, "variant": ""}


def metrics_of(group=("Male", "Female"), n=60, seed=0, **options):
    """Return the metrics of random predictions on two repeats."""
    draw, tables = np.random.default_rng(seed), []
    for repeat in range(2):
        score = draw.random(n)
        target, labels = draw.integers(2, size=n), draw.choice(group, n)
        table = evaluate(
            target, score > 0.5, score=score, sensitive_features={"sex": labels}, **options
        )
        tables.append(table.assign(**{**COLUMNS, "repeat": repeat}))
    return pd.concat(tables, ignore_index=True)


def printed(metrics, width=100, protect="sex"):
    screen = Console(width=width, file=io.StringIO())
    print_document(run_document(summarise(metrics), "adult, xgboost, baseline", protect), screen)
    return screen.file.getvalue().splitlines()


@pytest.mark.parametrize(
    "group",
    [("Male", "Female"), ("A" * 60, "a very long label, of several words, of a small group")],
)
def test_the_table_fits_a_hundred_columns(group):
    lines = printed(metrics_of(group))
    assert max(map(len, lines)) <= 100
    assert lines[0].startswith("adult, xgboost, baseline")
    text = "".join("".join(line.split()) for line in lines)
    for label in group:
        assert label[:8].replace(" ", "") in text


def cells_of(lines, *starts):
    """Return the cells of the one row whose first two cells are these."""
    rows = [re.split(r" {2,}", line.strip()) for line in lines]
    name, where = starts
    mine = [row for row in rows if row[0] == name and row[1].startswith("sex") == bool(where)]
    (row,) = [row for row in mine if not where or row[1] == where]
    return row if where else [row[0], "", *row[1:]]


def test_a_row_shows_mean_sd_interval_and_rows():
    metrics = metrics_of()
    summary = values_of(summarise(metrics)).set_index(["metric", "attribute", "group"]).sort_index()
    for cells, key in (
        (("error rate", ""), ("error_rate", "", "")),
        (("gap in equalized odds", "sex"), ("equalized_odds", "sex", "")),
        (("selection rate", "sex: Female"), ("selection_rate", "sex", "Female")),
    ):
        row = cells_of(printed(metrics), *cells)
        (expected,) = summary.loc[[key]].to_dict("records")
        assert row[2:4] == [f"{expected['mean']:.4f}", f"{expected['sd']:.4f}"]
        if not np.isnan(expected["lower"]):
            assert row[4] == f"{expected['lower']:.3f} to {expected['upper']:.3f}"
        assert row[5] == f"{expected['n']:.0f}"


def test_an_undefined_row_is_shown_with_its_reason():
    target, group = [0, 0, 0, 1, 1, 0] * 4, list("aaabbb") * 4
    table = evaluate(target, target, sensitive_features={"sex": group}).assign(**COLUMNS)
    lines = printed(table)
    assert max(map(len, lines)) <= 100
    row = cells_of(lines, "true positive rate", "sex: a")
    assert row[2:4] == ["-", "-"]
    place = next(line.index("status") for line in lines if "status" in line)
    text = " ".join(" ".join(line[place:].split()) for line in lines)
    assert "undefined: no positives" in text


def test_a_groups_attribute_other_than_the_protected_one_is_left_to_the_files():
    draw = np.random.default_rng(0)
    y, p = draw.integers(2, size=(2, 40))
    groups = {name: draw.choice(list("ab"), 40) for name in ("sex", "race")}
    table = evaluate(y, p, sensitive_features=groups).assign(**COLUMNS)
    assert set(headline(summarise(table), "race")["attribute"]) == {"", "race"}


def test_variants_are_left_to_the_files():
    own = metrics_of()
    varied = metrics_of(seed=1).assign(variant="max_depth=5")
    both = pd.concat([varied, own], ignore_index=True)
    assert printed(both) == printed(own)


def test_three_groups_or_more_are_shown_together_too():
    assert not any("estimated together" in line for line in printed(metrics_of()))
    lines = printed(metrics_of(("Male", "Female", "Other"), n=300))
    assert max(map(len, lines)) <= 100
    start = next(i for i, line in enumerate(lines) if "estimated together" in line)
    for rate in ("selection rate", "error rate"):
        rows = [line for line in lines[start:] if line.strip().startswith(rate)]
        assert [row.split()[2] for row in rows] == ["Female", "Male", "Other"]


def test_a_run_of_sets_shows_their_coverage_and_size_by_group():
    sets = {"set_0_90": [1.0] * 30 + [0.0] * 10, "set_1_90": [1.0] * 40}
    ones, score = [1.0] * 40, [0.6] * 40
    data = labelled([0.0, 1.0] * 20, "ab" * 20, prediction=ones, score=score, **sets)
    metrics = Evaluator().evaluate(data, np.random.default_rng(0)).assign(**COLUMNS)
    lines = printed(metrics, protect="g")
    (at,) = [i for i, line in enumerate(lines) if line.startswith("sets that promise 90%")]
    rows = {line.split("  ")[0]: line.split() for line in lines[at + 3 : at + 6]}
    assert {name: (cells[1], cells[-2]) for name, cells in rows.items()} == {
        "everyone": ("0.875", "0.000"), "a": ("0.750", "0.000"), "b": ("1.000", "0.000"),
    }  # fmt: skip
