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


def test_ids_of_a_users_table_change_with_its_content(tmp_path):
    path, result = tmp_path / "people.csv", []
    words = ("dataset=table", f"dataset.path={path}", "dataset.target=y", "dataset.sensitive=[g]")
    for shift in (0, 1, 0):
        rows = {"x": np.arange(40) + shift, "y": [i % 2 for i in range(40)], "g": ["a", "b"] * 20}
        pd.DataFrame(rows).to_csv(path, index=False)
        cfg = configuration(*words, "split.repeats=1", "tracking=none", results=tmp_path)
        result.append(pipeline.prepare(cfg).cells[0].id)
    assert result[0] == result[2] != result[1]
