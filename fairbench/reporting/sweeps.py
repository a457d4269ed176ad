"""The sweeps behind a paper: what ``run.py -m`` is told, in full or for a quick look."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from fairbench.core.errors import UserError
from fairbench.experiments.presets import REPEATS, Presets
from fairbench.reporting.published import Paper


def sweeps(paper: Paper, conf: Path, *, quick: bool = False) -> Iterator[list[str]]:
    """Yield the words of each sweep, every experiment of the paper once.

    A quick look has the paper's tables alone, few repeats, and of each sweep the data sets that the
    paper's mapping calls quick, where it has any of them.

    Raises
    ------
    UserError : a quick look at a paper whose mapping does not say what that is.
    """
    if quick and not paper.quick:
        raise UserError(
            f"papers/{paper.name}/mapping.yaml does not say what a quick look is: add 'quick'"
        )
    names = [name for table in paper.tables for name in paper.experiments(table)]
    if not quick:
        names += [paper.figure(figure)[0] for figure in paper.figures]
    presets = Presets(conf)
    for name in dict.fromkeys(names):
        words = [f"experiment={name}"]
        if quick:
            words.append(f"{REPEATS}={paper.quick['repeats']}")
            datasets = presets.experiment(name).varied.get("dataset", ())
            small = [each for each in datasets if each in paper.quick["datasets"]]
            words += [f"dataset={','.join(small)}"] * bool(small)
        yield words
