"""The picture of a trade-off: error against every fairness metric, with posterior ellipses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Ellipse
from matplotlib.patheffects import withStroke

from fairbench.reporting.palette import COLOURS
from fairbench.reporting.tradeoffs import listed, with_looks

_BLACK = COLOURS[-1]
_MASS = 0.95
_LONGEST = 46  # letters of a name in the key, above which they get smaller
_NEAR = 0.05  # of an axis: two letters would overlap


def tradeoff_figure(table: pd.DataFrame, curve: pd.DataFrame, title: str, base: str) -> Figure:
    """Draw a panel for each metric: filled points with a letter are those that none dominates.

    Parameters
    ----------
    table : of :func:`fairbench.comparison.tradeoff_points.tradeoff`.
    curve : of :func:`fairbench.inference.frontier.frontier`.
    base : what the curve was made of.
    """
    table = with_looks(table)
    metrics = list(dict.fromkeys(table["metric"]))
    with rc_context({"font.size": 14}):
        figure = Figure((11, 12), dpi=90, layout="constrained")
        FigureCanvasAgg(figure)
        for axes, metric in zip(figure.subplots(2, 2).flat, metrics, strict=True):
            mine = table[table["metric"] == metric]
            _points(axes, mine)
            _frontier(axes, curve[curve["constraint"] == metric].sort_values("relaxation"))
            axes.set_ylim(0, None)
            _letters(axes, mine[mine["best"]].sort_values("error"))
            axes.set(xlabel="error rate", ylabel=f"{metric.replace('_', ' ')} gap")
            axes.locator_params(nbins=5)
            axes.grid(alpha=0.25)
        key = _key(table, base)
        lines = [line for each in key for line in str(each.get_label()).splitlines()]
        size = min(14.0, 14 * _LONGEST / max(map(len, lines)))
        figure.legend(
            handles=key, loc="outside lower center", ncols=2, frameon=False, fontsize=size
        )
        figure.suptitle(f"{title}, with {_MASS:.0%} posterior ellipses of one repeat")
    return figure


def _points(axes: Axes, rows: pd.DataFrame) -> None:
    for row in rows[rows["gap"].notna()].sort_values("best").to_dict("records"):
        colour, best = row["colour"], row["best"]
        ellipse = _ellipse(row)
        ellipse.set(edgecolor=colour, facecolor="none", linewidth=2 if best else 1)
        ellipse.set(alpha=0.9 if best else 0.3)
        axes.add_patch(ellipse)
        axes.plot(
            row["error"], row["gap"], row["marker"], color=colour, zorder=3 + best, markersize=10,
            markerfacecolor=colour if best else "white", markeredgewidth=2,
        )  # fmt: skip
    axes.margins(0.07)


def _letters(axes: Axes, best: pd.DataFrame) -> None:
    """Write each point's letter beside it, those of points too near for two in one place."""
    size = np.array([np.ptp(axes.get_xlim()), np.ptp(axes.get_ylim())])
    near: dict[tuple[float, float], list[str]] = {}
    outline = withStroke(linewidth=3, foreground="white")
    for place, letter in zip(best[["error", "gap"]].to_numpy(), best["letter"], strict=True):
        known = (at for at in near if (np.abs(place - at) < _NEAR * size).all())
        near.setdefault(next(known, (place[0], place[1])), []).append(str(letter))
    for at, letters in near.items():
        axes.annotate(
            listed(sorted(letters)), at, (-8, 5), textcoords="offset points", ha="right",
            fontsize=15, fontweight="bold", zorder=5, path_effects=[outline],
            color=best.loc[best["letter"] == letters[0], "colour"].iloc[0],
        )  # fmt: skip


def _ellipse(row: Mapping[str, Any]) -> Ellipse:
    """Return the ellipse that holds a share `_MASS` of a normal of the row's covariance."""
    matrix = [[row["error_variance"], row["covariance"]], [row["covariance"], row["gap_variance"]]]
    values, vectors = np.linalg.eigh(matrix)
    # The quantile of a chi-squared variable with two degrees of freedom.
    width, height = 2 * np.sqrt(np.maximum(values, 0) * -2 * np.log(1 - _MASS))
    angle = float(np.degrees(np.arctan2(vectors[1, 0], vectors[0, 0])))
    return Ellipse((row["error"], row["gap"]), width, height, angle=angle)


def _frontier(axes: Axes, curve: pd.DataFrame) -> None:
    """Draw the curve from its tightest constraint to its loosest, which has a ring."""
    if curve.empty:
        return
    axes.plot(curve["error"], curve["gap"], ".-", color=_BLACK, linewidth=1.5, zorder=2)
    end = curve.iloc[-1]
    axes.plot(end["error"], end["gap"], "o", color=_BLACK, markerfacecolor="none", markersize=12)


def _key(table: pd.DataFrame, base: str) -> list[Line2D]:
    key = []
    for row in table.drop_duplicates("run").sort_values("letter").to_dict("records"):
        best = isinstance(row["letter"], str)
        letter = f"{row['letter']}  " if best else ""
        point = Line2D([], [], linestyle="", marker=row["marker"], color=row["colour"])
        point.set(
            markersize=10, markeredgewidth=2, label=f"{letter}{row['intervention']}, {row['kind']}"
        )
        point.set_markerfacecolor(row["colour"] if best else "white")
        key.append(point)
    if base:
        label = f"{base}, a threshold per group,\nfrom unprocessed (ring) to parity"
        key.append(Line2D([], [], color=_BLACK, marker=".", label=label))
    return key
