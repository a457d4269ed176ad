"""Dossiers: what a rule or a format asks to be told of a model, each with its measurement."""
