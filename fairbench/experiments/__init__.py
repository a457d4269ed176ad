"""Experiments: the contracts of components, and how a configuration becomes fits and metrics."""
