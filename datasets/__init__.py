"""Loaders: each file has functions, such as `load(archive, ...)`, that return a Dataset."""
