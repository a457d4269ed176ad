"""Run one configuration, or with -m a sweep of them: ``python run.py --help``."""

import sys

from fairbench.cli.verbs.run import run_words

if __name__ == "__main__":
    sys.exit(run_words(sys.argv[1:]))
