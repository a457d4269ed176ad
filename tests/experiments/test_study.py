"""Ids of cells: what changes them, and what does not."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from fairbench.components.algorithms.fitters.bag import Bag
from fairbench.components.algorithms.fitters.single import Single
from fairbench.components.algorithms.learners.logistic_regression import LogisticRegression
from fairbench.components.algorithms.learners.xgboost import XGBoost
from fairbench.core import fingerprint
from fairbench.data.dataset import Source
from fairbench.data.splits import Fold
from fairbench.experiments import contracts as study_module
from fairbench.experiments import pipeline
from fairbench.experiments.contracts import Capabilities, cells_of, rows_digest
from tests.harness import TINY, configuration
from tests.studies import folds_of, study


def ids(a_study, folds=None):
    return [cell.id for cell in cells_of(a_study, folds or folds_of(a_study))]


def test_ids_are_the_same_for_the_same_study_and_differ_between_folds():
    assert ids(study()) == ids(study())
    assert len(set(ids(study()))) == 2
    assert all(len(cell_id) == 20 for cell_id in ids(study()))


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
def test_ids_change_with_what_determines_the_outputs(changed):
    own = study()
    folds = folds_of(own)
    assert not set(ids(study(**changed), folds)) & set(ids(own, folds))


def test_the_loader_and_what_it_says_do_not_count():
    data = study().dataset
    other = replace(
        data, target_name="another", sources=(Source("other.csv", "ab"),), redistributable=True
    )
    assert ids(study(dataset=other)) == ids(study())


def test_protected_attributes_count_only_where_groups_are_read():
    own = study()
    folds = folds_of(own)
    assert ids(replace(own, protect=()), folds) == ids(own, folds)

    class Reads(Bag):
        capabilities = Capabilities(reads_groups=True)

    reading = replace(own, fitter=Reads(3))
    assert ids(replace(reading, protect=()), folds) != ids(reading, folds)


@pytest.mark.parametrize("part", ["train", "validation", "test"])
def test_ids_change_with_the_rows_of_each_part(part):
    own = study()
    (fold,) = folds_of(own, repeats=1)
    fewer = replace(fold, **{part: getattr(fold, part)[1:]})
    assert ids(own, [fewer]) != ids(own, [fold])
    assert ids(own, [replace(fold)]) == ids(own, [fold])


def test_a_row_that_changes_sides_changes_the_digest():
    def digest_of(*parts):
        return rows_digest(Fold(0, 0, *(np.array(part, np.intp) for part in parts)))

    parts = [([1, 2], [3], [4]), ([1], [2, 3], [4]), ([1, 2], [], [3, 4]), ([1, 2, 3], [], [4])]
    assert len({digest_of(*part) for part in parts}) == len(parts)
    assert digest_of(*parts[0]) == digest_of(*parts[0])


def test_ids_change_with_the_code(monkeypatch):
    before = ids(study())
    monkeypatch.setattr(study_module, "code_digest", lambda modules: "other code")
    assert not set(ids(study())) & set(before)


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


@pytest.mark.parametrize(
    ("package", "counts"),
    [("numpy", True), ("xgboost-cpu", True), ("scikit-learn", True), ("mlflow", False)],
)
def test_ids_change_with_the_versions_of_packages_that_compute(monkeypatch, package, counts):
    before, version = ids(study()), fingerprint._version
    monkeypatch.setattr(
        fingerprint, "_version", lambda name: "99" if name == package else version(name)
    )
    assert (ids(study()) != before) is counts


def prepared(*overrides, tmp_path):
    return pipeline.prepare(configuration(*TINY, *overrides, results=tmp_path))


@pytest.mark.parametrize(
    "overrides",
    [
        ("method=selective_ensemble",),
        ("method=self_consistency",),
        ("evaluator.bins=5", "evaluator.choose_on=test", "evaluator.draws=200"),
        ("split.repeats=3",),
        ("protect=group",),
        ("n_jobs=2",),
    ],
    ids=" ".join,
)
def test_ids_do_not_change_with_what_the_outputs_cannot_depend_on(overrides, tmp_path):
    own = prepared("method=ensemble", tmp_path=tmp_path)
    other = prepared("method=ensemble", *overrides, tmp_path=tmp_path)
    assert own.cells[0].id == other.cells[0].id


@pytest.mark.parametrize(
    "overrides",
    [("split.train=0.7",), ("split.validation=0.2",), ("seed=1",), ("dataset.noise=1.5",)],
    ids=" ".join,
)
def test_ids_change_with_the_rows_the_seed_and_the_data(overrides, tmp_path):
    own, other = prepared(tmp_path=tmp_path), prepared(*overrides, tmp_path=tmp_path)
    assert own.cells[0].id != other.cells[0].id


def test_ids_of_a_users_table_change_with_its_content(tmp_path):
    path, result = tmp_path / "people.csv", []
    for shift in (0, 1, 0):
        rows = {"x": range(40), "y": [i % 2 for i in range(40)], "g": ["a", "b"] * 20}
        frame = pd.DataFrame(rows)
        frame["x"] += shift
        frame.to_csv(path, index=False)
        run = pipeline.prepare(
            configuration(
                "dataset=table", f"dataset.path={path}", "dataset.target=y",
                "dataset.sensitive=[g]", "split.repeats=1", "tracking=none", results=tmp_path,
            )
        )  # fmt: skip
        result.append(run.cells[0].id)
    assert result[0] == result[2] != result[1]
