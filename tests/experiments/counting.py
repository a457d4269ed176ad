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


class Counts:
    """What is counted of one command."""

    def __init__(self, results):
        self.results, self.counts, self.fits = f"{results}/", Counter(), set()

    def opened(self, event, given):
        """Count a file or folder of the results, which are opened by names within a folder."""
        if event != "open" or not isinstance(given[0], str | bytes | os.PathLike):
            return
        path, flags = os.fsdecode(os.fspath(given[0])), given[2]
        if not os.path.isabs(path) or f"{path}/".startswith(self.results):
            to_write = flags & (os.O_WRONLY | os.O_RDWR)
            kind = "folders" if flags & os.O_DIRECTORY else "written" if to_write else "read"
            self.counts[kind] += 1

    def called(self, frame, event, _):
        """Count a call of a function, as a profiler of `sys.setprofile`."""
        if event == "call":
            code = frame.f_code
            self.counts["evaluating"] += bool(EVALUATES.search(code.co_filename))
            if code.co_name in ("update", "boost") and "xgboost" in code.co_filename:
                self.fits.add(frame.f_locals["self"])

    def of(self, words):
        """Give a command, and return its counts."""
        sys.setprofile(self.called)
        threading.setprofile(self.called)
        listening.append(self.opened)
        try:
            status = run_words([*words, "data.download=false"])
        finally:
            listening.clear()
            sys.setprofile(None)
            threading.setprofile(None)
        assert status == 0, words
        self.counts["fits"] = len(self.fits)
        return self.counts


listening = []
if __name__ == "__main__":
    sys.addaudithook(lambda event, given: [hear(event, given) for hear in listening])
    counted = [
        Counts(f"{os.getcwd()}/{number}").of([*words, f"results={os.getcwd()}/{number}"])
        for number, words in enumerate(json.loads(sys.argv[1]))
    ]
    print(json.dumps(counted))
