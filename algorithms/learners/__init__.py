"""Learners, one a file: what is fitted, such as boosted trees, and its hyperparameters."""
