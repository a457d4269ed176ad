"""The networks behind Kuzucu et al.'s Tables 1, 2, 3 and 5: section 5.2's settings, and others.

`TEXT` is what section 5.2 says, and each of `CAUSES` changes one thing of it, or one more than the
cause before it. ``papers.uncertainty_fairness.tables`` trains them all. What the text leaves open
is the same in all: Adam's rate is 0.001, as in Kingma and Ba, and the initial standard deviations
are softplus of -5 to -4, those of the public code of Bayes by Backprop whose prior, 0.5, exp(-0)
and exp(-6), the text prints.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch.nn.functional import log_softmax, nll_loss

from fairbench.components.algorithms.estimators.training import one_thread
from fairbench.components.algorithms.estimators.weight_posterior import (
    ScaleMixture,
    WeightPosterior,
    forward,
)
from fairbench.components.datasets import adult, compas_zafar, kuzucu
from fairbench.data.dataset import Dataset
from fairbench.data.download import Archive
from fairbench.data.encoding import onehot
from fairbench.metrics.group_means import variance_decomposition
from fairbench.metrics.rates import (
    accuracy,
    binary_confusion,
    false_negative_rate,
    false_positive_rate,
    negative_predictive_value,
    positive_predictive_value,
    selection_rate,
    true_positive_rate,
)
from fairbench.reporting.papers.running import Effort

Array = NDArray[np.float64]
RATES = (
    *(accuracy, positive_predictive_value, negative_predictive_value, false_positive_rate),
    *(false_negative_rate, true_positive_rate, selection_rate),
)
LAMBDA = 2000.0
DRAWS = 10  # of the weights: in a step of training, and of a row's members
NEAR = 0.2  # the public code's means start within it


@dataclass(frozen=True)
class Setting:
    """How a network is trained.

    Attributes
    ----------
    near_zero : means start uniform within 0.2, not standard normal.
    prior : the text's 0.5, 0 and 6, the last two read as -log of standard deviations.
    twice : the cross-entropy is given probabilities, and takes their softmax again.
    rate : Adam's.
    tested : the share of COMPAS that is tested: half, as Zafar et al. split it.
    hidden : units of a hidden layer where the data set's own text has none.
    unscaled : Adult's columns are as in the file, but for the sampling weight, which is left out.
    """

    near_zero: bool = False
    prior: ScaleMixture = ScaleMixture(share=0.5, narrow=math.exp(-6), wide=math.exp(-0.0))
    twice: bool = False
    rate: float = 0.001
    tested: float = 0.5
    hidden: tuple[int, ...] = ()
    unscaled: bool = False


TEXT = Setting()
_NEAR = replace(TEXT, near_zero=True)
_TWICE = replace(_NEAR, twice=True)
_FASTER = replace(_TWICE, rate=0.005)
CAUSES = {
    "starts near 0": _NEAR,
    "prior of sds": replace(TEXT, prior=ScaleMixture(share=0.5, narrow=0.001, wide=6.0)),
    "softmax twice": _TWICE,
    "softmax twice, faster": _FASTER,
    "softmax twice, faster, a fifth tested": replace(_FASTER, tested=0.2),
    "layer of 25": replace(TEXT, hidden=(25,)),
    "unscaled columns": replace(_TWICE, unscaled=True),
    "unscaled columns, standard normal starts": replace(TEXT, twice=True, unscaled=True),
}
GAINS = "capital gain or loss"  # Adult's: that alone is predicted, and nothing is trained


@dataclass(frozen=True)
class Training:
    """What section 5.2 says of one data set, and how often it is repeated here."""

    hidden: tuple[int, ...]
    epochs: int
    batch: int
    runs: int
    causes: tuple[str, ...]


_LINEAR = Training((), 5, 8, 20, tuple(CAUSES)[:3])
TRAININGS = {
    **dict.fromkeys(("sd1", "sd2", "sd3"), _LINEAR),
    "compas": Training((100,), 10, 256, 10, tuple(CAUSES)[:5]),
    "adult": Training((), 5, 256, 5, (GAINS, *tuple(CAUSES)[5:])),
}


@dataclass(frozen=True, eq=False)
class Rows:
    """Training rows, and the rows that are tested with their groups."""

    features: Array
    target: NDArray[np.int64]
    tested: Array
    truth: NDArray[np.int64]
    people: pd.DataFrame


def rows_of(dataset: str, seed: int, setting: Setting) -> Rows:
    """Return one population or split of a data set, as the paper's sections 5.1.1 to 5.1.5 say."""
    archive = Archive.of()
    if dataset == "adult":
        data = adult.load(archive)
        assert data.partition is not None
        train = data.partition.eq("train").to_numpy()
        return _split(data, _adult(data, train, unscaled=setting.unscaled), train)
    if dataset == "compas":
        data, share = compas_zafar.load(archive), 1 - setting.tested
        features = onehot(data.features).astype(float)
        features[:, -1] = _standard(features[:, -1:])[:, 0]
    else:  # 400 rows, of which 20 % are tested and 320 trained on
        data, share = kuzucu.load(archive, which=dataset, n_samples=400, seed=seed), 0.8
        features = onehot(data.features).astype(float)
    order = np.random.default_rng(seed).permutation(len(features))
    train = np.isin(np.arange(len(order)), order[: round(share * len(order))])
    return _split(data, features, train)


def _adult(data: Dataset, train: NDArray[np.bool_], *, unscaled: bool) -> Array:
    """Return the 14 features as numbers, categories as their codes."""
    assert isinstance(data.features, pd.DataFrame) and data.weight is not None
    columns = [
        entries.cat.codes if isinstance(entries.dtype, pd.CategoricalDtype) else entries
        for _, entries in data.features.items()
    ]
    if unscaled:
        return np.column_stack(columns).astype(float)
    return _standard(np.column_stack([*columns, data.weight]).astype(float), train)


def _standard(columns: Array, rows: NDArray[np.bool_] | slice = slice(None)) -> Array:
    standard: Array = (columns - columns[rows].mean(axis=0)) / columns[rows].std(axis=0)
    return standard


def _split(data: Dataset, features: Array, train: NDArray[np.bool_]) -> Rows:
    y = data.target.to_numpy(int)
    return Rows(features[train], y[train], features[~train], y[~train], data.sensitive[~train])


def trained(rows: Rows, training: Training, setting: Setting, seed: int) -> WeightPosterior:
    """Return the posterior after the data set's epochs: equation (22) by Adam."""
    hidden = training.hidden or setting.hidden
    start, noise = np.random.default_rng([seed, 1]), torch.Generator().manual_seed(seed)
    posterior = _start([rows.features.shape[1], *hidden, 2], setting, start)
    adam = torch.optim.Adam(posterior.parameters, lr=setting.rate, foreach=True)
    features, target = _tensor(rows.features), torch.from_numpy(rows.target)
    for _ in range(training.epochs):
        order = start.permutation(len(target))
        for first in range(0, len(order), training.batch):
            batch = order[first : first + training.batch]
            weights = posterior.draw(DRAWS, noise)
            scores = forward(features[batch], weights)
            likelihood = negative_log_likelihood(scores, target[batch], twice=setting.twice)
            loss = posterior.divergence(weights, setting.prior) / LAMBDA + likelihood
            adam.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            adam.step()
    return posterior


def _start(sizes: list[int], setting: Setting, drawn: np.random.Generator) -> WeightPosterior:
    shapes = [(ins + 1, outs) for ins, outs in zip(sizes[:-1], sizes[1:], strict=True)]
    means = [
        drawn.uniform(-NEAR, NEAR, shape) if setting.near_zero else drawn.standard_normal(shape)
        for shape in shapes
    ]
    rhos = [drawn.uniform(-5, -4, shape) for shape in shapes]
    return WeightPosterior(
        [_tensor(mean).requires_grad_() for mean in means],
        [_tensor(rho).requires_grad_() for rho in rhos],
    )


def _tensor(values: Array) -> torch.Tensor:
    return torch.from_numpy(np.asarray(values, np.float32))


def negative_log_likelihood(
    scores: torch.Tensor, target: torch.Tensor, *, twice: bool = False
) -> torch.Tensor:
    """Return the mean over draws and rows of -log softmax of `scores` (M, n, 2) at the labels.

    Parameters
    ----------
    twice : the scores are made probabilities first, as where these are given to a cross-entropy.
    """
    logs = log_softmax(scores.softmax(dim=-1) if twice else scores, dim=-1)
    return nll_loss(logs.flatten(0, 1), target.repeat(len(scores)))


def members_of(posterior: WeightPosterior, features: Array, seed: int) -> Array:
    """Return the probabilities (M, n) of label 1 of M networks drawn."""
    with torch.no_grad():
        weights = posterior.draw(DRAWS, torch.Generator().manual_seed(seed))
        probabilities = forward(_tensor(features), weights).softmax(dim=-1)
    return probabilities[..., 1].numpy().astype(float)


def of_groups(members: Array, truth: Array, people: pd.DataFrame) -> Iterator[dict[str, object]]:
    """Yield each group's rates and mean uncertainties, equation (7), of every attribute."""
    parts = variance_decomposition(members)
    labels = members.mean(axis=0) > 0.5
    for attribute, groups in people.items():
        codes = groups.cat.codes.to_numpy()
        names = groups.cat.categories
        counts = binary_confusion(truth, labels, codes, n_groups=len(names))
        found = {rate.name: rate(counts) for rate in RATES}
        for name in ("epistemic", "aleatoric", "predictive"):
            sums = np.bincount(codes, getattr(parts, name), len(names))
            found[f"{name}_uncertainty"] = sums / np.bincount(codes, minlength=len(names))
        for metric, values in found.items():
            for group, value in zip(names, values, strict=True):
                yield {"attribute": attribute, "metric": metric, "group": group, "value": value}


@cache
def values(
    dataset: str, cause: str = "", effort: Effort = Effort.WHOLE, units: int = 0
) -> pd.DataFrame:
    """Return the groups' metrics of every run: a population or a split, each with its network.

    Adult has one split, its own, and its runs differ by their networks.

    Parameters
    ----------
    cause : one of the data set's, or nothing for the text's setting.
    units : of the hidden layer, where it is not the text's.
    """
    if cause == GAINS:
        return pd.DataFrame(_of_run(dataset, 0, *_gains()))
    training, setting = TRAININGS[dataset], CAUSES[cause] if cause else TEXT
    training = replace(training, hidden=(units,)) if units else training
    found: list[dict[str, object]] = []
    with one_thread():
        for run in range(effort.choose(training.runs, 2, 1)):
            rows = rows_of(dataset, run, setting)
            posterior = trained(rows, training, setting, run)
            found += _of_run(dataset, run, members_of(posterior, rows.tested, run), rows)
    return pd.DataFrame(found)


def _of_run(dataset: str, run: int, members: Array, rows: Rows) -> list[dict[str, object]]:
    place = {"dataset": dataset, "run": str(run), "repeat": 0}
    groups = of_groups(members, rows.truth.astype(float), rows.people)
    return [{**place, **row} for row in groups]


def _gains() -> tuple[Array, Rows]:
    """Return one member, sure of label 1 where a tested row has a capital gain or loss."""
    data = adult.load(Archive.of())
    assert data.partition is not None and isinstance(data.features, pd.DataFrame)
    rows = rows_of("adult", 0, TEXT)
    gains = data.features[["capital-gain", "capital-loss"]].to_numpy(float)
    tested = data.partition.ne("train").to_numpy()
    return (gains[tested] > 0).any(axis=1).astype(float)[None], rows
