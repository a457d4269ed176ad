"""Metrics as pure functions of counts or of arrays, each declared once, in ``declared.csv``.

Nothing here fits, writes or makes intervals: those are of :mod:`fairbench.inference`, and the table
of both of :mod:`fairbench.evaluation`. Begin with the table; `registry` reads it, and `group` has
the functions that compare groups.
"""
