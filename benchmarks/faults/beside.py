"""Commands that are given in loops beside a sweep, on its results folder."""

from __future__ import annotations

import shutil
import subprocess
import threading
from collections import Counter
from pathlib import Path
from types import TracebackType

import numpy as np

from benchmarks.faults.sweeps import equal, metrics, surroundings, verb

COLLECT = ("store", "gc", "hours=0", "wait=20")
PACK = ("store", "pack", "out=packs/pack")
_LONGEST = 300.0  # seconds that one of these commands may take


class Beside:
    """Garbage collection in one loop, and in another what reads, logs and packs, by turns.

    These are `store verify`, `sync`, `report`, and `store pack`, whose pack is then verified or
    unpacked.

    Attributes
    ----------
    counts : how often each was given and how it ended.
    complaints : what was said by those that should not have failed.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.seed = folder, seed
        self.counts: Counter[str] = Counter()
        self.complaints: list[str] = []
        self.over = threading.Event()
        self.packs = folder / "packs"
        self.threads = [threading.Thread(target=loop) for loop in (self._collect, self._read)]

    def __enter__(self) -> Beside:
        """Begin."""
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        """Let those under way end."""
        self.over.set()
        for thread in self.threads:
            thread.join()

    def _collect(self) -> None:
        draw = np.random.default_rng([self.seed, 1])
        while not self.over.wait(draw.random()):
            if (self.folder / "results").is_dir():
                self.give(*COLLECT)

    def _read(self) -> None:
        draw = np.random.default_rng([self.seed, 2])
        while not self.over.wait(2 * draw.random()):
            done = sorted(self.folder.glob("results/runs/*/environment.json"))
            if done:
                run = done[draw.integers(len(done))].parent.name
                verbs = (("store", "verify", run, "cells=1"), ("sync",), ("report",), PACK)
                words = verbs[draw.integers(len(verbs))]
                self.give(*words)
                if words == PACK:
                    self._try_pack(unpacked=bool(draw.integers(2)))

    def _try_pack(self, *, unpacked: bool) -> None:
        """Verify the pack that was made, or unpack it and compare what its runs say."""
        if not (self.packs / "pack").is_dir():  # it was complained of
            return
        if unpacked:
            self.give("store", "unpack", "packs/pack", "out=packs/results")
            here, there = metrics(self.folder), metrics(self.packs)
            if not there or not equal(there, {run: here[run] for run in there.keys() & here}):
                self.complaints.append(f"the pack's runs are others: {sorted(there)}")
        else:
            self.give("store", "verify", "packs/pack")
        shutil.rmtree(self.packs)

    def give(self, *words: str) -> None:
        """Give a command, and note how it ended."""
        name = " ".join(words[:2] if words[0] == "store" else words[:1])
        name += " of a pack" * (words[:2] == ("store", "verify") and words[2].startswith("packs"))
        try:
            done = subprocess.run(
                ["nice", "-n3", *verb(*words)], cwd=self.folder, env=surroundings(),
                capture_output=True, text=True, timeout=_LONGEST,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            self.complaints.append(f"{name}: not done after {_LONGEST:.0f} s")
            return
        said = done.stdout + done.stderr
        if words == COLLECT and done.returncode == 2 and "is in use by" in said:
            self.counts[f"{name}: others at work"] += 1
        elif done.returncode or "Traceback" in said or "damaged" in said or "corrupt" in said:
            self.complaints.append(f"{' '.join(words)}: {done.returncode}: {said[-1500:]}")
        else:
            self.counts[name] += 1
