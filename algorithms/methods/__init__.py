"""Uncertainty methods: one a file, each a fitter and a reading of its raw outputs."""
