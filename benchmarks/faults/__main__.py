"""Run one kind of faults: ``python -m benchmarks.faults flips [NUMBER]``, ``... kills joblib``."""

from __future__ import annotations

import os
import sys
from importlib import import_module

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[_variable] = "1"

# Each is a file here, whose `main` takes the other words and returns whether everything held.
FAULTS = ("bombs", "flips", "kills", "names", "namespaces", "records", "states", "tables", "texts")


def main(words: list[str]) -> int:
    """Run the named kind; 0 if everything held."""
    if not words or words[0] not in FAULTS:
        print(f"error: unknown faults '{' '.join(words)}': valid: {', '.join(FAULTS)}")
        return 2
    from benchmarks.measure import command

    return command(import_module(f"benchmarks.faults.{words[0]}").main, words[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
