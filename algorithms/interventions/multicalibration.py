"""Scores calibrated in every group at once, by patching the worst cell (Hébert-Johnson et al.)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.components.algorithms.interventions.recalibrated import (
    Array,
    Change,
    HeldOut,
    Recalibrated,
)
from fairbench.components.algorithms.overlapping_groups import OverlappingGroups
from fairbench.core.errors import check_choice, check_minimum, check_share
from fairbench.experiments.contracts import BINARY, Capabilities, Intervention

_AMONG = ("groups", "everyone")
_ERRORS = 2.0  # standard errors that a cell must be off by, beside the tolerance
_SURE = 0.002  # a few rows of one label do not make it sure, which would cost a log loss dearly
_MOST = 10_000  # patches; each lowers the squared error of the rows held out, so there is an end


@dataclass(frozen=True)
class Multicalibration(Intervention):
    """Multicalibration of Hébert-Johnson, Kim, Reingold and Rothblum (2018), on rows held out.

    A cell is a group and a bin of scores. As long as a cell's scores are off by more than
    `tolerance` on average, the cell whose correction lowers the squared error most is patched: the
    mean of label minus score is added to its scores. Cells overlap, so a patch may undo a part of
    another, and the order is kept. Groups are everyone, those of each protected attribute, and
    their combinations of at least `smallest` rows.

    The paper asks for more rows than data sets have; here a cell counts from `smallest` rows on,
    and must be off by more than two standard errors, too, so that chance is not patched. With
    ``among=everyone`` there is one group: a plain calibration in bins, to compare with.
    """

    held_out: float = 0.25
    bins: int = 10
    tolerance: float = 0.01
    smallest: int = 50
    among: str = "groups"

    capabilities = Capabilities(tasks=BINARY, reads_groups=True, group_at_prediction=True)

    def __post_init__(self) -> None:
        """Refuse shares that are not shares, no bins, no rows, and unknown names."""
        check_share("intervention.held_out", self.held_out, zero=True)
        check_share("intervention.tolerance", self.tolerance)
        check_minimum("intervention.bins", self.bins, 1)
        check_minimum("intervention.smallest", self.smallest, 1)
        check_choice("intervention.among", self.among, _AMONG)

    def wrap(self, estimator: Any, seed: int) -> Recalibrated:
        """Return the unfitted model."""
        return Recalibrated("multicalibration", estimator, self.held_out, seed, self.learn)

    def learn(self, rows: HeldOut) -> tuple[Change, dict[str, float]]:
        """Return the patches as a change of scores, and how many there are."""
        groups = OverlappingGroups.of(rows.sensitive, smallest=self.smallest)
        if self.among == "everyone":
            groups = OverlappingGroups(groups.attributes, ())
        members = _members(groups, rows.sensitive)
        found = patches(
            rows, members, bins=self.bins, tolerance=self.tolerance, smallest=self.smallest
        )
        change = partial(_patched, groups=groups, bins=self.bins, found=found)
        return change, {"patches": float(len(found))}


class Patch(NamedTuple):
    """What is added to the scores of a group in a bin."""

    group: int
    bin: int
    shift: float


def patches(
    rows: HeldOut,
    members: NDArray[np.bool_],
    *,
    bins: int,
    tolerance: float,
    smallest: int,
) -> list[Patch]:
    """Return patches in their order, until no cell is off by more than it may be.

    Parameters
    ----------
    members : (n, G) which groups each row is in.
    """
    found: list[Patch] = []
    score = rows.score.copy()
    row, group = np.nonzero(members)
    count, label = rows.weight[row], rows.label[row]
    cells = members.shape[1] * bins
    while len(found) < _MOST:
        cell = group * bins + _bin(score, bins)[row]
        size = np.bincount(cell, count, cells)
        mean = np.bincount(cell, count * score[row], cells) / np.maximum(size, 1)
        off = np.bincount(cell, count * (label - score[row]), cells) / np.maximum(size, 1)
        error = np.sqrt(np.clip(mean * (1 - mean), 0, None) / np.maximum(size, 1))
        wrong = (size >= smallest) & (np.abs(off) > np.maximum(tolerance, _ERRORS * error))
        if not wrong.any():
            break
        worst = int(np.argmax(np.where(wrong, size * off**2, 0)))
        patch = Patch(worst // bins, worst % bins, float(off[worst]))
        score = _with(score, members, patch, bins)
        found.append(patch)
    return found


def _with(score: Array, members: NDArray[np.bool_], patch: Patch, bins: int) -> Array:
    """Return scores with a patch, which makes none more extreme than `_SURE` allows."""
    inside = members[:, patch.group] & (_bin(score, bins) == patch.bin)
    low, high = np.minimum(score, _SURE), np.maximum(score, 1 - _SURE)
    changed: Array = np.where(inside, np.clip(score + patch.shift, low, high), score)
    return changed


def _patched(
    score: Array,
    sensitive: pd.Series,
    *,
    groups: OverlappingGroups,
    bins: int,
    found: list[Patch],
) -> Array:
    """Return scores with every patch in turn."""
    members = _members(groups, sensitive)
    for patch in found:
        score = _with(score, members, patch, bins)
    return score


def _members(groups: OverlappingGroups, sensitive: pd.Series) -> NDArray[np.bool_]:
    """Return which groups each row is in, (n, 1 + G); the first is everyone."""
    code, labels = pd.factorize(sensitive.astype(str))
    own = groups.members([str(label) for label in labels]).reshape(len(labels), -1)
    return np.column_stack([np.ones(len(code), bool), own[code]])


def _bin(score: Array, bins: int) -> NDArray[np.intp]:
    return np.minimum((score * bins).astype(np.intp), bins - 1)
