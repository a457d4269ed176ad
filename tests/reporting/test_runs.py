"""The table a run prints: its width, its rows, and what is undefined."""

import io
import re

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from fairbench import Evaluator, evaluate
from fairbench.data.dataset import Task
from fairbench.evaluation.columns import values_of
from fairbench.evaluation.summary import summarise
from fairbench.reporting.document.model import Paragraph, Table
from fairbench.reporting.document.terminal import print_document
from fairbench.reporting.runs import headline, labels_in_words, run_document
from fairbench.results.labels_and_groups import Description
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
        row = cells_of(printed(metrics, width=140), *cells)
        (expected,) = summary.loc[[key]].to_dict("records")
        assert row[2:4] == [f"{expected['mean']:.4f}", f"{expected['sd']:.4f}"]
        if not np.isnan(expected["lower"]):
            assert row[4] == f"{expected['lower']:.3f} to {expected['upper']:.3f}"
        assert row[5] == f"{expected['n']:.0f}"


@pytest.mark.parametrize(
    ("task", "facts", "expected"),
    [
        (
            Task.BINARY,
            {"positive_label": "bad risk", "favourable": 0},
            "Label 1 is 'bad risk'; the selection rate is the share predicted 1. Label 0 is good "
            "for the person.",
        ),
        (Task.BINARY, {}, "The selection rate is the share predicted 1."),
        (
            Task.MULTICLASS,
            {"classes": ("low", "middle", "high"), "ordered": True, "favourable": 2},
            "The classes are 'low', 'middle', 'high', in this order. The selection rate of a class "
            "is the share predicted to be in it. 'high' is good for the person.",
        ),
        (
            Task.REGRESSION,
            {},
            "The target, grade, is a number. The gap in selection rate is between the groups' "
            "shares of predictions above one value, where that gap is largest.",
        ),
    ],
)
def test_the_table_begins_with_what_labels_and_selected_mean(task, facts, expected):
    unknown = {"positive_label": "", "favourable": None, "redistributable": False}
    about = Description("grades", task, {}, "grade", **{**unknown, **facts})
    meaning = labels_in_words(about)
    assert meaning == expected
    document = run_document(summarise(metrics_of()), "a run", "sex", meaning=meaning)
    assert document.sections[0].blocks[0] == Paragraph(expected)


@pytest.mark.parametrize(
    ("groups", "expected"),
    [(("Male", "Female"), "sex: {1} over {0}"), (("A", "B", "C"), "sex: smallest over largest")],
)
def test_a_ratio_says_whose_rate_is_divided_by_whose(groups, expected):
    summary = values_of(summarise(metrics_of(groups)))
    rate_rows = (summary["metric"] == "selection_rate") & (summary["group"] != "")
    rates = summary[rate_rows].set_index("group")["mean"]
    names = list(rates.index)
    table = run_document(summary, "a run", "sex").tables[0]
    (row,) = [row for row in table.rows if row[0] == "ratio of selection rates"]
    assert row[1] == expected.format(*names)
    if len(names) == 2:
        assert (row[2] > 1) == (rates[names[1]] > rates[names[0]])


def test_every_row_without_an_interval_says_why():
    metrics = metrics_of(uncertainty=np.linspace(0, 0.5, 60))
    row = {"metric": "fit_seconds", "attribute": "", "value": 1.0, "n": 60, "status": "ok"}
    cost = metrics.groupby("repeat").head(1).assign(**row, lower=np.nan, upper=np.nan, group="")
    summary = summarise(pd.concat([metrics, cost], ignore_index=True))
    rows = run_document(summary, "a run", "sex").tables[0].rows
    without = {row[0]: row[-1] for row in rows if np.isnan(row[4][0])}
    assert without["spread error"] == "no interval: none is known to hold"
    assert without["fit seconds"] == "no interval: it was measured"
    assert all(without.values())


def test_an_interval_of_nearly_every_value_says_why():
    summary = summarise(metrics_of())
    is_f1 = (summary["metric"] == "f1_score") & (summary["attribute"] == "")
    summary.loc[is_f1, ["lower", "upper", "n", "status"]] = 0.0, 1.0, 11, "ok"
    table = run_document(summary, "a run", "sex").tables[0]
    (row,) = [row for row in table.rows if row[0] == "f1 score"]
    assert row[-1] == "wide: 11 rows are too few to tell"
    assert "of a gap those of its smallest group" in table.caption
    assert "(1 of 3) for 1 of 3 repeats" in table.caption


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


def table_of(document, title) -> Table:
    """Return the one table of a document whose title begins so."""
    (table,) = (
        block
        for section in document.sections
        for block in section.blocks
        if isinstance(block, Table) and block.title.startswith(title)
    )
    return table


def test_every_cell_of_the_classes_is_that_of_its_title():
    draw, names = np.random.default_rng(0), np.array(["low", "middle", "high"])
    label, group = draw.integers(3, size=300), draw.choice(["a", "b"], 300)
    predicted = np.where(draw.random(300) < 0.6, label, draw.integers(3, size=300))
    metrics = evaluate(
        names[label], names[predicted], task="multiclass", sensitive_features={"sex": group}
    ).assign(**COLUMNS)
    summary = summarise(metrics)
    table = table_of(run_document(summary, "a run", "sex"), "each class against the rest")
    titles = {
        "share": ("base_rate", ""),
        "predicted": ("selection_rate", ""),
        "found": ("true_positive_rate", ""),
        "false alarms": ("false_positive_rate", ""),
        "gap in predicted": ("statistical_parity", "sex"),
        "gap in found": ("equal_opportunity", "sex"),
    }
    values = values_of(summary)
    assert [row[0] for row in table.rows] == sorted(names)
    for name, *cells in table.rows:
        interval = None
        for column, cell in zip(table.columns[1:], cells, strict=True):
            if column.title == "95 % interval":
                assert cell == interval
                continue
            metric, attribute = titles[column.title]
            (row,) = values[
                (values["metric"] == metric)
                & (values["attribute"] == attribute)
                & (values["outcome"] == name)
                & (values["group"] == "")
            ].itertuples()
            interval = (row.lower, row.upper)
            assert cell == row.mean


def test_of_many_groups_unlike_everyone_else_the_surest_are_shown():
    unlike = pd.DataFrame(
        {
            "metric": "selection_rate",
            "attribute": "race",
            "group": [f"group {place}" for place in range(10)],
            "value": np.linspace(0.1, 0.19, 10),
            "rest": 0.5,
            "n": np.arange(100, 110),
        }
    )
    unlike.attrs["tests"] = 40
    document = run_document(summarise(metrics_of()), "a run", "sex", unlike)
    table = table_of(document, "groups that differ from everyone else: 10 of 40 tested")
    assert "the 8 surest are shown" in table.caption
    assert [list(row) for row in table.rows] == [
        ["selection rate", f"race: {row.group}", row.value, row.rest, row.n]
        for row in unlike.head(8).itertuples()
    ]
    few = unlike.head(8)
    few.attrs["tests"] = 40
    document = run_document(summarise(metrics_of()), "a run", "sex", few)
    assert "surest" not in table_of(document, "groups that differ").caption


def test_groups_estimated_together_have_the_figures_of_the_summary():
    summary = summarise(metrics_of(("Male", "Female", "Other"), n=300))
    table = table_of(run_document(summary, "a run", "sex"), "groups of sex, estimated together")
    rates = {row.metric for row in summary[summary["statistic"] == "pooled"].itertuples()}
    assert len(table.rows) == 3 * len(rates)
    by_place = summary.set_index(["metric", "statistic", "group"]).sort_index()
    for rate, group, raw, pooled, interval, worst, rows, _ in table.rows:
        metric = str(rate).replace(" ", "_")
        expected = by_place.loc[(metric, "pooled", group)].iloc[0]
        assert raw == by_place.loc[(metric, "value", group)].iloc[0]["mean"]
        assert worst == by_place.loc[(metric, "worst", group)].iloc[0]["mean"]
        assert (pooled, interval) == (expected["mean"], (expected["lower"], expected["upper"]))
        assert rows == expected["n"]


def test_what_chance_adds_to_a_gap_of_many_groups_stands_beside_it():
    """Twenty alike groups of fifty rows are 0.2 and more apart."""
    names = [f"g{place:02d}" for place in range(20)]
    summary = summarise(metrics_of(names, n=1000))
    document = run_document(summary, "alike", "sex")
    (table, *_) = document.tables
    titles = [column.title for column in table.columns]
    assert titles[2:4] == ["mean", "debiased"]
    (gap,) = [row for row in table.rows if row[0] == "gap in selection rate"]
    assert gap[2] > 0.2 and gap[3] < 0.6 * gap[2]
    assert {row[3] for row in table.rows if not row[0].startswith("gap")} == {None}
    assert "debiased: the gap less what chance adds" in table.caption
    two = run_document(summarise(metrics_of()), "alike", "sex").tables[0]
    assert "debiased" not in [column.title for column in two.columns]
