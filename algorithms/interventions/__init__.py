"""Fairness interventions: one a file, each wrapping a learner's estimator."""
