"""Evaluation: arrays of labels and predictions become one long table of metrics.

Every row has a value, an interval, a number of rows and a status. Metrics come from
:mod:`fairbench.metrics` and intervals from :mod:`fairbench.inference`; nothing here knows a model
or a file. Begin with `evaluator`, and with `table`, which says what the table's columns mean;
`arrays` is `fairbench.evaluate`.
"""
