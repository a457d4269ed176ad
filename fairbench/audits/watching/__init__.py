"""Predictions that keep coming: alarms that are seldom false, no matter how often you look."""
