"""Repeated ten-fold cross-validations of German, the ground truth of Barrainkua et al. (2024).

Outcomes are counted over the ten folds, in batches that are kept in the results folder: a stopped
command goes on where it was, and more cross-validations add to those that are there. All algorithms
see the same partitions, so two of them can be compared cross-validation by cross-validation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairbench.components.papers import composed
from fairbench.core.arrays import Mask
from fairbench.core.files import atomic
from fairbench.core.text import digest
from fairbench.data.dataset import Dataset
from fairbench.data.splits import Fold, KFold
from fairbench.experiments.compute import compute
from fairbench.experiments.contracts import Study
from fairbench.experiments.pipeline import prepare
from fairbench.metrics.registry import binary_confusion

# The 13 algorithms of Table 12.1, as choices of this project's learners and interventions.

# German credit as the paper has it: 61 one-hot columns, groups age > 25 and age <= 25.
DATA = ("dataset=german", "dataset.columns=all", "dataset.privileged_age='> 25'", "protect=age")

_LR = ("learner=logistic_regression", "learner.C=1.0")
# Labels are the sides of the margin, as in the paper: nothing is calibrated.
_SVM = ("learner=svm", "learner.C=1.0", "learner.folds=0")
_LINEAR_SVM = ("learner=linear_svm", "learner.C=1.0", "learner.folds=0")
# The paper's label is the good loan, label 0 of this data set: its rates are to be equal.
_GOOD = "intervention.label=0"

# Table 12.1's name -> overrides of a run's configuration.
ALGORITHMS: dict[str, tuple[str, ...]] = {
    "LR": (*_LR, "intervention=none"),
    "SVM": (*_SVM, "intervention=none"),
    "Linear SVM": (*_LINEAR_SVM, "intervention=none"),
    "Reweighing + LR": (*_LR, "intervention=reweighing"),
    "Reweighing + SVM": (*_SVM, "intervention=reweighing"),
    "Disparate impact remover + LR": (*_LR, "intervention=disparate_impact_remover"),
    "Disparate impact remover + SVM": (*_SVM, "intervention=disparate_impact_remover"),
    "Zafar": (*_LR, "intervention=disparate_mistreatment"),
    "FERM": (*_SVM, _GOOD, "intervention=ferm"),
    "Linear FERM": (*_LINEAR_SVM, _GOOD, "intervention=linear_ferm"),
    "LR + Hardt": (*_LR, "intervention=hardt"),
    "SVM + Hardt": (*_SVM, "intervention=hardt"),
    "Linear SVM + Hardt": (*_LINEAR_SVM, "intervention=hardt"),
}
_OTHER_C = ", C = "  # behind a name: the learner's own C in place of 1, as in "FERM, C = 0.4"


def overrides(name: str) -> list[str]:
    """Return the overrides of the run of one algorithm, its data set included."""
    own, _, C = name.partition(_OTHER_C)
    words = [word for word in ALGORITHMS[own] if not (C and word.startswith("learner.C="))]
    return [*DATA, *words, *([f"learner.C={C}"] * bool(C)), "method=baseline"]


@lru_cache(maxsize=32)
def study(name: str) -> Study:
    """Return the data and components of one algorithm, as that run would build them."""
    return prepare(composed(*overrides(name))).study


FOLDS = 10


def folds_of(dataset: Dataset, cvs: Sequence[int], seed: int) -> Iterator[tuple[int, Fold]]:
    """Yield the folds of some cross-validations, each with the place of its number in `cvs`."""
    for fold in KFold(FOLDS, max(cvs) + 1).folds(dataset, seed):
        if fold.repeat in cvs:
            yield cvs.index(fold.repeat), fold


def held_out_labels(part: Study, cvs: Sequence[int]) -> Mask:
    """Return the label of each row by the model that did not see it, (B, n), as runs give them."""
    labels = np.empty((len(cvs), len(part.dataset)), bool)
    for place, fold in folds_of(part.dataset, cvs, part.seed):
        columns, _ = compute(part, fold)
        output = columns["score" if "score" in columns else "prediction"]
        labels[place, columns["row"]] = output > 0.5
    return labels


# Counts, batch by batch.

BATCH = 100  # cross-validations that are kept together
FOLDER = Path(__file__).resolve().parent
STORED = Path("papers", "uncertainty_matters")  # in a results folder
Counts = NDArray[np.int64]


def counts(algorithm: str, cvs: int, results: Path) -> Counts:
    """Return the counts of the first cross-validations; what is computed is kept, in batches.

    Returns
    -------
    (B, G, 4) true negatives, false positives, false negatives, true positives (of label 1, a bad
    risk) per group, age > 25 first, pooled over the folds. The same index is the same partition
    for every algorithm.
    """
    batches = range(-(-cvs // BATCH))
    return np.concatenate([_batch(algorithm, each, results / STORED) for each in batches])[:cvs]


def _batch(algorithm: str, batch: int, folder: Path) -> Counts:
    """Return the counts of one batch, kept by what decides them: data, components and code."""
    part, cvs = study(algorithm), range(batch * BATCH, (batch + 1) * BATCH)
    name = digest([part.identity(), FOLDS, [*cvs]])
    return kept(folder / f"{name}.npz", lambda: {"counts": counted(part, cvs)})["counts"]


def kept(path: Path, make: Callable[[], Mapping[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    """Return the arrays of a file, which are made and written where there is none."""
    if not path.is_file():
        write_arrays(path, make())
    with np.load(path, allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def key_of(*words: str) -> str:
    """Return the name of an array among those that are packed."""
    return " | ".join(words)


def write_arrays(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write named arrays to one compressed file."""
    with atomic(path) as stream:
        np.savez_compressed(stream, allow_pickle=False, **arrays)


def counted(part: Study, cvs: Sequence[int]) -> Counts:
    """Compute the counts of some cross-validations, (B, G, 4)."""
    target = part.dataset.target.to_numpy()
    groups = part.dataset.groups(part.protect)
    codes, n_groups = groups.cat.codes.to_numpy(), len(groups.cat.categories)
    labels = held_out_labels(part, cvs)
    return np.stack([binary_confusion(target, each, codes, n_groups=n_groups) for each in labels])
