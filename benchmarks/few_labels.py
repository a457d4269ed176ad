"""A few-label posterior: importance draws beside NUTS, and JAGS's published cost."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable

import numpy as np

from benchmarks.measure import ROOT, cpu_of, show
from fairbench.core.seeds import rng
from fairbench.inference.few_labels.bayesian_calibration import bayesian_calibrations
from fairbench.inference.few_labels.table import PartlyLabelled

ROWS, GROUPS, POSTERIORS, DRAWS = 10_000, 2, 50, 2048
# labels -> target in milliseconds.
TARGETS = {10: 2.5, 100: 5.0, 200: 8.0, 1000: float("nan")}
NUTS_LABELS = (10, 100)


def main() -> None:
    table, subsets = pool()
    rows = []
    for labels, target in TARGETS.items():
        shown = [order[:labels] for order in subsets]
        seconds, worst = _importance(table, shown)
        milliseconds = seconds / len(shown) * 1e3
        nuts = _nuts(table, shown[:4]) if labels in NUTS_LABELS else "-"
        rows.append((f"{labels} labels", milliseconds, target, worst, nuts))
    title = f"a posterior of {ROWS} rows, {GROUPS} groups, {DRAWS} draws, CPU (JAGS: 35-38 s)"
    header = ("", "ms", "target ms", "smallest effective size", "NUTS, s (compiled)")
    show(title, header, rows)


def pool() -> tuple[PartlyLabelled, list[np.ndarray]]:
    """Return labelled scores like Adult's by sex, and the orders their labels are shown in."""
    draw = rng(0, "benchmark", "few_labels")
    score = draw.beta(0.5, 1.5, ROWS)
    group = (draw.random(ROWS) < 0.33).astype(int)
    label = (draw.random(ROWS) < score).astype(float)
    table = PartlyLabelled.of(score, group, label, reference=0)
    return table, [draw.permutation(ROWS) for _ in range(POSTERIORS)]


def _importance(table: PartlyLabelled, subsets: list[np.ndarray]) -> tuple[float, float]:
    """Return CPU seconds of all posteriors and the smallest effective size among them."""
    sizes: list[float] = []

    def run() -> None:
        posteriors = bayesian_calibrations(table, subsets, rng(0, "benchmark"), draws=DRAWS)
        sizes.extend(p.parameters.effective_size for p in posteriors)

    run()
    return cpu_of(run), min(sizes)


def _nuts(table: PartlyLabelled, subsets: list[np.ndarray]) -> float:
    """Return CPU seconds of a posterior of 2000 draws, compilation left out."""
    theta_draws = _oracle()
    rows = len(subsets[0])
    theta_draws(table.showing(subsets[0]), rows=rows, n_groups=GROUPS)
    started = time.process_time()
    for subset in subsets[1:]:
        theta_draws(table.showing(subset), rows=rows, n_groups=GROUPS)
    return (time.process_time() - started) / (len(subsets) - 1)


def _oracle() -> Callable[..., np.ndarray]:
    """Return the tests' NUTS sampler, from its file: an installed package may be named tests."""
    path = ROOT / "tests" / "assessment" / "few_labels" / "nuts.py"
    spec = importlib.util.spec_from_file_location("nuts", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    theta_draws: Callable[..., np.ndarray] = module.theta_draws
    return theta_draws
