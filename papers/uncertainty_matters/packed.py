"""Cross-validations of German with one-hot columns, packed into the checkout.

``python -m papers.uncertainty_matters.packed [cvs=10000]`` computes what the results folder does
not have of them, and packs all that is there, joint counts and half-splits besides; what is
computed is kept, so that a stopped command goes on. Labels are the same in every cross-validation,
so that four counts of two groups say all.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairbench.cli.command import Results, default_results
from fairbench.components.papers import run_main
from fairbench.components.papers.options import number_of_cvs
from fairbench.components.papers.uncertainty_matters import ground_truth, halves
from fairbench.components.papers.uncertainty_matters.algorithms import ALGORITHMS, study
from fairbench.components.papers.uncertainty_matters.cross_validation import held_out_labels
from fairbench.core.errors import UserError
from fairbench.core.files import atomic
from fairbench.inference.effective_counts import variance_ratio
from fairbench.inference.posterior import joint_confusion
from fairbench.metrics.rates import binary_confusion

FILE = ground_truth.FOLDER / "counts.npz"
ROWS, JOINT, HALVES = "rows", "joint", "halves"
PARTITIONS = 20  # that joint counts are averaged over
FEW, HALVINGS = 20, 10  # cross-validations and half-splits of what Table 12.1 alone has
OTHERS = 400  # cross-validations of what only the further readings and section 14.2.1 compare
Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Options(Results):
    """How many cross-validations of what the reading that reproduces compares, and their place."""

    cvs: int = number_of_cvs(OTHERS)


def counts(algorithm: str) -> Counts | None:
    """Return the counts (B, G, 4) of an algorithm, None where it is not among the packed."""
    if algorithm not in _content():
        return None
    wrong = _content()[algorithm].astype(np.int64).reshape(-1, 2, 2)
    negative, positive = _content()[ROWS].astype(np.int64).T
    false_positive, false_negative = wrong[..., 0], wrong[..., 1]
    cells = (negative - false_positive, false_positive, false_negative, positive - false_negative)
    return np.stack(cells, axis=-1)


def joint(names: tuple[str, str]) -> Counts | None:
    """Return the joint counts (R, G, 8) of two algorithms, None where they are not packed."""
    return _content().get(_key(JOINT, *names))


def half_split_estimates(algorithm: str) -> NDArray[np.float64]:
    """Return what :func:`papers.uncertainty_matters.halves.estimates` found, (J, 2, R, G)."""
    found: NDArray[np.float64] = _content()[_key(HALVES, algorithm)].astype(float)
    return found


def most_counts(algorithm: str, results: Path | None = None) -> Counts:
    """Return an algorithm's cross-validations: those packed, or in a results folder if it has more.

    Raises
    ------
    UserError : neither has any.
    """
    kept, found = counts(algorithm), None
    if results is not None or kept is None:
        try:
            folder = (results or default_results()) / ground_truth.STORED
            found = ground_truth.load(algorithm, results=folder)
        except UserError:
            if kept is None:
                raise
    if kept is None or (found is not None and len(found) > len(kept)):
        assert found is not None
        return found
    return kept


def variance_ratio_of(algorithm: str) -> float:
    """Return an algorithm's variance over the reference learner's, of the packed half-splits."""
    own, reference = map(half_split_estimates, (algorithm, halves.REFERENCE))
    return float(variance_ratio(own, reference[: len(own)], pooled=True))


def joint_counts(names: tuple[str, str], partitions: int) -> Counts:
    """Compute the joint counts of two algorithms on the first partitions, (R, G, 8)."""
    part = study(names[0])
    groups = part.dataset.groups(part.protect).cat.codes.to_numpy()
    target = part.dataset.target.to_numpy()
    labels = [held_out_labels(study(name), range(partitions)) for name in names]
    found = [
        joint_confusion(target, first, second, groups, n_groups=2)
        for first, second in zip(*labels, strict=True)
    ]
    return np.stack(found)


def pack(results: Path, *, file: Path = FILE) -> None:
    """Pack what the results folder has; joint counts and half-splits are computed."""
    from fairbench.components.papers.uncertainty_matters.one_partition import ALL, PAIRS
    from fairbench.components.papers.uncertainty_matters.readings import READINGS

    content: dict[str, NDArray[Any]] = {}
    for name in ALL:
        tables = ground_truth.load(name, results=results / ground_truth.STORED)
        content[ROWS] = tables[0].reshape(2, 2, 2).sum(axis=-1).astype(np.uint16)
        content[name] = _wrong(tables)
    for name in ALGORITHMS:
        if name not in ALL:
            content[name] = _wrong(table_counts(name, range(FEW)))
            content[_key(HALVES, name)] = halves.estimates(name, HALVINGS).astype(np.float32)
    for pair in {each.names(pair) for each in READINGS if each.paired for pair in PAIRS[:3]}:
        content[_key(JOINT, *pair)] = joint_counts(pair, PARTITIONS).astype(np.uint16)
    for name in (halves.REFERENCE, *ALL):  # the reference in full, too
        content[_key(HALVES, name)] = halves.estimates(name).astype(np.float32)
    with atomic(file) as stream:
        np.savez_compressed(stream, allow_pickle=False, **content)


def compute(cvs: int, results: Path) -> None:
    """Compute cross-validations of what the reading that reproduces compares, and of the others."""
    from fairbench.components.papers.uncertainty_matters.one_partition import ALL, PAIRS
    from fairbench.components.papers.uncertainty_matters.readings import ONE_HOT

    first = {name for pair in PAIRS[:2] for name in ONE_HOT.names(pair)}
    rest = [name for name in ALL if name not in first]
    for names, wanted in ((sorted(first), cvs), (rest, min(cvs, OTHERS))):
        for _ in ground_truth.ensure_all(names, wanted, 1, results / ground_truth.STORED):
            pass


def table_counts(algorithm: str, cvs: range) -> Counts:
    """Compute the counts of some cross-validations of an algorithm, (B, G, 4)."""
    part = study(algorithm)
    groups = part.dataset.groups(part.protect).cat.codes.to_numpy()
    target = part.dataset.target.to_numpy()
    labels = held_out_labels(part, cvs)
    return np.stack([binary_confusion(target, each, groups, n_groups=2) for each in labels])


def _wrong(tables: Counts) -> NDArray[np.uint16]:
    """Return the false positives and negatives of both groups, (B, G, 4) -> (B, 4)."""
    return tables[..., 1:3].reshape(-1, 4).astype(np.uint16)


def _key(*words: str) -> str:
    return " | ".join(words)


@cache
def _content() -> dict[str, NDArray[Any]]:
    with np.load(FILE, allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def main(options: Options) -> None:
    """Pack."""
    compute(options.cvs, options.results)
    pack(options.results)
    print(f"{FILE}: {FILE.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    run_main(main, Options)
