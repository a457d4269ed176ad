"""The report of an audit, whatever it is an audit of: two classes or more, a pair, a proxy."""

from __future__ import annotations

import pandas as pd

from fairbench.audits.question import Options
from fairbench.audits.table import AuditTable
from fairbench.core.errors import UserError
from fairbench.reporting.document.model import Document


def document_of(options: Options, frame: pd.DataFrame) -> Document:
    """Return the report of a table."""
    from fairbench.audits.multiclass_reading import is_multiclass
    from fairbench.audits.regression import is_regression

    if options.top:
        return _ranking(options, frame)
    if is_regression(options, frame):
        return _regression(options, frame)
    if options.bounds:
        raise UserError("bounds= is of predicted numbers, and these are labels: leave it out")
    return (_multiclass if is_multiclass(options, frame) else _binary)(options, frame)


def _ranking(options: Options, frame: pd.DataFrame) -> Document:
    from fairbench.audits.pages.ranking import ranking_document
    from fairbench.audits.ranking import assess_ranking

    return ranking_document(assess_ranking(options, frame))


def _regression(options: Options, frame: pd.DataFrame) -> Document:
    from fairbench.audits.pages.regression import regression_document
    from fairbench.audits.regression import assess_regression, read_regression_table

    return regression_document(assess_regression(read_regression_table(options, frame), options))


def _multiclass(options: Options, frame: pd.DataFrame) -> Document:
    from fairbench.audits.multiclass_assessment import assess_multiclass
    from fairbench.audits.multiclass_reading import read_multiclass_table
    from fairbench.audits.pages.multiclass import multiclass_audit_document

    for name in ("weight", "cluster", "selected", "proxy"):
        if getattr(options, name):
            raise UserError(f"{name}= is of two classes: of more, leave it out")
    table = read_multiclass_table(options, frame)
    return multiclass_audit_document(assess_multiclass(table, options))


def _binary(options: Options, frame: pd.DataFrame) -> Document:
    from fairbench.audits.table import has_many_groups, read_audit_table

    if options.cost:
        raise UserError("cost= is of classes: name score=[...], a column for each class, as well")
    if options.proxy:
        return _by_proxy(options, frame)
    if options.group and not options.against and has_many_groups(frame, options):
        return _many_groups(options, frame)
    table = read_audit_table(options, frame=frame)
    if options.against:
        from fairbench.audits.pages.pair import pair_audit_document
        from fairbench.audits.pair import assess_pair

        return pair_audit_document(assess_pair(table, frame, options))
    return document_of_table(options, table)


def _many_groups(options: Options, frame: pd.DataFrame) -> Document:
    from fairbench.audits.many_groups import assess_many
    from fairbench.audits.pages.many_groups import many_groups_document
    from fairbench.audits.table import read_audit_table

    if options.selected:
        raise UserError(
            "selected= compares each two groups, and there are too many here: name fewer columns"
        )
    table = read_audit_table(options, frame=frame, many=True)
    return many_groups_document(assess_many(table, options))


def _by_proxy(options: Options, frame: pd.DataFrame) -> Document:
    from fairbench.audits.pages.unknown import proxy_document
    from fairbench.audits.proxy import assess_proxy

    return proxy_document(assess_proxy(options, frame))


def document_of_table(options: Options, table: AuditTable) -> Document:
    """Return the report of predictions of two classes."""
    from fairbench.audits.assessment import assess
    from fairbench.audits.pages.binary import audit_document

    document = audit_document(assess(table.of_selected(), options))
    if table.selected is None:
        return document
    from fairbench.audits.pages.unknown import with_unknown_labels
    from fairbench.audits.unknown import unknown_labels

    return with_unknown_labels(document, unknown_labels(table, options))
