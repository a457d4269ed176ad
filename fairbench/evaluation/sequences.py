"""Evaluates what is cut off the groups' sequences, and what is filled up."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairbench.evaluation.metric_batches import RowLabel, add_estimates, mean_batch
from fairbench.evaluation.prediction_sets import rate_batch
from fairbench.evaluation.predictions import AllGroups, Labelled
from fairbench.evaluation.table import MetricTable
from fairbench.metrics.sequences import PADDED_FRAMES, TRUNCATED_FRAMES, TRUNCATED_ROWS


class FrameCounts(NamedTuple):
    """How long the sequences of n rows are in M modalities.

    Attributes
    ----------
    lengths : (n, M) frames of each row.
    limits : (M,) how many frames of a row are read, or (n, M) if that differs by split.
    """

    lengths: NDArray[np.int64]
    limits: NDArray[np.int64]


def evaluate_truncation(table: MetricTable, data: Labelled, frames: FrameCounts) -> None:
    """Add the share of rows that is truncated, and those of frames cut off and filled up.

    Of everyone and of each group, with intervals and what compares the groups.
    """
    all_groups = AllGroups.of_labelled(data)
    arguments = (data.target, *frames)
    labels = [
        RowLabel(metric.name, least=0.0, most=1.0, compared_as=metric.name, position=position)
        for position, metric in enumerate((TRUNCATED_ROWS, TRUNCATED_FRAMES, PADDED_FRAMES))
    ]
    shares = np.stack([TRUNCATED_FRAMES(*arguments), PADDED_FRAMES(*arguments)])
    batches = [
        rate_batch(TRUNCATED_ROWS(*arguments)[None], labels[:1], all_groups),
        mean_batch(shares, labels[1:], all_groups, least=0.0),
    ]
    add_estimates(table, all_groups, batches)
