"""The page of coverage: its tables are made of the rows beside it, which are kept until anew."""

import shutil
from dataclasses import replace

import numpy as np
import pytest

from benchmarks import rank
from benchmarks.coverage.__main__ import main
from benchmarks.coverage.families import FAMILIES
from benchmarks.coverage.page import PAGE, PROMISES, TEXTS, parts, rows_of, write
from benchmarks.coverage.simulate import Cell
from benchmarks.pages import fill, markdown, read_rows
from benchmarks.rank import Population, Tally, calibration
from benchmarks.statements import page as statements
from fairbench.core.errors import UserError

CELLS = [
    Cell("rates", "one", "ours", "few rows", 1000, 1000, 30, 20, 0.2),
    Cell("rates", "one", "ours", "many rows", 1000, 1000, 10, 10, 0.1),
    Cell("rates", "one", "Wald", "few rows", 1000, 1000, 300, 20, 0.1),
    Cell("rates", "other", "ours", "few rows", 1000, 1000, 60, 9, 0.2),
    Cell("differences", "difference", "ours", "apart", 1000, 1000, 100, 100, 0.2),
    Cell("evaluate", "accuracy", "ours", "all", 400, 400, 10, 10, 0.2),
]


def table(text):
    """Return the rows of a table in Markdown, as mappings of column to cell."""
    header, _, *rows = (
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("|")
    )
    return [dict(zip(header, row, strict=True)) for row in rows]


def of(cells, name, folder):
    return table(parts(rows_of(cells), folder / "none.md")[name])


def test_every_family_of_intervals_is_part_of_one_promise_and_said_in_words():
    named = [name for families in PROMISES.values() for name in families]
    assert sorted(named) == sorted(family.name for family in FAMILIES)
    text = PAGE.read_text()
    for family in FAMILIES:
        assert f"- **{family.title}** (`{family.name}`): " in text


def test_the_first_table_has_the_figures_of_the_cells(tmp_path):
    first, last = of(CELLS, "promises", tmp_path)
    ours = [cell for cell in CELLS if cell.construction == "ours" and cell.family != "evaluate"]
    mean = 100 * np.mean([cell.coverage for cell in ours])
    assert first["simulated in"] == "4 settings"
    assert first["measured"] == f"{mean:.1f} % on average; 1 setting failed"
    assert (first["lowest"], first["where"]) == ("80.0 %", "difference, apart")
    assert first["families"] == "`rates`, `differences`"
    assert (last["measured"], last["lowest"], last["where"]) == (
        "95.0 % on average; no row failed", "95.0 %", "accuracy, all"
    )  # fmt: skip


def test_a_family_is_beside_others_that_failed_or_never_did(tmp_path):
    rates, differences, _ = of(CELLS, "families", tmp_path)
    assert (rates["family"], rates["settings"]) == ("`rates`", "2")
    assert (rates["failed"], rates["lowest"]) == ("0", "93.1 %")
    assert rates["others that failed"] == "Wald in 100.0 %" and differences["failed"] == "1"
    kept = [replace(cell, below=0, above=0) for cell in CELLS]
    row = of(kept, "families", tmp_path)[0]
    assert row["others that never failed (width relative to ours)"] == "Wald (0.50)"


def test_intervals_are_named_whose_coverage_is_too_low_in_any_setting(tmp_path):
    (low,) = of(CELLS, "lowest", tmp_path)
    assert low == {"family": "`differences`", "interval": "difference",
                   "coverage": "80.0 % (failed)", "setting": "apart"}  # fmt: skip


def test_the_lowest_settings_are_kept_in_the_row():
    first = rows_of(CELLS).iloc[0]
    assert (first["settings"], first["trials"], first["lowest_in"]) == (2, 2000, "few rows")
    assert first["next_lowest"] == "98.0 % with many rows"
    assert (first["truth_below"], first["truth_above"], first["mean"]) == (2.0, 1.5, 96.5)


def test_rows_of_a_family_are_kept_until_it_is_measured_again(tmp_path):
    path = tmp_path / "coverage.md"
    write(path, rows_of(CELLS))
    before = read_rows(path.with_suffix(".csv"), TEXTS)
    assert before["family"].tolist() == ["rates"] * 3 + ["differences", "evaluate"]
    again = [replace(cell, below=0, above=0) for cell in CELLS if cell.family == "rates"]
    write(path, rows_of(again))
    after = read_rows(path.with_suffix(".csv"), TEXTS)
    same = before["family"] != "rates"
    assert after[same].equals(before[same])
    assert (after.loc[~same, "mean"] == 100).all()
    assert "1 setting failed" in path.read_text()


def test_a_page_without_a_place_for_a_table_is_refused(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# A page\n")
    with pytest.raises(UserError, match="no place for a table: a line '<!-- figures -->'"):
        fill(page, {"figures": markdown([["a"], ["1"]])})
    assert page.read_text() == "# A page\n"


def test_a_part_of_a_family_is_not_written(tmp_path, capsys):
    assert main(["family=fixed_rates", "short=true", f"write={tmp_path / 'coverage.md'}"]) == 2
    assert "write= needs whole families" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("page", [PAGE, statements.PAGE], ids=lambda page: page.stem)
def test_the_page_is_what_its_rows_make_of_it(tmp_path, page):
    """Nobody has changed a figure of the tables by hand, nor left one behind."""
    again = tmp_path / page.name
    for each in (PAGE, statements.PAGE):
        shutil.copy(each.with_suffix(".csv"), tmp_path)
        shutil.copy(each, tmp_path)
    if page == PAGE:
        write(again, rows_of([]))
    else:
        statements.write(again, [])
    assert again.read_text() == page.read_text()
    assert again.with_suffix(".csv").read_text() == page.with_suffix(".csv").read_text()


@pytest.mark.slow
def test_rankings_stand_in_their_tables(tmp_path):
    random = np.random.default_rng(0)
    tallies = []
    for methods in (2, 3):
        population = Population(methods, 12, truth="near")
        tally = Tally()
        tally.add(population, random)
        tallies.append((population, tally))
    made = rank.parts(tallies)
    fill(tmp_path / "coverage.md", made, words=PAGE)
    assert all(part in (tmp_path / "coverage.md").read_text() for part in made.values())
    at_once, near = table(made["rankings in short"])
    held = sum(tally.page for _, tally in tallies)
    assert at_once["simulated in"] == "2 settings, 2 benchmarks"
    assert at_once["measured"] == f"{100 * held / 2:.1f} % of benchmarks; no setting failed"
    assert " ranges of probabilities; plans in " in near["measured"]
    assert "standard error" in near["lowest"]


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
