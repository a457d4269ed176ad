"""Run one configuration, or with -m a sweep of them: ``python run.py --help``."""

import sys

from fairbench.cli.main import main

if __name__ == "__main__":
    sys.argv.insert(1, "run")
    sys.exit(main())
