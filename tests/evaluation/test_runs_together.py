"""Small runs of a sweep are evaluated together, each with the tables that it has by itself."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest

from fairbench.evaluation.evaluator import Evaluator
from fairbench.experiments import pipeline
from fairbench.experiments.execute import Execution, in_process, plan_run, prepared
from fairbench.results.tables import summary_in
from tests.harness import configuration

VARIED = ("consistency.vary=learner.max_depth", "consistency.values=[2,3]")


@pytest.fixture
def plans(tmp_path):
    """Return plans of small runs, and of one with variants, whose cells are stored."""
    words = ("dataset=simulated", "dataset.n_samples=150", "split.repeats=2", "figures=false")
    several = [(f"seed={seed}",) for seed in range(3)] + [VARIED]
    planned = [plan_run(configuration(*words, *own, results=tmp_path)) for own in several]
    for plan in planned:
        pipeline.ensure_all(prepared(plan).cells, plan.store)
    return planned


def counted(monkeypatch, *called):
    """Count the calls of some functions, which do what they did."""
    counts = Counter()

    def counting(original):
        def count(*arguments, **options):
            counts[original.__name__] += 1
            return original(*arguments, **options)

        return count

    for owner, name in called:
        monkeypatch.setattr(owner, name, counting(getattr(owner, name)))
    return counts


def test_small_runs_are_evaluated_in_one_block_with_the_tables_of_each(plans, monkeypatch):
    called = (Evaluator, "table"), (pipeline, "concatenate"), (pipeline, "summarise")
    counts = counted(monkeypatch, *called)
    assert not [end.error for end in Execution(plans, in_process).carry_out() if end.error]
    # One table of what is fitted as asked for, and one of all variants.
    assert counts == {"table": 2, "concatenate": 1, "summarise": 1}
    for plan in plans:
        run = prepared(plan)
        ((metrics, summary, predictions),) = pipeline.evaluate_runs([run])
        stored = run.folder.all_metrics()
        pd.testing.assert_frame_equal(stored, metrics, check_dtype=False, check_categorical=False)
        means = summary_in(run.folder.content("summary.csv"))
        np.testing.assert_allclose(means["mean"], summary["mean"], rtol=1e-12)
        assert list(means["metric"]) == list(summary["metric"])
        assert len(run.folder.predictions()) == len(predictions)


@pytest.mark.thorough
def test_a_run_that_cannot_be_evaluated_leaves_the_others_of_its_block(plans):
    run = prepared(plans[1])
    cell = run.cells[0]
    stored = run.store.read(cell.id)
    impossible = {
        name: np.full_like(values, np.nan) if values.dtype.kind == "f" else values
        for name, values in stored.columns.items()
    }
    run.store.write(cell.id, impossible, stored.notes)
    ends = Execution(plans, in_process).carry_out()
    assert [bool(end.error) for end in ends] == [False, True, False, False]
    assert "not finite" in ends[1].error
    assert [prepared(plan).finished for plan in plans] == [True, False, True, True]
