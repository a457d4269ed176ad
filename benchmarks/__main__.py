"""Run every benchmark of speed, or those named: ``python -m benchmarks [run] [sweep] ...``."""

from __future__ import annotations

import os
import sys

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[_variable] = "1"

from benchmarks import speed  # noqa: E402

BENCHMARKS = {
    "run": speed.run,
    "sweep": speed.sweep,
    "listing": speed.listing,
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
