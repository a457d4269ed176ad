"""The kinds of audits: each measures what applies to it, and orders its sections.

What is found is worded by :mod:`fairbench.audits.sentences`, and put on a page by
:mod:`fairbench.audits.report`. Begin with `audit_of`, which chooses the kind.
"""

from __future__ import annotations

import pandas as pd

from fairbench.audits.question import (
    BINARY,
    CLASSES,
    MANY,
    NUMBERS,
    PAIR,
    PROXY,
    RANKING,
    SELECTED,
    SURVIVAL,
    Options,
    check_applies,
)
from fairbench.audits.report import Audit
from fairbench.audits.report import document_of as document_of_audit
from fairbench.audits.table import AuditTable, has_many_groups, read_audit_table
from fairbench.reporting.document.model import Document


def document_of(options: Options, frame: pd.DataFrame) -> Document:
    """Return the report of a table.

    Raises
    ------
    UserError : an option that the kind of audit does not take, or a value that cannot be.
    """
    kind = kind_of(options, frame)
    check_applies(options, kind)
    return document_of_audit(_audit(kind, options, frame))


def kind_of(options: Options, frame: pd.DataFrame) -> str:
    """Return which kind of audit is asked for."""
    from fairbench.audits.class_table import is_multiclass
    from fairbench.audits.kinds.numbers import is_regression

    asked = {
        RANKING: options.top,
        SURVIVAL: options.event,
        PROXY: options.proxy,
        PAIR: options.against,
        SELECTED: options.selected,
        NUMBERS: is_regression(options, frame),
        CLASSES: is_multiclass(options, frame),
        MANY: options.group and has_many_groups(frame, options),
    }
    return next((kind for kind, wanted in asked.items() if wanted), BINARY)


def _audit(kind: str, options: Options, frame: pd.DataFrame) -> Audit:
    """Return the audit of a kind; only its own modules are imported."""
    if kind == RANKING:
        from fairbench.audits.kinds.ranking import audit_ranking

        return audit_ranking(options, frame)
    if kind == SURVIVAL:
        from fairbench.audits.kinds.survival import audit_survival

        return audit_survival(options, frame)
    if kind == NUMBERS:
        from fairbench.audits.kinds.numbers import audit_numbers

        return audit_numbers(options, frame)
    if kind == CLASSES:
        from fairbench.audits.kinds.classes import audit_classes

        return audit_classes(options, frame)
    if kind == PROXY:
        from fairbench.audits.kinds.unknown import audit_proxy

        return audit_proxy(options, frame)
    if kind == PAIR:
        from fairbench.audits.kinds.pair import audit_pair

        return audit_pair(read_audit_table(options, frame=frame), frame, options)
    if kind == MANY:
        from fairbench.audits.kinds.many_groups import audit_many

        return audit_many(read_audit_table(options, frame=frame, many=True), options)
    return _of_table(read_audit_table(options, frame=frame), options)


def _of_table(table: AuditTable, options: Options) -> Audit:
    from fairbench.audits.kinds.binary import audit_binary
    from fairbench.audits.kinds.unknown import audit_selected

    return (audit_binary if table.selected is None else audit_selected)(table, options)


def document_of_table(options: Options, table: AuditTable) -> Document:
    """Return the report of predictions of two classes that are read."""
    return document_of_audit(_of_table(table, options))
