"""Ranking the methods of any benchmark: from a table of scores to ranks and statements.

`question` is what is asked, `sources` recognises what others wrote, `table` reads the scores, and
`answer` says what they tell, by the constructions of `inference/comparing/sign_flips.py` and its
neighbours. Words and pages are made in :mod:`fairbench.reporting.rank`.
"""
