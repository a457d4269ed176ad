"""Simulated populations with known truth: groups of unequal size, noise, labels and coverage."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit

from fairbench.core.arrays import rng
from fairbench.core.errors import UserError, check_minimum, check_share
from fairbench.data.dataset import Dataset, Datasheet, Task
from fairbench.data.download import Archive

DATASHEET = Datasheet(
    title="Simulated populations with known truth",
    source="Generated here",
    licence="Generated, so none is needed",
    paper_differences="Calibration can be measured against the true p(x), or the true mean and "
    "standard deviation. Groups differ in size, noise and base rate. Label bias, missing values "
    "and covariate shift can be added one by one, which leaves the other random draws unchanged.",
    criticism="What is found holds for this population only: the signal is two normal features "
    "and their product, and groups are independent of the features.",
)
TITLES = {
    "simulated": "Simulated population with known truth, binary label",
    "simulated_classes": "Simulated population with known truth, three ordered classes",
    "simulated_regression": "Simulated population with known truth, regression",
}
MAJORITY, MINORITY = "majority", "minority"
TRAIN_SHARE = 0.8
CLASSES = ("low", "middle", "high")
_CUTS = (-1.0, 1.0)
_DATASETS = {
    Task.BINARY: "simulated",
    Task.MULTICLASS: "simulated_classes",
    Task.REGRESSION: "simulated_regression",
}


def load(
    archive: Archive,
    *,
    task: str = "binary",
    n_samples: int = 2000,
    n_features: int = 6,
    n_groups: int = 2,
    minority_share: float = 0.25,
    noise: float = 1.0,
    minority_noise: float = 2.0,
    base_rate_gap: float = 0.8,
    label_bias: float = 0.0,
    missing: float = 0.0,
    shift: float = 0.0,
    seed: int = 0,
) -> Dataset:
    """Draw a population.

    Two of the standard normal features and their product carry the signal. The binary task has
    p(x) = expit(signal / noise of the group); three ordered classes have P(class > k) =
    expit((signal - cut k) / noise) with cuts at -1 and 1; the regression has mean signal and a
    standard deviation that grows with the third feature and is larger for minorities. `truth`
    holds ``probability``, ``probability_0`` ... of the classes, or ``mean`` and ``sd``, of the
    labels before any bias.

    Parameters
    ----------
    archive : unused; nothing is read.
    task : ``binary``, ``multiclass`` or ``regression``.
    n_samples, n_features : size of the population, and number of features besides the group.
    n_groups : the majority and ``n_groups - 1`` minorities of equal expected size; noise and base
        rate change in equal steps from the majority's to the last minority's.
    minority_share : expected share of all minorities together.
    noise, minority_noise : temperature of the log odds, or scale of the residuals, of the
        majority and the last minority.
    base_rate_gap : by how much the majority's signal exceeds the last minority's.
    label_bias : binary: the probability that a minority's 1 is recorded as 0, and `truth` also
        holds ``observed`` = P(recorded 1). Regression: what is subtracted from a minority's
        outcome, and ``observed`` is the mean of what is recorded. Several classes have no bias.
    missing : the probability that a minority's first or second feature is not recorded.
    shift : is added to the first feature of the last fifth of the rows, which become the ``test``
        part of `partition`; labels still follow p(x).
    """
    n, d = n_samples, n_features
    if task not in list(Task):
        raise UserError(f"dataset.task is '{task}'; valid: {', '.join(Task)}")
    if n < 20 or d < 3:
        raise UserError(
            f"dataset=simulated needs n_samples >= 20 and n_features >= 3, not {n} and {d}"
        )
    check_minimum("dataset.n_groups", n_groups, 2)
    if not 0 <= minority_share <= 1:
        raise UserError(f"dataset.minority_share is {minority_share}; it must be within [0, 1]")
    if min(noise, minority_noise) <= 0:
        raise UserError("dataset.noise and dataset.minority_noise must be positive")
    if task == Task.BINARY:
        check_share("dataset.label_bias", label_bias, zero=True)
    if task == Task.MULTICLASS and label_bias:
        raise UserError("dataset.label_bias is of labels 0 and 1 or of values: leave it out")
    check_share("dataset.missing", missing, zero=True)
    generator = rng(seed, "simulated", task, n, d)
    test = np.arange(n) >= TRAIN_SHARE * n
    drawn = generator.standard_normal((n, d))
    drawn[test, 0] += shift
    group = _groups(generator.random(n), n_groups, minority_share)
    signal = drawn[:, 0] - drawn[:, 1] + drawn[:, 0] * drawn[:, 1]
    signal += base_rate_gap * (0.5 - group / (n_groups - 1))
    scale = np.linspace(noise, minority_noise, n_groups)[group]
    faults, gaps = (rng(seed, f"simulated {kind}", task, n, d) for kind in ("faults", "gaps"))
    minority, truth = group > 0, pd.DataFrame()
    labels: NDArray[np.int64] | NDArray[np.float64]
    if task == Task.BINARY:
        p = expit(signal / scale)
        truth["probability"] = p
        labels = (generator.random(n) < p).astype(np.int64)
        if label_bias:
            labels[minority & (faults.random(n) < label_bias)] = 0
            truth["observed"] = np.where(minority, p * (1 - label_bias), p)
    elif task == Task.MULTICLASS:
        above = expit((signal[:, None] - _CUTS) / scale[:, None])
        p = -np.diff(above, axis=1, prepend=1, append=0)
        labels = (generator.random(n)[:, None] < above).sum(axis=1)
        truth = pd.DataFrame({f"probability_{k}": p[:, k] for k in range(len(CLASSES))})
    else:
        sd = 0.2 * scale * np.exp(0.5 * drawn[:, 2])
        truth["mean"], truth["sd"] = signal, sd
        labels = signal + sd * generator.standard_normal(n)
        if label_bias:
            labels = labels - label_bias * minority
            truth["observed"] = signal - label_bias * minority
    features = pd.DataFrame(drawn, columns=[f"x{i}" for i in range(d)])
    if missing:
        hidden = (gaps.random((n, 2)) < missing) & minority[:, None]
        features[["x0", "x1"]] = np.where(hidden, np.nan, drawn[:, :2])
    names = [MAJORITY, MINORITY]
    if n_groups > 2:
        names = [MAJORITY, *(f"{MINORITY} {number}" for number in range(1, n_groups))]
    sensitive = pd.Categorical.from_codes(group, names)
    if n_groups == 2:
        features[MINORITY] = group == 1
    else:
        features["group"] = sensitive
    return Dataset(
        name=_DATASETS[Task(task)],
        task=Task(task),
        features=features,
        target=pd.Series(labels, name="y"),
        sensitive=pd.DataFrame({"group": sensitive}),
        privileged={"group": MAJORITY},
        target_name="y",
        positive_label="y = 1" if task == Task.BINARY else "",
        favourable=1 if task == Task.BINARY else None,
        partition=pd.Series(np.where(test, "test", "train")) if shift else None,
        truth=truth,
        redistributable=True,
        classes=CLASSES if task == Task.MULTICLASS else (),
        ordered=task == Task.MULTICLASS,
    )


def _groups(uniform: NDArray[np.float64], n_groups: int, minority_share: float) -> NDArray[np.intp]:
    """Cut [0, 1) into equal minorities under `minority_share` and the majority above."""
    group = np.zeros(len(uniform), np.intp)
    minority = uniform < minority_share
    group[minority] = 1 + (uniform[minority] / minority_share * (n_groups - 1)).astype(np.intp)
    return np.minimum(group, n_groups - 1)
