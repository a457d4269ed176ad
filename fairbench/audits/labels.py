"""Whether rows can have been chosen for labelling at random, as audits of a few labels assume.

Predictions are known of every row. If rows are labelled at random within groups, the labelled ones
of a group have the same distribution of predictions as its other rows. An audit of labels that
exist for the selected people alone would otherwise print rates that are nothing but that selection:
a true positive rate of 1, because nobody rejected has a label.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import compress
from typing import TypeAlias

import numpy as np
import pandas as pd
from scipy import special

from fairbench.core.arrays import Codes, Floats, Mask
from fairbench.core.errors import UserError
from fairbench.core.text import count, number
from fairbench.data.columns import Times, tally
from fairbench.reporting.group_tables import sentence_of

_said = partial(sentence_of, "labels")
# A refusal is wrong in at most one of a million files whose rows were labelled at random.
_LEVEL = 1e-6
# Where generating functions are evaluated; each point bounds a tail, and the best is within 2 % of
# the best exponent of all.
_SLOPES = np.outer([-1, 1], np.geomspace(0.002, 10, 34)).ravel()


# What each row is predicted or decided to be: (n,) codes into names, and what people are who have
# each code, such as ``declined``.
Classes: TypeAlias = tuple[Codes, Sequence[str]]


def check_labels_at_random(
    file: str,
    is_labelled: Mask,
    cells: pd.Series,
    *,
    advice: str,
    classes: Classes | None = None,
    values: Mapping[str, Floats] | None = None,
    times: Times | None = None,
    clusters: pd.Series | None = None,
) -> None:
    """Refuse labels that were surely not given to rows chosen at random within groups.

    Parameters
    ----------
    file : the name of the file, for the error.
    is_labelled : (n,) whether each row has a label.
    cells : (n,) the categorical combinations of all attributes, within which rows are compared.
    advice : sentences on what to do instead, for the end of the error.
    classes : the codes of decisions, or predicted classes, and their names; None without any.
    values : what they are called in a sentence, such as a quoted column -> (n,) scores or predicted
        numbers.
    times : (n,) how many rows of the file each row stands for; one by default.
    clusters : (n,) which rows belong together, and may have been labelled together. Of each
        cluster the first row in each group is compared, whether or not it has a label.

    Raises
    ------
    UserError : labelled rows of a group differ from its other rows.

    Notes
    -----
    In each group, Fisher's exact test compares how often each class is predicted, and the distance
    D of Kolmogorov and Smirnov compares scores. Where there are several groups, which may be small,
    the number of labelled rows of each class, and that of labelled rows with scores above the
    median of their group, are also compared with what labels at random within groups lead one to
    expect. Every p-value is multiplied by the number of tests (Bonferroni).

    With m labelled and n other rows, the p-value of D is at most e exp(-2 D^2 m n / (m + n)), e/2
    times what it is for many rows; ties make it smaller. Wei and Dudley (2012), "Two-sample
    Dvoretzky-Kiefer-Wolfowitz inequalities", prove this for m = n, and computed that it holds for
    all other m and n up to 200. The asymptotic p-value is too small for a handful of labels: that
    of a single label on the highest score is 0.
    """
    if is_labelled.all() or not is_labelled.any():
        return
    values = values or {}
    compared = np.ones(len(cells), bool)
    if clusters is not None:
        together = pd.DataFrame({"cluster": clusters.to_numpy(), "cell": cells.to_numpy()})
        compared = ~together.duplicated().to_numpy()
    # Of the groups in which some rows have a label and others have none, the position of each row's
    # group, and how many rows of the file with and without a label it stands for.
    codes = cells.cat.codes.to_numpy(np.int64)
    groups = [*map(str, cells.cat.categories)]
    of_status = (compared & is_labelled, compared & ~is_labelled)
    is_mixed = np.all([tally(codes[of], least=len(groups)) > 0 for of in of_status], axis=0)
    compared &= is_mixed[codes]
    names = [f"in {name}, " if len(groups) > 1 else "" for name in compress(groups, is_mixed)]
    size = np.ones(len(codes), np.int64) if times is None else times
    size, with_label = size[compared], is_labelled[compared]
    counted = {"labelled": size * with_label, "others": size * ~with_label}
    rows = pd.DataFrame({"cell": (np.cumsum(is_mixed) - 1)[codes[compared]], **counted})
    if classes is not None:
        classes = classes[0][compared], classes[1]
    values = {name: of_name[compared] for name, of_name in values.items()}
    questions = (0 if classes is None else _questions(classes[1])) + len(values)
    tests = (len(names) + (len(names) > 1)) * questions
    sentence = ""
    if classes is not None:
        sentence = _unlike_classes(rows, names, classes, tests)
    for name, of_name in values.items():
        sentence = sentence or _unlike_values(rows, names, name, of_name, tests)
    if sentence:
        raise UserError(_said("not_at_random", file=file, sentence=sentence, advice=advice))


def _questions(names: Sequence[str]) -> int:
    """Return how many shares are compared: of two classes one, of more that of each."""
    return len(names) if len(names) > 2 else 1


def _unlike_classes(rows: pd.DataFrame, groups: Sequence[str], classes: Classes, tests: int) -> str:
    """Return a sentence on a class that is predicted of labelled rows at another rate.

    It is empty if no p-value times the number of tests is below the level.
    """
    from scipy.stats import fisher_exact  # takes a second, which most audits do without

    codes, names = classes
    questions = _questions(names)
    labelled, others = _tables(rows, codes, len(groups), len(names))
    all_labelled, all_others = (size.sum(axis=1, keepdims=True) for size in (labelled, others))
    # The probability of a table is part of its p-value. Few tables are so improbable that the
    # p-value need be computed: if labels were given at random, hardly ever one.
    log_probability = (
        _log_binomial(all_labelled, labelled)
        + _log_binomial(all_others, others)
        - _log_binomial(all_labelled + all_others, labelled + others)
    )[:, :questions]
    for index in np.argsort(log_probability, axis=None, kind="stable"):
        cell, code = divmod(int(index), questions)
        if not _is_refuting(log_probability[cell, code], tests):
            break
        table = np.array([labelled[cell], others[cell]])
        of_class = table[:, code]
        of_others = table.sum(axis=1) - of_class
        if fisher_exact([of_class, of_others]).pvalue * tests < _LEVEL:
            other = f"rows {names[1 - code]}" if questions == 1 else "other rows"
            found = _labelled_of(of_class, f"rows {names[code]}")
            not_found = _labelled_of(of_others, other)
            return _said("classes", group=groups[cell], labelled=found, others=not_found)
    what = [f"rows {name}" for name in names]
    return _unlike_over_groups(labelled, others, what[:questions], tests)


def _unlike_values(
    rows: pd.DataFrame, groups: Sequence[str], name: str, values: Floats, tests: int
) -> str:
    """Return a sentence on the group in which values of labelled rows are distributed otherwise.

    It is empty if no p-value times the number of tests is below the level.
    """
    if not groups:
        return ""
    cells, *statuses = rows.to_numpy().T
    order = np.lexsort((values, cells))
    cell = cells[order]
    ends = np.flatnonzero(np.diff(cell, append=-1))  # the last row of each group
    starts = np.r_[0, ends[:-1] + 1]
    counts, sizes = [], []  # of rows with and without a label: up to each row, and of each group
    for row_sizes in statuses:
        so_far = np.cumsum(row_sizes[order])
        before = np.r_[0, so_far[ends[:-1]]]
        counts.append(so_far - before[cell])
        sizes.append(so_far[ends] - before)
    labelled, others = sizes
    difference = np.abs(counts[0] / labelled[cell] - counts[1] / others[cell])
    is_last = np.diff(values[order], append=np.nan) != 0  # of the rows with the same value
    is_last[ends] = True
    distance = np.maximum.reduceat(difference * is_last, starts)
    log_p_value = 1 - 2 * distance**2 * (labelled * (others / (labelled + others)))
    worst = int(log_p_value.argmin())
    if _is_refuting(log_p_value[worst], tests):
        in_group = cells == worst
        means = (
            number(np.average(values[in_group], weights=row_sizes[in_group]))
            for row_sizes in statuses
        )
        return _said("values", group=groups[worst], name=name, means=" and ".join(means))
    share = (counts[0] + counts[1]) / (labelled + others)[cell]
    medians = values[order[np.searchsorted(cell + share, np.arange(len(ends)) + 0.5)]]
    not_above = (values <= medians[cells]).astype(np.int64)
    what = [f"rows with {name} above the median of their group"]
    return _unlike_over_groups(*_tables(rows, not_above, len(groups), 2), what, tests)


def _tables(rows: pd.DataFrame, codes: Codes, n_cells: int, n_codes: int) -> tuple[Times, Times]:
    """Return how many rows with and without a label each group has of each code (K, C)."""
    cell, *statuses = rows.to_numpy().T
    labelled, others = (
        tally(cell * n_codes + codes, size, least=n_cells * n_codes).reshape(-1, n_codes)
        for size in statuses
    )
    return labelled, others


def _unlike_over_groups(labelled: Times, others: Times, what: Sequence[str], tests: int) -> str:
    """Return a sentence on rows of which more or fewer have a label than at random, over groups.

    It is empty if there is one group, or no p-value times the number of tests is below the level.

    Parameters
    ----------
    labelled, others : (K, C) how many rows of each group and code have a label, and have none.
    what : what the rows are of the first codes, which are compared.

    Notes
    -----
    At random, the number of labelled rows of a code is a sum of hypergeometric variables, one for
    each group. Chernoff's bound of its tails uses that the generating function of each is at most
    that of a binomial variable (Hoeffding 1963, theorem 4): of the labelled or the other rows, of
    those of the code or the rest, whichever is smallest.
    """
    if len(labelled) < 2:
        return ""
    size = (labelled + others).sum(axis=1, keepdims=True)
    drawn = labelled.sum(axis=1, keepdims=True)
    of_code = (labelled + others)[:, : len(what)]
    found = labelled[:, : len(what)].sum(axis=0)
    log_p_value = np.zeros(len(what))
    for slope in _SLOPES:
        up, down = np.expm1(slope), np.expm1(-slope)
        log_generating = np.minimum.reduce(
            [
                drawn * np.log1p(of_code / size * up),
                of_code * np.log1p(drawn / size * up),
                slope * of_code + (size - drawn) * np.log1p(of_code / size * down),
                slope * drawn + (size - of_code) * np.log1p(drawn / size * down),
            ]
        )
        log_tail = np.log(2) + log_generating.sum(axis=0) - slope * found
        log_p_value = np.minimum(log_p_value, log_tail)
    worst = int(log_p_value.argmin())
    if not _is_refuting(log_p_value[worst], tests):
        return ""
    expected = (drawn * (of_code / size)).sum(axis=0)
    of_worst = np.array([found[worst], of_code[:, worst].sum() - found[worst]])
    found_rows = _labelled_of(of_worst, what[worst])
    return _said("over_groups", labelled=found_rows, expected=round(expected[worst]))


def _is_refuting(log_p_value: float, tests: int) -> bool:
    """Return whether a p-value of so many is below the level."""
    return bool(log_p_value + np.log(tests) < np.log(_LEVEL))


def _labelled_of(counts: Codes, what: str) -> str:
    """Return how many of the rows of a kind have a label, from those with and without one."""
    return f"{count(int(counts[0]))} of the {count(int(counts.sum()))} {what}"


def _log_binomial(size: Times, part: Times) -> Floats:
    """Return the logarithm of the number of ways to choose a part of so many."""
    return special.gammaln(size + 1) - special.gammaln(part + 1) - special.gammaln(size - part + 1)
