"""What is cut off sequences, by group: the metrics, and what a run makes of them."""

import numpy as np
import pytest

from fairbench.core.errors import UserError
from fairbench.evaluation.regression import evaluate_truncation
from fairbench.experiments import pipeline
from fairbench.experiments.execute import carry_out
from fairbench.inference.rates import rate_limits
from fairbench.metrics.sequences import padded_frames, truncated_frames, truncated_rows
from tests.evaluation.labelled import added, labelled
from tests.harness import configuration

LENGTHS = np.array([[10, 10], [4, 8], [30, 5], [20, 20]])
LIMITS = np.array([10, 8])


def test_shares_of_rows_by_hand():
    assert truncated_rows([], LENGTHS, LIMITS).tolist() == [1, 0, 1, 1]
    np.testing.assert_allclose(truncated_frames([], LENGTHS, LIMITS), [2 / 20, 0, 20 / 35, 22 / 40])
    np.testing.assert_allclose(padded_frames([], LENGTHS, LIMITS), [0, 6 / 18, 3 / 18, 0])


def truncated(groups, lengths):
    """Return what is cut off sequences of these lengths where 15 frames are read, by place."""
    data = labelled(np.zeros(len(groups)), groups, prediction=np.zeros(len(groups)))
    return added(evaluate_truncation, data, lengths, np.array([15]))


def test_groups_have_rates_with_intervals_and_differences():
    draw = np.random.default_rng(0)
    group = draw.choice(["A", "B"], 400)
    lengths = draw.integers(1, 20, (400, 1)) + 10 * (group == "B")[:, None]
    rows, cut = truncated(group, lengths), lengths[:, 0] > 15
    for name, mine in (("A", group == "A"), ("B", group == "B")):
        result = rows["truncated_rows", name, ""]
        limits = rate_limits(cut[mine].sum(), mine.sum(), level=0.95)
        expected = [cut[mine].mean(), float(limits.lower), float(limits.upper)]
        assert [result.value, result.lower, result.upper] == pytest.approx(expected)
    gap = cut[group == "B"].mean() - cut[group == "A"].mean()
    assert rows["truncated_rows_gap", "", ""].value == pytest.approx(gap)
    for metric in ("truncated_rows", "truncated_frames", "padded_frames"):
        difference = rows[f"{metric}_difference", "B", ""]
        assert difference.lower < difference.value < difference.upper
        assert {row.status for place, row in rows.items() if place[0] == metric} == {"ok"}


def test_shares_of_frames_never_have_limits_above_one():
    lengths = np.random.default_rng(3).choice([900, 5000], (60, 1), p=[0.2, 0.8])
    upper = [row.upper for row in truncated("AB" * 30, lengths).values()]
    assert np.nanmax(upper) == 1


TINY = (
    *("dataset=simulated_sequences", "dataset.n_samples=120", "dataset.length=6"),
    *("dataset.event=2", "dataset.longer=2", "split.repeats=1", "figures=false", "tracking=none"),
    *("learner=sequence_transformer", "learner.epochs=2", "learner.width=4"),
    *("learner.heads=1", "learner.length=9"),
)


@pytest.mark.thorough
def test_a_run_says_what_its_learner_does_not_read(tmp_path):
    words = "method=deep_ensemble", "method.members=2", "split.validation=0.2"
    made = carry_out(configuration(*TINY, *words, results=tmp_path)).prepared
    metrics = made.folder.all_metrics().set_index(["metric", "group"]).sort_index()
    lengths = made.dataset.features.lengths[made.cells[0].fold.test]
    group = made.dataset.sensitive["group"].to_numpy()[made.cells[0].fold.test]
    cut = (lengths > 9).any(axis=1)
    for name in "AB":
        rate = metrics.loc[("truncated_rows", name), "value"].iloc[0]
        assert rate == pytest.approx(cut[group == name].mean())
    assert metrics.loc[("epistemic_uncertainty", "B"), "value"].notna().all()
    shown = made.folder.summary()
    assert {"truncated_frames", "padded_frames", "truncated_rows_gap"} <= set(shown["metric"])


def test_a_modality_that_there_is_not_is_refused(tmp_path):
    words = (*TINY, "learner.modalities=[visua]", "method=baseline")
    said = "unknown modality of dataset=simulated_sequences 'visua':"
    with pytest.raises(UserError, match=said):
        pipeline.prepare(configuration(*words, results=tmp_path))
