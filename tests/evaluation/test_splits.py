"""Splits, and small runs of a sweep, evaluated together: each has what it has by itself."""

import contextlib
from dataclasses import replace
from unittest import mock

import numpy as np
import pandas as pd
import pytest

from fairbench.core.arrays import rng
from fairbench.data.dataset import Task
from fairbench.evaluation.evaluator import Evaluator
from fairbench.evaluation.predictions import Labelled
from fairbench.evaluation.table import SETTINGS, concatenate
from fairbench.experiments import pipeline
from fairbench.experiments.execute import Execution, in_process, plan_run, prepared
from fairbench.results.tables import summary_in
from tests.evaluation.labelled import labelled
from tests.harness import configuration

KEYS = ["metric", "statistic", "attribute", "group", *SETTINGS]
EVERYTHING = Evaluator(
    neighbours=1000, relaxations=(0.1, 1.0), feature_shift_rates=(0.2,), draws=100, bins=5
)


def split_of(seed, rows, task=Task.BINARY):
    """Return predictions of some rows, with a group that is small or has no rows at all."""
    draw = np.random.default_rng(seed)
    score = draw.beta(1, 2, rows)
    target = (draw.random(rows) < score).astype(float)
    sex, race = draw.choice(["f", "m"], rows), draw.choice(list("abc"), rows, p=[0.7, 0.28, 0.02])
    groups = {"sex": pd.Categorical(sex, ["f", "m"]), "race": pd.Categorical(race, list("abc"))}
    columns = {"prediction": score > 0.4, "score": score, "uncertainty": score * (1 - score)}
    truth, classes = pd.DataFrame({"probability": score}), ()
    if task is Task.REGRESSION:
        target, columns = score + draw.normal(size=rows), {"prediction": score, "sd": 0.5 + score}
        truth = pd.DataFrame({"mean": score, "sd": np.ones(rows)})
    elif task is Task.MULTICLASS:
        shares = draw.dirichlet([1, 2, 3], rows)
        target, classes, truth = draw.integers(0, 3, rows), ("x", "y", "z"), None
        columns = {"prediction": shares.argmax(axis=1), "uncertainty": 1 - shares.max(axis=1)}
        columns |= {f"score_{k}": shares[:, k] for k in range(3)}
    return replace(
        labelled(target, task=task, truth=truth, **columns),
        groups={name: pd.Series(labels) for name, labels in groups.items()},
        classes=classes,
        features=pd.DataFrame({"age": draw.normal(size=rows)}),
        encoded=draw.normal(size=(rows, 2)),
    )


def assert_same(one, other):
    assert len(one) == len(other)
    one, other = (
        table.assign(**{name: table[name].astype(object).fillna("") for name in SETTINGS})
        .set_index(["repeat", *KEYS]).sort_index()
        for table in (one, other)
    )  # fmt: skip
    assert not one.index.duplicated().any()
    pd.testing.assert_frame_equal(one, other, rtol=1e-12, atol=1e-15)


@pytest.mark.thorough
@pytest.mark.parametrize("task", list(Task))
@pytest.mark.parametrize("interval", ["frequentist", "dirichlet"])
def test_splits_together_have_the_rows_of_each_alone(task, interval):
    evaluator = Evaluator(**{**vars(EVERYTHING), "interval": interval})
    splits = [split_of(seed, rows, task) for seed, rows in ((1, 90), (2, 40), (3, 130))]
    held_out = [split_of(seed, 60, task) for seed in (4, 5, 6)]

    def generators():
        return [rng(0, "posterior", seed) for seed in range(3)]

    together = evaluator.table(
        Labelled.joined(splits),
        generators(),
        validation=Labelled.joined(held_out),
        protect="race",
        splits=(0, 1, 2),
    )
    alone = [
        evaluator.table(split, [generator], validation=validation, protect="race", splits=(s,))
        for s, (split, validation, generator) in enumerate(
            zip(splits, held_out, generators(), strict=True)
        )
    ]
    if task is Task.BINARY:  # what the evaluator has where it is asked for
        asked = {"feature_shift", "postprocessed_gap", "individual_fairness_prediction"}
        assert asked <= set(together.frame()["metric"])
    keys = [(0, s, 0, "") for s in range(3)]
    assert_same(concatenate([together], keys), concatenate(alone, keys))


# Runs of a sweep.

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


def test_small_runs_are_evaluated_in_one_block_with_the_tables_of_each(plans):
    called = (Evaluator, "table"), (pipeline, "concatenate"), (pipeline, "summarise")
    with contextlib.ExitStack() as spying:  # they do what they did
        spies = [
            spying.enter_context(mock.patch.object(*of, autospec=True, side_effect=getattr(*of)))
            for of in called
        ]
        assert not [end.error for end in Execution(plans, in_process).carry_out() if end.error]
    # One table of what is fitted as asked for, and one of all variants.
    assert [spy.call_count for spy in spies] == [2, 1, 1]
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
