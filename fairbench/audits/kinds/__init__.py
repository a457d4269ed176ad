"""The kinds of audits: each measures what applies to it, and orders its sections.

What is found is worded by :mod:`fairbench.audits.sentences`, and put on a page by
:mod:`fairbench.audits.report`. Begin with `document_of`, which chooses the kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from importlib import import_module

import numpy as np
import pandas as pd

from fairbench.audits import question, report
from fairbench.audits.question import Options
from fairbench.audits.table import AuditTable, asked_at_once, read_audit_table
from fairbench.core.errors import UserError
from fairbench.data.columns import AMOUNT, are_missing, class_names, name_rows_in_errors, to_numbers
from fairbench.data.groups import MOST_CELLS, MOST_GROUPS
from fairbench.reporting.document.model import Document

# The module whose `AUDITS` has the function of a kind that is not of one classifier of two classes
# and its groups. Only that module is imported.
_MODULES: Mapping[str, str] = {
    question.PAIR: "pair",
    question.COUNTS: "counts",
    question.CLASSES: "classes",
    **dict.fromkeys((question.PROXY, question.MANY), "unknown"),
    **dict.fromkeys((question.RANKING, question.SURVIVAL, *question.OF_NUMBERS), "numbers"),
}


def document_of(options: Options, frame: pd.DataFrame) -> Document:
    """Return the report of a table; only the modules of its kind are imported.

    Raises
    ------
    UserError : if the kind of audit does not take an option, or a value is invalid.
    """
    with name_rows_in_errors(frame, options.id):
        kind = kind_of(options, frame)
        if kind not in _MODULES:
            return document_of_table(options, read_audit_table(options, frame=frame))
        audits = import_module(f"{__name__}.{_MODULES[kind]}").AUDITS
        return report.document_of(asked_at_once(options, frame, audits[kind]))


def document_of_table(options: Options, table: AuditTable) -> Document:
    """Return the report of predictions of two classes that are read."""
    from fairbench.audits.assessment import assess
    from fairbench.audits.kinds.binary import audit_of
    from fairbench.audits.kinds.unknown import audit_selected

    if table.selected is not None:
        return report.document_of(audit_selected(table, options))
    return report.document_of(audit_of(assess(table, options)))


def kind_of(options: Options, frame: pd.DataFrame) -> str:
    """Return which kind of audit is asked for, once it is sure that it takes all that is given.

    Raises
    ------
    UserError : an option was given that does not apply to it; names the kinds that take it.
    """
    option_of = {
        question.COUNTS: options.total,
        question.RANKING: options.top,
        question.SURVIVAL: options.event,
        question.PROXY: options.proxy,
        question.PAIR: options.against,
        question.SELECTED: options.selected,
        question.PREDICTED_INTERVALS: options.bounds
        and not (options.prediction or options.score_columns),
        question.NUMBERS: options.bounds and options.prediction and not options.score_columns,
        question.CLASSES: options.scores,
    }
    kind = next((kind for kind, option in option_of.items() if option), "")
    if not kind and options.target and options.prediction:
        columns = frame[options.target], frame[options.prediction]
        if _are_numbers(*columns, scored=bool(options.score)):
            kind = question.NUMBERS
        elif _are_classes(*columns):
            kind = question.CLASSES
    if not kind:
        many = options.group and _has_many_groups(frame[list(options.group)])
        kind = question.MANY if many else question.BINARY
    for declared in fields(options):
        name, taken_by = declared.name, declared.metadata.get("applies")
        if taken_by and kind not in taken_by and getattr(options, name) != declared.default:
            kinds = ", or ".join(taken_by)
            raise UserError(f"{name}= does not apply to {kind}, but to {kinds}: leave it out")
    return kind


_MOST_CLASSES = 20  # with no more distinct values than this, numbers may be names of classes
_FEW_EQUAL = 0.9  # of predicted classes more than this share are among the labels
_RARELY_RIGHT = 0.1  # whole numbers are predicted exactly, as classes are, in a smaller share
_IN_ORDER = 0.5  # the rank correlation that wrong predictions of numbers have with the right ones


def _are_numbers(target: pd.Series, prediction: pd.Series, *, scored: bool) -> bool:
    """Return whether targets and their predictions are numbers rather than labels or classes.

    They are if both are numbers, three or more are known, and most predictions have fractions and
    are no target; or else if many occur, targets and predictions together, as few targets may be
    known, and predictions are hardly ever exact, or in the order of the targets where they are not.
    Most may be written with signs, or one column as something else where the other has fractions:
    they are refused as numbers then.

    Parameters
    ----------
    scored : whether a probability of the predicted class is given, which numbers have not.
    """
    known = ~are_missing(target)
    labels = target[known]
    if labels.nunique() < 3:  # noqa: PLR2004 -- two are labels
        return False
    values, predicted = to_numbers(labels), to_numbers(prediction)
    if not (np.isfinite(values).all() and np.isfinite(predicted).all()):
        are_amounts = _mostly_amounts(labels) and _mostly_amounts(prediction)
        has_fractions = any(np.isfinite(of).all() and (of % 1).any() for of in (values, predicted))
        is_rare = prediction.isin(labels).mean() < _FEW_EQUAL
        are_many = labels.nunique() > _MOST_CLASSES
        return bool(are_many and (are_amounts or (has_fractions and not scored)) and is_rare)
    if (predicted % 1).any() and np.isin(predicted, values).mean() < _FEW_EQUAL:
        return True
    if scored or len(np.union1d(values, predicted)) <= _MOST_CLASSES:
        return False
    wrong = values != predicted[known]
    right, wrongly = (pd.Series(of[wrong]).rank() for of in (values, predicted[known]))
    with np.errstate(invalid="ignore"):  # of equal ranks it is NaN
        correlation = right.corr(wrongly, min_periods=2)
    return bool(1 - wrong.mean() < _RARELY_RIGHT or correlation > _IN_ORDER)


def _mostly_amounts(column: pd.Series) -> bool:
    """Return whether most distinct values are written as numbers, with signs or without."""
    distinct = pd.Series(column.astype(str).unique(), dtype="str")
    return bool(distinct.str.strip().str.fullmatch(AMOUNT).mean() > 0.5)


def _are_classes(target: pd.Series, prediction: pd.Series) -> bool:
    """Return whether targets and their predictions are of classes rather than labels 0 and 1.

    They are if predictions have more than three values, or if both have three or more. A third
    value in only one of them is a mistake.
    """
    predicted, labels = (len(set(class_names(column)) - {""}) for column in (prediction, target))
    return predicted > 3 or min(predicted, labels) > 2


def _has_many_groups(groups: pd.DataFrame) -> bool:
    """Return whether columns hold too many groups, or combinations, to compare each two."""
    return (
        bool((groups.nunique() > MOST_GROUPS).any()) or len(groups.drop_duplicates()) > MOST_CELLS
    )
