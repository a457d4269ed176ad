"""``python -m fairbench.cli.tracking``: sync logs runs that MLflow has not; ui serves its pages."""

from __future__ import annotations

import sys

from fairbench.tracking.importer import sync
from fairbench.tracking.ui import ui


def main(arguments: list[str]) -> int:
    """Run ``sync [RESULTS]`` or ``ui [PORT [RESULTS]]``."""
    name, *rest = arguments or ["sync"]
    if name == "sync" and len(rest) <= 1:
        return sync(*rest)
    if name == "ui" and len(rest) <= 2:
        return ui(*rest)
    usage = "usage: python -m fairbench.cli.tracking sync [RESULTS] | ui [PORT [RESULTS]]"
    print(usage, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
