"""Filling the long table of metrics: from counts, scores, uncertainties and regressions."""
