"""The atlas: what many approaches on many tasks show together.

Modules, in the order in which they are used:

- `approaches` reads the metrics of many runs into one table.
- `values` turns that table into arrays (approach, task, split) and takes differences of them.
- `ranks` ranks the approaches, `few_tasks` describes those that were run on too few tasks for that.
- `frontiers` and `unprocessing` compare interventions with thresholds for each group.
- `claims` judges claims of the literature, by the rules of `verdicts`.
- `report` computes all of it (`atlas_findings`) and words the summary; `findings` and
  `claim_values` hold the results.

Words that all of them use:

- *task*: a data set with a protected attribute. *Family*: tasks that share people or a source;
  means are over families.
- *approach*: a learner, an intervention and an uncertainty method, with their options.
- *setting*: thresholds for each group, or a share of withheld labels, on top of an approach; empty
  for the approach itself, which is then called *plain*.
- *thresholds*: thresholds for each group, chosen on validation rows for the unconstrained model.
- *margin*: the error of an intervention minus that of thresholds with the same gap; above 0,
  thresholds win.
- *excess*: the gap of thresholds minus that of the intervention; it is above 0 on average where
  thresholds cannot reach so small a gap.
- *part* of a claim: one measured difference that the claim is about.
- *verdict* and *alone*: the verdict by an interval that holds simultaneously with others, and the
  verdict by the difference's own 95 % interval.
- *position*: the index of an approach in an array.
"""
