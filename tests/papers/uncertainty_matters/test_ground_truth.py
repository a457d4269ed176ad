"""The counts of repeated cross-validations: whose labels they are, and how they are kept."""

import shlex
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fairbench.cli.command import read
from fairbench.components.algorithms.fitters.single import Single
from fairbench.components.algorithms.interventions.disparate_impact_remover import (
    DisparateImpactRemover,
)
from fairbench.components.algorithms.interventions.ferm import FERM
from fairbench.components.algorithms.interventions.hardt import Hardt
from fairbench.components.algorithms.interventions.none import NoIntervention
from fairbench.components.algorithms.interventions.reweighing import Reweighing
from fairbench.components.algorithms.learners.linear_svm import LinearSVM
from fairbench.components.algorithms.learners.logistic_regression import LogisticRegression
from fairbench.components.algorithms.learners.svm import SVM
from fairbench.components.datasets import german, simulated
from fairbench.components.papers.uncertainty_matters import ground_truth, readings, solvers
from fairbench.components.papers.uncertainty_matters.ground_truth import ALGORITHMS, study
from fairbench.components.papers.uncertainty_matters.readings import RHOS, measure
from fairbench.core.errors import UserError
from fairbench.data.features import onehot
from fairbench.data.splits import KFold
from fairbench.experiments.compute import compute
from fairbench.metrics.registry import binary_confusion
from tests import studies
from tests.harness import archive_with

PUBLISHED = Path(__file__).parents[3] / "papers" / "uncertainty_matters" / "published.csv"
LEARNERS = [LogisticRegression(tol=1e-9), LinearSVM(folds=0, tol=1e-9), SVM(folds=0)]
INTERVENTIONS = [NoIntervention(), Reweighing(), Hardt(), DisparateImpactRemover()]
PAIRS = [*product(LEARNERS, INTERVENTIONS), (SVM(C=0.4, folds=0), FERM(label=0))]


@pytest.fixture(scope="module")
def population():
    return simulated.load(None, n_samples=150)


def cell_by_cell(study, repeats):
    """Return labels as a run of split=kfold gives them, (B, n)."""
    labels = np.empty((len(repeats), len(study.dataset)), bool)
    for fold in KFold(solvers.FOLDS, repeats[-1] + 1).folds(study.dataset, study.seed):
        if fold.repeat in repeats:
            columns, _ = compute(study, fold)
            output = columns["score" if "score" in columns else "prediction"]
            labels[repeats.index(fold.repeat), columns["row"]] = output > 0.5
    return labels


def test_partitions_are_those_of_stratified_folds(population):
    mine = solvers.partitions(population, [0, 3], 0)
    for fold in KFold(solvers.FOLDS, 4).folds(population, 0):
        if fold.repeat in (0, 3):
            (rows,) = np.nonzero(mine[[0, 3].index(fold.repeat)] == fold.fold)
            np.testing.assert_array_equal(rows, fold.test)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("learner", "intervention"), PAIRS, ids=lambda component: type(component).__name__
)
def test_labels_are_those_of_a_run(population, learner, intervention):
    one = studies.study(
        dataset=population, learner=learner, intervention=intervention, fitter=Single()
    )
    mine = solvers.held_out_labels(one, [1])
    assert 0.1 < mine.mean() < 0.9
    np.testing.assert_array_equal(mine, cell_by_cell(one, [1]))


@pytest.fixture
def small(population, monkeypatch, tmp_path):
    """Put a small population in German's place, and batches of two in those of a hundred."""
    study = studies.study(dataset=population, learner=LEARNERS[0], fitter=Single())
    monkeypatch.setattr(ground_truth, "study", lambda name: study)
    monkeypatch.setattr(ground_truth, "BATCH", 2)
    monkeypatch.setattr(ground_truth, "_identities", {})
    return study, tmp_path


def test_batches_are_kept_and_read_in_order(small):
    study, results = small
    assert ground_truth.ensure("LR", 0, results)
    assert not ground_truth.ensure("LR", 0, results)
    assert ground_truth.ensure("LR", 1, results)
    counts = ground_truth.load("LR", 3, results)
    groups = study.dataset.groups("group").cat.codes
    for own, labels in zip(counts, solvers.held_out_labels(study, range(3)), strict=True):
        expected = binary_confusion(study.dataset.target, labels, groups, n_groups=2)
        np.testing.assert_array_equal(own, expected)
    assert len(ground_truth.load("LR", results=results)) == 4


def test_what_is_missing_is_said_with_the_command(small):
    _, results = small
    ground_truth.ensure("LR", 0, results)
    with pytest.raises(UserError, match="2 of 5 cross-validations of LR .* algorithms=LR cvs=5$"):
        ground_truth.load("LR", 5, results)
    with pytest.raises(UserError) as missing:
        ground_truth.load("FERM, C = 0.4", 5, results)
    options = read(ground_truth.Options, shlex.split(str(missing.value))[-2:])
    assert (options.algorithms, options.cvs) == (("FERM, C = 0.4",), 5)
    with pytest.raises(UserError, match="unknown algorithm 'Lr'"):
        ground_truth.load("Lr", results=results)


def test_the_id_depends_on_learner_and_batch(small, monkeypatch):
    study, _ = small
    ids = {ground_truth.cell_id("LR", batch) for batch in range(3)}
    other = replace(study, learner=LogisticRegression(C=2.0))
    monkeypatch.setattr(ground_truth, "study", lambda name: other)
    monkeypatch.setattr(ground_truth, "_identities", {})
    assert len(ids) == 3
    assert ground_truth.cell_id("LR", 0) not in ids


def test_the_code_of_a_file_is_more_than_its_words(tmp_path):
    texts = ('"""A."""\nx = 1  # one\n', '"""B."""\n\nx = 1\n', '"""A."""\nx = 2\n')
    files = [tmp_path / f"{i}.py" for i in range(3)]
    for file, text in zip(files, texts, strict=True):
        file.write_text(text)
    one, same, other = map(ground_truth.code_of, files)
    assert one == same != other


def test_names_are_those_of_the_published_table():
    published = pd.read_csv(PUBLISHED, dtype=str, keep_default_na=False)
    assert list(ALGORITHMS) == list(published.loc[published["table"] == "12.1", "method"].unique())


@pytest.mark.thorough
@pytest.mark.data
def test_all_algorithms_are_of_one_data_set():
    archive_with(german.GERMAN)
    studies = [study(name) for name in ALGORITHMS]
    (data,) = {id(given.dataset): given.dataset for given in studies}.values()
    assert onehot(data.features).shape == (1000, 61)
    assert data.groups("age").value_counts().to_dict() == {"age > 25": 810, "age <= 25": 190}
    for given in studies:
        needed = given.intervention.capabilities.needs
        assert not needed or needed in given.learner.capabilities.gives


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
