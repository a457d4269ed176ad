"""The figures of an audit for a paper or a notebook, drawn with matplotlib from its data alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from fairbench.audits.gaps import RATE_NAMES
from fairbench.evaluation.columns import values_of
from fairbench.reporting.figures import (
    group_rates_figure,
    group_reliability_figure,
    intervals_figure,
)

_JOINED = " x "  # between the attributes of a combination
_MOST = 40  # rows of a figure
_OF_A_GAP = ["attribute", "metric", "value", "difference", "lower", "upper"]


def figures_of(data: Mapping[str, Any]) -> Iterator[tuple[str, Figure]]:
    """Yield (name, figure) for every figure that an audit's data allow.

    Parameters
    ----------
    data : the data of the document of an audit, as in its JSON.
    """
    epsilon = float(data.get("options", {}).get("epsilon", 0))
    for name, label in (("gaps", "gap between groups"), ("comparison", "difference of the gaps")):
        gaps = pd.DataFrame(data.get(name, [])).reindex(columns=_OF_A_GAP)
        gaps = gaps.fillna({"attribute": "", "metric": ""})
        ends = gaps[["lower", "upper"]].apply(pd.to_numeric, errors="coerce")
        gaps = gaps[np.isfinite(ends).all(axis=1)].head(_MOST)
        if len(gaps):
            titles = [
                ": ".join(filter(None, (of, RATE_NAMES.get(metric, metric.replace("_", " ")))))
                for of, metric in zip(gaps["attribute"], gaps["metric"], strict=True)
            ]
            values = gaps["value"].fillna(gaps["difference"]).astype(float)
            yield name, intervals_figure(gaps.assign(title=titles, value=values), epsilon, label)
    metrics = pd.DataFrame(data.get("metrics", []))
    if len(metrics):
        metrics = values_of(metrics)
        rates = metrics[metrics["metric"] == "selection_rate"]
        for attribute in rates["attribute"].unique():
            if attribute and _JOINED not in attribute:
                drawn = group_rates_figure(metrics, "", attribute, label="rate, with 95 % interval")
                yield f"rates_{attribute}", drawn
    groups = {
        f"{group['attribute']}: {group['group']}": pd.DataFrame(list(group["bins"]))
        for group in data.get("calibration", [])
        if len(group["bins"]) and _JOINED not in group["attribute"]
    }
    if groups:
        yield "calibration", group_reliability_figure(dict(list(groups.items())[:_MOST]))
