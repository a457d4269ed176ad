"""Columns that hold the label under another name, and labels that are all the same."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from fairbench.core.arrays import Floats
from fairbench.core.errors import UserError
from fairbench.core.formats import count
from fairbench.data.distinct_rows import tally

# With so few labels of either kind, luck or a good classifier may separate them perfectly.
_FEWEST = 10
_ENOUGH = 50


def check_score(label: Floats, score: Floats, file: str, column: str) -> None:
    """Refuse a score that has one value for label 0 and another for label 1.

    Parameters
    ----------
    label : (n,) 0 or 1, NaN where unknown; nothing is refused if fewer than 50 are known, or
        fewer than 10 of either kind.

    Raises
    ------
    UserError : the column is the label, in other words.
    """
    if not _tells(label):
        return
    scores_of_0, scores_of_1 = (np.unique(score[label == value]) for value in (0, 1))
    if len(scores_of_0) == len(scores_of_1) == 1 and scores_of_0[0] != scores_of_1[0]:
        rows = count(np.isfinite(label).sum())
        raise UserError(
            f"{file}: column '{column}' is the label: it is {scores_of_0[0]:g} for one label and "
            f"{scores_of_1[0]:g} for the other in all {rows} labelled rows, which is leakage; name "
            "the column of predicted probabilities as score=, or decisions that are never wrong as "
            "prediction="
        )


def notes_on_labels(
    label: Floats,
    score: Floats | None,
    decision: NDArray[np.int64],
    names: tuple[str, str],
    *,
    columns: tuple[str, str],
    times: NDArray[np.int64] | None = None,
) -> Iterator[str]:
    """Yield warnings about labels that are all the same, or that a column copies.

    Parameters
    ----------
    names : the names of labels 0 and 1.
    columns : the names of the columns of scores and of decisions, empty if there is none.
    times : (n,) how often each row occurs; once by default.
    """
    labelled = np.isfinite(label)
    present = np.unique(label[labelled])
    rows = count(tally(labelled, times, least=2)[1])
    if len(present) == 1:
        missing, told = "the true positive rate", "the false positive rate (1 minus the accuracy)"
        if present[0]:
            missing = "the false positive rate"
            told = "the true positive rate (which is then the accuracy)"
        yield (
            f"All {rows} labels are '{names[int(present[0])]}': there are selection rates, "
            f"accuracy and {told}, but nothing is known of {missing} or of how well scores tell "
            "labels apart. Check that the labels of the others have not been left out."
        )
    if not _tells(label, times):
        return
    if score is not None:
        scores_of_0, scores_of_1 = score[label == 0], score[label == 1]
        if scores_of_0.max() < scores_of_1.min() or scores_of_1.max() < scores_of_0.min():
            yield (
                f"'{columns[0]}' tells the two labels apart without one mistake in {rows} labelled "
                "rows. Scores are hardly ever that good: it may have been made from the label, or "
                "from what was known only after it, which is called leakage."
            )
            return
    if columns[1] and (decision == label)[labelled].all():
        yield (
            f"'{columns[1]}' equals the label in all {rows} labelled rows. Decisions are hardly "
            "ever that good: they may have been made from the label, or be the label."
        )


def _tells(label: Floats, times: NDArray[np.int64] | None = None) -> bool:
    """Return whether there are enough labels of both kinds to know a copy of them."""
    zeros, ones = (tally(label == value, times, least=2)[1] for value in (0, 1))
    return bool(zeros + ones >= _ENOUGH and min(zeros, ones) >= _FEWEST)
