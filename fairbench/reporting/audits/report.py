"""The report of an audit, whatever it is an audit of: two classes or more, a pair, a proxy."""

from __future__ import annotations

import pandas as pd

from fairbench.auditing.options import Options
from fairbench.auditing.reading import AuditTable
from fairbench.core.errors import UserError
from fairbench.reporting.document.model import Document


def document_of(options: Options, frame: pd.DataFrame) -> Document:
    """Return the report of a table."""
    from fairbench.auditing.multiclass_reading import is_multiclass
    from fairbench.auditing.regression import is_regression

    if options.top:
        return _ranking(options, frame)
    if is_regression(options, frame):
        return _regression(options, frame)
    if options.bounds:
        raise UserError("bounds= is of predicted numbers, and these are labels: leave it out")
    return (_multiclass if is_multiclass(options, frame) else _binary)(options, frame)


def _ranking(options: Options, frame: pd.DataFrame) -> Document:
    from fairbench.auditing.ranking import assess_ranking
    from fairbench.reporting.audits.ranking import ranking_document

    return ranking_document(assess_ranking(options, frame))


def _regression(options: Options, frame: pd.DataFrame) -> Document:
    from fairbench.auditing.regression import assess_regression, read_regression_table
    from fairbench.reporting.audits.regression import regression_document

    return regression_document(assess_regression(read_regression_table(options, frame), options))


def _multiclass(options: Options, frame: pd.DataFrame) -> Document:
    from fairbench.auditing.multiclass_assessment import assess_multiclass
    from fairbench.auditing.multiclass_reading import read_multiclass_table
    from fairbench.reporting.audits.multiclass import multiclass_audit_document

    for name in ("weight", "cluster", "selected", "proxy"):
        if getattr(options, name):
            raise UserError(f"{name}= is of two classes: of more, leave it out")
    table = read_multiclass_table(options, frame)
    return multiclass_audit_document(assess_multiclass(table, options))


def _binary(options: Options, frame: pd.DataFrame) -> Document:
    from fairbench.auditing.reading import has_many_groups, read_audit_table

    if options.cost:
        raise UserError("cost= is of classes: name score=[...], a column for each class, as well")
    if options.proxy:
        return _by_proxy(options, frame)
    if options.group and not options.against and has_many_groups(frame, options):
        return _many_groups(options, frame)
    table = read_audit_table(options, frame=frame)
    if options.against:
        from fairbench.auditing.pair import assess_pair
        from fairbench.reporting.audits.pair import pair_audit_document

        return pair_audit_document(assess_pair(table, frame, options))
    return document_of_table(options, table)


def _many_groups(options: Options, frame: pd.DataFrame) -> Document:
    from fairbench.auditing.many_groups import assess_many
    from fairbench.auditing.reading import read_audit_table
    from fairbench.reporting.audits.many_groups import many_groups_document

    if options.selected:
        raise UserError(
            "selected= compares each two groups, and there are too many here: name fewer columns"
        )
    table = read_audit_table(options, frame=frame, many=True)
    return many_groups_document(assess_many(table, options))


def _by_proxy(options: Options, frame: pd.DataFrame) -> Document:
    from fairbench.auditing.proxy import assess_proxy
    from fairbench.reporting.audits.unknown import proxy_document

    return proxy_document(assess_proxy(options, frame))


def document_of_table(options: Options, table: AuditTable) -> Document:
    """Return the report of predictions of two classes."""
    from fairbench.auditing.assessment import assess
    from fairbench.reporting.audits.binary import audit_document

    document = audit_document(assess(table.of_selected(), options))
    if table.selected is None:
        return document
    from fairbench.auditing.unknown import unknown_labels
    from fairbench.reporting.audits.unknown import with_unknown_labels

    return with_unknown_labels(document, unknown_labels(table, options))
