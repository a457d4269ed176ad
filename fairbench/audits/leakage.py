"""Columns that hold the label under another name, and labels that are all the same."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from fairbench.audits.question import Options
from fairbench.core.errors import UserError
from fairbench.core.formats import count

Floats = NDArray[np.float64]

# So few labels of either kind may be told apart by luck, or by a good classifier.
_FEWEST = 10
_ENOUGH = 50


def check_score(label: Floats, score: Floats, file: str, column: str) -> None:
    """Refuse a score that has one value for label 0 and another for label 1.

    Parameters
    ----------
    label : (n,) 0 or 1, NaN where unknown; of fewer than 50, or 10 of either, nothing is said.

    Raises
    ------
    UserError : the column is the label, in other words.
    """
    if not _tells(label):
        return
    ends = [(own.min(), own.max()) for own in (score[label == each] for each in (0, 1))]
    if all(low == high for low, high in ends) and ends[0] != ends[1]:
        zero, one = (f"{low:g}" for low, _ in ends)
        rows = count(np.isfinite(label).sum())
        raise UserError(
            f"{file}: column '{column}' is the label: it is {zero} for one label and {one} for the "
            f"other in all {rows} labelled rows, which is leakage; name the column of predicted "
            "probabilities as score=, or decisions that are never wrong as prediction="
        )


def notes_on_labels(
    label: Floats,
    score: Floats | None,
    decision: NDArray[np.int64],
    names: tuple[str, str],
    options: Options,
) -> Iterator[str]:
    """Yield what a reader should know of labels that are all the same, or that a column holds."""
    known = np.isfinite(label)
    present = np.unique(label[known])
    if len(present) == 1:
        yield _one_class(int(known.sum()), int(present[0]), names)
    if not _tells(label):
        return
    rows = count(known.sum())
    if score is not None and _apart(label, score):
        yield (
            f"'{options.score}' tells the two labels apart without one mistake in {rows} labelled "
            "rows. Scores are hardly ever that good: it may have been made from the label, or from "
            "what was known only after it, which is called leakage."
        )
    elif options.prediction and (decision == label)[known].all():
        yield (
            f"'{options.prediction}' equals the label in all {rows} labelled rows. Decisions are "
            "hardly ever that good: they may have been made from the label, or be the label."
        )


def _one_class(rows: int, label: int, names: tuple[str, str]) -> str:
    missing, told = (
        ("the false positive rate", "the true positive rate (which is then the accuracy)")
        if label
        else ("the true positive rate", "the false positive rate (1 minus the accuracy)")
    )
    return (
        f"All {count(rows)} labels are '{names[label]}': there are selection rates, accuracy and "
        f"{told}, but nothing is known of {missing} or of how well scores tell labels apart. Check "
        "that the labels of the others have not been left out."
    )


def _tells(label: Floats) -> bool:
    """Say whether there are enough labels of both kinds to know a copy of them."""
    ones, labels = int(np.nansum(label)), int(np.isfinite(label).sum())
    return labels >= _ENOUGH and min(ones, labels - ones) >= _FEWEST


def _apart(label: Floats, score: Floats) -> bool:
    zero, one = score[label == 0], score[label == 1]
    return bool(zero.max() < one.min() or one.max() < zero.min())
