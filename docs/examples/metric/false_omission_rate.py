"""The false omission rate: how often a person who is predicted 0 turns out to be a 1."""

from __future__ import annotations

from functools import partial

from fairbench.metrics.group import gap
from fairbench.metrics.registry import BINARY, Metric, Rate

# Weights of the counts TN, FP, FN, TP: false negatives among all who are predicted 0.
false_omission_rate = Rate(
    "false_omission_rate", (0, 0, 1, 0), (1, 0, 1, 0), "no predicted negatives"
)

FALSE_OMISSION_RATE = Metric(
    name="false_omission_rate",
    label="false omission rate",
    sentence="Of the people that are predicted 0, the share whose label is 1.",
    task=BINARY,
    better="lower",
    needs=("prediction",),
    interval="rate",
    function=false_omission_rate,
    rates=(false_omission_rate,),
    shown=("groups",),
)

FALSE_OMISSION_RATE_GAP = Metric(
    name="false_omission_rate_gap",
    label="gap in false omission rate",
    sentence="The largest difference between two groups in the false omission rate.",
    task=BINARY,
    better="lower",
    needs=("prediction", "groups"),
    interval="widest",
    function=partial(gap, false_omission_rate),
    rates=(false_omission_rate,),
    shown=("gaps",),
)
