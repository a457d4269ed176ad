"""What the harness costs beside the fits: a fixed part, and a share of every repeat."""

from __future__ import annotations

import sys

from benchmarks.measure import ROOT, adult, cpu_of_process, line, show

REPEATS = (10, 20, 40)


def main() -> None:
    _, name = adult()
    rows, ours, bare = [], [], []
    for repeats in REPEATS:
        run = [sys.executable, str(ROOT / "run.py"), *name.split(), "method=ensemble"]
        ours.append(cpu_of_process([*run, f"split.repeats={repeats}"]))
        bare.append(cpu_of_process([sys.executable, "-m", "benchmarks.bare", str(repeats)]))
        rows.append((f"{repeats} repeats", ours[-1], bare[-1], ours[-1] / bare[-1]))
    (slope, fixed), (bare_slope, bare_fixed) = line(REPEATS, ours), line(REPEATS, bare)
    rows.append(("a repeat (target: ratio at most 1.15)", slope, bare_slope, slope / bare_slope))
    rows.append(("fixed (target: at most 5 s)", fixed, bare_fixed, fixed / bare_fixed))
    smallest = [sys.executable, str(ROOT / "run.py"), "split.repeats=1"]
    once = cpu_of_process(smallest)
    rows.append(("the smallest run, whole", once, float("nan"), float("nan")))
    show(f"a run in a fresh process, CPU seconds ({name})", ("", "run.py", "bare", "ratio"), rows)
