"""Figures that need what was predicted of single people, and one of two distributions, simulated.

``fairbench paper fairlyuncertain figure=12 run=true`` draws one. Fits come from the results folder
where it has them; others are computed, of one split alone, and kept there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from math import ceil
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.stats import norm

from fairbench.components.papers import PAPERS, print_table, run_main
from fairbench.components.papers.engine.mapping import Paper
from fairbench.components.papers.engine.matching import Drawn, Effort
from fairbench.components.papers.fairlyuncertain.tables import job, reader, tests
from fairbench.core.arrays import Floats, rng
from fairbench.core.options import option
from fairbench.evaluation.predictions import Labelled
from fairbench.evaluation.uncertainties import REPLICATE
from fairbench.experiments.configuration import Presets
from fairbench.experiments.pipeline import PlannedRun
from fairbench.metrics.uncertainty import feature_shift, keep_weights
from fairbench.reporting.charts import BLUE, COLOURS, GREY, shorten_name
from fairbench.reporting.panels import SHIFT_LABEL

END = 4.0  # both densities are drawn on [-4, 4]
LEVEL = 0.9  # of the interval that is drawn; [-2, 2] holds nine tenths of either
NEAR = 0.5  # an outcome that the mean predicts well
PRINTED = {"A": ("0", "[-2.0, 2.0]", "1.08"), "B": ("0", "[-2.0, 2.0]", "1.21")}
_CELLS = 8000


@dataclass(frozen=True)
class SameIntervalOptions:
    """How much is drawn."""

    draws: int = option(100_000, "How many draws of each distribution.", least=2)


class _Summary(NamedTuple):
    """A summary of a distribution: mean, limits of its interval, sd, and share near the mean."""

    mean: float
    lower: float
    upper: float
    sd: float
    near: float


def _density_a(x: Floats) -> Floats:
    """Return A's density, not normalised: a narrow peak on a broad bell, the larger of the two."""
    peak, bell = 10 * np.exp(-(x**2) / (2 * 0.1)), np.exp(-(x**2) / (2 * 1.8**2))
    return np.maximum(peak, bell)


def _density_b(x: Floats) -> Floats:
    """Return B's density, not normalised: a normal."""
    return np.exp(-(x**2) / (2 * 1.22**2))


DENSITIES = {"A": _density_a, "B": _density_b}


def sample(name: str, draws: int) -> Floats:
    """Return draws of a distribution, by inverting its distribution function."""
    edges = np.linspace(-END, END, _CELLS + 1)
    mass = DENSITIES[name]((edges[1:] + edges[:-1]) / 2)
    below = np.concatenate([[0.0], np.cumsum(mass)]) / mass.sum()
    return np.interp(rng(0, "same interval", name).random(draws), below, edges)


def summary(values: Floats) -> _Summary:
    """Return the summary of some draws."""
    lower, upper = np.quantile(values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    near = (np.abs(values - values.mean()) < NEAR).mean()
    return _Summary(values.mean(), lower, upper, values.std(ddof=1), near)


def same_interval(options: SameIntervalOptions) -> None:
    """Two distributions with one mean and one prediction interval whose sds differ, simulated.

    ``python -m papers.fairlyuncertain.figures same_interval [draws=100000]``. FairlyUncertain's
    repository has a figure of two such distributions (``experiments/figures/distributions.pdf``)
    and no code for it. The densities here were read off its curves, and its four printed numbers
    are the check: of both the mean 0 and the interval [-2.0, 2.0], of A the sd 1.08, of B 1.21.
    Draws from both show that what an interval says of a person's uncertainty is not what the sd
    says, and that neither says how many outcomes are near the mean.
    """
    rows = []
    for name, printed in PRINTED.items():
        found = summary(sample(name, options.draws))
        interval = f"[{found.lower:.2f}, {found.upper:.2f}]"
        numbers = (f"{found.mean:.2f}", interval, f"{found.sd:.2f}", ", ".join(printed))
        rows.append((name, *numbers, f"{found.near:.0%}"))
    title = f"one mean, one {LEVEL:.0%} interval, two sds: {options.draws} draws"
    headings = ("", "mean", "interval", "sd", "printed", f"within {NEAR} of the mean")
    print_table(title, headings, rows)


# Figures of people: ranges, and features of the rows kept.

PEOPLE = 150  # whose ranges are drawn: more would be a solid area
RATE = 0.25  # abstained on, where features of the rows kept are drawn
FEATURES = 4  # whose distributions are drawn, those that move most
_CATEGORIES = 8  # of a feature, drawn one by one
_POINTS = 1000  # at which distribution functions are drawn, as the published code has it
_LINES = ("-", "--", ":", "-.")
_NORMALS = ("baseline", "normal_nll_reference", "normal_nll")
_STAND_IN = ("dataset.n_samples=120",)  # of the smallest effort, which needs no raw file


def figure_1(results: Path, effort: Effort) -> Drawn:
    """Draw two densities with one mean and one interval whose sds differ."""
    figure, grid = _grid(2, 2, 2.6)
    edges = np.linspace(-END, END, _POINTS)
    for axes, (name, density) in zip(grid, DENSITIES.items(), strict=True):
        values = density(edges)
        axes.plot(edges, values / (values.mean() * 2 * END), color=BLUE)
        found = summary(sample(name, effort.choose(100_000, 10_000, 1000)))
        axes.axvline(found.mean, color=GREY)
        for end in (found.lower, found.upper):
            axes.axvline(end, color=GREY, linestyle="--")
        axes.set_title(f"{name}: sd {found.sd:.2f}", fontsize=10)
        axes.set_ylim(0, None)
    figure.suptitle(f"one mean, and {LEVEL:.0%} of either between the dashed lines")
    figure.supxlabel("outcome")
    yield "", figure


def figure_13(results: Path, effort: Effort) -> Drawn:
    """Draw each person's range of uncertainty over a network's weight decay."""
    short_fit = ["learner.epochs=2"] if effort is Effort.FIRST else []
    experiment = "fairlyuncertain/figure9"
    return ranges(experiment, results, effort, few=(0.0, 0.1), words=short_fit)


def ranges(
    experiment: str,
    results: Path,
    effort: Effort,
    *,
    few: Sequence[float],
    words: Sequence[str] = (),
) -> Drawn:
    """Yield a figure for each data set of an experiment: a panel a method, a line a person.

    Parameters
    ----------
    few : the values of the hyperparameter that the smallest effort compares.
    """
    if effort is Effort.FIRST:
        words = [*words, f"consistency.values={list(few)}"]
    for dataset, runs in planned(experiment, results, effort, words):
        lines = {run.choices["method"]: uncertainties(run) for run in runs}
        yield dataset, draw_ranges(lines, f"{dataset}, {len(next(iter(lines.values())))} values")


# Each person's range of uncertainty over depths, of labels and of regressions.
figure_12 = partial(ranges, "fairlyuncertain/figure2", few=(2, 3))
figure_12_regression = partial(ranges, "fairlyuncertain/figure10", few=(2, 3))


def planned(
    experiment: str,
    results: Path,
    effort: Effort,
    words: Sequence[str] = (),
    methods: Sequence[str] = (),
) -> Iterator[tuple[str, Iterator[PlannedRun]]]:
    """Yield each data set of an experiment with its jobs of one split, which fit nothing yet.

    `methods` are all of the experiment's if there are none.
    """
    varied = {name: [*texts] for name, texts in Presets().experiment(experiment)[1].items()}
    quick = Paper.read("fairlyuncertain", PAPERS).quick["datasets"]
    small = [name for name in varied["dataset"] if name in quick][:1]
    simulated = "simulated_regression" if "ihdp" in varied["dataset"] else "simulated"
    datasets = effort.choose(varied["dataset"], small, [simulated])
    every = methods or varied["method"]
    methods = effort.choose(every, every, every[:2])
    own = [*words, *_STAND_IN] if effort is Effort.FIRST else list(words)
    for dataset in datasets:
        jobs = ([f"dataset={dataset}", f"method={method}", *own] for method in methods)
        yield dataset, (job(experiment, results, words_of_job) for words_of_job in jobs)


def uncertainties(run: PlannedRun) -> Floats:
    """Return the uncertainty (V, n) of each test row under every value of the hyperparameter."""
    read = reader(run)
    cells = [cell for cell in run.cells if cell.variant and not cell.variant.startswith(REPLICATE)]
    return np.stack([read(cell, {}).test.column("uncertainty") for cell in cells])


def draw_ranges(lines: Mapping[str, Floats], title: str) -> Figure:
    """Draw the range of people's uncertainties over variants, each at the sd of the person's own.

    With more than 150 people, 150 at equally spaced ranks are drawn; the printed mean range is that
    of everyone. People without a number in some variant are left out.

    Parameters
    ----------
    lines : method -> (V, n) uncertainties.
    """
    columns = min(4, len(lines))
    figure, grid = _grid(len(lines), columns, 2.6)
    for axes, (method, values) in zip(grid, lines.items(), strict=True):
        kept = values[:, np.isfinite(values).all(axis=0)]
        ordered = kept[:, np.argsort(kept.std(axis=0), kind="stable")]
        people = ordered.shape[1]
        rank = np.unique(np.linspace(0, people - 1, min(people, PEOPLE)).round().astype(int))
        shown = ordered[:, rank]
        axes.vlines(
            shown.std(axis=0), shown.min(axis=0), shown.max(axis=0), color=BLUE, linewidth=0.8
        )
        spread = np.ptp(kept, axis=0).mean() if people else np.nan
        axes.set_title(f"{method.replace('_', ' ')}: {spread:.3g}", fontsize=10)
        axes.set(xlim=(0, None), ylim=(min(0, shown.min(initial=0)), None))
    figure.suptitle(f"{title}; beside each method the mean range")
    figure.supxlabel("sd of the person's uncertainties")
    figure.supylabel("uncertainty: least to greatest")
    return figure


def figure_17(results: Path, effort: Effort) -> Drawn:
    """Draw the features that move most under abstention: their distances and distributions.

    Of one split; a quarter of the test rows is abstained on.
    """
    for dataset, runs in planned("fairlyuncertain/figure5", results, effort):
        kept: dict[str, Floats] = {}
        features = pd.DataFrame()
        for run in runs:
            (cell,) = run.cells
            test = reader(run)(cell, {}).test
            kept[run.choices["method"]] = keep_weights(test.column("uncertainty"), RATE)
            if test.features is not None:
                features = test.features.reset_index(drop=True)
        yield dataset, draw_distributions(features, kept, dataset)


def draw_distributions(features: pd.DataFrame, kept: Mapping[str, Floats], title: str) -> Figure:
    """Draw how far features move, and the distributions of those that move most.

    Parameters
    ----------
    features : (n, d) of the rows predicted.
    kept : method -> (n,) share of each row that is kept.
    """
    shifts = pd.DataFrame(
        {method: feature_shift(features, weights) for method, weights in kept.items()},
        index=features.columns,
    )
    shifts = shifts.loc[shifts.max(axis=1).nlargest(FEATURES).index]
    figure, grid = _grid(len(shifts) + 1, len(shifts) + 1, 3.4)
    colours = dict(zip(kept, COLOURS, strict=False))
    first = grid[0]
    for method, colour in colours.items():
        first.plot(shifts[method], range(len(shifts)), "o", color=colour, fillstyle="none")
    first.set_yticks(range(len(shifts)), [shorten_name(str(name), 18) for name in shifts.index])
    first.invert_yaxis()
    first.set(xlim=(0, None), title="distance")
    for axes, name in zip(grid[1:], shifts.index, strict=True):
        everyone = {"everyone": np.ones(len(features)), **kept}
        _distributions(axes, features[name], everyone, {"everyone": GREY, **colours})
        axes.set_title(shorten_name(str(name), 22), fontsize=10)
    handles, labels = grid[1].get_legend_handles_labels()
    labels = [label.replace("_", " ") for label in labels]
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    figure.suptitle(f"{title}, abstaining on {RATE:.0%}; distance: {SHIFT_LABEL}", fontsize=11)
    return figure


def _distributions(
    axes: Axes, column: pd.Series, weights: Mapping[str, Floats], colours: Mapping[str, str]
) -> None:
    """Draw distribution functions of a number; of a category the share of each value."""
    number = pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)
    if number and column.nunique() > _CATEGORIES:
        values = column.to_numpy(float, na_value=np.nan)
        order = np.argsort(values)[: int((~np.isnan(values)).sum())]
        for name, weight in weights.items():
            below = np.cumsum(weight[order]) / weight[order].sum()
            axes.step(values[order], below, where="post", color=colours[name], label=name)
        axes.set_ylim(0, 1)
        return
    labels = column.map("{:g}".format) if number else column.astype(str)
    most = labels.value_counts().index[:_CATEGORIES]
    step = 0.8 / len(weights)
    for i, (name, weight) in enumerate(weights.items()):
        shares = pd.Series(weight / weight.sum()).groupby(labels.to_numpy()).sum()
        place = np.arange(len(most)) + (i - (len(weights) - 1) / 2) * step
        axes.bar(place, shares.reindex(most).fillna(0), step, color=colours[name], label=name)
    axes.set_xticks(range(len(most)), [shorten_name(str(name), 10) for name in most], rotation=45)


def figure_6(results: Path, effort: Effort) -> Drawn:
    """Draw the distribution functions of each group, whose largest distance is the parity.

    As the published code draws them: of the labels, of predictions as points, and of predictions
    as normals; besides, of the likelihood without the published code's gradient. Of one split.
    """
    experiment = "fairlyuncertain/table4"
    for dataset, runs in planned(experiment, results, effort, methods=_NORMALS):
        read = {run.choices["method"]: test for run in runs for test in tests(run)}
        yield dataset, _draw_groups(read, dataset)


def _draw_groups(read: Mapping[str, Labelled], title: str) -> Figure:
    """Draw both groups' distribution functions: a panel for the labels, and one for each method."""
    first = next(iter(read.values()))
    (group,) = first.groups.values()
    shown: dict[str, tuple[Floats, Floats | None]] = {"labels": (first.target, None)}
    for method, test in read.items():
        sd = test.column("sd") if "sd" in test.predictions else None
        shown[method] = (test.column("prediction"), sd)
    figure, grid = _grid(len(shown), len(shown), 3.0)
    z = np.linspace(first.target.min(), first.target.max(), _POINTS)
    for axes, (method, (mean, sd)) in zip(grid, shown.items(), strict=True):
        ends = []
        for name, line, colour in zip(
            group.cat.categories, cycle(_LINES), cycle(COLOURS), strict=False
        ):
            rows = (group == name).to_numpy()
            below = distribution(z, mean[rows], None if sd is None else sd[rows])
            ends.append(below)
            axes.plot(z, below, line, color=colour, label=shorten_name(str(name), 22))
        apart = np.ptp(np.stack(ends), axis=0)
        place = int(apart.argmax())
        there = [below[place] for below in ends]
        axes.vlines(z[place], min(there), max(there), color=GREY, linewidth=2)
        axes.set_title(f"{method.replace('_', ' ')}: {apart[place]:.3f}", fontsize=10)
        axes.set_ylim(0, 1)
    grid[0].legend(fontsize=9, frameon=False)
    figure.suptitle(f"{title}; beside each the largest distance")
    figure.supxlabel("target")
    figure.supylabel("share below")
    return figure


def distribution(z: Floats, mean: Floats, sd: Floats | None) -> Floats:
    """Return the share below each `z` of points, or of as many normals mixed."""
    if sd is None:
        return np.searchsorted(np.sort(mean), z, side="right") / len(mean)
    return norm.cdf(z[:, None], mean, sd).mean(axis=1)


def _grid(panels: int, columns: int, height: float) -> tuple[Figure, list[Axes]]:
    """Return a figure and its panels, row by row."""
    rows = ceil(panels / columns)
    figure = Figure((2.9 * max(columns, 2), height * rows + 0.6), dpi=110, layout="constrained")
    grid = list(figure.subplots(rows, columns, squeeze=False).flat)
    for axes in grid[panels:]:
        axes.remove()
    return figure, grid[:panels]


if __name__ == "__main__":
    run_main(same_interval)
