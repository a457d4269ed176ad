"""Labels that an algorithm gives to rows it has not seen, in many cross-validations.

Plain and reweighed learners are fitted by the solvers of this study, as are kernel machines under
equal opportunity or on repaired numbers, and Hardt's rule is derived from their labels; all others
run as ``run.py split=kfold`` would run them. Either way the labels are those of the project's
components, on the folds that `KFold` draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any, Protocol

import numpy as np
import pandas as pd

from fairbench.components.algorithms.estimators.ferm import mean_difference
from fairbench.components.algorithms.interventions.disparate_impact_remover import (
    DisparateImpactRemover,
)
from fairbench.components.algorithms.interventions.ferm import FERM
from fairbench.components.algorithms.interventions.hardt import Hardt
from fairbench.components.algorithms.interventions.none import NoIntervention
from fairbench.components.algorithms.interventions.reweighing import (
    Reweighing,
    independence_weights,
)
from fairbench.components.algorithms.learners.linear_svm import LinearSVM
from fairbench.components.algorithms.learners.logistic_regression import LogisticRegression
from fairbench.components.algorithms.learners.svm import SVM
from fairbench.components.papers.uncertainty_matters.solvers import (
    hardt_cv,
    logistic_cv,
    rbf_svm_cv,
    repair_cv,
    squared_hinge_cv,
)
from fairbench.components.papers.uncertainty_matters.solvers.folds import (
    Array,
    Rows,
    held_out,
    training,
)
from fairbench.core.arrays import Mask
from fairbench.core.seeds import integer_seed, rng
from fairbench.data.dataset import Dataset
from fairbench.data.encoding import onehot
from fairbench.data.splits import Fold
from fairbench.experiments.compute import compute
from fairbench.experiments.study import Study

FOLDS = 10


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
# What an intervention adds to the solver of its learner.
BESIDE: dict[type, ModuleType] = {Hardt: hardt_cv, DisparateImpactRemover: repair_cv}


def partitions(dataset: Dataset, repeats: Sequence[int], seed: int) -> Rows:
    """Return the fold that tests each row, (B, n), as a stratified `KFold` deals them."""
    target, folds = dataset.target.to_numpy(), np.empty((len(repeats), len(dataset)), np.intp)
    for fold, repeat in zip(folds, repeats, strict=True):
        order = rng(seed, "split", dataset.name, repeat).permutation(len(dataset))
        fold[order[np.argsort(target[order], kind="stable")]] = np.arange(len(dataset)) % FOLDS
    return folds


def held_out_labels(study: Study, repeats: Sequence[int]) -> Mask:
    """Return the label of each row by the model that did not see it, (B, n)."""
    fold = partitions(study.dataset, repeats, study.seed)
    if not solved_here(study):
        return np.stack([composed_labels(study, *each) for each in zip(repeats, fold, strict=True)])
    if isinstance(study.intervention, Hardt):
        return _derived(study, fold, repeats, _margins(study, fold) > 0)
    return held_out(_margins(study, fold, **_options(study, fold)), fold) > 0


def solved_here(study: Study) -> bool:
    """Say whether the solvers of this study fit the algorithm."""
    chosen = study.intervention
    if isinstance(chosen, NoIntervention | Reweighing | Hardt):
        return not isinstance(chosen, Hardt) or chosen.derived_from == "labels"
    if not isinstance(study.learner, SVM) or study.dataset.groups(study.protect).nunique() != 2:
        return False
    if isinstance(chosen, FERM):
        return chosen.epsilon == 0
    return isinstance(chosen, DisparateImpactRemover) and chosen.repair_level == 1


def _options(study: Study, fold: Rows) -> dict[str, Any]:
    """Return what an intervention tells the solver."""
    chosen = study.intervention
    if isinstance(chosen, Reweighing):
        return {"weight": _independence(study, fold)}
    codes = study.dataset.groups(study.protect).cat.codes.to_numpy(np.intp)
    if isinstance(chosen, FERM):
        compared = study.dataset.target.to_numpy() == chosen.label
        shares = [
            mean_difference(codes, compared & used, used.astype(float)) for used in training(fold)
        ]
        return {"apart": np.stack(shares)}
    if isinstance(chosen, DisparateImpactRemover):
        return {"repair": repair_cv.Repair.of(onehot(study.dataset.features).astype(float), codes)}
    return {}


def modules_read(study: Study) -> list[str]:
    """Return the project's modules that decide the labels of an algorithm solved here."""
    modules = ["fairbench.data.encoding", "fairbench.core.seeds"]
    if not isinstance(study.intervention, NoIntervention):
        modules.append(type(study.intervention).__module__)
    return modules


def _margins(study: Study, fold: Rows, **options: Any) -> Array:
    data, learner = study.dataset, study.learner
    X, y = onehot(data.features).astype(float), data.target.to_numpy(float)
    solver = SOLVERS[type(learner)]
    return solver(X, y, fold, C=getattr(learner, "C"), **options)  # noqa: B009


def _independence(study: Study, fold: Rows) -> Array:
    """Return the reweighing of every training part, (F, n); test rows get 0."""
    groups, y = study.dataset.groups(study.protect), study.dataset.target.to_numpy(float)
    return np.stack(
        [independence_weights(groups, y, used.astype(float)) for used in training(fold)]
    )


def _derived(study: Study, fold: Rows, repeats: Sequence[int], labels: Mask) -> Mask:
    """Return what Hardt's rule makes of labels (F, n) that learners give to all rows."""
    data, found, used = study.dataset, np.empty(fold.shape, bool), training(fold)
    codes, y = _by_name(data.groups(study.protect)), data.target.to_numpy(float)
    rates, value = hardt_cv.rates_of(labels, used, y, codes), np.ones((len(used), 2))
    if getattr(study.intervention, "objective") == "accuracy":  # noqa: B009
        positive = used @ y / used.sum(axis=1)
        value = np.column_stack([1 - positive, positive])
    chances = hardt_cv.chances(rates, value)
    for part, test in enumerate(~used):
        cv, k = divmod(part, FOLDS)
        seed = integer_seed(rng(study.seed, "predict", data.name, repeats[cv], k))
        chance = chances[part][codes[test], labels[part, test].astype(np.intp)]
        found[cv, test] = np.random.default_rng(seed).random(int(test.sum())) < chance
    return found


def _by_name(groups: pd.Series) -> Rows:
    """Return the place of each row's group among the sorted names, as the rule has them."""
    return np.unique(groups.to_numpy(), return_inverse=True)[1]


def composed_labels(study: Study, repeat: int, fold: Rows) -> Mask:
    """Return the labels of one cross-validation, (n,), cell by cell."""
    labels, none = np.empty(len(fold), bool), np.empty(0, np.intp)
    for k in range(FOLDS):
        rows = np.flatnonzero(fold != k), none, np.flatnonzero(fold == k)
        columns, _ = compute(study, Fold(repeat, k, *rows))
        output = columns["score" if "score" in columns else "prediction"]
        labels[columns["row"]] = output > 0.5
    return labels
