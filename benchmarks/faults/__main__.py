"""Run one kind of faults: ``python -m benchmarks.faults flips [NUMBER]``."""

from __future__ import annotations

import os
import sys

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[_variable] = "1"

from benchmarks.faults import flips  # noqa: E402

FAULTS = {"flips": flips.main}


def main(words: list[str]) -> int:
    """Run the named kind; 0 if everything held."""
    if not words or words[0] not in FAULTS:
        print(f"error: unknown faults '{' '.join(words)}': valid: {', '.join(FAULTS)}")
        return 2
    return not FAULTS[words[0]](*map(int, words[1:]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
