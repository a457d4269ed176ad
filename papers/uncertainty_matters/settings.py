"""Which fixed C, kernel width and encoding give the areas of Table 12.1 at rho = 1/K.

``python -m papers.uncertainty_matters.settings [cvs=5]`` fits five of its algorithms by each of a
grid of settings on the partitions of the ground truth, and prints the mean areas beside the
published ones. A setting is one for all: the last column is what they miss together.
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from rich import box
from rich.console import Console
from rich.table import Table

from fairbench.components.algorithms.estimators.ferm import mean_difference
from fairbench.components.papers import run_main
from fairbench.components.papers.options import number_of_cvs
from fairbench.components.papers.uncertainty_matters.algorithms import study
from fairbench.components.papers.uncertainty_matters.cross_validation import FOLDS, partitions
from fairbench.components.papers.uncertainty_matters.posteriors import Cloud
from fairbench.core.arrays import Floats, Mask
from fairbench.core.seeds import rng
from fairbench.data.encoding import onehot
from fairbench.inference.effective_counts import shrinkage
from fairbench.metrics.rates import binary_confusion

# Published areas at rho = 1/K.
AREAS = {"LR": 0.0207, "Linear SVM": 0.0205, "SVM": 0.0201, "Linear FERM": 0.0093, "FERM": 0.0107}
# Of standardised features the variance is 1, and both widths are the same.
WIDTHS = {"standard": ("scale",), "min-max": ("scale", "auto"), "raw": ("scale", "auto")}
HINGE = "linear, hinge"  # the linear machines with the loss of the kernel machines
PENALTIES = (0.01, 0.1, 1.0, 10.0, 100.0)
SLOW = 1.0  # libsvm does not end with a linear kernel and a larger C
GOOD = 0  # the label whose opportunity FERM makes equal
DRAWS = 10000


@dataclass(frozen=True)
class Options:
    """How much is fitted."""

    cvs: int = number_of_cvs(5)


@dataclass(frozen=True)
class Part:
    """The rows of one training part: features encoded by it, and which rows train."""

    X: Floats
    y: Floats
    groups: NDArray[np.intp]
    used: Mask

    def labels(self, kernel: str, C: float) -> Iterator[tuple[str, Mask]]:
        """Yield the labels of all rows by every algorithm, (n,); no kernel: by the linear ones."""
        if not kernel:
            yield from self._linear(C)
        elif kernel != HINGE or C <= SLOW:
            yield from self._dual(kernel, C)

    def _linear(self, C: float) -> Iterator[tuple[str, Mask]]:
        from sklearn.linear_model import LogisticRegression
        from sklearn.svm import LinearSVC

        u = self._difference() @ self.X[self.used]
        largest = np.abs(u).argmax()
        fair = self.X - np.outer(self.X[:, largest] / u[largest], u)
        machine = LinearSVC(C=C, dual=False)
        for name, X, learner in (
            ("LR", self.X, LogisticRegression(C=C, solver="newton-cholesky")),
            ("Linear SVM", self.X, machine),
            ("Linear FERM", fair, machine),
        ):
            yield name, learner.fit(X[self.used], self.y[self.used]).predict(X) > 0

    def _dual(self, name: str, C: float) -> Iterator[tuple[str, Mask]]:
        from sklearn.svm import SVC

        kernel, u = self._kernel(name), self._difference()
        along = kernel @ u
        fair = kernel - np.outer(along, along[self.used]) / (u @ along[self.used])
        machine = SVC(C=C, kernel="precomputed")
        front = "Linear " if name == HINGE else ""
        for algorithm, values in (("SVM", kernel), ("FERM", fair)):
            fitted = machine.fit(values[self.used], self.y[self.used])
            yield front + algorithm, fitted.predict(values) > 0

    def _kernel(self, name: str) -> Floats:
        from sklearn.metrics.pairwise import linear_kernel, rbf_kernel

        X = self.X[self.used]
        if name == HINGE:
            return np.asarray(linear_kernel(self.X, X))
        variance = X.var() if name == "scale" else 1
        return np.asarray(rbf_kernel(self.X, X, 1 / (X.shape[1] * variance)))

    def _difference(self) -> Floats:
        """Return the weights of the training rows in the difference of the groups' means, (m,)."""
        good = self.y[self.used] == GOOD
        return mean_difference(self.groups[self.used], good, np.ones(len(good)))


def encoded(X: Floats, used: Mask, encoding: str) -> Floats:
    """Return features (n, d) scaled by their training rows; raw ones are left as they are."""
    if encoding == "raw":
        return X
    low, spread = X[used].min(axis=0), np.ptp(X[used], axis=0)
    if encoding == "standard":
        low, spread = X[used].mean(axis=0), X[used].std(axis=0)
    scaled: Floats = (X - low) / np.where(spread > 0, spread, 1)
    return scaled


def areas(encoding: str, kernel: str, C: float, cvs: int) -> dict[str, float]:
    """Return the mean area of the 95 % region by algorithm, of those that read the kernel."""
    source = study("LR")
    data, groups = source.dataset, source.dataset.groups(source.protect)
    X, y = onehot(data.features).astype(float), data.target.to_numpy(float)
    codes = groups.cat.codes.to_numpy(np.intp)
    fold = partitions(data, range(cvs), source.seed)
    found: dict[str, Mask] = defaultdict(lambda: np.empty(fold.shape, bool))
    for cv, k in np.ndindex(cvs, FOLDS):
        used = fold[cv] != k
        for name, labels in Part(encoded(X, used, encoding), y, codes, used).labels(kernel, C):
            found[name][cv, ~used] = labels[~used]
    return {name: _area(y, labels, codes) for name, labels in found.items()}


def _area(y: Floats, labels: Mask, groups: NDArray[np.intp]) -> float:
    counts = np.stack([binary_confusion(y, each, groups, n_groups=2) for each in labels])
    worth = float(shrinkage(1 / FOLDS, FOLDS))
    cloud = Cloud.of(counts, worth, rng(0, "settings"), draws=DRAWS)
    return float(np.mean([region.size for region in cloud.regions()]))


def settings(cvs: int) -> Iterator[tuple[str, str, float, dict[str, float]]]:
    """Yield encoding, kernel, C, and the areas by algorithm."""
    for encoding, widths in WIDTHS.items():
        linear = {C: areas(encoding, "", C, cvs) for C in PENALTIES}
        for kernel in widths:
            for C in PENALTIES:
                yield encoding, kernel, C, linear[C] | areas(encoding, kernel, C, cvs)
    for encoding in ("standard", "min-max"):
        for C in (each for each in PENALTIES if each <= SLOW):
            yield encoding, HINGE, C, areas(encoding, HINGE, C, cvs)


def miss(found: Mapping[str, float]) -> float:
    """Return the root mean square of the relative differences to the published areas."""
    return float(np.sqrt(np.mean([(each / AREAS[name] - 1) ** 2 for name, each in found.items()])))


def main(options: Options) -> None:
    """Print the grid."""
    table = Table(title="areas at rho = 1/K", title_justify="left", box=box.SIMPLE_HEAD)
    for heading in ("features", "kernel", "C", *AREAS, "miss"):
        table.add_column(heading, justify="left" if heading in ("features", "kernel") else "right")
    table.add_row("published", "", "", *(f"{each:.4f}" for each in AREAS.values()), "")
    for encoding, kernel, C, found in settings(options.cvs):
        cells = (f"{found[name]:.4f}" if name in found else "-" for name in AREAS)
        table.add_row(encoding, kernel, f"{C:g}", *cells, f"{100 * miss(found):.0f} %")
    Console(width=100).print(table)


if __name__ == "__main__":
    # Raw features do not let liblinear converge; what it stops at is what a user would have.
    warnings.filterwarnings("ignore", message="Liblinear failed to converge")
    run_main(main, Options)
