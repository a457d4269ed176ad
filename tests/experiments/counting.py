"""Counts what commands of ``run.py`` do, in a process of its own: ``python counting.py JSON``.

Takes a list of lists of words, each with a folder of results of its own, and prints for each what
Python's audit events and calls tell: files of the results folder that were opened to be read and
to be written, folders that were, calls of functions that evaluate, and fits of XGBoost.
"""

import json
import os
import re
import sys
import threading
from collections import Counter
from pathlib import Path

from fairbench.cli.verbs.run import run_words

ROOT = Path(__file__).resolve().parents[2]
EVALUATES = re.compile(r"fairbench/(evaluation|inference|metrics)/")


def counts_of(words, results):
    """Give a command, and return its counts."""
    counts, fits = Counter(), set()

    def opened(event, given):
        """Count a file or folder of the results, which are opened by names within a folder."""
        if event != "open" or not isinstance(given[0], str | bytes | os.PathLike):
            return
        path, flags = os.fsdecode(os.fspath(given[0])), given[2]
        if not os.path.isabs(path) or f"{path}/".startswith(f"{results}/"):
            to_write = flags & (os.O_WRONLY | os.O_RDWR)
            counts["folders" if flags & os.O_DIRECTORY else "written" if to_write else "read"] += 1

    def called(frame, event, _):
        """Count a call of a function, as a profiler of `sys.setprofile`."""
        if event == "call":
            code = frame.f_code
            counts["evaluating"] += bool(EVALUATES.search(code.co_filename))
            if code.co_name in ("update", "boost") and "xgboost" in code.co_filename:
                fits.add(frame.f_locals["self"])

    sys.setprofile(called)
    threading.setprofile(called)
    listening.append(opened)
    try:
        assert run_words([*words, f"results={results}", "data.download=false"]) == 0, words
    finally:
        listening.clear()
        sys.setprofile(None)
        threading.setprofile(None)
    return {**counts, "fits": len(fits)}


listening = []
if __name__ == "__main__":
    sys.addaudithook(lambda event, given: [hear(event, given) for hear in listening])
    counted = [
        counts_of(words, f"{os.getcwd()}/{number}")
        for number, words in enumerate(json.loads(sys.argv[1]))
    ]
    print(json.dumps(counted))
