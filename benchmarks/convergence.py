"""How many iterations exponentiated gradient takes until its gap is within its tolerance.

``python -m benchmarks.convergence`` fits the first split of every task of the atlas's sweeps of
reductions with up to 50 iterations, as fairlearn does by default, where the atlas has 10. fairlearn
stops where the gap of the saddle point is under a tolerance (`nu`) that it sets from the errors of
the first model; where that makes none, the tolerance is 0, and the gap is never under it.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from benchmarks import measure
from fairbench.components.algorithms.interventions.reductions import Reduced
from fairbench.experiments import pipeline
from fairbench.experiments.compute import compute

SWEEPS, MOST, ATLAS = ("9_reductions", "9_boosted_reductions"), 50, 10


def main(words: Sequence[str]) -> int:
    """Print a line per fit, and how many converge within the atlas's iterations and within all."""
    result = list(fits(words))
    for names, iterations, gap, tolerance in result:
        end = "converged" if gap < tolerance else "did not converge"
        print(f"{names}: {iterations} iterations, gap {gap:.4f}, tolerance {tolerance:.4f}: {end}")
    for most in (ATLAS, MOST):
        within = sum(gap < tolerance and used <= most for _, used, gap, tolerance in result)
        print(f"within {most} iterations {within} of {len(result)} fits converge")
    print(f"{sum(tolerance == 0 for *_, tolerance in result)} fits have a tolerance of 0")
    return 0


def fits(words: Sequence[str]) -> Iterator[tuple[str, int, float, float]]:
    """Yield the name of each fit, its iterations, its best gap and its tolerance.

    Parameters
    ----------
    words : of the sweep, such as ``dataset=german``.
    """
    with tempfile.TemporaryDirectory() as folder:
        asked = ["split.repeats=1", f"results={folder}", *words]
        configs = [
            config
            for sweep in SWEEPS
            for config in measure.configurations(f"experiment=atlas/{sweep}", *asked)
        ]
        for config in configs:
            planned = pipeline.prepare(config)
            for cell in planned.cells:
                longer: Any = replace(cell.study.intervention, max_iter=MOST)  # type: ignore[type-var]
                for reduction in _reductions(replace(cell.study, intervention=longer), cell.fold):
                    name = f"{planned.name}, {longer.constraints} "
                    yield (
                        f"{name}{longer.difference_bound:g}",
                        reduction.last_iter_ + 1,
                        float(reduction.best_gap_),
                        float(reduction.nu),
                    )


def _reductions(study: Any, fold: Any) -> list[Any]:
    """Return what fairlearn has fitted in a cell, which a model does not keep."""
    fitted: list[Any] = []

    def kept(_: Reduced, reduction: Any) -> Any:
        fitted.append(reduction)
        return reduction

    with patch.object(Reduced, "kept", kept):
        compute(study, fold)
    return fitted


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
