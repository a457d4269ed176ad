"""Predictions that keep coming, watched: alarms that are seldom false however often one looks."""
