"""What the harness costs beside the fits: a fixed part, and a share of every repeat."""

from __future__ import annotations

import sys

from benchmarks.measure import ROOT, adult, cpu_of_process, line, show

REPEATS = (10, 20, 40)


def main() -> None:
    _, name = adult()
    run = [sys.executable, str(ROOT / "run.py"), *name.split(), "method=ensemble"]
    bare = [sys.executable, "-m", "benchmarks.bare"]
    costs = {
        repeats: [
            cpu_of_process([*run, f"split.repeats={repeats}"]),
            cpu_of_process([*bare, str(repeats), "dense"]),
            cpu_of_process([*bare, str(repeats), "sparse"]),
        ]
        for repeats in REPEATS
    }
    lines = [line(REPEATS, column) for column in zip(*costs.values(), strict=True)]
    rows = [(f"{repeats} repeats", *_with_ratios(*seconds)) for repeats, seconds in costs.items()]
    rows.append(
        ("a repeat (target: <= 1.15 x bare)", *_with_ratios(*(slope for slope, _ in lines)))
    )
    rows.append(("fixed (target: <= 5 s)", *_with_ratios(*(fixed for _, fixed in lines))))
    smallest = cpu_of_process([sys.executable, str(ROOT / "run.py"), "split.repeats=1"])
    rows.append(("the smallest run, whole", smallest, "", "", "", ""))
    header = ("", "run.py", "bare", "bare, sparse", "/ bare", "/ sparse")
    show(f"a run in a fresh process, CPU seconds ({name})", header, rows)


def _with_ratios(run: float, bare: float, sparse: float) -> tuple[float, ...]:
    return float(run), float(bare), float(sparse), float(run / bare), float(run / sparse)
