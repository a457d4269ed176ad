"""Data sets and tables: what a loader returns, how files are found and read, how rows are split.

`dataset` is the contract of every loader, `splits` draws rows, `encoding` makes matrices of
features, and `any_table` reads any file that people have. Loaders themselves are in ``datasets/``,
outside of the library. Begin with `dataset`.
"""
