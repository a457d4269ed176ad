"""Commands of this folder start without runs, and refuse what they cannot use in one line."""

import numpy as np
import pytest

from fairbench.cli.command import read
from fairbench.components.papers import CrossValidations, run_main
from fairbench.components.papers.uncertainty_matters import ground_truth, readings, studies
from fairbench.components.papers.uncertainty_matters.ground_truth import ALGORITHMS
from fairbench.components.papers.uncertainty_matters.readings import RHOS, measure


def test_a_count_is_given_or_has_its_default():
    for words, expected in (([], 200), (["cvs=12"], 12)):
        assert read(CrossValidations, words).cvs == expected


@pytest.mark.parametrize("word", ["0", "-3", "many", "1.5"])
def test_what_is_no_count_is_refused(word, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["command", "spreads", f"cvs={word}"])
    with pytest.raises(SystemExit) as refused:
        run_main(studies.spreads)
    assert refused.value.code == 2
    assert "Traceback" not in capsys.readouterr().err


def test_an_unknown_algorithm_is_one_line(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr("sys.argv", ["ground_truth", "algorithms=[Nobody]", f"results={tmp_path}"])
    with pytest.raises(SystemExit) as refused:
        run_main(ground_truth.main)
    assert refused.value.code == 2
    last = capsys.readouterr().err.strip().splitlines()[-1]
    assert last.startswith("error: unknown algorithm 'Nobody'; valid: ")


def test_nothing_needs_to_be_run_for_any_of_the_13():
    measured = measure()
    assert list(measured.counts) == list(ALGORITHMS)
    assert (measured.ratios["SVM"] == 1).all()
    for name in ALGORITHMS:
        assert measured.cvs(name) >= readings.FEW
        worths = [np.asarray(measured.effective_fraction(name, rho)) for rho in RHOS]
        assert all((worth > 0).all() and np.isfinite(worth).all() for worth in worths)


def test_cross_validations_of_a_results_folder_are_taken_where_it_has_more(monkeypatch, tmp_path):
    few, many = (np.ones((n, 2, 4), np.int64) for n in (readings.FEW - 1, readings.FEW + 1))
    for result, expected in ((few, readings.FEW), (many, readings.FEW + 1)):
        monkeypatch.setattr(readings.ground_truth, "load", lambda name, results, f=result: f)
        assert len(readings.most_counts("LR", tmp_path)) == expected
