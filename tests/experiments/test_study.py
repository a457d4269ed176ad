"""Ids of cells, what changes them and what does not; variants, and the draws that they share."""

import re
from collections import namedtuple
from dataclasses import replace

import numpy as np
import pytest

from fairbench.components.algorithms.fitters.bag import Bag
from fairbench.components.algorithms.fitters.single import Single
from fairbench.components.algorithms.learners.logistic_regression import LogisticRegression
from fairbench.components.algorithms.learners.xgboost import XGBoost
from fairbench.components.algorithms.methods.ensemble import Ensemble
from fairbench.core import fingerprint
from fairbench.core.errors import UserError
from fairbench.data.dataset import Source
from fairbench.data.splits import Fold
from fairbench.experiments import contracts as study_module
from fairbench.experiments import pipeline
from fairbench.experiments.compute import TEST, compute, raw_outputs
from fairbench.experiments.contracts import Capabilities, Consistency, cells_of, rows_digest
from fairbench.experiments.execute import carry_out
from fairbench.experiments.pipeline import _compare, _recomposed
from tests.harness import TINY, configuration
from tests.studies import Recorder, folds_of, sealed_record, study


def ids(a_study, folds=None):
    return [cell.id for cell in cells_of(a_study, folds or folds_of(a_study))]


@pytest.mark.parametrize(
    "changed",
    [
        {"seed": 1},
        {"replicate": 1},
        {"learner": XGBoost(rounds=2, max_depth=3)},
        {"learner": LogisticRegression()},
        {"fitter": Bag(4)},
        {"fitter": Single()},
        {"dataset": replace(study().dataset, name="another")},
        {"dataset": replace(study().dataset, features=study().dataset.features + 1)},
    ],
    ids=str,
)
def test_ids_differ_between_folds_and_change_with_what_determines_the_outputs(changed):
    own = study()
    folds = folds_of(own)
    assert ids(own) == ids(study())
    assert len({*ids(own, folds), *ids(study(**changed), folds)}) == 4
    assert ids(study(seed=1), folds) != ids(study(replicate=1), folds)


def test_what_the_loader_says_does_not_count_nor_attributes_that_nothing_reads():
    class Reads(Bag):
        capabilities = Capabilities(reads_groups=True)

    own, told = study(), {"target_name": "another", "sources": (Source("other.csv", "ab"),)}
    assert ids(replace(own, dataset=replace(own.dataset, **told))) == ids(own)
    assert ids(replace(own, protect=())) == ids(own)
    reading = replace(own, fitter=Reads(3))
    assert ids(replace(reading, protect=())) != ids(reading)


def test_a_row_that_changes_sides_changes_the_digest():
    def digest_of(*parts):
        return rows_digest(Fold(0, 0, *(np.array(part, np.intp) for part in parts)))

    parts = [([1, 2], [3], [4]), ([1], [2, 3], [4]), ([1, 2], [], [3, 4]), ([1, 2, 3], [], [4])]
    assert len({digest_of(*part) for part in parts}) == len(parts)
    assert digest_of(*parts[0]) == digest_of(*parts[0])


def test_the_code_that_counts_is_that_of_every_component():
    asked = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(study_module, "code_digest", lambda modules: asked.extend(modules) or "")
        study().identity()
    assert set(asked) == {
        "fairbench.experiments.compute:compute",  # and not how runs are evaluated
        "fairbench.components.algorithms.learners.xgboost",
        "fairbench.components.algorithms.interventions.none",
        "fairbench.components.algorithms.fitters.bag",
        "fairbench.components.algorithms.losses",
    }


@pytest.mark.parametrize("package", ["numpy", "xgboost-cpu", "scikit-learn", "mlflow"])
def test_ids_change_with_the_versions_of_packages_that_compute(monkeypatch, package):
    before, version = ids(study()), fingerprint._version
    newer = {package: "99"}
    monkeypatch.setattr(fingerprint, "_version", lambda name: newer.get(name) or version(name))
    assert (ids(study()) == before) == (package == "mlflow")


def first_id(tmp_path, *overrides):
    return pipeline.prepare(configuration(*TINY, *overrides, results=tmp_path)).cells[0].id


def test_ids_do_not_change_with_what_the_outputs_cannot_depend_on(tmp_path):
    others = ("evaluator.bins=5", "evaluator.choose_on=test", "split.repeats=3", "protect=group")
    one = first_id(tmp_path, "method=ensemble")
    for reading in ("selective_ensemble", "self_consistency"):
        assert first_id(tmp_path, f"method={reading}", *others, "n_jobs=2") == one


def test_ids_change_with_the_rows_the_seed_and_the_data(tmp_path):
    words = ("seed=0", "seed=1", "split.train=0.7", "split.validation=0.2", "dataset.noise=1.5")
    assert len({first_id(tmp_path, word) for word in words}) == len(words)


# Variants of a run.


Variant = namedtuple("Variant", "label study method")
DEPTHS = Consistency("learner.max_depth", [1, 2, 3])
METHOD = Ensemble(3)


def variants_of(consistency, a_study=None, method=METHOD):
    return [Variant(*of) for of in consistency.variants(a_study or study(), method)]


def test_a_variant_differs_in_one_option_of_a_component_or_in_its_draws_alone():
    own, values = study(), [1, 2, 3]
    assert variants_of(Consistency(), own) == []
    assert variants_of(DEPTHS, own) == [
        (f"max_depth={d}", replace(own, learner=replace(own.learner, max_depth=d)), METHOD)
        for d in values
    ]
    # An option of the method changes the fitter and the reading.
    assert variants_of(Consistency("method.members", [2, 5]), own) == [
        (f"members={m}", replace(own, fitter=Ensemble(m).fitter), Ensemble(m)) for m in (2, 5)
    ]
    assert variants_of(Consistency(replicates=3), own) == [
        (f"replicate={i}", replace(own, replicate=i), METHOD) for i in values
    ]


def test_what_cannot_be_varied_is_refused_in_one_sentence():
    for vary, values, message in (
        ("learner.max_dept", [1, 2], "option of the learner .* 'max_dept': did you mean max_depth"),
        ("learnr.max_depth", [1, 2], "consistency.vary 'learnr': did you mean learner"),
        ("method.member", [1, 2], "option of the method in consistency.vary 'member': did"),
        ("max_depth", [1, 2], "unknown component in consistency.vary 'max_depth'; "),
        ("learner", [1, 2], "unknown option of the learner in "),
        ("learner.max_depth", [1, "deep"], "learner.max_depth is 'deep'; it must be a whole numb"),
        ("learner.max_depth", [1, -1], "learner.max_depth is -1; it must be at least 0"),
        ("learner.max_depth", (), "consistency.vary and consistency.values go together, such as "),
        (None, [1, 2], "consistency.vary and consistency.values go together"),
        ("learner.max_depth", [1], "consistency.values needs at least two values to compare"),
        ("learner.max_depth", [1, 2, 1], "consistency.values has a value twice"),
    ):  # fmt: skip
        with pytest.raises(UserError, match=rf"{message}.*\Z"):
            variants_of(Consistency(vary, values))


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


def test_values_share_their_bootstraps_and_seeds_and_so_do_members_of_larger_bags(seen):
    first, *others = draws_of(SCORES, seen).values()
    assert len(first) == len(set(first)) == 3
    assert others == [first, first]
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


def test_a_varied_run_fits_each_distinct_cell_once_and_has_its_error_rate(varied):
    run = varied.prepared
    # The run's own, two more depths (one is its own) and two replicates, on two folds.
    assert len(run.cells) == 12
    assert len({cell.id for cell in run.cells}) == varied.computed == 10
    target = run.dataset.target.to_numpy()
    metrics = run.folder.all_metrics().query("metric == 'error_rate' and attribute == ''")
    for cell in run.cells:
        columns = run.store.read(cell.id).columns
        test = columns["part"] == TEST
        labels = raw_outputs(columns)["score"][test].mean(axis=1) > 0.5
        rows = metrics.query("variant == @cell.variant and repeat == @cell.fold.repeat")
        error = (labels != target[columns["row"][test]]).mean()
        assert list(rows["value"]) == pytest.approx([error])


@pytest.mark.parametrize(("prefix", "of"), [("consistency", "max_depth="), ("noise", "replicate=")])
def test_rows_of_consistency_and_noise_are_those_of_the_stored_cells(varied, prefix, of):
    run = varied.prepared
    cells = [c for c in run.cells if c.fold.repeat == 1 and c.variant.startswith(of)]
    values = np.array([stored_uncertainty(run, cell) for cell in cells])
    rows = run.folder.all_metrics().query("repeat == 1 and metric.str.startswith(@prefix)")
    assert set(rows["variant"]) == {""}
    assert set(rows["variants"]) == {len(cells)} == {3 if prefix == "consistency" else 2}
    result = rows.set_index("metric")["value"]
    assert result[f"{prefix}_mean_sd"] == pytest.approx(values.std(axis=0).mean(), rel=1e-12)
    assert len(rows) == 3 + 5 and result.min() > 0


def test_a_method_without_uncertainty_has_no_consistency(tmp_path):
    words = ("method=baseline", "consistency.replicates=2")
    run = carry_out(configuration(*words, *TINY, results=tmp_path)).prepared
    assert not run.folder.all_metrics()["metric"].str.startswith(("consist", "noise")).any()


# A changed bit is a difference, relative to the output; a stored configuration is only data.


STORED = {"row": np.arange(3, dtype=np.int32), "score": np.array([0.5, np.nan, -2.0], np.float32)}


SCORE = STORED["score"]
LAST_BIT = SCORE.copy()
LAST_BIT[0] = np.nextafter(SCORE[0], np.float32(1))


def test_a_changed_bit_is_a_difference_relative_to_the_largest_value():
    for columns, difference in (
        ({}, None),
        ({"score": SCORE.copy()}, None),
        ({"score": np.array([0.75, np.nan, -2.0], np.float32)}, 0.25 / 2),  # of the largest value
        ({"score": LAST_BIT}, 2**-24 / 2),
        ({"score": np.array([0.5, 0.0, -2.0], np.float32)}, np.inf),
        ({"score": SCORE.astype(np.float64)}, np.inf),
        ({"score": SCORE[:2]}, np.inf),
        ({"more": np.zeros(3)}, np.inf),
    ):
        result = _compare("id", STORED, {**STORED, **columns})
        assert (result and result[2]) == (difference and pytest.approx(difference))
        if difference and np.isfinite(difference):
            assert "1 of 2 columns (score ...)" in result[1]


def test_columns_without_finite_values_may_differ_in_their_bits():
    stored = {"score": np.array([np.nan, np.nan], np.float32)}
    fresh = {"score": -stored["score"]}
    assert _compare("id", stored, fresh)[2] == 0.0


def stored_run(results, changed):
    """Return a finished run as a folder of somebody else may have it."""
    return sealed_record(results, {"consistency": {"name": "default"}, **changed}, cells=["cell"])


def test_a_stored_configuration_names_components_and_their_options(tmp_path):
    cfg = _recomposed(stored_run(tmp_path, {"learner.max_depth": 6}), {})
    assert cfg.learner.max_depth == 6
    assert cfg.learner._target_.startswith("algorithms.")


def test_a_stored_configuration_is_of_components_and_sizes_that_are_here(tmp_path):
    for changed, said in (
        ({"method": "stranger"}, "method=stranger is no component that is installed here"),
        ({"method.deep": 1}, "method=baseline has no option 'deep': other code made the run"),
        ({"dataset.n_samples": 10**9}, "dataset.n_samples is too large to be computed again"),
        ({"split.repeats": 10**9}, "split.repeats is too large to be computed again"),
        ({"dataset.path": "/etc/passwd", "dataset": "table"}, "add dataset.path=/etc/passwd"),
    ):
        with pytest.raises(UserError, match=re.escape(said)):
            _recomposed(stored_run(tmp_path, changed), {})
