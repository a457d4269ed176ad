"""Labels that an algorithm gives to rows it has not seen, in many cross-validations.

Plain and reweighed learners are fitted by the solvers of this study, and Hardt's rule is derived
from their labels; all others run as ``run.py split=kfold`` would run them. Either way the labels
are those of the project's components, on the folds that `KFold` draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from algorithms.interventions.hardt import Hardt
from algorithms.interventions.none import NoIntervention
from algorithms.interventions.reweighing import Reweighing, independence_weights
from algorithms.learners.linear_svm import LinearSVM
from algorithms.learners.logistic_regression import LogisticRegression
from algorithms.learners.svm import SVM
from fairbench.core.seeds import integer_seed, rng
from fairbench.data.dataset import Dataset
from fairbench.data.encoding import onehot
from fairbench.data.splits import Fold
from fairbench.experiments.compute import compute
from fairbench.experiments.study import Study
from papers.uncertainty_matters.solvers import logistic_cv, rbf_svm_cv, squared_hinge_cv
from papers.uncertainty_matters.solvers.folds import Array, Rows, held_out, training

FOLDS = 10
Labels = NDArray[np.bool_]


class Solver(Protocol):
    """What the solvers have in common."""

    def __call__(
        self, X: Array, y: Array, fold: Rows, *, C: float, weight: Array | None = None
    ) -> Array:
        """Return the margins of all rows by every model, (F, n)."""
        ...


SOLVERS: dict[type, Solver] = {
    LogisticRegression: logistic_cv.margins,
    LinearSVM: squared_hinge_cv.margins,
    SVM: rbf_svm_cv.margins,
}


def partitions(dataset: Dataset, repeats: Sequence[int], seed: int) -> Rows:
    """Return the fold that tests each row, (B, n), as a stratified `KFold` deals them."""
    target, folds = dataset.target.to_numpy(), np.empty((len(repeats), len(dataset)), np.intp)
    for fold, repeat in zip(folds, repeats, strict=True):
        order = rng(seed, "split", dataset.name, repeat).permutation(len(dataset))
        fold[order[np.argsort(target[order], kind="stable")]] = np.arange(len(dataset)) % FOLDS
    return folds


def held_out_labels(study: Study, repeats: Sequence[int]) -> Labels:
    """Return the label of each row by the model that did not see it, (B, n)."""
    fold = partitions(study.dataset, repeats, study.seed)
    intervention = type(study.intervention)
    if intervention in (NoIntervention, Reweighing):
        weight = _independence(study, fold) if intervention is Reweighing else None
        return held_out(_margins(study, fold, weight), fold) > 0
    if intervention is Hardt:
        return _derived(study, fold, repeats, _margins(study, fold) > 0)
    return np.stack([_composed(study, *each) for each in zip(repeats, fold, strict=True)])


def solved_here(study: Study) -> bool:
    """Say whether the solvers of this study fit the algorithm."""
    return isinstance(study.intervention, NoIntervention | Reweighing | Hardt)


def modules_read(study: Study) -> list[str]:
    """Return the project's modules that decide the labels of an algorithm solved here."""
    modules = ["fairbench.data.encoding", "fairbench.core.seeds"]
    if not isinstance(study.intervention, NoIntervention):
        modules.append(type(study.intervention).__module__)
    return modules


def _margins(study: Study, fold: Rows, weight: Array | None = None) -> Array:
    data, learner = study.dataset, study.learner
    X, y = onehot(data.features).astype(float), data.target.to_numpy(float)
    solver = SOLVERS[type(learner)]
    return solver(X, y, fold, C=getattr(learner, "C"), weight=weight)  # noqa: B009


def _independence(study: Study, fold: Rows) -> Array:
    """Return the reweighing of every training part, (F, n); test rows get 0."""
    groups, y = study.dataset.groups(study.protect), study.dataset.target.to_numpy(float)
    return np.stack(
        [independence_weights(groups, y, used.astype(float)) for used in training(fold)]
    )


@dataclass
class Known:
    """An estimator whose labels are known: they are its only feature."""

    def fit(self, X: Array, y: Array, sample_weight: Array | None = None) -> Known:
        """There is nothing to fit."""
        return self

    def predict_proba(self, X: Array) -> Array:
        """Return certainty, (n, 2)."""
        return np.column_stack([1 - X[:, 0], X[:, 0]])


def _derived(study: Study, fold: Rows, repeats: Sequence[int], labels: Labels) -> Labels:
    """Return what the intervention makes of labels (F, n) that learners give to all rows."""
    data, found = study.dataset, np.empty(fold.shape, bool)
    groups, y = data.groups(study.protect), data.target.to_numpy(float)
    for part, (used, own) in enumerate(zip(training(fold), labels, strict=True)):
        cv, k = divmod(part, FOLDS)
        X = own[:, None].astype(float)
        model: Any = study.intervention.wrap(Known(), 0)
        model.fit(X[used], y[used], sensitive_features=groups[used])
        seed = integer_seed(rng(study.seed, "predict", data.name, repeats[cv], k))
        outputs = model.outputs(X[~used], sensitive_features=groups[~used], random_state=seed)
        found[cv, ~used] = outputs["prediction"] > 0.5
    return found


def _composed(study: Study, repeat: int, fold: Rows) -> Labels:
    """Return the labels of one cross-validation, (n,), cell by cell."""
    labels, none = np.empty(len(fold), bool), np.empty(0, np.intp)
    for k in range(FOLDS):
        rows = np.flatnonzero(fold != k), none, np.flatnonzero(fold == k)
        columns, _ = compute(study, Fold(repeat, k, *rows))
        output = columns["score" if "score" in columns else "prediction"]
        labels[columns["row"]] = output > 0.5
    return labels
