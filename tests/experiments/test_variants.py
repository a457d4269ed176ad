"""Variants: what each differs in, the draws they share, and a varied run from end to end."""

from collections import namedtuple
from dataclasses import replace

import numpy as np
import pytest

from fairbench.components.algorithms.methods.baseline import Baseline
from fairbench.components.algorithms.methods.ensemble import Ensemble
from fairbench.core.errors import UserError
from fairbench.experiments import pipeline
from fairbench.experiments.compute import TEST, compute, raw_outputs
from fairbench.experiments.contracts import Consistency, cells_of
from fairbench.experiments.execute import carry_out
from tests.harness import TINY, configuration
from tests.studies import Recorder, folds_of, study

Variant = namedtuple("Variant", "label study method")
DEPTHS = Consistency("learner.max_depth", [1, 2, 3])
METHOD = Ensemble(3)


def variants_of(consistency, a_study=None, method=METHOD):
    return [Variant(*of) for of in consistency.variants(a_study or study(), method)]


def test_a_variant_for_each_value_differs_in_that_alone():
    own = study()
    variants = variants_of(DEPTHS, own)
    assert [variant.label for variant in variants] == ["max_depth=1", "max_depth=2", "max_depth=3"]
    for variant, depth in zip(variants, (1, 2, 3), strict=True):
        assert variant.study == replace(own, learner=replace(own.learner, max_depth=depth))
        assert variant.method is METHOD


def test_an_option_of_the_method_changes_the_fitter_and_the_reading():
    own = study()
    for variant, members in zip(
        variants_of(Consistency("method.members", [2, 5]), own), (2, 5), strict=True
    ):
        assert variant.label == f"members={members}"
        assert variant.method == Ensemble(members)
        assert variant.study == replace(own, fitter=Ensemble(members).fitter)


def test_replicates_differ_in_their_draws_alone():
    own = study()
    variants = variants_of(Consistency(replicates=3), own)
    assert [variant.label for variant in variants] == ["replicate=1", "replicate=2", "replicate=3"]
    assert [variant.study for variant in variants] == [replace(own, replicate=i) for i in (1, 2, 3)]


def test_nothing_varied_gives_no_variant():
    assert variants_of(Consistency()) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"vary": "learner.max_dept", "values": [1, 2]},
            "unknown option of the learner in consistency.vary 'max_dept': did you mean max_depth",
        ),
        (
            {"vary": "learnr.max_depth", "values": [1, 2]},
            "unknown component in consistency.vary 'learnr': did you mean learner? "
            "valid: intervention, learner, method",
        ),
        (
            {"vary": "method.member", "values": [1, 2]},
            "unknown option of the method in consistency.vary 'member': did you mean members? "
            "valid: members",
        ),
        (
            {"vary": "max_depth", "values": [1, 2]},
            "unknown component in consistency.vary 'max_depth'; ",
        ),
        ({"vary": "learner", "values": [1, 2]}, "unknown option of the learner in "),
        (
            {"vary": "learner.max_depth", "values": [1, "deep"]},
            "learner.max_depth is 'deep'; it must be a whole number",
        ),
        (
            {"vary": "learner.max_depth", "values": [1, -1]},
            "learner.max_depth is -1; it must be at least 0",
        ),
        (
            {"vary": "learner.max_depth"},
            "consistency.vary and consistency.values go together, such as "
            "consistency.vary=learner.max_depth consistency.values=[5,6,7,8]",
        ),
        ({"values": [1, 2]}, "consistency.vary and consistency.values go together"),
        (
            {"vary": "learner.max_depth", "values": [1]},
            "consistency.values needs at least two values to compare",
        ),
        (
            {"vary": "learner.max_depth", "values": [1, 2, 1]},
            "consistency.values has a value twice",
        ),
        ({"replicates": -1}, "consistency.replicates is -1; it must be at least 0"),
    ],
)
def test_what_cannot_be_varied_is_refused_in_one_sentence(options, message):
    with pytest.raises(UserError) as refusal:
        variants_of(Consistency(**options))
    assert str(refusal.value).startswith(message)
    assert "\n" not in str(refusal.value)


# --- draws


@pytest.fixture
def seen():
    Recorder.seen.clear()
    return Recorder.seen


def draws_of(consistency, seen, method=METHOD, score=0.5):
    """Return label -> (seed, bootstrap) of every member's fit on one fold."""
    own = study(learner=Recorder(score), fitter=method.fitter)
    (fold,) = folds_of(own, repeats=1)
    drawn = {}
    for variant in variants_of(consistency, own, method):
        seen.clear()
        compute(variant.study, fold)
        drawn[variant.label] = [(fit["seed"], fit["weight"].tobytes()) for fit in seen]
    return drawn


SCORES = Consistency("learner.score", [0.2, 0.4, 0.6])


def test_values_share_their_bootstraps_and_seeds(seen):
    first, *others = draws_of(SCORES, seen).values()
    assert len(first) == len(set(first)) == 3
    assert others == [first, first]


def test_members_shared_by_bags_of_different_size_are_the_same(seen):
    small, large = draws_of(Consistency("method.members", [2, 4]), seen).values()
    assert large[:2] == small


def test_fresh_draws_and_replicates_share_none(seen):
    own = draws_of(SCORES, seen)["score=0.2"]
    fresh = draws_of(replace(SCORES, fresh_draws=True), seen)
    replicates = draws_of(Consistency(replicates=3), seen)
    for drawn in (fresh, replicates):
        members = [member for variant in drawn.values() for member in variant]
        assert len({seed for seed, _ in [*own, *members]}) == 12
        assert len({weight for _, weight in [*own, *members]}) == 12
    assert draws_of(Consistency(replicates=3), seen) == replicates


# --- ids


def test_the_value_the_run_has_anyway_is_the_runs_own_cell():
    own = study()
    folds = folds_of(own)
    ids = {
        variant.label: [cell.id for cell in cells_of(variant.study, folds, variant.label)]
        for variant in variants_of(replace(DEPTHS, replicates=2), own)
    }
    mine = [cell.id for cell in cells_of(own, folds)]
    assert ids["max_depth=2"] == mine
    assert len({cell for cells in ids.values() for cell in cells}) == 10
    fresh = variants_of(replace(DEPTHS, fresh_draws=True), own)[1]
    assert not {cell.id for cell in cells_of(fresh.study, folds)} & set(mine)


def test_an_option_that_a_choice_does_not_heed_is_refused(tmp_path):
    words = ("dataset=simulated_regression", "consistency.vary=method.beta", *TINY)
    values = "consistency.values=[0,0.5]"
    cfg = configuration("method=normal_nll", *words, values, results=tmp_path)
    with pytest.raises(UserError, match="unknown option of method=normal_nll to vary 'beta'"):
        pipeline.prepare(cfg)
    pipeline.prepare(configuration("method=beta_nll", *words, values, results=tmp_path))


# --- a varied run, through the pipeline


@pytest.fixture(scope="module")
def varied(tmp_path_factory):
    cfg = configuration(
        "method=ensemble", "method.members=3", "learner.rounds=3", "evaluator.draws=100",
        "consistency.vary=learner.max_depth", "consistency.values=[2,4,6]",
        "consistency.replicates=2", *TINY, "split.repeats=2",
        results=tmp_path_factory.mktemp("results"),
    )  # fmt: skip
    return carry_out(cfg)


def stored_uncertainty(run, cell):
    columns = run.store.read(cell.id).columns
    members = raw_outputs(columns)["score"][columns["part"] == TEST]
    assert members.shape == (40, 3)
    return members.std(axis=1)


def test_a_varied_run_fits_each_distinct_cell_once(varied):
    run = varied.prepared
    # The run's own, two more depths (one is its own) and two replicates, on two folds.
    assert len(run.cells) == 12
    assert len({cell.id for cell in run.cells}) == varied.computed == 10


@pytest.mark.parametrize("repeat", [0, 1])
@pytest.mark.parametrize(
    ("prefix", "labels"),
    [
        ("consistency", ["max_depth=2", "max_depth=4", "max_depth=6"]),
        ("noise", ["replicate=1", "replicate=2"]),
    ],
)
def test_rows_of_consistency_and_noise_are_those_of_the_stored_cells(
    varied, repeat, prefix, labels
):
    run = varied.prepared
    cells = [c for c in run.cells if c.fold.repeat == repeat and c.variant in labels]
    values = np.array([stored_uncertainty(run, cell) for cell in cells])
    sd, whole = values.std(axis=0), -1.0
    rows = run.folder.all_metrics().query("repeat == @repeat and metric.str.startswith(@prefix)")
    assert set(rows["variant"]) == {""}
    assert set(rows["variants"]) == {len(labels)}
    result = rows.assign(quantile=rows["quantile"].fillna(whole))
    result = result.set_index(["metric", "quantile"])["value"]
    expected = {
        (f"{prefix}_max_sd", whole): sd.max(),
        (f"{prefix}_mean_sd", whole): sd.mean(),
        (f"{prefix}_mean_range", whole): (values.max(axis=0) - values.min(axis=0)).mean(),
        **{(f"{prefix}_sd", q): np.quantile(sd, q) for q in (0.05, 0.25, 0.5, 0.75, 0.95)},
    }
    assert set(result.index) == set(expected)
    for key, value in expected.items():
        assert result[key] == pytest.approx(value, rel=1e-12)
        assert value > 0


def test_each_variant_has_its_own_error_rate(varied):
    run = varied.prepared
    metrics, target = run.folder.all_metrics(), run.dataset.target.to_numpy()
    for cell in run.cells:
        columns = run.store.read(cell.id).columns
        test = columns["part"] == TEST
        labels = raw_outputs(columns)["score"][test].mean(axis=1) > 0.5
        rows = metrics.query(
            "metric == 'error_rate' and attribute == '' and variant == @cell.variant "
            "and repeat == @cell.fold.repeat"
        )
        error = (labels != target[columns["row"][test]]).mean()
        assert list(rows["value"]) == pytest.approx([error])


def test_a_method_without_uncertainty_has_no_consistency(tmp_path):
    cfg = configuration(
        "method=baseline", "consistency.replicates=2", *TINY, results=tmp_path
    )  # fmt: skip
    run = carry_out(cfg).prepared
    assert isinstance(run.method, Baseline)
    assert not run.folder.all_metrics()["metric"].str.startswith(("consist", "noise")).any()
