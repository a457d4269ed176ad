"""Repeated ten-fold cross-validations of German, the ground truth of Barrainkua et al. (2024).

``python -m papers.uncertainty_matters.ground_truth [cvs=200] [algorithms=NAMES]`` counts outcomes
over the ten folds, in batches that are kept in the results folder: a stopped command goes on where
it was, and more cross-validations add to those that are there. All algorithms see the same
partitions, so two of them can be compared cross-validation by cross-validation.
"""

from __future__ import annotations

import ast
import shlex
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairbench.components.papers import ROOT, CrossValidations, composed, print_table, run_main
from fairbench.components.papers.uncertainty_matters import solvers
from fairbench.core.errors import UserError, unknown_name
from fairbench.core.files import atomic
from fairbench.core.fingerprint import code_digest
from fairbench.core.options import option
from fairbench.core.text import digest
from fairbench.experiments.build import components
from fairbench.experiments.configuration import plain
from fairbench.experiments.contracts import Study
from fairbench.metrics.group import difference
from fairbench.metrics.registry import accuracy, binary_confusion, total, true_positive_rate
from fairbench.results.runs import Store

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
    """Return the overrides of the run of one algorithm, its data set included.

    Raises
    ------
    UserError : an algorithm that Table 12.1 does not have.
    """
    own, _, C = name.partition(_OTHER_C)
    if own not in ALGORITHMS:
        raise unknown_name("algorithm", own, ALGORITHMS)
    words = [word for word in ALGORITHMS[own] if not (C and word.startswith("learner.C="))]
    return [*DATA, *words, *([f"learner.C={C}"] * bool(C)), "method=baseline"]


@lru_cache(maxsize=32)
def study(name: str) -> Study:
    """Return the data and components of one algorithm, as that run would build them."""
    cfg = plain(composed(*overrides(name)))
    parts = components(cfg)
    return Study(
        parts.dataset,
        parts.learner,
        parts.intervention,
        parts.method.fitter,
        int(cfg["seed"]),
        parts.protect,
    )


# Counts, batch by batch.

BATCH = 100  # cross-validations of a cell
FOLDER = Path(__file__).resolve().parent
# Apart from the cells of runs, so that removing what no run needs leaves these alone.
STORED = Path("papers") / "uncertainty_matters"  # in a results folder
RESULTS = ROOT / "results" / STORED
Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Options(CrossValidations):
    """Which algorithms are cross-validated, and how."""

    algorithms: tuple[str, ...] = option(
        tuple(ALGORITHMS), 'Which algorithms; a name with a comma is written ["FERM, C = 0.4"].'
    )
    jobs: int = option(1, "How many batches are computed at a time.", least=1)


def load(algorithm: str, cvs: int | None = None, results: Path = RESULTS) -> Counts:
    """Return the counts of cross-validations 0 .. cvs - 1, all that are there if None.

    Returns
    -------
    (B, G, 4) true negatives, false positives, false negatives, true positives (of label 1, a bad
    risk) per group, age > 25 first, pooled over the folds. The same index is the same partition
    for every algorithm.

    Raises
    ------
    UserError : they have not been computed.
    """
    store, tables = Store(results), []
    for batch in range(-(-(cvs or 10**9) // BATCH)):
        cell = cell_id(algorithm, batch)
        if not store.has(cell):
            break
        tables.append(store.read(cell).columns["counts"].reshape(BATCH, -1, 4))
    found = sum(map(len, tables))
    if found < (cvs or 1):
        raise UserError(
            f"{found} of {cvs or 'any'} cross-validations of {algorithm} are in {results}: run "
            f"python -m papers.uncertainty_matters.ground_truth {_arguments(algorithm, cvs)}"
        )
    return np.concatenate(tables)[:cvs].astype(np.int64)


def _arguments(algorithm: str, cvs: int | None) -> str:
    name = f'["{algorithm}"]' if "," in algorithm else algorithm
    return shlex.join([f"algorithms={name}", *([f"cvs={cvs}"] if cvs else [])])


def cell_id(algorithm: str, batch: int) -> str:
    """Return the id of a batch: a hash of the data, the components, the code and the batch."""
    overrides(algorithm)  # refuses the name of none
    return digest([_identity(algorithm), solvers.FOLDS, BATCH, batch])


_identities: dict[str, dict[str, object]] = {}


def _identity(algorithm: str) -> dict[str, object]:
    if algorithm not in _identities:
        identity = study(algorithm).identity()
        if solvers.solved_here(study(algorithm)):
            identity["code"] = code_digest(tuple(solvers.modules_read(study(algorithm))))
        _identities[algorithm] = identity | {"study": code_of(FOLDER / "solvers.py")}
    return _identities[algorithm]


def code_of(path: Path) -> str:
    """Return the syntax of a file, without comments, layout and docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.__dict__["body"] = [each for each in body if not _is_text(each)]
    return ast.dump(tree)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


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
    labels = solvers.held_out_labels(part, cvs)
    return np.stack([binary_confusion(target, each, codes, n_groups=n_groups) for each in labels])


def counts(algorithm: str, batch: int) -> Counts:
    """Compute the counts of one batch, (BATCH, G, 4)."""
    return counted(study(algorithm), range(batch * BATCH, (batch + 1) * BATCH))


def ensure(algorithm: str, batch: int, results: Path = RESULTS) -> bool:
    """Compute and store a batch unless it is there; return whether it was computed."""
    store, cell = Store(results), cell_id(algorithm, batch)
    with store.lock(cell):
        if store.intact(cell):
            return False
        started = time.process_time()
        columns = {"counts": counts(algorithm, batch).ravel()}
        notes = {"algorithm": algorithm, "batch": batch, "cpu": time.process_time() - started}
        store.write(cell, columns, notes)
        return True


def ensure_all(
    algorithms: Sequence[str], cvs: int, jobs: int, results: Path = RESULTS
) -> Iterator[bool]:
    """Ensure every batch, the first ones of all algorithms first."""
    import joblib

    batches = range(-(-cvs // BATCH))
    tasks = (
        joblib.delayed(ensure)(name, batch, results) for batch in batches for name in algorithms
    )
    yield from joblib.Parallel(jobs, return_as="generator_unordered")(tasks)


def show(algorithms: Sequence[str], cvs: int, results: Path = RESULTS) -> None:
    """Print the spread over cross-validations of accuracy and the difference in equal opportunity.

    The difference is the true positive rate of age <= 25 less that of age > 25.
    """
    measures = ("accuracy", "equal opportunity difference", "its size")
    headings = ("", *(f"{each}: mean (se), sd" for each in measures), "CPU s")
    store, rows = Store(results), []
    for name in algorithms:
        tables = load(name, cvs, results)
        gap = difference(true_positive_rate, tables)[:, 0]
        cells = []
        for values in (accuracy(total(tables))[:, 0], gap, np.abs(gap)):
            sd = values.std(ddof=1)
            cells.append(f"{values.mean():.4f} ({sd / np.sqrt(len(values)):.4f}), {sd:.4f}")
        batches = (cell_id(name, batch) for batch in range(-(-cvs // BATCH)))
        seconds = sum(store.read(batch).notes["cpu"] for batch in batches)
        rows.append([name, *cells, f"{seconds:.0f}"])
    title = f"{cvs} ten-fold cross-validations of German, age > 25"
    print_table(title, headings, rows, width=140)


def main(options: Options) -> None:
    """Compute what is missing, then print the table."""
    from rich.progress import track

    results, names = options.results / STORED, options.algorithms
    batches = ensure_all(names, options.cvs, options.jobs, results)
    for _ in track(batches, "cross-validations", len(names) * -(-options.cvs // BATCH)):
        pass
    show(names, options.cvs, results)


if __name__ == "__main__":
    run_main(main)
