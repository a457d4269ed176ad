"""Statistical inference: intervals, tests and posteriors, from counts, scores and labels.

Everything takes and returns arrays, and `comparing` tables, too; no files, no wording. Begin with
`rates` (a rate, two rates, and looks at data that keep coming), `gaps` (the largest gap between
groups), `means` (losses) and `repeats` (whole runs). `survey` is of weights and clusters, `scores`
of areas and calibration errors, `few_labels` and `partial` of labels that are few or missing,
`verdicts` of which of many is better, and `posterior`, `comparing` and `pooled` are Bayesian.
"""
