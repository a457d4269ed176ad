"""Data sets and tables: what a loader returns, how files are found and read, how rows are split.

`dataset` is the contract of every loader, `features` what is known of rows and the matrices made of
it, `splits` draws rows, and `download` lists the data sets and finds their raw files. `tables`
reads any file that people have, with `contents` for its bytes, `columns` for what its texts mean
and `groups` for who is compared; `in_memory` does so for tables of pandas, polars and Arrow.
Loaders themselves are in ``datasets/``, outside of the library. Begin with `dataset`, or with
`tables`.
"""
