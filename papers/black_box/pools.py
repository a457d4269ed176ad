"""The released predictions, and labels of a few rows at a time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import yaml

from fairbench.components import class_named, made
from fairbench.components.papers import CONF
from fairbench.components.papers.released_scores import MulticlassFile
from fairbench.core.errors import unknown_name
from fairbench.core.seeds import rng
from fairbench.data.class_scores import MulticlassScores
from fairbench.data.download import Archive


def pool(name: str) -> MulticlassScores:
    """Return the predictions that conf/scores/<name>.yaml describes.

    Raises
    ------
    UserError : no such file, or not one of several classes, or what it describes is not there.
    """
    folder = CONF / "scores"
    described = {path.stem: yaml.safe_load(path.read_text()) for path in folder.glob("*.yaml")}
    files = {
        stem: config
        for stem, config in described.items()
        if issubclass(class_named(config["_target_"]), MulticlassFile)
    }
    if name not in files:
        raise unknown_name("scores of several classes", name, files)
    file: MulticlassFile = made(files[name])
    return file.scores(Archive.of(download=False))


def shown(scores: MulticlassScores, name: str, labels: int) -> MulticlassScores:
    """Return the pool with the labels of so many rows; more labels keep those of fewer."""
    order = rng(0, "labels", name).permutation(len(scores))
    return scores.showing(order[:labels])


def replications(
    scores: MulticlassScores, name: str, labels: int, runs: int
) -> Iterator[MulticlassScores]:
    """Yield the pool with labels of other rows each time."""
    for run in range(runs):
        chosen = rng(0, "labels", name, run).permutation(len(scores))[:labels]
        yield scores.showing(np.sort(chosen))
