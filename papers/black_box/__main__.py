"""Draw the figures of the black boxes into results/report/black_box/ and print what they show.

``python -m papers.black_box [cifar100 svhn] [runs=200]``
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from matplotlib.figure import Figure

from fairbench.core.errors import UserError
from fairbench.inference.confusion_matrix import MulticlassScores
from papers import ROOT
from papers.black_box import figures
from papers.black_box.costs import human_costs, superclass_costs
from papers.black_box.estimation import ESTIMATES, EceErrors, ece_errors, full_ece
from papers.black_box.pools import pool, shown

NAMES = {"cifar100": "CIFAR-100", "svhn": "SVHN"}
NUMBERS = (20, 50, 100, 200, 500, 1000, 2000, 5000)
FEW, SOME = 100, 1000


def main(words: list[str]) -> int:
    """Run what the words name; return 2 for what is not there."""
    folder = ROOT / "results" / "report" / "black_box"
    runs = next((int(word.removeprefix("runs=")) for word in words if "=" in word), 200)
    try:
        for name in [word for word in words if "=" not in word] or NAMES:
            _assess(name, folder, runs)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"written: {folder}")
    return 0


def _assess(name: str, folder: Path, runs: int) -> None:
    scores = pool(name)
    errors = list(ece_errors(scores, name, NUMBERS, runs))
    _print(name, scores, errors)
    folder.mkdir(parents=True, exist_ok=True)
    for kind, figure in _figures(name, scores, errors):
        figure.savefig(folder / f"{name}_{kind}.png")


def _figures(
    name: str, scores: MulticlassScores, errors: list[EceErrors]
) -> Iterator[tuple[str, Figure]]:
    title = NAMES.get(name, name)
    pools = [shown(scores, name, labels) for labels in (FEW, SOME, len(scores))]
    yield "reliability", figures.reliability_figure(pools, title)
    yield "ece", figures.ece_figure(pools, errors, full_ece(scores), title)
    yield "classes", figures.classes_figure(scores, title)
    yield "extremes", figures.extremes_figure(pools, title)
    yield "confusion", figures.confusion_figure(pools, title)
    if name == "cifar100":
        costs = {
            "human": human_costs(scores.classes),
            "superclass": superclass_costs(scores.classes),
        }
        yield "cost", figures.cost_figure(scores, costs, title)


def _print(name: str, scores: MulticlassScores, errors: list[EceErrors]) -> None:
    truth = full_ece(scores)
    print(f"{name}: {len(scores):,} rows, accuracy {scores.correct.mean():.4f}, ECE {truth:.4f}")
    print("mean absolute error of the ECE in percent of it (bias), by number of labels")
    print("labels  " + "  ".join(f"{estimate:>25}" for estimate in ESTIMATES))
    for each in errors:
        cells = (
            f"{100 * e / truth:15.1f} ({100 * b / truth:+7.1f})"
            for e, b in zip(each.error, each.bias, strict=True)
        )
        print(f"{each.labels:6d}  " + "  ".join(cells))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
