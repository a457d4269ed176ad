"""The study of truncated sequences: what can be known of a label, and tables of finished runs."""

import io

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from fairbench.cli.command import Results
from fairbench.components.datasets import simulated_sequences
from fairbench.components.papers.uncertainty_fairness import sequences
from fairbench.core.errors import UserError

OPTIONS = {"event": 4, "noise": 0.5, "strength": 4.0}


@pytest.fixture(scope="module")
def data():
    return simulated_sequences.load(None, n_samples=8_000, longer=3.0)


def test_whole_sequences_say_all_that_the_truth_says(data):
    p = sequences.known(data, OPTIONS, [], None)
    np.testing.assert_allclose(p, data.truth["probability"], atol=1e-5)


@pytest.mark.parametrize(("modalities", "length"), [([], 36), ([], 20), (["visual"], None)])
def test_what_is_known_of_less_is_calibrated(data, modalities, length):
    """Of the people for whom it is p, a share p has label 1; no more is known than of it all."""
    p = sequences.known(data, OPTIONS, modalities, length)
    for low in np.arange(0, 1, 0.1):
        rows = (p >= low) & (p < low + 0.1)
        share = data.target.to_numpy()[rows].mean()
        assert share == pytest.approx(p[rows].mean(), abs=5 * 0.5 / np.sqrt(rows.sum()))
    truth = data.truth["probability"].to_numpy()
    assert (p * (1 - p)).mean() > (truth * (1 - truth)).mean() + 0.02


def found(seeds=4):
    draw = np.random.default_rng(0)
    rows = [
        {
            **{"modalities": "both", "length": length, "seed": seed, "metric": metric},
            **{"A": 0.1 * draw.uniform(0.98, 1.02), "B": factor * 0.1 * draw.uniform(0.98, 1.02)},
        }
        for metric in (*sequences.METRICS, "ideal")
        for length, factor in ((0, 1.0), (18, 2.0))
        for seed in range(seeds)
    ]
    return pd.DataFrame(rows)


def test_truncation_is_compared_within_populations():
    text = io.StringIO()
    console = Console(file=text, width=170)
    console.print(sequences.table(found()))
    console.print(sequences.effects(found()))
    shown = text.getvalue()
    assert "both, 18 frames" in shown and "both, whole" in shown
    cut, whole = sequences._paired(found().query("metric == 'ideal'"))
    assert (cut["B"] / whole["B"]).between(1.9, 2.1).all() and len(cut) == 4
    fewer = found().query("metric == 'ideal' and seed + length != 18")
    assert len(sequences._paired(fewer)[0]) == 3


def test_it_says_what_to_run_where_nothing_was(tmp_path):
    with pytest.raises(UserError, match="-m experiment=uncertainty_fairness/sequences"):
        sequences.main(Results(tmp_path))
