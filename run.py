"""Run one configuration, or with -m a sweep of them: ``python run.py --help``."""

import sys
from pathlib import Path

from fairbench.cli.run import run

if __name__ == "__main__":
    sys.exit(run(sys.argv[1:], Path(__file__).resolve().parent))
