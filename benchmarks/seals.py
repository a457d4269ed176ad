"""What seals cost a run of Adult: the CPU seconds of every checksum, and of reading to check."""

from __future__ import annotations

import tempfile

from benchmarks.measure import adult, configuration, cpu_of, show
from benchmarks.stages import stages
from fairbench.core import files
from fairbench.experiments.execute import carry_out
from fairbench.results import run_writer, runs

OPTIONS = ("split.repeats=3", "method=ensemble", "method.members=10")
WHERE = {
    "checksums": (files, "_sum"),
    "checksums#2": (files, "sha256"),
    "checksums#3": (runs, "sha256"),
    "checksums#4": (run_writer, "sha256"),
    "reading to check": (run_writer, "damaged_files"),
}


def main() -> None:
    name = adult()[1].split()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        words = (*name, *OPTIONS, f"results={folder}")
        for what in ("a first run", "the same again"):
            with stages(WHERE) as spent:
                seconds = cpu_of(lambda: carry_out(configuration(*words)))
            cost = sum(spent.values())
            rows.append((what, seconds, cost, f"{cost / seconds:.2%}"))
    show("seals", ("", "CPU s", "of seals", "share"), rows)
