"""A watch: false alarms ever, and how late alarms are: ``python -m benchmarks.watch 300``."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import ndtri

from benchmarks.measure import command, show
from fairbench.core.arrays import rng
from fairbench_watch.alarms import WatchedRows, events_of, risks, with_events
from fairbench_watch.sequences import Pair, first_beyond, log_evidence_needed, rows_until_beyond
from fairbench_watch.state import WatchOptions, WatchState

METRICS = ("statistical_parity", "equal_opportunity", "false_positive_rate_gap")


def boundary(draw: np.random.Generator, rows: int) -> WatchedRows:
    """Return rows in which the gaps of all three rates are 0.05 to the hair, and scores hold."""
    second, label = draw.random(rows) < 0.4, (draw.random(rows) < 0.4).astype(np.int64)
    positive = np.where(label == 1, 0.7, 0.25) - 0.05 * second
    decision = (draw.random(rows) < positive).astype(np.int64)
    score = np.where(decision == 1, 0.65, 0.22)
    frame = pd.DataFrame(
        {"period": "", "text": "", "key": "", "decision": decision, "score": score, "label": label}
    )
    return WatchedRows(frame, pd.DataFrame({"group": np.where(second, "B", "A")}))


def false_alarms(repetitions: int, rows: int = 100_000) -> list[int]:
    """Return how many alarms each watch of unchanging rows ever gives, which looks after each."""
    asked = {"group": ("group",), "target": "y", "score": "s", "metrics": METRICS}
    options = WatchOptions(path=Path("x"), epsilon=0.05, **asked)  # type: ignore[arg-type]
    state, counts = WatchState(options, groups={"group": ("A", "B")}), []
    for i in range(repetitions):
        table = boundary(rng(0, "watch", i), rows)
        events = events_of(state, table, [], table.rows.index)
        counts.append(len(with_events(state, table, events, "").alarms))
    return counts


# Rates of both groups, the first one's share of the rows, epsilon; each gap is 0.05 beyond it.
POPULATIONS = (
    ((0.3, 0.4), 0.5, 0.05),
    ((0.5, 0.6), 0.5, 0.05),
    ((0.05, 0.15), 0.5, 0.05),
    ((0.3, 0.4), 0.9, 0.05),
    ((0.3, 0.4), 0.1, 0.05),
    ((0.85, 0.95), 0.7, 0.05),
    ((0.3, 0.35), 0.5, 0.0),
    ((0.6, 0.75), 0.8, 0.1),
)


def fixed_rows(rates: tuple[float, float], share: float, gaps: int) -> float:
    """Return the rows of a fixed test: two-sided 5 % shared between gaps, power 80 %."""
    first, second = rates
    quantiles = ndtri(1 - 0.025 / gaps) + ndtri(0.8)
    variance = first * (1 - first) / share + second * (1 - second) / (1 - share)
    return float(quantiles**2 * variance / 0.05**2)


def streamed(
    draw: np.random.Generator, rates: tuple[float, float], share: float, rows: int
) -> Pair:
    """Return both groups' counts after each row."""
    second = draw.random(rows) >= share
    success = draw.random(rows) < np.where(second, rates[1], rates[0])
    counts = (~second & success, ~second, second & success, second)
    sums = [np.cumsum(each).astype(float) for each in counts]
    return Pair(sums[0], sums[1], sums[2], sums[3], share)


def delay(
    rates: tuple[float, float], share: float, epsilon: float, gaps: int, repetitions: int
) -> tuple[float, float, float]:
    """Return mean rows until a gap is found, what was said of them, and the fixed test's."""
    fixed, draw = fixed_rows(rates, share, gaps), rng(0, "delay", str(rates), str(share), gaps)
    reach, most = float(log_evidence_needed(risks(gaps, 4)[0])), int(8 * fixed)
    result = [
        first_beyond(streamed(draw, rates, share, most), epsilon, reach) for _ in range(repetitions)
    ]
    mean = float(np.mean([most if each is None else each + 1 for each in result]))
    return mean, float(rows_until_beyond(*rates, share, epsilon, reach)), fixed


def show_false_alarms(repetitions: int) -> None:
    """Print the share of watches with a false alarm."""
    result = np.array(false_alarms(repetitions))
    row = (repetitions, int((result > 0).sum()), float((result > 0).mean()))
    title = "Three gaps of 0.05 to the hair and four scores, 100,000 rows looked at after each"
    show(title, ("watches", "with a false alarm", "share (at most 0.05)"), [row])


def show_delays(repetitions: int) -> None:
    """Print the mean rows until a gap of 0.05 beyond epsilon is found."""
    rows = []
    for rates, share, epsilon in POPULATIONS:
        for gaps in (1, 5, 30):
            mean, said, fixed = delay(rates, share, epsilon, gaps, repetitions)
            name = f"{rates[0]:g}, {rates[1]:g}; {share:.0%}; {epsilon:g}"
            rows.append((name, gaps, f"{mean:.0f}", f"{said:.0f}", f"{fixed:.0f}", mean / fixed))
    header = ("gaps", "found after", "predicted", "fixed test", "ratio")
    title = "Mean rows until a gap of 0.05 beyond epsilon is found"
    show(title, ("rates; first's share; epsilon", *header), rows)


def main(repetitions: int = 100) -> bool:
    """Print both, of so many repetitions."""
    show_false_alarms(repetitions)
    show_delays(repetitions)
    return True


if __name__ == "__main__":
    sys.exit(command(main, sys.argv[1:]))
