"""Learning curves, one line a strategy: estimation, calibration, identification, comparison.

``python -m papers.active_assessment.figures [--replications 1000]``; what was computed before is
kept in results/report/active/.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray

from fairbench.core.errors import UserError
from fairbench.reporting.charts import COLOURS
from papers import ROOT
from papers.active_assessment.curves import Curves, Question, curves
from papers.active_assessment.methods import OTHERS, PUBLISHED, Method
from papers.active_assessment.pairs import labels_to_compare
from papers.active_assessment.pools import ArmPool, by_class, by_score, by_superclass
from papers.active_assessment.tables import (
    DATASETS,
    TOP,
    accuracy_question,
    ece_question,
    worst_question,
)

METHODS = (*PUBLISHED, *OTHERS)
_COMPARED = tuple(method for method in METHODS if method.prior != "none")
_FEW = 200  # replications of the strategies that no table needs


def draw(folder: Path, replications: int) -> None:
    """Draw all figures into `folder`: 3.7 to 3.12 of the thesis have these questions."""
    folder.mkdir(parents=True, exist_ok=True)
    for dataset, title in DATASETS.items():
        for name, figure in _figures(dataset, title, folder, replications):
            figure.savefig(folder / f"{dataset}_{name}.png")
    print(f"written: {folder}")


def _figures(dataset: str, title: str, folder: Path, replications: int) -> list[tuple[str, Figure]]:
    classes, bins = by_class(dataset), by_score(dataset)
    top = TOP[dataset]
    single, several = worst_question(1), worst_question(top)
    found = {
        "accuracy": _all(classes, accuracy_question(classes), folder, replications),
        "ece": _all(bins, ece_question(), folder, replications),
        "worst": _all(classes, single, folder, replications),
        f"worst_{top}": _all(classes, several, folder, replications, methods=tuple(PUBLISHED)),
    }
    measures = {
        "accuracy": ("rmse", "RMSE of class accuracies, points"),
        "ece": ("ece", "error of the ECE, percent of it"),
        "worst": ("mrr", "mean reciprocal rank of the least accurate class"),
        f"worst_{top}": ("mrr", f"mean reciprocal rank of the {top} least accurate"),
    }
    figures = [(name, _curves(found[name], *measures[name], title)) for name in found]
    return [*figures, ("pairs", _pairs(dataset, folder, replications, title))]


def _all(
    pool: ArmPool,
    question: Question,
    folder: Path,
    replications: int,
    *,
    methods: tuple[Method, ...] = METHODS,
) -> dict[Method, Curves]:
    return {
        method: curves(pool, question, method, folder, replications=_few(method, replications))
        for method in methods
    }


def _few(method: Method, replications: int) -> int:
    return min(replications, _FEW) if method in OTHERS else replications


def _curves(found: Mapping[Method, Curves], measure: str, label: str, title: str) -> Figure:
    figure, axes = _panel(title)
    for (method, curve), colour in zip(found.items(), COLOURS, strict=False):
        mean, kept = curve.mean(measure), curve.labels > 0
        style = "--" if method.strategy == "random" else "-"
        axes.plot(curve.labels[kept], mean[kept], style, color=colour, lw=1.4, label=method.name)
    axes.set(xlabel="labels", ylabel=label, xscale="log")
    if measure == "mrr":
        axes.axhline(0.99, color="black", lw=0.6)
    else:
        axes.set_yscale("log")
    axes.legend(frameon=False, fontsize=8)
    return figure


def _pairs(dataset: str, folder: Path, replications: int, title: str) -> Figure:
    pool = by_superclass(dataset)
    figure, axes = _panel(title)
    for method, colour in zip(_COMPARED, COLOURS, strict=False):
        needed = labels_to_compare(pool, method, folder, replications=replications)
        _share_done(axes, needed, method.name, colour)
    axes.set(
        xlabel="labels", ylabel="share of pairs whose answer is sure", xscale="log", ylim=(0, 1)
    )
    axes.legend(frameon=False, fontsize=8)
    return figure


def _share_done(axes: Axes, needed: NDArray[np.int64], name: str, colour: str) -> None:
    ordered = np.sort(needed)
    axes.step(ordered, np.arange(1, len(ordered) + 1) / len(ordered), color=colour, label=name)


def _panel(title: str) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(6.4, 4.2), dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.set_title(title)
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def main() -> int:
    """Draw the figures; return 2 where the released predictions are not there."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replications", type=int, default=1000)
    try:
        draw(ROOT / "results" / "report" / "active", parser.parse_args().replications)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
