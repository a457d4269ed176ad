"""Metrics as pure functions of counts or of arrays, each declared once, next to its function.

Nothing here fits, reads, writes or makes intervals: those are of :mod:`fairbench.inference`, and
the table of both of :mod:`fairbench.evaluation`. Begin with `registry`, which finds the
declarations, and `group`, which has the metrics of groups.
"""
