"""The six data sets as the text prepares them, and its four models of two thirds of their people.

Section 4.6 of the thesis: rows with a missing value are left out, categories are one-hot encoded,
the sensitive attributes are no features, and a third of the people, drawn at random, is held out.
The training rows of Adult's archive are all there is of it. Naive Bayes and logistic regression
fitted to the rows that the released files leave out give the released scores.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier

from fairbench.components.datasets import adult, bank, compas, german, ricci
from fairbench.core.arrays import Floats
from fairbench.core.files import atomic
from fairbench.core.seeds import integer_seed, rng
from fairbench.data.dataset import Dataset
from fairbench.data.delimited import read_table
from fairbench.data.download import Archive
from fairbench.inference.few_labels.table import PartlyLabelled

# Scikit-learn's defaults otherwise, as the text says.
MODELS: Mapping[str, Callable[[int], ClassifierMixin]] = {
    "mlp": lambda seed: MLPClassifier(hidden_layer_sizes=(10,), random_state=seed),
    "logistic_regression": lambda seed: LogisticRegression(),
    "random_forest": lambda seed: RandomForestClassifier(n_estimators=100, random_state=seed),
    "gaussian_nb": lambda seed: GaussianNB(),
}
RELEASED_AGE = 25  # where the released code cuts Bank's ages; the text's share is that of 40
_TEXT_AGE = 40


@dataclass(frozen=True, eq=False)
class People:
    """A data set as a matrix.

    Attributes
    ----------
    features : (n, D). label : (n,) 0 or 1.
    groups : attribute -> everyone's group, (n,). privileged : attribute -> the reference group.
    """

    features: Floats
    label: NDArray[np.int64]
    groups: Mapping[str, NDArray[np.object_]]
    privileged: Mapping[str, str]

    @classmethod
    def of(cls, dataset: Dataset, *, leave_out: tuple[str, ...] = (), flip: bool = False) -> People:
        """Encode a data set without some of its features; `flip` calls label 0 the positive one."""
        label = dataset.target.to_numpy().astype(np.int64)
        groups = {name: dataset.sensitive[name].to_numpy(object) for name in dataset.sensitive}
        features = encoded(pd.DataFrame(dataset.features).drop(columns=list(leave_out)))
        return cls(features, 1 - label if flip else label, groups, dict(dataset.privileged))

    def held_out(self, third: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the rows of two thirds of the people, and those of the rest, at random."""
        order = rng(third, "few_labels", "third").permutation(len(self.label))
        cut = int(len(order) * 2 / 3)
        return order[:cut], order[cut:]


def encoded(features: pd.DataFrame) -> Floats:
    """Return numbers as they are, and a column of 0 and 1 for every category."""
    texts = features.select_dtypes(exclude=["number", "bool"]).columns
    matrix: Floats = pd.get_dummies(features, columns=list(texts)).to_numpy(np.float64)
    return matrix


def _bank(archive: Archive) -> People:
    """Return all clients; "unknown" is a category, and the age is no feature."""
    raw = read_table(archive.read(bank.BANK), bank.BANK.path, separator=";")
    age = raw.pop("age").astype(int)
    label = (raw.pop("y") == "yes").to_numpy(np.int64)
    named = [name for name in raw if pd.to_numeric(raw[name], errors="coerce").isna().any()]
    numeric = [name for name in raw if name not in named]
    groups = {
        name: np.where(age >= cut, "senior", "junior").astype(object)
        for name, cut in (("age", _TEXT_AGE), ("released age", RELEASED_AGE))
    }
    features = encoded(raw.astype(dict.fromkeys(numeric, float)))
    return People(features, label, groups, dict.fromkeys(groups, "senior"))


def _adult(archive: Archive) -> People:
    dataset = adult.load(archive, keep_sensitive=False)
    train = (dataset.partition == "train").to_numpy()  # type: ignore[union-attr]
    whole = People.of(dataset)
    groups = {name: group[train] for name, group in whole.groups.items()}
    return People(whole.features[train], whole.label[train], groups, whole.privileged)


_COMPAS_GROUPS = ("male", "race")
READERS: Mapping[str, Callable[[Archive], People]] = {
    "adult": _adult,
    "bank": _bank,
    # The positive label is good credit.
    "german": lambda archive: People.of(german.load(archive, keep_sensitive=False), flip=True),
    "compas_r": lambda archive: People.of(compas.load(archive), leave_out=_COMPAS_GROUPS),
    "compas_vr": lambda archive: People.of(compas.violent(archive), leave_out=_COMPAS_GROUPS),
    "ricci": lambda archive: People.of(ricci.load(archive, keep_sensitive=False)),
}


@cache
def people(dataset: str) -> People:
    """Return a data set, once read."""
    return READERS[dataset](Archive.of(download=False))


def scores(dataset: str, third: int, results: Path) -> Mapping[str, Floats]:
    """Return every model's scores of the people of one third, kept in the results folder."""
    path = results / "papers" / "few_labels" / "thirds" / f"{dataset}-{third}.csv"
    if not path.is_file():
        whole = people(dataset)
        train, test = whole.held_out(third)
        seed = integer_seed(rng(third, "few_labels", "model", dataset))
        frame = pd.DataFrame({name: _fitted(name, seed, whole, train, test) for name in MODELS})
        with atomic(path) as file:
            frame.to_csv(file, index=False)
    return {str(name): column.to_numpy() for name, column in pd.read_csv(path).items()}


def _fitted(
    name: str, seed: int, whole: People, train: NDArray[np.int64], test: NDArray[np.int64]
) -> Floats:
    """Return the probability of label 1 that a model of some rows gives others."""
    with warnings.catch_warnings():
        # The defaults stop short of convergence where features are not scaled: the paper's too.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = MODELS[name](seed).fit(whole.features[train], whole.label[train])
    probability: Floats = model.predict_proba(whole.features[test])[:, 1]
    return probability


@cache
def third_of(
    dataset: str, attribute: str, learner: str, third: int, results: Path, *, flip: bool = False
) -> PartlyLabelled:
    """Return the people of one third, fully labelled, as a model scores them.

    A score of 1/2 is a positive decision, as the text has it.

    Parameters
    ----------
    flip : scores and decisions are those of the other class, as in German's released files.
    """
    whole = people(dataset)
    _, rows = whole.held_out(third)
    score = scores(dataset, third, results)[learner]
    score = 1 - score if flip else score
    return PartlyLabelled.of(
        score,
        whole.groups[attribute][rows],
        whole.label[rows],
        prediction=score >= 0.5,
        reference=whole.privileged[attribute],
    )
