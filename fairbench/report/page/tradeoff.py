"""The picture of error against gaps between groups, from metrics alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pandas as pd

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST = 16  # points that a legend and a panel have room for
GAPS = ("statistical_parity", "equalized_odds")
_MARKERS = "os^DvPX*<"
_FEWEST = 2


def tradeoff(metrics: pd.DataFrame, protect: str) -> Iterator[Figure]:
    """Draw a panel for each gap, a point for each label: mean over repeats, bars one sd.

    Of many labels, those of the smallest errors are drawn.

    Parameters
    ----------
    metrics : with the column ``method``, the label of a point.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as New

    error = metrics[(metrics["metric"] == "error_rate") & (metrics["attribute"] == "")]
    drawn = error.groupby("method")["value"].mean().nsmallest(MOST).index
    error = error[error["method"].isin(drawn)]
    gaps = metrics[(metrics["attribute"] == protect) & (metrics["group"] == "")]
    shown = [gap for gap in GAPS if gap in set(gaps["metric"])]
    if error["method"].nunique() < _FEWEST or not shown:
        return
    figure = New((9.6, 4.2 + 0.13 * error["method"].nunique()), dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    for axes, gap in zip(figure.subplots(1, len(shown), squeeze=False)[0], shown, strict=True):
        _panel(axes, error, gaps[gaps["metric"] == gap])
        axes.set(xlabel="error rate", ylabel=f"{gap.replace('_', ' ')} by {protect}")
    figure.legend(
        *figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2,
        frameon=False, fontsize=8,
    )  # fmt: skip
    yield figure


def _panel(axes: Axes, error: pd.DataFrame, gap: pd.DataFrame) -> None:
    from fairbench.report.palette import COLOURS

    points = [
        table.groupby("method", sort=True)["value"].agg(["mean", "std"]).fillna({"std": 0})
        for table in (error, gap)
    ]
    for i, label in enumerate(points[0].index.intersection(points[1].index)):
        (x, width), (y, height) = (side.loc[label] for side in points)
        axes.errorbar(
            x, y, xerr=width, yerr=height, fmt=_MARKERS[i % 9], color=COLOURS[i % 8], alpha=0.8,
            markerfacecolor="none", elinewidth=0.8, label=label,
        )  # fmt: skip
    axes.set_ylim(0, None)
    axes.locator_params(nbins=5)
    axes.grid(alpha=0.25)
