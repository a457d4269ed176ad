"""Other rankings than ``fairbench rank``: they answer as bencheval 0.1.0 and autorank 1.3.0 do."""

import numpy as np
import pandas as pd
import pytest
from scipy import special, stats

from benchmarks.leaderboards import tabarena, tabzilla
from benchmarks.rank_beside import Ranking, autorank, elo, judge, nemenyi, ratings

PLACE = np.arange(12)


def table(methods):
    """Normal scores in other orders, each method 0.008 above the one before."""
    normal = 0.01 * special.ndtri((PLACE + 0.5) / 12)
    rows = [normal[(5 * PLACE * (k + 1) + k) % 12 if k else PLACE] for k in range(methods)]
    return np.stack([0.7 + row + 0.008 * k for k, row in enumerate(rows)]).round(4)


def answer(rule, of_task):
    return rule(of_task, np.random.default_rng(0))


def reach(found):
    return np.mean(found.upper - found.lower) / 2


def test_three_normal_methods_are_compared_as_autorank_does_by_tukey():
    result = answer(autorank, table(3))
    assert result.of == "scores"
    assert reach(result) == pytest.approx(0.009810202874006357, rel=1e-6)
    assert result.above.tolist() == [[False] * 3, [False] * 3, [True, False, False]]


def test_four_methods_of_which_one_is_not_normal_are_compared_by_nemenyi():
    of_task = table(4)
    result = answer(autorank, of_task)
    assert result.of == "ranks"
    assert reach(result) == pytest.approx(1.3539901117469855, rel=1e-4)
    assert (result.above == answer(nemenyi, of_task).above).all()
    assert result.above[3, 0] and not result.above[0].any()


def test_two_methods_are_compared_by_t_or_one_sided_wilcoxon():
    of_task = table(2)  # autorank's t-test has p = 0.037
    assert answer(autorank, of_task).above.tolist() == [[False, False], [True, False]]
    of_task[0, 0] -= 0.3  # no longer normal: autorank's Wilcoxon has p = 0.026
    result = answer(autorank, of_task)
    assert result.of == "nothing"
    assert result.above.tolist() == [[False, False], [True, False]]


def test_ratings_are_those_of_bencheval():
    base = 0.7 + 0.01 * np.sin(3 * PLACE)
    of_task = np.stack([base + 0.01 * np.sin(PLACE * k + k) + 0.006 * k for k in (1, 2, 3)]).round(
        3
    )
    wins = (stats.rankdata(of_task, axis=0) - 1).sum(axis=1)
    theirs = [823.238618, 1012.177599, 1164.583784]
    np.testing.assert_allclose(ratings(wins[None], 12)[0], theirs, atol=1e-4)
    result = elo(of_task, np.random.default_rng(0), rounds=1000)
    assert (result.lower <= theirs).all() and (theirs <= result.upper).all()
    assert result.upper[0] - theirs[0] == pytest.approx(124.6, abs=15)


def test_ratings_of_a_method_that_always_loses_are_finite():
    wins = np.array([[0.0, 10.0, 20.0]])
    strength = (ratings(wins, 10)[0] - 1000) / (400 / np.log(10))
    assert np.isfinite(strength).all()
    assert (np.diff(strength) > 10).all()


def test_a_wrong_claim_and_a_missed_interval_are_counted():
    true = np.array([0.8, 0.8, 0.7])
    above = np.array([[0, 0, 1], [0, 0, 0], [0, 0, 0]], dtype=bool)
    gap = true[[0, 0, 1]] - true[[1, 2, 2]]
    row = judge(Ranking(above, gap - 0.01, gap + 0.01, "scores"), true, {"scores": gap})
    assert (row["right"], row["found"], row["all inside"]) == (1, 0.5, 1)
    above[0, 1] = True  # alike
    shifted = gap + [0.02, 0, 0]
    row = judge(Ranking(above, shifted - 0.01, shifted + 0.01, "scores"), true, {"scores": gap})
    assert (row["right"], row["all inside"]) == (0, 0)
    assert row["inside"] == pytest.approx(2 / 3)


def test_a_leaderboard_of_elo_is_read_again(tmp_path, capsys):
    random = np.random.default_rng(0)
    rows = [
        {"dataset": f"d{task}", "method": method, "problem_type": kind, "imputed": False,
         "metric_error": 0.2 + loss + random.normal(0, 0.01)}
        for task, kind in enumerate(["binary", "regression"] * 15)
        for method, loss in {"a": 0.0, "b": 0.002, "c": 0.1, "LR [Rerun]": 0.3}.items()
    ]  # fmt: skip
    pd.DataFrame(rows).to_csv(tmp_path / "results.csv")
    board = {"method": ["a", "b", "c", "LR [Rerun]"], "elo": [1100, 1090, 800, 500],
             "elo+": 9, "elo-": 9}  # fmt: skip
    pd.DataFrame(board).to_csv(tmp_path / "board.csv")
    reports = tabarena(tmp_path / "results.csv", tmp_path / "board.csv")
    assert reports["beaten"].answers[0].units == 30
    assert reports["auc"].answers[0].units == 15
    said = capsys.readouterr().out
    assert "do not overlap in 2 pairs, of which 2 surely differ by rank; 2 overlap" in said


def test_versions_of_a_data_set_are_one_family_of_tabzilla(tmp_path, capsys):
    random = np.random.default_rng(0)
    names = [f"openml__set{number // 2}__{number}" for number in range(24)]
    rows = [
        {
            "alg_name": name,
            "dataset_name": data,
            "Accuracy__test_mean": 0.8 + random.normal(0, 0.01),
        }
        for name in ("CatBoost", "KNN", "SVM")
        for data in names
    ]
    pd.DataFrame(rows).to_csv(tmp_path / "tuned.csv")
    assert tabzilla(tmp_path / "tuned.csv").answers[0].units == 12
    assert "pairs of methods surely differ" in capsys.readouterr().out
