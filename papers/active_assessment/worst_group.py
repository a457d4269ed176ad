"""How many labels say which group a model treats worst: strategies against random labelling.

``python -m papers.active_assessment.worst_group`` reads finished runs (``python run.py
dataset=adult`` and so on), whose first test fold is the pool. Groups are combinations of all
sensitive attributes with at least 30 rows and 10 positives. Asked are: which group has the lowest
accuracy, and the lowest true positive rate; and, of the attribute that the run protects, do the
accuracies of the worst and the best treated group differ by more than 0.05. For the first two,
every label updates the same posteriors, of each group's two kinds of prediction, whichever way rows
are chosen (fairbench/inference/active/arms.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray

from fairbench.cli.command import Results
from fairbench.comparison.run_predictions import load_predictions
from fairbench.components.papers import run_main
from fairbench.core.arrays import Floats
from fairbench.core.errors import UserError
from fairbench.core.seeds import rng
from fairbench.inference.active.arms import BetaArms, LowestRate, Rate, accuracy, true_positive_rate
from fairbench.inference.active.rewards import ComparisonReward
from fairbench.inference.active.strategies import Queues, assess, choose
from fairbench.inference.beta import uniform
from fairbench.reporting.charts import COLOURS
from fairbench.results.catalogue import Catalogue

RUNS = ("adult", "compas", "bank", "acs_income_sample")
RATES: dict[str, Rate] = {"accuracy": accuracy, "true positive rate": true_positive_rate}
STRATEGIES = ("random", "random_arm", "thompson", "top_two", "epsilon_greedy", "bayesian_ucb")
REPLICATIONS, MOST, EVERY = 200, 2000, 10
SMALLEST, FEWEST_POSITIVES, LARGE = 30, 10, 100
SURE, HALF, MARGIN = 0.95, 0.5, 0.05
Codes = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class GroupPool:
    """(n,) rows of a test fold: group, prediction, label, and the protected attribute's value."""

    name: str
    groups: tuple[str, ...]
    group: Codes
    protected: NDArray[np.object_]
    prediction: Codes
    label: Codes

    @property
    def share(self) -> Floats:
        """Return each group's share of positive predictions, (G,)."""
        return np.bincount(self.group, weights=self.prediction) / np.bincount(self.group)

    def rates(self, rate: Rate) -> Floats:
        """Return the true rates of the groups, (G,)."""
        arm = 2 * self.group + self.prediction
        size = np.bincount(arm, minlength=2 * len(self.groups))
        theta = np.bincount(arm, weights=self.label, minlength=len(size)) / np.maximum(size, 1)
        rates: Floats = LowestRate(self.share, rate).rates(theta[None])[0]
        return rates


def pool(dataset: str, results: Path) -> GroupPool:
    """Return the first test fold of the data set's finished baseline run.

    Raises
    ------
    UserError : there is no such run.
    """
    name = f"{dataset}, xgboost, baseline"
    finished = Catalogue(results)
    folder = next((each for each in finished if each.environment["name"] == name), None)
    if folder is None:
        raise UserError(f"no finished run '{name}': make it with fairbench run dataset={dataset}")
    run = load_predictions(folder)
    fold = run.repeats[0][0]
    sensitive = run.people.sensitive.iloc[fold.rows].astype(str)
    label = run.people.target.to_numpy()[fold.rows].astype(np.int64)
    names = sensitive.agg(" x ".join, axis=1).to_numpy()
    kept = pd.Series(label).groupby(names).agg(["size", "sum"])
    kept = kept[(kept["size"] >= SMALLEST) & (kept["sum"] >= FEWEST_POSITIVES)]
    inside = np.isin(names, kept.index)
    codes = np.searchsorted(kept.index.to_numpy(), names[inside])
    protected = sensitive[run.protect[0]].to_numpy(dtype=object)[inside]
    return GroupPool(
        dataset, tuple(kept.index), codes, protected, fold.prediction[inside], label[inside]
    )


def worst_found(pool: GroupPool, rate: Rate, strategy: str) -> tuple[Floats, Floats]:
    """Return numbers of labels, and the share of replications that name the worst group."""
    arm = 2 * pool.group + pool.prediction
    queues = Queues.of(pool.label, arm, rng(0, "fairness", pool.name), replications=REPLICATIONS)
    sizes = np.zeros(2 * len(pool.groups), np.int64)
    sizes[: len(queues.sizes)] = queues.sizes
    queues = Queues(_padded(queues.outcome, len(sizes)), sizes)
    arms = BetaArms.of(uniform(len(sizes)), sizes, replications=REPLICATIONS)
    reward = LowestRate(pool.share, rate)
    worst = int(pool.rates(rate).argmin())
    generator = rng(0, "fairness", pool.name, strategy)
    seen = assess(
        queues,
        arms,
        lambda held: choose(strategy, held, reward, generator),
        observe=lambda held: (reward.rates(held.posterior.mean).argmin(axis=1) == worst).mean(),
        rounds=min(MOST, len(arm)),
        every=EVERY,
    )
    return _labels(len(seen), len(arm)), np.array(seen)


def _padded(outcome: NDArray[np.uint8], arms: int) -> NDArray[np.uint8]:
    missing = arms - outcome.shape[1]
    return np.pad(outcome, ((0, 0), (0, missing), (0, 0)))


def gap_answered(pool: GroupPool, strategy: str) -> tuple[Floats, Floats]:
    """Return numbers of labels, and the share of replications that answer the gap, and rightly.

    The two groups of the protected attribute are given; any row of one answers. A replication
    answers once the true one of the three regions has a mass of 95 %.
    """
    worst, best, gap = extremes(pool)
    inside = np.isin(pool.protected, [worst, best])
    arm = (pool.protected[inside] == best).astype(np.int64)
    correct = (pool.label == pool.prediction)[inside].astype(np.int64)
    region = 2 if gap > MARGIN else 1
    queues = Queues.of(correct, arm, rng(0, "fairness gap", pool.name), replications=REPLICATIONS)
    arms = BetaArms.of(uniform(2), queues.sizes, replications=REPLICATIONS)
    comparison, generator = ComparisonReward(MARGIN), rng(0, "fairness gap", pool.name, strategy)
    seen = assess(
        queues,
        arms,
        lambda held: choose(strategy, held, comparison, generator),
        observe=lambda held: (comparison.regions(held)[:, region] >= SURE).mean(),
        rounds=min(MOST, len(arm)),
        every=EVERY,
    )
    return _labels(len(seen), len(arm)), np.array(seen)


def extremes(pool: GroupPool) -> tuple[str, str, float]:
    """Return the protected groups of least and most accuracy, and by how much they differ."""
    right = pd.Series(pool.label == pool.prediction).groupby(pool.protected)
    accuracies = right.mean()[right.size() >= LARGE]
    gap = float(accuracies.max() - accuracies.min())
    return str(accuracies.idxmin()), str(accuracies.idxmax()), gap


def _labels(looks: int, rows: int) -> Floats:
    return np.minimum(np.arange(looks) * EVERY, min(MOST, rows)).astype(np.float64)


def reached(labels: Floats, share: Floats, goal: float) -> float:
    """Return the labels from which on the share stays at the goal or above, or NaN."""
    below = np.flatnonzero(share < goal)
    after = 0 if len(below) == 0 else int(below[-1]) + 1
    return float(labels[after]) if after < len(labels) else float("nan")


def rows(pools: list[GroupPool], folder: Path) -> Iterator[dict[str, object]]:
    """Yield, for each data set, question and strategy, the labels that the answer takes.

    A worst group counts as found when 95 % of the replications name it, a gap as answered when
    half of them do.
    """
    for each in pools:
        for name, rate in RATES.items():
            worst = each.groups[int(each.rates(rate).argmin())]
            found = {strategy: worst_found(each, rate, strategy) for strategy in STRATEGIES}
            figure = _figure(found, f"{each.name}: lowest {name} ({worst})", "name it")
            figure.savefig(folder / f"{each.name}_{name.replace(' ', '_')}.png")
            needed = {strategy: reached(*curve, SURE) for strategy, curve in found.items()}
            yield {"dataset": each.name, "question": f"lowest {name}", "group": worst, **needed}
        found = {strategy: gap_answered(each, strategy) for strategy in STRATEGIES}
        figure = _figure(found, f"{each.name}: is the gap over {MARGIN}?", "are sure, and right")
        figure.savefig(folder / f"{each.name}_gap.png")
        needed = {strategy: reached(*curve, HALF) for strategy, curve in found.items()}
        worst, best, gap = extremes(each)
        pair = f"{worst} and {best}, {gap:.3f}"
        yield {"dataset": each.name, "question": f"gap over {MARGIN}", "group": pair, **needed}


def _figure(found: dict[str, tuple[Floats, Floats]], title: str, what: str) -> Figure:
    figure = Figure(figsize=(6.4, 4), dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for (strategy, (labels, share)), colour in zip(found.items(), COLOURS, strict=False):
        style = "--" if strategy.startswith("random") else "-"
        axes.plot(labels, share, style, color=colour, lw=1.4, label=strategy)
    axes.axhline(SURE, color="black", lw=0.6)
    axes.set(xlabel="labels", ylabel=f"share of replications that {what}", ylim=(0, 1), title=title)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8)
    return figure


def main(options: Results) -> None:
    """Print the table and draw the figures."""
    folder = options.results / "report" / "active"
    folder.mkdir(parents=True, exist_ok=True)
    pools = [pool(dataset, options.results) for dataset in RUNS]
    for each in pools:
        sizes = np.bincount(each.group)
        print(f"\n{each.name}: {len(each.group):,} rows")
        shown = {name: each.rates(rate).round(3) for name, rate in RATES.items()}
        print(pd.DataFrame({"rows": sizes, **shown}, index=list(each.groups)).to_string())
    table = pd.DataFrame(rows(pools, folder))
    table.to_csv(folder / "fairness.csv", index=False)
    print(f"\n{table.round(0).to_string(index=False)}")


if __name__ == "__main__":
    run_main(main, Results)
