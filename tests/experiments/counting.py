"""Counts what a command of ``run.py`` opens, in a process of its own: ``python counting.py WORDS``.

It tells by Python's audit events how many files of the results folder ``DIR`` of ``results=DIR``,
the last word, were opened to be read and to be written, and how many folders were.
"""

import json
import os
import sys
from collections import Counter

from fairbench.cli.verbs.run import run_words

counts = Counter()


def opened(event, given):
    """Count a file or folder of the results, which are opened by names within a folder."""
    if event == "open" and isinstance(given[0], str | bytes | os.PathLike):
        path, flags = os.fsdecode(os.fspath(given[0])), given[2]
        if not os.path.isabs(path) or f"{path}/".startswith(f"{results}/"):
            to_write = flags & (os.O_WRONLY | os.O_RDWR)
            counts["folders" if flags & os.O_DIRECTORY else "written" if to_write else "read"] += 1


if __name__ == "__main__":
    results = sys.argv[-1].removeprefix("results=")
    sys.addaudithook(opened)
    assert run_words(sys.argv[1:]) == 0
    print(json.dumps(counts))
