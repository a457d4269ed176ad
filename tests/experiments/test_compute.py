"""Computing cells: what is stored, the frame that is shared, and any number of processes."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

from fairbench.components.algorithms.fitters.single import Single
from fairbench.components.algorithms.interventions.multicalibration import Multicalibration
from fairbench.components.algorithms.interventions.none import NoIntervention
from fairbench.components.algorithms.interventions.threshold_optimizer import ThresholdOptimizer
from fairbench.components.algorithms.learners.logistic_regression import LogisticRegression
from fairbench.components.algorithms.learners.xgboost import XGBoost
from fairbench.core.errors import UserError
from fairbench.data.dataset import Source
from fairbench.data.features import Encoder, Encoding
from fairbench.experiments import pipeline
from fairbench.experiments.compute import TEST, VALIDATION, _encoded, _flatten, compute, raw_outputs
from fairbench.experiments.contracts import Capabilities, cells_of
from fairbench.experiments.execute import carry_out
from fairbench.experiments.pipeline import ensure, read
from fairbench.results.runs import Store
from tests.harness import TINY, configuration
from tests.studies import Recorder, folds_of, study


@pytest.fixture
def seen():
    Recorder.seen.clear()
    return Recorder.seen


def test_a_cell_holds_validation_and_test_rows_with_a_column_for_each_member():
    own = study()
    (fold,) = folds_of(own, repeats=1)
    columns, notes = compute(own, fold)
    assert list(columns) == ["part", "row", "score.0", "score.1", "score.2"]
    np.testing.assert_array_equal(columns["row"][columns["part"] == VALIDATION], fold.validation)
    np.testing.assert_array_equal(columns["row"][columns["part"] == TEST], fold.test)
    assert {columns[f"score.{member}"].dtype for member in range(3)} == {np.dtype(np.float32)}
    assert notes["train_rows"] == len(fold.train)
    assert min(notes["fit_seconds"], notes["predict_seconds"]) > 0


@dataclass(frozen=True)
class Own:
    """A learner of somebody's own, its own estimator, which gives what `form` makes of an array."""

    form: Callable[[NDArray[np.float64]], Any] = np.asarray
    encoding: ClassVar[Encoding] = Encoding.ONEHOT
    capabilities: ClassVar[Capabilities] = Capabilities()

    def estimator(self, loss, seed):
        return self

    def fit(self, X, y, sample_weight=None):
        return self

    def predict_proba(self, X):
        p = 1 / (1 + np.exp(-X[:, 0].toarray().ravel()))
        return self.form(np.column_stack([1 - p, p]))


@pytest.mark.parametrize(
    "intervention", [NoIntervention(), ThresholdOptimizer(), Multicalibration()], ids=repr
)
def test_an_own_estimator_may_give_lists(intervention):
    def outputs(form):
        own = study(learner=Own(form), intervention=intervention, fitter=Single())
        (fold,) = folds_of(own, repeats=1)
        return {n: v for n, v in compute(own, fold)[0].items() if n in ("score", "prediction")}

    (values,), (listed,) = outputs(np.asarray).values(), outputs(np.ndarray.tolist).values()
    np.testing.assert_array_equal(listed, values)


def test_an_own_estimator_that_gives_too_little_is_refused_in_a_line():
    for form, said in (
        (lambda array: array[:-1].tolist(), "Own gives 42 values of 'score' for 43 rows"),
        (lambda array: array[:, 1].tolist(), r"predict_proba of Own gives shape \(43,\)"),
    ):
        own = study(learner=Own(form), fitter=Single())
        (fold,) = folds_of(own, repeats=1)
        with pytest.raises(UserError, match=said):
            compute(own, fold)


def test_only_training_rows_are_fitted_with_draws_of_each_fold_s_own(seen, tmp_path):
    own, store = study(learner=Recorder()), Store(tmp_path)
    target, data = own.dataset.target.to_numpy(), own.dataset
    cells = cells_of(own, folds_of(own))
    # Each is computed once, and again when told to.
    assert [ensure(cell, store) for cell in (*cells, *cells)] == [True, True, False, False]
    assert ensure(cells[0], store, recompute=True)
    assert len(seen) == 9
    assert len({fit["seed"] for fit in seen}) == 6
    for cell, fits in ((cells[0], seen[:3]), (cells[1], seen[3:6])):
        train = cell.fold.train
        expected = Encoder(Encoding.ONEHOT).fit(data.features)
        expected = expected.transform(data.take(train).features).toarray()
        for fit in fits:
            np.testing.assert_array_equal(fit["y"], target[train])
            np.testing.assert_array_equal(fit["X"].toarray(), expected)
        assert len({id(fit["X"]) for fit in fits}) == 1


@pytest.mark.parametrize("label", [0, 1])
def test_one_class_among_the_training_rows_gives_no_outputs_and_the_reason(label, seen):
    own = study(learner=Recorder())
    (fold,) = folds_of(own, repeats=1)
    target = own.dataset.target.copy()
    target.iloc[fold.train] = label
    columns, notes = compute(replace(own, dataset=replace(own.dataset, target=target)), fold)
    assert seen == []
    assert notes["invalid"] == f"only class {label} among {len(fold.train)} training rows"
    assert np.isnan(columns["score"]).all()
    assert len(columns["score"]) == len(fold.validation) + len(fold.test)


def test_stored_columns_become_the_raw_outputs_again():
    draw = np.random.default_rng(0)
    shapes = {"mean": (5, 12), "sd": (5,), "radius": (5, 1), "score": (5, 4, 3)}
    outputs = {name: draw.random(shape) for name, shape in shapes.items()}
    columns = {"part": np.ones(5, np.int8), "row": np.arange(5), **_flatten(outputs)}
    again = raw_outputs(columns)
    assert set(again) == set(outputs)
    for name, values in outputs.items():
        assert again[name].dtype == np.float64
        assert again[name].shape == values.shape
        np.testing.assert_array_equal(again[name], values.astype(np.float32))


@pytest.mark.parametrize("learner", [XGBoost(rounds=2), LogisticRegression()])
@pytest.mark.parametrize("part", ["train", "test"])
def test_a_column_without_a_value_in_one_part_is_no_reason_to_refuse_the_fold(part, learner):
    own = study(learner=learner)
    (fold,) = folds_of(own, repeats=1)
    features = own.dataset.features.copy()
    features.loc[features.index[getattr(fold, part)], "x0"] = np.nan
    columns, _ = compute(replace(own, dataset=replace(own.dataset, features=features)), fold)
    assert np.isfinite(columns["score.0"]).all()


# --- one frame


def dense(frame):
    return frame.toarray() if hasattr(frame, "toarray") else np.asarray(frame)


def test_studies_of_one_fold_share_one_frame_that_is_never_stale():
    own = study()
    (fold,) = folds_of(own, repeats=1)
    first = _encoded(own, fold)
    deeper = replace(own, learner=XGBoost(max_depth=9), fitter=Single(), replicate=3, seed=5)
    for other, again in ((own, fold), (deeper, fold), (own, replace(fold))):
        assert all(map(operator.is_, _encoded(other, again), first))
    folds = folds_of(own)
    doubled = own.dataset.features.copy()
    doubled["x0"] *= 2
    other_file = (Source("people.csv", "another checksum"),)
    changed = replace(own.dataset, features=doubled, sources=other_file)
    cases = [
        (own, folds[0]),
        (own, folds[1]),
        (replace(own, learner=LogisticRegression()), folds[0]),
        (replace(own, dataset=changed), folds[0]),
        (own, folds[0]),
        (own, replace(folds[0], train=folds[0].train[5:])),
        (own, replace(folds[0], test=folds[0].test[5:])),
    ]
    for case, fold in cases:
        train, rest = _encoded(case, fold)
        data = case.dataset
        encoder = Encoder(case.learner.encoding).fit(data.take(fold.train).features)
        rows = np.concatenate([fold.validation, fold.test])
        for result, expected_rows in ((train, fold.train), (rest, rows)):
            expected = encoder.transform(data.take(expected_rows).features)
            np.testing.assert_array_equal(dense(result), dense(expected))


# Evaluating stored cells: impossible outputs are kept for the methods that declare them.


def run_with_impossible_sds(method, results):
    """Return a run whose one cell's first sds are negative and NaN."""
    cfg = configuration(
        "dataset=simulated_regression", f"method={method}", "learner.rounds=2", *TINY,
        results=results,
    )  # fmt: skip
    run = carry_out(cfg).prepared
    (cell,) = run.cells
    stored = run.store.read(cell.id)
    sd = stored.columns["sd"].copy()
    sd[:2] = -1, np.nan
    run.store.write(cell.id, {**stored.columns, "sd": sd}, stored.notes)
    return run


def test_impossible_outputs_are_undefined_rows_of_a_method_that_declares_them(tmp_path):
    run = run_with_impossible_sds("normal_nll_reference", tmp_path)
    ((metrics, *_),) = pipeline.evaluate_runs([run])
    everyone = metrics[metrics["attribute"] == ""].set_index("metric")
    for metric, what in (("crps", "sd"), ("coverage", "interval"), ("spread_error", "uncertainty")):
        rows = everyone.loc[[metric]]
        assert set(rows["status"]) == {"invalid"}, metric
        assert set(rows["reason"]) == {f"{what} invalid in 2 of 40 rows"}, metric
        assert rows["value"].isna().all()
    assert everyone.loc[["rmse"], "value"].notna().all()
    of_another = run_with_impossible_sds("normal_nll", tmp_path)
    with pytest.raises(UserError, match="^method NormalNLL: column 'sd' is not finite in 1 of 40"):
        pipeline.evaluate_runs([of_another])


def test_neighbours_are_found_on_the_scale_of_the_training_rows(tmp_path):
    overrides = ("learner.rounds=2", "evaluator.neighbours=3", *TINY)
    run = carry_out(configuration(*overrides, results=tmp_path)).prepared
    (cell,) = run.cells
    encoded = read(run, cell, {}).test.encoded
    features = run.dataset.features
    scaler = Encoder(Encoding.STANDARD).fit(features.iloc[cell.fold.train])
    np.testing.assert_array_equal(encoded, scaler.transform(features.iloc[cell.fold.test]))
    ((metrics, *_),) = pipeline.evaluate_runs([run])
    assert (metrics["metric"] == "individual_fairness_prediction").sum() == (1 + 2 * 5) * 3
