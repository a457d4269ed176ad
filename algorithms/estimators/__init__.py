"""Estimators of our own, where a library's will not do."""
