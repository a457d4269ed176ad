"""Whether rows can have been chosen for labelling at random, as audits of a few labels assume.

Predictions are known of every row. If rows are labelled at random within groups, the labelled ones
of a group have the same distribution of predictions as its other rows. An audit of labels that
exist for the selected people alone would otherwise print rates that are nothing but that selection:
a true positive rate of 1, because nobody rejected has a label.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
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

    Fisher's p-value is at most the probability of the table found times the number of tables that
    there can be, which is what is taken for it.

    With m labelled and n other rows, the p-value of D is at most e exp(-2 D^2 m n / (m + n)), e/2
    times what it is for many rows; ties make it smaller. Wei and Dudley (2012), "Two-sample
    Dvoretzky-Kiefer-Wolfowitz inequalities", prove this for m = n, and computed that it holds for
    all other m and n up to 200. The asymptotic p-value is too small for a handful of labels: that
    of a single label on the highest score is 0.
    """
    size = np.ones(len(cells), np.int64) if times is None else times
    counted = {"labelled": size * is_labelled, "others": size * ~is_labelled}
    rows = pd.DataFrame({"cell": cells.cat.codes.to_numpy(), **counted})
    if clusters is not None:
        rows = rows[~rows[["cell"]].assign(cluster=clusters.to_numpy()).duplicated()]
    # Groups of which some rows have a label and others none; cells are numbered among these.
    rows = rows[(rows.groupby("cell").transform("sum") > 0).all(axis=1)]
    if rows.empty:
        return
    mixed, cell = np.unique(rows["cell"], return_inverse=True)
    rows = rows.assign(cell=cell)
    names = cells.cat.categories
    groups = [f"in {name}, " if len(names) > 1 else "" for name in names[mixed]]
    values = values or {}
    questions = (0 if classes is None else _questions(classes[1])) + len(values)
    tests = (len(groups) + (len(groups) > 1)) * questions
    sentence = ""
    if classes is not None:
        sentence = _unlike_classes(rows, groups, classes[0][rows.index], classes[1], tests)
    for name, of_name in values.items():
        sentence = sentence or _unlike_values(rows, groups, name, of_name[rows.index], tests)
    if sentence:
        raise UserError(_said("not_at_random", file=file, sentence=sentence, advice=advice))


def _questions(names: Sequence[str]) -> int:
    """Return how many shares are compared: of two classes one, of more that of each."""
    return len(names) if len(names) > 2 else 1


def _unlike_classes(
    rows: pd.DataFrame, groups: Sequence[str], codes: Codes, names: Sequence[str], tests: int
) -> str:
    """Return a sentence on a class that is predicted of labelled rows at another rate.

    It is empty if no p-value times the number of tests is below the level.
    """
    questions = _questions(names)
    labelled, others = _tables(rows, codes, len(groups), len(names))
    drawn, left = (size.sum(axis=1, keepdims=True) for size in (labelled, others))
    of_class, of_rest = labelled + others, drawn + left - labelled - others
    tables = 1 + np.minimum(np.minimum(drawn, left), np.minimum(of_class, of_rest))
    log_p_value = np.log(tables) + _log_binomial(drawn, labelled) + _log_binomial(left, others)
    log_p_value = (log_p_value - _log_binomial(drawn + left, of_class))[:, :questions]
    cell, code = divmod(int(log_p_value.argmin()), questions)
    if not _is_refuting(log_p_value[cell, code], tests):
        what = [f"rows {name}" for name in names]
        return _unlike_over_groups(labelled, others, what[:questions], tests)
    table = np.array([labelled[cell], others[cell]])
    other = f"rows {names[1 - code]}" if questions == 1 else "other rows"
    found = _labelled_of(table[:, code], f"rows {names[code]}")
    not_found = _labelled_of(table.sum(axis=1) - table[:, code], other)
    return _said("classes", group=groups[cell], labelled=found, others=not_found)


def _unlike_values(
    rows: pd.DataFrame, groups: Sequence[str], name: str, values: Floats, tests: int
) -> str:
    """Return a sentence on the group in which values of labelled rows are distributed otherwise.

    It is empty if no p-value times the number of tests is below the level.
    """
    of_values = rows.assign(value=values).groupby(["cell", "value"]).sum()
    size = of_values.groupby("cell").sum()
    so_far = of_values.groupby("cell").cumsum()
    shares = so_far.div(size, level="cell")
    distance = (shares["labelled"] - shares["others"]).abs().groupby("cell").max()
    both = size["labelled"] * (size["others"] / size.sum(axis=1))
    log_p_value = (1 - 2 * distance**2 * both).to_numpy()
    worst = int(log_p_value.argmin())
    if _is_refuting(log_p_value[worst], tests):
        of_status = rows.loc[(rows["cell"] == worst), ["labelled", "others"]].to_numpy().T
        in_group = values[rows["cell"] == worst]
        means = (number(np.average(in_group, weights=weight)) for weight in of_status)
        return _said("values", group=groups[worst], name=name, means=" and ".join(means))
    share = so_far.sum(axis=1).div(size.sum(axis=1), level="cell")
    medians = share[share >= 0.5].reset_index("value").groupby("cell")["value"].first().to_numpy()
    not_above = (values <= medians[rows["cell"]]).astype(np.int64)
    what = [f"rows with {name} above the median of their group"]
    return _unlike_over_groups(*_tables(rows, not_above, len(groups), 2), what, tests)


def _tables(rows: pd.DataFrame, codes: Codes, n_cells: int, n_codes: int) -> tuple[Times, Times]:
    """Return how many rows with and without a label each group has of each code (K, C)."""
    place, shape = rows["cell"].to_numpy() * n_codes + codes, (n_cells, n_codes)
    labelled, others = (
        tally(place, rows[status].to_numpy(), least=n_cells * n_codes).reshape(shape)
        for status in ("labelled", "others")
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
