"""Evaluation: arrays of labels and predictions become one long table of metrics."""
