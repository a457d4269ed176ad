"""Repeated ten-fold cross-validations of German, the ground truth of Barrainkua et al. (2024).

``python -m papers.uncertainty_matters.ground_truth [cvs=200] [algorithms=NAMES]`` counts outcomes
over the ten folds, in batches that are kept in the results folder: a stopped command goes on where
it was, and more cross-validations add to those that are there. All algorithms see the same
partitions, so two of them can be compared cross-validation by cross-validation.
"""

from __future__ import annotations

import ast
import inspect
import shlex
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fairbench.components.papers import ROOT, run_main
from fairbench.components.papers.options import CrossValidations
from fairbench.components.papers.uncertainty_matters.algorithms import ALGORITHMS, overrides, study
from fairbench.components.papers.uncertainty_matters.cross_validation import (
    BESIDE,
    FOLDS,
    SOLVERS,
    held_out_labels,
    modules_read,
    solved_here,
)
from fairbench.core.errors import UserError
from fairbench.core.fingerprint import code_digest, digest
from fairbench.core.options import option
from fairbench.experiments.study import Study
from fairbench.metrics.group import difference
from fairbench.metrics.rates import accuracy, binary_confusion, total, true_positive_rate
from fairbench.results.cells import Store

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
    return digest([_identity(algorithm), FOLDS, BATCH, batch])


_identities: dict[str, dict[str, object]] = {}


def _identity(algorithm: str) -> dict[str, object]:
    if algorithm not in _identities:
        identity, files = study(algorithm).identity(), [FOLDER / "cross_validation.py"]
        if solved_here(study(algorithm)):
            identity["code"] = code_digest(modules_read(study(algorithm)))
            files += solver_files(study(algorithm))
        _identities[algorithm] = identity | {"study": [code_of(file) for file in files]}
    return _identities[algorithm]


def solver_files(part: Study) -> list[Path]:
    """Return the files of the solver that fits an algorithm, those it imports among them."""
    package = f"{SOLVERS[type(part.learner)].__module__.rpartition('.')[0]}."
    found = [Path(inspect.getfile(SOLVERS[type(part.learner)]))]
    beside = BESIDE.get(type(part.intervention))
    found += [Path(inspect.getfile(beside))] if beside else []
    for file in found:  # which grows
        nodes = ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        names = [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
        near = [each.removeprefix(package) for each in names if each.startswith(package)]
        found += [each for name in near if (each := FOLDER / "solvers" / f"{name}.py") not in found]
    return sorted(found)


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


def counts(algorithm: str, batch: int) -> Counts:
    """Compute the counts of one batch, (BATCH, G, 4)."""
    part = study(algorithm)
    target = part.dataset.target.to_numpy()
    groups = part.dataset.groups(part.protect)
    codes, n_groups = groups.cat.codes.to_numpy(), len(groups.cat.categories)
    labels = held_out_labels(part, range(batch * BATCH, (batch + 1) * BATCH))
    return np.stack([binary_confusion(target, each, codes, n_groups=n_groups) for each in labels])


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


def cpu_seconds(algorithm: str, cvs: int, results: Path = RESULTS) -> float:
    """Return the CPU seconds that stored batches took."""
    store, batches = Store(results), range(-(-cvs // BATCH))
    notes = [store.read(cell_id(algorithm, batch)).notes for batch in batches]
    return float(sum(each["cpu"] for each in notes))


def show(algorithms: Sequence[str], cvs: int, results: Path = RESULTS) -> None:
    """Print the spread over cross-validations of accuracy and the difference in equal opportunity.

    The difference is the true positive rate of age <= 25 less that of age > 25.
    """
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"{cvs} ten-fold cross-validations of German, age > 25")
    measures = ("accuracy", "equal opportunity difference", "its size")
    for heading in ("", *(f"{each}: mean (se), sd" for each in measures), "CPU s"):
        table.add_column(heading, justify="right" if heading else "left")
    for name in algorithms:
        tables = load(name, cvs, results)
        gap = difference(true_positive_rate, tables)[:, 0]
        values = (accuracy(total(tables))[:, 0], gap, np.abs(gap))
        seconds = cpu_seconds(name, cvs, results)
        table.add_row(name, *(_spread(each) for each in values), f"{seconds:.0f}")
    Console(width=140).print(table)


def _spread(values: NDArray[np.float64]) -> str:
    sd = values.std(ddof=1)
    return f"{values.mean():.4f} ({sd / np.sqrt(len(values)):.4f}), {sd:.4f}"


def main(options: Options) -> None:
    """Compute what is missing, then print the table."""
    from rich.progress import track

    results = options.results / STORED
    total_batches = len(options.algorithms) * -(-options.cvs // BATCH)
    for _ in track(
        ensure_all(options.algorithms, options.cvs, options.jobs, results),
        "cross-validations",
        total_batches,
    ):
        pass
    show(options.algorithms, options.cvs, results)


if __name__ == "__main__":
    run_main(main, Options)
