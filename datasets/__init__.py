"""Loaders: one data set a file, each a function `load(archive, ...)` returning a Dataset."""
