"""Simulated populations with known truth: two groups of unequal size and unequal noise."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.special import expit

from fairbench.data import Dataset, Task
from fairbench.download import Archive
from fairbench.errors import UserError
from fairbench.seeds import rng

MAJORITY, MINORITY = "majority", "minority"


def load(
    archive: Archive,
    *,
    task: str = "binary",
    n_samples: int = 2000,
    n_features: int = 6,
    minority_share: float = 0.25,
    noise: float = 1.0,
    minority_noise: float = 2.0,
    base_rate_gap: float = 0.8,
    seed: int = 0,
) -> Dataset:
    """Draw a population.

    Two of the `n_features` standard normal features and their product carry the signal. The
    binary task has p(x) = expit(signal / noise of the group); the regression has mean signal and
    a standard deviation that grows with the third feature and is larger for the minority. `truth`
    holds ``probability``, or ``mean`` and ``sd``.

    Parameters
    ----------
    archive : unused; nothing is read.
    task : ``binary`` or ``regression``.
    minority_share : expected share of the minority.
    noise, minority_noise : temperature of the log odds, or scale of the residuals, per group.
    base_rate_gap : by how much the majority's signal is raised.
    """
    n, d = n_samples, n_features
    _check(task, n, d, minority_share, noise, minority_noise)
    generator = rng(seed, "simulated", task, n, d)
    x = generator.standard_normal((n, d))
    minority = generator.random(n) < minority_share
    signal = x[:, 0] - x[:, 1] + x[:, 0] * x[:, 1] + base_rate_gap * (~minority - 0.5)
    scale = np.where(minority, minority_noise, noise)
    if task == Task.BINARY:
        p = expit(signal / scale)
        truth = pd.DataFrame({"probability": p})
        target = (generator.random(n) < p).astype(np.int64)
    else:
        sd = 0.2 * scale * np.exp(0.5 * x[:, 2])
        truth = pd.DataFrame({"mean": signal, "sd": sd})
        target = signal + sd * generator.standard_normal(n)
    features = pd.DataFrame(x, columns=[f"x{i}" for i in range(d)])
    features[MINORITY] = minority
    labels = pd.Categorical(np.where(minority, MINORITY, MAJORITY), [MAJORITY, MINORITY])
    return Dataset(
        name="simulated" if task == Task.BINARY else "simulated_regression",
        task=Task(task),
        features=features,
        target=pd.Series(target, name="y"),
        sensitive=pd.DataFrame({"group": labels}),
        privileged={"group": MAJORITY},
        target_name="y",
        positive_label="y = 1" if task == Task.BINARY else "",
        favourable=1 if task == Task.BINARY else None,
        truth=truth,
    )


def _check(
    task: str, n: int, d: int, minority_share: float, noise: float, minority_noise: float
) -> None:
    if task not in list(Task):
        raise UserError(f"dataset.task is '{task}': valid: {', '.join(Task)}")
    if n < 20 or d < 3:
        raise UserError(
            f"dataset=simulated needs n_samples >= 20 and n_features >= 3, not {n} and {d}"
        )
    if not 0 <= minority_share <= 1:
        raise UserError(f"dataset.minority_share is {minority_share}; it must be within [0, 1]")
    if min(noise, minority_noise) <= 0:
        raise UserError("dataset.noise and dataset.minority_noise must be positive")
