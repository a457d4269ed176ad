"""Compares what a paper printed with ours: numbers, figures and claims, one engine for all papers.

`mapping` reads a paper's folder and judges a number, `matching` finds what answers it and keeps the
record, `running` computes what is missing, and `pages` prints and writes. ``fairbench paper`` is
`verb`. Nothing here knows a paper by name. Begin with `mapping`.
"""
