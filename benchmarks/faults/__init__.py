"""Faults done to results on purpose, with fixed seeds, and what came of them."""
