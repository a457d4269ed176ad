"""The battery of coverage: intervals of ours hold in at least 93 %, and its page says so."""

import shutil
from dataclasses import replace
from itertools import chain

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from benchmarks import rank
from benchmarks.coverage import counts as made
from benchmarks.coverage.__main__ import main
from benchmarks.coverage.families import FAMILIES
from benchmarks.coverage.page import PAGE, PROMISES, TEXTS, failures, rows_of, write
from benchmarks.coverage.simulate import Cell, count, simulate
from benchmarks.measure import command, fill, markdown, read_rows
from benchmarks.statements import page as statements
from fairbench.core.errors import UserError

MUST_PRINT = ("rates", "differences", "ratios", "gaps", "smallest_ratios")


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_no_cell_of_ours_fails(family):
    cells = list(simulate(family, short=True, construction="ours"))
    assert cells
    assert failures(cells) == []
    if family.name in MUST_PRINT:
        assert all(cell.printed == cell.trials for cell in cells)


def test_populations_are_all_different_and_have_the_gap_that_they_say():
    populations, draw = made.all_populations(), np.random.default_rng(0)
    assert len({population.name for population in populations}) == len(populations) > 1500
    for population in populations:
        gaps = np.ptp(population.rates(20, draw), axis=1)
        np.testing.assert_allclose(gaps, population.gap, atol=1e-12)


def test_a_cell_counts_sides_and_fails_where_it_is_surely_too_low():
    truth = np.zeros(1000)
    lower, upper = np.full(1000, -1.0), np.full(1000, 1.0)
    lower[:60], upper[60:80] = 0.5, -0.5
    upper[990:] = np.nan
    cell = count(("f", "m", "ours", "p"), truth, (lower, upper))
    assert (cell.trials, cell.printed, cell.below, cell.above) == (1000, 990, 60, 20)
    assert cell.coverage == pytest.approx(910 / 990)
    assert not cell.failed  # 91.9 % may be 93 % by chance, 80 % may not
    assert Cell("f", "m", "ours", "p", 1000, 1000, 200, 0, 1.0).failed
    assert not Cell("f", "m", "ours", "p", 1000, 0, 0, 0, 1.0).failed


def test_a_cell_is_the_same_every_time():
    rates = FAMILIES[0]
    first, second = (list(simulate(rates, short=True, construction="Wald")) for _ in range(2))
    assert first == second


# What the battery calls fairlearn's bootstrap and Wilson's interval is that.

RESAMPLES = 60


def test_the_bootstrap_is_fairlearns_resample_by_resample():
    from fairlearn.metrics import MetricFrame, selection_rate

    draw, group = np.random.default_rng(1), np.repeat(np.arange(3), [60, 40, 25])
    chosen = (draw.random(len(group)) < np.array([0.3, 0.5, 0.4])[group]).astype(int)
    how = {"n_boot": RESAMPLES, "ci_quantiles": [0.025, 0.975], "random_state": 7}
    of = {"y_true": chosen, "y_pred": chosen, "sensitive_features": group}
    frame = MetricFrame(metrics=selection_rate, **of, **how)
    # Its resamples' rows, by the seeds that it draws for them.
    seeds = np.random.default_rng(7).integers(0, np.iinfo(np.uint32).max, RESAMPLES, np.uint32)
    cells = pd.Series(group + 3 * (1 - chosen))
    drawn = [cells.sample(frac=1, replace=True, random_state=seed) for seed in seeds]
    resampled = np.stack([np.bincount(cell, minlength=6) for cell in drawn])[:, None]
    for statistic, theirs in (
        (made.gap_of, frame.difference_ci()),
        (made.smallest_of, frame.ratio_ci()),
        (made.rate_of, np.stack(frame.by_group_ci)),
    ):
        ends = np.squeeze(made.bootstrap_quantiles(resampled, statistic))
        np.testing.assert_allclose(ends, theirs, atol=1e-12)


def test_wilson_limits_are_scipys():
    hits, rows = [0, 3, 20], [20, 50, 20]
    ends = np.array(made.wilson_limits(made.Counts(np.array([hits]), np.array(rows)))[1:])
    for both, end in zip(zip(hits, rows, strict=True), ends[:, 0].T, strict=True):
        known = stats.binomtest(*both).proportion_ci(0.95, "wilson")
        np.testing.assert_allclose(end, [*known], atol=1e-9)


# The page: its tables are made of the rows beside it, which are kept until anew.

CELLS = [
    Cell("rates", "one", "ours", "few rows", 1000, 1000, 30, 20, 0.2),
    Cell("rates", "one", "ours", "many rows", 1000, 1000, 10, 10, 0.1),
    Cell("rates", "one", "Wald", "few rows", 1000, 1000, 300, 20, 0.1),
    Cell("rates", "other", "ours", "few rows", 1000, 1000, 60, 9, 0.2),
    Cell("differences", "difference", "ours", "apart", 1000, 1000, 100, 100, 0.2),
    Cell("evaluate", "accuracy", "ours", "all", 400, 400, 10, 10, 0.2),
]


def test_every_family_of_intervals_is_part_of_one_promise_and_said_in_words():
    names = sorted(family.name for family in FAMILIES)
    assert sorted(chain.from_iterable(PROMISES.values())) == names
    text = PAGE.read_text()
    assert all(f"** (`{name}`): " in text for name in names)


def test_the_lowest_settings_are_kept_in_the_row():
    first = rows_of(CELLS).iloc[0]
    assert (first["settings"], first["trials"], first["lowest_in"]) == (2, 2000, "few rows")
    assert first["next_lowest"] == "98.0 % with many rows"
    assert (first["truth_below"], first["truth_above"], first["mean"]) == (2.0, 1.5, 96.5)


@pytest.mark.parametrize("family", ["rates", "differences"])
def test_rows_of_a_family_are_kept_until_it_is_measured_again(tmp_path, family):
    path = tmp_path / "coverage.md"
    write(path, rows_of(CELLS))
    before = read_rows(path.with_suffix(".csv"), TEXTS)
    assert before["family"].tolist() == ["rates"] * 3 + ["differences", "evaluate"]
    again = [replace(cell, below=0, above=0) for cell in CELLS if cell.family == family]
    write(path, rows_of(again))
    after = read_rows(path.with_suffix(".csv"), TEXTS)
    same = before["family"] != family
    assert after[same].equals(before[same])
    assert (after.loc[~same, "mean"] == 100).all()
    assert f"{'1' if family == 'rates' else 'no'} setting failed" in path.read_text()


def test_a_page_without_a_place_for_a_table_is_refused(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# A page\n")
    with pytest.raises(UserError, match="no place for a table: a line '<!-- figures -->'"):
        fill(page, {"figures": markdown([["a"], ["1"]])})
    assert page.read_text() == "# A page\n"


def test_a_part_of_a_family_is_not_written(tmp_path, capsys):
    words = ["family=fixed_rates", "short=true", f"write={tmp_path / 'coverage.md'}"]
    assert command(main, words) == 2
    assert "write= needs whole families" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("page", [PAGE, statements.PAGE], ids=lambda page: page.stem)
def test_the_page_is_what_its_rows_make_of_it(tmp_path, page):
    """Nobody has changed a figure of the tables by hand, nor left one behind."""
    files = [path for each in (PAGE, statements.PAGE) for path in (each, each.with_suffix(".csv"))]
    for path in files:
        shutil.copy(path, tmp_path)
    make, rows = (write, rows_of([])) if page == PAGE else (statements.write, [])
    make(tmp_path / page.name, rows)
    for path in files:
        assert (tmp_path / path.name).read_text() == path.read_text()


def test_calibration_has_standard_errors_of_benchmarks():
    """Of one population of independent benchmarks they are those of a ratio of means."""
    random = np.random.default_rng(1)
    weight, came = random.random((2, 400, rank.BINS))
    sums = np.stack([0.7 * weight, came * weight, weight], axis=1)
    off, error, share = rank.calibration([rank.Tally(runs=400, tenths=[*sums])])
    np.testing.assert_allclose(off, 0.7 - sums[:, 1].sum(0) / sums[:, 2].sum(0))
    drawn = random.integers(0, 400, (2000, 400))
    again = 0.7 - sums[drawn, 1].sum(1) / sums[drawn, 2].sum(1)
    np.testing.assert_allclose(error, again.std(axis=0), rtol=0.1)
    assert share.sum() == pytest.approx(1)
