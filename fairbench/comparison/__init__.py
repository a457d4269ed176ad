"""Comparing finished runs, by the command line and for figures."""
