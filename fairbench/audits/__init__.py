"""Predictions that a user brings, audited: group metrics, and what their labels can settle."""
