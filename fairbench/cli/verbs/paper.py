"""Compare the numbers that a paper printed with ours, with a verdict on each.

A number agrees if the two means differ by at most two standard errors and half a printed digit. If
ours, by the setting of the paper's text, differs, a cause is named: the one setting that, changed,
makes it agree. Without table= a summary counts the verdicts of every table. With `all` in place of
a paper, every row of all papers is listed, with what answers it or why nothing can.
"""

from __future__ import annotations

from fairbench.components import imported

COMMAND = imported("papers.engine.verb").COMMAND
