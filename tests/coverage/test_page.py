"""The page of coverage: its first tables are made of the sections, which are kept until anew."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks import rank
from benchmarks.coverage.families import FAMILIES
from benchmarks.coverage.page import (
    PROMISES,
    STATEMENTS,
    head,
    lowest_line,
    page,
    sections,
    sections_of,
    tables_of,
    write_sections,
)
from benchmarks.coverage.simulate import Cell
from benchmarks.rank import Tally, calibration
from fairbench.core.errors import UserError
from fairbench.core.fingerprint import ROOT

DOCS = ROOT / "docs"
CELLS = [
    Cell("rates", "one", "ours", "few rows", 1000, 1000, 30, 20, 0.2),
    Cell("rates", "one", "ours", "many rows", 1000, 1000, 10, 10, 0.1),
    Cell("rates", "one", "Wald", "few rows", 1000, 1000, 300, 20, 0.1),
    Cell("rates", "other", "ours", "few rows", 1000, 1000, 60, 9, 0.2),
    Cell("differences", "difference", "ours", "apart", 1000, 1000, 100, 100, 0.2),
    Cell("evaluate", "accuracy", "ours", "all", 400, 400, 10, 10, 0.2),
]


def test_every_family_of_intervals_is_part_of_one_promise():
    named = [name for promise in PROMISES for name in promise.families]
    assert sorted(named) == sorted(family.name for family in FAMILIES)


def test_the_first_table_has_the_figures_of_the_cells():
    first, last = tables_of(head(sections(CELLS)))[0]
    ours = [cell for cell in CELLS if cell.construction == "ours" and cell.family != "evaluate"]
    mean = 100 * np.mean([cell.coverage for cell in ours])
    assert first["simulated in"] == "4 settings"
    assert first["measured"] == f"{mean:.1f} % on average; 1 setting failed"
    assert (first["lowest"], first["where"]) == ("80.0 %", "differences of two groups, apart")
    assert first["sections"] == (
        "[Rates](#rates), [Differences of two groups](#differences-of-two-groups)"
    )
    assert (last["measured"], last["lowest"], last["where"]) == (
        "95.0 % on average; no row failed", "95.0 %", "accuracy"
    )  # fmt: skip


def test_settings_are_named_only_where_coverage_is_printed_as_under_the_level():
    under = [(94.94, "few rows"), (94.95, "some rows"), (100.0, "many rows")]
    assert lowest_line("ours", under) == "Lowest coverage of our intervals: 94.9 % with few rows."
    assert lowest_line("earlier default", [(0.0, "a"), (1.0, "b, rate 0.5")]) == (
        "Lowest coverage of the earlier default: 0.0 % with a; 1.0 % with b, rate 0.5."
    )
    assert lowest_line("ours", under[2:]) == ""
    high = [replace(cell, below=0, above=0) for cell in CELLS]
    assert "Lowest coverage" not in "".join(sections(high).values())


def test_populations_of_one_row_a_metric_are_counted_together_with_the_worst_named():
    several = [
        Cell("evaluate", "accuracy", "ours", "easy", 300, 300, 0, 0, 0.2),
        Cell("evaluate", "accuracy", "ours", "hard", 100, 100, 20, 10, 0.2),
    ]
    (row,) = tables_of(sections(several)["Whole evaluations"])[0]
    assert (row["rows"], row["ours: coverage"]) == ("400", "92.5 % (failed)")
    assert row["ours: lowest coverage"] == "70.0 %: hard"
    first = tables_of(head(sections(several)))[0][0]
    assert (first["lowest"], first["where"]) == ("70.0 %", "whole evaluations, accuracy, hard")


def test_a_section_is_kept_until_it_is_measured_again(tmp_path):
    path = tmp_path / "coverage.md"
    write_sections(path, sections(CELLS))
    before = sections_of(path.read_text())
    assert before == sections(CELLS)
    again = [replace(cell, below=0, above=0) for cell in CELLS if cell.family == "rates"]
    write_sections(path, sections(again))
    after = sections_of(path.read_text())
    assert after["Rates"] != before["Rates"]
    assert {**after, "Rates": ""} == {**before, "Rates": ""}
    assert "1 setting failed" in path.read_text()


def test_a_section_that_nothing_writes_is_refused(tmp_path):
    with pytest.raises(UserError, match="no benchmark writes the section 'Unheard of'"):
        page({"Unheard of": "text"})


def test_the_page_is_what_its_sections_make_of_it():
    """Nobody has changed a number of the first tables by hand, nor left one behind."""
    text = (DOCS / "coverage.md").read_text()
    assert page(sections_of(text), (DOCS / STATEMENTS).read_text()) == text


def test_calibration_has_standard_errors_of_benchmarks():
    """Of one population of independent benchmarks they are those of a ratio of means."""
    random = np.random.default_rng(1)
    tally = Tally(runs=400)
    for _ in range(400):
        weight = random.random(rank.BINS)
        came = weight * random.random(rank.BINS)
        tally.tenths.append(np.stack([0.7 * weight, came, weight]))
    off, error, share = calibration([tally])
    sums = np.array(tally.tenths)
    np.testing.assert_allclose(off, 0.7 - sums[:, 1].sum(0) / sums[:, 2].sum(0))
    drawn = random.integers(0, 400, (2000, 400))
    again = 0.7 - sums[drawn, 1].sum(1) / sums[drawn, 2].sum(1)
    np.testing.assert_allclose(error, again.std(axis=0), rtol=0.1)
    assert share.sum() == pytest.approx(1)
