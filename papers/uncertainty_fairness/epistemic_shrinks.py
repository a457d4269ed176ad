"""Whether more people of a minority lower its epistemic uncertainty, and leave the aleatoric alone.

Epistemic uncertainty promises to fall with data, aleatoric not to (Kuzucu et al. 2024). On a
simulated population the second is known: the minority's labels are noisier, by a true ratio of the
variances 2 p (1 - p). Bags of 20, of which a row's members are its weights; 80/20 splits.

``python -m papers.uncertainty_fairness.epistemic_shrinks [seeds=10]``: populations of each size.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from hydra import compose, initialize_config_dir
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from scipy.stats import t

from fairbench.cli.command import Results
from fairbench.components.papers import CONF, run_main
from fairbench.components.papers.options import number_of_seeds
from fairbench.evaluation.columns import values_of
from fairbench.experiments.execute import carry_out
from fairbench.experiments.pipeline import PlannedRun

TRAIN = 0.8
# Expected training rows of the majority and the minority: more of the minority, more of both.
SIZES = ((4000, 60), (4000, 250), (4000, 1000), (4000, 4000), (1000, 250), (16000, 4000))
LEARNERS = {
    "logistic_regression": ("learner=logistic_regression",),
    "xgboost": ("learner=xgboost", "learner.rounds=30", "learner.max_depth=4"),
}
PARTS = ("epistemic", "aleatoric")


@dataclass(frozen=True)
class Options(Results):
    """Where fits are kept, and of how many populations or draws they are."""

    seeds: int = number_of_seeds(10)


def population(learner: str, sizes: tuple[int, int], seed: int, results: Path) -> list[float]:
    """Return both groups' mean uncertainties, majority first, and the true aleatoric ones."""
    rows = round(sum(sizes) / TRAIN)
    options = [
        "dataset=simulated", f"dataset.n_samples={rows}", f"dataset.seed={seed}",
        f"dataset.minority_share={sizes[1] / sum(sizes)}", "dataset.base_rate_gap=0",
        "method=ensemble", "method.members=20", "split.repeats=1", f"split.train={TRAIN}",
        "tracking=none", f"results={results}", *LEARNERS[learner],
    ]  # fmt: skip
    with initialize_config_dir(str(CONF), version_base="1.3"):
        cfg = compose("config", options, return_hydra_config=True)
    run = carry_out(cfg).prepared
    metrics = values_of(run.folder.all_metrics())
    of_groups = metrics[(metrics["attribute"] == "group") & (metrics["group"] != "")]
    means = [of_groups.loc[of_groups["metric"] == f"{part}_uncertainty", "value"] for part in PARTS]
    return [*np.concatenate(means), *_true(run)]


def _true(run: PlannedRun) -> Iterator[float]:
    (cell,) = run.cells
    assert run.dataset.truth is not None
    p = run.dataset.truth["probability"].to_numpy()[cell.fold.test]
    group = run.dataset.groups(run.protect).cat.codes.to_numpy()[cell.fold.test]
    for g in range(2):
        yield float((2 * p * (1 - p))[group == g].mean())


def ratio(minority: NDArray[np.float64], majority: NDArray[np.float64]) -> str:
    """Return the geometric mean over populations of a ratio, with its 95 % interval."""
    logs = np.log(minority / majority)
    half = t.ppf(0.975, len(logs) - 1) * logs.std(ddof=1) / np.sqrt(len(logs))
    low, middle, high = np.exp([logs.mean() - half, logs.mean(), logs.mean() + half])
    return f"{middle:.2f} ({low:.2f} to {high:.2f})"


def table(learner: str, options: Options) -> Table:
    """Return levels of epistemic uncertainty, and ratios, minority over majority."""
    shown = Table(title=f"{learner}: means over {options.seeds} populations", title_justify="left")
    names = ("majority", "minority", "epistemic, each", "ratio", "aleatoric ratio", "true ratio")
    for name in names:
        shown.add_column(name, justify="right")
    for sizes in SIZES:
        drawn = range(options.seeds)
        found = np.array([population(learner, sizes, seed, options.results) for seed in drawn])
        epistemic, aleatoric, true = found[:, :2], found[:, 2:4], found[:, 4:]
        level = " ".join(f"{mean:.4f}" for mean in epistemic.mean(axis=0))
        ratios = (ratio(pair[:, 1], pair[:, 0]) for pair in (epistemic, aleatoric, true))
        shown.add_row(*map(str, sizes), level, *ratios)
    return shown


def main(options: Options) -> None:
    """Print a table for each learner."""
    for learner in LEARNERS:
        Console(width=110).print(table(learner, options))


if __name__ == "__main__":
    run_main(main, Options)
