"""The figures of Kuzucu et al.: confidence, the synthetic sets, individual fairness, capacity.

Each draws what a command of the harness ran, or what is simulated: ``fairbench paper
uncertainty_fairness figure=4 run=true``. Figure 1 is an illustration.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from fairbench.components.algorithms.estimators.training import one_thread
from fairbench.components.datasets import kuzucu
from fairbench.components.papers.engine.matching import Drawn, Effort, finished_runs, runs_needed
from fairbench.components.papers.uncertainty_fairness import tables
from fairbench.data.download import Archive
from fairbench.metrics.probability import reliability
from fairbench.metrics.uncertainty import individual_fairness, variance_decomposition
from fairbench.reporting import panels
from fairbench.reporting.charts import BLUE, COLOURS, ORANGE, drawn

Array = NDArray[Any]
WIDTH = 0.1  # of a bin of confidences
NEIGHBOURS = 20
TEST = 2  # the part of a fold's rows that is tested
# Of Figure 6, with the colour and the line of each.
GROUPS = (
    ("race", "black", COLOURS[0], "-"),
    ("race", "white", COLOURS[1], "--"),
    ("sex", "male", COLOURS[2], "-"),
    ("sex", "female", COLOURS[3], "--"),
)


def figure_2(results: Path, effort: Effort) -> Drawn:
    """Draw the accuracy of COMPAS's predictions by the confidence that they claim.

    Raises
    ------
    UserError : nothing was run.
    """
    ((_, run, _),) = runs_needed("uncertainty_fairness/compas", results)[:1]
    predicted = run.predictions(["part", "row", "score"])
    tested = predicted[predicted["part"] == TEST]
    target = run.people().target.to_numpy()[tested["row"]]
    yield "", reliability_figure(tested["score"].to_numpy(float), target)


def reliability_figure(score: Array, target: Array) -> Figure:
    """Draw a bar of the accuracy for each bin of confidences, and the gap to the confidence.

    The confidence is the probability of the label that is predicted, so that it is 1/2 or more.
    """
    bins = reliability((score > 0.5) == target, np.maximum(score, 1 - score), bins=round(1 / WIDTH))
    accuracy, confidence, share = bins.base_rate, bins.mean_score, bins.size / len(score)
    figure, (axes,) = _panels(1, 1, 5.4, 4.4)
    middle = np.ceil(confidence / WIDTH) * WIDTH - WIDTH / 2
    options: dict[str, Any] = {"width": 0.9 * WIDTH, "edgecolor": "black", "linewidth": 0.6}
    axes.bar(middle, accuracy, color=BLUE, alpha=0.8, label="accuracy", **options)
    axes.bar(
        middle, confidence - accuracy, bottom=accuracy, color=ORANGE, alpha=0.35, hatch="//",
        label="gap to the confidence", **options,
    )  # fmt: skip
    axes.plot([0.5, 1], [0.5, 1], color="black", linestyle=":")
    for x, top, part in zip(middle, np.maximum(accuracy, confidence), share, strict=True):
        axes.annotate(f"{part:.0%}", (x, top), ha="center", va="bottom", fontsize="small")
    axes.set(xlim=(0.5, 1), ylim=(0, 1.08), xlabel="confidence", ylabel="accuracy")
    figure.legend(
        *axes.get_legend_handles_labels(), frameon=False, loc="outside lower center", ncols=2
    )
    axes.set_title(
        "COMPAS, bayes_by_backprop; above each bar its share of the rows", fontsize="medium"
    )
    return figure


def figure_3(results: Path, effort: Effort) -> Drawn:
    """Draw one population of each synthetic set, by group and label."""
    n, archive = effort.choose(400, 400, 80), Archive(download=False)
    figure, panels = _panels(1, len(tables.SYNTHETIC), 11, 3.6)
    for axes, which in zip(panels, tables.SYNTHETIC, strict=True):
        data = kuzucu.load(archive, which=which, n_samples=n)
        assert isinstance(data.features, pd.DataFrame)
        x, y = (data.features[name] for name in data.features)
        for g in "01":
            for label, marker in ((1, "+"), (0, "o")):
                rows = data.sensitive["group"].eq(g) & data.target.eq(label)
                axes.scatter(
                    x[rows], y[rows], s=22, marker=marker, alpha=0.7, color=COLOURS[int(g)],
                    facecolor=None if label else "none", label=f"G={g}, Y={label}",
                )  # fmt: skip
        axes.set(title=which, xlabel="feature 1", ylabel="feature 2")
    panels[-1].legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    yield "", figure


def figure_4(results: Path, effort: Effort) -> Drawn:
    """Draw individual fairness on COMPAS against the number of neighbours, by race and by sex."""
    yield from _individual("figure4", results)


def figure_5(results: Path, effort: Effort) -> Drawn:
    """Draw individual fairness on Adult against the number of neighbours, by race and by sex.

    As the text says, and of networks on unscaled columns, which are sure of nearly everyone.
    """
    yield from _individual("figure5", results)
    metrics = unscaled(effort)
    for attribute in ("race", "sex"):
        shown = list(panels.individual_fairness(metrics, attribute))
        yield f"unscaled {attribute}", drawn(shown, "adult, bayes_by_backprop on unscaled columns")


def unscaled(effort: Effort) -> pd.DataFrame:
    """Return individual fairness of Adult's networks on unscaled columns, by group and outcome.

    Neighbours are near in the unscaled columns, too.
    """
    setting, training = tables.CAUSES["unscaled columns"], tables.TRAININGS["adult"]
    rows = tables.rows_of("adult", 0, setting)
    fairness_of = individual_fairness(rows.tested, NEIGHBOURS)
    frames = []
    for run in range(effort.choose(5, 2, 1)):
        with one_thread():
            members = tables.members_of(
                tables.trained(rows, training, setting, run), rows.tested, run
            )
        labels, parts = members.mean(axis=0) > 0.5, variance_decomposition(members)
        outcome = np.array(["TN", "FP", "FN", "TP"])[2 * rows.truth + labels]
        compared = {"prediction": labels.astype(float), **parts._asdict()}
        for name, values_of_rows in compared.items():
            fairness = pd.DataFrame(fairness_of(values_of_rows))
            fairness.columns = pd.RangeIndex(1, NEIGHBOURS + 1, name="k")
            for attribute, groups in rows.people.items():
                cells = fairness.groupby([groups.astype(str).to_numpy(), outcome])
                means = cells.agg(["mean", "size"]).stack("k", future_stack=True)
                means.index.names = ["group", "outcome", "k"]
                frame = means.rename(columns={"mean": "value", "size": "n"}).reset_index()
                metric = f"individual_fairness_{name}"
                frames.append(frame.assign(attribute=attribute, metric=metric, run=run))
    return pd.concat(frames, ignore_index=True)


def _individual(experiment: str, results: Path) -> Drawn:
    for choice, run, metrics in runs_needed(f"uncertainty_fairness/{experiment}", results):
        attribute = choice["protect"]
        title = f"{run.choices['dataset']}, bayes_by_backprop"
        yield attribute, drawn([*panels.individual_fairness(metrics, attribute)], title)


def figure_6(results: Path, effort: Effort) -> Drawn:
    """Draw accuracy and uncertainties against the layer's size, for both kinds of initial means.

    Networks that are trained to the end are drawn, too, where they were run, and those whose
    softmax is taken twice.
    """
    normal, uniform, to_the_end = tables.NETWORKS
    yield "", by_units(tables.by_size(normal, results), normal)
    yield "uniform", by_units(tables.by_size(uniform, results), uniform)
    if finished_runs("uncertainty_fairness/figure6_trained", results):
        yield "trained", by_units(tables.by_size(to_the_end, results), to_the_end)
    twice = "softmax twice"
    sizes = {units: tables.trained_values("compas", twice, effort, units) for units in tables.UNITS}
    yield "twice", by_units(sizes, f"starts near 0, {twice}, 10 epochs")


def by_units(sizes: tables.BySize, title: str) -> Figure:
    """Draw the metrics of four groups against the size of the hidden layer, bands of one sd."""
    figure, panels = _panels(1, len(tables.CAPACITY_METRICS), 11, 3.8)
    for axes, metric in zip(panels, tables.CAPACITY_METRICS, strict=True):
        for attribute, group, colour, line in GROUPS:
            series, places = tables.series_of(sizes, attribute, metric, group), range(len(sizes))
            mean, sd = series["mean"], series["std"]
            axes.plot(places, mean, color=colour, linestyle=line, marker="o", label=group)
            axes.fill_between(places, mean - sd, mean + sd, color=colour, alpha=0.12, linewidth=0)
        axes.set_xticks(range(len(sizes)), [str(units) for units in sizes])
        axes.set(title=metric.replace("_", " "))
        axes.grid(axis="y", alpha=0.3)
    panels[1].set_ylim(0, 0.5)
    panels[2].set_ylim(0, None)
    panels[-1].legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    figure.supxlabel("hidden units (mean, sd over splits)")
    figure.suptitle(f"COMPAS, {title}")
    return figure


def _panels(rows: int, columns: int, width: float, height: float) -> tuple[Figure, list[Axes]]:
    figure = Figure((width, height), dpi=110, layout="constrained")
    return figure, list(figure.subplots(rows, columns, squeeze=False).ravel())
