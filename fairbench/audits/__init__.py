"""Audits of predictions that somebody brings: from the question to the page.

`question` is what is asked and `table` what was read; `kinds` has one file for each kind of
predictions, `sentences` words what :mod:`fairbench.evaluation.findings` concludes, `report` makes
the page. Begin with `question`, then `kinds.binary`.
"""
