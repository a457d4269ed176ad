"""Finished runs against each other: which is better, which to choose, and how sure that is.

`runs` compares two or many and has the points of a figure of error against fairness, `choice`
chooses one, and `alternative` judges a less discriminatory model and a tuned one.
Statistics are in :mod:`fairbench.inference`, pages in :mod:`fairbench.reporting`. Begin with
`runs`.
"""
