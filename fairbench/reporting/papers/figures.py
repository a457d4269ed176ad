"""Draws a paper's figures: of an experiment's finished runs, or by a function of its folder.

A function is ``figure(results, effort)`` and yields the end of each picture's name ("" of a single
one) and the picture.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from fairbench.core.errors import UserError
from fairbench.core.files import atomic
from fairbench.reporting.papers.mapping import Paper
from fairbench.reporting.papers.matching import runs_needed
from fairbench.reporting.papers.running import Effort, function_of
from fairbench.results.packs import written_beside

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_figure(
    paper: Paper, figure: str, conf: Path, results: Path, effort: Effort = Effort.WHOLE
) -> list[Path]:
    """Draw one figure and return the PNG files, in ``report/PAPER/figures`` of the results folder.

    Raises
    ------
    UserError : a figure that the mapping does not have, runs or data that are missing.
    """
    entry = paper.figure(figure)
    if "function" in entry:
        figures = function_of(entry["function"])(results, effort)
    else:
        figures = _figures_of_runs(entry, conf, results)
    folder = written_beside(results) / paper.name / "figures"
    paths = []
    for name, picture in figures:
        path = folder / ("_".join([f"figure{figure}", *filter(None, [name])]) + ".png")
        with atomic(path) as file:
            picture.savefig(file, format="png")
        paths.append(path)
    if not paths:
        raise UserError(f"{paper.name}, figure {figure}: there is nothing to draw")
    return paths


def _figures_of_runs(
    entry: Mapping[str, str], conf: Path, results: Path
) -> Iterator[tuple[str, Figure]]:
    """Yield the figures that are drawn of an experiment's runs."""
    from fairbench.reporting.method_figures import DRAWN

    parts = [
        metrics.assign(**{name: choice[name] for name in ("dataset", "method")})
        for choice, _, metrics in runs_needed(entry["experiment"], conf, results)
    ]
    yield from DRAWN[entry["draw"]](pd.concat(parts, ignore_index=True))
