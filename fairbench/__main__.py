"""``python -m fairbench``: the same as the command ``fairbench``."""

import sys

from fairbench.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
