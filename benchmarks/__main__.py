"""Run every benchmark, or those named: ``python -m benchmarks [harness] [bag] ...``."""

from __future__ import annotations

import os
import sys

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[_variable] = "1"

from benchmarks import (  # noqa: E402
    active,
    atlas_cost,
    audit,
    bag,
    bayesian_nn,
    comparison,
    cross_validation,
    evaluation,
    few_labels,
    grid,
    harness,
    individual,
    multilevel,
    reductions,
    report,
    scale,
    scale_packs,
    seals,
    workers,
)

BENCHMARKS = {
    "active": active.main,
    "atlas_cost": atlas_cost.main,
    "audit": audit.main,
    "bag": bag.main,
    "bayesian_nn": bayesian_nn.main,
    "comparison": comparison.main,
    "cross_validation": cross_validation.main,
    "evaluation": evaluation.main,
    "few_labels": few_labels.main,
    "grid": grid.main,
    "harness": harness.main,
    "individual": individual.main,
    "multilevel": multilevel.main,
    "reductions": reductions.main,
    "report": report.main,
    "scale": scale.main,
    "scale_packs": scale_packs.main,
    "seals": seals.main,
    "workers": workers.main,
}


def main(names: list[str]) -> int:
    """Run the named benchmarks in turn, all without names."""
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        print(f"error: unknown benchmark '{unknown[0]}': valid: {', '.join(BENCHMARKS)}")
        return 2
    for name in names or BENCHMARKS:
        BENCHMARKS[name]()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
