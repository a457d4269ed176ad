"""Finished runs against each other: which is better, which to choose, and how sure that is.

`runs` compares two or many, `choice` chooses one, `alternative` judges a less discriminatory model
and a tuned one, and `tradeoff_runs` has the points of a figure of error against fairness.
Statistics are in :mod:`fairbench.inference`, pages in :mod:`fairbench.reporting`. Begin with
`runs`.
"""
