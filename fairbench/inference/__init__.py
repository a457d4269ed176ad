"""Statistical inference: intervals, tests and posteriors, from counts, scores and labels.

Everything takes and returns arrays; no tables, no files, no wording. Begin with `rates` (a rate,
and two rates), `gaps` (the largest gap between groups), `means` (losses) and `repeats` (whole
runs); `few_labels`, `active`, `sequential` and `partial` have packages of their own.
"""
