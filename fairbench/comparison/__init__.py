"""Finished runs against each other: which is better, and how sure that is.

`runs` compares two or many and has the points of a figure of error against fairness.
Statistics are in :mod:`fairbench.inference`, pages in :mod:`fairbench.reporting`. Begin with
`runs`.
"""
