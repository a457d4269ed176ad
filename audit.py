"""Audit a table of predictions: ``python audit.py predictions.csv target=label group=[sex,race]``.

Without further words it explains its options.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from fairbench.cli.audit import audit_command
from fairbench.core.errors import UserError


def main(arguments: Sequence[str]) -> int:
    """Print the report and write it beside; return 2 for what cannot be read."""
    try:
        audit_command(arguments, Path(__file__).resolve().parent / "results" / "report")
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
