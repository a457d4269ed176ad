"""Whether more black people in the training rows lower their epistemic uncertainty on ACS income.

``python -m papers.uncertainty_fairness.epistemic_shrinks_acs [seeds=10]``: what
``papers.uncertainty_fairness.epistemic_shrinks`` shows of a simulated population, on real people.
Training rows are drawn `seeds` times, the black ones nested in size; the test rows stay the same.
The true ratio of aleatoric uncertainties is not known here.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from hydra import compose, initialize_config_dir
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from fairbench.components.algorithms.methods.ensemble import decomposed
from fairbench.components.papers import CONF, run_main
from fairbench.components.papers.uncertainty_fairness.epistemic_shrinks import (
    LEARNERS,
    PARTS,
    Options,
    ratio,
)
from fairbench.core.seeds import rng
from fairbench.data.splits import Fold
from fairbench.experiments import pipeline
from fairbench.experiments.compute import raw_outputs
from fairbench.experiments.pipeline import ensure_all
from fairbench.experiments.study import cells_of

GROUPS = ("White", "Black")
SIZES = ((4000, 60), (4000, 250), (4000, 1000), (4000, 4000))
TEST = 3000  # rows of each group


def prepared(learner: str, results: Path) -> pipeline.PlannedRun:
    """Return the run whose components the study uses; its own split is not."""
    options = [
        "dataset=acs_income", "dataset.codes=numeric", "dataset.races=white_and_black",
        "dataset.share=0.3", "method=ensemble", "method.members=20", "split.repeats=1",
        "tracking=none", f"results={results}", *LEARNERS[learner],
    ]  # fmt: skip
    with initialize_config_dir(str(CONF), version_base="1.3"):
        return pipeline.prepare(compose("config", options, return_hydra_config=True))


def folds(race: pd.Series, seeds: int) -> list[Fold]:
    """Return a fold for every draw of training rows and size, the sizes of a draw in turn."""
    of_groups = [np.flatnonzero(race == name) for name in GROUPS]
    drawn = [rng(0, "acs", "test").permutation(rows) for rows in of_groups]
    test = np.sort(np.concatenate([rows[:TEST] for rows in drawn]))
    found = []
    for seed in range(seeds):
        generator = rng(seed, "acs", "train")
        pools = [generator.permutation(rows[TEST:]) for rows in drawn]
        for place, sizes in enumerate(SIZES):
            kept = [pool[:size] for pool, size in zip(pools, sizes, strict=True)]
            train = np.sort(np.concatenate(kept))
            found.append(Fold(seed, place, train, np.empty(0, np.intp), test))
    return found


def uncertainties(learner: str, seeds: int, results: Path) -> NDArray[np.float64]:
    """Return both groups' mean uncertainties, (seeds, sizes, parts, groups)."""
    run = prepared(learner, results)
    race = run.dataset.sensitive["race"]
    cells = cells_of(run.study, folds(race, seeds))
    ensure_all(cells, run.store)
    found = []
    for cell in cells:
        columns = run.store.read(cell.id).columns
        parts = decomposed(raw_outputs(columns))
        of_row = race.to_numpy()[columns["row"]]
        found.append([[parts[p][of_row == name].mean() for name in GROUPS] for p in PARTS])
    return np.array(found).reshape(seeds, len(SIZES), len(PARTS), len(GROUPS))


def table(learner: str, seeds: int, results: Path) -> Table:
    """Return levels of epistemic uncertainty, and ratios, black over white."""
    found = uncertainties(learner, seeds, results)
    shown = Table(title=f"ACS income, {learner}: means over {seeds} draws", title_justify="left")
    for name in (*GROUPS, "epistemic, each", "ratio", "aleatoric, each", "ratio"):
        shown.add_column(name, justify="right")
    for place, sizes in enumerate(SIZES):
        cells = []
        for each in range(len(PARTS)):
            values = found[:, place, each]
            level = " ".join(f"{mean:.4f}" for mean in values.mean(axis=0))
            cells += [level, ratio(values[:, 1], values[:, 0])]
        shown.add_row(*map(str, sizes), *cells)
    return shown


def main(options: Options) -> None:
    """Print a table for each learner."""
    for learner in LEARNERS:
        Console(width=110).print(table(learner, options.seeds, options.results))


if __name__ == "__main__":
    run_main(main, Options)
