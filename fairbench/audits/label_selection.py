"""Whether rows can have been chosen for labelling at random, as audits of a few labels assume.

Decisions and scores are known of every row. If rows are labelled at random within groups, the
labelled ones of a group have the same distribution of decisions and scores as its other rows. An
audit of labels that exist for the selected people alone would otherwise print rates that are
nothing but that selection: a true positive rate of 1, because nobody rejected has a label.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from fairbench.core.arrays import Floats, Mask
from fairbench.core.errors import UserError
from fairbench.core.formats import count

# A refusal is wrong in at most one of a million files whose rows were labelled at random.
_LEVEL = 1e-6


class Dependence(NamedTuple):
    """How labelled rows of one group differ from its other rows: the p-value, and a sentence."""

    p_value: float
    sentence: str


def check_labels_at_random(
    file: str,
    label: Floats,
    decision: NDArray[np.int64],
    score: Floats | None,
    cells: pd.Series,
    names: tuple[str, str],
) -> None:
    """Refuse labels that were surely not given to rows chosen at random within groups.

    Parameters
    ----------
    file : the name of the file, for the error.
    label, decision : (n,) labels, NaN where unknown, and decisions, 0 or 1.
    score : (n,) scores; None if there are none.
    cells : (n,) the combination of all attributes, within which rows are compared.
    names : what people are who get the decision 0 and 1, such as ``declined``.

    Raises
    ------
    UserError : labelled rows of a group differ from its other rows.

    Notes
    -----
    In each cell, Fisher's exact test compares decisions and the test of Kolmogorov and Smirnov
    scores. Every p-value is multiplied by the number of tests (Bonferroni).
    """
    is_labelled = ~np.isnan(label)
    if is_labelled.all() or not is_labelled.any():
        return
    tests = list(_dependences(is_labelled, decision, score, cells, names))
    refuting = [test for test in tests if test.p_value * len(tests) < _LEVEL]
    if refuting:
        raise UserError(
            f"{file}: rows were not chosen for labelling at random: {refuting[0].sentence}. If "
            "only people who were selected could get a label, say so with selected=COLUMN "
            "(docs/unknown.md). If rows were drawn by their decision or score, keep the labelled "
            "ones and weight them with weight=COLUMN"
        )


def _dependences(
    is_labelled: Mask,
    decision: NDArray[np.int64],
    score: Floats | None,
    cells: pd.Series,
    names: tuple[str, str],
) -> Iterator[Dependence]:
    """Yield the comparisons of the labelled and the other rows of every cell."""
    codes = cells.cat.codes.to_numpy()
    for code, group in enumerate(cells.cat.categories):
        in_cell = codes == code
        labelled, others = in_cell & is_labelled, in_cell & ~is_labelled
        if not labelled.any() or not others.any():
            continue
        table = np.array([np.bincount(decision[rows], minlength=2) for rows in (labelled, others)])
        of_decision = [
            f"{count(int(with_label))} of the {count(int(with_label + without))} rows {name}"
            for name, with_label, without in zip(names, *table, strict=True)
        ]
        yield Dependence(
            float(stats.fisher_exact(table).pvalue),
            f"in {group}, {of_decision[0]} have a label, and {of_decision[1]}",
        )
        if score is not None:
            test = stats.ks_2samp(score[labelled], score[others], method="asymp")
            means = score[labelled].mean(), score[others].mean()
            yield Dependence(
                float(test.pvalue),
                f"in {group}, the scores of rows with a label are distributed otherwise than those "
                f"of the other rows (means {means[0]:.3g} and {means[1]:.3g})",
            )
