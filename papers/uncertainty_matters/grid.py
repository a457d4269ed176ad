"""The 13 algorithms as the text has them: columns of FERM's authors, and a grid of machines.

Section 11.2 prepares German as Donini et al. (2018) do: every category is a number, columns are
standardised, and the sensitive attribute is a column of two values. Machines are the grid of their
code (C, and gamma of the Gaussian kernel); which of them labels a fold is the one that labels the
other nine folds best. Logistic regression has C = 1, and Zafar's rule has the component's settings.

``python -m papers.uncertainty_matters.grid [cvs=60] [halvings=18] [algorithms=NAMES]`` counts the
outcomes of repeated cross-validations and of half-splits, for the chosen machine and for every
machine of the grid, in batches that are kept in the results folder, and packs them into grid.npz
in place of what it has of these algorithms.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from fairbench.cli.command import Results
from fairbench.components.algorithms.estimators.ferm import mean_difference
from fairbench.components.algorithms.interventions.hardt import equalised_odds
from fairbench.components.algorithms.interventions.quantiles import Quantiles, repaired_values
from fairbench.components.algorithms.interventions.reweighing import independence_weights
from fairbench.components.papers import as_numbers, number_of_cvs, run_main
from fairbench.components.papers.uncertainty_matters import ground_truth
from fairbench.components.papers.uncertainty_matters.ground_truth import FOLDS
from fairbench.core.arrays import Codes, Floats, Mask, Rows, rng
from fairbench.core.options import option
from fairbench.data.dataset import Dataset
from fairbench.inference.survey import half_splits
from fairbench.metrics.registry import accuracy, binary_confusion, true_negative_rate

FILE = ground_truth.FOLDER / "grid.npz"
BATCH, SIDES = 20, 2
GOOD = 0  # the label whose opportunity is equal
C_KERNEL, C_LINEAR, GAMMA = (0.1, 1.0, 10.0), (0.01, 0.1, 1.0), (0.1, 0.01)
NEARLY = 0.9  # of the best accuracy
SUPPORT = 1e-3  # of a margin at 1
TOLERANCE = 1e-4  # of Gaussian machines, whose labels hang on scikit-learn's own 0.001
# How else a machine is chosen, and FERM's intercept.
FAIREST, OWN = "the fairest", "exact intercept"
BETWEEN = (0.5, 0.1)  # a machine of FERM between two of the grid
# Machines that causes name: of FERM, and of the other support vector machines.
EXACT_BETWEEN = f"C = {BETWEEN[0]:g}, gamma = {BETWEEN[1]:g}, {OWN}"
WIDE, NARROW = "C = 10, gamma = 0.1", "C = 10, gamma = 0.01"
# What Hardt's rule is derived from labels of, where the machine sees half of the training rows.
APART = {
    "LR + Hardt": LogisticRegression(C=1.0),
    "SVM + Hardt": SVC(C=10.0, gamma=0.01),
    "Linear SVM + Hardt": SVC(C=1.0, kernel="linear"),
}
KERNEL = tuple(f"C = {C:g}, gamma = {gamma:g}" for C, gamma in product(C_KERNEL, GAMMA))
LINEAR = tuple(f"C = {C:g}" for C in C_LINEAR)
# Algorithm whose machines are fitted -> what follows from its labels: itself, and Hardt's rule.
FITTED: Mapping[str, tuple[str, ...]] = {
    name: tuple(each for each in (name, f"{name} + Hardt") if each in ground_truth.ALGORITHMS)
    for name in ground_truth.ALGORITHMS
    if not name.endswith("Hardt")
}
RULE_APART, HALVES = "rule apart", "halves"


@dataclass(frozen=True)
class Options(Results):
    """How much is computed."""

    cvs: int = number_of_cvs(60)
    halvings: int = option(18, "How many halvings of the data.", least=1)
    algorithms: tuple[str, ...] = option((*FITTED, RULE_APART), "Which machines are fitted.")


def machines(name: str) -> tuple[str, ...]:
    """Return the names of the machines of an algorithm's grid; one, "", where it has none."""
    if "Linear" in name:
        return LINEAR
    return KERNEL if "SVM" in name or name == "FERM" else ("",)


def selections(name: str) -> tuple[str, ...]:
    """Return how a machine of an algorithm's grid is chosen; the first is the text's."""
    if name == "FERM":
        return ("", FAIREST, OWN, f"{FAIREST}, {OWN}")
    return ("", FAIREST) if name.endswith("FERM") else ("",)


def choices(name: str) -> tuple[str, ...]:
    """Return what the counts of an algorithm are of: the selections, then every machine."""
    grid = machines(name) if machines(name) != ("",) else ()
    own = tuple(f"{each}, {OWN}" for each in grid) if name == "FERM" else ()
    if own:
        own = (*own, EXACT_BETWEEN)
    return (*selections(name), *grid, *own)


@cache
def german() -> Dataset:
    """Return German with every column a number, the age being the group's."""
    part = ground_truth.study("SVM")
    return replace(part.dataset, features=numbered(part.dataset, part.protect))


def numbered(data: Dataset, protect: str | Sequence[str]) -> pd.DataFrame:
    """Return every column as numbers, the categories in the alphabet's order."""
    numbers: pd.DataFrame = as_numbers(data.features)
    return numbers.assign(age=data.groups(protect).cat.codes).astype(float)


def standardised(X: Floats, used: Mask) -> Floats:
    """Return features (n, d) in units of the rows that train, (n,) of them marked."""
    spread = X[used].std(axis=0)
    return (X - X[used].mean(axis=0)) / np.where(spread > 0, spread, 1)


def training(fold: Rows) -> Mask:
    """Return whether each row trains each of the F = B K models, (F, n), of folds (B, n)."""
    return np.reshape(fold[:, None, :] != np.arange(FOLDS)[:, None], (-1, fold.shape[1]))


def held_out(values: Mask, fold: Rows) -> Mask:
    """Return each row's value (F, n) by the model that did not see it, (B, n)."""
    per_fold = values.reshape(len(fold), -1, fold.shape[1])
    return np.take_along_axis(per_fold, fold[:, None, :], axis=1)[:, 0]


def without(kernel: Floats, used: Rows | Mask, apart: Floats) -> Floats:
    """Return a kernel (n, m) without the direction of a weighted sum of its m training rows."""
    along = kernel @ apart
    length = apart @ along[used]
    return kernel - np.outer(along, along[used]) / length if length > 0 else kernel


@dataclass(frozen=True, eq=False)
class Divided:
    """Some rows of German, and their divisions into folds.

    Attributes
    ----------
    data : the rows. X, y, groups : (n, d), (n,) label 1 a bad loan, (n,) codes.
    fold : (B, n) test folds; `repeats` are the numbers of these cross-validations.
    """

    data: Dataset
    X: Floats
    y: Floats
    groups: Codes
    fold: Rows
    repeats: Sequence[int]

    @classmethod
    def of(cls, data: Dataset, repeats: Sequence[int]) -> Divided:
        """Deal rows into folds, as every algorithm of the study has them."""
        part = ground_truth.study("SVM")
        groups = data.groups(part.protect).cat.codes.to_numpy(np.intp)
        fold = np.empty((len(repeats), len(data)), np.intp)
        for place, each in ground_truth.folds_of(data, repeats, part.seed):
            fold[place, each.test] = each.fold
        X, y = np.asarray(data.features, float), data.target.to_numpy(float)
        return cls(data, X, y, groups, fold, repeats)

    def labels(self, name: str) -> dict[str, Mask]:
        """Return the held-out labels by algorithm, (S, B, n), in the order of `choices`."""
        given = np.stack(list(self._given(name)))
        own = np.stack([held_out(each, self.fold) for each in given])
        picked = []
        for choice in selections(name):
            first, size = len(KERNEL) * choice.endswith(OWN), len(machines(name))
            grid = slice(first, first + size)
            chosen = self.chosen(own[grid], fairest=choice.startswith(FAIREST))
            picked.append(given[grid][chosen.ravel(), np.arange(given.shape[1])])
        of_parts, found = [*picked, *given], {}
        for algorithm in FITTED[name]:
            hardt = algorithm.endswith("Hardt")
            label = self._derived if hardt else partial(held_out, fold=self.fold)
            found[algorithm] = np.stack([label(each) for each in of_parts[: len(choices(name))]])
        return found

    def chosen(self, labels: Mask, *, fairest: bool = False) -> Rows:
        """Return the place of the machine that labels the other folds best, (B, K).

        Parameters
        ----------
        labels : held-out labels (S, B, n); of several machines as good the first is taken.
        fairest : of the machines within 90 % of the best accuracy the one with the smallest gap in
            opportunity, as Donini et al. (2018) validate.
        """
        folds = [self.fold == k for k in range(FOLDS)]
        right = labels == (self.y > 0)
        score = self._of_others([np.where(part, right, False).sum(axis=2) for part in folds])
        if fairest:
            gap = self._of_others([self._gap(labels, part) for part in folds])
            score = np.where(score >= NEARLY * score.max(axis=0), -gap, -np.inf)
        return score.argmax(axis=0)

    @staticmethod
    def _of_others(by_fold: Sequence[NDArray[Any]]) -> Floats:
        """Return the sums over the other folds, (S, B, K), of values (S, B) by fold."""
        values = np.stack(by_fold, axis=2).astype(float)
        return np.asarray(values.sum(axis=2, keepdims=True) - values)

    def _gap(self, labels: Mask, part: Mask) -> Floats:
        """Return the gap in good loans found among some rows (B, n), (S, B)."""
        rates = []
        for group in (0, 1):
            rows = part & (self.y == GOOD) & (self.groups == group)
            rates.append((~labels & rows).sum(axis=2) / np.maximum(rows.sum(axis=1), 1))
        return np.asarray(np.abs(rates[1] - rates[0]))

    def _given(self, name: str) -> Iterator[Mask]:
        """Yield the labels that each machine of a grid gives to all rows, (F, n)."""
        if name == "Zafar":
            part = replace(ground_truth.study(name), dataset=self.data)
            tested = ground_truth.held_out_labels(part, self.repeats)
            yield np.repeat(tested, FOLDS, axis=0)
        elif name.endswith("LR"):
            learner = LogisticRegression(C=1.0, solver="newton-cholesky")
            yield np.stack(
                [
                    learner.fit(Z[used], self.y[used], weight).predict(Z) > 0
                    for Z, used, weight in self._features(name)
                ]
            )
        elif name.startswith("Linear"):
            for C in C_LINEAR:
                yield self.margins(name, C) > 0
        else:
            margins = [self.margins(name, *each) for each in product(C_KERNEL, GAMMA)]
            if name == "FERM":  # the intercept of its authors' code first
                yield from (self._averaged(each) > 0 for each in margins)
            yield from (each > 0 for each in margins)
            if name == "FERM":
                yield self.margins(name, *BETWEEN) > 0

    def _features(self, name: str) -> Iterator[tuple[Floats, Mask, Floats]]:
        """Yield each part's features of all rows, which of them train, and the weights of these."""
        for used in training(self.fold):
            Z, weight = standardised(self.X, used), np.ones(used.sum())
            if name.startswith("Disparate"):
                Z = self._repaired(Z, used)
            elif name.startswith("Reweighing"):
                groups = self.data.groups(ground_truth.study("SVM").protect)
                weight = independence_weights(groups, self.y, used.astype(float))[used]
            elif name == "Linear FERM":
                apart = self._apart(used) @ Z[used]
                largest = np.abs(apart).argmax()
                Z = Z - np.outer(Z[:, largest] / apart[largest], apart)
            yield Z, used, weight

    def _repaired(self, Z: Floats, used: Mask) -> Floats:
        """Return features, in units of the rows that train, repaired by what these teach."""
        numbers = [place for place, each in enumerate(self.X.T) if len(np.unique(each)) > 2]
        values, groups, found = Z[:, numbers], self.groups.astype(str), Z.copy()
        of_group = {
            name: [Quantiles.of(each) for each in values[used & (groups == name)].T]
            for name in ("0", "1")
        }
        found[:, numbers] = repaired_values(
            values, groups, of_group=of_group, of_all=of_group["0"], level=1.0
        )
        return found

    def _apart(self, used: Mask) -> Floats:
        """Return the weights of training rows whose sum is what FERM must not use."""
        return mean_difference(self.groups[used], self.y[used] == GOOD, np.ones(used.sum()))

    def margins(self, name: str, C: float, gamma: float | None = None) -> Floats:
        """Return the margins of a machine, (F, n), of a linear one without a gamma."""
        tolerance = {} if gamma is None else {"tol": TOLERANCE}
        found, machine = [], SVC(C=C, kernel="precomputed", **tolerance)
        for Z, used, weight in self._features(name):
            kernel = Z @ Z[used].T if gamma is None else rbf_kernel(Z, Z[used], gamma)
            if name == "FERM":
                kernel = without(kernel, used, self._apart(used))
            machine.fit(kernel[used], self.y[used], weight)
            found.append(machine.decision_function(kernel))
        return np.stack(found)

    def _averaged(self, margins: Floats) -> Floats:
        """Return margins (F, n) with the mean intercept of all support vectors.

        Those whose multiplier is at C miss their margin, which moves the mean.
        """
        sign = 2 * self.y - 1
        support = training(self.fold) & (sign * margins <= 1 + SUPPORT)
        short = np.where(support, sign - margins, 0).sum(axis=1) / support.sum(axis=1)
        return margins + short[:, None]

    def apart(self, name: str) -> Mask:
        """Return the labels by a rule derived from training rows that its machine has not seen."""
        given, asked = [], []
        for part, used in enumerate(training(self.fold)):
            cv, k = divmod(part, FOLDS)
            rows = rng(0, "rule apart", self.repeats[cv], k).permutation(np.flatnonzero(used))
            seen = np.isin(np.arange(len(used)), rows[::2])
            asked.append(used & ~seen)
            given.append(self._fitted(seen, APART[name]))
        return self._derived(np.stack(given), np.stack(asked))

    def _fitted(self, used: Mask, learner: Any) -> Mask:
        """Return the labels of all rows, (n,), by a learner."""
        Z = standardised(self.X, used)
        return np.asarray(learner.fit(Z[used], self.y[used]).predict(Z) > 0)

    def _derived(self, labels: Mask, asked: Mask | None = None) -> Mask:
        """Return what Hardt's rule makes of the labels (F, n) of all rows, (B, n).

        `asked` are the rows (F, n) that it is derived from, the training rows by default.
        """
        used, found = training(self.fold), np.empty(self.fold.shape, bool)
        for part, own in enumerate(used if asked is None else asked):
            cv, k = divmod(part, FOLDS)
            chances = self._chances(labels[part, own], own)
            test = ~used[part]
            draw = rng(0, "hardt", self.repeats[cv], k).random(int(test.sum()))
            found[cv, test] = draw < chances[self.groups[test], labels[part, test].astype(np.intp)]
        return found

    def _chances(self, label: Mask, rows: Mask) -> Floats:
        """Return the probabilities of label 1 by group and label, of labels of some rows."""
        y, groups = self.y[rows], self.groups[rows]
        positive = np.array(
            [[label[(groups == g) & (y == truth)].mean() for truth in (0, 1)] for g in (0, 1)]
        )
        rates = np.stack([1 - positive, positive], axis=-1)
        return equalised_odds(rates, np.array([1 - y.mean(), y.mean()]))

    def counted(self, labels: Mask) -> ground_truth.Counts:
        """Return the counts (S, B, G, 4) of labels (S, B, n)."""
        flat = labels.reshape(-1, labels.shape[-1])
        counts = [binary_confusion(self.y, each, self.groups, n_groups=2) for each in flat]
        return np.reshape(counts, (*labels.shape[:-1], 2, 4))


def repeated(name: str, first: int, cvs: int = BATCH) -> dict[str, ground_truth.Counts]:
    """Return the counts (1 + S, B, G, 4) of some cross-validations, by algorithm."""
    rows = Divided.of(german(), range(first, first + cvs))
    if name == RULE_APART:
        return {algorithm: rows.counted(rows.apart(algorithm)[None]) for algorithm in APART}
    return {algorithm: rows.counted(each) for algorithm, each in rows.labels(name).items()}


def halved(name: str, place: int) -> dict[str, ground_truth.Counts]:
    """Return the counts (1 + S, 2, G, 4) of ten folds inside either half, by algorithm."""
    data, seed = german(), ground_truth.study("SVM").seed
    drawn = list(half_splits(len(data), place + 1, rng(seed, "halves")))[-1]
    sides = []
    for side, rows in enumerate(drawn):
        half = Divided.of(data.take(rows), [SIDES * place + side])
        apart = {key: half.apart(key)[None] for key in APART} if name == RULE_APART else None
        labels = apart or half.labels(name)
        sides.append({key: half.counted(each) for key, each in labels.items()})
    return {key: np.concatenate([side[key] for side in sides], axis=1) for key in sides[0]}


@cache
def _content() -> dict[str, NDArray[Any]]:
    with np.load(FILE, allow_pickle=False) as archive:
        return {name: archive[name].astype(np.int64) for name in archive.files}


def counts(algorithm: str, choice: str = "") -> ground_truth.Counts:
    """Return the packed counts of an algorithm's cross-validations, (B, G, 4)."""
    return _content()[ground_truth.key_of(algorithm, choice)]


def estimates(algorithm: str, choice: str = "") -> Floats:
    """Return accuracy and the share of good loans found in halves, (J, 2, R, G)."""
    found = _content()[ground_truth.key_of(algorithm, choice, HALVES)]
    return np.stack([accuracy(found), true_negative_rate(found)], axis=2)


def main(options: Options) -> None:
    """Compute what the results folder does not have, and pack it in place of what is packed."""
    folder, content = options.results / ground_truth.STORED / "grid", dict(_content())
    for name in options.algorithms:
        cvs = [
            ground_truth.kept(folder / f"{name}, {first}.npz", partial(repeated, name, first))
            for first in range(0, options.cvs, BATCH)
        ]
        halves = [
            ground_truth.kept(folder / f"{name}, halves {place}.npz", partial(halved, name, place))
            for place in range(options.halvings)
        ]
        for algorithm in cvs[0]:
            packed = (RULE_APART,) if name == RULE_APART else choices(algorithm)
            for place, choice in enumerate(packed):
                counts = np.concatenate([each[algorithm][place] for each in cvs])
                content[ground_truth.key_of(algorithm, choice)] = counts
                counts = np.stack([each[algorithm][place] for each in halves])
                content[ground_truth.key_of(algorithm, choice, HALVES)] = counts
    small = {name: each.astype(np.uint16) for name, each in content.items()}
    ground_truth.write_arrays(FILE, small)


if __name__ == "__main__":
    run_main(main)
