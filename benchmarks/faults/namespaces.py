"""One command in three containers at once: ``python -m benchmarks.faults namespaces [times]``.

The same sweep is given from three process namespaces, whose processes have the same numbers, on
one results folder. Each must succeed, each cell be fitted once, the metrics equal those of a sweep
alone, and nothing be left over. Needs `unshare` and the right to use it.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
import time
from collections import Counter
from pathlib import Path

from benchmarks.faults import kills

TIMES, SPACES, CELLS = 20, 3, 12
APART = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")
_FITTED = re.compile(r"fitted (\d+) of (\d+) cells")


def main(times: int = TIMES) -> bool:
    """Run the trial so many times, print its figures, and return whether everything held."""
    total: Counter[str] = Counter()
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        words = kills.sweep(5, cells=CELLS, jobs=2)
        expected = kills.undisturbed([words], Path(name) / "undisturbed")
        for number in range(times):
            folder = Path(name) / str(number)
            folder.mkdir()
            total += Counter(trials=1) + at_once(words, folder)
            total["trials that differ"] += not kills.equal(kills.metrics(folder), expected)
            print(f"{time.monotonic() - started:.0f} s: {dict(total)}", flush=True)
    return total["succeeded"] == SPACES * times and total["cells fitted"] == CELLS * times and not (
        total["trials that differ"] + total["left over"] + total["missing"]
    )  # fmt: skip


def at_once(words: list[str], folder: Path) -> Counter[str]:
    """Give a command from each namespace, and count what came of it."""
    running = [
        subprocess.Popen(
            [*APART, *words], cwd=folder, env=kills.surroundings(), text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )
        for _ in range(SPACES)
    ]  # fmt: skip
    said = [process.communicate()[0] for process in running]
    counts = Counter({"succeeded": sum(process.returncode == 0 for process in running)})
    for process, text in zip(running, said, strict=True):
        if process.returncode:
            print(f"exit status {process.returncode}: {text[-2000:]}", flush=True)
    fitted = [_FITTED.search(text.rpartition("runs finished")[2]) for text in said]
    counts["cells fitted"] = sum(int(result[1]) for result in fitted if result)
    for what, each in (("left over", kills.left_over(folder)), ("missing", kills.missing(folder))):
        for one in each:
            counts[what] += 1
            print(f"{what}: {one}", flush=True)
    return counts
