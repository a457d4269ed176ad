"""The pools of the study: released score files, the orders their labels are shown in, the truth."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np
import yaml
from numpy.typing import NDArray
from sklearn.utils import shuffle

from fairbench.comparison.run_predictions import load_predictions, predictions_frame
from fairbench.components.papers import CONF
from fairbench.components.papers.released_scores import ScoreFile
from fairbench.core.arrays import Floats
from fairbench.data.download import Archive
from fairbench.inference.few_labels.table import PartlyLabelled
from fairbench.metrics.group import difference
from fairbench.metrics.rates import Counts, Rate
from fairbench.results.catalogue import Catalogue

Rows = NDArray[np.int64]

LEARNERS = ("mlp", "logistic_regression", "random_forest", "gaussian_nb")
ATTRIBUTES = (
    ("adult", "race"),
    ("adult", "sex"),
    ("bank", "age"),
    ("german", "age"),
    ("german", "sex"),
    ("compas_r", "race"),
    ("compas_r", "sex"),
    ("compas_vr", "race"),
    ("compas_vr", "sex"),
    ("ricci", "race"),
)
CONFIGURATIONS = tuple((*pair, learner) for pair in ATTRIBUTES for learner in LEARNERS)
FIGURE_POOLS = (
    ("adult", "sex", "logistic_regression"),
    ("adult", "race", "mlp"),
    ("compas_r", "sex", "mlp"),
    ("german", "sex", "random_forest"),
)
_MOST_LABELS = 1000
# The published preparation writes the scores of Adult's race file over those of its sex file.
_FILES = {("adult", "sex"): "adult_race"}


def released(
    archive: Archive, dataset: str, attribute: str, learner: str, *, as_released: bool = True
) -> PartlyLabelled:
    """Read a learner's scores; as they were released, German's are those of the other class."""
    name = _FILES.get((dataset, attribute), f"{dataset}_{attribute}")
    config = yaml.safe_load((CONF / "scores" / f"{name}.yaml").read_text())
    config.pop("_target_")
    file = ScoreFile(**config)
    column = next(name for name in file.groups if name.lower() == attribute)
    return file.table(archive, learner, column, as_released=as_released)


def run_pools(word: str, group: str | None, results: Path) -> dict[str, PartlyLabelled]:
    """Return the first repeat of one of our runs, by one of its sensitive columns."""
    run = load_predictions(Catalogue(results).one(word))
    column = group or run.protect[0]
    frame = predictions_frame(run, 0)
    table = PartlyLabelled.of(
        frame["score"],
        frame[column],
        frame["target"],
        reference=run.people.about.privileged[column],
    )
    return {f"{run.people.name} {column} {run.name}": table}


def label_orders(table: PartlyLabelled, runs: int) -> list[Rows]:
    """Return the order in which each run's labels are shown: a member of every group first.

    As far as any table of the study goes, which is to a thousand labels.
    """
    groups = table.group.tobytes()
    return [_order(groups, run) for run in range(runs)]


@lru_cache(maxsize=4096)
def _order(groups: bytes, run: int) -> Rows:
    group = np.frombuffer(groups, np.int64)
    order = shuffle(np.arange(len(group)), random_state=run)
    first = np.unique(group[order], return_index=True)[1]
    return np.concatenate([order[first], np.delete(order, first)])[:_MOST_LABELS].copy()


def shares(table: PartlyLabelled) -> Floats:
    """Return what share of everyone outside the reference group each other group is, (G - 1,)."""
    size = table.sizes().sum(axis=1)[1:]
    share: Floats = size / size.sum()
    return share


def everyone_else(counts: Counts) -> Floats:
    """Return counts with all groups but the reference as one, (..., G, 4) -> (..., 2, 4)."""
    others = counts[..., 1:, :].sum(axis=-2, keepdims=True)
    return np.concatenate([counts[..., :1, :], others], axis=-2).astype(np.float64)


def true_difference(table: PartlyLabelled, rate: Rate) -> float:
    """Return the rate of everyone outside the reference group minus the reference's."""
    return float(difference(rate, everyone_else(table.counts()))[0])
